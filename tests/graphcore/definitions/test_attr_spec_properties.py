"""Properties of the attr spec parser: round trips, and only GraphErrors for nonsense."""

from __future__ import annotations

import contextlib
import string
from ctypes import c_float

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphcore import dtypes as d
from graphcore.attrs import AttrValue, Func, TensorValue
from graphcore.definitions import AttrDef, OpDef, OpDefBuilder, attr_values_equal, parse_attr_spec, parse_attr_value, validate_op_def
from graphcore.definitions.value_text import escape_bytes, format_float
from graphcore.errors import GraphError, InvalidArgumentError, UnimplementedError
from graphcore.shapes import Shape

SPACE = st.sampled_from(["", " ", "\t", "\n ", "  "])
NAMES = st.text(string.ascii_letters + string.digits + "_", max_size=6).map(lambda rest: "a" + rest)
PLAIN_TYPES = [dtype for dtype in d.ALL_TYPES if "_" not in dtype.text]


def shape_text(shape: Shape) -> str:
    if shape.dims is None:
        return "{ unknown_rank: true }"
    return "{ " + " ".join(f"dim {{ size: {-1 if size is None else size} }}" for size in shape.dims) + " }"


def tensor_text(value: TensorValue) -> str:
    values = "".join(f" int_val: {item}" for item in value.array.reshape(-1).tolist())
    return f"{{ dtype: {value.dtype.enum_name} tensor_shape {shape_text(value.shape)}{values} }}"


def text_of(value: AttrValue) -> str:
    """The value in protobuf's text form, as in attr specs."""
    if isinstance(value, tuple):
        return "[" + ", ".join(map(text_of, value)) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return f'"{escape_bytes(value)}"'
    if isinstance(value, float):
        return format_float(value)
    if isinstance(value, d.DType):
        return value.enum_name
    if isinstance(value, Shape):
        return shape_text(value)
    if isinstance(value, TensorValue):
        return tensor_text(value)
    if isinstance(value, Func):
        attrs = "".join(f' attr {{ key: "{name}" value {{ i: {item!r} }} }}' for name, item in value.attr.items())
        return f'{{ name: "{value.name}"{attrs} }}'
    return str(value)


SCALARS: dict[str, st.SearchStrategy[AttrValue]] = {
    "int": st.integers(-(2**63), 2**63 - 1),
    "float": st.floats(allow_nan=False, width=32).map(lambda value: c_float(value).value),
    "bool": st.booleans(),
    "string": st.binary(max_size=8),
    "type": st.sampled_from(d.ALL_TYPES),
    "shape": st.none().map(Shape) | st.lists(st.none() | st.integers(0, 9), max_size=3).map(Shape),
    "tensor": st.lists(st.integers(-9, 9), min_size=1, max_size=3).map(lambda items: TensorValue(items, d.int32)),
    "func": st.builds(Func, NAMES, st.dictionaries(NAMES, st.integers(-9, 9), max_size=2)),
}


@st.composite
def specs(draw: st.DrawFn) -> tuple[str, AttrDef]:
    name, space = draw(NAMES), draw(SPACE)
    kind = draw(st.sampled_from(sorted(SCALARS)))
    is_list = draw(st.booleans())
    full_kind = f"list({kind})" if is_list else kind
    text = kind
    allowed: tuple[AttrValue, ...] | None = None
    if kind == "type" and draw(st.booleans()):
        types = draw(st.lists(st.sampled_from(PLAIN_TYPES), min_size=1, max_size=4))
        allowed = tuple(types)
        text = "{" + f"{space},{space}".join(dtype.text for dtype in types) + draw(st.sampled_from(["}", ",}", " }"]))
    elif kind == "string" and draw(st.booleans()):
        strings = draw(st.lists(st.binary(max_size=5), min_size=1, max_size=3))
        allowed = tuple(strings)
        text = "{" + space + f",{space}".join(f"'{escape_bytes(item)}'" for item in strings) + "}"
    text = f"list{space}({space}{text}{space})" if is_list else text
    fields: dict[str, object] = {}
    if (kind == "int" or is_list) and draw(st.booleans()):
        minimum = draw(st.integers(-(2**63), 2**63 - 1))
        text += f"{space}>={space}{minimum}"
        fields = {"has_minimum": True, "minimum": minimum}
    default = draw(st.none() | (st.lists(SCALARS[kind], max_size=4).map(tuple) if is_list else SCALARS[kind]))
    if default is not None:
        text += f"{space}={space}{text_of(default)}"
    attr = AttrDef(name=name, type=full_kind, default_value=default, allowed_values=allowed, **fields)  # type: ignore[arg-type]
    return f"{name}{space}:{space}{text}", attr


