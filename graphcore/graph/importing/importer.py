"""`import_graph_def`: adds all nodes of a GraphDef to a graph, or none."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Any, Final

import msgspec

from graphcore.attrs import Attrs
from graphcore.definitions import (
    GraphDef,
    NodeDef,
    OpDef,
    add_default_attrs,
    check_op_deprecation,
    colocated_with,
    in_out_types_for_node,
    validate_node_def,
)
from graphcore.dtypes import DType
from graphcore.errors import GraphError, InvalidArgumentError, NotFoundError
from graphcore.graph.graph import Graph
from graphcore.graph.importing.inputs import Input, InputRewriter, find_existing
from graphcore.graph.importing.names import import_names
from graphcore.graph.importing.opaque import OutputTypes, opaque_outputs, opaque_registration
from graphcore.graph.importing.options import ImportOptions, ImportResults, check_results, tensor_id_of
from graphcore.graph.importing.shapes import check_output_shapes, forget_shapes
from graphcore.graph.importing.versions import check_versions, explain_newer_producer, merge_versions
from graphcore.graph.model.input_checks import type_misfit
from graphcore.graph.model.node import NO_CONTROLS, Node, Tensor, absent_tensor
from graphcore.graph.model.tensor_id import CONTROL, TensorId
from graphcore.graph.shapes.propagation import close_loops, infer_downstream
from graphcore.graph.shapes.shape_refiner import ShapeInference, ShapeRefiner
from graphcore.plumbing import MERGE, is_back_edge
from graphcore.registry import OpRegistration
from graphcore.source import SourceLocation, caller_location
from graphcore.support.budget import FEW_OUTPUTS, charge_outputs, within_one_budget
from graphcore.support.gc_pause import paused_collector

_MOST_NAMES: Final = 20
"""The most nodes of a cycle in an error text."""
_Types = tuple[tuple[DType, ...], tuple[DType, ...]]


@within_one_budget
def import_graph_def(
    graph_def: GraphDef,
    graph: Graph,
    options: ImportOptions | None = None,
    refiner: ShapeRefiner | None = None,
    results: ImportResults | None = None,
) -> None:
    """Add the nodes and functions of `graph_def` to `graph`. After an error the graph is unchanged.

    Nodes may be in any order. In a notebook, nodes imported by an earlier run of the same cell are replaced in place.

    Args:
        graph_def: the GraphDef.
        graph: the target.
        options: see `ImportOptions`.
        refiner: infers the shapes too, beside the graph itself, and keeps them. Like the graph it uses the lowest producer
            version so far.
        results: an empty object to fill.

    Raises:
        NotFoundError: an op is not registered.
        UnimplementedError: an op is deprecated in the version of the GraphDef.
        InvalidArgumentError: the GraphDef is invalid, or does not fit the graph or the options.
    """
    options = options or ImportOptions()
    check_results(options, results)
    check_versions(graph_def.versions)
    graph.refuse_finalized()
    refiners: list[ShapeInference] = [graph.refiner] if refiner is None else [graph.refiner, refiner]
    known_versions = [refiner.graph_def_version for refiner in refiners]
    source = caller_location()
    try:
        with paused_collector(), graph.transaction():
            for shape_refiner in refiners:
                shape_refiner.graph_def_version = min(shape_refiner.graph_def_version, graph_def.versions.producer)
            _Import(graph, graph_def, options, refiner, source).run(results)
    except GraphError as error:
        for shape_refiner, known_version in zip(refiners, known_versions, strict=True):
            shape_refiner.graph_def_version = known_version
        if results is not None:
            results.return_tensors, results.return_nodes, results.missing_unused_input_map_keys = [], [], []
        error.source = error.source or source
        explain_newer_producer(error, graph_def.versions)
        raise


class _OpPlan(msgspec.Struct, eq=False):
    """The precomputed data for the nodes of one op.

    `completed` caches attrs shared by many nodes, by the id of their dict (to which it holds a reference).
    """

    registration: OpRegistration
    op_def: OpDef
    is_loop_entry: bool
    completed: dict[int, tuple[Attrs, Attrs, _Types]]


class _Import:
    """An import in progress."""

    def __init__(
        self, graph: Graph, graph_def: GraphDef, options: ImportOptions, refiner: ShapeRefiner | None, source: SourceLocation
    ) -> None:
        self.graph = graph
        self.graph_def = graph_def
        self.options = options
        self.refiner = refiner
        self.source = source
        self.nodes = graph_def.node
        self.made: dict[str, Node] = {}
        self.skipped: dict[str, int] = {}
        self.plans: dict[str, _OpPlan] = {}
        self.waiting: dict[str, list[int]] = {}
        self.lacking: dict[int, int] = {}
        self.ready: list[int] = []
        self.back_edges: list[tuple[Node, int, TensorId]] = []
        self.opaque: OutputTypes = {}
        self._ops: dict[str, str] | None = None

    def run(self, results: ImportResults | None) -> None:
        """Import everything.

        Raises:
            GraphError: an error in the GraphDef.
        """
        graph, options = self.graph, self.options
        self.names = import_names(graph, self.graph_def, options)
        self.rewriter = InputRewriter(graph, options, self.names)
        self.plain = self.rewriter.changes_nothing
        graph.add_function_library(self.graph_def.library)
        self.wanted = [tensor_id_of(item) for item in options.return_tensors]
        if options.allow_unknown_ops:
            self.opaque = opaque_outputs(self.graph_def, graph.library, self.wanted)
        self._make_all()
        self._close_loops()
        graph.versions = merge_versions(graph.versions, self.graph_def.versions)
        if self.plain and self.graph_def.other_fields not in graph.other_fields:
            # Serialised messages are merged by concatenation. Renamed nodes would make the merged message wrong.
            graph.other_fields += self.graph_def.other_fields
        if results is not None:
            self._fill(results)

    # ---- the order: the first in the file of those with all inputs present ---------------------------------------------

    def _make_all(self) -> None:
        ready = self.ready
        for number in range(len(self.nodes)):
            self._try(number)
            while ready:
                self._try(heappop(ready))
        left = len(self.nodes) - len(self.made) - len(self.skipped)
        if left:
            raise InvalidArgumentError(f"{left} nodes in a cycle: {_path_text(self._cycle())}")

    def _try(self, number: int) -> None:
        node_def = self.nodes[number]
        plan = self.plans.get(node_def.op) or self._plan(node_def)
        nodes = self.made
        inputs: list[Tensor] = []
        if self.plain:
            for text in node_def.input:
                producer = nodes.get(text)
                outputs = None if producer is None else producer.outputs
                if not outputs:
                    break
                inputs.append(outputs[0])
            else:
                if "_class" in node_def.attr:
                    self._check_colocation(node_def)
                self._finish(node_def.name, node_def, plan, inputs, NO_CONTROLS)
                return
        self._try_fully(number, node_def, plan)

    def _plan(self, node_def: NodeDef) -> _OpPlan:
        op = node_def.op
        if not op:
            raise InvalidArgumentError(f"Node '{node_def.name}' does not specify an operation", node=node_def.name)
        try:
            registration = self.graph.look_up(op)
        except NotFoundError as error:
            if not self.options.allow_unknown_ops:
                text = f"{error.message}, which node '{node_def.name}' is of; with allow_unknown_ops=True it would be held, but could not be run"
                raise NotFoundError(text, op=op, node=node_def.name) from None
            registration = opaque_registration(op)
        check_op_deprecation(registration.op_def, self.graph_def.versions.producer)
        plan = self.plans[op] = _OpPlan(registration, registration.op_def, op in MERGE, {})
        return plan

    def _try_fully(self, number: int, node_def: NodeDef, plan: _OpPlan) -> None:
        """Variant of `_try` for control inputs, ports, later inputs, and imports that change inputs."""
        if self._is_mapped(node_def, plan):
            self.skipped[node_def.name] = self._num_outputs(node_def, plan)
            self._wake(node_def.name)
            return
        inputs = self.rewriter.mapped(node_def)
        if self._must_wait(number, node_def, plan, inputs):
            return
        self.rewriter.add_controls(inputs, self.made)
        if "_class" in node_def.attr:
            self._check_colocation(node_def)
        changed = node_def if self.plain else self.rewriter.renamed(node_def, inputs)
        tensors, controls = self._resolve(node_def, inputs)
        node = self._finish(node_def.name, changed, plan, tensors, controls or NO_CONTROLS)
        for slot, item in enumerate(inputs):
            if item.tensor.index != CONTROL and not item.exists and item.tensor.node not in self.made:
                self.back_edges.append((node, slot, item.tensor))

    def _must_wait(self, number: int, node_def: NodeDef, plan: _OpPlan, inputs: list[Input]) -> bool:
        """False if all inputs are present, or loop back edges. Otherwise the node is tried again later."""
        missing = [item for item in inputs if not item.exists and item.tensor.node not in self.made]
        if not missing:
            return False
        ops = self._op_of_name()
        for item in missing:
            if item.tensor.node not in ops:
                raise InvalidArgumentError(f"Node '{node_def.name}': Unknown input node '{item.text}'", op=node_def.op, node=node_def.name)
            if item.tensor.node in self.skipped:
                raise InvalidArgumentError(
                    f"Node '{node_def.name}': input '{item.text}' is on a node that is left out, because all its outputs are mapped",
                    op=node_def.op,
                    node=node_def.name,
                )
        if plan.is_loop_entry:
            around = [item for item in missing if item.tensor.index != CONTROL and is_back_edge(ops[item.tensor.node], node_def.op)]
            if len(around) < sum(item.tensor.index != CONTROL for item in inputs):
                missing = [item for item in missing if item not in around]
        producers = {item.tensor.node for item in missing}
        for name in producers:
            self.waiting.setdefault(name, []).append(number)
        self.lacking[number] = len(producers)
        return bool(producers)

    def _op_of_name(self) -> dict[str, str]:
        if self._ops is None:
            self._ops = {node.name: node.op for node in self.nodes}
        return self._ops

    def _wake(self, name: str) -> None:
        for number in self.waiting.pop(name, ()):
            self.lacking[number] -= 1
            if not self.lacking[number]:
                heappush(self.ready, number)

    def _cycle(self) -> list[str]:
        """The names along one of the cycles that block nodes."""
        waits_for = {self.nodes[number].name: name for name, numbers in self.waiting.items() for number in numbers}
        path: dict[str, None] = {}
        name = next(iter(waits_for))
        while name not in path:
            path[name] = None
            name = waits_for[name]
        names = list(path)
        return [*reversed(names[names.index(name) :]), names[-1]]

    # ---- one node --------------------------------------------------------------------------------------------------

    def _is_mapped(self, node_def: NodeDef, plan: _OpPlan) -> bool:
        if not self.options.skip_mapped_nodes:
            return False
        count = self._num_outputs(node_def, plan)
        return count > 0 and all(TensorId(node_def.name, i) in self.rewriter.input_map for i in range(count))

    def _num_outputs(self, node_def: NodeDef, plan: _OpPlan) -> int:
        if plan.registration.is_opaque:
            return len(self.opaque.get(node_def.name, ()))
        return len(in_out_types_for_node(add_default_attrs(node_def, plan.op_def), plan.op_def)[1])

    def _check_colocation(self, node_def: NodeDef) -> None:
        if not self.options.validate_colocation_constraints:
            return
        for name in colocated_with(node_def):
            if name not in self.names.own:
                raise InvalidArgumentError(
                    f"Node '{node_def.name}' expects to be colocated with unknown node '{name}'", op=node_def.op, node=node_def.name
                )

    def _resolve(self, node_def: NodeDef, inputs: list[Input]) -> tuple[list[Tensor], list[Node]]:
        tensors: list[Tensor] = []
        controls: list[Node] = []
        in_controls = False
        for item in inputs:
            name, index = item.tensor
            producer = find_existing(self.graph, name) if item.exists else self.made.get(name)
            if index == CONTROL:
                in_controls = True
                if producer is not None and producer.is_op and producer not in controls:
                    controls.append(producer)
                continue
            if in_controls:
                raise InvalidArgumentError(
                    f"Node '{node_def.name}': Control dependencies must come after regular dependencies", op=node_def.op, node=node_def.name
                )
            if producer is None:
                tensors.append(absent_tensor(self.graph, self.names.final(name), index))
                continue
            self._require_output(node_def, producer, item.tensor)
            tensors.append(producer.outputs[index])
        return tensors, controls

    def _require_output(self, node_def: NodeDef, producer: Node, tensor: TensorId) -> None:
        if tensor.index >= len(producer.outputs):
            raise InvalidArgumentError(
                f"Node '{node_def.name}': Connecting to invalid output {tensor.index} of source node {tensor.node} "
                f"which has {len(producer.outputs)} outputs",
                op=node_def.op,
                node=node_def.name,
            )

    def _finish(self, own_name: str, node_def: NodeDef, plan: _OpPlan, inputs: list[Tensor], controls: list[Node]) -> Node:
        """Complete, check and add a node with known inputs."""
        graph, registration = self.graph, plan.registration
        if registration.is_opaque:
            types: _Types = tuple([tensor.dtype for tensor in inputs]), self.opaque.get(own_name, ())
        else:
            completed = plan.completed.get(id(node_def.attr))
            if completed is None:
                node_def, types = self._completed(node_def, plan)
            else:
                _, attr, types = completed
                if attr is not node_def.attr:
                    node_def = msgspec.structs.replace(node_def, attr=attr)
                if len(types[0]) != len(inputs):
                    validate_node_def(node_def, plan.op_def)
            if len(types[1]) > FEW_OUTPUTS:
                charge_outputs(own_name, len(types[1]))
        node = graph.builder.insert(node_def, registration, inputs, controls, types[0], types[1], self.source, infer=self._infer)
        self.made[own_name] = node
        if self.waiting:
            self._wake(own_name)
        return node

    def _infer(self, node: Node) -> None:
        """Set the shapes of a new node, and compare them with those in the file."""
        if not self.options.validate_shape:
            forget_shapes(node)
            return
        refiner = self.graph.refiner
        refiner.add_node(node)
        if self.refiner is not None:
            self.refiner.add_node(node)
        if "_output_shapes" in node.node_def.attr:
            check_output_shapes(refiner, self.refiner, node)

    def _completed(self, node_def: NodeDef, plan: _OpPlan) -> tuple[NodeDef, _Types]:
        """The node with defaults of attrs, and its types. Shared attr dicts are checked once."""
        attrs = node_def.attr
        node_def = add_default_attrs(node_def, plan.op_def)
        validate_node_def(node_def, plan.op_def)
        types = in_out_types_for_node(node_def, plan.op_def)
        plan.completed[id(attrs)] = attrs, node_def.attr, types
        return node_def, types

    # ---- after all nodes -----------------------------------------------------------------------------------------------

    def _close_loops(self) -> None:
        if not self.back_edges:
            return
        graph = self.graph
        graph.edge_store.sync()
        for node, slot, (name, index) in self.back_edges:
            producer = self.made[name]
            self._require_output(node.node_def, producer, TensorId(producer.name, index))
            tensor = producer.outputs[index]
            problem = type_misfit(node.name, slot, tensor, node.input_types[slot])
            if problem:
                raise InvalidArgumentError(problem, op=node.op, node=node.name, input=tensor.name)
            node.inputs = [*node.inputs[:slot], tensor, *node.inputs[slot + 1 :]]
            graph.edge_store.add(tensor, node, slot)
        heads = list(dict.fromkeys([node for node, _, _ in self.back_edges]))
        for node in heads:
            if node.error is not None:
                infer_downstream(graph, node, include_start=True)
        if self.options.validate_shape:
            close_loops(graph, heads)

    def _fill(self, results: ImportResults) -> None:
        for tensor in self.wanted:
            results.return_tensors.append(self._returned(tensor))
        for name in self.options.return_nodes:
            node = self.made.get(name)
            if node is None:
                raise InvalidArgumentError(f"Requested return node '{name}' not found in graph def", node=name)
            results.return_nodes.append(node)
        for key in self.rewriter.input_map:
            if key in self.rewriter.used_keys:
                continue
            count = self._outputs_of(key.node)
            if count is None or key.index >= count:
                results.missing_unused_input_map_keys.append(key)

    def _outputs_of(self, name: str) -> int | None:
        if name in self.skipped:
            return self.skipped[name]
        return len(self.made[name].outputs) if name in self.made else None

    def _returned(self, tensor: TensorId) -> Tensor:
        target: Any = self.rewriter.input_map.get(tensor)
        if target is not None:
            node = find_existing(self.graph, target.node)
            assert node is not None
            return node.outputs[target.index] if 0 <= target.index < len(node.outputs) else Tensor(node, target.index)
        count = self._outputs_of(tensor.node)
        if count is None:
            raise InvalidArgumentError(f"Requested return tensor '{tensor}' not found in graph def", node=tensor.node)
        if tensor.index >= count:
            raise InvalidArgumentError(
                f"Invalid return output {tensor.index} of node '{tensor.node}', which has {count} output(s)", node=tensor.node
            )
        node = self.made[tensor.node]
        return node.outputs[tensor.index] if tensor.index != CONTROL else Tensor(node, CONTROL)


def _path_text(names: list[str]) -> str:
    """The names along a cycle, abbreviated for a long one."""
    shown = names if len(names) <= _MOST_NAMES else [*names[: _MOST_NAMES // 2], "...", *names[-_MOST_NAMES // 2 :]]
    return " -> ".join(shown)
