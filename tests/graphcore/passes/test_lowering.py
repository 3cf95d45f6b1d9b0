"""Lowering of If, Case, While and calls (LW): structure and equal results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import graphcore as gc
from graphcore.errors import InvalidArgumentError
from graphcore.passes import InstantiatedFunctions
from tests.graphcore.passes.function_examples import X_TIMES_16, X_TIMES_FOUR, X_TIMES_TWO, library

ENGINES = ["auto", "dataflow"]
TWO, FOUR, SIXTEEN = (gc.Func(name, {"T": gc.float32}) for name in ("XTimesTwo", "XTimesFour", "XTimes16"))
MARK = {"_lower_using_switch_merge": True}


@pytest.fixture(autouse=True)
def graph() -> Iterator[gc.Graph]:
    with gc.Graph().as_default() as graph:
        graph.library.add_library(library(X_TIMES_TWO, X_TIMES_FOUR, X_TIMES_16))
        yield graph


def lowered(graph: gc.Graph) -> gc.Graph:
    copied = graph.copy()
    functions = InstantiatedFunctions(copied.library)
    assert gc.lower_functional_ops(functions, copied)
    assert not gc.lower_functional_ops(functions, copied), "nothing is left to be lowered"
    assert not [node.name for node in copied.nodes if node.error is not None or node.input_errors]
    return copied


def count(graph: gc.Graph) -> Counter[str]:
    return Counter(node.op for node in graph.nodes)


def value(graph: gc.Graph, fetch: str, feed: dict[str, Any], engine: Any = "auto") -> Any:
    return gc.Session(graph, engine=engine).run(fetch, feed)


@pytest.mark.parametrize("engine", ENGINES)
def test_lw_1_an_if_becomes_switches_and_a_merge(graph: gc.Graph, engine: Any) -> None:
    a, pred = gc.placeholder(gc.float32, [], name="A"), gc.placeholder(gc.bool_, [], name="pred")
    attrs = {"Tout": [gc.float32], "then_branch": TWO, "else_branch": FOUR, **MARK}
    gc.apply_op("If", [pred, [a]], attrs, name="if")
    made = lowered(graph)
    ops = count(made)
    assert (ops["If"], ops["Switch"], ops["Merge"], ops["XTimesTwo"], ops["XTimesFour"]) == (0, 2, 2, 0, 0)
    assert made.get_operation_by_name("if").op == "IdentityN"
    assert [value(made, "if:0", {"A:0": 10.0, "pred:0": taken}, engine) for taken in (False, True)] == [40.0, 20.0]


@pytest.mark.parametrize("engine", ENGINES)
def test_lw_2_a_while_becomes_one_of_each_per_value(graph: gc.Graph, engine: Any) -> None:
    a = gc.placeholder(gc.float32, [], name="A")
    graph.library.add_function_def(
        gc.define_function("""Below(x:float) -> (y:bool) {
          eight = Const[dtype=float, value=Tensor<type: float shape: [] values: 8>]()
          y = LessEqual[T=float](x, eight)
        }""")
    )
    attrs = {"cond": gc.Func("Below"), "body": TWO, "parallel_iterations": 100, **MARK}
    loop = gc.apply_op("While", [[a]], attrs, name="while")
    with graph.control_dependencies([loop]):
        gc.identity(loop, name="after")
    made = lowered(graph)
    ops = count(made)
    assert [ops[op] for op in ("Enter", "Exit", "Switch", "Merge", "NextIteration", "LoopCond", "While")] == [1, 1, 1, 1, 1, 1, 0]
    enter = next(node for node in made.nodes if node.op == "Enter")
    assert (enter.get_attr("frame_name"), enter.get_attr("parallel_iterations")) == (b"while", 100)
    after = made.get_operation_by_name("after")
    assert (len(after.inputs), len(after.control_inputs)) == (1, 1)
    assert value(made, "after:0", {"A:0": 1.0}, engine) == 16
    assert value(made, "while:0", {"A:0": 1.0}, engine) == 16


def test_the_nodes_of_a_loop_are_where_its_inputs_are(graph: gc.Graph) -> None:
    with gc.device("/cpu:1"):
        a = gc.placeholder(gc.float32, [], name="A")
    b = graph.apply_op("Identity", [1.0], {"_class": [b"loc:@A"]}, "B").outputs[0]
    with gc.device("/cpu:2"), gc.control_dependencies([a]):
        gc.while_loop(lambda x, _: x < 8.0, lambda x, y: (x * 2.0, y), (a, b), name="while")
    made = lowered(graph)
    for op in ("Enter", "Merge", "Switch", "NextIteration", "Exit"):
        first, second = (node for node in made.nodes if node.op == op)
        assert first.device == "/device:CPU:1"
        assert (second.device, second.get_attr("_class")) == ("", (b"loc:@A",))
    for label in ("LoopControlInputs", "LoopCond", "loop_body_control", "LoopExecuted"):
        (node,) = (node for node in made.nodes if label in node.name)
        assert node.device == "/device:CPU:2"
        assert "_class" not in node.attr


def test_what_steers_a_loop_is_colocated_with_what_the_loop_is(graph: gc.Graph) -> None:
    a = gc.placeholder(gc.float32, [], name="A")
    a.node.assigned_device = "/job:localhost/replica:0/task:0/device:CPU:7"
    b = graph.apply_op("Identity", [a], {"_class": [b"loc:@A"]}, "B").outputs[0]
    b.node.assigned_device = a.node.assigned_device
    with gc.control_dependencies([a]):
        gc.while_loop(lambda x, _: x < 8.0, lambda x, y: (x * 2.0, y), (a, b), name="while")
    loop = next(node for node in graph.nodes if node.op.endswith("While"))
    graph.set_attr(loop, "_class", [b"loc:@B"])
    made = lowered(graph)
    for label in ("LoopControlInputs", "LoopCond", "loop_body_control", "LoopExecuted"):
        (node,) = (node for node in made.nodes if label in node.name)
        assert (node.get_attr("_class"), node.assigned_device) == ((b"loc:@B",), "")
    for op in ("Enter", "Merge", "Switch", "NextIteration", "Exit"):
        first, second = (node for node in made.nodes if node.op == op)
        assert "_class" not in first.attr
        assert second.get_attr("_class") == (b"loc:@A",)
        assert {first.assigned_device, second.assigned_device} == {"/job:localhost/replica:0/task:0/device:CPU:7"}


@pytest.mark.parametrize("engine", ENGINES)
def test_lw_3_a_case_takes_the_last_branch_for_any_other_index(graph: gc.Graph, engine: Any) -> None:
    a, index = gc.placeholder(gc.float32, [], name="A"), gc.placeholder(gc.int32, [], name="i")
    gc.apply_op("Case", [index, [a]], {"Tout": [gc.float32], "branches": [TWO, FOUR, SIXTEEN], **MARK}, name="case")
    made = lowered(graph)
    assert count(made)["_SwitchN"] == 2
    assert [value(made, "case:0", {"A:0": 10.0, "i:0": i}, engine) for i in (0, 1, 2, -1, 9)] == [20.0, 40.0, 160.0, 160.0, 160.0]


def test_lw_4_calls_are_inlined(graph: gc.Graph) -> None:
    a = gc.placeholder(gc.float32, [], name="A")
    graph.library.add_function_def(
        gc.parse_function("""F(i:float) -> (o:float) {
          add = Add[T=float](i, i)
          ret = Mul[T=float](i, i)
          @return must_execute = add
          return o = ret:z:0
        }""")
    )
    gc.apply_op("PartitionedCall", [[a]], {"Tout": [gc.float32], "f": gc.Func("F")}, name="call")
    made = lowered(graph)
    assert (count(made)["PartitionedCall"], count(made)["Add"], count(made)["Mul"]) == (0, 1, 1)
    assert value(made, "call:0", {"A:0": 10.0}) == 100


def test_what_is_not_marked_or_marked_for_a_compiler_stays(graph: gc.Graph) -> None:
    a = gc.placeholder(gc.float32, [], name="A")
    for more in ({}, {**MARK, "_xla_compile_id": "x"}, {**MARK, "_tpu_replicate": "x"}):
        gc.apply_op("If", [True, [a]], {"Tout": [gc.float32], "then_branch": TWO, "else_branch": FOUR, **more})
    assert not gc.lower_functional_ops(InstantiatedFunctions(graph.library), graph)


def test_a_lowered_tensor_is_refused_with_the_reason(graph: gc.Graph) -> None:
    a = gc.placeholder(gc.float32, [], name="A")
    result = gc.cond(a > 0.0, lambda: a + 1.0, lambda: a * 2.0)
    assert gc.lower_functional_ops(None, graph)
    with pytest.raises(InvalidArgumentError, match=r"is no longer in the graph: it was removed or lowered"):
        gc.Session().run(result, {a: 1.0})
    assert gc.Session().run(result.name, {a: 1.0}) == 2.0


def test_a_function_that_must_not_be_inlined_stays_a_call(graph: gc.Graph) -> None:
    a = gc.placeholder(gc.float32, [], name="A")
    graph.library.add_function_def(
        gc.parse_function("Kept(x:float) -> (y:float) {\n  @attr _noinline = true\n  z = Neg[T=float](x)\n  return y = z:y:0\n}")
    )
    gc.apply_op("If", [True, [a]], {"Tout": [gc.float32], "then_branch": gc.Func("Kept"), "else_branch": FOUR, **MARK}, name="if")
    made = lowered(graph)
    assert count(made)["Kept"] == 1
    assert value(made, "if:0", {"A:0": 3.0}) == -3


@pytest.mark.parametrize("engine", ENGINES)
def test_without_outputs_a_no_op_stays_and_the_branch_runs_once(graph: gc.Graph, engine: Any) -> None:
    handle = gc.apply_op("VarHandleOp", attrs={"dtype": gc.float32, "shape": gc.Shape([])})
    start: Any = gc.apply_op("AssignVariableOp", [handle, gc.constant(1.0)])
    pred = gc.placeholder(gc.bool_, [], name="pred")
    gc.cond(
        pred,
        lambda: gc.apply_op("AssignAddVariableOp", [handle, gc.constant(10.0)]),
        lambda: gc.apply_op("AssignAddVariableOp", [handle, gc.constant(100.0)]),
        name="act",
    )
    read: Any = gc.apply_op("ReadVariableOp", [handle], {"dtype": gc.float32})
    for either in (graph, lowered(graph)):
        session = gc.Session(either, engine=engine)
        session.run(start.name)
        assert session.run("act", {"pred:0": True}) is None
        assert session.run(read.name) == 11
        session.run("act", {"pred:0": False})
        assert session.run(read.name) == 111
    assert lowered(graph).get_operation_by_name("act").op == "NoOp"


@pytest.mark.parametrize("engine", ENGINES)
def test_what_a_branch_does_besides_is_done_before_its_value_is_taken(graph: gc.Graph, engine: Any) -> None:
    handle = gc.apply_op("VarHandleOp", attrs={"dtype": gc.float32, "shape": gc.Shape([])})
    start: Any = gc.apply_op("AssignVariableOp", [handle, gc.constant(1.0)])
    x = gc.placeholder(gc.float32, [], name="x")

    def grow() -> Any:
        with gc.control_dependencies([gc.apply_op("AssignAddVariableOp", [handle, x])]):
            return x * 2.0

    gc.identity(gc.cond(x > 0.0, grow, lambda: x), name="y")
    _, total = gc.while_loop(lambda i, _: i < 3, lambda i, t: (i + 1, t + grow()), (0, 0.0))
    gc.identity(total, name="z")
    read: Any = gc.apply_op("ReadVariableOp", [handle], {"dtype": gc.float32})
    made = lowered(graph)
    session = gc.Session(made, engine=engine)
    session.run(start.name)
    assert session.run("y:0", {"x:0": 5.0}) == 10
    assert session.run(read.name) == 6
    assert session.run("y:0", {"x:0": -5.0}) == -5
    assert session.run(read.name) == 6
    assert session.run("z:0", {"x:0": 1.0}) == 6
    assert session.run(read.name) == 9


def test_conditions_of_other_types_become_bools(graph: gc.Graph) -> None:
    a = gc.placeholder(gc.float32, [], name="A")
    gc.identity(gc.cond(a, lambda: a * 2.0, lambda: a - 1.0), name="y")
    made = lowered(graph)
    assert [value(made, "y:0", {"A:0": number}) for number in (3.0, 0.0)] == [6.0, -1.0]


def test_a_function_that_calls_itself_stays_a_call(graph: gc.Graph) -> None:
    graph.library.add_function_def(
        gc.parse_function("""Base(n:float) -> (y:float) {
          one = Const[dtype=float, value=Tensor<type: float shape: [] values: 1>]()
          return y = one:output:0
        }""")
    )
    graph.library.add_function_def(
        gc.parse_function("""Step(n:float) -> (y:float) {
          one = Const[dtype=float, value=Tensor<type: float shape: [] values: 1>]()
          less = Sub[T=float](n, one:output:0)
          rest = PartitionedCall[Tin={float}, Tout={float}, f=Factorial](less:z:0)
          product = Mul[T=float](n, rest:output:0)
          return y = product:z:0
        }""")
    )
    graph.library.add_function_def(
        gc.parse_function("""Factorial(n:float) -> (y:float) {
          one = Const[dtype=float, value=Tensor<type: float shape: [] values: 1>]()
          more = Greater[T=float](n, one:output:0)
          if = StatelessIf[Tcond=bool, Tin={float}, Tout={float}, _lower_using_switch_merge=true, else_branch=Base, then_branch=Step](more:z:0, n)
          return y = if:output:0
        }""")
    )
    n = gc.placeholder(gc.float32, [], name="n")
    gc.apply_op("PartitionedCall", [[n]], {"Tout": [gc.float32], "f": gc.Func("Factorial")}, name="call")
    with gc.Session() as session:
        assert session.run("call:0", {n: 6.0}) == 720
        with pytest.raises(gc.errors.ResourceExhaustedError, match="calls itself more than 100 levels deep"):
            session.run("call:0", {n: 1e6})
    assert not gc.lower_functional_ops(InstantiatedFunctions(graph.library), graph)


Step = tuple[str, int, int]
KINDS = ["add", "mul", "cond", "loop", "case", "nested", "cond in loop"]
steps = st.lists(st.tuples(st.sampled_from(KINDS), st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=4)


def loop(rounds: int, step: Callable[[Any], Any], start: Any) -> Any:
    return gc.while_loop(lambda i, _: i < rounds, lambda i, value: (i + 1, step(value)), (0, start))[1]


def made(kind: str, a: Any, b: Any, first: int, second: int) -> Any:
    if kind == "add":
        return a + b
    if kind == "mul":
        return gc.tanh(a) * b
    if kind == "cond":
        return gc.cond(a > b, lambda: a * 0.5, lambda: gc.sigmoid(b) - a)
    if kind == "loop":
        return loop(second, lambda v: gc.tanh(v) * b, a)
    if kind == "case":
        return gc.switch_case(gc.cast(a, gc.int32), [lambda: a, lambda: b * a, lambda: gc.tanh(b)])
    if kind == "nested":
        return loop(first, lambda v: loop(2, lambda w: gc.sigmoid(w) + v, b), a)
    return loop(3, lambda v: gc.cond(v > 0.4, lambda: v * b, lambda: a + 0.5), a)


def build(program: list[Step], x: gc.Tensor) -> Any:
    values: list[Any] = [x, x + 1.0]
    for kind, first, second in program:
        values.append(made(kind, values[first % len(values)], values[second % len(values)], first, second))
    return values[-1]


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
@given(steps)
@settings(max_examples=15, deadline=None)
def test_random_programs_and_their_gradients_give_the_same_lowered(engine: Any, program: list[Step]) -> None:
    with gc.Graph().as_default() as graph:
        x = gc.placeholder(gc.float32, [], name="x")
        y = build(program, x)
        (gradient,) = gc.gradients(y, x)
        fetches = [y.name] + ([] if gradient is None else [gradient.name])
        if not any(node.op.endswith(("If", "While", "Case")) for node in graph.nodes):
            return
        plain, low = gc.Session(graph), gc.Session(lowered(graph), engine=engine)
        for number in (0.3, 1.7, -1.2):
            expected = plain.run(fetches, {"x:0": number})
            np.testing.assert_allclose(low.run(fetches, {"x:0": number}), expected, rtol=1e-6)
