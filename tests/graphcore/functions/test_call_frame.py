"""The call frame: the texts of F4."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import graphcore.dtypes as dt
from graphcore.attrs import TensorValue
from graphcore.errors import GraphError, InternalError, InvalidArgumentError
from graphcore.functions import FunctionCallFrame
from graphcore.kernel_context import RefVariable
from graphcore.shapes import Shape

ONE = np.float32(1)
LONG = np.int64(1)


def frame() -> FunctionCallFrame:
    return FunctionCallFrame([dt.float32, dt.float32], [dt.float32])


def set_twice(call: FunctionCallFrame) -> None:
    call.set_retval(0, ONE)
    call.set_retval(0, ONE)


@pytest.mark.parametrize(
    ("use", "error", "message"),
    [
        pytest.param(lambda call: call.set_args([]), InvalidArgumentError, "Expects 2 arguments, but 0 is provided", id="F4 number"),
        pytest.param(
            lambda call: call.set_args([ONE, LONG]), InvalidArgumentError, "Expects arg[1] to be float but int64 is provided", id="F4 type"
        ),
        pytest.param(lambda call: call.get_arg(-1), InvalidArgumentError, "GetArg -1 is not within [0, 2)", id="F4 arg below"),
        pytest.param(lambda call: call.get_arg(2), InvalidArgumentError, "GetArg 2 is not within [0, 2)", id="F4 arg beyond"),
        pytest.param(lambda call: call.get_arg(1), InternalError, "Arg[1] does not have value", id="arg not there"),
        pytest.param(lambda call: call.set_retval(1, ONE), InvalidArgumentError, "SetRetval 1 is not within [0, 1)", id="F4 ret beyond"),
        pytest.param(lambda call: call.set_retval(-1, ONE), InvalidArgumentError, "SetRetval -1 is not within [0, 1)", id="F4 ret below"),
        pytest.param(
            lambda call: call.set_retval(0, LONG),
            InvalidArgumentError,
            "Expects ret[0] to be float, but int64 is provided.",
            id="F4 ret type",
        ),
        pytest.param(lambda call: call.get_retvals(), InternalError, "Retval[0] does not have value", id="F4 ret missing"),
        pytest.param(set_twice, InternalError, "Retval[0] has already been set.", id="F4 ret twice"),
        pytest.param(
            lambda call: call.set_args([1.5, ONE]), InvalidArgumentError, "Expects arg[0] to be float but double is provided", id="untyped"
        ),
    ],
)
def test_a_wrong_use_is_refused(use: Callable[[FunctionCallFrame], object], error: type[GraphError], message: str) -> None:
    with pytest.raises(error) as caught:
        use(frame())
    assert caught.value.message == message


def test_values_go_in_and_come_out() -> None:
    call = frame()
    call.set_args([ONE, np.zeros((2, 3), np.float32)])
    assert call.get_arg(0) is ONE
    assert call.get_arg(1).shape == (2, 3)
    call.set_retval(0, ONE)
    assert call.get_retvals() == [ONE]
    assert (call.num_args, call.num_retvals) == (2, 1)


def test_an_empty_frame_takes_and_gives_nothing() -> None:
    call = FunctionCallFrame([], [])
    call.set_args([])
    assert call.get_retvals() == []


def test_consumed_values_are_no_longer_held() -> None:
    call = frame()
    call.set_retval(0, ONE)
    assert call.consume_retvals() == [ONE]
    with pytest.raises(InternalError, match=r"Retval\[0\] does not have value"):
        call.get_retvals()


@pytest.mark.parametrize(
    ("dtype", "value", "fits"),
    [
        (dt.string, np.array([b"a"], object), True),
        (dt.qint8, np.int8(1), True),
        (dt.bfloat16, np.zeros(2, dt.bfloat16.as_numpy), True),
        (dt.float32, TensorValue(ONE), True),
        (dt.int32, TensorValue(ONE), False),
        (dt.resource, object(), True),
        (dt.resource, RefVariable("v", dt.float32, Shape([])), True),
        (dt.resource, TensorValue(ONE), False),
        (dt.resource, ONE, False),
        (dt.resource, 3, False),
        (dt.float32, object(), False),
        (dt.float32.ref, ONE, True),
    ],
)
def test_an_argument_must_be_of_the_declared_type(dtype: dt.DType, value: Any, fits: bool) -> None:
    call = FunctionCallFrame([dtype], [])
    if fits:
        call.set_args([value])
        assert call.get_arg(0) is value
        return
    with pytest.raises(InvalidArgumentError, match=r"Expects arg\[0\] to be "):
        call.set_args([value])
