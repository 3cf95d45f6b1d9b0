"""Shapes of layers' results, by Keras's rules where these are simple and certain."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, Final

from graphcore.errors import InvalidArgumentError

Shape = tuple[int | None, ...] | None

_SAME: Final = re.compile(
    r"activation|relu|leakyrelu|prelu|elu|softmax|(spatial|gaussian|alpha)?dropout([123]d)?|gaussiannoise|(batch|layer|group|unit|rms)normalization"
    r"|activityregularization|rescaling|identity|masking"
)
_MERGING: Final = re.compile(r"add|subtract|multiply|average|maximum|minimum")
_CONVOLUTION: Final = re.compile(r"(depthwise|separable)?conv[123]d")
_POOLING: Final = re.compile(r"(max|average)pooling[123]d")


def result_shape(kind: str, config: Mapping[str, Any], inputs: Sequence[Shape]) -> Shape:
    """The shape of a layer's only result; None if it is not known by a rule."""
    shape = inputs[0] if inputs else None
    if not inputs or any(one is None for one in inputs) or shape is None:
        return None
    word = kind.lower()
    if _SAME.fullmatch(word) and len(inputs) == 1:
        return shape
    if _MERGING.fullmatch(word):
        return shape if all(one == shape for one in inputs) else None
    if kind == "Dense":
        return (*shape[:-1], _int(config["units"]))
    if kind == "Flatten":
        rest = shape[1:]
        return shape[0], None if None in rest else prod([size for size in rest if size is not None])
    if kind == "Concatenate":
        return _joined(inputs, config.get("axis", -1))
    if kind == "Embedding":
        return (*shape, _int(config["output_dim"]))
    if kind.startswith("Global") and "Pooling" in kind:
        return _pooled(shape, config)
    return _spatial(word, config, shape)


def _pooled(shape: tuple[int | None, ...], config: Mapping[str, Any]) -> Shape:
    is_last = config.get("data_format", "channels_last") != "channels_first"
    channels = shape[-1] if is_last else shape[1]
    if not config.get("keepdims"):
        return shape[0], channels
    ones = (1,) * (len(shape) - 2)
    return (shape[0], *ones, channels) if is_last else (shape[0], channels, *ones)


def _spatial(kind: str, config: Mapping[str, Any], shape: tuple[int | None, ...]) -> Shape:
    """The shape after a convolution, a pooling or a padding."""
    is_last = config.get("data_format", "channels_last") != "channels_first"
    sizes = shape[1:-1] if is_last else shape[2:]
    channels = shape[-1] if is_last else shape[1]
    if re.fullmatch(r"zeropadding[123]d", kind):
        pairs = [_pair(item) for item in _list(config["padding"], len(sizes))]
        new = [None if size is None else size + before + after for size, (before, after) in zip(sizes, pairs, strict=True)]
    elif _POOLING.fullmatch(kind):
        windows = _list(config["pool_size"], len(sizes))
        new = _windowed(sizes, windows, _list(config["strides"] or config["pool_size"], len(sizes)), [1] * len(sizes), config["padding"])
    elif _CONVOLUTION.fullmatch(kind):
        windows, strides = _list(config["kernel_size"], len(sizes)), _list(config["strides"], len(sizes))
        new = _windowed(sizes, windows, strides, _list(config.get("dilation_rate", 1), len(sizes)), config["padding"])
        if kind.startswith("depthwise"):
            channels = None if channels is None else channels * _int(config.get("depth_multiplier", 1))
        else:
            channels = _int(config["filters"])
    else:
        return None
    return (shape[0], *new, channels) if is_last else (shape[0], channels, *new)


def _windowed(
    sizes: Sequence[int | None], windows: Sequence[Any], strides: Sequence[Any], dilations: Sequence[Any], padding: object
) -> list[int | None]:
    windowed: list[int | None] = []
    for size, window, stride, dilation in zip(sizes, windows, strides, dilations, strict=True):
        if size is None:
            windowed.append(None)
        elif padding in {"same", "causal"}:
            windowed.append(-(-size // _int(stride)))
        else:
            windowed.append(max(0, (size - (_int(window) - 1) * _int(dilation) - 1) // _int(stride) + 1))
    return windowed


def _joined(inputs: Sequence[Shape], axis: object) -> Shape:
    shapes = [shape for shape in inputs if shape is not None]
    rank = len(shapes[0])
    place = _int(axis) % rank if rank else 0
    if any(len(shape) != rank for shape in shapes):
        return None
    sizes = [shape[place] for shape in shapes]
    total = None if None in sizes else sum([size for size in sizes if size is not None])
    return (*shapes[0][:place], total, *shapes[0][place + 1 :])


def _list(value: Any, count: int) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value] * count


def _pair(value: Any) -> tuple[int, int]:
    return (_int(value[0]), _int(value[1])) if isinstance(value, list | tuple) else (_int(value), _int(value))


def _int(value: Any) -> int:
    if not isinstance(value, int) or not 0 < abs(value) + 1 < 1 << 40:
        raise InvalidArgumentError(f"Required a number in the config of a layer, got {str(value)[:40]}")
    return value
