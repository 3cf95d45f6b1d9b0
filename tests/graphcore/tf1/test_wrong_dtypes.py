"""Errors for unsupported dtypes name each input, its dtype, the line that made it, and a remedy."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

import graphcore as gc
from graphcore.errors import InvalidArgumentError
from graphcore.source import CellRun, current_run


@pytest.fixture(autouse=True)
def graph() -> Iterator[gc.Graph]:
    with gc.Graph().as_default() as graph:
        yield graph


def refused(call: Callable[[], object]) -> InvalidArgumentError:
    with pytest.raises(InvalidArgumentError) as caught:
        call()
    return caught.value


def test_a_product_of_int64_and_float_tells_which_is_which_and_where_each_was_made() -> None:
    token = current_run.set(CellRun(cell="a", execution=3, label="In [3]"))
    try:
        steps = gc.placeholder(gc.int64, [2], name="steps")
    finally:
        current_run.reset(token)
    rate = gc.constant([0.5, 1.5], name="rate")
    error = refused(lambda: steps * rate)
    first, *inputs = error.message.splitlines()
    assert first == "Mul takes inputs of one dtype, but 'x' is int64 and 'y' is float; convert with gc.cast"
    assert steps.node.source is not None
    assert rate.node.source is not None
    assert inputs == [
        f"  x: 'steps:0' int64 [2], made in cell In [3], line {steps.node.source.line}",
        f"  y: 'rate:0' float [2], made in {rate.node.source.where}",
    ]
    assert (error.op, error.node, error.input) == ("Mul", "mul", "y")
    assert error.__notes__[0].startswith("Inconsistent values for attr 'T' DT_INT64 vs. DT_FLOAT while building NodeDef 'mul'")


CASES: dict[str, tuple[Callable[[gc.Tensor, gc.Tensor], object], str, str]] = {
    "list": (
        lambda n, x: gc.add_n([x, x, n]),
        "AddN takes inputs of one dtype, but 'inputs[0]' is float and 'inputs[2]' is int64",
        "passed int64",
    ),
    "fixed": (
        lambda n, x: gc.where(x, n, n),
        "Input 'condition' of Select must be bool, but is float; convert with gc.cast",
        "passed float",
    ),
    "few": (lambda n, _: gc.softmax(n), "must be half, bfloat16, float or double, but is int64; convert with gc.cast", "not in the list"),
    "many": (lambda _, x: gc.constant(["a"]) * x, "Input 'x' of Mul cannot be string\n", "Inconsistent values"),
    "text": (lambda _, x: gc.add_n([x, gc.constant(["a"])]), "is float and 'inputs[1]' is string\n", "passed string"),
    "attr": (
        lambda n, _: gc.apply_op("Cast", [n], {"SrcT": gc.int32, "DstT": gc.float32}),
        "attr 'SrcT' is int32 and 'x' is int64",
        "Incons",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_wrong_dtype_is_told_in_plain_words_and_the_definition_stays_in_a_note(case: str) -> None:
    call, said, noted = CASES[case]
    n, x = gc.placeholder(gc.int64, [2], name="n"), gc.placeholder(gc.float32, [2], name="x")
    error = refused(lambda: call(n, x))
    assert said in error.message
    assert "signature=" not in error.message
    assert noted in error.__notes__[0]
    assert "signature=" in error.__notes__[0]


def test_what_is_wrong_besides_dtypes_is_told_in_the_words_of_the_definition() -> None:
    x = gc.placeholder(gc.float32, [2], name="x")
    error = refused(lambda: gc.apply_op("Mul", [x]))
    assert "1 inputs specified of 2 inputs in Op" in error.message
    assert error.message.splitlines()[-1].startswith("  x: 'x:0' float [2], made in test_wrong_dtypes.py, line ")
    assert not hasattr(error, "__notes__")
