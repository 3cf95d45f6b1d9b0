"""Remarks on traced calls of PyTorch: operations that are allowed, and perhaps not meant so."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod
from typing import TYPE_CHECKING, Any, Final

from graphcore.frontends.shape_remarks import mark_broadcasts, place_of
from graphcore.frontends.torch_calls.recording import Recorder, tensors_of, torch

if TYPE_CHECKING:
    from graphcore.frontends.foreign import ForeignGraph, ForeignNode, InputRef
    from graphcore.frontends.torch_calls.axes import AxisOrigins

_MOST: Final = 4
_MOST_NAMES: Final = 6
_MOST_FUNCTIONS: Final = 20_000
_PASSING: Final = frozenset(
    [
        "view",
        "reshape",
        "flatten",
        "squeeze",
        "unsqueeze",
        "transpose",
        "permute",
        "contiguous",
        "to",
        "float",
        "double",
        "half",
        "clone",
        "dropout",
        "identity",
    ]
)
_ELEMENT_LOSSES: Final = frozenset({"mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"})
_MODIFIED: Final = "modified by an inplace operation"


def remarks_on(graph: ForeignGraph, recorder: Recorder, result: Any, roots: Mapping[str, Any], origins: AxisOrigins) -> list[str]:
    """Sentences on a call that has come to its end.

    Args:
        graph: its graph.
        recorder: what was written down.
        result: its result.
        roots: the modules that were called.
        origins: the origins of sizes.
    """
    nodes = {node.name: node for node in graph.main.nodes}
    texts = [
        *mark_broadcasts(graph),
        *_losses(nodes),
        *_softmax_over_batch(nodes, origins),
        *_without_gradients(nodes, recorder),
        *_layers_in_a_row(nodes),
        *_unregistered(roots),
        *_unused(nodes, roots),
        *_changed_in_place(nodes, recorder, result),
    ]
    return list(dict.fromkeys(texts))


def _losses(nodes: Mapping[str, ForeignNode]) -> Iterator[str]:
    """The remarks on losses of what is no logits, and of shapes that are broadcast."""
    for node in nodes.values():
        word = _word(node)
        if word in _ELEMENT_LOSSES and len(node.inputs) > 1:
            yield from _of_broadcast_loss(nodes, node, word)
        if word not in {"cross_entropy", "nll_loss", "binary_cross_entropy_with_logits"}:
            continue
        maker = _behind(nodes, node.inputs[0] if node.inputs else None)
        if maker is None:
            continue
        made = _word(maker)
        if word == "nll_loss" and made == "softmax":
            yield f"nll_loss{place_of(node)} takes logarithms of probabilities, and gets softmax{place_of(maker)}: use log_softmax, or cross_entropy."
        if word == "cross_entropy" and made in {"softmax", "sigmoid"}:
            yield f"cross_entropy{place_of(node)} applies a softmax itself, and gets {made}{place_of(maker)}: give it the logits."
        if word == "binary_cross_entropy_with_logits" and made in {"sigmoid", "softmax"}:
            yield f"{word}{place_of(node)} applies a sigmoid itself, and gets {made}{place_of(maker)}: give it the logits."


def _of_broadcast_loss(nodes: Mapping[str, ForeignNode], node: ForeignNode, word: str) -> Iterator[str]:
    one, other = [_shape(nodes, ref) for ref in node.inputs[:2]]
    if one is None or other is None or one == other or not all(isinstance(size, int) for size in (*one, *other)):
        return
    try:
        both = tuple(torch.broadcast_shapes(one, other))
    except RuntimeError:
        return
    if prod(both) > max(prod(one), prod(other)):
        yield (
            f"{word}{place_of(node)} takes an input {one} and a target {other}, which are broadcast to {both}: each element of one meets each of the "
            "other. Give both one shape, as by `.squeeze(-1)` or `.unsqueeze(-1)`."
        )


def _softmax_over_batch(nodes: Mapping[str, ForeignNode], origins: AxisOrigins) -> Iterator[str]:
    """The remarks on a softmax along the first axis of what was given to the call, over its examples."""
    for node in nodes.values():
        shape = _shape(nodes, node.inputs[0]) if node.inputs else None
        dim = node.attrs.get("dim", node.attrs.get("argument 1"))
        if _word(node) not in {"softmax", "log_softmax"} or shape is None or len(shape) < 2 or not isinstance(dim, int) or dim % len(shape):
            continue
        ref = node.inputs[0]
        assert ref is not None, "its shape is known"
        words = origins.words(ref, 0)
        if any(
            words == f"axis 0 of {other.name}"
            for other in nodes.values()
            if other.kind == "input" and len(other.outputs[0].shape or ()) > 1
        ):
            yield f"{_word(node)}{place_of(node)} is along axis 0, which is {words}: each example depends on the others. Along the last axis it is dim=-1."


def _without_gradients(nodes: Mapping[str, ForeignNode], recorder: Recorder) -> Iterator[str]:
    """The remark on dropout and batch norm in training mode where no gradient is recorded."""
    random = [node for node in nodes.values() if node.name in recorder.without_gradients and _trains(node)]
    if random:
        names = _listed([node.modules[-1].path or _word(node) for node in random])
        yield (
            f"{names} {'works' if len(random) == 1 else 'work'} as in training under torch.no_grad(){place_of(random[0])}: dropout and batch norm "
            "change results at random and by the batch. Call `model.eval()` before."
        )


def _trains(node: ForeignNode) -> bool:
    word, place = _word(node), {"dropout": 2, "batch_norm": 5}.get(_word(node))
    if place is None or node.attrs.get("training", node.attrs.get(f"argument {place}", word == "dropout")) is not True:
        return False
    return word != "dropout" or node.attrs.get("p", node.attrs.get("argument 1", 0.5)) != 0.0


def _layers_in_a_row(nodes: Mapping[str, ForeignNode]) -> Iterator[str]:
    """The remarks on linear layers that are as one. Those around a narrower tensor are meant so."""
    texts: list[str] = []
    for node in nodes.values():
        before = _behind(nodes, node.inputs[0]) if _word(node) == "linear" and node.inputs else None
        if before is None or _word(before) != "linear" or _users(nodes, before.name) != 1:
            continue
        wide, middle, last = (_last(nodes, before.inputs[0]), _last(nodes, node.inputs[0]), node.outputs[0].shape or (0,))
        if isinstance(middle, int) and isinstance(wide, int) and isinstance(last[-1], int) and middle >= min(wide, last[-1]):
            texts.append(
                f"{_name(before)}{place_of(before)} and {_name(node)}{place_of(node)} follow each other without a function between them: together "
                "they are no more than one linear layer."
            )
    yield from texts[:_MOST]


def _unregistered(roots: Mapping[str, Any]) -> Iterator[str]:
    """The remarks on modules in plain lists and tables, whose parameters a model does not know."""
    for root in roots.values():
        own = {id(parameter) for parameter in root.parameters()}
        for path, part in root.named_modules():
            for name, value in vars(part).items():
                if name.startswith("_") or not isinstance(value, list | tuple | dict):
                    continue
                items = list(value.values()) if isinstance(value, dict) else value
                inner = [parameter for item in items if isinstance(item, torch.nn.Module) for parameter in item.parameters()]
                kind = "ModuleDict" if isinstance(value, dict) else "ModuleList"
                if any(id(parameter) not in own for parameter in inner):
                    yield (
                        f"`{'.'.join(filter(None, (path, name)))}` of {type(part).__name__} is a {type(value).__name__} of modules: their parameters are "
                        f"not among `model.parameters()`, so that no optimizer changes them. Make it an nn.{kind}."
                    )


def _unused(nodes: Mapping[str, ForeignNode], roots: Mapping[str, Any]) -> Iterator[str]:
    """The remark on parameters that no operation takes, of a model in training."""
    taken = {ref[0] for node in nodes.values() for ref in node.inputs if ref is not None}
    used = {node.outputs[0].name for node in nodes.values() if node.kind == "parameter" and node.name in taken}
    unused: list[str] = []
    for root, module in roots.items():
        if module.training:
            unused += [name for path, _ in module.named_parameters() if (name := f"{root}.{path}" if root else path) not in used]
    if unused and used:
        verb = "is" if len(unused) == 1 else "are"
        yield f"{_listed(unused)} {verb} never used: no gradient arrives there."


def _changed_in_place(nodes: Mapping[str, ForeignNode], recorder: Recorder, result: Any) -> Iterator[str]:
    """The remarks on tensors that were changed after the backward pass had noted them."""
    pending = [tensor.grad_fn for tensor in tensors_of(result)]
    seen: set[Any] = set()
    while pending and len(seen) < _MOST_FUNCTIONS:
        function = pending.pop()
        if function is None or function in seen:
            continue
        seen.add(function)
        pending += [following for following, _ in function.next_functions]
        maker = nodes.get(recorder.makers.get(function, ""))
        changing = nodes.get(_changing(maker, recorder)) if maker is not None and _is_broken(function) else None
        if maker is not None and changing is not None:
            yield (
                f"{_word(changing)}{place_of(changing)} changes in place a tensor that the gradient of {_word(maker)}{place_of(maker)} needs: "
                "`backward()` will fail. Make a new tensor instead."
            )


def _is_broken(function: Any) -> bool:
    """True iff a tensor that a function of the backward pass has noted was changed since."""
    for name in dir(function):
        if name.startswith("_saved_"):
            try:
                getattr(function, name)
            except RuntimeError as error:
                return _MODIFIED in str(error)
    return False


def _changing(maker: ForeignNode, recorder: Recorder) -> str:
    """The node that changed last what a node takes or gives, "" if it is not known."""
    noted = [recorder.tensors.get(ref) for ref in (*maker.inputs, (maker.name, 0)) if ref is not None]
    memory = {_storage(tensor) for tensor in noted if tensor is not None}
    return next((name for name, tensor in reversed(recorder.changed) if _storage(tensor) in memory and name != maker.name), "")


def _storage(tensor: Any) -> int:
    return int(tensor.untyped_storage()._cdata)


def _behind(nodes: Mapping[str, ForeignNode], ref: InputRef) -> ForeignNode | None:
    """The node that computes a tensor, behind those that only give it another shape or type."""
    node = None if ref is None else nodes.get(ref[0])
    while node is not None and _word(node) in _PASSING and node.inputs and node.inputs[0] is not None:
        node = nodes.get(node.inputs[0][0])
    return node


def _users(nodes: Mapping[str, ForeignNode], name: str) -> int:
    return sum(ref is not None and ref[0] == name for node in nodes.values() for ref in node.inputs)


def _shape(nodes: Mapping[str, ForeignNode], ref: InputRef) -> tuple[Any, ...] | None:
    node = None if ref is None else nodes.get(ref[0])
    return None if node is None or ref is None or ref[1] >= len(node.outputs) else node.outputs[ref[1]].shape


def _last(nodes: Mapping[str, ForeignNode], ref: InputRef) -> Any:
    shape = _shape(nodes, ref)
    return shape[-1] if shape else None


def _word(node: ForeignNode) -> str:
    return node.op.rpartition(".")[2].strip("_")


def _name(node: ForeignNode) -> str:
    """The module that a node is in and its class, its op for one in none."""
    inner = node.modules[-1] if node.modules else None
    return f"{inner.path} ({inner.type_name})" if inner is not None and inner.path and inner.type_name else _word(node)


def _listed(names: list[str]) -> str:
    shown = list(dict.fromkeys(names))
    rest = f" and {len(shown) - _MOST_NAMES} more" if len(shown) > _MOST_NAMES else ""
    return ", ".join(shown[:_MOST_NAMES]) + rest
