"""How much a graph is told of the values it will get: all, or what hypothesis leaves of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hypothesis import strategies as st

import graphcore as gc
from graphcore.attrs import AttrValue
from graphcore.definitions import OpDef
from tests.graphcore.opset.op_cases import Array

Draw = Callable[[st.SearchStrategy[Any]], Any]


class Knowledge:
    """Tells a graph everything: values are constants, shapes are whole.

    Attributes:
        feeds: what is to be fed instead of what the graph is not told.
    """

    def __init__(self) -> None:
        self.feeds: dict[gc.Tensor, Array] = {}

    def value_is_told(self) -> bool:
        """Whether the next value is a constant."""
        return True

    def tensor(self, array: Array) -> Any:
        """A tensor that has this value when the graph runs."""
        if self.value_is_told():
            return gc.constant(array)
        attrs = {"dtype": gc.as_dtype(array.dtype), "shape": self.shape(gc.Shape(array.shape))}
        tensor = gc.get_default_graph().apply_op("Placeholder", attrs=attrs).outputs[0]
        self.feeds[tensor] = array
        return tensor

    def shape(self, full: gc.Shape) -> gc.Shape:
        """What is told of a shape."""
        return full

    def attrs(self, op_def: OpDef, given: Mapping[str, AttrValue]) -> dict[str, Any]:
        """The attrs of an example, with what is told of the shapes among them."""
        found: dict[str, Any] = dict(given)
        for attr in op_def.attr:
            if attr.name in found and attr.type == "shape":
                found[attr.name] = self.shape(gc.Shape(found[attr.name]))
            elif attr.name in found and attr.type == "list(shape)":
                found[attr.name] = [self.shape(gc.Shape(each)) for each in found[attr.name]]
        return found


class Partial(Knowledge):
    """Tells a part: what is left is drawn, and kept, so that another graph can be told still less."""

    def __init__(self, draw: Draw, more: Partial | None = None) -> None:
        super().__init__()
        self._draw = draw
        self._more = more
        self._told: list[bool] = []
        self._shapes: list[gc.Shape] = []

    def value_is_told(self) -> bool:
        """As drawn; not if it was not told before."""
        before = self._more is None or self._more._told[len(self._told)]
        self._told.append(before and self._draw(st.booleans()))
        return self._told[-1]

    def tensor(self, array: Array) -> Any:
        """As ever. A shape is drawn for a constant too: the next to know less may not be told the value."""
        at = len(self._shapes)
        tensor = super().tensor(array)
        if len(self._shapes) == at:
            self._shapes.append(gc.Shape(array.shape))
        return tensor

    def shape(self, full: gc.Shape) -> gc.Shape:
        """What drawing leaves of it: some sizes, all unknown, or not even the rank."""
        known = full if self._more is None else self._more._shapes[len(self._shapes)]
        if known.dims is None or (self._draw(st.booleans()) and self._draw(st.booleans())):
            self._shapes.append(gc.Shape(None))
        else:
            self._shapes.append(gc.Shape([None if self._draw(st.booleans()) else size for size in known.dims]))
        return self._shapes[-1]
