"""Ctrl-C, or an error, while gradients, branches and loops are built: all of it is in the graph, or nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import graphcore as gc
from graphcore.errors import InvalidArgumentError, NotFoundError
from tests.graphcore.graph.example_graphs import everything, ranks_fit
from tests.support.interrupting import Attempt, interrupted_everywhere
from tests.support.whole_graphs import Mirror, check_whole

BUILDING = ("api/gradients.py", "passes/gradient")
PLACES = (*BUILDING, "graph/graph.py", "graph/apply.py", "graph/edges.py", "graph/names.py", "graph/telling.py", "graph/transaction.py")
Change = Callable[[gc.Graph], object]


def small() -> gc.Graph:
    """`z` depends on two placeholders, a variable of either kind, and a loop."""
    graph = gc.Graph()
    with graph.as_default():
        x, y = gc.placeholder(gc.float32, [2], name="x"), gc.placeholder(gc.float32, [2], name="y")
        w, v = gc.Variable([1.0, 2.0], name="w"), gc.Variable([1.0, 2.0], name="v", use_resource=True)
        gc.add(gc.tanh(x) * y * w, v + gc.square(v), name="z")
    return graph


def described(graph: gc.Graph) -> tuple[Any, ...]:
    """All that there is to see but numbers that nobody counts on."""
    nodes = sorted(str(node.node_def) for node in graph.nodes)
    functions = sorted(graph.library.list_function_names())
    return nodes, functions, len(graph.gradient_records), graph.scopes.name, len(graph.names.state()[0])


def check_interrupted(change: Change, every: int) -> None:
    """Interrupt `change` at one place of so many: it is done or not done, and it may be made after."""

    def make() -> Attempt:
        graph = small()
        before, mirror = described(graph), Mirror(graph)
        start = everything(graph)

        def check() -> None:
            after = everything(graph)
            check_whole(graph, mirror)
            assert ranks_fit(graph)
            assert graph.journal is None
            assert described(graph) in (before, wanted)
            with pytest.raises(RuntimeError, match="un-acquired"):  # this thread does not hold it any more
                graph.lock.release()
            if described(graph) == before:
                assert after == start
                change(graph)
            assert described(graph) == wanted
            check_whole(graph, mirror)

        return lambda: change(graph), check

    graph = small()
    change(graph)
    wanted = described(graph)
    assert interrupted_everywhere(make, PLACES, every) > 100


def by_tensors(graph: gc.Graph) -> object:
    return gc.gradients(graph.get_tensor_by_name("z:0"), [graph.get_tensor_by_name(name) for name in ("x:0", "y:0", "w/read:0")])


def by_a_resource(graph: gc.Graph) -> object:
    return gc.gradients(graph.get_tensor_by_name("z:0"), [each for each in graph.get_collection("variables") if each.op.name == "v"])


@pytest.mark.parametrize("change", [by_tensors, by_a_resource], ids=lambda change: change.__name__)
def test_gradients_are_added_altogether_or_not_at_all(change: Change) -> None:
    check_interrupted(change, 53)


def test_gradients_that_fail_on_the_way_leave_nothing_behind() -> None:
    graph = small()
    with graph.as_default():
        z = graph.get_tensor_by_name("z:0")
        total = gc.exp(gc.apply_op("FakeQuantWithMinMaxArgsGradient", [gc.tanh(z), z]))
    before = everything(graph)
    with pytest.raises(NotFoundError, match="No gradient defined"):
        gc.gradients(total, [graph.get_tensor_by_name("x:0")])
    assert everything(graph) == before


def branch(graph: gc.Graph) -> Any:
    x, y, p = (graph.get_tensor_by_name(f"{name}:0") for name in "xyp")
    with graph.as_default():
        return gc.cond(p, lambda: x * 2.0, lambda: x * y)


def chosen(graph: gc.Graph) -> Any:
    x, y, p, i = (graph.get_tensor_by_name(f"{name}:0") for name in "xypi")
    with graph.as_default():
        return gc.switch_case(i, [lambda: y, lambda: gc.cond(p, lambda: x, lambda: x * y)])


def loop(graph: gc.Graph) -> Any:
    x, i = (graph.get_tensor_by_name(f"{name}:0") for name in "xi")
    with graph.as_default():
        return gc.while_loop(lambda i, _: i < 3, lambda i, t: (i + 1, t * x), [i, x])[1]


@pytest.mark.parametrize("build", [branch, chosen, loop])
def test_a_branch_or_loop_is_added_with_its_functions_or_not_at_all(build: Callable[[gc.Graph], Any]) -> None:
    """What is made after an interruption has the names that it would have had without it."""

    def made() -> gc.Graph:
        graph = small()
        with graph.as_default():
            gc.placeholder(gc.bool_, [], name="p")
            gc.placeholder(gc.int32, [], name="i")
        return graph

    def seen(graph: gc.Graph) -> tuple[Any, ...]:
        return sorted(str(node.node_def) for node in graph.nodes), sorted(graph.library.list_function_names())

    def make() -> Attempt:
        graph = made()
        before, mirror = seen(graph), Mirror(graph)

        def check() -> None:
            check_whole(graph, mirror)
            assert graph.journal is None
            assert graph.scopes.name == ""
            with pytest.raises(RuntimeError, match="un-acquired"):
                graph.lock.release()
            assert seen(graph) in (before, wanted)
            result = graph.get_operation_by_name(given.node.name).outputs[given.index] if seen(graph) == wanted else build(graph)
            assert seen(graph) == wanted
            with gc.Session(graph) as session:
                feeds = {"x:0": [1.0, 2.0], "y:0": [3.0, 4.0], "p:0": False, "i:0": 1}
                assert session.run(result, feeds).tolist() == ([1, 8] if build is loop else [3, 8])

        return lambda: build(graph), check

    graph = made()
    given = build(graph)
    wanted = seen(graph)
    assert interrupted_everywhere(make, (*PLACES, "api/branches.py", "api/loops.py", "passes/defining.py"), 61) > 100


def test_a_branch_that_does_without_a_branch_that_failed_uses_what_that_had_captured() -> None:
    with gc.Graph().as_default() as graph:
        x, p = gc.placeholder(gc.float32, [2], name="x"), gc.placeholder(gc.bool_, [], name="p")

        def either() -> Any:
            with pytest.raises(InvalidArgumentError, match="must give the same number of values"):
                gc.cond(p, lambda: x * 2.0, lambda: (x, x))
            return x * 3.0

        y = gc.cond(p, either, lambda: x)
        names = graph.library.list_function_names()
        assert gc.Session().run(y, {x: [1, 2], p: True}).tolist() == [3, 6]
    assert names == ["cond_true", "cond_false"]
    assert y.node.inputs[1:] == [x]  # what only the failed one took is not handed over
