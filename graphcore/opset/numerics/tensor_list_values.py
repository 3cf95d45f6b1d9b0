"""The values of list handles: immutable lists of tensors, and the rules for element shapes."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from graphcore import dtypes
from graphcore.dtypes import DType
from graphcore.kernel_context import KernelContext
from graphcore.opset.framework.kernels import invalid
from graphcore.shapes import Shape
from graphcore.support.memory_limits import check_allocation, check_list_allocation

_new: Final = object.__new__
UNKNOWN_SHAPE: Final = Shape(None)
_PLACE: Final = 16
"""The bytes of an unset element, which is recorded twice while the list is made."""


class ListKind:
    """The common properties of a list and of lists made from it by adding or removing elements.

    Attributes:
        dtype: the type of the elements.
        shape: the known part of their shape; its sizes are `dims`.
        limit: the most elements, -1 for any number.
    """

    __slots__ = ("dims", "dtype", "limit", "shape")

    def __init__(self, dtype: DType, shape: Shape, limit: int) -> None:
        self.dtype = dtype
        self.shape = shape
        self.dims = shape.dims
        self.limit = limit


class TensorList:
    """The value of a `variant` tensor: a list of tensors of one type.

    Attributes:
        kind: the type, known shape and limit of the elements.
        length: the number of elements.
        shape: the shape of the handle itself, a scalar.
    """

    __slots__ = ("_elements", "kind", "length")

    shape: tuple[int, ...] = ()

    def __init__(
        self, element_dtype: DType, element_shape: Shape = UNKNOWN_SHAPE, items: Iterable[Any] = (), max_num_elements: int = -1
    ) -> None:
        self.kind = ListKind(element_dtype, element_shape, max_num_elements)
        self._elements = list(items)
        self.length = len(self._elements)

    def __repr__(self) -> str:
        return f"TensorList({self.length} x {self.element_dtype.text} {self.element_shape})"

    @property
    def element_dtype(self) -> DType:
        """The type of the elements."""
        return self.kind.dtype

    @property
    def element_shape(self) -> Shape:
        """The known part of the elements' shape."""
        return self.kind.shape

    @property
    def max_num_elements(self) -> int:
        """The most elements, -1 for any number."""
        return self.kind.limit

    @property
    def items(self) -> tuple[Any, ...]:
        """The elements; None for unset ones."""
        return tuple(self._elements[: self.length])

    @property
    def last(self) -> Any:
        """The last element, None if it is unset."""
        return self._elements[self.length - 1]

    def pushed(self, element: Any) -> TensorList:
        """The list with one more element at its end.

        The first list extended from this one shares its storage, so that a loop that appends one element in each iteration does not copy
        all of them each time.
        """
        elements, length = self._elements, self.length
        if len(elements) == length:
            elements.append(element)
        if elements[length] is not element:  # another list has already extended this storage
            elements = [*elements[:length], element]
        longer = _new(TensorList)
        longer.kind = self.kind
        longer._elements = elements
        longer.length = length + 1
        return longer

    def popped(self) -> TensorList:
        """The list without its last element."""
        shorter = _new(TensorList)
        shorter.kind = self.kind
        shorter._elements = self._elements
        shorter.length = self.length - 1
        return shorter

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of an array of handles."""
        return np.dtype(np.object_)

    @property
    def nbytes(self) -> int:
        """The bytes that the elements take."""
        return sum([item.nbytes for item in self.items if item is not None])

    def with_items(self, items: Iterable[Any]) -> TensorList:
        """The same kind of list with other elements."""
        return TensorList(self.element_dtype, self.element_shape, items, self.max_num_elements)


def as_list(k: KernelContext, handle: Any) -> TensorList:
    """The list behind a handle.

    Raises:
        InvalidArgumentError: the value is not the handle of a list.
    """
    value = handle if isinstance(handle, TensorList) else getattr(handle, "item", lambda: None)()
    if not isinstance(value, TensorList):
        raise invalid(k, f"Input handle is not a list. Saw: {type(handle).__name__}")
    return value


def list_of(k: KernelContext, handle: Any) -> TensorList:
    """The list behind a handle, with elements of the type in attr `element_dtype`.

    Raises:
        InvalidArgumentError: the type differs.
    """
    value = as_list(k, handle)
    wanted = element_type(k)
    if value.element_dtype is not wanted:
        raise invalid(k, f"Invalid data types; op elements {wanted} but list elements {value.element_dtype}")
    return value


def element_type(k: KernelContext) -> DType:
    """The value of attr `element_dtype`.

    Raises:
        InvalidArgumentError: it is not a type.
    """
    dtype = k.attr("element_dtype")
    if not isinstance(dtype, DType):
        raise invalid(k, f"attr 'element_dtype' must be a type, got {dtype!r}")
    return dtype


def partial_shape(k: KernelContext, value: Any) -> Shape:
    """The element shape in an int tensor: sizes, -1 for unknown; the scalar -1 for an unknown rank.

    Raises:
        InvalidArgumentError: another scalar, or a size below -1.
    """
    if value.ndim == 0:
        if int(value) != -1:
            raise invalid(k, f"The only valid scalar shape tensor is the fully unknown shape specified as -1; got {int(value)}")
        return UNKNOWN_SHAPE
    sizes = value.tolist()
    if any(size < -1 for size in sizes):
        raise invalid(k, f"An element shape must have sizes of at least -1, got {sizes}")
    return Shape([None if size < 0 else size for size in sizes])


def checked_element(k: KernelContext, held: TensorList, element: Any, what: str) -> Any:
    """Return the element if the list may hold it.

    Raises:
        InvalidArgumentError: its shape does not fit.
    """
    if not _may_be(held.element_shape.dims, element.shape):
        raise invalid(k, f"Tried to {what}: element shape {list(element.shape)}, list shape: {held.element_shape}")
    return element


def _may_be(declared: tuple[int | None, ...] | None, sizes: tuple[int, ...]) -> bool:
    """True iff these sizes fit the shape. No Shape is made, since loops call this in every iteration."""
    if declared is None:
        return True
    return len(declared) == len(sizes) and all(a is None or a == b for a, b in zip(declared, sizes, strict=True))


def merged_shape(k: KernelContext, wanted: Shape, held: TensorList) -> Shape:
    """The element shape merged from op and list.

    Raises:
        InvalidArgumentError: they contradict each other.
    """
    if not wanted.is_compatible_with(held.element_shape):
        raise invalid(k, f"Incompatible shapes: the op's element_shape is {wanted}, the list's is {held.element_shape}")
    return wanted.merge_with(held.element_shape)


def uninitialized(k: KernelContext, held: TensorList, wanted: Shape) -> Any:
    """The value of an unset element: zeros with the shape given by op, list or other elements.

    Raises:
        InvalidArgumentError: the shape is unknown.
    """
    shape = merged_shape(k, wanted, held)
    for item in held.items:
        if shape.is_fully_defined:
            break
        if item is not None and shape.is_compatible_with(Shape(item.shape)):
            shape = shape.merge_with(Shape(item.shape))
    if not shape.is_fully_defined:
        raise invalid(k, f"Trying to read an uninitialized element but element_shape is not fully defined {shape}")
    return zeros(k, shape.as_list())


def filled(k: KernelContext, held: TensorList, items: Sequence[Any], wanted: Shape) -> list[Any]:
    """The `items` of a list, with zeros for unset ones.

    Raises:
        InvalidArgumentError: their shape is unknown.
    """
    if all(item is not None for item in items):
        return list(items)
    blank = uninitialized(k, held, wanted)
    return [blank if item is None else item for item in items]


def zeros(k: KernelContext, sizes: Sequence[int | None]) -> Any:
    """Zeros of the op's element type."""
    known_sizes, dtype = [size or 0 for size in sizes], element_type(k).as_numpy
    if dtype is not None:
        check_allocation(known_sizes, dtype)
    return k.xp.zeros(known_sizes, dtype)


