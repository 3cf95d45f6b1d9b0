"""First pictures of large models: repeats, groups, and what folds into what."""

from __future__ import annotations

from pathlib import Path

import networkx as nx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import graphcore as gc
from tests.support.asking import find
from tests.support.renaming import renamed
from widgets.render.compiled import boxes_of, build_scene, reveal
from widgets.scene import Scene, SceneState, take_snapshot

DATA = Path(__file__).parents[1] / "data"


def repeats(scene: Scene) -> list[int]:
    return [node.repeat for node in scene.nodes if node.repeat and node.kind != "stub"]


def boxes(scene: Scene) -> int:
    return sum(1 for node in scene.nodes if node.kind != "stub")


def is_acyclic(scene: Scene) -> bool:
    return bool(nx.is_directed_acyclic_graph(nx.DiGraph([(edge.source, edge.target) for edge in scene.edges])))


def tensor(graph: gc.Graph, name: str) -> gc.Tensor:
    node = graph.find(name)
    assert node is not None
    return node.outputs[0]


def weight(*shape: int) -> gc.Tensor:
    return gc.Variable(gc.zeros(list(shape)), name="weight").value()


def width(x: gc.Tensor) -> int:
    size = (x.shape.dims or ())[-1]
    assert size is not None
    return size


def dense(x: gc.Tensor, units: int) -> gc.Tensor:
    return gc.relu(gc.bias_add(gc.matmul(x, weight(width(x), units)), weight(units)))


def residual(x: gc.Tensor, units: int, *, project: bool = False) -> gc.Tensor:
    inner = dense(dense(dense(dense(x, units), units), units), units)
    return gc.relu(inner + (gc.matmul(x, weight(width(x), units)) if project else x))


def stages(counts: list[int]) -> gc.Graph:
    """A residual network: the first block of each stage has a projection and another width."""
    gc.reset_default_graph()
    x = gc.placeholder(gc.float32, [None, 8], name="x")
    for stage, count in enumerate(counts):
        for block in range(count):
            x = residual(x, 16 + 8 * stage, project=block == 0)
    gc.softmax(x, name="y")
    return gc.get_default_graph()


@pytest.mark.parametrize("counts", [[3, 4, 6, 3], [2, 5], [3, 3, 3]])
def test_stages_of_near_alike_blocks_read_as_their_counts(counts: list[int]) -> None:
    graph = stages(counts)
    scene = build_scene(graph)
    assert repeats(scene) == counts
    assert boxes(scene) <= 40
    assert is_acyclic(scene)


def test_differences_of_near_alike_instances_are_listed() -> None:
    scene = build_scene(stages([3, 4]))
    assert [node.detail for node in scene.nodes if node.repeat] == 2 * ["first also: MatMul"]


def test_names_do_not_matter_for_what_is_repeated() -> None:
    graph = stages([3, 4, 6, 3])
    scene = build_scene(renamed(graph))
    assert repeats(scene) == [3, 4, 6, 3]
    assert boxes(scene) <= 40
    assert is_acyclic(scene)


def test_scopes_of_equal_structure_are_a_repeat(graph: gc.Graph) -> None:
    x = gc.placeholder(gc.float32, [None, 16], name="x")
    for layer in range(12):
        with gc.name_scope(f"layer_{layer}"):
            x = residual(x, 16)
    scene = build_scene(graph)
    box = next(node for node in scene.nodes if node.repeat)
    assert (box.repeat, box.label, box.kind) == (12, "layer", "scope")
    state = SceneState()
    state.expand(box.id)
    opened = build_scene(graph, state)
    assert {f"layer_{layer}/" for layer in range(12)} <= {node.id for node in opened.nodes}
    assert [group.label for group in opened.groups] == ["layer ×12"]


def test_a_skip_over_the_whole_model_hides_no_stage(graph: gc.Graph) -> None:
    x = gc.placeholder(gc.float32, [None, 16], name="x")
    mask = gc.tanh(gc.placeholder(gc.float32, [None, 16], name="mask"))
    for _ in range(6):
        x = residual(x, 16) * mask
    scene = build_scene(graph)
    assert repeats(scene) == [6]
    assert is_acyclic(scene)


