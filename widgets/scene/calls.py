"""The bodies that a function call opens into, with the types, shapes and devices of that call."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

import msgspec

from graphcore.attrs import AttrValue, Func
from graphcore.device_spec import merge_unset_dev_names
from graphcore.difference.marks import shown_difference
from graphcore.errors import GraphError, InvalidArgumentError
from graphcore.frontends.record import ForeignBody, foreign_of
from graphcore.functions import canonicalize
from graphcore.functions.library import GRADIENT_OP
from graphcore.graph import Graph, Tensor, graph_from_nodes
from graphcore.graph.shapes.constant_values import inferred_value
from graphcore.graph.shapes.symbolic_refiner import refiner_within
from graphcore.inference import DimensionHandle, ShapeHandle
from graphcore.passes import FunctionBody, InstantiatedFunctions
from graphcore.passes.gradients.functions.symbolic_gradient import LABEL
from graphcore.plumbing import BRANCH, CALL, WHILE
from widgets.scene.shapes.unknowns import leave_unnumbered

if TYPE_CHECKING:
    from graphcore.definitions import NodeDef
    from graphcore.graph import Node

MAX_DEPTH: Final = 24
"""The deepest calls within calls that open; deeper ones are too hard to follow."""
_LABELS: Final = {"f": "f", "cond": "cond", "body": "body", "then_branch": "then", "else_branch": "else", "branches": "branch"}
"""The attrs that name functions, in the order in which their bodies are shown, and what the bodies are called."""
_KEY: Final = "_may_call_functions"
_PLAIN: Final = CALL | {GRADIENT_OP}


class Callee(msgspec.Struct, frozen=True):
    """A function called by a node.

    `label` distinguishes the callees of one node (`then`, `body`), "" if there is only one; for a `gradient` the function is the
    differentiated one.
    """

    label: str
    function: Func
    gradient: bool = False

    @property
    def key(self) -> str:
        """A key; callees with equal bodies have equal keys."""
        return ("gradient of " if self.gradient else "") + canonicalize(self.function.name, self.function.attr)

    @property
    def title(self) -> str:
        """The title for people."""
        return f"∇ {self.function.name}" if self.gradient else self.function.name


class CallBody:
    """A function instantiated for one call.

    Attributes:
        callee: the function with its attrs.
        body: the instantiated body, without the shapes and devices of the call.
        path: the prefix of its nodes' names, without the last slash: `call:` or `call:then`.
        nodes: its nodes, including those of arguments and returns.
        args, rets: the argument and return nodes by index.
        control_rets: the nodes that run before it returns.
        gradients: the names of nodes that are the backward part of a gradient.
    """

    __slots__ = ("args", "body", "callee", "control_rets", "gradients", "graph", "nodes", "path", "rets")

    body: FunctionBody | ForeignBody
    gradients: frozenset[str]

    def __init__(self, callee: Callee, path: str, body: FunctionBody | ForeignBody, graph: Graph) -> None:
        def found(node: Node | str) -> Node:
            made = graph.find(node if isinstance(node, str) else _below(path, node.name))
            assert made is not None
            return made

        self.callee = callee
        self.body = body
        self.path = path
        self.graph = graph
        leave_unnumbered(graph)
        self.nodes = graph.nodes
        if isinstance(body, ForeignBody):
            self.args, self.rets, self.control_rets = [found(name) for name in body.args], [found(name) for name in body.rets], []
            self.gradients = frozenset()
            return
        self.args = [found(node) for node in body.arg_nodes]
        self.rets = [found(node) for node in body.ret_nodes]
        self.control_rets = [found(node) for node in body.control_ret_nodes]
        self.gradients = _gradient_names(path, self.nodes, in_library=bool(body.fdef.name))


def calls_functions(node: Node) -> bool:
    """True iff the op of a node is a function, or calls functions named in attrs."""
    if node.registration.is_function:
        return True
    # This is evaluated for every node of a scope, so the look-up by op is cached on the OpDef.
    memory = node.op_def.__dict__
    may_call = memory.get(_KEY)
    if may_call is None:
        may_call = memory[_KEY] = any(attr.name in _LABELS and attr.type in {"func", "list(func)"} for attr in node.op_def.attr)
    return may_call and any(name in _LABELS and _is_func(value) for name, value in node.attr.items())


def callees(node: Node) -> list[Callee]:
    """The functions that a node calls."""
    return callees_of(node.node_def, is_function=node.registration.is_function)


def callees_of(node: NodeDef, *, is_function: bool) -> list[Callee]:
    """The functions called by a NodeDef; `is_function` means that its op is a function."""
    attrs = node.attr
    if is_function:
        return [Callee("", Func(node.op, dict(attrs)))]
    callees: list[Callee] = []
    for name, label in _LABELS.items():
        value = attrs.get(name)
        if isinstance(value, tuple):
            callees.extend(Callee(f"{label}{place}", item) for place, item in enumerate(value) if isinstance(item, Func))
        elif isinstance(value, Func):
            callees.append(Callee(label, value, node.op == GRADIENT_OP))
    return [msgspec.structs.replace(callees[0], label="")] if len(callees) == 1 else callees


def has_hub(node: Node) -> bool:
    """True for a branch or loop: it keeps a box between its inputs and its bodies."""
    return not node.registration.is_function and node.op not in _PLAIN and not (node.is_opaque and "f" in node.attr)


def is_loop(node: Node) -> bool:
    """True for a call that feeds its body's returns back as arguments."""
    return node.op in WHILE


