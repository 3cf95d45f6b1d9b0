"""Traits: the facts about ops that passes, the runtime, inference and views rely on.

A block declares a trait as an attribute; what it does not declare comes from its base classes, then from its kernel and its shape function,
and last from the defaults here. Code outside `opset` asks for a trait where it would otherwise list op names.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, Literal, TypeVar

import msgspec

from graphcore.inference.partial_types import Rule

Memory = Literal["unknown", "fresh", "separate", "view", "alias"]
Cost = Literal["elementwise", "transcendental", "product", "convolution", "windows", "pairs", "einsum", "cubic", "transform", "sort"]
Role = Literal["op", "constant", "variable", "placeholder", "control", "return"]

Declared = TypeVar("Declared", bound=Callable[..., Any])


class FailsOn(msgspec.Struct, frozen=True, kw_only=True):
    """The inputs on which an op can fail although their shapes are valid.

    Args:
        values: names of the input arguments whose values can be wrong. The shape function checks them where they are constant.
        integers: True if integers can be wrong values of the other inputs (a division by zero).
        empty: True if arrays without elements can be wrong.
    """

    values: tuple[str, ...] = ()
    integers: bool = False
    empty: bool = False

    def __str__(self) -> str:
        parts = [f"the value of {name}" for name in self.values] + ["integers"] * self.integers + ["empty arrays"] * self.empty
        return ", ".join(parts)


class Traits(msgspec.Struct, frozen=True, kw_only=True):
    """The traits of one op. The defaults promise nothing.

    Args:
        can_fail: False if a run cannot raise an error once the input shapes are known and the shape function accepts them; a FailsOn if it can on
            some inputs only.
        memory: what the outputs are made of: "fresh" arrays that nothing else refers to; "separate" from the inputs, but perhaps held by a
            variable; a "view" of the first input wherever one is possible; "alias" for the first input itself; or "unknown".
        elementwise: True if each element of the output follows from the elements of the inputs at its place, which broadcast.
        cost: how the time of a kernel grows with the shapes.
        role: the kind of box that stands for a node in a picture.
        partial_rule: how an output follows from inputs that are known in part, None if nothing can be said.
        needs_only_shapes: True if the outputs follow from the shapes and types of the inputs, whatever their elements.
        same_elements: True if the output has the elements of the first input, in order, wherever both have the same shape.
        reduces: True if the second input names axes to reduce, and none of them leaves the first input as it is.
        draws: True if the only state is the position of a random number generator.
        stores: True if a kernel keeps arrays for others, or takes what others have kept.
        takes_value: True if the second input may become the value of a variable without a copy.
    """

    can_fail: bool | FailsOn = True
    memory: Memory = "unknown"
    elementwise: bool = False
    cost: Cost = "elementwise"
    role: Role = "op"
    partial_rule: Rule | None = None
    needs_only_shapes: bool = False
    same_elements: bool = False
    reduces: bool = False
    draws: bool = False
    stores: bool = False
    takes_value: bool = False


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
        parts: its shape function and kernel; the later ones say more.
    """
    found: dict[str, Any] = {}
    for part in parts:
        found.update(getattr(part, "traits", {}))
    found.update({name: getattr(block, name) for name in Traits.__struct_fields__ if hasattr(block, name)})
    return Traits(**found) if found else NO_TRAITS
