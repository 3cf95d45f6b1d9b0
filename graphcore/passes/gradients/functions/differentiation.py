"""Gradients of ops with functions: each function is differentiated as a graph and split in two parts.

The backward part gets values of the forward part instead of recomputing them. So the differentiated node gets an augmented copy:
the same node with functions that return these values too. Attr `_forward_of` of the copy names the node that it replaces: a run that needs
both runs the copy only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Protocol

import msgspec

from graphcore.attrs import Attrs, AttrValue, Func, attr_text
from graphcore.definitions import FunctionDef, NodeDef
from graphcore.dtypes import DType
from graphcore.errors import NotFoundError, UnimplementedError
from graphcore.graph import FunctionGraph, GradientRecord, Graph, Node, Tensor, copy_graph, topological_order
from graphcore.graph.model.node import NO_CONTROLS, input_text, producers_of
from graphcore.graph.model.search import reachable
from graphcore.graph.shapes.propagation import infer_downstream
from graphcore.graph.tracing import handle_attrs
from graphcore.passes.functions.function_body import FunctionBody, function_def_to_body
from graphcore.passes.gradients.functions.reaching import FLOWING, Reaching
from graphcore.passes.infra.known_shapes import same_shape
from graphcore.plumbing import ARG, RETVAL
from graphcore.shapes import Shape
from graphcore.source import caller_location

FORWARD_OF: Final = "_forward_of"
"""The attr of an augmented node: the node it computes everything for, and the functions that this node had then."""


Place = tuple[str, int]
"""A node's name and the index of one of its outputs."""


Handle = tuple[tuple[str, AttrValue], ...]
"""The attrs of an argument that tell the dtypes and shapes behind a handle; empty for other arguments."""


def handles_of(tensors: Iterable[Tensor]) -> tuple[Handle, ...]:
    """The dtypes and shapes behind tensors that are handles of variables and queues."""
    return tuple([tuple(handle_attrs((tensor.node.handle_data or {}).get(tensor.index)).items()) for tensor in tensors])


class Differentiation(Protocol):
    """The backward pass of the graph with the node."""

    graph: Graph
    simplify: bool
    keeps_all: bool
    """True within the functions of a node with side effects; see `keeping`."""
    arrived: dict[Tensor, list[Tensor]]
    stop: frozenset[Tensor]

    def output_gradient(self, node: Node, index: int, scope: str) -> Tensor:
        """The gradient of an output, zeros if there is none."""

    def forward_value(self, tensor: Tensor) -> Tensor:
        """A tensor of the forward pass, as seen from the backward pass."""

    def control_inputs(self, node: Node) -> list[Node]:
        """The control input for nodes without inputs, so that they run with the forward node."""

    def within(
        self, graph: Graph, ys: Sequence[Tensor], xs: Sequence[Tensor], grad_ys: Sequence[Tensor], *, keeps_all: bool = False
    ) -> list[Tensor | None]:
        """The backward pass inside the body of a function, within this one."""


