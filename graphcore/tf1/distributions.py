"""`tf.distributions`, as programs of reinforcement learning use them: normal and discrete ones."""

from __future__ import annotations

import math
from typing import Any, Final

from graphcore.dtypes import as_dtype, int32
from graphcore.errors import InvalidArgumentError
from graphcore.graph import Tensor
from graphcore.tf1 import nn
from graphcore.tf1.arrays.layout import concat, one_hot, ones_like, reshape, shape, transpose, zeros_like
from graphcore.tf1.calls import apply_one
from graphcore.tf1.framework import convert_to_tensor, name_scope
from graphcore.tf1.math.elementwise import cast, exp, log, square
from graphcore.tf1.math.reductions import argmax, reduce_prod, reduce_sum
from graphcore.tf1.random import multinomial, random_normal, random_uniform

__all__ = ["Bernoulli", "Categorical", "Normal", "kl_divergence"]

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


class _Discrete:
    """A distribution with `logits` or `probs`."""

    def __init__(self, logits: Any, probs: Any, dtype: Any, name: str) -> None:
        if (logits is None) is (probs is None):
            raise InvalidArgumentError(f"{name}: required one of logits and probs")
        self.name, self.dtype = name, as_dtype(dtype)
        self._given = "probs" if logits is None else "logits"
        with name_scope(name):
            self._values = convert_to_tensor(probs if logits is None else logits, name=self._given)

    def prob(self, value: Any, name: str = "prob") -> Tensor:
        """The probabilities of values."""
        return exp(self.log_prob(value, name))

    def log_prob(self, value: Any, name: str = "log_prob") -> Tensor:
        """The logarithms of the probabilities of values."""
        with name_scope(f"{self.name}/{name}"):
            return self._log_prob(convert_to_tensor(value))

    def _log_prob(self, value: Tensor) -> Tensor:
        raise InvalidArgumentError(f"{type(self).__name__} has no log_prob for {value.name}")


class Categorical(_Discrete):
    """Distributions over the numbers of classes.

    Args:
        logits, probs: [..., classes], floats: the logarithms of probabilities, up to a sum, or the probabilities; one of both.
        dtype: the dtype of samples.
        validate_args, allow_nan_stats: have no effect.
        name: the name scope of the nodes.
    """

    def __init__(
        self,
        logits: Any = None,
        probs: Any = None,
        dtype: Any = int32,
        validate_args: bool = False,  # noqa: ARG002 - TensorFlow's, without effect here
        allow_nan_stats: bool = True,  # noqa: ARG002 - TensorFlow's, without effect here
        name: str = "Categorical",
    ) -> None:
        super().__init__(logits, probs, dtype, name)
        self.logits = self._values if self._given == "logits" else log(self._values)
        self.probs = nn.softmax(self._values) if self._given == "logits" else self._values

    def sample(self, sample_shape: Any = (), seed: int | None = None, name: str = "sample") -> Tensor:
        """Draw numbers of classes: [*sample_shape, ...]."""
        with name_scope(f"{self.name}/{name}"):
            first, batch = reshape(convert_to_tensor(sample_shape, int32), [-1]), shape(self.logits)[:-1]
            rows = reshape(self.logits, concat([[-1], shape(self.logits)[-1:]], 0))
            drawn = multinomial(rows, reduce_prod(first), seed=seed)
            return cast(reshape(transpose(drawn), concat([first, batch], 0)), self.dtype)

    def _log_prob(self, value: Tensor) -> Tensor:
        normalized = apply_one("LogSoftmax", [self.logits], None)
        return reduce_sum(one_hot(value, shape(self.logits)[-1], dtype=normalized.dtype.base) * normalized, -1)

    def entropy(self, name: str = "entropy") -> Tensor:
        """The entropies: [...]."""
        with name_scope(f"{self.name}/{name}"):
            normalized = apply_one("LogSoftmax", [self.logits], None)
            return -reduce_sum(exp(normalized) * normalized, -1)

    def mode(self, name: str = "mode") -> Tensor:
        """The most probable classes: [...]."""
        with name_scope(f"{self.name}/{name}"):
            return cast(argmax(self.logits, -1), self.dtype)

    def kl_divergence(self, other: Categorical, name: str = "kl_divergence") -> Tensor:
        """The divergences of these distributions from others: [...]."""
        with name_scope(f"{self.name}/{name}"):
            mine, theirs = [apply_one("LogSoftmax", [distribution.logits], None) for distribution in (self, other)]
            return reduce_sum(exp(mine) * (mine - theirs), -1)


class Bernoulli(_Discrete):
    """Distributions over 0 and 1.

    Args:
        logits, probs: [...], floats: the logarithms of the odds of 1, or its probabilities; one of both.
        dtype: the dtype of samples.
        validate_args, allow_nan_stats: have no effect.
        name: the name scope of the nodes.
    """

    def __init__(
        self,
        logits: Any = None,
        probs: Any = None,
        dtype: Any = int32,
        validate_args: bool = False,  # noqa: ARG002 - TensorFlow's, without effect here
        allow_nan_stats: bool = True,  # noqa: ARG002 - TensorFlow's, without effect here
        name: str = "Bernoulli",
    ) -> None:
        super().__init__(logits, probs, dtype, name)
        self.probs = nn.sigmoid(self._values) if self._given == "logits" else self._values
        self.logits = self._values if self._given == "logits" else log(self._values) - log(1.0 - self._values)

    def sample(self, sample_shape: Any = (), seed: int | None = None, name: str = "sample") -> Tensor:
        """Draw zeros and ones: [*sample_shape, ...]."""
        with name_scope(f"{self.name}/{name}"):
            sizes = concat([reshape(convert_to_tensor(sample_shape, int32), [-1]), shape(self.probs)], 0)
            return cast(random_uniform(sizes, dtype=self.probs.dtype.base, seed=seed) < self.probs, self.dtype)

    def _log_prob(self, value: Tensor) -> Tensor:
        return -nn.sigmoid_cross_entropy_with_logits(labels=cast(value, self.logits.dtype.base), logits=self.logits)

    def mean(self, name: str = "mean") -> Tensor:
        """The probabilities of 1: [...]."""
        return apply_one("Identity", [self.probs], f"{self.name}/{name}")

    def entropy(self, name: str = "entropy") -> Tensor:
        """The entropies: [...]."""
        with name_scope(f"{self.name}/{name}"):
            return nn.sigmoid_cross_entropy_with_logits(labels=self.probs, logits=self.logits)
