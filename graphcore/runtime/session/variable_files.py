"""The values of variables in files."""

from __future__ import annotations

import os
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any, Final

import numpy as np

from graphcore import dtypes
from graphcore.attrs import Array
from graphcore.dtypes import as_dtype
from graphcore.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError
from graphcore.graph import Graph, Node
from graphcore.graph.model.argument_errors import refuse
from graphcore.kernel_context import ResourceManager, Stored, on_host
from graphcore.shapes import Shape, as_shape
from graphcore.support.critical_section import critical_contextmanager, critical_section
from graphcore.support.replacing import replacing

_SUFFIX: Final = ".npy"
_FLAWS: Final = (
    *(OSError, EOFError, ValueError, TypeError, KeyError, SyntaxError, RuntimeError, OverflowError, MemoryError),
    *(tokenize.TokenError, struct.error, zipfile.BadZipFile, zlib.error),
)
"""The errors of reading an archive with a damaged directory, array header or array."""


def write_values(graph: Graph, resources: ResourceManager, path: str | os.PathLike[str]) -> None:
    """Write the values of all variables of a graph to a file; see `gc.save_variables`."""
    storages, place = _storages(graph, resources), _checked_path(path)
    if not storages:
        raise FailedPreconditionError("There is no variable to save in the session's graph")
    values = {name: _stored(name, storage) for name, storage in storages.items()}
    with replacing(place) as file:
        _write(file, values)


def read_values(path: Any) -> dict[str, Array]:
    """The values in a file of `write_values`, by the names of variables.

    Raises:
        NotFoundError: there is no such file.
        InvalidArgumentError: it is no such file.
    """
    return _read(_checked_path(path))


def read_checkpoint(graph: Graph, path: Any) -> dict[str, Array]:
    """The values for the variables of a graph in a checkpoint.

    It is a file of `write_values`, or a checkpoint of TensorFlow's V2 format. Of the latter values without a variable in the graph are left out.

    Raises:
        NotFoundError: there is no such checkpoint.
        InvalidArgumentError: it is neither, or holds nothing for the variables of the graph.
    """
    from graphcore import checkpoints  # noqa: PLC0415 - it loads protobuf, which most sessions never need

    place = _checked_path(path)
    if place.exists() or not Path(checkpoints.index_path(os.fspath(place))).exists():
        return _read(place)
    reader = checkpoints.CheckpointReader(os.fspath(place))
    names = [name for _, name in _variable_nodes(graph).values() if reader.has_tensor(name)]
    if not names:
        raise InvalidArgumentError(f"'{place}' holds no value of a variable of the session's graph")
    return {name: reader.get_tensor(name) for name in names}


def restore_values(graph: Graph, resources: ResourceManager, values: Mapping[str, Array], path: Any = None) -> None:
    """Set all variables of a graph to values, or none of them.

    Args:
        values: by the names of variables.
        path: the file that holds exactly these variables; None if variables may be left out.

    Raises:
        NotFoundError: a value is missing.
        InvalidArgumentError: there is a value for another variable, or one of another shape or dtype.
    """
    storages = _storages(graph, resources)
    if path is not None:
        _check_complete(storages, values, os.fspath(path))
    fitting = [(storages[name], _fitted(name, storages[name], value)) for name, value in values.items()]
    before = [(storage, storage.current()) for storage, _ in fitting]
    with critical_section:
        try:
            for storage, value in fitting:
                storage.replace(value)
        except Exception:  # all or nothing
            for storage, old in before:
                storage.replace(old)
            raise


def _check_complete(storages: Mapping[str, Stored], values: Mapping[str, Array], path: str) -> None:
    missing = [name for name in storages if name not in values]
    if missing:
        raise NotFoundError(f"'{path}' lacks the variables {_listed(missing)}; it holds {_listed(values)}", node=missing[0])
    unknown = [name for name in values if name not in storages]
    if unknown:
        raise InvalidArgumentError(
            f"'{path}' holds {_listed(unknown)}, which the session's graph does not have; it has {_listed(storages)}"
        )


