"""The values of tensor array handles: elements written once and read, and gradient arrays."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from graphcore.dtypes import DType
from graphcore.kernel_context import KernelContext
from graphcore.opset.framework.kernels import invalid
from graphcore.shapes import Shape
from graphcore.support.memory_limits import check_allocation, check_list_allocation

_PLACE: Final = 72
"""The bytes that a place takes, as Python's cyclic collector counts them."""


class Place:
    """One element of an array: its value, shape and state.

    In a gradient array, the shape is that of the forward element.
    """

    __slots__ = ("cleared", "read", "shape", "value")

    def __init__(self) -> None:
        self.value: Any = None
        self.shape: tuple[int, ...] | None = None
        self.read = False
        self.cleared = False


class TensorArray:
    """The value of a handle, with the lifetime of a run.

    Args:
        name: the name in error texts.
        dtype, element_shape: those of the elements.
        size: the number of elements.
        dynamic: writing beyond the end extends the array.
        clear_after_read: a value is released after reading.
        identical: all elements have the shape of the first one written.
        aggregate: repeated writes are added up (in gradient arrays).

    Attributes:
        shape: the shape of the handle itself, in TensorFlow a pair of strings.
    """

    __slots__ = ("aggregate", "clear_after_read", "closed", "dtype", "dynamic", "element_shape", "gradients", "identical", "name", "places")

    shape: tuple[int, ...] = (2,)

    def __init__(
        self,
        name: str,
        dtype: DType,
        element_shape: Shape,
        size: int,
        *,
        dynamic: bool = False,
        clear_after_read: bool = True,
        identical: bool = False,
        aggregate: bool = False,
    ) -> None:
        self.name = name
        self.dtype = dtype
        self.element_shape = element_shape
        check_list_allocation(size, _PLACE)
        self.places = [Place() for _ in range(size)]
        self.dynamic = dynamic
        self.clear_after_read = clear_after_read
        self.identical = identical
        self.aggregate = aggregate
        self.closed = False
        self.gradients: dict[object, TensorArray] = {}

    @property
    def nbytes(self) -> int:
        """The bytes that the elements take."""
        return sum([place.value.nbytes for place in self.places if place.value is not None])

    def write(self, k: KernelContext, index: int, value: Any) -> None:
        """Write `value` to element `index`.

        Raises:
            InvalidArgumentError: there is no such element, it was written already, or the shape does not fit.
        """
        if self.dynamic and index >= len(self.places):
            check_list_allocation(index + 1, _PLACE)
            self.places += [Place() for _ in range(index + 1 - len(self.places))]
        if not 0 <= index < len(self.places):
            raise invalid(
                k,
                f"TensorArray {self.name}: Tried to write to index {index} but array is not resizeable and size is: {len(self.places)}",
            )
        place, shape = self.places[index], Shape(value.shape)
        if not self.element_shape.is_compatible_with(shape):
            raise invalid(
                k,
                f"TensorArray {self.name}: Could not write to TensorArray index {index} because the value shape is {shape} which is "
                f"incompatible with the TensorArray's inferred element shape: {self.element_shape} (consider setting infer_shape=False).",
            )
        if place.read:
            raise invalid(k, f"TensorArray {self.name}: Could not write to TensorArray index {index} because it has already been read.")
        if place.value is not None and not self.aggregate:
            raise invalid(
                k, f"TensorArray {self.name}: Could not write to TensorArray index {index} because it has already been written to."
            )
        if place.value is not None and place.value.shape != value.shape:
            raise invalid(
                k,
                f"TensorArray {self.name}: Could not aggregate to TensorArray index {index} because the existing shape is "
                f"{list(place.value.shape)} but the new input shape is {list(value.shape)}.",
            )
        place.value = value if place.value is None else place.value + value
        place.shape = value.shape
        if self.identical:
            self.element_shape = shape

    def read(self, k: KernelContext, index: int) -> Any:
        """Read element `index`; zeros if it was not written and the shape is known.

        Raises:
            InvalidArgumentError: there is no such element, or it has no value.
        """
        if not 0 <= index < len(self.places):
            raise invalid(k, f"TensorArray {self.name}: Tried to read from index {index} but array size is: {len(self.places)}")
        place = self.places[index]
        if place.cleared:
            raise invalid(
                k,
                f"TensorArray {self.name}: Could not read index {index} twice because it was cleared after a previous read "
                "(perhaps try setting clear_after_read = false?).",
            )
        value = self._zeros(k, index) if place.value is None else place.value
        place.read = True
        if self.clear_after_read:
            place.value, place.cleared = None, True
        return value

    def _zeros(self, k: KernelContext, index: int) -> Any:
        sizes = self.sizes_at(index)
        if sizes is None:
            raise invalid(
                k,
                f"TensorArray {self.name}: Could not read from TensorArray index {index}.  Furthermore, the element shape is not fully "
                f"defined: {self.element_shape}.  It is possible you are working with a resizeable TensorArray and stop_gradients is not "
                "allowing the gradients to be written.  If you set the full element_shape property on the forward TensorArray, the proper "
                "all-zeros tensor will be returned instead of incurring this error.",
            )
        self.check_allocation(sizes)
        return k.xp.zeros(sizes, self.dtype.as_numpy)

    def sizes_at(self, index: int) -> tuple[int, ...] | None:
        """The shape of the value at `index`, None if there is none."""
        sizes = self.places[index].shape
        if sizes is None and self.element_shape.is_fully_defined:
            sizes = tuple([size or 0 for size in self.element_shape.as_list()])
        return sizes

    def check_allocation(self, sizes: tuple[int, ...]) -> None:
        """Check an array of the element type against the allocation limit.

        Raises:
            AllocationLimitError: it exceeds the limit.
        """
        if self.dtype.as_numpy is not None:
            check_allocation(sizes, self.dtype.as_numpy)

    def gradient(self, source: object, prefix: tuple[int, ...] = ()) -> TensorArray:
        """The array that collects the gradients of this one's elements; one for each `source`.

        Args:
            source: names the call of `gradients`.
            prefix: additional leading sizes of its elements.
        """
        gradient = self.gradients.get(source)
        if gradient is None:
            shape = Shape(prefix).concatenate(self.element_shape) if prefix else self.element_shape
            gradient = TensorArray(f"{self.name}@{source!r}", self.dtype, shape, len(self.places), aggregate=True, clear_after_read=False)
            for place, own in zip(gradient.places, self.places, strict=True):
                place.shape = None if own.shape is None else prefix + own.shape
            self.gradients[source] = gradient
        return gradient


def as_array(k: KernelContext, handle: Any, attr: str = "") -> TensorArray:
    """The array behind a handle.

    Args:
        attr: the op's attr with the type of the elements.

    Raises:
        InvalidArgumentError: the handle is of another kind, the array was closed, or its elements are of another type.
    """
    value = handle if isinstance(handle, TensorArray) else getattr(handle, "item", lambda: None)()
    if not isinstance(value, TensorArray):
        raise invalid(k, f"required the handle of a TensorArray, got {type(handle).__name__}")
    if value.closed:
        raise invalid(k, f"TensorArray {value.name} has already been closed.")
    if attr and k.attr(attr) is not value.dtype:
        raise invalid(k, f"TensorArray dtype is {value.dtype.text} but Op has dtype {k.attr(attr)!r}.")
    return value


def zero_flow() -> np.generic:
    """The initial value of a flow, which only orders operations."""
    return np.float32(0)
