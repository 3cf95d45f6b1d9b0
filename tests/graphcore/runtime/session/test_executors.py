"""Executors by type: selection, errors, and running a function with a call frame."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.attrs import AttrValue
from graphcore.errors import AlreadyExistsError, FailedPreconditionError, GraphError, InternalError, InvalidArgumentError, NotFoundError
from graphcore.functions import InstantiateOptions
from graphcore.kernel_context import KernelContext
from tests.graphcore.passes.function_examples import library, times_library

FLOAT: dict[str, AttrValue] = {"T": gc.float32}
X = np.array([1, 2, 3, 4], np.float32)
UNKNOWN = "No executor factory registered for the given executor type: UNKNOWN_EXECUTOR"
KEPT_CALL = """Twice(x:float) -> (y:float) {
  @attr _noinline = true
  y = Add[T=float](x, x)
  return y = y:z:0
}"""
ADD_BOTH = """AddBoth(x:float, n:int32) -> (y:float, m:int32) {
  y = Add[T=float](x, x)
  m = Add[T=int32](n, n)
  return y = y:z:0
  return m = m:z:0
}"""
SWITCHED = """Switched(x:float, p:bool) -> (y:float) {
  s = Switch[T=float](x, p)
  m = Merge[T=float, N=2](s:output_false:0, s:output_true:0)
  return y = m:output:0
}"""
FRAMED = """Framed(x:float, p:bool) -> (y:float) {
  e = Enter[T=float, frame_name="frame"](x)
  z = Exit[T=float](e:output:0)
  return y = z:output:0
}"""
made: list[tuple[str, list[str]]] = []
"""The type of each executor that the factories here have made, with the ops that it runs."""


def recording(executor_type: str) -> gc.ExecutorFactory:
    def factory(params: gc.ExecutorParams) -> gc.Executor:
        program = gc.new_executor("DEFAULT", params)
        made.append((executor_type, [node.op for node in program.nodes]))  # type: ignore[attr-defined]  # the default executor's attribute
        return program

    return factory


def failing(params: gc.ExecutorParams) -> gc.Executor:
    raise InternalError(f"This is a dummy for {len(params.fetches)} returns")


gc.register_executor_factory("RECORDING_A", recording("A"))
gc.register_executor_factory("RECORDING_B", recording("B"))
gc.register_executor_factory("FAILING", failing)


@pytest.fixture(autouse=True)
def nothing_made_yet() -> Iterator[None]:
    made.clear()
    yield
    made.clear()


def functions(*texts: str) -> gc.FunctionLibraryRuntime:
    return gc.FunctionLibraryRuntime(library(*texts) if texts else times_library())


@pytest.mark.parametrize(
    ("option", "attr", "used"),
    [
        ("", "", []),
        ("DEFAULT", "", []),
        ("", "DEFAULT", []),
        ("SINGLE_THREADED_EXECUTOR", "", []),
        ("RECORDING_A", "", ["A"]),
        ("", "RECORDING_B", ["B"]),
        ("RECORDING_A", "RECORDING_B", ["A"]),
        ("DEFAULT", "RECORDING_B", []),
        ("RECORDING_A", "UNKNOWN_EXECUTOR", ["A"]),
        ("RECORDING_A", "FAILING", ["A"]),
    ],
)
def test_f8_the_option_overrides_the_attr_and_names_the_executor(option: str, attr: str, used: list[str]) -> None:
    runtime = functions()
    attrs = FLOAT | ({"_executor": attr.encode()} if attr else {})
    handle = runtime.instantiate("XTimesTwo", attrs, InstantiateOptions(executor_type=option))
    for _ in range(2):
        assert runtime.run(handle, [X])[0].tolist() == [2, 4, 6, 8]
    assert [name for name, _ in made] == used


@pytest.mark.parametrize(("option", "attr"), [("UNKNOWN_EXECUTOR", ""), ("UNKNOWN_EXECUTOR", "DEFAULT"), ("", "UNKNOWN_EXECUTOR")])
def test_f8_an_executor_that_nobody_registered_is_missed_when_the_function_is_to_run(option: str, attr: str) -> None:
    runtime = functions()
    attrs = FLOAT | ({"_executor": attr.encode()} if attr else {})
    handle = runtime.instantiate("XTimesTwo", attrs, InstantiateOptions(executor_type=option))
    for use in (lambda: runtime.run(handle, [X]), lambda: runtime.create_item(handle), lambda: runtime.get_function_graph(handle)):
        with pytest.raises(NotFoundError) as caught:
            use()
        assert caught.value.message.startswith(f"{UNKNOWN} Registered factories are {{")
        assert "DEFAULT, SINGLE_THREADED_EXECUTOR" in caught.value.message


def test_instantiations_with_other_executors_have_other_handles() -> None:
    runtime = functions()
    options = [InstantiateOptions(executor_type=name) for name in ("", "RECORDING_A", "RECORDING_B")]
    handles = {runtime.instantiate("XTimesTwo", FLOAT, option) for option in options}
    assert len(handles) == 3
    assert runtime.instantiate("XTimesTwo", FLOAT | {"_executor": b"RECORDING_A"}) in handles


def test_an_error_of_a_factory_is_raised_by_the_run() -> None:
    runtime = functions()
    handle = runtime.instantiate("XTimesTwo", FLOAT, InstantiateOptions(executor_type="FAILING"))
    for _ in range(2):
        with pytest.raises(InternalError, match="This is a dummy for 1 returns"):
            runtime.run(handle, [X])


def test_inner_calls_are_run_by_the_default_executor() -> None:
    runtime = functions(KEPT_CALL, "Calls(x:float) -> (y:float) {\n  t = Twice(x)\n  y = Neg[T=float](t:y:0)\n  return y = y:y:0\n}")
    handle = runtime.instantiate("Calls", {}, InstantiateOptions(executor_type="RECORDING_A"))
    assert runtime.run(handle, [X])[0].tolist() == [-2, -4, -6, -8]
    assert made == [("A", ["Twice", "Neg"])]


def test_a_function_that_is_replaced_is_run_by_the_executor_that_was_named() -> None:
    definitions = times_library()
    runtime = gc.FunctionLibraryRuntime(definitions)
    handle = runtime.instantiate("XTimesTwo", FLOAT, InstantiateOptions(executor_type="RECORDING_A"))
    assert runtime.run(handle, [X])[0].tolist() == [2, 4, 6, 8]
    text = "XTimesTwo[T:{float, double, int32, int64}](x:T) -> (y:T) {\n  y = Neg[T=$T](x)\n  return y = y:y:0\n}"
    definitions.replace_function("XTimesTwo", gc.parse_function(text))
    assert runtime.run(handle, [X])[0].tolist() == [-1, -2, -3, -4]
    assert made[-1] == ("A", ["Neg"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (SWITCHED, "does not support switch op, but saw node s"),
        (FRAMED, "does not support low level control flow, but saw control flow node"),
    ],
    ids=["Switch", "Enter"],
)
def test_the_single_threaded_executor_refuses_control_flow_ops(text: str, message: str) -> None:
    runtime = functions(text)
    name = gc.parse_function(text).signature.name
    args = [np.float32(3.0), np.bool_(True)]
    assert runtime.run(runtime.instantiate(name), args) == [3.0]
    handle = runtime.instantiate(name, {}, InstantiateOptions(executor_type="SINGLE_THREADED_EXECUTOR"))
    with pytest.raises(FailedPreconditionError, match=f"Single-threaded executor {message}"):
        runtime.run(handle, args)


def test_the_single_threaded_executor_runs_functional_branches_and_loops() -> None:
    def doubled_below_ten(x: gc.Tensor) -> Any:
        doubled = gc.while_loop(lambda value: value < 10.0, lambda value: value * 2.0, x)
        return gc.cond(x > 0.0, lambda: doubled, lambda: x)

    with gc.Graph().as_default() as graph:
        gc.function(doubled_below_ten, name="DoubledBelowTen")(gc.constant(1.0))
        runtime = gc.FunctionLibraryRuntime(graph.library)
        handle = runtime.instantiate("DoubledBelowTen", {}, InstantiateOptions(executor_type="SINGLE_THREADED_EXECUTOR"))
        assert runtime.run(handle, [np.float32(3.0)]) == [12.0]


def test_a_type_has_one_factory() -> None:
    for name in ("", "DEFAULT", "RECORDING_A"):
        with pytest.raises(AlreadyExistsError, match=f"Executor factory already registered under name '{name}'"):
            gc.register_executor_factory(name, failing)
    assert gc.get_executor_factory("FAILING") is failing
    with pytest.raises(NotFoundError, match=UNKNOWN):
        gc.get_executor_factory("UNKNOWN_EXECUTOR")


@pytest.mark.parametrize("inner", [False, True], ids=["in the graph", "in a function"])
@pytest.mark.parametrize("op", ["PartitionedCall", "StatefulPartitionedCall", "by name"])
def test_a_call_names_the_executor_of_its_function(op: str, inner: bool) -> None:
    with gc.Graph().as_default() as graph:
        graph.library.add_library(times_library())

        def called(value: Any) -> gc.Tensor:
            if op == "by name":
                attrs = {**FLOAT, "_executor": b"RECORDING_A"}
                return gc.get_default_graph().apply_op("XTimesTwo", [value], attrs).outputs[0]
            attrs = {"Tout": (gc.float32,), "f": gc.Func("XTimesTwo", FLOAT), "executor_type": b"RECORDING_A"}
            return gc.get_default_graph().apply_op(op, [[value]], attrs).outputs[0]

        x = gc.placeholder(gc.float32, [4])
        y = gc.function(lambda value: gc.ops.neg(called(value)), name="outer")(x) if inner else called(x)
        expected = [-2, -4, -6, -8] if inner else [2, 4, 6, 8]
        assert gc.Session().run(y, {x: X}).tolist() == expected
    assert [name for name, _ in made] == ["A"]


@pytest.mark.parametrize("attr", ["executor_type", "_executor"])
def test_a_call_with_an_executor_that_nobody_registered_fails_at_its_node(attr: str) -> None:
    with gc.Graph().as_default() as graph:
        graph.library.add_library(times_library())
        x = gc.placeholder(gc.float32, [4])
        if attr == "_executor":
            y = graph.apply_op("XTimesTwo", [x], {**FLOAT, attr: b"UNKNOWN_EXECUTOR"}, "y")
        else:
            y = graph.apply_op(
                "PartitionedCall", [[x]], {"Tout": (gc.float32,), "f": gc.Func("XTimesTwo", FLOAT), attr: b"UNKNOWN_EXECUTOR"}, "y"
            )
        with pytest.raises(NotFoundError, match=UNKNOWN) as caught:
            gc.Session().run(y.outputs[0], {x: X})
        assert caught.value.node == "y"


def test_a_call_that_names_an_executor_is_not_inlined() -> None:
    with gc.Graph().as_default() as graph:
        graph.library.add_library(times_library())
        x = gc.placeholder(gc.float32, [4])
        graph.apply_op("XTimesTwo", [x], {**FLOAT, "_executor": b"RECORDING_A"}, "kept")
        graph.apply_op("XTimesTwo", [x], {**FLOAT, "_executor": b"DEFAULT"}, "gone")
    assert gc.expand_inline_functions(gc.FunctionLibraryRuntime(graph.library), graph)
    assert [node.name for node in graph.nodes if node.op == "XTimesTwo"] == ["kept"]
    assert not gc.lower_functional_ops(gc.FunctionLibraryRuntime(graph.library), graph)


def test_the_memory_of_a_named_executor_is_unknown() -> None:
    with gc.Graph().as_default() as graph:
        graph.library.add_library(times_library())
        x = gc.placeholder(gc.float32, [4])
        usual = graph.apply_op("XTimesTwo", [x], {**FLOAT, "_executor": b"DEFAULT"}).outputs[0]
        other = graph.apply_op("XTimesTwo", [x], {**FLOAT, "_executor": b"RECORDING_A"}).outputs[0]
        session = gc.Session()
    assert session.predicted_peak(usual, {x: X}).bytes == X.nbytes
    told = session.predicted_peak(other, {x: X})
    assert told.bytes is None
    assert "names an executor, which does not tell what it holds" in told.reason


# ---- running with a call frame -------------------------------------------------------------------------------------


def test_a_call_frame_gives_the_arguments_and_gets_the_returns() -> None:
    runtime = functions(ADD_BOTH)
    handle = runtime.instantiate("AddBoth")
    frame = gc.FunctionCallFrame([gc.float32, gc.int32], [gc.float32, gc.int32])
    frame.set_args([X, np.array(3, np.int32)])
    assert runtime.run(handle, frame) is None
    y, m = frame.consume_retvals()
    assert (y.tolist(), m) == ([2, 4, 6, 8], 6)
    runtime.run(handle, frame)
    assert frame.get_retvals()[1] == 6


def test_a_process_runtime_takes_a_call_frame_too() -> None:
    device = "/job:localhost/replica:0/task:0/device:CPU:0"
    runtime = gc.ProcessFunctionLibraryRuntime(times_library(), [device])
    frame = gc.FunctionCallFrame([gc.float32], [gc.float32])
    frame.set_args([X])
    runtime.run(runtime.instantiate("XTimesTwo", FLOAT), frame)
    assert frame.get_retvals()[0].tolist() == [2, 4, 6, 8]


@pytest.mark.parametrize(
    ("args", "rets", "values", "kind", "text"),
    [
        ([], ["float"], [], InvalidArgumentError, "GetArg 0 is not within [0, 0)"),
        (["int32"], ["float"], [np.array(1, np.int32)], InvalidArgumentError, "Type mismatch: actual int32 vs. expect float"),
        (["float"], ["float"], None, InternalError, "Arg[0] does not have value"),
        (["float"], [], [X], InvalidArgumentError, "SetRetval 0 is not within [0, 0)"),
        (["float"], ["int32"], [X], InvalidArgumentError, "Expects ret[0] to be int32, but float is provided."),
    ],
)
def test_f4_a_call_frame_for_another_function_is_refused(
    args: list[str], rets: list[str], values: list[Any] | None, kind: type[GraphError], text: str
) -> None:
    runtime = functions()
    handle = runtime.instantiate("XTimesTwo", FLOAT)
    frame = gc.FunctionCallFrame(args, rets)
    if values is not None:
        frame.set_args(values)
    with pytest.raises(kind) as caught:
        runtime.run(handle, frame)
    assert caught.value.message == text


def test_f4_a_call_frame_whose_returns_are_set_is_refused_before_anything_runs() -> None:
    runs: list[Any] = []

    def counted(x: Any, y: Any) -> Any:
        runs.append(x)
        return x * y

    def creator(node: gc.Node, _context: KernelContext) -> Any:
        return counted if node.op == "Mul" else None

    runtime = gc.FunctionLibraryRuntime(times_library(), custom_kernel_creator=creator)
    handle = runtime.instantiate("XTimesTwo", FLOAT)
    frame = gc.FunctionCallFrame([gc.float32], [gc.float32])
    frame.set_args([X])
    runtime.run(handle, frame)
    with pytest.raises(InternalError) as caught:
        runtime.run(handle, frame)
    assert caught.value.message == "Retval[0] has already been set."
    assert len(runs) == 1
    assert frame.get_retvals()[0].tolist() == [2, 4, 6, 8]


def test_f4_returns_that_the_function_does_not_have_stay_without_value() -> None:
    runtime = functions()
    frame = gc.FunctionCallFrame([gc.float32, gc.float32], [gc.float32, gc.float32])
    frame.set_args([X, X])
    runtime.run(runtime.instantiate("XTimesTwo", FLOAT), frame)
    with pytest.raises(InternalError) as caught:
        frame.get_retvals()
    assert caught.value.message == "Retval[1] does not have value"
