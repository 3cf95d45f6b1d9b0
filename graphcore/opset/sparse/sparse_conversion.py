"""Sparse tensors made dense, ordered, reshaped, and filled up."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from graphcore.errors import InvalidArgumentError
from graphcore.inference import DimensionHandle, InferenceContext
from graphcore.opset.framework.block import NO_GRADIENT, Example, Kernel, KernelContext, no_registered_gradient, op
from graphcore.opset.framework.kernels import invalid
from graphcore.opset.numerics.sparse_values import check_inside, checked, in_order, indices_at, places, vector_like
from graphcore.support.memory_limits import check_allocation

INDICES: Final = np.array([[0, 1], [1, 0], [1, 2]], np.int64)
VALUES: Final = [1.5, -2.0, 3.0]
SIZES: Final = np.array([2, 3], np.int64)
OUTSIDE: Final = np.array([[0, 1], [1, 0], [1, 3]], np.int64)
_UNORDERED: Final = np.array([[1, 2], [0, 1], [1, 0]], np.int64)
_TALL: Final = np.array([4, 3], np.int64)


def check_parts(c: InferenceContext, first: int = 0) -> tuple[DimensionHandle, DimensionHandle]:
    """Check the ranks of indices, values and shape, and merge their sizes.

    Returns:
        The number of values, and the rank.
    """
    indices, values, shape = (c.with_rank(c.input(first + i), rank) for i, rank in enumerate((2, 1, 1)))
    return c.merge_dim(c.dim(indices, 0), c.dim(values, 0)), c.merge_dim(c.dim(indices, 1), c.dim(shape, 0))


@op
class SparseToDense:
    """A dense tensor with values at some places, and a default value elsewhere.

    sparse_indices: [n, rank]; [n] for rank 1; [] for one value
    output_shape: [rank]
    sparse_values: [n], or a scalar for all places
    default_value: a scalar
    dense: output_shape
    validate_indices: refuse indices that are repeated or not in order.
    """

    signature = (
        "SparseToDense[validate_indices:bool = true, T:type, Tindices:{int32, int64}]"
        "(sparse_indices:Tindices, output_shape:Tindices, sparse_values:T, default_value:T) -> (dense:T)"
    )
    device_types = ("CPU",)
    gradient = """[validate_indices:bool, T:type, Tindices:{int32, int64}](indices:Tindices, sizes:Tindices, values:T, default:T, dy:T) -> (dindices:Tindices, dsizes:Tindices, dvalues:T, ddefault:T) {
      dindices = ZerosLike[T=$Tindices](indices)
      dsizes = ZerosLike[T=$Tindices](sizes)
      count = Size[T=$Tindices, out_type=int32](sizes)
      any = Const[dtype=int32, value=Tensor<type: int32 shape: [] values: -1>]()
      matrix = Pack[N=2, T=int32, axis=0](any, count)
      rows = Reshape[T=$Tindices](indices, matrix)
      gathered = GatherNd[Tparams=$T, Tindices=$Tindices](dy, rows)
      shape_of_values = Shape[T=$T](values)
      shape_of_gathered = Shape[T=$T](gathered)
      repeated, none = BroadcastGradientArgs[T=int32](shape_of_values, shape_of_gathered)
      of_values = Sum[T=$T, Tidx=int32](gathered, repeated)
      dvalues = Reshape[T=$T](of_values, shape_of_values)
      rank = Rank[T=$T](dy)
      start = Const[dtype=int32, value=Tensor<type: int32 shape: [] values: 0>]()
      step = Const[dtype=int32, value=Tensor<type: int32 shape: [] values: 1>]()
      axes = Range[Tidx=int32](start, rank, step)
      all = Sum[T=$T, Tidx=int32](dy, axes)
      those = Sum[T=$T, Tidx=int32](gathered, start)
      ddefault = Sub[T=$T](all, those)
    }"""
    examples = (
        Example([INDICES, SIZES, VALUES, -1.0], outputs=[[[-1.0, 1.5, -1.0], [-2.0, -1.0, 3.0]]]),
        Example([[1, 3], [4], [5.0, 6.0], 0.0]),
        Example([[[2, 0], [0, 1]], [3, 2], np.array([b"a", b"b"], object), b""], {"validate_indices": False}),
    )
    failures = (Example([OUTSIDE, SIZES, VALUES, -1.0]), Example([_UNORDERED, SIZES, VALUES, -1.0]))

    def shape(c: InferenceContext) -> None:
        c.set_output(0, c.make_shape_from_shape_tensor(1))

    def kernel(k: KernelContext) -> Kernel:
        validate = bool(k.attr("validate_indices"))

        def dense(indices: Any, shape: Any, values: Any, default: Any) -> Any:
            if indices.ndim > 2 or shape.ndim != 1 or values.ndim > 1 or default.ndim:
                ranks = [indices.ndim, shape.ndim, values.ndim, default.ndim]
                raise invalid(k, f"required ranks of at most 2, 1, at most 1, and 0; got {ranks}")
            rows = indices.reshape(-1, 1) if indices.ndim < 2 else indices
            sizes = tuple(int(size) for size in shape.tolist())
            if rows.shape[1] != len(sizes) or (values.ndim and values.shape[0] != rows.shape[0]):
                raise invalid(k, f"indices {list(indices.shape)} do not fit shape {list(sizes)} and values {list(values.shape)}")
            check_inside(k, rows, sizes)
            flat = places(rows, sizes)
            if validate and (np.diff(flat) <= 0).any():
                at = int((np.diff(flat) <= 0).argmax()) + 1
                what = "repeated" if flat[at] == flat[at - 1] else "out of order"
                raise invalid(k, f"indices[{at}] = {rows[at].tolist()} is {what}")
            dense = np.full(int(np.prod(sizes, dtype=np.int64)), default.item() if values.dtype == np.object_ else default, values.dtype)
            dense[flat] = values
            return dense.reshape(sizes)

        return dense


@op
class SparseReorder:
    """A sparse tensor with its indices in ascending order.

    input_indices: [n, rank]
    input_values: [n]
    input_shape: [rank]
    """

    signature = "SparseReorder[T:type](input_indices:int64, input_values:T, input_shape:int64) -> (output_indices:int64, output_values:T)"
    device_types = ("CPU",)
    # The order of numbers 0 to n is found by the op itself, and gradients go back along it.
    gradient = """[T:type](indices:int64, values:T, sizes:int64, di:int64, dy:T) -> (dindices:int64, dvalues:T, dsizes:int64) {
      rows = Size[T=$T](values)
      start = Const[dtype=int32, value=Tensor<type: int32 shape: [] values: 0>]()
      step = Const[dtype=int32, value=Tensor<type: int32 shape: [] values: 1>]()
      numbers = Range[Tidx=int32](start, rows, step)
      ordered, order = SparseReorder[T=int32](indices, numbers, sizes)
      back = InvertPermutation[T=int32](order)
      dvalues = GatherV2[Tparams=$T, Tindices=int32, Taxis=int32](dy, back, start)
      dindices = ZerosLike[T=int64](indices)
      dsizes = ZerosLike[T=int64](sizes)
    }"""
    examples = (Example([_UNORDERED, VALUES, SIZES], outputs=[[[0, 1], [1, 0], [1, 2]], [-2.0, 3.0, 1.5]]),)
    failures = (Example([OUTSIDE, VALUES, SIZES]),)

    def shape(c: InferenceContext) -> None:
        c.with_rank(c.input(2), 1)
        c.set_output(0, c.with_rank(c.input(0), 2))
        c.set_output(1, c.with_rank(c.input(1), 1))

    def kernel(k: KernelContext) -> Kernel:
        def reorder(indices: Any, values: Any, shape: Any) -> Any:
            order = in_order(indices, checked(k, indices, values, shape))
            return indices[order], values[order]

        return reorder


@op
class SparseReshape:
    """The indices of a sparse tensor for another shape of the same dense tensor.

    input_indices: [n, rank]
    input_shape: [rank]
    new_shape: [new rank]; one size may be -1
    output_indices: [n, new rank]
    output_shape: [new rank]
    """

    signature = "SparseReshape(input_indices:int64, input_shape:int64, new_shape:int64) -> (output_indices:int64, output_shape:int64)"
    device_types = ("CPU",)
    gradient = NO_GRADIENT
    examples = (
        Example([INDICES, SIZES, np.array([3, -1])], outputs=[[[0, 1], [1, 1], [2, 1]], [3, 2]]),
        Example([INDICES, SIZES, np.array([6])]),
    )
    failures = (Example([INDICES, SIZES, np.array([4, 2])]),)

    def shape(c: InferenceContext) -> None:
        indices = c.with_rank(c.input(0), 2)
        c.with_rank(c.input(1), 1)
        new = c.with_rank(c.input(2), 1)
        c.set_output(0, c.matrix(c.dim(indices, 0), c.dim(new, 0)))
        c.set_output(1, new)

    def kernel(k: KernelContext) -> Kernel:
        def reshape(indices: Any, shape: Any, new: Any) -> Any:
            sizes, wanted = [int(size) for size in shape.tolist()], [int(size) for size in new.tolist()]
            count = int(np.prod(sizes, dtype=np.int64))
            rest = int(np.prod([size for size in wanted if size >= 0], dtype=np.int64))
            if wanted.count(-1) > 1 or min(wanted, default=0) < -1:
                raise invalid(k, f"only one output dimension may be -1, and none below; got {wanted}")
            if -1 in wanted:
                if not rest or count % rest:
                    raise invalid(k, f"Input to reshape is a SparseTensor with {count} dense values, which do not fit shape {wanted}")
                wanted[wanted.index(-1)] = count // rest
            elif rest != count:
                raise invalid(k, f"Input to reshape is a tensor with {count} dense values, but the requested shape has {rest}")
            check_inside(k, indices, tuple(sizes))
            return indices_at(places(indices, sizes), wanted), np.array(wanted, np.int64)

        return reshape


@op
class SparseFillEmptyRows:
    """A sparse tensor in which each empty row has a default value in its first column.

    indices: [n, rank], in order of rows
    values: [n]
    dense_shape: [rank]
    default_value: a scalar
    output_indices: [m, rank]
    output_values: [m]
    empty_row_indicator: [dense_shape[0]], true for rows that were empty
    reverse_index_map: [n], the new place of each value
    """

    signature = (
        "SparseFillEmptyRows[T:type](indices:int64, values:T, dense_shape:int64, default_value:T) -> "
        "(output_indices:int64, output_values:T, empty_row_indicator:bool, reverse_index_map:int64)"
    )
    device_types = ("CPU",)
    gradient = """[T:type](indices:int64, values:T, sizes:int64, default:T, di:int64, dv:T, de:bool, dr:int64) -> (dindices:int64, dvalues:T, dsizes:int64, ddefault:T) {
      filled, new, empty, map = SparseFillEmptyRows[T=$T](indices, values, sizes, default)
      dvalues, ddefault = SparseFillEmptyRowsGrad[T=$T](map, dv)
      dindices = ZerosLike[T=int64](indices)
      dsizes = ZerosLike[T=int64](sizes)
    }"""
    examples = (
        Example([np.array([[0, 1], [2, 0], [2, 2]]), VALUES, _TALL, 9.0]),
        Example([np.array([[0, 1]]), np.array([b"x"], object), SIZES, b"none"]),
    )
    failures = (Example([np.array([[0, 1], [4, 0], [4, 2]]), VALUES, _TALL, 9.0]),)

    def shape(c: InferenceContext) -> None:
        number, rank = check_parts(c)
        c.with_rank(c.input(3), 0)
        sizes = c.input_tensor(2)
        c.set_output(0, c.matrix(c.unknown_dim(), rank))
        c.set_output(1, c.vector(c.unknown_dim()))
        c.set_output(2, c.vector(c.unknown_dim() if sizes is None or not sizes.size else int(sizes[0])))
        c.set_output(3, c.vector(number))

    def kernel(k: KernelContext) -> Kernel:
        def fill(indices: Any, values: Any, shape: Any, default: Any) -> Any:
            if shape.ndim != 1 or not shape.size or indices.ndim != 2 or indices.shape != (values.shape[0], shape.size):
                raise invalid(k, f"indices {list(indices.shape)}, values {list(values.shape)} and shape {list(shape.shape)} do not fit")
            rows = int(shape[0])
            numbers = indices[:, 0]
            if len(numbers) and (numbers.min() < 0 or numbers.max() >= rows):
                at = int(((numbers < 0) | (numbers >= rows)).argmax())
                raise invalid(k, f"indices({at}, 0) is invalid: {numbers[at]} is not in [0, {rows})")
            if rows < 0:
                raise invalid(k, f"dense_shape[0] must not be negative, got {rows}")
            check_allocation((rows,), np.dtype(bool))
            empty = np.ones(rows, bool)
            empty[numbers] = False
            number = len(numbers) + int(np.count_nonzero(empty))
            check_allocation((number, shape.size), indices.dtype)
            check_allocation((number,), values.dtype)
            missing = np.flatnonzero(empty)
            added = np.zeros((len(missing), indices.shape[1]), np.int64)
            added[:, 0] = missing
            both = np.concatenate([indices, added])
            order = np.argsort(both[:, 0], kind="stable")
            back = np.empty(len(order), np.int64)
            back[order] = np.arange(len(order))
            with_default = np.concatenate([values, vector_like([default.item()] * len(missing), values.dtype)])
            return both[order], with_default[order], empty, back[: len(numbers)]

        return fill


@op
class SparseFillEmptyRowsGrad:
    """The gradient of SparseFillEmptyRows.

    reverse_index_map: [n], as of the op
    grad_values: [m], the gradients of the new values
    d_values: [n]
    d_default_value: a scalar
    """

    signature = "SparseFillEmptyRowsGrad[T:type](reverse_index_map:int64, grad_values:T) -> (d_values:T, d_default_value:T)"
    device_types = ("CPU",)
    gradient = no_registered_gradient("TensorFlow has no second derivative of this op")
    examples = (Example([np.array([2, 0]), [1.0, 2.0, 4.0]], outputs=[[4.0, 1.0], 2.0], differentiable=False),)
    failures = (Example([np.array([9, 0]), [1.0, 2.0, 4.0]]),)

    def shape(c: InferenceContext) -> None:
        c.with_rank(c.input(1), 1)
        c.set_output(0, c.with_rank(c.input(0), 1))
        c.set_output(1, c.scalar())

    def kernel(k: KernelContext) -> Kernel:
        def spread(back: Any, gradients: Any) -> Any:
            if back.size and not (back.min() >= 0 and back.max() < gradients.shape[0]):
                raise invalid(k, f"Elements in reverse index must be in [0, {gradients.shape[0]}) but got {back.tolist()}")
            others = np.ones(gradients.shape[0], bool)
            others[back] = False
            return gradients[back], np.asarray(gradients[others].sum(dtype=gradients.dtype))

        return spread


@op
class SparseSlice:
    """The part of a sparse tensor in a box.

    indices: [n, rank]
    values: [n]
    shape: [rank]
    start: [rank], the first corner
    size: [rank], the sizes of the box, cut at the end of the tensor
    """

    signature = (
        "SparseSlice[T:type](indices:int64, values:T, shape:int64, start:int64, size:int64) -> "
        "(output_indices:int64, output_values:T, output_shape:int64)"
    )
    device_types = ("CPU",)
    gradient = """[T:type](indices:int64, values:T, sizes:int64, start:int64, size:int64, di:int64, dv:T, ds:int64) -> (dindices:int64, dvalues:T, dsizes:int64, dstart:int64, dsize:int64) {
      part, those, its = SparseSlice[T=$T](indices, values, sizes, start, size)
      dvalues = SparseSliceGrad[T=$T](dv, indices, start, part)
      dindices = ZerosLike[T=int64](indices)
      dsizes = ZerosLike[T=int64](sizes)
      dstart = ZerosLike[T=int64](start)
      dsize = ZerosLike[T=int64](size)
    }"""
    examples = (Example([INDICES, VALUES, SIZES, np.array([0, 1]), np.array([2, 9])]),)
    failures = (Example([OUTSIDE, VALUES, SIZES, np.array([0, 1]), np.array([-2, 9])]),)

    def shape(c: InferenceContext) -> None:
        sizes = c.input(2)
        c.set_output(0, c.matrix(c.unknown_dim(), c.num_elements(sizes)))
        c.set_output(1, c.vector(c.unknown_dim()))
        c.set_output(2, sizes)

    def kernel(k: KernelContext) -> Kernel:
        def cut(indices: Any, values: Any, shape: Any, start: Any, size: Any) -> Any:
            if not start.shape == size.shape == shape.shape:
                sizes = f"{list(shape.shape)}, {list(start.shape)} and {list(size.shape)}"
                raise invalid(k, f"required shape, start and size of one length, got shapes {sizes}")
            if (start < 0).any() or (size < 0).any():
                raise invalid(k, f"start and size must not be negative, got {start.tolist()} and {size.tolist()}")
            checked(k, indices, values, shape)
            new = np.maximum(np.minimum(size, shape - start), 0)
            inside = ((indices >= start) & (indices < start + new)).all(1)
            return indices[inside] - start, values[inside], new

        return cut


@op
class SparseSliceGrad:
    """The gradient of SparseSlice: gradients of the values inside, and zeros for the others.

    backprop_val_grad: [m], the gradients of the values of the part
    input_indices: [n, rank]
    input_start: [rank]
    output_indices: [m, rank]
    val_grad: [n]
    """

    signature = (
        "SparseSliceGrad[T:{float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, quint16, "
        "uint16, complex128, half, uint32, uint64}](backprop_val_grad:T, input_indices:int64, input_start:int64, output_indices:int64) -> "
        "(val_grad:T)"
    )
    device_types = ("CPU",)
    gradient = no_registered_gradient("TensorFlow has no second derivative of this op")
    examples = (
        Example([[5.0, 7.0], INDICES, np.array([0, 1]), np.array([[0, 0], [1, 1]])], outputs=[[5.0, 0.0, 7.0]], differentiable=False),
    )
    failures = (Example([[5.0], INDICES, np.array([0, 1]), np.array([[0, 0], [1, 1]])]),)

    def shape(c: InferenceContext) -> None:
        c.set_output(0, c.vector(c.dim(c.with_rank(c.input(1), 2), 0)))

    def kernel(k: KernelContext) -> Kernel:
        def spread(gradients: Any, indices: Any, start: Any, part: Any) -> Any:
            if part.ndim != 2 or gradients.shape != part.shape[:1] or not start.shape == indices.shape[1:] == part.shape[1:]:
                raise invalid(
                    k,
                    f"gradients {list(gradients.shape)} and start {list(start.shape)} do not fit indices {list(part.shape)} of {list(indices.shape)}",
                )
            at = {tuple(row): i for i, row in enumerate((part + start).tolist())}
            input_places = [at.get(tuple(row), -1) for row in indices.tolist()]
            result = np.zeros(len(indices), gradients.dtype)
            for i, place in enumerate(input_places):
                if place >= 0:
                    result[i] = gradients[place]
            return result

        return spread


def reduced_shape(c: InferenceContext) -> None:
    """The shape of a reduction along axes in input 3 of a sparse tensor with its shape in input 2."""
    sizes, axes = c.input_tensor(2), c.input_tensor(3)
    if sizes is None or axes is None:
        c.set_output(0, c.unknown_shape())
        return
    sizes = sizes.reshape(-1)  # of any rank, as in TensorFlow
    rank, keep = sizes.size, c.attr("keep_dims")
    chosen = set()
    for axis in axes.reshape(-1).tolist():
        if not -rank <= axis < rank:
            raise InvalidArgumentError(f"Invalid reduction dimension {axis}, for input with {rank} dimensions.")
        chosen.add(axis % rank)
    c.set_output(0, c.make_shape([1 if i in chosen else int(sizes[i]) for i in range(rank) if keep or i not in chosen]))
