"""The plan engine: an acyclic subgraph becomes one generated Python function over local variables."""

from __future__ import annotations

import linecache
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Final

import numpy as np

from graphcore.attrs import Array
from graphcore.errors import GraphError, InternalError, InvalidArgumentError, ResourceExhaustedError
from graphcore.graph import constant_value
from graphcore.graph.node import Node, Tensor
from graphcore.kernel_context import KernelContext, RefVariable
from graphcore.registry import Kernel
from graphcore.runtime.prune import needed_nodes

MakeKernel = Callable[[Node, KernelContext], Kernel]
_ALIASES: Final = frozenset({"Identity", "StopGradient", "PreventGradient", "Snapshot"})
_MAX_FOLDED_ELEMENTS: Final = 1 << 20
_counter = 0


class Plan:
    """A compiled subgraph.

    Attributes:
        source: the generated code, one line a node; tracebacks and profilers point into it.
        nodes: the nodes that really run, in order.
        run: the function: fed arrays in, fetched arrays out.
    """

    __slots__ = ("_line_nodes", "filename", "nodes", "run", "source")

    def __init__(self, source: str, filename: str, run: Callable[..., list[Any]], line_nodes: dict[int, Node]) -> None:
        self.source = source
        self.filename = filename
        self.run = run
        self._line_nodes = line_nodes
        self.nodes = list(line_nodes.values())

    def node_at(self, traceback: TracebackType | None) -> Node | None:
        """The node whose line the innermost frame of this plan was at."""
        found = None
        while traceback is not None:
            if traceback.tb_frame.f_code.co_filename == self.filename:
                found = self._line_nodes.get(traceback.tb_lineno)
            traceback = traceback.tb_next
        return found

    def explain(self, error: Exception) -> GraphError:
        """`error` as a GraphError that names the node, its inputs and the user's line."""
        node = self.node_at(error.__traceback__)
        if node is None:
            return error if isinstance(error, GraphError) else InternalError(f"{type(error).__name__}: {error}")
        if isinstance(error, GraphError):
            return error.with_node(node.name, op=node.op, source=node.source)
        inputs = ", ".join(f"{tensor.name} {tensor.dtype.name} {tensor.shape}" for tensor in node.inputs)
        kind: type[GraphError] = ResourceExhaustedError if isinstance(error, MemoryError) else InvalidArgumentError
        return kind(
            f"{str(error) or type(error).__name__}\n\t [[{{{{node {node.name}}}}}]] = {node.op}({inputs})",
            op=node.op,
            node=node.name,
            source=node.source,
        )

    def close(self) -> None:
        """Forget the source text."""
        linecache.cache.pop(self.filename, None)


def build_plan(fetches: Sequence[Tensor], targets: Sequence[Node], feeds: Sequence[Tensor], make_kernel: MakeKernel) -> Plan:
    """Compile what `fetches` and `targets` need when `feeds` are given.

    Raises:
        GraphError: a needed node carries an error, cannot run, or depends on itself.
    """
    return _Builder(feeds, make_kernel).build(fetches, targets)


