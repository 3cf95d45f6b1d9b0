"""Ops applied with keywords, collections by their keys, graphs of a function library."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.errors import InvalidArgumentError


def test_inputs_and_attrs_may_be_given_by_name() -> None:
    with gc.Graph().as_default() as graph:
        w = gc.Variable(gc.zeros([2]), name="W")
        by_place = gc.apply_op("Assign", [w, [1.0, 2.0]], {"use_locking": False}, "a")
        by_name = gc.apply_op("Assign", ref=w, value=[1.0, 2.0], validate_shape=None, use_locking=False, name="b")
        mixed = gc.apply_op("Assign", [w], value=[1.0, 2.0], use_locking=False, name="c")
    first, *others = (graph.get_operation_by_name(name) for name in "abc")
    assert [made.node.name for made in (by_place, by_name, mixed) if isinstance(made, gc.Tensor)] == ["a", "b", "c"]
    for other in others:
        assert (other.attrs, other.inputs[0]) == (first.attrs, first.inputs[0])


@pytest.mark.parametrize("wrapped", [False, True])
def test_the_one_list_of_an_op_may_be_given_as_it_is(wrapped: bool) -> None:
    with gc.Graph().as_default() as graph:
        a, b = gc.constant([1.0]), gc.constant([2.0])
        total = gc.apply_op("AddN", inputs=[[a, b]] if wrapped else [a, b], name="total")
        with gc.Session(graph) as session:
            np.testing.assert_array_equal(session.run(total), [3.0])


@pytest.mark.parametrize(
    ("keywords", "text"),
    [
        ({"x": 1.0}, "Op AddV2 takes the inputs 'x', 'y'; 'y' is not given"),
        ({"x": 1.0, "y": 1.0, "z": 1}, "NodeDef mentions attr 'z' not in Op<name=AddV2;"),
    ],
)
def test_keywords_that_do_not_fit_are_refused(keywords: dict[str, Any], text: str) -> None:
    with gc.Graph().as_default() as graph, pytest.raises(InvalidArgumentError) as caught:
        gc.apply_op("AddV2", **keywords)
    assert text in caught.value.message
    assert graph.find("AddV2") is None


@pytest.mark.parametrize(
    ("op", "attrs", "text"),
    [
        ("Neg", {"b": 1}, "NodeDef mentions attr 'b' not in Op<name=Neg;"),
        ("MatMul", {"transpose_a": "yes"}, "AttrValue had value with type 'string' when 'bool' expected"),
        ("MatMul", {"transpose_a": 1}, "AttrValue had value with type 'int' when 'bool' expected"),
        (
            "MaxPool",
            {"ksize": [1, 2, 2, 1], "strides": [1, 1, 1, 1], "padding": "NOPE"},
            "attr 'padding' of \"NOPE\" is not in the list of allowed values",
        ),
        (
            "MaxPool",
            {"ksize": [1, 2], "strides": [1, 1, 1, 1], "padding": "SAME"},
            "Length for attr 'ksize' of 2 must be at least minimum 4",
        ),
        ("SpaceToDepth", {"block_size": 1}, "Value for attr 'block_size' of 1 must be at least minimum 2"),
        ("Cast", {"DstT": 5.0}, "AttrValue had value with type 'float' when 'type' expected"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_attrs_that_the_op_does_not_allow_are_refused_when_the_node_is_made(op: str, attrs: dict[str, object], text: str) -> None:
    with gc.Graph().as_default() as graph:
        x = gc.placeholder(gc.float32, None)
        with pytest.raises(InvalidArgumentError) as caught:
            graph.apply_op(op, [x] * (2 if op == "MatMul" else 1), attrs)
    assert text in caught.value.message
    assert (caught.value.op, len(graph)) == (op, 1)


def test_internal_attrs_are_anybodys() -> None:
    with gc.Graph().as_default() as graph:
        made = graph.apply_op("Neg", [gc.constant(1.0)], {"_mine": "text"})
    assert made.get_attr("_mine") == b"text"


def test_an_attr_is_given_once() -> None:
    with gc.Graph().as_default(), pytest.raises(InvalidArgumentError, match="Attr 'T' is given twice to op Neg"):
        gc.apply_op("Neg", [1.0], {"T": gc.float32}, T=gc.float32)


def test_variables_are_in_collections_named_by_keys() -> None:
    with gc.Graph().as_default():
        w = gc.Variable(1.0, name="w")
        fixed = gc.Variable(1.0, trainable=False, name="fixed")
        assert gc.get_collection(gc.GraphKeys.VARIABLES) == gc.all_variables() == [w, fixed]
        assert gc.get_collection(gc.GraphKeys.TRAINABLE_VARIABLES) == [w]
        gc.add_to_collection("mine", fixed)
        assert gc.get_collection("mine") == [fixed]
        assert gc.get_collection("nothing") == []


def test_a_graph_of_a_function_library_copies_its_functions() -> None:
    library = gc.FunctionLibraryDefinition()
    library.add_function_def(gc.parse_function("F(x:float) -> (y:float) {\n  n = Neg[T=float](x)\n  return y = n:y:0\n}"))
    graph = gc.Graph(library)
    library.remove_function("F")
    assert (graph.library.list_function_names(), graph.registry) == (["F"], gc.op_registry)
    with graph.as_default():
        called = graph.apply_op("F", [gc.placeholder(gc.float32, [2])]).outputs[0]
    assert str(called.shape) == "[2]"
    private = gc.FunctionLibraryDefinition(gc.OpRegistry())
    assert gc.Graph(private).registry is private.default_registry


@pytest.mark.parametrize("value", ["tensor", "variable", 2.0, np.float32(2.0), np.array([1.0, 2.0], np.float32)], ids=str)
def test_the_input_of_an_op_with_one_input_may_stand_by_itself(value: Any) -> None:
    with gc.Graph().as_default():
        given = {"tensor": gc.constant(1.0), "variable": gc.Variable(1.0)}.get(value, value) if isinstance(value, str) else value
        checked = gc.apply_op("CheckNumerics", given, message="where")
        added = gc.apply_op("AddN", given)
    assert isinstance(checked, gc.Tensor)
    assert checked.node.op == "CheckNumerics"
    assert isinstance(added, gc.Tensor)
    assert len(added.node.inputs) == 1


def test_a_converted_value_is_a_constant_of_the_given_name() -> None:
    with gc.Graph().as_default(), gc.name_scope("layer"):
        names = [gc.convert_to_tensor(1.0, name="rate").node.name for _ in range(2)]
        tensor = gc.convert_to_tensor(2.0)
        assert gc.convert_to_tensor(tensor, name="other") is tensor
    assert [*names, tensor.node.name] == ["layer/rate", "layer/rate_1", "layer/Const"]
