"""After any edits the shapes equal those of a full inference, and an edit costs only its effects."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import graphcore as gc
from graphcore.attrs import Func
from graphcore.errors import GraphError
from graphcore.graph.shapes.live_refiner import LiveRefiner
from graphcore.graph.shapes.propagation import infer_downstream
from graphcore.source import CellRun, current_run

ops: Any = gc.ops
PLACES = 8
"""The number of nodes of the random graphs; node i takes only nodes before it."""


def shape_part(x: Any, i: int) -> Any:
    return ops.strided_slice(ops.shape(x), [i], [i + 1], [1], shrink_axis_mask=1)


def call(op: str, *inputs: Any, **attrs: Any) -> Any:
    return gc.get_default_graph().apply_op(op, list(inputs), attrs).outputs


def looped(body: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A TensorFlow 1 loop within the scope of the node."""

    def make(start: Any) -> Any:
        frame = {"frame_name": gc.get_default_graph().unique_name("frame")}
        enter = call("Enter", start, **frame)[0]
        head = call("Merge", [enter, enter])[0]
        again = call("NextIteration", body(call("Switch", head, gc.placeholder(gc.bool_, []))[1]))[0]
        head.graph.update_edge(again.node, 0, head.node, 1)
        return call("Exit", head)[0]

    return make


ZERO = "zero = Const[dtype=int32, value=Tensor<type: int32 shape: [] values: 0>]()"
FUNCTIONS = (
    "Kept(x:float) -> (y:float) {\n  y = Tanh[T=float](x)\n}",
    f"Summed(x:float) -> (y:float) {{\n  {ZERO}\n  y = Sum[T=float](x, zero)\n}}",
    f"Twice(x:float) -> (y:float) {{\n  {ZERO}\n  y = ConcatV2[T=float, N=2](x, x, zero)\n}}",
    "Go(x:float) -> (y:bool) {\n  y = Const[dtype=bool, value=Tensor<type: bool shape: [] values: true>]()\n}",
    "Fitted(x:float, y:float) -> (z:float) {\n  s = Shape[T=float](y)\n  z = Reshape[T=float](x, s)\n}",
    "Sum2(x:float, y:float) -> (z:float) {\n  z = AddN[T=float, N=2](x, y)\n}",
)


def called(name: str) -> Callable[..., Any]:
    return lambda *inputs: call("PartitionedCall", list(inputs), Tout=[gc.float32], f=Func(name))[0]


def chosen(then: str, other: str) -> Callable[..., Any]:
    attrs = {"Tout": [gc.float32], "then_branch": Func(then), "else_branch": Func(other)}
    return lambda *inputs: call("StatelessIf", gc.placeholder(gc.bool_, []), list(inputs), **attrs)[0]


def rounds(body: str) -> Callable[[Any], Any]:
    return lambda x: call("StatelessWhile", [x], cond=Func("Go"), body=Func(body))[0]


SOURCES: dict[str, Callable[[Any], Any]] = {
    "known": lambda sizes: gc.placeholder(gc.float32, [size or 1 for size in sizes]),
    "partly": lambda sizes: gc.placeholder(gc.float32, sizes),
    "unknown": lambda _: gc.placeholder(gc.float32),
    "constant": lambda sizes: gc.zeros([size or 2 for size in sizes]),
}
UNARY: dict[str, Callable[[Any], Any]] = {
    "tanh": ops.tanh,
    "sum": lambda x: gc.reduce_sum(x, 0),
    "turned": lambda x: ops.transpose(x, [1, 0]),
    "flat": lambda x: gc.reshape(x, [-1]),
    "longer": lambda x: ops.expand_dims(x, 0),
    "like": lambda x: ops.fill(ops.shape(x), 0.0),
    "rows": lambda x: ops.reshape(x, ops.pack([shape_part(x, 0), -1])),
    "summed": called("Summed"),
    "kept or twice": chosen("Kept", "Twice"),
    "rounds": rounds("Kept"),
    "growing rounds": rounds("Twice"),
    "looped": looped(ops.tanh),
    "growing": looped(lambda x: ops.concat_v2([x, x], 0)),
    "turning": looped(lambda x: ops.transpose(x, [1, 0])),
    "nested": looped(looped(ops.neg)),
}
BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": ops.add,
    "product": ops.mat_mul,
    "joined": lambda x, y: ops.concat_v2([x, y], 0),
    "counts": lambda x, y: ops.fill(ops.add(ops.shape(x), ops.shape(y)), 1.0),
    "reshaped": lambda x, y: ops.reshape(x, ops.shape(y)),
    "chosen": lambda x, y: gc.reduce_sum(x, ops.rank(y)),
    "fitted": called("Fitted"),
    "fitted or summed": chosen("Fitted", "Sum2"),
}

