"""The values of datasets and iterators: elements made one after another, each a tuple of arrays.

An iterator made by `iter(step, None)` goes on after an error of one element, which a generator function would not.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any, ClassVar, Final

import numpy as np

from graphcore.dtypes import DType, string
from graphcore.errors import CancelledError, FailedPreconditionError, InvalidArgumentError, OutOfRangeError
from graphcore.opset.numerics.philox import Generator, fresh_seed, words
from graphcore.shapes import Shape
from graphcore.support.forking import new_rlock

Element = tuple[Any, ...]
"""One array for each component."""
_DRAWN_AT_ONCE: Final = 64
_MASK: Final = (1 << 64) - 1


class Dataset:
    """The value of a dataset's handle: a recipe for elements.

    Args:
        types: the dtypes of the components; None if they are not declared.
        iterate: makes an iterator over all elements from the beginning.
    """

    __slots__ = ("iterate", "types")

    shape: ClassVar[tuple[int, ...]] = ()

    def __init__(self, types: tuple[DType, ...] | None, iterate: Callable[[], Iterator[Element]]) -> None:
        self.types = types
        self.iterate = iterate

    def __repr__(self) -> str:
        return f"<dataset of {', '.join([dtype.text for dtype in self.types or ()])}>"


class IteratorValue:
    """An iterator of a session.

    Attributes:
        name: the name in error texts.
        op, owner: see `SharedResource`.
        kind: the properties that its node declares, as a comparable value.
    """

    shape: ClassVar[tuple[int, ...]] = ()

    def __init__(self, name: str, op: str, types: tuple[DType, ...], kind: object) -> None:
        self.name = name
        self.op = op
        self.owner = ""
        self.types = types
        self.kind = kind
        self._lock = new_rlock()
        self._elements: Iterator[Element] | None = None
        self._is_ended = False

    def __repr__(self) -> str:
        return f"<iterator '{self.name}'>"

    def start(self, dataset: Dataset) -> None:
        """Begin with the first element of `dataset`.

        Raises:
            InvalidArgumentError: its elements have other types.
        """
        if dataset.types is not None and dataset.types != self.types:
            raise InvalidArgumentError(
                f"The iterator '{self.name}' is for elements of types ({_names(self.types)}), the dataset has ({_names(dataset.types)})"
            )
        with self._lock:
            self._elements = dataset.iterate()

    def start_if_new(self, dataset: Callable[[], Dataset]) -> None:
        """Begin with `dataset()` unless it has begun."""
        with self._lock:
            if self._elements is None:
                self.start(dataset())

    def next(self) -> Element:
        """The next element.

        Raises:
            OutOfRangeError: there are no more.
            FailedPreconditionError: it has not begun.
        """
        with self._lock:
            if self._is_ended:
                raise CancelledError("The session was closed")
            if self._elements is None:
                raise FailedPreconditionError(
                    f"GetNext() failed because the iterator has not been initialized. Ensure that you have run the initializer operation for "
                    f"this iterator ('{self.name}') before getting the next element."
                )
            try:
                return next(self._elements)
            except StopIteration:
                raise OutOfRangeError("End of sequence") from None

    def end(self) -> None:
        """Forget the elements, when the session is closed."""
        self._is_ended = True
        self._elements = None


def _names(types: Sequence[DType]) -> str:
    return ", ".join([dtype.text for dtype in types])


def as_array(value: Any, dtype: DType) -> Any:
    """A value as an array; NumPy would make text of an array of one string."""
    if dtype is string and not isinstance(value, np.ndarray):
        scalar = np.empty((), object)
        scalar[()] = value
        return scalar
    return value if dtype.as_numpy is None else np.asarray(value, dtype.as_numpy)


def stacked(rows: Sequence[Element], types: Sequence[DType]) -> Element:
    """Elements along a first dimension.

    Raises:
        InvalidArgumentError: they have different shapes.
    """
    columns = []
    for place, (column, dtype) in enumerate(zip(zip(*rows, strict=True), types, strict=True)):
        arrays = [as_array(value, dtype) for value in column]
        other = next((array for array in arrays if array.shape != arrays[0].shape), None)
        if other is not None:
            raise InvalidArgumentError(
                f"Cannot batch tensors with different shapes in component {place}. First element had shape {list(arrays[0].shape)} and "
                f"element {next(i for i, array in enumerate(arrays) if array is other)} had shape {list(other.shape)}."
            )
        columns.append(np.stack(arrays))
    return tuple(columns)


def padded(rows: Sequence[Element], types: Sequence[DType], shapes: Sequence[Sequence[int]], values: Sequence[Any]) -> Element:
    """Elements along a first dimension, padded at the end of each dimension.

    Args:
        rows: the elements.
        types: the types of the components.
        shapes: their padded shapes; -1 for the largest size.
        values: what they are padded with.

    Raises:
        InvalidArgumentError: an element is larger than its padded shape, or has another rank.
    """
    columns = []
    for place, (column, dtype, wanted, value) in enumerate(zip(zip(*rows, strict=True), types, shapes, values, strict=True)):
        arrays = [as_array(value, dtype) for value in column]
        for array in arrays:
            if array.ndim != len(wanted):
                raise InvalidArgumentError(
                    f"All elements in a batch must have the same rank as the padded shape for component {place}: expected rank {len(wanted)} "
                    f"but got element with rank {array.ndim}"
                )
            if any(0 <= most < size for most, size in zip(wanted, array.shape, strict=True)):
                raise InvalidArgumentError(
                    f"Attempted to pad to a smaller size than the input element: component {place} has shape {list(array.shape)}, and the "
                    f"padded shape is {list(wanted)}"
                )
        sizes = [max(array.shape[i] for array in arrays) if size < 0 else size for i, size in enumerate(wanted)]
        whole: Any = np.empty((len(arrays), *sizes), arrays[0].dtype)
        whole[...] = value
        for i, array in enumerate(arrays):
            whole[(i, *[slice(size) for size in array.shape])] = array
        columns.append(whole)
    return tuple(columns)


class Samples:
    """Random 32-bit numbers, one after another, from a key and a stream."""

    def __init__(self, seeds: tuple[int, int]) -> None:
        self._generator = Generator(seeds[0] & _MASK, seeds[1] & _MASK)
        self._drawn: deque[int] = deque()

    def next(self) -> int:
        """The next number."""
        if not self._drawn:
            first = self._generator.reserve(_DRAWN_AT_ONCE // 4)
            self._drawn.extend(words(np, self._generator, first, _DRAWN_AT_ONCE).tolist())
        return self._drawn.popleft()


def shuffled(source: Dataset, size: int, seeds: tuple[int, int], *, reshuffle: bool) -> Callable[[], Iterator[Element]]:
    """Elements in random order: each is drawn from a buffer of the next `size` ones.

    Args:
        source: the elements.
        size: of the buffer.
        seeds: both 0 for random ones.
        reshuffle: True for another order in each iteration.
    """
    first = seeds if any(seeds) else (fresh_seed(), fresh_seed())
    parent = Samples(first)

    def iterate() -> Iterator[Element]:
        samples = Samples((parent.next(), parent.next()) if reshuffle else first)
        elements, buffer, is_over = source.iterate(), deque[Element](), False

        def step() -> Element:
            nonlocal is_over
            while not is_over and len(buffer) < size:
                element = next(elements, None)
                is_over = element is None
                if element is not None:
                    buffer.append(element)
            if not buffer:
                raise StopIteration
            place = samples.next() % len(buffer)
            buffer[place], buffer[0] = buffer[0], buffer[place]
            return buffer.popleft()

        return iter(step, None)

    return iterate


def batches(source: Dataset, size: int, make: Callable[[Sequence[Element]], Element], *, drop: bool) -> Callable[[], Iterator[Element]]:
    """`size` elements after another, put together by `make`; `drop` leaves out a last part with fewer."""

    def iterate() -> Iterator[Element]:
        elements = source.iterate()

        def step() -> Element:
            rows = list(islice(elements, size))
            if not rows or (drop and len(rows) < size):
                raise StopIteration
            return make(rows)

        return iter(step, None)

    return iterate


def interleaved(source: Dataset, inner: Callable[..., Dataset], cycle: int, block: int) -> Callable[[], Iterator[Element]]:
    """The elements of the datasets that `inner` makes of each element.

    Args:
        source: the elements.
        inner: makes a dataset of an element.
        cycle: the number of datasets that are read in turn.
        block: the number of elements that are taken from one before the next.
    """

    def iterate() -> Iterator[Element]:
        elements = source.iterate()
        slots: list[Iterator[Element] | None] = [None] * cycle
        place, taken, is_over = 0, 0, False

        def advance() -> None:
            nonlocal place, taken
            place, taken = (place + 1) % cycle, 0

        def step() -> Element:
            nonlocal taken, is_over
            while not is_over or any(slot is not None for slot in slots):
                slot = slots[place]
                if slot is not None:
                    element = next(slot, None)
                    if element is not None:
                        taken += 1
                        if taken == block:
                            advance()
                        return element
                    slots[place] = None
                    advance()
                elif not is_over:
                    argument = next(elements, None)
                    is_over = argument is None
                    if argument is not None:
                        slots[place] = inner(*argument).iterate()
                else:
                    advance()
            raise StopIteration

        return iter(step, None)

    return iterate


def grouped(
    source: Dataset,
    key_of: Callable[[Element], int],
    size_of: Callable[[int], int],
    window: Callable[[int, list[Element]], Iterator[Element]],
) -> Callable[[], Iterator[Element]]:
    """The elements that `window` makes of `size_of(key)` elements of one key.

    At the end it makes them of what is left, by ascending keys.
    """

    def iterate() -> Iterator[Element]:
        elements = source.iterate()
        groups: dict[int, list[Element]] = {}
        sizes: dict[int, int] = {}
        current: Iterator[Element] = iter(())
        is_over = False

        def step() -> Element:
            nonlocal current, is_over
            while (next_element := next(current, None)) is None:
                element = None if is_over else next(elements, None)
                is_over = element is None
                if element is not None:
                    key = key_of(element)
                    if key not in sizes:
                        sizes[key] = size_of(key)
                    groups.setdefault(key, []).append(element)
                    if len(groups[key]) < sizes[key]:
                        continue
                elif groups:
                    key = min(groups)
                else:
                    raise StopIteration
                current = window(key, groups.pop(key))
            return next_element

        return iter(step, None)

    return iterate


def check_shapes(element: Element, shapes: Sequence[Shape]) -> None:
    """Refuse an element that does not have the declared shapes.

    Raises:
        InvalidArgumentError: a component has another one.
    """
    for place, (value, shape) in enumerate(zip(element, shapes, strict=True)):
        dims, sizes = shape.dims, np.shape(value)
        if dims is not None and dims != sizes and not shape.is_compatible_with(Shape(sizes)):
            raise InvalidArgumentError(f"Component {place} of an element was declared with shape {shape}, and has {list(sizes)}")
