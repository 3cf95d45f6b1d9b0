"""Pooling, convolutions, batch normalisation."""

from __future__ import annotations

from typing import Any

import pytest

from graphcore.inference.shape_fns import common_shape_fns as fns
from tests.support.shape_rows import ShapeFunction, assert_row, bad, case, infer, refusal

CONV = {"strides": [1, 1, 1, 1], "dilations": [1, 1, 1, 1], "padding": "VALID"}
POOL = {"strides": [1, 1, 1, 1], "ksize": [1, 2, 2, 1], "padding": "VALID"}
CONV3D = {"strides": [1, 1, 2, 3, 1], "dilations": [1, 1, 1, 1, 1], "padding": "VALID"}
EXPLICIT = {"padding": "EXPLICIT", "explicit_paddings": [0, 0, 1, 2, 3, 4, 0, 0]}


def conv(inputs: str, expected: str, **attrs: object) -> Any:
    return case(f"S4 Conv2D {attrs}", fns.conv2d_shape, inputs, expected, attrs={**CONV, **attrs})


def bad_conv(inputs: str, text: str, **attrs: object) -> Any:
    return bad(f"S4 Conv2D {attrs}", fns.conv2d_shape, inputs, text, attrs={**CONV, **attrs})


def depthwise(inputs: str, expected: str, **attrs: object) -> Any:
    return case(f"S4 Depthwise {attrs}", fns.depthwise_conv2d_native_shape, inputs, expected, attrs={**CONV, **attrs})


def avg_pool(inputs: str, expected: str, **attrs: object) -> Any:
    return case(f"S4 AvgPool {attrs}", fns.avg_pool_shape, inputs, expected, attrs={**POOL, **attrs})


def max_pool(inputs: str, expected: str, **attrs: object) -> Any:
    return case(f"S4 MaxPool {attrs}", fns.max_pool_shape, inputs, expected, attrs={**POOL, **attrs})


def norm(inputs: str, expected: str, **attrs: object) -> Any:
    given = {"is_training": True, "exponential_avg_factor": 1.0, **attrs}
    return case(f"S4 FusedBatchNormV3 {attrs}", fns.fused_batch_norm_shape, inputs, expected, attrs=given, outputs=6)


