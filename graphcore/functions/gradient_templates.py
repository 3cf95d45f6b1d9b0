"""Templates of gradient functions for elementwise ops with one and two inputs, and reductions.

Each takes the lines of the body that differ and returns a gradient creator, which parses its text on first use. Nodes written without attrs
get `T=$T`.
"""

from __future__ import annotations

from typing import Final

import msgspec

from graphcore.attrs import Attrs, Placeholder
from graphcore.definitions.types import FunctionDef
from graphcore.dtypes import DType
from graphcore.functions.define import define_body
from graphcore.registry import op_registry
from graphcore.text.function_parser import read_function
from graphcore.text.scanner import Scanner
from graphcore.text.statements import LookUp, Statement

REAL_TYPES: Final = "{half, float, double}"

_UNARY: Final = """[T:%s](x:T, dy:T) -> (dx:T) {
%s
}"""
_BINARY: Final = """[T:%s](x:T, y:T, dz:T) -> (dx:T, dy:T) {
  sx = Shape(x)
  sy = Shape(y)
%s
  rx, ry = BroadcastGradientArgs(sx, sy)
  sum_gx = Sum(gx, rx)
  dx = Reshape(sum_gx, sx)
  sum_gy = Sum(gy, ry)
  dy = Reshape(sum_gy, sy)
}"""
_REDUCTION: Final = """[T:%s](x:T, i:int32, dy:T) -> (dx:T, di:int32) {
  x_shape = Shape(x)
  x_rank = Rank(x)
  i_shape = Shape[T=int32](i)
  zero = Const[dtype=int32, value=Tensor<type: int32 shape: [] values: 0>]()
  one = Const[dtype=int32, value=Tensor<type: int32 shape: [] values: 1>]()
  stitch_val1 = Fill[T=int32](i_shape:output:0, one:output:0)
  y_shape = DynamicStitch[N=2, T=int32](stitch_idx0:output:0, i, x_shape:output:0, stitch_val1:output:0)
  tile_scaling = Div[T=int32](x_shape:output:0, y_shape:merged:0)
  di = ZerosLike[T=int32](i)
%s
  stitch_idx0 = Range(zero:output:0, x_rank:output:0, one:output:0)
  return dx = dx:output:0
  return di = di:y:0
}"""


class GradientText:
    """A gradient creator for a text that does not depend on the attrs; parsed on first use."""

    __slots__ = ("_function", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self._function: FunctionDef | None = None

    def __call__(self, _attrs: Attrs) -> FunctionDef:
        """The gradient function, the same for all attrs.

        Raises:
            InvalidArgumentError: the text has errors.
            NotFoundError: an op of the body is unknown.
        """
        if self._function is None:
            self._function = self.define(op_registry.look_up_op_def)
        return self._function

    def define(self, look_up: LookUp) -> FunctionDef:
        """The gradient function, with ops found by `look_up`.

        Raises:
            InvalidArgumentError: the text has errors.
            NotFoundError: an op of the body is unknown.
        """
        signature, flags, body = read_function(Scanner(self.text), look_up)
        body = msgspec.structs.replace(body, statements=[_with_type(statement) for statement in body.statements])
        return define_body(signature, flags, body, look_up, self.text)


def unary_grad(nodes: str, types: str = REAL_TYPES) -> GradientText:
    """`(x:T, dy:T) -> (dx:T)`; the last node is dx."""
    return GradientText(_UNARY % (types, nodes.strip("\n")))


def binary_grad(body: str, types: str = REAL_TYPES) -> GradientText:
    """`(x:T, y:T, dz:T) -> (dx:T, dy:T)`; the body makes gx and gy, which are reduced after broadcasting."""
    return GradientText(_BINARY % (types, body.strip("\n")))


def reduction_grad(body: str, types: str = REAL_TYPES) -> GradientText:
    """`(x:T, i:int32, dy:T) -> (dx:T, di:int32)`; the body makes dx from dy, y_shape and tile_scaling.

    y_shape is dy's shape with 1 in reduced dimensions.
    """
    return GradientText(_REDUCTION % (types, body.strip("\n")))


def _with_type(statement: Statement) -> Statement:
    node = statement.node
    if node.attr or not _needs_type(node.op):
        return statement
    return msgspec.structs.replace(statement, node=msgspec.structs.replace(node, attr={"T": Placeholder("T")}))


def _needs_type(op: str) -> bool:
    if op not in op_registry:
        return True
    attr = op_registry.look_up_op_def(op).find_attr("T")
    if attr is None:
        return False
    default = attr.default_value  # ops on indices have an integer type by default, which the body need not give
    return not (isinstance(default, DType) and default.is_integer)
