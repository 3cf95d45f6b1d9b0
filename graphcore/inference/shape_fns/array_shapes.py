"""Shape functions of ops that read an array's shape or change it."""

from __future__ import annotations

from graphcore.attrs import TensorValue
from graphcore.brief import brief
from graphcore.errors import InvalidArgumentError
from graphcore.inference.context import InferenceContext
from graphcore.inference.dimensions import INT64_MAX, overflow
from graphcore.inference.handles import UNKNOWN, DimensionHandle, ShapeHandle, shape_of_sizes


def const_shape(c: InferenceContext) -> None:
    """The shape of attr `value`, which must be fully known."""
    value = c.attr("value")
    if not isinstance(value, TensorValue):
        raise InvalidArgumentError(f"Attr 'value' must be a tensor, got {brief(value)}", op=c.op, node=c.node_name, attr="value")
    if value.encoded is None:
        c.outputs[0] = shape_of_sizes(value.array.shape)
    else:  # a few bytes of a file may claim gigabytes, so decoding is deferred until the elements are needed
        c.outputs[0] = c.make_shape_from_shape(value.shape.as_tensor_shape())


def shape_shape(c: InferenceContext) -> None:
    """Shape, ShapeN: a vector as long as the rank of each input."""
    for i, shape in enumerate(c.inputs):
        c.set_output(i, c.vector(c.rank(shape)))


def unique_shape(c: InferenceContext) -> None:
    """`x: [n] -> y: [?], idx: [n]`, and a count for each element of y as third output.

    With a third output, TensorFlow checks the rank of x only at run time.
    """
    if c.num_outputs == 2:
        c.with_rank(c.input(0), 1)
    vector = c.vector(UNKNOWN)
    c.set_output(0, vector)
    c.set_output(1, c.input(0))
    for i in range(2, c.num_outputs):
        c.set_output(i, vector)


def reshape_shape(c: InferenceContext) -> None:
    """The value of input 1; one unknown size is computed from the number of elements of input 0."""
    in_dims = c.inputs[0].dims
    out = c.make_shape_from_shape_tensor(1)
    c.outputs[0] = out
    if in_dims is None or out.dims is None:
        return
    unknown_in, known_in = _known_part(in_dims)
    unknown_out, known_out = _known_part(out.dims)
    if c.is_symbolic and unknown_in and unknown_out and known_out > 0:
        _reshape_symbolically(c, in_dims, out, known_out)
        return
    if len(unknown_in) > 1 or len(unknown_out) > 1:
        return
    if not unknown_in and not unknown_out:
        if known_in != known_out:
            raise InvalidArgumentError(f"Cannot reshape a tensor with {known_in} elements to shape {out} ({known_out} elements)").advise(
                f"Choose sizes whose product is {known_in}; -1 in place of one of them stands for the number that fits.",
                required=f"a shape of {known_in} elements",
                came=f"{out}, which has {known_out}",
            )
    elif not unknown_in and known_out > 0:
        size = c.divide(DimensionHandle(known_in), known_out, evenly_divisible=True)
        c.outputs[0] = c.replace_dim(out, unknown_out[0], size)
    elif not unknown_out and known_in != 0:
        size = c.divide(DimensionHandle(known_out), known_in, evenly_divisible=True)
        c.merge_dim(in_dims[unknown_in[0]], size)
    elif unknown_in and unknown_out and known_in == known_out:
        c.outputs[0] = c.replace_dim(out, unknown_out[0], in_dims[unknown_in[0]])


def _reshape_symbolically(c: InferenceContext, in_dims: tuple[DimensionHandle, ...], out: ShapeHandle, known_out: int) -> None:
    """Compute the unknown size by cancelling factors common to input and output."""
    left = list(in_dims)
    remaining: list[int] = []
    for i, dim in enumerate(out.dims or ()):
        if dim.value < 0 and any(dim is other for other in left):
            left = [other for other in left if other is not dim]
        elif dim.value < 0:
            remaining.append(i)
    if len(remaining) != 1:
        return
    product = DimensionHandle(1)
    for dim in left:
        product = c.multiply(product, dim)
    c.outputs[0] = c.replace_dim(out, remaining[0], c.divide(product, known_out, evenly_divisible=True))


def _known_part(dims: tuple[DimensionHandle, ...]) -> tuple[list[int], int]:
    """The positions of the unknown dimensions, and the product of the others."""
    unknown: list[int] = []
    product = 1
    for i, dim in enumerate(dims):
        if dim.value < 0:
            unknown.append(i)
        elif product * dim.value > INT64_MAX:
            raise overflow(product, dim.value)
        else:
            product *= dim.value
    return unknown, product


def transpose_shape(c: InferenceContext) -> None:
    """`x, perm: [rank of x]`: output dimension i is dimension perm[i] of x."""
    shape, perm_shape = c.input(0), c.input(1)
    perm = c.input_tensor(1)
    perm_count = c.num_elements(perm_shape)
    rank = c.rank(shape)
    if rank == UNKNOWN:
        rank = perm_count.value if perm is None else int(perm.size)
        if rank < 2:
            # A single element may stand for a vector or, in old graphs, for a scalar: the op returns either unchanged.
            c.set_output(0, c.unknown_shape() if rank == UNKNOWN else shape)
            return
    shape = c.with_rank(shape, rank)
    c.with_rank(perm_shape, 1)
    c.with_value(perm_count, rank)
    if perm is None:
        c.set_output(0, c.unknown_shape_of_rank(rank))
        return
    for index in perm.tolist():
        if not -rank <= index < rank:
            raise InvalidArgumentError(f"perm dim {index} is out of range of input rank {rank}")
    c.set_output(0, c.make_shape([c.dim(shape, index) for index in perm.tolist()]))


def squeeze_shape(c: InferenceContext) -> None:
    """Remove the dimensions of size 1, or those in attr `squeeze_dims`."""
    shape = c.input(0)
    listed = c.ints_attr("squeeze_dims")
    if shape.dims is None:
        c.set_output(0, c.unknown_shape())
        return
    rank = len(shape.dims)
    for i, index in enumerate(listed):
        if not -rank <= index < rank:
            raise InvalidArgumentError(f"squeeze_dims[{i}] not in [{-rank},{rank}).")
    wanted = {index % rank for index in listed}
    for i in sorted(wanted):
        if shape.dims[i].value not in {1, UNKNOWN}:
            raise InvalidArgumentError(f"Can not squeeze dim[{i}], expected a dimension of 1, got {shape.dims[i]}")
    if not listed and any(dim.value == UNKNOWN for dim in shape.dims):
        c.set_output(0, c.unknown_shape())
        return
    c.set_output(0, c.make_shape([dim for i, dim in enumerate(shape.dims) if (i not in wanted if listed else dim.value != 1)]))


def expand_dims_shape(c: InferenceContext) -> None:
    """Input 0 with a dimension of size 1 inserted at the axis in input 1."""
    shape = c.input(0)
    value = c.input_tensor(1)
    if value is not None and value.size != 1:
        raise InvalidArgumentError("'dim' input must be a tensor with a single value")
    if value is None or shape.dims is None:
        c.set_output(0, c.unknown_shape())
        return
    rank, index = len(shape.dims), int(value.reshape(-1)[0])
    if not -rank - 1 <= index <= rank:
        raise InvalidArgumentError(f"dim {index} not in the interval [{-rank - 1}, {rank}].")
    if index < 0:
        index += rank + 1
    c.set_output(0, ShapeHandle((*shape.dims[:index], DimensionHandle(1), *shape.dims[index:])))
