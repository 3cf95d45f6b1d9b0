"""`gc.TensorArray`: tensors by number, written one by one, also in loops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from graphcore.dtypes import DType, as_dtype, int32, int64
from graphcore.errors import InvalidArgumentError
from graphcore.graph import Tensor
from graphcore.shapes import Shape, as_shape
from graphcore.tf1.arrays.layout import concat, reshape
from graphcore.tf1.arrays.layout import shape as shape_of
from graphcore.tf1.calls import apply_one
from graphcore.tf1.framework import convert_to_tensor, no_op


class TensorArray:
    """Tensors of one dtype by number. Each change returns the array after it, which is to be used from then on.

    It can be a loop variable, and gradients flow through it. It is kept in a list of tensors (`gc.ops.tensor_list_reserve`): a second write to the
    same place replaces the tensor, and what was not written reads as zeros where the shape is known.

    Args:
        dtype: the dtype of the tensors.
        size: the number of tensors, an int or a scalar tensor.
        dynamic_size: a write beyond the end makes the array longer.
        clear_after_read, tensor_array_name, infer_shape, colocate_with_first_write_call: without effect on results, except that with
            `infer_shape` the first written shape holds for all.
        handle, flow: the list of an existing array.
        element_shape: the shape of each tensor, as far as it is known.
        name: the name of the node.
    """

    def __init__(
        self,
        dtype: object,
        size: Any = None,
        dynamic_size: bool | None = None,
        clear_after_read: bool | None = None,
        tensor_array_name: str | None = None,
        handle: Any = None,
        flow: Any = None,
        infer_shape: bool = True,
        element_shape: Any = None,
        colocate_with_first_write_call: bool = True,
        name: str | None = None,
    ) -> None:
        del clear_after_read, tensor_array_name, colocate_with_first_write_call
        self._dtype = as_dtype(dtype).base
        self._dynamic = bool(dynamic_size)
        self._infer = infer_shape
        self._shape = as_shape(element_shape)
        held = flow if handle is None else handle
        if held is None and size is None and not dynamic_size:
            raise InvalidArgumentError("TensorArray: required a size, or dynamic_size=True; got neither")
        if held is None:
            attrs = {"element_dtype": self._dtype, "shape_type": int32}
            number = convert_to_tensor(0 if size is None else size, int32)
            held = apply_one("TensorListReserve", [_as_sizes(self._shape), number], name or "TensorArray", attrs)
        self._flow = held

    def with_flow(self, flow: Any) -> Self:
        """The same array with another list."""
        copy = type(self).__new__(type(self))
        copy.__dict__.update(self.__dict__, _flow=flow)
        return copy

    @property
    def components(self) -> tuple[Any, ...]:
        """The list, alone; see `structures.Composite`."""
        return (self._flow,)

    @property
    def form(self) -> str:
        """Its kind, for messages."""
        return f"TensorArray of {self._dtype.public_name}"

    def with_components(self, components: Sequence[Any]) -> Self:
        """The same array with another list."""
        return self.with_flow(components[0])

    def component_shapes(self, shape: Any) -> list[Shape]:  # noqa: ARG002 - a list is a scalar, whatever it holds
        """The shape of the list."""
        return [Shape([])]

    def united(self, other: Self) -> Self:
        """The array with the shape of elements that both have."""
        copy = self.with_flow(self._flow)
        copy._shape = _common_shape(self._shape, other._shape)
        copy._dynamic = self._dynamic or other._dynamic
        return copy

    @property
    def flow(self) -> Any:
        """The list: a scalar variant tensor."""
        return self._flow

    handle = flow

    @property
    def dtype(self) -> DType:
        """The dtype of the tensors."""
        return self._dtype

    @property
    def dynamic_size(self) -> bool:
        """True if writes may make it longer."""
        return self._dynamic

    @property
    def element_shape(self) -> Shape:
        """The shape of each tensor, as far as it is known."""
        return self._shape

    def identity(self) -> Self:
        """The array, by a node of its own."""
        return self.with_flow(apply_one("Identity", [self._flow], None))

    def size(self, name: str | None = None) -> Tensor:
        """The number of tensors: an int32 scalar."""
        return apply_one("TensorListLength", [self._flow], name)

    def read(self, index: Any, name: str | None = None) -> Tensor:
        """The tensor number `index`."""
        attrs = {"element_dtype": self._dtype}
        value = apply_one("TensorListGetItem", [self._flow, index, _as_sizes(self._shape)], name, attrs)
        value.set_shape(self._shape)
        return value

    def write(self, index: Any, value: Any, name: str | None = None) -> Self:
        """The array with `value` as its tensor number `index`.

        Raises:
            InvalidArgumentError: the value has a shape that does not fit the others.
        """
        value = convert_to_tensor(value, self._dtype)
        held = self._holding(value.shape)
        flow = self._flow
        index = convert_to_tensor(index, int32)
        if self._dynamic:
            needed = apply_one("Maximum", [self.size(), index + 1], None)
            flow = apply_one("TensorListResize", [flow, needed], None)
        flow = apply_one("TensorListSetItem", [flow, index, value], name, {"element_dtype": self._dtype})
        return held.with_flow(flow)

    def stack(self, name: str | None = None) -> Tensor:
        """All tensors along a new first dimension. -> y: [size, *element_shape]."""
        attrs = {"element_dtype": self._dtype, "num_elements": -1}
        value = apply_one("TensorListStack", [self._flow, _as_sizes(self._shape)], name, attrs)
        if self._shape.rank is not None:
            value.set_shape([None, *self._shape.as_list()])
        return value

    def gather(self, indices: Any, name: str | None = None) -> Tensor:
        """Some tensors along a new first dimension. indices: [n] -> y: [n, *element_shape]."""
        attrs = {"element_dtype": self._dtype}
        value = apply_one("TensorListGather", [self._flow, convert_to_tensor(indices, int32), _as_sizes(self._shape)], name, attrs)
        if self._shape.rank is not None:
            value.set_shape([None, *self._shape.as_list()])
        return value

    def concat(self, name: str | None = None) -> Tensor:
        """All tensors, which have the same shape, one after the other along their first dimension."""
        value = self.stack(name)
        rank = self._shape.rank
        if rank == 0:
            raise InvalidArgumentError("TensorArray.concat: required tensors of rank 1 or more, got scalars")
        joined = reshape(value, concat([[-1], shape_of(value)[2:]], 0))
        if rank is not None:
            joined.set_shape([None, *self._shape.as_list()[1:]])
        return joined

    def unstack(self, value: Any, name: str | None = None) -> Self:
        """The array with the rows of `value` as its tensors. value: [n, ...]."""
        value = convert_to_tensor(value, self._dtype)
        rest = Shape(None if value.shape.rank is None else value.shape.as_list()[1:])
        flow = apply_one("TensorListFromTensor", [value, _as_sizes(rest)], name)
        return self._holding(rest).with_flow(flow)

    def scatter(self, indices: Any, value: Any, name: str | None = None) -> Self:
        """The array with the rows of `value` as its tensors number `indices`. indices: [n], value: [n, ...]."""
        value = convert_to_tensor(value, self._dtype)
        rest = Shape(None if value.shape.rank is None else value.shape.as_list()[1:])
        indices = convert_to_tensor(indices, int32)
        flow = apply_one("TensorListScatterIntoExistingList", [self._flow, value, indices], name, {"element_dtype": self._dtype})
        return self._holding(rest).with_flow(flow)

    def split(self, value: Any, lengths: Any, name: str | None = None) -> Self:
        """The array with parts of `value` as its tensors. value: [sum of lengths, ...]."""
        value = convert_to_tensor(value, self._dtype)
        rest = Shape(None if value.shape.rank is None else [None, *value.shape.as_list()[1:]])
        flow = apply_one("TensorListSplit", [value, _as_sizes(rest), convert_to_tensor(lengths, int64)], name)
        return self._holding(rest).with_flow(flow)

    def close(self, name: str | None = None) -> Any:
        """Do nothing: a list is released with its last use."""
        return no_op(name)

    def _holding(self, shape: Shape) -> Self:
        """The array after a tensor of this shape was put into it."""
        if not self._shape.is_compatible_with(shape):
            raise InvalidArgumentError(f"Inconsistent shapes: saw {shape} but expected {self._shape} in a TensorArray")
        copy = self.with_flow(self._flow)
        if self._infer:
            copy._shape = self._shape.merge_with(shape)
        return copy

    def __repr__(self) -> str:
        return f"<gc.TensorArray {self._dtype.text} {self._shape}>"


def _common_shape(a: Shape, b: Shape) -> Shape:
    if a.rank is None or a.rank != b.rank:
        return Shape(None)
    return Shape([mine if mine == theirs else None for mine, theirs in zip(a.as_list(), b.as_list(), strict=True)])


def _as_sizes(shape: Shape) -> Tensor:
    """A shape as an int32 tensor: -1 for an unknown size, and alone for an unknown rank."""
    return convert_to_tensor(-1 if shape.rank is None else [-1 if size is None else size for size in shape.as_list()], int32)
