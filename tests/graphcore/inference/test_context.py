"""The node and its error context; handles."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from graphcore.attrs import Placeholder
from graphcore.definitions.types import ArgDef, AttrDef, OpDef
from graphcore.dtypes import float32, float64
from graphcore.errors import InternalError, InvalidArgumentError
from graphcore.graph import Graph
from graphcore.inference import (
    DimensionHandle,
    InferenceContext,
    ShapeHandle,
    count_outputs,
    handle_to_shape,
    is_fully_defined,
    run_error_suffix,
    same_defined_shape,
    shape_of_sizes,
    shape_to_handle,
)
from graphcore.registry import OpRegistry
from graphcore.shapes import Shape
from tests.support.shape_rows import context, shape

# ---- the node


def test_errors_get_the_node_and_its_input_shapes() -> None:
    c = context("[2,3];[4,5]", op="MatMul")
    with pytest.raises(InvalidArgumentError) as caught:
        c.run(lambda c: c.set_output(0, c.merge(*c.inputs)))
    assert caught.value.message == (
        "Dimension 0 in both shapes must be equal, but are 2 and 4. Shapes are [2,3] and [4,5]."
        " for 'x' (op: 'MatMul') with input shapes: [2,3], [4,5]."
    )
    assert str(caught.value) == caught.value.message
    assert (caught.value.node, caught.value.op) == ("x", "MatMul")


def test_errors_tell_the_values_that_were_used() -> None:
    c = context("[2,3];[2,2];[2];?", values=(None, [[1, 2], [-5, 0]]), partial={2: "[3,?]"}, op="Pad")

    def read_both(c: InferenceContext) -> None:
        c.input_tensor(1)
        c.input_tensor(3)
        c.make_shape_from_shape_tensor(2)
        raise InvalidArgumentError("No.")

    with pytest.raises(InvalidArgumentError) as caught:
        c.run(read_both)
    assert caught.value.message == (
        "No. for 'x' (op: 'Pad') with input shapes: [2,3], [2,2], [2], ?"
        " and with computed input tensors: input[1] = <[1 2][-5 0]>"
        " and with input tensors computed as partial shapes: input[2] = [3,?]."
    )
    assert c.requested_input_tensors == {1, 3}
    assert c.requested_input_tensors_as_partial_shapes == {2}


def test_the_error_context_is_there_without_a_node() -> None:
    text = run_error_suffix("n", "MatMul", [shape("[2,3]"), shape("?")], {1: np.array([1.5, 2])}, {0: shape("[?]"), 1: shape("[1]")})
    assert text == (
        " for 'n' (op: 'MatMul') with input shapes: [2,3], ?"
        " and with computed input tensors: input[1] = <1.5 2>"
        " and with input tensors computed as partial shapes: input[0] = [?],input[1] = [1]."
    )


def test_values_are_asked_for_once() -> None:
    asked: list[int] = []

    def value(i: int) -> np.ndarray[tuple[int, ...], np.dtype[np.int32]] | None:
        asked.append(i)
        return None

    c = InferenceContext("x", OpDef(name="Op"), {}, [ShapeHandle()], input_tensor=value)
    assert c.input_tensor(0) is None
    assert c.input_tensor(0) is None
    assert asked == [0]
    assert c.input_tensor_as_partial_shape(0) is None


def test_a_context_counts_inputs_and_outputs() -> None:
    c = context("[1];[2]", outputs=3)
    assert (c.num_inputs, c.num_outputs, c.op) == (2, 3, "Op")
    with pytest.raises(InvalidArgumentError, match="has not been set"):
        c.output(0)
    with pytest.raises(InvalidArgumentError, match="Output 3 of 'x' does not exist: it has 3"):
        c.set_output(3, c.scalar())


@pytest.mark.parametrize(
    ("given", "came"), [([1, 2], r"\[1, 2\] \(list\)"), (Shape([1, 2]), r"Shape\(\[1, 2\]\) \(Shape\)"), (None, "None")]
)
def test_a_shape_function_that_sets_something_else_than_a_shape_is_refused_and_adds_no_node(given: Any, came: str) -> None:
    registry = OpRegistry()
    registry.register(OpDef(name="Op", output_arg=(ArgDef(name="y", type=float32),)), lambda c: c.set_output(0, given))
    graph = Graph(registry)
    nodes = list(graph.nodes)
    with pytest.raises(InternalError, match=rf"The shape function of op Op raised TypeError: set_output\(0, .*, got {came}") as caught:
        graph.apply_op("Op", [])
    assert "Correct the shape function of Op, test_context.py, line" in caught.value.suggestion
    assert list(graph.nodes) == nodes


def test_attrs_fall_back_to_their_defaults() -> None:
    op_def = OpDef(
        name="Op",
        attr=(
            AttrDef(name="n", type="int", default_value=3),
            AttrDef(name="ns", type="list(int)", default_value=(1, 2)),
            AttrDef(name="s", type="string", default_value=b"NHWC"),
            AttrDef(name="m", type="int"),
        ),
    )
    c = InferenceContext("x", op_def, {"n": 4}, [])
    assert (c.attr("n"), c.int_attr("n"), c.ints_attr("ns"), c.text_attr("s")) == (4, 4, (1, 2), "NHWC")
    assert c.text_attr("data_format", "NCHW") == "NCHW"
    for name in ("m", "z"):
        with pytest.raises(InvalidArgumentError, match=f"No attr named '{name}' in NodeDef:"):
            c.attr(name)
    for ask in (lambda: c.int_attr("s"), lambda: c.ints_attr("n"), lambda: c.text_attr("n")):
        with pytest.raises(InvalidArgumentError, match="must be a"):
            ask()


def test_outputs_are_counted_by_attrs() -> None:
    args = (ArgDef(name="a", type=float32), ArgDef(name="b", type=float32, number_attr="N"), ArgDef(name="c", type_list_attr="T"))
    op_def = OpDef(name="Op", output_arg=args)
    assert count_outputs(op_def, {"N": 2, "T": (float32, float32, float64)}) == 6
    with pytest.raises(InvalidArgumentError, match="Attr 'N' of op Op must say the number of outputs, got Placeholder"):
        count_outputs(op_def, {"N": Placeholder("N"), "T": ()})


# ---- handles


def test_handles_become_values_and_back() -> None:
    for text in ("?", "[]", "[1,?,3]"):
        handle = shape(text)
        value = handle_to_shape(handle)
        assert str(value) == text
        assert handle_to_shape(handle) is value
        assert str(shape_to_handle(value)) == text
    assert repr(shape("[1,?]")) == "ShapeHandle([1,?])"
    assert handle_to_shape(shape_to_handle(Shape([2, None]))) == Shape([2, None])


def test_handles_are_equal_only_to_themselves() -> None:
    first, second = shape("[1]"), shape("[1]")
    assert first != second
    assert first == first  # noqa: PLR0124 - that is the claim
    assert DimensionHandle(1) != DimensionHandle(1)


def test_fully_defined_means_every_size_is_known() -> None:
    assert [is_fully_defined(shape(text)) for text in ("?", "[?]", "[]", "[1,2]")] == [False, False, True, True]


def test_defined_shapes_are_the_same_if_no_doubt_is_left() -> None:
    a, b = shape_of_sizes([1, -1]), shape_of_sizes([1, -1])
    assert same_defined_shape(a, a)
    assert same_defined_shape(ShapeHandle(a.dims), a)
    assert not same_defined_shape(a, b)
    assert same_defined_shape(shape("[1,2]"), shape("[1,2]"))
    assert not same_defined_shape(shape("[1,2]"), shape("[1,3]"))
    assert not same_defined_shape(shape("?"), shape("?"))
