"""Indexing by tensors of indices: gathering, scattering, stitching."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from graphcore.attrs import Attrs
from graphcore.inference import partial_rules
from graphcore.inference.shape_fns.common_shape_fns import (
    dynamic_stitch_shape,
    gather_nd_shape,
    gather_shape,
    gather_v2_shape,
    one_hot_shape,
    scatter_nd_shape,
)
from graphcore.opset.framework.block import NO_GRADIENT, Example, Kernel, KernelContext, op
from graphcore.opset.framework.gradient_text import index_type, list_to_array, required_int, scalar, vector
from graphcore.opset.framework.kernels import combining_at, constant_int, ints, invalid, normal_axis, one_int
from graphcore.opset.framework.type_sets import INDEX
from graphcore.traits import FailsOn

_X: Final = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]


def checked_indices(k: KernelContext, indices: Any, limit: int) -> Any:
    """Check that all indices are in [0, limit).

    Raises:
        InvalidArgumentError: one is not; the text names the first.
    """
    if indices.size and not (indices.min() >= 0 and indices.max() < limit):
        position = tuple(k.xp.argwhere((indices < 0) | (indices >= limit))[0].tolist())
        raise invalid(k, f"indices[{','.join(map(str, position))}] = {indices[position]} is not in [0, {limit})").advise(
            f"Use indices from 0 to {limit - 1}: counting begins at 0." if limit > 0 else "There are no rows to choose from.",
            required=f"indices from 0 to {limit - 1}",
            came=str(indices[position]),
        )
    return indices


_GATHER_GRADIENT: Final = f"""[Tparams:type, Tindices:{{int32, int64}}](params:Tparams, indices:Tindices, dy:Tparams) -> (dparams:Tparams, dindices:Tindices) {{
  minus_one = {scalar("int32", -1)}
  column = ExpandDims[T=$Tindices](indices, minus_one)
  shape = Shape[T=$Tparams, out_type=$Tindices](params)
  dparams = ScatterNd[T=$Tparams, Tindices=$Tindices](column, dy, shape)
  dindices = ZerosLike[T=$Tindices](indices)
}}"""


@op
class Gather:
    """The slices of `params` at `indices` along its first dimension.

    params: [n, ...]
    indices: any shape, each in [0, n)
    output: indices.shape + params.shape[1:]
    """

    pure = True
    signature = (
        f"Gather[validate_indices:bool = true, Tparams:type, Tindices:{INDEX}](params:Tparams, indices:Tindices) -> (output:Tparams)"
    )
    shape = gather_shape
    partial_rule = partial_rules.GATHER
    gathers_rows = True
    gradient = _GATHER_GRADIENT
    examples = (Example([_X, [1, 0, 1]]), Example([[1.0, 2.0], [[0, 1], [1, 1]]]))
    failures = (Example([_X, [-1, -1, -1]]),)

    def kernel(k: KernelContext) -> Kernel:
        return lambda params, indices: params.take(checked_indices(k, indices, params.shape[0]), 0)


def _gather_v2_grad(attrs: Attrs) -> str:
    """Move the gathered dimension to the front, add up the slices at their sources, and move it back.

    Batch dimensions come first of all; the indices of batch i then count from i * n on.
    """
    index, axis = index_type(attrs, "Tindices").text, index_type(attrs, "Taxis").text
    to_int32 = f"Cast[DstT=int32, SrcT={axis}](axis)" if axis != "int32" else "Identity[T=int32](axis)"
    return f"""[Tparams:type](params:Tparams, indices:{index}, axis:{axis}, dy:Tparams) -> (dparams:Tparams, dindices:{index}, daxis:{axis}) {{
  zero = {scalar("int32", 0)}
  one = {scalar("int32", 1)}
  flat = {vector("int32", -1)}
  batch_dims = {scalar("int32", attrs.get("batch_dims") or 0)}
  batch = Range(zero, batch_dims, one)
  axis_32 = {to_int32}
  rank = Rank[T=$Tparams](params)
  wrapped = FloorMod[T=int32](axis_32, rank)
  at = Reshape[T=int32](wrapped, flat)
  front = ConcatV2[N=2, T=int32](batch, at, zero)
  dims = Range(zero, rank, one)
  rest, rest_places = ListDiff[T=int32](dims, front)
  perm = ConcatV2[N=2, T=int32](front, rest, zero)
  indices_rank = Rank[T={index}](indices)
  indices_end = AddV2[T=int32](indices_rank, wrapped)
  dy_end = Sub[T=int32](indices_end, batch_dims)
  dy_at = Range(wrapped, dy_end, one)
  dy_front = ConcatV2[N=2, T=int32](batch, dy_at, zero)
  dy_rank = Rank[T=$Tparams](dy)
  dy_dims = Range(zero, dy_rank, one)
  dy_rest, dy_rest_places = ListDiff[T=int32](dy_dims, dy_front)
  dy_perm = ConcatV2[N=2, T=int32](dy_front, dy_rest, zero)
  dy_moved = Transpose[T=$Tparams](dy, dy_perm)
  params_shape = Shape[T=$Tparams](params)
  moved_shape = GatherV2[Taxis=int32, Tindices=int32, Tparams=int32](params_shape, perm, zero)
  batch_sizes = GatherV2[Taxis=int32, Tindices=int32, Tparams=int32](params_shape, batch, zero)
  batches = Prod[T=int32](batch_sizes, zero)
  size = GatherV2[Taxis=int32, Tindices=int32, Tparams=int32](params_shape, wrapped, zero)
  rest_sizes = GatherV2[Taxis=int32, Tindices=int32, Tparams=int32](params_shape, rest, zero)
  indices_32 = Cast[DstT=int32, SrcT={index}](indices)
  count = Size[T={index}](indices)
  at_least_one = Maximum[T=int32](batches, one)
  per_batch = Div[T=int32](count, at_least_one)
  table_shape = Pack[N=2, T=int32](batches, per_batch)
  table = Reshape[T=int32](indices_32, table_shape)
  limit = Mul[T=int32](batches, size)
  batch_numbers = Range(zero, batches, one)
  starts = Mul[T=int32](batch_numbers, size)
  starts_column = ExpandDims[T=int32](starts, one)
  rows = AddV2[T=int32](table, starts_column)
  rows_shape = Pack[N=2, T=int32](count, one)
  rows_column = Reshape[T=int32](rows, rows_shape)
  count_vector = Reshape[T=int32](count, flat)
  dy_rows_shape = ConcatV2[N=2, T=int32](count_vector, rest_sizes, zero)
  dy_rows = Reshape[T=$Tparams](dy_moved, dy_rows_shape)
  limit_vector = Reshape[T=int32](limit, flat)
  sum_shape = ConcatV2[N=2, T=int32](limit_vector, rest_sizes, zero)
  sum = ScatterNd[T=$Tparams, Tindices=int32](rows_column, dy_rows, sum_shape)
  sum_moved = Reshape[T=$Tparams](sum, moved_shape)
  back = InvertPermutation(perm)
  dparams = Transpose[T=$Tparams](sum_moved, back)
  dindices = ZerosLike[T={index}](indices)
  daxis = ZerosLike[T={axis}](axis)
}}"""


@op
class GatherV2:
    """The slices of `params` at `indices` along one dimension.

    indices: any shape; along the batch dimensions as params
    axis: the dimension, a scalar in [-rank, rank)
    output: params.shape[:axis] + indices.shape[batch_dims:] + params.shape[axis + 1:]
    batch_dims: the number of leading dimensions that params and indices share.
    """

    pure = True
    signature = (
        f"GatherV2[batch_dims:int = 0, Tparams:type, Tindices:{{int16, int32, int64}}, Taxis:{INDEX}]"
        "(params:Tparams, indices:Tindices, axis:Taxis) -> (output:Tparams)"
    )
    shape = gather_v2_shape
    partial_rule = partial_rules.GATHER
    gathers_rows = True
    gradient = _gather_v2_grad
    examples = (
        Example([_X, [1, 0, 1], 0]),
        Example([_X, [[2, 0], [1, 1]], -1]),
        Example([_X, [[2, 0], [1, 1]], 1], {"batch_dims": 1}, outputs=[[[3.0, 1.0], [5.0, 5.0]]]),
        Example([_X, 1, 1], outputs=[[2.0, 5.0]]),
    )
    failures = (Example([_X, [-1, -1, -1], 0]),)

    def kernel(k: KernelContext) -> Kernel:
        constant_axis, batch_dims = constant_int(k, 2), int(str(k.attr("batch_dims")))

        def gather(params: Any, indices: Any, axis: Any) -> Any:
            along = normal_axis(k, one_int(k, axis) if constant_axis is None else constant_axis, params.ndim)
            checked_indices(k, indices, params.shape[along])
            if not batch_dims:
                return params.take(indices, along)
            return _batch_gather(k, params, indices, along, batch_dims + indices.ndim if batch_dims < 0 else batch_dims)

        return gather


def _batch_gather(k: KernelContext, params: Any, indices: Any, axis: int, batch_dims: int) -> Any:
    if params.shape[:batch_dims] != indices.shape[:batch_dims]:
        raise invalid(
            k,
            f"params of shape {list(params.shape)} and indices of shape {list(indices.shape)} must agree in {batch_dims} leading dimensions",
        )
    between, inner = axis - batch_dims, indices.ndim - batch_dims
    index: list[Any] = [k.xp.arange(params.shape[i]).reshape([-1 if d == i else 1 for d in range(axis + inner)]) for i in range(axis)]
    index.append(indices.reshape(indices.shape[:batch_dims] + (1,) * between + indices.shape[batch_dims:]))
    return params[tuple(index)]


@op
class GatherNd:
    """The slices of `params` at the positions in the last dimension of `indices`.

    indices: [..., k], each row a position in the first k dimensions of params
    output: indices.shape[:-1] + params.shape[k:]
    """

    pure = True
    signature = (
        "GatherNd[Tparams:type, Tindices:{int16, int32, int64}, bad_indices_policy:string = '']"
        "(params:Tparams, indices:Tindices) -> (output:Tparams)"
    )
    shape = gather_nd_shape
    examples = (
        Example([_X, [[1, 2], [0, 0]]], outputs=[[6.0, 1.0]]),
        Example([_X, [[1], [1], [0]]]),
        Example([_X, np.zeros((2, 0), np.int32)]),
    )
    failures = (Example([_X, [[-1, -1], [-1, -1]]]),)

    def gradient(attrs: Attrs) -> str:
        wide = ", out_type=int64" if index_type(attrs, "Tindices").text == "int64" else ""
        return f"""[Tparams:type, Tindices:type](params:Tparams, indices:Tindices, doutput:Tparams) -> (dparams:Tparams, dindices:Tindices) {{
          x_shape = Shape[T=$Tparams{wide}](params)
          dparams = ScatterNd[T=$Tparams, Tindices=$Tindices](indices, doutput, x_shape)
          dindices = ZerosLike[T=$Tindices](indices)
        }}"""

    def kernel(k: KernelContext) -> Kernel:
        broadcast_to = k.xp.broadcast_to

        def gather(params: Any, indices: Any) -> Any:
            if not params.size and math.prod(indices.shape[:-1]):
                raise invalid(
                    k, f"required params with elements to take {math.prod(indices.shape[:-1])} slices of, got shape {list(params.shape)}"
                )
            if not indices.shape[-1]:
                return broadcast_to(params, indices.shape[:-1] + params.shape)
            return params[positions(k, indices, params.shape)]

        return gather


def positions(k: KernelContext, indices: Any, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """One index array for each dimension that is indexed."""
    depth = indices.shape[-1]
    if depth > len(shape):
        raise invalid(k, f"indices.shape[-1] must be <= params.rank, got {depth} and {len(shape)}")
    limits = k.xp.asarray(shape[:depth])
    if indices.size and not ((indices >= 0) & (indices < limits)).all():
        row = tuple(k.xp.argwhere(((indices < 0) | (indices >= limits)).any(-1))[0].tolist())
        raise invalid(k, f"indices[{','.join(map(str, row))}] = {indices[row].tolist()} does not index into shape {list(shape)}")
    return tuple([indices[..., i] for i in range(depth)])


@op
class ScatterNd:
    """Zeros with `updates` added at the positions in the last dimension of `indices`.

    indices: [..., k], each row a position in the first k dimensions
    updates: indices.shape[:-1] + shape[k:]
    shape: the sizes of the output
    """

    pure = True
    signature = (
        "ScatterNd[T:type, Tindices:{int16, int32, int64}, bad_indices_policy:string = '']"
        "(indices:Tindices, updates:T, shape:Tindices) -> (output:T)"
    )
    shape = scatter_nd_shape
    gradient = """[T:type, Tindices:type](indices:Tindices, updates:T, shape:Tindices, doutput:T) -> (dindices:Tindices, dupdates:T, dshape:Tindices) {
      dindices = ZerosLike[T=$Tindices](indices)
      dupdates = GatherNd[Tindices=$Tindices, Tparams=$T](doutput, indices)
      dshape = ZerosLike[T=$Tindices](shape)
    }"""
    examples = (
        Example([[[4], [3], [1], [7]], [9.0, 10.0, 11.0, 12.0], [8]], outputs=[[0.0, 11.0, 0.0, 10.0, 9.0, 0.0, 0.0, 12.0]]),
        Example([[[0], [0]], _X, [2, 3]], outputs=[[[5.0, 7.0, 9.0], [0.0, 0.0, 0.0]]]),
    )
    failures = (Example([[[-1], [-1], [-1], [-1]], [9.0, 10.0, 11.0, 12.0], [8]]),)

    def kernel(k: KernelContext) -> Kernel:
        zeros, add_at, dtype = k.xp.zeros, combining_at(k.xp, "add"), k.dtype("T")

        def scatter(indices: Any, updates: Any, shape: Any) -> Any:
            sizes = ints(shape)
            depth = indices.shape[-1]
            if updates.shape != indices.shape[:-1] + sizes[depth:]:
                raise invalid(
                    k,
                    f"updates must have shape indices.shape[:-1] + shape[{depth}:] = {list(indices.shape[:-1] + sizes[depth:])}, got {list(updates.shape)}",
                )
            result = zeros(sizes, dtype)
            if depth:
                add_at(result, positions(k, indices, sizes), updates)
                return result
            return result + k.xp.add.reduce(updates, tuple(range(indices.ndim - 1)), dtype)

        return scatter


@op
class DynamicStitch:
    """Merges slices of several tensors: merged[indices[m][i]] = data[m][i]; the last duplicate counts.

    A negative index counts from the end of the result (TensorFlow refuses it); so reduction gradients may be given negative axes.

    indices: the positions of the slices
    data: the slices, data[m].shape = indices[m].shape + the same rest
    merged: [largest index + 1] + the rest; zeros at positions without an index
    """

    pure = True
    signature = "DynamicStitch[N:int, T:type](indices:N*int32, data:N*T) -> (merged:T)"
    shape = dynamic_stitch_shape
    can_fail = FailsOn(values=("indices",))
    examples = (
        Example([[[0, 2], 1], [[[1.0, 2.0], [3.0, 4.0]], [5.0, 6.0]]], outputs=[[[1.0, 2.0], [5.0, 6.0], [3.0, 4.0]]]),
        Example([[[0, 1, 2], [1]], [[7, 8, 9], [-1]]], outputs=[[7, -1, 9]]),
    )
    failures = (Example([[[-9, 2], 1], [[[1.0, 2.0], [3.0, 4.0]], [5.0, 6.0]]]),)

    def gradient(attrs: Attrs) -> str:
        count = required_int(attrs, "N")
        body = "".join(
            f"  i{i} = Identity[T=int32](indices:{i})\n"
            f"  di{i} = ZerosLike[T=int32](i{i})\n"
            f"  dx{i} = Gather[Tindices=int32, Tparams=$T](dy, i{i})\n"
            for i in range(count)
        )
        return (
            f"[N:int, T:type](indices:N*int32, data:N*T, dy:T) -> (dindices:N*int32, ddata:N*T) {{\n{body}"
            f"  dindices = {list_to_array(attrs, [f'di{i}' for i in range(count)], 'int32')}\n"
            f"  ddata = {list_to_array(attrs, [f'dx{i}' for i in range(count)])}\n"
            "}"
        )

    def kernel(k: KernelContext) -> Kernel:
        xp, dtype, count = k.xp, k.dtype("T"), required_int(k.attrs, "N")

        def stitch(*inputs: Any) -> Any:
            indices, data = inputs[:count], inputs[count:]
            size = max((int(index.max()) for index in indices if index.size), default=-1) + 1
            rest = data[0].shape[indices[0].ndim :]
            merged = xp.zeros((size, *rest), dtype)
            for index, part in zip(indices, data, strict=True):
                if part.shape != index.shape + rest:
                    raise invalid(
                        k,
                        f"Need data.shape to be indices.shape + {list(rest)}, got {list(part.shape)} for indices of shape {list(index.shape)}",
                    )
                merged[xp.asarray(index)] = part  # they decide a shape, and may be on the host
            return merged

        return stitch


@op
class ParallelDynamicStitch(DynamicStitch):
    """Merges slices of several tensors: merged[indices[m][i]] = data[m][i]; duplicates are not expected.

    indices: the positions of the slices
    data: the slices, data[m].shape = indices[m].shape + the same rest
    merged: [largest index + 1] + the rest; zeros at positions without an index
    """

    signature = "ParallelDynamicStitch[N:int, T:type](indices:N*int32, data:N*T) -> (merged:T)"


@op
class OneHot:
    """A vector for each index, with `on_value` at the index and `off_value` elsewhere.

    An index outside [0, depth) gives no `on_value`.

    depth: the size of the new dimension, a scalar
    on_value: a scalar
    off_value: a scalar
    axis: the position of the new dimension; -1 is last.
    """

    pure = True
    signature = "OneHot[axis:int = -1, T:type, TI:{uint8, int8, int32, int64} = int64](indices:TI, depth:int32, on_value:T, off_value:T) -> (output:T)"
    shape = one_hot_shape
    can_fail = FailsOn(values=("depth",))
    gradient = NO_GRADIENT
    examples = (
        Example([[0, 2, -1], 3, 5.0, 0.5]),
        Example([[[0, 1], [1, 2]], 3, 1, 0], {"axis": 0}),
    )
    failures = (Example([[0, 2, -1], -1, 5.0, 0.5]),)

    def kernel(k: KernelContext) -> Kernel:
        xp, axis = k.xp, int(str(k.attr("axis")))

        def one_hot(indices: Any, depth: Any, on: Any, off: Any) -> Any:
            where = indices.ndim if axis == -1 else axis
            if not 0 <= where <= indices.ndim:
                raise invalid(k, f"Expected axis to be -1 or between [0, {indices.ndim}].  But received: {axis}")
            size = one_int(k, depth)
            if size < 0:
                raise invalid(k, f"depth must be non-negative, got: {size}")
            places = xp.arange(size).reshape([-1] + [1] * (indices.ndim - where))
            return xp.where(xp.expand_dims(indices, where) == places, on, off)

        return one_hot