def unset(count: int) -> tuple[None, ...]:
    """The elements of a list without set elements."""
    check_list_allocation(count, _PLACE)
    return (None,) * count


def positions(k: KernelContext, value: Any, size: int, what: str) -> list[int]:
    """The elements of an index tensor.

    Raises:
        InvalidArgumentError: one is outside [0, size).
    """
    indices: list[int] = value.reshape(-1).tolist()
    for index in indices:
        if not 0 <= index < size:
            raise invalid(k, f"Trying to {what} element {index} in a list with {size} elements.")
    return indices


def zeros_like_list(k: KernelContext, handle: Any) -> TensorList:
    """A list of zeros for all elements; unset ones stay unset."""
    held = as_list(k, handle)
    if held.element_dtype is dtypes.variant:
        return held.with_items([None if item is None else zeros_like_list(k, item) for item in held.items])
    return held.with_items([None if item is None else k.xp.zeros(item.shape, item.dtype) for item in held.items])


def added_lists(k: KernelContext, first: Any, second: Any) -> TensorList:
    """The sum of two lists, elementwise; unset elements count as zeros.

    Raises:
        InvalidArgumentError: they differ in type, length or element shape.
    """
    a, b = as_list(k, first), as_list(k, second)
    if a.element_dtype is not b.element_dtype:
        raise invalid(
            k, f"Trying to add two lists of tensors of different dtypes. One is {a.element_dtype} and the other is {b.element_dtype}"
        )
    if len(a.items) != len(b.items):
        raise invalid(
            k, f"Trying to add two lists of tensors with different lengths. One is {len(a.items)} and the other is {len(b.items)}"
        )
    add = partial(added_lists, k) if a.element_dtype is dtypes.variant else operator.add
    items = [y if x is None else x if y is None else add(x, y) for x, y in zip(a.items, b.items, strict=True)]
    return TensorList(a.element_dtype, merged_shape(k, a.element_shape, b), items, a.max_num_elements)
