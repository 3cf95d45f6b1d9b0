"""`gc.Variable(use_resource=True)`: the same interface on another kind of storage."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.errors import FailedPreconditionError, InvalidArgumentError, UnimplementedError
from tests.graphcore.tf1.variables.test_optimizers import B0, OPTIMIZERS, W0, Array, X, Y

KINDS = pytest.mark.parametrize("use_resource", [False, True], ids=["reference", "resource"])


@pytest.fixture(autouse=True)
def graph() -> Iterator[gc.Graph]:
    with gc.Graph().as_default() as graph:
        yield graph


def test_a_resource_variable_is_a_handle_its_initializer_a_read_and_a_constant(graph: gc.Graph) -> None:
    w = gc.Variable([1.0, 2.0], name="w", use_resource=True)
    nodes = {node.name: (node.op, list(node.node_def.input)) for node in graph.op_nodes()}
    assert nodes == {
        "w/Initializer/initial_value": ("Const", []),
        "w": ("VarHandleOp", []),
        "w/Assign": ("AssignVariableOp", ["w", "w/Initializer/initial_value"]),
        "w/Read/ReadVariableOp": ("ReadVariableOp", ["w"]),
    }
    assert w.op.get_attr("shared_name") == b"w"
    assert (w.name, w.dtype, w.shape, w.handle.dtype, w.is_resource) == ("w:0", gc.float32, gc.Shape([2]), gc.resource, True)


def test_a_resource_variable_has_no_truth_value_and_a_reference_variable_is_true(graph: gc.Graph) -> None:
    assert bool(gc.Variable(0.0, name="reference"))
    w = gc.Variable(1.0, name="w", use_resource=True)
    before = len(graph)
    with pytest.raises(
        InvalidArgumentError, match="The tensor 'w:0' has no value until a Session runs it, so `if` and `and` cannot use it"
    ):
        bool(w)
    assert len(graph) == before


@KINDS
def test_all_of_the_interface_is_there_for_both_kinds(use_resource: bool) -> None:
    w = gc.Variable(np.zeros((3, 2), np.float32), name="w", use_resource=use_resource)
    with gc.Session() as session:
        with pytest.raises(FailedPreconditionError, match="uninitialized value w") as caught:
            session.run(w)
        assert (caught.value.node, caught.value.op) == ("w", "VarHandleOp" if use_resource else "VariableV2")
        assert session.run(gc.report_uninitialized_variables()).tolist() == [b"w"]
        assert not session.run(gc.is_variable_initialized(w))
        session.run(gc.initialize_all_variables())
        assert session.run(gc.report_uninitialized_variables()).tolist() == []
        assert session.run(w.assign([[1.0, 1.0]] * 3)).tolist() == [[1, 1]] * 3
        assert session.run(w.assign_add([[1.0, 1.0]] * 3)).tolist() == [[2, 2]] * 3
        assert session.run(w.assign_sub([[0.5, 0.5]] * 3)).tolist() == [[1.5, 1.5]] * 3
        assert session.run(w.scatter_update([0], [[9.0, 9.0]])).tolist() == [[9, 9], [1.5, 1.5], [1.5, 1.5]]
        assert session.run(w.scatter_add([1, 1], [[1.0, 0.0], [1.0, 0.0]])).tolist() == [[9, 9], [3.5, 1.5], [1.5, 1.5]]
        assert session.run(w.scatter_sub([2], [[0.5, 1.0]])).tolist() == [[9, 9], [3.5, 1.5], [1, 0.5]]
        assert w.eval().tolist() == session.run("w:0" if not use_resource else "w/Read/ReadVariableOp:0").tolist()
        assert session.run([w + 1.0, w.value(), w.read_value(), -w])[0].tolist() == [[10, 10], [4.5, 2.5], [2, 1.5]]
        assert session.run(w * 2.0, {w: np.ones((3, 2))}).tolist() == [[2, 2]] * 3
        session.reset()
        with pytest.raises(FailedPreconditionError, match="uninitialized value w"):
            session.run(w)


@KINDS
def test_an_initial_value_that_does_not_fit_names_the_variable_and_its_op(use_resource: bool) -> None:
    x = gc.placeholder(gc.float32, [None], name="x")
    for wrong, dtype in ((x, None), (gc.constant(1), gc.float32)):
        with pytest.raises(InvalidArgumentError) as caught:
            gc.Variable(wrong, name="w", dtype=dtype, use_resource=use_resource)
        assert caught.value.op == ("VarHandleOp" if use_resource else "VariableV2")
        assert str(caught.value.node).startswith("w")


@KINDS
def test_collections_containers_and_shared_names(graph: gc.Graph, use_resource: bool) -> None:
    a = gc.Variable(1.0, name="a", shared_name="s", use_resource=use_resource)
    b = gc.Variable(2.0, name="b", shared_name="s", trainable=False, collections=["mine"], use_resource=use_resource)
    c = gc.Variable(3.0, name="c", shared_name="s", container="other", use_resource=use_resource)
    assert (gc.all_variables(), gc.trainable_variables(), graph.get_collection("mine")) == ([a, c], [a, c], [b])
    with gc.Session() as session:
        session.run([a.initializer, c.initializer])
        assert session.run([a, b, c]) == [1.0, 1.0, 3.0]
        session.run(b.assign_add(1.0))
        assert session.run([a, b, c]) == [2.0, 2.0, 3.0]


def test_references_and_resources_of_one_graph_are_saved_and_restored_together(tmp_path: Path) -> None:
    a = gc.Variable([1.0, 2.0], name="a", use_resource=True)
    b = gc.Variable([3, 4], name="b")
    with gc.Session() as session:
        session.run(gc.initialize_all_variables())
        gc.save_variables(session, tmp_path / "v.npz")
        session.run([a.assign([0.0, 0.0]), b.assign([0, 0])])
        gc.restore_variables(session, tmp_path / "v.npz")
        assert [value.tolist() for value in session.run([a, b])] == [[1, 2], [3, 4]]


def test_a_value_under_control_dependencies_is_the_one_after_them() -> None:
    w = gc.Variable(1.0, name="w", use_resource=True)
    changed = w.assign(5.0)
    with gc.control_dependencies([changed]):
        after = w + 1.0
    with gc.Session() as session:
        session.run(w.initializer)
        assert session.run(after) == 6.0


@pytest.mark.parametrize("engine", ["auto", "dataflow"])
def test_a_branch_changes_a_resource_only_where_it_is_taken(engine: str) -> None:
    w = gc.Variable(1.0, name="w", use_resource=True)
    p = gc.placeholder(gc.bool_, [])
    y = gc.cond(p, lambda: w.assign_add(1.0) * 10.0, lambda: w * 100.0)
    with gc.Session(engine=engine) as session:
        session.run(w.initializer)
        assert [session.run(y, {p: flag}) for flag in (False, True, False, True)] == [100.0, 20.0, 200.0, 30.0]
        assert session.run(w) == 3.0


@pytest.mark.parametrize("engine", ["auto", "dataflow"])
def test_a_loop_changes_a_resource_in_every_turn_and_reads_it_after_that(engine: str) -> None:
    w = gc.Variable(1.0, name="w", use_resource=True)
    n = gc.placeholder(gc.int32, [])

    def body(i: gc.Tensor, total: gc.Tensor) -> tuple[gc.Tensor, gc.Tensor]:
        with gc.control_dependencies([w.assign_add(2.0)]):
            return i + 1, total + w

    total = gc.while_loop(lambda i, _: i < n, body, [gc.constant(0), gc.constant(0.0)])[1]
    with gc.Session(engine=engine) as session:
        session.run(w.initializer)
        assert session.run(total, {n: 3}) == 3.0 + 5.0 + 7.0
        assert session.run(w) == 7.0


def test_a_gradient_that_would_have_to_come_back_through_a_handle_is_refused() -> None:
    w = gc.Variable(3.0, name="w", use_resource=True)
    other = gc.Variable(3.0, name="other", use_resource=True)

    def counted() -> gc.Tensor:
        with gc.control_dependencies([w.assign_add(1.0)]):
            return other * 2.0 + w

    y = gc.cond(gc.constant(True), counted, lambda: other * 1.0, name="chosen")
    with pytest.raises(UnimplementedError, match=r"'chosen' .* reads variable 'w' within a function") as caught:
        gc.gradients(y, w)
    assert caught.value.node == "chosen"
    changed = gc.cond(gc.constant(True), lambda: _changes(w, 5.0), lambda: gc.constant(1.0))
    gradient = gc.gradients(changed + w * w, w)[0]
    with gc.Session() as session:
        session.run(w.initializer)
        assert session.run(gradient) == 6.0


def _changes(w: gc.Variable, value: float) -> gc.Tensor:
    """A constant with a control input from a change of `w`."""
    with gc.control_dependencies([w.change("assign_add", 1.0)]):
        return gc.identity(gc.constant(value))


@KINDS
def test_the_gradient_of_a_variable_goes_through_branches_and_loops(use_resource: bool) -> None:
    w = gc.Variable(3.0, name="w", use_resource=use_resource)
    p = gc.placeholder(gc.bool_, [])
    y = gc.cond(p, lambda: w * 2.0, lambda: w * w)
    z = gc.while_loop(lambda i, _: i < 3, lambda i, a: (i + 1, a * w), [gc.constant(0), gc.constant(1.0)])[1]
    with gc.Session() as session:
        session.run(w.initializer)
        gradient = gc.gradients(y, w)[0]
        assert [session.run(gradient, {p: flag}) for flag in (True, False)] == [2.0, 6.0]
        assert session.run(gc.gradients(z, w)[0]) == 27.0


@KINDS
def test_the_gradient_of_a_variable_is_that_of_all_its_reads(use_resource: bool) -> None:
    w = gc.Variable([2.0, 3.0], name="w", use_resource=use_resource)
    x = gc.constant(2.0)
    y = gc.reduce_sum(w * w.read_value() + w) * x
    found = gc.gradients(y, [w, x, gc.Variable(1.0, use_resource=use_resource)])
    assert found[2] is None
    with gc.Session() as session:
        session.run(w.initializer)
        assert [np.asarray(value).tolist() for value in session.run(found[:2])] == [[10, 14], 18]
        assert "ReadVariableOp" in str(gc.explain_gradient(y, w)) or not use_resource


def several_reads(graph: gc.Graph) -> tuple[gc.Tensor, gc.Variable]:
    """A value that uses a variable in three places and, behind stop_gradient, in a fourth."""
    w = gc.Variable(np.arange(6, dtype=np.float32).reshape(3, 2), name="w", use_resource=True)
    again = graph.apply_op("ReadVariableOp", [w.handle], {"dtype": gc.float32}, name="again").outputs[0]
    graph.apply_op("ReadVariableOp", [w.handle], {"dtype": gc.float32}, name="unused")
    rows = graph.apply_op("ResourceGather", [w.handle, gc.constant([0, 2, 0])], {"dtype": gc.float32}, name="rows").outputs[0]
    parts = [gc.square(w, name="squared") * again, rows * rows, gc.stop_gradient(again, name="stop")]
    return gc.add_n([gc.reduce_sum(part) for part in parts], name="y"), w


def test_all_reads_of_a_resource_are_explained_in_order_with_their_sum(graph: gc.Graph) -> None:
    y, w = several_reads(graph)
    before = [node.node_def for node in graph.nodes]
    told = gc.explain_gradient(y, w)
    assert [node.node_def for node in graph.nodes] == before
    assert (told.x, told.built, told.path_count) == ("w:0", False, 4)
    assert [part.node for part in told.sums[-1].parts] == ["w/Read/ReadVariableOp", "again", "rows"]
    assert told.sums[-1].tensor == "w:0"
    assert [(cut.kind, cut.node) for cut in told.cuts] == [("stop_gradient", "stop")]
    steps = {step.node: step for step in told.steps}
    assert {"y", "squared", "rows"} <= set(steps)
    assert "rows" in steps["rows"].backward[-1].name, "the gradient of rows becomes one of the variable"
    (gradient,) = gc.gradients(y, [w])
    assert gradient.name == told.gradient
    after = gc.explain_gradient(y, w)
    assert (after.gradient, after.built) == (gradient.name, True)
    (total,) = gradient.node.inputs
    assert after.sums[-1].gradient == told.sums[-1].gradient == total.name
    assert [part.gradient for part in after.sums[-1].parts[:2]] == [tensor.name for tensor in total.node.inputs[:2]]
    places = {step.node: place for place, step in enumerate(after.steps)}
    for name, place in places.items():
        assert all(places.get(tensor.node.name, place + 1) > place for tensor in graph.get_operation_by_name(name).inputs)


def test_what_one_read_of_a_resource_is_cut_from_another_may_still_reach(graph: gc.Graph) -> None:
    y, w = several_reads(graph)
    stopped = gc.explain_gradient(y, w, stop_gradients=[graph.get_tensor_by_name("squared:0"), graph.get_tensor_by_name("rows:0")])
    assert [part.node for part in stopped.sums[-1].parts] == ["again", "rows"]
    assert ("stop_gradients", "squared") in [(cut.kind, cut.node) for cut in stopped.cuts]
    whole = gc.explain_gradient(y, w, stop_gradients=[y])
    assert whole.is_none
    assert gc.gradients(y, [w], stop_gradients=[y]) == [None]


def test_a_resource_that_a_function_reads_is_explained_by_the_refusal(graph: gc.Graph) -> None:
    w = gc.Variable([1.0, 2.0], name="w", use_resource=True)
    text = "Read(h:resource) -> (y:float) {\n  r = ReadVariableOp[dtype=float](h)\n  y = Square[T=float](r:value:0)\n  return y = y:y:0\n}"
    graph.library.add_function_def(gc.parse_function(text))
    y = gc.reduce_sum(graph.apply_op("Read", [w.handle]).outputs[0]) + gc.reduce_sum(w)
    with pytest.raises(UnimplementedError) as caught:
        gc.gradients(y, [w])
    assert gc.explain_gradient(y, w).error == caught.value.message


def test_rows_that_are_gathered_from_a_resource_have_a_gradient() -> None:
    w = gc.Variable(np.arange(6, dtype=np.float32).reshape(3, 2), name="w", use_resource=True)
    rows = gc.ops.gather_v2(w, [2, 0, 2], 0)
    gradient = gc.gradients(gc.reduce_sum(rows * [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), w)[0]
    with gc.Session() as session:
        session.run(w.initializer)
        assert session.run(gc.convert_to_tensor(gradient)).tolist() == [[3, 4], [0, 0], [6, 8]]


@pytest.mark.parametrize("simplify", [True, False], ids=["simplified", "plain"])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_a_gather_from_a_handle_has_a_gradient_of_the_shape_of_the_variable(dtype: Any, simplify: bool) -> None:
    w = gc.Variable(np.arange(6, dtype=np.float32).reshape(3, 2), name="w", use_resource=True)
    indices = np.array([[2, 0], [2, 2]], dtype)
    rows = gc.get_default_graph().apply_op("ResourceGather", [w.handle, indices], {"dtype": gc.float32}).outputs[0]
    weights = np.arange(8, dtype=np.float32).reshape(2, 2, 2)
    y = gc.reduce_sum(rows * weights) + gc.reduce_sum(w * w)
    (gradient,) = gc.gradients(y, w, simplify=simplify)
    assert gradient.shape == gc.Shape([3, 2])
    with gc.Session() as session:
        session.run(w.initializer)
        assert session.run(gc.convert_to_tensor(gradient)).tolist() == [[0 + 2, 2 + 3], [4, 6], [8 + 0 + 4 + 6, 10 + 1 + 5 + 7]]
    alone = gc.gradients(gc.reduce_sum(rows * rows), w)[0]
    assert alone.shape == gc.Shape([3, 2])
    by_variable, by_rows = gc.gradients(gc.reduce_sum(rows * rows), [w, rows])
    assert (by_variable.shape, by_rows.shape) == (gc.Shape([3, 2]), rows.shape)
    assert "ResourceGather" in str(gc.explain_gradient(rows, w)), "it is explained by what is read of it there"
    (twice,) = gc.gradients(gc.reduce_sum(gc.square(alone)), w)
    with gc.Session() as session:
        session.run(w.initializer)
        np.testing.assert_array_equal(session.run(gc.convert_to_tensor(twice)), [[0, 8], [0, 0], [288, 360]])


def test_a_gradient_through_a_handle_that_enters_a_loop_is_refused(graph: gc.Graph) -> None:
    w = gc.Variable(3.0, name="w", use_resource=True)
    entered = graph.apply_op("Enter", [w.handle], {"frame_name": "loop", "is_constant": True}, "entered").outputs[0]
    y = graph.apply_op("Exit", [graph.apply_op("ReadVariableOp", [entered], {"dtype": gc.float32}).outputs[0]]).outputs[0]
    with pytest.raises(UnimplementedError, match=r"'entered' .* hands the handle of variable 'w' on"):
        gc.gradients(y * w, w)


def test_an_assignment_of_another_shape_is_refused_and_changes_nothing() -> None:
    w = gc.Variable([1.0, 2.0], name="w", use_resource=True)
    with pytest.raises(InvalidArgumentError, match="Dimension 0 in both shapes must be equal"):
        w.assign([1.0, 2.0, 3.0])
    x = gc.placeholder(gc.float32, None, name="x")
    add = w.assign_add(x)
    with gc.Session() as session:
        session.run(w.initializer)
        with pytest.raises(InvalidArgumentError, match="shapes must be equal"):
            session.run(add, {x: [1.0, 2.0, 3.0]})
        assert session.run(w).tolist() == [1, 2]


@pytest.mark.parametrize(("make", "by_hand"), OPTIMIZERS)
def test_twenty_steps_on_resources_give_what_numpy_gives(
    make: Callable[[], gc.Optimizer], by_hand: Callable[[list[Array], dict[str, Any]], list[Array]]
) -> None:
    w, b = gc.Variable(W0, name="W", use_resource=True), gc.Variable(B0, name="b", use_resource=True)
    step = gc.Variable(0, trainable=False, name="step", use_resource=True)
    loss = gc.reduce_sum(gc.square(gc.constant(X) @ w + b - Y)) / 3.0
    optimizer = make()
    train = optimizer.minimize(loss, global_step=step, name="train")
    assert train.name == "train"
    assert {variable.is_resource for variable in gc.all_variables()} == {True}
    updates = {node.op for node in w.graph.op_nodes() if node.name.startswith("train/update_")}
    assert len(updates) == 1
    assert next(iter(updates)).startswith("ResourceApply")
    values, state = [W0, B0], dict[str, Any]()
    for engine in ("auto", "dataflow"):
        values, state = [W0, B0], {}
        with gc.Session(engine=engine) as session:
            session.run(gc.initialize_all_variables())
            for _ in range(20):
                session.run(train)
                values = by_hand(values, state)
                for value, expected in zip(session.run([w, b]), values, strict=True):
                    np.testing.assert_allclose(value, expected, rtol=1e-10)
            assert session.run(step) == 20


@pytest.mark.parametrize("engine", ["plan", "dataflow"])
@pytest.mark.parametrize("use_resource", [False, True])
def test_values_that_change_a_variable_take_its_type(use_resource: bool, engine: str) -> None:
    with gc.Graph().as_default():
        w = gc.Variable(np.zeros((2, 2), np.float32), name="w", use_resource=use_resource)
        session = gc.Session(engine=engine)
        session.run(w.initializer)
        changes = [
            (w.assign([[1, 2], [3, 4]]), [[1, 2], [3, 4]]),
            (w.assign_add([[1, 1], [1, 1]]), [[2, 3], [4, 5]]),
            (w.assign_sub([[2, 3], [4, 0]]), [[0, 0], [0, 5]]),
            (w.scatter_update([0], [[7, 7]]), [[7, 7], [0, 5]]),
            (w.scatter_add([1], [[1, 1]]), [[7, 7], [1, 6]]),
            (w.scatter_sub([1], [[1, 1]]), [[7, 7], [0, 5]]),
        ]
        for change, wanted in changes:
            value = session.run(change)
            assert (value.dtype, value.tolist()) == (np.float32, wanted)
        for method in (w.assign, w.assign_add, w.assign_sub):
            with pytest.raises(InvalidArgumentError, match=r"float|DT_FLOAT vs\. DT_INT32"):
                method(gc.constant([[1, 2], [3, 4]]))
        assert session.run(w).tolist() == [[7, 7], [0, 5]]


@pytest.mark.parametrize("engine", ["plan", "dataflow"])
@pytest.mark.parametrize("op", ["AssignVariableOp", "AssignAddVariableOp", "AssignSubVariableOp"])
def test_a_node_that_gives_a_variable_another_type_is_refused_and_changes_nothing(op: str, engine: str) -> None:
    with gc.Graph().as_default() as graph:
        w = gc.Variable(np.zeros(2, np.float32), name="w", use_resource=True)
        change = graph.apply_op(op, [w.handle, gc.constant([1, 2])], name="change")
        session = gc.Session(engine=engine)
        session.run(w.initializer)
        with pytest.raises(InvalidArgumentError, match=r"Trying to assign variable with wrong dtype\. Expected float got int32") as caught:
            session.run(change)
        assert caught.value.node == "change"
        assert session.run(w).tolist() == [0, 0]


@pytest.mark.parametrize("engine", ["plan", "dataflow"])
def test_values_of_another_shape_that_are_known_only_when_it_runs_are_refused_and_change_nothing(engine: str) -> None:
    with gc.Graph().as_default():
        w = gc.Variable(np.ones((3, 2), np.float32), name="w", use_resource=True)
        free = gc.Variable([1.0], name="free", use_resource=True, validate_shape=False)
        x, rows = gc.placeholder(gc.float32, None, name="x"), gc.placeholder(gc.int32, None, name="rows")
        session = gc.Session(engine=engine)
        session.run(gc.initialize_all_variables())
        changes = [(w.assign(x), r"wrong shape\. Expected \[3,2\] got \[2\]"), (w.assign_add(x), "shapes must be equal")]
        scatters = [w.scatter_update(rows, x), w.scatter_add(rows, x), w.scatter_sub(rows, x)]
        changes += [(scatter, r"updates must have shape \[2, 2\] or \[\], got \[2\]") for scatter in scatters]
        for change, text in changes:
            with pytest.raises(InvalidArgumentError, match=text):
                session.run(change, {x: [5, 6], rows: [0, 1]})
            assert session.run(w).tolist() == [[1, 1]] * 3
        assert session.run(scatters[0], {x: 7, rows: [0, 2]}).tolist() == [[7, 7], [1, 1], [7, 7]]
        assert session.run(free.assign(x), {x: [5, 6]}).tolist() == [5, 6]
