"""`gc.graph_diff` names what is different, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

import graphcore as gc


def layers(scope: str = "layer", *, rate: float = 0.5, extra: bool = False, size: int = 4) -> gc.Graph:
    """Three layers in scopes, with a Tanh after the second one if `extra`."""
    graph = gc.Graph()
    with graph.as_default():
        h = gc.placeholder(gc.float32, [None, size], name="x")
        for number in range(3):
            with gc.name_scope(f"{scope}{number}"):
                weights = gc.constant([[float(number)] * size] * size, name="W")
                h = gc.relu(gc.matmul(h, weights) + gc.constant([1.0] * size, name="b"))
                h = gc.tanh(h) if extra and number == 1 else h
        gc.multiply(h, rate, name="out")
    return graph


def test_a_graph_is_no_different_from_itself_nor_from_its_copy_nor_from_the_same_graph_built_again() -> None:
    graph = layers()
    for other in (graph, graph.copy(), layers(), graph.as_graph_def()):
        diff = gc.graph_diff(graph, other)
        assert not diff
        assert str(diff) == "No difference"


def test_an_inserted_node_is_an_addition_and_a_rewired_input() -> None:
    diff = gc.graph_diff(layers(), layers(extra=True))
    assert diff
    assert diff.added == ("layer1/Tanh",)
    assert diff.removed == ()
    assert {name: str(change) for name, change in diff.changed.items()} == {"layer2/MatMul": "input 0: layer1/Relu → layer1/Tanh"}


def test_a_changed_constant_is_told_with_both_values() -> None:
    diff = gc.graph_diff(layers(), layers(rate=0.25))
    assert [str(change) for change in diff.changed.values()] == ["value: 0.5 → 0.25"]


def test_constants_that_print_alike_still_differ() -> None:
    a, b = gc.Graph(), gc.Graph()
    for graph, last in ((a, 1.0), (b, 2.0)):
        with graph.as_default():
            gc.constant([0.0] * 100 + [last], name="c")
    (change,) = gc.graph_diff(a, b).changed["c"].changes
    assert change.what == "value"
    assert change.before != change.after


def test_shapes_that_follow_from_a_change_are_told_apart_from_it() -> None:
    a, b = gc.Graph(), gc.Graph()
    for graph, rows in ((a, 5), (b, 7)):
        with graph.as_default():
            gc.square(gc.tanh(gc.placeholder(gc.float32, [rows, 2], name="x"), name="t"), name="s")
    diff = gc.graph_diff(a, b)
    assert {name: change.follows for name, change in diff.changed.items()} == {"x": False, "t": True, "s": True}
    assert str(diff).splitlines() == [
        "1 changed, 2 of other types or shapes, 0 unchanged",
        "~ x  shape: [5,2] → [7,2]; output 0: [5,2] → [7,2]",
        "2 nodes of other types or shapes because of these: t, s",
    ]


def test_types_devices_and_control_inputs_are_compared() -> None:
    a, b = gc.Graph(), gc.Graph()
    for graph, dtype in ((a, gc.float32), (b, gc.float64)):
        with graph.as_default():
            x = gc.placeholder(dtype, [2], name="x")
            gc.no_op(name="first")
            with gc.device("/cpu:0" if graph is a else "/gpu:1"):
                gc.tanh(x, name="t")
    _, first, last = b.nodes
    b.add_control_edge(first, last)
    diff = gc.graph_diff(a, b)
    kinds = {change.kind for change in diff.changed["t"].changes}
    assert kinds == {"attr", "type", "device", "control"}
    assert "waits for first" in str(diff.changed["t"])
    assert "no longer waits for first" in str(gc.graph_diff(b, a).changed["t"])


@pytest.mark.parametrize("scope", ["block", "net/layer", "layer_of_"])
def test_a_renamed_scope_is_no_removal_and_addition(scope: str) -> None:
    diff = gc.graph_diff(layers(), layers(scope, extra=True))
    assert diff.added == (f"{scope}1/Tanh",)
    assert diff.removed == ()
    assert len(diff.renamed) == 15
    assert all(new.startswith(scope) for new in diff.renamed.values())
    assert [change.name for change in diff.changed.values()] == [f"{scope}2/MatMul"]


def test_a_graph_below_a_prefix_is_the_same_graph_moved() -> None:
    graph = layers()
    other = gc.Graph()
    gc.import_graph_def(graph.as_graph_def(), other, prefix="net")
    diff = gc.graph_diff(graph, other)
    assert (diff.added, diff.removed, dict(diff.changed)) == ((), (), {})
    assert diff.renamed == {node.name: f"net/{node.name}" for node in graph.nodes}
    assert diff.renamed_scopes == {"": "net"}
    assert str(diff) == f"{len(graph)} renamed, 0 unchanged\n» now in scope net/ ({len(graph)} nodes)"


def test_a_renamed_node_is_known_by_its_place() -> None:
    a, b = gc.Graph(), gc.Graph()
    for graph, name in ((a, "h"), (b, "hidden")):
        with graph.as_default():
            gc.square(gc.tanh(gc.placeholder(gc.float32, [2], name="x"), name=name), name="y")
    diff = gc.graph_diff(a, b)
    assert diff.renamed == {"h": "hidden"}
    assert (diff.added, diff.removed, dict(diff.changed)) == ((), (), {})


def test_numbers_that_a_new_node_shifts_are_renamings() -> None:
    a, b = gc.Graph(), gc.Graph()
    for graph in (a, b):
        with graph.as_default():
            x = gc.placeholder(gc.float32, [2], name="x")
            h = gc.square(gc.relu(x))
            h = gc.exp(gc.relu(h) if graph is b else h)
            gc.negative(gc.relu(gc.tanh(h)))
    diff = gc.graph_diff(a, b)
    assert diff.added == ("Relu_1",)
    assert diff.renamed == {"Relu_1": "Relu_2"}
    assert list(diff.changed) == ["Exp"]


def test_another_op_under_the_same_name_is_a_change() -> None:
    a, b = gc.Graph(), gc.Graph()
    for graph, act in ((a, gc.relu), (b, gc.tanh)):
        with graph.as_default():
            gc.square(act(gc.placeholder(gc.float32, [2], name="x"), name="h"), name="y")
    diff = gc.graph_diff(a, b)
    assert {name: str(change) for name, change in diff.changed.items()} == {"h": "op: Relu → Tanh"}


def test_gradients_are_additions() -> None:
    graph = layers()
    before = graph.copy()
    with graph.as_default():
        gc.gradients(graph.as_graph_element("out:0"), [graph.as_graph_element("x:0")])
    diff = gc.graph_diff(before, graph)
    assert set(diff.added) == {node.name for node in graph.nodes} - {node.name for node in before.nodes}
    assert (diff.removed, dict(diff.changed), dict(diff.renamed)) == ((), {}, {})


def test_functions_are_compared_by_name_and_by_body() -> None:
    def with_functions(**texts: str) -> gc.Graph:
        graph = gc.Graph()
        graph.add_function_library(gc.FunctionDefLibrary(tuple(gc.parse_function(text) for text in texts.values())))
        return graph

    body = "(x:float) -> (y:float) {\n  a = Square[T=float](x)\n  y = Tanh[T=float](a:y:0)\n  return y = y:y:0\n}"
    other = body.replace("Tanh", "Relu")
    a = with_functions(f="f" + body, g="g" + body.replace("Square", "Exp"), h="h" + body.replace("Square", "Neg"))
    b = with_functions(f="f" + other, g2="g2" + body.replace("Square", "Exp"), k="k" + body.replace("Square", "Abs"))
    functions = gc.graph_diff(a, b).functions
    assert functions.renamed == {"g": "g2"}
    assert (functions.added, functions.removed) == (("k",), ("h",))
    assert {name: str(change) for name, change in functions.changed["f"].changed.items()} == {"y": "op: Tanh → Relu"}


def test_two_functions_are_compared_as_they_are_defined() -> None:
    text = "Twice[T:type](x:T) -> (y:T) {\n  a = Square[T=$T](x)\n  y = Mul[T=$T](a:y:0, x)\n  return y = y:z:0\n}"
    a, b = gc.parse_function(text), gc.parse_function(text.replace("(a:y:0, x)", "(x, a:y:0)"))
    assert str(gc.graph_diff(a, b).changed["y"]) == "input 0: a:y:0 → x; input 1: x → a:y:0"
    with pytest.raises(gc.errors.InvalidArgumentError, match="Required two functions or two graphs"):
        gc.graph_diff(a, gc.Graph())


def test_files_and_definitions_stand_for_their_graphs(tmp_path: Path) -> None:
    first, second = gc.save(layers(), tmp_path / "a.pb"), gc.save(layers(extra=True), tmp_path / "b.pbtxt")
    assert gc.graph_diff(first, str(second)).added == ("layer1/Tanh",)
    with pytest.raises(gc.errors.NotFoundError, match="missing"):
        gc.graph_diff(first, tmp_path / "missing.pb")
    with pytest.raises(gc.errors.InvalidArgumentError, match="Required a graph"):
        gc.graph_diff(first, 3)


def test_a_difference_is_not_touched_by_later_changes_of_the_graph() -> None:
    graph = layers()
    before = graph.copy()
    with graph.as_default():
        gc.constant(1.0, name="c")
    diff = gc.graph_diff(before, graph)
    text = str(diff)
    graph.remove_node(graph.nodes[-1])
    assert str(diff) == text
    assert diff.added == ("c",)


def test_long_lists_are_cut_with_their_counts() -> None:
    graph = gc.Graph()
    with graph.as_default():
        for number in range(600):
            gc.constant(float(number), name=f"s{number % 30}/c{number}")
    text = str(gc.graph_diff(gc.Graph(), graph))
    assert text.startswith("600 added, 0 unchanged\n")
    assert "  + … and 8 more" in text
    assert text.endswith("… and 200 more in 10 scopes")
    assert len(text.splitlines()) < 320