def test_equal_towers_side_by_side_are_a_repeat(graph: gc.Graph) -> None:
    towers = []
    for _ in range(6):
        x = gc.placeholder(gc.float32, [None, 8], name="x")
        for _ in range(4):
            x = dense(x, 8)
        towers.append(x)
    gc.softmax(gc.concat(towers, axis=1), name="y")
    assert 6 in repeats(build_scene(graph))


def test_layers_that_use_one_tensor_from_before_are_a_repeat(graph: gc.Graph) -> None:
    memory = dense(gc.placeholder(gc.float32, [None, 8], name="memory"), 8)
    y = gc.placeholder(gc.float32, [None, 8], name="y")
    for _ in range(5):
        with gc.name_scope("attend"):
            looked = dense(y, 8) * dense(memory, 8)
        with gc.name_scope("norm"):
            y = gc.tanh(gc.sigmoid(y + looked))
        with gc.name_scope("feed"):
            y = y + dense(dense(y, 8), 8)
    assert repeats(build_scene(graph)) == [5]


def test_constants_without_a_use_are_one_box(graph: gc.Graph) -> None:
    for number in range(30):
        gc.constant([float(number), 1.0], name="spare")
    stages([3, 4])
    assert [node.label for node in build_scene(renamed(gc.get_default_graph())).nodes if "unused" in node.label] == []
    for number in range(30):
        gc.constant([float(number), 1.0], name="spare")
    box = next(node for node in build_scene(gc.get_default_graph()).nodes if "unused" in node.label)
    assert (box.label, box.count) == ("30 unused constants", 30)


def test_a_node_and_the_scope_of_its_name_are_one_box(graph: gc.Graph) -> None:
    x = gc.placeholder(gc.float32, [None, 8], name="x")
    for step in range(12):
        x = gc.tanh(x, name=f"loss/step_{step}")
    gc.square(x, name="loss")
    state = SceneState(auto_boxes=1)
    scene = build_scene(graph, state)
    assert {node.id: node.count for node in scene.nodes} == {"x": 1, "loss/": 13}
    assert reveal(graph, state, "loss")
    assert boxes_of(graph, state)["loss"] == "loss"


def test_a_final_identity_folds_into_what_it_passes_on() -> None:
    graph = stages([3, 4])
    gc.identity(tensor(graph, "y"), name="out")
    scene = build_scene(graph)
    assert "out" not in {node.id for node in scene.nodes}
    assert sum(node.count for node in scene.nodes if node.kind != "stub") == len(graph)


def test_a_recurrence_with_two_states_is_a_repeat(graph: gc.Graph) -> None:
    c = h = gc.placeholder(gc.float32, [3, 8], name="start")
    for _ in range(20):
        x = gc.placeholder(gc.float32, [3, 8], name="x")
        gate = gc.sigmoid(gc.matmul(x, weight(8, 8)) + gc.matmul(h, weight(8, 8)))
        c = gate * c + gc.sigmoid(gc.matmul(h, weight(8, 8))) * gc.tanh(gc.matmul(x, weight(8, 8)))
        h = gc.tanh(c) * gate
    scene = build_scene(graph)
    assert max(repeats(scene)) >= 19
    assert boxes(scene) <= 40


def test_openings_survive_what_is_added_later() -> None:
    graph = stages([3, 4])
    state = SceneState()
    box = next(node for node in build_scene(graph, state).nodes if node.repeat)
    state.expand(box.id)
    before = [group.id for group in build_scene(graph, state).groups]
    gc.square(tensor(graph, "y"), name="later")
    assert before
    assert [group.id for group in build_scene(graph, state).groups] == before


def test_a_node_inside_is_revealed_and_found() -> None:
    graph = stages([3, 4, 6, 3])
    deep = [node.name for node in graph.nodes if node.op == "MatMul"][40]
    state = SceneState()
    build_scene(graph, state)
    assert boxes_of(graph, state)[deep] != deep
    assert deep in [hit.node for hit in find(graph, deep).hits]
    assert reveal(graph, state, deep)
    assert boxes_of(graph, state)[deep] == deep


