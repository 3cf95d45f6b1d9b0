"""Random definitions, valid and invalid: op specs, nodes of TensorFlow's ops, attr values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from hypothesis import strategies as st

from graphcore import dtypes as d
from graphcore.attrs import NO_VALUE, AttrValue, Func, Placeholder, TensorValue
from graphcore.definitions import AttrDef, NodeDef, OpDef, in_out_types_for_node
from graphcore.errors import GraphError
from graphcore.shapes import Shape

_KINDS: Final = [
    "string",
    "int",
    "float",
    "bool",
    "type",
    "shape",
    "tensor",
    "func",
    "numbertype",
    "realnumbertype",
    "quantizedtype",
    "numerictype",
    "any",
    "list(int)",
    "list( type )",
    "list(string)",
    "list(float)",
    "list(bool)",
    "list(shape)",
    "list(tensor)",
    "list(func)",
    "list(numbertype)",
    "{float,int32}",
    "{ 'a', \"b\" }",
    "{int32,}",
    "list({bool, string})",
    "{numbertype, variant}",
    "{}",
    "{float",
    "int32",
    "list(",
    "{'a\\n'}",
    "{'\\x41',}",
    "{'a' 'b'}",
    "{float32, half}",
    "{float_ref}",
    "list(list(int))",
    "list(int",
]
_DEFAULTS: Final = [
    "3",
    "-5",
    "1.5",
    "1e5",
    "true",
    "false",
    "'x'",
    '"y\\n"',
    "DT_FLOAT",
    "DT_INT32_REF",
    "[1, 2]",
    "[]",
    "[ ]",
    "['a','b']",
    "[true]",
    "[DT_INT32]",
    "{ dim { size: 3 } }",
    "{dim{size:-1} unknown_rank:false}",
    "{ dtype: DT_INT32 int_val: 5 }",
    "{dtype:DT_STRING string_val:'a'}",
    "{name:'f'}",
    "[{name:'f'},{name:'g' attr{key:'a' value{i:3}}}]",
    "[{dim{size:1}}]",
    "inf",
    "-0",
    "+7",
    "0x1F",
    "1,",
    "{",
    "nan",
    "[1.5,2]",
    "# c",
    "3 # c",
    "01",
    "00",
    "1.",
    "1e",
    "abc",
    "'a' 'b'",
    "''",
    "[,]",
    "<dim<size:3>>",
    "{dtype: DT_FLOAT float_val: [1,2] tensor_shape{dim{size:2}}}",
    "1000",
    "0",
    "DT_INVALID",
    "'\\q'",
    "'\\u00e9'",
    "9223372036854775808",
]
_RIGHT: Final = [
    "T: type",
    "T: numbertype = DT_FLOAT",
    "N: int",
    "N: int >= 2 = 3",
    "a: list(type)",
    "a: list(type) >= 0 = []",
    "aB_3: type = DT_INT32",
    "a: {'x', 'y'} = 'x'",
    "a_b: shape = {dim{size:3}}",
    "A1: tensor = { dtype: DT_FLOAT float_val: 2.5 }",
    "a_b: func = {name:'f'}",
    "A1: list(float) = [0.1, 2, 1e10]",
    "T:{float,half}",
    "a_b: list(func) = []",
    "A1: string = 'text'",
    "a_b: bool = true",
]
_NAMES: Final = ("a", "T", "N", "_x", "a_b", "9a", "A1", "float", "aB_3")
_ARGS: Final = (
    "float",
    "T",
    "N * T",
    "N*int32",
    "a",
    "Ref(T)",
    "Ref( N * float )",
    "float_ref",
    "resource",
    "aB_3",
    "float32",
    "9",
    "T*float",
)
_DOCS: Final = ("s\n\nd\nx: foo\n   bar\nT: t", "\nsum\nx: a", "s", "\n\n s \n\n\n  d\n\n e\n\nN : n\n\n", "x: y", "")
_BREAKS: Final = " \t,:=>{}[]()'\"\\x0a9-_*"


def _options(values: Sequence[str]) -> st.SearchStrategy[str]:
    return st.sampled_from(values)


@st.composite
def _spec(draw: st.DrawFn, right: Sequence[str], body: st.SearchStrategy[str]) -> str:
    text = draw(st.sampled_from(right) if draw(st.booleans()) else body)
    if draw(st.integers(0, 5)) or not text:
        return text
    at, char = draw(st.integers(0, len(text) - 1)), draw(_options(list(_BREAKS)))
    return draw(_options([text[:at] + char + text[at:], text[:at] + text[at + 1 :], text[:at] + char + text[at + 1 :]]))


ATTR_SPECS = _spec(
    _RIGHT,
    st.builds(
        "".join,
        st.tuples(
            _options(_NAMES), _options([":", ": ", " : "]), _options(_KINDS), _options(["", "", "", " >= 2", ">= -5", ">=0", " >= a"]),
            st.just("") | st.builds("".join, st.tuples(_options([" = ", "=", "= "]), _options(_DEFAULTS))),
        ),
    ),
)  # fmt: skip
ARG_SPECS = _spec(
    ("x: float", "y: resource", "xs: Ref(int32)", "x1: string", "x2: T"),
    st.builds("".join, st.tuples(_options(("x", "y", "xs_1", "X", "1x")), _options([":", ": "]), _options(_ARGS))),
)


@st.composite
def op_specs(draw: st.DrawFn) -> list[str]:
    """Specs with their kind as the first letter: attrs, inputs and outputs, sometimes a doc."""
    specs = ["A" + spec for spec in draw(st.lists(ATTR_SPECS, min_size=1, max_size=3))]
    specs += [draw(_options("IO")) + spec for spec in draw(st.lists(ARG_SPECS, max_size=3))]
    return specs + (["D" + draw(_options(_DOCS))] if draw(st.integers(0, 4)) == 0 else [])


_SCALARS: Final[dict[str, list[AttrValue]]] = {
    "int": [0, 1, 3, -2, 2**62],
    "float": [0.5, 1e10, 0.10000000149011612, float("inf")],
    "bool": [True, False],
    "string": [b"x", b"NHWC", b"", b"SAME", b"a\n\"'\xff", b"abcdefghij" * 9],
    "type": [d.float32, d.int32, d.string, d.int64, d.float32.ref, d.dtype_from_wire(1000), d.INVALID, d.resource],
    "shape": [Shape([]), Shape([None, 2]), Shape(None)],
    "tensor": [
        TensorValue(1.0, d.float32), TensorValue([7, 7, 7], d.int32), TensorValue([[1, 2], [3, 4]], d.int8), TensorValue(["a", "b\n"], d.string),
        TensorValue([0.1, 123456789.0, float("nan")], d.float64), TensorValue([], d.float32), TensorValue([True, False, True, True], d.bool_),
    ],
    "func": [Func("f"), Func("g", {"T": d.float32, "a": Func("h", {"x": Placeholder("T")})})],
}  # fmt: skip


def values(kind: str) -> st.SearchStrategy[AttrValue]:
    """Values of a kind; those of `type` are not all legal."""
    if kind.startswith("list("):
        return st.lists(st.sampled_from(_SCALARS[kind[5:-1]]), max_size=4).map(tuple)
    return st.sampled_from(_SCALARS[kind])


ANY_KIND = st.sampled_from([*_SCALARS, *(f"list({kind})" for kind in _SCALARS)])
ANY_VALUE: st.SearchStrategy[AttrValue] = ANY_KIND.flatmap(values) | st.sampled_from([NO_VALUE, Placeholder("T")])


@st.composite
def _attr(draw: st.DrawFn, attr: AttrDef) -> AttrValue | None:
    """A value for an attr, mostly a valid one; None omits it."""
    choice = draw(st.integers(0, 99))
    if choice < 4:
        return None
    if choice < 9:
        return draw(ANY_VALUE)
    if choice < 45 and attr.default_value is not None:
        return attr.default_value
    right: st.SearchStrategy[Any] = values(attr.type)
    if choice < 85 and attr.allowed_values and not attr.type.startswith("list("):
        right = st.sampled_from(attr.allowed_values)
    elif choice < 95 and attr.type == "type":
        right = st.sampled_from([d.float32, d.int32, d.string])
    value: AttrValue = draw(right)
    return value


@st.composite
def nodes(draw: st.DrawFn, ops: list[OpDef]) -> tuple[NodeDef, OpDef]:
    """A node of one of the ops, often with an error."""
    op_def = draw(st.sampled_from(ops))
    attrs: dict[str, Any] = {attr.name: draw(_attr(attr)) for attr in op_def.attr}
    attrs = {name: value for name, value in attrs.items() if value is not None}
    if draw(st.integers(0, 19)) == 0:
        attrs["_internal"] = draw(ANY_VALUE)
    name = draw(st.sampled_from(["n", "n", "n", "n", "_n", "n:0", "a/b", "A>b", "", "n-", "n\\"]))
    node = NodeDef(name, op_def.name if draw(st.integers(0, 29)) else "Wrong", (), draw(st.sampled_from(["", "", "/cpu:0"])), attrs)
    try:
        count = len(in_out_types_for_node(node, op_def)[0])
    except GraphError:
        count = 1
    count = max(0, min(count, 8) + draw(st.sampled_from([0] * 12 + [1, -1])))
    good = st.sampled_from(["a", "b:1", "x/y:12", "a:0", "A>b:3"])
    bad = st.sampled_from(["^c", "_x", "a:00", "^d:0", "", "a b", "^", "a:b", "^_y", "a:0:1", "a\\b", "^a\\b"])
    inputs = [draw(good if draw(st.integers(0, 29)) else bad) for _ in range(count)]
    inputs += draw(st.sampled_from([[], [], [], ["^c"], ["^c", "^d"], ["^c", "a"]]))
    return NodeDef(node.name, node.op, tuple(inputs), node.device, attrs), op_def
