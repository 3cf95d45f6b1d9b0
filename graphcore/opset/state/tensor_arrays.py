"""Tensor arrays: indexed tensors, written and read by loops. `flow` is a number that orders operations."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from graphcore.attrs import attr_text
from graphcore.dtypes import DType
from graphcore.inference import ShapeAndType, ShapeHandle
from graphcore.inference.shape_fns.common_shape_fns import no_outputs, scalar_shape
from graphcore.inference.shape_fns.elementwise import shape_attr
from graphcore.opset.framework.block import NO_GRADIENT, Example, InferenceContext, Kernel, KernelContext, not_differentiable, op
from graphcore.opset.framework.families import Storing
from graphcore.opset.framework.gradient_text import scalar, vector
from graphcore.opset.framework.kernels import ints, invalid
from graphcore.opset.numerics.tensor_array_values import TensorArray, as_array, zero_flow
from graphcore.shapes import Shape, as_shape

_ROWS: Final = [[1.0, 2.0], [3.0, 4.0]]
_FLOW: Final = 0.0
ARRAY: Final = f"""
    two = {scalar("int32", 2)}
    sizes = {vector("int32", 2)}
    row = {vector("float", 1, 2)}
    array = TensorArrayV3[dtype=float](two)
"""
"""An array of two elements, for uses that fail."""
CLOSED_ARRAY: Final = f"{ARRAY}closed = TensorArrayCloseV3(array)\n"
_GRAD_ARRAY: Final = 'grad_handle, grad_flow = TensorArrayGradV3[source="gradients"]'
_NO_HANDLE: Final = f"dhandle = {scalar('float', 0)}"


def _element(c: InferenceContext) -> ShapeHandle:
    data = c.input_handle_shapes_and_types(0)
    return data[0].shape if data else c.unknown_shape()


@op
class TensorArrayV3:
    """An array of `size` tensors of one type, with the lifetime of the run.

    size: the number of elements
    handle: the array
    flow: the flow for the first op on the array; each op returns the flow for the next one
    dtype: the type of the elements.
    element_shape: the known part of their shape.
    dynamic_size: writing beyond the end extends the array.
    clear_after_read: a value is released after reading, and cannot be read again.
    identical_element_shapes: all elements have the shape of the first one written.
    tensor_array_name: for error texts.
    """

    signature = (
        "TensorArrayV3[dtype:type, element_shape:shape = ?, dynamic_size:bool = false, clear_after_read:bool = true, "
        "identical_element_shapes:bool = false, tensor_array_name:string = ''](size:int32) -> (handle:resource, flow:float)"
    )
    stateful = True
    gradient = NO_GRADIENT
    examples = (Example([2], {"dtype": "float", "element_shape": Shape([2])}),)
    failures = (Example([-1], {"dtype": "float"}),)

    def shape(c: InferenceContext) -> None:
        c.with_rank(c.input(0), 0)
        c.set_output(0, c.vector(2))
        c.set_output(1, c.scalar())
        element = shape_attr(c, "element_shape")
        dtype = c.attr("dtype")
        if c.fully_defined(element) or c.attr("identical_element_shapes"):
            c.set_output_handle_shapes_and_types(0, [ShapeAndType(element, dtype if isinstance(dtype, DType) else None)])

    def kernel(k: KernelContext) -> Kernel:
        dtype, element_shape = k.attr("dtype"), as_shape(k.attr("element_shape"))
        if not isinstance(dtype, DType):
            raise invalid(k, f"attr 'dtype' must be a type, got {dtype!r}")
        label = attr_text(k.attr("tensor_array_name")) or k.node_name
        dynamic, clear, identical = (bool(k.attr(a)) for a in ("dynamic_size", "clear_after_read", "identical_element_shapes"))

        def make(size: Any) -> tuple[TensorArray, Any]:
            if size < 0:
                raise invalid(k, f"Size should be >= 0, got {size}")
            array = TensorArray(label, dtype, element_shape, int(size), dynamic=dynamic, clear_after_read=clear, identical=identical)
            return array, zero_flow()

        return make


@op
class TensorArrayGradV3:
    """The array that collects the gradients of an array's elements; repeated writes are added up.

    flow_in: the flow before
    grad_handle: the array of gradients
    source: names the call of `gradients`; each has its own array.
    """

    signature = "TensorArrayGradV3[source:string](handle:resource, flow_in:float) -> (grad_handle:resource, flow_out:float)"
    stateful = True
    gradient = NO_GRADIENT
    examples = (Example([_ROWS, _FLOW], {"source": "gradients"}),)
    failures = (CLOSED_ARRAY + 'grad = TensorArrayGradV3[source="gradients"](array, array:1) @ closed',)

    def shape(c: InferenceContext) -> None:
        c.set_output(0, c.vector(2))
        c.set_output(1, c.scalar())
        data = c.input_handle_shapes_and_types(0)
        if data is not None:
            c.set_output_handle_shapes_and_types(0, data)

    def kernel(k: KernelContext) -> Kernel:
        source = k.attr("source")
        return lambda handle, flow: (as_array(k, handle).gradient(source), flow)


@op
class TensorArrayGradWithShape:
    """TensorArrayGradV3 with additional leading dimensions of elements, for several losses.

    shape_to_prepend: the sizes of those dimensions
    """

    signature = (
        "TensorArrayGradWithShape[source:string](handle:resource, flow_in:float, shape_to_prepend:int32) -> "
        "(grad_handle:resource, flow_out:float)"
    )
    stateful = True
    gradient = NO_GRADIENT
    examples = (Example([_ROWS, _FLOW, [3]], {"source": "gradients"}),)
    failures = (CLOSED_ARRAY + 'grad = TensorArrayGradWithShape[source="gradients"](array, array:1, sizes) @ closed',)

    def shape(c: InferenceContext) -> None:
        prefix = c.make_shape_from_shape_tensor(2)
        c.set_output(0, c.vector(2))
        c.set_output(1, c.scalar())
        data = c.input_handle_shapes_and_types(0)
        if data:
            c.set_output_handle_shapes_and_types(0, [ShapeAndType(c.concatenate(prefix, data[0].shape), data[0].dtype)])

    def kernel(k: KernelContext) -> Kernel:
        source = k.attr("source")
        return lambda handle, flow, prefix: (as_array(k, handle).gradient((source, ints(prefix)), ints(prefix)), flow)


@op
class TensorArrayWriteV3(Storing):
    """Writes a value to an element of an array.

    index: the element
    value: the value
    flow_in: the flow before
    """

    signature = "TensorArrayWriteV3[T:type](handle:resource, index:int32, value:T, flow_in:float) -> (flow_out:float)"
    stateful = True
    gradient = f"""[T:type](handle:resource, index:int32, value:T, flow_in:float, dflow:float) ->
        (dhandle:float, dindex:int32, dvalue:T, dflow_in:float) {{
      {_GRAD_ARRAY}(handle, dflow)
      dvalue = TensorArrayReadV3[dtype=$T](grad_handle, index, grad_flow)
      dflow_in = Identity[T=float](dflow)
      {_NO_HANDLE}
      dindex = ZerosLike[T=int32](index)
    }}"""
    examples = (Example([_ROWS, 2, [5.0, 6.0], _FLOW]),)
    failures = (ARRAY + "write = TensorArrayWriteV3[T=float](array, two, row, array:1)",)

    def shape(c: InferenceContext) -> None:
        c.with_rank(c.input(1), 0)
        c.merge(_element(c), c.input(2))
        c.set_output(0, c.scalar())

    def kernel(k: KernelContext) -> Kernel:
        def write(handle: Any, index: Any, value: Any, flow: Any) -> Any:
            as_array(k, handle, "T").write(k, int(index), value)
            return flow

        return write


@op
class TensorArrayReadV3(Storing):
    """The value of an element of an array.

    index: the element
    flow_in: the flow before
    """

    signature = "TensorArrayReadV3[dtype:type](handle:resource, index:int32, flow_in:float) -> (value:dtype)"
    stateful = True
    gradient = f"""[dtype:type](handle:resource, index:int32, flow_in:float, dvalue:dtype) -> (dhandle:float, dindex:int32, dflow:float) {{
      {_GRAD_ARRAY}(handle, flow_in)
      dflow = TensorArrayWriteV3[T=$dtype](grad_handle, index, dvalue, grad_flow)
      {_NO_HANDLE}
      dindex = ZerosLike[T=int32](index)
    }}"""
    examples = (Example([_ROWS, 1, _FLOW], {"dtype": "float"}, outputs=[[3.0, 4.0]]),)
    failures = (ARRAY + "read = TensorArrayReadV3[dtype=float](array, two, array:1)",)

    def shape(c: InferenceContext) -> None:
        c.with_rank(c.input(1), 0)
        c.set_output(0, _element(c))

    def kernel(k: KernelContext) -> Kernel:
        return lambda handle, index, _flow: as_array(k, handle, "dtype").read(k, int(index))


@op
class TensorArraySizeV3:
    """The number of elements of an array.

    flow_in: the flow before
    """

    signature = "TensorArraySizeV3(handle:resource, flow_in:float) -> (size:int32)"
    stateful = True
    shape = scalar_shape
    gradient = NO_GRADIENT
    examples = (Example([_ROWS, _FLOW], outputs=[2]),)
    failures = (CLOSED_ARRAY + "size = TensorArraySizeV3(array, array:1) @ closed",)

    def kernel(k: KernelContext) -> Kernel:
        return lambda handle, _flow: np.int32(len(as_array(k, handle).places))


@op
class TensorArrayCloseV3(Storing):
    """Releases the values of an array, which cannot be used any more."""

    signature = "TensorArrayCloseV3(handle:resource) -> ()"
    stateful = True
    shape = no_outputs
    gradient = not_differentiable("it only lets values go")
    examples = (Example([_ROWS]),)
    failures = (CLOSED_ARRAY + "again = TensorArrayCloseV3(array) @ closed",)

    def kernel(k: KernelContext) -> Kernel:
        def close(handle: Any) -> None:
            array = as_array(k, handle)
            array.closed, array.places = True, []

        return close
