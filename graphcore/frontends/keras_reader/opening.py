"""Layers of a Keras model in this process, opened into the operations of its backend."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from graphcore.errors import FailedPreconditionError, InvalidArgumentError
from graphcore.frontends.frontend import Call
from graphcore.frontends.jax_reader.calls import traced
from graphcore.frontends.jaxpr import read_program
from graphcore.frontends.keras_reader.calls import check_built, is_layer_of_jax, name_layers, variable_names, without_effects
from graphcore.frontends.torch_reader.objects import is_class

if TYPE_CHECKING:
    from graphcore.frontends.foreign import ForeignGraph

_SIZE: Final = 8
"""Stands for sizes that are open, where the backend has no symbols for them."""
_NOTE: Final = f"Sizes that are open in the model are drawn as {_SIZE}."


def operations_of(layer: Any, node: Any) -> ForeignGraph:
    """The operations of one call of a layer, traced without computing. No variable changes.

    Args:
        layer: the layer.
        node: Keras's record of the call.

    Raises:
        FailedPreconditionError: the model is of another backend than JAX and PyTorch, or has no variables yet.
        InvalidArgumentError: the call cannot be traced.
    """
    check_built(layer)
    if is_layer_of_jax(layer):
        return _of_jax(layer, node)
    if is_class(layer, "Module", "torch.nn"):
        return _of_torch(layer, node)
    raise FailedPreconditionError(f"Layers open into operations on the backends JAX and PyTorch; '{layer.name}' is of another one")


def _of_jax(layer: Any, node: Any) -> ForeignGraph:
    jax: Any = sys.modules["jax"]
    function = without_effects(layer)
    open_sizes = any(None in tensor.shape for tensor in node.input_tensors)
    result = traced(_call(function, node, _Symbols(import_module("jax.export"), jax.ShapeDtypeStruct)))
    is_fixed = result.closed is None and open_sizes
    if is_fixed:
        result = traced(_call(function, node, lambda shape, dtype: jax.ShapeDtypeStruct(_fixed(shape), dtype)))
    if result.closed is None:
        raise InvalidArgumentError(f"Layer '{layer.name}' cannot be traced: {type(result.error).__name__}: {str(result.error)[:500]}")
    graph = read_program(result.closed, str(layer.name), variable_names(layer))
    name_layers(graph, layer)
    graph.notes[:] = [_NOTE] if is_fixed else []
    return graph


def _of_torch(layer: Any, node: Any) -> ForeignGraph:
    torch: Any = sys.modules["torch"]
    tracing = import_module("graphcore.frontends.torch_calls.tracing")
    call = _call(layer, node, lambda shape, dtype: torch.empty(_fixed(shape), dtype=getattr(torch, str(dtype))))
    graph: ForeignGraph = tracing.trace(call, says_remarks=False)
    graph.notes[:] = [_NOTE] if any(None in tensor.shape for tensor in node.input_tensors) else []
    return graph


class _Symbols:
    """Makes abstract arrays whose open sizes are symbols: `batch` for the first axis.

    Args:
        export: the module `jax.export`.
        kind: the class of abstract arrays.
    """

    def __init__(self, export: Any, kind: Any) -> None:
        self._export = export
        self._kind = kind
        self._scope = export.SymbolicScope()

    def __call__(self, shape: Any, dtype: Any) -> Any:
        """The abstract array of a shape."""
        names = [("batch" if axis == 0 else f"size_{axis}") if size is None else str(size) for axis, size in enumerate(shape)]
        sizes = self._export.symbolic_shape(", ".join(names), scope=self._scope) if names else ()
        return self._kind(sizes, dtype)


def _call(function: Any, node: Any, abstract: Any) -> Call:
    """The call that Keras has recorded, with abstract tensors for those of the model."""
    keras: Any = sys.modules["keras"]
    args, kwargs = keras.tree.map_structure(
        lambda value: abstract(value.shape, value.dtype) if isinstance(value, keras.KerasTensor) else value,
        (node.arguments.args, node.arguments.kwargs),
    )
    return Call(function, tuple(args), dict(kwargs))


def _fixed(shape: Any) -> tuple[int, ...]:
    return tuple([_SIZE if size is None else int(size) for size in shape])
