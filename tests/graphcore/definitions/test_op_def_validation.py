"""Validation of OpDefs, and removed ops."""

from __future__ import annotations

from typing import Any

import pytest

from graphcore import dtypes as d
from graphcore.attrs import NO_VALUE
from graphcore.definitions import ArgDef, AttrDef, OpDef, OpDefBuilder, OpDeprecation, check_op_deprecation, validate_op_def
from graphcore.errors import GraphError, InvalidArgumentError, UnimplementedError


@pytest.mark.parametrize("name", ["Uppercase", "Namespace>X", "Namespace>X>Y", "_Internal", "_lower", "A_1"], ids="O6-{}".format)
def test_an_op_name_is_accepted(name: str) -> None:
    validate_op_def(OpDef(name=name))


@pytest.mark.parametrize("name", ["lower", "OpName>", "OpName>b", ">A", "9A", "", "A-b", "A b", "A\n"], ids="O6-{!r}".format)
def test_an_op_name_is_refused(name: str) -> None:
    with pytest.raises(InvalidArgumentError, match=r"^Invalid name: "):
        validate_op_def(OpDef(name=name))


@pytest.mark.parametrize(
    "spec",
    [
        "a: int >= -5 = 3",
        "a: list(int) >= 0 = []",
        "a: numbertype = DT_FLOAT",
        "a: {'foo', 'bar'} = 'bar'",
        "a: list({float}) = [DT_FLOAT]",
    ],
    ids="O6-{}".format,
)
def test_an_attr_with_a_fitting_default_is_accepted(spec: str) -> None:
    validate_op_def(OpDefBuilder("Test").attr(spec).finalize())


def test_o6_a_default_in_which_nothing_is_set_is_an_empty_list() -> None:
    validate_op_def(OpDef(name="Test", attr=(AttrDef(name="a", type="list(int)", default_value=NO_VALUE),)))
    at_least_one = AttrDef(name="a", type="list(int)", has_minimum=True, minimum=1, default_value=NO_VALUE)
    with pytest.raises(InvalidArgumentError, match="Length for attr 'a' of 0 must be at least minimum 1"):
        validate_op_def(OpDef(name="Test", attr=(at_least_one,)))


A_ARG = ArgDef(name="a", type=d.int32)


@pytest.mark.parametrize(
    "op_def",
    [
        OpDef(name="Test", input_arg=(A_ARG, A_ARG)),
        OpDef(name="Test", output_arg=(A_ARG, A_ARG)),
        OpDef(name="Test", attr=(AttrDef(name="a", type="int"), AttrDef(name="a", type="float"))),
        OpDef(name="Test", input_arg=(A_ARG,), output_arg=(A_ARG,)),
        OpDef(name="Test", input_arg=(A_ARG,), attr=(AttrDef(name="a", type="int"),)),
        OpDef(name="Test", output_arg=(A_ARG,), attr=(AttrDef(name="a", type="int"),)),
    ],
    ids=["O6-inputs", "O6-outputs", "O6-attrs", "O6-input and output", "O6-input and attr", "O6-output and attr"],
)
def test_a_name_used_twice_is_refused(op_def: OpDef) -> None:
    with pytest.raises(InvalidArgumentError, match=r"^Duplicate name: a; in OpDef: "):
        validate_op_def(op_def)


def attr(kind: str, **fields: Any) -> AttrDef:
    return AttrDef(name="a", type=kind, **fields)


