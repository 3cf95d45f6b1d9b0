"""The content of an error's display, before it becomes text or HTML."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Final

from graphcore.errors import GraphError, InvalidArgumentError
from graphcore.graph.provenance.origins import Origin
from graphcore.runtime.core.shape_misfits import IN_OUR_WORDS
from graphcore.source import SourceLocation
from graphcore.testing import CheckFailed
from kernelext.errors.advice import Advice
from kernelext.errors.frames import ends_in_graphcore, folded_traceback, user_lines
from kernelext.errors.graph_errors import of_graph_error
from kernelext.errors.names import with_names
from kernelext.errors.python_errors import of_python_error

_SHOWN: Final = ("dimension", "rank", "held")
"""The facts that clash whose origins are named; constants of the failed line itself are in the whole chains only."""


@dataclass
class Told:
    """The content of the display of an error.

    Attributes:
        kind: the class of the error.
        message: the message; later lines are details.
        layout: lines below the message whose columns mean something, such as rows of an array.
        facts: words and texts: `required`, `came`, `op`, `node`, `attr`, `input`.
        places: words and lines of code: `made in`, `called in`, `here`.
        origins: for each number that clashes a statement, and the lines that wrote it.
        chains: the whole way of each such number.
        because: the cause, "" if there is none.
        suggestion: what to do next, "" if there is none.
        traceback: all frames.
        about: the error with its place in a graph, for a picture; None if there is none.
    """

    kind: str
    message: str
    facts: list[tuple[str, str]] = field(default_factory=list)
    places: list[tuple[str, SourceLocation]] = field(default_factory=list)
    origins: list[tuple[str, list[str]]] = field(default_factory=list)
    chains: str = ""
    because: str = ""
    suggestion: str = ""
    traceback: str = ""
    about: GraphError | None = None
    layout: str = ""


def told(error: BaseException, trace: TracebackType | None, variables: Mapping[str, Any]) -> Told | None:
    """Collect the content of the display of an error; None for one that has nothing to do with graphs."""
    calls = user_lines(trace)
    if isinstance(error, GraphError):
        return _of_graph(error, trace, calls, variables)
    if isinstance(error, CheckFailed):
        head, _, layout = error.message.partition("\n")
        return Told(type(error).__name__, head, places=_path(calls), layout=layout)
    if isinstance(error, KeyboardInterrupt):
        return Told(type(error).__name__, "\n".join(getattr(error, "__notes__", ())), places=_path(calls))
    if ends_in_graphcore(trace) or not calls:
        return None
    advice = of_python_error(error, variables, calls[-1].text)
    if not advice.suggestion:
        return None
    made = None if advice.node is None else advice.node.source
    return Told(
        type(error).__name__,
        str(error),
        facts=_facts(advice),
        places=[*_made(made, calls), *_path(calls)],
        suggestion=with_names(advice.suggestion, variables),
        traceback=folded_traceback(error, trace),
        about=None if advice.node is None else InvalidArgumentError.at(advice.node, str(error)),
    )


def _of_graph(error: GraphError, trace: TracebackType | None, calls: list[SourceLocation], variables: Mapping[str, Any]) -> Told:
    advice = of_graph_error(error)
    facts = _facts(advice)
    facts += _place_in_graph(error)
    cause = error.__cause__
    return Told(
        type(error).__name__,
        error.message,
        facts=facts,
        places=[*_made(error.source, calls), *_path(calls)],
        origins=[(chain.statement, [_root(root) for root in chain.roots[:2]]) for chain in error.chains if chain.fact.kind in _SHOWN][:2],
        chains="\n".join([str(chain) for chain in error.chains]),
        because=_because(cause, error.message),
        suggestion=with_names(advice.suggestion, variables),
        traceback=folded_traceback(error, trace),
        about=error,
    )


def _made(source: SourceLocation | None, calls: list[SourceLocation]) -> list[tuple[str, SourceLocation]]:
    return [("made in", source)] if source is not None and not any(_same_place(source, call) for call in calls) else []


def _because(cause: BaseException | None, message: str) -> str:
    """The cause, unless the message tells it already."""
    text = cause.message if isinstance(cause, GraphError) else str(cause)
    if message.startswith(IN_OUR_WORDS):
        return ""
    return "" if cause is None or (text and text in message) else f"{type(cause).__name__}: {text}"


def _facts(advice: Advice) -> list[tuple[str, str]]:
    return [(word, text) for word, text in [("required", advice.required), ("came", advice.came)] if text]


def _place_in_graph(error: GraphError) -> list[tuple[str, str]]:
    """`('node', 'mul (op Mul), input y')`, or only the op if the node has no name."""
    more = [f"{word} {text}" for word, text in [("input", error.input), ("attr", error.attr)] if text]
    if not error.node:
        return [("op", ", ".join([error.op, *more]))] if error.op else []
    return [("node", ", ".join([f"{error.node} (op {error.op})" if error.op else error.node, *more]))]


def _root(root: Origin) -> str:
    return f"from {root.source}" if root.source is not None else root.text


def _path(calls: list[SourceLocation]) -> list[tuple[str, SourceLocation]]:
    return [("here" if index == len(calls) - 1 else "called in", call) for index, call in enumerate(calls)]


def _same_place(a: SourceLocation, b: SourceLocation) -> bool:
    return (a.file, a.line) == (b.file, b.line)
