"""The scopes of graph construction: name, device, control dependencies and variables."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, Self

from graphcore.brief import brief
from graphcore.device_spec import DeviceSpec
from graphcore.errors import InvalidArgumentError
from graphcore.graph.building.apply import as_held_tensor
from graphcore.graph.building.device_functions import DeviceFunction, DeviceFunctions, parsed_device
from graphcore.graph.model.names import checked_scope
from graphcore.graph.model.node import Node, Tensor
from graphcore.source import cell_run
from graphcore.support.critical_section import critical_contextmanager

if TYPE_CHECKING:
    from graphcore.graph.graph import Graph


class VariableScopes(Protocol):
    """The open variable scopes, and the names that were given to them."""

    @property
    def use_resource(self) -> bool | None:
        """True for variables that are resources, None for no request."""

    @property
    def shares(self) -> bool:
        """True if variables that exist are taken."""

    def open_unnamed(self, graph: Graph, name: str) -> str:
        """Note a scope within the current one as opened. Returns its full name, which is made unique among the opened ones."""

    def snapshot(self) -> Self:
        """A copy that later changes do not affect."""


class ScopeStack:
    """The scopes of the next node.

    Attributes:
        name: the current name scope with a trailing "/", "" at the top.
        container: the container of new resources, "" for the default one.
        device: the merged request of the device blocks; inside a block with a device function, of the blocks within the innermost one.
        device_functions: functions that choose devices, each with the request around it, outermost first.
        device_is_fixed: True within `colocate_with` of a node with a device, which later requests do not change.
        is_entered: True within `as_default` of the graph.
        around_colocation: the device and device functions around the outermost `colocate_with` since `as_default`, None outside of one.
        requests_none: True directly within `colocate_with`, outside of any device block in it.
        controls: the control inputs of every new node.
        colocated: the groups, as in attr `_class`, that every new node shares its device with.
        gradients: by op, the name of the gradient that replaces the op's own.
        variables: the variable scopes, None before any was opened.
    """

    __slots__ = (
        "around_colocation",
        "colocated",
        "container",
        "controls",
        "device",
        "device_functions",
        "device_is_fixed",
        "gradients",
        "is_entered",
        "name",
        "requests_none",
        "variables",
    )

    def __init__(self) -> None:
        self.name = ""
        self.container = ""
        self.device = ""
        self.device_functions: DeviceFunctions = ()
        self.device_is_fixed = False
        self.is_entered = False
        self.around_colocation: tuple[str, DeviceFunctions] | None = None
        self.requests_none = False
        self.controls: tuple[Node, ...] = ()
        self.colocated: tuple[bytes, ...] = ()
        self.gradients: Mapping[str, str] = {}
        self.variables: VariableScopes | None = None


class ThreadScopes(threading.local):
    """The scopes of each thread, which do not affect the nodes of other threads.

    Attributes:
        here: the scopes of this thread; a new thread begins without any.
    """

    def __init__(self) -> None:
        self.here = ScopeStack()


@critical_contextmanager
def name_scope(graph: Graph, name: str | None) -> Iterator[str]:
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


def _new_scope(graph: Graph, name: str) -> str:
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
def device_scope(graph: Graph, spec: str | DeviceSpec | DeviceFunction | None) -> Iterator[None]:
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
def only_device(graph: Graph, device: str, functions: DeviceFunctions = (), *, fixed: bool) -> Iterator[None]:
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
def container_scope(graph: Graph, name: str) -> Iterator[str]:
    """Put new resources (variables, queues, tables, readers) into the container `name`. Yields the name."""
    scopes = graph.scopes
    outer = scopes.container
    try:
        scopes.container = name
        yield name
    finally:
        scopes.container = outer


@critical_contextmanager
def gradient_overrides(graph: Graph, names: Mapping[str, str]) -> Iterator[None]:
    """Give new nodes of some ops other gradients by name; surrounding blocks hold for the other ops."""
    scopes = graph.scopes
    outer = scopes.gradients
    try:
        scopes.gradients = {**outer, **names}
        yield
    finally:
        scopes.gradients = outer


@critical_contextmanager
def control_dependencies(graph: Graph, inputs: Sequence[Any] | None) -> Iterator[None]:
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


def _is_awaited_outside(graph: Graph, held: Node | Tensor) -> bool:
    """True for a node (or reference) of a surrounding graph that the call of the function can wait for."""
    if isinstance(held, Tensor):
        return held.dtype.is_ref and graph.wait_outside(held.node)
    return graph.wait_outside(held)


@critical_contextmanager
def variable_scopes(graph: Graph, variables: VariableScopes | None) -> Iterator[None]:
    """Use these variable scopes, None for none, in the block."""
    scopes = graph.scopes
    outer = scopes.variables
    try:
        scopes.variables = None if variables is None else variables.snapshot()
        yield
    finally:
        scopes.variables = outer
