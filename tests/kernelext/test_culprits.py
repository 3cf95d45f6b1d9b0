"""Red only for the node at which a cell failed; its other nodes get a quiet mark."""

from __future__ import annotations

import pytest

from graphcore.graph import get_default_graph
from tests.kernelext.conftest import NotebookShell
from tests.support.asking import inspect
from widgets.render.compiled import build_scene
from widgets.render.page_data.build import graph_data
from widgets.scene import SceneState

MODEL = """x = gc.placeholder(gc.float32, [None, 8], name='x')
h = gc.relu(gc.matmul(x, gc.ones([8, 4]), name='product'), name='h')
rows = gc.reshape(h, [-1, 3], name='rows')
loss = gc.reduce_sum(rows, name='loss')"""
FEED = "session.run(loss, {x: [[1.0] * 8] * 3})"
BAD_FEED = "session = gc.Session()\nsession.run(loss, {x: [[1.0] * 8] * 2})"


def states() -> dict[str, str]:
    """The states of the boxes, by name, except normal ones."""
    scene = build_scene(get_default_graph(), title="graph")
    return {node.id: node.state for node in scene.nodes if node.state != "normal"}


def red() -> list[str]:
    """The names of the red boxes."""
    return [name for name, state in states().items() if state == "error"]


def shapes(shell: NotebookShell) -> list[str]:
    return [str(shell.user_ns[name].shape) for name in ("h", "rows", "loss")]


@pytest.mark.parametrize("line", ["gc.relo(x)", "undefined_name", "1 / 0"])
def test_a_slip_above_paints_no_node_red_and_takes_no_shapes(tracked: NotebookShell, line: str) -> None:
    tracked.run(MODEL, "model")
    tracked.run("after = gc.tanh(loss, name='after')", "after")
    before = shapes(tracked)
    tracked.run(MODEL.replace("\nh =", f"\n{line}\nh ="), "model")
    assert red() == []
    assert set(states().values()) == {"stale"}
    assert "after" not in states()
    assert shapes(tracked) == before
    with pytest.raises(RuntimeError, match="failed before it made"):
        tracked.user_ns["gc"].Session().run(tracked.user_ns["after"], {"x:0": [[1.0] * 8] * 3})
    tracked.run(MODEL, "model")
    assert states() == {}


def test_a_node_that_cannot_be_made_again_is_the_only_red_one(tracked: NotebookShell) -> None:
    tracked.run(MODEL, "model")
    tracked.run(MODEL.replace("[8, 4]", "[7, 4]"), "model")
    assert red() == ["product"]
    assert states()["loss"] == states()["x"] == "stale"
    assert shapes(tracked)[1] == "[?,3]"
    tracked.run(MODEL, "model")
    assert states() == {}


def test_the_node_at_which_a_run_fails_is_red_until_a_run_succeeds_or_the_node_is_made_again(tracked: NotebookShell) -> None:
    tracked.run(MODEL, "model")
    tracked.run(BAD_FEED, "run")
    assert red() == ["rows"]
    assert list(states()) == ["rows"]
    tracked.run("x.shape", "look")
    assert red() == ["rows"]
    tracked.run(FEED, "again")
    assert states() == {}
    tracked.run(BAD_FEED, "run")
    assert red() == ["rows"]
    tracked.run(MODEL, "model")
    assert states() == {}


def test_a_fault_of_a_run_stays_with_its_node_when_others_fail_and_pages_say_the_same(tracked: NotebookShell) -> None:
    tracked.run(MODEL, "model")
    tracked.run(BAD_FEED, "run")
    tracked.run("loss + gc.ones([2], gc.int32)", "types")
    assert "rows" in red()
    errors = graph_data(get_default_graph(), SceneState()).head.spaces[0].errors
    assert [error.text.partition("\n")[0] for error in errors.values()] == [
        "Reshape node 'rows': Input to reshape is a tensor with 8 values, but the requested shape [-1,3] requires a multiple of 3"
    ]


def test_a_node_that_is_left_still_follows_the_shapes_of_its_inputs(tracked: NotebookShell) -> None:
    tracked.run("x = gc.placeholder(gc.float32, [2, 8], name='x')", "x")
    tracked.run("h = gc.relu(x, name='h')", "h")
    tracked.run("1 / 0", "h")
    tracked.run("x = gc.placeholder(gc.float32, [5, 8], name='x')", "x")
    assert str(tracked.user_ns["h"].shape) == "[5,8]"
    assert states() == {"h": "stale"}
    with pytest.raises(RuntimeError, match="failed before it made"):
        tracked.user_ns["gc"].Session().run("h:0", {"x:0": [[1.0] * 8] * 5})


def test_a_refused_node_is_red_although_the_constants_made_for_it_are_gone(tracked: NotebookShell) -> None:
    tracked.run("x = gc.zeros([3, 4], name='x')\nz = gc.reshape(x, [5, 5], name='bad')", "bad")
    scene = build_scene(get_default_graph(), title="graph")
    assert [(node.label, node.state) for node in scene.nodes] == [("x", "stale"), ("bad was not made", "error")]
    assert [edge.source for edge in scene.edges] == ["x"]


def test_a_node_that_could_not_be_made_is_a_red_box_with_its_inputs_until_its_cell_runs_again(tracked: NotebookShell) -> None:
    tracked.run(MODEL.replace("[8, 4]", "[7, 4]"), "model")
    scene = build_scene(get_default_graph(), title="graph")
    assert [(node.label, node.state) for node in scene.nodes if node.state == "error"] == [("product was not made", "error")]
    assert [(edge.source, edge.label) for edge in scene.edges if edge.target == "refused:product"] == [
        ("x", "float [?,8]"),
        ("ones", "float [7,4]"),
    ]
    assert "1 with errors" in scene.summary
    (refused,) = graph_data(get_default_graph(), SceneState()).head.spaces[0].refused
    assert refused.name == "product"
    assert refused.text.startswith("Dimensions must be equal, but are 8 and 7")
    tracked.run(MODEL, "model")
    assert states() == {}


def test_two_nodes_of_one_name_that_could_not_be_made_are_two_boxes_with_lines_of_their_own(tracked: NotebookShell) -> None:
    tracked.run(
        "with gc.name_scope('given'):\n    x = gc.placeholder(gc.float32, [8, 8])\n    w = gc.placeholder(gc.float32, [7, 3])", "given"
    )
    for cell in ("a", "b"):
        tracked.run("gc.matmul(x, w, name='product')", cell)
    state = SceneState()
    state.collapse("given/")
    scene = build_scene(get_default_graph(), state)
    assert [node.label for node in scene.nodes if node.state == "error"] == ["product was not made", "product_1 was not made"]
    assert {edge.source for edge in scene.edges} == {"given/"}
    assert len({node.id for node in scene.nodes}) == 3
    assert len({edge.id for edge in scene.edges}) == 4
    (first, second) = [inspect(get_default_graph(), state, node.id) for node in scene.nodes if node.state == "error"]
    assert first is not None
    assert second is not None
    assert [first.name, second.name] == ["product", "product_1"]
