"""Passes over graphs: gradients, inlining, folding, merging, pruning."""

from graphcore.passes.functions.expand import ExpandInlineFunctionsOptions, expand_inline_functions
from graphcore.passes.functions.function_body import FunctionBody, function_def_to_body
from graphcore.passes.functions.graph_to_function import graph_to_function_def
from graphcore.passes.functions.inline import InlineFunctionBodyOptions, inline_function_body, is_function_call
from graphcore.passes.gradients.functions.instantiation import InstantiatedFunctions
from graphcore.passes.gradients.functions.symbolic_gradient import symbolic_gradient
from graphcore.passes.infra.alias_removal import remove_dead_nodes, remove_identity_nodes, remove_list_array_converter
from graphcore.passes.infra.declarations import PassDeclaration, declared_passes
from graphcore.passes.lower.lower import LowerOptions, lower_functional_ops
from graphcore.passes.optimize.common_subexpressions import eliminate_common_subexpressions
from graphcore.passes.optimize.constant_folding import ConstantFoldingOptions, fold_constants
from graphcore.passes.optimize.optimizing import OptimizerOptions, optimize_graph

__all__ = [
    "ConstantFoldingOptions",
    "ExpandInlineFunctionsOptions",
    "FunctionBody",
    "InlineFunctionBodyOptions",
    "InstantiatedFunctions",
    "LowerOptions",
    "OptimizerOptions",
    "PassDeclaration",
    "declared_passes",
    "eliminate_common_subexpressions",
    "expand_inline_functions",
    "fold_constants",
    "function_def_to_body",
    "graph_to_function_def",
    "inline_function_body",
    "is_function_call",
    "lower_functional_ops",
    "optimize_graph",
    "remove_dead_nodes",
    "remove_identity_nodes",
    "remove_list_array_converter",
    "symbolic_gradient",
]
