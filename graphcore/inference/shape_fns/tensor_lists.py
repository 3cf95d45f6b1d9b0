"""Shape functions of the list ops; the element shape and type are part of the handle data."""

from __future__ import annotations

from graphcore.dtypes import DType
from graphcore.errors import InvalidArgumentError
from graphcore.inference.context import InferenceContext
from graphcore.inference.handles import ShapeAndType, ShapeHandle


def element_dtype(c: InferenceContext) -> DType | None:
    """The type in attr `element_dtype`."""
    dtype = c.attr("element_dtype")
    return dtype if isinstance(dtype, DType) else None


def list_element_shape(c: InferenceContext, index: int = 0) -> ShapeHandle:
    """The element shape of the list at input `index`, as far as known.

    Raises:
        InvalidArgumentError: the element type differs from the op's.
    """
    data = c.input_handle_shapes_and_types(index)
    if not data:
        return c.unknown_shape()
    declared = element_dtype(c) if c.op_def.find_attr("element_dtype") is not None else None
    if declared is not None and data[0].dtype is not None and data[0].dtype is not declared:
        raise InvalidArgumentError(f"Expected list with element dtype {declared} but got list with element dtype {data[0].dtype}")
    return data[0].shape


def set_list_output(c: InferenceContext, shape: ShapeHandle, output: int = 0, handle: ShapeHandle | None = None) -> None:
    """Declare output `output` a list (or an array of lists) with elements of that shape."""
    c.set_output(output, c.scalar() if handle is None else handle)
    data = c.input_handle_shapes_and_types(0)
    dtype = element_dtype(c) if c.op_def.find_attr("element_dtype") is not None else (data[0].dtype if data else None)
    if dtype is not None or data:
        c.set_output_handle_shapes_and_types(output, [ShapeAndType(shape, dtype)])


def shape_argument(c: InferenceContext, index: int) -> ShapeHandle:
    """The element shape in input `index`; a scalar stands for an unknown one."""
    return c.make_shape_from_shape_tensor_treat_scalar_as_unknown_shape(index)


def empty_list_shape(c: InferenceContext) -> None:
    """EmptyTensorList, TensorListReserve: the element shape is input 0."""
    c.with_rank(c.input(1), 0)
    set_list_output(c, shape_argument(c, 0))


def push_back_shape(c: InferenceContext) -> None:
    """TensorListPushBack: the element must fit."""
    set_list_output(c, c.merge(list_element_shape(c), c.input(1)))


def pop_back_shape(c: InferenceContext) -> None:
    """TensorListPopBack: the shorter list, and an element."""
    shape = c.merge(list_element_shape(c), shape_argument(c, 1))
    c.set_output(1, shape)
    set_list_output(c, shape)


def push_back_batch_shape(c: InferenceContext) -> None:
    """TensorListPushBackBatch: handles of shape [batch], one element each."""
    handles = c.with_rank(c.input(0), 1)
    elements = c.with_rank_at_least(c.input(1), 1)
    batch = c.merge(handles, c.subshape(elements, 0, 1))
    set_list_output(c, c.merge(list_element_shape(c), c.subshape(elements, 1)), handle=batch)


def length_shape(c: InferenceContext) -> None:
    """TensorListLength: a scalar."""
    c.set_output(0, c.scalar())


def element_shape_shape(c: InferenceContext) -> None:
    """TensorListElementShape: a vector if the rank of the elements is known.

    A scalar stands for an unknown rank.
    """
    rank = c.rank(list_element_shape(c))
    c.set_output(0, c.unknown_shape() if rank < 0 else c.vector(rank))


def get_item_shape(c: InferenceContext) -> None:
    """TensorListGetItem: an element."""
    c.with_rank(c.input(1), 0)
    c.set_output(0, c.merge(list_element_shape(c), shape_argument(c, 2)))


def set_item_shape(c: InferenceContext) -> None:
    """TensorListSetItem: the element must fit."""
    c.with_rank(c.input(1), 0)
    set_list_output(c, c.merge(list_element_shape(c), c.input(2)))


def resize_shape(c: InferenceContext) -> None:
    """TensorListResize: the same kind of list."""
    c.with_rank(c.input(1), 0)
    set_list_output(c, list_element_shape(c))


def stack_shape(c: InferenceContext) -> None:
    """TensorListStack: the elements along a new first dimension."""
    shape = c.merge(list_element_shape(c), shape_argument(c, 1))
    count = c.int_attr("num_elements")
    c.set_output(0, c.concatenate(c.vector(c.unknown_dim() if count < 0 else count), shape))


def from_tensor_shape(c: InferenceContext) -> None:
    """TensorListFromTensor: the shape of the tensor's rows merged with the shape in input 1."""
    rest = c.subshape(c.with_rank_at_least(c.input(0), 1), 1)
    set_list_output(c, c.merge(shape_argument(c, 1), rest))


def gather_shape(c: InferenceContext) -> None:
    """TensorListGather: as many elements as indices."""
    indices = c.with_rank(c.input(1), 1)
    c.set_output(0, c.concatenate(indices, c.merge(list_element_shape(c), shape_argument(c, 2))))


def scatter_shape(c: InferenceContext) -> None:
    """TensorListScatter, TensorListScatterV2: a new list with the rows of a tensor."""
    c.with_rank(c.input(1), 1)
    rest = c.subshape(c.with_rank_at_least(c.input(0), 1), 1)
    set_list_output(c, c.merge(shape_argument(c, 2), rest))


def scatter_into_shape(c: InferenceContext) -> None:
    """TensorListScatterIntoExistingList: some elements are replaced."""
    c.with_rank(c.input(2), 1)
    rest = c.subshape(c.with_rank_at_least(c.input(1), 1), 1)
    set_list_output(c, c.merge(list_element_shape(c), rest))


def _concatenated(c: InferenceContext, element: ShapeHandle) -> None:
    if c.rank(element) < 0:
        c.set_output(0, c.unknown_shape())
    else:
        c.set_output(0, c.concatenate(c.vector(c.unknown_dim()), c.subshape(c.with_rank_at_least(element, 1), 1)))
    c.set_output(1, c.vector(c.unknown_dim()))


def concat_shape(c: InferenceContext) -> None:
    """TensorListConcat: attr `element_shape` gives the shape of the elements."""
    declared = c.attr("element_shape")
    held = list_element_shape(c)
    from_attr = c.make_shape_from_shape(declared)  # type: ignore[arg-type]  # the signature declares it as a shape
    _concatenated(c, c.merge(from_attr, held) if c.rank(held) >= 0 else from_attr)


def concat_v2_shape(c: InferenceContext) -> None:
    """TensorListConcatV2: input 1 gives the shape of the elements."""
    _concatenated(c, c.merge(list_element_shape(c), shape_argument(c, 1)))


def split_shape(c: InferenceContext) -> None:
    """TensorListSplit: parts of different length along the first dimension."""
    c.with_rank(c.input(2), 1)
    tensor = c.with_rank_at_least(c.input(0), 1)
    parts = c.concatenate(c.vector(c.unknown_dim()), c.subshape(tensor, 1))
    set_list_output(c, c.merge(shape_argument(c, 1), parts))


def concat_lists_shape(c: InferenceContext) -> None:
    """TensorListConcatLists: both lists (or arrays of lists) in a row."""
    handles = c.merge(c.input(0), c.input(1))
    data = [c.input_handle_shapes_and_types(i) for i in (0, 1)]
    shapes = [held[0].shape for held in data if held]
    shape = c.merge(*shapes) if len(shapes) == 2 else shapes[0] if shapes else c.unknown_shape()
    set_list_output(c, shape, handle=handles)
