"""Remarks under a cell: broken nodes, kept values, repeated gradients, and those of the core."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Final
from weakref import WeakKeyDictionary

from IPython.display import display

from graphcore.graph import Graph, Node
from graphcore.remarks import collect_remarks, collected_remarks
from graphcore.runtime import Session, live_sessions
from graphcore.source import CellRun, SourceLocation, dropped_gradients, gradient_calls
from graphcore.support.shown import shown
from kernelext.errors.card import with_code

MOST_GRADIENTS: Final = 50
"""The most gradients that one line builds in one run of its cell without a remark: those of the layers of a model, not of training
steps."""
MOST_REPEATED: Final = 50
"""The most nodes of one kind that one line of a cell builds without a remark, if they assign to one variable, or as many runs were made."""
_MOST_CHARACTERS: Final = 100
_STYLE: Final = "border-left: 3px solid var(--jp-warn-color1, #f57c00); padding-left: 8px"


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
        self._run: CellRun | None = None
        self._runs_before: dict[Graph, int] = {}
        self._kept_values: dict[Session, set[str]] = {}
        self._lost_values: dict[Session, set[str]] = {}

    def begin(self, run: CellRun) -> None:
        """Record the state at the beginning of a cell."""
        graphs = list(self._graphs())
        self._run = run
        self._runs_before = {graph: graph.run_count for graph in graphs}
        self._marked = {graph: set(self._now_marked(graph)) for graph in graphs}
        self._nodes_before = sum(graph.num_node_ids for graph in graphs)
        sessions = list(live_sessions())
        self._kept_values = {session: set(session.variables_with_other_initial_values()) for session in sessions}
        self._lost_values = {session: set(session.variables_that_lost_their_values()) for session in sessions}
        gradient_calls.clear()
        dropped_gradients.clear()
        collect_remarks()

    def end(self) -> None:
        """Display the remarks of the cell."""
        broken = [node for graph, before in self._marked.items() for node in self._now_marked(graph) if node not in before]
        broken = [node for node in broken if not node.graph.cells.is_partial(node)]  # its cell has just reported the reason
        made = sum(graph.num_node_ids for graph in self._marked) - self._nodes_before
        lines = [_broken(broken)] if broken else []
        lines += [_built_again(line, count, made) for line, count in gradient_calls.most_common(1) if count > MOST_GRADIENTS]
        lines += _dropped()
        lines += [] if gradient_calls else [line for graph, runs in self._runs_before.items() for line in self._built_in_loops(graph, runs)]
        lines += [line for session, before in self._kept_values.items() for line in _kept_values_remark(session, before)]
        lines += [line for session, before in self._lost_values.items() for line in _lost_values_remark(session, before)]
        lines += collected_remarks()
        self._marked, self._kept_values, self._lost_values, self._runs_before = {}, {}, {}, {}
        gradient_calls.clear()
        dropped_gradients.clear()
        if lines:
            rows = "".join([f"<div>{with_code(line)}</div>" for line in lines])
            display({"text/plain": shown("\n".join(lines)), "text/html": f"<div style='{_STYLE}'>{rows}</div>"}, raw=True)

    def _built_in_loops(self, graph: Graph, runs_before: int) -> list[str]:
        """The remark on a line that made nodes of one kind in a loop, where one node was to run."""
        nodes = [] if self._run is None else graph.cells.nodes_of(self._run.cell)
        if len(nodes) <= MOST_REPEATED:
            return []
        runs = graph.run_count - runs_before
        counts = Counter([(node.source, node.op, _assigned(node)) for node in nodes if node.source is not None])
        for (line, op, variable), count in counts.most_common():
            if count > MOST_REPEATED and (variable or runs >= count):
                return [_built_in_loop(line, op, count)]
        return []

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
    if len(names) == 1:
        return [f"'{names[0]}' has a new initial value. The open session keeps the old value until the initializer runs again."]
    return [
        f"{len(names)} variables ('{names[0]}' ...) have new initial values. The open session keeps the old values until the initializer runs again."
    ]


def _lost_values_remark(session: Session, before: set[str]) -> list[str]:
    """The remark on variables whose values do not fit any more, except those of `before`."""
    names = [name for name in session.variables_that_lost_their_values() if name not in before]
    if not names:
        return []
    if len(names) == 1:
        return [f"'{names[0]}' has another type or shape now. The open session has no value for it until its initializer runs."]
    return [
        f"{len(names)} variables ('{names[0]}' ...) have other types or shapes now. The open session has no values for them until their initializers run."
    ]


def _assigned(node: Node) -> str:
    """The variable that a node assigns to, "" if it is no assignment."""
    first = node.inputs[0] if node.inputs else None
    is_variable = first is not None and (first.dtype.is_ref or first.dtype.name == "resource")
    return first.name if first is not None and is_variable and all(dtype.is_ref for dtype in node.output_types) else ""


def _built_in_loop(line: SourceLocation, op: str, count: int) -> str:
    return (
        f"{count} {op} nodes were built in {line.where}. Building a node does not run it: make the node once before the loop, and in the loop run it "
        "with session.run."
    )


def _built_again(line: SourceLocation, count: int, made: int) -> str:
    nodes = f", and {made:,} nodes were added" if made > 0 else ""
    return (
        f"Gradients were built {count} times in {line.where}{nodes}. "
        "A training loop should run a graph, not build one: make gradients and steps before the loop, and in it only run them."
    )
