"""Equations of a backward pass: the forward equation that each differentiates.

JAX keeps the place in the user's program: what `jvp` and `transpose` make of an equation has its traceback and its name stack.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from graphcore.frontends.foreign import ModuleCall
from graphcore.frontends.jax_reader.places import Place, is_of_user

GRADIENTS: Final = (ModuleCall("gradients"), ModuleCall(""))
"""The scopes around the nodes of a backward pass."""
_WORDS: Final = ("transpose(", "jvp(")
_TRANSPOSED: Final = {
    "broadcast_in_dim": ("reduce_sum", "reduce_max", "reduce_min", "squeeze"),
    "reduce_sum": ("broadcast_in_dim", "add", "mul", "sub"),
    "neg": ("sub", "neg"),
    "pad": ("slice", "concatenate"),
    "slice": ("concatenate", "pad"),
    "scatter-add": ("gather",),
    "dynamic_update_slice": ("dynamic_slice",),
    "select_n": ("custom_jvp_call", "select_n", "max", "min", "reduce_max"),
    "eq": ("reduce_max", "max"),
}
"""The equations that become others: the forward ones by those of the backward pass."""


class _Forward(NamedTuple):
    name: str
    primitive: str
    shapes: tuple[Any, ...]


class _Within(NamedTuple):
    """The place of a call: what it calls lies within it, as the backward pass of `jax.checkpoint` does."""

    place: tuple[Place, ...]


class Pairing:
    """The forward equations of a program, by their places."""

    def __init__(self) -> None:
        self._by_place: dict[object, list[_Forward]] = {}
        self.has_any = False

    def add(self, name: str, equation: Any) -> None:
        """Add a forward equation."""
        forward = _Forward(name, str(equation.primitive.name), tuple([_shape(var) for var in equation.outvars]))
        self.has_any = True
        place = _place(equation.source_info.traceback)
        for key in [*_keys(equation), *[_Within(place[number:]) for number in range(1, len(place))]]:
            self._by_place.setdefault(key, []).append(forward)

    def owner(self, equation: Any) -> str:
        """The name of the forward equation that a backward one differentiates, "" if it is not known."""
        candidates: Sequence[_Forward] = next((self._by_place[key] for key in _keys(equation) if key in self._by_place), ())
        primitive = str(equation.primitive.name)
        for primitives in ((primitive,), _TRANSPOSED.get(primitive, ())):
            same = [forward for forward in candidates if forward.primitive in primitives]
            if same:
                return same[-1].name
        taken = {_shape(var) for var in equation.invars}
        fitting = [forward for forward in candidates if any(shape in taken for shape in forward.shapes)]
        return (fitting or candidates)[0].name if candidates else ""  # those that follow keep values for it


def is_backward(stack: str) -> bool:
    """True iff a name stack is that of an equation of a backward pass."""
    return "transpose(" in stack


def without_words(part: str) -> str:
    """A part of a name stack without the words of differentiation: `enc` for `transpose(jvp(enc))`."""
    while part.endswith(")") and part.startswith(_WORDS):
        part = part.partition("(")[2][:-1]
    return part


def _keys(equation: Any) -> list[object]:
    """Keys for the place of an equation, the most precise first: an instruction, a line, a scope."""
    scope = "/".join([without_words(part) for part in str(equation.source_info.name_stack).split("/")])
    place = _place(equation.source_info.traceback)
    keys: list[object] = [place, _Within(place), (scope, place[0].line)] if place else []
    if equation.params.get("name"):
        keys.append((str(equation.primitive.name), str(equation.params["name"])))
    return [*keys, scope] if scope else keys


def _place(traceback: Any) -> tuple[Place, ...]:
    """The user's instructions that made an equation, the innermost first."""
    if traceback is None or not hasattr(traceback, "raw_frames"):
        return ()
    codes, instructions = traceback.raw_frames()
    places = zip(codes, instructions, strict=True)
    return tuple([Place.of(code, instruction) for code, instruction in places if is_of_user(code.co_filename)])


def _shape(variable: Any) -> tuple[Any, ...]:
    return tuple(getattr(variable.aval, "shape", ()))
