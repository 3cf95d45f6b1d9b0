"""The results of calls by the pattern of their arguments' shapes.

Bodies are not inferred again for each look at a call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphcore.inference import DimensionHandle, HandleData, ShapeAndType, ShapeHandle

Argument = tuple[ShapeHandle, HandleData | None]
CallResult = list[tuple[ShapeHandle, HandleData | None]]


class CallPattern:
    """The shapes of the arguments of one call, with equal dimensions by equal numbers.

    Args:
        arguments: the shapes of the arguments, and their handle data.

    Attributes:
        key: the pattern; calls with equal keys have results of one form. None where dimensions have names.
    """

    def __init__(self, arguments: Sequence[Argument]) -> None:
        self._dims: list[DimensionHandle] = []
        self._numbers: dict[int, int] = {}
        self._shapes = {id(shape): place for place, (shape, _) in reversed(list(enumerate(arguments)))}
        self._arguments = arguments
        self._is_named = False
        self.key: tuple[Any, ...] | None = tuple([(self._of(shape), self._data(data)) for shape, data in arguments])
        self.key = (self.key, tuple([dim.value for dim in self._dims]))
        if self._is_named:
            self.key = None

    def _data(self, data: HandleData | None) -> Any:
        return None if data is None else tuple([(self._of(entry.shape), entry.dtype) for entry in data])

    def _of(self, shape: ShapeHandle) -> tuple[int, ...] | None:
        return None if shape.dims is None else tuple([self._number(dim) for dim in shape.dims])

    def _number(self, dim: DimensionHandle) -> int:
        self._is_named = self._is_named or dim.origin is not None
        number = self._numbers.get(id(dim))
        if number is None:
            number = self._numbers[id(dim)] = len(self._dims)
            self._dims.append(dim)
        return number

    def form_of(self, results: CallResult) -> tuple[Any, ...] | None:
        """The results in terms of the arguments; None if one has a named dimension."""
        before = len(self._dims)
        form = tuple([(self._shapes.get(id(shape), -1), self._of(shape), self._data(data)) for shape, data in results])
        values = tuple([dim.value for dim in self._dims[before:]])
        for dim in self._dims[before:]:
            del self._numbers[id(dim)]
        del self._dims[before:]
        return None if self._is_named else (form, values)

    def results_of(self, form: tuple[Any, ...]) -> CallResult:
        """The results of a call with this pattern."""
        entries, values = form
        dims = [*self._dims, *[DimensionHandle(value) for value in values]]

        def shape_of(numbers: tuple[int, ...] | None) -> ShapeHandle:
            return ShapeHandle() if numbers is None else ShapeHandle(tuple([dims[number] for number in numbers]))

        return [
            (
                self._arguments[same][0] if same >= 0 else shape_of(numbers),
                None if data is None else [ShapeAndType(shape_of(inner), dtype) for inner, dtype in data],
            )
            for same, numbers, data in entries
        ]
