"""From a function body to a runnable graph: pruned, calls inlined, optimised."""

from __future__ import annotations

from graphcore.graph import Graph, Node, copy_sharing_library
from graphcore.graph.control_flow.frames import build_control_flow_info
from graphcore.passes import FunctionBody, InstantiatedFunctions, OptimizerOptions, optimize_graph
from graphcore.passes.infra.alias_removal import is_kept, prune
from graphcore.passes.optimize.redundant_calls import find_redundant_calls, merge_redundant_calls
from graphcore.plumbing import ARG, CONTROL_FLOW, RETVAL


class RunnableBody:
    """A graph to run, with its arguments, its returns, and further targets."""

    __slots__ = ("args", "graph", "rets", "targets")

    def __init__(self, graph: Graph, args: list[Node], rets: list[Node], targets: list[Node]) -> None:
        self.graph = graph
        self.args = args
        self.rets = rets
        self.targets = targets


def runnable_body(functions: InstantiatedFunctions, body: FunctionBody) -> RunnableBody:
    """Copy `body` without unneeded nodes and unused arguments, optimised.

    Needed are returns, control returns and stateful nodes. Calls are inlined, except those of recursive functions and those marked
    `_noinline`.

    Raises:
        InvalidArgumentError: its loops are malformed.
    """
    if any(node.op in CONTROL_FLOW for node in body.graph.op_nodes()):
        build_control_flow_info(body.graph)
    graph, copies = copy_sharing_library(body.graph)
    args = [copies[node] for node in body.arg_nodes]
    rets = [copies[node] for node in body.ret_nodes]
    awaited = [copies[node] for node in body.control_ret_nodes]
    prune_function_graph(graph, awaited)
    replacements = find_redundant_calls(graph.nodes)
    awaited = [replacements.get(node, node) for node in awaited]
    merge_redundant_calls(graph, replacements)
    options = OptimizerOptions(keep=frozenset([node.name for node in awaited]))
    if optimize_graph(functions, graph, options):
        # A call with control outputs is replaced by another node of its name.
        awaited = [graph.get_operation_by_name(node.name) for node in awaited]
        prune_function_graph(graph, awaited)
    targets = [node for node in graph.op_nodes() if is_kept(node) and node.op not in ARG and node.op not in RETVAL]
    return RunnableBody(graph, args, rets, [*targets, *[node for node in awaited if node not in targets]])


def prune_function_graph(graph: Graph, control_rets: list[Node]) -> bool:
    """Remove the nodes, arguments too, that neither a return nor a stateful or control-flow node needs.

    Returns True iff nodes were removed.
    """
    roots = [node for node in graph.op_nodes() if is_kept(node) and node.op not in ARG]
    return prune(graph, [*roots, *control_rets])
