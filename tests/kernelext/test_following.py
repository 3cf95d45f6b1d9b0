"""Running one cell again: derived nodes (gradients, steps, calls) follow, or report the reason."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.graph import get_default_graph
from tests.kernelext.conftest import NotebookShell

DATA = 'x = gc.placeholder(gc.float32, [None, 3], name="x")\nk = gc.constant([1.0, 2.0], name="k")'
WEIGHTS = 'W = gc.Variable(gc.constant([[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]]), name="W")'
MODEL = 'y = gc.softmax(gc.matmul(x, W, name="z"), name="y")'
LOSS = 'loss = gc.reduce_sum(gc.multiply(y, k), name="loss")'
GRADIENT = "gw, = gc.gradients(loss, [W])"
START = "init = gc.initialize_all_variables()"
FEED = np.linspace(-1.0, 1.0, 6, dtype=np.float32).reshape(2, 3)


def build(shell: NotebookShell, **cells: str) -> None:
    for name, code in cells.items():
        result = shell.run(code, name)
        assert result.success, result.error_in_exec


def value(shell: NotebookShell, what: str) -> Any:
    names = shell.user_ns
    session = gc.Session()
    session.run(names["init"])
    return session.run(names[what], {names["x"]: FEED})


def fresh(what: str, *cells: str) -> Any:
    names: dict[str, Any] = {"gc": gc}
    with gc.Graph().as_default() as graph:
        for code in cells:
            exec(code, names)
        session = gc.Session(graph)
        session.run(names["init"])
        return session.run(names[what], {names["x"]: FEED})


def test_a_gradient_follows_a_function_that_is_changed_in_an_earlier_cell(tracked: NotebookShell) -> None:
    build(tracked, data=DATA, weights=WEIGHTS, model=MODEL, loss=LOSS, gradient=GRADIENT, start=START)
    held = tracked.user_ns["gw"]
    changed = 'y = gc.sigmoid(gc.matmul(x, W, name="z"), name="y")'
    build(tracked, model=changed)
    np.testing.assert_allclose(value(tracked, "gw"), fresh("gw", DATA, WEIGHTS, changed, LOSS, GRADIENT, START), rtol=1e-6)
    assert held.node in get_default_graph(), "the handle that Python holds stays the gradient"
    assert not [node for node in get_default_graph().nodes if node.op == "SoftmaxGrad" or "Softmax_grad" in node.name]


def test_a_gradient_is_one_node_called_after_its_x(tracked: NotebookShell) -> None:
    build(tracked, data=DATA, weights=WEIGHTS, model=MODEL, loss=LOSS, gradient="gw, gx = gc.gradients(loss, [W, x])", start=START)
    assert [tracked.user_ns[name].name for name in ("gw", "gx")] == ["gradients/W:0", "gradients/x:0"]


def test_gradients_of_gradients_follow_in_their_order(tracked: NotebookShell) -> None:
    second = "hw, = gc.gradients(gc.reduce_sum(gw * gw), [W])"
    build(tracked, data=DATA, weights=WEIGHTS, model=MODEL, loss=LOSS, gradient=GRADIENT, second=second, start=START)
    changed = 'y = gc.tanh(gc.matmul(x, W, name="z"), name="y")'
    build(tracked, model=changed)
    np.testing.assert_allclose(value(tracked, "hw"), fresh("hw", DATA, WEIGHTS, changed, LOSS, GRADIENT, second, START), rtol=1e-5)


def test_a_gradient_that_would_be_none_now_refuses_to_run_until_it_is_one_again(tracked: NotebookShell) -> None:
    build(tracked, data=DATA, weights=WEIGHTS, model=MODEL, loss=LOSS, gradient=GRADIENT, start=START)
    before = value(tracked, "gw")
    build(tracked, model='y = gc.stop_gradient(gc.matmul(x, W, name="z"), name="y")')
    with pytest.raises(gc.errors.FailedPreconditionError, match="would be None now; run its cell again"):
        value(tracked, "gw")
    build(tracked, model=MODEL)
    np.testing.assert_array_equal(value(tracked, "gw"), before)


def test_a_gradient_that_was_none_and_would_exist_marks_the_call(tracked: NotebookShell) -> None:
    pair = "gw, gk = gc.gradients(loss, [W, k])"
    build(tracked, data=DATA, weights=WEIGHTS, model=MODEL, loss='loss = gc.reduce_sum(y, name="loss")', gradient=pair, start=START)
    assert tracked.user_ns["gk"] is None
    build(tracked, loss=LOSS)
    with pytest.raises(gc.errors.FailedPreconditionError, match="was None and would be a tensor now"):
        value(tracked, "gw")


def test_a_consumer_of_an_inner_node_that_is_gone_is_marked(tracked: NotebookShell) -> None:
    build(tracked, data=DATA, weights=WEIGHTS, model=MODEL, loss=LOSS, gradient=GRADIENT, start=START)
    graph = get_default_graph()
    inner = next(node.name for node in graph.nodes if node.name.startswith("gradients/y_grad/"))
    build(tracked, use=f'inner = gc.identity(gc.get_default_graph().get_tensor_by_name("{inner}:0"), name="inner")')
    build(tracked, model='y = gc.identity(gc.matmul(x, W, name="z"), name="y")')
    error = tracked.user_ns["inner"].node.error
    assert error is not None
    assert inner in str(error)


def test_a_broken_forward_node_marks_its_gradients_and_its_repair_mends_them(tracked: NotebookShell) -> None:
    build(tracked, data=DATA, weights=WEIGHTS, model=MODEL, loss=LOSS, gradient=GRADIENT, start=START)
    before = value(tracked, "gw")
    build(tracked, data=DATA.replace("[1.0, 2.0]", "[1.0, 2.0, 3.0]"))
    assert tracked.user_ns["gw"].node.error is not None
    with pytest.raises(gc.GraphError, match="could not follow a change"):
        value(tracked, "gw")
    build(tracked, data=DATA)
    np.testing.assert_array_equal(value(tracked, "gw"), before)


def test_a_training_step_and_the_initializers_take_up_a_variable_that_an_earlier_cell_adds(tracked: NotebookShell) -> None:
    step = "train = gc.MomentumOptimizer(0.1, 0.9).minimize(loss)"
    build(tracked, data=DATA, weights=WEIGHTS, model=MODEL, loss=LOSS, training=step, start=START)
    held = tracked.user_ns["train"]
    weights = f'{WEIGHTS}\nb = gc.Variable([0.5, -0.5], name="b")'
    model = 'y = gc.softmax(gc.add(gc.matmul(x, W, name="z"), b), name="y")'
    build(tracked, weights=weights)
    build(tracked, model=model)
    assert tracked.user_ns["train"] is held

    def trained(names: dict[str, Any], session: gc.Session) -> list[Any]:
        session.run(names["init"])
        for _ in range(3):
            session.run(names["train"], {names["x"]: FEED})
        return list(session.run([names["W"], names["b"]]))

    live = trained(tracked.user_ns, gc.Session())
    names: dict[str, Any] = {"gc": gc}
    with gc.Graph().as_default() as graph:
        for code in (DATA, weights, model, LOSS, step, START):
            exec(code, names)
        expected = trained(names, gc.Session(graph))
    for mine, theirs in zip(live, expected, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-6)


def test_slots_follow_the_shape_of_their_variable(tracked: NotebookShell) -> None:
    step = "train = gc.AdamOptimizer(0.1).minimize(loss)"
    build(tracked, data=DATA, weights=WEIGHTS, model=MODEL, loss="loss = gc.reduce_sum(y * y)", training=step, start=START)
    build(tracked, weights='W = gc.Variable(gc.zeros([3, 5]), name="W")')
    session = gc.Session()
    session.run(tracked.user_ns["init"])
    session.run(tracked.user_ns["train"], {tracked.user_ns["x"]: FEED})
    assert session.run("W/Adam:0").shape == (3, 5)


def test_a_step_does_not_take_up_variables_of_later_cells(tracked: NotebookShell) -> None:
    step = "train = gc.GradientDescentOptimizer(0.1).minimize(loss)"
    build(tracked, data=DATA, weights=WEIGHTS, model=MODEL, loss=LOSS, training=step, later='v = gc.Variable(1.0, name="v")')
    build(tracked, model='y = gc.sigmoid(gc.matmul(x, W, name="z"), name="y")')
    get_default_graph().settle()
    assert get_default_graph().find("GradientDescent/update_v") is None


FUNCTION = "@gc.function\ndef act(v):\n    return gc.tanh(v)"
CALL = 'y = gc.identity(act(gc.matmul(x, W, name="z")), name="y")'


def test_calls_run_a_function_as_its_cell_defines_it_now(tracked: NotebookShell) -> None:
    build(tracked, data=DATA, weights=WEIGHTS, function=FUNCTION, model=CALL, loss=LOSS, gradient=GRADIENT, start=START)
    changed = "@gc.function\ndef act(v):\n    return gc.sigmoid(v) * k"
    build(tracked, function=changed)
    for what in ("y", "gw"):
        expected = fresh(what, DATA, WEIGHTS, changed, CALL, LOSS, GRADIENT, START)
        np.testing.assert_allclose(value(tracked, what), expected, rtol=1e-6)
    assert get_default_graph().library.list_function_names().count("act") == 1
    assert "act_1" not in get_default_graph().library


def test_functions_that_call_it_and_branches_follow_too(tracked: NotebookShell) -> None:
    outer = "@gc.function\ndef outer(v):\n    return act(v) + 1.0"
    call = 'z = gc.matmul(x, W, name="z")\ny = gc.identity(gc.cond(gc.reduce_sum(x) < 1.0, lambda: outer(z), lambda: z), name="y")'
    build(tracked, data=DATA, weights=WEIGHTS, function=FUNCTION, outer=outer, model=call, loss=LOSS, gradient=GRADIENT, start=START)
    changed = FUNCTION.replace("tanh", "sigmoid")
    build(tracked, function=changed)
    for what in ("y", "gw"):
        expected = fresh(what, DATA, WEIGHTS, changed, outer, call, LOSS, GRADIENT, START)
        np.testing.assert_allclose(value(tracked, what), expected, rtol=1e-6)


def test_a_function_with_another_signature_marks_its_calls_and_names_both_cells(tracked: NotebookShell) -> None:
    build(tracked, data=DATA, weights=WEIGHTS, function=FUNCTION, model=CALL, start=START)
    made = str(tracked.user_ns["y"].node.source.cell)
    build(tracked, function="@gc.function\ndef act(v):\n    return v, v")
    defined = f"In [{tracked.execution_count - 1}]"
    with pytest.raises(
        gc.errors.FailedPreconditionError, match="another signature: it gave \\(float\\) and gives \\(float, float\\)"
    ) as raised:
        value(tracked, "y")
    assert made in str(raised.value)
    assert defined in str(raised.value)
    build(tracked, function=FUNCTION)
    assert value(tracked, "y").shape == (2, 2)


def test_branches_are_marked_when_a_function_in_them_uses_other_tensors(tracked: NotebookShell) -> None:
    call = 'z = gc.matmul(x, W, name="z")\ny = gc.identity(gc.cond(gc.reduce_sum(x) < 1.0, lambda: act(z), lambda: z), name="y")'
    build(tracked, data=DATA, weights=WEIGHTS, function=FUNCTION, model=call, start=START)
    before = value(tracked, "y")
    build(tracked, function="@gc.function\ndef act(v):\n    return v * k")
    with pytest.raises(gc.errors.FailedPreconditionError, match="run its cell again"):
        value(tracked, "y")
    build(tracked, function=FUNCTION)
    np.testing.assert_array_equal(value(tracked, "y"), before)


def test_what_a_failed_cell_did_not_make_again_refuses_to_run(tracked: NotebookShell) -> None:
    build(tracked, data=DATA, weights=WEIGHTS, model=MODEL, start=START)
    tracked.run("nothing", "model")
    with pytest.raises(gc.errors.FailedPreconditionError, match=r"cell In \[\d+\] failed before it made 'z' again"):
        value(tracked, "y")
    build(tracked, model=MODEL)
    assert value(tracked, "y").shape == (2, 2)


def test_a_sum_over_all_axes_follows_the_rank(tracked: NotebookShell) -> None:
    build(tracked, data=DATA, weights=WEIGHTS, model='y = gc.reduce_sum(gc.matmul(x, W), 1, name="y")', start=START)
    build(tracked, loss='loss = gc.reduce_sum(y, name="loss")')
    build(tracked, model='y = gc.matmul(x, W, name="y")')
    assert value(tracked, "loss").shape == ()


def test_a_node_that_a_cell_makes_under_the_name_of_a_call_is_not_taken_for_it(tracked: NotebookShell) -> None:
    build(tracked, data=DATA, weights=WEIGHTS, function=FUNCTION, model='y = act(gc.matmul(x, W, name="z"))', start=START)
    build(tracked, model='y = gc.identity(gc.matmul(x, W, name="z"), name="act")')
    plain = value(tracked, "y")
    build(tracked, function=FUNCTION.replace("tanh", "sigmoid"))
    np.testing.assert_array_equal(value(tracked, "y"), plain)


def test_a_gradient_follows_edits_of_the_graph_without_cells() -> None:
    with gc.Graph().as_default() as graph:
        x = gc.placeholder(gc.float32, [], name="x")
        y = gc.square(x, name="y")
        z = gc.multiply(y, y, name="z")
        (gx,) = gc.gradients(z, [x])
        session = gc.Session(graph)
        assert session.run(gx, {x: 2.0}) == pytest.approx(32.0)  # 4 x^3
        graph.update_edge(x.node, 0, z.node, 1)
        assert session.run(gx, {x: 2.0}) == pytest.approx(12.0)  # 3 x^2


def test_a_copy_and_a_file_hold_what_is_derived_anew() -> None:
    with gc.Graph().as_default() as graph:
        x = gc.placeholder(gc.float32, [], name="x")
        y = gc.square(x, name="y")
        z = gc.multiply(y, y, name="z")
        (gx,) = gc.gradients(z, [x])
        graph.update_edge(x.node, 0, z.node, 1)
        copied = graph.copy()
        assert gc.Session(copied).run(gx.name, {"x:0": 2.0}) == pytest.approx(12.0)


def test_a_gradient_in_a_copy_that_is_changed_refuses_to_run() -> None:
    with gc.Graph().as_default() as graph:
        x = gc.placeholder(gc.float32, [], name="x")
        z = gc.multiply(gc.square(x, name="y"), x, name="z")
        (gx,) = gc.gradients(z, [x])
        copied = graph.copy()
        session = gc.Session(copied)
        assert session.run(gx.name, {"x:0": 2.0}) == pytest.approx(12.0)
        copied.update_edge(copied.get_operation_by_name("y"), 0, copied.get_operation_by_name("z"), 1)
        with pytest.raises(gc.errors.FailedPreconditionError, match="a copied graph derives nothing anew"):
            session.run(gx.name, {"x:0": 2.0})
        assert gc.Session(graph).run(gx, {x: 2.0}) == pytest.approx(12.0)


def test_a_session_keeps_a_value_and_knows_that_its_initial_value_is_another_one(tracked: NotebookShell) -> None:
    build(tracked, start='k = gc.constant([1.0, 2.0], name="k")\nv = gc.Variable(k * 2.0, name="v")\ninit = gc.initialize_all_variables()')
    build(tracked, session="s = gc.Session()\ns.run(init)")
    session = tracked.user_ns["s"]
    assert session.variables_with_other_initial_values() == []
    build(tracked, start='k = gc.constant([5.0, 6.0], name="k")\nv = gc.Variable(k * 2.0, name="v")\ninit = gc.initialize_all_variables()')
    assert session.variables_with_other_initial_values() == ["v"]
    assert session.run(tracked.user_ns["v"]).tolist() == [2.0, 4.0]
    session.run(tracked.user_ns["init"])
    assert session.variables_with_other_initial_values() == []
    assert session.run(tracked.user_ns["v"]).tolist() == [10.0, 12.0]


def test_ctrl_c_while_a_graph_settles_leaves_nothing_out_of_date(monkeypatch: pytest.MonkeyPatch) -> None:
    with gc.Graph().as_default() as graph:
        x = gc.placeholder(gc.float32, [], name="x")
        y = gc.square(x, name="y")
        z = gc.multiply(y, y, name="z")
        (gx,) = gc.gradients(z, [x])
        session = gc.Session(graph)
        assert session.run(gx, {x: 2.0}) == pytest.approx(32.0)
        graph.update_edge(x.node, 0, z.node, 1)
        with monkeypatch.context() as patch:
            patch.setattr(type(graph), "name_scope", lambda *_: _press_ctrl_c())
            with pytest.raises(KeyboardInterrupt):
                session.run(gx, {x: 2.0})
        assert session.run(gx, {x: 2.0}) == pytest.approx(12.0)


def _press_ctrl_c() -> None:
    raise KeyboardInterrupt


def test_a_mistake_upstream_changes_nothing_of_a_sum_over_all_axes(tracked: NotebookShell) -> None:
    build(tracked, data=DATA, weights=WEIGHTS, model='y = gc.matmul(x, W, name="y")', loss='loss = gc.reduce_sum(y, name="loss")')
    before = [node.name for node in get_default_graph().nodes]
    build(tracked, weights='W = gc.Variable(gc.zeros([4, 2]), name="W")')
    assert tracked.user_ns["y"].node.error is not None
    assert "Rank" not in [node.op for node in get_default_graph().nodes]
    build(tracked, weights=WEIGHTS)
    assert sorted(before) == sorted(node.name for node in get_default_graph().nodes)


def test_a_cell_that_runs_again_finds_in_collections_what_a_fresh_kernel_does(tracked: NotebookShell) -> None:
    cell = (
        'before = gc.add_n([*gc.get_collection("terms"), gc.constant(0.5)])\n'
        'w = gc.Variable(2.0, name="{}")\ngc.add_to_collection("terms", w + 1.0)\n'
        "total = gc.add_n([variable + 0.0 for variable in gc.trainable_variables()])"
    )
    build(tracked, data=DATA, model=cell.format("w"), start=START)
    for name in ("w", "v"):
        build(tracked, model=cell.format(name), start=START)
        assert [value(tracked, what) for what in ("before", "total")] == [0.5, 2.0]


@pytest.mark.parametrize("kind", ["ps", "mirrored"])
def test_replicas_that_are_built_again_add_up_their_own_variables(tracked: NotebookShell, kind: str) -> None:
    step = (
        "def step(x):\n    kernel = gc.get_variable('{}', [3, 1], initializer=gc.ones_initializer())\n"
        "    return gc.reduce_mean(gc.matmul(x, kernel)) + gc.add_n([gc.reduce_sum(v) for v in gc.trainable_variables()])\n"
        f"loss = gc.train.replicate(step, ['/cpu:0'] * 2, optimizer=gc.AdamOptimizer(), inputs=[x], variables='{kind}').loss"
    )
    weights = "W = gc.Variable(gc.ones([{}]), name='W')"
    build(tracked, data=DATA, weights=weights.format(2), model=step.format("w"), start=START)
    for size, name in ((2, "v"), (5, "v")):
        build(tracked, model=step.format(name), weights=weights.format(size))
        assert value(tracked, "loss") == fresh("loss", DATA, weights.format(size), step.format(name), START)
