"""GR: gradient bodies equal TensorFlow's letter by letter; the golden file explains differences."""

from __future__ import annotations

from typing import Any

import pytest

import graphcore as gc
from graphcore.registry import get_op_gradient_creator
from tests.golden.gradient_notation import Entry, entries, full_text, without_gradient

ENTRIES = entries()
# All names in TensorFlow's registry of function gradients, and additions of this project.
NAMED = [
    "Abs",
    "Neg",
    "Inv",
    "Reciprocal",
    "Square",
    "Sqrt",
    "Rsqrt",
    "Exp",
    "Expm1",
    "Log",
    "Log1p",
    "Sinh",
    "Cosh",
    "Tanh",
    "Asinh",
    "Acosh",
    "Atanh",
    "Sigmoid",
    "Sign",
    "Sin",
    "Cos",
    "Acos",
    "Asin",
    "Atan",
    "Tan",
    "Real",
    "Imag",
    "Angle",
    "Conj",
    "Cast",
    "Add",
    "AddV2",
    "Sub",
    "Mul",
    "MulNoNan",
    "Div",
    "RealDiv",
    "DivNoNan",
    "Xlogy",
    "Xlog1py",
    "Xdivy",
    "SquaredDifference",
    "Maximum",
    "Minimum",
    "Complex",
    "Pow",
    "Select",
    "Sum",
    "Mean",
    "Max",
    "Min",
    "MatMul",
    "BatchMatMul",
    "BatchMatMulV2",
    "Reshape",
    "ExpandDims",
    "Squeeze",
    "Identity",
    "Pack",
    "Unpack",
    "Split",
    "SplitV",
    "_ArrayToList",
    "_ListToArray",
    "Fill",
    "Transpose",
    "ConjugateTranspose",
    "GatherNd",
    "Reverse",
    "ReverseV2",
    "StridedSliceGrad",
    "BroadcastTo",
    "Concat",
    "ConcatV2",
    "Slice",
    "StridedSlice",
    "Softmax",
    "LogSoftmax",
    "Relu",
    "Relu6",
    "CrossEntropy",
    "Conv2D",
    "MaxPool",
    "AvgPool",
    "MaxPoolGrad",
    "BiasAdd",
    "MapAccumulate",
]
ADDED = [
    "AddN",
    "Prod",
    "SegmentSum",
    "SegmentMean",
    "SegmentMin",
    "SegmentMax",
    "UnsortedSegmentSum",
    "UnsortedSegmentMax",
    "SparseSegmentSum",
    "SparseSegmentMean",
    "SparseSegmentSqrtN",
    "SparseMatMul",
]


def value_of(op: str, name: str, text: str) -> Any:
    """The value of an attr from its short form."""
    kind = next(attr.type for attr in gc.op_registry.look_up_op_def(op).attr if attr.name == name)
    if kind == "type":
        return gc.as_dtype(text)
    if kind == "list(type)":
        return tuple([gc.as_dtype(part) for part in text.split(",")])
    if kind == "list(int)":
        return tuple(map(int, text.split(",")))
    if kind == "func":
        return gc.Func(text, {})
    if kind == "string":
        return text.strip('"').encode()
    return text == "true" if kind == "bool" else int(text)


def test_the_golden_file_has_every_gradient_of_the_reference() -> None:
    assert {entry.op for entry in ENTRIES} == set(NAMED)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.id)
def test_a_body_equals_the_text_that_tensorflow_prints(entry: Entry) -> None:
    creator = get_op_gradient_creator(entry.op)
    assert creator is not None
    function = creator({name: value_of(entry.op, name, text) for name, text in entry.attrs.items()})
    assert gc.debug_string(function) == full_text(entry)


@pytest.mark.parametrize("op", without_gradient())
def test_gr5_an_op_is_known_as_not_differentiable(op: str) -> None:
    assert get_op_gradient_creator(op) is None


@pytest.mark.parametrize("op", ADDED)
def test_an_op_that_the_reference_leaves_out_has_a_gradient_here(op: str) -> None:
    assert get_op_gradient_creator(op) is not None
