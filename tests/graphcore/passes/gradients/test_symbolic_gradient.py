"""The gradient of a function body: its form, its values, gradients of gradients."""

from __future__ import annotations

import numpy as np
import pytest

import graphcore as gc
from graphcore.attrs import AttrValue
from graphcore.errors import InvalidArgumentError, NotFoundError
from graphcore.inference.shape_fns.common_shape_fns import scalar_shape
from graphcore.passes import InstantiatedFunctions, expand_inline_functions, remove_dead_nodes
from graphcore.passes.gradients.functions.symbolic_gradient import symbolic_gradient
from graphcore.runtime import needed_nodes
from graphcore.text import debug_string
from tests.graphcore.passes.function_examples import TWO, X_TIMES_TWO, library, lines, times_library

FLOAT: dict[str, AttrValue] = {"T": gc.float32}
XY = """Poly(x:float, y:float) -> (z:float, w:float) {
  xx = Square[T=float](x)
  xxy = Mul[T=float](xx:y:0, y)
  z = Add[T=float](xxy:z:0, x)
  w = Mul[T=float](x, y)
  return z = z:z:0
  return w = w:z:0
}"""


def test_f11_a_gradient_body_is_the_forward_body_and_one_gradient_node_an_op() -> None:
    body = symbolic_gradient(InstantiatedFunctions(times_library()).body_of("XTimesTwo", FLOAT))
    assert lines(body.graph) == {
        "x = _Arg[T=float, index=0]()",
        "Func/_0 = _Arg[T=float, index=1]()",
        f"two = {TWO}",
        "scale = Cast[DstT=float, SrcT=int64, Truncate=false](two)",
        "y = Mul(x, scale)",
        "Func/_1 = SymbolicGradient[Tin={float, float, float}, Tout={float, float}, f=Mul](x, scale, Func/_0)",
        "Func/_2 = _Retval[T=float, index=0](Func/_1)",
    }
    assert (body.arg_types, body.ret_types) == ((gc.float32, gc.float32), (gc.float32,))


def test_f11_several_gradients_of_one_value_are_added() -> None:
    body = symbolic_gradient(InstantiatedFunctions(library(XY)).body_of("Poly", {}))
    sums = [debug_string(node.node_def) for node in body.graph.nodes if node.op == "AddN"]
    assert len(sums) == 2
    assert any("AddN[N=3, T=float]" in text for text in sums)
    assert all(text.startswith("Func/_") for text in sums)


def test_f11_no_gradient_and_bools_give_zeros_and_nondifferentiable_ops_pass_nothing_on() -> None:
    text = """f(x:float, b:bool, u:float) -> (y:float) {
  s = Shape[T=float](x)
  z = Select[T=float](b, x, x)
  y = Reshape[T=float](z:output:0, s:output:0)
  return y = y:output:0
}"""
    body = symbolic_gradient(InstantiatedFunctions(library(text)).body_of("f", {}))
    rets = [node.inputs[0].node for node in body.ret_nodes]
    assert [(node.op, node.get_attr("T")) for node in rets[1:]] == [("ZerosLike", gc.bool_), ("ZerosLike", gc.float32)]
    assert [node.inputs[0].name for node in rets[1:]] == ["b:0", "u:0"]
    gradients = [node for node in body.graph.nodes if node.op == "SymbolicGradient"]
    assert {str(node.get_attr("f").name) for node in gradients} == {"Select", "Reshape"}  # type: ignore[union-attr]  # a Func


def test_f8_several_gradients_of_a_bool_are_zeros_and_no_sum() -> None:
    text = """f(x:float, b:bool) -> (y:float, z:float) {
  y = Select[T=float](b, x, x)
  z = Select[T=float](b, x, x)
  return y = y:output:0
  return z = z:output:0
}"""
    body = symbolic_gradient(InstantiatedFunctions(library(text)).body_of("f", {}))
    of_bool = body.ret_nodes[1].inputs[0].node
    assert (of_bool.op, of_bool.get_attr("T"), of_bool.inputs[0].name) == ("ZerosLike", gc.bool_, "b:0")
    assert all(node.get_attr("T") is gc.float32 for node in body.graph.nodes if node.op == "AddN")


