"""Makes the ops of two tensors that compute each element separately, with broadcasting."""

from __future__ import annotations

from typing import Any

from graphcore.inference.shape_fns.common_shape_fns import broadcast_binary_op_shape_fn
from graphcore.opset.framework.block import NO_GRADIENT, Example, define_op
from graphcore.registry import KernelFactory


def binary(
    name: str,
    doc: str,
    kernel: KernelFactory,
    *examples: Example,
    types: str,
    output: str = "T",
    gradient: Any = NO_GRADIENT,
    commutative: bool = False,
    family: type = object,
) -> type:
    """Register an op `z = f(x, y)` whose inputs are broadcast against each other.

    Args:
        name: the name of the op.
        doc: the docstring of its block.
        kernel: the kernel.
        examples: the examples.
        types: the types of x and y, and further attrs.
        output: the type of z.
        gradient: the gradient, as a block has it.
        commutative: the order of x and y does not matter.
        family: the class that the block inherits from.
    """
    return define_op(
        name,
        doc,
        family,
        signature=f"{name}[T:{types}](x:T, y:T) -> (z:{output})",
        shape=broadcast_binary_op_shape_fn,
        kernel=kernel,
        gradient=gradient,
        examples=examples,
        commutative=commutative,
    )
