"""Saved states: tensors in containers, as `torch.save` writes them, as a flat table."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from graphcore.errors import InvalidArgumentError, ResourceExhaustedError
from graphcore.frontends.torch_reader.pickles import PickleReader, StoredTensor, Thing, Word
from graphcore.frontends.torch_reader.tensors import stored_tensor

if TYPE_CHECKING:
    from graphcore.frontends.foreign import WeightRef
    from graphcore.frontends.torch_reader.archive import Archive

MAX_ITEMS: Final = 1_000_000
"""The most tensors and values of a file."""
MAX_DEPTH: Final = 60
_SHORT: Final = 200


@dataclass(slots=True)
class Flat:
    """The contents of a file.

    Attributes:
        tensors: tensors by their paths.
        values: texts of other values by their paths.
        count: the number of values, with those of which no text is kept.
    """

    tensors: dict[str, StoredTensor] = field(default_factory=dict)
    values: dict[str, str] = field(default_factory=dict)
    count: int = 0


def flattened(value: Any, what: str) -> Flat:
    """The tensors and values in containers, by paths of keys with dots.

    Raises:
        GraphError: containers are nested too deeply, or hold too much.
    """
    flat = Flat()
    waiting: list[tuple[str, Any, int]] = [("", value, 0)]
    seen = 0
    while waiting:
        path, item, depth = waiting.pop()
        seen += 1
        if seen > MAX_ITEMS:
            raise ResourceExhaustedError(f"{what} has more than {MAX_ITEMS:,} tensors and values, the limit")
        if depth > MAX_DEPTH:
            raise InvalidArgumentError(f"{what} has containers that are nested more than {MAX_DEPTH} deep")
        if isinstance(item, StoredTensor):
            flat.tensors[path or "tensor"] = item
        elif isinstance(item, dict | Thing):
            table = item if isinstance(item, dict) else item.state
            waiting += [(f"{path}.{key}" if path else str(key), element, depth + 1) for key, element in reversed(table.items())]
        elif isinstance(item, list | tuple) and any(isinstance(element, StoredTensor | dict | list | tuple | Thing) for element in item):
            waiting += [(f"{path}.{index}" if path else str(index), item[index], depth + 1) for index in reversed(range(len(item)))]
        else:
            flat.count += 1
            if len(flat.values) < _SHORT:
                flat.values[path] = _text(item)
    return flat


def _text(item: object) -> str:
    if isinstance(item, Word):
        return item.name
    if isinstance(item, list | tuple):
        return f"[{', '.join(_text(element) for element in item[:20])}{', …' if len(item) > 20 else ''}]"
    return item[:_SHORT] if isinstance(item, str) else repr(item)[:_SHORT]


def read_pickle(archive: Archive, member: str, has_things: bool = False) -> Any:
    """The object in a member of an archive.

    Raises:
        GraphError: it is damaged, or holds more than tensors and plain containers.
    """
    return PickleReader(archive.read(member), has_things, f"'{member}' in '{archive.path.name}'").read()


def weight_of(archive: Archive, tensor: StoredTensor, folder: str = "data") -> WeightRef:
    """A tensor of an archive, not yet read."""
    return stored_tensor(archive, f"{folder}/{tensor.storage.key}", tensor.dtype, tensor.shape, tensor.strides, tensor.offset)
