"""The inspector's values of constants and variables."""

from __future__ import annotations

import numpy as np
import pytest

import graphcore as gc
from tests.support.asking import inspect
from tests.widgets.conftest import RunCell
from widgets.inspection import Values
from widgets.messages import FailureMessage, PictureMessage, ValuesMessage
from widgets.port import Port
from widgets.requests import ValuesRequest
from widgets.scene import SceneState


def values(graph: gc.Graph, name: str) -> Values:
    found = inspect(graph, SceneState(), name)
    assert found is not None
    assert found.values is not None
    return found.values


def pages(graph: gc.Graph, name: str, first: int) -> PictureMessage:
    sent: list[PictureMessage] = []
    Port(graph, lambda message, _buffers: sent.append(message)).answer(ValuesRequest(name=name, first=first))
    return sent[-1]


def test_a_constant_shows_statistics_and_its_first_rows(graph: gc.Graph) -> None:
    array = np.arange(500, dtype=np.float32).reshape(50, 10)
    array[0, :3] = [np.nan, np.inf, -np.inf]
    gc.constant(array, name="weights")
    shown = values(graph, "weights")
    assert (shown.dtype, shown.shape) == ("float", "[50,10]")
    assert shown.statistics == [("min", "3"), ("max", "499"), ("mean", "251"), ("std", "143.471"), ("NaN", "1"), ("Inf", "2")]
    assert sum(shown.bins) == 497
    assert (shown.first, shown.page, shown.total) == (0, 20, 50)
    assert shown.rows[0].index == "[0, 0]"
    assert shown.rows[0].cells[:5] == ["nan", "inf", "-inf", "3", "4"]
    assert len(shown.rows) == 20


def test_further_rows_are_sent_on_request(graph: gc.Graph) -> None:
    gc.constant(np.arange(500).reshape(50, 10), name="weights")
    answer = pages(graph, "weights", 40)
    assert isinstance(answer, ValuesMessage)
    assert answer.values.first == 40
    assert [row.cells[0] for row in answer.values.rows] == [str(10 * row) for row in range(40, 50)]
    beyond = pages(graph, "weights", 10_000)
    assert isinstance(beyond, ValuesMessage)
    assert beyond.values.rows == answer.values.rows


def test_a_long_last_dimension_continues_in_further_rows(graph: gc.Graph) -> None:
    gc.constant(np.arange(46).reshape(2, 23), name="wide")
    shown = values(graph, "wide")
    assert [row.index for row in shown.rows] == ["[0, 0]", "[0, 10]", "[0, 20]", "[1, 0]", "[1, 10]", "[1, 20]"]
    assert shown.rows[2].cells == ["20", "21", "22"]
    assert [cell for row in shown.rows for cell in row.cells] == [str(value) for value in range(46)]


def test_the_answer_for_a_large_tensor_is_small(graph: gc.Graph) -> None:
    gc.constant(np.random.default_rng(0).standard_normal((1000, 3000), np.float32), name="large")
    shown = values(graph, "large")
    assert sum(len(cell) for row in shown.rows for cell in row.cells) < 4000
    assert len(shown.bins) <= 64


@pytest.mark.parametrize(
    ("array", "cells"),
    [
        (np.array([True, False]), ["true", "false"]),
        (np.array([b"\xff", "<b>"], np.object_), [r"'\\xff'", "'<b>'"]),
        (np.array([1 + 2j], np.complex64), ["1+2j"]),
        (np.array(7, np.int64), ["7"]),
        (np.array([1.5, 2.5], gc.bfloat16.as_numpy), ["1.5", "2.5"]),
        (np.zeros([0, 3], np.float32), []),
    ],
    ids=["bool", "string", "complex", "scalar", "bfloat16", "empty"],
)
def test_values_of_each_dtype_are_texts(array: np.ndarray, cells: list[str], graph: gc.Graph) -> None:
    gc.constant(array, name="c")
    assert [cell for row in values(graph, "c").rows for cell in row.cells] == cells


def test_a_variable_shows_its_value_in_the_last_session_and_says_which(run_cell: RunCell, graph: gc.Graph) -> None:
    run_cell("a", "v = gc.Variable([1.0, 2.0], name='v')\ninit = gc.initialize_all_variables()")
    assert values(graph, "v").note == "No session of this graph is open"
    run_cell("b", "session = gc.Session()")
    assert values(graph, "v").note == "Not initialised in the session made in cell In [2], line 1"
    run_cell("c", "session.run(init)")
    shown = values(graph, "v")
    assert shown.note == "The value in the session made in cell In [2], line 1"
    assert shown.rows[0].cells == ["1", "2"]
    run_cell("d", "session.run(v.assign([5.0, 6.0]))")
    assert values(graph, "v").rows[0].cells == ["5", "6"]
    run_cell("e", "other = gc.Session()")
    assert values(graph, "v").note == "Not initialised in the last of 2 sessions, the one made in cell In [5], line 1"
    run_cell("f", "other.close()")
    assert values(graph, "v").rows[0].cells == ["5", "6"]


def test_a_variable_shows_its_value_in_the_default_session(graph: gc.Graph) -> None:
    v = gc.Variable(3, name="v", use_resource=True)
    init = gc.initialize_all_variables()
    session, last = gc.Session(), gc.Session()
    last.run(init)
    last.run(v.assign(4))
    with session:
        session.run(init)
        shown = values(graph, "v")
    assert shown.note == "The value in the default session"
    assert shown.rows[0].cells == ["3"]


def test_other_nodes_have_no_values_and_removed_ones_say_so(graph: gc.Graph) -> None:
    gc.placeholder(gc.float32, [2], name="x")
    found = inspect(graph, SceneState(), "x")
    assert found is not None
    assert found.values is None
    answer = pages(graph, "gone", 0)
    assert isinstance(answer, FailureMessage)
    assert answer.text == "'gone' has no values any more"
