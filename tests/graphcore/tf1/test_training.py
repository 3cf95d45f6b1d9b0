"""The training side of TensorFlow 1: errors, and cells that run again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import graphcore as gc
from graphcore.errors import InvalidArgumentError
from graphcore.tf1.names.lookup import namespace
from tests.graphcore.api.cell_runs import Cells

train = namespace("train")


@pytest.fixture(autouse=True)
def graph() -> Iterator[gc.Graph]:
    with gc.Graph().as_default() as graph:
        yield graph


def test_a_global_step_is_made_once_and_must_be_an_integer_scalar(graph: gc.Graph) -> None:
    assert train.get_global_step() is None
    step = train.get_or_create_global_step()
    assert (step.op.name, step.dtype, train.get_or_create_global_step()) == ("global_step", gc.int64, step)
    assert gc.trainable_variables() == []
    with pytest.raises(InvalidArgumentError, match='"global_step" already exists'):
        train.create_global_step()
    with pytest.raises(InvalidArgumentError, match='Existing "global_step" does not have integer type: float'):
        train.assert_global_step(gc.constant(1.0))
    with pytest.raises(InvalidArgumentError, match='Existing "global_step" is not scalar'):
        train.assert_global_step(gc.constant([1]))
    graph.add_to_collection(gc.GraphKeys.GLOBAL_STEP, gc.Variable(0, name="other"))
    with pytest.raises(InvalidArgumentError, match="Multiple tensors in global_step collection"):
        train.get_global_step()


def test_a_cell_that_runs_again_makes_its_global_step_and_averages_again(graph: gc.Graph) -> None:
    cells = Cells(graph)
    made: dict[str, Any] = {}

    def model() -> None:
        made["w"] = gc.Variable([1.0, 2.0], name="w")
        made["step"] = train.create_global_step()

    def larger_model() -> None:
        model()
        gc.Variable(5.0, name="more")

    average = train.ExponentialMovingAverage(0.5)
    for _ in range(2):
        cells.run("model", model)
        cells.run("averages", lambda: made.update(update=average.apply()))
        with gc.Session() as session:
            session.run(gc.initialize_all_variables())
            session.run(made["w"].assign_add([2.0, 0.0]))
            session.run(made["update"])
            assert session.run(average.average(made["w"])).tolist() == [2.0, 2.0]
            assert session.run(made["step"]) == 0
    names = [variable.op.name for variable in gc.all_variables()]
    assert names == ["w", "global_step", "w/ExponentialMovingAverage"]
    cells.run("more", lambda: gc.Variable(1.0, name="late"))
    cells.run("model", larger_model)
    graph.settle()
    assert "more/ExponentialMovingAverage" in [variable.op.name for variable in gc.all_variables()]


def test_wrong_arguments_of_schedules_and_averages_are_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="global_step is required for cosine_decay"):
        train.cosine_decay(0.1, None, 5)
    with pytest.raises(InvalidArgumentError, match="boundaries should be 1 less than the length of values, got 2 and 2"):
        train.piecewise_constant(gc.constant(1), [1, 2], [0.1, 0.2])
    with pytest.raises(InvalidArgumentError, match=r"boundaries: required int32, as x is, got 1\.5"):
        train.piecewise_constant(gc.constant(1), [1.5], [0.1, 0.2])
    with pytest.raises(InvalidArgumentError, match="The variables must be half, float, or double: 'n:0' is int32"):
        train.ExponentialMovingAverage(0.9).apply([gc.Variable(1, name="n")])
    with pytest.raises(InvalidArgumentError, match="requires its full shape"):
        train.ExponentialMovingAverage(0.9).apply([gc.placeholder(gc.float32, [None])])


def test_gradients_of_unconnected_tensors_are_none_or_zeros() -> None:
    x, z = gc.constant([1.0]), gc.constant([2.0, 3.0], name="z")
    assert gc.gradients(x, [z]) == [None]
    (zeros,) = gc.gradients(x, [z], unconnected_gradients="zero")
    assert zeros.name == "gradients_1/z:0"
    assert gc.Session().run(zeros).tolist() == [0, 0]
    with pytest.raises(InvalidArgumentError, match="unconnected_gradients: required 'none' or 'zero', got 'one'"):
        gc.gradients(x, [z], unconnected_gradients="one")
    with pytest.raises(InvalidArgumentError, match="hessians: no y depends on 'z:0'"):
        namespace("compat.v1").hessians(x, [z])