class DifferentiatedBody:
    """A function with its backward pass, in one graph.

    Args:
        outer: the graph with the node that runs the function.
        func: the function.
        shapes: the shapes of its arguments; None if they are unknown.
        handles: what `handles_of` gives for its arguments, as far as these are known.

    Attributes:
        args, rets: its arguments and returns.
        ret_names: the names of its returns.
        dys: for each return with a gradient, the argument for the gradient.
        gradients: for each wanted argument its gradient, None if no such return depends on it.
        forward_order: the forward nodes, producers first.
        backward: the backward nodes, producers first.
        augmented: the augmented nodes by the forward nodes that they replace.
    """

    def __init__(self, outer: Graph, func: Func, shapes: Sequence[Shape] | None, handles: Sequence[Handle] = ()) -> None:
        definition = outer.library.find(func.name)
        if definition is None:
            raise NotFoundError(f"Function {func.name} is not defined.", op=func.name)
        attrs = {key: value for key, value in func.attr.items() if not key.startswith("_")}
        self.fdef: FunctionDef = definition
        body: FunctionBody = function_def_to_body(definition, attrs, outer.library)
        self.graph = FunctionGraph.within(outer, func.name)
        copies = copy_graph(body.graph, self.graph)
        self.args = [copies[node].outputs[0] for node in body.arg_nodes]
        self.rets = [copies[node].inputs[0] for node in body.ret_nodes]
        self.ret_names = [node.name.removesuffix("_RetVal") for node in body.ret_nodes]
        self.control_rets = [copies[node] for node in body.control_ret_nodes]
        for tensor, shape in zip(self.args, [Shape(None)] * len(self.args) if shapes is None else shapes, strict=True):
            if shape.rank is not None:
                self.graph.set_shape(tensor, shape)
        for tensor, handle in zip(self.args, handles, strict=False):
            if handle:
                node = tensor.node
                node.node_def = msgspec.structs.replace(
                    node.node_def, attr={**node.attr, "_output_shapes": (tensor.shape,), **dict(handle)}
                )
                infer_downstream(self.graph, node, include_start=True)
        self.forward = {node for node in self.graph.op_nodes() if node.op not in ARG and node.op not in RETVAL}
        self.dys: dict[int, Tensor] = {}
        self.gradients: dict[int, Tensor | None] = {}
        self.backward: list[Node] = []
        self.augmented: dict[Node, Node] = {}
        self._originals: dict[Node, Node] = {}
        self.forward_order = [node for node in topological_order(self.graph) if node in self.forward]

    def copy_forward(self, target: FunctionGraph) -> Copier:
        """Copy arguments and forward nodes into another body, augmented nodes instead of their originals."""
        copier = Copier(target, self.augmented)
        for index, arg in enumerate(self.args):
            handle = (arg.node.handle_data or {}).get(0)
            copier.tensors[arg] = target.argument(arg.node.name, arg.dtype, arg.shape, index, handle)
        copier.copy(self.forward_order)
        return copier

    def place(self, tensor: Tensor) -> Place:
        """The place of a forward value, which is the same in all bodies of the function."""
        if len(self._originals) != len(self.augmented):
            self._originals = {augmented: node for node, augmented in self.augmented.items()}
        return self._originals.get(tensor.node, tensor.node).name, tensor.index

    def reaching(self) -> list[set[int]]:
        """For each return the arguments that it depends on along differentiable edges."""
        reaching = Reaching(self.graph.library)
        return [reaching.arguments(ret, self.args) for ret in self.rets]

    def differentiate(self, back: Differentiation, rets: Sequence[int], wanted: Sequence[int], *, keeps_all: bool = False) -> None:
        """Build the backward pass from the returns `rets` to the arguments `wanted`.

        With `keeps_all`, augmented nodes return all values; see `keeping`.

        Raises:
            UnimplementedError: a registered gradient takes a tensor from outside of the function.
        """
        graph = self.graph
        before = set(graph.op_nodes())
        for number in rets:
            ret = self.rets[number]
            self.dys[number] = _argument(graph, f"dy_{number}", ret.dtype.base)
            graph.set_shape(self.dys[number], ret.shape)
        before |= {tensor.node for tensor in self.dys.values()}
        gradients = back.within(
            graph, [self.rets[i] for i in rets], [self.args[i] for i in wanted], list(self.dys.values()), keeps_all=keeps_all
        )
        self._refuse_captures()
        self.gradients = dict(zip(wanted, gradients, strict=True))
        order = topological_order(graph)
        made = [node for node in order if node not in before]
        self.forward |= self._augmented_nodes(made)
        self.forward_order = [node for node in order if node in self.forward]
        self.backward = [node for node in made if node not in self.forward]

    def _refuse_captures(self) -> None:
        for taken, argument in self.graph.captures.items():
            user = next((consumer for consumer, _ in argument.node.consumers()), argument.node)
            record = self.graph.gradient_records.get(user.name)
            node = None if record is None else self.graph.find(record.forward)
            asked = user if node is None else node
            raise UnimplementedError.at(
                asked,
                f"The gradient of '{asked.name}' in function '{self.fdef.name}' takes '{taken.name}' from outside of it: a registered gradient may "
                "take the inputs and outputs of its node, and what it makes of them; gc.custom_gradient takes other tensors, too",
            )

    def _augmented_nodes(self, made: Sequence[Node]) -> set[Node]:
        """The forward nodes made by the backward pass: augmented ones, and their inputs."""
        augmented: set[Node] = set()
        among = set(made)
        for node in reversed(made):
            is_augmented = FORWARD_OF in node.node_def.attr and self._runs_forward(node, among)
            if is_augmented:
                self._note_augmented(node)
            if is_augmented or node in augmented:
                augmented.add(node)
                augmented |= {tensor.node for tensor in node.inputs if tensor.node in among}
        return augmented

    def _note_augmented(self, augmented: Node) -> None:
        node = find_original(augmented)
        if node is not None and node in self.forward:
            self.augmented[node] = augmented

    def _runs_forward(self, node: Node, made: set[Node]) -> bool:
        """True iff a node does not depend on the incoming gradients."""
        seeds = {tensor.node for tensor in self.dys.values()}
        pending, seen = [node], {node}
        while pending:
            for tensor in pending.pop().inputs:
                if tensor.node in seeds:
                    return False
                if tensor.node in made and tensor.node not in seen:
                    seen.add(tensor.node)
                    pending.append(tensor.node)
        return True

    def needed_backward(self, results: Iterable[Tensor]) -> list[Node]:
        """The backward nodes that `results` depend on, producers first."""
        backward = set(self.backward)
        starts = backward.intersection([tensor.node for tensor in results])
        needed = reachable(starts, lambda node: backward.intersection(producers_of(node)))
        return [node for node in self.backward if node in needed]

    def taken_from_forward(self, nodes: Sequence[Node], results: Iterable[Tensor]) -> list[Tensor]:
        """The arguments and forward values that `nodes` and `results` take, without constants."""
        own = set(nodes) | {tensor.node for tensor in self.dys.values()}
        taken = [tensor for node in nodes for tensor in node.inputs] + list(results)
        return list(dict.fromkeys([tensor for tensor in taken if tensor.node not in own and tensor.node.op != "Const"]))


