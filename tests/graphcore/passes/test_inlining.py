"""Inlining of calls: names, control edges, the caller's properties, errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.errors import InternalError
from graphcore.graph import graph_with_library
from graphcore.inference.shape_fns.common_shape_fns import unchanged_shape
from graphcore.passes import (
    ExpandInlineFunctionsOptions,
    InlineFunctionBodyOptions,
    InstantiatedFunctions,
    expand_inline_functions,
    inline_function_body,
    remove_dead_nodes,
    remove_identity_nodes,
)
from tests.graphcore.passes.function_examples import ADD_AND_MUL, TWO, arg, library, lines, times_library

TWICE = {
    "x = _Arg[T=float, index=0]()",
    "Func/x4/input/_0 = Identity(x)",
    "Func/x4/output/_1 = Identity({x4})",
    "Func/y/input/_2 = Identity(Func/x4/output/_1)",
    "Func/y/output/_3 = Identity({y})",
    "y_RetVal = _Retval[T=float, index=0](Func/y/output/_3)",
}


def x_times_16() -> tuple[gc.Graph, InstantiatedFunctions]:
    functions = InstantiatedFunctions(times_library())
    graph = graph_with_library(functions.library)
    x4 = graph.apply_op("XTimesFour", [arg(graph, "x")], name="x4").outputs[0]
    y = graph.apply_op("XTimesFour", [x4], name="y").outputs[0]
    graph.apply_op("_Retval", [y], {"index": 0}, name="y_RetVal")
    return graph, functions


def inner(call: str, source: str, numbers: tuple[int, int]) -> set[str]:
    return {
        f"Func/{call}/input/_{numbers[0]} = Identity({source})",
        f"{call}/two = {TWO}",
        f"{call}/scale = Cast[DstT=float, SrcT=int64, Truncate=false]({call}/two)",
        f"{call}/y = Mul(Func/{call}/input/_{numbers[0]}, {call}/scale)",
        f"Func/{call}/output/_{numbers[1]} = Identity({call}/y)",
    }


def test_f9_example_1_two_levels_of_calls_are_expanded_one_at_a_time() -> None:
    graph, functions = x_times_16()
    assert expand_inline_functions(functions, graph)
    assert lines(graph) == {line.format(x4="x4/y", y="y/y") for line in TWICE} | {
        "x4/x2 = XTimesTwo(Func/x4/input/_0)",
        "x4/y = XTimesTwo(x4/x2)",
        "y/x2 = XTimesTwo(Func/y/input/_2)",
        "y/y = XTimesTwo(y/x2)",
    }
    assert expand_inline_functions(functions, graph)
    second = (
        {line.format(x4="Func/x4/y/output/_7", y="Func/y/y/output/_11") for line in TWICE}
        | inner("x4/x2", "Func/x4/input/_0", (4, 5))
        | inner("x4/y", "Func/x4/x2/output/_5", (6, 7))
        | inner("y/x2", "Func/y/input/_2", (8, 9))
        | inner("y/y", "Func/y/x2/output/_9", (10, 11))
    )
    assert lines(graph) == second
    assert not expand_inline_functions(functions, graph)
    assert lines(graph) == second


def test_f9_what_is_inlined_gives_the_same_before_and_after_cleaning() -> None:
    graph, functions = x_times_16()
    while expand_inline_functions(functions, graph):
        pass
    x, source = np.array([1, 2, 3, 4], np.float32), graph.get_tensor_by_name("x:0")
    for clean in (lambda g: g, remove_identity_nodes, remove_dead_nodes):
        clean(graph)
        result = graph.get_operation_by_name("y_RetVal").inputs[0]
        assert gc.Session(graph).run(result, {source: x}).tolist() == [16, 32, 48, 64]
    assert not any(node.op == "Identity" for node in graph.nodes)


def add_and_mul(wait: bool = False) -> tuple[gc.Graph, InstantiatedFunctions]:
    functions = InstantiatedFunctions(library(ADD_AND_MUL))
    graph = graph_with_library(functions.library)
    a = arg(graph, "a", dtype=gc.int32)
    first = [graph.apply_op("NoOp", name="first")] if wait else []
    with graph.control_dependencies(first):
        b = graph.apply_op("AddAndMul", [a], name="b")
    with graph.control_dependencies([b]):
        c = graph.apply_op("NoOp", name="c")
    with graph.control_dependencies([c]):
        graph.apply_op("_Retval", [b.outputs[0]], {"index": 0}, name="ret")
    return graph, functions


def inlined(graph: gc.Graph, functions: InstantiatedFunctions, **options: Any) -> gc.Graph:
    chosen = InlineFunctionBodyOptions(**options)
    expand_inline_functions(functions, graph, ExpandInlineFunctionsOptions(native=chosen))
    return graph


BODY = {
    "a = _Arg[T=int32, index=0]()",
    "Func/b/input/_0 = Identity(a)",
    "b/add = Add(Func/b/input/_0, Func/b/input/_0)",
    "b/ret = Mul(Func/b/input/_0, Func/b/input/_0)",
    "Func/b/output/_1 = Identity(b/ret)",
    "c = NoOp() @ Func/b/output_control_node/_2",
    "ret = _Retval[T=int32, index=0](Func/b/output/_1) @ c",
}


@pytest.mark.parametrize(
    ("source", "control"),
    [
        pytest.param("data_outputs", "Func/b/output/_1", id="F9 kDataOutputs"),
        pytest.param("control_outputs", "b/add", id="F9 kControlOutputs"),
    ],
)
def test_f9_example_2_who_waits_for_the_call_waits_for_its_outputs(source: str, control: str) -> None:
    graph = inlined(*add_and_mul(), output_control_src=source)
    assert lines(graph) == BODY | {f"Func/b/output_control_node/_2 = NoOp() @ {control}"}


@pytest.mark.parametrize(
    ("keep", "line"),
    [
        pytest.param("fetchable", "b = IdentityN[T={int32}](Func/b/output/_1) @ Func/b/output_control_node/_2", id="F9 kFetchable"),
        pytest.param("targetable", "b = NoOp() @ Func/b/output_control_node/_2", id="F9 kTargetable"),
    ],
)
def test_f9_a_node_of_the_callers_name_may_be_kept(keep: str, line: str) -> None:
    graph = inlined(*add_and_mul(), keep_caller_node=keep)
    assert lines(graph) == BODY | {"Func/b/output_control_node/_2 = NoOp() @ Func/b/output/_1", line}


def test_f9_control_inputs_of_the_call_come_first_and_reach_what_has_no_inputs_and_inner_calls() -> None:
    text = """f(x:int32) -> (y:int32) @stateless {
  k = Const[dtype=int32, value=Tensor<type: int32 shape: [] values: 3>]()
  inner = AddAndMul(x)
  late = AddAndMul(x) @ k
  y = Add[T=int32](inner:o:0, k:output:0)
  return y = y:z:0
}"""
    functions = InstantiatedFunctions(library(ADD_AND_MUL, text))
    graph = graph_with_library(functions.library)
    a = arg(graph, "a", dtype=gc.int32)
    with graph.control_dependencies([graph.apply_op("NoOp", name="first")]):
        graph.apply_op("f", [a], name="b")
    expand_inline_functions(functions, graph)
    assert lines(graph) == {
        "a = _Arg[T=int32, index=0]()",
        "first = NoOp()",
        "Func/b/input_control_node/_0 = NoOp() @ first",
        "Func/b/input/_1 = Identity(a) @ Func/b/input_control_node/_0",
        "b/k = Const[dtype=int32, value=Tensor<type: int32 shape: [] values: 3>]() @ Func/b/input_control_node/_0",
        "b/inner = AddAndMul(Func/b/input/_1) @ Func/b/input_control_node/_0",
        "b/late = AddAndMul(Func/b/input/_1) @ b/k",
        "b/y = Add(b/inner, b/k)",
        "Func/b/output/_2 = Identity(b/y)",
    }


def test_f9_an_output_control_node_without_sources_waits_for_the_input_control_node() -> None:
    functions = InstantiatedFunctions(library("f(x:int32) -> (y:int32) {\n  y = Neg[T=int32](x)\n  return y = y:y:0\n}"))
    graph = graph_with_library(functions.library)
    a = arg(graph, "a", dtype=gc.int32)
    with graph.control_dependencies([graph.apply_op("NoOp", name="first")]):
        call = graph.apply_op("f", [a], name="b")
    with graph.control_dependencies([call]):
        graph.apply_op("NoOp", name="last")
    inlined(graph, functions, output_control_src="control_outputs")
    assert "Func/b/output_control_node/_3 = NoOp() @ Func/b/input_control_node/_0" in lines(graph)
    assert "last = NoOp() @ Func/b/output_control_node/_3" in lines(graph)


def test_f12_colocation_with_an_argument_becomes_colocation_with_its_input_identity() -> None:
    text = """f(x:float, y:float) -> (z:float) {
  z = AddV2[T=float, _class=["loc:@x"]](x, y)
  w = Neg[T=float, _class=["loc:@z", "loc:@elsewhere"]](z:z:0)
  return z = z:z:0
}"""
    functions = InstantiatedFunctions(library(text))
    graph = graph_with_library(functions.library)
    inputs = [arg(graph, "inp0", 0), arg(graph, "inp1", 1)]
    attrs = {"Tout": [gc.float32], "f": gc.Func("f")}
    call = graph.apply_op("StatefulPartitionedCall", [inputs], attrs, name="call")
    graph.apply_op("_Retval", [call.outputs[0]], {"index": 0}, name="out0")
    expand_inline_functions(functions, graph)
    assert lines(graph) == {
        "inp0 = _Arg[T=float, index=0]()",
        "inp1 = _Arg[T=float, index=1]()",
        "Func/call/input/_0 = Identity(inp0)",
        "Func/call/input/_1 = Identity(inp1)",
        'call/z = AddV2[T=float, _class=["loc:@Func/call/input/_0"]](Func/call/input/_0, Func/call/input/_1)',
        'call/w = Neg[T=float, _class=["loc:@call/z", "loc:@elsewhere"]](call/z)',
        "Func/call/output/_2 = Identity(call/z)",
        "out0 = _Retval[T=float, index=0](Func/call/output/_2)",
    }
    assert remove_dead_nodes(graph)
    assert graph.find("call/w") is None


REFUSALS = [
    pytest.param(
        "(x:float, y:float) -> (z:float)", {}, "", "Node inputs do not match function arguments: inputs=1 arg_types=2 arg_nodes=2"
    ),
    pytest.param("(x:float) -> ()", {}, "", "Node outputs do not match function returns: outputs=1 ret_types=0 ret_nodes=0"),
    pytest.param("(x:int32) -> (z:float)", {}, "", "Node input type doesn't match function argument type: float != int32 @ index=0"),
    pytest.param(
        "(x:float) -> (z:float)", {"disable_inlining": True}, "", "Function inlining explicitly disabled by 'options.disable_inlining'"
    ),
    pytest.param(
        "(x:float) -> (z:float)",
        {},
        '@attr api_implements = "g"',
        "Inlining of implementation selection group function f is disabled by options.inline_impl_selection_group_functions",
    ),
    pytest.param("(x:float) -> (z:float)", {}, "@attr _noinline = true", "Can't inline function marked with '_noinline'"),
]


@pytest.mark.parametrize(("signature", "options", "attr", "text"), REFUSALS, ids=[f"F9 refusal {i}" for i in range(len(REFUSALS))])
def test_f9_a_refused_call_says_why_and_stays(signature: str, options: dict[str, Any], attr: str, text: str) -> None:
    definitions = library(
        f"f{signature} {{\n  {attr}\n  c = Const[dtype=float, value=Tensor<type: float shape: [] values: 1>]()\n  return z = c:output:0\n}}"
        if "z:" in signature
        else f"f{signature} {{\n}}"
    )
    graph = gc.Graph()
    caller = graph.apply_op("Neg", [arg(graph, "a")], name="call")
    body = InstantiatedFunctions(definitions).body_of("f", {})
    before = lines(graph)
    with pytest.raises(InternalError) as caught:
        inline_function_body(definitions, graph, caller, body, InlineFunctionBodyOptions(**options))
    assert f"Inlining mismatch: {text}" in str(caught.value)
    assert lines(graph) == before


def test_f9_functions_marked_noinline_stay_calls_unless_that_is_ignored() -> None:
    text = "f(x:float) -> (y:float) {\n  @attr _noinline = true\n  y = Neg[T=float](x)\n  return y = y:y:0\n}"
    functions = InstantiatedFunctions(library(text))
    graph = graph_with_library(functions.library)
    call = graph.apply_op("f", [arg(graph, "a")], name="call")
    assert not expand_inline_functions(functions, graph)
    body = functions.body_of("f", {})
    inline_function_body(functions.library, graph, call, body, InlineFunctionBodyOptions(ignore_noinline=True))
    assert graph.find("call/y") is not None


def test_f9_frame_names_are_made_unique_if_asked_for() -> None:
    registry = gc.OpRegistry()
    for op in ("Identity", "_Arg", "_Retval"):
        registry.register(gc.op_registry.look_up(op))
    registry.register(gc.parse_op_signature("Enter[T:type, frame_name:string](data:T) -> (output:T)"), unchanged_shape)
    definitions = gc.FunctionLibraryDefinition(registry)
    text = 'f(x:float) -> (y:float) {\n  y = Enter[T=float, frame_name="while"](x)\n  return y = y:output:0\n}'
    definitions.add_function_def(gc.parse_function(text, definitions.look_up_op_def))
    for unique, frame in ((True, b"call/while"), (False, b"while")):
        graph = graph_with_library(definitions)
        call = graph.apply_op("f", [arg(graph, "a")], name="call")
        body = InstantiatedFunctions(definitions).body_of("f", {})
        inline_function_body(definitions, graph, call, body, InlineFunctionBodyOptions(uniquify_frame_names=unique))
        assert graph.get_operation_by_name("call/y").get_attr("frame_name") == frame


DOUBLING = """Doubling(x:float) -> (y:float) {
  limit = Const[dtype=float, value=Tensor<type: float shape: [] values: 100>]()
  enter = Enter[T=float, frame_name="while"](x)
  most = Enter[T=float, frame_name="while", is_constant=true](limit:output:0)
  merge = Merge[N=2, T=float](enter:output:0, next:output:0)
  less = Less[T=float](merge:output:0, most:output:0)
  cond = LoopCond(less:z:0)
  switch = Switch[T=float](merge:output:0, cond:output:0)
  twice = Add[T=float](switch:output_true:0, switch:output_true:0)
  next = NextIteration[T=float](twice:z:0)
  exit = Exit[T=float](switch:output_false:0)
  return y = exit:output:0
}"""


def test_f9_a_function_with_a_loop_is_inlined_twice_in_two_frames() -> None:
    functions = InstantiatedFunctions(library(DOUBLING))
    run = gc.FunctionLibraryRuntime(functions.library)
    assert run.run(run.instantiate("Doubling"), [np.float32(3)]) == [192]
    graph = graph_with_library(functions.library)
    x = graph.apply_op("Placeholder", attrs={"dtype": gc.float32, "shape": gc.Shape([])}, name="x").outputs[0]
    a = graph.apply_op("Doubling", [x], name="a").outputs[0]
    b = graph.apply_op("Doubling", [graph.apply_op("Neg", [graph.apply_op("Neg", [a]).outputs[0]]).outputs[0]], name="b").outputs[0]
    end = graph.apply_op("Identity", [b], name="end").outputs[0]
    assert expand_inline_functions(functions, graph)
    frames = {str(node.get_attr("frame_name")) for node in graph.nodes if node.op == "Enter"}
    assert frames == {"b'a/while'", "b'b/while'"}
    assert graph.get_operation_by_name("a/merge").node_def.input == ("a/enter", "a/next")
    assert not [node.name for node in graph.nodes if node.error is not None or node.input_errors]
    assert end.shape.as_list() == []
    assert gc.Session(graph).run(end, {x: 3.0}) == 192
    assert gc.Session(graph).run(end, {x: 101.0}) == 101


def test_f9_what_a_return_waits_for_its_output_identity_waits_for() -> None:
    body = gc.Graph()
    x = arg(body, "x")
    with body.control_dependencies([body.apply_op("NoOp", name="first")]):
        body.apply_op("_Retval", [x], {"index": 0}, name="y_RetVal")
    graph = gc.Graph()
    caller = graph.apply_op("Neg", [arg(graph, "a")], name="b")
    graph.apply_op("_Retval", [caller.outputs[0]], {"index": 0}, name="ret")
    inline_function_body(graph.library, graph, caller, gc.FunctionBody(None, [gc.float32], [gc.float32], body))
    assert lines(graph) == {
        "a = _Arg[T=float, index=0]()",
        "Func/b/input/_0 = Identity(a)",
        "b/first = NoOp()",
        "Func/b/output/_1 = Identity(Func/b/input/_0) @ b/first",
        "ret = _Retval[T=float, index=0](Func/b/output/_1)",
    }


def test_f9_of_a_call_without_outputs_a_no_op_is_kept() -> None:
    functions = InstantiatedFunctions(library("f(x:float) -> () {\n  n = NoOp() @ x\n  @return done = n\n}"))
    graph = graph_with_library(functions.library)
    graph.apply_op("f", [arg(graph, "a")], name="call")
    inlined(graph, functions, keep_caller_node="fetchable", output_control_src="control_outputs")
    assert {"call = NoOp() @ Func/call/output_control_node/_1", "Func/call/output_control_node/_1 = NoOp() @ call/n"} <= lines(graph)


def test_inlined_nodes_remember_the_function_they_come_from() -> None:
    graph, functions = x_times_16()
    expand_inline_functions(functions, graph)
    node = graph.get_operation_by_name("x4/x2").node_def
    assert (node.original_node_names, node.original_func_names) == (("x2",), ("XTimesFour",))


def test_shapes_follow_into_and_behind_what_was_inlined() -> None:
    functions = InstantiatedFunctions(times_library())
    graph = graph_with_library(functions.library)
    x = graph.apply_op("Placeholder", attrs={"dtype": gc.float32, "shape": gc.Shape([2, None])}, name="x").outputs[0]
    y = graph.apply_op("XTimesTwo", [x], name="call").outputs[0]
    after = graph.apply_op("Neg", [y], name="after").outputs[0]
    assert after.shape.dims == (2, None)
    expand_inline_functions(functions, graph)
    assert after.shape.dims == (2, None)
