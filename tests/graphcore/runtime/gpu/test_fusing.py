"""Chains of elementwise operations as one kernel."""

from __future__ import annotations

from itertools import chain, product
from typing import Any, Final

import numpy as np
import pytest

import graphcore as gc
from graphcore.graph.shapes.evaluation import kernel_context, needs_only_inputs
from graphcore.runtime.gpu.expressions import expression_of
from tests.graphcore.opset.backend_cases import CASES, Prepared
from tests.graphcore.opset.op_cases import Array, Case
from tests.support.strict_cupy import StrictCupy

tf: Any = gc  # names that are loaded on demand
_HELD: Final = [gc.bool, gc.int8, gc.uint8, gc.int64, gc.float16, gc.float32, gc.float64, gc.complex64]
_NUMBERS: Final = [0.5, -0.0, 0.0, 1.0, -2.5, 7.0, np.nan, np.inf, -np.inf, 1e-8, -0.25, 3.0]
_SHAPES: Final[list[list[tuple[int, ...]]]] = [[(3, 4)] * 3, [()] * 3, [(0, 4)] * 3, [(3, 4), (4,), (1,)]]


def _expression(node: gc.Node) -> Any:
    factory = node.registration.kernel
    if factory is None or not needs_only_inputs(node) or len(node.outputs) != 1:
        return None
    return expression_of(factory, kernel_context(node, (None,) * len(node.inputs)), StrictCupy())


def _in_chains() -> list[Case]:
    """An example of each op that can be part of a chain."""
    found: dict[str, Case] = {}
    for case in CASES:
        if _expression(Prepared(case).node) is not None:
            found.setdefault(case.op_def.name, case)
    return list(found.values())


IN_CHAINS: Final = _in_chains()


def test_the_ops_of_networks_can_be_part_of_a_chain() -> None:
    names = {case.op_def.name for case in IN_CHAINS}
    assert names >= {"Relu", "ReluGrad", "Relu6", "Sigmoid", "SigmoidGrad", "TanhGrad", "Elu", "EluGrad", "Selu", "LeakyRelu", "Softplus"}
    assert names >= {"SoftplusGrad", "Softsign", "Square", "Rsqrt", "Reciprocal", "BiasAdd", "Select", "SelectV2", "Cast", "ClipByValue"}
    assert names >= {"SquaredDifference", "DivNoNan", "Minimum", "Maximum", "Log1p", "Greater"}
    assert not names & {"MatMul", "BatchMatMul", "Softmax", "Sum", "Reshape", "Identity", "RandomUniform"}


def _value(tensor: gc.Tensor, seed: int) -> Array:
    kind, shape = tensor.dtype.as_numpy, [size or 0 for size in tensor.shape.as_list()]
    assert kind is not None
    rng = np.random.default_rng(seed)
    if kind.kind in "iu":
        return rng.integers(1, 7, shape).astype(kind)
    with np.errstate(invalid="ignore"):
        return np.asarray(rng.choice(_NUMBERS, shape)).astype(kind)


def _around(tensor: gc.Tensor) -> gc.Tensor:
    """A neighbour in the chain, of any type."""
    return tf.logical_not(tensor) if tensor.dtype is gc.bool else gc.add(tensor, tensor)