def _variable_nodes(graph: Graph) -> dict[tuple[str, str], tuple[Node, str]]:
    """The first node of each variable and its name, by container and shared name."""
    found: dict[tuple[str, str], tuple[Node, str]] = {}
    for node in graph.op_nodes():
        if node.registration.traits.role == "variable":
            container, shared = (_text(node.get_attr(name)) for name in ("container", "shared_name"))
            found.setdefault((container, shared or node.name), (node, node.name))  # nodes with a shared name are one variable
    return found


def _storages(graph: Graph, resources: ResourceManager) -> dict[str, Stored]:
    """The storage of each variable by the name of its node."""
    found: dict[str, Stored] = {}
    for place, (node, name) in _variable_nodes(graph).items():
        dtype, shape = as_dtype(node.get_attr("dtype")), as_shape(node.get_attr("shape"))
        found[name] = resources.stored(*place, dtype, shape, node.source, node.op, node.name)
    return found


def _checked_path(path: Any) -> Path:
    if not isinstance(path, str | os.PathLike) or not isinstance(os.fspath(path), str):
        refuse("path", "the name of a file", path)
    return Path(path)


def _text(value: object) -> str:
    return value.decode() if isinstance(value, bytes) else ""


def _stored(name: str, storage: Stored) -> Array:
    if storage.dtype is dtypes.string:
        raise InvalidArgumentError(f"Variable '{name}' holds strings, which a .npz file cannot", node=name, source=storage.source)
    value = on_host(storage.read())
    # A dtype unknown to NumPy is written as bytes; the variable determines their meaning.
    return value if value.dtype.isbuiltin == 1 else value.view(np.dtype(f"V{value.itemsize}"))


def _fitted(name: str, storage: Stored, value: Array) -> Array:
    wanted = storage.dtype.as_numpy
    if wanted is not None and wanted.isbuiltin != 1 and value.dtype == np.dtype(f"V{wanted.itemsize}"):
        value = value.view(wanted)
    if value.dtype != wanted:
        raise InvalidArgumentError(
            f"Variable '{name}' is {storage.dtype.name}, the file holds {value.dtype}", node=name, source=storage.source
        )
    if not storage.shape.is_compatible_with(Shape(value.shape)):
        raise InvalidArgumentError(
            f"Variable '{name}' has shape {storage.shape}, the file holds shape {Shape(value.shape)}", node=name, source=storage.source
        )
    return value


def _read(path: Path) -> dict[str, Array]:
    if not path.exists():
        raise NotFoundError(f"There is no file '{path}' to restore variables from")
    try:
        with zipfile.ZipFile(path) as archive:
            return {name.removesuffix(_SUFFIX): _array(archive, name) for name in archive.namelist()}
    except _FLAWS as error:
        raise InvalidArgumentError(f"'{path}' is no file of variables, which is a .npz archive: {error}") from None


def _array(archive: zipfile.ZipFile, name: str) -> Array:
    with archive.open(name) as part:
        found: Array = np.lib.format.read_array(part, allow_pickle=False)
        return found


def _write(file: IO[bytes], values: Mapping[str, Array]) -> None:
    """Write the archive like `np.savez`, which cannot store names such as `file` and `allow_pickle`."""
    with _archive(file) as archive:
        for name, value in values.items():
            with critical_section, archive.open(name + _SUFFIX, "w", force_zip64=True) as part:
                np.lib.format.write_array(part, value, allow_pickle=False)


@critical_contextmanager
def _archive(file: IO[bytes]) -> Iterator[zipfile.ZipFile]:
    with zipfile.ZipFile(file, "w") as archive:
        yield archive


def _listed(names: Any) -> str:
    return ", ".join(f"'{name}'" for name in names) or "none"
