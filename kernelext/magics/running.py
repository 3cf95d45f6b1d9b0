"""`%fetch`, `%trace` and `%step`: runs of the graph in its session."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from IPython.core.error import UsageError

from graphcore.graph import Graph, Node, Tensor, get_default_graph
from graphcore.runtime import RunOptions, Trace
from graphcore.runtime.core.tracing import last_trace
from kernelext.magics.named import element, session_of, words_of
from widgets.scene.steps import FAILED, steps_of

_STATES: Final = ("", "dead", "failed", "fed")
_MOST_STEPS: Final = 40

Evaluate = Callable[[str], Any]


def fetch(line: str, variables: Mapping[str, Any], evaluate: Evaluate) -> Any:
    """Run the graph and return values.

        %fetch y                     the value of a tensor or variable
        %fetch loss W x=pixels       several values, with a value for the placeholder x

    It runs in the default session, the last open session of the graph, or a new one.
    """
    fetches, feeds = _fetches_and_feeds(line, variables, evaluate, "fetch")
    if not fetches:
        raise UsageError("%fetch needs the names of tensors or nodes, as in %fetch y.")
    values = session_of(_graph(fetches)).run(fetches, feeds)
    return values[0] if len(values) == 1 else values


def trace(line: str, variables: Mapping[str, Any], evaluate: Evaluate) -> Trace:
    """Run the graph, and return the recorded run: the time of each node.

    %trace train x=pixels        run and record
    %trace                       the run that was recorded last
    """
    return _recorded(line, variables, evaluate, "trace", RunOptions(trace=True))


def step(line: str, variables: Mapping[str, Any], evaluate: Evaluate) -> Steps:
    """Run the graph, and step through the run: node by node, with values, in the picture if it is open.

    %step y x=pixels             run and record
    %step                        the run that was recorded last
    %step model(x)               run a call of PyTorch, JAX or Keras once, and step through that
    """
    recorded = _recorded(line, variables, evaluate, "step", RunOptions(values=True))
    nodes = recorded.nodes
    return Steps(nodes[0].graph if nodes else get_default_graph())


class Steps:
    """The steps of the last recorded run of a graph, as text.

    Args:
        graph: the graph.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._recorded = steps_of(graph)

    def __repr__(self) -> str:
        recorded = self._recorded
        if recorded is None:
            return "no recorded run"
        runs = recorded.runs
        lines = []
        for number in range(min(len(runs.labels), _MOST_STEPS)):
            label, loop, text = runs.labels[number], runs.loops[number], runs.texts[number]
            turn = f"  iteration {runs.turns[number]} of {recorded.loops[loop]}" if loop >= 0 else ""
            value = f"  {recorded.texts[text]}" if text >= 0 else ""
            state = _STATES[runs.states[number]] if runs.states[number] <= FAILED else _STATES[-1]
            lines.append(f"{number + 1:>4}  {recorded.nodes[label]}  {recorded.ops[label]}{f'  {state}' if state else ''}{turn}{value}")
        if len(runs.labels) > _MOST_STEPS:
            lines.append(f"      and {len(runs.labels) - _MOST_STEPS:,} more steps")
        return "\n".join([*lines, *recorded.notes])


def _recorded(line: str, variables: Mapping[str, Any], evaluate: Evaluate, magic: str, options: RunOptions) -> Trace:
    fetches, feeds = _fetches_and_feeds(line, variables, evaluate, magic)
    graph = _graph(fetches)
    if fetches:
        session_of(graph).run(fetches, feeds, options=options)
    recorded = last_trace(graph)
    if recorded is None:
        raise UsageError(f"%{magic}: no run was recorded; name what to run, as in %{magic} y.")
    return recorded


def _graph(fetches: list[Node | Tensor]) -> Graph:
    if not fetches:
        return get_default_graph()
    first = fetches[0]
    return first.node.graph if isinstance(first, Tensor) else first.graph


def _fetches_and_feeds(
    line: str, variables: Mapping[str, Any], evaluate: Evaluate, magic: str
) -> tuple[list[Node | Tensor], dict[Node | Tensor, Any]]:
    """Fetches, and values to feed: `x=pixels` evaluates `pixels`."""
    fetches: list[Node | Tensor] = []
    feeds: dict[Node | Tensor, Any] = {}
    for word in words_of(line, magic):
        name, is_feed, expression = word.partition("=")
        if is_feed:
            feeds[element(name, variables, magic)] = evaluate(expression)
        else:
            fetches.append(element(word.rstrip(","), variables, magic))
    return fetches, feeds
