"""The gradient of a variable from which rows are gathered is slices, as in TensorFlow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.errors import FailedPreconditionError, InvalidArgumentError
from graphcore.tf1.indexed_slices import IndexedSlices
from tests.graphcore.api.cell_runs import Cells

TABLE = np.arange(8, dtype=np.float32).reshape(4, 2)


@pytest.fixture(autouse=True)
def graph() -> Iterator[gc.Graph]:
    with gc.Graph().as_default() as graph:
        yield graph


def run(fetches: Any) -> Any:
    with gc.Session() as session:
        session.run(gc.initialize_all_variables())
        return session.run(fetches)


def table(*, use_resource: bool = False) -> gc.Variable:
    return gc.Variable(TABLE, name="table", use_resource=use_resource)


@pytest.mark.parametrize("use_resource", [False, True], ids=["reference", "resource"])
def test_a_variable_with_gathered_rows_has_slices_which_convert_to_the_whole(use_resource: bool) -> None:
    w = table(use_resource=use_resource)
    rows = gc.ops.gather_v2(w, [[3, 0], [3, 3]], 0)
    (slices,) = gc.gradients(gc.reduce_sum(rows * [1.0, 2.0]), w)
    assert isinstance(slices, IndexedSlices)
    assert (slices.shape, slices.dtype, slices.name) == (gc.Shape([4, 2]), gc.float32, "gradients/table:0")
    found = run(slices)
    assert found.values.tolist() == [[1, 2]] * 4
    assert (found.indices.tolist(), found.dense_shape.tolist()) == ([3, 0, 3, 3], [4, 2])
    whole, negative = run([gc.convert_to_tensor(slices), gc.convert_to_tensor(-slices)])
    assert whole.tolist() == [[1, 2], [0, 0], [0, 0], [3, 6]]
    assert (negative == -whole).all()


@pytest.mark.parametrize("use_resource", [False, True], ids=["reference", "resource"])
def test_uses_of_rows_add_up_and_with_one_of_the_whole_the_gradient_is_whole(use_resource: bool) -> None:
    w = table(use_resource=use_resource)
    rows, others = gc.ops.gather_v2(gc.identity(w), [1, 1], 0), gc.ops.gather(w, np.array([0], np.int64))
    y = gc.reduce_sum(rows * 2.0) + gc.reduce_sum(gc.square(others)) + gc.reduce_sum(gc.square(w))
    (whole,) = gc.gradients(y, [w])
    assert (type(whole), whole.shape) == (gc.Tensor, gc.Shape([4, 2]))
    np.testing.assert_allclose(run(whole), 2 * TABLE + [[0, 2], [4, 4], [0, 0], [0, 0]])
    (slices,) = gc.gradients(gc.reduce_sum(rows) + gc.reduce_sum(others), [w])
    assert run(slices).indices.dtype == np.int64
    assert sorted(run(slices).indices.tolist()) == [0, 1, 1]


def test_tensors_and_values_gathered_along_other_dimensions_have_whole_gradients() -> None:
    w = table()
    x = gc.constant(TABLE)
    y = gc.reduce_sum(gc.ops.gather_v2(w, [0], 1)) + gc.reduce_sum(gc.ops.gather_v2(x, [0], 0))
    by_w, by_x = gc.gradients(y, [w, x])
    assert [type(each) for each in (by_w, by_x)] == [gc.Tensor, gc.Tensor]
    assert run([by_w, by_x])[0].tolist() == [[1, 0]] * 4


def test_a_variable_and_its_value_asked_for_together_both_have_their_whole_gradients() -> None:
    w = table()
    y = gc.reduce_sum(gc.square(gc.ops.gather_v2(w, [2], 0)))
    by_w, by_read, by_ref = gc.gradients(y, [w, w.value(), w.handle])
    found = run([by_w, by_read, by_ref])
    assert all(each.tolist() == [[0, 0], [0, 0], [8, 10], [0, 0]] for each in found)
    rows = gc.ops.gather_v2(w, [2], 0)
    by_w, by_rows = gc.gradients(gc.reduce_sum(gc.square(rows)), [w, rows])
    assert run([gc.convert_to_tensor(by_w), by_rows])[1].tolist() == [[8, 10]]
    assert gc.gradients(gc.reduce_sum(rows), w, stop_gradients=[rows]) == [None]
    assert gc.gradients(gc.reduce_sum(rows), w, stop_gradients=[w.value()]) == [None]


def test_rows_used_in_loops_and_functions_have_slices_and_rows_gathered_in_a_loop_whole_gradients() -> None:
    w = table()
    rows = gc.ops.gather_v2(w, [1, 1], 0)
    doubled = gc.while_loop(lambda i, _: i < 3, lambda i, s: (i + 1, s * 2.0), (0, rows))[1]
    (outside,) = gc.gradients(gc.reduce_sum(gc.function(lambda v: v * 3.0)(doubled)), w)
    assert isinstance(outside, IndexedSlices)
    total = gc.while_loop(lambda i, _: i < 3, lambda i, s: (i + 1, s + gc.reduce_sum(gc.ops.gather_v2(w, [i], 0))), (0, 0.0))[1]
    (inside,) = gc.gradients(total, w)
    assert isinstance(inside, gc.Tensor)
    found = run([gc.convert_to_tensor(outside), inside])
    assert [each.tolist() for each in found] == [[[0, 0], [48, 48], [0, 0], [0, 0]], [[1, 1], [1, 1], [1, 1], [0, 0]]]


def test_slices_change_the_rows_of_a_variable_and_wait_for_others() -> None:
    for use_resource in (False, True):
        w = table(use_resource=use_resource)
        slices = IndexedSlices(gc.constant([[1.0, 1.0], [2.0, 2.0]]), gc.constant([3, 0]))
        with gc.Session() as session:
            session.run(w.initializer)
            assert session.run(w.scatter_sub(slices)).tolist() == [[-2, -1], [2, 3], [4, 5], [5, 6]]
    w = table()
    (gated,) = gc.GradientDescentOptimizer(1.0).compute_gradients(
        gc.reduce_sum(gc.ops.gather_v2(w, [1], 0)), [w], gate_gradients=gc.Optimizer.GATE_GRAPH
    )
    assert run(gated[0]).indices.tolist() == [1]


def test_slices_without_a_shape_are_no_tensor_and_parts_must_be_tensors() -> None:
    with pytest.raises(InvalidArgumentError, match="required a dense_shape, got None"):
        gc.convert_to_tensor(IndexedSlices(gc.constant([1.0]), gc.constant([0])))
    with pytest.raises(InvalidArgumentError, match="required a tensor for indices, got 0"):
        IndexedSlices(gc.constant([1.0]), 0)  # type: ignore[arg-type]  # wrong on purpose


def test_the_explanation_of_slices_finds_them_in_the_graph() -> None:
    w = table()
    y = gc.reduce_sum(gc.ops.gather_v2(w, [[1, 0]], 0, name="rows") * 2.0, name="y")
    before = gc.explain_gradient(y, w)
    (slices,) = gc.gradients(y, w)
    after = gc.explain_gradient(y, w)
    assert (before.built, after.built) == (False, True)
    assert before.gradient == after.gradient == slices.values.name
    assert [step.node for step in after.steps][-2:] == ["rows", "table/read"]
    assert after.kind == "float [2,2], slices"
    assert not any("//" in node.name for node in w.graph.nodes)


def test_a_step_follows_an_edit_that_turns_slices_into_a_whole_gradient_and_back(graph: gc.Graph) -> None:
    cells = Cells(graph)
    made: dict[str, Any] = {}
    gather = lambda: made.update(rows=gc.identity(gc.ops.gather_v2(made["w"], [1, 1], 0), name="rows"))  # noqa: E731 - a cell in one line
    product = lambda: made.update(rows=gc.identity(gc.constant([[0.0, 1.0, 0.0, 0.0]]) @ made["w"], name="rows"))  # noqa: E731 - a cell
    cells.run("w", lambda: made.update(w=table()))
    cells.run("rows", gather)
    cells.run("loss", lambda: made.update(loss=gc.reduce_sum(gc.square(made["rows"]), name="loss")))
    cells.run("slices", lambda: made.update(slices=gc.gradients(made["loss"], made["w"])[0]))
    cells.run("train", lambda: made.update(train=gc.MomentumOptimizer(0.1, 0.5).minimize(made["loss"])))
    for change, scale, is_marked in ((gather, 2.0, False), (product, 1.0, True), (gather, 2.0, False)):
        cells.run("rows", change)
        with gc.Session() as session:
            session.run(gc.initialize_all_variables())
            session.run(made["train"])
            np.testing.assert_allclose(session.run(made["w"])[1], TABLE[1] * (1 - 0.2 * scale))
            if is_marked:
                with pytest.raises(FailedPreconditionError, match="was of IndexedSlices and would be of Tensor now; run its cell again"):
                    session.run(made["slices"])
            else:
                assert session.run(made["slices"]).indices.tolist() == [1, 1]
