"""Layers above keep values at a graph, each apart, for as long as the graph lives."""

from __future__ import annotations

import gc as garbage
import weakref

import graphcore as gc
from graphcore.graph.attached import Attached
from graphcore.placement.placer import last_placement, last_placer
from graphcore.runtime.stepping.stepped_run import last_stepped_run


class Fact:
    """A value that refers to its graph, as placers and runs do."""

    def __init__(self, graph: gc.Graph) -> None:
        self.graph = graph


def test_values_of_owners_and_graphs_are_apart() -> None:
    first, second = gc.Graph(), gc.Graph()
    facts, texts = Attached[Fact](), Attached[str]()
    assert facts.of(first) is None
    fact = Fact(first)
    facts.set(first, fact)
    texts.set(second, "placed")
    assert (facts.of(first), facts.of(second)) == (fact, None)
    assert (texts.of(first), texts.of(second)) == (None, "placed")
    facts.set(first, None)
    assert facts.of(first) is None


def test_a_value_that_refers_to_its_graph_ends_with_it() -> None:
    facts, graph = Attached[Fact](), gc.Graph()
    facts.set(graph, Fact(graph))
    fact = weakref.ref(facts.of(graph))
    graph_of_fact = weakref.ref(graph)
    del graph
    garbage.collect()
    assert fact() is None
    assert graph_of_fact() is None


def test_sessions_and_placers_keep_what_was_last_at_their_graph() -> None:
    with gc.Graph().as_default() as graph:
        y = gc.add(gc.constant(1.0), 2.0, name="y")
        assert last_placer.of(graph) is None
        assert last_placement(graph) is None
        session = gc.Session(devices=gc.simulated_devices("2 cpu"))
        assert last_placer.of(graph) is not None
        session.run(y)
        placement = last_placement(graph)
        assert placement is not None
        assert placement.devices[y.node].name == y.node.assigned_device
        run = session.step_through(y)
        assert last_stepped_run.of(graph) is run
        run.finish()
        session.run(y, options=gc.RunOptions(trace=True))
        assert last_stepped_run.of(graph) is None
