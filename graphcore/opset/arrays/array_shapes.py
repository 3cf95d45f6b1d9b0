"""Reading and changing a tensor's shape: shape, rank, size, reshaping, transposing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from graphcore.inference import partial_rules
from graphcore.inference.shape_fns.common_shape_fns import (
    expand_dims_shape,
    reshape_shape,
    scalar_shape,
    shape_shape,
    squeeze_shape,
    transpose_shape,
    unchanged_shape_with_rank,
)
from graphcore.opset.framework.block import NO_GRADIENT, Example, InferenceContext, Kernel, KernelContext, op
from graphcore.opset.framework.gradient_text import INDEX_TYPE, index_typed
from graphcore.opset.framework.kernels import constant_int, constant_ints, ints, invalid, one_int
from graphcore.opset.framework.type_sets import INDEX
from graphcore.registry import KernelFactory
from graphcore.shapes import Shape as StaticShape
from graphcore.traits import FailsOn

_X: Final = [[-3.0, -2.0, -1.0], [1.0, 2.0, 3.5]]


def _sizes(shapes: Sequence[StaticShape]) -> list[Any] | None:
    return [shape.as_list() for shape in shapes] if all(shape.is_fully_defined for shape in shapes) else None


class _OfShapes:
    """Ops that look at the shapes of their inputs only."""

    can_fail = False
    memory = "fresh"
    needs_only_shapes = True
    numbers_from_shapes = _sizes


@op
class Shape(_OfShapes):
    """The shape of a tensor, as a vector."""

    pure = True
    signature = f"Shape[T:type, out_type:{INDEX} = int32](input:T) -> (output:out_type)"
    shape = shape_shape
    partial_rule = partial_rules.SHAPE
    gradient = NO_GRADIENT
    examples = (Example([_X], outputs=[[2, 3]]), Example([5.0], {"out_type": "int64"}, outputs=[[]]))

    def kernel(k: KernelContext) -> Kernel:
        array, dtype = k.xp.array, k.dtype("out_type")
        return lambda x: array(x.shape, dtype)


@op
class ShapeN(_OfShapes):
    """The shapes of several tensors, each as a vector."""

    pure = True
    signature = f"ShapeN[N:int, T:type, out_type:{INDEX} = int32](input:N*T) -> (output:N*out_type)"
    shape = shape_shape
    partial_rule = partial_rules.SHAPE
    gradient = NO_GRADIENT
    examples = (Example([[_X, [[1.0]]]], outputs=[[2, 3], [1, 1]]),)

    def kernel(k: KernelContext) -> Kernel:
        array, dtype = k.xp.array, k.dtype("out_type")
        if k.attr("N") == 1:
            return lambda x: array(x.shape, dtype)
        return lambda *inputs: tuple([array(x.shape, dtype) for x in inputs])


@op
class Rank(_OfShapes):
    """The number of dimensions of a tensor."""

    pure = True
    signature = "Rank[T:type](input:T) -> (output:int32)"
    shape = scalar_shape
    partial_rule = partial_rules.RANK
    gradient = NO_GRADIENT
    examples = (Example([_X], outputs=[2]),)

    def kernel(k: KernelContext) -> Kernel:
        array, dtype = k.xp.array, np.int32
        return lambda x: array(x.ndim, dtype)

    def numbers_from_shapes(shapes: Sequence[StaticShape]) -> list[Any] | None:
        return None if shapes[0].rank is None else [shapes[0].rank]


@op
class Size(_OfShapes):
    """The number of elements of a tensor."""

    pure = True
    signature = f"Size[T:type, out_type:{INDEX} = int32](input:T) -> (output:out_type)"
    shape = scalar_shape
    partial_rule = partial_rules.SIZE
    gradient = NO_GRADIENT
    examples = (Example([_X], outputs=[6]),)

    def kernel(k: KernelContext) -> Kernel:
        array, dtype = k.xp.array, k.dtype("out_type")
        return lambda x: array(x.size, dtype)

    def numbers_from_shapes(shapes: Sequence[StaticShape]) -> list[Any] | None:
        return [shapes[0].num_elements] if shapes[0].is_fully_defined else None


RESHAPE_GRADIENT: Final = f"""[T:type](x:T, shape:{INDEX_TYPE}, dy:T) -> (dx:T, dshape:{INDEX_TYPE}) {{
  x_shape = Shape[T=$T](x)
  dx = Reshape[T=$T](dy, x_shape)
  dshape = ZerosLike[T={INDEX_TYPE}](shape)
}}"""


def _without_unknown(sizes: tuple[int, ...], wanted: tuple[int, ...]) -> tuple[int, ...]:
    """Replace -1 in `wanted` if sizes of 0 occur, so that the products of all other sizes are equal."""
    if 0 not in wanted or -1 not in wanted:
        return wanted
    missing = math.prod([size for size in sizes if size]) // math.prod([size for size in wanted if size > 0])
    return tuple([missing if size == -1 else size for size in wanted])


@op
class Reshape:
    """Gives `tensor` a new shape with the same elements in the same order.

    shape: the sizes, [rank]; one of them may be -1 and is then computed.
    """

    pure = True
    signature = f"Reshape[T:type, Tshape:{INDEX} = int32](tensor:T, shape:Tshape) -> (output:T)"
    shape = reshape_shape
    neutral = "own shape"
    partial_rule = partial_rules.RESHAPING
    can_fail = FailsOn(values=("shape",))
    memory = "reshaped view"
    gradient = index_typed("Tshape", RESHAPE_GRADIENT)
    examples = (Example([_X, [3, 2]]), Example([_X, [-1]]), Example([[7.0], np.zeros(0, np.int32)], outputs=[7.0]))
    failures = (Example([_X, [-1, -1]]),)

    def kernel(k: KernelContext) -> Kernel:
        constant_sizes = constant_ints(k, 1)
        if constant_sizes is not None and not (0 in constant_sizes and -1 in constant_sizes):
            return lambda x, _: _reshaped(k, x, constant_sizes)

        def reshape(x: Any, shape: Any) -> Any:
            wanted = ints(shape)
            if wanted and min(wanted) < -1:  # NumPy takes any negative number as -1
                at = next(at for at, size in enumerate(wanted) if size < -1)
                raise invalid(k, f"Size {at} must be non-negative, not {wanted[at]}")
            return _reshaped(k, x, _without_unknown(x.shape, wanted))

        return reshape


def _reshaped(k: KernelContext, x: Any, sizes: Sequence[int]) -> Any:
    """A view of `x` of these sizes, of which one may be -1.

    Raises:
        InvalidArgumentError: `x` has another number of values.
    """
    try:
        return x.reshape(sizes)
    except ValueError:
        count = math.prod([size for size in sizes if size != -1])
        needs = f"requires a multiple of {count}" if -1 in sizes else f"has {count}"
        shape = f"[{','.join(map(str, sizes))}]"
        raise invalid(k, f"Input to reshape is a tensor with {x.size} values, but the requested shape {shape} {needs}").advise(
            f"Give a tensor whose {x.size} values fill whole rows of this size, or choose another shape. Labels that are numbers of classes "
            "become rows by `gc.one_hot(labels, classes)`.",
            required=f"values that fill the shape {shape}",
            came=f"{x.size} values",
        ) from None


@op
class ExpandDims:
    """Inserts a dimension of size 1 before axis `dim`; -1 puts it last.

    dim: a scalar in [-1 - rank, rank]
    """

    pure = True
    signature = f"ExpandDims[T:type, Tdim:{INDEX} = int32](input:T, dim:Tdim) -> (output:T)"
    shape = expand_dims_shape
    partial_rule = partial_rules.RESHAPING
    can_fail = FailsOn(values=("dim",))
    memory = "view"
    gradient = index_typed("Tdim", RESHAPE_GRADIENT)
    examples = (Example([_X, 0]), Example([_X, -1]), Example([_X, [1]]))
    failures = (Example([_X, 99]),)

    def kernel(k: KernelContext) -> Kernel:
        constant_axis = constant_int(k, 1)

        def expand(x: Any, dim: Any) -> Any:
            axis = one_int(k, dim) if constant_axis is None else constant_axis
            if not -x.ndim - 1 <= axis <= x.ndim:
                raise invalid(k, f"Tried to expand dim index {axis} for tensor with {x.ndim} dimensions.")
            sizes = list(x.shape)
            sizes.insert(axis + x.ndim + 1 if axis < 0 else axis, 1)
            return x.reshape(sizes)

        return expand


@op
class Squeeze:
    """Removes dimensions of size 1.

    squeeze_dims: the dimensions to remove, each in [-rank, rank); all of size 1 if empty.
    """

    pure = True
    signature = "Squeeze[T:type, squeeze_dims:list(int) >= 0 = []](input:T) -> (output:T)"
    shape = squeeze_shape
    neutral = "own shape"
    partial_rule = partial_rules.RESHAPING
    can_fail = False
    memory = "view"
    gradient = """[T:type](x:T, dy:T) -> (dx:T) {
      x_shape = Shape[T=$T](x)
      dx = Reshape[T=$T](dy, x_shape)
    }"""
    examples = (
        Example([[[[1.0], [2.0]]]], outputs=[[1.0, 2.0]]),
        Example([[[[1.0], [2.0]]]], {"squeeze_dims": [-1]}, outputs=[[[1.0, 2.0]]]),
    )

    def kernel(k: KernelContext) -> Kernel:
        axes: Any = k.attr("squeeze_dims") or None

        def squeeze(x: Any) -> Any:
            try:
                return x.squeeze(axes)
            except ValueError as error:
                raise invalid(k, f"Can not squeeze dimensions {list(axes)} of shape {list(x.shape)}: {error}") from error

        return squeeze


def _transpose_grad(name: str) -> Any:
    def gradient(attrs: Any) -> str:
        dtype = INDEX_TYPE
        wide = attrs.get("Tperm") is not None and attrs["Tperm"].name == "int64"
        text = f"""[T:type](x:T, p:{dtype}, dy:T) -> (dx:T, dp:{dtype}) {{
          q = InvertPermutation{"[T=int64]" if wide else ""}(p)
          dx = {name}[T=$T{", Tperm=int64" if wide else ""}](dy, q)
          dp = ZerosLike[T={dtype}](p)
        }}"""
        return index_typed("Tperm", text)(attrs)

    return gradient


def _transpose(*, conjugate: bool) -> KernelFactory:
    def kernel(k: KernelContext) -> Kernel:
        constant_axes = constant_ints(k, 1)

        def transpose(x: Any, perm: Any) -> Any:
            axes = ints(perm) if constant_axes is None else constant_axes
            if len(axes) != x.ndim:
                raise invalid(k, f"transpose expects a vector of size {x.ndim}. But input(1) is {list(axes)}")
            return x.transpose(axes)

        return (lambda x, perm: transpose(x, perm).conj()) if conjugate and k.output_types[0].is_complex else transpose

    return kernel


@op
class Transpose:
    """Permutes dimensions: dimension i of the output is dimension perm[i] of x.

    perm: a permutation of 0 .. rank-1; -1 is the last dimension
    """

    pure = True
    signature = f"Transpose[T:type, Tperm:{INDEX} = int32](x:T, perm:Tperm) -> (y:T)"
    shape = transpose_shape
    neutral = "in order"
    can_fail = FailsOn(values=("perm",))
    memory = "strided view"
    kernel = _transpose(conjugate=False)
    gradient = _transpose_grad("Transpose")
    examples = (Example([_X, [1, 0]]), Example([[_X, _X], [1, 2, 0]]))
    failures = (Example([_X, [-1, -1]]),)


@op
class ConjugateTranspose:
    """Permutes dimensions as Transpose does, and takes complex conjugates.

    perm: a permutation of 0 .. rank-1; -1 is the last dimension
    """

    pure = True
    signature = f"ConjugateTranspose[T:type, Tperm:{INDEX} = int32](x:T, perm:Tperm) -> (y:T)"
    shape = transpose_shape
    can_fail = FailsOn(values=("perm",))
    kernel = _transpose(conjugate=True)
    gradient = _transpose_grad("ConjugateTranspose")
    examples = (Example([_X, [1, 0]]), Example([np.array([[1 + 2j, 3 - 1j]], np.complex64), [1, 0]]))
    failures = (Example([_X, [-1, -1]]),)


def _unchanged_vector(c: InferenceContext) -> None:
    unchanged_shape_with_rank(c, 1)


@op
class InvertPermutation:
    """The inverse permutation: y[x[i]] = i."""

    pure = True
    signature = f"InvertPermutation[T:{INDEX} = int32](x:T) -> (y:T)"
    shape = _unchanged_vector
    gradient = NO_GRADIENT
    examples = (Example([[3, 4, 0, 2, 1]], outputs=[[2, 4, 3, 0, 1]]),)
    failures = (Example([[-1, -1, -1, -1, -1]]),)

    def kernel(k: KernelContext) -> Kernel:
        dtype, arange = k.dtype("T"), k.xp.arange

        def invert(x: Any) -> Any:
            inverse = x.argsort()
            if (x[inverse] != arange(len(x))).any():
                raise invalid(k, f"{x.tolist()} is not a permutation of 0 .. {len(x) - 1}")
            return inverse.astype(dtype)

        return invert