sizes = st.lists(st.sampled_from([None, 1, 2, 3]), max_size=3)
Edit = tuple[int, str, list[int | None], int, int]
edits = st.tuples(
    st.integers(0, PLACES - 1),
    st.sampled_from([*SOURCES, *UNARY, *BINARY, "removed", "set_shape", "rewired"]),
    sizes,
    st.integers(0, 9),
    st.integers(0, 9),
)


def make(graph: gc.Graph, place: int, kind: str, given: list[int | None], first: int, second: int) -> None:
    """Make node `place` in its own scope; its inputs are the ends of scopes before it, by position."""
    ends = [graph.find(f"n{i}/end") for i in range(place)]
    there = [node.outputs[0] for node in ends if node is not None]
    with gc.name_scope(f"n{place}/"):
        if kind in UNARY and there:
            made = UNARY[kind](there[first % len(there)])
        elif kind in BINARY and there:
            made = BINARY[kind](there[first % len(there)], there[second % len(there)])
        else:
            made = SOURCES.get(kind, SOURCES["partly"])(given)
        ops.identity(made, name="end")


def apply(graph: gc.Graph, edit: Edit, execution: int) -> None:
    """Run the cell that makes node `place`; a failing run keeps its nodes."""
    place, kind, given, first, second = edit
    node = graph.find(f"n{place}/end")
    if kind == "set_shape":
        if node is not None:
            try:
                graph.set_shape(node.outputs[0], given)
            except GraphError:
                return  # contradicts known shapes
        return
    if kind == "rewired":
        other = graph.find(f"n{first % PLACES}/end")
        if node is not None and other is not None:
            try:
                graph.update_edge(other, 0, node, 0)
            except GraphError:
                return  # a cycle
        return
    run = CellRun(cell=f"cell {place}", execution=execution, label=f"In [{execution}]")
    graph.begin_cell(run)
    token = current_run.set(run)
    failed = False
    try:
        with graph.as_default():
            if kind != "removed":
                make(graph, place, kind, given, first, second)
    except GraphError:
        failed = True
    finally:
        current_run.reset(token)
        graph.end_cell(run, failed=failed)


def picture(graph: gc.Graph) -> list[tuple[str, list[str], bool]]:
    """Every node with its shapes; unknown dimensions are numbered by identity."""
    numbers: dict[int, int] = {}

    def text(dim: Any) -> str:
        return str(dim.value) if dim.value >= 0 else f"?{numbers.setdefault(id(dim), len(numbers))}"

    return [
        (
            node.name,
            ["?" if handle.dims is None else str([text(dim) for dim in handle.dims]) for handle in node.output_handles],
            node.error is not None,
        )
        for node in graph.nodes
    ]


def inferred_anew(graph: gc.Graph) -> gc.Graph:
    """A copy in which everything is inferred again, producers first."""
    copied = graph.copy()
    for node in copied.nodes:
        node.constants = None
    infer_downstream(copied, *copied.nodes, include_start=True)
    return copied


