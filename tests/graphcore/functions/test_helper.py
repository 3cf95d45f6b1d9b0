"""FunctionDefHelper: the rules F7."""

from __future__ import annotations

import numpy as np
import pytest

import graphcore.dtypes as dt
from graphcore.attrs import Func, Placeholder, TensorValue
from graphcore.definitions import NodeDef
from graphcore.errors import InvalidArgumentError, NotFoundError
from graphcore.functions import FunctionDefHelper as FDH  # noqa: N817 - the abbreviation of the design documents
from graphcore.functions import has_placeholder, substitute_placeholders
from tests.graphcore.functions.example_ops import op_def


def test_a_string_that_begins_with_a_dollar_becomes_a_placeholder() -> None:
    node = FDH.Node(["a"], "X", (), {"p": "$T", "s": "T", "d": "$", "e": "", "l": ["$T"]}).to_node_def()
    assert node.attr == {"p": Placeholder("T"), "s": b"T", "d": b"$", "e": b"", "l": (b"$T",)}


def test_a_function_reference_is_a_func_attr_with_placeholders() -> None:
    assert FDH.function_ref("Square", {"T": "$T", "n": 2}) == Func("Square", {"T": Placeholder("T"), "n": 2})
    assert FDH.function_ref("MyCond") == Func("MyCond")


def test_a_node_is_named_by_its_first_result_and_control_inputs_follow_its_inputs() -> None:
    node = FDH.Node(["r", "s"], "X", ["a", "b:out:1"], {}, ["c"], "/cpu:0").to_node_def()
    assert node == NodeDef("r", "X", ("a", "b:out:1", "^c"), "/cpu:0")


def test_a_node_without_results_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="A node of op X needs at least one result name"):
        FDH.Node([], "X").to_node_def()


@pytest.mark.parametrize(
    ("value", "dtype", "tensor"),
    [
        (0, None, TensorValue(np.int32(0))),
        (0.5, None, TensorValue(np.float32(0.5))),
        (True, None, TensorValue(np.bool_(True))),
        ("text", None, TensorValue(b"text", dt.string)),
        ([1, 2], None, TensorValue(np.array([1, 2], np.int32))),
        ([[0.5]], None, TensorValue(np.array([[0.5]], np.float32))),
        (np.int64(2), None, TensorValue(np.int64(2))),
        (2, dt.int64, TensorValue(np.int64(2))),
        (TensorValue(np.int8(3)), None, TensorValue(np.int8(3))),
    ],
)
def test_a_constant_takes_the_type_of_its_value(value: object, dtype: dt.DType | None, tensor: TensorValue) -> None:
    node = FDH.const("c", value, dtype).to_node_def()
    assert node == NodeDef("c", "Const", (), "", {"dtype": tensor.dtype, "value": tensor})


def test_create_marks_a_function_stateful_if_an_op_is_stateful_or_unknown() -> None:
    assert FDH.create("f", [], [], [], [(["a"], "SurelyNoSuchOp")], {}).signature.is_stateful
    draw = (["y"], "RandomUniform", ["s"], {"dtype": dt.float32, "T": dt.int32})
    assert FDH.create("f", ["s: int32"], [], [], [draw], {}).signature.is_stateful
    assert not FDH.create("f", ["x: float"], [], [], [(["y"], "Neg", ["x"], {"T": dt.float32})], {}).signature.is_stateful
    assert not FDH.create("f", [], [], [], [], {}).signature.is_stateful


def test_define_marks_a_function_stateful_only_for_known_stateful_ops() -> None:
    node = (["y"], "RandomUniform", ["s"], {"dtype": dt.float32, "T": dt.int32})
    assert FDH.define(["s: int32"], ["y: float"], [], [node], look_up=op_def).signature.is_stateful


def test_define_names_inputs_by_node_output_and_index() -> None:
    function = FDH.define(
        "f",
        ["d: int32", "x: float"],
        ["y: float", "b: float"],
        [],
        [
            (["a", "b"], "Split", ["d", "x"], {"num_split": 2, "T": dt.float32}),
            (["y"], "Add", ["b", "x"], {"T": dt.float32}, ["a"]),
        ],
        look_up=op_def,
    )
    assert function.node_def[1].input == ("a:output:1", "x", "^a")
    assert function.ret == {"y": "y:z:0", "b": "a:output:1"}
    assert not function.signature.is_stateful


def test_define_without_a_name_uses_an_underscore() -> None:
    assert FDH.define(["x: float"], ["x: float"], [], [], look_up=op_def).signature.name == "_"


@pytest.mark.parametrize(
    ("node", "message"),
    [
        ((["y"], "Neg", ["z"], {"T": dt.float32}), "Node input 'z' in 'y' of f not found"),
        ((["y"], "Neg", ["x:0"], {"T": dt.float32}), "Node input 'x:0' in 'y' of f not found"),
        ((["y"], "BroadcastGradientArgs", ["x", "x"], {}), "Missing ret for output 'r1' in 'y' of f"),
        ((["y"], "Split", ["x", "x"], {"num_split": 2, "T": dt.float32}), "Missing ret for output 'output' in 'y' of f"),
        ((["z"], "Neg", ["x"], {"T": dt.float32}), "Return 'y' in 'f' not found."),
    ],
)
def test_define_refuses_inputs_and_results_that_are_not_named(node: tuple[object, ...], message: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        FDH.define("f", ["x: float"], ["y: float"], [], [node], look_up=op_def)
    assert caught.value.message == message


def test_define_requires_every_op_to_be_registered() -> None:
    with pytest.raises(NotFoundError, match="Op type not registered 'SurelyNoSuchOp'"):
        FDH.define("f", [], [], [], [(["y"], "SurelyNoSuchOp")])


def test_define_refuses_a_wrong_number_of_arguments() -> None:
    with pytest.raises(InvalidArgumentError, match="define takes"):
        FDH.define("f", [])


def test_errors_of_the_signature_are_those_of_the_op_builder() -> None:
    with pytest.raises(InvalidArgumentError, match=r"Reference to unknown attr 'T' from Input\(\"x: T\"\) for Op f"):
        FDH.create("f", ["x: T"], [], [], [], {})


def test_n8_placeholders_are_found_and_replaced_inside_functions_and_lists() -> None:
    value = Func("f", {"F": (Func("f", {"T": Placeholder("T")}), Func("g", {"T": Placeholder("T")})), "T": Placeholder("T")})
    assert has_placeholder(value)
    bound = substitute_placeholders({"T": Func("x")}.get, value)
    assert bound == Func("f", {"F": (Func("f", {"T": Func("x")}), Func("g", {"T": Func("x")})), "T": Func("x")})
    assert bound is not None
    assert not has_placeholder(bound)
    assert substitute_placeholders({"U": 1}.get, value) is None
    assert substitute_placeholders({"U": 1}.get, (Placeholder("T"), 1)) is None
    assert substitute_placeholders(lambda _: None, b"$T") == b"$T"
