"""Running parts of a graph for their values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.errors import GraphError, InvalidArgumentError, NotFoundError
from graphcore.functions import FunctionLibraryDefinition, define_function

ops: Any = gc.ops


def sum_of_two() -> gc.Graph:
    graph = gc.Graph()
    with graph.as_default():
        ops.add(gc.placeholder(gc.float32, [], name="p1"), gc.placeholder(gc.float32, [], name="p2"), name="add")
    return graph


def test_s8_constants_are_computed() -> None:
    graph = gc.Graph()
    with graph.as_default():
        gc.constant([[1.0, 2.0], [3.0, 4.0]], name="c")
    (value,) = gc.GraphRunner().run(graph, [], ["c:0"])
    assert value.tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_s8_feeds_and_fetches_are_named_by_port() -> None:
    fed = [("p1:0", np.float32(1)), ("p2:0", np.float32(2))]
    assert [value.item() for value in gc.GraphRunner().run(sum_of_two(), fed, ["add:0"])] == [3.0]
    assert gc.GraphRunner().run(sum_of_two(), dict(fed), ["p1:0", "add:0"])[1].dtype == np.float32


def test_s8_the_graph_is_not_changed_and_intermediate_values_may_be_given() -> None:
    graph = sum_of_two()
    with graph.as_default():
        ops.neg(graph.get_tensor_by_name("add:0"), name="neg")
    before = graph.as_graph_def(), graph.version
    assert gc.GraphRunner().run(graph, {"add:0": np.float32(5)}, ["neg:0"])[0] == -5.0
    assert (graph.as_graph_def(), graph.version) == before


def test_s8_outputs_stay_valid_after_the_runner_is_gone() -> None:
    graph = gc.Graph()
    with graph.as_default():
        gc.constant([1, 2, 3], name="c")
    runner = gc.GraphRunner()
    first = runner.run(graph, [], ["c:0"])[0]
    first[0] = 7
    del runner
    assert first.tolist() == [7, 2, 3]
    assert gc.GraphRunner().run(graph, [], ["c:0"])[0].tolist() == [1, 2, 3]


def test_s8_functions_are_found_in_the_given_library() -> None:
    twice = define_function("Twice[T:{float}](x:T) -> (y:T) { y = Add[T=$T](x, x) }")
    library = FunctionLibraryDefinition()
    library.add_function_def(twice)
    graph = gc.Graph()
    graph.add_function_library(library)
    with graph.as_default():
        gc.apply_op("Twice", [gc.placeholder(gc.float32, [2], name="x")], name="t")
    fed = {"x:0": np.array([1, 2], np.float32)}
    assert gc.GraphRunner().run(graph, fed, ["t:0"])[0].tolist() == [2.0, 4.0]
    runtime = gc.FunctionLibraryRuntime(library)
    assert gc.GraphRunner().run(graph, fed, ["t:0"], runtime)[0].tolist() == [2.0, 4.0]


@pytest.mark.parametrize(
    ("inputs", "outputs", "error"),
    [
        ({}, ["nothing:0"], NotFoundError),
        ({}, ["add:1"], InvalidArgumentError),
        ({"nothing:0": np.float32(1)}, ["add:0"], GraphError),
        ({"p1:0": np.float32(1)}, ["add:0"], InvalidArgumentError),
        ({"p1:0": np.zeros(3, np.float32)}, ["p1:0"], InvalidArgumentError),
    ],
)
def test_s8_misfits_are_refused(inputs: dict[str, Any], outputs: list[str], error: type[Exception]) -> None:
    with pytest.raises(error):
        gc.GraphRunner().run(sum_of_two(), inputs, outputs)


def test_s8_it_runs_on_a_cpu_only() -> None:
    assert gc.GraphRunner("/device:CPU:0").device == "/device:CPU:0"
    with pytest.raises(NotFoundError, match=r"Cannot find a device for GraphRunner\."):
        gc.GraphRunner("/device:GPU:0")
