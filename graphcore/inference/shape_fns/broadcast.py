"""Broadcasting: shapes aligned at their last dimension; a dimension of size 1 is stretched."""

from __future__ import annotations

from graphcore.errors import InvalidArgumentError
from graphcore.inference.context import InferenceContext, direct
from graphcore.inference.expressions import broadcast_result
from graphcore.inference.handles import UNKNOWN, DimensionHandle, ShapeHandle


def broadcast_shapes(x: ShapeHandle, y: ShapeHandle) -> ShapeHandle:
    """The shape of `x op y` as a new handle, of unknown rank if either is.

    If one dimension is unknown and the other is above 1, the result is the known one, as in any correct program.

    Raises:
        InvalidArgumentError: two known dimensions differ and neither is 1.
    """
    shape = _broadcast(x, y)
    return ShapeHandle(x.dims) if shape is x and x is not y else shape


def _broadcast(x: ShapeHandle, y: ShapeHandle) -> ShapeHandle:
    """Like `broadcast_shapes`, but returns `x` itself if the result equals it."""
    x_dims, y_dims = x.dims, y.dims
    if x_dims is None or y_dims is None:
        return ShapeHandle()
    if x is y:
        return x
    x_rank, y_rank = len(x_dims), len(y_dims)
    if x_rank == y_rank:
        for a, b in zip(x_dims, y_dims, strict=True):
            if a is not b and (a.value != b.value or a.value < 0):
                break
        else:
            return x  # most operands have equal shapes
        return ShapeHandle(tuple([_broadcast_dim(a, b) for a, b in zip(x_dims, y_dims, strict=True)]))
    if not x_rank:
        return ShapeHandle(y_dims)
    if not y_rank:
        return ShapeHandle(x_dims)
    extra = abs(x_rank - y_rank)
    lead, x_dims, y_dims = (x_dims[:extra], x_dims[extra:], y_dims) if x_rank > y_rank else (y_dims[:extra], x_dims, y_dims[extra:])
    return ShapeHandle(lead + tuple([_broadcast_dim(a, b) for a, b in zip(x_dims, y_dims, strict=True)]))


def _broadcast_dim(x: DimensionHandle, y: DimensionHandle) -> DimensionHandle:
    if x is y:
        return x
    a, b = x.value, y.value
    if a == b:
        return x if a >= 0 or (x.origin is not None and x.origin == y.origin) else broadcast_result(x, y)
    if a == 1 or (a < 0 and b > 1):
        return y
    if b == 1 or (b < 0 and a > 1):
        return x
    if a < 0 or b < 0:
        return DimensionHandle()
    raise InvalidArgumentError(f"Dimensions must be equal, but are {a} and {b}")


@direct(_broadcast)
def broadcast_binary_op_shape_fn(c: InferenceContext) -> None:
    """The output is inputs 0 and 1 broadcast together."""
    c.outputs[0] = broadcast_shapes(c.inputs[0], c.inputs[1])


def broadcast_gradient_args_shape(c: InferenceContext) -> None:
    """Two shape vectors in, two vectors of reduction indices of unknown length out."""
    c.with_rank(c.input(0), 1)
    c.with_rank(c.input(1), 1)
    c.set_output(0, c.vector(UNKNOWN))
    c.set_output(1, c.vector(UNKNOWN))


def broadcast_args_shape(c: InferenceContext) -> None:
    """Two shape vectors in, the longer one's length out."""
    x = c.dim(c.with_rank(c.input(0), 1), 0).value
    y = c.dim(c.with_rank(c.input(1), 1), 0).value
    c.set_output(0, c.vector(UNKNOWN if UNKNOWN in {x, y} else max(x, y)))


def broadcast_to_shape(c: InferenceContext) -> None:
    """The value of input 1, merged with the dimensions of input 0 other than 1, right-aligned."""
    out = c.make_shape_from_shape_tensor(1)
    shape = c.input(0)
    if out.dims is None or shape.dims is None:
        c.set_output(0, out)
        return
    c.with_rank_at_most(shape, len(out.dims))
    offset = len(out.dims) - len(shape.dims)
    for i in range(len(shape.dims) - 1, -1, -1):
        dim = shape.dims[i]
        if dim.value not in {UNKNOWN, 1}:
            out = c.replace_dim(out, i + offset, c.merge_dim(dim, c.dim(out, i + offset)))
    c.set_output(0, out)


def select_shape(c: InferenceContext) -> None:
    """`cond`, `then`, `else` of one shape; a scalar `cond` fits any, a vector the leading dimension."""
    data = c.merge(c.input(1), c.input(2))
    cond = c.input(0)
    if cond.dims is None or data.dims is None or not cond.dims:
        c.set_output(0, data)
    elif len(cond.dims) != 1 or not data.dims:
        c.set_output(0, c.merge(data, cond))
    else:
        c.set_output(0, c.merge_prefix(data, cond)[0])


def select_v2_shape(c: InferenceContext) -> None:
    """`cond`, `then`, `else` broadcast together."""
    branches = broadcast_shapes(c.input(1), c.input(2))
    c.set_output(0, broadcast_shapes(c.input(0), branches))
