"""`tf.initializers`: makers of initial values from shapes, and nodes that initialise variables."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Final, Self

import numpy as np

from graphcore.dtypes import DType, as_dtype, float32
from graphcore.errors import InvalidArgumentError
from graphcore.graph import Tensor, get_default_graph
from graphcore.shapes import as_shape
from graphcore.tf1 import framework, random
from graphcore.tf1.arrays.layout import reshape
from graphcore.tf1.arrays.matrices import matrix_transpose
from graphcore.tf1.arrays.ranges import eye
from graphcore.tf1.calls import apply_one
from graphcore.tf1.variables.listing import global_variables_initializer as global_variables
from graphcore.tf1.variables.listing import local_variables_initializer as local_variables
from graphcore.tf1.variables.listing import tables_initializer
from graphcore.tf1.variables.listing import variables_initializer as variables

__all__ = [
    "constant",
    "global_variables",
    "glorot_normal",
    "glorot_uniform",
    "he_normal",
    "he_uniform",
    "identity",
    "lecun_normal",
    "lecun_uniform",
    "local_variables",
    "ones",
    "orthogonal",
    "random_normal",
    "random_uniform",
    "tables_initializer",
    "truncated_normal",
    "uniform_unit_scaling",
    "variables",
    "variance_scaling",
    "zeros",
]

_TRUNCATED_DEVIATION: Final = 0.87962566103423978
"""The standard deviation of the normal distribution truncated at two of its standard deviations."""


class Initializer(ABC):
    """A function from a shape, and a dtype instead of its own, to a tensor of that shape.

    Attributes:
        dtype: the dtype of values for which no other one is asked.
    """

    _settings: ClassVar[tuple[str, ...]] = ()
    _floats_only: ClassVar[bool] = False

    def __init__(self, dtype: object = float32) -> None:
        self.dtype = as_dtype(dtype)
        if self._floats_only and not self.dtype.is_floating:
            raise InvalidArgumentError(f"{type(self).__name__}: required a floating dtype, got {self.dtype.text}")

    def __call__(self, shape: Any, dtype: object = None, partition_info: Any = None) -> Tensor:
        """A value of this shape.

        Args:
            shape: sizes.
            dtype: the dtype of the value, by default that of the initializer.
            partition_info: None; variables are kept whole.
        """
        del partition_info
        return self._make(_sizes(shape), self.dtype if dtype is None else as_dtype(dtype).base)

    @abstractmethod
    def _make(self, shape: Any, dtype: DType) -> Tensor:
        """The value of a shape and dtype."""

    def get_config(self) -> dict[str, Any]:
        """The arguments of an equal initializer, as plain values."""
        return {**{name: getattr(self, name) for name in self._settings}, "dtype": self.dtype.name}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """The initializer of a configuration that `get_config` gave."""
        return cls(**config)


def _sizes(shape: Any) -> Any:
    return shape if isinstance(shape, Tensor) else [int(size) for size in as_shape(shape).as_list() if size is not None]


class Zeros(Initializer):
    """Zeros."""

    def _make(self, shape: Any, dtype: DType) -> Tensor:
        return framework.zeros(shape, dtype)


class Ones(Initializer):
    """Ones."""

    def _make(self, shape: Any, dtype: DType) -> Tensor:
        return framework.ones(shape, dtype)


class Constant(Initializer):
    """A number for all elements, or a list or array of as many elements as the shape has.

    Args:
        value: the number, list or array.
        dtype: the dtype.
        verify_shape: require that `value` has the shape.
    """

    def __init__(self, value: Any = 0, dtype: object = float32, verify_shape: bool = False) -> None:
        if not (np.isscalar(value) or isinstance(value, list | tuple | np.ndarray)):
            raise InvalidArgumentError(f"Constant: required a number, list or array as value, got a {type(value).__name__}")
        super().__init__(dtype)
        self.value = value
        self._verify_shape = verify_shape

    _settings = ("value",)

    def __call__(self, shape: Any, dtype: object = None, partition_info: Any = None, verify_shape: bool | None = None) -> Tensor:
        """A value of this shape; `verify_shape` replaces that of the initializer."""
        del partition_info
        initializer = self if verify_shape is None else Constant(self.value, self.dtype, verify_shape)
        return initializer._make(_sizes(shape), self.dtype if dtype is None else as_dtype(dtype).base)

    def _make(self, shape: Any, dtype: DType) -> Tensor:
        return framework.constant(_filled_up(self.value, shape), dtype, shape, verify_shape=self._verify_shape)


def _filled_up(value: Any, sizes: Any) -> Any:
    """The value, its last element repeated if it has too few, as TensorFlow fills a constant."""
    array = np.asarray(value)
    count = math.prod(sizes)
    if array.size in (0, 1, count) or array.size > count:
        return value
    return np.concatenate([array.ravel(), np.full(count - array.size, array.ravel()[-1])]).reshape(sizes)


class RandomUniform(Initializer):
    """Values uniform in [minval, maxval); `maxval` is 1 by default."""

    _settings = ("minval", "maxval", "seed")

    def __init__(self, minval: Any = 0, maxval: Any = None, seed: int | None = None, dtype: object = float32) -> None:
        super().__init__(dtype)
        self.minval, self.maxval, self.seed = minval, maxval, seed

    def _make(self, shape: Any, dtype: DType) -> Tensor:
        return random.random_uniform(shape, self.minval, 1.0 if self.maxval is None else self.maxval, dtype, self.seed)


class RandomNormal(Initializer):
    """Values of a normal distribution."""

    _settings = ("mean", "stddev", "seed")
    _floats_only = True

    def __init__(self, mean: Any = 0.0, stddev: Any = 1.0, seed: int | None = None, dtype: object = float32) -> None:
        super().__init__(dtype)
        self.mean, self.stddev, self.seed = mean, stddev, seed

    def _make(self, shape: Any, dtype: DType) -> Tensor:
        return random.random_normal(shape, self.mean, self.stddev, dtype, self.seed)


class TruncatedNormal(RandomNormal):
    """Values of a normal distribution, redrawn beyond two standard deviations."""

    def _make(self, shape: Any, dtype: DType) -> Tensor:
        return random.truncated_normal(shape, self.mean, self.stddev, dtype, self.seed)


class UniformUnitScaling(Initializer):
    """Uniform values that keep the variance of a layer's input: within `factor * sqrt(3 / inputs)` of 0."""

    _settings = ("factor", "seed")
    _floats_only = True

    def __init__(self, factor: float = 1.0, seed: int | None = None, dtype: object = float32) -> None:
        super().__init__(dtype)
        self.factor, self.seed = factor, seed

    def _make(self, shape: Any, dtype: DType) -> Tensor:
        limit = math.sqrt(3 / max(float(math.prod(shape[:-1])), 1.0)) * self.factor
        return random.random_uniform(shape, -limit, limit, dtype, self.seed)


