"""`make_template`: a function whose variables are made by its first call, and shared by the others."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from graphcore.errors import InvalidArgumentError
from graphcore.graph import get_default_graph
from graphcore.tf1.variable_scopes.getting import is_to_be_made
from graphcore.tf1.variable_scopes.opening import variable_scope
from graphcore.tf1.variable_scopes.scope import Getter, VariableScope
from graphcore.tf1.variables.collections import GraphKeys


def make_template(
    name_: str,
    func_: Callable[..., Any],
    create_scope_now_: bool = False,
    unique_name_: str | None = None,
    custom_getter_: Getter | None = None,
    **kwargs: Any,
) -> Template:
    """A function like `func_` that makes its variables in its first call, and shares them in all others.

    Args:
        name_: the name of its variable scope, made unique.
        func_: makes variables by `gc.get_variable`.
        create_scope_now_: open the scope here, and not in the first call.
        unique_name_: the name of the scope instead, which is not made unique.
        custom_getter_: the custom getter of the scope.
        kwargs: arguments that each call passes to `func_`.

    Raises:
        InvalidArgumentError: there is no name.
    """
    if name_ is None:
        raise InvalidArgumentError("make_template: required a name, got None")
    return Template(name_, partial(func_, **kwargs) if kwargs else func_, create_scope_now_, unique_name_, custom_getter_)


class Template:
    """A function that shares its variables among its calls; see `make_template`."""

    def __init__(self, name: str, func: Callable[..., Any], create_scope_now: bool, unique_name: str | None, custom_getter: Any) -> None:
        self._name = name
        self._func = func
        self._unique_name = unique_name
        self._custom_getter = custom_getter
        self._scope: VariableScope | None = None
        self._made: list[Any] | None = None
        if create_scope_now:
            with self._new_scope(auxiliary_name_scope=False) as self._scope:
                pass

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function within its scope.

        Raises:
            InvalidArgumentError: a later call makes trainable variables.
        """
        if self._made is None or (self._made and all(is_to_be_made(variable) for variable in self._made)):
            scope = self._new_scope() if self._scope is None else variable_scope(self._scope)
            with scope as self._scope:
                return self._first_call(args, kwargs)
        with variable_scope(self._scope, reuse=True):
            return self._later_call(args, kwargs)

    def _new_scope(self, *, auxiliary_name_scope: bool = True) -> variable_scope:
        return variable_scope(self._unique_name, self._name, custom_getter=self._custom_getter, auxiliary_name_scope=auxiliary_name_scope)

    def _first_call(self, args: Any, kwargs: Any) -> Any:
        variables_before = get_default_graph().get_collection(GraphKeys.GLOBAL_VARIABLES)
        before = {variable.name for variable in variables_before if not is_to_be_made(variable)}
        result = self._func(*args, **kwargs)
        variables_after = get_default_graph().get_collection(GraphKeys.GLOBAL_VARIABLES)
        self._made = [variable for variable in variables_after if variable.name not in before and not is_to_be_made(variable)]
        return result

    def _later_call(self, args: Any, kwargs: Any) -> Any:
        graph = get_default_graph()
        before = {variable.name for variable in graph.get_collection(GraphKeys.TRAINABLE_VARIABLES)}
        result = self._func(*args, **kwargs)
        new = [variable.name for variable in graph.get_collection(GraphKeys.TRAINABLE_VARIABLES) if variable.name not in before]
        if new:
            raise InvalidArgumentError(
                f"Trainable variable {new[0]} was created when the template '{self._name}' was called after the first time, "
                "perhaps you used Variable when you meant get_variable"
            )
        return result

    @property
    def name(self) -> str:
        """The name that was given."""
        return self._name

    @property
    def func(self) -> Callable[..., Any]:
        """The function."""
        return self._func

    @property
    def variable_scope(self) -> VariableScope | None:
        """Its scope; None before the first call."""
        return self._scope

    @property
    def variable_scope_name(self) -> str | None:
        """The name of its scope; None before the first call."""
        return None if self._scope is None else self._scope.name

    @property
    def trainable_variables(self) -> list[Any]:
        """Its trainable variables."""
        return [] if self._scope is None else self._scope.trainable_variables()

    @property
    def global_variables(self) -> list[Any]:
        """Its global variables."""
        return [] if self._scope is None else self._scope.global_variables()

    @property
    def local_variables(self) -> list[Any]:
        """Its local variables."""
        return [] if self._scope is None else self._scope.local_variables()

    variables = global_variables
    trainable_weights = trainable_variables
