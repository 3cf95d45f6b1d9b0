"""`tf.signal`: spectra of real signals, frames, short-time and cosine transforms, mel scales."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from graphcore.dtypes import as_dtype, complex64, complex128, float32, float64, int32
from graphcore.errors import InvalidArgumentError
from graphcore.graph import Tensor
from graphcore.graph.shapes.constant_values import constant_value
from graphcore.tf1.arrays.layout import concat, expand_dims, reshape, shape, transpose
from graphcore.tf1.arrays.slices import gather, pad
from graphcore.tf1.calls import apply_one
from graphcore.tf1.framework import constant, convert_to_tensor, name_scope
from graphcore.tf1.math.elementwise import cast, matmul
from graphcore.tf1.math.reductions import reduction

_WindowFunction = Callable[..., Tensor]
_INVERSE_TYPES = {1: 1, 2: 3, 3: 2, 4: 4}


# ---- spectra ---------------------------------------------------------------------------------------------------------


def _real_to_half(op: str, rank: int, x: Any, fft_length: Any, name: str | None) -> Tensor:
    with name_scope(name or op.lower()):
        tensor = convert_to_tensor(x)
        lengths = shape(tensor)[-rank:] if fft_length is None else convert_to_tensor(fft_length, int32)
        if fft_length is not None:
            tensor = _filled_up(tensor, rank, lengths)
        wanted = complex128 if tensor.dtype.base is float64 else complex64
        return apply_one(op, [tensor, lengths], None, {"Tcomplex": wanted})


def _half_to_real(op: str, rank: int, x: Any, fft_length: Any, name: str | None) -> Tensor:
    with name_scope(name or op.lower()):
        tensor = convert_to_tensor(x)
        lengths = fft_length
        if lengths is None:
            sizes = shape(tensor)
            whole = apply_one("Maximum", [2 * (sizes[-1:] - 1), 0], None)
            lengths = concat([sizes[-rank:-1], whole], 0) if rank > 1 else whole
        lengths = convert_to_tensor(lengths, int32)
        if fft_length is not None:
            halves = concat([lengths[:-1], apply_one("FloorDiv", [lengths[-1:], 2], None) + 1], 0)
            tensor = _filled_up(tensor, rank, halves)
        wanted = float64 if tensor.dtype.base is complex128 else float32
        return apply_one(op, [tensor, lengths], None, {"Treal": wanted})


def _filled_up(tensor: Tensor, rank: int, sizes: Tensor) -> Tensor:
    """The tensor, with zeros where its last `rank` dimensions are smaller than the sizes."""
    own_shape, constant_sizes = tensor.shape, constant_value(sizes)
    if own_shape.rank is None or own_shape.rank < rank:
        raise InvalidArgumentError(f"required an input of known rank {rank} or more, got {own_shape}")
    if constant_sizes is not None and all(
        now is not None and now >= size for now, size in zip(own_shape.as_list()[-rank:], constant_sizes.tolist(), strict=True)
    ):
        return tensor
    missing = apply_one("Maximum", [sizes - shape(tensor)[-rank:], 0], None)
    after = concat([np.zeros(own_shape.rank - rank, np.int32), missing], 0) if own_shape.rank > rank else missing
    return pad(tensor, apply_one("Pack", [[apply_one("ZerosLike", [after], None), after]], None, {"axis": 1}))


def rfft(input_tensor: Any, fft_length: Any = None, name: str | None = None) -> Tensor:
    """The half spectrum of real numbers along the last dimension: [..., n] -> [..., fft_length / 2 + 1]."""
    return _real_to_half("RFFT", 1, input_tensor, fft_length, name)


def rfft2d(input_tensor: Any, fft_length: Any = None, name: str | None = None) -> Tensor:
    """The half spectrum of real numbers over the last two dimensions."""
    return _real_to_half("RFFT2D", 2, input_tensor, fft_length, name)


def rfft3d(input_tensor: Any, fft_length: Any = None, name: str | None = None) -> Tensor:
    """The half spectrum of real numbers over the last three dimensions."""
    return _real_to_half("RFFT3D", 3, input_tensor, fft_length, name)


def irfft(input_tensor: Any, fft_length: Any = None, name: str | None = None) -> Tensor:
    """The real numbers of a half spectrum: [..., m] -> [..., fft_length], 2 (m - 1) by default."""
    return _half_to_real("IRFFT", 1, input_tensor, fft_length, name)


def irfft2d(input_tensor: Any, fft_length: Any = None, name: str | None = None) -> Tensor:
    """The real numbers of a half spectrum over the last two dimensions."""
    return _half_to_real("IRFFT2D", 2, input_tensor, fft_length, name)


def irfft3d(input_tensor: Any, fft_length: Any = None, name: str | None = None) -> Tensor:
    """The real numbers of a half spectrum over the last three dimensions."""
    return _half_to_real("IRFFT3D", 3, input_tensor, fft_length, name)


# ---- frames ----------------------------------------------------------------------------------------------------------


def frame(
    signal: Any, frame_length: Any, frame_step: Any, pad_end: bool = False, pad_value: Any = 0, axis: int = -1, name: str | None = None
) -> Tensor:
    """Overlapping frames of a signal: [..., n, ...] -> [..., frames, frame_length, ...].

    Args:
        signal: of known rank.
        frame_length, frame_step: the samples of a frame, and from one frame to the next.
        pad_end: fill up the last frames, so that each `frame_step` begins one.
        pad_value: the value to fill with.
        axis: the dimension of the samples.
        name: the name scope.
    """
    with name_scope(name or "frame"):
        tensor = convert_to_tensor(signal)
        rank = tensor.shape.rank
        if rank is None or not -rank <= axis < rank:
            raise InvalidArgumentError(f"frame: required a signal with dimension {axis}, got {tensor.shape}")
        along = axis % rank
        length, step = convert_to_tensor(frame_length, int32), convert_to_tensor(frame_step, int32)
        samples = shape(tensor)[along]
        if pad_end:
            frames = apply_one("FloorDiv", [samples + step - 1, step], None)
            missing = apply_one("Maximum", [(frames - 1) * step + length - samples, 0], None)
            paddings = [[0, missing if i == along else 0] for i in range(rank)]
            tensor = pad(tensor, paddings, constant_values=cast(pad_value, tensor.dtype.base))
        else:
            frames = apply_one("Maximum", [1 + apply_one("FloorDiv", [samples - length, step], None), 0], None)
        starts = expand_dims(apply_one("Range", [0, frames, 1], None) * step, 1)
        return gather(tensor, starts + apply_one("Range", [0, length, 1], None), axis=along)


def overlap_and_add(signal: Any, frame_step: Any, name: str | None = None) -> Tensor:
    """The signal of overlapping frames, which are added: [..., frames, frame_length] -> [..., n]."""
    with name_scope(name or "overlap_and_add"):
        tensor, step = convert_to_tensor(signal), convert_to_tensor(frame_step, int32)
        rank = tensor.shape.rank
        if rank is None or rank < 2:
            raise InvalidArgumentError(f"overlap_and_add: required frames of rank 2 or more, got {tensor.shape}")
        sizes = shape(tensor)
        frames, length = sizes[-2], sizes[-1]
        places = expand_dims(apply_one("Range", [0, frames, 1], None) * step, 1) + apply_one("Range", [0, length, 1], None)
        by_sample = transpose(tensor, [rank - 2, rank - 1, *range(rank - 2)])
        total = apply_one("Maximum", [(frames - 1) * step + length, 0], None)
        added = apply_one("UnsortedSegmentSum", [by_sample, places, total], None)
        return transpose(added, [*range(1, rank - 1), 0])


# ---- windows ---------------------------------------------------------------------------------------------------------


def hann_window(window_length: Any, periodic: bool = True, dtype: object = float32, name: str | None = None) -> Tensor:
    """Weights that rise and fall as a cosine from 0 to 1: [window_length]."""
    return _raised_cosine(window_length, periodic, dtype, name or "hann_window", 0.5, 0.5)


def hamming_window(window_length: Any, periodic: bool = True, dtype: object = float32, name: str | None = None) -> Tensor:
    """Weights that rise and fall as a cosine from 0.08 to 1: [window_length]."""
    return _raised_cosine(window_length, periodic, dtype, name or "hamming_window", 0.54, 0.46)


def _raised_cosine(window_length: Any, periodic: bool, dtype: object, name: str, a: float, b: float) -> Tensor:
    length = _known(window_length, "window_length")
    if length == 1:
        return constant(np.ones(1), as_dtype(dtype), name=name)
    steps = length + (1 - length % 2 if periodic else 0) - 1
    return constant(a - b * np.cos(2 * math.pi * np.arange(length) / steps), as_dtype(dtype), name=name)


def inverse_stft_window_fn(frame_step: Any, forward_window_fn: _WindowFunction = hann_window, name: str | None = None) -> _WindowFunction:
    """The window for `inverse_stft` that gives the signal after `stft` with `forward_window_fn`."""

    def window(frame_length: Any, dtype: object = float32) -> Tensor:
        with name_scope(name or "inverse_stft_window_fn"):
            length, step = _known(frame_length, "frame_length"), _known(frame_step, "frame_step")
            forward = forward_window_fn(frame_length, dtype=dtype)
            overlaps = -(-length // step)
            squares = reshape(pad(forward * forward, [[0, overlaps * step - length]]), [overlaps, step])
            sums = apply_one("Tile", [reduction("Sum", squares, 0, True), [overlaps, 1]], None)
            return forward / reshape(sums, [-1])[:length]

    return window


def _known(value: Any, what: str) -> int:
    """An integer that is known when the graph is built."""
    number = constant_value(value) if isinstance(value, Tensor) else value
    if number is None:
        raise InvalidArgumentError(f"{what}: required a number that is known when the graph is built, got {value!r}")
    return int(number)


# ---- short-time transforms -------------------------------------------------------------------------------------------


def stft(
    signals: Any,
    frame_length: Any,
    frame_step: Any,
    fft_length: Any = None,
    window_fn: _WindowFunction | None = hann_window,
    pad_end: bool = False,
    name: str | None = None,
) -> Tensor:
    """The spectra of overlapping frames: [..., n] -> [..., frames, fft_length / 2 + 1].

    Args:
        signals: real signals.
        frame_length, frame_step: see `frame`.
        fft_length: the samples of the transform; by default the next power of 2 from `frame_length` on.
        window_fn: takes a length and a dtype, gives the weights of a frame's samples; None for 1.
        pad_end: see `frame`.
        name: the name scope.
    """
    with name_scope(name or "stft"):
        frames = frame(signals, frame_length, frame_step, pad_end)
        if window_fn is not None:
            frames = frames * window_fn(frame_length, dtype=frames.dtype.base)
        return rfft(frames, [_fft_length(frame_length, fft_length)])


def inverse_stft(
    stfts: Any,
    frame_length: Any,
    frame_step: Any,
    fft_length: Any = None,
    window_fn: _WindowFunction | None = hann_window,
    name: str | None = None,
) -> Tensor:
    """The signal of spectra of frames: [..., frames, fft_length / 2 + 1] -> [..., n]. The arguments are those of `stft`."""
    with name_scope(name or "inverse_stft"):
        length, whole = _known(frame_length, "frame_length"), _known(_fft_length(frame_length, fft_length), "fft_length")
        frames = irfft(stfts, [whole])[..., : min(length, whole)]
        if length > whole:
            rank = frames.shape.rank or 0
            frames = pad(frames, [[0, length - whole if i == rank - 1 else 0] for i in range(rank)])
        if window_fn is not None:
            frames = frames * window_fn(frame_length, dtype=frames.dtype.base)
        return overlap_and_add(frames, frame_step)


def _fft_length(frame_length: Any, fft_length: Any) -> Any:
    if fft_length is not None:
        return fft_length
    return 2 ** max(_known(frame_length, "frame_length") - 1, 0).bit_length()


# ---- cosine transforms -----------------------------------------------------------------------------------------------


def dct(input: Any, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None, name: str | None = None) -> Tensor:
    """The discrete cosine transform of the last dimension, whose size must be known.

    Args:
        input: floating numbers.
        type: 1, 2, 3 or 4.
        n: the size; the input is cut or filled up with zeros.
        axis: -1.
        norm: None, or "ortho" for an orthogonal transform (not of type 1).
        name: the name scope.
    """
    if axis != -1 or type not in _INVERSE_TYPES or norm not in (None, "ortho") or (type == 1 and norm is not None):
        raise InvalidArgumentError(f"dct: required axis -1, type 1 to 4 and norm None or 'ortho', got {axis}, {type} and {norm!r}")
    with name_scope(name or "dct"):
        tensor = convert_to_tensor(input)
        length = None if tensor.shape.rank in (None, 0) else tensor.shape.as_list()[-1]
        size = length if n is None else n
        if length is None or size is None:
            raise InvalidArgumentError(f"dct: required a known size of the last dimension, got {tensor.shape}")
        matrix = _cosines(type, size, norm)
        rows = np.zeros((length, size))
        rows[: min(length, size)] = matrix[: min(length, size)]
        leading = shape(tensor)[:-1]
        product = matmul(reshape(tensor, [-1, length]), constant(rows, tensor.dtype.base))
        result = reshape(product, concat([leading, [size]], 0))
        result.set_shape([*tensor.shape.as_list()[:-1], size])
        return result


def idct(input: Any, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None, name: str | None = None) -> Tensor:
    """The inverse of `dct` of this type, up to a factor without a norm."""
    if type not in _INVERSE_TYPES:
        raise InvalidArgumentError(f"idct: required a type from 1 to 4, got {type}")
    return dct(input, _INVERSE_TYPES[type], n, axis, norm, name or "idct")


def _cosines(kind: int, size: int, norm: str | None) -> np.ndarray[Any, np.dtype[np.float64]]:
    """The matrix of a cosine transform: [place, frequency]."""
    place, frequency = np.arange(size)[:, None], np.arange(size)[None, :]
    if kind == 1:
        if size < 2:
            raise InvalidArgumentError(f"dct: type 1 requires 2 elements or more, got {size}")
        ends = np.where((place == 0) | (place == size - 1), 1.0, 2.0)
        return np.asarray(ends * np.cos(math.pi * place * frequency / (size - 1)))
    half_place, half_frequency = (place + 0.5 if kind in (2, 4) else place), (frequency + 0.5 if kind in (3, 4) else frequency)
    matrix = 2 * np.cos(math.pi * half_place * half_frequency / size)
    if kind == 3:
        matrix[0] /= 2
    if norm is None:
        return np.asarray(matrix)
    if kind == 3:
        matrix[0] *= math.sqrt(2)
        return np.asarray(matrix * math.sqrt(0.5 / size))
    matrix *= math.sqrt(0.5 / size)
    if kind == 2:
        matrix[:, 0] /= math.sqrt(2)
    return np.asarray(matrix)


# ---- mel scales ------------------------------------------------------------------------------------------------------


def linear_to_mel_weight_matrix(
    num_mel_bins: int = 20,
    num_spectrogram_bins: int = 129,
    sample_rate: Any = 8000,
    lower_edge_hertz: float = 125.0,
    upper_edge_hertz: float = 3800.0,
    dtype: object = float32,
    name: str | None = None,
) -> Tensor:
    """The weights of frequencies in bands of the mel scale: [num_spectrogram_bins, num_mel_bins]."""
    rate = float(_number(sample_rate, "sample_rate"))
    if not 0 <= lower_edge_hertz < upper_edge_hertz <= rate / 2 or num_mel_bins < 1:
        raise InvalidArgumentError(
            f"linear_to_mel_weight_matrix: required 0 <= lower_edge_hertz < upper_edge_hertz <= sample_rate / 2 and bands, got "
            f"{lower_edge_hertz}, {upper_edge_hertz}, {rate} and {num_mel_bins}"
        )
    bins = _mel(np.linspace(0.0, rate / 2, num_spectrogram_bins)[1:])[:, None]
    edges = np.linspace(_mel(np.float64(lower_edge_hertz)), _mel(np.float64(upper_edge_hertz)), num_mel_bins + 2)
    lower, center, upper = edges[:-2], edges[1:-1], edges[2:]
    weights = np.maximum(0.0, np.minimum((bins - lower) / (center - lower), (upper - bins) / (upper - center)))
    return constant(np.pad(weights, [[1, 0], [0, 0]]), as_dtype(dtype), name=name or "linear_to_mel_weight_matrix")


def _mel(hertz: Any) -> Any:
    return 1127.0 * np.log1p(hertz / 700.0)


def _number(value: Any, what: str) -> Any:
    number = constant_value(value) if isinstance(value, Tensor) else value
    if number is None:
        raise InvalidArgumentError(f"{what}: required a number that is known when the graph is built, got {value!r}")
    return number


def mfccs_from_log_mel_spectrograms(log_mel_spectrograms: Any, name: str | None = None) -> Tensor:
    """The cepstral coefficients of logarithms of mel spectra: [..., bands] -> [..., bands]."""
    with name_scope(name or "mfccs_from_log_mel_spectrograms"):
        tensor = convert_to_tensor(log_mel_spectrograms)
        bands: Sequence[int | None] = tensor.shape.as_list()
        return dct(tensor, 2) * (1.0 / math.sqrt(2.0 * (bands[-1] or 1)))