class VarianceScaling(Initializer):
    """Values with a variance of `scale` divided by the number of inputs, of outputs, or the mean of both.

    Args:
        scale: the numerator, above 0.
        mode: "fan_in", "fan_out" or "fan_avg".
        distribution: "truncated_normal" (also called "normal"), "untruncated_normal" or "uniform".
        seed: the seed of the op.
        dtype: the dtype.

    Raises:
        InvalidArgumentError: another mode or distribution, or a scale that is not above 0.
    """

    _settings: ClassVar[tuple[str, ...]] = ("scale", "mode", "distribution", "seed")
    _floats_only = True

    def __init__(
        self,
        scale: float = 1.0,
        mode: str = "fan_in",
        distribution: str = "truncated_normal",
        seed: int | None = None,
        dtype: object = float32,
    ) -> None:
        super().__init__(dtype)
        if scale <= 0.0:
            raise InvalidArgumentError(f"VarianceScaling: required a scale above 0, got {scale}")
        _require_one_of("mode", mode, ("fan_in", "fan_out", "fan_avg"))
        _require_one_of("distribution", distribution.lower(), ("normal", "uniform", "truncated_normal", "untruncated_normal"))
        self.scale, self.mode, self.distribution, self.seed = scale, mode, distribution.lower(), seed

    def _make(self, shape: Any, dtype: DType) -> Tensor:
        inputs, outputs = fans(shape)
        count = {"fan_in": inputs, "fan_out": outputs, "fan_avg": (inputs + outputs) / 2.0}[self.mode]
        variance = self.scale / max(1.0, count)
        if self.distribution == "uniform":
            limit = math.sqrt(3.0 * variance)
            return random.random_uniform(shape, -limit, limit, dtype, self.seed)
        if self.distribution == "untruncated_normal":
            return random.random_normal(shape, 0.0, math.sqrt(variance), dtype, self.seed)
        return random.truncated_normal(shape, 0.0, math.sqrt(variance) / _TRUNCATED_DEVIATION, dtype, self.seed)


def _require_one_of(what: str, value: str, allowed: Sequence[str]) -> None:
    if value not in allowed:
        raise InvalidArgumentError(f"VarianceScaling: required {', '.join(allowed)} as {what}, got {value!r}")


