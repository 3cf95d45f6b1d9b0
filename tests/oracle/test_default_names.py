"""The names that nodes get unless the user gives one, against TensorFlow's interface of version 1."""

from __future__ import annotations

import re

import pytest

import graphcore as gc
from tests.oracle.conftest import Oracle

SIDE = "tests.oracle.sides.names_side"
# Expressions as typed here, with those for TensorFlow where more than the `tf.` differs.
SAME = [
    *("p + q", "1.0 + p", "p - q", "p * q", "p / q", "p // q", "p ** q", "p @ q", "-p", "abs(p)"),
    *("p < q", "p <= q", "p > q", "p >= q", "b & b", "b | b", "~b", "p[0]", "p[0, 1:]", "p[i[0]:]", "(p + q) + (p + q)"),
    *("gc.add(p, q)", "gc.subtract(p, q)", "gc.multiply(p, q)", "gc.divide(p, q)", "gc.pow(p, q)", "gc.matmul(p, q)"),
    *("gc.maximum(p, q)", "gc.minimum(p, q)", "gc.equal(p, q)", "gc.not_equal(p, q)", "gc.add_n([p, q])", "gc.where(b, b, b)"),
    *("gc.negative(p)", "gc.abs(p)", "gc.square(p)", "gc.sqrt(p)", "gc.exp(p)", "gc.log(p)", "gc.tanh(p)", "gc.sigmoid(p)"),
    *("gc.cast(p, 'int32')", "gc.argmax(p, 0)", "gc.argmin(p, 0)"),
    *("gc.reduce_sum(p)", "gc.reduce_mean(p)", "gc.reduce_prod(p)", "gc.reduce_max(p)", "gc.reduce_min(p)", "gc.reduce_sum(p, 0)"),
    *("gc.identity(p)", "gc.stop_gradient(p)", "gc.reshape(p, [4])", "gc.shape(u)", "gc.expand_dims(p, 0)", "gc.squeeze(p)"),
    *("gc.transpose(p, [1, 0])", "gc.zeros_like(u)", "gc.ones_like(u)", "gc.concat([p, q], 0)", "gc.stack([p, q])", "gc.one_hot(i, 3)"),
    *("gc.placeholder('float32')", "gc.constant(1.0)", "gc.zeros([2])", "gc.ones([2])", "[gc.zeros([2000]), gc.zeros([2000])]"),
    *("gc.group(p)", "gc.no_op()", "gc.convert_to_tensor(1.0)"),
    *("gc.random_uniform([2], 1.0, 3.0)", "gc.random_normal([2], 1.0, 3.0)", "gc.truncated_normal([2], 1.0, 3.0)"),
    *("gc.Variable(1.0, use_resource=False)", "gc.Variable(1.0, use_resource=True)", "gc.Variable(lambda: 1.0, use_resource=False)"),
    *("gc.is_variable_initialized(gc.Variable(1.0, use_resource=False))", "gc.initialize_all_variables()"),
    *("gc.cond(b[0], lambda: p, lambda: q)", "gc.while_loop(lambda a: a < 3, lambda a: a + 1, [i[0]])"),
    *(
        f"gc.Variable(1.0, use_resource={resource}).{change}(2.0)"
        for resource in (False, True)
        for change in ("assign", "assign_add", "assign_sub")
    ),
]
OTHER = {
    "gc.relu(p)": "tf.nn.relu(p)",
    "gc.softmax(p)": "tf.nn.softmax(p)",
    "gc.log_softmax(p)": "tf.nn.log_softmax(p)",
    "gc.bias_add(p, [1.0, 1.0])": "tf.nn.bias_add(p, [1.0, 1.0])",
    "gc.softmax_cross_entropy_with_logits(p, q)": "tf.nn.softmax_cross_entropy_with_logits_v2(labels=q, logits=p)",
    "gc.ops.add_v2(p, q)": "tf.raw_ops.AddV2(x=p, y=q)",
    "gc.ops.softplus(p)": "tf.raw_ops.Softplus(features=p)",
    **{
        f"gc.{step}.minimize(gc.square(gc.Variable(1.0, name='v', use_resource={resource})))": (
            f"tf.train.{step}.minimize(tf.square(tf.Variable(1.0, name='v', use_resource={resource})))"
        )
        for step in ("GradientDescentOptimizer(0.1)", "MomentumOptimizer(0.1, 0.9)", "AdamOptimizer(0.1)")
        for resource in (False, True)
    },
}
CASES = {source: source.replace("gc.", "tf.") for source in SAME} | OTHER
# A plain value that an op takes becomes a Const called so; gradients have the names of their functions' nodes.
NOT_COMPARED = re.compile(r"(.*/)?Const(_\d+)?|gradients/.*")


@pytest.fixture(scope="module")
def theirs(oracle: Oracle) -> dict[str, list[str]]:
    return dict(zip(CASES, oracle.call(f"{SIDE}:node_names", list(CASES.values())), strict=True))


def names_here(source: str) -> set[str]:
    with gc.Graph().as_default() as graph:
        given = {
            **{name: gc.placeholder(gc.float32, [2, 2], name=name) for name in "pq"},
            "u": gc.placeholder(gc.float32, [None, 2], name="u"),
            "i": gc.placeholder(gc.int32, [2], name="i"),
            "b": gc.placeholder(gc.bool_, [2], name="b"),
        }
        eval(source, {"gc": gc, **given})
    return {node.name for node in graph.nodes if node.name not in given}


@pytest.mark.oracle
@pytest.mark.parametrize("source", CASES)
def test_nodes_are_called_as_in_tensorflow(source: str, theirs: dict[str, list[str]]) -> None:
    ours = names_here(source)
    assert ours
    different = {name for name in ours - set(theirs[source]) if not NOT_COMPARED.fullmatch(name)}
    assert not different, theirs[source]
