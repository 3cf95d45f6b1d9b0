"""Graphs that `%graph` names: variables, files, and expressions, also of other frameworks."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path
from typing import Any

from IPython.core.error import UsageError

from graphcore.api import from_source, load
from graphcore.errors import GraphError
from graphcore.frontends.frontend import Call, Source
from graphcore.frontends.kept_names import with_names_of
from graphcore.frontends.sources import frontend_for
from graphcore.graph import Graph
from graphcore.remarks import remark
from graphcore.support.files import is_file, is_folder
from kernelext.call_state import Same
from kernelext.compilations import Compilations
from kernelext.graph_names import graph_of
from kernelext.traced_calls import Expression, key_of

_OPERATIONS = (
    *(ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp),
    *(ast.Tuple, ast.List, ast.Dict, ast.ListComp, ast.DictComp),
)


def is_expression(text: str) -> bool:
    """True for a Python expression that says more than a name: `models[0]`, `loss(x) + reg`.

    A word that begins with `--` is no part of one with operators, but an option.
    """
    try:
        expression = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    if not isinstance(expression, _OPERATIONS):
        return isinstance(expression, ast.Attribute | ast.Call | ast.Subscript)
    is_of_names = any(isinstance(node, ast.Name) for node in ast.walk(expression))
    return is_of_names and not any(word.startswith("--") for word in text.split())


def is_call(text: str) -> bool:
    """True for an expression that is a call: `model(x)`."""
    return is_expression(text) and isinstance(ast.parse(text.strip(), mode="eval").body, ast.Call)


def is_source(word: str) -> bool:
    """True for the path of a file or folder, and for an expression."""
    return is_file(word) or is_folder(word) or is_expression(word)


def no_file(word: str) -> str:
    """The error for the path of a file that is not there."""
    return f"%graph: there is no file '{word}'" + ("" if Path(word).is_absolute() else f" in {Path.cwd()}")


class NamedGraph:
    """The graph of a variable, a file or an expression, as it is now.

    A file is read again when it has changed, an object when another one has its name, and a call is traced again when something that it depends
    on has changed. Where that fails, the last graph stays, and `outdated` says so.

    Args:
        name: the variable, path or expression.
        variables: the variables of the user.
        follows: a callback when a traced graph has taken the place of an earlier one, with both.
        last: that of the same name before, whose nodes keep their names.
        gradients: True to trace the gradients of a call of PyTorch, too.

    Attributes:
        outdated: the reason if the graph is not that of the present, "" if it is.
        is_call: True if the graph is that of a traced call.
    """

    def __init__(
        self,
        name: str,
        variables: dict[str, Any],
        follows: Callable[[Graph, Graph], None] = lambda _old, _new: None,
        last: NamedGraph | None = None,
        *,
        gradients: bool = False,
    ) -> None:
        self._name = name
        self._gradients = gradients
        self._variables = variables
        self._follows = follows
        self._expression = Expression(name) if is_expression(name) and name not in variables else None
        self._read: tuple[object, object, Graph] | None = None
        self._failed: tuple[object, Exception] | None = None
        self._compilations = Compilations()
        self.outdated = ""
        self.is_call: bool = False
        is_same = last is not None and last.is_call and last._gradients == gradients
        self._last = last._read[2] if last is not None and is_same and last._read is not None else None

    def __call__(self) -> Graph | None:
        """The graph, None if there is no such thing.

        Raises:
            UsageError: it cannot be read, and has not been before.
        """
        last = None if self._read is None else self._read[2]
        try:
            graph = self._find()
        except (GraphError, OSError, UsageError, KeyboardInterrupt) as error:
            if last is None and isinstance(error, GraphError | OSError):
                raise UsageError(f"%graph: {error.message if isinstance(error, GraphError) else error}") from error
            if last is None:
                raise
            self.outdated = _reason(error)
            return last
        self.outdated = f"'{self._name}' is gone" if graph is None and last is not None else ""
        return graph

    def _find(self) -> Graph | None:
        name = self._name
        if name in self._variables:
            return self._of_value(self._variables[name])
        if is_file(name) or is_folder(name):
            status = Path(name).stat()
            return self._kept((status.st_mtime_ns, status.st_size), None)
        return None if self._expression is None else self._of_expression(self._expression)

    def _of_expression(self, expression: Expression) -> Graph | None:
        try:
            value = expression.value(self._variables, gradients=self._gradients)
            if isinstance(value, Call):
                if not isinstance(value.function, type) and expression.is_traced(value, self._variables):
                    return self._traced(value)
                value = expression.result(value)
        except NameError as error:
            raise UsageError(f"{error if self._read else f'{no_file(self._name)}, and {error}'}") from error
        except GraphError:
            raise
        except Exception as error:
            raise UsageError(f"%graph: {self._name}: {type(error).__name__}: {error}") from error
        return self._of_value(value)

    def _of_value(self, value: object) -> Graph | None:
        graph = graph_of(value)
        if graph is not None:
            self._read = None, value, graph
            return graph
        return None if frontend_for(Source(value=value)) is None else self._kept(Same(value), value)

    def _traced(self, call: Call) -> Graph:
        """The graph of a call, traced again where something that it may depend on has changed."""
        self.is_call = True
        news = self._compilations.news(call)
        if news:
            remark(news)
        try:
            key: object = key_of(call)
        except Exception:  # noqa: BLE001 - an object of the user's may refuse to say of what type and shape it is
            key = object()
        return self._kept(key, call)

    def _kept(self, key: object, value: object) -> Graph:
        """The graph that was read before under this key, else one that is read now."""
        if self._failed is not None and self._failed[0] == key:
            raise self._failed[1].with_traceback(None)
        if self._read is None or self._read[0] != key:
            last = self._last if self._read is None else self._read[2]
            try:
                graph = self._load(value)
            except Exception as error:
                self._failed = None if value is None else (key, error)  # a file that is being written is read again
                raise
            if last is not None and self.is_call:
                graph = with_names_of(last, graph)
                self._follows(last, graph)
            self._read = key, value, graph  # the value is kept, so that no other one has its id
        self._failed = None
        return self._read[2]

    def _load(self, value: object) -> Graph:
        return load(self._name, allow_unknown_ops=True, allow_internal_ops=True) if value is None else from_source(value)


def _reason(error: BaseException) -> str:
    if isinstance(error, KeyboardInterrupt):
        return "tracing was interrupted"
    return (error.message if isinstance(error, GraphError) else str(error)).removeprefix("%graph: ")
