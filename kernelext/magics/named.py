"""The tensors, nodes and sessions that the words of a magic name."""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Mapping
from typing import Any

from IPython.core.error import UsageError

from graphcore.errors import GraphError
from graphcore.graph import Graph, Node, Tensor, get_default_graph
from graphcore.runtime import Session, get_default_session, live_sessions
from kernelext.graph_names import graph_of


def words_of(line: str, magic: str) -> list[str]:
    """The words of a line; quotes hold a word together.

    Raises:
        UsageError: a quote is not closed.
    """
    try:
        return shlex.split(line)
    except ValueError as error:
        raise UsageError(f"%{magic}: {error} in '{line}'.") from error


def element(word: str, variables: Mapping[str, Any], magic: str, within: Graph | None = None) -> Node | Tensor:
    """The tensor or node that a word names: a variable of the user, or else a name in the graph.

    Args:
        word: the word.
        variables: the user's variables.
        magic: the magic, for errors.
        within: the graph; that of the variable, or else the default one, if None.

    Raises:
        UsageError: there is none.
    """
    value = variables.get(word)
    own = None if isinstance(value, Graph) else graph_of(value)
    graph = within or own or get_default_graph()
    graph.settle()
    try:
        return graph.as_graph_element(value if own is graph else word)
    except GraphError as error:
        if own is graph:
            raise UsageError(f"%{magic}: {error.message}.") from error
    names = [node.name for node in graph.op_nodes()]
    near = difflib.get_close_matches(word, [*names, *[name for name in variables if graph_of(variables[name]) is not None]], n=1)
    hint = f", did you mean '{near[0]}'?" if near else f" of {len(names)} nodes; %nodes lists them."
    raise UsageError(f"%{magic}: '{word}' is neither a variable with a tensor nor a name in the graph{hint}")


def tensor(word: str, variables: Mapping[str, Any], magic: str) -> Tensor:
    """The tensor that a word names; the output of a node with one.

    Raises:
        UsageError: there is none.
    """
    named = element(word, variables, magic)
    if isinstance(named, Tensor):
        return named
    if len(named.outputs) != 1:
        raise UsageError(
            f"%{magic}: node '{named.name}' (op {named.op}) has {len(named.outputs)} outputs; name one, such as {named.name}:0."
        )
    return named.outputs[0]


def node_of(word: str, graph: Graph, variables: Mapping[str, Any], magic: str) -> Node:
    """The node of a graph that a word names, or the node of the tensor that it names.

    Raises:
        UsageError: there is none.
    """
    named = element(word, variables, magic, graph)
    return named.node if isinstance(named, Tensor) else named


def session_of(graph: Graph) -> Session:
    """The default session if it runs this graph, or else the last open session of it, or a new one."""
    default = get_default_session()
    if isinstance(default, Session) and default.graph is graph:
        return default
    own = [session for session in live_sessions() if session.graph is graph]
    return own[-1] if own else Session(graph)
