"""Functions in the Define form, and gradient templates."""

from __future__ import annotations

import pytest

from graphcore.definitions import FunctionDef
from graphcore.errors import InvalidArgumentError, NotFoundError
from graphcore.functions import binary_grad, define_function, reduction_grad, unary_grad
from graphcore.text import debug_string, parse_function
from tests.graphcore.functions.example_ops import op_def


def define(text: str, attrs: str = "") -> FunctionDef:
    return define_function(text, attrs, op_def)


def printed(text: str, attrs: str = "") -> str:
    function = define(text, attrs)
    assert parse_function(debug_string(function, op_def), op_def) == function
    return debug_string(function, op_def)


def test_result_names_become_node_output_and_index() -> None:
    assert (
        printed(
            """
        (x:T, y:T, dz:T) -> (dx:T) {
          sx = Shape[T=$T](x)
          sy = Shape[T=$T](y)
          rx, ry = BroadcastGradientArgs(sx, sy)
          sum_gx = Sum[T=$T](dz, ry) @ dz, ry
          dx = Reshape[T=$T](sum_gx, sx)  # the shape of x again
        }""",
            "T:{half, float}",
        )
        == """
_[T:{half, float}](x:T, y:T, dz:T) -> (dx:T) {
  sx = Shape[T=$T](x)
  sy = Shape[T=$T](y)
  rx = BroadcastGradientArgs(sx:output:0, sy:output:0)
  sum_gx = Sum[T=$T](dz, rx:r1:0) @ dz, rx
  dx = Reshape[T=$T](sum_gx:output:0, sx:output:0)
  return dx = dx:output:0
}
"""
    )


def test_explicit_inputs_and_elements_of_list_arguments_are_taken_as_they_are() -> None:
    assert (
        printed(
            "f(x:float) -> (y:float, z:float) {\n s = Add[T=float](x:0, t:z:0)\n t = Neg[T=float](x:1)\n return y = t:y:0\n return z = s\n}"
        )
        == """
f(x:float) -> (y:float, z:float) {
  s = Add[T=float](x:0, t:z:0)
  t = Neg[T=float](x:1)
  return y = t:y:0
  return z = s:z:0
}
"""
    )


def test_one_name_for_a_list_result_stands_for_the_whole_list() -> None:
    assert (
        printed("""_[T:type, N:int](x:N*T, dy:T) -> (dx:N*T, y:T) {
          dx = Unpack[T=$T, num=$N](dy)
          y = AddN[N=$N, T=$T](dx)
        }""")
        == """
_[T:type, N:int](x:N*T, dy:T) -> (dx:N*T, y:T) {
  dx = Unpack[T=$T, num=$N](dy)
  y = AddN[N=$N, T=$T](dx:output)
  return dx = dx:output
  return y = y:sum:0
}
"""
    )


def test_a_node_names_each_element_of_its_list_results() -> None:
    text = printed("(d:int32, x:float) -> (y:float) {\n a, b = Split[T=float, num_split=2](d, x)\n y = Add[T=float](a, b)\n}")
    assert "  a = Split[T=float, num_split=2](d, x)\n  y = Add[T=float](a:output:0, a:output:1)\n" in text


def test_an_argument_may_be_returned_under_its_own_name() -> None:
    assert "  return grad = grad\n" in printed("(x:float, grad:float) -> (grad:float, y:float) {\n y = Neg[T=float](x)\n}")


