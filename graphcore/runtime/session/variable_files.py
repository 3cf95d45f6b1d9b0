"""The values of variables in files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from graphcore import dtypes
from graphcore.attrs import Array, attr_text
from graphcore.dtypes import DType, as_dtype
from graphcore.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError
from graphcore.graph import Graph, Node
from graphcore.graph.model.argument_errors import refuse
from graphcore.kernel_context import ResourceManager, Stored, on_host
from graphcore.runtime.session.variable_archives import Archive, opened_archive, write_archive
from graphcore.shapes import Shape, as_shape
from graphcore.source import SourceLocation
from graphcore.support.critical_section import critical_section
from graphcore.support.files import checked_path, is_there
from graphcore.support.replacing import replacing


def write_values(graph: Graph, resources: ResourceManager, path: str | os.PathLike[str]) -> None:
    """Write the values of all variables of a graph to a file; see `gc.save_variables`."""
    storages, place = _storages(graph, resources), _checked_path(path)
    if not storages:
        raise FailedPreconditionError("There is no variable to save in the session's graph")
    values = {name: _stored(name, storage) for name, storage in storages.items()}
    with replacing(place) as file:
        write_archive(file, values)


class _Variable(msgspec.Struct):
    """The declaration of a variable."""

    dtype: DType
    shape: Shape
    source: SourceLocation | None


def read_values(graph: Graph, path: Any) -> dict[str, Array]:
    """The values in a file of `write_values` that holds exactly the variables of a graph, by their names.

    Raises:
        NotFoundError: there is no such file, or it lacks a variable.
        InvalidArgumentError: it is no such file, or holds another variable, or a value of another shape or dtype.
    """
    place = _checked_path(path)
    variables = _declared(graph)
    with opened_archive(place) as archive:
        _check_complete(variables, archive, os.fspath(place))
        return _read(archive, variables)


def _read(archive: Archive, variables: Mapping[str, _Variable]) -> dict[str, Array]:
    """The values in an archive, all of which fit the variables."""
    for name in archive:
        _check_fits(name, variables[name], *archive.kind(name))
    return {
        name: _as_kept(variables[name], archive.array(name, is_expected=bool(variables[name].shape.is_fully_defined))) for name in archive
    }


def read_checkpoint(graph: Graph, path: Any) -> dict[str, Array]:
    """The values for the variables of a graph in a checkpoint.

    It is a file of `write_values`, or a checkpoint of TensorFlow's V2 format. Values of the latter without a variable in the graph are left out.

    Raises:
        NotFoundError: there is no such checkpoint.
        InvalidArgumentError: it is neither, or holds nothing for the variables of the graph.
    """
    from graphcore import checkpoints  # noqa: PLC0415 - it loads protobuf, which most sessions never need

    place = _checked_path(path)
    if is_there(place) or not is_there(checkpoints.index_path(os.fspath(place))):
        variables = _declared(graph)
        with opened_archive(place) as archive:
            _check_known(variables, archive, os.fspath(place))
            return _read(archive, variables)
    reader = checkpoints.CheckpointReader(os.fspath(place))
    names = [name for _, name in _variable_nodes(graph).values() if reader.has_tensor(name)]
    if not names:
        raise InvalidArgumentError(f"'{place}' holds no value of a variable of the session's graph")
    return {name: reader.get_tensor(name) for name in names}


def restore_values(graph: Graph, resources: ResourceManager, values: Mapping[str, Array]) -> None:
    """Set variables of a graph to values, or none of them.

    Args:
        values: by the names of variables.

    Raises:
        InvalidArgumentError: a value has another shape or dtype.
    """
    storages = _storages(graph, resources)
    fitting = []
    for name, value in values.items():
        _check_fits(name, storages[name], value.shape, value.dtype)
        fitting.append((storages[name], _as_kept(storages[name], value)))
    before = [(storage, storage.current()) for storage, _ in fitting]
    with critical_section:
        try:
            for storage, value in fitting:
                storage.replace(value)
        except Exception:  # all or nothing
            for storage, old in before:
                storage.replace(old)
            raise


def _check_complete(variables: Mapping[str, object], names: Iterable[str], path: str) -> None:
    held = dict.fromkeys(names)
    missing = [name for name in variables if name not in held]
    if missing:
        raise NotFoundError(f"'{path}' lacks the variables {_listed(missing)}; it holds {_listed(held)}", node=missing[0])
    _check_known(variables, held, path)


def _check_known(variables: Mapping[str, object], names: Iterable[str], path: str) -> None:
    unknown = [name for name in names if name not in variables]
    if unknown:
        raise InvalidArgumentError(
            f"'{path}' holds {_listed(unknown)}, which the session's graph does not have; it has {_listed(variables)}"
        )


def _variable_nodes(graph: Graph) -> dict[tuple[str, str], tuple[Node, str]]:
    """The first node of each variable and its name, by container and shared name."""
    variables: dict[tuple[str, str], tuple[Node, str]] = {}
    for node in graph.op_nodes():
        if node.registration.traits.role == "variable":
            container, shared = (attr_text(node.get_attr(name)) for name in ("container", "shared_name"))
            variables.setdefault((container, shared or node.name), (node, node.name))  # nodes with a shared name are one variable
    return variables


def _declared(graph: Graph) -> dict[str, _Variable]:
    """The declaration of each variable by the name of its node."""
    return {
        name: _Variable(as_dtype(node.get_attr("dtype")), as_shape(node.get_attr("shape")), node.source)
        for node, name in _variable_nodes(graph).values()
    }


def _storages(graph: Graph, resources: ResourceManager) -> dict[str, Stored]:
    """The storage of each variable by the name of its node."""
    storages: dict[str, Stored] = {}
    for place, (node, name) in _variable_nodes(graph).items():
        dtype, shape = as_dtype(node.get_attr("dtype")), as_shape(node.get_attr("shape"))
        storages[name] = resources.stored(*place, dtype, shape, node.source, node.op, node.name)
    return storages


def _checked_path(path: Any) -> Path:
    if not isinstance(path, str | os.PathLike) or not isinstance(os.fspath(path), str):
        refuse("path", "the name of a file", path)
    return checked_path(path)


def _stored(name: str, storage: Stored) -> Array:
    if storage.dtype is dtypes.string:
        raise InvalidArgumentError(f"Variable '{name}' holds strings, which a .npz file cannot", node=name, source=storage.source)
    value = on_host(storage.read())
    # A dtype unknown to NumPy is written as bytes; the variable determines their meaning.
    return value if value.dtype.isbuiltin == 1 else value.view(np.dtype(f"V{value.itemsize}"))


def _check_fits(name: str, variable: _Variable | Stored, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    wanted = variable.dtype.as_numpy
    if dtype != wanted and not (wanted is not None and wanted.isbuiltin != 1 and dtype == np.dtype(f"V{wanted.itemsize}")):
        raise InvalidArgumentError(f"Variable '{name}' is {variable.dtype.text}, the file holds {dtype}", node=name, source=variable.source)
    if not variable.shape.is_compatible_with(Shape(shape)):
        raise InvalidArgumentError(
            f"Variable '{name}' has shape {variable.shape}, the file holds shape {Shape(shape)}", node=name, source=variable.source
        )


def _as_kept(variable: _Variable | Stored, value: Array) -> Array:
    """A value in the type of its variable; types unknown to NumPy are in files as bytes."""
    wanted = variable.dtype.as_numpy
    return value if wanted is None or value.dtype == wanted else value.view(wanted)


def _listed(names: Any) -> str:
    return ", ".join(f"'{name}'" for name in names) or "none"
