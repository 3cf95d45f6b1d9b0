"""Remarks under a cell: broken nodes, values kept by sessions, gradients built repeatedly."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Final
from weakref import WeakKeyDictionary

from graphcore.graph import Graph, Node
from graphcore.runtime import Session, live_sessions
from graphcore.source import SourceLocation, dropped_gradients, gradient_calls

MOST_GRADIENTS: Final = 50
"""The most gradients that one line builds in one run of its cell without a remark: those of the layers of a model, not of training
steps."""
_MOST_CHARACTERS: Final = 100


class Remarks:
    """Compares the graphs before and after each cell, and prints remarks for its user, one a line.

    Args:
        graphs: returns the graphs that the user sees.
    """

    def __init__(self, graphs: Callable[[], Iterable[Graph]]) -> None:
        self._graphs = graphs
        self._marked: dict[Graph, set[Node]] = {}
        self._looked_up: WeakKeyDictionary[Graph, tuple[int, list[Node]]] = WeakKeyDictionary()
        self._nodes_before = 0
        self._kept_values: dict[Session, set[str]] = {}

    def begin(self) -> None:
        """Record the state at the beginning of a cell."""
        graphs = list(self._graphs())
        self._marked = {graph: set(self._now_marked(graph)) for graph in graphs}
        self._nodes_before = sum(graph.num_node_ids for graph in graphs)
        self._kept_values = {session: set(session.variables_with_other_initial_values()) for session in live_sessions()}
        gradient_calls.clear()
        dropped_gradients.clear()

    def end(self) -> None:
        """Print the remarks of the cell to the error stream."""
        broken = [node for graph, before in self._marked.items() for node in self._now_marked(graph) if node not in before]
        broken = [node for node in broken if not node.graph.cells.is_partial(node)]  # its cell has just reported the reason
        made = sum(graph.num_node_ids for graph in self._marked) - self._nodes_before
        lines = [_broken(broken)] if broken else []
        lines += [_built_again(line, count, made) for line, count in gradient_calls.most_common(1) if count > MOST_GRADIENTS]
        lines += _dropped()
        lines += [line for session, before in self._kept_values.items() for line in _kept_values_remark(session, before)]
        self._marked, self._kept_values = {}, {}
        gradient_calls.clear()
        dropped_gradients.clear()
        if lines:
            sys.stderr.write("".join([f"{line}\n" for line in lines]))

    def _now_marked(self, graph: Graph) -> list[Node]:
        """The nodes with errors; looked up again only if the graph has changed."""
        version, nodes = self._looked_up.get(graph, (-1, []))
        if version != graph.version:
            nodes = [node for node in graph.op_nodes() if node.error is not None]
            self._looked_up[graph] = graph.version, nodes
        return nodes


def _broken(nodes: list[Node]) -> str:
    """The nodes that are broken by themselves, and the number of those that depend on them."""
    own = [node for node in nodes if node.error is not None and not node.error.is_mark]
    reported = own or nodes
    first = min(reported, key=lambda node: node.rank)
    assert first.error is not None, "these are the nodes that are marked"
    where = "" if first.source is None else f" ({first.source.where})"
    why = first.error.message.partition("\n")[0]
    why = why if len(why) <= _MOST_CHARACTERS else f"{why[: _MOST_CHARACTERS - 3]}..."
    rest = len(nodes) - len(reported)
    others = f"{'' if why.endswith('.') else '.'} {rest} derived {'node' if rest == 1 else 'nodes'} could not follow." if rest else ""
    if len(reported) == 1:
        return f"1 node does not fit any more: '{first.name}'{where}: {why}{others}"
    return f"{len(reported)} nodes do not fit any more. The first is '{first.name}'{where}: {why}{others}"


def _dropped() -> list[str]:
    """The first of the gradients that were dropped, and their number."""
    if not dropped_gradients:
        return []
    output, reason = next(iter(dropped_gradients.items()))
    rest = len(dropped_gradients) - 1
    others = f" So are those at {rest} more {'output' if rest == 1 else 'outputs'}." if rest else ""
    return [f"The gradient that arrives at {output} is dropped, as in TensorFlow: {reason}.{others}"]


def _kept_values_remark(session: Session, before: set[str]) -> list[str]:
    """The remark on variables with values kept by a session, except those kept `before`."""
    names = [name for name in session.variables_with_other_initial_values() if name not in before]
    if not names:
        return []
    which = f"'{names[0]}' keeps its value" if len(names) == 1 else f"{len(names)} variables keep their values ('{names[0]}' ...)"
    return [f"{which} in a session that is open; the initial value is another one now. Running the initializer starts from that."]


def _built_again(line: SourceLocation, count: int, made: int) -> str:
    nodes = f", and {made:,} nodes were added" if made > 0 else ""
    return (
        f"Gradients were built {count} times in {line.where}{nodes}. "
        "A training loop should run a graph, not build one: make gradients and steps before the loop, and in it only run them."
    )
