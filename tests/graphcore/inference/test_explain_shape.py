"""Explanations of shapes: dimension by dimension, back to the lines where the numbers entered."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.errors import GraphError, InvalidArgumentError, NotFoundError
from graphcore.functions import define_function
from graphcore.graph.provenance.origins import Origin
from tests.support.cells import run_cells

ops: Any = gc.ops
DATA = Path(__file__).parents[2] / "data"

SOFTMAX = (
    "x = gc.placeholder(gc.float32, [None, 28, 28], name='x')\nflat = gc.reshape(x, [-1, 784], name='flat')",
    "W = gc.Variable(gc.zeros([784, 10]), name='W')\nb = gc.Variable(gc.zeros([10]), name='b')",
    "y = gc.softmax(flat @ W + b, name='y')",
)


def way(origin: Origin) -> list[str]:
    """The facts on an unbranched path, and its origin."""
    return [str(step.fact) for step in origin.walk()] + [origin.roots[0].where]


def test_a_dimension_is_followed_from_node_to_node_to_the_line_that_wrote_it() -> None:
    graph = run_cells(*SOFTMAX)
    found = gc.explain_shape(graph.get_tensor_by_name("y:0"))
    assert (found.tensor, found.dtype, found.shape) == ("y:0", "float", "[?,10]")
    batch, classes = found.dimensions
    assert way(batch) == [
        *[f"dimension 0 of `{name}:0`" for name in ("y", "add", "matmul", "flat", "x")],
        "cell In [1], line 1",
    ]
    assert way(classes) == [
        *[f"dimension 1 of `{name}:0`" for name in ("y", "add", "matmul", "W/read", "W")],
        "cell In [2], line 1",
    ]
    assert (batch.size, classes.size) == (None, 10)
    assert classes.roots[0].how == "literal"
    assert batch.roots[0].how == "unknown"


def test_a_merged_dimension_is_explained_at_the_node_that_merged_it() -> None:
    graph = run_cells(*SOFTMAX)
    added = gc.explain_shape(graph.get_tensor_by_name("add:0")).dimensions[1]
    assert [str(fact) for fact in added.merged_with] == ["dimension 0 of `b/read:0`"]
    text = str(gc.explain_shape(graph.get_tensor_by_name("y:0")))
    assert "merged with dimension 0 of `b/read:0` at `add`" in text


def test_a_computed_size_names_all_that_went_into_it() -> None:
    graph = run_cells(
        "x = gc.placeholder(gc.float32, [None, 28, 28, 3], name='x')",
        "k = gc.Variable(gc.zeros([5, 5, 3, 7]), name='k')",
        "h = gc.ops.conv2d(x, k, strides=[1, 2, 2, 1], padding='VALID', name='h')",
    )
    rows = gc.explain_shape(graph.get_tensor_by_name("h:0")).dimensions[1]
    assert (rows.size, rows.how) == (12, "computed")
    assert "strides=[1, 2, 2, 1]" in rows.text
    assert [str(origin.fact) for origin in rows.because] == ["dimension 1 of `x:0`", "dimension 0 of `k/read:0`"]
    assert [root.where for root in rows.roots] == ["cell In [1], line 1", "cell In [2], line 1"]


def test_a_size_is_followed_through_the_values_that_it_was_computed_from() -> None:
    graph = run_cells(
        "x = gc.placeholder(gc.float32, [None, 6], name='x')\ny = gc.placeholder(gc.float32, [24], name='y')",
        "n = gc.shape(x, name='n')\nhalf = n[1] // 2 if hasattr(n, '__getitem__') else gc.ops.gather(n, 1) // 2",
        "z = gc.ops.reshape(y, gc.stack([half, -1]), name='z')",
    )
    first, second = gc.explain_shape(graph.get_tensor_by_name("z:0")).dimensions
    assert first.size == 3
    assert "cell In [1], line 1" in [root.where for root in first.roots]
    assert any(root.fact.tensor == "x:0" and root.size == 6 for root in first.roots)
    assert second.size == 8
    assert "cell In [1], line 2" in [root.where for root in second.roots]


def test_a_handle_is_explained_by_its_resource() -> None:
    graph = run_cells(
        "v = gc.apply_op('VarHandleOp', attrs={'dtype': gc.float32, 'shape': gc.Shape([3, 4])}, name='v')",
        "r = gc.ops.read_variable_op(v, dtype=gc.float32, name='r')",
    )
    read = gc.explain_shape(graph.get_tensor_by_name("r:0")).dimensions[1]
    assert way(read) == ["dimension 1 of `r:0`", "dimension 1 of what `v:0` stands for", "cell In [1], line 1"]
    assert [origin.size for origin in gc.explain_shape(graph.get_tensor_by_name("v:0")).held] == [3, 4]


def test_the_explanation_of_an_unknown_dimension_names_the_unknown_facts() -> None:
    graph = run_cells(
        "x = gc.placeholder(gc.float32, [6, 4], name='x')\naxis = gc.placeholder(gc.int32, [], name='axis')",
        "s = gc.ops.sum(x, axis, keep_dims=True, name='s')",
    )
    found = gc.explain_shape(graph.get_tensor_by_name("s:0")).dimensions[0]
    assert (found.size, found.how) == (None, "computed")
    assert [str(root.fact) for root in found.roots] == ["the value of `axis:0`"]


def test_a_shape_set_by_the_user_is_explained_as_set() -> None:
    graph = run_cells("x = gc.placeholder(gc.float32, name='x')\nx.set_shape([None, 3])")
    found = gc.explain_shape(graph.get_tensor_by_name("x:0"))
    assert [(origin.how, origin.size) for origin in found.dimensions] == [("unknown", None), ("given", 3)]


def test_a_gradient_has_the_shape_of_its_tensor() -> None:
    graph = run_cells(
        "x = gc.placeholder(gc.float32, [None, 4], name='x')\nk = gc.placeholder(gc.int32, [None], name='k')",
        "dx, = gc.gradients(gc.reduce_sum(gc.ops.gather(x, k)), [x])\nsame = gc.identity(dx, name='same')",
    )
    found = gc.explain_shape(graph.get_tensor_by_name("same:0"))
    assert found.shape == "[?,4]"
    assert found.dimensions[1].roots[0].fact.tensor == "x:0"


def test_an_explanation_is_plain_data_and_is_shown_in_a_notebook() -> None:
    graph = run_cells(*SOFTMAX)
    found = gc.explain_shape(graph.get_tensor_by_name("y:0"))
    data: Any = found.as_data()
    assert data["dimensions"][1]["because"][0]["fact"] == {"tensor": "add:0", "kind": "dimension", "index": 1}
    assert repr(found) == str(found) == found.text
    html = found._repr_html_()
    assert html.startswith("<pre style=")
    assert html.endswith(">" + found.text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;") + "</pre>")


def test_a_long_path_is_explained_by_its_beginning_and_end() -> None:
    with gc.Graph().as_default():
        y = gc.placeholder(gc.float32, [3], name="x")
        for _ in range(2000):
            y = gc.tanh(y)
        found = gc.explain_shape(y).dimensions[0]
    assert found.roots[0].fact.tensor == "x:0"
    assert len(found.lines()) < 12
    assert any("more nodes pass it on" in line for line in found.lines())
    assert [step.text for step in found.walk() if step.how == "cut"] == ["is passed on by 1941 more nodes"]


def test_a_tensor_may_be_given_by_name_node_or_variable() -> None:
    with gc.Graph().as_default():
        v = gc.Variable(np.zeros([2, 5], np.float32), name="v")
        assert gc.explain_shape("v:0").shape == gc.explain_shape(v).shape == "[2,5]"
        assert gc.explain_shape(gc.no_op("n").graph.find("v")).shape == "[2,5]"
        with pytest.raises(InvalidArgumentError, match="has no output whose shape"):
            gc.explain_shape("n")
        with pytest.raises(NotFoundError):
            gc.explain_shape("nothing:0")


def test_a_node_that_went_wrong_later_is_explained_with_the_chains_that_clash() -> None:
    graph = gc.Graph()
    cells = [
        "w = gc.placeholder(gc.float32, [4, 2], name='w')",
        "x = gc.placeholder(gc.float32, [None, 4], name='x')\ny = gc.matmul(x, w, name='y')",
    ]
    run_cells(*cells, graph=graph)
    y = graph.get_operation_by_name("y")
    with graph.as_default():
        graph.update_edge(gc.placeholder(gc.float32, [3, 2], name="w2").node, 0, y, 1)
    found = gc.explain_shape(y.outputs[0])
    assert "Dimensions must be equal, but are 4 and 3" in found.error
    assert [(str(chain.fact), chain.size) for chain in found.chains] == [("dimension 1 of `x:0`", 4), ("dimension 0 of `w2:0`", 3)]
    assert "dimension 0 of `w2:0` = 3" in found.text


def test_a_way_without_forks_is_followed_to_its_end_however_long() -> None:
    graph = run_cells(
        "x = gc.placeholder(gc.float32, [7], name='x')", "for _ in range(15_000): x = gc.negative(x)\ny = gc.identity(x, name='y')"
    )
    found = gc.explain_shape(graph.get_tensor_by_name("y:0"))
    assert [str(root.fact) for root in (*found.rank.roots, *found.dimensions[0].roots)] == ["the rank of `x:0`", "dimension 0 of `x:0`"]
    assert "... 14994 more nodes pass it on" in found.text


def test_the_chains_of_an_error_survive_pickling() -> None:
    with pytest.raises(GraphError) as caught:
        run_cells("gc.matmul(gc.zeros([2, 3]), gc.zeros([2, 3]))")
    again = pickle.loads(pickle.dumps(caught.value))
    assert again.message == caught.value.message
    assert [chain.statement for chain in again.chains] == ["dimension 1 of `zeros:0` = 3", "dimension 0 of `zeros_1:0` = 2"]


def test_errors_of_other_kinds_have_no_chains() -> None:
    assert GraphError("no").chains == ()


@pytest.mark.parametrize("path", sorted(DATA.glob("*.pb")), ids=lambda path: path.stem)
def test_every_shape_of_a_graph_from_elsewhere_can_be_explained(path: Path) -> None:
    graph = gc.Graph()
    gc.load(path, graph)
    tensors = [tensor for node in graph.nodes for tensor in node.outputs]
    for tensor in tensors[:: max(1, len(tensors) // 60)]:
        found = gc.explain_shape(tensor)
        assert [origin.size for origin in found.dimensions] == list(tensor.shape.dims or ())
        assert all(root.text for origin in found.dimensions for root in origin.roots)
        assert found.text.startswith(f"{tensor.name} ")


def test_a_dimension_is_followed_through_calls_and_lists() -> None:
    graph = gc.Graph()
    graph.library.add_function_def(define_function("Twice[T:{float}](x:T) -> (y:T) { y = Add[T=$T](x, x) }"))
    run_cells(
        "x = gc.placeholder(gc.float32, [2, 7], name='x')",
        "y = gc.apply_op('Twice', [x], name='y')",
        "row = gc.ops.tensor_list_reserve(gc.shape(y), 5, element_dtype=gc.float32)\n"
        "item = gc.identity(gc.ops.tensor_list_get_item(row, 0, [-1, -1], element_dtype=gc.float32), name='item')",
        graph=graph,
    )
    assert way(gc.explain_shape(graph.get_tensor_by_name("y:0")).dimensions[1])[-2:] == ["dimension 1 of `x:0`", "cell In [1], line 1"]
    found = gc.explain_shape(graph.get_tensor_by_name("item:0"))
    assert found.shape == "[2,7]"
    assert found.dimensions[1].roots[0].where == "cell In [1], line 1"


def test_dimensions_that_are_one_number_have_one_class() -> None:
    graph = run_cells(
        *SOFTMAX, "t = gc.placeholder(gc.float32, [None, 10], name='t')", "d = gc.ops.softmax_cross_entropy_with_logits(y, t)[0]"
    )
    classes = graph.dimension_classes()
    assert classes["x:0"][0] == classes["flat:0"][0] == classes["y:0"][0] == classes["t:0"][0]
    assert classes["flat:0"][1] == classes["W:0"][0] == classes["W/read:0"][0]
    assert classes["b:0"][0] == classes["W:0"][1] == classes["y:0"][1]
    assert len({classes["x:0"][0], classes["x:0"][1], classes["x:0"][2], classes["W:0"][0], classes["W:0"][1]}) == 5
    assert graph.dimension_classes(["W:0"]).keys() == {"W:0"}


def residual(count: int) -> gc.Tensor:
    """Blocks `x + tanh(x)` of unknown rank: each has two ways to the one before."""
    with gc.Graph().as_default():
        x = gc.placeholder(gc.float32)
        for _ in range(count):
            x = x + gc.tanh(x)
    return x


def dense(count: int) -> gc.Tensor:
    """Layers that join what they get with four new columns."""
    with gc.Graph().as_default():
        x = gc.placeholder(gc.float32, [None, 4])
        for _ in range(count):
            x = gc.concat([x, gc.tanh(x)[:, :4]], 1)
    return x


@pytest.mark.parametrize("made", [residual, dense])
@pytest.mark.parametrize("count", [30, 400])
def test_what_several_ways_lead_to_is_told_once(made: Callable[[int], gc.Tensor], count: int) -> None:
    found = gc.explain_shape(made(count))
    origin = (found.dimensions or (found.rank,))[-1]
    assert len(list(origin.walk())) == len({id(each) for each in origin.walk()}) < 8 * count + 100
    assert len(found.text.splitlines()) < 1000
    assert ", as above" in found.text
    assert ", as above" in str(found.as_data())
    assert str(pickle.loads(pickle.dumps(found))) == str(found)
    assert repr(origin) == str(origin)


def test_an_explanation_of_three_layers_names_each_part_once() -> None:
    found = gc.explain_shape(residual(2)).text.splitlines()
    assert found[1:] == [
        "  rank = ?",
        "    is computed by `add_1` (op AddV2) from what is known only when the graph runs",
        "      the rank of `add:0` = ?",
        "        is computed by `add` (op AddV2) from what is known only when the graph runs",
        "          the rank of `Placeholder:0` = ?",
        found[6],
        "          the rank of `Tanh:0` = ?",
        "            is computed by `Tanh` (op Tanh) from what is known only when the graph runs",
        "            the rank of `Placeholder:0` = ?, as above",
        "      the rank of `Tanh_1:0` = ?",
        "        is computed by `Tanh_1` (op Tanh) from what is known only when the graph runs",
        "        the rank of `add:0` = ?, as above",
    ]


@pytest.mark.slow
def test_a_shape_beyond_the_deepest_calls_that_are_inferred_says_so() -> None:
    x, p = gc.placeholder(gc.float32, [None, 3]), gc.placeholder(gc.bool, [])

    def nested(depth: int, value: gc.Tensor) -> gc.Tensor:
        return gc.cond(p, lambda: nested(depth - 1, value * 2.0), lambda: value) if depth else gc.tanh(value)

    assert "graph runs" in str(gc.explain_shape(nested(2, x)))
    forty = nested(40, x)
    assert forty.shape.as_list() == [None, 3]
    assert "leaves it open: shape=[?,3]" in str(gc.explain_shape(forty))
    assert "call others more than 48 deep, and shapes there are not inferred" in str(gc.explain_shape(nested(56, x)))
