"""Handle data: shapes and types behind resource and variant handles, refined step by step."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from graphcore.errors import InvalidArgumentError
from graphcore.inference.building import ShapeBuilding
from graphcore.inference.handles import HandleData, ShapeAndType, ShapeHandle

_Combine = Callable[[ShapeHandle, ShapeHandle], ShapeHandle]


class HandleShapes(ShapeBuilding):
    """The handle data of inputs and outputs, by index; nothing is known of an absent index."""

    __slots__ = ("_input_handles", "_output_handles")

    _input_handles: dict[int, HandleData] | None
    _output_handles: dict[int, HandleData] | None

    @property
    def all_output_handles(self) -> dict[int, HandleData] | None:
        """The handle data of all outputs; None if nothing is known of any."""
        return self._output_handles

    def input_handle_shapes_and_types(self, index: int) -> HandleData | None:
        """The handle data of input `index`, None if unknown."""
        return None if self._input_handles is None else self._input_handles.get(index)

    def output_handle_shapes_and_types(self, index: int) -> HandleData | None:
        """The handle data of output `index`, None if unknown."""
        return None if self._output_handles is None else self._output_handles.get(index)

    def set_input_handle_shapes_and_types(self, index: int, data: Sequence[ShapeAndType]) -> None:
        """Set the handle data of input `index`."""
        if self._input_handles is None:
            self._input_handles = {}
        self._input_handles[index] = list(data)

    def set_output_handle_shapes_and_types(self, index: int, data: Sequence[ShapeAndType]) -> None:
        """Set the handle data of output `index`."""
        if self._output_handles is None:
            self._output_handles = {}
        self._output_handles[index] = list(data)

    def merge_input_handle_shapes_and_types(self, index: int, data: Sequence[ShapeAndType]) -> bool:
        """Merge into the handle data of input `index`. True iff that changed it."""
        current = self.input_handle_shapes_and_types(index)
        if current is None:
            self.set_input_handle_shapes_and_types(index, data)
            return True
        return self._combine(data, current, self._merge_or_keep)

    def merge_output_handle_shapes_and_types(self, index: int, data: Sequence[ShapeAndType]) -> bool:
        """Merge into the handle data of output `index`. True iff that changed it."""
        current = self.output_handle_shapes_and_types(index)
        if current is None:
            self.set_output_handle_shapes_and_types(index, data)
            return True
        return self._combine(data, current, self._merge_or_keep)

    def relax_input_handle_shapes_and_merge_types(self, index: int, data: Sequence[ShapeAndType]) -> bool:
        """Relax the shapes and merge the types of input `index`. True iff something changed."""
        current = self.input_handle_shapes_and_types(index)
        if current is None:
            self.set_input_handle_shapes_and_types(index, data)
            return True
        return self._combine(data, current, self.relax)

    def relax_output_handle_shapes_and_merge_types(self, index: int, data: Sequence[ShapeAndType]) -> bool:
        """Relax the shapes and merge the types of output `index`. True iff something changed."""
        current = self.output_handle_shapes_and_types(index)
        if current is None:
            self.set_output_handle_shapes_and_types(index, data)
            return True
        return self._combine(data, current, self.relax)

    def _merge_or_keep(self, old: ShapeHandle, new: ShapeHandle) -> ShapeHandle:
        try:
            return self.merge(old, new)
        except InvalidArgumentError:
            return old  # a contradictory shape is ignored: the rest of the data may still be useful

    @staticmethod
    def _combine(data: Sequence[ShapeAndType], current: HandleData, combine: _Combine) -> bool:
        if len(data) != len(current):
            return False
        combined: HandleData = []
        for old, new in zip(current, data, strict=True):
            if old.dtype is not None and new.dtype is not old.dtype:
                return False
            combined.append(ShapeAndType(combine(old.shape, new.shape), new.dtype))
        changed = any(old.dtype is not new.dtype or old.shape is not new.shape for old, new in zip(current, combined, strict=True))
        if changed:
            current[:] = combined
        return changed
