"""Inlining: replacement of a call by the body of its function."""

from __future__ import annotations

from typing import Final, Literal, NoReturn

import msgspec

from graphcore.attrs import Attrs, AttrValue
from graphcore.definitions import NodeDef
from graphcore.errors import InternalError
from graphcore.functions import FunctionLibraryDefinition
from graphcore.graph import Node, Tensor
from graphcore.graph.graph import Graph
from graphcore.graph.model.node import NO_CONTROLS, absent_tensor, input_text
from graphcore.passes.functions.function_body import FunctionBody
from graphcore.passes.infra.rewriting import Rewriting
from graphcore.plumbing import CALL, ENTER, MERGE, SYMBOLIC_GRADIENT

NO_INLINE_ATTR: Final = "_noinline"
IMPLEMENTS_ATTR: Final = "api_implements"
CALL_OPS: Final = CALL | {SYMBOLIC_GRADIENT}
_COLOCATED: Final = b"loc:@"


class InlineFunctionBodyOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options for inlining a call.

    Args:
        disable_inlining: refuse.
        ignore_noinline: inline functions marked `_noinline` too.
        inline_impl_selection_group_functions: inline functions that have several implementations.
        keep_caller_node: keep a node of the caller's name: "fetchable" (an IdentityN of the outputs), "targetable" (a NoOp), or none.
        output_control_src: the replacement of control inputs from the caller: its data outputs, or its control returns.
        uniquify_frame_names: prefix the names of loop frames, so that two calls do not share a frame.
    """

    disable_inlining: bool = False
    ignore_noinline: bool = False
    inline_impl_selection_group_functions: bool = False
    keep_caller_node: Literal["do_not_keep", "fetchable", "targetable"] = "do_not_keep"
    output_control_src: Literal["data_outputs", "control_outputs"] = "data_outputs"
    uniquify_frame_names: bool = True


DEFAULT_OPTIONS: Final = InlineFunctionBodyOptions()


def inline_function_body(
    library: FunctionLibraryDefinition, graph: Graph, caller: Node, body: FunctionBody, options: InlineFunctionBodyOptions = DEFAULT_OPTIONS
) -> None:
    """Replace `caller`, a node of `graph`, by the nodes of `body`.

    Args:
        library: the functions, to recognise calls in the body.
        graph: the graph to change.
        caller: the call.
        body: the function, instantiated for that call.
        options: the options.

    Raises:
        InternalError: `Inlining mismatch: ...`; the graph is unchanged.
    """
    check_inlining(caller, body, options)
    with Rewriting(graph) as rewriting:
        inline_checked(rewriting, library, caller, body, options)


def inline_checked(
    rewriting: Rewriting, library: FunctionLibraryDefinition, caller: Node, body: FunctionBody, options: InlineFunctionBodyOptions
) -> None:
    """Inline a call after `check_inlining`, as one step of a longer rewriting."""
    _Inlining(rewriting, library, caller, body, options).run()


def is_function_call(library: FunctionLibraryDefinition, node: NodeDef) -> bool:
    """True iff a node calls a function by its name or attr `f`, or is a SymbolicGradient."""
    return node.op in CALL_OPS or library.look_up(node.op).is_function


def check_inlining(caller: Node, body: FunctionBody, options: InlineFunctionBodyOptions = DEFAULT_OPTIONS) -> None:
    """Check that a call may be inlined.

    Raises:
        InternalError: `Inlining mismatch: ...`.
    """
    inputs, outputs = len(caller.inputs), len(caller.outputs)
    args, rets = len(body.arg_types), len(body.ret_types)
    if inputs != args or inputs != len(body.arg_nodes):
        _refuse(
            f"Node inputs do not match function arguments: inputs={inputs} arg_types={args} arg_nodes={len(body.arg_nodes)}", caller, body
        )
    if outputs != rets or outputs != len(body.ret_nodes):
        _refuse(
            f"Node outputs do not match function returns: outputs={outputs} ret_types={rets} ret_nodes={len(body.ret_nodes)}", caller, body
        )
    for index, (mine, wanted) in enumerate(zip(caller.input_types, body.arg_types, strict=True)):
        if mine is not wanted:
            _refuse(f"Node input type doesn't match function argument type: {mine.text} != {wanted.text} @ index={index}", caller, body)
    for index, (mine, wanted) in enumerate(zip(caller.output_types, body.ret_types, strict=True)):
        if mine is not wanted:
            _refuse(f"Node output type doesn't match function return type: {mine.text} != {wanted.text} @ index={index}", caller, body)
    if options.disable_inlining:
        _refuse("Function inlining explicitly disabled by 'options.disable_inlining'", caller, body)
    if IMPLEMENTS_ATTR in body.fdef.attr and not options.inline_impl_selection_group_functions:
        _refuse(
            f"Inlining of implementation selection group function {body.fdef.name} is disabled by "
            f"options.inline_impl_selection_group_functions",
            caller,
            body,
        )
    if body.fdef.attr.get(NO_INLINE_ATTR) is True and not options.ignore_noinline:
        _refuse(f"Can't inline function marked with '{NO_INLINE_ATTR}'", caller, body)


def _refuse(reason: str, caller: Node, body: FunctionBody) -> NoReturn:
    raise InternalError(f"Inlining mismatch: {reason}", op=body.fdef.name or caller.op, node=caller.name, source=caller.source)


class _Inlining:
    """The inlining of one call. New nodes are made in TensorFlow's order, so that they get the same numbers."""

    __slots__ = ("after", "before", "body", "caller", "inputs", "library", "options", "prefix", "rewriting", "tensors")

    def __init__(
        self, rewriting: Rewriting, library: FunctionLibraryDefinition, caller: Node, body: FunctionBody, options: InlineFunctionBodyOptions
    ) -> None:
        self.rewriting = rewriting
        self.library = library
        self.caller = caller
        self.body = body
        self.options = options
        self.prefix = f"{caller.name}/"
        self.before: list[Node] = []
        self.inputs: dict[str, str] = {}
        self.tensors: dict[Node, Node] = {}

    def run(self) -> None:
        caller, rewriting = self.caller, self.rewriting
        label = f"Func/{caller.name}"
        if caller.control_inputs:
            self.before = [rewriting.no_op(f"{label}/input_control_node", caller.control_inputs, caller)]
        added: list[Node] = []
        for arg, tensor in zip(self.body.arg_nodes, caller.inputs, strict=True):
            copy = rewriting.identity(f"{label}/input", tensor, self.before, caller)
            self.tensors[arg] = copy
            self.inputs[arg.name] = copy.name
            added.append(copy)
        for node in self.body.inner_nodes():
            copy = self.tensors[node] = self.copy(node)
            added.append(copy)
        outputs = [self.output(f"{label}/output", ret) for ret in self.body.ret_nodes]
        added += outputs
        after = self.output_control(f"{label}/output_control_node", outputs)
        rewriting.move_consumers(caller, [node.outputs[0] for node in outputs], after)
        rewriting.remove(caller)
        if self.options.keep_caller_node != "do_not_keep" and after is not None:
            self.keep_caller(outputs, after)
        graph = rewriting.graph
        graph.edge_store.detached.update(node.name for node in added if not graph.edge_store.has_successors(node))

    def copy(self, node: Node) -> Node:
        old = node.node_def
        tensors = self.tensors
        try:
            inputs = [tensors[tensor.node].outputs[tensor.index] for tensor in node.inputs]
        except KeyError:
            inputs = [self.input_of(tensor) for tensor in node.inputs]
        controls = [self.tensors[control] for control in node.control_inputs] if node.control_inputs else NO_CONTROLS
        if self.before and not controls and (not inputs or is_function_call(self.library, old)):
            controls = self.before
        texts = [input_text(tensor) for tensor in inputs] + [f"^{control.name}" for control in controls]
        origin = old.original_node_names or old.original_func_names
        node_def = NodeDef(
            self.prefix + old.name,
            old.op,
            tuple(texts),
            old.device,
            self.attrs(old),
            old.original_node_names if origin else (old.name,),
            old.original_func_names if origin else (self.body.fdef.name,),
            old.other_fields,
        )
        like = self.caller
        graph = self.rewriting.graph
        copy = graph.builder.insert(
            node_def, node.registration, inputs, controls, node.input_types, node.output_types, like.source or node.source
        )
        if copy.op in MERGE:
            self.await_loop(copy)
        return copy

    def await_loop(self, head: Node) -> None:
        for slot, tensor in enumerate(head.inputs):
            if tensor.node.id < 0:
                self.rewriting.graph.node_store.await_node(tensor.node.name, head, slot)

    def input_of(self, tensor: Tensor) -> Tensor:
        """The copy of a tensor; None for a loop back edge that is not copied yet."""
        node = self.tensors.get(tensor.node)
        if node is not None:
            return node.outputs[tensor.index]
        return absent_tensor(self.rewriting.graph, self.prefix + tensor.node.name, tensor.index, tensor.dtype)

    def attrs(self, node: NodeDef) -> Attrs:
        attrs = node.attr
        if "_class" not in attrs and "frame_name" not in attrs:
            return attrs
        changed: dict[str, AttrValue] = {}
        groups = attrs.get("_class")
        if isinstance(groups, tuple):
            changed["_class"] = tuple([self.group(item) for item in groups])
        frame = attrs.get("frame_name")
        if isinstance(frame, bytes) and self.options.uniquify_frame_names and node.op in ENTER:
            changed["frame_name"] = self.prefix.encode() + frame
        return {**attrs, **changed}

    def group(self, item: AttrValue) -> AttrValue:
        if not isinstance(item, bytes) or not item.startswith(_COLOCATED):
            return item
        name = item[len(_COLOCATED) :].decode(errors="surrogateescape")
        if name in self.inputs:
            return _COLOCATED + self.inputs[name].encode()
        return _COLOCATED + f"{self.prefix}{name}".encode() if self.body.graph.find(name) is not None else item

    def output(self, prefix: str, ret: Node) -> Node:
        source = ret.inputs[0]
        tensor: Tensor = self.tensors[source.node].outputs[source.index]
        return self.rewriting.identity(prefix, tensor, [self.tensors[control] for control in ret.control_inputs], self.caller)

    def output_control(self, prefix: str, outputs: list[Node]) -> Node | None:
        awaited = any(slot < 0 for _, slot in self.caller.consumers())
        if not awaited and self.options.keep_caller_node == "do_not_keep":
            return None
        if self.options.output_control_src == "data_outputs":
            sources = outputs
        else:
            sources = list(dict.fromkeys([self.tensors[node] for node in self.body.control_ret_nodes]))
        return self.rewriting.no_op(prefix, sources or self.before, self.caller)

    def keep_caller(self, outputs: list[Node], after: Node) -> None:
        caller = self.caller
        tensors = [node.outputs[0] for node in outputs]
        if self.options.keep_caller_node == "targetable" or not tensors:
            self.rewriting.add(caller.name, "NoOp", [], [after], {}, caller, caller.device)
            return
        types = tuple([tensor.dtype for tensor in tensors])
        self.rewriting.add(caller.name, "IdentityN", tensors, [after], {"T": types}, caller, caller.device)
