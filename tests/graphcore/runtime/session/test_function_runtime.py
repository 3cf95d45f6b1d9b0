"""Functions under handles: instantiated once, run, released; called from graphs."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.attrs import AttrValue
from graphcore.errors import InvalidArgumentError, NotFoundError, ResourceExhaustedError
from graphcore.functions import InstantiateOptions
from graphcore.kernel_context import KernelContext
from tests.graphcore.passes.function_examples import ADD_AND_MUL, X_TIMES_FOUR, X_TIMES_TWO, library, times_library

FLOAT: dict[str, AttrValue] = {"T": gc.float32}
X = np.array([1, 2, 3, 4], np.float32)
BROKEN = X_TIMES_TWO[: X_TIMES_TWO.index("  two")] + "  y = Add[no_T=$T](x, x)\n  return y = y:z:0\n}"
RANDOM = """Draw() -> (y:float) {
  shape = Const[dtype=int32, value=Tensor<type: int32 shape: [1] values: 3>]()
  y = RandomUniform[T=int32, dtype=float, seed=3, seed2=4](shape:output:0)
  return y = y:output:0
}"""
FOREVER = "Forever(x:float) -> (y:float) @stateless {\n  y = Forever(x)\n  return y = y:y:0\n}"


def runtime(*texts: str, **options: Any) -> gc.FunctionLibraryRuntime:
    return gc.FunctionLibraryRuntime(library(*texts) if texts else times_library(), **options)


def test_f8_example_1_a_function_runs() -> None:
    functions = runtime()
    assert functions.run(functions.instantiate("XTimesTwo", FLOAT), [X])[0].tolist() == [2, 4, 6, 8]
    assert functions.run(functions.instantiate("XTimesTwo", {"T": gc.int32}), [[1, 2]])[0].tolist() == [2, 4]


def test_f8_example_2_calls_in_calls_run_and_a_released_handle_does_not() -> None:
    functions = runtime()
    handle = functions.instantiate("XTimes16", FLOAT)
    (result,) = functions.run(handle, [X])
    assert result.tolist() == [16, 32, 48, 64]
    assert result.dtype == np.float32
    functions.release_handle(handle)
    with pytest.raises(NotFoundError, match=r"Handle \d+ not found"):
        functions.run(handle, [X])
    with pytest.raises(NotFoundError, match=r"Handle \d+ not found"):
        functions.release_handle(handle)


def test_f8_example_3_a_broken_callee_is_found_when_it_is_needed() -> None:
    functions = gc.FunctionLibraryRuntime(library(BROKEN, X_TIMES_FOUR))
    with pytest.raises(NotFoundError, match="type attr not found"):
        functions.instantiate("XTimesTwo", FLOAT)
    handle = functions.instantiate("XTimesFour", FLOAT)
    with pytest.raises(NotFoundError, match="type attr not found"):
        functions.run(handle, [X])


def test_f8_example_5_unneeded_nodes_are_pruned_and_control_returns_are_kept() -> None:
    functions = runtime(ADD_AND_MUL.replace("i:int32", "i:float").replace("o:int32", "o:float").replace("T=int32", "T=float"))
    handle = functions.instantiate("AddAndMul")
    assert functions.run(handle, [np.float32(1.25)]) == [1.5625]
    assert {node.name for node in functions.get_function_graph(handle).nodes} == {"i", "add", "ret", "o_RetVal"}


def test_f8_unused_nodes_and_arguments_are_pruned_stateful_nodes_are_not() -> None:
    text = """f(x:float, unused:float) -> (y:float) {
  lost = Exp[T=float](unused)
  shape = Const[dtype=int32, value=Tensor<type: int32 shape: [1] values: 3>]()
  random = RandomUniform[T=int32, dtype=float](shape:output:0)
  y = Neg[T=float](x)
  return y = y:y:0
}"""
    functions = runtime(text)
    handle = functions.instantiate("f")
    assert {node.name for node in functions.get_function_graph(handle).nodes} == {"x", "shape", "random", "y", "y_RetVal"}
    assert functions.run(handle, [np.float32(2), np.float32(3)]) == [-2]


def test_f8_a_missing_function_is_named() -> None:
    with pytest.raises(NotFoundError, match=re.escape("Function Missing is not defined.")):
        runtime().instantiate("Missing")


def test_f8_the_same_name_and_attrs_give_the_same_handle() -> None:
    functions = runtime()
    handle = functions.instantiate("XTimesTwo", FLOAT)
    assert functions.instantiate("XTimesTwo", FLOAT) == handle
    assert functions.instantiate("XTimesTwo", {"T": gc.int32}) != handle
    functions.release_handle(handle)
    assert functions.run(handle, [X])[0].tolist() == [2, 4, 6, 8], "it was instantiated twice and released once"


def test_f8_state_goes_on_under_a_handle_and_starts_anew_under_another() -> None:
    functions = runtime(RANDOM)
    options = InstantiateOptions(state_handle="mine")
    handle = functions.instantiate("Draw")
    first, second = functions.run(handle)[0], functions.run(functions.instantiate("Draw"))[0]
    assert first.tolist() != second.tolist()
    own = functions.instantiate("Draw", {}, options)
    assert own != handle
    assert functions.run(own)[0].tolist() == first.tolist()
    functions.release_handle(handle)
    functions.release_handle(handle)
    again = functions.instantiate("Draw")
    assert functions.run(again)[0].tolist() == first.tolist()


def test_f8_an_overlay_library_counts_for_its_instantiation_alone() -> None:
    functions = runtime(X_TIMES_TWO, X_TIMES_FOUR)
    overlay = library(X_TIMES_TWO.replace("values: 2", "values: 10"), X_TIMES_FOUR)
    with_overlay = functions.instantiate("XTimesFour", FLOAT, InstantiateOptions(lib_def=overlay))
    plain = functions.instantiate("XTimesFour", FLOAT)
    assert with_overlay != plain
    assert functions.run(with_overlay, [X])[0].tolist() == [100, 200, 300, 400]
    assert functions.run(plain, [X])[0].tolist() == [4, 8, 12, 16]


def test_f8_an_overlay_counts_for_calls_that_are_not_inlined_too() -> None:
    callee = X_TIMES_TWO.replace("{\n  two", "{\n  @attr _noinline = true\n  two", 1)
    functions = runtime(callee, X_TIMES_FOUR)
    overlay = library(callee.replace("values: 2", "values: 10"), X_TIMES_FOUR)
    handle = functions.instantiate("XTimesFour", FLOAT, InstantiateOptions(lib_def=overlay))
    assert any(node.op == "XTimesTwo" for node in functions.get_function_graph(handle).nodes)
    assert functions.run(handle, [X])[0].tolist() == [100, 200, 300, 400]


def test_f8_is_stateful_of_ops_functions_and_unknown_names() -> None:
    functions = runtime(X_TIMES_TWO, RANDOM)
    assert [functions.is_stateful(name) for name in ("XTimesTwo", "Draw", "RandomUniform", "Add", "Unknown")] == [
        False,
        True,
        True,
        False,
        False,
    ]


def test_f8_a_custom_kernel_creator_is_asked_first() -> None:
    def creator(node: gc.Node, _context: KernelContext) -> Any:
        return (lambda x, y: x + y) if node.op == "Mul" else None

    functions = runtime(X_TIMES_TWO, custom_kernel_creator=creator)
    assert functions.run(functions.instantiate("XTimesTwo", FLOAT), [X])[0].tolist() == [3, 4, 5, 6]


def test_f8_the_body_of_a_handle_is_the_instantiated_function() -> None:
    functions = runtime()
    body = functions.get_function_body(functions.instantiate("XTimesFour", FLOAT))
    assert body.fdef.name == "XTimesFour"
    assert [node.op for node in body.graph.nodes] == ["_Arg", "XTimesTwo", "XTimesTwo", "_Retval"]


@pytest.mark.parametrize(
    ("args", "text"),
    [([], "Expects 1 arguments, but 0 is provided"), ([np.int64(1)], "Expects arg[0] to be float but int64 is provided")],
)
def test_f4_wrong_arguments_are_refused(args: list[Any], text: str) -> None:
    functions = runtime()
    with pytest.raises(InvalidArgumentError, match=re.escape(text)):
        functions.run(functions.instantiate("XTimesTwo", FLOAT), args)


def test_a_symbolic_gradient_is_instantiated_and_runs() -> None:
    functions = runtime()
    handle = functions.instantiate("SymbolicGradient", {"f": gc.Func("XTimes16", FLOAT)})
    assert functions.run(handle, [X, np.ones_like(X)])[0].tolist() == [16] * 4


def test_a_function_reads_the_variable_whose_handle_is_its_argument() -> None:
    read = "Read(v:resource) -> (v_out:resource, y:float) {\n  r = ReadVariableOp[dtype=float](v)\n  return v_out = v\n  return y = r:value:0\n}"
    runtime = gc.FunctionLibraryRuntime(library(read))
    with gc.Graph().as_default(), gc.Session() as session:
        w = gc.Variable(3.0, use_resource=True)
        session.run(w.initializer)
        handle = session.run(w.handle)
    passed_on, value = runtime.run(runtime.instantiate("Read"), [handle])
    assert passed_on is handle
    assert value == 3.0


def test_endless_recursion_is_an_error_in_words() -> None:
    functions = gc.FunctionLibraryRuntime(_recursive())
    handle = functions.instantiate("Forever")
    with pytest.raises(ResourceExhaustedError, match="Function Forever calls itself more than 100 levels deep"):
        functions.run(handle, [np.float32(1)])
    with pytest.raises(ResourceExhaustedError):
        functions.run(handle, [np.float32(1)])


def _recursive() -> gc.FunctionLibraryDefinition:
    made = library("Forever(x:float) -> (y:float) {\n  y = Neg[T=float](x)\n  return y = y:y:0\n}")
    made.replace_function("Forever", gc.parse_function(FOREVER, made.look_up_op_def))
    return made


def test_results_of_a_run_belong_to_the_caller() -> None:
    functions = runtime("f(x:float) -> (y:float) {\n  y = Identity[T=float](x)\n  return y = y:output:0\n}")
    (result,) = functions.run(functions.instantiate("f"), [X])
    result[:] = 0
    assert X.tolist() == [1, 2, 3, 4]


CALLS = ["XTimesFour", "PartitionedCall", "StatefulPartitionedCall"]


@pytest.mark.parametrize("op", CALLS)
def test_a_session_runs_calls_of_functions(op: str) -> None:
    with gc.Graph().as_default() as graph:
        graph.library.add_library(times_library())
        x = gc.placeholder(gc.float32, [None], name="x")
        partitioned = op != "XTimesFour"
        attrs = {"Tout": [gc.float32], "f": gc.Func("XTimesFour", dict(FLOAT))} if partitioned else {}
        y = graph.apply_op(op, [[x]] if partitioned else [x], attrs, name="call").outputs[0]
        assert gc.Session().run(y + 1.0, {x: X}).tolist() == [5, 9, 13, 17]


def test_an_error_in_a_function_names_the_inner_node() -> None:
    text = "f(x:float, y:float) -> (z:float) {\n  inner = MatMul[T=float](x, y)\n  return z = inner:product:0\n}"
    functions = runtime(text)
    with pytest.raises(InvalidArgumentError, match="node inner"):
        functions.run(functions.instantiate("f"), [np.ones((2, 3), np.float32), np.ones((2, 3), np.float32)])


@pytest.mark.parametrize("op", CALLS[1:])
def test_gradients_go_through_partitioned_calls(op: str) -> None:
    with gc.Graph().as_default() as graph:
        graph.library.add_library(times_library())
        x = gc.placeholder(gc.float32, [None], name="x")
        y = graph.apply_op(op, [[x]], {"Tout": [gc.float32], "f": gc.Func("XTimesFour", dict(FLOAT))}).outputs[0]
        (gradient,) = gc.gradients(y * y, x)
        assert gc.Session().run(gradient, {x: X}).tolist() == (32 * X).tolist()


def _session(op: str, **functions: str) -> tuple[gc.Session, gc.Tensor, gc.Tensor]:
    graph = gc.Graph()
    graph.library.add_library(library(*functions.values()) if functions else times_library())
    with graph.as_default():
        x = gc.placeholder(gc.float32, [None], name="x")
        partitioned = op != "XTimesFour"
        attrs = {"Tout": [gc.float32], "f": gc.Func("XTimesFour", dict(FLOAT))} if partitioned else {}
        y = graph.apply_op(op, [[x]] if partitioned else [x], attrs, name="call").outputs[0]
    return gc.Session(graph), x, y


TIMES_TEN = X_TIMES_TWO.replace("values: 2", "values: 10")


@pytest.mark.parametrize("op", CALLS)
@pytest.mark.parametrize("inlined", [True, False])
def test_a_function_replaced_under_a_planned_session_is_noticed(op: str, inlined: bool) -> None:
    callee = X_TIMES_TWO if inlined else X_TIMES_TWO.replace("{\n  two", "{\n  @attr _noinline = true\n  two", 1)
    session, x, y = _session(op, two=callee, four=X_TIMES_FOUR)
    assert session.run(y, {x: X}).tolist() == [4, 8, 12, 16]
    session.graph.library.replace_function("XTimesTwo", gc.parse_function(TIMES_TEN))
    assert session.run(y, {x: X}).tolist() == [100, 200, 300, 400]
    session.graph.library.replace_function("XTimesFour", gc.parse_function(X_TIMES_TWO.replace("XTimesTwo", "XTimesFour", 1)))
    assert session.run(y, {x: X}).tolist() == [2, 4, 6, 8]


@pytest.mark.parametrize("op", CALLS)
def test_a_function_removed_under_a_planned_session_is_missed_by_name(op: str) -> None:
    session, x, y = _session(op)
    session.run(y, {x: X})
    session.graph.library.remove_function("XTimesFour")
    with pytest.raises(NotFoundError, match=re.escape("Function XTimesFour is not defined.")):
        session.run(y, {x: X})


@pytest.mark.parametrize("op", CALLS)
def test_replacing_a_function_by_another_signature_is_an_error_at_the_call(op: str) -> None:
    session, x, y = _session(op)
    session.run(y, {x: X})
    session.graph.library.replace_function("XTimesFour", gc.parse_function("XTimesFour[T:{float}](x:T, z:T) -> (y:T) {\n  return y = x\n}"))
    with pytest.raises(InvalidArgumentError, match=re.escape("takes (float, float) and gives (float)")):
        session.run(y, {x: X})


def test_a_handle_follows_its_function_when_that_is_replaced() -> None:
    functions = runtime(X_TIMES_TWO, X_TIMES_FOUR)
    handle = functions.instantiate("XTimesFour", FLOAT)
    assert functions.run(handle, [X])[0].tolist() == [4, 8, 12, 16]
    functions.library.replace_function("XTimesTwo", gc.parse_function(TIMES_TEN))
    assert functions.run(handle, [X])[0].tolist() == [100, 200, 300, 400]
    assert functions.instantiate("XTimesFour", FLOAT) == handle
    functions.library.remove_function("XTimesFour")
    with pytest.raises(NotFoundError, match=re.escape("Function XTimesFour is not defined.")):
        functions.run(handle, [X])


def test_a_gradient_named_later_is_the_gradient_from_then_on() -> None:
    functions = runtime()
    handle = functions.instantiate("SymbolicGradient", {"f": gc.Func("XTimesTwo", FLOAT)})
    assert functions.run(handle, [X, np.ones_like(X)])[0].tolist() == [2] * 4
    functions.library.add_function_def(
        gc.parse_function("Mine[T:{float}](x:T, dy:T) -> (dx:T) {\n  dx = Neg[T=$T](dy)\n  return dx = dx:y:0\n}")
    )
    functions.library.add_gradient_def(gc.GradientDef("XTimesTwo", "Mine"))
    assert functions.run(handle, [X, np.ones_like(X)])[0].tolist() == [-1] * 4


def calling() -> gc.Graph:
    """A graph with calls and a branch to be lowered, as `out`: 3.5 times 2, 4 and 2, negated."""
    with gc.Graph().as_default() as graph:
        graph.library.add_library(times_library())
        times_two = gc.Func("XTimesTwo", FLOAT)
        attrs = {"then_branch": times_two, "else_branch": times_two, "_lower_using_switch_merge": True}
        branch = graph.apply_op("If", [gc.constant(True), [gc.constant(3.5)]], {**attrs, "Tout": (gc.float32,)}, "branch")
        four = graph.apply_op("XTimesFour", branch.outputs)
        gc.ops.neg(graph.apply_op("XTimesTwo", four.outputs).outputs[0], name="out")
        return graph


@pytest.mark.parametrize(
    ("change", "left"),
    [
        (gc.optimize_graph, {"XTimesTwo", "XTimesFour"}),
        (gc.expand_inline_functions, {"XTimesFour"}),
        (gc.lower_functional_ops, {"XTimesTwo", "XTimesFour", "If"}),
    ],
    ids=["optimize_graph", "expand_inline_functions", "lower_functional_ops"],
)
@pytest.mark.parametrize("kind", [gc.FunctionLibraryRuntime, gc.InstantiatedFunctions])
def test_passes_take_the_bodies_of_functions_from_a_runtime_too(kind: Any, change: Any, left: set[str]) -> None:
    graph = calling()
    assert change(kind(graph.library), graph)
    assert not left & {node.op for node in graph.nodes}
    assert gc.Session(graph).run("out:0") == -56


def test_a_runtime_gives_the_body_of_a_function_by_name() -> None:
    functions = runtime()
    body = functions.body_of("XTimesTwo", FLOAT)
    assert body is functions.body_of("XTimesTwo", FLOAT)
    assert body is functions.get_function_body(functions.instantiate("XTimesTwo", FLOAT))
    assert functions.body_of("SymbolicGradient", {"f": gc.Func("XTimesTwo", FLOAT)}).arg_types == (gc.float32, gc.float32)
    with pytest.raises(NotFoundError, match=r"Function Missing is not defined\."):
        functions.body_of("Missing", {})
