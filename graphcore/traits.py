"""Traits: the facts about ops that passes, the runtime, inference and views rely on.

A block declares a trait as an attribute; other traits come from its base classes, then from its kernel and its shape function, and finally
from the defaults here. Code outside `opset` reads traits instead of listing op names.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, Literal, TypeVar

import msgspec

from graphcore.attrs import Array, Attrs
from graphcore.inference.partial_types import Rule
from graphcore.shapes import Shape

Memory = Literal["unknown", "fresh", "held", "view", "strided view", "broadcast view", "reshaped view", "alias"]
Cost = Literal["elementwise", "transcendental", "product", "convolution", "pairs", "contraction", "cubic", "transform", "sort"]
Neutral = Literal["", "no axes", "own shape", "ones", "in order"]
Role = Literal["op", "constant", "variable", "placeholder", "control", "return"]
Layer = Literal[
    "",
    "product",
    "convolution",
    "depthwise convolution",
    "transposed convolution",
    "attention",
    "bias",
    "normalization",
    "pooling",
    "resizing",
    "concatenation",
    "addition",
    "scaling",
    "softmax",
    "sigmoid",
    "tanh",
]

MostBytes = Callable[[Attrs, Sequence[Array]], int | None]
"""Takes the attrs of a node and its constant inputs, gives the most bytes of its outputs; None if their shapes tell it."""
_VIEWS: Final = frozenset({"view", "strided view", "broadcast view", "reshaped view", "alias"})

Declared = TypeVar("Declared", bound=Callable[..., Any])


class FailsOn(msgspec.Struct, frozen=True, kw_only=True):
    """The inputs on which an op can fail although their shapes are valid.

    Args:
        values: names of the input arguments whose values can be wrong. The shape function checks them where they are constant.
        integers: True if integers can be wrong values of the other inputs (a division by zero).
        empty: True if arrays without elements can be wrong.
        vectors: True if the shape function checks no values for vectors and scalars.
    """

    values: tuple[str, ...] = ()
    integers: bool = False
    empty: bool = False
    vectors: bool = False

    def __str__(self) -> str:
        parts = (
            [f"the value of {name}" for name in self.values]
            + ["integers"] * self.integers
            + ["empty arrays"] * self.empty
            + ["vectors"] * self.vectors
        )
        return ", ".join(parts)


class Traits(msgspec.Struct, frozen=True, kw_only=True):
    """The traits of one op. The defaults make no promise.

    Args:
        can_fail: False if a run cannot raise an error once the input shapes are known and the shape function accepts them; a FailsOn if it can on
            some inputs only.
        memory: the memory of the first output: a "fresh" array that nothing else refers to; an array that is "held" by a variable, the graph
            or the caller and shares nothing with the inputs; a "view" of the first input, with gaps in a "strided view", repeated in a
            "broadcast view", a copy in a "reshaped view" of an array with gaps; "alias" for the inputs themselves, output by output; or "unknown".
        pure: True if the outputs follow from the attrs and the inputs alone, in time and memory in proportion to inputs and outputs, without
            any effect: no files, no Python functions of users, no random numbers, no state. Only such ops are evaluated before a run,
            to infer shapes and to fold constants.
        most_bytes: computes the most bytes of the outputs from attrs and constant inputs, where the shapes of the outputs do not tell it:
            strings, and sizes that depend on values; None where they do.
        elementwise: True if each element of the output follows from the elements of the inputs at its place, which broadcast.
        cost: the growth of a kernel's time: with the elements ("elementwise", or several times slower, "transcendental"), as a matrix "product"
            or a "contraction" of many axes, with a window per element ("convolution"), with "pairs" of elements, or by the first input
            alone: "cubic", a Fourier "transform", a "sort".
        role: the kind of box that stands for a node in a picture.
        layer: the kind of layer that the op computes in models, from which pictures name groups; "" for others.
        partial_rule: the rule that computes an output from partially known inputs, None if there is none.
        numbers_from_shapes: computes the outputs as ints or lists of ints from the input shapes, as far as these are known; None if the
            op reads values.
        needs_only_shapes: True if the outputs follow from the shapes and types of the inputs, whatever their elements.
        neutral: the second input with which the op returns its first input unchanged; "own shape" also holds for ops without a second input.
        reuses_input: True if a plan may write the result into the memory of an input that nothing else needs.
        writes_input: True if a run may change the variable that is the first input.
        reads_variable: the part of a variable that the output is, for a handle as first input: the "whole" value, or "rows" of it.
        gathers_rows: True if the output is slices of the first input along its first dimension, at the indices in the second; a third
            input is another dimension unless it is 0.
        takes_value: True if the second input may become the value of a variable without a copy.
        draws: True if the only state is the position of a random number generator.
        stores: True if a kernel puts arrays into a stack, queue or tensor array, or takes them out.
        reads_once: True if running the op a second time finds nothing more to read.
        only_checks: True if the op returns its input unchanged, or fails.
        holds_parameters: True for the variables, tables and accumulators that TensorFlow's replica_device_setter puts on parameter servers.
        device_types: the types of devices on which the kernel runs; one that reaches arrays through an array module runs on GPUs as well.
    """

    can_fail: bool | FailsOn = True
    memory: Memory = "unknown"
    pure: bool = False
    most_bytes: MostBytes | None = None
    elementwise: bool = False
    cost: Cost = "elementwise"
    role: Role = "op"
    layer: Layer = ""
    partial_rule: Rule | None = None
    numbers_from_shapes: Callable[[Sequence[Shape]], list[Any] | None] | None = None
    needs_only_shapes: bool = False
    neutral: Neutral = ""
    reuses_input: bool = False
    writes_input: bool = False
    reads_variable: Literal["", "whole", "rows"] = ""
    gathers_rows: bool = False
    takes_value: bool = False
    draws: bool = False
    stores: bool = False
    reads_once: bool = False
    only_checks: bool = False
    holds_parameters: bool = False
    device_types: tuple[str, ...] = ("CPU", "GPU")

    def is_neutral(self, second: Array) -> bool:
        """True if the op returns its first input unchanged for a second input `second` of fitting shape."""
        if self.neutral == "no axes":
            return not second.size
        if self.neutral == "ones":
            return bool((second == 1).all())
        return self.neutral == "in order" and second.tolist() == [*range(second.size)]

    @property
    def returns_view(self) -> bool:
        """True if the first output may share its memory with the first input."""
        return self.memory in _VIEWS


NO_TRAITS: Final = Traits()
"""The traits of an op about which nothing is known."""


def declares_traits(**traits: Any) -> Callable[[Declared], Declared]:
    """Decorate a kernel or shape function so that every block that uses it has these traits."""

    def declare(function: Declared) -> Declared:
        function.traits = {**getattr(function, "traits", {}), **traits}  # type: ignore[attr-defined]  # an attribute of a function
        return function

    return declare


def traits_of(block: Any, parts: Sequence[Any]) -> Traits:
    """The traits that a block declares or inherits.

    Args:
        block: the class that stands for an op.
        parts: its shape function and kernel; later ones take precedence.
    """
    values: dict[str, Any] = {}
    for part in parts:
        values.update(getattr(part, "traits", {}))
    values.update({name: getattr(block, name) for name in Traits.__struct_fields__ if hasattr(block, name)})
    return Traits(**values) if values else NO_TRAITS
