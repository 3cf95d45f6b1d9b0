"""Dependences along differentiable edges, through the bodies of loops and branches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from graphcore import dtypes
from graphcore.attrs import Func
from graphcore.functions import FunctionLibraryDefinition
from graphcore.graph import Node, Tensor
from graphcore.passes.functions.function_body import function_def_to_body
from graphcore.passes.gradients.overrides import gradient_kind, slots_with_gradients
from graphcore.plumbing import IF

_NUMBERS: Final = frozenset({dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64, dtypes.complex64, dtypes.complex128})
FLOWING: Final = _NUMBERS | {dtypes.variant}
"""The dtypes of values that gradients go through functions by."""


class Reaching:
    """The dependences of tensors, by the slots of their nodes' inputs.

    Args:
        library: the functions.
    """

    def __init__(self, library: FunctionLibraryDefinition) -> None:
        self.library = library
        self._by_node: dict[Node, list[set[int]] | None] = {}

    def arguments(self, ret: Tensor, args: Sequence[Tensor]) -> set[int]:
        """The arguments that a tensor depends on along differentiable edges."""
        pending, reached = [ret], {ret}
        while pending:
            new = [tensor for tensor in self.sources(pending.pop()) if tensor not in reached]
            reached.update(new)
            pending += new
        return {number for number, arg in enumerate(args) if arg in reached and arg.dtype.base in FLOWING}

    def sources(self, tensor: Tensor) -> list[Tensor]:
        """The inputs of a tensor's node that gradients of the tensor may reach."""
        node = tensor.node
        if tensor.dtype.base not in FLOWING or gradient_kind(node) == "stop":
            return []
        if node not in self._by_node:
            self._by_node[node] = self._through_bodies(node)
        reached = self._by_node[node]
        slots = range(len(node.inputs)) if reached is None else sorted(reached[tensor.index])
        return [node.inputs[slot] for slot in slots if node.inputs[slot].dtype.base in FLOWING]

    def _through_bodies(self, node: Node) -> list[set[int]] | None:
        """The inputs that each output of a loop, conditional or custom gradient depends on, else None."""
        own = slots_with_gradients(node)
        if own is not None:
            return [set(own) for _ in node.outputs]
        attrs, kind = node.node_def.attr, node.op.removeprefix("Stateless")
        if kind == "While":
            return _closure(self._within(attrs.get("body")))
        if node.op in IF:
            return _united([self._within(attrs.get("then_branch")), self._within(attrs.get("else_branch"))])
        if kind == "Case":
            branches = attrs.get("branches")
            return _united([self._within(branch) for branch in branches]) if isinstance(branches, list | tuple) else None
        return None

    def _within(self, func: object) -> list[set[int]] | None:
        """The arguments that each return of a function depends on, None without a function."""
        definition = self.library.find(func.name) if isinstance(func, Func) else None
        if definition is None or not isinstance(func, Func):
            return None
        attrs = {key: value for key, value in func.attr.items() if not key.startswith("_")}
        body = function_def_to_body(definition, attrs, self.library)
        args = [node.outputs[0] for node in body.arg_nodes]
        return [self.arguments(node.inputs[0], args) for node in body.ret_nodes]


def _closure(once: list[set[int]] | None) -> list[set[int]] | None:
    """The dependences of a loop's results, from those of one iteration."""
    if once is None:
        return None
    closed = [{number} | args for number, args in enumerate(once)]
    sizes: list[int] = []
    while sizes != [len(args) for args in closed]:
        sizes = [len(args) for args in closed]
        closed = [args.union(*[closed[arg] for arg in args]) for args in closed]
    return closed


def _united(branches: Sequence[list[set[int]] | None]) -> list[set[int]] | None:
    """The dependences of a conditional's results; its first input is the choice."""
    reached = [branch for branch in branches if branch is not None]
    if not reached or len(reached) < len(branches):
        return None
    return [{1 + arg for args in parts for arg in args} for parts in zip(*reached, strict=True)]
