"""Values become tensors as in TensorFlow 1: lists are packed, and numbers take the dtype they meet."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.errors import InvalidArgumentError


@pytest.fixture(autouse=True)
def graph() -> Iterator[gc.Graph]:
    with gc.Graph().as_default() as graph:
        yield graph


def value_of(tensor: Any, feed_dict: Any = None) -> Any:
    return gc.Session().run(tensor, feed_dict)


def test_a_list_of_tensors_and_numbers_is_packed_where_a_tensor_is_wanted() -> None:
    x = gc.placeholder(gc.float32, [None, 2, 2])
    y = gc.reshape(x, [gc.shape(x)[0], 4])
    assert str(y.shape) == "[?,4]"
    assert value_of(y, {x: np.ones([3, 2, 2])}).shape == (3, 4)
    one = gc.constant(1.0)
    assert value_of(gc.convert_to_tensor([[one, 2], [3.5, one]])).tolist() == [[1, 2], [3.5, 1]]
    assert value_of(gc.add(one, [one, 2])).tolist() == [2, 3]
    v = gc.Variable(2.0)
    with gc.Session() as session:
        session.run(v.initializer)
        assert session.run(gc.reduce_sum([v, 1.0])) == 3


def test_sizes_may_hold_tensors() -> None:
    n = gc.placeholder(gc.int32, [])
    assert value_of(gc.zeros([n, 2]), {n: 3}).shape == (3, 2)
    assert value_of(gc.ones(gc.stack([n, 1]), gc.int32), {n: 2}).tolist() == [[1], [1]]
    assert value_of(gc.fill([n], 7.0), {n: 2}).tolist() == [7, 7]


@pytest.mark.parametrize(
    ("dtype", "quotient"), [("int8", "float"), ("uint16", "float"), ("int32", "double"), ("int64", "double"), ("half", "half")]
)
def test_the_quotient_of_integers_is_a_float(dtype: str, quotient: str) -> None:
    a = gc.constant(np.array([7, -7]).astype(gc.as_dtype(dtype).as_numpy_dtype))
    for y in (a / 2, a / a, 2 / a, gc.divide(a, 2)):
        assert y.dtype.text == quotient
    assert value_of(a / 2)[0] == 3.5
    assert value_of(a // 2)[0] == 3
    assert value_of(a % 4)[0] == 3


def test_operators_have_tensorflows_meaning() -> None:
    t, f = gc.constant([True, True, False, False]), gc.constant([True, False, True, False])
    assert value_of(t ^ f).tolist() == [False, True, True, False]
    assert value_of([True, False, True, False] & t).tolist() == [True, False, False, False]
    assert value_of(gc.constant([-7, 7]) % 4).tolist() == [1, 3]
    assert value_of(9 % gc.constant([-4, 4])).tolist() == [-3, 1]
    z = gc.abs(gc.constant([3 + 4j]))
    assert (z.dtype, value_of(z).tolist()) == (gc.float64, [5])
    assert abs(gc.constant(np.complex64(3 + 4j))).dtype is gc.float32
    with pytest.raises(InvalidArgumentError, match=r"\*\* raises to a power"):
        gc.constant(3.0) ^ 2


def test_matmul_of_rank_three_multiplies_stacks_of_matrices() -> None:
    a, b = np.random.default_rng(0).normal(size=(2, 3, 4)), np.random.default_rng(1).normal(size=(2, 5, 4))
    y = gc.matmul(gc.constant(a), b, transpose_b=True)
    assert y.op.type == "BatchMatMulV2"
    np.testing.assert_allclose(value_of(y), a @ b.transpose(0, 2, 1))
    c = (a + 1j * a)[0]
    np.testing.assert_allclose(value_of(gc.matmul(c, c, adjoint_a=True)), c.conj().T @ c)
    x = gc.placeholder(gc.float32)
    assert value_of(gc.matmul(x, x), {x: np.eye(2)}).tolist() == [[1, 0], [0, 1]]


def test_positional_and_old_arguments_are_tensorflows() -> None:
    x = gc.constant(np.arange(6, dtype=np.float32).reshape(2, 3, 1))
    assert str(gc.squeeze(x, 2).shape) == str(gc.squeeze(x, squeeze_dims=[2]).shape) == "[2,3]"
    assert str(gc.transpose(x).shape) == "[1,3,2]"
    unknown = gc.placeholder(gc.float32)
    assert value_of(gc.transpose(unknown), {unknown: np.ones([2, 5])}).shape == (5, 2)
    assert str(gc.reduce_sum(x, reduction_indices=[1]).shape) == "[2,1]"
    assert str(gc.reduce_mean(x, 1, keep_dims=True).shape) == str(gc.reduce_mean(x, 1, True).shape) == "[2,1,1]"
    assert str(gc.argmax(x, dimension=1).shape) == "[2,1]"
    assert gc.argmax(x, 1, output_type=gc.int32).dtype is gc.int32
    assert str(gc.expand_dims(x, dim=0).shape) == "[1,2,3,1]"
    assert gc.zeros_like(x, gc.int32).dtype is gc.int32
    assert gc.ones_like(unknown, dtype=gc.bool_).dtype is gc.bool_
    assert gc.shape(x, out_type=gc.int64).dtype is gc.int64
    with pytest.raises(InvalidArgumentError, match="Cannot specify both 'reduction_indices' and 'axis'"):
        gc.reduce_sum(x, 1, reduction_indices=1)


def test_one_hot_takes_values_axis_and_dtype() -> None:
    assert value_of(gc.one_hot([0, 2, -1], 3)).tolist() == [[1, 0, 0], [0, 0, 1], [0, 0, 0]]
    marked = gc.one_hot([1], 2, on_value=5, off_value=-1)
    assert (marked.dtype, value_of(marked).tolist()) == (gc.int32, [[-1, 5]])
    assert value_of(gc.one_hot([1], 2, dtype=gc.bool_, axis=0)).tolist() == [[False], [True]]


def test_where_without_values_gives_the_places() -> None:
    assert value_of(gc.where([[True, False], [False, True]])).tolist() == [[0, 0], [1, 1]]


@pytest.mark.parametrize(
    ("make", "dtype"),
    [
        (lambda: gc.constant(np.ones(2), dtype=gc.float32), gc.float32),
        (lambda: gc.constant(np.ones(2), dtype="float16"), gc.float16),
        (lambda: gc.constant(np.arange(3), gc.float32), gc.float32),
        (lambda: gc.constant(np.array([2.0]), gc.int32), gc.int32),
        (lambda: gc.constant([1.0]) * np.float64(2), gc.float32),
        (lambda: np.float64(2) * gc.constant([1.0]), gc.float32),
        (lambda: gc.constant([1.0]) + np.ones(1), gc.float32),
        (lambda: gc.constant([1], gc.int64) + np.int32(1), gc.int64),
        (lambda: gc.constant([1.0]) * np.int64(2), gc.float32),
        (lambda: gc.Variable([1.0]).assign(np.ones(1)), gc.float32.ref),
        (lambda: gc.Variable(np.ones(1), dtype=gc.float32).value(), gc.float32),
        (lambda: gc.reshape(gc.constant([1.0, 2.0]), np.array([2, 1])), gc.float32),
    ],
)
def test_numbers_and_arrays_take_the_dtype_that_they_meet(make: Callable[[], gc.Tensor], dtype: gc.DType) -> None:
    assert make().dtype is dtype


@pytest.mark.parametrize(
    "make",
    [
        lambda: gc.constant(np.array([2.5]), gc.int32),
        lambda: gc.constant(2.0, gc.int32),
        lambda: gc.constant([1, 2]) * 2.0,
        lambda: gc.constant(np.array([1e39]), gc.float32),
        lambda: gc.constant(2**40, gc.int32),
        lambda: gc.constant(1j, gc.float32),
        lambda: gc.constant(True, gc.float32),
        lambda: gc.constant([1.0]) * np.complex64(1),
    ],
)
def test_a_value_that_would_be_lost_is_refused(make: Callable[[], gc.Tensor]) -> None:
    with warnings.catch_warnings(action="error"), pytest.raises(InvalidArgumentError, match="required a"):
        make()


@pytest.mark.parametrize(
    ("dtype", "fed", "expected"),
    [
        (gc.float32, np.array([0.1]), np.float32(0.1)),
        (gc.float16, np.array([0.1], np.float32), np.float16(0.1)),
        (gc.float64, np.array([0.5], np.float16), 0.5),
        (gc.float32, np.array([np.inf]), np.inf),
        (gc.float32, np.array([3]), 3.0),
        (gc.float32, [True], 1.0),
        (gc.int32, np.array([3.0]), 3),
        (gc.int32, [np.array(3.0)], 3),
        (gc.int64, np.array([True]), 1),
        (gc.bool_, np.array([1.0]), True),
        (gc.bool_, np.array([0]), False),
        (gc.uint8, np.array([255], np.int64), 255),
        (gc.complex64, np.array([1.5]), 1.5),
        (gc.bfloat16, np.array([1.5]), 1.5),
    ],
)
def test_feeds_are_cast_where_every_value_is_kept(dtype: gc.DType, fed: Any, expected: Any) -> None:
    x = gc.placeholder(dtype, [1])
    with warnings.catch_warnings(action="error"):
        got = value_of(gc.identity(x), {x: fed})
    assert (got.dtype, got[0]) == (dtype.as_numpy, expected)


@pytest.mark.parametrize(
    ("dtype", "fed", "said"),
    [
        (gc.float32, np.array([1e39]), "float64 with elements from 1e.39"),
        (gc.float32, np.array([2**24 + 1]), "int64 with elements from 16777217"),
        (gc.int32, np.array([3.5, 2.0]), "float64 with 3.5"),
        (gc.int32, 3.0, "float"),
        (gc.int32, [3.0], "float"),
        (gc.bool_, np.array([2.0]), "float64 with 2.0"),
        (gc.uint8, np.array([256]), "int64 with elements from 256"),
        (gc.float32, np.array([1j]), "complex128"),
        (gc.int32, np.array([np.nan]), "float64 with nan"),
    ],
)
def test_a_feed_that_would_lose_values_is_refused_by_the_placeholders_name(dtype: gc.DType, fed: Any, said: str) -> None:
    x = gc.placeholder(dtype, name="my_input")
    with warnings.catch_warnings(action="error"), pytest.raises(InvalidArgumentError, match=f"of type {said}.* for Tensor 'my_input:0'"):
        value_of(gc.identity(x), {x: fed})


def test_shapes_and_sizes_have_tensorflows_methods() -> None:
    shape = gc.placeholder(gc.float32, [None, 3, 4]).get_shape()
    assert (shape.ndims, shape[0].value, shape[1].value, int(shape[2])) == (3, None, 3, 4)
    assert [size.value for size in shape] == [None, 3, 4]
    assert shape[1:].num_elements() == 12
    assert shape.num_elements() is None
    assert shape[1:].is_fully_defined()
    assert not shape.is_fully_defined()
    assert (shape[1] * shape[2]).value == 12
    assert (shape[0] * 2).value is None
    assert (repr(shape[1]), f"{shape[1]}", str(shape[0])) == ("Dimension(3)", "3", "?")
    assert shape[0] == None  # noqa: E711 - TensorFlow 1's programs compare so
    assert shape.with_rank(3) is shape
    with pytest.raises(InvalidArgumentError, match="must have rank 2"):
        shape.assert_has_rank(2)
    x = gc.placeholder(gc.float32, shape)
    assert str(gc.reshape(x, [shape[0], shape[1] * shape[2]]).shape) == "[?,12]"


def test_dtypes_are_those_of_numpy_and_of_tensorflow() -> None:
    assert gc.float32 == np.float32
    assert gc.float32 == "float32"
    assert gc.float32 != np.float64
    assert gc.float32 != "nothing"
    assert gc.float32 not in (None, 3)
    assert {gc.float32: 1}[gc.as_dtype(np.float32)] == 1
    assert gc.float32.as_numpy_dtype is np.float32
    assert (gc.int8.min, gc.int8.max, gc.float32.max) == (-128, 127, np.finfo(np.float32).max)
    assert gc.complex64.real_dtype is gc.float32
    assert gc.float32.ref.base_dtype is gc.float32
    assert gc.float32.is_compatible_with(gc.float32.ref)
    assert gc.bool is gc.bool_
    x = gc.constant([1.0, 2.0])
    assert str(x[:, gc.newaxis].shape) == "[2,1]"


def test_nodes_and_graphs_have_tensorflows_names(graph: gc.Graph) -> None:
    x = gc.constant(1.0, name="x")
    assert isinstance(x.op, gc.Operation)
    assert [(op.name, op.type) for op in graph.get_operations()] == [("x", "Const")]
    assert x.op.values() == [x]
    assert graph.get_tensor_by_name("x:0") is x
    graph.add_to_collections(["one", "two"], x)
    assert gc.get_collection_ref("one") == [x]
    assert graph.get_all_collection_keys() == ["one", "two"]
    assert gc.get_collection("one", scope="y") == []


def test_raw_bytes_become_numbers_by_either_name_of_the_argument() -> None:
    tf: Any = gc  # some of its names are found on demand
    with gc.Session() as session:
        assert session.run(tf.decode_raw([b"\1\0\2\0"], gc.int16)).tolist() == [[1, 2]]
        assert session.run(tf.decode_raw(bytes=b"ab", out_type=gc.uint8)).tolist() == [97, 98]
    with pytest.raises(gc.GraphError, match="exactly one of input_bytes and bytes"):
        tf.decode_raw(out_type=gc.uint8)


def test_null_characters_at_the_end_of_texts_are_kept() -> None:
    with gc.Session() as session:
        for value in ([b"a\0"], ["a\0"], [[b"a\0"]]):
            assert session.run(gc.constant(value)).reshape(-1).tolist() == [b"a\0"]
        assert session.run(gc.constant(b"a\0")) == b"a\0"
        assert session.run(gc.identity([b"a\0", b"b"])).tolist() == [b"a\0", b"b"]


def test_none_and_dots_in_place_of_a_value_are_refused_with_their_likely_cause() -> None:
    x = gc.constant(1.0)
    with pytest.raises(InvalidArgumentError, match="required a tensor or a value, got None: a gradient is None where"):
        x * None
    with pytest.raises(InvalidArgumentError, match=r"input 0 of Tanh \(op Tanh\): required a tensor or a value, got '...', the mark"):
        gc.tanh(...)
