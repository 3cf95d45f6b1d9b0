"""Tensor arrays as a whole: gathered and scattered, concatenated and split."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from graphcore.inference import ShapeHandle
from graphcore.inference.shape_fns.elementwise import shape_attr
from graphcore.opset.framework.block import Example, InferenceContext, Kernel, KernelContext, op
from graphcore.opset.framework.families import Storing
from graphcore.opset.framework.gradient_text import scalar, vector
from graphcore.opset.framework.kernels import invalid
from graphcore.opset.numerics.tensor_array_values import TensorArray, as_array
from graphcore.opset.state.tensor_arrays import ARRAY
from graphcore.shapes import Shape, as_shape

_ROWS: Final = [[1.0, 2.0], [3.0, 4.0]]
_FLOW: Final = 0.0
_GRAD_ARRAY: Final = 'grad_handle, grad_flow = TensorArrayGradV3[source="gradients"]'
_NO_HANDLE: Final = f"dhandle = {scalar('float', 0)}"


def _element(c: InferenceContext) -> ShapeHandle:
    data = c.input_handle_shapes_and_types(0)
    return data[0].shape if data else c.unknown_shape()


def _declared(k: KernelContext, array: TensorArray, attr: str) -> Shape:
    shape = as_shape(k.attr(attr))
    declared = array.element_shape
    if attr == "element_shape_except0" and declared.dims is not None:
        declared = Shape(declared.dims[1:])
    if not shape.is_compatible_with(declared):
        raise invalid(k, f"TensorArray was passed element_shape {shape} which does not match the array's element shape {declared}")
    return shape.merge_with(declared)


def _check_allocation(array: TensorArray, places: Sequence[int], *, joined: bool) -> None:
    """Check the values of some elements, stacked or concatenated, against the allocation limit.

    Raises:
        AllocationLimitError: they exceed the limit.
    """
    sizes = [array.sizes_at(index) for index in places if 0 <= index < len(array.places)]
    known_sizes = [item_sizes for item_sizes in sizes if item_sizes]
    if known_sizes and joined:
        array.check_allocation((sum([rows for rows, *_ in known_sizes]), *known_sizes[0][1:]))
    elif known_sizes:
        array.check_allocation((len(places), *known_sizes[0]))


@op
class TensorArrayGatherV3(Storing):
    """The elements at `indices`, along a new first dimension.

    indices: [n]
    flow_in: the flow before
    value: [n] + the shape of an element
    element_shape: the known part of an element's shape.
    """

    signature = "TensorArrayGatherV3[dtype:type, element_shape:shape = ?](handle:resource, indices:int32, flow_in:float) -> (value:dtype)"
    stateful = True
    gradient = f"""[dtype:type](handle:resource, indices:int32, flow_in:float, dvalue:dtype) -> (dhandle:float, dindices:int32, dflow:float) {{
      {_GRAD_ARRAY}(handle, flow_in)
      dflow = TensorArrayScatterV3[T=$dtype](grad_handle, indices, dvalue, grad_flow)
      {_NO_HANDLE}
      dindices = ZerosLike[T=int32](indices)
    }}"""
    examples = (Example([_ROWS, [1, 0], _FLOW], {"dtype": "float"}, outputs=[[[3.0, 4.0], [1.0, 2.0]]]),)
    failures = (ARRAY + "gather = TensorArrayGatherV3[dtype=float](array, sizes, array:1)",)

    def shape(c: InferenceContext) -> None:
        indices = c.with_rank(c.input(1), 1)
        c.set_output(0, c.concatenate(indices, c.merge(_element(c), shape_attr(c, "element_shape"))))

    def kernel(k: KernelContext) -> Kernel:
        stack, zeros, dtype = k.xp.stack, k.xp.zeros, k.dtype("dtype")

        def gather(handle: Any, indices: Any, _flow: Any) -> Any:
            array = as_array(k, handle, "dtype")
            shape = _declared(k, array, "element_shape")
            places = indices.tolist()
            _check_allocation(array, places, joined=False)
            values = [array.read(k, index) for index in places]
            if values:
                if any(value.shape != values[0].shape for value in values):
                    raise invalid(k, f"TensorArray {array.name} has inconsistent shapes: {[list(value.shape) for value in values]}")
                return stack(values)
            if not shape.is_fully_defined:
                raise invalid(
                    k, "TensorArray has size zero, but element shape is not fully defined. Currently only static shapes are supported."
                )
            return zeros([0, *shape.as_list()], dtype)

        return gather


@op
class TensorArrayScatterV3(Storing):
    """Writes the rows of a tensor to the elements at `indices`.

    indices: [n]
    value: [n] + the shape of an element
    flow_in: the flow before
    """

    signature = "TensorArrayScatterV3[T:type](handle:resource, indices:int32, value:T, flow_in:float) -> (flow_out:float)"
    stateful = True
    gradient = f"""[T:type](handle:resource, indices:int32, value:T, flow_in:float, dflow:float) ->
        (dhandle:float, dindices:int32, dvalue:T, dflow_in:float) {{
      {_GRAD_ARRAY}(handle, dflow)
      dvalue = TensorArrayGatherV3[dtype=$T](grad_handle, indices, grad_flow)
      dflow_in = Identity[T=float](dflow)
      {_NO_HANDLE}
      dindices = ZerosLike[T=int32](indices)
    }}"""
    examples = (Example([_ROWS, [3, 2], [[5.0, 6.0], [7.0, 8.0]], _FLOW]),)
    failures = (
        f"""{ARRAY}
        rows = Const[dtype=float, value=Tensor<type: float shape: [1,2] values: [1 2]>]()
        scatter = TensorArrayScatterV3[T=float](array, sizes, rows, array:1)
        """,
    )

    def shape(c: InferenceContext) -> None:
        indices = c.with_rank(c.input(1), 1)
        value = c.with_rank_at_least(c.input(2), 1)
        c.merge_dim(c.dim(indices, 0), c.dim(value, 0))
        c.merge(_element(c), c.subshape(value, 1))
        c.set_output(0, c.scalar())

    def kernel(k: KernelContext) -> Kernel:
        def scatter(handle: Any, indices: Any, value: Any, flow: Any) -> Any:
            array = as_array(k, handle, "T")
            if value.ndim < 1 or value.shape[0] != indices.size:
                raise invalid(k, f"Expected len(indices) == values.shape[0], but saw: {indices.size} vs. {list(value.shape)}")
            for index, row in zip(indices.tolist(), value, strict=True):
                array.write(k, index, row)
            return flow

        return scatter


@op
class TensorArrayConcatV3(Storing):
    """All values of an array along their first dimension, and the length of each.

    flow_in: the flow before
    value: [sum of the lengths, ...]
    lengths: [number of elements]
    element_shape_except0: the known part of an element's shape, without the first dimension.
    """

    signature = (
        "TensorArrayConcatV3[dtype:type, element_shape_except0:shape = ?](handle:resource, flow_in:float) -> (value:dtype, lengths:int64)"
    )
    reads_once = True
    stateful = True
    gradient = f"""[dtype:type](handle:resource, flow_in:float, dvalue:dtype, dlengths:int64) -> (dhandle:float, dflow:float) {{
      {_GRAD_ARRAY}(handle, flow_in)
      value, lengths = TensorArrayConcatV3[dtype=$dtype](handle, flow_in)
      dflow = TensorArraySplitV3[T=$dtype](grad_handle, dvalue, lengths, grad_flow)
      {_NO_HANDLE}
    }}"""
    examples = (Example([_ROWS, _FLOW], {"dtype": "float"}, outputs=[[1.0, 2.0, 3.0, 4.0], [2, 2]]),)
    failures = (ARRAY + "concat = TensorArrayConcatV3[dtype=float](array, array:1)",)

    def shape(c: InferenceContext) -> None:
        c.set_output(0, c.unknown_shape())
        c.set_output(1, c.vector(c.unknown_dim()))

    def kernel(k: KernelContext) -> Kernel:
        concatenate, array_of, zeros, dtype = k.xp.concatenate, k.xp.array, k.xp.zeros, k.dtype("dtype")

        def concat(handle: Any, _flow: Any) -> tuple[Any, Any]:
            array = as_array(k, handle, "dtype")
            rest = _declared(k, array, "element_shape_except0")
            places = range(len(array.places))
            _check_allocation(array, places, joined=True)
            values = [array.read(k, index) for index in places]
            if any(value.ndim == 0 for value in values):
                raise invalid(k, "Concat saw a scalar shape at index 0 but requires at least vectors.  Did you mean to call pack?")
            lengths = array_of([value.shape[0] for value in values], np.int64)
            if values:
                return concatenate(values), lengths
            if not rest.is_fully_defined:
                raise invalid(k, "TensorArray has size zero, but element_shape_except0 is not fully defined.")
            return zeros([0, *rest.as_list()], dtype), lengths

        return concat


@op
class TensorArraySplitV3(Storing):
    """Splits a tensor along its first dimension and writes the parts to an array.

    value: [sum of the lengths, ...]
    lengths: the length of each part
    flow_in: the flow before
    """

    signature = "TensorArraySplitV3[T:type](handle:resource, value:T, lengths:int64, flow_in:float) -> (flow_out:float)"
    stateful = True
    gradient = f"""[T:type](handle:resource, value:T, lengths:int64, flow_in:float, dflow:float) ->
        (dhandle:float, dvalue:T, dlengths:int64, dflow_in:float) {{
      {_GRAD_ARRAY}(handle, dflow)
      dvalue, parts = TensorArrayConcatV3[dtype=$T](grad_handle, grad_flow)
      dflow_in = Identity[T=float](dflow)
      {_NO_HANDLE}
      dlengths = ZerosLike[T=int64](lengths)
    }}"""
    examples = (Example([np.zeros((0, 2), np.float32), [[5.0, 6.0], [7.0, 8.0], [9.0, 10.0]], np.array([1, 2]), _FLOW]),)
    failures = (
        f"""{ARRAY}
        lengths = {vector("int64", 2, 2)}
        split = TensorArraySplitV3[T=float](array, row, lengths, array:1)
        """,
    )

    def shape(c: InferenceContext) -> None:
        c.with_rank(c.input(2), 1)
        c.set_output(0, c.scalar())

    def kernel(k: KernelContext) -> Kernel:
        def split(handle: Any, value: Any, lengths: Any, flow: Any) -> Any:
            array = as_array(k, handle, "T")
            sizes: list[int] = lengths.tolist()
            if value.ndim < 1 or any(size < 0 for size in sizes) or sum(sizes) != value.shape[0]:
                raise invalid(
                    k,
                    f"Expected sum of lengths to be equal to values.shape[0], but sum of lengths is {sum(sizes)} and value's shape is: "
                    f"{list(value.shape)}",
                )
            if not array.dynamic and len(sizes) != len(array.places):
                raise invalid(
                    k,
                    f"TensorArray's size is not equal to the size of lengths ({len(array.places)} vs. {len(sizes)}), and the TensorArray is "
                    "not marked as dynamically resizeable",
                )
            start = 0
            for index, size in enumerate(sizes):
                array.write(k, index, value[start : start + size])
                start += size
            return flow

        return split