@pytest.mark.parametrize(
    ("function", "inputs", "expected", "given"),
    [
        conv("[1,2,2,1];[1,1,1,1]", "[d0_0,2,2,d1_3]"),
        conv("[1,4,5,3];[2,2,3,7]", "[d0_0,3,4,d1_3]"),
        conv("[1,3,4,5];[2,2,3,7]", "[d0_0,d1_3,2,2]", data_format="NCHW", strides=[1, 1, 2, 3]),
        conv("[1,4,5,3];[2,2,3,7]", "[d0_0,2,2,d1_3]", padding="SAME", strides=[1, 2, 3, 1]),
        conv("[?,?,5,3];[2,2,3,7]", "[d0_0,?,4,d1_3]"),
        conv("[?,?,5,3];[2,2,3,7]", "[d0_0,d0_1,d0_2,d1_3]", padding="SAME"),
        conv("[1,4,5,3];[?,2,3,7]", "[d0_0,?,4,d1_3]"),
        conv("?;[2,2,3,7]", "[?,?,?,d1_3]"),
        conv("[1,9,9,3];[2,3,3,7]", "[d0_0,7,3,d1_3]", dilations=[1, 2, 3, 1]),
        conv("[1,4,5,3];[2,2,3,7]", "[d0_0,6,11,d1_3]", **EXPLICIT),
        conv("[1,4,5,4];[2,2,2,8]", "[d0_0,3,4,d1_3]"),
        case("S4 Conv3D", fns.conv3d_shape, "[1,4,5,6,3];[2,2,2,3,7]", "[d0_0,3,2,2,d1_4]", attrs=CONV3D),
        case(
            "S4 Conv3D NCDHW",
            fns.conv3d_shape,
            "[1,3,4,5,6];[2,2,2,3,7]",
            "[d0_0,d1_4,d0_2,3,2]",
            attrs={**CONV3D, "data_format": "NCDHW", "padding": "SAME", "strides": [1, 1, 1, 2, 3]},
        ),
        depthwise("[1,2,2,3];[1,1,3,4]", "[d0_0,2,2,12]"),
        depthwise("[1,2,2,?];[1,1,3,4]", "[d0_0,2,2,12]"),
        depthwise("[1,3,2,2];[1,1,3,4]", "[d0_0,12,2,2]", data_format="NCHW"),
        depthwise("[1,9,9,3];[3,3,3,4]", "[d0_0,5,5,12]", dilations=[1, 2, 2, 1]),
        depthwise("[1,9,9,3];[3,3,3,4]", "[d0_0,10,14,12]", **EXPLICIT),
        avg_pool("[1,4,4,1]", "[d0_0,3,2,d0_3]", ksize=[1, 2, 1, 1], strides=[1, 1, 2, 1]),
        avg_pool("[1,1,4,5]", "[d0_0,d0_1,3,4]", ksize=[1, 1, 2, 2], data_format="NCHW"),
        avg_pool("[?,?,4,1]", "[d0_0,?,3,d0_3]"),
        avg_pool("?", "[?,?,?,?]"),
        avg_pool("[1,5,4,1]", "[d0_0,3,2,d0_3]", padding="SAME", strides=[1, 2, 2, 1]),
        max_pool("[1,4,4,1]", "[d0_0,3,2,d0_3]", ksize=[1, 2, 1, 1], strides=[1, 1, 2, 1]),
        max_pool("[1,7,5,5]", "[d0_0,3,5,5]", ksize=[1, 1, 1, 1], strides=[1, 3, 1, 1], data_format="NCHW"),
        max_pool("[1,4,4,10]", "[d0_0,4,4,5]", ksize=[1, 1, 1, 2], strides=[1, 1, 1, 2]),
        max_pool("[1,4,4,1]", "[d0_0,5,4,d0_3]", padding="EXPLICIT", explicit_paddings=[0, 0, 1, 1, 1, 0, 0, 0]),
        case(
            "S4 MaxPoolV2",
            fns.max_pool_v2_shape,
            "[1,4,5,2];[4];[4]",
            "[d0_0,2,2,d0_3]",
            attrs={"padding": "VALID"},
            values=(None, [1, 2, 2, 1], [1, 2, 2, 1]),
        ),
        case("S4 MaxPoolV2", fns.max_pool_v2_shape, "[1,4,5,2];[4];[4]", "?", attrs={"padding": "VALID"}),
        case(
            "S4 MaxPoolWithArgmax",
            fns.max_pool_with_argmax_shape,
            "[1,4,5,2]",
            "[d0_0,3,4,d0_3];[d0_0,3,4,d0_3]",
            attrs=POOL,
            outputs=2,
        ),
        case("S4 MaxPoolGrad", fns.max_pool_grad_shape, "[1,?,5,2];?;?", "in0"),
        case("S4 MaxPoolGrad", fns.max_pool_grad_shape, "?;?;?", "[?,?,?,?]"),
        case("S4 AvgPoolGrad", fns.avg_pool_grad_shape, "[4];[1,2,2,2]", "[1,4,5,2]", values=([1, 4, 5, 2],)),
        case("S4 AvgPoolGrad", fns.avg_pool_grad_shape, "?;[1,2,2,2]", "[?,?,?,?]"),
        case(
            "S4 MaxPool3D",
            fns.pool3d_shape,
            "[1,4,5,6,3]",
            "[d0_0,3,2,2,d0_4]",
            attrs={"ksize": [1, 2, 2, 2, 1], "strides": [1, 1, 2, 3, 1], "padding": "VALID"},
        ),
        case(
            "S4 Conv2DBackpropInput",
            fns.conv2d_backprop_input_shape,
            "[4];[2,2,3,7];[1,3,4,7]",
            "[d2_0,4,5,3]",
            values=([1, 4, 5, 3],),
        ),
        case("S4 Conv2DBackpropInput", fns.conv2d_backprop_input_shape, "[2];[2,2,3,7];[1,3,4,7]", "[d2_0,4,5,d1_2]", values=([4, 5],)),
        case("S4 Conv2DBackpropInput", fns.conv2d_backprop_input_shape, "?;[2,2,3,7];[1,3,4,7]", "[d2_0,?,?,?]"),
        case("S4 Conv2DBackpropFilter", fns.conv2d_backprop_filter_shape, "[1,4,5,3];[4];?", "[2,2,3,7]", values=(None, [2, 2, 3, 7])),
        case("S4 Conv2DBackpropFilter", fns.conv2d_backprop_filter_shape, "?;?;?", "[?,?,?,?]"),
        case(
            "S4 DepthwiseBackpropInput",
            fns.depthwise_conv2d_native_backprop_input_shape,
            "[4];?;?",
            "[2,2,3,7]",
            values=([2, 2, 3, 7],),
        ),
        norm("[1,2,3,4];[4];[?];[0];[0]", "[d0_0,d0_1,d0_2,d0_3];[d0_3];[d0_3];[d0_3];[d0_3];?"),
        norm("?;[4];[?];[0];[0]", "[?,?,?,d1_0];[d1_0];[d1_0];[d1_0];[d1_0];?"),
        norm("[1,4,2,3];[?];[?];[4];[?]", "[d0_0,d0_1,d0_2,d0_3];[d0_1];[d0_1];[d0_1];[d0_1];?", data_format="NCHW", is_training=False),
        case(
            "S4 FusedBatchNormGradV3",
            fns.fused_batch_norm_grad_shape,
            "[1,2,3,4];[1,2,3,?];[4];[4];[4];?",
            "[d0_0,d0_1,d0_2,d0_3];[d0_3];[d0_3];[0];[0]",
            outputs=5,
        ),
    ],
)
def test_the_output_has_the_expected_shape(function: ShapeFunction, inputs: str, expected: str, given: dict[str, Any]) -> None:
    assert_row(infer(function, inputs, **given), expected)


