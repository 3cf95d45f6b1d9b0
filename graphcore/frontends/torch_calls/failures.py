"""Operations that failed: the sizes, types or devices that do not go together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from math import prod
from typing import Any, Final

torch: Any = import_module("torch")
_PRODUCTS: Final = frozenset({"matmul", "mm", "bmm", "mv", "dot", "rmatmul"})
_BROADCAST_WORDS: Final = (
    "add sub mul div true_divide floor_divide pow where maximum minimum eq ne lt le gt ge radd rsub rmul rtruediv truediv iadd isub imul "
    "itruediv atan2 fmod remainder logical_and logical_or addcmul addcdiv lerp masked_fill mse_loss l1_loss smooth_l1_loss huber_loss"
)
_BROADCAST: Final = frozenset(_BROADCAST_WORDS.split())
_LEAVING: Final = frozenset({"numpy", "array"})
_SAME: Final = frozenset({"binary_cross_entropy", "binary_cross_entropy_with_logits"})


@dataclass(frozen=True)
class Failure:
    """A call that failed.

    Attributes:
        title: the function.
        args, kwargs: its arguments.
        error: the error.
    """

    title: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    error: Exception


@dataclass(frozen=True)
class Side:
    """A size that does not fit.

    Attributes:
        tensor: the tensor that has it.
        axis: its axis.
        role: the tensor in words, as the function knows it: `its weight`.
    """

    tensor: Any
    axis: int
    role: str

    @property
    def size(self) -> Any:
        """The size."""
        return self.tensor.shape[self.axis]

    def __str__(self) -> str:
        return f"axis {self.axis} of {self.role} ({self.size})"


@dataclass(frozen=True)
class Clash:
    """The requirement that was not met.

    Attributes:
        text: the requirement, and what came.
        sides: the sizes that had to be equal, none for types and devices.
    """

    text: str
    sides: tuple[Side, ...] = ()


def clash_of(failure: Failure) -> Clash | None:
    """The requirement that a call did not meet; None if it is not known which one."""
    word = failure.title.rpartition(".")[2]
    args = [*failure.args, *failure.kwargs.values()]
    tensors = [value for value in args if isinstance(value, torch.Tensor)]
    if word in _LEAVING:
        return Clash(f"{word} takes values out of PyTorch, and a trace has none: `gc.run` makes the call and shows it")
    try:
        return _devices(word, tensors) or _types(failure, word, tensors) or _sizes(failure, word, tensors)
    except (IndexError, TypeError, ValueError, KeyError):
        return None  # the arguments are not those of the function


def _sizes(failure: Failure, word: str, tensors: Sequence[Any]) -> Clash | None:
    args, kwargs = failure.args, failure.kwargs
    rule = _RULES.get(word)
    if word in _PRODUCTS:
        return _product(word, tensors[::-1] if word == "rmatmul" else tensors)
    if word in _BROADCAST:
        return _broadcast(word, tensors)
    if word in {"view", "reshape"}:
        return _reshaped(word, args)
    if word in {"cat", "concat", "concatenate", "stack"}:
        return _joined(word, args[0] if args else kwargs["tensors"], _place(args, kwargs, word))
    if word in _SAME and tensors[0].shape != tensors[1].shape:
        return Clash(f"{word} requires a target of the input's shape: the input has {_shape(tensors[0])}, the target {_shape(tensors[1])}")
    return None if rule is None else rule(word, tensors, kwargs)


def _equal(word: str, one: Side, other: Side) -> Clash | None:
    if one.size == other.size:
        return None
    return Clash(f"{word} requires {one} and {other} to be equal", (one, other))


def _linear(word: str, tensors: Sequence[Any], _kwargs: Any) -> Clash | None:
    x, weight = tensors[:2]
    return _equal(word, Side(x, x.dim() - 1, "its input"), Side(weight, 1, "its weight"))


def _addmm(word: str, tensors: Sequence[Any], _kwargs: Any) -> Clash | None:
    return _product(word, tensors[1:])


def _convolution(word: str, tensors: Sequence[Any], kwargs: Any) -> Clash | None:
    x, weight = tensors[:2]
    rank = weight.dim()
    if x.dim() not in {rank, rank - 1}:
        return Clash(f"{word} requires an input with {rank - 1} or {rank} axes, one of channels first: it has {x.dim()}, {_shape(x)}")
    transposed = "transpose" in word
    channels, needed = x.shape[x.dim() - rank + 1], weight.shape[0 if transposed else 1]
    if channels == needed or (not transposed and kwargs.get("groups", 1) != 1):
        return None
    return _equal(word, Side(x, x.dim() - rank + 1, "its input"), Side(weight, 0 if transposed else 1, "its weight"))


def _normalized(word: str, tensors: Sequence[Any], _kwargs: Any) -> Clash | None:
    x = tensors[0]
    for other, role in zip(tensors[1:], ("its running mean", "its running variance", "its weight", "its bias"), strict=False):
        axis = x.dim() - other.dim() if word in {"layer_norm", "rms_norm"} else 1
        for place in range(other.dim()):
            name = role if word == "batch_norm" else "its weight"
            clash = _equal(word, Side(x, axis + place, "its input"), Side(other, place, name))
            if clash is not None:
                return clash
    return None


def _cross_entropy(word: str, tensors: Sequence[Any], _kwargs: Any) -> Clash | None:
    x, target = tensors[:2]
    if x.dim() > 1 and target.dim() and x.shape[0] != target.shape[0]:
        return _equal(word, Side(x, 0, "its input"), Side(target, 0, "its target"))
    is_class = not target.dtype.is_floating_point
    if target.dim() != x.dim() - 1 if is_class else target.dim() not in {x.dim(), x.dim() - 1}:
        return Clash(f"{word} requires a target with one axis less than the input: the input has {_shape(x)}, the target {_shape(target)}")
    return None


_RULES: Final[dict[str, Callable[[str, Sequence[Any], Any], Clash | None]]] = {
    "linear": _linear,
    "addmm": _addmm,
    **{f"conv{axes}d": _convolution for axes in (1, 2, 3)},
    **{f"conv_transpose{axes}d": _convolution for axes in (1, 2, 3)},
    "batch_norm": _normalized,
    "layer_norm": _normalized,
    "rms_norm": _normalized,
    "cross_entropy": _cross_entropy,
    "nll_loss": _cross_entropy,
}


def _product(word: str, tensors: Sequence[Any]) -> Clash | None:
    one, other = tensors[:2]
    if not one.dim() or not other.dim():
        return None
    clash = _equal(word, Side(one, one.dim() - 1, "its first input"), Side(other, max(other.dim() - 2, 0), "its second input"))
    return clash or _broadcast(word, tensors[:2], 2)


def _broadcast(word: str, tensors: Sequence[Any], left_out: int = 0) -> Clash | None:
    """The first axis from the end at which two sizes differ and none is 1."""
    names = ("its first input", "its second input", "its third input")
    for second in range(1, min(len(tensors), 3)):
        one, other = tensors[second - 1], tensors[second]
        for back in range(1 + left_out, min(one.dim(), other.dim()) + 1):
            sides = Side(one, one.dim() - back, names[second - 1]), Side(other, other.dim() - back, names[second])
            if sides[0].size != sides[1].size and 1 not in {sides[0].size, sides[1].size}:
                return Clash(f"{word} requires {sides[0]} and {sides[1]} to be equal, or one of them to be 1", sides)
    return None


def _reshaped(word: str, args: Sequence[Any]) -> Clash | None:
    x = args[0]
    wanted = [*(args[1] if isinstance(args[1], list | tuple) else args[1:])]
    if not all(isinstance(size, int) for size in wanted):
        return None
    rest = prod([size for size in wanted if size >= 0])
    if rest == x.numel() or (-1 in wanted and rest and x.numel() % rest == 0):
        return None
    role = f"{word} requires as many elements as there are: {_shape(x)} has {x.numel()}, and {list(wanted)} "
    return Clash(role + (f"needs a multiple of {rest}" if -1 in wanted else f"has {rest}"))


def _joined(word: str, tensors: Sequence[Any], axis: int) -> Clash | None:
    first = tensors[0]
    for number, other in enumerate(tensors[1:], 2):
        if other.dim() != first.dim():
            return Clash(f"{word} requires tensors with as many axes: the first has {_shape(first)}, number {number} {_shape(other)}")
        for place in range(first.dim()):
            if (word == "stack" or place != axis % first.dim()) and first.shape[place] != other.shape[place]:
                return _equal(f"{word} along axis {axis}", Side(first, place, "the first tensor"), Side(other, place, f"tensor {number}"))
    return None


def _place(args: Sequence[Any], kwargs: Any, _word: str) -> int:
    return int(args[1] if len(args) > 1 else kwargs.get("dim", kwargs.get("axis", 0)))


def _devices(word: str, tensors: Sequence[Any]) -> Clash | None:
    devices = {str(tensor.device): tensor for tensor in tensors if tensor.dim()}
    if len(devices) < 2:
        return None
    (one, x), (other, y) = list(devices.items())[:2]
    return Clash(f"{word} requires its tensors on one device: one of shape {_shape(x)} is on {one}, one of shape {_shape(y)} on {other}")


def _types(failure: Failure, word: str, tensors: Sequence[Any]) -> Clash | None:
    if word in {"embedding", "nll_loss", "cross_entropy"} and len(tensors) > 1:
        indices = tensors[0] if word == "embedding" else tensors[1]
        is_index = not indices.dtype.is_floating_point and not indices.dtype.is_complex
        if not is_index and (word != "cross_entropy" or indices.dim() != tensors[0].dim()):
            role = "input" if word == "embedding" else "target"
            return Clash(f"{word} requires whole numbers as its {role}: {role} is {_type(indices)}; `.long()` converts it")
        return None
    hints = ("dtype", "type", "Long", "Float", "not implemented for")
    if not any(hint in str(failure.error) for hint in hints):
        return None
    kinds = {tensor.dtype: tensor for tensor in tensors}
    if _takes_one_type(word) and len(kinds) > 1:
        (one, x), (other, y) = list(kinds.items())[:2]
        return Clash(
            f"{word} requires tensors of one type: one of shape {_shape(x)} is {_word(one)}, one of shape {_shape(y)} is {_word(other)}"
        )
    return None


class TypesDifferError(RuntimeError):
    """A product of several types, which PyTorch refuses only when it computes."""


def refuse_types(word: str, tensors: Sequence[Any]) -> None:
    """Refuse a product of tensors of several types, as PyTorch does when it computes.

    Raises:
        TypesDifferError: their types differ, and no autocast converts them.
    """
    differ = _takes_one_type(word) and len({tensor.dtype for tensor in tensors}) > 1
    if differ and not torch.is_autocast_enabled(tensors[0].device.type):
        raise TypesDifferError(f"{word} takes tensors of one type")


def _takes_one_type(word: str) -> bool:
    return word in _PRODUCTS | {"linear", "addmm"} or word.startswith("conv")


def places_of(failure: Failure, clash: Clash | None) -> tuple[tuple[int, int], ...]:
    """The sizes that clash: the places of their tensors among those that the call takes, and their axes."""
    taken = tensors_in([*failure.args, *failure.kwargs.values()])
    sides = () if clash is None else clash.sides
    return tuple([(next(place for place, tensor in enumerate(taken) if tensor is side.tensor), side.axis) for side in sides])


def tensors_in(value: Any) -> list[Any]:
    """The tensors in arguments, in their order."""
    if isinstance(value, torch.Tensor):
        return [value]
    return [tensor for item in value for tensor in tensors_in(item)] if isinstance(value, list | tuple) else []


def _shape(tensor: Any) -> str:
    return str(list(tensor.shape))


def _type(tensor: Any) -> str:
    return _word(tensor.dtype)


def _word(dtype: Any) -> str:
    return str(dtype).removeprefix("torch.")


def words_of(clash: Clash, origins: Sequence[str], said: str) -> str:
    """The error of a call: the requirement, the origins of the sizes, and a last line."""
    sizes = [f"{side.size} is {origin}" for side, origin in zip(clash.sides, origins, strict=True)]
    return "\n".join([clash.text + (":" if sizes else "."), *sizes, said])
