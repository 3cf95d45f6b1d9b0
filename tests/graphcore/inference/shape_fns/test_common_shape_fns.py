"""Matrix products, bias, reductions."""

from __future__ import annotations

from typing import Any

import pytest

from graphcore.inference.shape_fns import common_shape_fns as fns
from tests.support.shape_rows import ShapeFunction, assert_row, bad, case, infer, refusal

NO_TRANSPOSE = {"transpose_a": False, "transpose_b": False}
NO_ADJOINT = {"adj_x": False, "adj_y": False}


def matmul(inputs: str, expected: str, *, a: bool = False, b: bool = False) -> Any:
    return case("S4 MatMul", fns.matmul_shape, inputs, expected, attrs={"transpose_a": a, "transpose_b": b})


def batch(inputs: str, expected: str, *, x: bool = False, y: bool = False) -> Any:
    return case("S4 BatchMatMulV2", fns.batch_matmul_v2_shape, inputs, expected, attrs={"adj_x": x, "adj_y": y})


def total(inputs: str, expected: str, indices: object, *, keep: bool = False, producer: int = 2000) -> Any:
    return case("S4 Sum", fns.reduction_shape, inputs, expected, attrs={"keep_dims": keep}, values=(None, indices), producer=producer)


@pytest.mark.parametrize(
    ("function", "inputs", "expected", "given"),
    [
        matmul("[2,3];[3,4]", "[d0_0,d1_1]"),
        matmul("[3,2];[3,4]", "[d0_1,d1_1]", a=True),
        matmul("[2,3];[4,3]", "[d0_0,d1_0]", b=True),
        matmul("[3,2];[4,3]", "[d0_1,d1_0]", a=True, b=True),
        matmul("?;?", "[?,?]"),
        matmul("[?,?];[?,4]", "[d0_0,d1_1]"),
        matmul("?;[3,4]", "[?,d1_1]"),
        batch("?;?", "?"),
        batch("?;[2,3]", "?"),
        batch("[2,3];?", "?"),
        batch("[3,?,?];[3,?,?]", "[d0_0,d0_1,d1_2]"),
        batch("[?,3,2];[?,3,4]", "[?,d0_2,d1_2]", x=True),
        batch("[5,2,3];[5,4,3]", "[d0_0,d0_1,d1_1]", y=True),
        batch("[1,2,3];[7,3,4]", "[d1_0,d0_1,d1_2]"),
        batch("[6,1,2,3];[7,3,4]", "[d0_0,d1_0,d0_2,d1_2]"),
        batch("[2,3];[7,3,4]", "[d1_0,d0_0,d1_2]"),
        case("S4 BatchMatMul", fns.batch_matmul_shape, "[?,2,3];[7,3,4]", "[d1_0,d0_1,d1_2]", attrs=NO_ADJOINT),
        case("S4 BiasAdd", fns.bias_add_shape, "[2,?];[3]", "[d0_0,d1_0]"),
        case("S4 BiasAdd", fns.bias_add_shape, "[2,3,4];[?]", "[d0_0,d0_1,d0_2]", attrs={"data_format": "NHWC"}),
        case("S4 BiasAdd NCHW", fns.bias_add_shape, "[2,?,4,5];[3]", "[d0_0,d1_0,d0_2,d0_3]", attrs={"data_format": "NCHW"}),
        case("S4 BiasAdd", fns.bias_add_shape, "?;[3]", "?"),
        case("S4 BiasAddGrad", fns.bias_add_grad_shape, "[2,3,4]", "[d0_2]"),
        case("S4 BiasAddGrad NCHW", fns.bias_add_grad_shape, "[2,3,4]", "[d0_1]", attrs={"data_format": "NCHW"}),
        case("S4 BiasAddGrad", fns.bias_add_grad_shape, "?", "[?]"),
        total("[2,4,5];[2]", "[d0_0]", [1, 2]),
        total("[2,4,5];[2]", "[d0_0,1,1]", [-1, -2], keep=True),
        total("[2,4,5];?", "?", None),
        total("[2,4,5];[2]", "[?,?,?]", None, keep=True),
        total("?;[2]", "?", [0, 1]),
        total("?;[2]", "?", [0, 1], keep=True),
        total("[2,4,5];[0]", "[d0_0,d0_1,d0_2]", []),
        total("[2,4,5];[]", "[d0_0,d0_2]", 1),
        total("[2,4,5];[2]", "[d0_0,d0_2]", [1, -2]),
        total("[?,4,5];[1]", "[d0_0,d0_2]", [1]),
        total("[2,4,5];[1,2]", "[d0_2]", [[0, 1]], producer=20),
        case("S4 ArgMax", fns.arg_op_shape, "[2,4,5];[]", "[d0_0,d0_2]", values=(None, 1)),
        case("S4 ArgMax", fns.arg_op_shape, "[2,4,5];[]", "[d0_0,d0_1]", values=(None, -1)),
        case("S4 ArgMax", fns.arg_op_shape, "[2,4,5];[]", "[?,?]"),
        case("S4 ArgMax", fns.arg_op_shape, "?;[]", "?", values=(None, 1)),
        case("S4 ArgMax", fns.arg_op_shape, "[2];[]", "[]", values=(None, 7)),
    ],
)
def test_the_output_has_the_expected_shape(function: ShapeFunction, inputs: str, expected: str, given: dict[str, Any]) -> None:
    assert_row(infer(function, inputs, **given), expected)


