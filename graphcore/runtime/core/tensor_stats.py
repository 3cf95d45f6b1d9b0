"""Statistics of the tensors of a recorded run."""

from __future__ import annotations

import math
from typing import Any, Final

import msgspec
import numpy as np

from graphcore.attrs import Array
from graphcore.dtypes import as_dtype
from graphcore.errors import InvalidArgumentError
from graphcore.runtime.core.events import Around, loop_iterations

MAX_SAMPLE: Final = 4096
"""The most elements of which full statistics are made."""
BINS: Final = 32
MAX_SMALL: Final = 8
"""The most elements of a tensor that is kept in every run of its node."""
MAX_KEPT: Final = 256
"""The most elements of a tensor that is kept whole with its full statistics."""
MAX_PICTURE: Final = 64
"""The most rows and columns of a kept picture."""
_LARGE: Final = 16384
"""The most elements that are summed by one product with ones."""
_ROW: Final = 1024
"""The elements of the rows of larger arrays."""
_isfinite: Final = math.isfinite
_ADD: Final = np.add.reduce


class Detail(msgspec.Struct, frozen=True, kw_only=True):
    """The full statistics of a tensor.

    Attributes:
        sampled: the number of elements that they are made of, 0 for all of them.
        std: the standard deviation of the finite elements.
        zeros: the share of zeros, 0 to 1.
        low, high: the ends of the histogram.
        bins: the numbers of finite elements in equal intervals from `low` to `high`.
        values: the tensor itself, if it has at most 256 elements.
        picture: of a tensor like an image, the first one: [rows, columns], at most 64 x 64.
        pictures: the number of such images in the tensor.
    """

    sampled: int = 0
    std: float | None = None
    zeros: float | None = None
    low: float = 0.0
    high: float = 0.0
    bins: tuple[int, ...] = ()
    values: Array | None = None
    picture: Array | None = None
    pictures: int = 0


class TensorStats(msgspec.Struct, frozen=True):
    """The statistics of one output of one run of a node.

    Attributes:
        node: the name of the node.
        output: the index of the output.
        dtype: the name of its type.
        shape: its shape.
        min, max, mean: of the finite elements; None if there are none, and for texts. Complex tensors have a mean only.
        nan, inf: the exact numbers of NaNs and infinities.
        frame, iteration, around: its loop, as `Event.frame` and so on.
        call: the surrounding function calls, as `Event.call`.
        detail: the full statistics, None if they were not requested.
        small: the tensor itself, if it has 1 to 8 elements in at least one dimension.
    """

    node: str
    output: int
    dtype: str
    shape: tuple[int, ...]
    min: float | None = None
    max: float | None = None
    mean: complex | float | None = None
    nan: int = 0
    inf: int = 0
    frame: str = ""
    iteration: int = 0
    around: Around = ()
    call: str = ""
    detail: Detail | None = None
    small: Array | None = None

    @property
    def name(self) -> str:
        """The name of the tensor, such as `h:0`."""
        return f"{self.node}:{self.output}"

    @property
    def is_finite(self) -> bool:
        """True iff it has neither NaNs nor infinities."""
        return not (self.nan or self.inf)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def magnitude(self) -> float | None:
        """The greatest absolute value, None without finite elements."""
        return None if self.min is None or self.max is None else max(abs(self.min), abs(self.max))

    @property
    def iterations(self) -> tuple[int, ...]:
        """The iterations of all surrounding loops, outermost first; () outside of loops."""
        return loop_iterations(self.around, self.frame, self.iteration)

    def __str__(self) -> str:
        place = f" in iteration {', '.join(map(str, self.iterations))}" if self.frame else ""
        return f"{self.name} {self.dtype} [{','.join(map(str, self.shape))}]: {self.words}{place}"

    @property
    def words(self) -> str:
        """The statistics in words: the faults first."""
        parts = [f"{count:,} {kind}" for count, kind in ((self.nan, "NaN"), (self.inf, "Inf")) if count]
        others = "the others " if parts else ""
        if not self.size:
            parts.append("no elements")
        elif self.min is not None and self.max is not None and self.size > 1:
            if self.min == self.max:
                parts.append(f"{others or 'all '}{self.min + 0.0:.4g}")
            else:
                parts.append(f"{others}{self.min:.4g} to {self.max:.4g}, mean {self.mean:.4g}")
        elif self.mean is not None:
            parts.append(f"mean {self.mean:.4g}" if self.size > 1 else f"{self.mean:.4g}")
        return ", ".join(parts)


Summary = tuple[float | None, float | None, "complex | float | None", int, int]


