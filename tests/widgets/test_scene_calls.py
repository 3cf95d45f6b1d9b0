"""Function calls in scenes: one box that opens into its body with types and shapes of that call."""

from __future__ import annotations

from typing import Any

import pytest

import graphcore as gc
from graphcore.inference import InferenceContext
from tests.support.asking import find, inspect
from tests.widgets.conftest import RunCell
from tests.widgets.test_scene import edges_between, names, node_of
from widgets import to_dot, to_html, to_mermaid, to_outline, to_svg
from widgets.render.compiled import build_scene, reveal
from widgets.scene import Scene, SceneState


@pytest.fixture
def layers(graph: gc.Graph) -> gc.Graph:
    """`h = layer(x, W)` where `layer` calls `squash`."""

    @gc.function
    def squash(x: gc.Tensor) -> Any:
        return gc.tanh(x * x)

    @gc.function
    def layer(x: gc.Tensor, w: gc.Tensor) -> Any:
        return squash(x @ w)

    x = gc.placeholder(gc.float32, [None, 4], name="x")
    w = gc.placeholder(gc.float32, [4, 2], name="W")
    with gc.device("/gpu:1"):
        h = layer(x, w)
    gc.exp(h, name="after")
    return graph


BRANCHES = (
    "double(x:float) -> (y:float) {\n a = Add[T=float](x, x)\n return y = a:z:0\n}",
    "minus(x:float) -> (y:float) {\n a = Neg[T=float](x)\n return y = a:y:0\n}",
    "small(x:float) -> (z:bool) {\n a = Less[T=float](x, x)\n return z = a:z:0\n}",
)


@pytest.fixture
def choices(graph: gc.Graph) -> gc.Graph:
    """`choice` doubles or negates `x`, `loop` continues with the result."""
    for text in BRANCHES:
        graph.library.add_function_def(gc.parse_function(text))
    which = gc.placeholder(gc.bool_, [], name="which")
    x = gc.placeholder(gc.float32, [], name="x")
    branches = {"then_branch": gc.Func("double", {}), "else_branch": gc.Func("minus", {})}
    choice = graph.apply_op("If", [which, [x]], {"Tout": [gc.float32], **branches}, "choice")
    loop = {"cond": gc.Func("small", {}), "body": gc.Func("double", {})}
    last = graph.apply_op("While", [[choice.outputs[0]]], loop, "loop")
    gc.exp(last.outputs[0], name="after")
    return graph


def opened(graph: gc.Graph, *ids: str) -> Scene:
    state = SceneState()
    build_scene(graph, state)
    for box in ids:
        state.expand(box)
    return build_scene(graph, state)


def add_recursive_call(graph: gc.Graph) -> None:
    """`call` calls `again`, which calls itself."""
    graph.library.add_function_def(gc.parse_function("again(x:float) -> (y:float) {\n a = again(x)\n return y = a:y:0\n}"))
    x = gc.placeholder(gc.float32, [2], name="x")
    graph.apply_op("again", [x], None, "call")


def test_a_call_is_one_closed_box_until_it_is_opened(layers: gc.Graph) -> None:
    scene = build_scene(layers)
    call = node_of(scene, "layer")
    assert (call.kind, call.op, call.expandable, call.count) == ("function", "layer", True, 1)
    assert names(scene) == {"x", "W", "layer", "after"}


def test_an_open_call_shows_its_body_in_a_frame_with_the_shapes_of_this_call(layers: gc.Graph) -> None:
    scene = opened(layers, "layer")
    frame = next(group for group in scene.groups if group.id == "layer/")
    assert (frame.kind, frame.label, frame.count) == ("function", "layer", 5)
    assert {node.id for node in scene.nodes if node.group == "layer/"} == {
        "layer:/x",
        "layer:/w",
        "layer:/matmul",
        "layer:/squash",
        "layer:/output_RetVal",
    }
    assert [edge.label for edge in edges_between(scene, "layer:/matmul", "layer:/squash")] == ["float [?,2]"]