@given(specs())
def test_a_spec_in_the_grammar_gives_its_attr_def(pair: tuple[str, AttrDef]) -> None:
    spec, expected = pair
    assert parse_attr_spec(spec) == expected


@given(st.sampled_from(sorted(SCALARS)).flatmap(lambda kind: st.tuples(st.just(kind), SCALARS[kind])))
def test_a_value_written_as_text_is_read_back(pair: tuple[str, AttrValue]) -> None:
    kind, value = pair
    assert attr_values_equal(parse_attr_value(kind, text_of(value)), value)
    assert attr_values_equal(parse_attr_value(f"list({kind})", text_of((value, value))), (value, value))


FRAGMENTS = st.sampled_from(
    ["a", "T", ":", " ", "=", ">=", "3", "-5", "1.5", "int", "list(", ")", "{", "}", "[", "]", ",", "'x'", '"', "float", "numbertype",
     "DT_FLOAT", "dim", "size", "dtype", "name", "true", "\\x", "#", "*", "Ref(", "N", "func", "tensor", "shape", "\n", "é"]
)  # fmt: skip


@given(st.lists(FRAGMENTS, max_size=14).map("".join), st.lists(FRAGMENTS, max_size=8).map("".join))
def test_nonsense_gives_an_op_or_an_invalid_argument_error(attr: str, arg: str) -> None:
    with contextlib.suppress(InvalidArgumentError, UnimplementedError):
        op_def = OpDefBuilder("Test").attr(f"T:{attr}").input(f"x:{arg}").finalize()
        assert isinstance(op_def, OpDef)
        validate_op_def(op_def)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("int", "0x10"), ("int", "5,"), ("int", "- 5"), ("int", "01x"), ("int", "00"), ("int", "1e3"), ("int", ""), ("int", "5 6"), ("float", "1.5f"),
        ("float", "00.5"), ("float", "'1'"), ("bool", "t"), ("bool", "TRUE"), ("bool", "01"), ("type", "int32"), ("type", "dt_int32"),
        ("type", "DT_NONE"), ("string", "abc"), ("string", "'a' 'b'"), ("string", "'\\q'"), ("string", "'\\400'"), ("string", "'a"),
        ("shape", "[{}]"), ("shape", "{ dim { size 3 } }"), ("shape", "{ dim { size: 3 size: 4 } }"), ("shape", "{ dim: 3 }"), ("shape", "{ dims {} }"),
        ("tensor", "{ dtype: float }"), ("tensor", "{ values: 3 }"), ("func", "{ attr { key: 3 } }"), ("func", "{ attr { value { x: 3 } } }"),
        ("list(int)", "3"), ("list(int)", "[1,]"), ("list(int)", "[1] x"), ("list(int)", "[1"), ("list(shape)", "[" + "{" * 200),
        ("nothing", "3"), ("list(nothing)", "[]"),
    ],
    ids=lambda value: f"O1-{value[:20]}",
)  # fmt: skip
def test_text_that_is_no_value_of_its_kind_is_refused(kind: str, text: str) -> None:
    with pytest.raises(GraphError):
        parse_attr_value(kind, text)


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("int", "+5", 5), ("int", "010", 10), ("int", "3 # three", 3), ("float", ".5", 0.5), ("float", "5.", 5.0), ("float", "0x10", 16.0),
        ("float", "1e400", float("inf")), ("float", "-inf", float("-inf")), ("bool", "True", True), ("bool", "0", False), ("type", "3", d.int32),
        ("type", "DT_INT32_REF", d.int32.ref), ("type", "1000", d.dtype_from_wire(1000)), ("type", "DT_INVALID", d.INVALID),
        ("string", "'\\u00e9\\x41\\101\\n'", "éAA\n".encode()), ("shape", "<dim<size:3>>", Shape([3])), ("shape", "{dim:[{size:3},{size:4}]}", Shape([3, 4])),
        ("tensor", "{dtype:DT_FLOAT tensor_shape{dim{size:2}} float_val:[1,2]}", TensorValue([1, 2], d.float32)),
        ("func", "{name:'f' attr{key:'T' value{type:DT_FLOAT}} attr{key:'l' value{list{i:1 i:2}}}}", Func("f", {"T": d.float32, "l": (1, 2)})),
    ],
    ids=lambda value: f"O1-{value}" if isinstance(value, str) else "",
)  # fmt: skip
def test_text_is_read_as_the_reference_reads_it(kind: str, text: str, value: AttrValue) -> None:
    assert attr_values_equal(parse_attr_value(kind, text), value)
