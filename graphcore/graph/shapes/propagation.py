"""Propagation of shapes after changes, limited to the nodes that are affected.

A node is inferred again if the shape of an input has changed, or a value that its shapes depend on. Unknown dimensions are compared
by identity. But if a new result differs from the old one only in newly made unknowns, the old one is kept.
"""

from __future__ import annotations

from heapq import heappop, heappush

from graphcore.errors import GraphError, InvalidArgumentError
from graphcore.graph.model.input_checks import type_misfit
from graphcore.graph.model.node import Node, Tensor
from graphcore.graph.model.topological_order import renew_stale_ranks
from graphcore.graph.shapes.loop_shapes import LoopsAround, is_loop_head
from graphcore.graph.shapes.shaped_graph import ShapedGraph
from graphcore.inference import ShapeHandle, same_handle_data
from graphcore.plumbing import MERGE, is_back_edge


def infer_downstream(graph: ShapedGraph, *starts: Node, include_start: bool = False) -> None:
    """Infer the descendants of `starts`, whose outputs have changed, until nothing more changes.

    Args:
        graph: the graph.
        starts: the changed nodes.
        include_start: infer these first; continue only if that changes them.
    """
    wave = _Wave(graph)
    for node in starts:
        if include_start:
            wave.start(node)
        else:
            wave.replaced(node)
    wave.run()


def infer_orphan(graph: ShapedGraph, node: Node, removed: Node) -> None:
    """Infer the descendants of `node`, the only consumer of `removed`, which is no longer in the graph."""
    wave = _Wave(graph)
    wave.orphan(node, removed)
    wave.run()


def note_replaced(graph: ShapedGraph, node: Node, *, same_shapes: bool) -> None:
    """Infer the descendants of `node`, which has a new definition.

    With `same_shapes` only its value may have changed.
    """
    wave = _Wave(graph)
    if same_shapes:
        wave.changed_value(node)
    else:
        wave.replaced(node)
    wave.run()


def close_loops(graph: ShapedGraph, heads: list[Node]) -> None:
    """Relax shapes inferred from the first iteration of loops, whose `heads` are now fully connected."""
    wave = _Wave(graph)
    wave.open.update(dict.fromkeys(heads))
    wave.run()


def same_outputs(before: Node, after: Node) -> bool:
    """True iff the outputs have the same types, and shapes that differ at most in new unknowns."""
    if before.output_types != after.output_types or before.requested_values or after.requested_values or before.like or after.like:
        return False
    if len(before.output_handles) != len(after.output_handles):
        return False
    shapes = [tensor.node.output_handles for node in (before, after) for tensor in node.inputs]
    theirs = _unknowns([handle for handles in shapes for handle in handles])
    return _same_data(before.handle_data, after) and _same_but_for_names(before.output_handles, after.output_handles, theirs)


