"""Advice for errors of graphs: that of their source, or one that follows from the numbers that clash."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from itertools import islice
from typing import Final

from graphcore.api.ops import snake_case
from graphcore.errors import AbortedError, CancelledError, DeadlineExceededError, GraphError, NotFoundError, UnknownNameError
from graphcore.graph import get_default_graph
from graphcore.graph.provenance.origins import Origin
from graphcore.registry import op_registry
from graphcore.source import SourceLocation
from kernelext.errors.advice import Advice

_HOUSE: Final = re.compile(r"\b[Rr]equired (?:is )?(.+?)[,;] (?:got|but got|but is) (.+)")

_WRITTEN: Final = re.compile(r"(?:did you mean|called as|use) (gc\.[\w.]+)")
_OF_RUNS: Final = (AbortedError, CancelledError)
_MOST_NAMES: Final = 2000
"""The most names that are compared with a wrong one: 30 ms."""


def of_graph_error(error: GraphError) -> Advice:
    """The advice for an error of this project; each has one."""
    if error.suggestion:
        return Advice(error.suggestion, error.required, error.came)
    if len(error.chains) > 1 and "equal" in error.message:
        return _clash(error.chains[0], error.chains[1])
    if isinstance(error, NotFoundError):
        return _not_found(error)
    match = _HOUSE.search(error.message.partition("\n")[0])
    return Advice(_general(error), *((match[1], match[2].rstrip(".")) if match else ("", "")))


def _clash(one: Origin, other: Origin) -> Advice:
    """Two numbers must be equal and are not: each can be changed where it was written."""
    required, came = f"{one.fact} = {other.fact}", f"{one.number} and {other.number}"
    (early, its), (late, others) = [(_written(chain), chain.number) for chain in (one, other)]
    if early is None or late is None:
        located = early or late
        where = "" if located is None else f"; one was written in {located.where}"
        return Advice(
            f"Make the two numbers the same{where}. `%why shape {one.fact.tensor}` says how the first came about.", required, came
        )
    if _time(early) > _time(late):
        early, its, late, others = late, others, early, its
    if (early.file, early.line) == (late.file, late.line):
        return Advice(f"Make {its} and {others} in {early.where} the same number.", required, came)
    ways = f"write {its} in place of {others} in {late.where}, or {others} in place of {its} in {early.where}"
    return Advice(f"Make the two numbers the same: {ways}.", required, came)


def _written(chain: Origin) -> SourceLocation | None:
    """The line that wrote the number itself; None if it was computed from others."""
    root = chain.roots[0]
    is_same = len(chain.roots) == 1 and root.how == "literal" and chain.size is not None
    return root.source if is_same and all(step.size == chain.size for step in chain.walk()) else None


def _time(place: SourceLocation) -> tuple[int, int]:
    return (0 if place.holder is None else place.holder.execution, place.line)


def _not_found(error: NotFoundError) -> Advice:
    """The most similar name of a function, an op, or a node of the default graph."""
    if isinstance(error, UnknownNameError):
        written = _WRITTEN.search(error.message)
        text = f"Write `{written[1]}`." if written is not None else "`gc.<Tab>` lists the functions."
        return Advice(text, "a function of `gc`", error.message.partition(" has no attribute ")[2].partition(":")[0] or "another name")
    if error.node and error.source is None:  # a node that was made is not the one that is missing
        names = [node.name for node in islice(get_default_graph().op_nodes(), _MOST_NAMES)]
        near = _nearest(error.node, names)
        text = f"Did you mean `'{near}:0'`?" if near else "Use the name of a node of the graph: `%nodes` lists them."
        return Advice(text, "the name of a node", f"'{error.node}'")
    near = _nearest(error.op, op_registry.names()) if error.op and error.op not in op_registry else ""
    return Advice(f"Did you mean '{near}'?", "the name of an op", f"'{error.op}'") if near else Advice(_general(error))


def _nearest(name: str, names: Iterable[str]) -> str:
    by_lower = {word.lower(): word for word in names}
    near = difflib.get_close_matches(name.lower(), by_lower, 1)
    return by_lower[near[0]] if near else ""


def _general(error: GraphError) -> str:
    if isinstance(error, _OF_RUNS):
        return "Look for what ended the run (Ctrl-C, a closed session or queue, a failure in another part), and run the cell again."
    if isinstance(error, DeadlineExceededError):
        return "Allow more time (`timeout_in_ms` of `gc.RunOptions` or of the session), or compute less in one run."
    if error.op and error.op in op_registry:
        return f"`gc.ops.{snake_case(error.op)}?` says what {error.op} takes; change the line above to fit."
    return "Change the line above so that it gives what is required, and run the cell again."
