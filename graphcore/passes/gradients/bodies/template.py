"""Templates of gradients of ops: registered FunctionDefs, instantiated for one set of attrs."""

from __future__ import annotations

from typing import Any

from graphcore.attrs import Attrs, AttrValue, Func
from graphcore.definitions import ArgDef, FunctionDef, NodeDef, OpDef
from graphcore.errors import GraphError
from graphcore.functions import instantiate_function
from graphcore.graph import Node
from graphcore.passes.gradients.bodies.resolved_dims import with_actual_sizes
from graphcore.registry import GradientCreator, get_op_gradient_creator, op_registry

Ref = tuple[str, int]


class BodyNode:
    """A node of the body: its NodeDef, and its inputs as (body node or arg, output)."""

    __slots__ = ("inputs", "node_def")

    def __init__(self, node_def: NodeDef) -> None:
        self.node_def = node_def
        self.inputs: list[Ref] = [_parse(text) for text in node_def.input if not text.startswith("^")]


class GradientTemplate:
    """An instantiated gradient body.

    Attributes:
        function: the registered FunctionDef.
        args: the names of the args: forward inputs, then one gradient for each output.
        nodes: the body by name.
        rets: for each forward input the body tensor that is its gradient.
        ignored: the forward outputs whose gradients the body does not use.
        zeros: the forward inputs with zero gradients.
        programs: caches of the passes that inline the body.
    """

    __slots__ = ("args", "function", "ignored", "nodes", "programs", "rets", "zeros")

    def __init__(self, function: FunctionDef, attrs: Attrs) -> None:
        self.function = function
        self.programs: Any = None
        result = instantiate_function(function, attrs)
        self.args: dict[str, int] = {}
        self.nodes: dict[str, BodyNode] = {}
        rets: dict[int, Ref] = {}
        for node_def in result.nodes:
            index: Any = node_def.attr.get("index")
            if node_def.op == "_Arg":
                self.args[node_def.name] = index
            elif node_def.op == "_Retval":
                rets[index] = _parse(node_def.input[0])
            else:
                self.nodes[node_def.name] = BodyNode(node_def)
        self.rets = [rets[i] for i in range(len(rets))]
        used = {ref[0] for ref in self.rets}.union(*[{ref[0] for ref in node.inputs} for node in self.nodes.values()])
        self.ignored = tuple([number - len(rets) for name, number in self.args.items() if number >= len(rets) and name not in used])
        self.zeros = frozenset([slot for slot, ref in enumerate(self.rets) if ref[0] in self.nodes and self._is_zeros_of(ref[0], slot)])

    def _is_zeros_of(self, name: str, slot: int) -> bool:
        node = self.nodes[name]
        return node.node_def.op == "ZerosLike" and self.args.get(node.inputs[0][0]) == slot


def call_template(node: Node) -> GradientTemplate:
    """The gradient of a function call: one SymbolicGradient node, resolved in the library at run time."""
    types = [dtype.base for dtype in (*node.input_types, *node.output_types)]
    wanted = [dtype.base for dtype in node.input_types]
    attrs: dict[str, AttrValue] = {"Tin": tuple(types), "Tout": tuple(wanted), "f": Func(node.op, dict(node.node_def.attr))}
    args = [f"x{index}" for index in range(len(types))]
    signature = OpDef(
        name=f"{node.op}_grad",
        input_arg=tuple([ArgDef(name=name, type=dtype) for name, dtype in zip(args, types, strict=True)]),
        output_arg=tuple([ArgDef(name=f"dx{index}", type=dtype) for index, dtype in enumerate(wanted)]),
    )
    body = NodeDef("gradient", "SymbolicGradient", tuple(args), "", attrs)
    rets = {f"dx{index}": f"gradient:output:{index}" for index in range(len(wanted))}
    return GradientTemplate(FunctionDef(signature=signature, node_def=(body,), ret=rets), {})


def _parse(text: str) -> Ref:
    head, _, tail = text.rpartition(":")
    return (head, int(tail)) if head and tail.isdigit() else (text, 0)


_cache: dict[tuple[GradientCreator, frozenset[tuple[str, Any]]], GradientTemplate] = {}


def gradient_template(op: str, attrs: Attrs, *, full: bool = False, plain: bool = False) -> GradientTemplate | None:
    """The template of `op` with these attrs, None if it is registered as not differentiable.

    Args:
        full: select the complete variant of a partial gradient.
        plain: select the registered gradient, even where another one is right at more points.

    Raises:
        NotFoundError: `No gradient defined for op`.
    """
    creator = get_op_gradient_creator(op)
    if creator is None:
        return None
    entry = op_registry.look_up(op)
    creator = (full and entry.full_gradient) or (not plain and entry.exact_gradient) or creator
    public = {name: value for name, value in attrs.items() if not name.startswith("_")}
    key = (creator, frozenset(public.items()))
    template = _cache.get(key)
    if template is None:
        try:
            function = creator(public)
            template = _cache[key] = GradientTemplate(with_actual_sizes(op, function), public)
            template.function = function
        except GraphError as error:
            error.message = f"gradient of op {op}: {error.message}"
            raise
    return template


def forget() -> None:
    """Clear the cache of templates, such as after a gradient was registered for tests."""
    _cache.clear()