class _Builder:
    def __init__(self, feeds: Sequence[Tensor], make_kernel: MakeKernel) -> None:
        self.feeds = list(feeds)
        self.make_kernel = make_kernel
        self.names: dict[Tensor, str] = {}
        self.references: set[Tensor] = set()
        self.constants: dict[str, Array] = {}
        self.scope: dict[str, Any] = {}
        self.lines: list[str] = []
        self.line_nodes: dict[int, Node] = {}
        self.merged: dict[Any, Node] = {}
        self.last_use: dict[str, int] = {}
        self.fetched: set[str] = set()

    def build(self, fetches: Sequence[Tensor], targets: Sequence[Node]) -> Plan:
        global _counter  # noqa: PLW0603 - plans are numbered so that their file names differ
        _counter += 1
        filename = f"<graphcore plan {_counter}>"
        for i, tensor in enumerate(self.feeds):
            self.names[tensor] = f"feed{i}"
        for node in needed_nodes(fetches, targets, self.feeds):
            self._add(node)
        results = [self._read(tensor) for tensor in fetches]
        source = self._text(results)
        exec(compile(source, filename, "exec"), self.scope)  # noqa: S102 - the text holds nothing but names made here
        linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
        line_nodes = {number + 2: node for number, node in self.line_nodes.items()}
        return Plan(source, filename, self.scope["run"], line_nodes)

    def _add(self, node: Node) -> None:
        if node.error is not None:
            raise type(node.error)(node.error.message, op=node.op, node=node.name, source=node.source)
        if node.registration.kernel is None and not node.registration.is_function:
            raise InvalidArgumentError(
                f"Op '{node.op}' of node '{node.name}' has no kernel: it can be seen but not run", op=node.op, node=node.name
            )
        if all(tensor in self.names for tensor in node.outputs) and node.outputs:
            return
        if self._fold(node) or self._alias(node) or self._merge(node):
            return
        self._emit(node)

    def _fold(self, node: Node) -> bool:
        """A node whose outputs are the same in every run becomes constants."""
        if not node.outputs or node.op_def.is_stateful or any(tensor in self.references for tensor in node.inputs):
            return False
        if (
            node.op != "Const"
            and not all(self._is_constant(tensor) for tensor in node.inputs)
            and node.op not in {"Shape", "ShapeN", "Rank", "Size"}
        ):
            return False
        values = [constant_value(tensor) for tensor in node.outputs]
        known = [value for value in values if value is not None and (value.size <= _MAX_FOLDED_ELEMENTS or node.op == "Const")]
        if len(known) != len(values):
            return False
        for tensor, value in zip(node.outputs, known, strict=True):
            self._bind_constant(tensor, value)
        return True

    def _is_constant(self, tensor: Tensor) -> bool:
        return self.names.get(tensor, "") in self.constants

    def _bind_constant(self, tensor: Tensor, value: Array) -> None:
        name = f"c{len(self.constants)}"
        self.constants[name] = value
        self.scope[name] = value
        self.names[tensor] = name

    def _alias(self, node: Node) -> bool:
        """A node that only passes its input on needs no call; the read of a variable is a line of its own."""
        if node.op not in _ALIASES or node.inputs[0] in self.references:
            return False
        if node.control_inputs and self._is_read(node.inputs[0]):
            return False
        self.names[node.outputs[0]] = self.names[node.inputs[0]]
        return True

    def _is_read(self, tensor: Tensor) -> bool:
        return tensor.dtype.is_ref

    def _merge(self, node: Node) -> bool:
        """The same op on the same values is computed once, unless it has state."""
        if node.op_def.is_stateful or not node.outputs or any(dtype.is_ref for dtype in (*node.input_types, *node.output_types)):
            return False
        if any(tensor in self.references for tensor in node.inputs):
            return False
        key = (node.op, tuple(self.names[tensor] for tensor in node.inputs), frozenset(node.node_def.attr.items()))
        first = self.merged.setdefault(key, node)
        if first is node:
            return False
        for mine, theirs in zip(node.outputs, first.outputs, strict=True):
            self.names.setdefault(mine, self.names[theirs])
        return True

    def _emit(self, node: Node) -> None:
        arguments = [self._argument(node, slot, tensor) for slot, tensor in enumerate(node.inputs)]
        number = len(self.lines)
        outputs = []
        for tensor in node.outputs:
            name = f"t{number}_{tensor.index}"
            fed = tensor in self.names
            outputs.append(name)
            if fed:
                continue
            self.names[tensor] = name
            if tensor.dtype.is_ref:
                self.references.add(tensor)
        if node.op in _ALIASES:
            self.lines.append(f"{outputs[0]} = {arguments[0]}")
        else:
            self.scope[f"k{number}"] = self.make_kernel(node, self._context(node))
            call = f"k{number}({', '.join(arguments)})"
            self.lines.append(f"{', '.join(outputs)} = {call}" if outputs else call)
        self.line_nodes[number] = node
        for name in (*(self.names[tensor] for tensor in node.inputs), *outputs):
            self.last_use[name] = number

    def _argument(self, node: Node, slot: int, tensor: Tensor) -> str:
        name = self.names[tensor]
        if tensor in self.references and not node.input_types[slot].is_ref:
            return f"{name}.read()"
        return name if tensor not in self.references or node.op_def.input_arg[self._arg_of(node, slot)].is_ref else f"{name}.read()"

    def _arg_of(self, node: Node, slot: int) -> int:
        return min(slot, len(node.op_def.input_arg) - 1)

    def _context(self, node: Node) -> KernelContext:
        constants = tuple(self.constants.get(self.names[tensor]) for tensor in node.inputs)
        return KernelContext(
            xp=np,
            attrs=node.node_def.attr,
            node_name=node.name,
            op=node.op,
            input_types=node.input_types,
            output_types=node.output_types,
            input_shapes=tuple(tensor.shape for tensor in node.inputs),
            constants=constants,
            source=node.source,
        )

    def _read(self, tensor: Tensor) -> str:
        name = self.names[tensor]
        return f"{name}.read()" if tensor in self.references else name

    def _text(self, results: list[str]) -> str:
        keep = {result.removesuffix(".read()") for result in results}
        released: dict[int, list[str]] = {}
        for name, number in self.last_use.items():
            if name.startswith("t") and name not in keep:
                released.setdefault(number, []).append(name)
        body = []
        for number, line in enumerate(self.lines):
            dead = released.get(number)
            body.append(f"    {line}; del {', '.join(dead)}" if dead else f"    {line}")
        arguments = ", ".join(f"feed{i}" for i in range(len(self.feeds)))
        return "\n".join([f"def run({arguments}):", *body, f"    return [{', '.join(results)}]", ""])


def is_reference(value: object) -> bool:
    """True iff a kernel gave a variable rather than an array."""
    return isinstance(value, RefVariable)
