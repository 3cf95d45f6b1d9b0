"""Passes: gradients, inlining, taking away what a graph does not need."""

from graphcore.passes.cleaning import remove_dead_nodes, remove_identity_nodes, remove_list_array_converter
from graphcore.passes.expand import ExpandInlineFunctionsOptions, expand_inline_functions
from graphcore.passes.function_body import FunctionBody, function_def_to_body
from graphcore.passes.graph_to_function import graph_to_function_def
from graphcore.passes.inline import InlineFunctionBodyOptions, inline_function_body, is_function_call
from graphcore.passes.instantiation import InstantiatedFunctions
from graphcore.passes.symbolic_gradient import symbolic_gradient

__all__ = [
    "ExpandInlineFunctionsOptions",
    "FunctionBody",
    "InlineFunctionBodyOptions",
    "InstantiatedFunctions",
    "expand_inline_functions",
    "function_def_to_body",
    "graph_to_function_def",
    "inline_function_body",
    "is_function_call",
    "remove_dead_nodes",
    "remove_identity_nodes",
    "remove_list_array_converter",
    "symbolic_gradient",
]
