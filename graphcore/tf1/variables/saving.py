"""Saving and restoring the values of variables."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from graphcore import dtypes
from graphcore.graph import Graph, Tensor, get_default_graph
from graphcore.graph.model.argument_errors import refuse
from graphcore.runtime import Session
from graphcore.runtime.session.variable_files import read_values, restore_values, write_values
from graphcore.tf1.arrays.layout import reshape, stack
from graphcore.tf1.framework import constant
from graphcore.tf1.variables.collections import GraphKeys
from graphcore.tf1.variables.variables import Variable, listed_variables


def report_uninitialized_variables(
    var_list: Sequence[Variable] | Variable | None = None, name: str = "report_uninitialized_variables"
) -> Tensor:
    """The names of the uninitialised variables, at run time. -> names: [n] string.

    Args:
        var_list: the variables; if None all of the default graph, local ones too. In a graph without Python's variables,
            as a loaded one, these are the references of its nodes.
        name: the name scope of the nodes.
    """
    graph = get_default_graph()
    variables = _all_of(graph) if var_list is None else listed_variables("var_list", var_list)
    with graph.name_scope(name) as scope:
        if not variables:
            return constant(np.empty(0, object), dtypes.string, name=scope)
        ready = [_is_initialized(variable) for variable in variables]
        names = constant([variable.op.name for variable in variables], dtypes.string, name="names")
        missing = graph.apply_op("Where", [~stack(ready)]).outputs[0]
        return graph.apply_op("GatherV2", [names, reshape(missing, [-1]), 0], None, scope).outputs[0]


def _all_of(graph: Graph) -> list[Any]:
    """The global and the local variables of a graph, or the references of its nodes if it has none."""
    variables = [*graph.get_collection(GraphKeys.GLOBAL_VARIABLES), *graph.get_collection(GraphKeys.LOCAL_VARIABLES)]
    return variables or [
        node.outputs[0] for node in graph.nodes if node.registration.traits.role == "variable" and node.output_types[0].is_ref
    ]


def _is_initialized(variable: Variable | Tensor) -> Tensor:
    if isinstance(variable, Tensor):
        return get_default_graph().apply_op("IsVariableInitialized", [variable]).outputs[0]
    return variable.is_initialized()


def save_variables(session: Session, path: str | os.PathLike[str]) -> None:
    """Write the values of all variables of the session's graph to one `.npz` file.

    The file is replaced atomically: it is written beside `path`, flushed to disk, and renamed. Files abandoned there by killed processes
    are removed by the next save in the folder. A symbolic link is followed; devices and pipes are written into.

    Args:
        session: the session with the values.
        path: the file; an existing one is replaced.

    Raises:
        FailedPreconditionError: a variable has no value yet, or there is no variable, or the session is closed, or the file cannot be
            written.
        InvalidArgumentError: a variable of strings, which such a file cannot hold; or an argument of another kind.
    """
    _check_open(session)
    write_values(session.graph, session.resources, path)


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
    _check_open(session)
    restore_values(session.graph, session.resources, read_values(session.graph, path))


def _check_open(session: Session) -> None:
    """Check that `session` is one, and is not closed."""
    if not isinstance(session, Session):
        refuse("session", "a gc.Session", session)
    session.list_devices()
