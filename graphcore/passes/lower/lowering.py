"""Helpers for lowering one node: new nodes, calls of its functions, and replacements."""

from __future__ import annotations

from collections.abc import Sequence

from graphcore import dtypes
from graphcore.attrs import Attrs, Func
from graphcore.definitions import NodeDef
from graphcore.dtypes import DType
from graphcore.errors import GraphError, InvalidArgumentError
from graphcore.graph import Graph, Node, Tensor
from graphcore.graph.model.node import input_text
from graphcore.passes.functions.function_body import FunctionBody
from graphcore.passes.functions.inline import InlineFunctionBodyOptions, check_inlining, inline_checked
from graphcore.passes.functions.recursion import InlinableFunctions
from graphcore.passes.infra.alias_removal import is_kept
from graphcore.passes.infra.rewriting import Rewriting
from graphcore.plumbing import ARG, RETVAL

_OPTIONS = InlineFunctionBodyOptions(output_control_src="control_outputs")


class Lowering:
    """The lowering of one node.

    Args:
        rewriting: changes the graph.
        functions: instantiates its functions.
        node: the node.
        keep: keep a node of its name, with its outputs.
    """

    def __init__(self, rewriting: Rewriting, functions: InlinableFunctions, node: Node, *, keep: bool) -> None:
        self.rewriting = rewriting
        self.graph: Graph = rewriting.graph
        self.functions = functions
        self.node = node
        self.keep = keep
        self.calls: list[tuple[Node, FunctionBody]] = []

    def add(
        self,
        label: str,
        op: str,
        inputs: Sequence[Tensor],
        attrs: Attrs,
        outputs: Sequence[DType],
        controls: Sequence[Node] = (),
        device: str | None = None,
    ) -> Node:
        """A new node named after the lowered one, by default on its device."""
        name = self.graph.node_store.new_name(f"{self.node.name}/{label}")
        wanted = self.node.device if device is None else device
        texts = [input_text(tensor) for tensor in inputs] + [f"^{control.name}" for control in controls]
        node_def = NodeDef(name, op, tuple(texts), wanted, dict(attrs))
        types = tuple([tensor.dtype.base for tensor in inputs])
        return self.rewriting.insert(node_def, list(inputs), list(controls), types, tuple(outputs), self.node)

    def add_like(self, label: str, op: str, inputs: Sequence[Tensor], attrs: Attrs, outputs: Sequence[DType], like: Node) -> Node:
        """A new node with the assigned and requested device of `like`, and colocated like it."""
        node = self.add(label, op, inputs, {**attrs, **colocation_of(like)}, outputs, device=like.device)
        node.assigned_device = like.assigned_device
        return node

    def identity(self, label: str, tensor: Tensor, controls: Sequence[Node] = ()) -> Node:
        """An Identity named after the lowered node."""
        return self.add(label, "Identity", [tensor], {"T": tensor.dtype.base}, [tensor.dtype.base], controls)

    def as_bool(self, tensor: Tensor) -> Tensor:
        """Convert `tensor` to a condition."""
        if tensor.dtype.base is dtypes.bool_:
            return tensor
        return self.add("to_bool", "ToBool", [tensor], {"T": tensor.dtype.base}, [dtypes.bool_]).outputs[0]

    def func(self, name: str) -> Func:
        """The function in attr `name` of the lowered node.

        Raises:
            InvalidArgumentError: there is none.
        """
        function = self.node.node_def.attr.get(name)
        if not isinstance(function, Func):
            raise InvalidArgumentError(
                f"Node '{self.node.name}' ({self.node.op}) names no function in attr '{name}'",
                op=self.node.op,
                node=self.node.name,
                attr=name,
            )
        return function

    def call(self, label: str, func: Func, inputs: Sequence[Tensor], controls: Sequence[Node]) -> Node:
        """A call of `func`, to be inlined by `finish`."""
        public = {key: value for key, value in func.attr.items() if not key.startswith("_")}
        call = self.add(label, func.name, inputs, public, self.functions.functions.body_of(func.name, public).ret_types, controls)
        body = self._inlined(call, func, public)
        if body is not None:
            self.calls.append((call, body))
        return call

    def _inlined(self, caller: Node, func: Func, attrs: Attrs) -> FunctionBody | None:
        try:
            body = self.functions.body_of(func.name, attrs)
            check_inlining(caller, body, _OPTIONS)
        except GraphError:
            return None
        return with_state_awaited(body)

    def has_state(self, func: Func) -> bool:
        """True iff running the function has side effects."""
        return self.graph.library.look_up_op_def(func.name).is_stateful

    def finish(self, outputs: list[Tensor], done: Node, *, awaits: bool) -> None:
        """Remove the lowered node.

        Args:
            outputs: the replacements for its consumers.
            done: the replacement of control inputs from it.
            awaits: consumers of outputs get them after `done`, for the side effects of the functions.
        """
        node, rewriting = self.node, self.rewriting
        if awaits:
            outputs = [self.identity("output", tensor, [done]).outputs[0] for tensor in outputs]
        rewriting.move_consumers(node, outputs, done)
        rewriting.remove(node)
        if self.keep:
            self._keep(outputs, done)
        for caller, body in self.calls:
            inline_checked(rewriting, self.functions.library, caller, body, _OPTIONS)

    def _keep(self, outputs: list[Tensor], done: Node) -> None:
        types = tuple([tensor.dtype.base for tensor in outputs])
        if outputs:
            self.rewriting.add(self.node.name, "IdentityN", outputs, [done], {"T": types}, self.node, self.node.device)
        else:
            self.rewriting.add(self.node.name, "NoOp", [], [done], {}, self.node, self.node.device)


def colocation_of(node: Node) -> Attrs:
    """The colocation attr of `node`, {} if it has none."""
    groups = node.node_def.attr.get("_class")
    return {} if groups is None else {"_class": groups}


def with_state_awaited(body: FunctionBody) -> FunctionBody:
    """A function whose stateful nodes have all run before its control outputs."""
    waiting = [node for node in body.graph.op_nodes() if is_kept(node) and node.op not in ARG and node.op not in RETVAL]
    waiting = [node for node in waiting if node.op_def.is_stateful and node not in body.control_ret_nodes]
    if not waiting:
        return body
    copy = FunctionBody.__new__(FunctionBody)
    for name in FunctionBody.__slots__:
        setattr(copy, name, getattr(body, name))
    copy.control_ret_nodes = [*body.control_ret_nodes, *waiting]
    return copy