def test_lines_run_from_what_is_given_to_the_arguments_and_from_the_returns_to_the_consumers(layers: gc.Graph) -> None:
    scene = opened(layers, "layer", "layer:/squash")
    assert [edge.label for edge in edges_between(scene, "x", "layer:/x")] == ["float [?,4]"]
    assert [edge.label for edge in edges_between(scene, "W", "layer:/w")] == ["float [4,2]"]
    assert [edge.label for edge in edges_between(scene, "layer:/matmul", "layer:/squash:/x")] == ["float [?,2]"]
    assert [edge.label for edge in edges_between(scene, "layer:/squash:/output_RetVal", "layer:/output_RetVal")] == ["float [?,2]"]
    assert len(edges_between(scene, "layer:/output_RetVal", "after")) == 1
    assert not [node for node in scene.nodes if node.kind == "stub"]


def test_two_calls_of_one_function_have_the_shapes_of_their_own_arguments(graph: gc.Graph) -> None:
    twice = gc.function(lambda x: gc.tanh(x + x), name="twice")
    twice(gc.placeholder(gc.float32, [3], name="a"))
    twice(gc.placeholder(gc.float32, [5, None], name="b"))
    scene = opened(graph, "twice", "twice_1")
    labels = {edge.id: edge.label for edge in scene.edges}
    assert labels["twice:/add->twice:/Tanh"] == "float [3]"
    assert labels["twice_1:/add->twice_1:/Tanh"] == "float [5,?]"


def test_nodes_of_a_body_run_where_the_call_runs(layers: gc.Graph) -> None:
    scene = opened(layers, "layer", "layer:/squash")
    assert node_of(scene, "layer:/squash:/Tanh").lenses["devices"].text == "requested /device:GPU:1"


def test_a_constant_given_to_a_call_is_known_inside(graph: gc.Graph) -> None:
    shaped = gc.function(lambda x, shape: gc.reshape(x, shape) + 1.0, name="shaped")
    shaped(gc.placeholder(gc.float32, [None], name="x"), gc.constant([2, 3]))
    scene = opened(graph, "shaped")
    assert [edge.label for edge in edges_between(scene, "shaped:/Reshape", "shaped:/add")] == ["float [2,3]"]


def test_what_does_not_fit_inside_a_call_any_more_is_an_error_at_its_node(graph: gc.Graph, run_cell: RunCell) -> None:
    run_cell("w", "w = gc.placeholder(gc.float32, [3, 5], name='w')")
    run_cell("call", "product = gc.function(lambda x, w: x @ w, name='product')\nproduct(gc.placeholder(gc.float32, [2, 3], name='x'), w)")
    run_cell("w", "w = gc.placeholder(gc.float32, [4, 5], name='w')")
    scene = opened(graph, "product")
    box = node_of(scene, "product:/matmul")
    assert box.state == "error"
    assert "Dimensions must be equal, but are 3 and 4" in box.error
    assert all(edge.error for edge in scene.edges if edge.target == "product:/matmul")


def test_recursion_stops_with_a_word(graph: gc.Graph) -> None:
    add_recursive_call(graph)
    scene = opened(graph, "call", "call:/a")
    inner = node_of(scene, "call:/a")
    assert not inner.expandable
    assert inner.detail == "recursion: again is open around"


def test_everything_opens_calls_too_and_ends_with_recursion(graph: gc.Graph) -> None:
    add_recursive_call(graph)
    scene = opened(graph, "*")
    assert {"call:/x", "call:/a", "call:/y_RetVal"} <= names(scene)


def test_a_call_of_an_unknown_function_does_not_open_and_says_so(graph: gc.Graph) -> None:
    x = gc.placeholder(gc.float32, [2], name="x")
    graph.apply_op("PartitionedCall", [[x]], {"Tout": [gc.float32], "f": gc.Func("nowhere", {})}, "call")
    box = node_of(opened(graph, "call"), "call")
    assert (box.expandable, box.detail) == (False, "nowhere is not defined here")


def test_a_call_that_cannot_be_instantiated_stays_closed_and_says_why(graph: gc.Graph) -> None:
    graph.library.add_function_def(gc.parse_function("half[T:type](x:T) -> (y:T) {\n a = Identity[T=$T](x)\n return y = a:output:0\n}"))
    x = gc.placeholder(gc.float32, [2], name="x")
    graph.apply_op("PartitionedCall", [[x]], {"Tout": [gc.float32], "f": gc.Func("half", {})}, "call")
    box = node_of(opened(graph, "call"), "call")
    assert box.state == "error"
    assert "does not open: Attr T is not found" in box.error