def test_a_new_node_inside_marks_its_box() -> None:
    graph = stages([3, 4])
    snapshot = take_snapshot(graph)
    gc.square(tensor(graph, "Relu_3"), name="added")
    states = {node.state for node in build_scene(graph, previous=snapshot).nodes}
    assert states & {"new", "changed"}


def test_everything_can_be_opened() -> None:
    graph = stages([2, 3])
    state = SceneState(max_boxes=500)
    for _ in range(8):
        for node in build_scene(graph, state).nodes:
            if node.expandable:
                state.expand(node.id)
    assert {node.id for node in build_scene(graph, state).nodes} >= {node.name for node in graph.nodes}


def test_initial_values_of_a_small_graph_are_inside_their_variables(softmax_regression: gc.Graph) -> None:
    state = SceneState()
    scene = build_scene(softmax_regression, state)
    counts = {node.id: node.count for node in scene.nodes}
    assert (counts["W"], counts["b"]) == (4, 4)
    assert not {"zeros", "zeros_1"} & counts.keys()
    state.expand("W")
    assert {node.id for node in build_scene(softmax_regression, state).nodes if node.group == "W/"} == {"W", "W/Assign", "W/read", "zeros"}


def test_a_computed_initial_value_is_inside_its_variable(graph: gc.Graph) -> None:
    gc.Variable(gc.truncated_normal([8, 4]) * 0.1, name="W")
    gc.placeholder(gc.float32, [8], name="x")
    assert {node.id for node in build_scene(graph).nodes} == {"W", "x"}


def test_what_has_a_further_use_is_not_inside_a_variable(graph: gc.Graph) -> None:
    shared, used, fed = gc.zeros([4], name="shared"), gc.zeros([4], name="used"), gc.placeholder(gc.float32, [4], name="fed")
    gc.Variable(shared, name="a")
    gc.Variable(shared, name="b")
    gc.Variable(used, name="c")
    gc.Variable(fed + 1.0, name="d")
    gc.tanh(used, name="y")
    assert {"shared", "used", "fed", "add", "y"} <= {node.id for node in build_scene(graph).nodes}


