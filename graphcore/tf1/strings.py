"""Functions on strings with TensorFlow 1's signatures, where these differ from those of the ops."""

from __future__ import annotations

from typing import Any

from graphcore.dtypes import as_dtype, float32, int32, string
from graphcore.errors import InvalidArgumentError
from graphcore.graph import Tensor
from graphcore.tf1.calls import apply_one
from graphcore.tf1.framework import convert_to_tensor


def _either(new: Any, old: Any, names: str) -> Any:
    if (new is None) == (old is None):
        raise InvalidArgumentError(f"required exactly one of {names}")
    return old if new is None else new


def decode_raw(
    input_bytes: Any = None,
    out_type: Any = None,
    little_endian: bool = True,
    name: str | None = None,
    bytes: Any = None,
) -> Tensor:
    """Numbers from their bytes, in a further dimension.

    Args:
        input_bytes: strings of one length, a multiple of the bytes of a number.
        out_type: the dtype of the numbers.
        little_endian: the order of the bytes of a number.
        name: the name of the node.
        bytes: an older name of input_bytes.
    """
    strings = _either(input_bytes, bytes, "input_bytes and bytes")
    if out_type is None:
        raise InvalidArgumentError("decode_raw requires out_type, the dtype of the numbers")
    attrs = {"out_type": as_dtype(out_type), "little_endian": little_endian}
    return apply_one("DecodeRaw", [convert_to_tensor(strings, string)], name, attrs)


def reduce_join(
    inputs: Any,
    axis: Any = None,
    keep_dims: bool | None = None,
    separator: str = "",
    name: str | None = None,
    reduction_indices: Any = None,
    keepdims: bool | None = None,
) -> Tensor:
    """The strings of an array joined along dimensions; along all, the last one first, without any.

    Args:
        inputs: strings.
        axis: the dimensions, the first to join first.
        keep_dims: an older name of keepdims.
        separator: written between the strings.
        name: the name of the node.
        reduction_indices: an older name of axis.
        keepdims: keep the dimensions with size 1.
    """
    x = convert_to_tensor(inputs, string)
    axes = axis if axis is not None else reduction_indices
    if axes is None:
        rank = x.shape.rank
        if rank is None:
            raise InvalidArgumentError("reduce_join: required axes, as the rank is not known")
        axes = list(range(rank - 1, -1, -1))
    attrs = {"keep_dims": bool(keepdims or keep_dims), "separator": separator}
    return apply_one("ReduceJoin", [x, convert_to_tensor(axes, int32)], name, attrs)


def string_to_hash_bucket(string_tensor: Any = None, num_buckets: int | None = None, name: str | None = None, input: Any = None) -> Tensor:
    """A bucket for each string, by the hash of older graphs. `input` is a later name of `string_tensor`."""
    x = _either(string_tensor, input, "string_tensor and input")
    return apply_one("StringToHashBucket", [x], name, {"num_buckets": num_buckets})


def string_to_number(string_tensor: Any = None, out_type: Any = float32, name: str | None = None, input: Any = None) -> Tensor:
    """The number that each string shows in decimal form. `input` is a later name of `string_tensor`."""
    x = _either(string_tensor, input, "string_tensor and input")
    return apply_one("StringToNumber", [x], name, {"out_type": as_dtype(out_type)})


def substr(input: Any, pos: Any, len: Any, name: str | None = None, unit: str = "BYTE") -> Tensor:
    """A part of each string: `len` bytes, or characters for the unit UTF8_CHAR, from `pos` on."""
    return apply_one("Substr", [input, pos, len], name, {"unit": unit})


def string_length(input: Any, name: str | None = None, unit: str = "BYTE") -> Tensor:
    """The length of each string in bytes, or in characters for the unit UTF8_CHAR."""
    return apply_one("StringLength", [input], name, {"unit": unit})