class Summarizer:
    """Computes least, greatest and mean value, and finiteness, of arrays. The caller switches off NumPy's warnings."""

    __slots__ = ("_ones",)

    def __init__(self) -> None:
        self._ones: dict[Any, Array] = {}

    def summary(self, array: Array) -> Summary:
        """Least, greatest, mean value, and the numbers of NaNs and infinities."""
        kind = array.dtype.kind
        if not array.size or kind in "OSUMm":
            return None, None, None, 0, 0
        if kind not in "fiub":
            return _of_complex(array) if kind == "c" else self.summary(array.astype(np.float32))  # the latter such as bfloat16
        flat = array.ravel("K")
        # Places are found in a fifth of the time of extrema in small arrays. NaN counts as the least and as the greatest element.
        low, high = flat.item(flat.argmin()), flat.item(flat.argmax())
        if kind != "f":
            return float(low), float(high), float(_ADD(flat, None, np.float64)) / flat.size, 0, 0
        if _isfinite(low) and _isfinite(high):
            return low, high, self._mean(flat), 0, 0
        return _of_finite(flat)

    def _mean(self, flat: Array) -> float:
        size = flat.size
        if flat.itemsize < 4:
            return float(_ADD(flat, None, np.float64)) / size
        ones = self._ones.get(flat.dtype)
        if ones is None:
            ones = self._ones[flat.dtype] = np.ones(_LARGE, flat.dtype)
        # Products with ones read the array once, at the speed of memory. The sums of many short rows are added in double precision.
        if size <= _LARGE:
            total = float(flat.dot(ones[:size]))
        else:
            whole = size - size % _ROW
            total = float(_ADD(flat[:whole].reshape(-1, _ROW).dot(ones[:_ROW]), None, np.float64)) + float(
                flat[whole:].dot(ones[: size - whole])
            )
        return total / size if _isfinite(total) else float(_ADD(flat, None, np.float64)) / size


def _of_finite(array: Array) -> Summary:
    """The summary of an array with NaNs or infinities. Least, greatest and mean are of the other elements."""
    nans = int(np.count_nonzero(np.isnan(array)))
    finite = array[np.isfinite(array)]
    infinities = array.size - finite.size - nans
    if not finite.size:
        return None, None, None, nans, infinities
    return float(finite.min()), float(finite.max()), float(finite.mean(dtype=np.float64)), nans, infinities


def _of_complex(array: Array) -> Summary:
    nans = int(np.count_nonzero(np.isnan(array)))
    finite = array[np.isfinite(array)]
    mean = complex(finite.mean(dtype=np.complex128)) if finite.size else None
    return None, None, mean, nans, array.size - finite.size - nans


def detail_of(array: Array) -> Detail:
    """The full statistics of an array, from at most 4,096 of its elements at equal distances."""
    kept = array.copy() if array.size <= MAX_KEPT else None
    picture, pictures = _picture(array)
    if array.dtype.kind in "OSUMm" or not array.size:
        return Detail(values=kept, picture=picture, pictures=pictures)
    flat = array.reshape(-1)
    step = -(-flat.size // MAX_SAMPLE)
    sample = flat[::step]
    numbers = np.abs(sample) if sample.dtype.kind == "c" else sample
    numbers = numbers.astype(np.float64)
    finite = numbers[np.isfinite(numbers)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
    has_bins = finite.size > 1 and math.isfinite(high - low) and high > low
    return Detail(
        sampled=sample.size if step > 1 else 0,
        std=float(finite.std()) if finite.size else None,
        zeros=float(np.count_nonzero(numbers == 0)) / numbers.size,
        low=low,
        high=high,
        bins=tuple(np.histogram(finite, BINS, (low, high))[0].tolist()) if has_bins else (),
        values=kept,
        picture=picture,
        pictures=pictures,
    )


def _picture(array: Array) -> tuple[Array | None, int]:
    """The first picture in an array like images, and the number of pictures.

    Images are [n, h, w, channels], [n, h, w], [h, w], or squares of pixels in the rows of [n, h * w].
    """
    if array.dtype.kind not in "fiub" or not array.size:
        return None, 0
    if array.ndim == 4 and min(array.shape[1:3]) > 3:
        first, count = array[0, :, :, 0], array.shape[0] * array.shape[3]
    elif array.ndim == 3 and min(array.shape[1:]) > 3:
        first, count = array[0], array.shape[0]
    elif array.ndim == 2 and math.isqrt(array.shape[1]) ** 2 == array.shape[1] >= 64:
        side = math.isqrt(array.shape[1])
        first, count = array[0].reshape(side, side), array.shape[0]
    elif array.ndim == 2 and min(array.shape) > 3:
        first, count = array, 1
    else:
        return None, 0
    rows, columns = (-(-size // MAX_PICTURE) for size in first.shape)
    return first[::rows, ::columns].astype(np.float32), count


def dtype_name(dtype: np.dtype[Any]) -> str:
    """The name of the type of an array, as graphs have it."""
    if dtype.kind in "OSU":
        return "string"
    try:
        return as_dtype(dtype).text
    except InvalidArgumentError:
        return str(dtype)
