"""Copies between devices that a placement causes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import msgspec

from graphcore.graph import Node, Tensor
from graphcore.placement.device import Device


class Copy(msgspec.Struct, frozen=True):
    """The copy of a tensor from one device to another.

    Args:
        tensor: the tensor.
        source, destination: the names of the devices.
        bytes: its size; None if the shape or the size of an element is unknown.
    """

    tensor: str
    source: str
    destination: str
    bytes: int | None

    def __str__(self) -> str:
        size = "an unknown number of" if self.bytes is None else f"{self.bytes:,}"
        return f"{self.tensor} from {self.source} to {self.destination}: {size} bytes"


def copies_of(node: Node, devices: Mapping[Node, Device]) -> list[Copy]:
    """The copies of the inputs and outputs of a node: each tensor goes to each other device once."""
    here = devices.get(node)
    if here is None:
        return []
    copies: dict[Copy, None] = {}
    for tensor in node.inputs:
        there = devices.get(tensor.node)
        if there is not None and there is not here:
            copies[Copy(tensor.name, there.name, here.name, size_of(tensor))] = None
    for tensor in node.outputs:
        for consumer in tensor.consumers():
            there = devices.get(consumer)
            if there is not None and there is not here:
                copies[Copy(tensor.name, here.name, there.name, size_of(tensor))] = None
    return list(copies)


def size_of(tensor: Tensor) -> int | None:
    """The bytes of a tensor, None if unknown."""
    dims = tensor.shape.as_list() if tensor.shape.rank is not None else None
    size = tensor.dtype.base.size
    if dims is None or None in dims or not size or tensor.dtype.base.text == "string":
        return None
    return math.prod([dim for dim in dims if dim is not None]) * size


def total_text(copies: Sequence[Copy]) -> str:
    """The number of copies and their bytes in words."""
    known_bytes = sum([copy.bytes for copy in copies if copy.bytes is not None])
    unknown = sum([copy.bytes is None for copy in copies])
    return f"{len(copies)}, {known_bytes:,} bytes" + (f" and {unknown} of unknown size" if unknown else "")
