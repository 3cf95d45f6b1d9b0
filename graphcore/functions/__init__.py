"""Functions as values: defining them in text or from nodes, instantiating them."""

from graphcore.functions.define import define_function
from graphcore.functions.gradient_templates import GradientTemplate, binary_grad, reduction_grad, unary_grad
from graphcore.functions.helper import FunctionDefHelper
from graphcore.functions.instantiate import InstantiationResult, instantiate_function
from graphcore.functions.placeholders import has_placeholder, substitute_placeholders

__all__ = [
    "FunctionDefHelper",
    "GradientTemplate",
    "InstantiationResult",
    "binary_grad",
    "define_function",
    "has_placeholder",
    "instantiate_function",
    "reduction_grad",
    "substitute_placeholders",
    "unary_grad",
]
