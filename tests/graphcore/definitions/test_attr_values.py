"""Attr values: kinds, printing, equality."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from graphcore import dtypes as d
from graphcore.attrs import NO_VALUE, AttrValue, Func, Placeholder, TensorValue, as_attr_value
from graphcore.definitions import (
    attr_value_hash,
    attr_values_equal,
    attrs_equal,
    check_attr_kind,
    summarize_attr_value,
    summarize_tensor,
)
from graphcore.errors import GraphError, InvalidArgumentError, ResourceExhaustedError
from graphcore.functions import has_placeholder, substitute_placeholders
from graphcore.shapes import Shape
from graphcore.tensor_encoding import EncodedTensor


def encoded(dtype: d.DType, dims: tuple[int, ...] | None, content: bytes = b"", *values: Any) -> TensorValue:
    return TensorValue.from_encoded(EncodedTensor(dtype, dims, content, values))


HUGE = encoded(d.float32, (100_000_000, 10), b"", 1.0)
GOOD: list[tuple[AttrValue, str]] = [
    (123, "int"),
    (1.2, "float"),
    (True, "bool"),
    (b"x", "string"),
    (d.float32, "type"),
    (Shape([1]), "shape"),
    (TensorValue(1), "tensor"),
    (Func("f"), "func"),
    ((1, 2), "list(int)"),
    ((Func("f"),), "list(func)"),
    ((), "list(func)"),
    (NO_VALUE, "list(int)"),
]


@pytest.mark.parametrize(("value", "kind"), GOOD, ids=lambda value: f"N8-{value}" if isinstance(value, str) else "")
def test_a_value_of_its_kind_is_accepted(value: AttrValue, kind: str) -> None:
    check_attr_kind(value, kind)


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        (1.2, "int", "AttrValue had value with type 'float' when 'int' expected"),
        (1, "float", "AttrValue had value with type 'int' when 'float' expected"),
        (True, "int", "AttrValue had value with type 'bool' when 'int' expected"),
        (1, "list(int)", "AttrValue had value with type 'int' when 'list(int)' expected"),
        ((1,), "int", "AttrValue had value with type 'list(int)' when 'int' expected"),
        ((1, 2.5), "list(int)", "AttrValue had value with type 'list(float)' when 'list(int)' expected"),
        ((), "int", "AttrValue missing value with expected type 'int'"),
        (NO_VALUE, "int", "AttrValue missing value with expected type 'int'"),
        (Placeholder("T"), "float", "AttrValue had value with unexpected type 'placeholder'"),
        (d.float32.ref, "type", "AttrValue must not have reference type value of float_ref"),
        ((d.float32.ref,), "list(type)", "AttrValue must not have reference type value of float_ref"),
        (d.dtype_from_wire(1000), "type", "AttrValue has invalid DataType enum: 1000"),
        ((d.dtype_from_wire(1000),), "list(type)", "AttrValue has invalid DataType enum: 1000"),
        (d.INVALID, "type", "AttrValue has invalid DataType"),
        ((d.INVALID,), "list(type)", "AttrValue contains invalid DataType"),
    ],
    ids=lambda value: f"N8-{value}" if isinstance(value, str) and len(value) > 12 else "",
)
def test_a_value_of_another_kind_is_refused(value: AttrValue, kind: str, text: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        check_attr_kind(value, kind)
    assert caught.value.message == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Func("x"), "x[]"),
        (Func("f", {"b": 1, "a": Placeholder("T")}), "f[a=$T, b=1]"),
        (Shape([1, 0]), "[1,0]"),
        (Shape([None, 1, 0]), "[?,1,0]"),
        (Shape([]), "[]"),
        (Shape(None), "<unknown>"),
        (b"abc", '"abc"'),
        (b"a\nb\x01'\"\\\xff\t", '"a\\nb\\001\\\'\\"\\\\\\377\\t"'),
        (b"x" * 40, '"' + "x" * 40 + '"'),
        (b"x" * 79, '"' + "x" * 79 + '"'),
        (b"abcdefghij" * 8, '"abcdefghij...abcdefghij"'),
        (-3, "-3"),
        (True, "true"),
        (False, "false"),
        (d.int32, "DT_INT32"),
        (d.float32.ref, "DT_FLOAT_REF"),
        (d.INVALID, "DT_INVALID"),
        (Placeholder("T"), "$T"),
        (NO_VALUE, "<Unknown AttrValue type>"),
        (0.1, "0.1"),
        (1.0, "1"),
        (1e10, "1e+10"),
        (123456789.0, "123456792"),
        (1e-7, "1e-07"),
        (16777217.0, "16777216"),
        (3.14159274, "3.14159274"),
        (math.nan, "nan"),
        (-math.inf, "-inf"),
        (-0.0, "-0"),
        (1e5, "100000"),
        (1e6, "1e+06"),
        ((), "[]"),
        ((1, 2), "[1, 2]"),
        ((1.5, 2.0), "[1.5, 2]"),
        ((True,), "[true]"),
        ((b"a", b"b"), '["a", "b"]'),
        ((d.int32, d.string), "[DT_INT32, DT_STRING]"),
        ((Shape([]), Shape([3])), "[[], [3]]"),
        ((Func("f"),), "[f[]]"),
        (tuple(range(29)), "[" + ", ".join(map(str, range(29))) + "]"),
        (tuple(range(30)), "[0, 1, 2, 3, 4, ..., 25, 26, 27, 28, 29]{attr_hash=6212846312491382606}"),
        (tuple(range(110)), "[0, 1, 2, 3, 4, ..., 105, 106, 107, 108, 109]{attr_hash=14506120815048308275}"),
    ],
    ids=lambda value: f"N8-{value[:30]}" if isinstance(value, str) else "",
)
def test_a_value_is_summarised_as_the_reference_does(value: AttrValue, text: str) -> None:
    assert summarize_attr_value(as_attr_value(value)) == text


def tensor(values: Any, dtype: d.DType) -> TensorValue:
    return TensorValue(values, dtype)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (tensor([1, 2], d.float32), "float shape: [2] values: 1 2"),
        (tensor([0.1, 1e10], d.float32), "float shape: [2] values: 0.1 1e+10"),
        (tensor([123456789, math.nan, -math.inf], d.float32), "float shape: [3] values: 123456792 nan -inf"),
        (tensor([0.1, 123456789.123, 1e-10], d.float64), "double shape: [3] values: 0.1 123456789.123 1e-10"),
        (tensor([1, 0.1], d.half), "half shape: [2] values: 1 0.0999755859"),
        (tensor([1, 0.1], d.bfloat16), "bfloat16 shape: [2] values: 1 0.100097656"),
        (tensor([-3, 5], d.int8), "int8 shape: [2] values: -3 5"),
        (tensor([True, False, False], d.bool_), "bool shape: [3] values: 1 0 0"),
        (tensor(["ab", 'c\n"d'], d.string), 'string shape: [2] values: ab c\\n\\"d'),
        (tensor([b"\xc3\xa9"], d.string), "string shape: [1] values: é"),
        (tensor([1 - 2.5j], d.complex64), "complex64 shape: [1] values: (1,-2.5)"),
        (tensor(2, d.int32), "int32 shape: [] values: 2"),
        (tensor([], d.int32), "int32 shape: [0] values: "),
        (tensor([1, 2, 3], d.int32), "int32 shape: [3] values: 1 2 3"),
        (tensor([1, 2, 3, 4], d.int32), "int32 shape: [4] values: 1 2 3..."),
        (tensor([[1, 2], [3, 4]], d.int32), "int32 shape: [2,2] values: [1 2][3...]..."),
        (tensor([[1], [2]], d.int32), "int32 shape: [2,1] values: [1][2]"),
        (tensor([[1], [2], [3], [4], [5]], d.int32), "int32 shape: [5,1] values: [1][2][3]..."),
        (tensor([[1, 2, 3]], d.int32), "int32 shape: [1,3] values: [1 2 3]"),
        (tensor([[[1, 2], [3, 4]], [[4, 4], [4, 4]]], d.int32), "int32 shape: [2,2,2] values: [[1 2][3...]]..."),
        (tensor([[[1]]], d.int32), "int32 shape: [1,1,1] values: [[1]]"),
        (tensor(np.zeros((2, 0)), d.int32), "int32 shape: [2,0] values: "),
        (encoded(d.as_dtype("float8_e5m2"), (), b"", b"a"), "float8_e5m2 shape: [] values: 640"),
        (tensor(9000000000, d.int64), "int64 shape: [] values: 9000000000"),
    ],
    ids=lambda value: f"N8-{value}" if isinstance(value, str) else "",
)
def test_a_tensor_is_summarised_by_its_first_elements(value: TensorValue, text: str) -> None:
    assert summarize_attr_value(value) == f"Tensor<type: {text}>"


def test_n8_all_elements_are_printed_on_request() -> None:
    assert summarize_tensor(tensor([[1, 2], [3, 4]], d.int32), max_entries=-1) == "Tensor<type: int32 shape: [2,2] values: [1 2][3 4]>"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (HUGE, "<TensorProto: dtype: DT_FLOAT tensor_shape { dim { size: 100000000 } dim { size: 10 } }>"),
        (encoded(d.float32, None), "<TensorProto: dtype: DT_FLOAT tensor_shape { unknown_rank: true }>"),
        (encoded(d.float32, (-1,)), "<TensorProto: dtype: DT_FLOAT tensor_shape { dim { size: -1 } }>"),
        (encoded(d.float32, (2**40, 2**40)), "<TensorProto: dtype: DT_FLOAT tensor_shape { dim { size: 1099511627776 } dim { size: 1099511627776 } }>"),
        (encoded(d.float32, (2,), b"abc"), "<Invalid TensorProto: dtype: DT_FLOAT tensor_shape { dim { size: 2 } }>"),
        (encoded(d.INVALID, ()), "<Invalid TensorProto: dtype: DT_INVALID>"),
    ],
    ids=["N8-huge", "N8-unknown rank", "N8-unknown size", "N8-overflow", "N8-wrong content", "N8-no type"],
)  # fmt: skip
def test_a_tensor_that_is_not_built_is_named(value: TensorValue, text: str) -> None:
    assert summarize_attr_value(value) == text


@pytest.mark.parametrize(
    ("dtype", "dims", "size"),
    [
        (d.float32, (2, 3), 24), (d.float32, (2**40, 2**40), -1), (d.float32, (2**61,), -1), (d.float32, (-1,), -1), (d.float32, None, -1),
        (d.int64, (), 8),
    ],
    ids=["N8-known", "N8-overflow of elements", "N8-overflow of bytes", "N8-unknown size", "N8-unknown rank", "N8-scalar"],
)  # fmt: skip
def test_the_byte_size_of_a_tensor_is_minus_1_where_it_cannot_be_counted(dtype: d.DType, dims: tuple[int, ...] | None, size: int) -> None:
    assert encoded(dtype, dims).num_bytes() == size


@pytest.mark.parametrize(
    ("value", "shape", "elements"),
    [
        (encoded(d.int32, (2, 2), b"", 1, 2), (2, 2), [1, 2, 2, 2]),
        (encoded(d.int32, (2,)), (2,), [0, 0]),
        (encoded(d.int32, (2,), b"", 1, 2, 3), (2,), [1, 2]),
        (encoded(d.int32, (0,), b"", 1), (0,), []),
        (encoded(d.int32, (2,), b"\1\0\0\0\2\0\0\0"), (2,), [1, 2]),
        (encoded(d.half, (2,), b"", 15360, 49152), (2,), [1.0, -2.0]),
        (encoded(d.bfloat16, (1,), b"", 16256), (1,), [1.0]),
        (encoded(d.complex64, (2,), b"", 1.0, -2.5), (2,), [1 - 2.5j, 1 - 2.5j]),
        (encoded(d.string, (3,), b"", b"a", b"b"), (3,), [b"a", b"b", b"b"]),
        (encoded(d.string, (2,), b"\1\2abc"), (2,), [b"a", b"bc"]),
        (encoded(d.string, (2,)), (2,), [b"", b""]),
        (encoded(d.bool_, (3,), b"", True, False), (3,), [True, False, False]),
        (encoded(d.uint64, (), b"", 2**64 - 1), (), [2**64 - 1]),
        (encoded(d.int8, (1,), b"", -3), (1,), [-3]),
    ],
    ids=["repeated", "zero", "too many", "empty", "content", "half", "bfloat16", "complex", "strings", "string content", "no strings", "bool",
         "uint64", "int8"],
)  # fmt: skip
def test_an_encoded_tensor_decodes_its_last_value_repeats(value: TensorValue, shape: tuple[int, ...], elements: list[Any]) -> None:
    assert value.array.shape == shape
    assert value.array.reshape(-1).tolist() == elements
    assert value == TensorValue(value.array.copy(), value.dtype)
    assert not value.array.flags.writeable


@pytest.mark.parametrize(
    "value",
    [
        encoded(d.float32, (2,), b"abc"), encoded(d.float32, None), encoded(d.float32, (-1,)), encoded(d.resource, ()), encoded(d.INVALID, ()),
        encoded(d.float32.ref, ()), encoded(d.string, (2,), b"\5\5a"), encoded(d.string, (10**9,), b"a"), encoded(d.string, (1,), b"\xff"),
        encoded(d.float32, (2**62, 2)), encoded(d.int32, (1,) * 70),
    ],
    ids=["content", "rank", "size", "resource", "no type", "ref", "strings", "string count", "varint", "overflow", "rank 70"],
)  # fmt: skip
def test_an_encoded_tensor_without_sense_is_refused_when_it_is_looked_at(value: TensorValue) -> None:
    with pytest.raises(InvalidArgumentError):
        _ = value.array


def test_n8_a_huge_tensor_of_one_value_takes_no_memory() -> None:
    assert HUGE.array.shape == (100_000_000, 10)
    assert HUGE.array.strides == (0, 0)
    with pytest.raises(ResourceExhaustedError):
        _ = encoded(d.float32, (10**9,), b"", 1.0, 2.0).array


EQUAL: list[tuple[AttrValue, AttrValue]] = [
    (1, 1),
    (math.nan, math.nan),
    ((1, 2), (1, 2)),
    (Func("f", {"a": 1, "b": 2}), Func("f", {"b": 2, "a": 1})),
    (encoded(d.int32, (2,), b"", 1), encoded(d.int32, (2,), b"", 1, 1)),
    (encoded(d.int32, (2,), b"\1\0\0\0\1\0\0\0"), TensorValue([1, 1], d.int32)),
    (TensorValue([math.nan], d.float32), TensorValue([math.nan], d.float32)),
    (encoded(d.float32, (100_000_000, 10), b"", 1.0), HUGE),
    ((Func("f", {"a": (1.0,)}),), (Func("f", {"a": (1.0,)}),)),
]


@pytest.mark.parametrize(("first", "second"), EQUAL, ids="N8-{}".format)
def test_equal_values_have_equal_hashes(first: AttrValue, second: AttrValue) -> None:
    assert attr_values_equal(first, second)
    assert attr_value_hash(first) == attr_value_hash(second)


UNEQUAL: list[tuple[AttrValue, AttrValue]] = [
    (1, True),
    (1, 1.0),
    (0.0, -0.0),
    ((1,), (True,)),
    ((1,), (1, 2)),
    ((), NO_VALUE),
    (b"a", Placeholder("a")),
    (Func("f"), Func("g")),
    (Func("f", {"a": 1}), Func("f", {"a": True})),
    (Func("f", {"a": 1}), Func("f", {"b": 1})),
    (TensorValue([1], d.int32), TensorValue([1], d.int64)),
    (TensorValue([0.0], d.float32), TensorValue([-0.0], d.float32)),
    (TensorValue([1], d.int32), TensorValue([[1]], d.int32)),
    (Shape([]), Shape(None)),
]


@pytest.mark.parametrize(("first", "second"), UNEQUAL, ids="N8-{}".format)
def test_values_that_differ_in_kind_or_content_are_not_equal(first: AttrValue, second: AttrValue) -> None:
    assert not attr_values_equal(first, second)
    assert not attr_values_equal(second, first)


def test_n8_attrs_are_equal_whatever_their_order() -> None:
    assert attrs_equal({"a": 1, "b": 2}, {"b": 2, "a": 1})
    assert not attrs_equal({"a": 1}, {"a": 1, "b": 2})
    assert not attrs_equal({"a": 1}, {"b": 1})


NESTED = Func("f", {"T": Placeholder("T"), "F": (Func("f", {"T": Placeholder("T")}), Func("g", {"T": Placeholder("T")}))})


def test_n8_placeholders_are_substituted_in_nested_funcs() -> None:
    assert summarize_attr_value(NESTED) == "f[F=[f[T=$T], g[T=$T]], T=$T]"
    bound = substitute_placeholders({"T": Func("x")}.get, NESTED)
    assert bound is not None
    assert summarize_attr_value(bound) == "f[F=[f[T=x[]], g[T=x[]]], T=x[]]"
    assert has_placeholder(NESTED)
    assert not has_placeholder(bound)


def test_n8_a_placeholder_that_nobody_knows_stays_unbound() -> None:
    assert substitute_placeholders({"U": 1}.get, NESTED) is None
    assert substitute_placeholders({"U": 1}.get, (1, 2)) == (1, 2)


@pytest.mark.parametrize(
    ("given", "kind", "value"),
    [
        ("text", "string", b"text"),
        ("float", "type", d.float32),
        (np.float32, "type", d.float32),
        ([1, None], "shape", Shape([1, None])),
        (None, "shape", Shape(None)),
        ([1, 2], "list(int)", (1, 2)),
        (np.int64(3), "int", 3),
        (np.float64(0.5), "float", 0.5),
        (np.bool_(True), "bool", True),
        (["a", b"b"], "list(string)", (b"a", b"b")),
        ([[1], None], "list(shape)", (Shape([1]), Shape(None))),
        ([1.5, 2.5], "tensor", TensorValue(np.array([1.5, 2.5]))),
    ],
    ids=str,
)
def test_what_a_user_gives_becomes_an_attr_value(given: object, kind: str, value: AttrValue) -> None:
    assert attr_values_equal(as_attr_value(given, kind), value)


def test_a_float_attr_is_a_float32() -> None:
    assert as_attr_value(0.1) == float(np.float32(0.1))
    assert as_attr_value(1e300) == math.inf


def test_no_kind_is_cast_into_another() -> None:
    assert type(as_attr_value(1, "float")) is int
    with pytest.raises(GraphError):
        as_attr_value(object(), "int")
