"""Slices of a larger tensor at given indices, such as the gradient of gathered rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from graphcore.dtypes import DType
from graphcore.errors import InvalidArgumentError
from graphcore.graph import Graph, Node, Tensor, convert_to_tensor, get_default_graph
from graphcore.graph.shapes.constant_values import constant_value
from graphcore.shapes import Shape, as_shape
from graphcore.tf1.calls import apply_one


class IndexedSlicesValue(NamedTuple):
    """The arrays of `IndexedSlices` in a run."""

    values: Any
    indices: Any
    dense_shape: Any


class IndexedSlices:
    """Slices of a tensor along its first dimension.

    Slices with the same index add up; the other slices of the tensor are zero. Where a tensor is wanted, it becomes the whole tensor.

    Args:
        values: the slices: [n, ...].
        indices: the index of each: [n].
        dense_shape: the shape of the whole tensor: [rank]; None if it is not known.
    """

    def __init__(self, values: Tensor, indices: Tensor, dense_shape: Tensor | None = None) -> None:
        for name, part in (("values", values), ("indices", indices)):
            if not isinstance(part, Tensor):
                raise InvalidArgumentError(f"IndexedSlices: required a tensor for {name}, got {part!r}")
        self.values = values
        self.indices = indices
        self.dense_shape = dense_shape

    def __repr__(self) -> str:
        return f"<gc.IndexedSlices of '{self.values.name}' at '{self.indices.name}' {self.dtype.text} {self.shape}>"

    @property
    def dtype(self) -> DType:
        """The dtype of the values."""
        return self.values.dtype

    @property
    def name(self) -> str:
        """The name of the values."""
        return self.values.name

    @property
    def op(self) -> Node:
        """The node of the values."""
        return self.values.node

    @property
    def device(self) -> str:
        """The requested device of the values."""
        return self.values.device

    @property
    def graph(self) -> Graph:
        """The graph of the values."""
        return self.values.graph

    @property
    def shape(self) -> Shape:
        """The shape of the whole tensor, as far as it is known."""
        sizes = None if self.dense_shape is None else constant_value(self.dense_shape)
        if sizes is not None:
            return Shape([int(size) for size in sizes.reshape(-1)])
        rest = self.values.shape
        return Shape(None) if rest.rank is None else Shape([None]).concatenate(rest[1:])

    def get_shape(self) -> Shape:
        """The shape of the whole tensor, as far as it is known (TF1's word)."""
        return self.shape

    @property
    def components(self) -> tuple[Any, ...]:
        """Values, indices and shape; see `structures.Composite`."""
        return self.values, self.indices, self.dense_shape

    @property
    def form(self) -> str:
        """Its kind, for messages."""
        return "IndexedSlices" if self.dense_shape is not None else "IndexedSlices without dense_shape"

    def with_components(self, components: Sequence[Any]) -> IndexedSlices:
        """Slices of other tensors."""
        copy = IndexedSlices.__new__(IndexedSlices)
        copy.values, copy.indices, copy.dense_shape = components
        return copy

    def component_shapes(self, shape: Any) -> list[Shape]:
        """The shapes of the tensors where the values have `shape`."""
        whole = as_shape(shape)
        rest = [] if self.dense_shape is None else [Shape([whole.rank])]
        return [whole, Shape([None if whole.rank is None else whole.as_list()[0]]), *rest]

    def __neg__(self) -> IndexedSlices:
        return IndexedSlices(-self.values, self.indices, self.dense_shape)

    def as_tensor(self) -> Tensor:
        """The whole tensor.

        Raises:
            InvalidArgumentError: its shape is not known.
        """
        if self.dense_shape is None:
            raise InvalidArgumentError.at(
                self.values.node, f"'{self.values.name}' with its indices is no whole tensor: required a dense_shape, got None"
            )
        count = apply_one("StridedSlice", [self.dense_shape, [0], [1], [1]], None, {"shrink_axis_mask": 1})
        whole = apply_one("UnsortedSegmentSum", [self.values, self.indices, count], None)
        if get_default_graph() is self.graph:
            self.graph.set_shape(whole, self.shape)
        return whole

    def as_fetches(self) -> IndexedSlicesValue:
        """The tensors that a run computes for it."""
        return IndexedSlicesValue(self.values, self.indices, self.dense_shape)

    def present(self) -> IndexedSlices:
        """The same with the current tensors of these names, whose nodes may have been replaced."""
        now = self.graph.present
        return IndexedSlices(now(self.values), now(self.indices), None if self.dense_shape is None else now(self.dense_shape))


def convert_to_tensor_or_indexed_slices(value: Any, dtype: Any = None, name: str | None = None) -> Tensor | IndexedSlices:
    """Slices as they are, and anything else as a tensor.

    Args:
        value: a tensor, slices, or a value.
        dtype: the dtype that it must have.
        name: the name of a constant.

    Raises:
        InvalidArgumentError: it has another dtype.
    """
    if not isinstance(value, IndexedSlices):
        return convert_to_tensor(get_default_graph(), value, dtype, name or "value", name)
    if dtype is not None and value.dtype.base != dtype:
        raise InvalidArgumentError.at(value.op, f"Required slices of {dtype}, got {value!r}")
    return value


def indices_and_values(indices: Any, values: Any) -> tuple[Any, Any]:
    """Indices and values of rows, which may be given as slices in one argument."""
    return (indices.indices, indices.values) if isinstance(indices, IndexedSlices) else (indices, values)


def without_duplicates(slices: IndexedSlices) -> IndexedSlices:
    """The same sum with each index once."""
    graph = get_default_graph()
    unique, places = graph.apply_op("Unique", [slices.indices], None, None).outputs
    count = apply_one("Size", [unique], None)
    return IndexedSlices(apply_one("UnsortedSegmentSum", [slices.values, places, count], None), unique, slices.dense_shape)
