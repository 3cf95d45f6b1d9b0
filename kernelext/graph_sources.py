"""Graphs that `%graph` names: variables, files, and expressions, also of other frameworks."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

from IPython.core.error import UsageError

from graphcore.api import from_source, load
from graphcore.errors import GraphError
from graphcore.frontends.frontend import Call, Source
from graphcore.frontends.sources import frontend_for
from graphcore.graph import Graph
from graphcore.support.files import is_file, is_folder
from kernelext.graph_names import graph_of
from kernelext.traced_calls import call_of, definitions_in, state_of, value_of


def is_expression(text: str) -> bool:
    """True for a Python expression that says more than a name: `model.encoder`, `models[0]`."""
    try:
        found = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return isinstance(found, ast.Attribute | ast.Call | ast.Subscript)


def is_source(word: str) -> bool:
    """True for the path of a file or folder, and for an expression."""
    return is_file(word) or is_folder(word) or is_expression(word)


def no_file(word: str) -> str:
    """The error for the path of a file that is not there."""
    return f"%graph: there is no file '{word}'" + ("" if Path(word).is_absolute() else f" in {Path.cwd()}")


class NamedGraph:
    """The graph of a variable, a file or an expression, as it is now.

    A file is read again when it has changed, an object when another one has its name.

    Args:
        name: the variable, path or expression.
        variables: the variables of the user.
        gradients: True to trace the gradients of a call of PyTorch, too.
    """

    def __init__(self, name: str, variables: dict[str, Any], *, gradients: bool = False) -> None:
        self._name = name
        self._gradients = gradients
        self._variables = variables
        self._read: tuple[object, object, Graph] | None = None

    def __call__(self) -> Graph | None:
        """The graph, None if there is no such thing.

        Raises:
            UsageError: it cannot be read, and has not been before.
        """
        try:
            return self._find()
        except (GraphError, OSError) as error:
            if self._read is not None:
                return self._read[2]  # the file is being written, perhaps
            raise UsageError(f"%graph: {error.message if isinstance(error, GraphError) else error}") from error

    def _find(self) -> Graph | None:
        name = self._name
        if name in self._variables:
            return self._of_value(self._variables[name])
        if is_file(name) or is_folder(name):
            status = Path(name).stat()
            return self._kept((status.st_mtime_ns, status.st_size), None)
        if not is_expression(name):
            return None
        if self._read is not None and self._read[0] == name:
            return self._read[2]
        try:
            call = call_of(name, self._variables, gradients=self._gradients)
            if call is not None and frontend_for(Source(value=call)) is not None:
                return self._traced(call)
            value = value_of(name, self._variables) if call is None else call.function(*call.args, **call.kwargs)
        except NameError as error:
            raise UsageError(f"{no_file(name)}, and {error}") from error
        except GraphError:
            raise
        except Exception as error:
            raise UsageError(f"%graph: {name}: {type(error).__name__}: {error}") from error
        graph = self._of_value(value)
        if graph is not None:
            self._read = name, value, graph
        return graph

    def _of_value(self, value: object) -> Graph | None:
        graph = graph_of(value)
        if graph is not None or frontend_for(Source(value=value)) is None:
            return graph
        return self._kept(id(value), value)

    def _traced(self, call: Call) -> Graph:
        """The graph of a call, traced again where something that it may depend on has changed."""
        return self._kept((state_of(call), definitions_in(self._variables)), call)

    def _kept(self, key: object, value: object) -> Graph:
        """The graph that was read before under this key, else one that is read now."""
        if self._read is None or self._read[0] != key:
            graph = load(self._name, allow_unknown_ops=True, allow_internal_ops=True) if value is None else from_source(value)
            self._read = key, value, graph  # the value is kept, so that no other one has its id
        return self._read[2]