def test_a_defined_function_is_stateful_iff_one_of_its_ops_is() -> None:
    assert define("(s:int32) -> (y:float) {\n y = RandomUniform[dtype=float, T=int32](s)\n}").signature.is_stateful
    assert not define("(x:float) -> (y:float) {\n y = Neg[T=float](x)\n}").signature.is_stateful


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("() -> (y:float) {\n  y = Neg[T=float](x)\n}", "line 2, column 3: Node input 'x' in 'y' of _ not found"),
        ("(x:float) -> (y:float) {\n  z = Neg[T=float](x)\n}", "Return 'y' in '_' not found."),
        ("(x:int32) -> () {\n  r = BroadcastGradientArgs(x, x)\n}", "line 2, column 3: Missing ret for output 'r1' in 'r' of _"),
        ("(x:float) -> () {\n  a, b = Neg[T=float](x)\n}", "line 2, column 3: No output for ret 'b' in 'a' of _"),
        ("(d:int32, x:T) -> () {\n  a, b = Split[T=$T](d, x)\n}", "Length of output 'output' in 'a' of _ is not known"),
        ("(x:T) -> (y:T) {}", "Reference to unknown attr 'T'"),
    ],
)
def test_what_cannot_be_defined_is_refused(text: str, message: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        define(text, "" if "unknown attr" in message else "T:type")
    assert message in caught.value.message


def test_every_op_of_a_defined_function_must_be_known() -> None:
    with pytest.raises(NotFoundError, match="Op type not registered 'Foo'"):
        define("(x:float) -> (y:float) {\n y = Foo(x)\n}")


def test_the_unary_frame_gives_nodes_without_attrs_the_type() -> None:
    function = unary_grad("sign = Sign(x) @ dy\ndx = Mul(dy, sign)").define(op_def)
    assert (
        debug_string(function, op_def)
        == """
_[T:{half, float, double}](x:T, dy:T) -> (dx:T) {
  sign = Sign[T=$T](x) @ dy
  dx = Mul[T=$T](dy, sign:y:0)
  return dx = dx:z:0
}
"""
    )


def test_the_binary_frame_sums_what_was_broadcast() -> None:
    function = binary_grad("gx = Identity(dz)\ngy = Neg(dz)").define(op_def)
    assert (
        debug_string(function, op_def)
        == """
_[T:{half, float, double}](x:T, y:T, dz:T) -> (dx:T, dy:T) {
  sx = Shape[T=$T](x)
  sy = Shape[T=$T](y)
  gx = Identity[T=$T](dz)
  gy = Neg[T=$T](dz)
  rx = BroadcastGradientArgs(sx:output:0, sy:output:0)
  sum_gx = Sum[T=$T](gx:output:0, rx:r0:0)
  dx = Reshape[T=$T](sum_gx:output:0, sx:output:0)
  sum_gy = Sum[T=$T](gy:y:0, rx:r1:0)
  dy = Reshape[T=$T](sum_gy:output:0, sy:output:0)
  return dx = dx:output:0
  return dy = dy:output:0
}
"""
    )


def test_the_reduction_frame_stitches_the_reduced_shape() -> None:
    body = "dy_reshaped = Reshape(dy, y_shape:merged:0)\ndx = Tile(dy_reshaped:output:0, tile_scaling:z:0)"
    assert (
        debug_string(reduction_grad(body).define(op_def), op_def)
        == """
_[T:{half, float, double}](x:T, i:int32, dy:T) -> (dx:T, di:int32) {
  x_shape = Shape[T=$T](x)
  x_rank = Rank[T=$T](x)
  i_shape = Shape[T=int32](i)
  zero = Const[dtype=int32, value=Tensor<type: int32 shape: [] values: 0>]()
  one = Const[dtype=int32, value=Tensor<type: int32 shape: [] values: 1>]()
  stitch_val1 = Fill[T=int32](i_shape:output:0, one:output:0)
  y_shape = DynamicStitch[N=2, T=int32](stitch_idx0:output:0, i, x_shape:output:0, stitch_val1:output:0)
  tile_scaling = Div[T=int32](x_shape:output:0, y_shape:merged:0)
  di = ZerosLike[T=int32](i)
  dy_reshaped = Reshape[T=$T](dy, y_shape:merged:0)
  dx = Tile[T=$T](dy_reshaped:output:0, tile_scaling:z:0)
  stitch_idx0 = Range(zero:output:0, x_rank:output:0, one:output:0)
  return dx = dx:output:0
  return di = di:y:0
}
"""
    )


def test_a_gradient_text_is_read_only_when_the_gradient_is_asked_for() -> None:
    broken = unary_grad("this is no node")
    with pytest.raises(InvalidArgumentError, match="line 2"):
        broken({})