def test_a_gradient_call_opens_into_the_forward_nodes_and_the_backward_ones(layers: gc.Graph) -> None:
    x, call = layers.find("x"), layers.find("layer")
    assert x is not None
    assert call is not None
    gc.gradients(call.outputs[0], [x.outputs[0]], simplify=False)
    name = next(node.name for node in layers.nodes if node.op == "SymbolicGradient")
    scene = opened(layers, name)
    assert node_of(scene, f"{name}:/matmul").role == "forward"
    backward = [node for node in scene.nodes if node.id.startswith(f"{name}:/Func/")]
    assert {node.role for node in backward} == {"gradient"}
    assert {node.op for node in backward} >= {"argument", "return", "SymbolicGradient"}
    assert next(group for group in scene.groups if group.id == f"{name}/").label.endswith("∇ layer")


def test_a_call_and_its_gradient_open_into_the_functions_that_they_share_with_other_calls(layers: gc.Graph) -> None:
    x, call = layers.find("x"), layers.find("layer")
    assert x is not None
    assert call is not None
    gc.gradients(call.outputs[0], [x.outputs[0]])
    scene = opened(layers, "gradients/layer_grad/forward", "gradients/layer_grad/gradient")
    titles = {group.id: group.label for group in scene.groups}
    assert titles["gradients/layer_grad/forward/"].endswith("layer_forward")
    assert "layer_gradient" in titles["gradients/layer_grad/gradient/"]
    assert node_of(scene, "gradients/layer_grad/forward:/matmul").op == "BatchMatMulV2"


def test_control_edges_of_an_open_call_lead_to_its_arguments_and_from_its_returns(graph: gc.Graph) -> None:
    same = gc.function(lambda x: gc.tanh(-x), name="same")
    x = gc.placeholder(gc.float32, [2], name="x")
    with gc.control_dependencies([gc.no_op(name="first")]):
        y = same(x)
    with gc.control_dependencies([y.node]):
        gc.no_op(name="last")
    scene = opened(graph, "same")
    assert [edge.kind for edge in edges_between(scene, "first", "same:/x")] == ["control"]
    assert [edge.kind for edge in edges_between(scene, "same:/output_RetVal", "last")] == ["control"]


def test_control_edges_lead_through_all_open_calls(graph: gc.Graph) -> None:
    for text in (
        "inner() -> (y:float) {\n c = Const[dtype=float, value=Tensor<type: float shape: [] values: 1>]()\n return y = c:output:0\n}",
        "outer() -> (y:float) {\n call = inner()\n return y = call:y:0\n @return done = call\n}",
    ):
        graph.library.add_function_def(gc.parse_function(text))
    with gc.control_dependencies([gc.no_op(name="first")]):
        outer = graph.apply_op("outer", [], {}, "outer")
    with gc.control_dependencies([outer]):
        gc.no_op(name="last")
    scene = opened(graph, "outer", "outer:/call")
    assert [edge.kind for edge in edges_between(scene, "first", "outer:/call:/c")] == ["control"]
    assert [edge.kind for edge in edges_between(scene, "outer:/call:/y_RetVal", "last")] == ["control"]


def test_a_change_of_the_graph_keeps_a_call_open_and_renews_its_shapes(graph: gc.Graph) -> None:
    same = gc.function(lambda x: gc.tanh(-x), name="same")
    x = gc.placeholder(gc.float32, None, name="x")
    same(x)
    state = SceneState()
    state.expand("same")
    assert [edge.label for edge in edges_between(build_scene(graph, state), "same:/Neg", "same:/Tanh")] == ["float ?"]
    x.set_shape([7])
    assert [edge.label for edge in edges_between(build_scene(graph, state), "same:/Neg", "same:/Tanh")] == ["float [7]"]


def test_closing_a_call_gives_its_box_back(layers: gc.Graph) -> None:
    state = SceneState()
    state.expand("layer")
    build_scene(layers, state)
    state.collapse("layer/")
    assert "layer" in names(build_scene(layers, state))


def test_a_hit_inside_an_open_call_is_found_and_revealed(layers: gc.Graph) -> None:
    state = SceneState()
    state.expand("layer")
    assert [hit.name for hit in find(layers, "squash", state=state).hits] == ["layer:/squash"]
    assert reveal(layers, state, "layer:/squash:/Tanh")
    assert "layer:/squash:/Tanh" in names(build_scene(layers, state))
    assert not reveal(layers, state, "layer:/nothing")


