"""Random tensors. With equal seeds, the numbers equal TensorFlow's."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from graphcore.inference.shape_fns.common_shape_fns import random_shape
from graphcore.opset.framework.block import NO_GRADIENT, Example, Kernel, KernelContext, define_op
from graphcore.opset.framework.kernels import constant_ints, ints, invalid
from graphcore.opset.framework.type_sets import INDEX
from graphcore.opset.numerics.philox import draw, node_generator
from graphcore.registry import KernelFactory

_ATTRS: Final = f"seed:int = 0, seed2:int = 0, dtype:{{half, bfloat16, float, double}}, T:{INDEX}"
_EXAMPLES: Final = (
    Example([[2, 3]], {"dtype": "float", "seed": 1, "seed2": 2}),
    Example([np.array([4, 5])], {"dtype": "double", "seed": 7}),
    Example([[3]], {"dtype": "half"}),
)


def _random(distribution: str) -> KernelFactory:
    def kernel(k: KernelContext) -> Kernel:
        generator, dtype, constant_sizes = node_generator(k), k.dtype("dtype"), constant_ints(k, 0)

        def random(shape: Any) -> Any:
            sizes = ints(shape) if constant_sizes is None else constant_sizes
            if min(sizes, default=0) < 0:
                raise invalid(k, f"Dimensions of a random tensor must be >= 0, got {list(sizes)}")
            return draw(k.xp, generator, distribution, math.prod(sizes), dtype).reshape(sizes)

        return random

    return kernel


def _seeded(name: str, distribution: str, doc: str) -> None:
    """Register an op that draws numbers of that distribution."""
    define_op(
        name,
        f"""{doc}

        shape: the sizes of the output, [rank]
        seed: with seed2 not both 0, every session gives the same numbers.
        seed2: the second half of the seed.
        """,
        signature=f"{name}[{_ATTRS}](shape:T) -> (output:dtype)",
        stateful=True,
        shape=random_shape,
        draws=True,
        kernel=_random(distribution),
        gradient=NO_GRADIENT,
        examples=_EXAMPLES,
        failures=(Example([[-1, -1]], {"dtype": "float", "seed": 1, "seed2": 2}),),
    )


_seeded("RandomUniform", "uniform", "Numbers evenly distributed in [0, 1).")
_seeded("RandomStandardNormal", "normal", "Numbers of the normal distribution with mean 0 and standard deviation 1.")
_seeded("TruncatedNormal", "truncated", "Numbers of the standard normal distribution; those beyond 2 are drawn again.")
