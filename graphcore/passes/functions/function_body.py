"""FunctionBody: an instantiated function as a graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from graphcore.definitions.types import FunctionDef, OpDef
from graphcore.dtypes import DType
from graphcore.errors import InternalError, InvalidArgumentError
from graphcore.functions import FunctionLibraryDefinition, InstantiationResult, instantiate_function
from graphcore.graph import Graph, Node, topological_order
from graphcore.graph.importing.from_nodes import graph_from_nodes
from graphcore.graph.shapes.function_shapes import FunctionShapes
from graphcore.passes.functions.defining import sources_of
from graphcore.plumbing import ARG, RETVAL

_NO_FUNCTION = FunctionDef(signature=OpDef(name=""))


class FunctionBody:
    """An instantiated function.

    Attributes:
        fdef: the function; that of a gradient without a definition has an empty name.
        graph: its nodes, arguments and returns among them.
        arg_types, ret_types: the types of arguments and returns.
        arg_nodes, ret_nodes: the `_Arg` and `_Retval` nodes by index.
        control_ret_nodes: the nodes that run before it returns.

    Raises:
        InvalidArgumentError: the graph's arguments or returns do not fit the types.
    """

    __slots__ = ("_order", "arg_nodes", "arg_types", "control_ret_nodes", "fdef", "graph", "ret_nodes", "ret_types")

    def __init__(self, fdef: FunctionDef | None, arg_types: Sequence[DType], ret_types: Sequence[DType], graph: Graph) -> None:
        self.fdef = fdef or _NO_FUNCTION
        self.graph = graph
        self.arg_types = tuple(arg_types)
        self.ret_types = tuple(ret_types)
        self.arg_nodes = _by_index(graph, ARG, len(self.arg_types))
        self.ret_nodes = _by_index(graph, RETVAL, len(self.ret_types))
        self.control_ret_nodes = [_control_ret(graph, name) for name in self.fdef.control_ret.values()]
        self._order: tuple[int, list[Node]] = (-1, [])

    @classmethod
    def from_instantiation(
        cls,
        fdef: FunctionDef,
        result: InstantiationResult,
        library: FunctionLibraryDefinition | None = None,
        bodies: FunctionShapes | None = None,
    ) -> FunctionBody:
        """Make a body from the result of `instantiate_function`.

        Raises:
            NotFoundError: an op is neither registered nor a function of the library.
            InvalidArgumentError: inconsistent nodes.
        """
        graph = graph_from_nodes(result.nodes, library, bodies)
        sources = sources_of(graph.library, fdef.name)
        for node in graph.op_nodes() if sources else ():
            node.source = sources.get(node.name)
        return cls(fdef, result.arg_types, result.ret_types, graph)

    def inner_nodes(self) -> list[Node]:
        """The nodes except arguments and returns, producers first.

        Raises:
            InvalidArgumentError: the nodes form a cycle.
        """
        version = self.graph.version
        if self._order[0] != version:
            self._order = version, [node for node in topological_order(self.graph) if node.op not in ARG and node.op not in RETVAL]
        return self._order[1]

    def __repr__(self) -> str:
        args = ", ".join([dtype.text for dtype in self.arg_types])
        rets = ", ".join([dtype.text for dtype in self.ret_types])
        return f"<gc.FunctionBody {self.fdef.name or 'gradient'}({args}) -> ({rets}), {len(self.graph)} nodes>"


def function_def_to_body(
    fdef: FunctionDef,
    attrs: Mapping[str, object],
    library: FunctionLibraryDefinition | None = None,
    bodies: FunctionShapes | None = None,
) -> FunctionBody:
    """Instantiate a function as a graph.

    Args:
        fdef: the function.
        attrs: a value for each attr that has no default.
        library: the library with the functions that the body calls.
        bodies: the function bodies known from earlier instantiations; new ones are added.

    Raises:
        InvalidArgumentError, NotFoundError: as `instantiate_function`.
    """
    definitions = FunctionLibraryDefinition() if library is None else library
    return FunctionBody.from_instantiation(fdef, instantiate_function(fdef, attrs, definitions.look_up_op_def), definitions, bodies)


def _by_index(graph: Graph, ops: frozenset[str], count: int) -> list[Node]:
    nodes_by_index: dict[Any, Node] = {node.node_def.attr["index"]: node for node in graph.op_nodes() if node.op in ops}
    if sorted(nodes_by_index) != list(range(count)):
        raise InvalidArgumentError(
            f"Required {count} {max(ops)} nodes with the indices from 0 on, got the indices {sorted(nodes_by_index)}"
        )
    return [nodes_by_index[index] for index in range(count)]


def _control_ret(graph: Graph, name: str) -> Node:
    node = graph.find(name)
    if node is None:
        raise InternalError(f"Control return '{name}' is not a node of the function body", node=name)
    return node
