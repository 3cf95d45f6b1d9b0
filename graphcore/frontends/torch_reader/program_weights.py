"""The tensors of exported programs in archives."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from graphcore.errors import InvalidArgumentError
from graphcore.frontends.foreign import WeightRef
from graphcore.frontends.torch_reader.archive import Archive
from graphcore.frontends.torch_reader.schema import Payload, Payloads, Symbolic, decoded
from graphcore.frontends.torch_reader.states import Flat, flattened, read_pickle, weight_of
from graphcore.frontends.torch_reader.tensors import bytes_of, dtype_word, stored_tensor

if TYPE_CHECKING:
    from graphcore.attrs import Array

_FOLDERS: Final = ("weights", "constants")
_STATES: Final = ("serialized_state_dict.pt", "serialized_constants.pt")


class PayloadWeights:
    """The tensors of a package, a member each, by tables of their types.

    Args:
        archive: the package.
        model: the name of the model.
    """

    def __init__(self, archive: Archive, model: str) -> None:
        self._archive = archive
        self._payloads: dict[str, tuple[str, Payload]] = {}
        for folder in _FOLDERS:
            table = f"data/{folder}/{model}_{folder}_config.json"
            if table in archive:
                config = decoded(archive.read(table), Payloads, f"'{table}'").config
                self._payloads |= {name: (f"data/{folder}/{payload.path_name}", payload) for name, payload in config.items()}

    def __call__(self, name: str, dtype: str, shape: tuple[int, ...]) -> WeightRef:
        """A tensor by its name; without elements if there are none or it is no plain tensor."""
        member, payload = self._payloads.get(name, ("", None))
        meta = None if payload is None or payload.use_pickle else payload.tensor_meta
        if meta is None or meta.layout not in {0, 7}:
            return WeightRef(dtype, shape, bytes_of(dtype, shape))
        offset = meta.storage_offset
        start = offset if isinstance(offset, int) else _number(offset) if offset is not None else 0
        shape, strides = tuple([_number(size) for size in meta.sizes]), tuple([_number(stride) for stride in meta.strides])
        return stored_tensor(self._archive, member, dtype_word(meta.dtype), shape, strides, start)


def _number(value: Symbolic) -> int:
    return value.as_int if value.as_int is not None else -1


class StateWeights:
    """The tensors of older files, in archives of their own, opened when a tensor is asked for."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._tables: dict[str, tuple[Archive, Flat]] = {}

    def __call__(self, name: str, dtype: str, shape: tuple[int, ...]) -> WeightRef:
        """A tensor by its name, not yet looked for."""
        if not any(member in self._archive for member in _STATES):
            return WeightRef(dtype, shape, bytes_of(dtype, shape))
        return WeightRef(dtype, shape, bytes_of(dtype, shape), partial(self._load, name))

    def _load(self, name: str) -> Array:
        for member in _STATES:
            if member not in self._archive:
                continue
            if member not in self._tables:
                inner = Archive(self._archive.path, member)
                self._tables[member] = inner, flattened(read_pickle(inner, "data.pkl"), f"'{member}'")
            archive, flat = self._tables[member]
            tensor = flat.tensors.get(name)
            load = None if tensor is None else weight_of(archive, tensor).load
            if load is not None:
                return load()
        raise InvalidArgumentError(f"'{self._archive.path.name}' has no elements for '{name}'")
