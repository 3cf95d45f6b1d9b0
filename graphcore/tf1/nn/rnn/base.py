"""The base classes of recurrent cells."""

from __future__ import annotations

from typing import Any, NamedTuple

from graphcore.dtypes import DType, as_dtype
from graphcore.errors import InvalidArgumentError
from graphcore.graph import Tensor
from graphcore.graph.shapes.constant_values import constant_value
from graphcore.shapes import Shape, as_shape
from graphcore.tf1 import nest
from graphcore.tf1.arrays.layout import shape as shape_of
from graphcore.tf1.framework import convert_to_tensor, name_scope, zeros
from graphcore.tf1.layers.base import Layer
from graphcore.tf1.variable_scopes.getting import is_to_be_made
from graphcore.tf1.variable_scopes.opening import variable_scope
from graphcore.tf1.variable_scopes.scope import get_variable_scope


class LSTMStateTuple(NamedTuple):
    """The state of an LSTM cell: `c`, the memory, and `h`, the output. Both: [batch, units]."""

    c: Any
    h: Any

    @property
    def dtype(self) -> DType:
        """The dtype of both.

        Raises:
            InvalidArgumentError: they differ.
        """
        c, h = self
        if c.dtype != h.dtype:
            raise InvalidArgumentError(f"Inconsistent internal state: {c.dtype.text} vs {h.dtype.text}")
        dtype: DType = c.dtype
        return dtype


class RNNCell(Layer):
    """The base class of recurrent cells: from an input and a state to an output and the next state.

    A subclass defines the properties `state_size` and `output_size`, each an int, a shape or (nested) tuples of these, and `call(inputs, state)`,
    which returns the output and the next state. It may make variables by `gc.get_variable` in `call`, or by `add_variable` in `build`.
    """

    def __call__(self, inputs: Any, state: Any, scope: Any = None, *args: Any, **kwargs: Any) -> Any:
        """One step. inputs: [batch, n], state: [batch, size] or (nested) tuples of these -> output, next state.

        Args:
            inputs, state: the input and the state.
            scope: a variable scope or its name, by default the name of the class in lower case.
            args, kwargs: further arguments of `call`.
        """
        around = get_variable_scope() if scope is None else scope
        with variable_scope(around, custom_getter=self._noting) as opened:
            if scope is None:
                return super().__call__(inputs, state, *args, **kwargs)
            return super().__call__(inputs, state, *args, scope=opened, **kwargs)

    def _noting(self, getter: Any, *args: Any, **kwargs: Any) -> Any:
        """A custom getter that notes the variables as those of the cell."""
        variable = getter(*args, **kwargs)
        if hasattr(variable, "initializer") and all(weight is not variable for weight in self._weights):
            self._weights = [weight for weight in self._weights if weight.name != variable.name and not is_to_be_made(weight)]
            self._weights.append(variable)
        return variable

    @property
    def state_size(self) -> Any:
        """The size of the state: an int, a shape, or (nested) tuples of these.

        Raises:
            InvalidArgumentError: the subclass does not say.
        """
        raise InvalidArgumentError(f"{type(self).__name__} must define the property state_size")

    @property
    def output_size(self) -> Any:
        """The size of the output: an int, a shape, or (nested) tuples of these.

        Raises:
            InvalidArgumentError: the subclass does not say.
        """
        raise InvalidArgumentError(f"{type(self).__name__} must define the property output_size")

    def build(self, _: Any) -> None:
        """Do nothing: a subclass may make its variables here."""
        # `call` may make them; `built` is set after it, as its variables are shared from then on

    def get_initial_state(self, inputs: Any = None, batch_size: Any = None, dtype: Any = None) -> Any:
        """Zeros for the state, for as many rows as `inputs` has, or for `batch_size` of `dtype`.

        Raises:
            InvalidArgumentError: neither `inputs` nor both others are given.
        """
        if inputs is not None:
            inputs = convert_to_tensor(inputs, name="inputs")
            static_size = inputs.shape.as_list()[0]
            batch_size = shape_of(inputs)[0] if static_size is None else static_size
            dtype = inputs.dtype if dtype is None else dtype
        if batch_size is None or dtype is None:
            raise InvalidArgumentError(f"batch_size and dtype of the initial state must be given, got {batch_size} and {dtype}")
        return self.zero_state(batch_size, dtype)

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        """Zeros for the state: [batch_size, size], or (nested) tuples of these.

        Args:
            batch_size: an int, an int tensor, or a list or shape of sizes.
            dtype: the dtype, or one for each part of the state.
        """
        with name_scope(f"{type(self).__name__}ZeroState"):
            return zeros_of(self.state_size, batch_size, dtype)


class LayerRNNCell(RNNCell):
    """The base class of cells that make their variables by `add_variable` in `build`."""

    def __call__(self, inputs: Any, state: Any, scope: Any = None, *args: Any, **kwargs: Any) -> Any:
        """One step; see `RNNCell`."""
        return Layer.__call__(self, inputs, state, *args, scope=scope, **kwargs)


def zeros_of(sizes: Any, batch_size: Any, dtype: Any) -> Any:
    """Zeros of [batch_size, *size] for each of some (nested) sizes; all have one dtype, or each its own."""
    dtypes = nest.flatten(dtype) if nest.is_nested(dtype) else [dtype] * len(nest.flatten(sizes))
    tensors = [_zeros(size, batch_size, as_dtype(kind).base) for size, kind in zip(nest.flatten(sizes), dtypes, strict=True)]
    return nest.pack_sequence_as(sizes, tensors)


def _zeros(size: Any, batch_size: Any, dtype: DType) -> Tensor:
    rest = sizes_of(size)
    batches = list(batch_size) if isinstance(batch_size, list | tuple | Shape) else [batch_size]
    static_sizes = [constant_value(dim) if isinstance(dim, Tensor) else dim for dim in batches]
    result = zeros([*[dim if size is None else int(size) for dim, size in zip(batches, static_sizes, strict=True)], *rest], dtype)
    result.set_shape([*[None if size is None else int(size) for size in static_sizes], *rest])
    return result


def sizes_of(size: Any) -> list[int]:
    """The sizes of a state or output without the batch: of an int, or of a shape.

    Raises:
        InvalidArgumentError: a size is unknown.
    """
    shape = Shape([size]) if isinstance(size, int) else as_shape(size)
    if not shape.is_fully_defined:
        raise InvalidArgumentError(f"required a full shape as the size of a state or an output, got {shape}")
    return [int(dim) for dim in shape.as_list() if dim is not None]
