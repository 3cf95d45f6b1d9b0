"""OpDefBuilder: attr specs, arg specs, docs."""

from __future__ import annotations

import pytest

from graphcore import dtypes as d
from graphcore.attrs import TensorValue
from graphcore.definitions import ArgDef, AttrDef, OpDef, OpDefBuilder, parse_attr_spec
from graphcore.errors import InvalidArgumentError
from graphcore.shapes import Shape

NUMBER = {
    d.half, d.float32, d.float64, d.int64, d.int32, d.uint8, d.int16, d.uint16, d.int8, d.complex64, d.complex128,
    d.qint8, d.quint8, d.qint32, d.uint32, d.uint64, d.bfloat16, d.qint16, d.quint16,
}  # fmt: skip
QUANTIZED = {d.qint8, d.quint8, d.qint32, d.qint16, d.quint16}
REAL = NUMBER - QUANTIZED - {d.complex64, d.complex128}


def build(*parts: str) -> OpDef:
    """An op Test from specs such as `A a: int` (attr), `I x: T` (input), `O y: T` (output)."""
    builder = OpDefBuilder("Test")
    add = {"A": builder.attr, "I": builder.input, "O": builder.output, "D": builder.doc}
    for part in parts:
        add[part[0]](part[2:])
    return builder.finalize()


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("a:string", AttrDef(name="a", type="string")),
        ("aB_3\t: shape", AttrDef(name="aB_3", type="shape")),
        ("t: bool", AttrDef(name="t", type="bool")),
        ("Tensor: tensor", AttrDef(name="Tensor", type="tensor")),
        ("XYZ\t:\tlist(type)", AttrDef(name="XYZ", type="list(type)")),
        ("f: func", AttrDef(name="f", type="func")),
        ("a : int", AttrDef(name="a", type="int")),
        ("i: int >= -5", AttrDef(name="i", type="int", has_minimum=True, minimum=-5)),
        ("i: int >= 9223372036854775807", AttrDef(name="i", type="int", has_minimum=True, minimum=2**63 - 1)),
        ("i: int >= -9223372036854775808", AttrDef(name="i", type="int", has_minimum=True, minimum=-(2**63))),
        ("a: list(string) >= 2", AttrDef(name="a", type="list(string)", has_minimum=True, minimum=2)),
        ("i: int >= -5 = 3", AttrDef(name="i", type="int", has_minimum=True, minimum=-5, default_value=3)),
        ("a: { float , complex64 } ", AttrDef(name="a", type="type", allowed_values=(d.float32, d.complex64))),
        ("a: {float, complex64,} ", AttrDef(name="a", type="type", allowed_values=(d.float32, d.complex64))),
        ("a: list({float, string, bool})", AttrDef(name="a", type="list(type)", allowed_values=(d.float32, d.string, d.bool_))),
        ("a: { \"X\", 'yz' }", AttrDef(name="a", type="string", allowed_values=(b"X", b"yz"))),
        ("a: {'a\\n\\x41\\101'}", AttrDef(name="a", type="string", allowed_values=(b"a\nAA",))),
        ("a:string='foo'", AttrDef(name="a", type="string", default_value=b"foo")),
        ('a:string="foo\'s \\"x\\""', AttrDef(name="a", type="string", default_value=b'foo\'s "x"')),
        ("a:float=1.25", AttrDef(name="a", type="float", default_value=1.25)),
        ("a:bool=false", AttrDef(name="a", type="bool", default_value=False)),
        ("a:type=DT_INT32", AttrDef(name="a", type="type", default_value=d.int32)),
        ("a:shape={ dim { size: 3 } dim { size: -1 } }", AttrDef(name="a", type="shape", default_value=Shape([3, None]))),
        ("a:tensor={ dtype: DT_INT32 int_val: 5 }", AttrDef(name="a", type="tensor", default_value=TensorValue(5, d.int32))),
        ("a:list(int)=[0, -1, 2, -4, 8]", AttrDef(name="a", type="list(int)", default_value=(0, -1, 2, -4, 8))),
        ("a:list(string)=[]", AttrDef(name="a", type="list(string)", default_value=())),
    ],
    ids=lambda value: f"O1-{value}" if isinstance(value, str) else "",
)
def test_an_attr_spec_gives_its_attr_def(spec: str, expected: AttrDef) -> None:
    assert parse_attr_spec(spec) == expected


