"""Functions with handles, loops across frames, recursion, and invalid functions without side effects."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest

import graphcore as gc
from graphcore.errors import GraphError, InvalidArgumentError, NotFoundError, ResourceExhaustedError
from tests.graphcore.passes.function_examples import X_TIMES_TWO, library, times_library

RESOURCE_OUTPUT = """ResourceOutput(x:float, y:resource) -> (y_out:resource, two_x:float) {
  two = Const[dtype=float, value=Tensor<type: float shape: [] values: 2>]()
  mul = Mul[T=float](x, two:output:0)
  return y_out = y
  return two_x = mul:z:0
}"""
INVALID_CONTROL_FLOW = """InvalidControlFlow(i:int32) -> (o:int32) {
  enter = Enter[T=int32, frame_name="while"](i)
  add = Add[T=int32](enter:output, i)
  return o = add:z
}"""
BASE = "Base(n:float) -> (y:float) {\n  y = OnesLike[T=float](n)\n  return y = y:y:0\n}"
FACTORIAL = """Factorial(n:float) -> (y:float) @stateless {
  one = Const[dtype=float, value=Tensor<type: float shape: [] values: 1>]()
  more = Greater[T=float](n, one:output:0)
  y = If[Tcond=bool, Tin={float}, Tout={float}, else_branch=Base, then_branch=Step](more:z:0, n)
  return y = y:output:0
}"""
STEP = """Step(n:float) -> (y:float) @stateless {
  one = Const[dtype=float, value=Tensor<type: float shape: [] values: 1>]()
  less = Sub[T=float](n, one:output:0)
  before = Factorial(less:z:0)
  y = Mul[T=float](n, before:y:0)
  return y = y:z:0
}"""


def test_f0_a_resource_is_passed_on_as_it_is() -> None:
    functions = gc.FunctionLibraryRuntime(library(RESOURCE_OUTPUT))
    handle, held = functions.instantiate("ResourceOutput"), object()
    body = functions.get_function_body(handle)
    assert (body.arg_types, body.ret_types) == ((gc.float32, gc.resource), (gc.resource, gc.float32))
    same, doubled = functions.run(handle, [np.float32(3), held])
    assert same is held
    assert doubled == 6


def test_f8_example_4_inputs_from_different_frames_are_refused() -> None:
    functions = gc.FunctionLibraryRuntime(library(INVALID_CONTROL_FLOW))
    handle = functions.instantiate("InvalidControlFlow")
    with pytest.raises(InvalidArgumentError) as caught:
        functions.run(handle, [np.int32(1)])
    assert caught.value.message == (
        "{{node add}} has inputs from different frames. The input {{node enter}} is in frame 'while'. The input {{node i}} is in frame ''."
    )


def recursive() -> gc.FunctionLibraryDefinition:
    made = library(BASE, FACTORIAL.replace("then_branch=Step", "then_branch=Base"), STEP)
    made.replace_function("Factorial", gc.parse_function(FACTORIAL, made.look_up_op_def))
    return made


def test_recursion_that_ends_gives_its_value() -> None:
    functions = gc.FunctionLibraryRuntime(recursive())
    handle = functions.instantiate("Factorial")
    assert functions.run(handle, [np.float32(5)]) == [120]
    assert functions.run(handle, [np.float32(1)]) == [1]


def test_too_deep_recursion_is_an_error_after_which_the_function_still_works() -> None:
    functions = gc.FunctionLibraryRuntime(recursive())
    handle = functions.instantiate("Factorial")
    with pytest.raises(ResourceExhaustedError, match="calls itself more than 100 levels deep: recursion needs a case that ends it"):
        functions.run(handle, [np.float32(1e6)])
    assert functions.run(handle, [np.float32(5)]) == [120]


def test_a_session_runs_recursive_functions() -> None:
    graph = gc.Graph()
    graph.library.add_library(recursive())
    with graph.as_default():
        x = gc.placeholder(gc.float32, [], name="x")
        y = graph.apply_op("Factorial", [x]).outputs[0]
    session = gc.Session(graph)
    assert session.run(y, {x: 6.0}) == 720
    with pytest.raises(ResourceExhaustedError, match="calls itself more than 100 levels deep"):
        session.run(y, {x: 1e6})
    assert session.run(y, {x: 4.0}) == 24


Use = Callable[[gc.FunctionLibraryRuntime], object]


def added(text: str) -> gc.FunctionLibraryDefinition:
    made = times_library()
    made.add_function_def(gc.parse_function(text, made.look_up_op_def))
    return made


def running(text: str, name: str = "F") -> tuple[gc.FunctionLibraryDefinition, Use]:
    return added(text), lambda functions: functions.run(functions.instantiate(name), [np.float32(1)])


def duplicated() -> tuple[gc.FunctionLibraryDefinition, Use]:
    made = times_library()
    made.add_function_def(gc.FunctionDefHelper.create("F", ["x: float", "x: float"], [], [], [], {}))
    return made, lambda functions: functions.instantiate("F")


def another_signature() -> tuple[gc.FunctionLibraryDefinition, Use]:
    made = times_library()
    return made, lambda functions: functions.library.add_function_def(
        gc.parse_function(X_TIMES_TWO.replace("x:T", "z:T").replace("(x,", "(z,"))
    )


FOREVER = "F(x:float) -> (y:float) {\n  y = Neg[T=float](x)\n  return y = y:y:0\n}"


def forever() -> tuple[gc.FunctionLibraryDefinition, Use]:
    made = added(FOREVER)
    made.replace_function("F", gc.parse_function(FOREVER.replace("Neg[T=float]", "F"), made.look_up_op_def))
    return made, lambda functions: functions.run(functions.instantiate("F"), [np.float32(1)])


def calls_unknown() -> tuple[gc.FunctionLibraryDefinition, Use]:
    made = added(FOREVER)
    nodes = [gc.FunctionDefHelper.Node(["y"], "Missing", ["x"])]
    made.replace_function("F", gc.FunctionDefHelper.create("F", ["x: float"], ["y: float"], [], nodes, {"y": "y:y:0"}))
    return made, lambda functions: functions.run(functions.instantiate("F"), [np.float32(1)])


CALL = "F(x:float) -> (y:float) {\n  y = PartitionedCall[Tin={float}, Tout={float}, f=Missing](x)\n  return y = y:output:0\n}"
BAD = [
    pytest.param(
        lambda: running("F[T:type](x:T) -> (y:T) {\n  y = Neg[T=$U](x)\n  return y = y:y:0\n}"),
        NotFoundError,
        "Attr T is not found from Op<name=F;",
        id="an attr that nobody gives",
    ),
    pytest.param(
        lambda: running("F(x:float) -> (y:float) {\n  y = Neg[T=$U](x)\n  return y = y:y:0\n}"),
        InvalidArgumentError,
        "Failed to bind all placeholders in $U",
        id="unbound placeholder",
    ),
    pytest.param(
        lambda: running("F(x:float) -> (y:float) {\n  y = Neg[T=float](x)\n  y = Neg[T=float](x)\n  return y = y:y:0\n}"),
        InvalidArgumentError,
        "Duplicated ret name: y:y\n\tIn {{node y}}",
        id="two nodes of one name",
    ),
    pytest.param(duplicated, InvalidArgumentError, "Duplicated arg name: x\n\tIn x:float", id="two arguments of one name"),
    pytest.param(
        lambda: running("F(x:float) -> (y:float) {\n}"),
        InvalidArgumentError,
        "Return y missing.\n\tIn function output y:float",
        id="missing return",
    ),
    pytest.param(
        lambda: running("F(x:float) -> (y:float) {\n  y = AddN[N=3, T=float](x, x)\n  return y = y:sum:0\n}"),
        InvalidArgumentError,
        "Attempt to access beyond input size: 2 >= 2\n\tIn {{node y}}",
        id="too few inputs",
    ),
    pytest.param(
        lambda: running("F(x:float) -> (y:float) {\n  y = AddN[N=1, T=float](x, x)\n  return y = y:sum:0\n}"),
        InvalidArgumentError,
        "Expected input[1] == 'x' to be a control input.\n\tIn {{node y}}",
        id="too many inputs",
    ),
    pytest.param(
        lambda: running("F(x:float, z:float) -> (y:float) {\n  return y = x\n}"),
        InvalidArgumentError,
        "Expects 2 arguments, but 1 is provided",
        id="too few arguments",
    ),
    pytest.param(
        forever,
        ResourceExhaustedError,
        "Function F calls itself more than 100 levels deep: recursion needs a case that ends it",
        id="recursion without an end",
    ),
    pytest.param(calls_unknown, NotFoundError, "Op type not registered 'Missing'", id="call of an unknown function"),
    pytest.param(lambda: running(CALL), NotFoundError, "Function Missing is not defined.", id="partitioned call of an unknown function"),
    pytest.param(
        another_signature,
        InvalidArgumentError,
        "Cannot add function 'XTimesTwo' because a different function with the same name already exists.",
        id="another function of that name",
    ),
]


@pytest.mark.parametrize(("make", "error", "text"), BAD)
def test_an_invalid_function_is_an_exact_error_and_leaves_the_library_unchanged(
    make: Callable[[], tuple[gc.FunctionLibraryDefinition, Use]], error: type[GraphError], text: str
) -> None:
    definitions, use = make()
    functions = gc.FunctionLibraryRuntime(definitions)
    before = definitions.to_proto()
    for _ in range(2):
        with pytest.raises(error) as caught:
            use(functions)
        assert caught.value.message.partition(" signature=")[0] == text
        assert definitions.to_proto() == before
    good = functions.instantiate("XTimesTwo", {"T": gc.float32})
    assert functions.run(good, [np.float32(2)]) == [4]


# The first is refused before a call; the others are calls of functions that are inlined themselves.
NOT_AT_A_CALL = {"another function of that name", "too few arguments", "partitioned call of an unknown function"}


@pytest.mark.parametrize(("make", "error", "text"), [case for case in BAD if case.id not in NOT_AT_A_CALL])
def test_a_call_of_a_bad_function_leaves_the_graph_as_it_was(
    make: Callable[[], tuple[gc.FunctionLibraryDefinition, Use]], error: type[GraphError], text: str
) -> None:
    definitions, _ = make()
    graph = gc.Graph()
    graph.library.add_library(definitions)
    with graph.as_default():
        x = gc.placeholder(gc.float32, [], name="x")
        y = graph.apply_op("PartitionedCall", [[x]], {"Tout": [gc.float32], "f": gc.Func("F")}).outputs[0]
    before, functions = graph.as_graph_def(), graph.library.to_proto()
    with pytest.raises(error, match=re.escape(text.partition("\n")[0])):
        gc.Session(graph).run(y, {x: 1.0})
    gc.optimize_graph(None, graph)
    assert graph.as_graph_def() == before
    assert graph.library.to_proto() == functions


@pytest.mark.parametrize(
    ("body", "text", "advice"),
    [
        ("a = Sqare[T=float](x)", "Op type not registered 'Sqare'", "Did you mean `Square`?"),
        (
            "a = Square(x)",
            "type attr not found: T",
            "Give the node its attrs in square brackets before its inputs, as in `[T=float]` or `[T=$T]`.",
        ),
        ("b = Square[T=float](x)\n  a = Square[T=float](b)", "input b is not found", "Write an output of 'b' as `b:y:0`."),
        ("a = Neg[T=float](x)\n  b = Square[T=float](a:z:0)", "input a:z:0 is not found", "Write an output of 'a' as `a:y:0`."),
        ("b = Square[T=float](x)", "Return y -> a:y:0 is not found", ""),
        ("a = AddV2[T=float](x, x)", "Return y -> a:y:0 is not found", "Write an output of 'a' as `a:z:0`."),
    ],
)
def test_a_run_that_calls_a_bad_function_names_the_function_and_the_call(body: str, text: str, advice: str) -> None:
    graph = gc.Graph()
    graph.library.add_function_def(gc.parse_function(f"F(x:float) -> (y:float) {{\n  {body}\n  return y = a:y:0\n}}"))
    with graph.as_default():
        y = gc.apply_op("F", [gc.constant(1.0)], name="call")
    with gc.Session(graph) as session, pytest.raises(GraphError) as caught:
        session.run(y)
    assert caught.value.message.startswith(text)
    assert caught.value.message.endswith("\n  in the body of function 'F'")
    assert caught.value.suggestion == advice
    assert caught.value.node == "call"
    assert caught.value.source is not None