@pytest.mark.parametrize("case", IN_CHAINS, ids=lambda case: case.op_def.name)
def test_an_op_gives_in_a_chain_what_it_gives_alone(case: Case, cupy: StrictCupy) -> None:
    attrs = [attr for attr in case.op_def.attr if attr.type == "type"]
    choices = [[dtype for dtype in _HELD if not attr.allowed_values or dtype in attr.allowed_values] for attr in attrs]
    feeds: dict[Any, Any] = {}
    fetches: list[gc.Tensor] = []
    fused = 0
    for number, (shapes, types) in enumerate(product(_SHAPES, product(*choices))):
        chosen: dict[str, Any] = {attr.name: dtype for attr, dtype in zip(attrs, types, strict=True)}
        arguments = [
            [gc.placeholder(arg.type or chosen[arg.type_attr], shapes[slot]) for _ in (value if isinstance(value, list) else [value])]
            for slot, (arg, value) in enumerate(zip(case.op_def.input_arg, case.inputs, strict=True))
        ]
        given = list(chain(*arguments))
        arguments[0][0] = _around(given[0])
        parts = [part if isinstance(value, list) else part[0] for part, value in zip(arguments, case.inputs, strict=True)]
        try:
            node = gc.get_default_graph().apply_op(case.op_def.name, parts, {**case.attrs, **chosen})
            case.entry.kernel(kernel_context(node, (None,) * len(given)))  # type: ignore[misc]  # each case has a kernel
        except gc.errors.GraphError:  # shapes or types that it does not take
            continue
        fetches.append(_around(node.outputs[0]))
        feeds |= {tensor: _value(tensor, number + slot) for slot, tensor in enumerate(given)}
        fused += _expression(node) is not None
    results = []
    for cupy.cannot_fuse in ("not now", ""):
        with gc.Session(devices="gpu") as session, np.errstate(all="ignore"):
            results.append(session.run(fetches, feeds))
    assert cupy.fused == fused > 0
    for found, wanted, fetch in zip(results[1], results[0], fetches, strict=True):
        assert (found.dtype, found.shape, found.tobytes()) == (wanted.dtype, wanted.shape, wanted.tobytes()), fetch.node.inputs[0].node


@pytest.mark.parametrize("cannot_fuse", ["", "cupy.fuse has no such function"], ids=["fused", "one by one"])
@pytest.mark.parametrize(("network", "kernels"), [("dense", 6), ("convolution", 12)])
def test_a_training_step_with_fused_chains_gives_what_it_gives_on_the_cpu(
    cupy: StrictCupy, network: str, kernels: int, cannot_fuse: str
) -> None:
    if isinstance(cupy, StrictCupy):
        cupy.cannot_fuse = cannot_fuse
    rng = np.random.default_rng(1)
    x, labels = gc.placeholder(gc.float32, [None, 4, 4, 1]), gc.placeholder(gc.float32, [None, 2])
    if network == "convolution":
        filters = gc.Variable(rng.normal(size=(2, 2, 1, 3)).astype(np.float32))
        z = tf.nn.bias_add(tf.nn.conv2d(x, filters, strides=[1, 1, 1, 1], padding="SAME"), gc.Variable(np.zeros(3, np.float32)))
        h = tf.nn.relu(z)
        h = tf.nn.batch_normalization(h, *tf.nn.moments(h, [0, 1, 2]), gc.Variable(np.zeros(3, np.float32)), None, 1e-3)
        h = gc.reshape(h, [-1, 48])
    else:
        h = gc.matmul(gc.reshape(x, [-1, 16]), gc.Variable(rng.normal(size=(16, 48)).astype(np.float32)))
        h = tf.nn.relu(h + gc.Variable(np.ones(48, np.float32)))
    logits = gc.matmul(h, gc.Variable(rng.normal(size=(48, 2)).astype(np.float32) / 7)) + gc.Variable(np.zeros(2, np.float32))
    loss = gc.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits))
    step = tf.train.AdamOptimizer(0.1).minimize(loss)
    feeds = {x: rng.normal(size=(5, 4, 4, 1)).astype(np.float32), labels: np.eye(2, dtype=np.float32)[[0, 1, 1, 0, 1]]}
    losses = []
    for devices in (None, "gpu"):
        with gc.Session(devices=devices, options=gc.SessionOptions(capture_on_gpu=False)) as session:
            session.run(gc.global_variables_initializer())
            losses.append([session.run([loss, step], feeds)[0] for _ in range(4)])
    np.testing.assert_allclose(losses[1], losses[0], rtol=1e-4)
    if isinstance(cupy, StrictCupy):  # tests/gpu runs this with CuPy itself
        assert cupy.fused == (0 if cannot_fuse else 4 * kernels)


