"""Blocks of graph construction: they change the scopes of the next node, and restore them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from graphcore.brief import brief
from graphcore.device_spec import DeviceSpec
from graphcore.errors import InvalidArgumentError
from graphcore.graph.building.apply import as_held_tensor
from graphcore.graph.model.device_functions import DeviceFunction, DeviceFunctions, parsed_device
from graphcore.graph.model.names import checked_scope
from graphcore.graph.model.node import Node, Tensor
from graphcore.graph.model.plain_graph import PlainGraph
from graphcore.graph.model.scopes import VariableScopes
from graphcore.source import cell_run
from graphcore.support.critical_section import critical_contextmanager


@critical_contextmanager
def name_scope(graph: PlainGraph, name: str | None) -> Iterator[str]:
    """Prefix the names of new nodes with `name/`, made unique; None or "" goes back to the top.

    A name that ends in "/" re-enters an existing scope. Yields the prefix.
    """
    scopes = graph.scopes
    outer = scopes.name
    try:
        scopes.name = _new_scope(graph, name) if name else ""
        yield scopes.name
    finally:
        scopes.name = outer


def _new_scope(graph: PlainGraph, name: str) -> str:
    outer = graph.scopes.name
    if name.endswith("/"):
        return checked_scope(name[:-1], inner=bool(outer)) + "/"
    wanted = outer + checked_scope(name, inner=bool(outer))
    run = cell_run()
    with graph.lock:
        unique = graph.names.unique(wanted)
        graph.names.take_scope(unique, run.cell if run is not None else "")
    return unique + "/"


@critical_contextmanager
def device_scope(graph: PlainGraph, spec: str | DeviceSpec | DeviceFunction | None) -> Iterator[None]:
    """Request `spec` for new nodes: its parts replace those of the surrounding request, None clears it. A function chooses for each node."""
    scopes = graph.scopes
    if scopes.device_is_fixed:
        spec = scopes.device
    outer = scopes.device, scopes.device_functions, scopes.requests_none
    try:
        scopes.requests_none = False
        if spec is None:
            scopes.device, scopes.device_functions = "", ()
        elif callable(spec):
            scopes.device, scopes.device_functions = "", (*scopes.device_functions, (spec, scopes.device))
        else:
            parsed = parsed_device(spec)
            scopes.device = parsed.merge_unset(parsed_device(scopes.device)).to_string() if scopes.device else parsed.to_string()
        yield
    finally:
        scopes.device, scopes.device_functions, scopes.requests_none = outer


@critical_contextmanager
def only_device(graph: PlainGraph, device: str, functions: DeviceFunctions = (), *, fixed: bool) -> Iterator[None]:
    """Request `device` for new nodes, whatever is requested around.

    With `fixed`, whatever is requested within, too.
    """
    scopes = graph.scopes
    outer = scopes.device, scopes.device_functions, scopes.device_is_fixed
    try:
        scopes.device, scopes.device_functions, scopes.device_is_fixed = device, functions, fixed
        yield
    finally:
        scopes.device, scopes.device_functions, scopes.device_is_fixed = outer


@critical_contextmanager
def container_scope(graph: PlainGraph, name: str) -> Iterator[str]:
    """Put new resources (variables, queues, tables, readers) into the container `name`. Yields the name."""
    scopes = graph.scopes
    outer = scopes.container
    try:
        scopes.container = name
        yield name
    finally:
        scopes.container = outer


@critical_contextmanager
def gradient_overrides(graph: PlainGraph, names: Mapping[str, str]) -> Iterator[None]:
    """Give new nodes of some ops other gradients by name; surrounding blocks hold for the other ops."""
    scopes = graph.scopes
    outer = scopes.gradients
    try:
        scopes.gradients = {**outer, **names}
        yield
    finally:
        scopes.gradients = outer


@critical_contextmanager
def control_dependencies(graph: PlainGraph, inputs: Sequence[Any] | None) -> Iterator[None]:
    """Add control inputs to new nodes (from nodes, tensors, variables); None clears the surrounding ones."""
    scopes = graph.scopes
    outer = scopes.controls
    added: list[Node] = []
    for item in inputs or ():
        if isinstance(item, Node | Tensor) and _is_awaited_outside(graph, item):
            continue
        held = item if isinstance(item, Node) else as_held_tensor(graph, item)
        if not isinstance(held, Node | Tensor):
            raise InvalidArgumentError(f"A control dependency must be a node or a tensor, got {brief(item)}")
        graph.as_graph_element(held)
        added.append(held.node if isinstance(held, Tensor) else held)
    kept = () if inputs is None else outer
    try:
        scopes.controls = tuple(dict.fromkeys((*kept, *added)))
        yield
    finally:
        scopes.controls = outer


def _is_awaited_outside(graph: PlainGraph, held: Node | Tensor) -> bool:
    """True for a node (or reference) of a surrounding graph that the call of the function can wait for."""
    if isinstance(held, Tensor):
        return held.dtype.is_ref and graph.wait_outside(held.node)
    return graph.wait_outside(held)


@critical_contextmanager
def variable_scopes(graph: PlainGraph, variables: VariableScopes | None) -> Iterator[None]:
    """Use these variable scopes, None for none, in the block."""
    scopes = graph.scopes
    outer = scopes.variables
    try:
        scopes.variables = None if variables is None else variables.snapshot()
        yield
    finally:
        scopes.variables = outer
