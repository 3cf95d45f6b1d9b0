"""The knowledge given to a graph: everything, or a part drawn by hypothesis."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hypothesis import strategies as st

import graphcore as gc
from graphcore.attrs import AttrValue
from graphcore.definitions import OpDef
from tests.graphcore.opset.op_cases import Array

MEANT = {"dense_shapes"}
"""Attrs whose shapes say what an op does: with less known, it would do something else, or nothing."""
Draw = Callable[[st.SearchStrategy[Any]], Any]


class Knowledge:
    """Full knowledge: values are constants, shapes are known.

    Attributes:
        feeds: values for unknown tensors, to be fed.
    """

    def __init__(self) -> None:
        self.feeds: dict[gc.Tensor, Array] = {}

    def value_is_told(self) -> bool:
        """True iff the next value becomes a constant."""
        return True

    def tensor(self, array: Array) -> Any:
        """A tensor with this value at run time."""
        if self.value_is_told():
            return gc.constant(array)
        attrs = {"dtype": gc.as_dtype(array.dtype), "shape": self.shape(gc.Shape(array.shape))}
        tensor = gc.get_default_graph().apply_op("Placeholder", attrs=attrs).outputs[0]
        self.feeds[tensor] = array
        return tensor

    def shape(self, full: gc.Shape) -> gc.Shape:
        """The known part of a shape."""
        return full

    def attrs(self, op_def: OpDef, given: Mapping[str, AttrValue]) -> dict[str, Any]:
        """The attrs of an example, with the known parts of shapes among them."""
        found: dict[str, Any] = dict(given)
        for attr in op_def.attr:
            if attr.name in found and attr.type == "shape":
                found[attr.name] = self.shape(gc.Shape(found[attr.name]))
            elif attr.name in found and attr.type == "list(shape)" and attr.name not in MEANT:
                found[attr.name] = [self.shape(gc.Shape(each)) for each in found[attr.name]]
        return found


class Partial(Knowledge):
    """Partial knowledge: the unknown part is drawn and recorded, so that others can know still less."""

    def __init__(self, draw: Draw, more: Partial | None = None) -> None:
        super().__init__()
        self._draw = draw
        self._more = more
        self._told: list[bool] = []
        self._shapes: list[gc.Shape] = []

    def value_is_told(self) -> bool:
        """Drawn; False if it was False before."""
        before = self._more is None or self._more._told[len(self._told)]
        self._told.append(before and self._draw(st.booleans()))
        return self._told[-1]

    def tensor(self, array: Array) -> Any:
        """As for the base class. A shape is drawn for constants too, as the next graph may not know the value."""
        at = len(self._shapes)
        tensor = super().tensor(array)
        if len(self._shapes) == at:
            self._shapes.append(gc.Shape(array.shape))
        return tensor

    def shape(self, full: gc.Shape) -> gc.Shape:
        """A drawn part of the shape: some sizes, the rank only, or nothing."""
        known = full if self._more is None else self._more._shapes[len(self._shapes)]
        if known.dims is None or (self._draw(st.booleans()) and self._draw(st.booleans())):
            self._shapes.append(gc.Shape(None))
        else:
            self._shapes.append(gc.Shape([None if self._draw(st.booleans()) else size for size in known.dims]))
        return self._shapes[-1]
