"""Sparse tensors joined and split."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from graphcore.inference import InferenceContext
from graphcore.opset.framework.block import NO_GRADIENT, Example, Kernel, KernelContext, op
from graphcore.opset.framework.kernels import invalid
from graphcore.opset.numerics.sparse_values import checked, in_order
from graphcore.opset.sparse.sparse_conversion import INDICES, OUTSIDE, SIZES, VALUES
from graphcore.support.memory_limits import check_allocation

_DENSE: Final = [[1.0, 2.0], [-3.0, 0.5], [4.0, -1.0]]
_WIDE: Final = [[1.0, 2.0, -3.0], [0.5, 4.0, -1.0]]


@op
class SparseConcat:
    """Sparse tensors one after another along a dimension.

    indices: of each, [n, rank]
    values: of each, [n]
    shapes: of each, [rank]
    concat_dim: the dimension; negative ones count from the end.
    """

    signature = (
        "SparseConcat[concat_dim:int, N:int >= 2, T:type](indices:N*int64, values:N*T, shapes:N*int64) -> "
        "(output_indices:int64, output_values:T, output_shape:int64)"
    )
    device_types = ("CPU",)
    gradient = NO_GRADIENT
    examples = (
        Example([[INDICES, np.array([[0, 0]])], [VALUES, [7.0]], [SIZES, np.array([2, 1])]], {"concat_dim": 1}),
        Example([[INDICES, np.array([[0, 0]])], [VALUES, [7.0]], [SIZES, np.array([4, 3])]], {"concat_dim": -2}),
    )
    failures = (Example([[OUTSIDE, np.array([[0, 0]])], [VALUES, [7.0]], [SIZES, np.array([2, 1])]], {"concat_dim": 1}),)

    def shape(c: InferenceContext) -> None:
        count = c.num_inputs // 3
        sizes, columns, rows = c.with_rank(c.input(2 * count), 1), c.unknown_dim(), c.make_dim(0)
        for i in range(count):
            indices, values = c.with_rank(c.input(i), 2), c.with_rank(c.input(count + i), 1)
            rows = c.add(rows, c.merge_dim(c.dim(indices, 0), c.dim(values, 0)))
            columns = c.merge_dim(columns, c.dim(indices, 1))
            sizes = c.merge(sizes, c.with_rank(c.input(2 * count + i), 1))
        c.set_output(0, c.matrix(rows, columns))
        c.set_output(1, c.vector(rows))
        c.set_output(2, sizes)

    def kernel(k: KernelContext) -> Kernel:
        axis = int(str(k.attr("concat_dim")))

        def concat(*parts: Any) -> Any:
            count = len(parts) // 3
            indices, values, shapes = parts[:count], parts[count : 2 * count], parts[2 * count :]
            all_sizes = [checked(k, *part) for part in zip(indices, values, shapes, strict=True)]
            rank = len(all_sizes[0])
            if not -rank <= axis < rank:
                raise invalid(k, f"Concat dimension must be in range [{-rank}, {rank}), got {axis}")
            along = axis % rank
            if len({sizes[:along] + sizes[along + 1 :] for sizes in all_sizes}) > 1:
                raise invalid(k, f"Input shapes must match except in dimension {along}: {[list(sizes) for sizes in all_sizes]}")
            number = sum(map(len, values))
            check_allocation((number, rank), indices[0].dtype)
            check_allocation((number,), values[0].dtype)
            moved, offset = [], 0
            for part, sizes in zip(indices, all_sizes, strict=True):
                shifted = part.copy()
                shifted[:, along] += offset
                offset += sizes[along]
                moved.append(shifted)
            new = (*all_sizes[0][:along], offset, *all_sizes[0][along + 1 :])
            together = np.concatenate(moved)
            order = in_order(together, new)
            return together[order], np.concatenate(values)[order], np.array(new, np.int64)

        return concat


@op
class SparseSplit:
    """A sparse tensor in parts of about equal size along a dimension.

    split_dim: the dimension, a scalar
    indices: [n, rank]
    values: [n]
    shape: [rank]
    num_split: the number of parts; the first ones are greater by 1 where the size cannot be divided.
    """

    signature = (
        "SparseSplit[num_split:int >= 1, T:type](split_dim:int64, indices:int64, values:T, shape:int64) -> "
        "(output_indices:num_split*int64, output_values:num_split*T, output_shape:num_split*int64)"
    )
    device_types = ("CPU",)
    gradient = NO_GRADIENT
    examples = (Example([np.int64(1), INDICES, VALUES, SIZES], {"num_split": 2}),)
    failures = (Example([np.int64(1), OUTSIDE, VALUES, SIZES], {"num_split": 2}),)

    def shape(c: InferenceContext) -> None:
        sizes = c.input(3)
        count = c.num_outputs // 3
        for i in range(count):
            c.set_output(i, c.matrix(c.unknown_dim(), c.num_elements(sizes)))
            c.set_output(count + i, c.vector(c.unknown_dim()))
            c.set_output(2 * count + i, sizes)

    def kernel(k: KernelContext) -> Kernel:
        count = int(str(k.attr("num_split")))

        def split(axis: Any, indices: Any, values: Any, shape: Any) -> Any:
            sizes, along = checked(k, indices, values, shape), int(axis.item())
            if not 0 <= along < len(sizes) or count > sizes[along]:
                raise invalid(k, f"num_split {count} must be at most the size of dimension {along} of {list(sizes)}")
            small, more = divmod(sizes[along], count)
            parts, start = [], 0
            for i in range(count):
                end = start + small + (i < more)
                inside = (indices[:, along] >= start) & (indices[:, along] < end)
                moved = indices[inside]
                moved[:, along] -= start
                parts.append((moved, values[inside], np.array((*sizes[:along], end - start, *sizes[along + 1 :]), np.int64)))
                start = end
            return tuple(part[j] for j in range(3) for part in parts)

        return split
