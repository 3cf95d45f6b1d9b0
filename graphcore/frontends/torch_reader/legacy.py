"""The form of `torch.save` before zip archives: a row of pickles, then the elements of all storages."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from graphcore.errors import InvalidArgumentError
from graphcore.frontends.foreign import WeightRef
from graphcore.frontends.reading import mapped_bytes, part_of, unmapped
from graphcore.frontends.torch_reader.pickles import PickleReader, StoredTensor
from graphcore.frontends.torch_reader.tensors import bytes_of, item_type, strided

if TYPE_CHECKING:
    from pathlib import Path

    from graphcore.frontends.frontend import Source

BEGINNING: Final = b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19."
"""The pickle of the number that such files begin with."""
_COUNT: Final = 8


def read_legacy(source: Source) -> tuple[Any, Callable[[StoredTensor], WeightRef]]:
    """The object of a file, and what gives its tensors.

    Raises:
        GraphError: it is damaged, or holds more than tensors and plain containers.
    """
    data = mapped_bytes(source)
    what = f"'{source.path.name}'" if source.path is not None else "the file"
    place = len(BEGINNING)
    parts = []
    for _ in range(4):  # the version, facts of the machine, the object, the keys of storages
        reader = PickleReader(data, False, what, place)
        parts.append(reader.read())
        place = reader.place
    keys = parts[3]
    storages = _storages(parts[2], {})
    if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
        raise InvalidArgumentError(f"{what} has no list of storages")
    places: dict[str, int] = {}
    for key in keys:
        dtype = storages.get(key, "")
        kind = item_type(dtype)
        count = int.from_bytes(data[place : place + _COUNT], "little")
        if kind is None or place + _COUNT + count * kind.itemsize > len(data):
            break  # what follows cannot be found; its tensors have no elements
        places[key] = place + _COUNT
        place += _COUNT + count * kind.itemsize
    size = len(data)
    return parts[2], partial(_weight, unmapped(source, data), size, places)


def _storages(value: Any, dtypes: dict[str, str]) -> dict[str, str]:
    """The types of all storages of an object by their keys."""
    waiting, count = [value], 0
    while waiting and count < 1_000_000:
        item = waiting.pop()
        count += 1
        if isinstance(item, StoredTensor):
            dtypes[item.storage.key] = item.storage.dtype
        elif isinstance(item, dict):
            waiting += item.values()
        elif isinstance(item, list | tuple):
            waiting += item
    return dtypes


def _weight(kept: Path | bytes, size: int, places: dict[str, int], tensor: StoredTensor) -> WeightRef:
    start = places.get(tensor.storage.key)
    nbytes = bytes_of(tensor.dtype, tensor.shape)
    if start is None:
        return WeightRef(tensor.dtype, tensor.shape, nbytes)
    part = partial(_part, kept, size, start)
    load = partial(strided, part, tensor.dtype, tensor.shape, tensor.strides, tensor.offset)
    return WeightRef(tensor.dtype, tensor.shape, nbytes, load, f"from byte {start:,}")


def _part(kept: Path | bytes, size: int, start: int, offset: int, length: int) -> bytes:
    if offset < 0 or start + offset + length > size:
        raise InvalidArgumentError(f"Required {length:,} bytes from byte {start + offset:,}, the file has {size:,}")
    data = part_of(kept, start + offset, length)
    if len(data) != length:
        raise InvalidArgumentError(
            f"Required {length:,} bytes from byte {start + offset:,}: the file has become shorter since it was opened"
        )
    return data