@settings(max_examples=200, deadline=None)
@given(st.lists(edits, min_size=1, max_size=24))
def test_after_any_edits_the_shapes_are_those_of_a_full_inference(history: Sequence[Edit]) -> None:
    graph = gc.Graph()
    for text in FUNCTIONS:
        graph.library.add_function_def(gc.define_function(text))
    for execution, edit in enumerate(history):
        apply(graph, edit, execution)
    assert picture(graph) == picture(inferred_anew(graph))


LOOP_BODIES: list[Callable[[Any, Any], Any]] = [
    lambda x, _: ops.tanh(x),
    lambda x, k: ops.concat_v2([x, k], 0),
    ops.add,
    lambda x, _: ops.transpose(x, [1, 0]),
    lambda x, _: ops.reshape(x, ops.shape(x)),
    lambda x, _: gc.reshape(x, [-1, 3]),
]


def loop(start: Any, body: Callable[[Any], Any], name: str) -> Any:
    """A loop around `start`. Returns its exit."""
    made: Any = gc.apply_op
    attrs = {"frame_name": name}
    enter = made("Enter", [start], attrs)
    head = made("Merge", [[enter, enter]], name=name)[0]
    again = made("NextIteration", [body(made("Switch", [head, gc.placeholder(gc.bool_, [])])[1])])
    head.graph.update_edge(again.node, 0, head.node, 1)
    return made("Exit", [head])


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.integers(0, len(LOOP_BODIES) - 1), min_size=1, max_size=3),
    st.booleans(),
    st.lists(st.tuples(st.sampled_from("xk"), st.sampled_from([None, 0, 1, 3]), st.sampled_from([None, 1, 3])), max_size=6),
)
def test_around_loops_too(bodies: list[int], nested: bool, changes: list[tuple[str, int | None, int | None]]) -> None:
    with gc.Graph().as_default() as graph:
        x, k = (gc.placeholder(gc.float32, [3, 3], name=name) for name in "xk")

        def body(value: Any) -> Any:
            for number in bodies:
                value = LOOP_BODIES[number](value, gc.apply_op("Enter", [k], {"frame_name": "outer", "is_constant": True}))
            return loop(value, ops.neg, "inner") if nested else value

        try:
            ops.tanh(loop(x, body, "outer"))
        except GraphError:
            return  # the shapes do not fit initially
        for name, rows, columns in changes:
            graph.set_attr((x if name == "x" else k).node, "shape", gc.Shape([rows, columns]))
            assert picture(graph) == picture(inferred_anew(graph))