def test_f11_the_gradient_of_a_resource_is_a_float() -> None:
    text = """f(v:resource, x:float) -> (y:float) {
  r = ReadVariableOp[dtype=float](v)
  y = Mul[T=float](r:value:0, x)
  return y = y:z:0
}"""
    body = symbolic_gradient(InstantiatedFunctions(library(text)).body_of("f", {}))
    made = {str(node.get_attr("f").name): node for node in body.graph.nodes if node.op == "SymbolicGradient"}  # type: ignore[union-attr]
    read = made["ReadVariableOp"]
    assert read.get_attr("Tin") == (gc.resource, gc.float32)
    assert read.get_attr("Tout") == (gc.float32,)
    assert body.ret_types == (gc.float32, gc.float32)
    assert body.arg_types == (gc.resource, gc.float32, gc.float32)


def test_f11_what_does_not_reach_a_return_is_not_waited_for() -> None:
    text = "f(x:float) -> (y:float) {\n  y = Neg[T=float](x)\n  lost = Exp[T=float](x)\n  return y = y:y:0\n}"
    body = symbolic_gradient(InstantiatedFunctions(library(text)).body_of("f", {}))
    assert body.ret_nodes[0].inputs[0].node.op == "SymbolicGradient"


def test_f11_zeros_for_a_resource_are_zeros_like_what_it_holds() -> None:
    registry = gc.OpRegistry()
    for op in ("_Arg", "_Retval", "ZerosLike", "Identity", "SymbolicGradient", "AddN"):
        registry.register(gc.op_registry.look_up(op))
    registry.register(gc.parse_op_signature("ReadVariableOp[dtype:type](resource:resource) -> (value:dtype)"), scalar_shape)
    definitions = gc.FunctionLibraryDefinition(registry)
    text = "f(x:float, v:resource) -> (y:float) {\n  y = Identity[T=float](x)\n  return y = y:output:0\n}"
    definitions.add_function_def(gc.parse_function(text, definitions.look_up_op_def))
    body = symbolic_gradient(InstantiatedFunctions(definitions).body_of("f", {}))
    assert body.ret_types == (gc.float32, gc.float32)
    assert {"Read/_2 = ReadVariableOp[dtype=float](v)", "Func/_3 = ZerosLike(Read/_2)"} <= lines(body.graph)


def test_f11_example_the_gradient_of_a_primitive_op_is_its_registered_body() -> None:
    body = InstantiatedFunctions(gc.FunctionLibraryDefinition()).body_of("SymbolicGradient", {"f": gc.Func("Add", FLOAT)})
    assert lines(body.graph) == {
        "x = _Arg[T=float, index=0]()",
        "y = _Arg[T=float, index=1]()",
        "dz = _Arg[T=float, index=2]()",
        "gx = Identity(dz)",
        "gy = Identity(dz)",
        "sx = Shape[T=float, out_type=int32](x)",
        "sy = Shape[T=float, out_type=int32](y)",
        "rx = BroadcastGradientArgs(sx, sy)",
        "sum_gx = Sum[T=float, Tidx=int32, keep_dims=false](gx, rx)",
        "sum_gy = Sum[T=float, Tidx=int32, keep_dims=false](gy, rx:1)",
        "dx = Reshape[T=float, Tshape=int32](sum_gx, sx)",
        "dy = Reshape[T=float, Tshape=int32](sum_gy, sy)",
        "dx_RetVal = _Retval[T=float, index=0](dx)",
        "dy_RetVal = _Retval[T=float, index=1](dy)",
    }


def values(body: gc.FunctionBody, functions: InstantiatedFunctions, *args: float) -> list[float]:
    while expand_inline_functions(functions, body.graph):
        pass
    feeds = {node.outputs[0]: np.float32(value) for node, value in zip(body.arg_nodes, args, strict=True)}
    return [float(value) for value in gc.Session(body.graph).run([node.inputs[0] for node in body.ret_nodes], feeds)]


def test_f11_gradients_have_the_right_values() -> None:
    functions = InstantiatedFunctions(library(XY))
    x, y, dz, dw = 3.0, 0.5, 2.0, 10.0
    body = symbolic_gradient(functions.body_of("Poly", {}))
    assert values(body, functions, x, y, dz, dw) == pytest.approx([dz * (2 * x * y + 1) + dw * y, dz * x * x + dw * x])


def test_f11_the_gradient_goes_through_calls() -> None:
    functions = InstantiatedFunctions(times_library())
    assert values(symbolic_gradient(functions.body_of("XTimes16", FLOAT)), functions, 5.0, 1.5) == [24.0]


MIXED = """Mixed(b:bool, x:float) -> (y:float) {
  c = Cast[DstT=float, SrcT=bool](b)
  lost = Exp[T=float](x)
  y = Mul[T=float](c:y:0, x)
  return y = y:z:0
}"""
SLOPE = """Slope(x:float, dy:float) -> (dx:float) {
  dx = SymbolicGradient[Tin={float, float}, Tout={float}, f=XTimesTwo[T=float]](x, dy)
  return dx = dx:output:0
}"""


