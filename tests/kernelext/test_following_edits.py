"""After any edit of a cell, fetches give the values of a fresh kernel, or an error."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import graphcore as gc
from graphcore.graph import live_graphs, reset_default_graph
from kernelext.cells import CellTracker
from kernelext.guard import Guard
from tests.kernelext.conftest import NotebookShell, notebook_shell

THIRDS: Final = "gc.constant_initializer(0.3)"
REPLICATED: Final = (
    f"def share(v):\n    return gc.reduce_mean(gc.layers.dense(gc.tanh(gc.matmul(v, W) + b), 2, gc.tanh, kernel_initializer={THIRDS}))\n"
    "train = gc.train.replicate(share, ['/cpu:0', '/cpu:0'], optimizer=gc.AdamOptimizer(0.1), inputs=[x]"
)
CELLS: Final[dict[str, tuple[str, ...]]] = {
    "inputs": (
        'x = gc.placeholder(gc.float32, [None, 3], name="x")\nk = gc.constant([1.0, 2.0], name="k")',
        'x = gc.placeholder(gc.float32, [2, 3], name="x")\nk = gc.constant([0.5, -1.0], name="k")',
        'x = gc.placeholder(gc.float32, [None, 3], name="x")\nk = gc.constant([[1.5], [0.5]], name="k")',
        'x = gc.placeholder(gc.float32, [None, 3], name="x")\nk = gc.constant(3.0, name="k")',
    ),
    "variables": (
        'W = gc.Variable(gc.ops.fill([3, 2], 0.3), name="W")\nb = gc.Variable([0.1, 0.2], name="b")',
        'W = gc.Variable(gc.ops.fill([3, 2], -0.2), name="W")\nb = gc.Variable([0.1, 0.2], name="b")',
        'W = gc.Variable(gc.ops.fill([3, 2], 0.3), name="W")\nb = gc.Variable([[0.1, 0.2]], name="b")',
        'W = gc.Variable(gc.ops.fill([3, 2], 0.3), name="W")\nb = gc.Variable([0.1, 0.2], name="b", trainable=False)',
        'W = gc.Variable(gc.ops.fill([3, 2], 0.3), name="W")\nb = gc.Variable([0.1, 0.2], name="b")\nc = gc.Variable(2.0, name="c")',
        'W = gc.Variable(gc.ops.fill([3, 4], 0.3), name="W")\nb = gc.Variable([0.1, 0.2, 0.3, 0.4], name="b")',
    ),
    "function": (
        "@gc.function\ndef act(v):\n    return gc.tanh(v)",
        "@gc.function\ndef act(v):\n    return gc.sigmoid(v) * 2.0",
        "@gc.function\ndef act(v):\n    return v * b",
        "@gc.function\ndef act(v):\n    return gc.stop_gradient(v)",
        "@gc.function\ndef act(v):\n    return gc.tanh(v), v",
        "@gc.function\ndef act(v, u):\n    return gc.tanh(v) * u",
    ),
    "outer": (
        "@gc.function\ndef outer(v):\n    return act(v) + 1.0",
        "@gc.function\ndef outer(v):\n    return gc.square(v)",
    ),
    "hidden": (
        'h = gc.add(gc.matmul(x, W), b, name="h")',
        'h = gc.multiply(gc.matmul(x, W), b, name="h")',
        'h = gc.subtract(b, gc.matmul(x, W), name="h")',
        'h = gc.multiply(gc.matmul(x, W), k, name="h")',
        'h = gc.matmul(x, W, name="h")',
        'h = gc.cast(gc.matmul(x, W), gc.float64, name="h")',
        'h = gc.reduce_sum(gc.matmul(x, W), 1, name="h")',
    ),
    "activation": (
        'y = gc.softmax(h, name="y")',
        'y = gc.sigmoid(h, name="y")',
        'y = gc.identity(act(h), name="y")',
        'y = gc.identity(outer(h), name="y")',
        'y = gc.stop_gradient(h, name="y")',
        'y = gc.identity(gc.cond(gc.reduce_sum(h) > 0.5, lambda: act(h), lambda: h * k), name="y")',
        'y = gc.identity(gc.while_loop(lambda i, s: i < 3, lambda i, s: (i + 1, s * gc.tanh(s)), (0, h))[1], name="y")',
        'y = gc.pow(h, 2.0, name="y")',
        f'y = gc.identity(gc.layers.dense(h, 2, gc.tanh, kernel_initializer={THIRDS}), name="y")',
        f'y = gc.identity(gc.layers.batch_normalization(gc.layers.dense(h, 2, kernel_initializer={THIRDS}), training=True), name="y")',
    ),
    "loss": (
        'loss = gc.reduce_sum(gc.square(y), name="loss")',
        'loss = gc.reduce_mean(gc.square(y), name="loss")',
        'loss = gc.reduce_sum(gc.multiply(y, k), name="loss")',
    ),
    "gradients": (
        "gw, gb = gc.gradients(loss, [W, b])",
        "gw, gb = gc.gradients(loss, [W, h])",
        "gw, gb = gc.gradients([loss, y], [W, k])",
    ),
    "second": (
        "hw = gc.gradients(gc.reduce_sum(gw * gw), [W])[0]",
        "hw = gc.gradients(gw, [W])[0]",
    ),
    "training": (
        "train = gc.GradientDescentOptimizer(0.1).minimize(loss)",
        "train = gc.AdamOptimizer(0.1).minimize(loss)",
        "train = gc.train.FtrlOptimizer(gc.train.exponential_decay(0.1, 3, 2, 0.5)).minimize(loss)",
        "train = gc.train.ExponentialMovingAverage(0.9).apply()",
        "train = gc.MomentumOptimizer(0.1, 0.9).minimize(loss, var_list=[W])",
        "train = gc.GradientDescentOptimizer(0.1).apply_gradients([(gw * 2.0, W)])",
        f"{REPLICATED}, reduce='ring').train_op",
        f"{REPLICATED}, variables='mirrored').train_op",
    ),
    "start": ("init = gc.initialize_all_variables()",),
}
FETCHES: Final = ("h", "y", "loss", "gw", "gb", "hw")
FEED: Final = np.linspace(-1.0, 1.0, 6, dtype=np.float32).reshape(2, 3)

programs = st.fixed_dictionaries({name: st.integers(0, len(versions) - 1) for name, versions in CELLS.items()})
edits = st.lists(
    st.sampled_from(sorted(CELLS)).flatmap(lambda name: st.tuples(st.just(name), st.integers(0, len(CELLS[name]) - 1))),
    min_size=1,
    max_size=4,
)
FIRST: Final = dict.fromkeys(CELLS, 0)


@contextmanager
def notebook() -> Iterator[NotebookShell]:
    """A shell with cell ownership."""
    with notebook_shell() as shell:
        tracker = CellTracker(shell, live_graphs, lambda _run, _failed: None, Guard())
        tracker.start()
        shell.catch(Exception, _say_nothing)
        try:
            shell.run("import graphcore as gc", "import")
            yield shell
        finally:
            tracker.stop()
    reset_default_graph()


def _say_nothing(*_args: object, **_named: object) -> None:
    """Suppress failures, which are expected in generated programs."""


def results(namespace: dict[str, Any]) -> dict[str, Any]:
    """The value of each fetch in a new session, or its error."""
    found: dict[str, Any] = {}
    for name in FETCHES:
        found[name] = fetched(namespace, name)
    found["trained"] = trained(namespace)
    return found


def fetched(namespace: dict[str, Any], name: str) -> Any:
    if name not in namespace or namespace[name] is None:
        return NameError(name)
    session = gc.Session(namespace[name].graph)
    try:
        session.run(namespace["init"])
        return session.run(namespace[name], {namespace["x"]: FEED})
    except (gc.GraphError, KeyError) as error:
        return error


def trained(namespace: dict[str, Any]) -> Any:
    if "train" not in namespace:
        return NameError("train")
    session = gc.Session(namespace["train"].graph)
    try:
        session.run(namespace["init"])
        for _ in range(2):
            session.run(namespace["train"], {namespace["x"]: FEED})
        return {name: session.run(namespace[name]) for name in ("W", "b")}
    except (gc.GraphError, KeyError) as error:
        return error


def fresh_results(program: dict[str, int]) -> dict[str, Any]:
    """The same in a fresh kernel that runs all cells; names of failing cells stay undefined."""
    namespace: dict[str, Any] = {"gc": gc}
    with gc.Graph().as_default():
        for name, version in program.items():
            try:
                exec(CELLS[name][version], namespace)
            except Exception as error:  # noqa: BLE001 - a cell of a generated program may be wrong in any way
                namespace.setdefault("errors", []).append(error)
        return results(namespace)


def assert_no_other_number(live: dict[str, Any], fresh: dict[str, Any]) -> int:
    """Compare, and count the fetches that gave numbers."""
    numbers = 0
    for name, value in live.items():
        if isinstance(value, Exception):
            continue
        numbers += 1
        assert not isinstance(fresh[name], Exception), f"{name}: {value!r}, and a fresh kernel refuses it: {fresh[name]}"
        for mine, theirs in zip(_leaves(value), _leaves(fresh[name]), strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-6, err_msg=name)
    return numbers


def _leaves(value: Any) -> list[Any]:
    return list(value.values()) if isinstance(value, dict) else [value]


@pytest.mark.slow
@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(programs, edits)
@example(FIRST, [("activation", 1)])
@example({**FIRST, "activation": 2}, [("function", 1)])
@example({**FIRST, "activation": 5}, [("function", 2), ("function", 1)])
@example({**FIRST, "activation": 3, "training": 1}, [("function", 1), ("variables", 5), ("variables", 4)])
@example({**FIRST, "training": 6}, [("variables", 1), ("variables", 5), ("inputs", 1), ("training", 7), ("training", 7)])
@example({**FIRST, "training": 7}, [("inputs", 1), ("variables", 4), ("training", 6), ("variables", 2), ("variables", 3)])
@example({**FIRST, "activation": 8}, [("variables", 5), ("inputs", 1), ("hidden", 4)])
def test_a_fetch_after_edits_gives_what_a_fresh_kernel_gives_or_an_error(program: dict[str, int], changes: list[tuple[str, int]]) -> None:
    program = {name: program[name] for name in CELLS}
    with notebook() as shell:
        for name, version in program.items():
            shell.run(CELLS[name][version], name)
        assert_no_other_number(results(shell.user_ns), fresh_results(program))
        for name, version in changes:
            program[name] = version
            shell.run(CELLS[name][version], name)
            assert_no_other_number(results(shell.user_ns), fresh_results(program))


@pytest.mark.parametrize("training", range(4))
def test_training_goes_on_when_a_variable_that_the_loss_does_not_use_is_gone(training: int) -> None:
    program = {**FIRST, "variables": 4, "training": (0, 1, 6, 7)[training]}
    with notebook() as shell:
        for name, version in program.items():
            shell.run(CELLS[name][version], name)
        assert shell.user_ns["c"].op in shell.user_ns["x"].graph
        shell.run(CELLS["variables"][2], "variables")
        assert assert_no_other_number(results(shell.user_ns), fresh_results({**program, "variables": 2})) == len(FETCHES) + 1


@pytest.mark.parametrize("training", range(1, 8))
def test_a_training_step_whose_cell_fails_before_it_is_made_again_refuses_to_run(training: int) -> None:
    with notebook() as shell:
        for name, version in {**FIRST, "training": training}.items():
            shell.run(CELLS[name][version], name)
        assert not isinstance(results(shell.user_ns)["trained"], Exception)
        shell.run("raise ValueError", "training")
        assert "failed before it made" in str(results(shell.user_ns)["trained"])
