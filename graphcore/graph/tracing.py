"""Tracing: the body of a function under construction, with captures of outer tensors as arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from graphcore.attrs import AttrValue
from graphcore.dtypes import DType, resource
from graphcore.errors import InvalidArgumentError
from graphcore.graph.graph import Graph, surrounding
from graphcore.graph.model.node import Node, Tensor
from graphcore.inference import HandleData, handle_to_shape
from graphcore.plumbing import ARG, DECLARED_SHAPES, USER_NAME
from graphcore.registry import OpRegistry
from graphcore.shapes import Shape


class FunctionGraph(Graph):
    """The body of a function of the graph around it; see `within`.

    Attributes:
        label: the function's name, for names made from it.
        drops_unneeded: True if effects that no result needs do not run: in branches and loops outside of other functions.
        starts: the initial values of loop variables, outside, by their arguments.
        outside: the nodes of the outermost graph that gradients within go through, in words.
        caller: the name of the node that runs it, in the graph around it; "" if there is none yet.
        captures: the captured tensors of the surrounding graph, with their arguments.
        captured_values: reads of captured references.
        references: the reads of the reference variables that it changes, with handles of these; all of the outermost graph.
        declares_shapes: True if `set_shape` gave shapes in it that may not hold for other inputs.
        awaited: nodes of the surrounding graph that the node which calls the function has to wait for; None if it waits for none.
    """

    def __init__(self, registry: OpRegistry | None = None) -> None:
        super().__init__(registry)
        self.label = ""
        self.caller = ""
        self.starts: dict[Tensor, Tensor] = {}
        self.outside: dict[str, str] = {}
        self.drops_unneeded = False
        self.declares_shapes = False
        self.captures: dict[Tensor, Tensor] = {}
        self.captured_values: dict[Tensor, Tensor] = {}
        self.references: dict[Tensor, Tensor] = {}
        self.awaited: dict[Node, None] | None = None

    @classmethod
    def within(cls, outer: Graph, label: str, place: str = "", caller: str = "") -> FunctionGraph:
        """An empty body of a function of `outer`; both share one function library."""
        body = cls(outer.registry)
        body.library = outer.library
        body.outer = outer
        body.lock = body.edge_store.lock = outer.lock
        body.seed = outer.seed
        body.scopes.container = outer.scopes.container
        body.label = label
        body.place = place or f"function '{label}'"
        body.caller = caller
        body.drops_unneeded = bool(caller) and (not isinstance(outer, FunctionGraph) or outer.drops_unneeded)
        return body

    def argument(
        self, name: str, dtype: DType, shape: Shape, index: int | None = None, handle: HandleData | None = None, label: str = ""
    ) -> Tensor:
        """Add an argument; by default its `index` counts from 0 in order of creation.

        Args:
            handle: the known handle data of a handle.
            label: the name that the user's code has for it, "" if there is none.
        """
        if index is None:
            index = sum(node.op == "_Arg" for node in self.op_nodes())
        attrs: dict[str, AttrValue] = {"T": dtype.base, "index": index, "_output_shapes": (shape,)}
        if label:
            attrs[USER_NAME] = label.encode("utf-8", "replace")
        attrs |= handle_attrs(handle)
        with self.name_scope(None), self.control_dependencies(None):
            return self.apply_op("_Arg", (), attrs, name).outputs[0]

    def as_graph_element(self, obj: object) -> Node | Tensor:
        """See `Graph.as_graph_element`; a tensor of a surrounding graph becomes an argument."""
        tensor = obj.as_graph_element() if hasattr(obj, "as_graph_element") and not isinstance(obj, Graph) else obj
        if isinstance(tensor, Tensor) and tensor.graph is not self and tensor.graph in surrounding(self):
            return self.capture(tensor)
        return super().as_graph_element(obj)

    def capture(self, tensor: Tensor) -> Tensor:
        """The argument for a tensor of a surrounding graph.

        Raises:
            InvalidArgumentError: it is a reference, or no longer in its graph.
        """
        earlier = self.captures.get(tensor)
        if earlier is not None:
            return earlier
        assert self.outer is not None
        source = self.outer.as_graph_element(tensor)
        assert isinstance(source, Tensor)
        if source is not tensor:
            return self.capture(source)
        if tensor.dtype.is_ref and self.awaited is not None and tensor.node.registration.traits.role != "variable":
            value = self.captured_values.get(tensor)  # the value after a change, such as that of an Assign outside
            if value is None:
                value = self.captured_values[tensor] = self.outer.apply_op("Identity", [tensor], None, None).outputs[0]
            return self.capture(value)
        if tensor.dtype.is_ref:
            raise InvalidArgumentError.at(
                tensor.node,
                f"'{tensor.name}' is a reference to a variable, which a function cannot take: read it before, and assign to it after the "
                "function has given a value",
            )
        handle = (tensor.node.handle_data or {}).get(tensor.index)
        argument = self.captures[tensor] = self.argument(_plain(tensor), tensor.dtype, tensor.shape, handle=handle)
        return argument

    def get_collection(self, name: str, scope: str | None = None) -> list[Any]:
        """See `Graph.get_collection`; those of the surrounding graphs are there, too."""
        around = [] if self.outer is None else self.outer.get_collection(name, scope)
        return [*around, *super().get_collection(name, scope)]

    def overridden_gradients(self) -> Mapping[str, str]:
        """See `Graph.overridden_gradients`. What holds around a branch or loop holds in it, too; a function does not know its callers."""
        own = super().overridden_gradients()
        return {**self.outer.overridden_gradients(), **own} if self.caller and self.outer is not None else own

    def set_shape(self, tensor: Tensor, shape: object) -> None:
        """See `Graph.set_shape`. A shape that nothing else gives becomes part of the function, whose calls and copies infer it again."""
        was_unknown, node = tensor.shape.rank is None, tensor.node
        super().set_shape(tensor, shape)
        shape_after = tensor.shape
        if was_unknown and shape_after.rank is not None and node.op not in ARG:
            before = node.attr.get(DECLARED_SHAPES)
            shapes = list(before) if isinstance(before, tuple) else [Shape(None)] * len(node.outputs)
            shapes[tensor.index] = shape_after
            if not node.inputs or any(source.dtype.base is not resource for source in node.inputs):
                for body in (self, *[outer for outer in surrounding(self) if isinstance(outer, FunctionGraph)]):
                    body.declares_shapes = True
            node.node_def = msgspec.structs.replace(node.node_def, attr={**node.attr, DECLARED_SHAPES: tuple(shapes)})

    def note_outside(self, graph: Graph, nodes: Sequence[Node]) -> None:
        """Record that gradients within go through nodes of a graph around.

        If these change, the body has to be built again.
        """
        if graph.outer is None:
            descriptions = {node.name: described(node) for node in nodes}
            for body in (self, *[outer for outer in surrounding(self) if isinstance(outer, FunctionGraph)]):
                body.outside |= descriptions

    def name_outside(self) -> str:
        """The name scope, in the outermost graph, of what is made there on behalf of this body."""
        bodies = [self, *[graph for graph in surrounding(self) if isinstance(graph, FunctionGraph)]]
        return "".join([f"{body.caller}/" for body in reversed(bodies) if body.caller]) + self.scopes.name

    def wait_outside(self, node: Node) -> bool:
        """Let the node that calls the function wait for a node of a surrounding graph; False where it cannot."""
        if self.awaited is None or node.graph is self:
            return False
        if node.graph is self.outer:
            self.awaited[node] = None
            return True
        return self.outer is not None and self.outer.wait_outside(node)

    def number_arguments(self, arguments: Sequence[Tensor]) -> None:
        """Renumber the arguments in this order."""
        for index, tensor in enumerate(arguments):
            node = tensor.node
            node.node_def = msgspec.structs.replace(node.node_def, attr={**node.node_def.attr, "index": index})


def handle_attrs(handle: HandleData | None) -> dict[str, AttrValue]:
    """The attrs of an argument with the dtypes and shapes behind a handle, none if these are unknown."""
    types = [item.dtype for item in handle or () if item.dtype is not None]
    if not handle or len(types) < len(handle):
        return {}
    return {"_handle_dtypes": tuple(types), "_handle_shapes": tuple([handle_to_shape(item.shape) for item in handle])}


def described(node: Node) -> str:
    """Op, inputs and attrs of a node, in words."""
    inputs = ", ".join([tensor.name for tensor in node.inputs])
    return f"{node.op}({inputs}) {sorted(node.node_def.attr.items())}"


def _plain(tensor: Tensor) -> str:
    """The preferred name of an argument: that of the tensor's node, without its scopes."""
    name = tensor.node.name.rpartition("/")[2].lstrip("_") or "input"
    return name if tensor.index == 0 else f"{name}_{tensor.index}"
