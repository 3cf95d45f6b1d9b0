"""FunctionBody: an instantiated function as a graph, and the printed form of graphs."""

from __future__ import annotations

import pytest

import graphcore as gc
from graphcore.errors import InvalidArgumentError
from graphcore.graph import graph_from_nodes

SQUARE_PLUS = """SquarePlus[T:{float, double, int32, int64}](x:T) -> (y:T) {
  y = Add[T=$T](a:y:0, x)
  a = Square[T=$T](x) @ o
  o = NoOp()
  @return done = o
  return y = y:z:0
}"""


def test_a_body_knows_its_arguments_returns_and_control_returns() -> None:
    fdef = gc.parse_function(SQUARE_PLUS)
    body = gc.function_def_to_body(fdef, {"T": gc.float32})
    assert body.fdef is fdef
    assert (body.arg_types, body.ret_types) == ((gc.float32,), (gc.float32,))
    assert [node.name for node in body.arg_nodes] == ["x"]
    assert [node.name for node in body.ret_nodes] == ["y_RetVal"]
    assert [node.name for node in body.control_ret_nodes] == ["o"]
    assert [node.name for node in body.graph.nodes] == ["x", "o", "a", "y", "y_RetVal"]


def test_a_body_is_made_from_an_instantiation_result() -> None:
    fdef = gc.parse_function(SQUARE_PLUS)
    result = gc.instantiate_function(fdef, {"T": gc.int32})
    body = gc.FunctionBody.from_instantiation(fdef, result)
    assert body.graph.get_tensor_by_name("y:0").dtype is gc.int32


def test_f2_output_shapes_of_an_argument_are_its_shape() -> None:
    fdef = gc.parse_function("f(x:float) -> (y:float) {\n  @arg 0 [_output_shapes=[[2,3]]]\n  y = Neg[T=float](x)\n  return y = y:y:0\n}")
    body = gc.function_def_to_body(fdef, {})
    assert body.graph.get_tensor_by_name("y:0").shape.dims == (2, 3)


def test_f2_ints_on_device_become_device_arguments_that_a_body_finds() -> None:
    text = "f(x:int32) -> (y:int32) {\n  @attr experimental_ints_on_device = true\n  y = Neg[T=int32](x)\n  return y = y:y:0\n}"
    body = gc.function_def_to_body(gc.parse_function(text), {})
    assert [node.op for node in (*body.arg_nodes, *body.ret_nodes)] == ["_DeviceArg", "_DeviceRetval"]


def test_f1_a_graph_prints_its_nodes_by_their_ids() -> None:
    body = gc.function_def_to_body(gc.parse_function(SQUARE_PLUS), {"T": gc.float32})
    assert gc.debug_string(body.graph) == (
        "\n(n2:float) -> (n5:float) {\n  n3 = NoOp()\n  n4 = Square[T=float](n2) @ n3\n  n5 = Add[T=float](n4, n2)\n}\n"
    )


def test_a_pretty_graph_def_names_nodes_by_op_and_id() -> None:
    body = gc.function_def_to_body(gc.parse_function(SQUARE_PLUS), {"T": gc.float32})
    pretty = gc.to_graph_def(body.graph, pretty=True)
    assert {node.name: node.input for node in pretty.node} == {
        "_Arg2": (),
        "NoOp3": (),
        "Square4": ("_Arg2", "^NoOp3"),
        "Add5": ("Square4", "_Arg2"),
        "_Retval6": ("Add5",),
    }


def test_nodes_that_wait_for_each_other_are_no_body() -> None:
    text = "f(x:float) -> (y:float) {\n  y = Add[T=float](a:y:0, x)\n  a = Neg[T=float](y:z:0)\n  return y = y:z:0\n}"
    with pytest.raises(InvalidArgumentError, match="contains a cycle through 'y'"):
        gc.function_def_to_body(gc.parse_function(text), {})


@pytest.mark.parametrize("inputs", [("gone",), ("x:1",)], ids=["no such node", "no such output"])
def test_a_graph_of_nodes_refuses_inputs_that_are_not_there(inputs: tuple[str, ...]) -> None:
    nodes = [gc.NodeDef("x", "_Arg", (), "", {"T": gc.float32, "index": 0}), gc.NodeDef("y", "Neg", inputs, "", {"T": gc.float32})]
    with pytest.raises(InvalidArgumentError, match=r"Unknown input node 'gone'|invalid output 1 of source node x"):
        graph_from_nodes(nodes)


def test_a_graph_of_nodes_refuses_two_nodes_of_one_name() -> None:
    with pytest.raises(InvalidArgumentError, match="Node 'x' is not unique"):
        graph_from_nodes([gc.NodeDef("x", "NoOp"), gc.NodeDef("x", "NoOp")])


def test_arguments_must_be_numbered_from_zero() -> None:
    graph = graph_from_nodes([gc.NodeDef("x", "_Arg", (), "", {"T": gc.float32, "index": 1})])
    with pytest.raises(InvalidArgumentError, match=r"Required 1 _DeviceArg nodes|Required 1 _Arg nodes"):
        gc.FunctionBody(None, [gc.float32], [], graph)
