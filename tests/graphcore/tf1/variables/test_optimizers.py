"""Optimizers agree with a few lines of NumPy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import graphcore as gc
from graphcore.errors import FailedPreconditionError, InvalidArgumentError, UnimplementedError
from graphcore.tf1.train.optimizers.adaptive import AdagradOptimizer
from graphcore.tf1.train.optimizers.proximal import FtrlOptimizer
from tests.graphcore.api.cell_runs import Cells
from tests.graphcore.graph.example_graphs import everything

Array = npt.NDArray[Any]
X = np.array([[1.0, 2.0], [-1.0, 0.5], [0.0, 3.0]])
Y = np.array([[1.0], [0.0], [2.0]])
W0, B0 = np.array([[0.5], [-0.5]]), np.array([0.25])


@pytest.fixture(autouse=True)
def graph() -> Iterator[gc.Graph]:
    with gc.Graph().as_default() as graph:
        yield graph


def gradients_by_hand(w: Array, b: Array) -> list[Array]:
    error = X @ w + b - Y
    return [2 * X.T @ error / 3, 2 * error.sum(axis=0) / 3]


def descent(values: list[Array], _state: dict[str, Any]) -> list[Array]:
    return [value - 0.1 * g for value, g in zip(values, gradients_by_hand(*values), strict=True)]


def momentum(values: list[Array], state: dict[str, Any], *, nesterov: bool = False) -> list[Array]:
    found = gradients_by_hand(*values)
    state["a"] = [0.9 * a + g for a, g in zip(state.get("a", [0.0, 0.0]), found, strict=True)]
    steps = [g + 0.9 * a if nesterov else a for a, g in zip(state["a"], found, strict=True)]
    return [value - 0.1 * step for value, step in zip(values, steps, strict=True)]


def adam(values: list[Array], state: dict[str, Any]) -> list[Array]:
    state["t"] = t = state.get("t", 0) + 1
    found = gradients_by_hand(*values)
    state["m"] = m = [0.9 * m + 0.1 * g for m, g in zip(state.get("m", [0.0, 0.0]), found, strict=True)]
    state["v"] = v = [0.99 * v + 0.01 * g * g for v, g in zip(state.get("v", [0.0, 0.0]), found, strict=True)]
    rate = 0.1 * np.sqrt(1 - 0.99**t) / (1 - 0.9**t)
    return [value - rate * mean / (np.sqrt(square) + 1e-6) for value, mean, square in zip(values, m, v, strict=True)]


def model(dtype: gc.DType = gc.float64) -> tuple[gc.Tensor, list[gc.Variable]]:
    x, y, w0, b0 = (array.astype(dtype.as_numpy) for array in (X, Y, W0, B0))
    w = gc.Variable(w0, name="W")
    b = gc.Variable(b0, name="b")
    error = gc.constant(x) @ w + b - y
    return gc.reduce_sum(gc.square(error)) / 3.0, [w, b]


OPTIMIZERS = [
    pytest.param(lambda: gc.GradientDescentOptimizer(0.1), descent, id="gradient descent"),
    pytest.param(lambda: gc.MomentumOptimizer(0.1, 0.9), momentum, id="momentum"),
    pytest.param(
        lambda: gc.MomentumOptimizer(0.1, 0.9, use_nesterov=True), lambda v, s: momentum(v, s, nesterov=True), id="nesterov momentum"
    ),
    pytest.param(lambda: gc.AdamOptimizer(0.1, beta2=0.99, epsilon=1e-6), adam, id="adam"),
]


@pytest.mark.parametrize(("make", "by_hand"), OPTIMIZERS)
def test_twenty_steps_give_what_numpy_gives(
    make: Callable[[], gc.Optimizer], by_hand: Callable[[list[Array], dict[str, Any]], list[Array]]
) -> None:
    loss, variables = model()
    train = make().minimize(loss)
    values, state = [W0, B0], dict[str, Any]()
    with gc.Session() as session:
        session.run(gc.initialize_all_variables())
        for _ in range(20):
            session.run(train)
            values = by_hand(values, state)
            for value, expected in zip(session.run(variables), values, strict=True):
                np.testing.assert_allclose(value, expected, rtol=1e-10)


@pytest.mark.parametrize("make", [case.values[0] for case in OPTIMIZERS], ids=[case.id for case in OPTIMIZERS])
def test_float32_variables_stay_float32_and_the_loss_falls(make: Callable[[], gc.Optimizer]) -> None:
    loss, variables = model(gc.float32)
    train = make().minimize(loss)
    with gc.Session() as session:
        session.run(gc.initialize_all_variables())
        before = session.run(loss)
        for _ in range(30):
            session.run(train)
        assert session.run(loss) < 0.5 * before
        assert all(value.dtype == np.float32 for value in session.run(variables))


def test_a_global_step_counts_and_comes_after_the_updates() -> None:
    loss, _ = model()
    step = gc.Variable(0, trainable=False, name="step")
    train = gc.AdamOptimizer().minimize(loss, global_step=step, name="train")
    assert train.name == "train"
    with gc.Session() as session:
        session.run(gc.initialize_all_variables())
        for _ in range(3):
            session.run(train)
        assert session.run(step) == 3


def test_gradients_may_be_changed_between_computing_and_applying() -> None:
    loss, (w, b) = model()
    optimizer = gc.GradientDescentOptimizer(1.0)
    pairs = optimizer.compute_gradients(loss)
    assert [variable for _, variable in pairs] == [w, b]
    train = optimizer.apply_gradients([(gc.ones_like(w), w), (None, b)])
    with gc.Session() as session:
        session.run(gc.initialize_all_variables())
        session.run(train)
        assert session.run(w).tolist() == (W0 - 1).tolist()
        assert session.run(b).tolist() == B0.tolist()


def test_the_learning_rate_may_be_a_tensor() -> None:
    loss, (w, _) = model()
    rate = gc.placeholder(gc.float32, [], name="rate")
    train = gc.GradientDescentOptimizer(rate).minimize(loss, var_list=[w])
    with gc.Session() as session:
        session.run(gc.initialize_all_variables())
        session.run(train, {rate: 0.0})
        assert session.run(w).tolist() == W0.tolist()
        session.run(train, {rate: 0.5})
        np.testing.assert_allclose(session.run(w), W0 - 0.5 * gradients_by_hand(W0, B0)[0])


def test_slots_are_variables_beside_theirs_and_not_trainable() -> None:
    loss, (w, b) = model()
    optimizer = gc.AdamOptimizer()
    optimizer.minimize(loss)
    names = [variable.op.name for variable in gc.all_variables()]
    assert names == ["W", "b", "beta1_power", "beta2_power", "W/Adam", "W/Adam_1", "b/Adam", "b/Adam_1"]
    slot = optimizer.get_slot(w, "v")
    assert slot is not None
    assert slot.op.name == "W/Adam_1"
    assert optimizer.get_slot(w, "momentum") is None
    assert optimizer.get_slot_names() == ["m", "v"]
    assert [variable.op.name for variable in optimizer.variables()] == [
        *("W/Adam", "W/Adam_1", "b/Adam", "b/Adam_1", "beta1_power", "beta2_power")
    ]
    assert gc.trainable_variables() == [w, b]


def test_a_loss_that_depends_on_no_variable_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match=r"No variables to optimize\."):
        gc.GradientDescentOptimizer(0.1).minimize(gc.constant(1.0))
    gc.Variable(1.0, name="w")
    with pytest.raises(InvalidArgumentError, match="No gradients provided for any variable: 'w'"):
        gc.GradientDescentOptimizer(0.1).minimize(gc.constant(1.0))


def test_a_step_with_an_uninitialised_slot_leaves_the_variables_whole() -> None:
    loss, (w, b) = model()
    train = gc.AdamOptimizer().minimize(loss)
    with gc.Session() as session:
        session.run([w.initializer, b.initializer])
        with pytest.raises(FailedPreconditionError, match="uninitialized value"):
            session.run(train)
        assert session.run(w).tolist() == W0.tolist()
        assert session.run(b).tolist() == B0.tolist()


MADE: list[Callable[[], gc.Optimizer]] = [
    lambda: gc.GradientDescentOptimizer(0.1),
    lambda: gc.MomentumOptimizer(0.1, 0.9),
    lambda: gc.AdamOptimizer(0.1),
]


def quadratic() -> tuple[gc.Variable, gc.Tensor]:
    w = gc.Variable(np.ones(2, np.float32), name="w")
    return w, gc.reduce_sum(gc.square(w), name="loss")


@pytest.mark.parametrize("make", MADE)
def test_a_step_that_cannot_be_made_leaves_the_graph_and_the_optimizer_as_they_were(
    make: Callable[[], gc.Optimizer], graph: gc.Graph
) -> None:
    w, loss = quadratic()
    optimizer, again = make(), make()
    before = everything(graph)
    with pytest.raises(InvalidArgumentError, match="not a valid scope name"):
        optimizer.minimize(loss, name="no name")
    assert everything(graph) == before
    step = optimizer.minimize(loss)
    names = [node.name for node in graph.nodes]
    with gc.Session() as session:
        session.run(gc.initialize_all_variables())
        session.run(step)
        assert (session.run(w) < 1).all()
    with gc.Graph().as_default() as other:
        again.minimize(quadratic()[1])
        assert [node.name for node in other.nodes] == names


@pytest.mark.parametrize("make", MADE)
def test_one_optimizer_may_serve_several_graphs(make: Callable[[], gc.Optimizer]) -> None:
    optimizer = make()
    results = []
    for _ in range(2):
        with gc.Graph().as_default() as graph:
            w, loss = quadratic()
            step = optimizer.minimize(loss)
            session = gc.Session(graph=graph)
            session.run(gc.initialize_all_variables())
            session.run(step)
            session.run(step)
            results.append(session.run(w).tolist())
    assert results[0] == results[1]


@pytest.mark.parametrize("make", MADE)
def test_a_cell_that_runs_again_makes_its_slots_again_though_the_optimizer_is_of_another(
    make: Callable[[], gc.Optimizer], graph: gc.Graph
) -> None:
    cells = Cells(graph)
    made: dict[str, Any] = {}
    cells.run("model", lambda: made.update(zip(["w", "loss"], quadratic(), strict=True)))
    cells.run("optimizer", lambda: made.update(optimizer=make()))
    for _ in range(3):
        cells.run("step", lambda: made.update(step=made["optimizer"].minimize(made["loss"]), init=gc.initialize_all_variables()))
        assert not [node for node in graph.nodes if node.error or node.input_errors]
        session = gc.Session()
        session.run(made["init"])
        session.run(made["step"])
        assert (session.run(made["w"]) < 1).all()
        made.setdefault("names", [node.name for node in graph.nodes])
        assert [node.name for node in graph.nodes] == made["names"]


def test_a_single_variable_is_a_list_of_one_and_what_is_no_variable_is_refused() -> None:
    w, loss = quadratic()
    other = gc.Variable([1.0], name="other")
    assert [variable for _, variable in gc.AdamOptimizer().compute_gradients(loss, w)] == [w]
    session = gc.Session()
    session.run(gc.initialize_variables(w))
    assert session.run(gc.report_uninitialized_variables(w)).tolist() == []
    assert session.run(gc.report_uninitialized_variables([w, other])).tolist() == [b"other"]
    wrong: Any
    for wrong in ("w", ["w"], 5, loss, [w, loss]):
        for ask in (
            gc.initialize_variables,
            gc.report_uninitialized_variables,
            lambda given: gc.AdamOptimizer().minimize(loss, var_list=given),
        ):
            with pytest.raises(InvalidArgumentError, match="var_list: required variables, got "):
                ask(wrong)


def test_a_loss_and_a_global_step_of_another_kind_are_refused(graph: gc.Graph) -> None:
    w, loss = quadratic()
    optimizer: Any = gc.AdamOptimizer()
    before = everything(graph)
    wrong: Any
    for wrong in (5, "w", loss):
        with pytest.raises(InvalidArgumentError, match="global_step: required a variable, or None, got "):
            optimizer.minimize(loss, global_step=wrong)
    for wrong in (3.0, "loss", [loss], w.initializer):
        with pytest.raises(InvalidArgumentError, match="loss: required a tensor, got "):
            optimizer.minimize(wrong)
    assert everything(graph) == before


def test_an_optimizer_shows_what_it_is_called() -> None:
    assert repr(gc.AdamOptimizer(name="slow")) == "<gc.AdamOptimizer 'slow'>"


def test_an_optimizer_of_ones_own_defines_the_updates() -> None:
    class Sign(gc.Optimizer):
        def __init__(self, rate: float) -> None:
            super().__init__(False, "Sign")
            self._rate = rate

        def _prepare(self) -> None:
            self._rate_t = gc.convert_to_tensor(self._rate, gc.float64, name="rate")

        def _create_slots(self, var_list: list[gc.Variable]) -> None:
            for var in var_list:
                self._zeros_slot(var, "count", self._name)

        def _apply_dense(self, grad: gc.Tensor, var: gc.Variable) -> gc.Node:
            count = self.get_slot(var, "count")
            assert count is not None
            return gc.group(var.assign_sub(self._rate_t * gc.ops.sign(grad)), count.assign_add(gc.ones_like(grad)))

        def _resource_apply_dense(self, grad: gc.Tensor, handle: gc.Variable) -> gc.Node:
            return self._apply_dense(grad, handle)

    for use_resource in (False, True):
        w = gc.Variable([1.0, -2.0], dtype=gc.float64, use_resource=use_resource)
        optimizer = Sign(0.25)
        train = optimizer.minimize(gc.reduce_sum(gc.square(w)), var_list=[w])
        with gc.Session() as session:
            session.run(gc.initialize_all_variables())
            session.run(train)
            session.run(train)
            assert session.run([w, optimizer.get_slot(w, "count")])[0].tolist() == [0.5, -1.5]
            assert session.run(optimizer.get_slot(w, "count")).tolist() == [2.0, 2.0]


def test_an_optimizer_without_the_update_that_is_needed_is_refused() -> None:
    w = gc.Variable([1.0, -2.0], name="w")
    with pytest.raises(UnimplementedError, match="Optimizer defines no _apply_dense, which the update of 'w' requires"):
        gc.Optimizer(False, "Mine").minimize(gc.reduce_sum(w))


def test_wrong_arguments_of_optimizers_are_refused() -> None:
    loss, (w, _) = model()
    descent = gc.GradientDescentOptimizer(0.1)
    with pytest.raises(InvalidArgumentError, match=r"gate_gradients must be one of: .* Not 7"):
        descent.minimize(loss, gate_gradients=7)
    with pytest.raises(InvalidArgumentError, match="'whole:0' has the dtype int32, required one of"):
        descent.minimize(gc.cast(loss, gc.int32, name="whole"), var_list=[w])
    with pytest.raises(InvalidArgumentError, match=r"The gradient of 'W' must be double, got 'Const.*' of float"):
        descent.apply_gradients([(gc.constant([[1.0], [2.0]]), w)])
    with pytest.raises(InvalidArgumentError, match="The gradient of 'W' must be a tensor, IndexedSlices, or None, got 'no'"):
        descent.apply_gradients([("no", w)])  # type: ignore[list-item]  # wrong on purpose
    with pytest.raises(InvalidArgumentError, match=r"required a scalar for learning_rate, got shape \[2\]"):
        gc.GradientDescentOptimizer([0.1, 0.2]).minimize(loss)
    with pytest.raises(InvalidArgumentError, match="required a name, got ''"):
        gc.GradientDescentOptimizer(0.1, name="")
    with pytest.raises(InvalidArgumentError, match="initial_accumulator_value must be positive: 0"):
        AdagradOptimizer(0.1, 0)
    with pytest.raises(InvalidArgumentError, match=r"learning_rate_power 1\.0 needs to be negative or zero"):
        FtrlOptimizer(0.1, 1.0)


def test_a_gated_step_waits_for_all_gradients() -> None:
    loss, _ = model()
    found = gc.GradientDescentOptimizer(0.1).compute_gradients(loss, gate_gradients=gc.Optimizer.GATE_GRAPH)
    gates = [node for gradient, _ in found for node in gradient.node.control_inputs]
    assert len(set(gates)) == 1
    assert {node.name for node in gates[0].control_inputs} == {"gradients/W", "gradients/b"}