def is_choice(node: Node) -> bool:
    """True for a call that returns the results of one of its bodies."""
    return node.op in BRANCH or (node.is_opaque and "then_branch" in node.attr)


def callee_arguments(node: Node) -> list[Tensor] | None:
    """The tensors given to the arguments of a node's callees, by index; None if unknown.

    For a loop, only loop invariants.
    """
    if is_loop(node):
        return node.outputs if len(node.outputs) == len(node.inputs) else None
    if is_choice(node):
        return node.inputs[1:]
    return None if has_hub(node) else node.inputs


def is_loop_invariant(node: Node, index: int, position: int) -> bool:
    """True iff a dimension of output `index` of a loop is loop-invariant: known, or one of the input."""
    dim = (node.output_handles[index].dims or ())[position]
    dims = node.inputs[index].node.output_handles[node.inputs[index].index].dims or ()
    return dim.value >= 0 or dim in dims


def _handle_inside(caller: Node | None, index: int, tensor: Tensor) -> ShapeHandle:
    """The handle of the caller's tensor, so that unknown dimensions inside and outside are the same.

    In a loop, only loop-invariant dimensions are shared.
    """
    handle = tensor.node.output_handles[tensor.index]
    if caller is None or handle.dims is None or not is_loop(caller):
        return handle
    return ShapeHandle(tuple([dim if is_loop_invariant(caller, index, i) else DimensionHandle() for i, dim in enumerate(handle.dims)]))


class Opener:
    """Opens calls within one body (or the graph itself).

    Args:
        functions: instantiates functions.
        around: the canonical names of the enclosing open functions, outermost first.
    """

    def __init__(self, functions: InstantiatedFunctions, around: tuple[str, ...] = ()) -> None:
        self.functions = functions
        self.around = around

    def refusal(self, node: Node) -> str:
        """The reason for which a call does not open; "" if it may."""
        if len(self.around) >= MAX_DEPTH:
            return f"{MAX_DEPTH} calls deep: open the function by itself"
        for callee in callees(node):
            if callee.key in self.around:
                return f"recursion: {callee.title} is open around"
            if not node.is_opaque and not self._is_known(callee):
                return f"{callee.function.name} is not defined here"
        return ""

    def inner(self, body: CallBody) -> Opener:
        """The opener for calls within `body`."""
        return Opener(self.functions, (*self.around, body.callee.key))

    def bodies(self, node: Node) -> list[CallBody]:
        """The bodies of a call.

        Raises:
            GraphError: one of them cannot be instantiated.
        """
        arguments = callee_arguments(node)
        made = []
        foreign = foreign_of(node.graph) if node.is_opaque else None
        for callee in callees(node):
            function = callee.function
            if foreign is not None:
                path = f"{node.name}:{callee.label}"
                body_of = foreign.body(function.name, f"{path}/")
                made.append(CallBody(callee, path, body_of, body_of.graph))
                continue
            body = self.functions.body_of(*((GRADIENT_OP, {"f": function}) if callee.gradient else (function.name, function.attr)))
            path = f"{node.name}:{callee.label}"
            made.append(call_body(callee, path, body, node.device, arguments, node))
            marks = shown_difference.of(node.graph)
            if marks is not None:
                shown_difference.set(made[-1].graph, marks.within(function.name, path))
        return made

    def _is_known(self, callee: Callee) -> bool:
        library = self.functions.library
        return callee.function.name in library or (callee.gradient and callee.function.name in library.default_registry)


