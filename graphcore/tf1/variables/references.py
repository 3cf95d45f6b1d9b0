"""Variables that functions, branches and loops change, by handles.

A body gets a handle of the variable's storage, for a reference variable too. What its expressions read follows the rule of whole graphs (see `runtime.core.late_reads`): an
expression that waits for a change within the body reads after it. Any other reads the value before the call, in loops that before the round.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from graphcore.dtypes import resource
from graphcore.graph import Graph, Node, Tensor, get_default_graph
from graphcore.graph.graph import outermost, surrounding
from graphcore.graph.model.node import producers_of
from graphcore.graph.model.search import reachable
from graphcore.graph.tracing import FunctionGraph
from graphcore.plumbing import MERGE, VALUE_OF
from graphcore.tf1.variables.storage import Storage


def body_that_changes(variable: Storage) -> FunctionGraph | None:
    """The body being built, if it is one that cannot take the reference of `variable` itself."""
    here = get_default_graph()
    return here if isinstance(here, FunctionGraph) and not variable.is_resource and variable.graph in surrounding(here) else None


def handle_here(variable: Storage) -> Tensor:
    """The handle or reference by which nodes of the graph being built change `variable`."""
    body = body_that_changes(variable)
    return variable.handle if body is None else handle_within(variable, body)


def handle_within(variable: Storage, body: FunctionGraph) -> Tensor:
    """A handle of `variable` for a change in `body`, and the bodies around it."""
    bodies = [graph for graph in (body, *surrounding(body)) if isinstance(graph, FunctionGraph)]
    body.capture(variable.snapshot)  # the call follows the variable when its cell runs again
    handle = bodies[-1].references.get(variable.snapshot)
    if handle is None:
        handle = _handle(variable, outermost(body))
    for graph in bodies:
        graph.references[variable.snapshot] = handle
    return handle


def _handle(variable: Storage, root: Graph) -> Tensor:
    """A handle of the storage of `variable`, which follows its declaration."""

    def build() -> Tensor:
        node = root.present(variable.handle).node
        attrs = {
            "dtype": node.attr["dtype"],
            "shape": node.attr["shape"],
            "container": node.attr.get("container", b""),
            "shared_name": node.attr.get("shared_name") or node.name.encode(),
            "_class": [f"loc:@{node.name}"],
            VALUE_OF: node.name.encode(),
        }
        with root.as_default(), root.name_scope(None), root.control_dependencies(None), root.device(None), root.device(node.device or None):
            return root.apply_op("VarHandleOp", [], attrs, f"{node.name}/handle").outputs[0]

    handle: Tensor = root.derivations.derive(f"the handle of '{variable.op.name}'", build, depends_on=[variable.handle])
    return handle


def value_within(variable: Storage, body: FunctionGraph, changed: Node) -> Tensor:
    """The value of `variable` after the node of `body` that changes it."""
    return _read(body, body.references[variable.snapshot], [changed])


def settle_references(body: FunctionGraph, *, repeats: bool = False, changed: Sequence[Tensor] = ()) -> dict[Tensor, Tensor]:
    """Let the finished `body` read the variables that it changes when it has to.

    Args:
        repeats: True for the body of a loop, whose rounds change what the next ones read.
        changed: handles of resource variables that change between rounds, besides those that `body` itself changes.

    Returns:
        The arguments with values from before a loop, each with what to use instead.
    """
    instead: dict[Tensor, Tensor] = {}
    references = [(_argument(body, snapshot), handle) for snapshot, handle in body.references.items()]
    for before, handle in [*references, *_reads_of_changed(body, {*changed, *changed_resources(body)})]:
        if before is None:
            continue
        argument = body.capture(handle)
        writers = [node for node, slot in body.tensor_consumers(argument) if slot >= 0 and not node.registration.traits.reads_variable]
        after = reachable(writers, lambda node: [consumer for consumer, _ in body.consumers(node)])
        for node, slot in list(body.tensor_consumers(before)):
            waited = [producer for producer in dict.fromkeys(producers_of(node)) if producer in after]
            if waited and node.op not in MERGE:
                body.update_edge(_read(body, handle, waited).node, 0, node, slot)
            elif repeats:
                if before not in instead:
                    instead[before] = _read(body, handle)
                body.update_edge(instead[before].node, 0, node, slot)
        if repeats and before not in instead:
            instead[before] = _read(body, handle)
        for writer in writers if before in instead else ():
            body.add_control_edge(instead[before].node, writer)
    return instead


def changed_resources(body: FunctionGraph) -> list[Tensor]:
    """The handles, outside of all functions, of the resources that nodes of `body` may change."""
    return [
        _origin(outer)
        for outer, argument in body.captures.items()
        if outer.dtype is resource
        and any(slot >= 0 and not node.registration.traits.reads_variable for node, slot in body.tensor_consumers(argument))
    ]


def _reads_of_changed(body: FunctionGraph, changed: Collection[Tensor]) -> list[tuple[Tensor, Tensor]]:
    """The arguments that are values of changed resource variables, each with the handle of its variable."""
    pairs = []
    for outer, argument in body.captures.items() if changed else ():
        node = _origin(outer).node
        handle = _origin(node.inputs[0]) if node.registration.traits.reads_variable == "whole" else None
        if handle is not None and handle in changed:
            pairs.append((argument, handle))
    return pairs


def _origin(tensor: Tensor) -> Tensor:
    """The tensor outside of all functions that an argument stands for; another tensor itself."""
    graph = tensor.graph
    while isinstance(graph, FunctionGraph):
        outer = next((outer for outer, argument in graph.captures.items() if argument is tensor), None)
        if outer is None:
            return tensor
        tensor, graph = outer, outer.graph
    return tensor


def _read(body: FunctionGraph, handle: Tensor, after: Sequence[Node] = ()) -> Tensor:
    """A read in `body` that waits for nothing but the nodes `after`."""
    with body.as_default(), body.control_dependencies(None), body.control_dependencies(after):
        return body.apply_op("ReadVariableOp", [handle], {"dtype": handle.node.attr["dtype"]}, None).outputs[0]


def _argument(body: FunctionGraph, tensor: Tensor) -> Tensor | None:
    """The argument of `body` for a tensor of a surrounding graph, None if it does not take it."""
    outer = body.outer
    if outer is not tensor.graph:
        outer_argument = _argument(outer, tensor) if isinstance(outer, FunctionGraph) else None
        if outer_argument is None:
            return None
        tensor = outer_argument
    return body.captures.get(tensor)
