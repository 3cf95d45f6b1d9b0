"""From a function body to what runs: pruned, its calls inlined."""

from __future__ import annotations

from typing import Final

from graphcore.graph import Graph, Node, copy_sharing_library
from graphcore.passes import (
    FunctionBody,
    InstantiatedFunctions,
    expand_inline_functions,
    remove_dead_nodes,
    remove_identity_nodes,
    remove_list_array_converter,
)
from graphcore.passes.cleaning import is_kept, prune
from graphcore.passes.inline import is_function_call
from graphcore.passes.recursion import InlinableFunctions
from graphcore.passes.rewriting import Rewriting
from graphcore.text.printer import ARG_OPS, RET_OPS

_MAX_ROUNDS: Final = 10


class RunnableBody:
    """A graph to run, with its arguments, its returns, and what must run besides the returns."""

    __slots__ = ("args", "graph", "rets", "targets")

    def __init__(self, graph: Graph, args: list[Node], rets: list[Node], targets: list[Node]) -> None:
        self.graph = graph
        self.args = args
        self.rets = rets
        self.targets = targets


def runnable_body(functions: InstantiatedFunctions, body: FunctionBody) -> RunnableBody:
    """A copy of `body` without the nodes that no return, control return or stateful node needs, unused arguments too.

    Calls are inlined, but for those of functions that call themselves and those that are marked `_noinline`.
    """
    graph, copies = copy_sharing_library(body.graph)
    args = [copies[node] for node in body.arg_nodes]
    rets = [copies[node] for node in body.ret_nodes]
    awaited = [copies[node] for node in body.control_ret_nodes]
    prune_function_graph(graph, awaited)
    library = functions.library
    if any(node.op == "Identity" or is_function_call(library, node.node_def) for node in awaited):
        # Who waits for a node goes on waiting for what comes in its place, so the control returns become inputs of one node.
        with Rewriting(graph) as rewriting:
            awaited = [rewriting.no_op("Func/control_return", awaited, awaited[0])]
    remove_list_array_converter(graph)
    source = InlinableFunctions(functions)
    inlined = False
    for _ in range(_MAX_ROUNDS):
        if not expand_inline_functions(source, graph):
            break
        inlined = True
        remove_list_array_converter(graph)
    if inlined:
        remove_identity_nodes(graph)
        remove_dead_nodes(graph)
    targets = [node for node in graph.op_nodes() if is_kept(node) and node.op not in ARG_OPS and node.op not in RET_OPS]
    return RunnableBody(graph, args, rets, [*targets, *[node for node in awaited if node not in targets]])


def prune_function_graph(graph: Graph, control_rets: list[Node]) -> bool:
    """Remove what no return, control return, stateful or control-flow node needs, arguments among it. True iff there was any."""
    roots = [node for node in graph.op_nodes() if is_kept(node) and node.op not in ARG_OPS]
    return prune(graph, [*roots, *control_rets])