@pytest.mark.parametrize("name", ["mobilenetv2", "transformer", "mlp_train_v1"])
def test_a_weight_is_in_at_most_one_frame_of_its_own(name: str) -> None:
    model = gc.load(DATA / f"{name}.pb", allow_unknown_ops=True, allow_internal_ops=True)
    weights = [node for node in model.nodes if node.op == "VariableV2" or (node.op == "Const" and node.name.endswith("resource"))]
    for weight in weights[:: max(1, len(weights) // 10)]:
        state = SceneState(max_boxes=400)
        build_scene(model, state)
        assert reveal(model, state, weight.name)
        scene = build_scene(model, state)
        frames = {group.id: group for group in scene.groups}
        around = []
        frame = next(node.group for node in scene.nodes if node.id == weight.name)
        while frame:
            around.append(frames[frame])
            frame = frames[frame].parent
        assert len([group.label for group in around if group.count < 8]) <= 1, weight.name


def test_arrows_form_cycles_only_around_loops_and_never_through_groups_of_dataflow() -> None:
    loops = gc.load(DATA / "while_v1.pb", allow_unknown_ops=True, allow_internal_ops=True)
    edges = nx.DiGraph([(tensor.node.name, node.name) for node in loops.nodes for tensor in node.inputs])
    in_loops = {name for clump in nx.strongly_connected_components(edges) if len(clump) > 1 for name in clump}
    state = SceneState()
    scene = build_scene(loops, state)
    box_of = boxes_of(loops, state)
    arrows = nx.DiGraph([(edge.source, edge.target) for edge in scene.edges])
    clumps = [clump for clump in nx.strongly_connected_components(arrows) if len(clump) > 1]
    assert clumps
    for clump in clumps:
        assert len(clump & {box_of[name] for name in in_loops}) > 1
        assert not [box for box in clump if "#" in box]
    assert is_acyclic(build_scene(renamed(loops)))


def test_a_while_loop_without_a_scope_is_named_as_one() -> None:
    loops = gc.load(DATA / "while_v1.pb", allow_unknown_ops=True, allow_internal_ops=True)
    scene = build_scene(renamed(loops))
    labels = [node.label for node in scene.nodes]
    assert "while loop: Less, Add" in labels
    assert [label for label in labels if "cycle" in label] == []
    assert not {"Enter", "Exit"} & {node.op for node in scene.nodes}


def test_scopes_that_cross_by_name_only_are_taken_apart(graph: gc.Graph) -> None:
    x = gc.placeholder(gc.float32, [None, 16], name="x")
    for layer in range(8):
        with gc.name_scope(f"{('left', 'right')[layer % 2]}/layer_{layer}"):
            x = residual(x, 16)
    scene = build_scene(graph)
    assert repeats(scene) == [8]
    assert is_acyclic(scene)
    assert sum(node.count for node in scene.nodes if node.kind != "stub") == len(graph)


def test_inputs_without_a_use_that_outnumber_the_rest_are_one_box() -> None:
    graph = stages([3, 4])
    for _ in range(200):
        gc.placeholder(gc.float32, [], name="spare")
    assert [(node.label, node.count) for node in build_scene(graph).nodes if "unused" in node.label] == [("200 unused inputs", 200)]


@st.composite
def graphs(draw: st.DrawFn) -> gc.Graph:
    """Random chains of small blocks with skips."""
    gc.reset_default_graph()
    values = [gc.placeholder(gc.float32, [None, 4], name="x")]
    for _ in range(draw(st.integers(20, 60))):
        kind = draw(st.sampled_from(["tanh", "add", "dense", "block"]))
        left = values[-1 - draw(st.integers(0, min(3, len(values) - 1)))]
        if kind == "tanh":
            values.append(gc.tanh(left))
        elif kind == "add":
            values.append(left + values[draw(st.integers(0, len(values) - 1))])
        else:
            values.append(dense(left, 4) if kind == "dense" else residual(left, 4))
    return gc.get_default_graph()


@pytest.mark.slow
@given(graph=graphs(), seed=st.integers(0, 1000))
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
def test_renaming_never_changes_counts_and_every_node_is_in_one_box(graph: gc.Graph, seed: int) -> None:
    flat = renamed(graph, seed)
    again = renamed(graph, seed + 1)
    ours, theirs = build_scene(flat), build_scene(again)
    assert repeats(ours) == repeats(theirs)
    assert [node.count for node in ours.nodes] == [node.count for node in theirs.nodes]
    assert sum(node.count for node in ours.nodes) == len(flat)
    assert boxes(ours) <= 40
    assert is_acyclic(ours)
    gc.reset_default_graph()


@pytest.mark.parametrize("trained", [False, True])
def test_variables_that_several_towers_share_are_boxes_of_their_own(graph: gc.Graph, trained: bool) -> None:
    x = gc.placeholder(gc.float32, [8, 4], name="x")
    w, b = gc.Variable(gc.zeros([4, 4]), name="W"), gc.Variable(gc.zeros([4]), name="b")
    losses = []
    for tower in range(2):
        with gc.name_scope(f"tower{tower}"):
            h = gc.tanh(gc.matmul(x, w) + b)
            for _ in range(6 + tower):
                h = gc.tanh(h * 0.5)
            losses.append(gc.reduce_mean(h))
    total = gc.add_n(losses, name="total")
    if trained:
        gc.gradients(total, [w, b])
    scene = build_scene(graph)
    frames = {group.id: group for group in scene.groups}
    for name in ("W", "b"):
        box = next(node for node in scene.nodes if name in (node.id, node.label))
        around, parent = [], box.group
        while parent:
            around.append(parent)
            parent = frames[parent].parent
        assert not [frame for frame in around if frame.startswith("tower")]
    between = [edge for edge in scene.edges if edge.source.startswith("tower0") and edge.target.startswith("tower1")]
    assert between == []
