"""`%diff` and `%func`: differences of graphs, and functions as text and body."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

from IPython.core.error import UsageError

import graphcore as gc
from graphcore.api import Function
from graphcore.definitions import FunctionDef
from graphcore.difference import GraphDiff
from graphcore.graph import get_default_graph
from kernelext.history import History
from kernelext.magics.named import words_of


def diff(line: str, variables: Mapping[str, Any], history: History) -> GraphDiff:
    """Compare graphs: a picture of both, and the differences in words.

    %diff                        the default graph with its state before the last cell that made nodes of it
    %diff 3                      with its state before In [3]
    %diff A B                    two graphs: variables of yours, or files
    """
    words = words_of(line, "diff")
    if len(words) == 2:
        first, second = [variables.get(word, word) for word in words]
        return gc.graph_diff(first, second)
    if len(words) > 1 or not (words == [] or words[0].isdecimal()):
        raise UsageError(f"%diff takes nothing, the number of a cell's run, or two graphs; got '{line}'.")
    graph = get_default_graph()
    try:
        return history.compare(graph, int(words[0]) if words else 0).diff
    except KeyError:
        runs = ", ".join(map(str, dict.fromkeys(history.runs(graph)))) or "none"
        raise UsageError(f"%diff: the state before In [{words[0]}] is not known; known are those before {runs}.") from None


def func(line: str, variables: Mapping[str, Any]) -> Function | FunctionDef:
    """Show a function: its definition, and its body with the types of its call.

    %func NAME                   a function of gc.function, a FunctionDef, or the name of one in the default graph
    """
    name = line.strip()
    value = variables.get(name)
    if isinstance(value, Function | FunctionDef):
        return value
    library = get_default_graph().library
    definition = library.find(name)
    if definition is None:
        names = [function.name for function in library]
        near = difflib.get_close_matches(name, names, n=1)
        hint = f", did you mean '{near[0]}'?" if near else f". There are: {', '.join(names[:10]) or 'none'}."
        raise UsageError(f"%func: '{name}' is no function{hint}")
    return definition
