"""The scene builder of standalone pages gives the same scenes as the kernel's, field by field."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from playwright.sync_api import Browser, Page

import graphcore as gc
import widgets
from graphcore.difference import difference_graph
from tests.browser.page_worker import PageWorker, comparable
from tests.graphcore.difference import test_random_edits as edits
from tests.widgets import conftest as cells
from tests.widgets import test_call_properties as with_calls
from tests.widgets import test_deep_scopes as deep
from tests.widgets import test_own_lenses as with_lenses
from tests.widgets import test_repeats as with_repeats
from tests.widgets import test_scene_properties as with_scopes
from tests.widgets import test_unknown_sizes as unknown
from tests.widgets.test_difference_scenes import changed_function
from tests.widgets.test_structure import residual, width
from widgets.scene import SceneState, build_scene
from widgets.scene.inspect import inspect
from widgets.scene.visible import scope_tree, visible_boxes

DATA = Path(__file__).parents[1] / "data"
graph, run_cell = cells.graph, cells.run_cell
one_wrong = with_repeats.one_wrong
own_lens = with_lenses.own_lens
FILES = [
    *sorted(path.name for path in DATA.glob("*.pb")),
    *sorted(f"saved_models/{path.name}" for path in (DATA / "saved_models").iterdir()),
]


@pytest.fixture(scope="module")
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context()
    yield context.new_page()
    context.close()


def compare(page: Page, graph: gc.Graph, seed: int, steps: int = 12, *, max_boxes: int = 300, auto_boxes: int = 40) -> None:
    """Open, close and reveal what `seed` chooses; compare each scene."""
    chance = random.Random(seed)
    state = SceneState(max_boxes=max_boxes, auto_boxes=auto_boxes)
    worker = PageWorker(page, graph, state)
    request: dict[str, Any] = {"type": "ready"}
    for _ in range(steps):
        scene = build_scene(graph, state)
        found, openings = worker.scene(**request)
        assert comparable(found) == comparable(scene), request
        assert openings == state.openings(), request
        request = _next(chance, graph, state)


def _next(chance: random.Random, graph: gc.Graph, state: SceneState) -> dict[str, Any]:
    scene = build_scene(graph, state)
    closed = [node.id for node in scene.nodes if node.expandable]
    opened = [group.id for group in scene.groups]
    names = [node.name for node in (visible_boxes(graph, state).inner_nodes() if chance.random() < 0.5 else []) or graph.nodes]
    kind = chance.choices(["expand", "collapse", "reveal", "all", "mirror"], [6, 3, 2, 1, 2])[0]
    if kind == "expand" and closed:
        box = chance.choice(closed)
        state.expand(box)
        return {"type": "expand", "id": box}
    if kind == "collapse" and opened:
        box = chance.choice(opened)
        state.collapse(box)
        return {"type": "collapse", "id": box}
    if kind == "reveal" and names:
        name = chance.choice(names)
        assert state.reveal(scope_tree(graph, state), name)
        return {"type": "reveal", "name": name}
    if kind == "mirror" or chance.random() < 0.2:
        state.mirror = not state.mirror
        return {"type": "restore", "openings": msgspec.to_builtins(state.openings())}
    kind = chance.choice(["expand", "collapse"])
    (state.expand if kind == "expand" else state.collapse)("*")
    return {"type": kind, "id": "*"}


@pytest.mark.parametrize("name", FILES)
def test_models_from_files_look_the_same_in_a_page_however_they_are_folded(page: Page, name: str) -> None:
    for seed in range(3):
        compare(page, gc.load(DATA / name, allow_unknown_ops=True, allow_internal_ops=True), seed, 15)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(with_scopes.graphs(), st.integers(0, 1000), st.sampled_from([5, 60]))
def test_graphs_of_scopes_and_gradients_look_the_same_in_a_page(page: Page, graph: gc.Graph, seed: int, boxes: int) -> None:
    compare(page, graph, seed, max_boxes=boxes)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(with_calls.graphs(), st.integers(0, 1000))
def test_graphs_of_functions_branches_and_loops_look_the_same_in_a_page(page: Page, graph: gc.Graph, seed: int) -> None:
    compare(page, graph, seed)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(with_scopes.graphs(), edits.EDITS, st.booleans(), st.integers(0, 1000), st.sampled_from([5, 60]))
def test_differences_look_the_same_in_a_page(
    page: Page, graph: gc.Graph, changes: list[edits.Edit], backwards: bool, seed: int, boxes: int
) -> None:
    before = graph.copy()
    edits.apply(graph, changes)
    compare(page, difference_graph(gc.graph_diff(*((graph, before) if backwards else (before, graph)))), seed, max_boxes=boxes)


def test_differences_of_functions_look_the_same_in_a_page(page: Page) -> None:
    for seed in range(2):
        compare(page, difference_graph(gc.graph_diff(*changed_function())), seed)


@pytest.mark.parametrize("case", [*deep.HOSTILE, "chains"])
def test_names_with_very_many_scopes_look_the_same_in_a_page(page: Page, case: str) -> None:
    made = deep.HOSTILE.get(case, lambda: deep.names("W", "W/a/b/c/d/e/f/x", "p/q/x", "p/r/a/b/c/d/e/f/x", "p/r/a/b/c/d/e/f/y"))
    for seed in range(2):
        compare(page, made(), seed, 6)


def gradients_of_a_network() -> None:
    weights = []
    x = gc.placeholder(gc.float32, [None, 8], name="x")
    for layer in range(12):
        with gc.name_scope(f"layer{layer}"):
            weights.append(gc.Variable(gc.zeros([8, 8]), name="w"))
            x = gc.tanh(x @ weights[-1] + 0.5)
    gc.gradients(x, weights)


def second_derivatives() -> None:
    x = gc.placeholder(gc.float32, [3], name="x")
    with gc.name_scope("f"):
        y = gc.tanh(x) * x * x
    (first,) = gc.gradients(gc.reduce_sum(y), [x])
    gc.gradients(gc.reduce_sum(first), [x])


def a_loop_with_its_gradient() -> None:
    x = gc.placeholder(gc.float32, [3], name="x")
    w = gc.Variable(gc.ones([3]), name="w", use_resource=True)
    y = gc.while_loop(lambda i, _: i < 3, lambda i, v: (i + 1, gc.tanh(v * w)), [gc.constant(0), x])[1]
    gc.gradients(gc.reduce_sum(y * y), [x])


def gradients_that_are_none() -> None:
    x = gc.placeholder(gc.float32, [3], name="x")
    unused = gc.Variable(gc.ones([3]), name="unused")
    weights = []
    for layer in range(4):
        with gc.name_scope(f"layer{layer}"):
            weights.append(gc.Variable(gc.ones([3]), name="w"))
            x = gc.tanh(x * weights[-1])
        x = gc.stop_gradient(x, name="frozen") if layer == 2 else x
    gc.gradients(gc.reduce_sum(x), [*weights, unused])


def a_call_with_its_gradient() -> None:
    @gc.function
    def layer(x: gc.Tensor, w: gc.Tensor) -> gc.Tensor:
        return gc.tanh(x @ w)

    x = gc.placeholder(gc.float32, [None, 3], name="x")
    w = gc.Variable(gc.zeros([3, 3]), name="W")
    y = layer(layer(x, w), w)
    gc.gradients(y, [w])


def a_loop_in_a_branch() -> None:
    x = gc.placeholder(gc.float32, [4], name="x")
    which = gc.placeholder(gc.bool_, [], name="which")

    def looped() -> Any:
        return gc.while_loop(lambda i, _: i < 3, lambda i, s: (i + 1, s * 2.0 + x), [gc.constant(0), x])[1]

    gc.cond(which, looped, lambda: gc.exp(x))


def many_waits() -> None:
    x = gc.placeholder(gc.float32, [2], name="x")
    ends = []
    for number in range(9):
        with gc.name_scope(f"part{number}"):
            x = gc.tanh(x)
            ends.append(gc.exp(x))
    with gc.control_dependencies(ends):
        gc.ops.no_op(name="all")


def a_repeat_of_unlike_blocks() -> None:
    x = gc.placeholder(gc.float32, [None, 4], name="x")
    for number in range(50):
        with gc.device("/device:CPU:1" if number in {3, 20, 21} else None):
            filters = gc.zeros([width(x), 4])
            x = gc.concat([x, gc.relu(gc.bias_add(gc.matmul(x, filters), gc.zeros([4])))], axis=1)
    gc.softmax(x)


def copies_between_devices() -> None:
    with gc.device("/gpu:0"):
        x = gc.placeholder(gc.float16, [5, 125], name="x")  # 1,250 bytes, halfway between two tenths of a kB
        unknown = gc.placeholder(gc.float32, [None], name="unknown")
    with gc.name_scope("part"):
        for number in range(3):
            with gc.device(f"/gpu:{number}"):
                gc.tanh(x)
                gc.exp(x)
                gc.sqrt(unknown)
    with gc.device("/gpu:7"):
        gc.identity(x, name="elsewhere")
    gc.identity(gc.placeholder(gc.float32, [2], name="few"), name="unmoved")
    devices = gc.simulated_devices("1 cpu, 3 gpu")
    gc.Placer(gc.get_default_graph(), devices, allow_soft_placement=True).run()


def variables_with_readers() -> None:
    weights = []
    for layer in range(5):
        with gc.name_scope(f"layer{layer}"):
            weights.append(gc.Variable(gc.zeros([2, 2]), name="w"))
            weights[-1].assign_add(gc.zeros([2, 2]))
    with gc.name_scope("train"):
        for weight in weights:
            weight.assign_sub(gc.zeros([2, 2]))
    for _ in range(9):
        weights[0].assign_add(gc.zeros([2, 2]))
    gc.Placer(gc.get_default_graph(), gc.simulated_devices("1 cpu, 1 gpu")).run()


def a_repeat_on_three_devices() -> None:
    x = gc.placeholder(gc.float32, [None, 16], name="x")
    for number in range(6):
        with gc.device(f"/device:CPU:{number % 4 % 3}"):
            x = residual(x, 16)
        if number == 4:
            x.node.set_requested_device("/device:CPU:1")


def unknown_sizes_in_bodies() -> None:
    x = gc.placeholder(gc.float32, [None, 4], name="x")
    gc.gradients([build(x) for build in (unknown.of_a_function, unknown.of_a_branch, unknown.of_a_loop)], x)


@pytest.mark.parametrize(
    "build",
    [
        unknown_sizes_in_bodies,
        gradients_of_a_network,
        second_derivatives,
        gradients_that_are_none,
        a_loop_with_its_gradient,
        a_call_with_its_gradient,
        a_loop_in_a_branch,
        many_waits,
        a_repeat_of_unlike_blocks,
        copies_between_devices,
        variables_with_readers,
        a_repeat_on_three_devices,
    ],
)
def test_what_people_write_looks_the_same_in_a_page(page: Page, build: Callable[[], None]) -> None:
    for seed in range(4):
        with gc.Graph().as_default() as graph:
            build()
        compare(page, graph, seed)


def test_lenses_of_ones_own_look_the_same_in_a_page(page: Page, own_lens: Callable[..., object]) -> None:
    @widgets.lens(title="<b>Fan-in</b>")
    def fan_in(node: gc.Node) -> str | None:
        return f"{len(node.inputs)} inputs" if node.inputs else None

    @widgets.lens
    def call_of(node: gc.Node) -> str:
        return node.name.partition("/")[0]

    @widgets.lens
    def marks_nothing(node: gc.Node) -> None: ...

    @widgets.lens
    def fails(node: gc.Node) -> str:
        return node.name[1 // 0]

    for seed in range(3):
        with gc.Graph().as_default() as graph:
            a_call_with_its_gradient()
        compare(page, graph, seed, 20)


def test_errors_lost_inputs_and_failed_cells_look_the_same_in_a_page(page: Page, run_cell: cells.RunCell, graph: gc.Graph) -> None:
    run_cell("a", "x = gc.placeholder(gc.float32, [3, 4], name='x')\nw = gc.placeholder(gc.float32, [4, 2], name='w')")
    run_cell("b", "y = gc.matmul(x, w, name='y')\nz = gc.tanh(y, name='z')")
    run_cell("a", "x = gc.placeholder(gc.float32, [3, 5], name='x')\nw = gc.placeholder(gc.float32, [4, 2], name='w')")
    compare(page, graph, 1)
    assert any(node.error for node in build_scene(graph).nodes)
    run_cell("a", "w = gc.placeholder(gc.float32, [4, 2], name='w')")
    compare(page, graph, 2)
    assert any(node.id.startswith("gone:") for node in build_scene(graph).nodes)
    run_cell("c", "q = gc.tanh(w, name='q')\nraise ValueError")
    compare(page, graph, 3)
    assert any(node.state == "stale" for node in build_scene(graph).nodes)
    for cell in ("d", "e"):
        run_cell(cell, "gc.matmul(w, w, name='product')")
    compare(page, graph, 4)
    assert sum(node.id.startswith("refused:") for node in build_scene(graph).nodes) == 2
    worker = PageWorker(page, graph, SceneState())
    worker.scene(type="ready")
    answer = {"type": "highlight", "boxes": ["w"], "text": "1 node for cell:4, in 1 box"}
    assert worker.ask(type="filter", query="cell:4") == answer


def test_a_body_that_cannot_be_made_says_so_in_a_page_once_it_is_opened(page: Page, graph: gc.Graph) -> None:
    graph.library.add_function_def(gc.parse_function("f(x:float) -> (y:float) {\n  a = Tanh[T=float](x)\n  return y = a:y:0\n}"))
    node = gc.NodeDef(
        "call", "PartitionedCall", ("x", "x"), "", {"Tin": (gc.float32, gc.float32), "Tout": (gc.float32,), "f": gc.Func("f", {})}
    )
    gc.placeholder(gc.float32, [2], name="x")
    graph.add_node(node)
    state = SceneState()
    worker = PageWorker(page, graph, state)
    before, _ = worker.scene(type="ready")
    assert comparable(before) == comparable(build_scene(graph, state))
    state.expand("call")
    after, _ = worker.scene(type="expand", id="call")
    assert comparable(after) == comparable(build_scene(graph, state))
    assert any("does not open" in node.error for node in after.nodes)


FIELDS = ("id", "name", "op", "kind", "doc", "traits", "signature", "device", "source", "error", "clashes", "functions", "contents")


@pytest.mark.parametrize(
    "build", [gradients_of_a_network, a_call_with_its_gradient, a_loop_in_a_branch, copies_between_devices, unknown_sizes_in_bodies]
)
def test_the_inspector_of_a_page_says_what_the_kernel_says(page: Page, build: Callable[[], None]) -> None:
    with gc.Graph().as_default() as graph:
        build()
    state = SceneState()
    state.expand("*")
    scene = build_scene(graph, state)
    worker = PageWorker(page, graph, state)
    worker.scene(type="ready")
    for box in [*(node.id for node in scene.nodes), *(group.id for group in scene.groups)]:
        told = inspect(graph, state, box)
        assert told is not None
        found = worker.ask(type="inspect", id=box)["inspection"]
        expected = msgspec.json.decode(msgspec.json.encode(told))
        assert {name: found[name] for name in FIELDS} == {name: expected[name] for name in FIELDS}
        for rows in ("attrs", "inputs", "outputs", "control_inputs", "control_outputs"):
            assert found[rows] == expected[rows], (box, rows)
        for gradient in ("gradient", "registered_gradient"):
            ours, theirs = found[gradient], expected[gradient]
            assert ours is theirs or {**ours, "built": ""} == {**theirs, "built": ""}
        assert [[(step["text"], step["node"]) for step in why["steps"]] for why in found["why"]] == [
            [(step["text"], step["node"]) for step in why["steps"]] for why in expected["why"]
        ]


def test_every_node_of_a_large_model_is_found_and_revealed_in_a_page(page: Page) -> None:
    graph = gc.load(DATA / "mobilenetv2.pb", allow_unknown_ops=True)
    worker = PageWorker(page, graph, SceneState())
    for node in graph.nodes[::37]:
        hits = worker.ask(type="find", query=node.name, limit=50)["hits"]
        assert hits[0]["name"] == node.name
        scene, _ = worker.scene(type="reveal", name=node.name)
        assert any(box.id == node.name for box in scene.nodes)
    assert worker.ask(type="find", query="bn_Conv1_1/batchnorm/mul", limit=50)["total"] >= 1


def test_an_error_in_a_repeat_looks_the_same_in_a_page(page: Page, one_wrong: gc.Graph) -> None:
    compare(page, one_wrong, 0)
