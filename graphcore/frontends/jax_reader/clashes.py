"""The two chains of sizes that clash in a call: the argument or operation that each comes from."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from graphcore.frontends.jax_reader.axes import AxisOrigins, Origins
from graphcore.frontends.jax_reader.failures import Failure, Level
from graphcore.frontends.jax_reader.messages import Explained
from graphcore.frontends.jax_reader.programs import JaxprReader, arg_names
from graphcore.source import SourceLocation

_MOST: Final = 4
_SLICING: Final = frozenset(["scan", "map", "associative_scan"])
_Axis = tuple[Any, str]
"""A size and the words for its origin."""


def chains_of(failure: Failure, said: Explained, reader: JaxprReader) -> list[str]:
    """Sentences for the sizes that clash: `768 is axis 1 of x`."""
    if not said.sizes or not failure.levels:
        return []
    origins = _origins_at(failure.levels, reader)
    level = failure.levels[-1]
    operands = [(tuple(value.shape), _of_operand(level, value, origins, reader.arrays)) for value in level.operands]
    if said.sizes == "numbers":
        axes = [axis for operand in operands for axis in zip(*operand, strict=True) if axis[0] in said.numbers]
    elif said.sizes == "parameter":
        axes = list(_of_parameter(failure, level, origins, operands))
    else:
        axes = list(_clashing(said, failure, operands))
    return [f"{size} is {origin}" for size, origin in dict.fromkeys(axes) if origin][:_MOST]


def _origins_at(levels: Sequence[Level], reader: JaxprReader) -> AxisOrigins:
    """The origins at the innermost level.

    Arguments of inner functions have the origins of the values that they are given.
    """

    def line_of(equation: Any) -> str:
        frames = reader.frames(equation.source_info.traceback)
        return SourceLocation(frames[-1].file, frames[-1].line).where if frames else ""

    outer = AxisOrigins(line_of)
    before: Level | None = None
    for level in levels:
        inner = AxisOrigins(line_of)
        program = level.program
        names = arg_names(program)
        operands = [] if before is None else before.operands
        for number, variable in enumerate(program.invars):
            rank = len(variable.aval.shape)
            origins = _of_operand(before, operands[number], outer, reader.arrays) if before and len(operands) == len(program.invars) else ()
            if before and before.called in _SLICING and len(origins) == rank + 1:
                origins = origins[1:]
            if rank and len(origins) == rank:
                inner.give(variable, origins)
            else:
                inner.name(variable, names[number] if number < len(names) else f"argument {number}")
        for variable, value in zip(program.constvars, program.consts, strict=True):
            inner.name(variable, _words(value, reader.arrays))
        inner.follow(program.eqns)
        outer, before = inner, level
    return outer


def _of_operand(level: Level, value: Any, origins: AxisOrigins, arrays: Mapping[int, str]) -> Origins:
    rank = len(value.shape)
    if getattr(value, "_trace", None) is level.trace and getattr(value, "val", None) is not None:
        return _fitting(origins.of(value.val), rank)
    if type(value).__name__ == "BatchTracer":
        inner = _of_operand(level, value.val, origins, arrays)
        place = value.batch_dim
        return _fitting((*inner[:place], *inner[place + 1 :]) if isinstance(place, int) else inner, rank)
    primal = getattr(value, "primal", None)
    if primal is not None:
        return _fitting(_of_operand(level, primal, origins, arrays), rank)
    if hasattr(value, "_trace"):
        return ("",) * rank
    return tuple([f"axis {axis} of {_words(value, arrays)}" for axis in range(rank)])


def _fitting(origins: Origins, rank: int) -> Origins:
    return origins if len(origins) == rank else ("",) * rank


def _words(value: Any, arrays: Mapping[int, str]) -> str:
    return arrays.get(id(value)) or f"a constant of shape {tuple(getattr(value, 'shape', ()))}"


def _clashing(said: Explained, failure: Failure, operands: Sequence[tuple[tuple[Any, ...], Origins]]) -> Iterator[_Axis]:
    """The sizes that clash, each with its origin."""
    if said.sizes == "channels":
        numbers = failure.params.get("dimension_numbers")
        specs = (getattr(numbers, "lhs_spec", (0, 1)), getattr(numbers, "rhs_spec", (0, 1)))  # the axis of channels is second in each
        yield from [(shape[spec[1]], origins[spec[1]]) for (shape, origins), spec in zip(operands[:2], specs, strict=False)]
        return
    if said.sizes == "contracted":
        pair = operands[:2]
        if len(pair) == 2:
            for number, (shape, origins) in enumerate(pair):
                axis = _contracted(failure, number, len(shape))
                if 0 <= axis < len(shape):
                    yield shape[axis], origins[axis]
        return
    rank = max((len(shape) for shape, _ in operands), default=0)
    joined = said.numbers[0] if said.sizes == "joined" and said.numbers else None
    for place in range(1, rank + 1):
        if joined is not None and rank - place == joined:
            continue
        axes = [(shape[-place], origins[-place]) for shape, origins in operands if place <= len(shape)]
        counted = [axis for axis in axes if joined is not None or axis[0] != 1]
        if len({size for size, _ in counted}) > 1:
            first: dict[Any, str] = {}
            for size, origin in counted:
                first.setdefault(size, origin)
            yield from first.items()


def _contracted(failure: Failure, number: int, rank: int) -> int:
    """The axis of an operand that a product sums over."""
    dimensions = failure.params.get("dimension_numbers")
    if failure.primitive == "dot_general" and dimensions is not None and len(dimensions[0][number]) == 1:
        return int(dimensions[0][number][0])
    return rank - 1 if number == 0 else max(rank - 2, 0)


def _of_parameter(
    failure: Failure, level: Level, origins: AxisOrigins, operands: Sequence[tuple[tuple[Any, ...], Origins]]
) -> Iterator[_Axis]:
    """The sizes of an input of a layer of Flax and of its parameter that do not fit."""
    text = str(failure.error)
    match = re.search(r'(?i)for parameter "(\w+)" in "/?([\w/]*)"', text)
    shapes = [tuple(map(int, re.findall(r"\d+", shape))) for shape in re.findall(r"shape \(([\d, ]+)\)", text)]
    if match is None or len(shapes) != 2 or len(shapes[0]) != len(shapes[1]):
        return
    places = [place for place, (asked, present) in enumerate(zip(*shapes, strict=True)) if asked != present]
    asked_sizes = [shapes[0][place] for place in places]
    yield from [axis for operand in operands for axis in zip(*operand, strict=True) if axis[0] in asked_sizes]
    path = "".join([f"['{part}']" for part in (*match[2].split("/"), match[1]) if part])
    program = level.program
    for variable, name in zip(program.invars, arg_names(program), strict=False):
        if name.endswith(path) and len(variable.aval.shape) == len(shapes[1]):
            yield from [(variable.aval.shape[place], origins.of(variable)[place]) for place in places]