@pytest.mark.parametrize(
    ("function", "inputs", "text", "given"),
    [
        bad("S4 MatMul", fns.matmul_shape, "[1,2,3];[3,4]", "Shape must be rank 2 but is rank 3", attrs=NO_TRANSPOSE),
        bad("S4 MatMul", fns.matmul_shape, "[2,3];[4,5]", "Dimensions must be equal, but are 3 and 4", attrs=NO_TRANSPOSE),
        bad("S4 BatchMatMulV2", fns.batch_matmul_v2_shape, "[2];[3,4]", "Shape must be at least rank 2 but is rank 1", attrs=NO_ADJOINT),
        bad(
            "S4 BatchMatMulV2", fns.batch_matmul_v2_shape, "[2,2,3];[5,3,4]", "Dimensions must be equal, but are 2 and 5", attrs=NO_ADJOINT
        ),
        bad("S4 BatchMatMulV2", fns.batch_matmul_v2_shape, "[2,3];[4,5]", "Dimensions must be equal, but are 3 and 4", attrs=NO_ADJOINT),
        bad("S4 BiasAdd", fns.bias_add_shape, "[2];[3]", "Shape must be at least rank 2 but is rank 1"),
        bad("S4 BiasAdd", fns.bias_add_shape, "[2,4];[3]", "Dimensions must be equal, but are 4 and 3"),
        bad("S4 BiasAdd NCHW", fns.bias_add_shape, "[2,3];[3]", "at least rank 3 but is rank 2", attrs={"data_format": "NCHW"}),
        bad("S4 Sum", fns.reduction_shape, "[2,4];[1]", "Invalid reduction dimension", attrs={"keep_dims": False}, values=(None, [2])),
        bad("S4 Sum", fns.reduction_shape, "[2,4];[1]", "Invalid reduction dimension -3", attrs={"keep_dims": False}, values=(None, [-3])),
        bad("S4 Sum", fns.reduction_shape, "[2,4];[1,1]", "must be at most rank 1 but is rank 2", attrs={"keep_dims": False}, producer=21),
        bad("S4 ArgMax", fns.arg_op_shape, "[2,4];[]", "Dimension (2) must be in the range [-2, 2), where 2 is the", values=(None, 2)),
        bad("S4 ArgMax", fns.arg_op_shape, "[2,4];[1]", "Shape must be rank 0 but is rank 1", values=(None, [1])),
    ],
)
def test_misfits_are_refused_with_the_text_of_the_rule(function: ShapeFunction, inputs: str, text: str, given: dict[str, Any]) -> None:
    assert text in refusal(function, inputs, **given)