@pytest.mark.parametrize("copied", [False, True], ids=["itself", "a copy"])
def test_f11_what_no_gradient_takes_is_gone_when_a_gradient_body_is_optimised(copied: bool) -> None:
    functions = InstantiatedFunctions(times_library())
    body = symbolic_gradient(functions.body_of("XTimesTwo", FLOAT))
    graph = body.graph.copy() if copied else body.graph
    gc.optimize_graph(functions, graph)
    ops = ["Const", "Const", "Mul", "Shape", "BroadcastGradientArgs", "Sum", "Reshape", "_Arg", "_Arg", "_Retval"]
    assert sorted(node.op for node in graph.nodes) == sorted(ops)


def test_f11_a_leaf_of_the_function_is_still_wanted_in_its_gradient_and_a_gradient_that_counts_for_nothing_is_not() -> None:
    functions = InstantiatedFunctions(library(MIXED))
    body = symbolic_gradient(functions.body_of("Mixed", {}))
    remove_dead_nodes(body.graph)
    gradients = [str(node.get_attr("f").name) for node in body.graph.nodes if node.op == "SymbolicGradient"]  # type: ignore[union-attr]  # a Func
    assert gradients == ["Mul"]
    assert {node.name for node in body.graph.nodes} >= {"lost", "c"}
    assert "y" not in {node.name for node in body.graph.nodes}


def test_f11_a_gradient_of_a_gradient_keeps_nothing_that_only_the_first_one_had() -> None:
    functions = InstantiatedFunctions(library(X_TIMES_TWO, SLOPE))
    body = symbolic_gradient(functions.without_gradients(functions.body_of("Slope", {})))
    gc.optimize_graph(functions, body.graph)
    needed = {node.name for ret in body.ret_nodes for node in needed_nodes([ret.inputs[0]], [], [])}
    kept = {"_Arg", "_Retval"}
    assert {node.name for node in body.graph.nodes if node.op not in kept} <= needed


def test_f11_a_gradient_named_in_the_library_counts_first() -> None:
    definitions = times_library()
    text = "Mine[T:{float}](x:T, dy:T) -> (dx:T) {\n  dx = Neg[T=$T](dy)\n  return dx = dx:y:0\n}"
    definitions.add_function_def(gc.parse_function(text))
    definitions.add_gradient_def(gc.GradientDef("XTimesTwo", "Mine"))
    functions = InstantiatedFunctions(definitions)
    assert functions.body_of("SymbolicGradient", {"f": gc.Func("XTimesTwo", FLOAT)}).fdef.name == "Mine"
    assert values(symbolic_gradient(functions.body_of("XTimesFour", FLOAT)), functions, 5.0, 1.5) == [1.5]


def test_a_gradient_of_a_gradient_is_the_second_derivative() -> None:
    cube = "Cube(x:float) -> (y:float) {\n  a = Square[T=float](x)\n  y = Mul[T=float](a:y:0, x)\n  return y = y:z:0\n}"
    slope = """Slope(x:float) -> (dx:float) @stateless {
  one = Const[dtype=float, value=Tensor<type: float shape: [] values: 1>]()
  dx = SymbolicGradient[Tin={float, float}, Tout={float}, f=Cube](x, one:output:0)
  return dx = dx:output:0
}"""
    functions = InstantiatedFunctions(library(cube, slope))
    second = functions.body_of("SymbolicGradient", {"f": gc.Func("Slope")})
    assert values(second, functions, 4.0, 1.0) == pytest.approx([24.0])
    assert any(node.op == "SymbolicGradient" for node in functions.body_of("Slope", {}).graph.nodes)


@pytest.mark.parametrize(
    ("attrs", "error", "text"),
    [
        ({}, InvalidArgumentError, "SymbolicGradient is missing attr: f"),
        ({"f": gc.Func("SymbolicGradient")}, InvalidArgumentError, "Can't take gradient of SymbolicGradient"),
        ({"f": gc.Func("Shape", {"T": gc.float32})}, InvalidArgumentError, "No gradient is defined for Shape"),
        ({"f": gc.Func("NoSuchOp")}, NotFoundError, "No gradient defined for op: NoSuchOp"),
    ],
)
def test_a_gradient_that_cannot_be_says_why(attrs: dict[str, gc.Func], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text.replace("(", r"\(")):
        InstantiatedFunctions(gc.FunctionLibraryDefinition()).body_of("SymbolicGradient", attrs)