def arrived_outputs(back: Differentiation, node: Node) -> list[int]:
    """The outputs of a node with gradients."""
    return [
        number
        for number, tensor in enumerate(node.outputs)
        if tensor in back.arrived and tensor not in back.stop and tensor.dtype.base in FLOWING
    ]


class Copier:
    """Copies nodes of one graph into another.

    Args:
        target: the other graph.
        augmented: augmented nodes by their originals; they are copied under the names of these.
    """

    def __init__(self, target: FunctionGraph, augmented: Mapping[Node, Node] | None = None) -> None:
        self.target = target
        self.augmented = dict(augmented or {})
        self.tensors: dict[Tensor, Tensor] = {}
        self.nodes: dict[Node, Node] = {}

    def copy(self, nodes: Iterable[Node]) -> None:
        """Copy nodes, producers first, without control inputs from outside."""
        for node in nodes:
            self._copy(node)

    def tensor(self, tensor: Tensor) -> Tensor:
        """The counterpart of a tensor; a constant from outside is copied."""
        if tensor not in self.tensors:
            assert tensor.node.op == "Const", f"{tensor} is neither handed over nor copied"
            self._copy(tensor.node)
        return self.tensors[tensor]

    def _copy(self, node: Node) -> None:
        if node in self.nodes:
            return
        augmented = self.augmented.get(node)
        if augmented is not None:
            self._copy_augmented(node, augmented)
            return
        self._insert(node, node.name, self._attrs(node, node))

    def _copy_augmented(self, node: Node, augmented: Node) -> None:
        for tensor in augmented.inputs:  # inputs that are not copied yet were made together with the augmented node
            if tensor not in self.tensors:
                self._copy_with_inputs(tensor.node)
        self._insert(augmented, node.name, self._attrs(node, augmented))
        self.nodes[node] = self.nodes[augmented]
        self.tensors.update(zip(node.outputs, self.nodes[augmented].outputs, strict=False))

    def _attrs(self, node: Node, copied: Node) -> Attrs:
        """The attrs of the copy of `node`, which is `copied` or an augmented node of it.

        If the body already had `node` as an augmented node, the copy is one of its original's copy.

        Raises:
            UnimplementedError: it would return other values than that copy, so that both of them would run their side effects.
        """
        attrs = {name: value for name, value in copied.node_def.attr.items() if name != FORWARD_OF}
        if FORWARD_OF not in node.node_def.attr:
            return attrs
        original = find_original(node)
        augmented = None if original is None else self.augmented.get(original)
        if original is None or augmented is None:
            return {**attrs, FORWARD_OF: node.node_def.attr[FORWARD_OF]}
        if functions_of(augmented) == functions_of(node):  # both return the same values
            return {**attrs, FORWARD_OF: forward_of(original, functions_of(augmented))}
        if node.op_def.is_stateful:
            raise UnimplementedError.at(
                original,
                f"Two gradients need different values of '{original.name}' (op {original.op}), whose side effects a run would repeat",
            )
        return attrs

    def _copy_with_inputs(self, node: Node) -> None:
        for tensor in node.inputs:
            if tensor not in self.tensors:
                self._copy_with_inputs(tensor.node)
        self._copy(node)

    def _insert(self, node: Node, name: str, attrs: Attrs) -> None:
        inputs = [self.tensor(tensor) for tensor in node.inputs]
        controls = [self.nodes[control] for control in node.control_inputs if control in self.nodes]
        texts = [input_text(tensor) for tensor in inputs] + [f"^{control.name}" for control in controls]
        graph = self.target
        node_def = msgspec.structs.replace(node.node_def, name=graph.names.unique(name), input=tuple(texts), attr=attrs)
        made = graph.builder.insert(
            node_def, node.registration, inputs, controls or NO_CONTROLS, node.input_types, node.output_types, node.source
        )
        self.nodes[node] = made
        self.tensors.update(zip(node.outputs, made.outputs, strict=True))