def test_the_inspector_gives_definition_and_body_of_a_call(layers: gc.Graph) -> None:
    state = SceneState()
    closed = inspect(layers, state, "layer")
    assert closed is not None
    (info,) = closed.functions
    assert info.definition.startswith("layer(x:float, w:float) -> (output:float)")
    assert "squash = squash(matmul)" in info.instantiated
    state.expand("layer")
    opened_call = inspect(layers, state, "layer/")
    assert opened_call is not None
    assert opened_call.functions == closed.functions


def test_the_inspector_tells_what_an_argument_is_given(layers: gc.Graph) -> None:
    state = SceneState()
    state.expand("layer")
    told = inspect(layers, state, "layer:/w")
    assert told is not None
    assert [(row.name, row.tensor, row.shape, row.node) for row in told.inputs] == [("given", "W:0", "[4,2]", "W")]


def test_every_still_form_shows_an_open_call(layers: gc.Graph) -> None:
    state = SceneState()
    state.expand("layer")
    assert "argument layer:/w float [4,2] <- W float [4,2]" in to_outline(layers, state)
    for write in (to_svg, to_dot, to_mermaid, to_html):
        assert "matmul" in str(write(layers, state))


# ---- branches and loops ----------------------------------------------------------------------------------------------


def test_a_choice_opens_into_its_branches_which_take_from_its_own_box(choices: gc.Graph) -> None:
    scene = opened(choices, "choice")
    assert [(group.id, group.label, group.kind) for group in scene.groups] == [
        ("choice/", "choice · double, minus", "function"),
        ("choice:then/", "then · double", "function"),
        ("choice:else/", "else · minus", "function"),
    ]
    assert {edge.source for edge in scene.edges if edge.target == "choice"} == {"which", "x"}
    assert [edge.label for edge in edges_between(scene, "choice", "choice:else/x")] == ["float []"]


def test_the_box_of_a_choice_within_its_own_frame_has_its_short_name(graph: gc.Graph) -> None:
    with gc.name_scope("outer"):
        gc.cond(gc.placeholder(gc.bool_, [], name="p"), lambda: gc.constant(1.0), lambda: gc.constant(2.0), name="pick")
    (name,) = [node.name for node in graph.nodes if node.op in {"If", "StatelessIf"}]
    assert node_of(opened(graph, name), name).label == name.rpartition("/")[2]


def test_what_follows_a_choice_takes_from_the_returns_of_all_its_branches(choices: gc.Graph) -> None:
    scene = opened(choices, "choice")
    assert {edge.source for edge in scene.edges if edge.target == "loop"} == {"choice:then/y_RetVal", "choice:else/y_RetVal"}


def test_a_branch_closes_by_itself(choices: gc.Graph) -> None:
    state = SceneState()
    build_scene(choices, state)
    state.expand("choice")
    state.collapse("choice:else/")
    scene = build_scene(choices, state)
    assert node_of(scene, "choice:else/").kind == "function"
    assert {edge.source for edge in scene.edges if edge.target == "loop"} == {"choice:then/y_RetVal", "choice:else/"}
    state.expand("choice:else/")
    assert "choice:else/x" in names(build_scene(choices, state))


def test_a_loop_opens_into_condition_and_body_and_its_values_come_back_to_its_box(choices: gc.Graph) -> None:
    scene = opened(choices, "loop")
    (back,) = edges_between(scene, "loop:body/y_RetVal", "loop")
    assert back.reversed
    assert len(edges_between(scene, "loop:cond/z_RetVal", "loop")) == 1
    assert [edge.source for edge in scene.edges if edge.target == "after"] == ["loop"]


def test_the_inspector_tells_which_function_a_branch_is(choices: gc.Graph) -> None:
    state = SceneState()
    state.expand("choice")
    told = inspect(choices, state, "choice:else/")
    assert told is not None
    assert [(info.label, info.name) for info in told.functions] == [("else", "minus")]
    whole = inspect(choices, state, "choice")
    assert whole is not None
    assert [info.label for info in whole.functions] == ["then", "else"]


