"""Random numbers of all bits, and classes, drawn with a seed that is an input."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from graphcore.inference import InferenceContext
from graphcore.opset.framework.block import NO_GRADIENT, Example, Kernel, KernelContext, op
from graphcore.opset.framework.families import Total
from graphcore.opset.framework.kernels import constant_ints, ints
from graphcore.opset.framework.type_sets import INDEX, REAL
from graphcore.opset.numerics.philox import Generator, words
from graphcore.opset.state.random_more import checked_samples, positioned, sampled_classes, seeded, seeded_shape, v2_shape
from graphcore.traits import FailsOn

_INTEGERS: Final = "{int32, int64, uint32, uint64}"
_PHILOX: Final = 1


def _all_bits(xp: Any, generator: Generator, first: int, sizes: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    count, word_count = math.prod(sizes), dtype.itemsize // 4
    drawn = words(xp, generator, first, count * word_count).reshape(count, word_count)
    bits = drawn[:, 0] if word_count == 1 else drawn[:, 0] | (drawn[:, 1] << np.uint64(32))
    return bits.astype(f"u{dtype.itemsize}").view(dtype).reshape(sizes)


@op
class StatelessRandomUniformFullInt:
    """Uniform integers of the full range, determined by seed and shape.

    shape: the sizes of the output, [rank]
    seed: [2]
    """

    signature = (
        f"StatelessRandomUniformFullInt[dtype:{_INTEGERS} = uint64, T:{INDEX} = int32, Tseed:{_INTEGERS} = int64](shape:T, seed:Tseed) -> "
        "(output:dtype)"
    )
    shape = seeded_shape
    can_fail = FailsOn(values=("shape",))
    gradient = NO_GRADIENT
    examples = (Example([[2, 3], [3, 5]]), Example([[5], np.array([-1, 7])], {"dtype": "int32"}))
    failures = (Example([[-1, -1], [3, 5]]),)

    def kernel(k: KernelContext) -> Kernel:
        dtype, constant_sizes = k.dtype("dtype"), constant_ints(k, 0)
        return lambda shape, seed: _all_bits(k.xp, seeded(k, seed), 0, ints(shape) if constant_sizes is None else constant_sizes, dtype)


@op
class StatelessRandomUniformFullIntV2:
    """Uniform integers of the full range, from a key and a counter.

    shape: the sizes of the output, [rank]
    key: [1]
    counter: [2]
    alg: the number of the algorithm, a scalar
    """

    signature = (
        f"StatelessRandomUniformFullIntV2[dtype:{_INTEGERS} = uint64, Tshape:{INDEX} = int32]"
        "(shape:Tshape, key:uint64, counter:uint64, alg:int32) -> (output:dtype)"
    )
    shape = v2_shape
    gradient = NO_GRADIENT
    examples = (Example([[2, 3], [7], [1, 5], 1]), Example([[5], [7], [1, 5], 1], {"dtype": "int32"}))
    failures = (Example([[-1, -1], [7], [1, 5], 1]),)

    def kernel(k: KernelContext) -> Kernel:
        dtype, constant_sizes = k.dtype("dtype"), constant_ints(k, 0)

        def random(shape: Any, key: Any, counter: Any, alg: Any) -> Any:
            return _all_bits(k.xp, *positioned(k, key, counter, alg), ints(shape) if constant_sizes is None else constant_sizes, dtype)

        return random


@op
class StatelessRandomGetKeyCounterAlg(Total):
    """The key and counter of the Philox generator for a seed, with the number of the algorithm.

    seed: [2]
    key: [1]
    counter: [2]
    alg: 1, for Philox
    """

    signature = f"StatelessRandomGetKeyCounterAlg[Tseed:{INDEX} = int64](seed:Tseed) -> (key:uint64, counter:uint64, alg:int32)"
    gradient = NO_GRADIENT
    examples = (Example([[3, 5]]),)

    def shape(c: InferenceContext) -> None:
        c.with_value(c.dim(c.with_rank(c.input(0), 1), 0), 2)
        c.set_output(0, c.vector(1))
        c.set_output(1, c.vector(2))
        c.set_output(2, c.scalar())

    def kernel(k: KernelContext) -> Kernel:
        array = k.xp.array

        def key_counter(seed: Any) -> Any:
            generator = seeded(k, seed)
            return array([generator.key], np.uint64), array([0, generator.stream], np.uint64), array(_PHILOX, np.int32)

        return key_counter


@op
class StatelessMultinomial:
    """Classes drawn with the probabilities of the rows of logits, determined by the inputs.

    logits: [batch, classes]
    num_samples: the number for each row, a scalar
    seed: [2]
    output: [batch, num_samples]
    """

    signature = (
        f"StatelessMultinomial[T:{REAL}, Tseed:{INDEX} = int64, output_dtype:{INDEX} = int64](logits:T, num_samples:int32, seed:Tseed) -> "
        "(output:output_dtype)"
    )
    can_fail = FailsOn(values=("num_samples",), empty=True)
    gradient = NO_GRADIENT
    examples = (Example([[[0.0, 1.0, 2.0], [3.0, -1.0, 0.5]], 5, [3, 5]]),)
    failures = (Example([[[0.0, 1.0, 2.0], [3.0, -1.0, 0.5]], -1, [3, 5]]),)

    def shape(c: InferenceContext) -> None:
        c.with_value(c.dim(c.with_rank(c.input(2), 1), 0), 2)
        logits = c.with_rank(c.input(0), 2)
        c.with_rank(c.input(1), 0)
        c.set_output(0, c.matrix(c.dim(logits, 0), c.make_dim_for_scalar_input(1)))

    def kernel(k: KernelContext) -> Kernel:
        xp, dtype = k.xp, k.dtype("output_dtype")

        def sample(logits: Any, num_samples: Any, seed: Any) -> Any:
            count = checked_samples(k, logits, num_samples)
            return sampled_classes(xp, seeded(k, seed), 0, logits, count).astype(dtype)

        return sample