@pytest.fixture
def inferred(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Records the names of inferred nodes."""
    names: list[str] = []
    original = LiveRefiner.add_node

    def counting(self: LiveRefiner, node: gc.Node) -> None:
        names.append(node.name)
        original(self, node)

    monkeypatch.setattr(LiveRefiner, "add_node", counting)
    return names


def chain(length: int) -> gc.Graph:
    graph = gc.Graph()
    apply(graph, (0, "partly", [None, 3], 0, 0), 0)
    with graph.as_default():
        y = graph.get_tensor_by_name("n0/end:0")
        for i in range(length):
            y = ops.tanh(y, name=f"t{i}")
    return graph


@pytest.mark.parametrize("kind", ["partly", "constant"])
def test_a_new_head_of_the_same_shape_is_all_that_is_inferred(kind: str, inferred: list[str]) -> None:
    graph = chain(1000)
    if kind == "constant":
        apply(graph, (0, "constant", [2, 3], 0, 0), 1)
    inferred.clear()
    apply(graph, (0, kind, [None, 3] if kind == "partly" else [2, 3], 0, 0), 2)
    assert len(inferred) <= 4
    assert not any(name.startswith("t") for name in inferred)


def test_a_change_is_followed_only_until_it_makes_no_difference(inferred: list[str]) -> None:
    graph = chain(3)
    with graph.as_default():
        y = gc.reduce_sum(graph.get_tensor_by_name("t2:0"), 0, name="s")
        for i in range(100):
            y = ops.tanh(y, name=f"u{i}")
    inferred.clear()
    apply(graph, (0, "partly", [7, 3], 0, 0), 1)
    assert {"t0", "t1", "t2", "s"} <= set(inferred)
    assert not any(name.startswith("u") for name in inferred)
    assert str(graph.get_tensor_by_name("t2:0").shape) == "[7,3]"


def test_a_constant_of_the_same_shape_and_another_value_reaches_those_who_read_it(inferred: list[str]) -> None:
    graph = gc.Graph()

    def cell(axis: int, execution: int) -> None:
        run = CellRun(cell="axis", execution=execution, label="In [1]")
        graph.begin_cell(run)
        token = current_run.set(run)
        with graph.as_default():
            gc.constant(axis, name="axis")
        current_run.reset(token)
        graph.end_cell(run)

    cell(0, 1)
    with graph.as_default():
        doubled = ops.add(graph.get_tensor_by_name("axis:0"), gc.constant(0), name="doubled")
        total = gc.reduce_sum(gc.placeholder(gc.float32, [2, 3]), doubled, name="total")
        same = ops.tanh(doubled.graph.get_tensor_by_name("total:0"), name="after")
    assert str(same.shape) == "[3]"
    inferred.clear()
    cell(1, 2)
    assert (str(total.shape), str(same.shape)) == ("[2]", "[2]")
    assert set(inferred) == {"axis", "total", "after"}


def test_a_known_shape_that_the_user_gave_outlives_a_change_before_it() -> None:
    graph = gc.Graph()
    apply(graph, (0, "unknown", [], 0, 0), 0)
    with graph.as_default():
        y = ops.tanh(graph.get_tensor_by_name("n0/end:0"), name="y")
        y.set_shape([None, 4])
    apply(graph, (0, "partly", [3, None], 0, 0), 1)
    assert str(y.shape) == "[3,4]"


def chain_of(count: int) -> tuple[gc.Graph, list[gc.Node]]:
    graph = gc.Graph()
    with graph.as_default():
        x = gc.placeholder(gc.float32, [2, 3], name="x")
        for i in range(count - 1):
            x = gc.identity(x, name=f"n{i}")
    return graph, [node for node in graph.nodes if node.is_op]


def test_taking_a_chain_away_from_its_front_changes_each_shape_behind_it_once() -> None:
    graph, nodes = chain_of(200)
    changed: list[str] = []
    unsubscribe = graph.subscribe(lambda change: changed.append(change.node) if change.kind == "shapes" else None)
    for node in nodes:
        graph.remove_node(node)
    unsubscribe()
    # All nodes when the front is removed, and each once more, because it has an error now.
    assert len(changed) == 199 + 198


def test_shapes_that_a_removed_node_passed_on_are_taken_for_equal_only_where_one_node_got_them() -> None:
    graph, nodes = chain_of(3)
    with graph.as_default():
        first, second = (gc.identity(nodes[1].outputs[0], name=name) for name in ("first", "second"))
        after = gc.identity(first, name="after")
    graph.remove_node(nodes[0])
    shared = nodes[1].output_handles[0]
    assert first.node.output_handles[0] is second.node.output_handles[0] is after.node.output_handles[0] is shared
    graph.remove_node(nodes[1])
    handles = [tensor.node.output_handles[0] for tensor in (first, second)]
    assert handles[0] is not handles[1]
    assert shared not in handles
    assert after.node.output_handles[0] is handles[0]
    graph.remove_node(first.node)
    assert after.node.output_handles[0] is handles[0]
    assert after.node.error is not None
    with graph.as_default():
        gc.identity(gc.placeholder(gc.float32, [7], name="y"), name="first")
    assert after.shape == gc.Shape([7])
    assert after.node.error is None
