"""Random integers, permutations and choices; stateless random numbers."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from graphcore.errors import InvalidArgumentError
from graphcore.inference import InferenceContext
from graphcore.inference.shape_fns.common_shape_fns import random_shape, scalar_shape, unchanged_shape
from graphcore.opset.framework.block import NO_GRADIENT, Example, Kernel, KernelContext, define_op, op
from graphcore.opset.framework.families import Total
from graphcore.opset.framework.kernels import constant_ints, ints, invalid, one_int, reduction
from graphcore.opset.framework.type_sets import INDEX, REAL
from graphcore.opset.numerics.philox import (
    RESERVED_PER_OUTPUT,
    Generator,
    draw_at,
    draw_integers,
    integers,
    node_generator,
    scrambled,
    words,
)
from graphcore.registry import KernelFactory
from graphcore.traits import FailsOn

_SEEDS: Final = "seed:int = 0, seed2:int = 0"
_PHILOX: Final = 1
_AUTO: Final = 3
_MASK: Final = (1 << 64) - 1


def _scalar_bounds(c: InferenceContext, minval: int) -> None:
    """Check, with TensorFlow's error, that `minval` and the input after it are scalars."""
    for index, name in ((minval, "minval"), (minval + 1, "maxval")):
        bound = c.input(index)
        if c.rank(bound) not in {-1, 0}:
            raise InvalidArgumentError(f"{name} must be a scalar; got a tensor of shape {bound}")


def _uniform_int_shape(c: InferenceContext) -> None:
    _scalar_bounds(c, 1)
    random_shape(c)


def seeded_shape(c: InferenceContext) -> None:
    """Check that a seed is two numbers."""
    c.with_value(c.dim(c.with_rank(c.input(1), 1), 0), 2)
    random_shape(c)


def _seeded_int_shape(c: InferenceContext) -> None:
    _scalar_bounds(c, 2)
    seeded_shape(c)


@op
class RandomUniformInt:
    """Uniform integers from minval on, below maxval.

    shape: the sizes of the output, [rank]
    minval: the smallest, a scalar
    maxval: the end, not included, a scalar
    seed: with seed2 not both 0, every session gives the same numbers.
    seed2: the second half of the seed.
    """

    signature = f"RandomUniformInt[{_SEEDS}, Tout:{INDEX}, T:{INDEX}](shape:T, minval:Tout, maxval:Tout) -> (output:Tout)"
    stateful = True
    shape = _uniform_int_shape
    draws = True
    gradient = NO_GRADIENT
    examples = (Example([[2, 3], 0, 10], {"seed": 1, "seed2": 2}),)
    failures = (Example([[-1, -1], 0, 10], {"seed": 1, "seed2": 2}),)

    def kernel(k: KernelContext) -> Kernel:
        generator, dtype, constant_sizes = node_generator(k), k.dtype("Tout"), constant_ints(k, 0)

        def random(shape: Any, minval: Any, maxval: Any) -> Any:
            sizes = ints(shape) if constant_sizes is None else constant_sizes
            low, high = _bounds(k, minval, maxval)
            return draw_integers(k.xp, generator, math.prod(sizes), low, high, dtype).reshape(sizes)

        return random


def _bounds(k: KernelContext, minval: Any, maxval: Any) -> tuple[int, int]:
    low, high = one_int(k, minval), one_int(k, maxval)
    if low >= high:
        raise invalid(k, f"Need minval < maxval, got {low} >= {high}")
    return low, high


