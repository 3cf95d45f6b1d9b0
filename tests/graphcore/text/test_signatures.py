"""Op signatures in the text form."""

from __future__ import annotations

import numpy as np
import pytest

import graphcore.dtypes as dt
from graphcore.attrs import Func, Placeholder, TensorValue
from graphcore.definitions import OpDef, OpDefBuilder, OpDeprecation
from graphcore.errors import InvalidArgumentError
from graphcore.shapes import Shape
from graphcore.text import debug_string, parse_op_signature
from tests.graphcore.functions.example_ops import SIGNATURES

RESHAPE = "Reshape[T:type, Tshape:{int32, int64} = int32](tensor:T, shape:Tshape) -> (output:T)"
DOC = """Gives `tensor` a new shape.

    The elements stay in the same order.

    shape: the new shape,
      at most one -1.
    T: any type.
    """


def test_a_signature_gives_what_the_builder_gives() -> None:
    built = OpDefBuilder("Reshape").input("tensor: T").input("shape: Tshape").output("output: T")
    built = built.attr("T: type").attr("Tshape: {int32, int64} = DT_INT32")
    assert parse_op_signature(RESHAPE) == built.finalize()


def test_the_docstring_describes_the_op_its_arguments_and_its_attrs() -> None:
    op_def = parse_op_signature(RESHAPE, DOC)
    assert op_def.summary == "Gives `tensor` a new shape."
    assert op_def.description == "The elements stay in the same order."
    assert [arg.description for arg in op_def.input_arg] == ["", "the new shape,\nat most one -1."]
    assert [attr.description for attr in op_def.attr] == ["any type.", ""]


def test_a_doc_of_something_that_is_not_there_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match=r"No matching input/output/attr for name 'b' from Doc\(\) for Op X"):
        parse_op_signature("X() -> ()", "Sum.\n\nb: what is b?")


@pytest.mark.parametrize("text", SIGNATURES)
def test_a_signature_reads_back_from_its_print(text: str) -> None:
    op_def = parse_op_signature(text)
    printed = debug_string(op_def)
    assert parse_op_signature(printed) == op_def
    assert debug_string(parse_op_signature(printed)) == printed


@pytest.mark.parametrize(
    "text",
    [
        "NoOp() -> ()",
        RESHAPE,
        "F[N:int >= 2 = 3, T:type](x:N*T) -> (y:Ref(T), z:N*int32)",
        "F[N:int >= 0](x:N*float) -> ()",
        'F[e:{"a", "b"} = "b", l:list({float, half}) = [float]]() -> ()',
        "F[f:float = 1.0, g:func = Square[T=$T], s:shape = [1,?], u:shape = <unknown>, v:shape = [3]]() -> ()",
        "F[t:tensor = Tensor<type: int64 shape: [2] values: 1 2>, l:list(int) = [], k:list(type) >= 1](x:k) -> ()",
        "F() -> () @commutative @aggregate @stateful",
        "F(x:resource) -> () @stateless",
        'F() -> () @allows_uninitialized_input @deprecated(12, "use G")',
    ],
)
def test_a_signature_prints_as_it_is_written(text: str) -> None:
    expected = text.replace("k:list(type) >= 1", "k:list(type)")
    assert debug_string(parse_op_signature(text)) == expected


def test_a_list_attr_that_types_an_argument_has_at_least_one_element_unless_it_says_otherwise() -> None:
    op_def = parse_op_signature("F[N:int, M:int >= 0, K:list(type), I:int](x:N*float, y:M*float, z:K) -> ()")
    assert [(attr.has_minimum, attr.minimum) for attr in op_def.attr] == [(True, 1), (True, 0), (True, 1), (False, 0)]


def test_defaults_may_be_written_as_the_text_form_prints_them_or_as_builders_take_them() -> None:
    op_def = parse_op_signature(
        "F[a:type = float, b:type = DT_FLOAT, c:tensor = { dtype: DT_INT32 int_val: 5 }, d:string = 'x,]y', e:float = 2,"
        " f:shape = { dim { size: 3 } }, g:list(shape) = [[], [?,2]], h:func = Square[T=$T], i:bool = true]() -> ()"
    )
    defaults = {attr.name: attr.default_value for attr in op_def.attr}
    assert defaults == {
        "a": dt.float32,
        "b": dt.float32,
        "c": TensorValue(np.int32(5)),
        "d": b"x,]y",
        "e": 2.0,
        "f": Shape([3]),
        "g": (Shape([]), Shape([None, 2])),
        "h": Func("Square", {"T": Placeholder("T")}),
        "i": True,
    }
    assert type(defaults["e"]) is float


def test_an_op_that_touches_a_resource_is_stateful_unless_it_says_otherwise() -> None:
    assert parse_op_signature("F(x:resource) -> ()").is_stateful
    assert not parse_op_signature("F(x:resource) -> () @stateless").is_stateful
    assert not parse_op_signature("F(x:variant) -> ()").is_stateful


def test_flags_and_a_deprecation_follow_the_outputs() -> None:
    op_def = parse_op_signature('F() -> () @aggregate @deprecated(9, "old \\"x\\"")')
    assert op_def == OpDef(name="F", is_aggregate=True, deprecation=OpDeprecation(9, 'old "x"'))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x", "line 1, column 2: expected '(', found the end"),
        ("(x:T) -> ()", "line 1, column 1: expected the name of an op"),
        ("X(", "line 1, column 3: expected an argument such as x:T, x:N*T or x:Ref(T), found the end"),
        ("X[T:foo](x:T) -> ()", "line 1, column 3: Trouble parsing type string at 'foo'"),
        ("X(x:T) -> ()", "line 1, column 3: Reference to unknown attr 'T'"),
        ("X[T:int](x:T) -> ()", "Reference to attr 'T' with type int that isn't type or list(type)"),
        ("X[N:type](x:N*float) -> ()", "Reference to attr 'N' with type type that isn't int"),
        ("X(x:float)", "line 1, column 11: expected '->' and the outputs, found the end"),
        ("X[T:type](x:T y:T) -> ()", "line 1, column 15: expected ',' or ')', found 'y:T) -> ()'"),
        ('X[a:int="f"]() -> ()', "line 1, column 3: Could not parse default value '\"f\"'"),
        ("X() -> () @foo", "line 1, column 12: expected one of the flags stateful,"),
        ("X() -> () y", "line 1, column 11: expected the end of the signature, found 'y'"),
        ("X[T:type\n](\n  x:T, !:T) -> ()", "line 3, column 8: expected an argument"),
        ("X(x:float_ref) -> ()", "expected Ref(float)"),
        ("X(x:float, x:int32) -> ()", "expected arguments with different names"),
        ("X[T:type, T:int]() -> ()", "expected attrs with different names"),
        ("X(x:float) -> (x:float)", "Duplicate name: x in Op X"),
        ('X[a:string = "b]() -> ()', "line 1, column 14: expected a closed string"),
    ],
)
def test_a_wrong_signature_is_refused_with_line_column_and_expectation(text: str, message: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        parse_op_signature(text)
    assert message in caught.value.message