def fans(shape: Sequence[int]) -> tuple[float, float]:
    """The numbers of inputs and outputs of each unit of a layer. shape: that of its weights, [*kernel, inputs, outputs]."""
    if len(shape) < 2:
        size = float(shape[0]) if shape else 1.0
        return size, size
    field = math.prod(shape[:-2])
    return float(shape[-2] * field), float(shape[-1] * field)


class GlorotUniform(VarianceScaling):
    """Uniform values within `sqrt(6 / (inputs + outputs))` of 0."""

    _settings = ("seed",)

    def __init__(self, seed: int | None = None, dtype: object = float32) -> None:
        super().__init__(1.0, "fan_avg", "uniform", seed, dtype)


class GlorotNormal(VarianceScaling):
    """Values of a truncated normal distribution with a variance of `2 / (inputs + outputs)`."""

    _settings = ("seed",)

    def __init__(self, seed: int | None = None, dtype: object = float32) -> None:
        super().__init__(1.0, "fan_avg", "truncated_normal", seed, dtype)


def lecun_normal(seed: int | None = None) -> VarianceScaling:
    """An initializer with a truncated normal distribution and a variance of `1 / inputs`."""
    return VarianceScaling(1.0, "fan_in", "truncated_normal", seed)


def lecun_uniform(seed: int | None = None) -> VarianceScaling:
    """An initializer with a uniform distribution and a variance of `1 / inputs`."""
    return VarianceScaling(1.0, "fan_in", "uniform", seed)


def he_normal(seed: int | None = None) -> VarianceScaling:
    """An initializer with a truncated normal distribution and a variance of `2 / inputs`."""
    return VarianceScaling(2.0, "fan_in", "truncated_normal", seed)


def he_uniform(seed: int | None = None) -> VarianceScaling:
    """An initializer with a uniform distribution and a variance of `2 / inputs`."""
    return VarianceScaling(2.0, "fan_in", "uniform", seed)


class Identity(Initializer):
    """A matrix with `gain` on its diagonal and zeros elsewhere."""

    _settings = ("gain",)
    _floats_only = True

    def __init__(self, gain: float = 1.0, dtype: object = float32) -> None:
        super().__init__(dtype)
        self.gain = gain

    def _make(self, shape: Any, dtype: DType) -> Tensor:
        if len(shape) != 2:
            raise InvalidArgumentError(f"Identity matrix initializer can only be used for 2D matrices, got the shape {as_shape(shape)}")
        matrix = eye(shape[0], shape[1], dtype=dtype)
        return matrix if self.gain == 1.0 else framework.convert_to_tensor(self.gain, dtype) * matrix


class Orthogonal(Initializer):
    """An orthogonal matrix times `gain`; more dimensions are those of a matrix [rows, shape[-1]].

    The columns are orthonormal, or the rows if there are fewer of them.
    """

    _settings = ("gain", "seed")
    _floats_only = True

    def __init__(self, gain: float = 1.0, seed: int | None = None, dtype: object = float32) -> None:
        super().__init__(dtype)
        self.gain, self.seed = gain, seed

    def _make(self, shape: Any, dtype: DType) -> Tensor:
        if len(shape) < 2:
            raise InvalidArgumentError(f"The tensor to initialize must be at least two-dimensional, got the shape {as_shape(shape)}")
        rows, columns = math.prod(shape[:-1]), shape[-1]
        drawn = random.random_normal([max(rows, columns), min(rows, columns)], dtype=dtype, seed=self.seed)
        q, r = get_default_graph().apply_op("Qr", [drawn], {"full_matrices": False}).outputs
        q = q * apply_one("Sign", [apply_one("MatrixDiagPart", [r], None)], None)
        if rows < columns:
            q = matrix_transpose(q)
        return framework.convert_to_tensor(self.gain, dtype) * reshape(q, shape)


constant = constant_initializer = Constant
glorot_normal = glorot_normal_initializer = GlorotNormal
glorot_uniform = glorot_uniform_initializer = GlorotUniform
ones = ones_initializer = Ones
orthogonal = orthogonal_initializer = Orthogonal
random_normal = random_normal_initializer = RandomNormal
random_uniform = random_uniform_initializer = RandomUniform
truncated_normal = truncated_normal_initializer = TruncatedNormal
uniform_unit_scaling = uniform_unit_scaling_initializer = UniformUnitScaling
variance_scaling = variance_scaling_initializer = VarianceScaling
zeros = zeros_initializer = Zeros

identity = Identity
