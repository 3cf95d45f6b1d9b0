"""Passes respect their declarations and keep results, on random graphs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import graphcore as gc
from graphcore.graph import copy_sharing_library
from graphcore.passes import InstantiatedFunctions, PassDeclaration, declared_passes
from graphcore.passes.functions.inline import is_function_call
from tests.graphcore.passes.random_graphs import Line, build, lines, results

Pass = Callable[..., Any]
PASSES = declared_passes()
TAKES_FUNCTIONS = frozenset({"expand_inline_functions", "lower_functional_ops", "optimize_graph"})


def run(name: str, graph: gc.Graph) -> bool:
    function, _ = PASSES[name]
    return bool(function(InstantiatedFunctions(graph.library), graph) if name in TAKES_FUNCTIONS else function(graph))


def snapshot(graph: gc.Graph) -> dict[str, tuple[gc.Node, gc.NodeDef, bool, bool]]:
    """By name: the node, its definition, True for state, and True if it is wanted."""
    unwanted = graph.edge_store.detached
    return {
        node.name: (
            node,
            node.node_def,
            node.op_def.is_stateful and not is_function_call(graph.library, node.node_def),
            node.name not in unwanted and not node.consumers(),
        )
        for node in graph.nodes
    }


def waiting(graph: gc.Graph) -> dict[str, set[str]]:
    """For each stateful node the others it depends on, directly or indirectly."""
    state = {name for name, (_, _, has_state, _) in snapshot(graph).items() if has_state}
    return {name: nx.ancestors(graph.nx, name) & state for name in state}


def broken(declaration: PassDeclaration, before: dict[str, tuple[gc.Node, gc.NodeDef, bool, bool]], graph: gc.Graph) -> list[str]:
    """The undeclared changes of the pass."""
    after = {node.name: node for node in graph.nodes}
    found = []
    for name, (node, node_def, has_state, is_leaf) in before.items():
        now = after.get(name)
        if now is not node:
            if not declaration.may_remove(node_def.op):
                found.append(f"removed {name} ({node_def.op})")
            if is_leaf and declaration.keeps_leaves:
                found.append(f"removed the leaf {name}")
            if has_state and declaration.keeps_state:
                found.append(f"removed {name}, which has state")
        elif msgspec.structs.replace(now.node_def, input=()) != msgspec.structs.replace(node_def, input=()):
            found.append(f"changed {name} into {now.node_def}")
        elif now.node_def.input != node_def.input and not declaration.rewires:
            found.append(f"changed the inputs of {name}")
    new = [node for name, node in after.items() if name not in before or before[name][0] is not node]
    return found + [f"added {node.name} ({node.op})" for node in new if not declaration.may_add(node.op)]


@pytest.mark.slow
@pytest.mark.parametrize("name", PASSES)
@given(lines, st.sampled_from([None, *PASSES]))
@settings(max_examples=40, deadline=None)
def test_a_pass_does_what_it_declares_and_keeps_the_results(name: str, some: list[Line], first: str | None) -> None:
    graph = build(some)
    expected = results(graph)
    if first is not None:
        run(first, graph)
    before, texts, order = snapshot(graph), {node.node_def for node in graph.nodes}, waiting(graph)
    changed = run(name, graph)
    declaration = PASSES[name][1]
    assert not broken(declaration, before, graph)
    assert changed == (texts != {node.node_def for node in graph.nodes})
    assert results(graph) == expected
    now = waiting(graph)
    lost = [(name, gone) for name, earlier in order.items() if name in now and (gone := (earlier & now.keys()) - now[name])]
    assert not lost or not declaration.keeps_order
    assert not [node for node in graph.nodes if node.error is not None or node.input_errors]
    if declaration.once:
        assert not run(name, graph)


@given(lines)
@settings(max_examples=15, deadline=None)
def test_after_all_passes_the_node_defs_tell_the_whole_graph(some: list[Line]) -> None:
    graph = build(some)
    expected = results(graph)
    for name in PASSES:
        run(name, graph)
    copied, _ = copy_sharing_library(graph)
    assert {node.node_def for node in copied.nodes} == {node.node_def for node in graph.nodes}
    for node in graph.nodes:
        texts = [tensor.name.removesuffix(":0") for tensor in node.inputs] + [f"^{control.name}" for control in node.control_inputs]
        assert list(node.node_def.input) == texts
    assert results(copied) == expected


@given(lines)
@settings(max_examples=15, deadline=None)
def test_the_optimizer_comes_to_an_end(some: list[Line]) -> None:
    graph = build(some)
    run("optimize_graph", graph)
    assert not run("optimize_graph", graph)


def test_every_pass_that_changes_graphs_declares_it() -> None:
    assert {
        "eliminate_common_subexpressions",
        "expand_inline_functions",
        "fold_constants",
        "lower_functional_ops",
        "optimize_graph",
        "remove_dead_nodes",
        "remove_identity_nodes",
        "remove_list_array_converter",
    } <= PASSES.keys()
    assert all(getattr(gc, name) is function for name, (function, _) in PASSES.items())
