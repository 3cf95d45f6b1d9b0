"""Shape functions of ops with outputs shaped like an input, like all inputs, or by an attr."""

from __future__ import annotations

from graphcore.attrs import Func
from graphcore.brief import brief
from graphcore.errors import InvalidArgumentError
from graphcore.inference.context import InferenceContext, direct
from graphcore.inference.handles import ShapeHandle, shape_to_handle
from graphcore.shapes import Shape


@direct(lambda shape, *_: shape)
def unchanged_shape(c: InferenceContext) -> None:
    """The output is shaped like input 0, handle data included."""
    c.outputs[0] = c.inputs[0]
    data = c.input_handle_shapes_and_types(0)
    if data is not None:
        c.set_output_handle_shapes_and_types(0, data)


def unchanged_shape_with_rank(c: InferenceContext, rank: int) -> None:
    """The output is shaped like input 0, which must have that rank."""
    c.set_output(0, c.with_rank(c.input(0), rank))


def unchanged_shape_with_rank_at_least(c: InferenceContext, rank: int) -> None:
    """The output is shaped like input 0, which must have at least that rank."""
    c.set_output(0, c.with_rank_at_least(c.input(0), rank))


def unchanged_shape_with_rank_at_most(c: InferenceContext, rank: int) -> None:
    """The output is shaped like input 0, which must have at most that rank."""
    c.set_output(0, c.with_rank_at_most(c.input(0), rank))


def merge_both_inputs(c: InferenceContext) -> None:
    """Inputs 0 and 1 have the same shape, and so has the output."""
    c.set_output(0, c.merge(c.input(0), c.input(1)))


def scalar_shape(c: InferenceContext) -> None:
    """Output 0 is a scalar."""
    c.set_output(0, c.scalar())


def no_outputs(c: InferenceContext) -> None:
    """The op has no outputs."""
    if c.outputs:
        raise InvalidArgumentError(f"Op {c.op} has outputs and needs a shape function that sets them", op=c.op, node=c.node_name)


def unknown_shape(c: InferenceContext) -> None:
    """All outputs have unknown shapes."""
    for i in range(c.num_outputs):
        c.set_output(i, c.unknown_shape())


def function_call_shape(c: InferenceContext) -> None:
    """The op is a function: its outputs are inferred through its body."""
    c.set_outputs_by_function(c.op, c.attrs)


def called_function_shape(c: InferenceContext) -> None:
    """The op calls the function in attr `f` with all its inputs."""
    function = c.attr("f")
    if not isinstance(function, Func):
        raise InvalidArgumentError(f"Attr 'f' must be a function, got {brief(function)}", op=c.op, node=c.node_name, attr="f")
    c.set_outputs_by_function(function.name, function.attr)


def shape_attr(c: InferenceContext, name: str = "shape") -> ShapeHandle:
    """A new handle for the shape in attr `name`.

    Raises:
        InvalidArgumentError: the attr is missing or no shape.
    """
    value = c.attr(name)
    if not isinstance(value, Shape):
        raise InvalidArgumentError(f"Attr '{name}' must be a shape, got {brief(value)}", op=c.op, node=c.node_name, attr=name)
    return shape_to_handle(value)


def explicit_shape(c: InferenceContext) -> None:
    """Output 0 has the shape of attr `shape`."""
    c.set_output(0, shape_attr(c))


def explicit_shapes(c: InferenceContext) -> None:
    """Each output has its shape in attr `shapes`."""
    shapes = c.attr("shapes")
    if not isinstance(shapes, tuple) or len(shapes) != c.num_outputs:
        raise InvalidArgumentError(f"Attr 'shapes' must give {c.num_outputs} shapes, got {brief(shapes)}", op=c.op, node=c.node_name)
    for i, shape in enumerate(shapes):
        c.set_output(i, shape_to_handle(shape))


def placeholder_shape(c: InferenceContext) -> None:
    """Attr `shape`; before version 24 an empty one stood for an unknown shape."""
    shape = shape_attr(c)
    if c.graph_def_version < 24 and not shape.dims:
        shape = c.unknown_shape()
    c.set_output(0, shape)


def merge_all_inputs(c: InferenceContext) -> ShapeHandle:
    """The combined shape of all inputs, merged from the last to the first.

    Raises:
        InvalidArgumentError: two of them contradict each other; the message names the input.
    """
    merged = c.input(c.num_inputs - 1)
    for i in range(c.num_inputs - 2, -1, -1):
        try:
            merged = c.merge(c.input(i), merged)
        except InvalidArgumentError as error:
            raise InvalidArgumentError(f"{error.message}\n\tFrom merging shape {i} with other shapes.") from error
    return merged


def add_n_shape(c: InferenceContext) -> None:
    """All inputs have one shape, and so has the output."""
    c.set_output(0, merge_all_inputs(c))
