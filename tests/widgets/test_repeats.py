"""Boxes of repeats show the facts of one instance, and not as if they were those of all."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.tf1.train.replicas.replicate import replicate
from tests.support.asking import inspect
from tests.support.live_page import LivePage
from tests.widgets.conftest import RunCell
from tests.widgets.test_structure import residual, width
from widgets import GraphView, to_outline
from widgets.render.compiled import build_scene
from widgets.scene import Scene, SceneNode, SceneState, take_snapshot

BLOCKS = 6
Block = Callable[[gc.Tensor], gc.Tensor]


def plain(x: gc.Tensor) -> gc.Tensor:
    return residual(x, 16)


def chain(odd: Block, place: int) -> gc.Graph:
    """Six blocks, of which the one at `place` (from 1) is odd."""
    x = gc.placeholder(gc.float32, [None, 16], name="x")
    for number in range(1, BLOCKS + 1):
        x = (odd if number == place else plain)(x)
    gc.softmax(x, name="y")
    return gc.get_default_graph()


def on_device(x: gc.Tensor) -> gc.Tensor:
    with gc.device("/device:CPU:1"):
        return plain(x)


def repeat_of(scene: Scene) -> SceneNode:
    (box,) = [node for node in scene.nodes if node.repeat]
    assert box.repeat == BLOCKS
    return box


def opened(graph: gc.Graph) -> list[SceneNode]:
    """The boxes of the blocks when the repeat is open."""
    state = SceneState()
    state.expand(repeat_of(build_scene(graph, state)).id)
    return [node for node in build_scene(graph, state).nodes if node.group]


def test_the_inspector_shows_a_repeat_closed_and_open(graph: gc.Graph) -> None:
    chain(plain, 1)
    state = SceneState()
    box = repeat_of(build_scene(graph, state))
    closed = inspect(graph, state, box.id)
    assert closed is not None
    assert (closed.id, closed.kind, closed.summary) == (box.id, "scope", f"{box.count} nodes")
    state.expand(box.id)
    (frame,) = [group for group in build_scene(graph, state).groups if not group.parent]
    opened = inspect(graph, state, frame.id)
    assert opened is not None
    assert (opened.id, opened.summary, opened.contents) == (frame.id, closed.summary, closed.contents)


@pytest.mark.parametrize("place", [1, 4, 6])
def test_a_device_of_one_instance_is_named_with_its_number(graph: gc.Graph, place: int) -> None:
    scene = build_scene(chain(on_device, place))
    mark = repeat_of(scene).lenses["devices"]
    assert mark.text == f"number {place}: requested /device:CPU:1; others: no device requested"
    assert mark.tone > 0
    devices = next(lens for lens in scene.lenses if lens.name == "devices")
    assert devices.note == ""
    assert mark.tone in [row.tone for row in devices.legend]


def test_a_device_of_one_instance_is_on_its_box_alone_once_the_repeat_is_open(graph: gc.Graph) -> None:
    boxes = opened(chain(on_device, 4))
    assert [node.label for node in boxes if "devices" in node.lenses] == [boxes[3].label]


def test_equal_devices_of_all_instances_have_no_numbers(graph: gc.Graph) -> None:
    with gc.device("/device:CPU:1"):
        scene = build_scene(chain(plain, 0))
    assert repeat_of(scene).lenses["devices"].text == "requested /device:CPU:1"


def test_instances_of_three_devices_are_all_numbered(graph: gc.Graph) -> None:
    x = gc.placeholder(gc.float32, [None, 16], name="x")
    for number in range(BLOCKS):
        with gc.device(f"/device:CPU:{(0, 0, 1, 1, 0, 2)[number]}"):
            x = plain(x)
    text = repeat_of(build_scene(graph)).lenses["devices"].text
    assert text == "numbers 3 to 4: requested /device:CPU:1; number 6: requested /device:CPU:2; others: requested /device:CPU:0"


def test_instances_with_nodes_on_several_devices_say_how_many_on_each(graph: gc.Graph) -> None:
    def divided(x: gc.Tensor) -> gc.Tensor:
        with gc.device("/device:CPU:0"):
            y = plain(x)
        y.node.set_requested_device("/device:CPU:1")
        return y

    text = repeat_of(build_scene(chain(divided, 2))).lenses["devices"].text
    assert re.fullmatch(r"number 2: requested /device:CPU:0 × \d+, requested /device:CPU:1 × \d+; others: no device requested", text)


def test_cells_of_instances_are_numbered(run_cell: RunCell, graph: gc.Graph) -> None:
    run_cell("one", "from tests.widgets.test_repeats import plain\nx = gc.placeholder(gc.float32, [None, 16], name='x')")
    for cell in ("two", "three"):
        run_cell(cell, "for _ in range(3):\n    x = plain(x)")
    mark = repeat_of(build_scene(graph)).lenses["cells"]
    assert mark.text == "numbers 4 to 6: In [3]; others: In [2]"


def test_shapes_of_all_instances_are_on_the_box(graph: gc.Graph) -> None:
    assert repeat_of(build_scene(chain(plain, 0))).lenses["shapes"].text == "each float [?,16]"


def test_a_shape_of_one_instance_is_named_with_its_number(graph: gc.Graph) -> None:
    x = gc.placeholder(gc.float32, [None, 4], name="x")
    for _ in range(BLOCKS):
        x = gc.concat([x, gc.relu(gc.bias_add(gc.matmul(x, gc.zeros([width(x), 4])), gc.zeros([4])))], axis=1)
    mark = repeat_of(build_scene(graph)).lenses["shapes"]
    assert mark.text.startswith("number 1: float [?,8]; number 2: float [?,12]; number 3: float [?,16]")


@pytest.fixture
def one_wrong(run_cell: RunCell, graph: gc.Graph) -> gc.Graph:
    """The cell of the biases was run again; the one of the fourth block no longer fits."""
    biases = "biases = [gc.Variable(gc.zeros([{}]), name=f'bias{{n}}').value() for n in range(1, 7)]"
    run_cell("imports", "from tests.widgets.test_repeats import plain\nx = gc.placeholder(gc.float32, [None, 16], name='x')")
    run_cell("biases", biases.format("16"))
    run_cell("model", "for bias in biases:\n    x = gc.tanh(gc.add(plain(x), bias, name='shift'))")
    run_cell("biases", biases.format("7 if n == 4 else 16"))
    return graph


def test_an_error_of_one_instance_is_on_the_box_with_its_number(one_wrong: gc.Graph) -> None:
    scene = build_scene(one_wrong)
    box = repeat_of(scene)
    assert box.state == "error"
    assert box.error.startswith("number 4, shift_3: ")
    assert "7" in box.error
    assert "1 with errors" in scene.summary


def test_an_error_of_one_instance_is_on_its_box_alone_once_the_repeat_is_open(one_wrong: gc.Graph) -> None:
    assert [node.state == "error" for node in opened(one_wrong)] == [False, False, False, True, False, False]


def test_a_changed_instance_marks_the_repeat_and_only_its_own_box_when_open(run_cell: RunCell, graph: gc.Graph) -> None:
    run_cell("imports", "from tests.widgets.test_repeats import plain\nx = gc.placeholder(gc.float32, [None, 16], name='x')")
    for number in range(1, BLOCKS + 1):
        run_cell(f"block{number}", "x = plain(x)")
    before = take_snapshot(graph)
    run_cell("block7", "x = plain(x)")
    state = SceneState()
    (box,) = [node for node in build_scene(graph, state, previous=before).nodes if node.repeat]
    assert (box.repeat, box.state) == (7, "changed")
    state.expand(box.id)
    states = [node.state for node in build_scene(graph, state, previous=before).nodes if node.group]
    assert states == [*6 * ["normal"], "new"]


@pytest.fixture
def view() -> Iterator[Any]:
    chain(on_device, 4)
    view: Any = GraphView(gc.get_default_graph())
    view.page = LivePage.in_place_of(view)
    view.page.ask(type="ready")
    yield view
    view.close()


def highlighted(view: Any) -> set[str]:
    return set([message for message in view.page.sent if message["type"] == "highlight"][-1]["boxes"])


@pytest.mark.parametrize(
    "ask",
    [
        lambda view: view.filter(device="CPU:1"),
        lambda view: view.filter(op="MatMul"),
        lambda view: view.neighborhood("MatMul_12", 2),
        lambda view: view.path("MatMul_12", "MatMul_14"),
    ],
)
def test_a_hit_inside_a_closed_repeat_marks_the_repeat_and_opens(graph: gc.Graph, view: Any, ask: Callable[[Any], list[str]]) -> None:
    box = repeat_of(view.scene)
    names = ask(view)
    assert names
    assert box.id in highlighted(view)
    view.page.ask(type="reveal", name=names[0], quiet=False)
    assert names[0] in {node.id for node in view.scene.nodes}
    ask(view)
    assert names[0] in highlighted(view)
    assert box.id not in highlighted(view)


def test_a_path_through_a_closed_repeat_marks_it(graph: gc.Graph, view: Any) -> None:
    box = repeat_of(view.scene)
    assert len(view.path("x", "y")) > BLOCKS
    assert highlighted(view) == {"x", box.id, "y"}


def test_replicas_are_one_repeat_beside_the_sums_of_their_gradients() -> None:
    def loss() -> gc.Tensor:
        chosen = gc.random_uniform([64], 0, 1797, gc.int64)
        hidden = gc.layers.dense(gc.gather(np.zeros((1797, 64), np.float32), chosen), 128, gc.nn.relu, name="hidden")
        scores = gc.layers.dense(hidden, 10, name="scores")
        return gc.losses.sparse_softmax_cross_entropy(gc.gather(np.zeros(1797, np.int32), chosen), scores)

    with gc.Graph().as_default() as graph:
        machine = gc.simulated_devices("2 tasks x (1 cpu)")
        replicate(loss, machine, optimizer=gc.GradientDescentOptimizer(0.5), variables="mirrored", reduce="tree")
    outline = to_outline(graph)
    assert "\nreplica x 2 (" in outline
    assert "\nscope sums/" in outline
