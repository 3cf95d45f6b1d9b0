"""The optimizer: all passes, to a fixed point."""

from __future__ import annotations

import numpy as np
import pytest

import graphcore as gc
from graphcore.graph import graph_with_library
from graphcore.passes import InstantiatedFunctions
from tests.graphcore.passes.function_examples import X_TIMES_TWO, arg, library, lines, times_library

FLOAT = gc.float32


def x_times_16() -> tuple[gc.Graph, InstantiatedFunctions]:
    functions = InstantiatedFunctions(times_library())
    graph = graph_with_library(functions.library)
    x4 = graph.apply_op("XTimesFour", [arg(graph, "x")], name="x4").outputs[0]
    y = graph.apply_op("XTimesFour", [x4], name="y").outputs[0]
    graph.apply_op("_Retval", [y], {"index": 0}, name="y_RetVal")
    return graph, functions


def test_f9_optimising_inlined_calls_folds_their_constants_into_one_and_takes_away_the_identities() -> None:
    graph, functions = x_times_16()
    while gc.expand_inline_functions(functions, graph):
        pass
    assert gc.optimize_graph(functions, graph)
    assert lines(graph) == {
        "x = _Arg[T=float, index=0]()",
        "x4/x2/scale/_12__cf__0 = Const[dtype=float, value=Tensor<type: float shape: [] values: 2>]()",
        "x4/x2/y = Mul(x, x4/x2/scale/_12__cf__0)",
        "x4/y/y = Mul(x4/x2/y, x4/x2/scale/_12__cf__0)",
        "y/x2/y = Mul(x4/y/y, x4/x2/scale/_12__cf__0)",
        "y/y/y = Mul(y/x2/y, x4/x2/scale/_12__cf__0)",
        "y_RetVal = _Retval[T=float, index=0](y/y/y)",
    }
    assert not gc.optimize_graph(functions, graph)


def test_calls_are_inlined_as_deep_as_they_go() -> None:
    graph, functions = x_times_16()
    gc.optimize_graph(functions, graph)
    assert sorted(node.op for node in graph.nodes) == ["Const", "Mul", "Mul", "Mul", "Mul", "_Arg", "_Retval"]


@pytest.mark.parametrize(
    ("options", "left"),
    [
        (gc.OptimizerOptions(inlining=False), {"_Arg": 1, "XTimesFour": 2, "_Retval": 1}),
        (gc.OptimizerOptions(constant_folding=False), {"_Arg": 1, "Const": 1, "Cast": 1, "Mul": 4, "_Retval": 1}),
        (gc.OptimizerOptions(common_subexpressions=False), {"_Arg": 1, "Const": 4, "Mul": 4, "_Retval": 1}),
        (gc.OptimizerOptions(max_folded_constant_in_bytes=3), {"_Arg": 1, "Const": 1, "Cast": 1, "Mul": 4, "_Retval": 1}),
        (gc.OptimizerOptions(max_rounds=1), {"_Arg": 1, "Identity": 4, "XTimesTwo": 4, "_Retval": 1}),
    ],
    ids=["inlining", "constant_folding", "common_subexpressions", "max_folded_constant_in_bytes", "max_rounds"],
)
def test_each_part_may_be_switched_off(options: gc.OptimizerOptions, left: dict[str, int]) -> None:
    graph, functions = x_times_16()
    gc.optimize_graph(functions, graph, options)
    ops = [node.op for node in graph.nodes]
    assert {op: ops.count(op) for op in ops} == left


def test_nodes_may_be_kept_from_folding_and_from_merging() -> None:
    def graph() -> gc.Graph:
        made, x = gc.Graph(), None
        with made.as_default():
            x = gc.placeholder(FLOAT, [], name="x")
            for name in "ab":
                c = gc.ops.neg(gc.constant(2.0, name=f"c{name}"), name=f"n{name}")
                made.apply_op("_Retval", [gc.ops.add(x, c, name=f"s{name}")], {"index": "ab".index(name)}, name=f"r{name}")
        return made

    plain = graph()
    gc.optimize_graph(None, plain)
    assert sorted(node.op for node in plain.nodes) == ["Add", "Const", "Placeholder", "_Retval", "_Retval"]
    not_folded = graph()
    gc.optimize_graph(None, not_folded, gc.OptimizerOptions(fold=lambda node: node.op != "Neg"))
    assert sorted(node.op for node in not_folded.nodes) == ["Add", "Const", "Neg", "Placeholder", "_Retval", "_Retval"]
    not_merged = graph()
    gc.optimize_graph(None, not_merged, gc.OptimizerOptions(merge=lambda node: node.op != "Add"))
    assert sorted(node.op for node in not_merged.nodes) == ["Add", "Add", "Const", "Placeholder", "_Retval", "_Retval"]


