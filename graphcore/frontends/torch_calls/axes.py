"""Origins of sizes in a traced call: the axes of inputs and parameters that they come from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from graphcore.frontends.foreign import SizeStep
from graphcore.frontends.foreign_ops import foreign_traits
from graphcore.source import SourceLocation

if TYPE_CHECKING:
    from graphcore.frontends.foreign import ForeignNode

_MAX_STEPS: Final = 10_000
_MOST_CAUSES: Final = 3
_MAX_DEPTH: Final = 1
_FIRST_WORDS: Final = (
    "dropout alpha_dropout feature_dropout batch_norm layer_norm rms_norm group_norm instance_norm softmax log_softmax relu gelu leaky_relu silu "
    "tanh sigmoid elu selu mish hardswish softplus contiguous clone detach to float half double bfloat16 long int bool type cuda cpu requires_grad "
    "masked_fill cumsum cumprod normalize flip roll sort triu tril nan_to_num clamp clip abs neg exp log sqrt rsqrt erf sin cos round floor ceil "
    "where add sub mul div pow radd rsub rmul rtruediv truediv iadd isub imul maximum minimum eq ne lt le gt ge logical_and logical_or "
    "zeros_like ones_like rand_like randn_like empty_like full_like type_as masked_scatter dropout1d dropout2d invert and or xor "
    "softsign threshold hardtanh relu6 prelu uniform normal trunc_normal fill zero copy"
)
_SAME: Final = frozenset(_FIRST_WORDS.split())
_RESHAPES: Final = frozenset({"view", "reshape", "flatten", "unflatten", "squeeze", "unsqueeze", "view_as", "reshape_as"})
_REDUCTIONS: Final = frozenset(
    ["sum", "mean", "max", "min", "amax", "amin", "prod", "std", "var", "norm", "argmax", "argmin", "logsumexp", "all", "any", "median"]
)
_MADE: Final = frozenset({"zeros", "ones", "randn", "rand", "empty", "full", "arange", "eye", "linspace", "randint", "tensor"})
Shape = Sequence[Any]
Sources = list[tuple[int, int]]


class AxisOrigins:
    """The origins of the sizes of the outputs of nodes.

    Args:
        nodes: the nodes of a traced call.
        of_state: gives the origin of an axis of a parameter or buffer in words, by its name, the axis and the size.
    """

    def __init__(self, nodes: Sequence[ForeignNode], of_state: Callable[[str, int, int], str]) -> None:
        self._nodes = {node.name: node for node in nodes}
        self._of_state = of_state

    def step(self, node: ForeignNode, output: int, axis: int) -> SizeStep | None:
        """The next step backwards from a size, None if the node has no such axis."""
        node = self._nodes.get(node.name, node)
        shape = _shape(node, output)
        if shape is None or not 0 <= axis < len(shape):
            return None
        word = node.op.rpartition(".")[2].rstrip("_")
        if node.kind != "op" or not node.inputs:
            return SizeStep("given", f"is {self._given(node, word, axis, shape[axis])}")
        shapes = [(None if ref is None else _shape(self._nodes[ref[0]], ref[1])) or () for ref in node.inputs]
        sources = _sources(node, word, shapes, shape, axis)
        if sources is None or any(not 0 <= place < len(shapes[slot]) for slot, place in sources):
            return SizeStep("unknown", f"is axis {axis} of what {word} gives{_at(node)}, through which sizes are not followed")
        if len(sources) == 1 and shapes[sources[0][0]][sources[0][1]] == shape[axis]:
            return SizeStep("passed", "", tuple(sources))
        return SizeStep("computed", f"is computed by {word}{_at(node)}", tuple(sources))

    def words(self, ref: tuple[str, int], axis: int) -> str:
        """The origin of a size in words: `axis 1 of x`."""
        return self._words(ref, axis, 0).removeprefix("is ")

    def _words(self, ref: tuple[str, int], axis: int, depth: int) -> str:
        for _ in range(_MAX_STEPS):
            node = self._nodes[ref[0]]
            step = self.step(node, ref[1], axis)
            if step is None:
                break
            if step.how == "passed":
                slot, axis = step.sources[0]
                source = node.inputs[slot]
                assert source is not None, "a slot is counted among the inputs that are there"
                ref = source
                continue
            if step.how != "computed" or not step.sources or depth >= _MAX_DEPTH:
                return step.text
            return step.text + " from " + " and ".join(self._causes(node, step.sources, depth))
        return f"axis {axis} of {ref[0]}"

    def _causes(self, node: ForeignNode, sources: Sequence[tuple[int, int]], depth: int) -> list[str]:
        causes: list[str] = []
        for slot, axis in sources[:_MOST_CAUSES]:
            ref = node.inputs[slot]
            assert ref is not None, "as above"
            shape = _shape(self._nodes[ref[0]], ref[1]) or ()
            causes.append(f"{shape[axis]} ({self._words(ref, axis, depth + 1).removeprefix('is ')})")
        return [*causes, "others"] if len(sources) > _MOST_CAUSES else causes

    def _given(self, node: ForeignNode, word: str, axis: int, size: Any) -> str:
        if node.kind in {"parameter", "buffer"} and isinstance(size, int):
            return self._of_state(node.name, axis, size)
        if node.kind != "op":
            return f"axis {axis} of {node.name}"
        line = f": `{node.frames[-1].text}`" if word in _MADE and node.frames and node.frames[-1].text else ""
        return f"axis {axis} of what {word} makes{_at(node)}{line}"


def _sources(node: ForeignNode, word: str, shapes: Sequence[Shape], shape: Shape, axis: int) -> Sources | None:
    """The axes of inputs that a size comes from; None if that is not known."""
    rule = _RULES.get(word)
    if rule is not None:
        return rule(node, word, shapes, shape, axis)
    if word in _RESHAPES:
        return _reshaped(shapes[0], shape, axis)
    if word in _SAME or foreign_traits(node.op).elementwise:
        return _aligned(shapes, shape, axis)
    if word in _REDUCTIONS:
        return _reduced(node, shapes, shape, axis)
    return None


def _aligned(shapes: Sequence[Shape], shape: Shape, axis: int) -> Sources | None:
    back = axis - len(shape)
    for slot, other in enumerate(shapes):
        if len(other) >= -back and other[back] == shape[axis]:
            return [(slot, len(other) + back)]
    return None


def _linear(_node: ForeignNode, _word: str, _shapes: Sequence[Shape], shape: Shape, axis: int) -> Sources | None:
    return [(1, 0)] if axis == len(shape) - 1 else [(0, axis)]


def _product(_node: ForeignNode, word: str, shapes: Sequence[Shape], shape: Shape, axis: int) -> Sources | None:
    one, other = (1, 0) if word == "rmatmul" else (0, 1)
    first, second = shapes[one], shapes[other]
    from_end = len(shape) - axis
    if len(second) > 1 and from_end == 1:
        return [(other, len(second) - 1)]
    if len(first) > 1 and from_end == (2 if len(second) > 1 else 1):
        return [(one, len(first) - 2)]
    batch = [first[:-2] if len(first) > 2 else (), second[:-2] if len(second) > 2 else ()]
    of_batch = _aligned(batch, shape[: len(shape) - 2], axis) if len(first) > 1 < len(second) else None
    return [((one, other)[slot], place) for slot, place in of_batch] if of_batch else None


def _addmm(_node: ForeignNode, _word: str, _shapes: Sequence[Shape], _shape: Shape, axis: int) -> Sources | None:
    return [(1, 0)] if axis == 0 else [(2, 1)]


def _convolved(_node: ForeignNode, word: str, shapes: Sequence[Shape], shape: Shape, axis: int) -> Sources | None:
    channels = len(shape) - len(shapes[1]) + 1
    if axis == channels:
        return [(1, 1 if "transpose" in word else 0)]
    return [(0, axis)] if axis < channels else [(0, axis), (1, axis - channels + 1)]


def _pooled(_node: ForeignNode, word: str, _shapes: Sequence[Shape], shape: Shape, axis: int) -> Sources | None:
    spatial = int(word[-2]) if word[-1] == "d" and word[-2].isdigit() else 0
    if not spatial:
        return None
    return None if word.startswith("adaptive") and axis >= len(shape) - spatial else [(0, axis)]


def _embedded(_node: ForeignNode, _word: str, _shapes: Sequence[Shape], shape: Shape, axis: int) -> Sources | None:
    return [(1, 1)] if axis == len(shape) - 1 else [(0, axis)]


def _transposed(node: ForeignNode, word: str, shapes: Sequence[Shape], _shape: Shape, axis: int) -> Sources | None:
    rank = len(shapes[0])
    if word in {"T", "t", "mT", "H", "mH", "adjoint"}:
        last = (rank - 2, rank - 1) if word in {"mT", "mH", "adjoint"} or rank == 2 else None
        return [(0, last[0] + last[1] - axis if axis in last else axis)] if last is not None else [(0, rank - 1 - axis)]
    if word == "permute":
        order = _argument(node, 1, "dims")
        order = order if isinstance(order, list) else [node.attrs.get(f"argument {place}") for place in range(1, rank + 1)]
        return [(0, int(order[axis]) % rank)] if all(isinstance(place, int) for place in order) and len(order) == rank else None
    one, other = _argument(node, 1, "dim0"), _argument(node, 2, "dim1")
    if not isinstance(one, int) or not isinstance(other, int):
        return None
    pair = {one % rank: other % rank, other % rank: one % rank}
    return [(0, pair.get(axis, axis))]


def _joined(node: ForeignNode, _word: str, shapes: Sequence[Shape], shape: Shape, axis: int) -> Sources | None:
    place = _argument(node, 1, "dim", 0)
    if not isinstance(place, int):
        return None
    return [(slot, axis) for slot in range(len(shapes))] if axis == place % len(shape) else [(0, axis)]


def _split(node: ForeignNode, word: str, shapes: Sequence[Shape], _shape: Shape, axis: int) -> Sources | None:
    place = _argument(node, 1 if word == "unbind" else 2, "dim", 0)
    if not isinstance(place, int):
        return None
    place %= len(shapes[0])
    return [(0, axis + (axis >= place))] if word == "unbind" else [(0, axis)]


def _attended(_node: ForeignNode, _word: str, _shapes: Sequence[Shape], shape: Shape, axis: int) -> Sources | None:
    return [(2, axis)] if axis == len(shape) - 1 else [(0, axis)]


def _summed(node: ForeignNode, _word: str, shapes: Sequence[Shape], _shape: Shape, axis: int) -> Sources | None:
    equation = node.attrs.get("argument 0")
    if not isinstance(equation, str) or "->" not in equation or "." in equation:
        return None
    taken, result = equation.replace(" ", "").split("->")
    for slot, letters in enumerate(taken.split(",")):
        if result[axis] in letters and slot < len(shapes):
            return [(slot, letters.index(result[axis]))]
    return None


def _expanded(_node: ForeignNode, _word: str, shapes: Sequence[Shape], shape: Shape, axis: int) -> Sources | None:
    return _aligned(shapes[:1], shape, axis)


Rule = Callable[["ForeignNode", str, Sequence[Shape], Shape, int], "Sources | None"]
_RULES: Final[Mapping[str, Rule]] = {
    "linear": _linear,
    **dict.fromkeys(("matmul", "mm", "bmm", "mv", "rmatmul"), _product),
    "addmm": _addmm,
    **dict.fromkeys([f"conv{axes}d" for axes in (1, 2, 3)], _convolved),
    **dict.fromkeys([f"conv_transpose{axes}d" for axes in (1, 2, 3)], _convolved),
    **dict.fromkeys([f"{kind}_pool{axes}d" for kind in ("max", "avg", "adaptive_avg", "adaptive_max") for axes in (1, 2, 3)], _pooled),
    "embedding": _embedded,
    **dict.fromkeys(("T", "t", "mT", "H", "mH", "adjoint", "permute", "transpose", "swapaxes", "swapdims"), _transposed),
    **dict.fromkeys(("cat", "concat", "concatenate"), _joined),
    **dict.fromkeys(("chunk", "split", "unbind", "tensor_split"), _split),
    "scaled_dot_product_attention": _attended,
    "einsum": _summed,
    **dict.fromkeys(("expand", "broadcast_to", "expand_as"), _expanded),
}


def _reshaped(before: Shape, after: Shape, axis: int) -> Sources | None:
    """The axes that make up an axis: those of the smallest block with as many elements."""
    if not all(isinstance(size, int) for size in (*before, *after)) or 0 in before:
        return _same_place(before, after, axis)
    if after[axis] == 1:
        return None
    start = stop = first = 0
    while first < len(after):
        one, other, last = 1, 1, first
        start = stop
        while stop < len(before) and before[stop] == 1:
            stop += 1
        while last < len(after) and (last == first or one != other):
            one *= after[last]
            last += 1
            while stop < len(before) and other < one:
                other *= before[stop]
                stop += 1
        if first <= axis < last:
            return [(0, place) for place in range(start, stop) if before[place] != 1] or None
        first = last
    return None


def _same_place(before: Shape, after: Shape, axis: int) -> Sources | None:
    return [(0, axis)] if list(before[: axis + 1]) == list(after[: axis + 1]) else None


def _reduced(node: ForeignNode, shapes: Sequence[Shape], shape: Shape, axis: int) -> Sources | None:
    rank = len(shapes[0])
    if len(shape) == rank:
        return [(0, axis)] if shapes[0][axis] == shape[axis] else None
    dims = _argument(node, 1, "dim")
    dims = [dims] if isinstance(dims, int) else dims
    if not isinstance(dims, list) or not all(isinstance(place, int) for place in dims):
        return None
    kept = [place for place in range(rank) if place not in {int(dim) % rank for dim in dims}]
    return [(0, kept[axis])] if axis < len(kept) else None


def _argument(node: ForeignNode, place: int, name: str, default: Any = None) -> Any:
    return node.attrs.get(name, node.attrs.get(f"argument {place}", default))


def _shape(node: ForeignNode, output: int) -> Shape | None:
    return node.outputs[output].shape if output < len(node.outputs) else None


def _at(node: ForeignNode) -> str:
    return f" ({SourceLocation(file=node.frames[-1].file, line=node.frames[-1].line).where})" if node.frames else ""
