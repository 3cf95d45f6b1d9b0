"""The scopes of the next node, by thread: name, device, control dependencies and variables."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Protocol, Self

from graphcore.graph.model.cells import CellOwnership
from graphcore.graph.model.device_functions import DeviceFunctions
from graphcore.graph.model.node import Node


class VariableScopes(Protocol):
    """The open variable scopes, and the names that were given to them."""

    @property
    def use_resource(self) -> bool | None:
        """True for variables that are resources, None for no request."""

    @property
    def shares(self) -> bool:
        """True if variables that exist are taken."""

    def open_unnamed(self, name: str, cells: CellOwnership) -> tuple[str, Self]:
        """Open a scope within the current one, with a name made unique. Returns its full name, and the scopes then."""

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
