"""`%diff` and `%func`: differences of graphs, and functions as text and body."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

import msgspec
from IPython.core.error import UsageError

import graphcore as gc
from graphcore.api import Function
from graphcore.api.committed_files import is_committed
from graphcore.api.graph_diff import state_of
from graphcore.definitions import FunctionDef
from graphcore.difference import DiffSteps, GraphDiff, GraphState
from graphcore.graph import get_default_graph
from graphcore.support.files import is_file, is_folder
from kernelext.graph_sources import NamedGraph, is_expression
from kernelext.history import History


def diff(line: str, variables: dict[str, Any], history: History) -> GraphDiff | DiffSteps:
    """Compare graphs: a picture of both, and the differences in words.

    %diff                        the default graph with its state before the last cell that made nodes of it
    %diff 3                      with its state before In [3]
    %diff A B                    two sources: variables with graphs or models, files of any framework, calls as in model(x);
                                 model.onnx@HEAD~1 is a file of a commit of Git
    %diff A B C                  each with the next
    """
    words = sources_in(line)
    if len(words) >= 2:
        return gc.graph_diff(*[_state(word, variables) for word in words])
    if not (words == [] or words[0].isdecimal()):
        raise UsageError(f"%diff takes nothing, the number of a cell's run, or two sources and more; got '{line}'.")
    graph = get_default_graph()
    try:
        return history.compare(graph, int(words[0]) if words else 0).diff
    except KeyError:
        runs = ", ".join(map(str, dict.fromkeys(history.runs(graph)))) or "none"
        raise UsageError(f"%diff: the state before In [{words[0]}] is not known; known are those before {runs}.") from None


def sources_in(line: str) -> list[str]:
    """The sources of a line, held together by brackets and quotes: `model(x, y) "my model.onnx"`.

    Raises:
        UsageError: a bracket or quote is not closed.
    """
    sources, depth = [""], 0
    quote = ""
    for letter in line.strip():
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'":
            quote = letter
        elif letter in "([{":
            depth += 1
        elif letter in ")]}":
            depth -= 1
        if letter.isspace() and not quote and depth == 0:
            sources.append("")
        else:
            sources[-1] += letter
    if quote or depth:
        raise UsageError(f"%diff: a {'quote' if quote else 'bracket'} is not closed in '{line}'.")
    return [source for source in sources if source]


def _state(word: str, variables: dict[str, Any]) -> Any:
    """The value that `gc.graph_diff` takes for a source: a state under its name, or a function."""
    if word in variables:
        value = variables[word]
        return value if isinstance(value, Function | FunctionDef) else _named(value, word)
    plain = word[1:-1] if word[0] in "\"'" and word[-1] == word[0] else word
    if is_expression(plain) and not is_file(plain):
        graph = NamedGraph(plain, variables)()
        if graph is not None:
            return _named(graph, plain)
    if not (is_file(plain) or is_folder(plain) or is_committed(plain)):
        raise UsageError(f"%diff: '{plain}' is no variable with a graph or model, no file, and no call of one")
    return plain


def _named(value: Any, title: str) -> GraphState:
    return msgspec.structs.replace(state_of(value), title=title)


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
