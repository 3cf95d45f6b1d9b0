"""The gradient of a function body: forward nodes, then a SymbolicGradient for each op, backwards."""

from __future__ import annotations

from collections import deque
from typing import Final

from graphcore import dtypes
from graphcore.attrs import AttrValue, Func
from graphcore.definitions import NodeDef
from graphcore.dtypes import DType
from graphcore.errors import UnimplementedError
from graphcore.functions.library import FUNC_ATTR, GRADIENT_OP
from graphcore.graph import Graph, Node, Tensor, copy_sharing_library
from graphcore.graph.model.node import NO_CONTROLS, input_text
from graphcore.graph.model.search import reachable
from graphcore.passes.functions.function_body import FunctionBody
from graphcore.passes.gradients.bodies.template import gradient_template
from graphcore.passes.gradients.overrides import gradient_function, op_of_gradient
from graphcore.passes.infra.alias_removal import original_leaves
from graphcore.registry import op_registry

LABEL: Final = "Func"
FULL: Final = "_full_gradient"
"""The attr of an op whose gradient is to be the one that leaves nothing out."""


def symbolic_gradient(body: FunctionBody) -> FunctionBody:
    """The gradient of a function.

    If (y1, ..., yM) = f(x1, ..., xN), the gradient is (dx1, ..., dxN) = g(x1, ..., xN, dy1, ..., dyM).

    Args:
        body: the function; unchanged.

    Returns:
        The body of g. Its SymbolicGradient nodes stand for the gradients of single ops and calls; expansion replaces them by bodies.

    Raises:
        InvalidArgumentError: the body has a cycle.
    """
    return _Helper(body).compute()


