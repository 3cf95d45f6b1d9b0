"""Summaries, validation, types, ranges and error texts of NodeDefs."""

from __future__ import annotations

from typing import Any

import pytest

from graphcore import dtypes as d
from graphcore.attrs import NO_VALUE, Placeholder
from graphcore.definitions import (
    ArgDef,
    AttrSlice,
    NodeDef,
    OpDef,
    OpDefBuilder,
    add_default_attrs,
    attach_def,
    format_node_for_error,
    get_node_attr,
    in_out_types_for_node,
    input_type_for_node,
    name_ranges_for_node,
    output_type_for_node,
    strip_default_attrs,
    summarize_attrs,
    summarize_node_def,
    validate_node_def,
)
from graphcore.errors import CancelledError, GraphError, InvalidArgumentError, NotFoundError


def op(name: str, *parts: str) -> OpDef:
    builder = OpDefBuilder(name)
    add = {"A": builder.attr, "I": builder.input, "O": builder.output}
    for part in parts:
        add[part[0]](part[2:])
    return builder.finalize()


def node(op_name: str, *inputs: str, name: str = "n", device: str = "", **attrs: Any) -> NodeDef:
    return NodeDef(name, op_name, inputs, device, attrs)


IN = op("In", "I i: T", "A T: type")
AFTER_N1: list[tuple[NodeDef, str]] = [
    (node("In", "a", T=d.float32), "{{node n}} = In[T=DT_FLOAT](a)"),
    (node("Enum", e=b"apple"), '{{node n}} = Enum[e="apple"]()'),
    (node("AnyIn", "a:0", "b:123", T=(d.int32, d.string)), "{{node n}} = AnyIn[T=[DT_INT32, DT_STRING]](a:0, b:123)"),
    (node("WithAttr", name="d", device="/cpu:5", v=7), '{{node d}} = WithAttr[v=7, _device="/cpu:5"]()'),
    (node("WithAttr", name="d", device="/cpu:5"), '{{node d}} = WithAttr[_device="/cpu:5"]()'),
    (node("Project>AnyIn", "Project>a:0", "Project>b:123", "^Project>c", name="Project>n", T=(d.int32, d.string)),
     "{{node Project>n}} = Project>AnyIn[T=[DT_INT32, DT_STRING]](Project>a:0, Project>b:123, ^Project>c)"),
    (node("NRepeats", "a", "a:1", "b", "b:1", name="nr", N=2, M=7, T=d.float64),
     "{{node nr}} = NRepeats[M=7, N=2, T=DT_DOUBLE](a, a:1, b, b:1)"),
]  # fmt: skip


@pytest.mark.parametrize(("node_def", "summary"), AFTER_N1, ids=lambda value: f"N1-{value}" if isinstance(value, str) else "")
def test_a_node_is_summarised_in_one_line(node_def: NodeDef, summary: str) -> None:
    assert summarize_node_def(node_def) == summary


def test_n1_attrs_are_summarised_without_their_node() -> None:
    assert summarize_attrs({"b": 1, "a": True}, "/gpu:0") == 'a=true, b=1, _device="/gpu:0"'
    assert AttrSlice({"b": 1, "a": True}).debug_string() == "a=true, b=1"
    assert AttrSlice({"b": 1, "a": True}).summarize_node() == "[a=true, b=1]"
    assert AttrSlice(node("X", b=1)).summarize_node() == "{{node n}} = X[b=1]()"


OPS = {
    made.name: made
    for made in [
        IN,
        op("AnyIn", "I i: T", "A T: list(type) >= 1"),
        op("Device"),
        op("WithAttr", "A v: int"),
        op("Restricted", "I i: T", "A T: {float, double}"),
        op("Number", "I i: T", "A T: numbertype"),
        op("Enum", "A e: {'apple', 'orange'}"),
        op("NList", "I i: N * int32", "A N: int >= 2"),
        op("Bools", "A b: list(bool)"),
    ]
}


