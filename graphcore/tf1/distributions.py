"""`tf.distributions`: the normal distribution, as programs of reinforcement learning use it."""

from __future__ import annotations

import math
from typing import Any, Final

from graphcore.errors import InvalidArgumentError
from graphcore.graph import Tensor
from graphcore.tf1.arrays.layout import concat, ones_like, reshape, shape, zeros_like
from graphcore.tf1.framework import convert_to_tensor, name_scope
from graphcore.tf1.math.elementwise import exp, log, square
from graphcore.tf1.random import random_normal

__all__ = ["Normal", "kl_divergence"]

_HALF_LOG_OF_TWO_PI: Final = 0.5 * math.log(2.0 * math.pi)


class Normal:
    """Normal distributions with means `loc` and standard deviations `scale`, which are broadcast.

    Args:
        loc: [...], floats.
        scale: [...], floats above 0.
        validate_args, allow_nan_stats: have no effect.
        name: the name scope of the nodes.
    """

    def __init__(
        self,
        loc: Any,
        scale: Any,
        validate_args: bool = False,  # noqa: ARG002 - TensorFlow's, without effect here
        allow_nan_stats: bool = True,  # noqa: ARG002 - TensorFlow's, without effect here
        name: str = "Normal",
    ) -> None:
        self.name = name
        with name_scope(name):
            self.loc = convert_to_tensor(loc, name="loc")
            self.scale = convert_to_tensor(scale, self.loc.dtype.base, name="scale")
        if not self.loc.dtype.base.is_floating:
            raise InvalidArgumentError(f"loc and scale must be floats, got {self.loc.dtype.text}")
        self.dtype = self.loc.dtype.base

    def mean(self, name: str = "mean") -> Tensor:
        """The means: [...]."""
        with name_scope(f"{self.name}/{name}"):
            return self.loc * ones_like(self.scale)

    mode = mean

    def stddev(self, name: str = "stddev") -> Tensor:
        """The standard deviations: [...]."""
        with name_scope(f"{self.name}/{name}"):
            return self.scale * ones_like(self.loc)

    def variance(self, name: str = "variance") -> Tensor:
        """The variances: [...]."""
        return square(self.stddev(name))

    def sample(self, sample_shape: Any = (), seed: int | None = None, name: str = "sample") -> Tensor:
        """Draw numbers: [*sample_shape, ...]."""
        with name_scope(f"{self.name}/{name}"):
            first = reshape(convert_to_tensor(sample_shape, "int32"), [-1])
            sizes = concat([first, shape(self.loc + zeros_like(self.scale))], 0)
            return random_normal(sizes, dtype=self.dtype, seed=seed) * self.scale + self.loc

    def log_prob(self, value: Any, name: str = "log_prob") -> Tensor:
        """The logarithms of the densities at `value`: its shape, broadcast against [...]."""
        with name_scope(f"{self.name}/{name}"):
            return -0.5 * square((value - self.loc) / self.scale) - (_HALF_LOG_OF_TWO_PI + log(self.scale))

    def prob(self, value: Any, name: str = "prob") -> Tensor:
        """The densities at `value`: its shape, broadcast against [...]."""
        return exp(self.log_prob(value, name))

    def entropy(self, name: str = "entropy") -> Tensor:
        """The entropies: [...]."""
        with name_scope(f"{self.name}/{name}"):
            return 0.5 + _HALF_LOG_OF_TWO_PI + log(self.stddev())

    def kl_divergence(self, other: Normal, name: str = "kl_divergence") -> Tensor:
        """The divergences of these distributions from others: [...]."""
        with name_scope(f"{self.name}/{name}"):
            ratio = square(self.scale / other.scale)
            return square((self.loc - other.loc) / other.scale) * 0.5 + 0.5 * (ratio - 1.0 - log(ratio))


def kl_divergence(
    distribution_a: Normal,
    distribution_b: Normal,
    allow_nan_stats: bool = True,  # noqa: ARG001 - TensorFlow's, without effect here
    name: str = "KullbackLeibler",
) -> Tensor:
    """The divergences of distributions from others: [...]."""
    return distribution_a.kl_divergence(distribution_b, name)
