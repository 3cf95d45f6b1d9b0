"""`variable_scope`: a variable scope and a name scope for a `with` block."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from types import TracebackType
from typing import Any

from graphcore.brief import brief
from graphcore.errors import FailedPreconditionError, InvalidArgumentError
from graphcore.graph import Graph, get_default_graph
from graphcore.graph.graph import outermost
from graphcore.support.critical_section import critical_contextmanager
from graphcore.tf1.variable_scopes.scope import AUTO_REUSE, Getter, OpenScopes, Reuse, VariableScope, open_scopes, refuse_partitioner


class variable_scope:  # noqa: N801 - TF1's name
    """A block in which names of variables have a prefix, and ops a name scope of the same name.

    Args:
        name_or_scope: the name within the current scope, or a scope to enter again.
        default_name: the name instead of None; it is made unique.
        values: tensors of the block, without effect.
        initializer, regularizer, custom_getter, dtype, use_resource, constraint: defaults of `gc.get_variable`; those of the scope around it
            if None.
        caching_device: without effect; a read is no copy.
        partitioner: None.
        reuse: True to take existing variables, `gc.AUTO_REUSE` to make those that are missing; None or False for what the scope around it says.
        auxiliary_name_scope: False to open no name scope.

    Raises:
        InvalidArgumentError: there is no name, `name_or_scope` is of another type, or `reuse` is None of these.
        UnimplementedError: there is a partitioner.
    """

    def __init__(
        self,
        name_or_scope: str | VariableScope | None,
        default_name: str | None = None,
        values: Any = None,
        initializer: Any = None,
        regularizer: Any = None,
        caching_device: Any = None,
        partitioner: Any = None,
        custom_getter: Getter | None = None,
        reuse: Reuse = None,
        dtype: object = None,
        use_resource: bool | None = None,
        constraint: Any = None,
        auxiliary_name_scope: bool = True,
    ) -> None:
        del values
        if name_or_scope is None and default_name is None:
            raise InvalidArgumentError("variable_scope: required name_or_scope or default_name, got neither")
        if not isinstance(name_or_scope, str | VariableScope | None):
            raise InvalidArgumentError(f"variable_scope: required a name or a VariableScope as name_or_scope, got {brief(name_or_scope)}")
        if reuse not in (True, False, None, AUTO_REUSE):
            raise InvalidArgumentError(f"variable_scope: required True, False, None or AUTO_REUSE as reuse, got {brief(reuse)}")
        if not isinstance(auxiliary_name_scope, bool):
            raise InvalidArgumentError(f"variable_scope: required a bool as auxiliary_name_scope, got {brief(auxiliary_name_scope)}")
        refuse_partitioner(partitioner, f"variable scope '{name_or_scope if isinstance(name_or_scope, str) else default_name}'")
        self._name_or_scope = name_or_scope
        self._default_name = default_name
        self._reuse = reuse or None
        self._auxiliary_name_scope = auxiliary_name_scope
        self._custom_getter = custom_getter
        self._set = {
            "_initializer": initializer,
            "_regularizer": regularizer,
            "_caching_device": caching_device,
            "_use_resource": use_resource,
            "_constraint": constraint,
        }
        self._dtype = dtype
        self._entered: list[AbstractContextManager[VariableScope]] = []

    def __enter__(self) -> VariableScope:
        block = self._opened(get_default_graph())
        scope = block.__enter__()
        self._entered.append(block)
        return scope

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None) -> None:
        self._entered.pop().__exit__(kind, error, where)

    @critical_contextmanager
    def _opened(self, graph: Graph) -> Iterator[VariableScope]:
        name_or_scope = self._name_or_scope
        if name_or_scope is None and self._reuse:
            raise InvalidArgumentError(f"reuse={self._reuse} cannot be used without a name_or_scope", node=self._default_name or "")
        opened, scopes = open_scopes(graph), outermost(graph).scopes
        with self._name_scope(graph) as prefix:
            if isinstance(name_or_scope, VariableScope):
                scope = self._again(name_or_scope)
            else:
                scope = self._within(
                    opened, opened.unique(self._default_name or "", graph.cells) if name_or_scope is None else name_or_scope, prefix
                )
            # A scope that is entered again belongs to the run that opened it first.
            inside = (opened if isinstance(name_or_scope, VariableScope) else opened.with_used(scope.name))._replace(current=scope)
            scopes.variables = inside
            try:
                yield scope
            finally:
                after = outermost(graph).scopes.variables
                if not isinstance(after, OpenScopes) or after.current is not scope:
                    raise FailedPreconditionError("Improper nesting of variable_scope: blocks must be left in the order they were entered")
                # A scope that is entered again gives its inner scopes the same default names.
                used = inside.used if isinstance(name_or_scope, VariableScope) else _without_inner(after, scope.name)
                scopes.variables = opened._replace(used=used)

    def _name_scope(self, graph: Graph) -> AbstractContextManager[str]:
        if not self._auxiliary_name_scope:
            return graph.name_scope(graph.scopes.name or None)
        name_or_scope = self._name_or_scope
        name = (
            self._default_name
            if name_or_scope is None
            else name_or_scope
            if isinstance(name_or_scope, str)
            else name_or_scope.name.rpartition("/")[2]
        )
        return graph.name_scope(name) if name else nullcontext(graph.scopes.name)

    def _again(self, base: VariableScope) -> VariableScope:
        scope = VariableScope(
            self._reuse or base.reuse,
            base.name,
            base.initializer,
            base.regularizer,
            base.caching_device,
            None,
            base.custom_getter,
            base.original_name_scope,
            base.dtype,
            base.use_resource,
        )
        return self._adjusted(scope)

    def _within(self, opened: OpenScopes, name: str, prefix: str) -> VariableScope:
        outer = opened.current
        scope = VariableScope(
            self._reuse or outer.reuse,
            f"{outer.name}/{name}" if outer.name else name,
            outer.initializer,
            outer.regularizer,
            outer.caching_device,
            None,
            outer.custom_getter,
            prefix,
            outer.dtype,
            outer.use_resource,
            outer.constraint,
        )
        return self._adjusted(scope)

    def _adjusted(self, scope: VariableScope) -> VariableScope:
        """The scope with the settings that were given for this block."""
        vars(scope).update({name: value for name, value in self._set.items() if value is not None})
        if self._dtype is not None:
            scope.set_dtype(self._dtype)
        if self._custom_getter is not None:
            scope.set_custom_getter(_nested(self._custom_getter, scope.custom_getter))
        return scope


def _nested(custom_getter: Getter, outer: Getter | None) -> Getter:
    """A custom getter around that of the outer scope."""
    if outer is None:
        return custom_getter

    def wrapped(getter: Getter, *args: Any, **keywords: Any) -> Any:
        return custom_getter(partial(outer, getter), *args, **keywords)

    return wrapped


def _without_inner(opened: OpenScopes, name: str) -> dict[str, Any]:
    return {used: by for used, by in opened.used.items() if not used.startswith(f"{name}/")}


def variable_op_scope(
    values: Any,
    name_or_scope: str | VariableScope | None,
    default_name: str | None = None,
    initializer: Any = None,
    regularizer: Any = None,
    caching_device: Any = None,
    partitioner: Any = None,
    custom_getter: Getter | None = None,
    reuse: Reuse = None,
    dtype: object = None,
    use_resource: bool | None = None,
    constraint: Any = None,
) -> variable_scope:
    """The same as `variable_scope`, under the name and with the order of arguments of earlier versions."""
    return variable_scope(
        name_or_scope,
        default_name,
        values,
        initializer,
        regularizer,
        caching_device,
        partitioner,
        custom_getter,
        reuse,
        dtype,
        use_resource,
        constraint,
    )


def no_regularizer(_: Any) -> None:
    """No loss: a regularizer that replaces the one of a variable scope."""
    return