@pytest.mark.parametrize(
    ("function", "inputs", "text", "given"),
    [
        bad_conv("[1,4,5];[2,2,3,7]", "Shape must be rank 4 but is rank 3"),
        bad_conv("[1,4,5,3];[2,2,3]", "Shape must be rank 4 but is rank 3"),
        bad_conv("[1,4,5,3];[5,2,3,7]", "Negative dimension size caused by subtracting 5 from 4"),
        bad_conv("[1,4,5,3];[2,2,2,7]", "Depth of input (3) is not a multiple of input depth of filter (2)"),
        bad_conv("[1,4,5,3];[2,2,0,7]", "Depth of filter must not be 0"),
        bad_conv("[1,4,5,4];[2,2,2,7]", "Depth of output (7) is not a multiple of the number of groups (2)"),
        bad_conv("[1,4,5,0];[2,2,2,7]", "Number of groups must not be 0"),
        bad_conv("?;?", "Conv2D on data format NHWC requires the stride attribute to contain 4 values, but got: 3", strides=[1, 1, 1]),
        bad_conv("?;?", "Conv2D requires the dilation attribute to contain 4 values, but got: 3", dilations=[1, 1, 1]),
        bad_conv("?;?", "Stride must be > 0, but got 0", strides=[1, 0, 1, 1]),
        bad_conv("?;?", "Dilation rate must be >= 1, but got 0", dilations=[1, 0, 1, 1]),
        bad_conv("?;?", "Invalid data format string: NHCW", data_format="NHCW"),
        bad_conv("?;?", "must contain 8 values, but got: 6", padding="EXPLICIT", explicit_paddings=[0, 0, 1, 2, 3, 4]),
        bad_conv("?;?", "must be nonnegative", padding="EXPLICIT", explicit_paddings=[0, 0, -1, 2, 3, 4, 0, 0]),
        bad_conv("?;?", "in the batch or depth dimensions", padding="EXPLICIT", explicit_paddings=[1, 0, 1, 2, 3, 4, 0, 0]),
        bad_conv("?;?", "must be empty if the padding attribute is not EXPLICIT", explicit_paddings=[0, 0, 1, 2, 3, 4, 0, 0]),
        bad("S4 Depthwise", fns.depthwise_conv2d_native_shape, "[1,2,2,3];[1,1,12,4]", "are 3 and 12", attrs=CONV),
        bad("S4 Depthwise", fns.depthwise_conv2d_native_shape, "?;?", "requires the stride attribute", attrs={**CONV, "strides": [1]}),
        bad("S4 Depthwise", fns.depthwise_conv2d_native_shape, "?;?", "requires the dilations", attrs={**CONV, "dilations": [1]}),
        bad("S4 AvgPool", fns.avg_pool_shape, "[1,4,4]", "Shape must be rank 4 but is rank 3", attrs=POOL),
        bad("S4 AvgPool", fns.avg_pool_shape, "[1,1,4,1]", "Negative dimension size caused by subtracting 2 from 1", attrs=POOL),
        bad("S4 AvgPool", fns.avg_pool_shape, "?", "AvgPool requires the ksize attribute to contain 4", attrs={**POOL, "ksize": [1, 2]}),
        bad("S4 MaxPool", fns.max_pool_shape, "?", "MaxPool requires the stride attribute to contain 4", attrs={**POOL, "strides": [1]}),
        bad("S4 MaxPool", fns.max_pool_shape, "?", "Stride must be > 0, but got 0", attrs={**POOL, "strides": [1, 0, 1, 1]}),
        bad("S4 MaxPool", fns.max_pool_shape, "?", "ksize must be > 0, but got -1 for dimension 1", attrs={**POOL, "ksize": [1, -1, 1, 1]}),
        bad(
            "S4 MaxPoolV2",
            fns.max_pool_v2_shape,
            "?;?;?",
            "requires ksize and strides to contain 4 values each",
            attrs={"padding": "VALID"},
            values=(None, [1, 2], [1, 2]),
        ),
        bad("S4 Conv2DBackpropInput", fns.conv2d_backprop_input_shape, "[3];?;?", "4 values or 2 values, but got: 3", values=([1, 4, 5],)),
        bad("S4 AvgPoolGrad", fns.avg_pool_grad_shape, "[3];?", "Shape must be rank 4 but is rank 3", values=([1, 4, 5],)),
        bad("S4 FusedBatchNorm", fns.fused_batch_norm_shape, "[1,2,3,4];[3];?;?;?", "are 4 and 3", attrs={"is_training": True}),
        bad("S4 FusedBatchNorm", fns.fused_batch_norm_shape, "[1,2,3,4];[4];[4];[0];[0]", "are 4 and 0", attrs={"is_training": False}),
    ],
)
def test_misfits_are_refused_with_the_text_of_the_rule(function: ShapeFunction, inputs: str, text: str, given: dict[str, Any]) -> None:
    assert text in refusal(function, inputs, **given)