@pytest.mark.parametrize(
    ("definition", "text"),
    [
        (AttrDef(name="int32", type="int"), "Attr can't have name int32 that matches a data type"),
        (AttrDef(name="float", type="int"), "Attr can't have name float that matches a data type"),
        (attr("illegal"), "Unrecognized type 'illegal' in attr 'a'"),
        (attr("list(illegal)"), "Unrecognized type 'illegal)' in attr 'a'"),
        (attr("int extra"), "Extra ' extra' at the end"),
        (attr("list(int) extra"), "Extra ' extra' at the end"),
        (attr("list(int"), "'list(' is missing ')' in attr"),
        (attr("int", default_value=b"x"),
         "AttrValue had value with type 'string' when 'int' expected\n\t for attr 'a'\n\t in Op 'BadAttrDef'"),
        (attr("list(int)", default_value=0.5), "AttrValue had value with type 'float' when 'list(int)' expected"),
        (attr("list(int)", default_value=(0.5,)), "AttrValue had value with type 'list(float)' when 'list(int)' expected"),
        (attr("type", default_value=NO_VALUE), "AttrValue missing value with expected type 'type'\n\t for attr 'a'\n\t in Op 'BadAttrDef'"),
        (attr("shape", default_value=NO_VALUE), "AttrValue missing value with expected type 'shape'\n\t for attr 'a'\n\t in Op 'BadAttrDef'"),
        (attr("tensor", default_value=NO_VALUE),
         "AttrValue missing value with expected type 'tensor'\n\t for attr 'a'\n\t in Op 'BadAttrDef'"),
        (attr("list(int)", has_minimum=True, minimum=2, default_value=NO_VALUE),
         "Length for attr 'a' of 0 must be at least minimum 2\n\t in Op 'BadAttrDef'"),
        (attr("list(string)", has_minimum=True, minimum=2, default_value=(b"foo",)),
         "Length for attr 'a' of 1 must be at least minimum 2\n\t in Op 'BadAttrDef'"),
        (attr("int", has_minimum=True, minimum=7, default_value=2),
         "Value for attr 'a' of 2 must be at least minimum 7\n\t in Op 'BadAttrDef'"),
        (attr("type", default_value=d.int32.ref), "AttrValue must not have reference type value of int32_ref"),
        (attr("list(type)", default_value=(d.int32.ref,)), "AttrValue must not have reference type value of int32_ref"),
        (attr("string", has_minimum=True, minimum=5), "minimum for unsupported type string"),
        (attr("list(int)", has_minimum=True, minimum=-5), "list type must have a non-negative minimum, not -5"),
        (attr("int", minimum=3), "Attr 'a' with has_minimum = false but minimum 3 not equal to default of 0"),
        (attr("type", default_value=d.string, allowed_values=(d.float32,)),
         "attr 'a' of string is not in the list of allowed values: float"),
        (attr("list(type)", default_value=(d.string,), allowed_values=(d.float32,)),
         "attr 'a' of string is not in the list of allowed values: float"),
        (attr("string", default_value=b"baz", allowed_values=(b"foo", b"bar")),
         "attr 'a' of \"baz\" is not in the list of allowed values: \"foo\", \"bar\""),
        (attr("list(string)", default_value=(b"foo", b"baz"), allowed_values=(b"foo", b"bar")),
         "attr 'a' of \"baz\" is not in the list of allowed values: \"foo\", \"bar\""),
        (attr("string", allowed_values=(7,)), "with type 'list(int)' when 'list(string)' expected"),
        (attr("list(string)", allowed_values=(d.float32,)), "with type 'list(type)' when 'list(string)' expected"),
    ],
    ids=lambda value: f"O6-{value[:60]}" if isinstance(value, str) else "",
)  # fmt: skip
def test_a_bad_attr_is_refused(definition: AttrDef, text: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        validate_op_def(OpDef(name="BadAttrDef", attr=(definition,)))
    assert text in caught.value.message


X_INT = AttrDef(name="x", type="int")
X_TYPE = AttrDef(name="x", type="type")
N_INT = AttrDef(name="n", type="int", has_minimum=True, minimum=1)


@pytest.mark.parametrize(
    ("arg", "attrs", "text"),
    [
        (ArgDef(name="a", type=d.float32.ref), (), "Illegal use of ref type 'float_ref'. Use 'Ref(type)' instead for {way} 'a'"),
        (ArgDef(name="b"), (), "Missing type for {way} 'b'"),
        (ArgDef(name="a", number_attr="n"), (N_INT,), "Missing type for {way} 'a'; in OpDef:"),
        (ArgDef(name="a", type=d.float32, type_attr="x"), (X_TYPE,), "Exactly one of type, type_attr, type_list_attr must be set for {way} 'a'"),
        (ArgDef(name="a", type=d.float32, type_list_attr="x"), (), "Exactly one of type, type_attr, type_list_attr must be set for {way} 'a'"),
        (ArgDef(name="a", type_attr="x", type_list_attr="x"), (), "Exactly one of type, type_attr, type_list_attr must be set for {way} 'a'"),
        (ArgDef(name="a", number_attr="n", type=d.float32, type_attr="x"), (N_INT,), "Exactly one of type, type_attr must be set for {way} 'a'"),
        (ArgDef(name="a", type_attr="x"), (X_INT,), "Attr 'x' used as type_attr for {way} 'a' has type int"),
        (ArgDef(name="a", type_list_attr="x"), (X_INT,), "Attr 'x' used as type_list_attr for {way} 'a' has type int"),
        (ArgDef(name="a", type_list_attr="x"), (X_TYPE,), "Attr 'x' used as type_list_attr for {way} 'a' has type type"),
        (ArgDef(name="a", type_attr="x"), (), "No attr with name 'x' for {way} 'a'"),
        (ArgDef(name="a", type_list_attr="x"), (), "No attr with name 'x' for {way} 'a'"),
        (ArgDef(name="a", number_attr="n", type=d.int32), (), "No attr with name 'n'"),
        (ArgDef(name="a", number_attr="n", type=d.int32), (AttrDef(name="n", type="string"),), "Attr 'n' used as length for {way} 'a' has type string"),
        (ArgDef(name="a", number_attr="n", type=d.int32), (AttrDef(name="n", type="int"),), "Attr 'n' used as length for {way} 'a' must have minimum;"),
        (ArgDef(name="a", number_attr="n", type=d.int32), (AttrDef(name="n", type="int", has_minimum=True, minimum=-5),),
         "Attr 'n' used as length for {way} 'a' must have minimum >= 0;"),
        (ArgDef(name="a", number_attr="n", type_list_attr="x"), (N_INT, AttrDef(name="x", type="list(type)")),
         "Can't have both number_attr and type_list_attr for {way} 'a'"),
    ],
    ids=lambda value: f"O6-{value[:60]}" if isinstance(value, str) else "",
)  # fmt: skip
@pytest.mark.parametrize("way", ["input", "output"])
def test_a_bad_arg_is_refused(way: str, arg: ArgDef, attrs: tuple[AttrDef, ...], text: str) -> None:
    args: dict[str, Any] = {f"{way}_arg": (arg,)}
    with pytest.raises(InvalidArgumentError) as caught:
        validate_op_def(OpDef(name="BadArg", attr=attrs, **args))
    assert text.format(way=way) in caught.value.message


def test_o6_an_op_with_every_kind_of_arg_is_accepted() -> None:
    validate_op_def(
        OpDefBuilder("All").input("a: N*T").input("b: L").input("c: Ref(float)").output("d: T").attr("N: int").attr("T: type")
        .attr("L: list(type)").finalize()
    )  # fmt: skip


def test_a_removed_op_is_refused_from_its_version_on() -> None:
    op_def = OpDef(name="X", deprecation=OpDeprecation(5, "Use Y"))
    check_op_deprecation(op_def, 4)
    with pytest.raises(UnimplementedError) as caught:
        check_op_deprecation(op_def, 5)
    assert caught.value.message == "Op X is not available in GraphDef version 5. It has been removed in version 5. Use Y."
    assert isinstance(caught.value, GraphError)
