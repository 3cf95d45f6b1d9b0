"""Lists of tensors: created empty or reserved, extended, shortened, read and changed."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from graphcore.inference.shape_fns import tensor_lists as shapes
from graphcore.opset.framework.block import NO_GRADIENT, Example, Kernel, KernelContext, no_registered_gradient, op
from graphcore.opset.framework.gradient_text import scalar, vector
from graphcore.opset.framework.kernels import invalid
from graphcore.opset.framework.type_sets import INDEX
from graphcore.opset.numerics.tensor_list_values import (
    ListKind,
    TensorList,
    as_list,
    checked_element,
    element_type,
    list_of,
    merged_shape,
    partial_shape,
    uninitialized,
    unset,
)

_LIST: Final = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
_ELEMENT: Final = [7.0, -8.0]
_INT32: Final = np.dtype(np.int32)
_TWO_LISTS: Final = f"""
    tensor = {vector("float", 1, 2)}
    scalars = Const[dtype=int32, value=Tensor<type: int32 shape: [0] values: >]()
    list = TensorListFromTensor[element_dtype=float, shape_type=int32](tensor, scalars)
    lists = Pack[N=2, T=variant](list, list)
"""
_NO_INPUTS: Final = no_registered_gradient("a new list depends on no tensor")


@op
class EmptyTensorList:
    """A list without elements.

    element_shape: their shape, -1 for unknown sizes; the scalar -1 for an unknown rank
    max_num_elements: the most elements; -1 for any number
    element_dtype: their type
    """

    signature = (
        f"EmptyTensorList[element_dtype:type, shape_type:{INDEX}](element_shape:shape_type, max_num_elements:int32) -> (handle:variant)"
    )
    shape = shapes.empty_list_shape
    gradient = _NO_INPUTS
    examples = (Example([[2], -1], {"element_dtype": "float"}),)
    failures = (Example([[-2], -1], {"element_dtype": "float"}),)

    def kernel(k: KernelContext) -> Kernel:
        dtype = element_type(k)
        return lambda shape, limit: TensorList(dtype, partial_shape(k, shape), (), int(limit))


@op
class TensorListReserve:
    """A list of `num_elements` unset elements, which read as zeros.

    element_shape: their shape, -1 for unknown sizes
    num_elements: their number
    element_dtype: their type
    """

    signature = (
        f"TensorListReserve[element_dtype:type, shape_type:{INDEX}](element_shape:shape_type, num_elements:int32) -> (handle:variant)"
    )
    shape = shapes.empty_list_shape
    gradient = _NO_INPUTS
    examples = (Example([[2], 3], {"element_dtype": "float"}),)
    failures = (Example([[2], -1], {"element_dtype": "float"}),)

    def kernel(k: KernelContext) -> Kernel:
        dtype = element_type(k)

        def reserve(shape: Any, count: Any) -> TensorList:
            if count < 0:
                raise invalid(k, f"The num_elements to reserve must be a non negative number, but got {count}")
            return TensorList(dtype, partial_shape(k, shape), unset(int(count)))

        return reserve


@op
class TensorListPushBack:
    """The list with one more element at its end."""

    signature = "TensorListPushBack[element_dtype:type](input_handle:variant, tensor:element_dtype) -> (output_handle:variant)"
    shape = shapes.push_back_shape
    gradient = """[element_dtype:type](input_handle:variant, tensor:element_dtype, dresult:variant) -> (dlist:variant, dtensor:element_dtype) {
      element_shape = Shape[T=$element_dtype](tensor)
      dlist, dtensor = TensorListPopBack[element_dtype=$element_dtype](dresult, element_shape)
    }"""
    examples = (Example([_LIST, _ELEMENT]),)
    failures = (
        f"""
        element_shape = {vector("int32", 2)}
        zero = {scalar("int32", 0)}
        element = {vector("float", 1, 2)}
        full = EmptyTensorList[element_dtype=float, shape_type=int32](element_shape, zero)
        pushed = TensorListPushBack[element_dtype=float](full, element)
        """,
    )

    def kernel(k: KernelContext) -> Kernel:
        dtype = element_type(k)

        def push(handle: Any, element: Any) -> TensorList:
            held = handle if type(handle) is TensorList and handle.kind.dtype is dtype else list_of(k, handle)
            kind = held.kind
            if kind.dims != element.shape:
                checked_element(k, held, element, "append a tensor with incompatible shape to a list")
            if 0 <= kind.limit <= held.length:
                raise invalid(
                    k,
                    f"Tried to push item into a full list list size: {held.length} max_num_elements: {held.max_num_elements}",
                )
            return held.pushed(element)

        return push


@op
class TensorListPopBack:
    """The last element of a list, and the list without it.

    element_shape: the known part of the element's shape, for unset ones
    """

    signature = (
        "TensorListPopBack[element_dtype:type](input_handle:variant, element_shape:int32) -> (output_handle:variant, tensor:element_dtype)"
    )
    shape = shapes.pop_back_shape
    gradient = """[element_dtype:type](input_handle:variant, element_shape:int32, dlist:variant, delement:element_dtype) ->
        (dinput:variant, dshape:int32) {
      dinput = TensorListPushBack[element_dtype=$element_dtype](dlist, delement)
      dshape = ZerosLike[T=int32](element_shape)
    }"""
    examples = (Example([_LIST, [2]], {"element_dtype": "float"}),)
    failures = (Example([np.zeros((0, 2), np.float32), [2]], {"element_dtype": "float"}),)

    def kernel(k: KernelContext) -> Kernel:
        constant = k.constant(1)
        constant_shape = None if constant is None else partial_shape(k, constant)
        fitting: list[ListKind] = []  # the last kind of list that fitted, a cache for loops

        dtype = element_type(k)

        def pop(handle: Any, shape: Any) -> tuple[TensorList, Any]:
            held = handle if type(handle) is TensorList and handle.kind.dtype is dtype else list_of(k, handle)
            if not held.length:
                raise invalid(k, "Trying to pop from an empty list.")
            if constant_shape is None or held.kind not in fitting:
                merged_shape(k, partial_shape(k, shape) if constant_shape is None else constant_shape, held)
                fitting[:] = [held.kind]
            last = held.last
            if last is None:
                last = uninitialized(k, held, partial_shape(k, shape))
            return held.popped(), last

        return pop


@op
class TensorListLength:
    """The number of elements of a list."""

    signature = "TensorListLength(input_handle:variant) -> (length:int32)"
    shape = shapes.length_shape
    gradient = NO_GRADIENT
    examples = (Example([_LIST], outputs=[3]),)
    failures = (_TWO_LISTS + "length = TensorListLength(lists)",)

    def kernel(k: KernelContext) -> Kernel:
        return lambda handle: np.int32(as_list(k, handle).length)


@op
class TensorListElementShape:
    """The known element shape of a list: sizes, -1 if unknown; the scalar -1 for an unknown rank."""

    signature = f"TensorListElementShape[shape_type:{INDEX}](input_handle:variant) -> (element_shape:shape_type)"
    shape = shapes.element_shape_shape
    gradient = NO_GRADIENT
    examples = (Example([_LIST], {"shape_type": "int32"}, outputs=[[2]]),)
    failures = (_TWO_LISTS + "shape = TensorListElementShape[shape_type=int32](lists)",)

    def kernel(k: KernelContext) -> Kernel:
        dtype, array = k.dtype("shape_type"), k.xp.array

        def element_shape(handle: Any) -> Any:
            declared = as_list(k, handle).element_shape
            return array(-1 if declared.dims is None else [-1 if size is None else size for size in declared.dims], dtype)

        return element_shape


_ZERO_GRADIENTS: Final = "dindex = ZerosLike[T=int32](index)"


@op
class TensorListGetItem:
    """Element `index` of a list; zeros if it is unset.

    index: in [0, length)
    element_shape: the known part of its shape, for unset elements
    """

    signature = (
        f"TensorListGetItem[element_dtype:type, Tshape:{INDEX} = int32](input_handle:variant, index:int32, element_shape:Tshape) -> "
        "(item:element_dtype)"
    )
    shape = shapes.get_item_shape
    gradient = f"""[element_dtype:type, Tshape:type](input_handle:variant, index:int32, element_shape:Tshape, ditem:element_dtype) ->
        (dlist:variant, dindex:int32, dshape:Tshape) {{
      list_size = TensorListLength(input_handle)
      list_shape = TensorListElementShape[shape_type=int32](input_handle)
      empty = TensorListReserve[element_dtype=$element_dtype, shape_type=int32](list_shape, list_size)
      dlist = TensorListSetItem[element_dtype=$element_dtype](empty, index, ditem)
      {_ZERO_GRADIENTS}
      dshape = ZerosLike[T=$Tshape](element_shape)
    }}"""
    examples = (Example([_LIST, 1, [2]], {"element_dtype": "float"}, outputs=[[3.0, 4.0]]),)
    failures = (Example([_LIST, 3, [2]], {"element_dtype": "float"}),)

    def kernel(k: KernelContext) -> Kernel:
        def get(handle: Any, index: Any, shape: Any) -> Any:
            held = list_of(k, handle)
            if not 0 <= index < len(held.items):
                raise invalid(k, f"Trying to access element {index} in a list with {len(held.items)} elements.")
            wanted = partial_shape(k, shape)
            merged_shape(k, wanted, held)
            item = held.items[int(index)]
            return uninitialized(k, held, wanted) if item is None else item

        return get


@op
class TensorListSetItem:
    """The list with `item` at `index`.

    index: in [0, length)
    resize_if_index_out_of_bounds: if true, the list is extended for an `index` beyond its end.
    """

    signature = (
        "TensorListSetItem[element_dtype:type, resize_if_index_out_of_bounds:bool = false]"
        "(input_handle:variant, index:int32, item:element_dtype) -> (output_handle:variant)"
    )
    shape = shapes.set_item_shape
    gradient = f"""[element_dtype:type](input_handle:variant, index:int32, item:element_dtype, dlist:variant) ->
        (dinput:variant, dindex:int32, ditem:element_dtype) {{
      list_size = TensorListLength(input_handle)
      zeros = ZerosLike[T=$element_dtype](item)
      cleared = TensorListSetItem[element_dtype=$element_dtype](dlist, index, zeros)
      dinput = TensorListResize(cleared, list_size)
      {_ZERO_GRADIENTS}
      element_shape = Shape[T=$element_dtype](item)
      ditem = TensorListGetItem[element_dtype=$element_dtype](dlist, index, element_shape)
    }}"""
    examples = (Example([_LIST, 1, _ELEMENT]), Example([_LIST, 4, _ELEMENT], {"resize_if_index_out_of_bounds": True}))
    failures = (Example([_LIST, 3, _ELEMENT]),)

    def kernel(k: KernelContext) -> Kernel:
        resize = k.attr("resize_if_index_out_of_bounds")

        def put(handle: Any, index: Any, item: Any) -> TensorList:
            held = list_of(k, handle)
            at, items = int(index), list(held.items)
            if at >= len(items) and resize:
                items += unset(at + 1 - len(items))
            if not 0 <= at < len(items):
                raise invalid(k, f"Trying to modify element {at} in a list with {len(items)} elements.")
            items[at] = checked_element(k, held, item, "set a tensor with incompatible shape at a list index")
            return held.with_items(items)

        return put


@op
class TensorListResize:
    """The list with `size` elements: truncated, or extended by unset elements.

    size: not negative
    """

    signature = "TensorListResize(input_handle:variant, size:int32) -> (output_handle:variant)"
    shape = shapes.resize_shape
    gradient = f"""(input_handle:variant, size:int32, dlist:variant) -> (dinput:variant, dsize:int32) {{
      list_size = TensorListLength(input_handle)
      dinput = TensorListResize(dlist, list_size)
      dsize = {scalar("int32", 0)}
    }}"""
    examples = (Example([_LIST, 2]), Example([_LIST, 5]))
    failures = (Example([_LIST, -1]),)

    def kernel(k: KernelContext) -> Kernel:
        def resize(handle: Any, size: Any) -> TensorList:
            if size < 0:
                raise invalid(k, f"TensorListSlice expects size to be non-negative. Got: {size}")
            held = as_list(k, handle)
            return held.with_items((*held.items[: int(size)], *unset(int(size) - len(held.items))))

        return resize
