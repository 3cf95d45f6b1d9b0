"""A variable scope: a prefix of names, and defaults for the variables in it."""

from __future__ import annotations

import copy
import enum
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, Self

from graphcore.dtypes import DType, as_dtype, float32
from graphcore.errors import UnimplementedError
from graphcore.graph import Graph, get_default_graph
from graphcore.graph.graph import outermost
from graphcore.graph.model.cells import CellOwnership
from graphcore.source import current_run
from graphcore.tf1.framework import get_collection
from graphcore.tf1.variables.collections import GraphKeys


class ReuseMode(enum.Enum):
    """Ways of sharing variables, besides True and False."""

    AUTO_REUSE = 1


AUTO_REUSE: Final = ReuseMode.AUTO_REUSE
"""Take the variable of a name if there is one, and make it otherwise."""

Reuse = bool | ReuseMode | None
Getter = Callable[..., Any]


def refuse_partitioner(partitioner: object, where: str) -> None:
    """Raise an error if a variable would be divided.

    Raises:
        UnimplementedError: `partitioner` is not None.
    """
    if partitioner is not None:
        raise UnimplementedError(
            f"{where}: a partitioner divides a variable into several, each with its own name, initial value and gradient, which is not available; "
            "required None"
        )


class VariableScope:
    """A prefix of the names of variables, and defaults for the arguments of `gc.get_variable`.

    Args:
        reuse: True to take existing variables, `gc.AUTO_REUSE` to make those that are missing, False or None to make new ones.
        name: the prefix, without a "/" at its end.
        initializer, regularizer, custom_getter, dtype, use_resource, constraint: defaults of `gc.get_variable`.
        caching_device: without effect; a read is no copy.
        partitioner: None.
        name_scope: the name scope of ops that belong to it.

    Raises:
        UnimplementedError: there is a partitioner.
    """

    def __init__(
        self,
        reuse: Reuse,
        name: str = "",
        initializer: Any = None,
        regularizer: Any = None,
        caching_device: Any = None,
        partitioner: Any = None,
        custom_getter: Getter | None = None,
        name_scope: str = "",
        dtype: object = float32,
        use_resource: bool | None = None,
        constraint: Any = None,
    ) -> None:
        refuse_partitioner(partitioner, f"variable scope '{name}'")
        self._name = name
        self._initializer = initializer
        self._regularizer = regularizer
        self._reuse = reuse
        self._caching_device = caching_device
        self._custom_getter = custom_getter
        self._name_scope = name_scope
        self._dtype = as_dtype(dtype)
        self._use_resource = use_resource
        self._constraint = constraint

    @property
    def name(self) -> str:
        """The prefix of the names of variables, without a "/" at its end."""
        return self._name

    @property
    def original_name_scope(self) -> str:
        """The name scope that was opened with it, with a "/" at its end."""
        return self._name_scope

    @property
    def reuse(self) -> Reuse:
        """True, `gc.AUTO_REUSE`, or False for new variables."""
        return self._reuse

    @property
    def initializer(self) -> Any:
        """The default initializer, None for none."""
        return self._initializer

    @property
    def regularizer(self) -> Any:
        """The default regularizer, None for none."""
        return self._regularizer

    @property
    def dtype(self) -> DType:
        """The default dtype."""
        return self._dtype

    @property
    def use_resource(self) -> bool | None:
        """True for resources, None for no request."""
        return self._use_resource

    @property
    def caching_device(self) -> Any:
        """The device that was named for copies of the values."""
        return self._caching_device

    @property
    def partitioner(self) -> None:
        """None: variables are kept whole."""
        return

    @property
    def custom_getter(self) -> Getter | None:
        """The function around the look-up of a variable, None for none."""
        return self._custom_getter

    @property
    def constraint(self) -> Any:
        """The default constraint, None for none."""
        return self._constraint

    def reuse_variables(self) -> None:
        """Take existing variables from now on."""
        self._reuse = True

    def set_initializer(self, initializer: Any) -> None:
        """Set the default initializer."""
        self._initializer = initializer

    def set_regularizer(self, regularizer: Any) -> None:
        """Set the default regularizer."""
        self._regularizer = regularizer

    def set_dtype(self, dtype: object) -> None:
        """Set the default dtype."""
        self._dtype = as_dtype(dtype)

    def set_use_resource(self, use_resource: bool) -> None:
        """Make variables resources, or references, by default."""
        self._use_resource = use_resource

    def set_caching_device(self, caching_device: Any) -> None:
        """Name a device for copies of the values, without effect."""
        self._caching_device = caching_device

    def set_partitioner(self, partitioner: Any) -> None:
        """Accept None only.

        Raises:
            UnimplementedError: another one.
        """
        refuse_partitioner(partitioner, f"variable scope '{self._name}'")

    def set_custom_getter(self, custom_getter: Getter | None) -> None:
        """Set the function around the look-up of a variable."""
        self._custom_getter = custom_getter

    def get_collection(self, name: str) -> list[Any]:
        """The items of a collection with names in this scope."""
        return get_collection(name, f"{self._name}/" if self._name else None)

    def trainable_variables(self) -> list[Any]:
        """The trainable variables in this scope."""
        return self.get_collection(GraphKeys.TRAINABLE_VARIABLES)

    def global_variables(self) -> list[Any]:
        """The global variables in this scope."""
        return self.get_collection(GraphKeys.GLOBAL_VARIABLES)

    def local_variables(self) -> list[Any]:
        """The local variables in this scope."""
        return self.get_collection(GraphKeys.LOCAL_VARIABLES)

    def __repr__(self) -> str:
        return f"<gc.VariableScope '{self._name}'>"


