"""Pipelines of datasets beside TensorFlow's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphcore
from tests.oracle.conftest import Oracle

gc: Any = graphcore  # its namespaces are found on demand
INPUTS: dict[str, Any] = {
    "x": np.arange(24, dtype=np.float32).reshape(6, 2, 2),
    "y": np.array([3, 1, 2, 0, 4, 1]),
}
PIPELINES = [
    "D.range(5)",
    "D.range(7, 1, -2)",
    "D.from_tensors((x, 'a'))",
    "D.from_tensor_slices({'x': x, 'y': y})",
    "D.from_tensor_slices((x, [1, 2, 3, 4, 5, 6])).batch(4)",
    "D.range(7).batch(3, drop_remainder=True)",
    "D.range(7).batch(3).repeat(2)",
    "D.range(7).repeat(2).batch(3)",
    "D.range(3).repeat().take(8)",
    "D.range(9).skip(4).take(-1)",
    "D.range(9).skip(-1)",
    "D.range(3).concatenate(D.range(2))",
    "D.zip((D.range(4), {'a': D.range(3).batch(2), 'b': D.from_tensor_slices(x)}))",
    "D.from_tensor_slices((x, y)).map(lambda a, b: (a * 2, b + 1))",
    "D.from_tensor_slices({'x': x, 'y': y}).map(lambda e: tf.reduce_sum(e['x']) + tf.cast(e['y'], tf.float32))",
    "D.range(6).map(lambda i: [i, i * i])",
    "D.range(10).filter(lambda i: tf.equal(i % 3, 1))",
    "D.range(4).flat_map(lambda i: D.range(i).map(lambda j: (i, j)))",
    "D.range(1, 6).interleave(lambda i: D.from_tensors(i).repeat(6), cycle_length=2, block_length=4)",
    "D.range(1, 4).interleave(lambda i: D.range(i * 2), cycle_length=3)",
    "D.from_tensor_slices(y).map(lambda n: tf.fill([n], n)).padded_batch(4, [None])",
    "D.from_tensor_slices(y).map(lambda n: (tf.fill([n], n), tf.fill([2, n], 1.5))).padded_batch(3, ([5], [2, None]), (np.int64(-1), 0.5))",
    "D.from_tensor_slices([['a', 'bc'], ['d', 'e']]).padded_batch(2, [3])",
    "D.range(5).cache().repeat(2)",
    "D.range(5).prefetch(2)",
    "D.range(10).shard(3, 1)",
    "D.range(10).apply(lambda d: d.take(2))",
    "D.range(10).shuffle(10, seed=3)",
    "D.range(10).shuffle(4, seed=3).repeat(3)",
    "D.range(10).shuffle(4, seed=3, reshuffle_each_iteration=False).repeat(2)",
    "D.from_tensor_slices((x, y)).shuffle(100, seed=1).batch(4).repeat(2)",
    "D.from_generator(lambda: ((i, [i] * i) for i in range(4)), (tf.int64, tf.float32), ([], [None]))",
    "D.from_generator(lambda: ({'a': 'w%d' % i} for i in range(3)), {'a': tf.string}).repeat(2)",
    "D.range(3).map(lambda i: tf.py_func(lambda a: a * 10, [i], tf.int64))",
]
THEIRS = """
v1 = tf.compat.v1
answer = []
for text in arguments["pipelines"]:
    with v1.Graph().as_default(), v1.Session() as session:
        dataset = eval(text, dict(inputs, D=v1.data.Dataset, tf=v1, np=np))
        following = v1.data.make_one_shot_iterator(dataset).get_next()
        found: list[Any] = []
        try:
            while len(found) < 60:
                found.append(session.run(following))
        except tf.errors.OutOfRangeError:
            pass
        kinds = v1.data.get_output_types(dataset), v1.data.get_output_shapes(dataset)
        answer.append((tf.nest.map_structure(lambda t: t.name, kinds[0]), str(kinds[1]), found))
"""


@pytest.fixture(scope="module")
def theirs(oracle: Oracle) -> dict[str, Any]:
    return dict(zip(PIPELINES, oracle.run(THEIRS, INPUTS, pipelines=PIPELINES).answer, strict=True))


def flat(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [leaf for key in sorted(value) for leaf in flat(value[key])]
    if isinstance(value, tuple | list):
        return [leaf for item in value for leaf in flat(item)]
    return [value]


@pytest.mark.parametrize("text", PIPELINES)
def test_a_pipeline_gives_tensorflows_elements_in_its_order(text: str, theirs: dict[str, Any]) -> None:
    with gc.Graph().as_default(), gc.Session() as session:
        dataset = eval(text, {"D": gc.data.Dataset, "tf": gc, "np": np, **INPUTS})
        following = dataset.make_one_shot_iterator().get_next()
        found: list[Any] = []
        try:
            while len(found) < 60:
                found.append(session.run(following))
        except gc.errors.OutOfRangeError:
            pass
        types = [dtype.as_numpy_dtype for dtype in flat(dataset.output_types)]
    names, _, expected = theirs[text]
    assert [np.dtype(dtype) for dtype in types] == [np.dtype(object if name == "string" else name) for name in flat(names)]
    assert len(found) == len(expected)
    for mine, other in zip(found, expected, strict=True):
        for value, wanted in zip(flat(mine), flat(other), strict=True):
            assert np.asarray(value).dtype == np.asarray(wanted).dtype
            assert np.asarray(value).tolist() == np.asarray(wanted).tolist()
