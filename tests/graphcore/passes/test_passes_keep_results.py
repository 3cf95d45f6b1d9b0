"""Every pass keeps results, on random graphs with calls, identities, converters and control edges."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable
from importlib import import_module

import networkx as nx
import numpy as np
import pytest

import graphcore as gc
from graphcore.graph import copy_sharing_library
from graphcore.passes import (
    InstantiatedFunctions,
    expand_inline_functions,
    remove_dead_nodes,
    remove_identity_nodes,
    remove_list_array_converter,
)
from tests.graphcore.passes.function_examples import arg, times_library

FLOAT = gc.float32
PASSES: dict[str, Callable[[InstantiatedFunctions, gc.Graph], bool]] = {
    "inline": expand_inline_functions,
    "identities": lambda _functions, graph: remove_identity_nodes(graph),
    "converters": lambda _functions, graph: remove_list_array_converter(graph),
    "dead": lambda _functions, graph: remove_dead_nodes(graph),
}


def random_graph(seed: int) -> tuple[gc.Graph, InstantiatedFunctions]:
    choose = random.Random(seed)
    functions = InstantiatedFunctions(times_library())
    graph = gc.Graph()
    graph.library.add_library(functions.library)
    tensors = [arg(graph, "a", 0), arg(graph, "b", 1)]
    for _ in range(25):
        kind = choose.choice(["Add", "Sub", "Neg", "Identity", "XTimesTwo", "XTimes16", "_ListToArray", "PartitionedCall"])
        x, y = choose.choice(tensors), choose.choice(tensors)
        with graph.control_dependencies(choose.sample([tensor.node for tensor in tensors], choose.choice([0, 0, 1]))):
            if kind in {"Add", "Sub"}:
                node = graph.apply_op(kind, [x, y])
            elif kind == "_ListToArray":
                node = graph.apply_op(kind, [[x, y]], {"T": FLOAT, "N": 2})
            elif kind == "PartitionedCall":
                node = graph.apply_op(kind, [[x]], {"Tout": [FLOAT], "f": gc.Func("XTimesFour", {"T": FLOAT})})
            else:
                node = graph.apply_op(kind, [x])
        tensors += node.outputs
    for index, tensor in enumerate(choose.sample(tensors, 4)):
        graph.apply_op("_Retval", [tensor], {"index": index}, name=f"ret{index}")
    return graph, functions


def results(graph: gc.Graph) -> list[list[float]]:
    feeds = {graph.get_tensor_by_name(f"{name}:0"): np.array(value, np.float32) for name, value in (("a", [1.0, 2.0]), ("b", [-3.0, 0.5]))}
    rets = [graph.get_operation_by_name(f"ret{index}").inputs[0] for index in range(4)]
    return [value.tolist() for value in gc.Session(graph).run(rets, {tensor: value for tensor, value in feeds.items() if tensor in graph})]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_passes_in_any_order_keep_the_results(seed: int) -> None:
    graph, functions = random_graph(seed)
    expected = results(graph)
    order = random.Random(seed).choices(list(PASSES), k=12)
    for name in order:
        PASSES[name](functions, graph)
        assert results(graph) == expected, f"after {name} of {order}"
        assert all(node.error is None and not node.input_errors for node in graph.nodes)


@pytest.mark.parametrize("seed", range(4))
def test_after_a_pass_the_node_defs_tell_the_whole_graph(seed: int) -> None:
    graph, functions = random_graph(seed)
    for apply in PASSES.values():
        apply(functions, graph)
    copied, _ = copy_sharing_library(graph)
    assert {node.node_def for node in copied.nodes} == {node.node_def for node in graph.nodes}
    for node in graph.nodes:
        texts = [tensor.name.removesuffix(":0") for tensor in node.inputs] + [f"^{control.name}" for control in node.control_inputs]
        assert list(node.node_def.input) == texts
    assert results(copied) == results(graph)


@pytest.mark.parametrize("seed", range(12))
def test_after_passes_an_edge_is_refused_exactly_if_it_closes_a_cycle(seed: int) -> None:
    graph, functions = random_graph(seed)
    choose = random.Random(seed)
    for name in choose.choices(list(PASSES), k=5):
        PASSES[name](functions, graph)
        adders = [node for node in graph.nodes if node.op in {"Add", "Sub"}]
        sources = [node for node in graph.nodes if node.output_types[:1] == (FLOAT,)]
        for node, producer in [(choose.choice(adders), choose.choice(sources)) for _ in range(10)] if adders else ():
            before = [other.node_def for other in graph.nodes]
            assert is_refused(graph, producer, node) == (node.name in nx.ancestors(graph.nx, producer.name)), f"after {name}"
            assert [other.node_def for other in graph.nodes] == before


def is_refused(graph: gc.Graph, producer: gc.Node, node: gc.Node) -> bool:
    """True iff `node` cannot take `producer` as input; the graph is unchanged."""
    refused = False
    with contextlib.suppress(LookupError), graph.transaction():
        try:
            graph.update_edge(producer, 0, node, 0)
        except gc.errors.InvalidArgumentError as error:
            refused = "a cycle" in str(error)
        raise LookupError
    return refused


def test_a_pass_that_fails_leaves_the_graph_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, functions = random_graph(1)
    before = [(node.id, node.node_def) for node in graph.nodes]
    monkeypatch.setattr("graphcore.passes.functions.expand.inline_checked", _fail_second())
    with pytest.raises(RuntimeError, match="interrupted"):
        expand_inline_functions(functions, graph)
    assert [(node.id, node.node_def) for node in graph.nodes] == before
    monkeypatch.undo()
    assert expand_inline_functions(functions, graph)


def _fail_second() -> object:
    from_then_on = iter([False, True])
    inline = import_module("graphcore.passes.functions.expand").inline_checked

    def inline_once(*args: object) -> None:
        if next(from_then_on):
            raise RuntimeError("interrupted")
        inline(*args)

    return inline_once
