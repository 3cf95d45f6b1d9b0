"""Integers and special values in reductions, sorting, images, numbers and sparse tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphcore as gc

tf: Any = gc

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


def run(value: Any) -> Any:
    with gc.Session() as session:
        return session.run(value)


@pytest.fixture(autouse=True)
def _new_graph() -> Any:
    with gc.Graph().as_default():
        yield


@pytest.mark.parametrize("dtype", INTEGERS[:3] + INTEGERS[4:7])
def test_the_mean_of_integers_is_added_up_in_64_bits(dtype: str) -> None:
    least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
    for values in ([most] * 3, [least] * 3, [most] * 300, [least, most]):
        mean = run(gc.reduce_mean(gc.constant(np.array(values, dtype))))
        assert mean == int(sum(values) / len(values))
        assert mean.dtype == dtype


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_are_sorted_over_their_whole_range(dtype: str) -> None:
    values = np.array([3, 0, np.iinfo(dtype).max, 1, np.iinfo(dtype).min, 0, np.iinfo(dtype).max - 1], dtype)
    x = gc.constant(values)
    up, down, places = run([tf.sort(x), tf.sort(x, direction="DESCENDING"), tf.argsort(x)])
    assert up.tolist() == sorted(values.tolist())
    assert down.tolist() == sorted(values.tolist(), reverse=True)
    assert places.tolist() == np.argsort(values, kind="stable").tolist()


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2, -3])
@pytest.mark.parametrize("known", [True, False])
def test_any_axis_is_sorted(axis: int, known: bool) -> None:
    values = np.random.default_rng(0).integers(0, 5, (2, 3, 4)).astype(np.int32)
    x = gc.constant(values) if known else gc.placeholder(gc.int32)
    with gc.Session() as session:
        feeds = {} if known else {x: values}
        found, places = session.run([tf.sort(x, axis), tf.argsort(x, axis)], feeds)
    np.testing.assert_array_equal(found, np.sort(values, axis))
    np.testing.assert_array_equal(places, np.argsort(values, axis, kind="stable"))


def test_an_axis_that_is_not_there_is_refused() -> None:
    with pytest.raises(gc.errors.InvalidArgumentError, match=r"sort: required an axis in \[-1, 1\)"):
        tf.sort([1, 2], axis=1)


@pytest.mark.parametrize("dtype", [gc.float16, gc.bfloat16, gc.float32, gc.float64])
def test_nan_is_sorted_as_the_largest_number(dtype: gc.DType) -> None:
    x = gc.cast(gc.constant([0.5, np.nan, -3.5, np.inf, np.nan]), dtype)
    up, down = run([tf.sort(x), tf.sort(x, direction="DESCENDING")])
    np.testing.assert_array_equal(up.astype(np.float32), [-3.5, 0.5, np.inf, np.nan, np.nan])
    np.testing.assert_array_equal(down.astype(np.float32), [np.nan, np.nan, np.inf, 0.5, -3.5])


def test_the_gradient_of_a_sorted_value_goes_to_its_source() -> None:
    x = gc.constant([3.0, 1.0, 2.0])
    (gradient,) = gc.gradients(tf.sort(x) * [1.0, 10.0, 100.0], x)
    assert run(gradient).tolist() == [100.0, 1.0, 10.0]


@pytest.mark.parametrize(("side", "expected"), [("left", [[1, 0, 4], [1, 3, 0]]), ("right", [[3, 0, 4], [2, 3, 0]])])
def test_values_are_searched_in_sorted_rows(side: str, expected: list[list[int]]) -> None:
    rows, values = [[1.0, 2.0, 2.0, 5.0], [0.0, 1.0, 7.0, 8.0]], [[2.0, 0.0, 9.0], [1.0, 7.5, -1.0]]
    found, whole, one = run(
        [
            tf.searchsorted(rows, values, side),
            tf.searchsorted([rows], [values], side, gc.int64),
            tf.searchsorted(rows[0], values[0], side=side),
        ]
    )
    assert found.tolist() == whole[0].tolist() == expected
    assert one.tolist() == expected[0]
    assert (found.dtype, whole.dtype) == (np.int32, np.int64)


def test_leaky_relu_turns_integers_to_floats_and_round_leaves_them() -> None:
    assert run(tf.nn.leaky_relu(gc.constant([-10, 0, 10]))).tolist() == [-2.0, 0.0, 10.0]
    for dtype in INTEGERS:
        found = run(tf.round(gc.constant(np.array([1, 100], dtype))))
        assert (found.tolist(), found.dtype) == ([1, 100], dtype)


def test_moments_of_complex_numbers_take_magnitudes() -> None:
    values = np.array([[1 + 2j, 3 - 1j, 0.5j], [2, 1j, -1 - 1j]], np.complex128)
    x = gc.constant(values)
    variance, deviation, norm = run([tf.math.reduce_variance(x, 1), tf.math.reduce_std(x), tf.math.reduce_euclidean_norm(x, 1)])
    np.testing.assert_allclose(variance, np.var(values, 1))
    np.testing.assert_allclose(deviation, np.std(values))
    np.testing.assert_allclose(norm, np.linalg.norm(values, axis=1))
    assert variance.dtype == np.float64


def test_the_variance_of_integers_is_refused() -> None:
    with pytest.raises(gc.errors.InvalidArgumentError, match=r"reduce_variance: required a floating or complex dtype.*gc\.cast"):
        tf.math.reduce_std(gc.constant([1, 2]))


@pytest.mark.parametrize("dtype", [gc.float16, gc.bfloat16, gc.float32, gc.complex64])
def test_each_nan_is_unique(dtype: gc.DType) -> None:
    values, places = run(tf.unique(gc.cast(gc.constant([1.0, np.nan, 2.0, np.nan, 1.0]), dtype)))
    assert len(values) == 4
    assert places.tolist() == [0, 1, 2, 3, 0]


@pytest.mark.parametrize(("height", "width", "size"), [(4, 5, [2, 3]), (6, 6, [2, 2]), (8, 8, [3, 4]), (1, 4, [2, 2]), (3, 1, [1, 5])])
@pytest.mark.parametrize("align", [True, False])
def test_the_mean_of_the_areas_of_a_constant_image_is_constant(height: int, width: int, size: list[int], align: bool) -> None:
    image = gc.constant(np.full((1, height, width, 1), 100.0, np.float32))
    np.testing.assert_allclose(run(tf.image.resize_area(image, size, align_corners=align)), np.full((1, *size, 1), 100.0), rtol=1e-6)


@pytest.mark.parametrize("combiner", ["sum", "mean", "sqrtn"])
def test_a_row_without_ids_has_zeros_as_embedding(combiner: str) -> None:
    ids = tf.SparseTensor([[0, 0], [2, 0], [2, 1]], gc.constant([1, 0, 1], gc.int64), [3, 2])
    weights = tf.SparseTensor([[0, 0], [2, 0], [2, 1]], gc.constant([0.5, 1.0, 3.0]), [3, 2])
    table = gc.constant([[1.0, 2.0], [3.0, 4.0]])
    found = run(tf.nn.embedding_lookup_sparse(table, ids, weights, combiner=combiner))
    assert found[1].tolist() == [0.0, 0.0]
    assert np.isfinite(found).all()


def test_the_fused_batch_norm_of_a_matrix_averages_the_variance_of_a_sample() -> None:
    values = np.random.default_rng(0).normal(size=(6, 3)).astype(np.float32)
    for fused, variance in ((None, values.var(0, ddof=1)), (True, values.var(0, ddof=1)), (False, values.var(0))):
        with gc.Graph().as_default(), gc.Session() as session:
            outputs = tf.contrib.layers.batch_norm(gc.constant(values), decay=0.5, fused=fused, updates_collections=None, is_training=True)
            session.run(gc.global_variables_initializer())
            found = session.run(outputs)
            (moving,) = [each for each in gc.global_variables() if "moving_variance" in each.name]
            np.testing.assert_allclose(session.run(moving), 0.5 + 0.5 * variance, rtol=1e-5)
        np.testing.assert_allclose(found, (values - values.mean(0)) / np.sqrt(values.var(0) + 0.001), rtol=1e-4)


def test_running_sums_are_along_the_first_axis_unless_given() -> None:
    x = gc.constant([[1.0, 2.0], [3.0, 4.0]])
    assert run(tf.cumsum(x)).tolist() == [[1.0, 2.0], [4.0, 6.0]]
    assert run(tf.cumprod(x)).tolist() == [[1.0, 2.0], [3.0, 8.0]]
    assert run(tf.cumsum(x, 1, exclusive=True, reverse=True)).tolist() == [[2.0, 0.0], [4.0, 0.0]]
    assert run(tf.math.cumprod(x, axis=1)).tolist() == [[1.0, 2.0], [3.0, 12.0]]


def test_numbers_are_counted_in_each_row() -> None:
    found = run(tf.apply_op("DenseBincount", [[[1, 1], [2, 0]], 3, gc.constant(np.zeros(0, np.float32))]))
    assert found.tolist() == [[0.0, 2.0, 0.0], [1.0, 0.0, 1.0]]


def test_ragged_rows_are_filled_up() -> None:
    splits = gc.constant([0, 2, 2, 5], gc.int64)
    x = tf.apply_op("RaggedTensorToTensor", [[-1, 2], gc.constant([1, 2, 3, 4, 5]), 0, [splits]], {"row_partition_types": ["ROW_SPLITS"]})
    assert x.shape.as_list() == [None, 2]
    assert run(x).tolist() == [[1, 2], [0, 0], [3, 4]]


def test_a_kind_of_row_partition_that_is_none_is_refused_when_the_node_is_made() -> None:
    splits = gc.constant([0, 2, 2, 5], gc.int64)
    with pytest.raises(gc.errors.InvalidArgumentError, match="row_partition_types must be some of FIRST_DIM_SIZE"):
        tf.apply_op("RaggedTensorToTensor", [[-1, 2], gc.constant([1, 2, 3, 4, 5]), 0, [splits]], {"row_partition_types": ["ROWS"]})


def test_sparse_tensors_are_cast_multiplied_and_divided_by_dense_ones() -> None:
    sparse, dense = tf.SparseTensor([[0, 1], [1, 0]], [3, 4], [2, 2]), gc.constant([[1.0, 2.0], [8.0, 4.0]])
    floats = gc.cast(sparse, gc.float32)
    assert isinstance(floats, tf.SparseTensor)
    found = run([floats * dense, dense * floats, floats / dense, 2.0 * floats, sparse / gc.constant([[2, 2], [2, 2]])])
    assert [each.values.tolist() for each in found] == [[6.0, 32.0], [6.0, 32.0], [1.5, 0.5], [6.0, 8.0], [1.5, 2.0]]


def test_sparse_tensors_are_transposed_split_and_compared() -> None:
    x, y = tf.SparseTensor([[0, 1], [1, 2]], [3.0, -4.0], [2, 3]), tf.SparseTensor([[0, 0], [1, 2]], [-3.0, 5.0], [2, 3])
    turned, parts, most, least = run(
        [tf.sparse_transpose(x), tf.sparse_split(sp_input=x, num_split=2, axis=1), tf.sparse_maximum(x, y), tf.sparse_minimum(x, y)]
    )
    assert (turned.indices.tolist(), turned.values.tolist(), turned.dense_shape.tolist()) == ([[1, 0], [2, 1]], [3.0, -4.0], [3, 2])
    assert [part.dense_shape.tolist() for part in parts] == [[2, 2], [2, 1]]
    assert most.values.tolist() == [0.0, 3.0, 5.0]
    assert least.values.tolist() == [-3.0, 0.0, -4.0]


def test_a_mask_of_unknown_rank_retains_sparse_values() -> None:
    size = gc.placeholder(gc.int32)
    kept = tf.sparse_retain(tf.SparseTensor([[0, 1], [1, 0]], [3.0, 4.0], [2, 2]), tf.random_uniform(size) < 2.0)
    with gc.Session() as session:
        assert session.run(kept, {size: [2]}).values.tolist() == [3.0, 4.0]


def test_values_are_counted_in_a_hundred_parts_unless_told_otherwise() -> None:
    assert run(tf.histogram_fixed_width([1.0, 2.0], [0.0, 5.0])).shape == (100,)
    assert run(tf.histogram_fixed_width([1.0, 2.0], [0.0, 5.0], 5)).tolist() == [0, 1, 1, 0, 0]


def test_candidates_are_drawn_by_their_weights() -> None:
    true = gc.constant([[1], [2]], gc.int64)
    attrs = {"num_true": 1, "num_sampled": 4000, "unique": False, "range_max": 5, "unigrams": [1, 2, 3, 4, 0], "seed": 3}
    drawn, of_true, of_drawn = run(tf.nn.fixed_unigram_candidate_sampler(true, **attrs))
    np.testing.assert_allclose(np.bincount(drawn, minlength=5) / 4000, [0.1, 0.2, 0.3, 0.4, 0.0], atol=0.03)
    np.testing.assert_allclose(of_true, [[800.0], [1200.0]])
    np.testing.assert_allclose(of_drawn, 400.0 * (drawn + 1))


def test_matrices_have_pseudoinverses_ranks_and_triangles() -> None:
    values = np.random.default_rng(0).normal(size=(3, 5, 4))
    inverse, full, low = run([tf.linalg.pinv(values), tf.linalg.matrix_rank(values), tf.linalg.matrix_rank([[1.0, 2.0], [2.0, 4.0]])])
    np.testing.assert_allclose(inverse, np.linalg.pinv(values), atol=1e-9)
    assert (full.tolist(), low) == ([4, 4, 4], 1)
    triangle = tf.linalg.LinearOperatorLowerTriangular(gc.ones([3, 3]))
    dense, solved = run([triangle.to_dense(), triangle.solve([[1.0], [3.0], [6.0]])])
    assert dense.tolist() == [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
    assert solved.tolist() == [[1.0], [2.0], [3.0]]


def test_systems_with_three_diagonals_are_solved() -> None:
    diagonals = [[1.0, 1.0, 0.0], [4.0, 4.0, 4.0], [0.0, 1.0, 1.0]]
    matrix = np.array([[4.0, 1.0, 0.0], [1.0, 4.0, 1.0], [0.0, 1.0, 4.0]])
    found = run(
        [tf.linalg.tridiagonal_solve(diagonals, [1.0, 2.0, 3.0]), tf.linalg.tridiagonal_solve(diagonals, np.eye(3, dtype=np.float32))]
    )
    np.testing.assert_allclose(found[0], np.linalg.solve(matrix, [1.0, 2.0, 3.0]), rtol=1e-6)
    np.testing.assert_allclose(found[1], np.linalg.inv(matrix), rtol=1e-5)


def test_the_logarithm_of_the_beta_function() -> None:
    np.testing.assert_allclose(run(tf.lbeta([[1.0, 2.0, 3.0]])), [-np.log(60.0)], rtol=1e-6)