LOOP = """count(x:float) -> (y:float) {
  e = Enter[T=float, frame_name="f"](x)
  m = Merge[N=2, T=float](e:output:0, n:output:0)
  c = Less[T=float](m:output:0, m:output:0)
  l = LoopCond(c:z:0)
  s = Switch[T=float](m:output:0, l:output:0)
  d = Neg[T=float](s:output_true:0)
  n = NextIteration[T=float](d:y:0)
  o = Exit[T=float](s:output_false:0)
  return y = o:output:0
}"""


def test_a_body_that_is_a_loop_opens_too(graph: gc.Graph) -> None:
    graph.library.add_function_def(gc.parse_function(LOOP))
    graph.apply_op("count", [gc.placeholder(gc.float32, [], name="x")], None, "call")
    scene = opened(graph, "call")
    assert {edge.source for edge in scene.edges if edge.target == "call:/m"} == {"call:/e", "call:/n"}
    assert not [node for node in scene.nodes if node.error]


def test_arguments_of_loops_and_branches_have_the_names_that_the_code_has_for_them(graph: gc.Graph) -> None:
    with gc.name_scope("layer"):
        weight = gc.constant([1.0, 2.0], name="weight")
    start = (gc.constant(0), {"a": gc.constant([0.0, 0.0]), "b": gc.constant([1.0, 1.0])})
    gc.while_loop(lambda i, _state: i < 3, lambda i, state: (i + 1, {"a": state["a"] + weight, "b": state["b"]}), start)
    gc.cond(gc.placeholder(gc.bool_, [], name="p"), lambda: weight * 2.0, lambda: weight)
    state = SceneState()
    state.expand("*")
    arguments: dict[str, list[str]] = {}
    for node in build_scene(graph, state).nodes:
        if node.op == "argument":
            arguments.setdefault(node.id.rpartition("/")[0], []).append(node.label)
    assert arguments["while:body"] == ["i", "state[0]", "state[1]", "layer/weight"]
    assert arguments["cond:then"] == ["layer/weight"]
    body = graph.library.find("while_body")
    assert body is not None
    assert body.arg_attr[0] == {"_user_specified_name": b"i"}
    assert body.signature.input_arg[0].name == "const"


def nested_calls(depth: int) -> gc.Graph:
    """`outer` calls a function that calls a function and so on; the innermost computes `Tanh(x * x)`."""
    graph = gc.Graph()
    inner = "f0(x:float) -> (y:float) {\n m = Mul[T=float](x, x)\n a = Tanh[T=float](m:z:0)\n return y = a:y:0\n}"
    graph.library.add_function_def(gc.parse_function(inner))
    for level in range(1, depth):
        text = f"f{level}(x:float) -> (y:float) {{\n a = f{level - 1}(x)\n b = Neg[T=float](a:y:0)\n return y = b:y:0\n}}"
        graph.library.add_function_def(gc.parse_function(text))
    with graph.as_default():
        x = gc.placeholder(gc.float32, [None, 4], name="x")
        graph.apply_op(f"f{depth - 1}", [x], {}, "outer")
    return graph


def test_a_page_runs_shape_functions_in_proportion_to_the_depth_of_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    count = 0
    run = InferenceContext.run

    def counted(self: InferenceContext, shape_fn: Any) -> None:
        nonlocal count
        count += 1
        run(self, shape_fn)

    monkeypatch.setattr(InferenceContext, "run", counted)
    counts = []
    for depth in (6, 12):
        graph = nested_calls(depth)
        count = 0
        to_html(graph)
        counts.append(count)
    assert counts[1] < 2.5 * counts[0]


def test_a_call_without_arguments_in_an_open_body_has_its_shape(graph: gc.Graph) -> None:
    constant = gc.parse_function(
        "three() -> (y:float) {\n a = Const[dtype=float, value=Tensor<type: float shape: [3] values: 1 2 3>]()\n return y = a:output:0\n}"
    )
    graph.library.add_function_def(constant)
    outer = "outer(x:float) -> (y:float) {\n t = three()\n a = Add[T=float](x, t:y:0)\n return y = a:z:0\n}"
    graph.library.add_function_def(gc.parse_function(outer))
    x = gc.placeholder(gc.float32, [2, 1], name="x")
    call = graph.apply_op("outer", [x], {}, "call")
    state = SceneState()
    state.expand("call")
    inside = inspect(graph, state, "call:/a")
    assert inside is not None
    assert inside.outputs[0].shape == str(call.outputs[0].shape) == "[2,3]"
