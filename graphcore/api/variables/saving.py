"""Saving and restoring the values of variables."""

from __future__ import annotations

import os
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Final

import numpy as np

from graphcore import dtypes
from graphcore.api.arrays import reshape, stack
from graphcore.api.framework import constant
from graphcore.api.variables.variables import Variable, all_variables, listed_variables
from graphcore.attrs import Array
from graphcore.dtypes import as_dtype
from graphcore.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError
from graphcore.graph import Tensor, get_default_graph
from graphcore.graph.model.argument_errors import refuse
from graphcore.kernel_context import RefVariable
from graphcore.runtime import Session
from graphcore.shapes import Shape, as_shape
from graphcore.support.critical_section import critical_contextmanager, critical_section
from graphcore.support.replacing import replacing

_SUFFIX: Final = ".npy"
_FLAWS: Final = (
    *(OSError, EOFError, ValueError, TypeError, KeyError, SyntaxError, RuntimeError, OverflowError, MemoryError),
    *(tokenize.TokenError, struct.error, zipfile.BadZipFile, zlib.error),
)
"""The errors of reading an archive with a damaged directory, array header or array."""


def report_uninitialized_variables(
    var_list: Sequence[Variable] | Variable | None = None, name: str = "report_uninitialized_variables"
) -> Tensor:
    """The names of the uninitialised variables, at run time. -> names: [n] string.

    Args:
        var_list: the variables; all of the default graph if None.
        name: the name scope of the nodes.
    """
    variables = all_variables() if var_list is None else listed_variables("var_list", var_list)
    graph = get_default_graph()
    with graph.name_scope(name) as scope:
        if not variables:
            return constant(np.empty(0, object), dtypes.string, name=scope)
        ready = [variable.is_initialized() for variable in variables]
        names = constant([variable.op.name for variable in variables], dtypes.string, name="names")
        missing = graph.apply_op("Where", [~stack(ready)]).outputs[0]
        return graph.apply_op("GatherV2", [names, reshape(missing, [-1]), 0], None, scope).outputs[0]


def save_variables(session: Session, path: str | os.PathLike[str]) -> None:
    """Write the values of all variables of the session's graph to one `.npz` file.

    The file is replaced atomically: it is written beside `path`, flushed to disk, and renamed. Files abandoned there by killed processes
    are removed by the next save to `path`. A symbolic link is followed; devices and pipes are written into.

    Args:
        session: the session with the values.
        path: the file; an existing one is replaced.

    Raises:
        FailedPreconditionError: a variable has no value yet, or there is no variable, or the session is closed, or the file cannot be
            written.
        InvalidArgumentError: a variable of strings, which such a file cannot hold; or an argument of another kind.
    """
    storages, place = _storages(session), _checked_path(path)
    if not storages:
        raise FailedPreconditionError("There is no variable to save in the session's graph")
    values = {name: _stored(name, storage) for name, storage in storages.items()}
    with replacing(place) as file:
        _write(file, values)


def restore_variables(session: Session, path: str | os.PathLike[str]) -> None:
    """Restore all variables of the session's graph from a file of `save_variables`.

    The file must hold exactly these variables, with their shapes and dtypes; otherwise nothing changes.

    Args:
        session: the session to change.
        path: the file.

    Raises:
        FailedPreconditionError: the session is closed.
        NotFoundError: no such file, or it lacks a variable.
        InvalidArgumentError: it is no such file, or holds other variables, shapes or dtypes.
    """
    storages, place = _storages(session), _checked_path(path)
    values = _read(place)
    missing = [name for name in storages if name not in values]
    if missing:
        raise NotFoundError(f"'{os.fspath(path)}' lacks the variables {_listed(missing)}; it holds {_listed(values)}", node=missing[0])
    unknown = [name for name in values if name not in storages]
    if unknown:
        raise InvalidArgumentError(
            f"'{os.fspath(path)}' holds {_listed(unknown)}, which the session's graph does not have; it has {_listed(storages)}"
        )
    fitting = [(storage, _fitted(name, storage, values[name])) for name, storage in storages.items()]
    before = [(storage, storage.value) for storage in storages.values()]
    with critical_section:
        try:
            for storage, value in fitting:
                with storage.lock:  # without the lock, a concurrent update could overwrite the value with one computed from the old
                    storage.assign(value)
        except Exception:  # all or nothing
            for storage, old in before:
                storage.value = old
            raise


def _storages(session: Session) -> dict[str, RefVariable]:
    """The storage of each variable by the name of its node; an error if the session is closed."""
    if not isinstance(session, Session):
        refuse("session", "a gc.Session", session)
    session.list_devices()
    found: dict[tuple[str, str], tuple[str, RefVariable]] = {}
    for node in session.graph.op_nodes():
        if node.registration.traits.role != "variable":
            continue
        container, shared = (_text(node.get_attr(name)) for name in ("container", "shared_name"))
        dtype, shape = as_dtype(node.get_attr("dtype")), as_shape(node.get_attr("shape"))
        place = container, shared or node.name
        storage = session.resources.variable(*place, dtype, shape, node.source, node.op, node.name)
        found.setdefault(place, (node.name, storage))  # nodes with a shared name are one variable
    return dict(found.values())


def _checked_path(path: Any) -> Path:
    if not isinstance(path, str | os.PathLike) or not isinstance(os.fspath(path), str):
        refuse("path", "the name of a file", path)
    return Path(path)


def _text(value: object) -> str:
    return value.decode() if isinstance(value, bytes) else ""


def _stored(name: str, storage: RefVariable) -> Array:
    if storage.dtype is dtypes.string:
        raise InvalidArgumentError(f"Variable '{name}' holds strings, which a .npz file cannot", node=name, source=storage.source)
    value = storage.read()
    # A dtype unknown to NumPy is written as bytes; the variable determines their meaning.
    return value if value.dtype.isbuiltin == 1 else value.view(np.dtype(f"V{value.itemsize}"))


def _fitted(name: str, storage: RefVariable, value: Array) -> Array:
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
