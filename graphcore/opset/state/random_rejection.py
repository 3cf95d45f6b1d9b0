"""Random numbers of gamma and Poisson distributions. With equal seeds, the numbers equal TensorFlow's."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from graphcore.inference import InferenceContext
from graphcore.opset.framework.block import Example, Kernel, KernelContext, define_op, no_registered_gradient
from graphcore.opset.framework.gradient_text import scalar
from graphcore.opset.framework.kernels import constant_ints, ints, invalid
from graphcore.opset.framework.type_sets import INDEX
from graphcore.opset.numerics.philox import RESERVED_PER_OUTPUT, Generator, node_generator
from graphcore.opset.numerics.philox_rejection import gamma, poisson
from graphcore.registry import KernelFactory

_SEEDS: Final = f"seed:int = 0, seed2:int = 0, S:{INDEX}"
_FLOATS: Final = "{half, float, double}"
_NUMBERS: Final = "{half, float, double, int32, int64}"
_Draw = Callable[[Any, Generator, int, Any], Any]


def _shape(c: InferenceContext) -> None:
    c.with_rank(c.input(0), 1)
    c.set_output(0, c.concatenate(c.make_shape_from_shape_tensor(0), c.input(1)))


def _by_parameter(attr: str, smallest: float, draw_for: Callable[[np.dtype[Any]], _Draw]) -> KernelFactory:
    """The kernel of a distribution with one parameter.

    Args:
        attr: the type attr of the output.
        smallest: the smallest parameter allowed; NaN never is.
        draw_for: makes the function that draws for an output dtype.
    """

    def kernel(k: KernelContext) -> Kernel:
        generator, dtype, constant_sizes, xp = node_generator(k), k.dtype(attr), constant_ints(k, 0), k.xp
        draw = draw_for(dtype)

        def random(shape: Any, parameters: Any) -> Any:
            sizes = ints(shape) if constant_sizes is None else constant_sizes
            flat = parameters.reshape(-1).astype(np.float64)
            if min(sizes, default=0) < 0:
                raise invalid(k, f"Dimensions of a random tensor must be >= 0, got {list(sizes)}")
            if not bool((flat >= smallest).all()):
                raise invalid(k, f"required parameters of the distribution {'>= 0' if smallest == 0 else 'other than NaN'}, got others")
            per_row = math.prod(sizes)
            first = generator.reserve(per_row * flat.size * RESERVED_PER_OUTPUT)
            drawn = draw(xp, generator, first, xp.repeat(flat, per_row))
            return drawn.reshape(flat.size, per_row).T.reshape(*sizes, *parameters.shape).astype(dtype)

        return random

    return kernel


def _gamma(_: np.dtype[Any]) -> _Draw:
    return gamma


def _poisson(dtype: np.dtype[Any]) -> _Draw:
    most = float(np.finfo(dtype).max if dtype.kind == "f" else np.iinfo(dtype).max)
    return lambda xp, generator, first, means: poisson(xp, generator, first, means, most)


def _seeded(name: str, doc: str, signature: str, **parts: Any) -> None:
    define_op(
        name,
        f"""{doc}

        shape: the sizes of the draws for each parameter, [rank]
        output: [*shape, *(shape of the parameters)]
        seed: with seed2 not both 0, every session gives the same numbers.
        seed2: the second half of the seed.
        """,
        signature=f"{name}[{_SEEDS}, {signature}",
        stateful=True,
        shape=_shape,
        draws=True,
        **parts,
    )


_seeded(
    "RandomGamma",
    "Numbers of gamma distributions with the shapes alpha and the rate 1.",
    f"T:{_FLOATS}](shape:S, alpha:T) -> (output:T)",
    kernel=_by_parameter("T", 0.0, _gamma),
    gradient=f"""[seed:int, seed2:int, S:{{int32, int64}}, T:{{half, float, double}}](shape:S, alpha:T, dy:T) -> (dshape:S, dalpha:T) {{
      y = RandomGamma[seed=$seed, seed2=$seed2, S=$S, T=$T](shape, alpha)
      by_alpha = RandomGammaGrad[T=$T](alpha, y)
      product = Mul[T=$T](dy, by_alpha)
      zero = {scalar("int32", 0)}
      one = {scalar("int32", 1)}
      rank = Size[T=$S](shape)
      axes = Range(zero, rank, one)
      dalpha = Sum[T=$T](product, axes)
      dshape = ZerosLike[T=$S](shape)
    }}""",
    examples=(
        Example([[2], [0.5, 1.0, 3.0]], {"seed": 1, "seed2": 2}, differentiable=False),
        Example([[2, 2], np.float64(2.5)], {"seed": 7}, differentiable=False),
    ),
    failures=(Example([[-1], [0.5]], {"seed": 1}),),
)
_POISSON: Final[dict[str, Any]] = {
    "kernel": _by_parameter("dtype", -math.inf, _poisson),
    "gradient": no_registered_gradient("a drawn number is whole"),
    "failures": (Example([[-1], [0.5]], {"seed": 1}),),
}
_seeded(
    "RandomPoisson",
    "Numbers of Poisson distributions with the means `rate`.",
    f'dtype:{_FLOATS}](shape:S, rate:dtype) -> (output:dtype) @deprecated(25, "Replaced by RandomPoissonV2")',
    examples=(Example([[2], [0.5, 3.0, 40.0]], {"seed": 1, "seed2": 2}),),
    **_POISSON,
)
_seeded(
    "RandomPoissonV2",
    "Numbers of Poisson distributions with the means `rate`.",
    f"R:{_NUMBERS} = double, dtype:{_NUMBERS} = int64](shape:S, rate:R) -> (output:dtype)",
    examples=(Example([[2], [0.5, 3.0, 40.0]], {"seed": 1, "seed2": 2}), Example([[5], 12.0], {"seed": 3, "dtype": "float"})),
    **_POISSON,
)
