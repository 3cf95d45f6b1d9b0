"""Random ops with seeds of their own give TensorFlow's numbers, run after run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphcore as gc
from tests.oracle.conftest import Oracle

pytestmark = pytest.mark.oracle
TABLE = np.arange(24, dtype=np.float32).reshape(6, 4)
GRAPH_SEEDS = (None, 0, 5, 123456789012)
DRAWS = (
    "tf.random_uniform([5], seed=1)",
    "tf.random_uniform([3, 2], -2, 3.5, seed=2)",
    "tf.random_uniform([5], 1, 2, dtype=tf.float64, seed=3)",
    "tf.random_uniform([5], dtype=tf.float16, seed=3)",
    "tf.random_uniform([7], maxval=10, dtype=tf.int32, seed=4)",
    "tf.random_uniform([3, 3], -5, 2**40, dtype=tf.int64, seed=5)",
    "tf.random_uniform(tf.shape(TABLE), seed=0)",
    "tf.random_normal([9001], 1.0, 2.0, seed=6)",
    "tf.random_normal([4], dtype=tf.float64, seed=-7)",
    "tf.truncated_normal([3000], stddev=0.1, seed=8)",
    "tf.truncated_normal([13], dtype=tf.float64, seed=9)",
    "tf.random_shuffle(TABLE, seed=10)",
    "tf.multinomial(TABLE[:3] / 9, 6, seed=11)",
    "tf.multinomial(TABLE[:3] / 9, 6, 11, None, tf.int32)",
    "tf.random_gamma([400], [0.05, 0.5, 2.0, 1.0], seed=12)",
    "tf.random_gamma([3], 2.5, beta=[1.0, 3.0], dtype=tf.float64, seed=13)",
    "tf.random_poisson([0.5, 3.0, 40.0], [500], seed=14)",
    "tf.random_poisson(lam=12.5, shape=[5], dtype=tf.float64, seed=14)",
    "tf.random_crop(TABLE, [2, 3], seed=15)",
    "tf.nn.dropout(tf.constant(TABLE), 0.6, seed=16)",
    "tf.nn.dropout(tf.constant(TABLE), rate=0.3, noise_shape=[6, 1], seed=17)",
    "tf.random.uniform([2], seed=1)",
    "tf.random.normal([2], seed=1)",
    "tf.random.truncated_normal([2], seed=1)",
    "tf.random.shuffle(TABLE, seed=1)",
    "tf.random.categorical(TABLE[:2] / 5, 3, seed=1)",
    "tf.random.gamma([2], 1.5, seed=1)",
    "tf.random.poisson(3.0, [4], seed=1)",
    "tf.random.stateless_uniform([3], [1, 2])",
    "tf.random.stateless_uniform([3], [1, 2], 0, 10, tf.int32)",
    "tf.random.stateless_normal([3], [1, 2])",
    "tf.random.stateless_truncated_normal([3], [1, 2])",
    "tf.random.stateless_categorical(TABLE[:2] / 5, 3, [1, 2])",
)
PROGRAM = """
drawn = {}
for graph_seed in graph_seeds:
    with tf.Graph().as_default():
        tf.set_random_seed(graph_seed)
        tensors = [eval(source) for source in draws]
        with tf.Session() as session:
            drawn[graph_seed] = [session.run(tensors) for _ in range(3)]
"""
THERE = f"""
globals().update(inputs, **arguments)
tf = tf.compat.v1
{PROGRAM}
answer = drawn
"""


def test_seeded_random_ops_give_tensorflows_numbers(oracle: Oracle) -> None:
    expected = oracle.run(THERE, {"TABLE": TABLE}, draws=DRAWS, graph_seeds=GRAPH_SEEDS).answer
    here: dict[str, Any] = {"tf": gc, "TABLE": TABLE, "draws": DRAWS, "graph_seeds": GRAPH_SEEDS}
    exec(PROGRAM, here)
    for graph_seed, runs in expected.items():
        for number, values in enumerate(runs):
            for source, mine, theirs in zip(DRAWS, here["drawn"][graph_seed][number], values, strict=True):
                where = f"{source} with the graph seed {graph_seed} in run {number}"
                assert (mine.dtype, mine.shape) == (theirs.dtype, theirs.shape), where
                np.testing.assert_allclose(mine, theirs, rtol=2e-6, atol=1e-6, err_msg=where)


def test_the_seeds_of_an_op_are_tensorflows(oracle: Oracle) -> None:
    source = """
        found = []
        for graph_seed in (None, 0, 3, -1, 2**31 - 1, 2**40):
            with tf.Graph().as_default():
                tf.set_random_seed(graph_seed)
                found += [tf.get_seed(seed) for seed in (0, 7, -7, 2**31 - 1, 2**40)]
                found += [tf.random.get_seed(None)] if graph_seed is None else []
        answer = found
    """
    lines = "\n".join(line[8:] for line in source.splitlines())
    here: dict[str, Any] = {"tf": gc}
    exec(lines, here)
    assert [list(pair) for pair in here["answer"]] == [list(pair) for pair in oracle.run(f"tf = tf.compat.v1\n{lines}").answer]