class _Wave:
    """One propagation: a queue of nodes in topological order."""

    __slots__ = (
        "_before",
        "_careful",
        "_graph",
        "_heap",
        "_heirs",
        "_infer",
        "_loops",
        "_opened",
        "_queued",
        "_starts",
        "_successors",
        "open",
    )

    def __init__(self, graph: ShapedGraph) -> None:
        graph.edge_store.sync()
        renew_stale_ranks(graph)
        self._graph = graph
        self._heap: list[tuple[int, int, Node]] = []
        self._queued: set[Node] = set()
        self._before: dict[Node, tuple[ShapeHandle, ...]] = {}  # the former shapes of outputs that this propagation has changed
        self._starts: set[Node] = set()
        self._heirs: dict[Node, Node] = {}  # the only consumer of each removed node, with that node
        self._careful: set[Node] = set()  # nodes with new inputs, or inputs with new types, which are checked fully
        self._infer = graph.refiner.add_node
        self._successors = graph.edge_store.data_successors()
        heads = graph.refiner.loop_heads
        self._loops = LoopsAround(graph, heads) if heads else None
        self._opened: set[Node] = set()
        self.open: dict[Node, None] = {}

    def start(self, node: Node) -> None:
        """Queue `node`, which has new inputs or attrs."""
        self._starts.add(node)
        self._careful.add(node)
        self.infer(node)

    def orphan(self, node: Node, removed: Node) -> None:
        """Queue `node`, the only consumer of this removed node, and without other producers."""
        if removed.error is not None:
            self._heirs[node] = removed
        self.start(node)

    def infer(self, node: Node) -> None:
        """Queue `node`."""
        if node not in self._queued:
            self._queued.add(node)
            heappush(self._heap, (node.rank, node.id, node))

    def run(self) -> None:
        """Infer until nothing changes."""
        heap, queued = self._heap, self._queued
        while True:
            while heap:
                node = heappop(heap)[2]
                queued.discard(node)
                self._visit(node)
            heads = sorted(self.open, key=lambda head: head.rank)
            relaxed = next((head for head in heads if self._relax(head)), None)
            if relaxed is None and not heap:
                return

    def replaced(self, node: Node) -> None:
        """Handle a node with a new definition, including types."""
        self._careful.update(self._graph.edge_store.consumers_of(node))
        self.changed(node)

    def changed(self, node: Node) -> None:
        """Queue the consumers of `node`, whose output shapes have changed."""
        opened, queued = self._opened, self._queued
        if node.constants is not None:
            self._graph.journal.note(node)
            node.constants = None
        for consumer in self._successors(node):
            if opened and consumer in opened:
                if is_back_edge(node.op, consumer.op):
                    continue
                opened.discard(consumer)  # an input of the loop has changed: the loop is inferred again
            if consumer not in queued:
                queued.add(consumer)
                heappush(self._heap, (consumer.rank, consumer.id, consumer))

    def changed_value(self, node: Node) -> None:
        """Forget values derived from `node`, whose values may have changed, but not its shapes."""
        graph = self._graph
        pending = [node]
        while pending:
            current = pending.pop()
            if current.constants is not None:
                graph.journal.note(current)
                current.constants = None
            for consumer in self._successors(current):
                if consumer.requested_values:
                    self.infer(consumer)
                if consumer.constants is not None:
                    graph.journal.note(consumer)
                    consumer.constants = None
                    pending.append(consumer)

    def _visit(self, node: Node) -> None:
        mark = node.error
        if mark is None or not mark.is_mark:
            self._infer_again(node)
        elif mark.is_left:
            self._graph.journal.note(node)
            self._careful.add(node)
            node.error = None
            self._infer_again(node)
            node.error = mark

    def _infer_again(self, node: Node) -> None:
        graph = self._graph
        if self._loops is not None:
            self._restart(node, self._loops)
        before, data, had_error = node.output_handles, node.handle_data, node.error
        graph.journal.note(node)
        if had_error is None and node not in self._careful and node.op not in MERGE:
            try:
                self._infer(node)  # only shapes have changed: the inputs are still valid
            except GraphError as error:
                _mark(node, error, {})
        else:
            self._refit(node)
        if had_error is None and node.error is None:
            if not _differ(before, node.output_handles) and self._unchanged(node, before, data):
                node.output_handles, node.handle_data = before, data
                self.changed_value(node)
                return
        elif had_error is not None and node.error is not None and all(handle.dims is None for handle in before):
            node.output_handles = before
            graph.journal.publish("shapes", node)
            return
        elif node in self._heirs and _same_handles(before, self._heirs[node].output_handles):
            # Only this node had the unknown shapes of the removed faulty node, so it keeps them, and its descendants are unchanged.
            node.output_handles = before
            self.changed_value(node)
            graph.journal.publish("shapes", node)
            return
        earlier = self._before.get(node)
        self._before[node] = before if earlier is None else earlier + before
        self.changed(node)
        graph.journal.publish("shapes", node)

    def _restart(self, node: Node, loops: LoopsAround) -> None:
        """Infer the loops through `node` again from the start: shapes that were relaxed may hold now."""
        for head in loops.heads(node):
            if head not in self._opened:
                self.infer(head)

    def _unchanged(self, node: Node, before: tuple[ShapeHandle, ...], data: object) -> bool:
        """True iff the shapes of `node` differ from the former ones at most in new unknowns."""
        after = node.output_handles
        if not _same_data(data, node):
            return False
        if node.requested_values or node.like or node in self._starts or node in self._opened:
            return _same_but_for_names(before, after, None)
        shapes = [tensor.node.output_handles[tensor.index] for tensor in node.inputs]
        shapes += [handle for tensor in node.inputs for handle in self._before.get(tensor.node, ())]
        return _same_but_for_names(before, after, _unknowns(shapes))

    def _refit(self, node: Node) -> None:
        graph = self._graph
        controls = {slot: text for slot, text in node.input_errors.items() if slot < 0} if node.input_errors else {}
        problems = _input_problems(graph, node)
        if problems or controls or node.input_errors:
            node.input_errors = {**controls, **problems}
        if problems:
            node.error = InvalidArgumentError.at(node, "; ".join(problems.values()))
            forget_shapes(node)
            return
        try:
            if is_loop_head(node):
                graph.refiner.open_loop(node)
                self._opened.add(node)
                self.open[node] = None
            else:
                graph.refiner.add_node(node)
        except GraphError as error:
            _mark(node, error, controls)
            return
        node.error = None

    def _relax(self, head: Node) -> bool:
        """Relax shapes by loop back edges. True iff that changed any."""
        if head not in self._graph or head.error is not None:
            return False
        self._graph.journal.note(head)
        if not self._graph.refiner.relax_loop(head):
            return False
        self.changed(head)
        self._graph.journal.publish("shapes", head)
        return True


