"""Ctrl-C while nodes that are there are changed, wherever it comes: the change is made altogether or not at all."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.errors import InvalidArgumentError
from graphcore.inference import InferenceContext
from graphcore.source import CellRun, SourceLocation
from graphcore.text import parse_op_signature
from tests.graphcore.graph.example_graphs import LOOP, everything, import_into, ranks_fit, registry
from tests.support.interrupting import Attempt, interrupted_everywhere
from tests.support.whole_graphs import Mirror, check_whole

CHANGING = ("cell_edits", "graph", "node_edits", "node_builder", "rewiring")
KEEPING_BOOKS = ("cells", "edge_reading", "edge_undo", "edges", "journal", "names", "order", "single_change", "telling", "transaction")
INFERRING = ("live_refiner", "propagation", "symbolic_refiner")
PLACES = tuple([f"graph/{name}.py" for name in (*CHANGING, *KEEPING_BOOKS, *INFERRING)])
Change = Callable[[gc.Graph], object]


def small() -> gc.Graph:
    """`late` is older than what comes to feed it, `s` is asked for its value, and several take what `x` gives."""
    graph = gc.Graph()
    x, late = (graph.apply_op("Placeholder", [], {"dtype": gc.float32, "shape": [2, 3]}, name).outputs[0] for name in ("x", "late"))
    s = graph.apply_op("Const", [], {"dtype": gc.int32, "value": np.array([6], np.int32)}, "s").outputs[0]
    y = graph.apply_op("Tanh", [x], name="y").outputs[0]
    z = graph.apply_op("AddN", [[y, y, x]], name="z").outputs[0]
    r = graph.apply_op("Reshape", [z, s], name="r").outputs[0]
    graph.apply_op("Exp", [r], name="e")
    graph.add_control_edge(x.node, graph.apply_op("Neg", [late], name="n"))
    graph.nx.number_of_nodes()
    return graph


def described(graph: gc.Graph) -> tuple[Any, ...]:
    """All that there is to see, but for the numbers of versions and edges."""
    nodes = [
        (str(node.node_def), node.id, [str(shape) for shape in node.output_handles], str(node.error), node.input_errors, str(node.source))
        for node in graph.nodes
    ]
    edges = sorted([str(edge).partition(" ")[2] for edge in graph.edges()])
    taken, _, *released = graph.names.state()
    tables = (
        taken,
        released,
        [(cell, list(owned)) for cell, owned in graph.cells._owned.items() if owned],
        graph.cells.failed,
        graph.cells.running,
    )
    waiting = [(name, node.name, slot) for name, node, slot in graph.waiting()]
    return nodes, edges, tables, waiting, list(graph.gradient_records), [list(graph.get_collection("c"))]


def check_interrupted(
    change: Change, every: int = 1, prepare: Change | None = None, make: Callable[[], gc.Graph] = small, *, edges_fit: bool = True
) -> None:
    """Interrupt `change` at one place of so many: it is done or not done, everybody knows which, and it may be made after.

    Args:
        change: what is interrupted.
        every: at one place of so many.
        prepare: what is done to the graph before.
        make: makes the graph.
        edges_fit: False if an edge is missing, or one to the sink is there that need not be.
    """

    def look(graph: gc.Graph, mirror: Mirror) -> None:
        if edges_fit:
            check_whole(graph, mirror)
        assert mirror.names == {node.name for node in graph.nodes}

    def prepared() -> gc.Graph:
        graph = make()
        if prepare is not None:
            prepare(graph)
        return graph

    def attempt() -> Attempt:
        graph = prepared()
        mirror, before = Mirror(graph), everything(graph)
        start = described(graph)

        def check() -> None:
            after = everything(graph)
            look(graph, mirror)
            assert ranks_fit(graph)
            assert graph.journal is None
            assert graph.edge_store.journal is None
            with pytest.raises(RuntimeError, match="un-acquired"):  # this thread does not hold it any more
                graph.lock.release()
            assert described(graph) in (start, wanted)
            if described(graph) != wanted:
                assert after == before
                assert not mirror.versions
                change(graph)
            else:
                assert mirror.versions or graph.version == before[4][0]
            assert described(graph) == wanted
            look(graph, mirror)

        return lambda: change(graph), check

    graph = prepared()
    change(graph)
    wanted = described(graph)
    assert interrupted_everywhere(attempt, PLACES, every) > 20


def named(graph: gc.Graph, name: str) -> gc.Node:
    return graph.get_operation_by_name(name)


def cell_run(cell: str, execution: int) -> CellRun:
    return CellRun(cell=cell, execution=execution, label=f"In [{execution}]")


def together(graph: gc.Graph, *changes: Callable[[], object]) -> None:
    with graph.transaction():
        for change in changes:
            change()


def place(cell: str, execution: int) -> SourceLocation:
    return SourceLocation("cell", 1, cell_run(cell, execution))


def test_a_node_with_consumers_is_removed_altogether_or_not_at_all() -> None:
    def prepare(graph: gc.Graph) -> None:
        graph.gradient_records["x"] = gc.graph.GradientRecord("y", None, {}, "")

    check_interrupted(lambda graph: graph.remove_node(named(graph, "x")), 29, prepare)


def test_a_node_of_a_cell_is_removed_altogether_or_not_at_all() -> None:
    def prepare(graph: gc.Graph) -> None:
        graph.add_node(gc.NodeDef("mine", "Tanh", ("x",), "", {"T": gc.float32}), place("c", 1))
        graph.add_node(gc.NodeDef("also", "Tanh", ("mine",), "", {"T": gc.float32}), place("c", 1))

    check_interrupted(lambda graph: graph.remove_node(named(graph, "mine")), 7, prepare)


def test_all_nodes_are_removed_or_none() -> None:
    check_interrupted(lambda graph: graph.clear(), 53)


def test_an_input_that_is_fed_from_elsewhere_is_so_altogether_or_not_at_all() -> None:
    check_interrupted(lambda graph: graph.update_edge(named(graph, "late"), 0, named(graph, "z"), 1), 29)


def test_what_comes_after_is_put_in_order_with_a_moved_edge_or_not_at_all() -> None:
    check_interrupted(lambda graph: graph.update_edge(named(graph, "n"), 0, named(graph, "y"), 0), 29)


def test_an_edge_is_removed_and_added_again_altogether_or_not_at_all() -> None:
    def remove(graph: gc.Graph) -> None:
        graph.remove_edge(next(edge for edge in graph.edges() if (edge.src.name, edge.dst.name, edge.dst_input) == ("y", "z", 0)))

    check_interrupted(remove, 29, edges_fit=False)
    check_interrupted(lambda graph: graph.add_edge(named(graph, "y"), 0, named(graph, "z"), 0), 29, remove, edges_fit=False)


def test_a_control_edge_is_added_and_removed_altogether_or_not_at_all() -> None:
    def add(graph: gc.Graph) -> None:
        graph.add_control_edge(named(graph, "n"), named(graph, "y"))

    check_interrupted(add, 11)
    check_interrupted(lambda graph: graph.remove_control_edge(named(graph, "n"), named(graph, "y")), 11, add)
    check_interrupted(lambda graph: graph.add_control_edge(named(graph, "y"), graph.sink_node), 11, edges_fit=False)
    check_interrupted(
        lambda graph: graph.add_control_edge(named(graph, "x"), named(graph, "n"), allow_duplicates=True), 11, edges_fit=False
    )


def test_an_attr_is_set_with_all_that_follows_from_it_or_not_at_all() -> None:
    check_interrupted(lambda graph: graph.set_attr(named(graph, "x"), "shape", [3, 2]), 29)
    check_interrupted(lambda graph: graph.set_attr(named(graph, "s"), "value", np.array([7], np.int32)), 29)


def test_what_is_known_of_a_shape_is_added_altogether_or_not_at_all() -> None:
    def prepare(graph: gc.Graph) -> None:
        graph.set_attr(named(graph, "x"), "shape", [None, 3])

    check_interrupted(lambda graph: graph.set_shape(named(graph, "x").outputs[0], [4, 3]), 29, prepare)
    check_interrupted(lambda graph: graph.set_shape_like(named(graph, "x").outputs[0], named(graph, "late").outputs[0]), 7, prepare)


def test_named_sizes_change_altogether_or_not_at_all() -> None:
    def make() -> gc.Graph:
        graph = gc.Graph(infer="symbolic")
        x, w = (graph.apply_op("Placeholder", [], {"dtype": gc.float32, "shape": [None, None]}, name).outputs[0] for name in "xw")
        graph.apply_op("AddV2", [x, w], name="sum")
        graph.apply_op("MatMul", [x, w], name="product")
        graph.nx.number_of_nodes()
        return graph

    def equalities(graph: gc.Graph) -> list[str]:
        return graph.symbols().equalities

    def attempt() -> Attempt:
        graph = make()
        before = equalities(graph), everything(graph)

        def check() -> None:
            after = equalities(graph), everything(graph)
            check_whole(graph)
            assert (after == before) is (str(graph.get_tensor_by_name("w:0").shape) != "[5,2]")

        return lambda: graph.set_attr(named(graph, "w"), "shape", [5, 2]), check

    assert interrupted_everywhere(attempt, PLACES, 23) > 50


def test_lists_of_types_shrink_altogether_or_not_at_all() -> None:
    def make() -> gc.Graph:
        graph = gc.Graph()
        x = graph.apply_op("Placeholder", [], {"dtype": gc.float32, "shape": [2]}, "x").outputs[0]
        both = graph.apply_op("IdentityN", [[x, x, x]], name="both")
        graph.apply_op("Tanh", [both.outputs[2]], name="t")
        graph.nx.number_of_nodes()
        return graph

    check_interrupted(lambda graph: graph.shrink_type_info(named(graph, "both"), {0: 0, 2: 1}), 29, make=make)


def test_a_loop_is_entered_by_other_shapes_altogether_or_not_at_all() -> None:
    def make() -> gc.Graph:
        graph = gc.Graph(registry())
        import_into(graph, "W1=TestParams()", *LOOP)
        graph.nx.number_of_nodes()
        return graph

    check_interrupted(lambda graph: graph.set_shape(named(graph, "enter").outputs[0], []), 53, make=make)
    check_interrupted(lambda graph: graph.remove_node(named(graph, "enter")), 53, make=make)


def test_a_node_that_a_cell_makes_again_is_replaced_altogether_or_not_at_all() -> None:
    def prepare(graph: gc.Graph) -> None:
        for name in ("mine", "other"):
            graph.add_node(gc.NodeDef(name, "Tanh", ("x",), "", {"T": gc.float32}), place("c", 1))
        graph.add_node(gc.NodeDef("after", "Exp", ("mine",), "", {"T": gc.float32}), place("d", 1))
        graph.begin_cell(cell_run("c", 2))

    check_interrupted(lambda graph: graph.add_node(gc.NodeDef("mine", "Neg", ("r",), "", {"T": gc.float32}), place("c", 2)), 29, prepare)
    check_interrupted(lambda graph: graph.add_node(gc.NodeDef("mine", "Tanh", ("x",), "", {"T": gc.float32}), place("c", 2)), 7, prepare)


def test_what_a_cell_does_not_make_again_goes_altogether_or_not_at_all() -> None:
    first, second = cell_run("c", 1), cell_run("c", 2)

    def prepare(graph: gc.Graph) -> None:
        graph.begin_cell(first)
        with graph.name_scope("scope"):
            for name in ("mine", "other"):
                graph.add_node(gc.NodeDef(name, "Tanh", ("x",), "", {"T": gc.float32}), place("c", 1))
        graph.end_cell(first)
        graph.add_node(gc.NodeDef("after", "Exp", ("mine",), "", {"T": gc.float32}), place("d", 1))

    def begin(graph: gc.Graph) -> None:
        prepare(graph)
        graph.begin_cell(second)

    check_interrupted(lambda graph: graph.drop_cell("c"), 53, prepare)
    check_interrupted(lambda graph: graph.begin_cell(second), 7, prepare)
    check_interrupted(lambda graph: graph.end_cell(second), 53, begin)
    check_interrupted(lambda graph: graph.end_cell(second, failed=True), 7, begin)


def test_a_collection_has_an_item_or_is_as_before() -> None:
    check_interrupted(lambda graph: graph.add_to_collection("c", 1))


def test_a_node_that_waits_for_another_is_added_altogether_or_not_at_all() -> None:
    check_interrupted(lambda graph: gc.NodeBuilder("w", "Tanh").input(gc.NodeOut("to_come", 0, gc.float32)).finalize(graph), 19)


def test_a_node_that_others_wait_for_is_added_altogether_or_not_at_all() -> None:
    def prepare(graph: gc.Graph) -> None:
        graph.remove_node(named(graph, "y"))
        graph.apply_op("Neg", [named(graph, "x").outputs[0]], name="y_1")
        graph.apply_op("Exp", [named(graph, "y_1").outputs[0]], name="after")
        graph.add_control_edge(named(graph, "y_1"), named(graph, "s"))
        graph.remove_node(named(graph, "y_1"))

    check_interrupted(lambda graph: graph.add_node(gc.NodeDef("y", "Tanh", ("x",), "", {"T": gc.float32})), 29, prepare)
    check_interrupted(lambda graph: graph.add_node(gc.NodeDef("y_1", "Tanh", ("e",), "", {"T": gc.float32})), 29, prepare)
    check_interrupted(lambda graph: graph.add_node(gc.NodeDef("y", "Tanh", ("r",), "", {"T": gc.float32})), 29, prepare)
    check_interrupted(lambda graph: graph.add_node(gc.NodeDef("y_1", "Tanh", ("late",), "", {"T": gc.float32}), place("c", 1)), 29, prepare)


@pytest.mark.parametrize(
    "change",
    [
        lambda graph: graph.update_edge(named(graph, "seven"), 0, named(graph, "a"), 0),
        lambda graph: graph.set_attr(named(graph, "two"), "size", 7),
        lambda graph: graph.add_node(gc.NodeDef("awaited", "Vector", (), "", {"size": 7})),
        lambda graph: graph.remove_node(named(graph, "four")),
        lambda graph: together(graph, lambda: graph.remove_node(named(graph, "f")), lambda: graph.set_attr(named(graph, "two"), "size", 7)),
    ],
    ids=["edge", "attr", "awaited", "removed", "transaction"],
)
def test_a_change_that_breaks_is_taken_back_though_ctrl_c_comes_meanwhile(change: Change) -> None:
    def no_seven(c: InferenceContext) -> None:
        c.set_output(0, c.input(0))
        if c.rank(c.input(0)) == 1 and c.value(c.dim(c.input(0), 0)) == 7:
            raise ZeroDivisionError

    def known(c: InferenceContext) -> None:
        c.set_output(0, c.input(0))
        if c.rank(c.input(0)) < 0:
            raise ZeroDivisionError

    def make() -> gc.Graph:
        ops = registry()
        for op, shape_fn in (("NoSeven", no_seven), ("Known", known), ("Same", lambda c: c.set_output(0, c.input(0)))):
            ops.register(parse_op_signature(f"{op}(x:float) -> (y:float)"), shape_fn)
        graph = gc.Graph(ops)
        for name, size in (("two", 2), ("four", 4), ("seven", 7), ("awaited", 3)):
            graph.add_node(gc.NodeDef(name, "Vector", (), "", {"size": size}))
        for name, op, fed in (
            ("a", "Same", "two"),
            ("b", "NoSeven", "a"),
            ("c", "Same", "four"),
            ("d", "Known", "c"),
            ("e", "Same", "awaited"),
        ):
            graph.add_node(gc.NodeDef(name, op, (fed,)))
        graph.remove_node(named(graph, "awaited"))
        graph.add_node(gc.NodeDef("f", "NoSeven", ("e",)))
        graph.nx.number_of_nodes()
        return graph

    def attempt() -> Attempt:
        graph = make()
        before = everything(graph)

        def do() -> None:
            with pytest.raises(ZeroDivisionError):
                change(graph)

        def check() -> None:
            assert everything(graph) == before
            assert graph.journal is None
            assert graph.edge_store.journal is None

        return do, check

    with ThreadPoolExecutor(1) as pool:  # raising where Python cannot leaves the thread handling what it had caught
        assert pool.submit(interrupted_everywhere, attempt, PLACES, 13).result() > 50


def test_values_that_were_found_while_a_change_failed_are_forgotten_with_it() -> None:
    graph = gc.Graph()
    s = graph.apply_op("Const", [], {"dtype": gc.int32, "value": np.array([2, 3], np.int32)}, "s").outputs[0]
    same = graph.apply_op("Identity", [s], name="same").outputs[0]
    x = graph.apply_op("Placeholder", [], {"dtype": gc.float32, "shape": [6]}, "x").outputs[0]

    def fail() -> None:
        with graph.transaction():
            graph.set_attr(s.node, "value", np.array([3, 2], np.int32))
            assert graph.apply_op("Reshape", [x, same]).outputs[0].shape.as_list() == [3, 2]
            raise InvalidArgumentError("no")

    with pytest.raises(InvalidArgumentError, match="no"):
        fail()
    assert graph.apply_op("Reshape", [x, same]).outputs[0].shape.as_list() == [2, 3]
