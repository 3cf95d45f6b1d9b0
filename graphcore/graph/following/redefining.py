"""Redefinition of functions in a graph: callers use the new one, or are marked if it does not fit."""

from __future__ import annotations

from collections.abc import Iterable

from graphcore.definitions import FunctionDef
from graphcore.errors import FailedPreconditionError, GraphError
from graphcore.functions.library import FunctionLibraryDefinition, names_in_node
from graphcore.graph.following.marking import mark, unmark
from graphcore.graph.model.node import Node
from graphcore.graph.shapes.propagation import infer_downstream
from graphcore.graph.shapes.shaped_graph import ShapedGraph


def redefine_function(graph: ShapedGraph, function: FunctionDef, where: str) -> None:
    """Replace the function of the same name in the library of `graph`.

    Nodes that call it, directly or through other functions, run the new one; if its argument or result types differ, they are marked.

    Args:
        graph: the graph.
        function: the function.
        where: the cell and line that define it, for those marks.
    """
    library, name = graph.library, function.name
    before = library.find(name)
    library.replace_function(name, function)
    same_results = before is not None and _results(before) == _results(function)
    callers = functions_that_call(library, [name])
    for node in list(graph.op_nodes()):
        if callers.isdisjoint(names_in_node(node.node_def)):
            continue
        graph.journal.note(node)
        if node.op == name:
            node.registration = library.look_up(name)
            node.op_def = node.registration.op_def
        if same_results and _takes(node, function) and _argument_counts_match(library, function, node):
            unmark(graph, node)
            graph.journal.publish("replaced", node)
            infer_downstream(graph, node, include_start=True)
        else:
            mark(graph, node, _misfit(node, function, where))


def _results(function: FunctionDef) -> list[tuple[str, object]]:
    return [(arg.name, arg.type) for arg in function.signature.output_arg]


def _takes(node: Node, function: FunctionDef) -> bool:
    """True unless `node` calls `function` with arguments of wrong types."""
    if node.op != function.name:
        return True
    return [dtype.base for dtype in node.input_types] == [arg.type for arg in function.signature.input_arg]


def _argument_counts_match(library: FunctionLibraryDefinition, function: FunctionDef, node: Node) -> bool:
    """True unless a function run by `node` calls `function` with a wrong number of arguments."""
    count = len(function.signature.input_arg)
    calls = [call for body in library.reachable_definitions([node.node_def]) for call in body.node_def if call.op == function.name]
    return all(sum(text[:1] != "^" for text in call.input) == count for call in calls)


def _misfit(node: Node, function: FunctionDef, where: str) -> GraphError:
    taken = ", ".join([f"'{arg.name}'" for arg in function.signature.input_arg])
    again = "" if node.source is None else f"; run {node.source.where.partition(',')[0]} again"
    return FailedPreconditionError.at(
        node,
        f"function '{function.name}', which '{node.name}' calls, was defined again in {where} and takes other arguments now ({taken}) or gives "
        f"other results{again}",
    )


def functions_that_call(library: FunctionLibraryDefinition, names: Iterable[str]) -> set[str]:
    """The names of the functions that call one of some functions, directly or not, and their own."""
    callers = set(names)
    bodies = {function.name: {called for node in function.node_def for called in names_in_node(node)} for function in library}
    grew = True
    while grew:
        more = {other for other, called in bodies.items() if other not in callers and not callers.isdisjoint(called)}
        callers |= more
        grew = bool(more)
    return callers