def _input_problems(graph: ShapedGraph, node: Node) -> dict[int, str]:
    """The errors of the inputs, by slot."""
    feeds, types = graph.edge_store.feeds, node.input_types
    problems: dict[int, str] = {}
    for slot, tensor in enumerate(node.inputs):
        producer = tensor.node
        if (
            producer is not node
            and feeds(tensor, node, slot)
            and tensor in graph
            and tensor.index < len(producer.output_types)
            and producer.output_types[tensor.index] is types[slot]
        ):
            continue
        text = _input_problem(graph, node, slot, tensor)
        if text:
            problems[slot] = text
    return problems


def _input_problem(graph: ShapedGraph, node: Node, slot: int, tensor: Tensor) -> str:
    if tensor not in graph:
        return f"Input {slot} of node {node.name}: '{tensor.node.name}' is {'not in the graph yet' if tensor.node.id < 0 else 'no longer in the graph'}"
    if tensor.node is node:
        return f"Input {slot} of node {node.name} is its own output '{tensor.name}': a cycle"
    if not graph.edge_store.feeds(tensor, node, slot):
        return f"Input {slot} of node {node.name} is fed by nothing: its edge from '{tensor.name}' is gone"
    if tensor.index >= len(tensor.node.outputs):
        return f"Input {slot} of node {node.name}: '{tensor.node.name}' (op {tensor.node.op}) has no output {tensor.index} any more"
    return type_misfit(node.name, slot, tensor, node.input_types[slot])


def _mark(node: Node, error: GraphError, controls: dict[int, str]) -> None:
    """Mark `node` with inputs that contradict each other, or that break its shape function."""
    node.error = error.with_node(node.name, op=node.op, source=node.source)
    node.input_errors = {**controls, **dict.fromkeys(range(len(node.inputs)), error.message)}
    forget_shapes(node)


def forget_shapes(node: Node) -> None:
    """Make the outputs of `node`, which has an error, unknown."""
    node.output_handles = tuple([ShapeHandle(None) for _ in node.outputs])
    node.handle_data = None
    node.constants = None


def _differ(before: tuple[ShapeHandle, ...], after: tuple[ShapeHandle, ...]) -> bool:
    """True if a size or rank has certainly changed: a fast test."""
    if len(before) != len(after):
        return True
    for a, b in zip(before, after, strict=True):
        if a is b:
            continue
        first, second = a.dims, b.dims
        if first is None or second is None:
            if first is not second:
                return True
            continue
        if len(first) != len(second):
            return True
        for x, y in zip(first, second, strict=True):
            if x.value != y.value:
                return True
    return False


def _same_handles(shapes: tuple[ShapeHandle, ...], others: tuple[ShapeHandle, ...]) -> bool:
    """True iff each of `shapes` has an unknown rank and is identical to one of the others."""
    return all(shape.dims is None and any(shape is other for other in others) for shape in shapes)


def _unknowns(shapes: list[ShapeHandle]) -> set[int]:
    """The unknowns in them: dimensions, and shapes of unknown rank."""
    open_ids = {id(dim) for shape in shapes for dim in shape.dims or () if dim.value < 0}
    open_ids.update([id(shape) for shape in shapes if shape.dims is None])
    return open_ids


def _same_data(before: object, node: Node) -> bool:
    after = node.handle_data
    if before is None or after is None:
        return before is after
    assert isinstance(before, dict)
    return before.keys() == after.keys() and all(same_handle_data(before[index], after[index]) for index in after)


def _same_but_for_names(before: tuple[ShapeHandle, ...], after: tuple[ShapeHandle, ...], inputs: set[int] | None) -> bool:
    """True iff the shapes are equal up to renaming of unknowns not in `inputs`; None: of none."""
    if len(before) != len(after):
        return False
    there: dict[int, object] = {}
    back: dict[int, object] = {}
    for a, b in zip(before, after, strict=True):
        if a is b:
            continue
        if a.dims is None or b.dims is None:
            if a.dims is not b.dims or not _may_be_called(a, b, inputs, there, back):
                return False
            continue
        if len(a.dims) != len(b.dims):
            return False
        for x, y in zip(a.dims, b.dims, strict=True):
            if x.value != y.value or (x is not y and x.value < 0 and not _may_be_called(x, y, inputs, there, back)):
                return False
    return True


def _may_be_called(old: object, new: object, inputs: set[int] | None, there: dict[int, object], back: dict[int, object]) -> bool:
    """True iff `new` may be renamed to `old`: both made by the node, and consistent with other pairs."""
    if inputs is None or id(old) in inputs or id(new) in inputs:
        return False
    return there.setdefault(id(old), new) is new and back.setdefault(id(new), old) is old
