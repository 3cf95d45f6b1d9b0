"""The gradient of a computation of PyTorch by a tensor: its path, or the calls that end it."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

import msgspec

from graphcore.api.gradients.explanation import GradientCut, GradientExplanation
from graphcore.api.gradients.of_torch.changes import changed_in_place, shared_with
from graphcore.api.gradients.of_torch.forward import Forward
from graphcore.api.gradients.of_torch.optimizers import of_optimizer
from graphcore.api.gradients.of_torch.past import explain_past
from graphcore.api.gradients.of_torch.steps import Steps
from graphcore.api.gradients.of_torch.zeros import zero_cuts
from graphcore.errors import InvalidArgumentError
from graphcore.frontends.frontend import Call
from graphcore.frontends.torch_calls.autograd import GradientRecorder
from graphcore.frontends.torch_calls.copying import Copies, Twins
from graphcore.frontends.torch_calls.ends import Ends
from graphcore.frontends.torch_calls.recording import tensors_of, torch
from graphcore.frontends.torch_calls.surroundings import untouched
from graphcore.frontends.torch_calls.tracing import Recording, add_gradients, graph_of, record
from graphcore.frontends.torch_calls.wrappers import without_wrappers
from graphcore.frontends.torch_reader.objects import sizes_of, word_of
from graphcore.support.random_states import kept_random_states
from graphcore.support.watched import long_work


def explain_torch(y: Any, x: Any, optimizer: Any = None) -> GradientExplanation:
    """Explain a gradient of PyTorch.

    Args:
        y: a function without arguments, or a `Call`, which is made once on copies of all tensors and modules; or a tensor that was computed.
        x: a tensor; for a function also its dotted name in a module that it uses.
        optimizer: an optimizer of PyTorch that is to change the tensor.

    Raises:
        InvalidArgumentError: the function gives no tensor, or fails before any operation; there is no tensor of that name; the optimizer is none.
    """
    if isinstance(y, torch.Tensor):
        past = explain_past(y, x)
        return msgspec.structs.replace(past, notes=(*of_optimizer(optimizer, x), *past.notes))
    call = y if isinstance(y, Call) else Call(y)
    function, args, kwargs = without_wrappers(call.function, tuple(call.args), call.kwargs)
    call = Call(function, args, kwargs)
    with untouched(call.function), kept_random_states():
        return _made(call, x, optimizer)


def _made(call: Call, x: Any, optimizer: Any) -> GradientExplanation:
    copies = Copies(torch, Twins())
    made = record(call, copies, GradientRecorder)
    long_work.publish(made.recorder.work, 1, 1, "")
    argument = x
    x, name = _tensor_named(x, copies) if isinstance(x, str) else (x, "")
    if not isinstance(x, torch.Tensor):
        raise InvalidArgumentError(f"explain_gradient requires a tensor of PyTorch or its name, got {type(argument).__name__}")
    explained = _explained(call, made, x, name)
    return msgspec.structs.replace(explained, notes=(*of_optimizer(optimizer, x), *explained.notes))


def _explained(call: Call, made: Recording, x: Any, name: str) -> GradientExplanation:
    recorder = made.recorder
    twin = recorder.copies.twin_of(x)
    if twin is not None:
        recorder.ref(twin)
    source = graph_of(call, made)
    results = tensors_of(made.result)
    if made.error is not None:
        forward = Forward(source, recorder, [])
        name = name or (forward.name(recorder.ref(twin)) if twin is not None else _shown(x))
        return GradientExplanation(
            y="the result", x=name, error=_where(forward, recorder.failed, f"{type(made.error).__name__}: {made.error}")
        )
    if not results:
        kind = type(made.result).__name__
        raise InvalidArgumentError(f"explain_gradient requires a function that returns a tensor, got one that returns {kind}")
    backward = add_gradients(source, made)
    forward = Forward(source, recorder, results)
    y = forward.name(recorder.ref(results[0])) if len(results) == 1 else f"the sum of {len(results)} results"
    notes = (*source.notes, *_hooks(x))
    if twin is None and (shared := shared_with(recorder.copies, x)):
        reason = (
            f"this tensor shares its memory with '{shared}' and is not that parameter: state_dict(), .data and .detach() give such tensors, "
            "which autograd does not follow; ask for the parameter itself, or by its name"
        )
        return GradientExplanation(y=y, x=name or _shown(x), cuts=(GradientCut(kind="alias", node="", op="", reason=reason),), notes=notes)
    if twin is None:
        reason = f"no call of the computation takes this tensor ({_shown(x)}), nor does a module that it uses hold it: was it replaced?"
        return GradientExplanation(
            y=y, x=name or _shown(x), cuts=(GradientCut(kind="no path", node="", op="", reason=reason),), notes=notes
        )
    ref = recorder.ref(twin)
    x_name = name or recorder.state_name(twin) or forward.name(ref)
    notes = (*notes, *changed_in_place(forward, recorder.copies, twin, x_name))
    ends = Ends(forward, x, ref)
    end = next((function for function in backward.node_of if getattr(function, "variable", None) is twin), None)
    if end is None:
        return GradientExplanation(y=y, x=x_name, cuts=tuple(map(forward.cut, ends.all())), notes=notes)
    steps = Steps(forward, backward, end, ends.carrying)
    values, zeros, failed = zero_cuts(forward, backward, steps, twin)
    if failed is not None:
        return GradientExplanation(y=y, x=x_name, error=failed.said, cuts=tuple(forward.changed_in_place(failed)), notes=notes)
    if values is None:
        return GradientExplanation(y=y, x=x_name, cuts=tuple(map(forward.cut, ends.all())), notes=notes)
    is_finite = bool(torch.isfinite(values).all())
    not_leaf = ends.not_a_leaf()
    return GradientExplanation(
        y=y,
        x=x_name,
        gradient=None if not_leaf else f"{x_name}.grad",
        kind=f"{word_of(twin.dtype)} {list(sizes_of(twin.shape) or ())}" + ("" if is_finite else ", not finite"),
        built=True,
        is_zero=not bool(values.any()),
        of_values=True,
        path_count=steps.path_count,
        paths=steps.paths,
        steps=steps.steps,
        sums=steps.sums,
        cuts=tuple(map(forward.cut, [*not_leaf, *zeros, *ends.on_other_ways()])),
        notes=notes,
    )


def _tensor_named(name: str, copies: Copies) -> tuple[Any, str]:
    """The tensor with a dotted name in one of the modules, and its full name."""
    tensors: dict[str, Any] = {}
    whole: dict[str, Any] = {}
    for prefix, module in copies.modules:
        for path, twin in [*module.named_parameters(remove_duplicate=False), *module.named_buffers()]:
            full = f"{prefix}.{path}" if prefix else path
            tensors.setdefault(full, copies.original[id(twin)])
            if name in {full, path}:
                whole[full] = tensors[full]
    exact = whole or {path: tensor for path, tensor in tensors.items() if path.endswith(f".{name}")}
    if len({id(tensor) for tensor in exact.values()}) == 1:
        path, tensor = next(iter(exact.items()))
        return tensor, path
    near = ", ".join(sorted(exact) or get_close_matches(name, tensors, n=4, cutoff=0.3)) or "none"
    many = "several tensors have that name" if exact else "no module of the computation has a tensor of that name"
    raise InvalidArgumentError(f"explain_gradient requires the name of one tensor, got '{name}': {many}; there are: {near}")


def _where(forward: Forward, node: str, said: str) -> str:
    source = forward.source(node)
    return said if source is None else f"{said}  [{source}]"


def _shown(x: Any) -> str:
    return f"{type(x).__name__} {word_of(x.dtype)} {list(sizes_of(x.shape) or ())}"


def _hooks(x: Any) -> list[str]:
    """Remarks about the functions that are called with the gradient of a tensor."""
    number = len(getattr(x, "_backward_hooks", None) or ())
    return [f"It has {number} {'hook' if number == 1 else 'hooks'}, which may change the gradient after all of this."] if number else []
