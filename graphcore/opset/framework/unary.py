"""Makes the ops of one tensor that compute each element separately."""

from __future__ import annotations

from typing import Any

from graphcore.functions import unary_grad
from graphcore.inference.shape_fns.common_shape_fns import unchanged_shape
from graphcore.opset.framework.block import Example, define_op
from graphcore.opset.framework.gradient_text import holomorphic
from graphcore.opset.framework.type_sets import FLOATING
from graphcore.registry import KernelFactory


def unary(
    name: str,
    doc: str,
    kernel: KernelFactory,
    gradient: Any,
    *examples: Example,
    types: str = FLOATING,
    output: str = "T",
    cost: str | None = None,
    family: type = object,
    exact_gradient: Any = None,
) -> type:
    """Register an op `y = f(x)` whose output has the shape of its input.

    Args:
        name: the name of the op.
        doc: the docstring of its block.
        kernel: the kernel.
        gradient: the body that computes `dx` from `x` and `dy`, for a function that is holomorphic if complex types are allowed; or a whole
            gradient, as a block has it.
        examples: the examples.
        types: the types of x.
        output: the type of y.
        cost: this trait, unless it is the default.
        family: the class that the block inherits from.
        exact_gradient: a whole gradient that is right at more points.
    """
    if isinstance(gradient, str):
        template = unary_grad(gradient)
        gradient = holomorphic(template) if "complex" in types else template
    return define_op(
        name,
        doc,
        family,
        signature=f"{name}[T:{types}](x:T) -> (y:{output})",
        shape=unchanged_shape,
        kernel=kernel,
        gradient=gradient,
        examples=examples,
        **({} if cost is None else {"cost": cost}),
        **({} if exact_gradient is None else {"exact_gradient": exact_gradient}),
    )
