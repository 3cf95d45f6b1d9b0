"""Rendezvous keys: the names of values that are sent from one device to another."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

import msgspec

from graphcore.device_spec import DeviceSpec, parse_full_name
from graphcore.errors import InvalidArgumentError

_PARTS: Final = 5
_INCARNATION: Final = re.compile(r"[0-9a-fA-F]{1,16}")


class RendezvousKey(msgspec.Struct, frozen=True):
    """A parsed key.

    Args:
        full_key: the text.
        src_device, dst_device: the devices as they stand in the text; `src` and `dst` are them parsed.
        src_incarnation: the incarnation of the sending device.
        edge_name: the tensor.
        frame_iter: frame and iteration, `0:0` outside of loops.
    """

    full_key: str
    src_device: str
    src: DeviceSpec
    src_incarnation: int
    dst_device: str
    dst: DeviceSpec
    edge_name: str
    frame_iter: str

    def __str__(self) -> str:
        return self.full_key


def create_key(src_device: str, src_incarnation: int, dst_device: str, name: str, frame_iter: tuple[int, int] = (0, 0)) -> str:
    """The key of tensor `name` on its way from one device to the other.

    Args:
        src_device, dst_device: device names.
        src_incarnation: the incarnation of the sending device, 64 bits.
        name: the tensor.
        frame_iter: frame and iteration.
    """
    frame, iteration = frame_iter
    return f"{src_device};{src_incarnation:016x};{dst_device};{name};{frame}:{iteration}"


@lru_cache(maxsize=4096)
def parse_key(key: str) -> RendezvousKey:
    """Read a key.

    Raises:
        InvalidArgumentError: not five parts, or one of them is empty, no device, or no number.
    """
    parts = key.split(";")
    if len(parts) != _PARTS or not all(parts) or not _INCARNATION.fullmatch(parts[1]):
        raise _invalid(key)
    src_device, incarnation, dst_device, name, frame_iter = parts
    try:
        src, dst = parse_full_name(src_device), parse_full_name(dst_device)
    except InvalidArgumentError:
        raise _invalid(key) from None
    return RendezvousKey(key, src_device, src, int(incarnation, 16), dst_device, dst, name, frame_iter)


def _invalid(key: str) -> InvalidArgumentError:
    return InvalidArgumentError(f"Invalid  rendezvous key: {key}")