class ScopeUse(NamedTuple):
    """The cell run that has opened a scope; no cell outside of notebooks."""

    cell: str
    execution: int


class OpenScopes(NamedTuple):
    """The current variable scope of a graph and thread, and the scopes opened so far.

    Attributes:
        current: the innermost scope.
        used: the names of opened scopes, which default names must differ from, with the runs that opened them. It is not changed in place.
    """

    current: VariableScope
    used: Mapping[str, frozenset[ScopeUse]]

    @property
    def use_resource(self) -> bool | None:
        """True for variables that are resources, None for no request."""
        return self.current.use_resource

    @property
    def shares(self) -> bool:
        """True if variables that exist are taken."""
        return bool(self.current.reuse)

    def open_unnamed(self, name: str, cells: CellOwnership) -> tuple[str, Self]:
        """Open a scope within the current one, with a name made unique. Returns its full name, and the scopes then."""
        local = self.unique(name, cells)
        full = f"{self.current.name}/{local}" if self.current.name else local
        return full, self.with_used(full)

    def snapshot(self) -> Self:
        """A copy that later changes do not affect."""
        return self._replace(current=copy.copy(self.current))

    def with_used(self, name: str) -> Self:
        """These scopes after the scope `name` was opened."""
        run = current_run.get()
        use = ScopeUse("", 0) if run is None else ScopeUse(run.cell, run.execution)
        return self._replace(used={**self.used, name: self.used.get(name, frozenset()) | {use}})

    def unique(self, name: str, cells: CellOwnership) -> str:
        """A name within the current scope that no scope has: `name`, `name_1`, ... without the prefix.

        Scopes that the last run of their cell did not open again do not count.
        """
        last = cells.last_runs
        taken = {used for used, runs in self.used.items() if any(last.get(run.cell, run.execution) == run.execution for run in runs)}
        prefix = f"{self.current.name}/" if self.current.name else ""
        number, candidate = 0, name
        while prefix + candidate in taken:
            number += 1
            candidate = f"{name}_{number}"
        return candidate


def open_scopes(graph: Graph) -> OpenScopes:
    """The variable scopes of `graph` in this thread; those of a function's body are those around it."""
    scopes = outermost(graph).scopes
    if not isinstance(scopes.variables, OpenScopes):
        scopes.variables = OpenScopes(VariableScope(reuse=False), {})
    return scopes.variables


def get_variable_scope() -> VariableScope:
    """The current variable scope of the default graph."""
    return open_scopes(get_default_graph()).current