class Call:
    """A node that calls functions, and its instantiated bodies.

    Args:
        node: the node.
        opener: opens calls where the node is.

    Attributes:
        failure: the reason for which its bodies cannot be instantiated. Known after `bodies` was read.
    """

    def __init__(self, node: Node, opener: Opener) -> None:
        self.node = node
        self.opener = opener
        self.failure = ""
        self._bodies: list[CallBody] | None = None

    @property
    def refusal(self) -> str:
        """The reason for which it does not open, "" if it may. Known after `bodies` was read."""
        return self.failure or self.opener.refusal(self.node)

    def bodies(self) -> list[CallBody]:
        """The instantiated bodies; empty with a `refusal` if they cannot be instantiated."""
        if self._bodies is None:
            self._bodies = self._instantiate()
        return self._bodies

    def _instantiate(self) -> list[CallBody]:
        if self.refusal:
            return []
        try:
            return self.opener.bodies(self.node)
        except GraphError as error:
            self.failure = error.message
        return []


def call_body(callee: Callee, path: str, body: FunctionBody, device: str, arguments: list[Tensor] | None, caller: Node | None) -> CallBody:
    """A copy of a body with the shapes and devices of one call.

    Args:
        path: the prefix of its nodes' names; it ends in a colon and perhaps a label, unlike any name of the graph. "" for a graph of its own.
        device: the device of the call, for nodes of the body without another one.
        arguments: the arguments, in the graph of the call; None leaves shapes unknown.
        caller: the call, whose line of code the copies get. None outside of a call.

    Raises:
        InvalidArgumentError: arguments do not fit the function's types or number.
    """
    if arguments is not None:
        _check_arguments(body, arguments, caller)
    nodes = [_renamed(node.node_def, path, device) for node in body.graph.op_nodes()]
    graph = graph_from_nodes(nodes, body.graph.library, infers_functions=not arguments)
    for node in graph.op_nodes():
        node.source = None if caller is None else caller.source
    made = CallBody(callee, path, body, graph)
    if caller is not None:
        graph.refiner = refiner_within(caller.graph)
    for index, (arg, tensor) in enumerate(zip(made.args, arguments or (), strict=False)):
        arg.output_handles = (_handle_inside(caller, index, tensor),)
        held = (tensor.node.handle_data or {}).get(tensor.index)
        if held is not None and (caller is None or not is_loop(caller)):
            arg.handle_data = {0: held}
        value = None if tensor.dtype.is_ref else inferred_value(tensor)
        if value is not None:
            arg.constants = {0: value}
    for node in made.nodes if arguments else ():
        if node.inputs or calls_functions(node):
            _infer(graph, node)
    return made


def _infer(graph: Graph, node: Node) -> None:
    node.constants = None
    try:
        graph.refiner.add_node(node)
    except GraphError as error:
        node.error = error
        node.input_errors = dict.fromkeys(range(len(node.inputs)), error.message)
        node.output_handles = tuple([ShapeHandle() for _ in node.outputs])


def _check_arguments(body: FunctionBody, arguments: list[Tensor], caller: Node | None) -> None:
    name, op = ("the call", "") if caller is None else (f"'{caller.name}'", caller.op)
    if len(arguments) != len(body.arg_types):
        raise InvalidArgumentError(f"{name} gives {len(arguments)} arguments to a function of {len(body.arg_types)}", op=op)
    for index, (tensor, wanted) in enumerate(zip(arguments, body.arg_types, strict=True)):
        if tensor.dtype.base is not wanted.base:
            raise InvalidArgumentError(f"Argument {index} of {name} is {tensor.dtype.text}, the function takes {wanted.text}", op=op)


def _renamed(node: NodeDef, path: str, device: str) -> NodeDef:
    inputs = ["^" + _below(path, text[1:]) if text.startswith("^") else _below(path, text) for text in node.input]
    return msgspec.structs.replace(node, name=_below(path, node.name), input=tuple(inputs), device=_device(node.device, device))


def _below(path: str, name: str) -> str:
    return f"{path}/{name}" if path else name


def _device(own: str, inherited: str) -> str:
    if not own or not inherited:
        return own or inherited
    try:
        return merge_unset_dev_names(own, inherited)
    except GraphError:
        return own


def _gradient_names(path: str, nodes: Iterable[Node], *, in_library: bool) -> frozenset[str]:
    """The backward nodes: those added by `symbolic_gradient`; in an op's gradient, all of them."""
    if in_library:
        return frozenset()
    added = frozenset([node.name for node in nodes if node.name.startswith(_below(path, f"{LABEL}/"))])
    return added or frozenset([node.name for node in nodes])


def _is_func(value: AttrValue) -> bool:
    return isinstance(value, Func) or (isinstance(value, tuple) and any(isinstance(item, Func) for item in value))
