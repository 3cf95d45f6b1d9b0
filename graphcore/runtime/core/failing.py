"""Which nodes may fail when they run: they run even where nobody wants more of them than the shape, which is known.

TensorFlow runs them too: its optimiser puts the constant in the place of the shape, and leaves a control dependency on who has it. What
cannot fail, and has no effect, is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from graphcore.attrs import Array
from graphcore.graph.model.node import Node

_ELEMENTWISE: Final = frozenset(
    [
        "Abs",
        "Acos",
        "Acosh",
        "Add",
        "AddN",
        "AddV2",
        "Angle",
        "Asin",
        "Asinh",
        "Atan",
        "Atan2",
        "Atanh",
        "BiasAdd",
        "BitwiseAnd",
        "BitwiseOr",
        "BitwiseXor",
        "Cast",
        "Ceil",
        "Complex",
        "ComplexAbs",
        "Conj",
        "Cos",
        "Cosh",
        "Digamma",
        "DivNoNan",
        "Elu",
        "EluGrad",
        "Equal",
        "Erf",
        "Erfc",
        "Erfinv",
        "Exp",
        "Expm1",
        "Floor",
        "Greater",
        "GreaterEqual",
        "Imag",
        "Inv",
        "InvGrad",
        "Invert",
        "IsFinite",
        "IsInf",
        "IsNan",
        "LeakyRelu",
        "LeakyReluGrad",
        "Less",
        "LessEqual",
        "Lgamma",
        "Log",
        "Log1p",
        "LogSoftmax",
        "LogicalAnd",
        "LogicalNot",
        "LogicalOr",
        "Maximum",
        "Minimum",
        "Mul",
        "MulNoNan",
        "Ndtri",
        "Neg",
        "NotEqual",
        "OnesLike",
        "Real",
        "RealDiv",
        "Reciprocal",
        "ReciprocalGrad",
        "Relu",
        "Relu6",
        "Relu6Grad",
        "ReluGrad",
        "Rint",
        "Round",
        "Rsqrt",
        "RsqrtGrad",
        "Select",
        "SelectV2",
        "Selu",
        "SeluGrad",
        "Sigmoid",
        "SigmoidGrad",
        "Sign",
        "Sin",
        "Sinh",
        "Softmax",
        "Softplus",
        "SoftplusGrad",
        "Softsign",
        "SoftsignGrad",
        "Sqrt",
        "SqrtGrad",
        "Square",
        "SquaredDifference",
        "Sub",
        "Tan",
        "Tanh",
        "TanhGrad",
        "Xdivy",
        "Xlog1py",
        "Xlogy",
        "ZerosLike",
    ]
)
_WHOLE: Final = frozenset(
    [
        "BatchMatMul",
        "BatchMatMulV2",
        "BatchMatMulV3",
        "BiasAddGrad",
        "Einsum",
        "ExpandDims",
        "L2Loss",
        "MatMul",
        "Pack",
        "SoftmaxCrossEntropyWithLogits",
        "Squeeze",
        "Unpack",
    ]
)
_BY_CONSTANTS: Final = frozenset(
    [
        "All",
        "Any",
        "ArgMax",
        "ArgMin",
        "BroadcastTo",
        "Fill",
        "Max",
        "Mean",
        "Min",
        "Pad",
        "Prod",
        "Reshape",
        "ReverseV2",
        "Slice",
        "Split",
        "StridedSlice",
        "Sum",
        "Tile",
        "Transpose",
    ]
)
"""What their other inputs say was looked at when the shape was found, where that is the same in every run."""
_CANNOT: Final = _ELEMENTWISE | _WHOLE | _BY_CONSTANTS
_DATA: Final = {"Fill": 1, "Split": 1}
"""The input that may be anything, where it is not the first."""


def may_fail(node: Node, constants: Sequence[Array | None], *, reads_variable: bool) -> bool:
    """Whether running `node` may be an error, as far as is known before.

    Args:
        constants: the inputs that are the same in every run.
        reads_variable: whether an input is a variable, which may have no value.
    """
    if reads_variable or node.op not in _CANNOT:
        return True
    if any(not tensor.shape.is_fully_defined for tensor in node.inputs):
        return True  # they may not fit each other
    data = _DATA.get(node.op, 0)
    return node.op in _BY_CONSTANTS and any(value is None for slot, value in enumerate(constants) if slot != data)
