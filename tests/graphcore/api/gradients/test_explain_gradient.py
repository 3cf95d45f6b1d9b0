"""`gc.explain_gradient` on a table of graphs, one for each kind of cut and path."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import get_args

import numpy as np
import pytest

import graphcore as gc
from graphcore.errors import GraphError, InvalidArgumentError
from graphcore.passes.gradients.explanation.flow import CutKind
from graphcore.tf1.train.custom_gradients import grad_pass_through

Built = tuple[gc.Tensor, gc.Tensor]


@pytest.fixture(autouse=True)
def graph() -> Iterator[gc.Graph]:
    with gc.Graph().as_default() as graph:
        yield graph


@dataclass(frozen=True)
class Row:
    """A graph and its explanation.

    Cuts are `kind node: path`, steps `node(inputs) -> body nodes`, sums `tensor <- origins`.
    """

    name: str
    build: Callable[[], Built]
    cuts: list[str] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)
    sums: list[str] = field(default_factory=list)
    error: str = ""
    is_zero: bool = False


def place(name: str, dtype: gc.DType = gc.float32, shape: list[int | None] | None = None) -> gc.Tensor:
    return gc.placeholder(dtype, [2, 3] if shape is None else shape, name=name)


def one(op: str, inputs: list[object], name: str) -> gc.Tensor:
    made = gc.apply_op(op, inputs, name=name)
    assert isinstance(made, gc.Tensor)
    return made


def unrelated() -> Built:
    x, z = place("x"), place("z")
    return gc.square(z, name="y"), x


def siblings() -> Built:
    w = place("w")
    x = gc.identity(w, name="x")
    return gc.square(w, name="y"), x


def reversed_roles() -> Built:
    y = place("y")
    return y, gc.square(y, name="x")


def control_only() -> Built:
    x, z = place("x"), place("z")
    with gc.control_dependencies([x]):
        y = gc.square(z, name="y")
    return y, x


def stored_in_a_variable() -> Built:
    x = place("x")
    w = gc.Variable(np.ones((2, 3), np.float32), name="W")
    w.assign(x)
    return gc.square(w.value(), name="y"), x


def stopped() -> Built:
    x = place("x")
    return gc.square(gc.apply_op("StopGradient", [x], name="stop"), name="y"), x


def an_integer_on_the_way() -> Built:
    x = place("x")
    index = gc.apply_op("ArgMax", [x, 1], name="index")
    return gc.square(gc.cast(index, gc.float32, name="back"), name="y"), x


def cast_to_integer_and_back() -> Built:
    x = place("x")
    return gc.cast(gc.cast(x, gc.int32, name="whole"), gc.float32, name="y"), x


def a_comparison_chooses() -> Built:
    x, z = place("x"), place("z")
    chosen = gc.apply_op("Greater", [x, 0.0], name="positive")
    return one("SelectV2", [chosen, z, z * 2.0], "y"), x


def an_integer_input() -> Built:
    n = place("n", gc.int32)
    return gc.cast(n, gc.float32, name="y"), n


def only_the_shape() -> Built:
    x = place("x", shape=[None, 3])
    dims = gc.apply_op("Shape", [x], name="dims")
    return one("Fill", [dims, place("value", shape=[])], "y"), x


def only_the_rank() -> Built:
    x = gc.placeholder(gc.float32, None, name="x")
    rank = gc.apply_op("Rank", [x], name="rank")
    return gc.cast(rank, gc.float32, name="y"), x


def only_zeros_of_its_shape() -> Built:
    x = place("x")
    return gc.exp(gc.zeros_like(x, name="zeros"), name="y"), x


def not_differentiable() -> Built:
    x = place("x")
    return gc.square(gc.apply_op("Floor", [x], name="floor"), name="y"), x


def a_resource() -> Built:
    handle = gc.apply_op("VarHandleOp", attrs={"dtype": gc.float32, "shape": [2]}, name="W")
    assert isinstance(handle, gc.Tensor)
    read = gc.apply_op("ReadVariableOp", [handle], {"dtype": gc.float32}, name="read")
    return gc.square(read, name="y"), handle


def not_registered() -> Built:
    x = place("x")
    w = gc.Variable(np.ones((2, 3), np.float32), name="W")
    return gc.identity(gc.scatter_update(w, [0, 1], x, name="update"), name="y"), x


def forbidden() -> Built:
    x = place("x")
    return gc.square(gc.apply_op("PreventGradient", [x], {"message": "not this way"}, name="guard"), name="y"), x


def of_an_integer() -> Built:
    x = place("x", gc.int32)
    return one("AddV2", [x, 1], "y"), x


def two_cuts() -> Built:
    x = place("x")
    left = gc.apply_op("StopGradient", [x], name="stop")
    right = gc.apply_op("Round", [x], name="round")
    return gc.add(left, right, name="y"), x


def one_way_of_two_is_cut() -> Built:
    x = place("x")
    return gc.multiply(gc.apply_op("StopGradient", [x], name="stop"), x, name="y"), x


def y_itself() -> Built:
    x = place("x")
    return x, x


def a_chain() -> Built:
    x = place("x")
    return gc.square(gc.exp(gc.tanh(x, name="a"), name="b"), name="y"), x


def an_identity_passes_it_on() -> Built:
    x = place("x")
    return gc.square(gc.identity(x, name="same"), name="y"), x


def a_weight() -> Built:
    x = place("x")
    w = gc.Variable(np.ones((3, 2), np.float32), name="W")
    return gc.matmul(x, w, name="y"), w.op.outputs[0]


def used_twice_by_one_node() -> Built:
    x = place("x")
    return gc.multiply(x, x, name="y"), x


def a_diamond() -> Built:
    x = place("x")
    return gc.add(gc.tanh(x, name="left"), gc.exp(x, name="right"), name="y"), x


def two_diamonds() -> Built:
    y, x = a_diamond()
    return gc.add(gc.tanh(y, name="left2"), gc.exp(y, name="right2"), name="z"), x


def broadcast() -> Built:
    x, b = place("x"), place("b", shape=[3])
    return gc.add(x, b, name="y"), b


def one_output_of_two() -> Built:
    x = place("x", shape=[4])
    parts = gc.apply_op("Split", [0, x], {"num_split": 2}, name="parts")
    assert isinstance(parts, list)
    return gc.square(parts[1], name="y"), x


def always_zero() -> Built:
    x = place("x")
    return one("Sign", [x], "y"), x


def through_a_call() -> Built:
    x = place("x")

    @gc.function
    def double(value: gc.Tensor) -> gc.Tensor:
        return value * 2.0

    return gc.square(double(x), name="y"), x


def inside_a_branch() -> Built:
    x, z, pred = place("x"), place("z"), place("pred", gc.bool_, [])
    return gc.identity(gc.cond(pred, lambda: gc.ops.floor(x) + z, lambda: z * 2.0, name="cond"), name="y"), x


def around_a_cut_in_a_branch() -> Built:
    y, x = inside_a_branch()
    return gc.add(y, x, name="sum"), x


def a_custom_gradient() -> Built:
    x = place("x")
    return gc.identity(grad_pass_through(gc.square)(x), name="y"), x


def a_while_loop() -> Built:
    x = place("x")
    _, y = gc.while_loop(lambda i, _: i < 3, lambda i, v: [i + 1, gc.tanh(v)], [gc.constant(0), x], name="loop")
    return y, x


def complex_numbers() -> Built:
    z = place("z", gc.complex64)
    return one("ComplexAbs", [z], "y"), z


TABLE = [
    Row("no path", unrelated, ["no path : "]),
    Row("both come from the same tensor", siblings, ["no path : "]),
    Row("the roles are reversed", reversed_roles, ["reversed : "]),
    Row("a control dependency only", control_only, ["control only y: "]),
    Row("stored in a variable", stored_in_a_variable, ["state Assign: "]),
    Row("stop_gradient", stopped, ["stop_gradient stop: x -> stop -> y"]),
    Row("an index", an_integer_on_the_way, ["dtype index: x -> index -> back -> y"]),
    Row("cast to int and back", cast_to_integer_and_back, ["dtype whole: x -> whole -> y"]),
    Row("a comparison", a_comparison_chooses, ["dtype positive: x -> positive -> y"]),
    Row("by an integer", an_integer_input, ["dtype n: n -> y"]),
    Row("only the shape", only_the_shape, ["shape only dims: x -> dims -> y"]),
    Row("only the rank", only_the_rank, ["shape only rank: x -> rank -> y"]),
    Row("zeros of its shape", only_zeros_of_its_shape, ["shape only zeros: x -> zeros -> y"]),
    Row("not differentiable", not_differentiable, ["not differentiable floor: x -> floor -> y"]),
    Row("a resource", a_resource, ["resource read: W -> read -> y"]),
    Row(
        "no gradient registered",
        not_registered,
        ["not registered update: x -> update -> y"],
        error="No gradient defined for op: ScatterUpdate",
    ),
    Row(
        "forbidden",
        forbidden,
        ["forbidden guard: x -> guard -> y"],
        error="gradient of op PreventGradient: Gradient explicitly disabled. Reason: not this way",
    ),
    Row("of an integer", of_an_integer, ["dtype y: "]),
    Row("two cuts", two_cuts, ["not differentiable round: x -> round -> y", "stop_gradient stop: x -> stop -> y"]),
    Row(
        "one way of two is cut",
        one_way_of_two_is_cut,
        ["stop_gradient stop: x -> stop -> y"],
        paths=["x -> y"],
        steps=["y(1) -> gy"],
    ),
    Row("y itself", y_itself, paths=["x"]),
    Row("a chain", a_chain, paths=["x -> a -> b -> y"], steps=["y(0) -> two x2 dx", "b(0) -> dx", "a(0) -> y2 one a dx"]),
    Row("an identity", an_identity_passes_it_on, paths=["x -> same -> y"], steps=["y(0) -> two x2 dx", "same(0) -> "]),
    Row("a weight", a_weight, paths=["W -> W/read -> y"], steps=["y(1) -> dy", "W/read(0) -> "]),
    Row("used twice by one node", used_twice_by_one_node, paths=["x -> y", "x -> y"], steps=["y(0,1) -> gx gy"], sums=["x:0 <- y:0 y:1"]),
    Row(
        "a diamond",
        a_diamond,
        paths=["x -> left -> y", "x -> right -> y"],
        steps=["y(0,1) -> ", "left(0) -> y2 one a dx", "right(0) -> dx"],
        sums=["x:0 <- left:0 right:0"],
    ),
    Row(
        "two diamonds",
        two_diamonds,
        paths=[
            "x -> left -> y -> left2 -> z",
            "x -> right -> y -> left2 -> z",
            "x -> left -> y -> right2 -> z",
            "x -> right -> y -> right2 -> z",
        ],
        steps=["z(0,1) -> ", "left2(0) -> y2 one a dx", "right2(0) -> dx", "y(0,1) -> ", "left(0) -> y2 one a dx", "right(0) -> dx"],
        sums=["y:0 <- left2:0 right2:0", "x:0 <- left:0 right:0"],
    ),
    Row("broadcast", broadcast, paths=["b -> y"], steps=["y(1) -> rx sum_gy"]),
    Row(
        "one output of two",
        one_output_of_two,
        paths=["x -> parts -> y"],
        steps=["y(0) -> two x2 dx", "parts(1) -> dx"],
    ),
    Row("always zero", always_zero, paths=["x -> y"], steps=["y(0) -> dx"], is_zero=True),
    Row("complex numbers", complex_numbers, paths=["z -> y"], steps=["y(0) -> length direction dyc dx"]),
    Row("inside a branch", inside_a_branch, ["inside a function cond: x -> cond -> y"]),
    Row(
        "around a cut in a branch",
        around_a_cut_in_a_branch,
        ["inside a function cond: x -> cond -> y -> sum"],
        paths=["x -> sum"],
        steps=["sum(1) -> "],
    ),
    Row(
        "a custom gradient",
        a_custom_gradient,
        ["custom gradient IdentityN: x -> Identity -> Square -> IdentityN -> y"],
        paths=["x -> Identity -> IdentityN -> y"],
        steps=["y(0) -> ", "IdentityN(1) -> ", "Identity(0) -> "],
    ),
    Row(
        "a while loop", a_while_loop, paths=["x -> loop"], steps=["loop(1) -> first_round element_shape any_number empty_list forward loop"]
    ),
    Row("a call", through_a_call, paths=["x -> double -> y"], steps=["y(0) -> two x2 dx", "double(0) -> gradient"]),
]


def cut_text(cut: gc.GradientCut) -> str:
    return f"{cut.kind} {cut.node}: {' -> '.join(cut.path)}"


def step_text(step: gc.GradientStep) -> str:
    return f"{step.node}({','.join(map(str, step.inputs))}) -> {' '.join(node.body_node for node in step.backward)}"


def sum_text(item: gc.GradientSum) -> str:
    return f"{item.tensor} <- {' '.join(f'{part.node}:{part.input}' for part in item.parts)}"


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.name)
def test_the_path_or_the_cut_is_exactly_this(row: Row, graph: gc.Graph) -> None:
    y, x = row.build()
    nodes, version = [node.name for node in graph.nodes], graph.version
    found = gc.explain_gradient(y, x)
    assert [node.name for node in graph.nodes] == nodes
    assert graph.version == version
    assert sorted(map(cut_text, found.cuts)) == row.cuts
    assert [" -> ".join(path) for path in found.paths] == row.paths
    assert found.path_count == len(row.paths)
    assert [step_text(step) for step in found.steps] == row.steps
    assert [sum_text(item) for item in found.sums] == row.sums
    assert found.error == row.error
    assert found.is_zero is row.is_zero
    if row.error:
        with pytest.raises(GraphError):
            gc.gradients(y, x)
        return
    (gradient,) = gc.gradients(y, x)
    assert (gradient is None) is found.is_none
    if gradient is not None:
        assert found.gradient == gradient.name
        made = [node.name for step in found.steps for node in step.backward]
        assert all(graph.find(name) is not None for name in made)
        assert all(part.node or part.input == 0 for item in found.sums for part in item.parts)
        assert gc.explain_gradient(y, x).built
        assert f"is '{gradient.name}' " in repr(gc.explain_gradient(y, x))


def test_there_are_enough_graphs_and_every_kind_of_cut_is_among_them() -> None:
    kinds = {cut.kind for row in TABLE for cut in _cuts(row)}
    assert len(TABLE) >= 25
    assert kinds == set(get_args(CutKind)) - {"stop_gradients", "dropped"}  # the tests below and those of all ops have them


def _cuts(row: Row) -> tuple[gc.GradientCut, ...]:
    with gc.Graph().as_default():
        return gc.explain_gradient(*row.build()).cuts


def test_stop_gradients_are_cuts_as_well() -> None:
    x = place("x")
    middle = gc.tanh(x, name="middle")
    y = gc.square(middle, name="y")
    assert not gc.explain_gradient(y, x).is_none
    found = gc.explain_gradient(y, x, stop_gradients=[middle])
    assert found.is_none
    assert list(map(cut_text, found.cuts)) == ["stop_gradients middle: x -> middle -> y"]
    assert gc.gradients(y, x, stop_gradients=[middle]) == [None]
    assert not gc.explain_gradient(y, middle, stop_gradients=[middle]).is_none
    assert [step.node for step in gc.explain_gradient(y + x, x, stop_gradients=[middle]).steps] == ["add"]


def test_the_text_names_the_node_the_line_and_the_way() -> None:
    x = place("x")
    y = gc.square(gc.stop_gradient(x), name="y")
    text = repr(gc.explain_gradient(y, x))
    assert text.splitlines()[0] == "the gradient of 'y:0' by 'x:0' is None"
    assert "  stop_gradient: 'StopGradient' stops gradients: that is what gc.stop_gradient is for" in text
    assert "test_explain_gradient.py, line" in text
    assert 'y = gc.square(gc.stop_gradient(x), name="y")' in text
    assert text.endswith("      x -> StopGradient -> y")


def test_the_text_tells_what_to_do_about_an_op_without_a_gradient() -> None:
    y, x = not_registered()
    text = repr(gc.explain_gradient(y, x))
    assert text.startswith("the gradient of 'y:0' by 'x:0' is an error: No gradient defined for op: ScatterUpdate")
    assert "gc.register_op_gradient('ScatterUpdate', creator) registers one, gc.stop_gradient before it cuts it off" in text


def test_the_text_of_a_gradient_pairs_forward_with_backward_nodes_and_shows_the_sum() -> None:
    y, x = a_diamond()
    before = repr(gc.explain_gradient(y, x)).splitlines()
    assert before[0] == "the gradient of 'y:0' by 'x:0' is 'gradients/x:0' (not built yet) float [2,3], along 2 paths"
    gc.gradients(y, x)
    lines = repr(gc.explain_gradient(y, x)).splitlines()
    assert lines[0] == "the gradient of 'y:0' by 'x:0' is 'gradients/x:0' float [2,3], along 2 paths"
    assert lines[3].split()[:2] == ["right", "Exp"]
    assert lines[3].split()[-3:] == ["->", "gradients/right_grad/dx", "(Mul)"]
    assert lines[4:] == [
        "  gradients of 'x:0' are summed: gradients/x_sum/AddN:0",
        "      gradients/left_grad/dx:0  from input 0 of 'left'",
        "      gradients/right_grad/dx:0  from input 0 of 'right'",
        "  along x -> left -> y",
        "  along x -> right -> y",
    ]


def test_a_notebook_shows_tables() -> None:
    y, x = one_way_of_two_is_cut()
    html = gc.explain_gradient(y, x)._repr_html_()
    assert html.count("<table>") == 2
    assert "gradients/<wbr>y_grad/<wbr>" in html, "in a narrow column a long name pushes the rest out of sight where it cannot break"
    assert re.search(r"<td[^>]*>stop_gradient</td><td[^>]*>stop</td>", html)


def test_a_finalized_graph_is_explained_too(graph: gc.Graph) -> None:
    y, x = a_chain()
    graph.finalize()
    assert gc.explain_gradient(y, x).path_count == 1
    assert graph.finalized


def test_many_paths_are_counted_and_the_shortest_are_listed() -> None:
    x = place("x")
    y = x
    for _ in range(40):
        y = gc.tanh(y) + gc.exp(y)
    found = gc.explain_gradient(y, x)
    assert found.path_count == 2**40
    assert len(found.paths) == 4
    assert "along 1,099,511,627,776 paths" in repr(found)


def test_of_two_values_of_one_node_the_one_that_is_no_number_is_the_cut() -> None:
    x = place("x")
    top = gc.apply_op("TopKV2", [x, 2], name="top")
    assert isinstance(top, list)
    y = gc.apply_op("GatherV2", [top[0], top[1], 0], name="y")
    found = gc.explain_gradient(y, x)
    assert [(cut.kind, cut.node) for cut in found.cuts] == [("dtype", "top")]
    assert "gives 'top:1', which is int32" in repr(found)


def test_arguments_must_be_single_tensors_of_one_graph() -> None:
    x = place("x")
    with pytest.raises(InvalidArgumentError, match="requires one y, got 2"):
        gc.explain_gradient([x, x], x)
    with gc.Graph().as_default():
        other = place("other")
    with pytest.raises(GraphError, match="other"):
        gc.explain_gradient(x, other)


def test_a_cut_in_a_function_is_told_with_the_node_in_it() -> None:
    y, x = inside_a_branch()
    (cut,) = gc.explain_gradient(y, x).cuts
    assert cut.reason.startswith("runs functions in which no gradient comes to its input 1; in cond_true")
    assert "'Floor' has op Floor, which is registered as not differentiable" in cut.reason
