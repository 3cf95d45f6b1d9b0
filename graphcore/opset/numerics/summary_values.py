"""Values in summaries: histograms with TensorFlow's buckets, images as bytes, sound as WAV."""

from __future__ import annotations

import functools
import io
import sys
import wave
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from graphcore.definitions.wire.schema import HistogramProto

_FIRST_LIMIT: Final = 1e-12
_LAST_LIMIT: Final = 1e20
_GROWTH: Final = 1.1
_LARGEST: Final = sys.float_info.max
_ALMOST_ZERO: Final = 1e-6
_LOUDEST: Final = 1 << 15


@functools.cache
def _limits() -> npt.NDArray[np.float64]:
    """The upper limits of the buckets, each a tenth farther from 0 than the one before."""
    positive = []
    limit = _FIRST_LIMIT
    while limit < _LAST_LIMIT:
        positive.append(limit)
        limit *= _GROWTH
    positive.append(_LARGEST)
    return np.array([*[-limit for limit in reversed(positive)], 0.0, *positive])


def histogram(values: Any) -> Any:
    """The HistogramProto of an array of finite numbers. Each run of empty buckets is one bucket."""
    limits = _limits()
    numbers = np.asarray(values).reshape(-1).astype(np.float64)
    message = HistogramProto(min=_LARGEST, max=-_LARGEST, num=numbers.size)
    if numbers.size:
        message.min, message.max = numbers.min(), numbers.max()
        message.sum, message.sum_squares = np.cumsum(numbers)[-1], np.cumsum(numbers * numbers)[-1]  # in order, as TensorFlow adds
    counts = np.bincount(np.minimum(np.searchsorted(limits, numbers, "right"), limits.size - 1), minlength=limits.size)
    is_empty = counts == 0
    is_last = ~is_empty | np.append(~is_empty[1:], True)
    message.bucket_limit.extend(limits[is_last].tolist())
    message.bucket.extend(counts[is_last].astype(np.float64).tolist())
    return message


def as_pixels(image: Any, bad_colour: Any) -> Any:
    """A float image [height, width, channels] as bytes, scaled so that the largest fits.

    Numbers from 0 on are spread over 0 to 255, others symmetrically around 128. Pixels that are not finite get `bad_colour`.
    """
    if image.dtype == np.uint8:
        return image
    finite = np.isfinite(image).all(-1)
    inside = image[finite]
    low, high = (inside.min(), inside.max()) if inside.size else (0, 0)
    largest = np.float32(max(abs(low), abs(high)) if low < 0 else high)  # for doubles too, as in TensorFlow
    most, offset = (np.float32(127), 128) if low < 0 else (np.float32(255), 0)
    scale = image.dtype.type(0 if largest < _ALMOST_ZERO else most / largest)
    pixels = np.empty(image.shape, np.uint8)
    pixels[...] = bad_colour[: image.shape[-1]]
    pixels[finite] = (inside * scale + image.dtype.type(offset)).astype(np.uint8)
    return pixels


def wav_bytes(sound: Any, sample_rate: int) -> bytes:
    """Sound as a WAV file of 16 bits. sound: floats in [-1, 1], [frames, channels]."""
    scaled = np.asarray(sound, np.float32) * np.float32(_LOUDEST)
    rounded = np.trunc(scaled + np.copysign(np.float32(0.5), scaled))  # halves go away from 0
    samples = np.clip(rounded, -_LOUDEST, _LOUDEST - 1).astype("<i2")
    target = io.BytesIO()
    with wave.open(target, "wb") as file:
        file.setnchannels(samples.shape[1])
        file.setsampwidth(2)
        file.setframerate(sample_rate)
        file.writeframes(samples.tobytes())
    return target.getvalue()