@pytest.mark.parametrize(
    ("spec", "allowed"),
    [
        ("a:numbertype", NUMBER),
        ("a:realnumbertype", REAL),
        ("a:quantizedtype", QUANTIZED),
        ("a:{numbertype, variant}", NUMBER | {d.variant}),
        ("a:{quantizedtype,string}", QUANTIZED | {d.string}),
    ],
    ids=lambda value: f"O1-{value}" if isinstance(value, str) else "",
)
def test_a_type_group_stands_for_its_types(spec: str, allowed: set[d.DType]) -> None:
    assert set(parse_attr_spec(spec).allowed_values or ()) == allowed


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ("9:string", "Trouble parsing '<name>:'"),
        ("string", "Trouble parsing '<name>:'"),
        ("a:invalid", "Trouble parsing type string at 'invalid'"),
        ("b:", "Trouble parsing type string at ''"),
        ("a:{,}", "Trouble parsing type string at ',}'"),
        ("a:{float,,string}", "Trouble parsing type string at ',string}'"),
        ('a:{ float, "str" }', "Trouble parsing type string at '\"str\" }'"),
        ("a:{invalid}", "Unrecognized type string 'invalid'"),
        ('a:{"str", float}', "Trouble parsing allowed string at 'float}'"),
        ("i: int >= a", "Could not parse integer lower limit after '>=', found ' a' instead"),
        ("i: int >= -a", "Could not parse integer lower limit after '>=', found ' -a' instead"),
        ("i: int >= 9223372036854775808", "Could not parse integer lower limit after '>=', found ' 9223372036854775808' instead"),
        ('a:int="foo"', "Could not parse default value '\"foo\"'"),
        ("a:list(float) = 1.25", "Could not parse default value '1.25'"),
        ("a:list(string)='foo'", "Could not parse default value ''foo''"),
        ("a:string >= 3", "Extra '>= 3' unparsed at the end"),
    ],
    ids=lambda value: f"O2-{value}",
)
def test_a_bad_attr_spec_is_refused_with_its_place(spec: str, text: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        build(f"A {spec}")
    assert caught.value.message == f'{text} from Attr("{spec}") for Op Test'


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        (["I a: int32"], ArgDef(name="a", type=d.int32)),
        (["I a : float"], ArgDef(name="a", type=d.float32)),
        (["I b: Ref(bool)"], ArgDef(name="b", type=d.bool_, is_ref=True)),
        (["I d: Ref  (  bool ) "], ArgDef(name="d", type=d.bool_, is_ref=True)),
        (["I a: foo", "A foo: type"], ArgDef(name="a", type_attr="foo")),
        (["I a: foo", "A foo: list(type)"], ArgDef(name="a", type_list_attr="foo")),
        (["I a: n * int32", "A n: int"], ArgDef(name="a", type=d.int32, number_attr="n")),
        (["I a: n*T", "A n: int", "A T: type"], ArgDef(name="a", type_attr="T", number_attr="n")),
    ],
    ids=lambda value: f"O3-{value[0][2:]}" if isinstance(value, list) else "",
)
def test_an_input_spec_gives_its_arg_def(parts: list[str], expected: ArgDef) -> None:
    assert build(*parts).input_arg == (expected,)
    assert build(*[part.replace("I ", "O ") for part in parts]).output_arg == (expected,)


@pytest.mark.parametrize(
    ("parts", "minimum"),
    [
        (["A n: int", "I a: n * int32"], 1),
        (["I a: n * int32", "A n: int"], 1),
        (["I a: n * int32", "A n: int >= 0"], 0),
        (["I a: n * int32", "A n: int >= 3"], 3),
        (["I a: T", "A T: list(type)"], 1),
        (["O a: T", "A T: list(type) >= 0"], 0),
    ],
    ids=lambda value: f"O3-{value[0]}-{value[1]}" if isinstance(value, list) else "",
)
def test_an_attr_that_is_a_length_gets_minimum_1_unless_it_states_one(parts: list[str], minimum: int) -> None:
    attr = build(*parts).attr[0]
    assert (attr.has_minimum, attr.minimum) == (True, minimum)