def test_results_within_a_chain_that_others_need_have_their_own_shapes(cupy: StrictCupy) -> None:
    x, row = gc.placeholder(gc.float32, [None]), gc.placeholder(gc.float32, [None, None])
    small = gc.exp(x)
    wide = gc.tanh(small * row)  # broadcasts `small`, which is fetched
    both = gc.square(wide) - wide
    early = gc.exp(row)
    total = gc.reduce_sum(early)  # runs between the two operations of a chain
    late = gc.tanh(early) * total
    whole = gc.tanh(0.5 * gc.square(row))
    fetches = [small, wide, both, late, early, whole, gc.negative(whole)]
    feeds = {x: np.array([0.5, -1.0], np.float32), row: np.array([[1.0, -2.0], [3.0, 0.25], [-0.5, 0.0]], np.float32)}
    with gc.Session() as session:
        expected = session.run(fetches, feeds)
    with gc.Session(devices="gpu") as session:
        for found, wanted in zip(session.run(fetches, feeds), expected, strict=True):
            assert found.shape == wanted.shape
            np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-7)
    if isinstance(cupy, StrictCupy):
        assert cupy.fused


def test_an_error_of_a_network_within_a_chain_names_its_node(cupy: StrictCupy) -> None:
    x, y = gc.placeholder(gc.float32, [None, None]), gc.placeholder(gc.float32, [None, None])
    z = tf.nn.relu(gc.get_default_graph().apply_op("SigmoidGrad", [tf.nn.relu(x), y], name="misfit").outputs[0])
    with gc.Session(devices="gpu") as session:
        assert session.run(z, {x: np.ones((2, 1), np.float32), y: np.ones((2, 1), np.float32)}).tolist() == [[0.0], [0.0]]
        with pytest.raises(gc.errors.InvalidArgumentError) as refused:
            session.run(z, {x: np.ones((2, 3), np.float32), y: np.ones((2, 2), np.float32)})
    assert refused.value.node == "misfit"


def test_a_sum_in_a_chain_requires_equal_shapes_as_alone(cupy: StrictCupy) -> None:
    x, y = gc.placeholder(gc.float32, None), gc.placeholder(gc.float32, None)
    total = tf.add_n([gc.exp(x), tf.nn.relu(y), x], name="total")
    z = tf.nn.relu(total)
    row, column = np.ones((1, 3), np.float32), np.ones((3, 1), np.float32)
    with gc.Session(devices="gpu") as session:
        for _ in range(3):
            with pytest.raises(gc.errors.InvalidArgumentError, match="same size and shape") as refused:
                session.run(z, {x: row, y: column})
            assert refused.value.node == "total"
            np.testing.assert_allclose(session.run(z, {x: row, y: row}), np.exp(row) + 2.0, rtol=1e-6)
    if isinstance(cupy, StrictCupy):
        assert cupy.fused == 3, "one kernel in each run"


def test_a_selection_along_rows_is_no_part_of_a_chain_whatever_its_static_shape_says(cupy: StrictCupy) -> None:
    condition = gc.placeholder(gc.bool, None)
    chosen = tf.logical_not(condition)
    chosen.set_shape([3, 3])  # an error of the user
    x = gc.placeholder(gc.float32, [3, 3])
    y = gc.negative(gc.get_default_graph().apply_op("Select", [chosen, x, gc.negative(x)]).outputs[0])
    feeds = {condition: np.array([True, False, False]), x: np.arange(9, dtype=np.float32).reshape(3, 3)}
    results = []
    for devices in (None, "gpu"):
        with gc.Session(devices=devices) as session:
            results.append(session.run(y, feeds).tolist())
    assert results[0] == results[1] == [[0.0, 1.0, 2.0], [-3.0, -4.0, -5.0], [-6.0, -7.0, -8.0]]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x if x.shape else x + 1,
        lambda x: x if x > 0 else -x,
        lambda x: x[0],
        lambda x: x + np.ones(3),
        lambda x: x.reshape(-1),
        lambda _: 1.0,
        lambda x: x.all(),
    ],
    ids=["shape", "truth", "index", "array", "method", "number", "reduction"],
)
def test_the_stand_in_for_fusion_refuses_what_depends_on_elements_and_shapes(cupy: StrictCupy, function: Any) -> None:
    with cupy.cuda.Stream(), pytest.raises((TypeError, NotImplementedError)):
        cupy.fuse(function)(cupy.zeros(3))
