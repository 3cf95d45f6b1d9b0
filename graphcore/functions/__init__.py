"""Functions as values: definition, comparison, naming, instantiation, libraries."""

from graphcore.functions.call_frame import FunctionCallFrame
from graphcore.functions.canonicalize import InstantiateOptions, canonicalize
from graphcore.functions.define import define_function
from graphcore.functions.equality import function_def_hash, function_defs_equal
from graphcore.functions.gradient_templates import GradientText, binary_grad, reduction_grad, unary_grad
from graphcore.functions.helper import FunctionDefHelper
from graphcore.functions.instantiate import (
    FunctionInstantiationHelper,
    InstantiationResult,
    arg_num_type,
    get_set_attrs,
    instantiate_function,
    validate_signature_with_attrs,
)
from graphcore.functions.library import FunctionLibraryDefinition
from graphcore.functions.placeholders import has_placeholder, substitute_placeholders

__all__ = [
    "FunctionCallFrame",
    "FunctionDefHelper",
    "FunctionInstantiationHelper",
    "FunctionLibraryDefinition",
    "GradientText",
    "InstantiateOptions",
    "InstantiationResult",
    "arg_num_type",
    "binary_grad",
    "canonicalize",
    "define_function",
    "function_def_hash",
    "function_defs_equal",
    "get_set_attrs",
    "has_placeholder",
    "instantiate_function",
    "reduction_grad",
    "substitute_placeholders",
    "unary_grad",
    "validate_signature_with_attrs",
]
