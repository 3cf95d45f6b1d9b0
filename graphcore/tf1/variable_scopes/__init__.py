"""Variable scopes and the variables that are found by their names in them."""

from graphcore.tf1.variable_scopes.getting import get_local_variable, get_variable
from graphcore.tf1.variable_scopes.opening import no_regularizer, variable_op_scope, variable_scope
from graphcore.tf1.variable_scopes.scope import AUTO_REUSE, VariableScope, get_variable_scope
from graphcore.tf1.variable_scopes.templates import make_template

__all__ = [
    "AUTO_REUSE",
    "VariableScope",
    "get_local_variable",
    "get_variable",
    "get_variable_scope",
    "make_template",
    "no_regularizer",
    "variable_op_scope",
    "variable_scope",
]
