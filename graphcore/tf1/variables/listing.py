"""The variables of a graph, by their collections, and the nodes that initialise them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphcore.graph import Node, Tensor, get_default_graph
from graphcore.tf1.framework import get_collection, group, no_op
from graphcore.tf1.variables.choice import VariableChoice
from graphcore.tf1.variables.collections import TRAINABLE_VARIABLES, VARIABLES, GraphKeys
from graphcore.tf1.variables.variables import Variable, listed_variables


def all_variables() -> list[Variable]:
    """The variables of the default graph."""
    return get_collection(VARIABLES)


def trainable_variables(scope: str | None = None) -> list[Variable]:
    """The trainable variables of the default graph, or those with names that begin with `scope`."""
    return get_collection(TRAINABLE_VARIABLES, scope)


def global_variables(scope: str | None = None) -> list[Any]:
    """The variables that are saved and shared, or those with names that begin with `scope`."""
    return get_collection(GraphKeys.GLOBAL_VARIABLES, scope)


def local_variables(scope: str | None = None) -> list[Any]:
    """The variables of this process that are not saved, such as those of metrics."""
    return get_collection(GraphKeys.LOCAL_VARIABLES, scope)


def model_variables(scope: str | None = None) -> list[Any]:
    """The variables that a program has put into the collection of the model's variables."""
    return get_collection(GraphKeys.MODEL_VARIABLES, scope)


def moving_average_variables(scope: str | None = None) -> list[Any]:
    """The variables that have moving averages."""
    return get_collection(GraphKeys.MOVING_AVERAGE_VARIABLES, scope)


def is_variable_initialized(variable: Variable) -> Tensor:
    """True iff `variable` has a value, at run time. -> initialized: bool, a scalar."""
    return variable.is_initialized()


def initialize_variables(var_list: Sequence[Variable] | Variable, name: str = "init") -> Node:
    """A node that initialises all variables in `var_list`.

    Raises:
        InvalidArgumentError: an item is no variable.
    """
    return _initializers(VariableChoice(get_default_graph(), listed_variables("var_list", var_list)), name)


def initialize_all_variables() -> Node:
    """A node that initialises all variables, also those that earlier cells make later."""
    return _initializers(VariableChoice(get_default_graph()), "init")


def _initializers(chosen: VariableChoice, name: str) -> Node:
    def build() -> Node:
        return group(*[variable.initializer for variable in chosen.now()], name=name)

    initializers: Node = chosen.graph.derivations.derive(f"the initializers '{name}'", build, fingerprint=chosen.initializers)
    return initializers


def global_variables_initializer() -> Node:
    """A node that initialises all global variables, also those that earlier cells make later."""
    return initialize_all_variables()


def variables_initializer(var_list: Sequence[Any], name: str = "init") -> Node:
    """A node that initialises the variables in `var_list`."""
    return initialize_variables(var_list, name) if var_list else no_op(name)


def local_variables_initializer() -> Node:
    """A node that initialises all local variables."""
    return variables_initializer(local_variables())


initialize_local_variables = local_variables_initializer


def tables_initializer(name: str = "init_all_tables") -> Node:
    """A node that initialises all tables."""
    tables = get_collection(GraphKeys.TABLE_INITIALIZERS)
    return group(*tables, name=name) if tables else no_op(name)


initialize_all_tables = tables_initializer
