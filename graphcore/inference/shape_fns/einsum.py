"""Einsum: equations such as `...ij,...jk->...ik`, and output shapes."""

from __future__ import annotations

from typing import Final

from graphcore.errors import InvalidArgumentError
from graphcore.inference.context import InferenceContext
from graphcore.inference.handles import DimensionHandle, ShapeHandle
from graphcore.inference.shape_fns.broadcast import broadcast_shapes

_ELLIPSIS: Final = "..."


def parse_einsum(equation: str) -> tuple[list[str], str]:
    """Parse an equation to the subscripts of the inputs and of the output.

    Raises:
        InvalidArgumentError: it is no equation of one or two inputs with a single output.
    """
    sides = equation.split("->")
    if len(sides) != 2:
        raise InvalidArgumentError(f"Expecting exactly one '->' in einsum equation: {equation}")
    inputs = sides[0].split(",")
    if len(inputs) > 2:
        raise InvalidArgumentError(f"Expecting 1 or 2 input subscripts in equation '{equation}' but got: {len(inputs)}")
    return inputs, sides[1]


def einsum_shape(c: InferenceContext) -> None:
    """One or two inputs; dimensions with the same label are equal, those of `...` are broadcast together."""
    equation = c.text_attr("equation")
    inputs, output = parse_einsum(equation)
    if len(inputs) != c.num_inputs:
        raise InvalidArgumentError(f"Expected {len(inputs)} inputs for equation {equation} but got: {c.num_inputs}")
    dims: dict[str, DimensionHandle] = {}
    rest = [_read_input(c, i, labels, equation, dims) for i, labels in enumerate(inputs)]
    batch = rest[0] if len(rest) == 1 else broadcast_shapes(rest[0], rest[1])
    before, ellipsis, after = _split(output)
    if not ellipsis:
        _check_no_batch(c, batch, equation)
        batch = c.scalar()
    if batch.dims is None:
        c.set_output(0, c.unknown_shape())
        return
    outer_dims = [_dim_of(label, dims, equation) for label in before], [_dim_of(label, dims, equation) for label in after]
    c.set_output(0, ShapeHandle((*outer_dims[0], *batch.dims, *outer_dims[1])))


def _split(labels: str) -> tuple[str, bool, str]:
    periods = labels.count(".")
    before, ellipsis, after = labels.partition(_ELLIPSIS)
    if periods not in {0, 3} or (periods == 3 and not ellipsis):
        raise InvalidArgumentError(f"Expected at most one ellipsis (...), but found {periods} periods (.) in the input subscript: {labels}")
    return before, bool(ellipsis), after


def _read_input(c: InferenceContext, i: int, labels: str, equation: str, dims: dict[str, DimensionHandle]) -> ShapeHandle:
    """Record the dimension of each label. Returns the dimensions of the ellipsis."""
    before, ellipsis, after = _split(labels)
    named = len(before) + len(after)
    try:
        shape = c.with_rank_at_least(c.input(i), named) if ellipsis else c.with_rank(c.input(i), named)
    except InvalidArgumentError as error:
        raise InvalidArgumentError(f"{error.message}\n\t for {i}th input and equation: {equation}") from error
    for position, label in enumerate(before):
        _note(c, label, c.dim(shape, position), dims)
    for position, label in enumerate(after):
        _note(c, label, c.dim(shape, position - len(after)), dims)
    if shape.dims is None:
        return c.unknown_shape()
    return ShapeHandle(shape.dims[len(before) : len(shape.dims) - len(after)])


def _note(c: InferenceContext, label: str, dim: DimensionHandle, dims: dict[str, DimensionHandle]) -> None:
    previous = dims.get(label)
    dims[label] = dim if previous is None else c.merge_dim(previous, dim)


def _check_no_batch(c: InferenceContext, batch: ShapeHandle, equation: str) -> None:
    try:
        c.with_rank_at_most(batch, 0)
    except InvalidArgumentError as error:
        raise InvalidArgumentError(
            f"{error.message}\n\t for einsum equation '{equation}' without ellipsis (...) in the output subscripts "
            f"where input(s) have non-empty broadcasting shape"
        ) from error


def _dim_of(label: str, dims: dict[str, DimensionHandle], equation: str) -> DimensionHandle:
    dim = dims.get(label)
    if dim is None:
        raise InvalidArgumentError(
            f"Einsum output subscripts for equation '{equation}' has label '{label}' which is not present in the input subscripts"
        )
    return dim
