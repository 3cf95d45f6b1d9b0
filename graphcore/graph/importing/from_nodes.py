"""Graphs from NodeDefs in any order, and graphs from graphs."""

from __future__ import annotations

from collections.abc import Sequence

from graphcore.definitions import NodeDef
from graphcore.functions import FunctionLibraryDefinition
from graphcore.graph.copying import copy_graph
from graphcore.graph.graph import Graph
from graphcore.graph.model.filling import fill_in_order
from graphcore.graph.model.node import Node
from graphcore.graph.shapes.function_shapes import FunctionShapes


def graph_from_nodes(
    nodes: Sequence[NodeDef],
    library: FunctionLibraryDefinition | None = None,
    bodies: FunctionShapes | None = None,
    *,
    infers_functions: bool = True,
) -> Graph:
    """A graph of these nodes; each is added once its inputs are present, in list order.

    Args:
        nodes: complete NodeDefs (defaults filled in) in any order.
        library: the library of their ops, which becomes the graph's own; an empty one by default.
        bodies: the function bodies known to other graphs of this library that were made so; new ones are added.
        infers_functions: false leaves the results of calls unknown, where the nodes are inferred again later.

    Raises:
        NotFoundError: an op is not registered.
        InvalidArgumentError: an input is missing, or of another type, or there is a cycle.
    """
    graph = graph_with_library(library)
    graph.refiner.require_shape_inference_fns = False  # as in TensorFlow: an op without a shape function has unknown shapes here
    if bodies is not None:
        graph.refiner.bodies = bodies
    graph.refiner.infers_functions = infers_functions
    fill_in_order(graph, nodes)
    graph.refiner.infers_functions = True
    return graph


def graph_with_library(library: FunctionLibraryDefinition | None) -> Graph:
    """An empty graph with `library` itself, not a copy, as function library."""
    if library is None:
        return Graph()
    graph = Graph(library.default_registry)
    graph.library = library
    return graph


def copy_sharing_library(graph: Graph) -> tuple[Graph, dict[Node, Node]]:
    """A copy that shares the function library of `graph`, and the mapping of its nodes."""
    copy = graph_with_library(graph.library)
    copy.refiner.require_shape_inference_fns = graph.refiner.require_shape_inference_fns
    return copy, copy_graph(graph, copy)
