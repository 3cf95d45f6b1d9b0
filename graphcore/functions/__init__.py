"""Functions as values: defining them in text or from nodes."""

from graphcore.functions.define import define_function
from graphcore.functions.gradient_templates import GradientTemplate, binary_grad, reduction_grad, unary_grad
from graphcore.functions.helper import FunctionDefHelper

__all__ = ["FunctionDefHelper", "GradientTemplate", "binary_grad", "define_function", "reduction_grad", "unary_grad"]