@pytest.mark.parametrize(
    "node_def",
    [
        node("In", "a", "^b", T=d.float32),
        node("In", "a", "^b", T=d.float32, _x=5, _y=b"anything"),
        node("In", "a", T=d.float32, device="/job:worker"),
        node("AnyIn", "a:0", "b:123", T=(d.int32, d.string)),
        node("Restricted", "a", T=d.float64),
        node("Enum", e=b"orange"),
        node("NList", "a", "b", N=2),
        node("Bools", b=()),
        node("Bools", b=NO_VALUE),
        node("Enum", e=Placeholder("e")),
    ],
    ids=lambda value: f"N2-{summarize_node_def(value)}",
)
def test_a_node_that_fits_its_op_is_accepted(node_def: NodeDef) -> None:
    validate_node_def(node_def, OPS[node_def.op])


NUMBERS = (
    "float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, uint16, complex128, half, uint32, uint64"
)


@pytest.mark.parametrize(
    ("node_def", "op_name", "text"),
    [
        (node("Wrong", "a", T=d.float32), "In", "NodeDef op 'Wrong' does not match Op<name=In;"),
        (node("In", "a"), "In", "NodeDef missing attr 'T' from Op<name=In;"),
        (node("In", "a", T=0), "In", "AttrValue had value with type 'int' when 'type' expected\n\t for attr 'T'\n\t; NodeDef: {{node n}}; Op<name=In;"),
        (node("In", "a", T=NO_VALUE), "In", "AttrValue missing value with expected type 'type'\n\t for attr 'T'"),
        (node("In", "a", T=d.float32.ref), "In", "AttrValue must not have reference type value of float_ref"),
        (node("In", "a", T=d.dtype_from_wire(1000)), "In", "AttrValue has invalid DataType enum: 1000"),
        (node("In", "a", "b", T=d.float32), "In", "NodeDef expected inputs 'float' do not match 2 inputs specified;"),
        (node("In", T=d.float32), "In", "NodeDef expected inputs 'float' do not match 0 inputs specified;"),
        (node("In", "^b", "a", T=d.float32), "In", "Non-control input 'a' after control input in NodeDef:"),
        (node("In", "a", "^b:0", T=d.float32), "In", "Control input '^b:0' must not have ':' in NodeDef:"),
        (node("Restricted", "a", T=d.string), "Restricted", "Value for attr 'T' of string is not in the list of allowed values: float, double"),
        (node("Number", "a", T=d.string), "Number", f"Value for attr 'T' of string is not in the list of allowed values: {NUMBERS}"),
        (node("Enum", e=b"foo"), "Enum", "Value for attr 'e' of \"foo\" is not in the list of allowed values: \"apple\", \"orange\""),
        (node("NList", "a", N=1), "NList", "Value for attr 'N' of 1 must be at least minimum 2"),
        (node("NList", "a", N=True), "NList", "AttrValue had value with type 'bool' when 'int' expected"),
        (node("AnyIn", T=()), "AnyIn", "Length for attr 'T' of 0 must be at least minimum 1"),
        (node("AnyIn", T=NO_VALUE), "AnyIn", "Length for attr 'T' of 0 must be at least minimum 1"),
        (node("AnyIn", "a", T=d.int32), "AnyIn", "AttrValue had value with type 'type' when 'list(type)' expected"),
        (node("AnyIn", "a", T=(7,)), "AnyIn", "AttrValue had value with type 'list(int)' when 'list(type)' expected"),
        (node("In", "a", T=d.float32, b=1), "In", "NodeDef mentions attr 'b' not in Op<name=In;"),
        (NodeDef("n", "Enum", (), "", {}, ("o", "p"), ("f",)), "Enum", "; NodeDef: {{function_node f}}{{node o}}, {{node p}}"),
    ],
    ids=lambda value: f"N2-{value[:60]}" if isinstance(value, str) and len(value) > 12 else "",
)  # fmt: skip
def test_a_node_that_does_not_fit_its_op_is_refused(node_def: NodeDef, op_name: str, text: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        validate_node_def(node_def, OPS[op_name])
    assert text in caught.value.message
    assert caught.value.node == "n"


def test_n2_several_missing_attrs_are_listed() -> None:
    with pytest.raises(InvalidArgumentError, match="NodeDef missing attrs 'a', 'b' from Op<name=X;"):
        validate_node_def(node("X"), op("X", "A a: int", "A b: int"))


def test_n2_missing_attrs_get_their_defaults() -> None:
    op_def = op("X", "A a: int = 3", "A b: int", "A c: list(int) = []")
    before = node("X", a=1)
    after = add_default_attrs(before, op_def)
    assert after.attr == {"a": 1, "c": ()}
    assert dict(before.attr) == {"a": 1}
    assert add_default_attrs(after, op_def) is after
    assert strip_default_attrs(after, op_def).attr == {"a": 1}
    assert strip_default_attrs(node("X", a=3), op_def).attr == {}


SIMPLE = op("Simple", "I a: float", "I b: int32", "O c: string", "O d: bool")
POLYMORPHIC = op("Polymorphic", "I a: T", "I b: U", "O c: T", "A T: type", "A U: type")
REPEATS = op("NRepeats", "I a: N * int32", "I b: N * T", "O c: T", "O d: N * string", "O e: M * bool", "A N: int", "A M: int", "A T: type")
LISTS = op("TypeList", "I a: T1", "I b: T2", "O c: T2", "O d: T3", "O e: T1", "A T1: list(type)", "A T2: list(type)", "A T3: list(type)")
REF = op("Refs", "I a: Ref(T)", "I b: Ref(N * int32)", "O c: Ref(L)", "A T: type", "A N: int", "A L: list(type)")


@pytest.mark.parametrize(
    ("op_def", "attrs", "inputs", "outputs", "in_ranges", "out_ranges"),
    [
        (SIMPLE, {}, (d.float32, d.int32), (d.string, d.bool_), {"a": (0, 1), "b": (1, 2)}, {"c": (0, 1), "d": (1, 2)}),
        (POLYMORPHIC, {"T": d.int32, "U": d.float32}, (d.int32, d.float32), (d.int32,), {"a": (0, 1), "b": (1, 2)}, {"c": (0, 1)}),
        (POLYMORPHIC, {"T": d.bool_, "U": d.half}, (d.bool_, d.half), (d.bool_,), {"a": (0, 1), "b": (1, 2)}, {"c": (0, 1)}),
        (
            REPEATS, {"N": 4, "M": 3, "T": d.float32}, (d.int32,) * 4 + (d.float32,) * 4, (d.float32,) + (d.string,) * 4 + (d.bool_,) * 3,
            {"a": (0, 4), "b": (4, 8)}, {"c": (0, 1), "d": (1, 5), "e": (5, 8)},
        ),
        (
            REPEATS, {"N": 2, "M": 0, "T": d.double}, (d.int32,) * 2 + (d.double,) * 2, (d.double, d.string, d.string),
            {"a": (0, 2), "b": (2, 4)}, {"c": (0, 1), "d": (1, 3), "e": (3, 3)},
        ),
        (
            LISTS, {"T1": (d.bool_, d.float32), "T2": (d.float32,) * 4, "T3": (d.int32, d.double, d.string)},
            (d.bool_,) + (d.float32,) * 5, (d.float32,) * 4 + (d.int32, d.double, d.string, d.bool_, d.float32),
            {"a": (0, 2), "b": (2, 6)}, {"c": (0, 4), "d": (4, 7), "e": (7, 9)},
        ),
        (
            REF, {"T": d.bool_, "N": 2, "L": (d.float32, d.string)}, (d.bool_.ref, d.int32.ref, d.int32.ref), (d.float32.ref, d.string.ref),
            {"a": (0, 1), "b": (1, 3)}, {"c": (0, 2)},
        ),
        (
            REF, {"T": Placeholder("T"), "N": 1, "L": (d.int64,)}, (d.dtype_from_wire(100), d.int32.ref), (d.int64.ref,),
            {"a": (0, 1), "b": (1, 2)}, {"c": (0, 1)},
        ),
    ],
    ids=["N4-simple", "N4-polymorphic", "N4-polymorphic again", "N4-repeats", "N4-repeats none", "N4-type lists", "N4-refs", "N4-refs to what is not known"],
)  # fmt: skip
def test_types_and_ranges_follow_from_the_attrs(
    op_def: OpDef,
    attrs: dict[str, Any],
    inputs: tuple[d.DType, ...],
    outputs: tuple[d.DType, ...],
    in_ranges: dict[str, tuple[int, int]],
    out_ranges: dict[str, tuple[int, int]],
) -> None:
    node_def = node(op_def.name, **attrs)
    for _ in range(2):  # the second result comes from the cache
        assert in_out_types_for_node(node_def, op_def) == (inputs, outputs)
    assert name_ranges_for_node(node_def, op_def) == (in_ranges, out_ranges)
    assert [input_type_for_node(node_def, op_def, i) for i in range(len(inputs))] == list(inputs)
    assert [output_type_for_node(node_def, op_def, i) for i in range(len(outputs))] == list(outputs)


@pytest.mark.parametrize("index", [-1, 2, 10**12], ids="N4-{}".format)
def test_an_index_out_of_range_is_refused(index: int) -> None:
    with pytest.raises(InvalidArgumentError, match=f"Input {index} not found for node n"):
        input_type_for_node(node("Simple"), SIMPLE, index)
    with pytest.raises(InvalidArgumentError, match=f"Output {index} not found for node n"):
        output_type_for_node(node("Simple"), SIMPLE, index)


BAD_TYPES: list[tuple[OpDef, dict[str, Any], type[GraphError], str]] = [
    (REPEATS, {"M": 1, "T": d.int32}, NotFoundError, "No attr named 'N' in NodeDef:\n\t [[{{node n}}]]"),
    (POLYMORPHIC, {"T": d.int32}, NotFoundError, "No attr named 'U' in NodeDef:\n\t [[{{node n}}]]"),
    (LISTS, {"T1": (), "T2": ()}, NotFoundError, "No attr named 'T3' in NodeDef:"),
    (REPEATS, {"N": 10**12, "M": 1, "T": d.int32}, InvalidArgumentError, "Number of outputs is too big: 1000000000000"),
    (REPEATS, {"N": -2, "M": 1, "T": d.int32}, InvalidArgumentError, "Value for number_attr() -2 < 0"),
    (REPEATS, {"N": True, "M": 1, "T": d.int32}, InvalidArgumentError, "AttrValue had value with type 'bool' when 'int' expected"),
    (POLYMORPHIC, {"T": d.int32, "U": 3}, InvalidArgumentError, "AttrValue had value with type 'int' when 'type' expected"),
    (OpDef(name="X", output_arg=(ArgDef(name="a"),)), {}, InvalidArgumentError, 'No type fields in name: "a"'),
    (
        OpDef(name="X", output_arg=(ArgDef(name="a", number_attr="N"),)),
        {"N": 1},
        InvalidArgumentError,
        "Missing type or type_attr field in",
    ),
    (op("X", "O a: Ref(T)", "A T: type"), {"T": d.int32.ref}, InvalidArgumentError, "Requested reference to a reference type"),
]


@pytest.mark.parametrize(
    ("op_def", "attrs", "kind", "text"), BAD_TYPES, ids=lambda value: f"N4-{value[:40]}" if isinstance(value, str) else ""
)
def test_types_that_cannot_be_found_are_an_error(op_def: OpDef, attrs: dict[str, Any], kind: type[GraphError], text: str) -> None:
    for _ in range(2):
        with pytest.raises(kind) as caught:
            in_out_types_for_node(node(op_def.name, **attrs), op_def)
        assert text in caught.value.message


@pytest.mark.parametrize(
    ("attrs", "text"),
    [
        ({"N": True}, "AttrValue had value with type 'bool' when 'int' expected"),
        ({"N": Placeholder("x")}, "AttrValue had value with unexpected type 'placeholder'"),
        ({"N": NO_VALUE}, "AttrValue missing value with expected type 'int'"),
        ({"N": (1,)}, "AttrValue had value with type 'list(int)' when 'int' expected"),
        ({"N": ()}, "AttrValue missing value with expected type 'int'"),
        ({"T": 5}, "AttrValue had value with type 'int' when 'type' expected"),
        ({"T": NO_VALUE}, "AttrValue missing value with expected type 'type'"),
        ({"T": (d.int32,)}, "AttrValue had value with type 'list(type)' when 'type' expected"),
        ({"T": Placeholder("x")}, "AttrValue had value with unexpected type 'placeholder'"),
    ],
    ids=lambda value: f"N4-{value}",
)
def test_an_attr_of_another_kind_is_named_as_everywhere(attrs: dict[str, Any], text: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        in_out_types_for_node(node("NRepeats", **{"N": 1, "M": 1, "T": d.int32, **attrs}), REPEATS)
    assert (caught.value.message, caught.value.attr) == (text, next(iter(attrs)))


def test_n4_ranges_of_an_arg_without_a_type_are_an_error() -> None:
    with pytest.raises(InvalidArgumentError, match="Argument 'a' incorrectly specified in op definition: Op<name=X;"):
        name_ranges_for_node(node("X"), OpDef(name="X", output_arg=(ArgDef(name="a"),)))
    with pytest.raises(NotFoundError, match="No attr named 'N'"):
        name_ranges_for_node(node("NRepeats"), REPEATS)


def test_n4_a_count_that_is_a_bool_does_not_find_the_types_of_the_int_it_equals() -> None:
    assert in_out_types_for_node(node("NRepeats", N=1, M=1, T=d.int32), REPEATS)[0] == (d.int32, d.int32)
    with pytest.raises(InvalidArgumentError, match="when 'int' expected"):
        in_out_types_for_node(node("NRepeats", N=True, M=1, T=d.int32), REPEATS)


@pytest.mark.parametrize(
    ("names", "functions", "text"),
    [
        ((), (), "{{node enter}}"),
        (("node_name",), ("func_name",), "{{function_node func_name}}{{node node_name}}"),
        (("a", "b"), ("f", "g"), "{{function_node f}}{{node a}}, {{function_node g}}{{node b}}"),
        (("a",), (), "{{node a}}"),
    ],
    ids=["N6-plain", "N6-original", "N6-several", "N6-without function"],
)
def test_a_node_is_marked_up_in_errors(names: tuple[str, ...], functions: tuple[str, ...], text: str) -> None:
    assert format_node_for_error(NodeDef("enter", "Enter", (), "", {}, names, functions)) == text


def test_n6_a_node_is_attached_to_an_error() -> None:
    error = CancelledError("Error")
    attached = attach_def(error, node("X", name="a"))
    assert type(attached) is CancelledError
    assert (attached.message, attached.node, attached.op) == ("Error\n\t [[{{node a}}]]", "a", "X")
    assert attach_def(attached, node("X", name="b"), allow_multiple=True).message == "Error\n\t [[{{node a}}]]\n\t [[{{node b}}]]"
    assert attach_def(attached, node("X", name="b")).message == "Error\n\t [[{{node a}}]]\n\t [[b]]"


def test_an_attr_is_read_with_its_kind() -> None:
    node_def = node("X", a=1, T=d.int32)
    attrs = AttrSlice(node_def)
    assert (len(attrs), "a" in attrs, "b" in attrs, attrs.get("b"), sorted(name for name, _ in attrs)) == (2, True, False, None, ["T", "a"])
    assert get_node_attr(node_def, "a", "int") == 1
    with pytest.raises(NotFoundError, match=r"No attr named 'b' in NodeDef:\n\t \[\[{{node n}}\]\]"):
        attrs.find("b")
    with pytest.raises(NotFoundError) as internal:
        attrs.find("_b")
    assert internal.value.message == "No attr named '_b' in NodeDef:"
    with pytest.raises(InvalidArgumentError, match="AttrValue had value with type 'int' when 'type' expected"):
        attrs.find("a", "type")
    assert attrs.equal_attrs(AttrSlice({"T": d.int32, "a": 1}))
    assert not attrs.equal_attrs(AttrSlice({"T": d.int32, "a": True}))
