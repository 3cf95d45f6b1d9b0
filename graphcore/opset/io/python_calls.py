"""Calls of Python functions within a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from graphcore.attrs import attr_text
from graphcore.dtypes import DType, as_dtype, string
from graphcore.errors import FailedPreconditionError, GraphError, InvalidArgumentError, OutOfRangeError
from graphcore.inference import InferenceContext
from graphcore.kernel_context import KernelContext, owned
from graphcore.opset.control_flow.function_calls import types_attr
from graphcore.opset.framework.block import Example, Kernel, define_op, not_differentiable
from graphcore.opset.framework.kernels import invalid, on_host
from graphcore.opset.numerics.python_functions import python_function

_UNKNOWN: Final = Example([[[1.0, 2.0]]], {"token": "pyfunc_0", "Tout": ["float"]})
_NO_GRADIENT: Final = not_differentiable("Python computes it")


def _shape(c: InferenceContext) -> None:
    for i in range(c.num_outputs):
        c.set_output(i, c.unknown_shape())


def _kernel(k: KernelContext) -> Kernel:
    token, types = k.attr("token"), types_attr(k.attrs, "Tout")
    assert isinstance(token, bytes)

    def call(*inputs: Any) -> Any:
        function = python_function(attr_text(token))
        if function is None:
            raise FailedPreconditionError(
                f"'{k.node_name}' (op {k.op}) calls a Python function that is not here: it exists only in the process and the graph that "
                "gc.py_func was called in, and no file holds it",
                op=k.op,
                node=k.node_name,
                source=k.source,
            )
        try:
            result = function.call(*[_given(value) for value in inputs])
        except GraphError:
            raise
        except StopIteration as error:
            raise OutOfRangeError(f"StopIteration: {error}", op=k.op, node=k.node_name, source=k.source) from error
        return _outputs(k, result, types)

    return call


def _given(value: Any) -> Any:
    """A value as Python gets it: a read-only array, or bytes for a scalar string."""
    array = on_host(value)
    if array.dtype == np.object_ and not array.ndim:
        return array.item()
    view = array.view()
    view.flags.writeable = False
    return view


def _outputs(k: KernelContext, result: Any, types: Sequence[DType]) -> Any:
    if not types:
        return None
    values = list(result) if isinstance(result, list | tuple) and not (isinstance(result, list) and len(types) == 1) else [result]
    if isinstance(result, list) and len(types) == 1 and len(result) == 1:
        values = result
    if len(values) != len(types):
        raise invalid(k, f"the Python function must return {len(types)} values, and returned {len(values)}")
    outputs = tuple([converted(k, value, dtype, i) for i, (value, dtype) in enumerate(zip(values, types, strict=True))])
    return outputs if len(outputs) > 1 else outputs[0]


def converted(k: KernelContext, value: Any, dtype: DType, place: int) -> Any:
    """A result of Python as an array of the declared type.

    Raises:
        InvalidArgumentError: it is of another type.
    """
    what = f"{place}-th value returned by the Python function of '{k.node_name}'"
    if dtype is string:
        array = np.asarray(value)
        if array.dtype.kind not in "OSU":
            raise invalid(k, f"{what} is {array.dtype}, but expects string")
        bytes_array = np.empty(array.shape, object)
        bytes_array[...] = [_as_bytes(item) for item in array.reshape(-1).tolist()] if array.ndim == 1 else _each(array)
        return bytes_array
    try:
        array = np.asarray(value) if hasattr(value, "dtype") else np.asarray(value, dtype.as_numpy)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidArgumentError(f"{what}: {error}", op=k.op, node=k.node_name, source=k.source) from None
    if array.dtype != dtype.as_numpy:
        raise invalid(k, f"{what} is {_name(array.dtype)}, but expects {dtype.text}")
    return owned(array.copy())  # the caller's own array, which it may write into again


def _each(array: Any) -> Any:
    bytes_array = np.empty(array.size, object)
    bytes_array[:] = [_as_bytes(item) for item in array.reshape(-1).tolist()]
    return bytes_array.reshape(array.shape) if array.ndim else bytes_array[0]


def _as_bytes(value: Any) -> bytes:
    return value.encode() if isinstance(value, str) else bytes(value)


def _name(dtype: Any) -> str:
    try:
        return as_dtype(dtype).text
    except GraphError:
        return str(dtype)


for _op, _stateful, _what in (("PyFunc", True, ""), ("PyFuncStateless", False, ", which has no state")):
    define_op(
        _op,
        f"The results of a Python function{_what}.\n\ninput: its arguments\noutput: its results\ntoken: the name of the function.",
        signature=f"{_op}[token:string, Tin:list(type) >= 0, Tout:list(type) >= 0](input:Tin) -> (output:Tout)",
        shape=_shape,
        kernel=_kernel,
        gradient=_NO_GRADIENT,
        examples=(_UNKNOWN,),
        failures=(_UNKNOWN,),
        stateful=_stateful,
        device_types=("CPU",),
    )