def test_what_is_kept_stays_under_its_name_with_its_outputs() -> None:
    graph, functions = x_times_16()
    y = graph.get_tensor_by_name("y:0")
    again = graph.apply_op("Identity", [y], name="again")
    first, second = graph.apply_op("Neg", [y], name="first"), graph.apply_op("Neg", [y], name="second")
    keep = frozenset({"x4", "again", "first", "second"})
    gc.optimize_graph(functions, graph, gc.OptimizerOptions(keep=keep))
    assert keep <= {node.name for node in graph.nodes}
    assert [again.op, first.op, second.op] == ["Identity", "Neg", "Neg"]
    names = ["x4:0", "again:0", "first:0", "second:0"]
    values = gc.Session(graph).run([graph.get_tensor_by_name(name) for name in names], {graph.get_tensor_by_name("x:0"): np.float32(2)})
    assert values == [8, 32, -32, -32]


def test_a_constant_that_cannot_be_computed_is_left_to_the_run() -> None:
    graph = gc.Graph()
    with graph.as_default():
        bad = gc.ops.floor_div(gc.constant(1), gc.constant(0), name="bad")
        graph.apply_op("_Retval", [bad], {"index": 0}, name="r")
    gc.optimize_graph(None, graph)
    with pytest.raises(gc.GraphError, match="bad"):
        gc.Session(graph).run(bad)


def test_functions_that_call_themselves_stay_calls() -> None:
    definitions = library(X_TIMES_TWO)
    text = "Loop(x:float) -> (y:float) @stateless {\n  a = XTimesTwo[T=float](x)\n  y = Loop(a:y:0)\n  return y = y:y:0\n}"
    definitions.add_function_def(gc.parse_function("Loop(x:float) -> (y:float) {\n  y = Neg[T=float](x)\n  return y = y:y:0\n}"))
    definitions.replace_function("Loop", gc.parse_function(text, definitions.look_up_op_def))
    graph = graph_with_library(definitions)
    graph.apply_op("Loop", [graph.apply_op("XTimesTwo", [arg(graph, "x")]).outputs[0]], name="call")
    gc.optimize_graph(None, graph)
    assert sorted(node.op for node in graph.nodes) == ["Const", "Loop", "Mul", "_Arg"]


def test_calls_that_would_make_the_graph_too_large_stay_calls() -> None:
    definitions = gc.FunctionLibraryDefinition()
    definitions.add_function_def(gc.parse_function("F0(x:float) -> (y:float) {\n  y = Neg[T=float](x)\n  return y = y:y:0\n}"))
    for level in range(1, 12):
        body = "\n".join(f"  n{i} = F{level - 1}({'x' if i == 0 else f'n{i - 1}:y:0'})" for i in range(10))
        text = f"F{level}(x:float) -> (y:float) @stateless {{\n{body}\n  return y = n9:y:0\n}}"
        definitions.add_function_def(gc.parse_function(text, definitions.look_up_op_def))
    graph = graph_with_library(definitions)
    graph.apply_op("_Retval", [graph.apply_op("F11", [arg(graph, "x")]).outputs[0]], {"index": 0})
    gc.optimize_graph(None, graph, gc.OptimizerOptions(inline=gc.ExpandInlineFunctionsOptions(max_nodes=100)))
    assert 50 < len(graph) <= 100


def test_an_optimisation_that_fails_leaves_the_graph_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, functions = x_times_16()
    before = [(node.id, node.node_def) for node in graph.nodes]
    rounds = iter([False, True])

    def fail(_graph: gc.Graph, _consider: object) -> bool:
        if next(rounds):
            raise RuntimeError("interrupted")
        return False

    monkeypatch.setattr("graphcore.passes.optimize.optimizing.eliminate_common_subexpressions", fail)
    with pytest.raises(RuntimeError, match="interrupted"):
        gc.optimize_graph(functions, graph)
    assert [(node.id, node.node_def) for node in graph.nodes] == before