def test_o3_of_two_attrs_of_one_name_the_first_is_the_length() -> None:
    """The op is refused by validation; before it, both are read as in TensorFlow."""
    op = build("A a: list(type) >= 0", "A a: string", "O y: a")
    assert [(attr.has_minimum, attr.minimum) for attr in op.attr] == [(True, 0), (False, 0)]


def test_o3_args_keep_their_order() -> None:
    op = build("O z: bool", "I b: int32", "I a: float", "O y: int32", "A q: int", "A p: int")
    assert [arg.name for arg in op.input_arg] == ["b", "a"]
    assert [arg.name for arg in op.output_arg] == ["z", "y"]
    assert [attr.name for attr in op.attr] == ["q", "p"]


@pytest.mark.parametrize("way", ["Input", "Output"])
@pytest.mark.parametrize(
    ("parts", "text"),
    [
        (["I CAPS:"], "Trouble parsing 'name:'"),
        (["I a: 9 * int32"], "Trouble parsing either a type or an attr name at '9 * int32'"),
        (["I a: x * _", "A x: type"], "Extra '* _' unparsed at the end"),
        (["I a: Ref(int32"], "Did not find closing ')' for 'Ref(', instead found: ''"),
        (["I a: Ref"], "Reference to unknown attr 'Ref'"),
        (["I a: x"], "Reference to unknown attr 'x'"),
        (["I a: x", "A x: int"], "Reference to attr 'x' with type int that isn't type or list(type)"),
    ],
    ids=lambda value: f"O4-{value[0][2:]}" if isinstance(value, list) else "",
)
def test_a_bad_arg_spec_is_refused_with_its_place(way: str, parts: list[str], text: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        build(*[part.replace("I ", f"{way[0]} ") for part in parts])
    assert caught.value.message == f'{text} from {way}("{parts[0][2:]}") for Op Test'


def test_o5_flags_are_set() -> None:
    op = OpDefBuilder("Test").set_is_stateful().set_is_commutative().set_is_aggregate().set_allows_uninitialized_input().finalize()
    assert (op.is_stateful, op.is_commutative, op.is_aggregate, op.allows_uninitialized_input) == (True, True, True, True)


@pytest.mark.parametrize(("spec", "stateful"), [("x: resource", True), ("x: variant", False), ("x: float", False)], ids="O5-{}".format)
def test_an_op_with_a_resource_input_is_stateful(spec: str, stateful: bool) -> None:
    assert build(f"I {spec}").is_stateful is stateful


DOC = """
Summary of the op.

Description,
  with its own indentation.

More of it.
x: First input
   goes on here.

     Indented.
y : Output.
T: Type.
"""


def test_o5_a_doc_is_split_into_summary_description_and_items() -> None:
    op = build("I x: T", "O y: T", "A T: type", f"D {DOC}")
    assert op.summary == "Summary of the op."
    assert op.description == "Description,\n  with its own indentation.\n\nMore of it."
    assert op.input_arg[0].description == "First input\ngoes on here.\n\n  Indented."
    assert op.output_arg[0].description == "Output."
    assert op.attr[0].description == "Type."


@pytest.mark.parametrize(
    ("builder", "text"),
    [
        (OpDefBuilder("Test").doc("a").doc("b"), "Extra call to Doc() for Op Test"),
        (OpDefBuilder("Test").input("a: int32").doc("s\n\nb: x"), "No matching input/output/attr for name 'b' from Doc() for Op Test"),
        (OpDefBuilder("Test").set_shape_fn(print).set_shape_fn(print), "SetShapeFn called twice for Op Test"),
        (
            OpDefBuilder("Test").attr("a:nix").input("b: nix"),
            (
                "Trouble parsing type string at 'nix' from Attr(\"a:nix\") for Op Test\n"
                "Reference to unknown attr 'nix' from Input(\"b: nix\") for Op Test"
            ),
        ),
    ],
    ids=["O5-two docs", "O5-doc of unknown arg", "O5-two shape functions", "O5-all errors joined"],
)
def test_finalize_reports_every_error(builder: OpDefBuilder, text: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        builder.finalize()
    assert caught.value.message == text