@op
class RandomShuffle:
    """The slices along the first dimension in random order.

    seed: with seed2 not both 0, every session gives the same order.
    seed2: the second half of the seed.
    """

    signature = f"RandomShuffle[{_SEEDS}, T:type](value:T) -> (output:T)"
    can_fail = False
    stateful = True
    shape = unchanged_shape
    draws = True
    gradient = NO_GRADIENT
    examples = (Example([[[1.0], [2.0], [3.0], [4.0]]], {"seed": 1, "seed2": 2}),)

    def kernel(k: KernelContext) -> Kernel:
        generator = node_generator(k)

        def shuffle(value: Any) -> Any:
            count = value.shape[0] if value.ndim else 0
            if count < 2:
                return value
            if generator.quick is not None and k.xp is np:
                return value.take(generator.quick.permutation(count), 0)
            first = generator.reserve(-(-(count - 1) // 4))
            drawn = words(np, generator, first, count - 1).tolist()
            order = list(range(count))
            for i, word in enumerate(drawn):
                j = i + word % (count - i)
                order[i], order[j] = order[j], order[i]
            return value.take(k.xp.asarray(order), 0)

        return shuffle


@op
class Multinomial:
    """Classes drawn with the probabilities of the rows of logits.

    logits: [batch, classes]
    num_samples: the number for each row, a scalar
    output: [batch, num_samples]
    seed: with seed2 not both 0, every session gives the same classes.
    seed2: the second half of the seed.
    """

    signature = f"Multinomial[{_SEEDS}, T:{REAL}, output_dtype:{INDEX} = int64](logits:T, num_samples:int32) -> (output:output_dtype)"
    draws = True
    stateful = True
    gradient = NO_GRADIENT
    examples = (Example([[[0.0, 1.0, 2.0], [3.0, -1.0, 0.5]], 5], {"seed": 1, "seed2": 2}),)
    failures = (Example([[[0.0, 1.0, 2.0], [3.0, -1.0, 0.5]], -1], {"seed": 1, "seed2": 2}),)

    def shape(c: InferenceContext) -> None:
        logits = c.with_rank(c.input(0), 2)
        c.with_rank(c.input(1), 0)
        c.set_output(0, c.matrix(c.dim(logits, 0), c.make_dim_for_scalar_input(1)))

    def kernel(k: KernelContext) -> Kernel:
        generator, dtype, xp = node_generator(k), k.dtype("output_dtype"), k.xp

        def sample(logits: Any, num_samples: Any) -> Any:
            count = checked_samples(k, logits, num_samples)
            pairs = logits.shape[0] * -(-count // 4) * 4
            first = generator.reserve(2 * pairs * RESERVED_PER_OUTPUT)
            return sampled_classes(xp, generator, first, logits, count).astype(dtype)

        return sample


def checked_samples(k: KernelContext, logits: Any, num_samples: Any) -> int:
    """The number of classes drawn from each row.

    Raises:
        InvalidArgumentError: a negative number, or rows without classes.
    """
    batch, classes = logits.shape
    count = one_int(k, num_samples)
    if count < 0 or (batch and not classes):
        raise invalid(k, f"required num_samples >= 0 and at least one class, got {count} and {classes}")
    return count


def sampled_classes(xp: Any, generator: Generator, first: int, logits: Any, count: int) -> Any:
    """Classes drawn with the probabilities of the rows of logits: [batch, count]."""
    drawn = words(xp, generator, first, 2 * logits.shape[0] * count).reshape(logits.shape[0], count, 2)
    fraction = ((drawn[..., 0] & np.uint64(0xFFFFF)) << np.uint64(32)) | drawn[..., 1]
    uniform = (fraction | np.uint64(1023 << 52)).view(np.float64) - 1.0
    wide = logits.astype(np.float64)
    weights = xp.where(xp.isfinite(wide), xp.exp(wide - reduction(xp, "maximum")(wide, 1, keepdims=True)), 0.0)
    limits = xp.cumsum(weights, 1)
    return (limits[:, None, :] <= (uniform * limits[:, -1:])[..., None]).sum(-1)


def seeded(k: KernelContext, seed: Any) -> Generator:
    """The generator for a seed of two numbers.

    Raises:
        InvalidArgumentError: the seed is something else.
    """
    if seed.shape != (2,):
        raise invalid(k, f"seed must have shape [2], not {list(seed.shape)}")
    first, second = (value & _MASK for value in ints(seed))
    return scrambled(first, second)


def _stateless(distribution: str) -> KernelFactory:
    def kernel(k: KernelContext) -> Kernel:
        dtype, constant_sizes = k.dtype("dtype"), constant_ints(k, 0)

        def random(shape: Any, seed: Any) -> Any:
            sizes = ints(shape) if constant_sizes is None else constant_sizes
            return draw_at(k.xp, seeded(k, seed), 0, distribution, math.prod(sizes), dtype).reshape(sizes)

        return random

    return kernel


_STATELESS: Final = (
    f"dtype:{{half, bfloat16, float, double}} = float, T:{INDEX} = int32, Tseed:{INDEX} = int64](shape:T, seed:Tseed) -> (output:dtype)"
)
_STATELESS_EXAMPLES: Final = (Example([[2, 3], [3, 5]]), Example([[5], np.array([-1, 7])], {"dtype": "double"}))


@op
class StatelessRandomUniformInt:
    """Uniform integers from minval on, below maxval, determined by seed, shape and bounds.

    shape: the sizes of the output, [rank]
    seed: [2]
    minval: the smallest, a scalar
    maxval: the end, not included, a scalar
    """

    signature = f"StatelessRandomUniformInt[dtype:{INDEX}, T:{INDEX}, Tseed:{INDEX} = int64](shape:T, seed:Tseed, minval:dtype, maxval:dtype) -> (output:dtype)"
    shape = _seeded_int_shape
    gradient = NO_GRADIENT
    examples = (Example([[2, 3], [3, 5], -4, 10]), Example([[5], [3, 5], np.int64(0), np.int64(1 << 40)]))
    failures = (Example([[-1, -1], [3, 5], -4, 10]),)

    def kernel(k: KernelContext) -> Kernel:
        dtype, constant_sizes = k.dtype("dtype"), constant_ints(k, 0)

        def random(shape: Any, seed: Any, minval: Any, maxval: Any) -> Any:
            sizes = ints(shape) if constant_sizes is None else constant_sizes
            return integers(k.xp, seeded(k, seed), 0, math.prod(sizes), *_bounds(k, minval, maxval), dtype).reshape(sizes)

        return random


@op
class StatelessRandomGetKeyCounter(Total):
    """The key and counter of the Philox generator for a seed.

    seed: [2]
    key: [1]
    counter: [2]
    """

    signature = f"StatelessRandomGetKeyCounter[Tseed:{INDEX} = int64](seed:Tseed) -> (key:uint64, counter:uint64)"
    gradient = NO_GRADIENT
    examples = (Example([[3, 5]]),)

    def shape(c: InferenceContext) -> None:
        c.with_value(c.dim(c.with_rank(c.input(0), 1), 0), 2)
        c.set_output(0, c.vector(1))
        c.set_output(1, c.vector(2))

    def kernel(k: KernelContext) -> Kernel:
        array = k.xp.array

        def key_counter(seed: Any) -> Any:
            generator = seeded(k, seed)
            return array([generator.key], np.uint64), array([0, generator.stream], np.uint64)

        return key_counter


@op
class StatelessRandomGetAlg:
    """The number of the algorithm that draws random numbers here: 1, for Philox."""

    signature = "StatelessRandomGetAlg() -> (alg:int32)"
    can_fail = False
    stateful = True
    shape = scalar_shape
    gradient = NO_GRADIENT
    examples = (Example([], outputs=[_PHILOX]),)

    def kernel(k: KernelContext) -> Kernel:
        alg = k.xp.array(_PHILOX, np.int32)
        return lambda: alg


def positioned(k: KernelContext, key: Any, counter: Any, alg: Any) -> tuple[Generator, int]:
    """The generator with this key, and the position in its stream."""
    if one_int(k, alg) not in {_PHILOX, _AUTO}:
        raise invalid(k, f"Unsupported algorithm id: {one_int(k, alg)}; required {_PHILOX} (Philox) or {_AUTO} (the device's own)")
    position, *stream = ints(counter)
    return Generator(one_int(k, key), stream[0] if stream else 0), position


def _stateless_v2(distribution: str) -> KernelFactory:
    def kernel(k: KernelContext) -> Kernel:
        dtype, constant_sizes = k.dtype("dtype"), constant_ints(k, 0)

        def random(shape: Any, key: Any, counter: Any, alg: Any) -> Any:
            sizes = ints(shape) if constant_sizes is None else constant_sizes
            generator, position = positioned(k, key, counter, alg)
            return draw_at(k.xp, generator, position, distribution, math.prod(sizes), dtype).reshape(sizes)

        return random

    return kernel


_V2: Final = f"dtype:{{half, bfloat16, float, double}} = float, Tshape:{INDEX} = int32](shape:Tshape, key:uint64, counter:uint64, alg:int32) -> (output:dtype)"
_V2_EXAMPLES: Final = (Example([[2, 3], [7], [1, 5], 1]), Example([[5], [7], [1, 5], 1], {"dtype": "double"}))


def v2_shape(c: InferenceContext) -> None:
    """Inputs are a shape, a key, a counter and an algorithm."""
    c.with_value(c.dim(c.with_rank(c.input(1), 1), 0), 1)
    c.with_rank(c.input(2), 1)
    c.with_rank(c.input(3), 0)
    random_shape(c)


def _v2_int_shape(c: InferenceContext) -> None:
    _scalar_bounds(c, 4)
    v2_shape(c)


def _stateless_pair(name: str, distribution: str, numbers: str) -> None:
    """Register the op that draws from a seed, and the newer one that draws from a key and a counter."""
    define_op(
        name,
        f"""{numbers}, determined by seed and shape.

        shape: the sizes of the output, [rank]
        seed: [2]
        """,
        signature=f"{name}[{_STATELESS}",
        shape=seeded_shape,
        can_fail=FailsOn(values=("shape",)),
        kernel=_stateless(distribution),
        gradient=NO_GRADIENT,
        examples=_STATELESS_EXAMPLES,
        failures=(Example([[-1, -1], [3, 5]]),),
    )
    define_op(
        f"{name}V2",
        f"""{numbers}, from a key and a counter.

        shape: the sizes of the output, [rank]
        key: [1]
        counter: [2]
        alg: the number of the algorithm, a scalar
        """,
        signature=f"{name}V2[{_V2}",
        shape=v2_shape,
        kernel=_stateless_v2(distribution),
        gradient=NO_GRADIENT,
        examples=_V2_EXAMPLES,
        failures=(Example([[2], np.array([7], np.uint64), np.array([1, 5], np.uint64), 99]),),
    )


_stateless_pair("StatelessRandomUniform", "uniform", "Uniform numbers in [0, 1)")
_stateless_pair("StatelessRandomNormal", "normal", "Normally distributed numbers")
_stateless_pair("StatelessTruncatedNormal", "truncated", "Normally distributed numbers below 2 in magnitude")


@op
class StatelessRandomUniformIntV2:
    """Uniform integers from minval on, below maxval, from a key and a counter.

    shape: the sizes of the output, [rank]
    key: [1]
    counter: [2]
    alg: the number of the algorithm, a scalar
    minval: the smallest, a scalar
    maxval: the end, not included, a scalar
    """

    signature = (
        f"StatelessRandomUniformIntV2[dtype:{{int32, int64, uint32, uint64}}, Tshape:{INDEX} = int32]"
        "(shape:Tshape, key:uint64, counter:uint64, alg:int32, minval:dtype, maxval:dtype) -> (output:dtype)"
    )
    shape = _v2_int_shape
    gradient = NO_GRADIENT
    examples = (Example([[2, 3], [7], [1, 5], 1, -4, 10]),)
    failures = (Example([[-1, -1], [7], [1, 5], 1, -4, 10]),)

    def kernel(k: KernelContext) -> Kernel:
        dtype, constant_sizes = k.dtype("dtype"), constant_ints(k, 0)

        def random(shape: Any, key: Any, counter: Any, alg: Any, minval: Any, maxval: Any) -> Any:
            sizes = ints(shape) if constant_sizes is None else constant_sizes
            generator, position = positioned(k, key, counter, alg)
            return integers(k.xp, generator, position, math.prod(sizes), *_bounds(k, minval, maxval), dtype).reshape(sizes)

        return random