class _Helper:
    def __init__(self, body: FunctionBody) -> None:
        self.forward = body
        self.graph, copies = copy_sharing_library(body.graph)
        self.wanted = set(original_leaves(self.graph))
        self.args = [copies[node] for node in body.arg_nodes]
        self.rets = [copies[node] for node in body.ret_nodes]
        self.arrived: dict[Tensor, list[Tensor]] = {}
        self.pending: dict[Node, int] = {}
        # In the body of a gradient these are scopes of inlined bodies. A node with such a name would be inlined into the same scope.
        self.scopes = {"/".join(node.name.split("/")[:2]) for node in self.graph.op_nodes() if node.name.startswith(f"{LABEL}/")}
        self.ready: deque[Node] = deque()

    def compute(self) -> FunctionBody:
        self.find_paths()
        arg_types = list(self.forward.arg_types)
        seeds: list[Tensor] = []
        for ret in self.rets:
            dtype = ret.inputs[0].dtype.base
            seeds.append(self.add("_Arg", [], {"T": dtype, "index": len(arg_types)}, (dtype,)).outputs[0])
            arg_types.append(dtype)
        for ret, seed in zip(self.rets, seeds, strict=True):
            self.arrive(ret.inputs[0], seed)
        while self.ready:
            self.differentiate(self.ready.popleft())
        gradients = [self.total(node.outputs[0]) for node in self.args]
        for ret in self.rets:
            self.graph.remove_node(ret)
        for index, gradient in enumerate(gradients):
            self.wanted.add(self.add("_Retval", [gradient], {"T": gradient.dtype.base, "index": index}, ()))
        edges = self.graph.edge_store  # the gradient body has neither the function's returns nor gradients that no argument needs
        edges.detached.update(leaf.name for leaf in original_leaves(self.graph) if leaf not in self.wanted)
        return FunctionBody(None, arg_types, [gradient.dtype.base for gradient in gradients], self.graph)

    def find_paths(self) -> None:
        """Count, for each node between an argument and a return, the expected gradients."""
        wanted = _reaching(self.rets)
        seen = set(self.args)
        waiting = deque(self.args)
        while waiting:
            node = waiting.popleft()
            self.arrived.update({tensor: [] for tensor in node.outputs})
            count = 0
            for consumer, slot in node.consumers():
                if slot < 0 or consumer not in wanted:
                    continue
                count += 1
                if consumer not in seen:
                    seen.add(consumer)
                    waiting.append(consumer)
            self.pending[node] = count

    def arrive(self, tensor: Tensor, gradient: Tensor | None) -> None:
        """Record a gradient of `tensor`; None from an op that passes none on."""
        if tensor not in self.arrived:
            return
        if gradient is not None:
            self.arrived[tensor].append(gradient)
        self.pending[tensor.node] -= 1
        if not self.pending[tensor.node]:
            self.ready.append(tensor.node)

    def differentiate(self, node: Node) -> None:
        """Propagate the gradients of `node` to its inputs after all have arrived."""
        if not node.inputs:
            return
        if gradient_function(node) is not None:
            raise UnimplementedError.at(
                node,
                f"The gradient of '{node.name}' is a Python function, which the gradients of functions that call themselves do not call",
            )
        op = op_of_gradient(node)
        if _has_no_gradient(op):
            for tensor in node.inputs:
                self.arrive(tensor, None)
            return
        attrs_of_op = dict(node.node_def.attr)
        if self.needs_full(node):
            attrs_of_op[FULL] = True
        dys = [self.total(tensor) for tensor in node.outputs]
        inputs = [*node.inputs, *dys]
        types = tuple([_gradient_type(tensor.dtype) for tensor in node.inputs])
        attrs: dict[str, AttrValue] = {
            "Tin": tuple([tensor.dtype.base for tensor in inputs]),
            "Tout": types,
            FUNC_ATTR: Func(op, attrs_of_op),
        }
        made = self.add(GRADIENT_OP, inputs, attrs, types)
        for tensor, gradient in zip(node.inputs, made.outputs, strict=True):
            self.arrive(tensor, gradient)

    def needs_full(self, node: Node) -> bool:
        """True iff the op's partial gradient is not enough here, and a complete variant exists."""
        if node.registration.full_gradient is None:
            return False
        template = gradient_template(node.op, node.node_def.attr)
        assert template is not None
        lost = any(self.arrived[node.outputs[index]] for index in template.ignored)
        return lost or any(node.inputs[slot] in self.arrived for slot in template.zeros)

    def total(self, tensor: Tensor) -> Tensor:
        """The sum of the gradients of `tensor`, zeros if there are none."""
        parts = self.arrived[tensor]
        dtype = tensor.dtype.base
        if not parts or dtype is dtypes.bool_:
            return self.zeros_like(tensor)
        if len(parts) == 1:
            return parts[0]
        summed = parts[0].dtype.base
        return self.add("AddN", parts, {"N": len(parts), "T": summed}, (summed,)).outputs[0]

    def zeros_like(self, tensor: Tensor) -> Tensor:
        dtype = tensor.dtype.base
        if dtype is dtypes.resource:
            dtype = dtypes.float32
            tensor = self.add("ReadVariableOp", [tensor], {"dtype": dtype}, (dtype,), "Read").outputs[0]
        return self.add("ZerosLike", [tensor], {"T": dtype}, (dtype,)).outputs[0]

    def add(self, op: str, inputs: list[Tensor], attrs: dict[str, AttrValue], outputs: tuple[DType, ...], label: str = LABEL) -> Node:
        graph: Graph = self.graph
        name = graph.node_store.new_name(label)
        while name in self.scopes:
            name = graph.node_store.new_name(label)
        node_def = NodeDef(name, op, tuple([input_text(tensor) for tensor in inputs]), "", attrs)
        types = tuple([tensor.dtype.base for tensor in inputs])
        return graph.builder.insert(node_def, graph.library.look_up(op), list(inputs), NO_CONTROLS, types, outputs, None)


def _reaching(rets: list[Node]) -> set[Node]:
    """The nodes that a return depends on."""
    return reachable(rets, lambda node: [tensor.node for tensor in node.inputs])


def _has_no_gradient(op: str) -> bool:
    """True iff the op is registered as not differentiable; an unregistered one may be a function."""
    return op in op_registry and op_registry.look_up(op).gradient_kind == "stop"


def _gradient_type(dtype: DType) -> DType:
    return dtypes.float32 if dtype.base is dtypes.resource else dtype.base
