"""Lists of tensors as a whole: stacked, unstacked, concatenated, split, gathered, scattered."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from graphcore.inference.shape_fns import tensor_lists as shapes
from graphcore.opset.framework.block import NO_GRADIENT, Example, Kernel, KernelContext, op
from graphcore.opset.framework.gradient_text import scalar, vector
from graphcore.opset.framework.kernels import invalid
from graphcore.opset.framework.type_sets import INDEX
from graphcore.opset.numerics.tensor_list_values import (
    TensorList,
    checked_element,
    element_type,
    filled,
    list_of,
    merged_shape,
    partial_shape,
    positions,
    unset,
    zeros,
)
from graphcore.shapes import Shape, as_shape
from graphcore.support.memory_limits import check_allocation

_LIST: Final = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
_ROWS: Final = [[7.0, -8.0], [9.0, 0.5]]
_EMPTY: Final = f"""
    any = {scalar("int32", -1)}
    lengths = {vector("int64", 1)}
    list = EmptyTensorList[element_dtype=float, shape_type=int32](any, any)
"""
_REST_SHAPE: Final = f"""tensor_shape = Shape[T=$element_dtype](tensor)
      one = {vector("int32", 1)}
      all = {vector("int32", -1)}
      element_shape_of_rows = Slice[T=int32, Index=int32](tensor_shape, one, all)"""


def _stacked(k: KernelContext, items: list[Any], shape: Shape) -> Any:
    """The elements along a new first dimension; zeros of the given shape for none."""
    if not items:
        if not shape.is_fully_defined:
            raise invalid(k, f"Tried to stack elements of an empty list with non-fully-defined element_shape: {shape}")
        return zeros(k, [0, *shape.as_list()])
    first = items[0].shape
    if any(item.shape != first for item in items):
        raise invalid(k, f"Tried to stack list which only contains elements of different shapes: {[list(item.shape) for item in items]}")
    check_allocation((len(items), *first), items[0].dtype)
    return k.xp.stack(items)


@op
class TensorListStack:
    """The elements of a list along a new first dimension; unset ones are zeros.

    tensor: [length] + the shape of an element
    element_shape: the known part of an element's shape
    num_elements: the required number; -1 for any.
    """

    signature = (
        "TensorListStack[element_dtype:type, num_elements:int = -1](input_handle:variant, element_shape:int32) -> (tensor:element_dtype)"
    )
    shape = shapes.stack_shape
    gradient = f"""[element_dtype:type](input_handle:variant, element_shape:int32, dtensor:element_dtype) -> (dlist:variant, dshape:int32) {{
      tensor_shape = Shape[T=$element_dtype](dtensor)
      one = {vector("int32", 1)}
      all = {vector("int32", -1)}
      element_shape_of_rows = Slice[T=int32, Index=int32](tensor_shape, one, all)
      dlist = TensorListFromTensor[element_dtype=$element_dtype, shape_type=int32](dtensor, element_shape_of_rows)
      dshape = ZerosLike[T=int32](element_shape)
    }}"""
    examples = (Example([_LIST, [2]], {"element_dtype": "float"}, outputs=[_LIST]),)
    failures = (Example([_LIST, [2]], {"element_dtype": "float", "num_elements": 2}),)

    def kernel(k: KernelContext) -> Kernel:
        count = k.attr("num_elements")

        def stack(handle: Any, element_shape: Any) -> Any:
            held = list_of(k, handle)
            if count != -1 and count != len(held.items):
                raise invalid(k, f"Operation expected a list with {count!r} elements but got a list with {len(held.items)} elements.")
            wanted = partial_shape(k, element_shape)
            merged = merged_shape(k, wanted, held)
            return _stacked(k, filled(k, held, held.items, wanted), merged)

        return stack


@op
class TensorListFromTensor:
    """The rows of a tensor as a list.

    tensor: [length] + the shape of an element
    element_shape: the known part of an element's shape
    """

    signature = (
        f"TensorListFromTensor[element_dtype:type, shape_type:{INDEX}](tensor:element_dtype, element_shape:shape_type) -> "
        "(output_handle:variant)"
    )
    shape = shapes.from_tensor_shape
    gradient = f"""[element_dtype:type, shape_type:type](tensor:element_dtype, element_shape:shape_type, dlist:variant) ->
        (dtensor:element_dtype, dshape:shape_type) {{
      {_REST_SHAPE}
      dtensor = TensorListStack[element_dtype=$element_dtype](dlist, element_shape_of_rows)
      dshape = ZerosLike[T=$shape_type](element_shape)
    }}"""
    examples = (Example([_LIST, [2]]), Example([_LIST, -1]))
    failures = (Example([_LIST, [3]]),)

    def kernel(k: KernelContext) -> Kernel:
        dtype = element_type(k)

        def from_tensor(tensor: Any, element_shape: Any) -> TensorList:
            wanted = partial_shape(k, element_shape)
            if tensor.ndim < 1:
                raise invalid(k, f"Tensor must be at least a vector, but saw shape: {list(tensor.shape)}")
            if not wanted.is_compatible_with(Shape(tensor.shape[1:])):
                raise invalid(k, f"Specified a list with shape {wanted} from a tensor with shape {list(tensor.shape[1:])}")
            # A row of a vector of strings would be bytes, which have no shape.
            rows = [tensor[row, ...] for row in range(len(tensor))] if tensor.dtype.hasobject else tensor
            return TensorList(dtype, wanted, rows)

        return from_tensor


@op
class TensorListGather:
    """The elements at `indices`, along a new first dimension.

    indices: [n], each in [0, length)
    element_shape: the known part of an element's shape
    values: [n] + the shape of an element
    """

    signature = "TensorListGather[element_dtype:type](input_handle:variant, indices:int32, element_shape:int32) -> (values:element_dtype)"
    shape = shapes.gather_shape
    gradient = """[element_dtype:type](input_handle:variant, indices:int32, element_shape:int32, dtensor:element_dtype) ->
        (dlist:variant, dindices:int32, dshape:int32) {
      list_size = TensorListLength(input_handle)
      list_shape = TensorListElementShape[shape_type=int32](input_handle)
      empty = TensorListReserve[element_dtype=$element_dtype, shape_type=int32](list_shape, list_size)
      dlist = TensorListScatterIntoExistingList[element_dtype=$element_dtype](empty, dtensor, indices)
      dindices = ZerosLike[T=int32](indices)
      dshape = ZerosLike[T=int32](element_shape)
    }"""
    examples = (Example([_LIST, [2, 0], [2]], {"element_dtype": "float"}, outputs=[[[5.0, 6.0], [1.0, 2.0]]]),)
    failures = (Example([_LIST, [3], [2]], {"element_dtype": "float"}),)

    def kernel(k: KernelContext) -> Kernel:
        def gather(handle: Any, indices: Any, element_shape: Any) -> Any:
            held = list_of(k, handle)
            wanted = partial_shape(k, element_shape)
            merged = merged_shape(k, wanted, held)
            items = held.items
            chosen = [items[index] for index in positions(k, indices, len(items), "gather")]
            return _stacked(k, filled(k, held, chosen, wanted), merged)

        return gather


_SCATTER_GRADIENT: Final = f"""{_REST_SHAPE}
      dtensor = TensorListGather[element_dtype=$element_dtype](dlist, indices, element_shape_of_rows)
      dindices = ZerosLike[T=int32](indices)
      dshape = ZerosLike[T=$shape_type](element_shape)"""


def _scattered(k: KernelContext, held: TensorList, tensor: Any, indices: Any) -> TensorList:
    if tensor.ndim < 1 or tensor.shape[0] != indices.size:
        raise invalid(
            k, f"Invalid number of rows in input tensor. Expected number of elements in shape = {indices.size}, got {list(tensor.shape)}"
        )
    items = list(held.items)
    for at, row in zip(positions(k, indices, len(items), "scatter to"), tensor, strict=True):
        items[at] = checked_element(k, held, row, "scatter a tensor with incompatible shape into a list")
    return held.with_items(items)


def _longest(k: KernelContext, indices: Any) -> int:
    if indices.size and indices.min() < 0:
        raise invalid(k, "Indices in TensorListScatter must all be non-negative.")
    return int(indices.max()) + 1 if indices.size else 0


@op
class TensorListScatter:
    """A new list with the rows of a tensor at `indices`; its length follows from the largest one.

    tensor: [n] + the shape of an element
    indices: [n]
    element_shape: the known part of an element's shape
    """

    signature = (
        f"TensorListScatter[element_dtype:type, shape_type:{INDEX}](tensor:element_dtype, indices:int32, element_shape:shape_type) -> "
        "(output_handle:variant)"
    )
    shape = shapes.scatter_shape
    gradient = f"""[element_dtype:type, shape_type:type](tensor:element_dtype, indices:int32, element_shape:shape_type, dlist:variant) ->
        (dtensor:element_dtype, dindices:int32, dshape:shape_type) {{
      {_SCATTER_GRADIENT}
    }}"""
    examples = (Example([_ROWS, [2, 0], [2]]),)
    failures = (Example([_ROWS, [-1, 0], [2]]),)

    def kernel(k: KernelContext) -> Kernel:
        dtype = element_type(k)

        def scatter(tensor: Any, indices: Any, element_shape: Any) -> TensorList:
            empty = TensorList(dtype, partial_shape(k, element_shape), unset(_longest(k, indices)))
            return _scattered(k, empty, tensor, indices)

        return scatter


@op
class TensorListScatterV2:
    """A new list with the rows of a tensor at `indices`.

    tensor: [n] + the shape of an element
    indices: [n]
    element_shape: the known part of an element's shape
    num_elements: the length of the list; -1 for the largest index plus 1
    """

    signature = (
        f"TensorListScatterV2[element_dtype:type, shape_type:{INDEX}]"
        "(tensor:element_dtype, indices:int32, element_shape:shape_type, num_elements:int32) -> (output_handle:variant)"
    )
    shape = shapes.scatter_shape
    gradient = f"""[element_dtype:type, shape_type:type]
        (tensor:element_dtype, indices:int32, element_shape:shape_type, num_elements:int32, dlist:variant) ->
        (dtensor:element_dtype, dindices:int32, dshape:shape_type, dnum:int32) {{
      {_SCATTER_GRADIENT}
      dnum = ZerosLike[T=int32](num_elements)
    }}"""
    examples = (Example([_ROWS, [2, 0], [2], 4]), Example([_ROWS, [2, 0], -1, -1]))
    failures = (Example([_ROWS, [2, 0], [2], 2]),)

    def kernel(k: KernelContext) -> Kernel:
        dtype = element_type(k)

        def scatter(tensor: Any, indices: Any, element_shape: Any, count: Any) -> TensorList:
            if count < -1:
                raise invalid(k, f"TensorListScatter expects num_elements >= -1, found: {count}")
            size = _longest(k, indices) if count == -1 else int(count)
            return _scattered(k, TensorList(dtype, partial_shape(k, element_shape), unset(size)), tensor, indices)

        return scatter


@op
class TensorListScatterIntoExistingList:
    """The list with the rows of a tensor at `indices`.

    tensor: [n] + the shape of an element
    indices: [n], each in [0, length)
    """

    signature = (
        "TensorListScatterIntoExistingList[element_dtype:type](input_handle:variant, tensor:element_dtype, indices:int32) -> "
        "(output_handle:variant)"
    )
    shape = shapes.scatter_into_shape
    gradient = f"""[element_dtype:type](input_handle:variant, tensor:element_dtype, indices:int32, dlist:variant) ->
        (dinput:variant, dtensor:element_dtype, dindices:int32) {{
      {_REST_SHAPE}
      dtensor = TensorListGather[element_dtype=$element_dtype](dlist, indices, element_shape_of_rows)
      zeros = ZerosLike[T=$element_dtype](tensor)
      dinput = TensorListScatterIntoExistingList[element_dtype=$element_dtype](dlist, zeros, indices)
      dindices = ZerosLike[T=int32](indices)
    }}"""
    examples = (Example([_LIST, _ROWS, [2, 0]]),)
    failures = (Example([_LIST, _ROWS, [3, 0]]),)

    def kernel(k: KernelContext) -> Kernel:
        return lambda handle, tensor, indices: _scattered(k, list_of(k, handle), tensor, indices)


def _concat(k: KernelContext, held: TensorList, declared: Shape, leading: list[int]) -> tuple[Any, Any]:
    """The elements along their first dimension; `leading` is that of unset elements."""
    if declared.rank == 0 or held.element_shape.rank == 0:
        raise invalid(k, "Concat requires elements to be at least vectors, found scalars instead.")
    rest = Shape(None) if declared.dims is None else Shape(declared.dims[1:])
    if held.element_shape.dims is not None:
        rest = rest.merge_with(Shape(held.element_shape.dims[1:]))
    for item in held.items:
        if item is not None and not rest.is_compatible_with(Shape(item.shape[1:])):
            raise invalid(k, f"Concat saw incompatible element shapes: {rest} and {list(item.shape[1:])}")
        rest = rest if item is None else rest.merge_with(Shape(item.shape[1:]))
    if not rest.is_fully_defined:
        raise invalid(
            k, f"All except the first dimension must be fully defined when concating an empty tensor list. element_shape: {declared}"
        )
    rows = []
    for i, item in enumerate(held.items):
        if item is None and i >= len(leading):
            raise invalid(k, f"List contains uninitialized tensor at index {i} but leading_dims has only {len(leading)} elements.")
        rows.append(leading[i] if item is None else item.shape[0])
    element = element_type(k).as_numpy
    if element is not None:
        check_allocation([sum(rows), *[size or 0 for size in rest.as_list()]], element)
    parts = [zeros(k, [count, *rest.as_list()]) if item is None else item for count, item in zip(rows, held.items, strict=True)]
    lengths = k.xp.array(rows, np.int64)
    return (k.xp.concatenate(parts) if parts else zeros(k, [0, *rest.as_list()])), lengths


@op
class TensorListConcat:
    """The elements of a list along their first dimension, and the length of each.

    tensor: [sum of the lengths, ...]
    lengths: [length of the list]
    element_shape: the known part of an element's shape.
    """

    signature = (
        "TensorListConcat[element_dtype:type, element_shape:shape = ?](input_handle:variant) -> (tensor:element_dtype, lengths:int64)"
    )
    shape = shapes.concat_shape
    gradient = """[element_dtype:type, element_shape:shape](input_handle:variant, dtensor:element_dtype, dlengths:int64) -> (dlist:variant) {
      concat, lengths = TensorListConcat[element_dtype=$element_dtype, element_shape=$element_shape](input_handle)
      list_shape = TensorListElementShape[shape_type=int32](input_handle)
      dlist = TensorListSplit[element_dtype=$element_dtype, shape_type=int32](dtensor, list_shape, lengths)
    }"""
    examples = (
        Example([_LIST], {"element_dtype": "float", "element_shape": Shape([2])}, outputs=[[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [2, 2, 2]]),
    )
    failures = (_EMPTY + "concat = TensorListConcat[element_dtype=float](list)",)

    def kernel(k: KernelContext) -> Kernel:
        declared = as_shape(k.attr("element_shape"))
        return lambda handle: _concat(k, list_of(k, handle), declared, [])


@op
class TensorListConcatV2:
    """The elements of a list along their first dimension, and the length of each.

    element_shape: the known part of an element's shape
    leading_dims: the first size of unset elements
    tensor: [sum of the lengths, ...]
    lengths: [length of the list]
    """

    signature = (
        f"TensorListConcatV2[element_dtype:type, shape_type:{INDEX}](input_handle:variant, element_shape:shape_type, leading_dims:int64) -> "
        "(tensor:element_dtype, lengths:int64)"
    )
    shape = shapes.concat_v2_shape
    gradient = """[element_dtype:type, shape_type:type]
        (input_handle:variant, element_shape:shape_type, leading_dims:int64, dtensor:element_dtype, dlengths:int64) ->
        (dlist:variant, dshape:shape_type, dleading:int64) {
      concat, lengths = TensorListConcatV2[element_dtype=$element_dtype, shape_type=$shape_type](input_handle, element_shape, leading_dims)
      list_shape = TensorListElementShape[shape_type=int32](input_handle)
      dlist = TensorListSplit[element_dtype=$element_dtype, shape_type=int32](dtensor, list_shape, lengths)
      dshape = ZerosLike[T=$shape_type](element_shape)
      dleading = ZerosLike[T=int64](leading_dims)
    }"""
    examples = (
        Example([_LIST, [2], np.zeros(0, np.int64)], {"element_dtype": "float"}, outputs=[[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [2, 2, 2]]),
    )
    failures = (_EMPTY + "concat = TensorListConcatV2[element_dtype=float, shape_type=int32](list, any, lengths)",)

    def kernel(k: KernelContext) -> Kernel:
        return lambda handle, shape, leading: _concat(k, list_of(k, handle), partial_shape(k, shape), leading.tolist())


@op
class TensorListSplit:
    """A tensor split along its first dimension into a list of parts.

    tensor: [sum of the lengths, ...]
    element_shape: the known part of a part's shape
    lengths: the length of each part
    """

    signature = (
        f"TensorListSplit[element_dtype:type, shape_type:{INDEX}](tensor:element_dtype, element_shape:shape_type, lengths:int64) -> "
        "(output_handle:variant)"
    )
    shape = shapes.split_shape
    gradient = f"""[element_dtype:type, shape_type:type](tensor:element_dtype, element_shape:shape_type, lengths:int64, dlist:variant) ->
        (dtensor:element_dtype, dshape:shape_type, dlengths:int64) {{
      {_REST_SHAPE}
      zero = {scalar("int32", 0)}
      part_shape = ConcatV2[N=2, T=int32, Tidx=int32](all, element_shape_of_rows, zero)
      dtensor, lengths_of_parts = TensorListConcatV2[element_dtype=$element_dtype, shape_type=int32](dlist, part_shape, lengths)
      dshape = ZerosLike[T=$shape_type](element_shape)
      dlengths = ZerosLike[T=int64](lengths)
    }}"""
    examples = (Example([_LIST, [-1, 2], np.array([1, 2])]),)
    failures = (Example([_LIST, [-1, 2], np.array([1, 1])]),)

    def kernel(k: KernelContext) -> Kernel:
        dtype = element_type(k)

        def split(tensor: Any, element_shape: Any, lengths: Any) -> TensorList:
            if tensor.ndim < 1:
                raise invalid(k, f"Tensor must be at least a vector, but saw shape: {list(tensor.shape)}")
            sizes: list[int] = lengths.tolist()
            if any(size < 0 for size in sizes):
                raise invalid(k, f"Invalid value in lengths: {sizes}")
            if sum(sizes) != tensor.shape[0]:
                raise invalid(k, f"Lengths sum to {sum(sizes)}, the tensor has {tensor.shape[0]} rows")
            ends = np.cumsum([0, *sizes]).tolist()
            tensor_list = TensorList(dtype, partial_shape(k, element_shape))
            parts = [tensor[start : start + size] for start, size in zip(ends, sizes, strict=False)]
            return tensor_list.with_items(
                [checked_element(k, tensor_list, part, "split into parts of incompatible shape") for part in parts]
            )

        return split


def _handles(value: Any) -> Any:
    """The handles as an array, also for a single one."""
    return np.asarray(value, np.object_)


@op
class TensorListPushBackBatch:
    """Many lists, each with one more element.

    input_handles: the lists, [n]
    tensor: one element each, [n] + the shape of an element
    """

    signature = "TensorListPushBackBatch[element_dtype:type](input_handles:variant, tensor:element_dtype) -> (output_handles:variant)"
    shape = shapes.push_back_batch_shape
    gradient = NO_GRADIENT
    examples = (Example([_LIST, [[7.0, 8.0]]]),)
    failures = (Example([_LIST, [[7, 8]]]),)

    def kernel(k: KernelContext) -> Kernel:
        def push(handles: Any, tensor: Any) -> Any:
            if handles.shape[:1] != tensor.shape[:1] or not handles.shape:
                raise invalid(k, f"Expected {list(handles.shape)} handles and as many rows, got a tensor of shape {list(tensor.shape)}")
            pushed = np.empty(handles.shape, np.object_)
            for at, handle in enumerate(handles):
                held = list_of(k, handle)
                element = checked_element(k, held, tensor[at], "append a tensor with incompatible shape to a list")
                pushed[at] = held.with_items((*held.items, element))
            return pushed

        return push


@op
class TensorListConcatLists:
    """Two lists in a row; of arrays of lists, each with its counterpart."""

    signature = "TensorListConcatLists[element_dtype:type](input_a:variant, input_b:variant) -> (output:variant)"
    shape = shapes.concat_lists_shape
    gradient = NO_GRADIENT
    examples = (Example([_LIST, _ROWS], {"element_dtype": "float"}),)
    failures = (Example([_LIST, _ROWS], {"element_dtype": "int32"}),)

    def kernel(k: KernelContext) -> Kernel:
        def joined(first: Any, second: Any) -> TensorList:
            a, b = list_of(k, first), list_of(k, second)
            return TensorList(a.element_dtype, merged_shape(k, b.element_shape, a), (*a.items, *b.items), a.max_num_elements)

        def concat(first: Any, second: Any) -> Any:
            a, b = _handles(first), _handles(second)
            if a.shape != b.shape:
                raise invalid(k, f"input_a and input_b must have one shape, got {list(a.shape)} and {list(b.shape)}")
            if not a.ndim:
                return joined(a[()], b[()])
            joined_lists = np.empty(a.shape, np.object_)
            for at in np.ndindex(*a.shape):
                joined_lists[at] = joined(a[at], b[at])
            return joined_lists

        return concat
