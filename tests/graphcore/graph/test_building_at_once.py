"""Several threads build one graph: every node exists once, complete, and in its thread's scopes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from operator import mul, neg

import numpy as np
import pytest

import graphcore as gc
from graphcore.attrs import Func
from graphcore.errors import GraphError, InvalidArgumentError
from tests.graphcore.graph.example_graphs import graph_def
from tests.support.whole_graphs import Mirror, check_whole, in_threads

NODES = 60


@pytest.fixture
def graph() -> gc.Graph:
    return gc.Graph()


def chain(graph: gc.Graph, count: int = NODES) -> list[gc.Tensor]:
    """A chain of so many nodes, each with the last one and a number as inputs."""
    made = [graph.apply_op("Const", [], {"dtype": gc.float32, "value": np.float32(1)}).outputs[0]]
    for _ in range(count):
        made.append(made[-1] + 1.0)
    return made


def test_nodes_that_threads_add_at_once_all_get_names_of_their_own(graph: gc.Graph) -> None:
    mirror = Mirror(graph)
    made: list[list[gc.Tensor]] = []
    in_threads(*[lambda: made.append(chain(graph))] * 4)
    assert len({tensor.name for part in made for tensor in part}) == 4 * (NODES + 1)
    assert len(graph) == 4 * (2 * NODES + 1)
    check_whole(graph, mirror)
    with gc.Session(graph=graph) as session:
        assert session.run([part[-1] for part in made]) == [NODES + 1.0] * 4


def while_another_removes(graph: gc.Graph, node: gc.Node, work: Callable[[], object]) -> None:
    """Run work in a thread that must wait while this one removes a node."""
    with ThreadPoolExecutor(1) as pool:
        with graph.lock:
            ended = pool.submit(work)
            time.sleep(0.02)  # until it waits for the lock
            graph.remove_node(node)
        ended.result()


@pytest.mark.parametrize(
    "change",
    [
        lambda graph, y: graph.remove_node(y),
        lambda graph, y: graph.set_attr(y, "_note", "late"),
        lambda graph, y: graph.update_edge(graph.find("x"), 0, y, 0),
        lambda graph, y: graph.add_edge(graph.find("x"), 0, y, 0),
        lambda graph, y: graph.add_control_edge(graph.find("x"), y),
        lambda graph, y: graph.remove_control_edge(graph.find("x"), y),
        lambda graph, y: graph.shrink_type_info(y, {0: 0}),
        lambda graph, y: graph.set_shape(y.outputs[0], [2]),
        lambda graph, y: graph.set_shape_like(y.outputs[0], graph.find("x").outputs[0]),
        lambda graph, y: graph.remove_edge(gc.graph.Edge(0, graph.find("x"), 0, y, 0)),
    ],
)
def test_a_change_of_what_another_thread_has_just_removed_is_refused(
    graph: gc.Graph, change: Callable[[gc.Graph, gc.Node], object]
) -> None:
    x = graph.apply_op("Placeholder", [], {"dtype": gc.float32, "shape": [2]}, "x").outputs[0]
    y = graph.apply_op("Tanh", [x], name="y")

    def refused() -> None:
        with pytest.raises(InvalidArgumentError, match="no longer in the graph"):
            change(graph, y)

    while_another_removes(graph, y, refused)
    check_whole(graph)


def test_all_nodes_are_removed_but_those_that_another_thread_has_just_removed(graph: gc.Graph) -> None:
    y = graph.apply_op("Tanh", [graph.apply_op("Placeholder", [], {"dtype": gc.float32, "shape": [2]})])
    while_another_removes(graph, y, graph.clear)
    assert len(graph) == 0
    check_whole(graph)


def test_what_one_thread_takes_back_is_its_own(graph: gc.Graph) -> None:
    x = graph.apply_op("Placeholder", [], {"dtype": gc.float32, "shape": [2]}, "x").outputs[0]

    def fail() -> None:
        for _ in range(NODES):
            with pytest.raises(InvalidArgumentError):
                graph.apply_op("Concat", [0, [x, [[1.0, 2.0]]]])  # ranks differ; the numbers were converted before

    def constants() -> None:
        kept.extend(graph.apply_op("Const", [], {"dtype": gc.float32, "value": np.float32(1)}) for _ in range(NODES))

    kept: list[gc.Node] = []
    in_threads(fail, constants, fail, constants)
    assert graph.nodes == [x.node, *sorted(kept, key=lambda node: node.id)]
    check_whole(graph)


def test_each_thread_is_in_its_own_scopes(graph: gc.Graph) -> None:
    def work(letter: str) -> None:
        for _ in range(NODES):
            with graph.name_scope(letter) as scope, graph.device(f"/cpu:{ord(letter) - ord('a')}"):
                first = graph.apply_op("NoOp", name="first")
                with graph.control_dependencies([first]):
                    made[letter].append((scope, graph.apply_op("NoOp", name="second")))
            assert graph.scopes.name == graph.scopes.device == ""

    made: dict[str, list[tuple[str, gc.Node]]] = {letter: [] for letter in "abcd"}
    in_threads(*[partial(work, letter) for letter in made])
    for letter, nodes in made.items():
        for scope, node in nodes:
            assert scope.startswith(letter)
            assert node.name == f"{scope}second"
            assert node.device == f"/device:CPU:{ord(letter) - ord('a')}"
            assert [control.name for control in node.control_inputs] == [f"{scope}first"]
    check_whole(graph)


def test_a_thread_that_begins_within_a_scope_of_another_is_in_none(graph: gc.Graph) -> None:
    with graph.name_scope("outer"), graph.device("/cpu:0"):
        in_threads(lambda: graph.apply_op("NoOp", name="inner"))
    assert (graph.nodes[0].name, graph.nodes[0].device) == ("inner", "")


def test_a_transaction_that_fails_takes_back_nothing_of_other_threads(graph: gc.Graph) -> None:
    def begin() -> None:
        with graph.transaction():
            chain(graph, 3)
            raise ZeroDivisionError

    def fail() -> None:
        for _ in range(20):
            with pytest.raises(ZeroDivisionError):
                begin()

    def collect() -> None:
        for number in range(NODES):
            graph.add_to_collection("numbers", number)

    mirror = Mirror(graph)
    made: list[gc.Tensor] = []
    in_threads(fail, lambda: made.extend(chain(graph)), fail, collect)
    assert len(graph) == 2 * NODES + 1
    assert graph.get_collection("numbers") == list(range(NODES))
    check_whole(graph, mirror)


def test_a_graph_may_be_run_while_others_build_it(graph: gc.Graph) -> None:
    x = graph.apply_op("Placeholder", [], {"dtype": gc.float32, "shape": []}, "x").outputs[0]
    y = x * 2.0
    session = gc.Session(graph=graph)

    def run() -> None:
        for turn in range(NODES):
            assert session.run(y, {x: turn}) == 2 * turn

    def build_and_run() -> None:
        for turn in range(NODES // 3):
            assert session.run(x + float(turn), {x: 1.0}) == turn + 1

    in_threads(run, lambda: chain(graph), build_and_run, build_and_run)
    check_whole(graph)


def test_who_runs_within_a_transaction_and_who_plans_meanwhile_do_not_wait_for_each_other(graph: gc.Graph) -> None:
    x = graph.apply_op("Const", [], {"dtype": gc.float32, "value": np.float32(1)}).outputs[0]
    y = x * 2.0
    session = gc.Session(graph=graph)
    begun, values = threading.Event(), []

    def within() -> None:
        with graph.transaction():
            begun.set()
            time.sleep(0.2)  # the other thread is planning by now
            values.append(session.run(x + 3.0))

    def plan() -> None:
        assert begun.wait(30)
        values.append(session.run(y))

    threads = [threading.Thread(target=work, daemon=True) for work in (within, plan)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert sorted(values) == [2.0, 4.0]


def test_a_graph_may_be_looked_at_written_copied_and_imported_into_while_others_build_it(graph: gc.Graph) -> None:
    mirror = Mirror(graph)
    given = chain(gc.Graph(), 10)[-1].graph.as_graph_def()

    def look() -> None:
        for _ in range(NODES // 2):
            assert len(graph.nx) >= 2
            assert len(graph.edges()) >= 1
            names = {node.name for node in graph.as_graph_def().node}
            assert all(text.partition(":")[0] in names for node in graph.as_graph_def().node[: len(names)] for text in node.input)
            assert all(consumer in graph for node in graph.nodes for consumer, _ in graph.consumers(node))
            assert repr(graph).startswith("<gc.Graph")

    def copy() -> None:
        for _ in range(NODES // 4):
            check_whole(graph.copy())

    def bring() -> None:
        for _ in range(NODES // 4):
            gc.import_graph_def(given, graph=graph, prefix="part", uniquify_prefix=True)

    in_threads(lambda: chain(graph), look, copy, bring)
    assert len(graph) == 2 * NODES + 1 + NODES // 4 * len(given.node)
    check_whole(graph, mirror)


def test_an_import_that_is_refused_while_others_build_leaves_what_they_built(graph: gc.Graph) -> None:
    wrong = graph_def("a=NoOp", "b=NoSuchOp(^a)")

    def refused() -> None:
        for _ in range(NODES):
            with pytest.raises(GraphError, match="NoSuchOp"):
                gc.import_graph_def(wrong, graph=graph, prefix="")

    in_threads(refused, lambda: chain(graph), refused, lambda: chain(graph))
    assert len(graph) == 2 * (2 * NODES + 1)
    check_whole(graph)


def test_threads_may_differentiate_and_make_variables_branches_loops_and_functions_at_once(graph: gc.Graph) -> None:
    @gc.function
    def shared(x: gc.Tensor) -> gc.Tensor:
        return x * 2.0

    def work(number: int) -> None:
        with graph.as_default():
            for _ in range(4):
                w = gc.Variable(float(number), name="w")
                y = gc.cond(w > 0.0, partial(mul, w, 3.0), partial(neg, w))
                z = gc.while_loop(lambda v: v < 100.0, lambda v: v * 2.0 + 1.0, y)
                made.append((number, w, shared(w), y, z, gc.gradients(w * w, [w])[0]))

    made: list[tuple[int, gc.Variable, gc.Tensor, gc.Tensor, gc.Tensor, gc.Tensor]] = []
    in_threads(*[partial(work, number) for number in range(4)])
    check_whole(graph)
    with graph.as_default(), gc.Session() as session:
        session.run(gc.initialize_all_variables())
        for number, _w, doubled, y, z, gradient in made:
            turn = 3.0 * number
            while turn < 100:
                turn = turn * 2 + 1
            assert session.run([doubled, y, z, gradient]) == [2.0 * number, 3.0 * number, turn, 2.0 * number]


def test_branches_that_are_refused_take_back_nothing_of_other_threads(graph: gc.Graph) -> None:
    x = graph.apply_op("Placeholder", [], {"dtype": gc.float32, "shape": []}, "x").outputs[0]

    def refused() -> None:
        with graph.as_default():
            for _ in range(20):
                with pytest.raises(InvalidArgumentError):
                    gc.cond(x > 1.0, lambda: x * 1.5, lambda: (x, x))

    def functions() -> None:
        with graph.as_default():
            for _ in range(10):
                gc.cond(x > 2.0, lambda: x * 2.0, lambda: x)

    in_threads(refused, lambda: chain(graph), refused, functions)
    assert sum(node.op == "StatelessIf" for node in graph.nodes) == 10
    check_whole(graph)
    branches = {value.name for node in graph.nodes for value in node.attr.values() if isinstance(value, Func)}
    assert branches
    assert all(graph.library.find(name) is not None for name in branches)


def test_who_builds_while_another_traces_a_function_waits_till_that_is_traced(graph: gc.Graph) -> None:
    def build() -> None:
        begun.set()
        made.append(graph.apply_op("NoOp", name="other"))

    @gc.function
    def traced(x: gc.Tensor) -> gc.Tensor:
        builder.start()
        assert begun.wait(30)
        time.sleep(0.02)
        seen.append(graph.find("other"))
        return x * 2.0

    begun, builder = threading.Event(), threading.Thread(target=build)
    made: list[gc.Node] = []
    seen: list[gc.Node | None] = []
    with graph.as_default():
        y = traced(gc.constant(3.0))
    builder.join(30)
    assert seen == [None]
    assert made == [graph.find("other")]
    check_whole(graph)
    with gc.Session(graph=graph) as session:
        assert session.run(y) == 6.0