def new_node(
    graph: Graph, forward: Node, name: str, op: str, inputs: Sequence[Tensor], outputs: Sequence[DType], attrs: dict[str, AttrValue]
) -> Node:
    """A node for the gradient of `forward`, with a record of it.

    Args:
        name: its full, unused name.
    """
    registration = graph.library.look_up(op)
    controls = forward.control_inputs if FORWARD_OF in attrs else NO_CONTROLS
    texts = [input_text(tensor) for tensor in inputs] + [f"^{control.name}" for control in controls]
    node_def = NodeDef(name, op, tuple(texts), forward.device, attrs)
    types = tuple([tensor.dtype.base for tensor in inputs])
    made = graph.builder.insert(node_def, registration, list(inputs), controls, types, tuple(outputs), caller_location())
    graph.gradient_records[name] = GradientRecord(forward.name, None, {}, name.rpartition("/")[2])
    return made


def forward_of(node: Node, functions: Sequence[Func]) -> tuple[bytes, ...]:
    """The value of attr `_forward_of`: the node, and its functions when the augmented node was made."""
    return tuple([text.encode() for text in (node.name, *[function.name for function in functions])])


def find_original(augmented: Node) -> Node | None:
    """The node that an augmented node was made for; None if it is gone."""
    texts = augmented.node_def.attr[FORWARD_OF]
    name = texts[0] if isinstance(texts, tuple) and texts else None
    return augmented.graph.find(attr_text(name))


def functions_of(node: Node) -> list[Func]:
    """The functions that a node runs, in the order of its attrs."""
    if node.registration.is_function:
        return [Func(node.op)]
    return [
        item
        for _, value in sorted(node.node_def.attr.items())
        for item in (value if isinstance(value, tuple) else (value,))
        if isinstance(item, Func)
    ]


def zeros_in(graph: FunctionGraph, like: Tensor, name: str) -> Tensor:
    """Zeros of the shape of a tensor of the same graph."""
    return graph.apply_op("ZerosLike", [like], None, name).outputs[0]


def add_returns(graph: FunctionGraph, results: Sequence[Tensor], names: Sequence[str] | None = None) -> None:
    """Add returns to a body, under these names if they are free."""
    used: dict[str, int] = {}
    with graph.name_scope(None):
        for index, tensor in enumerate(results):
            name = "output" if names is None else names[index]
            count = used[name] = used.get(name, -1) + 1
            graph.apply_op("_Retval", [tensor], {"index": index}, f"{name}_{count}_RetVal" if count else f"{name}_RetVal")


def is_argument(tensor: Tensor) -> bool:
    """True iff a tensor is an argument of its function."""
    return tensor.node.op in ARG


def _argument(graph: FunctionGraph, name: str, dtype: DType) -> Tensor:
    return graph.argument(name, dtype, Shape(None))


def keep_shape(graph: Graph, gradient: Tensor, like: Tensor) -> Tensor:
    """The `gradient`, with its static shape set to that of its tensor."""
    if not same_shape(gradient, like):
        graph.set_shape_like(gradient, like)
    return gradient
