"""Graphs with tensor arrays and stacks: each returns its results and differentiable inputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import graphcore as gc

Program = Callable[[], tuple[list[gc.Tensor], list[gc.Tensor]]]


def add(op: str, *inputs: Any, **attrs: Any) -> list[gc.Tensor]:
    return list(gc.get_default_graph().apply_op(op, list(inputs), attrs).outputs)


def source(values: Any, name: str = "x") -> gc.Tensor:
    """A placeholder with a value; doubles, so that differences are precise."""
    value = np.asarray(values, np.float64)
    return add("PlaceholderWithDefault", gc.constant(value, name=f"{name}_value"), shape=gc.Shape(value.shape))[0]


def index(value: Any) -> gc.Tensor:
    return gc.constant(np.asarray(value, np.int32))


def lengths(*values: int) -> gc.Tensor:
    return gc.constant(np.asarray(values, np.int64))


def array(size: int, **attrs: Any) -> list[gc.Tensor]:
    return add("TensorArrayV3", index(size), **{"dtype": gc.float64, **attrs})


def write_and_read() -> tuple[list[gc.Tensor], list[gc.Tensor]]:
    x, y = source([1.0, 2.0]), source([3.0, 5.0], "y")
    handle, flow = array(3, clear_after_read=False)
    for place, value in enumerate([x, y, x * y]):
        (flow,) = add("TensorArrayWriteV3", handle, index(place), value, flow)
    reads = [add("TensorArrayReadV3", handle, index(place), flow, dtype=gc.float64)[0] for place in (2, 0, 2, 1)]
    return [reads[0] * reads[1] + reads[2], reads[3], *add("TensorArraySizeV3", handle, flow)], [x, y]


def scatter_and_gather() -> tuple[list[gc.Tensor], list[gc.Tensor]]:
    x = source([[1.0, 2.0], [3.0, 4.0]])
    handle, flow = array(4, element_shape=gc.Shape([2]))
    (flow,) = add("TensorArrayScatterV3", handle, index([2, 0]), x, flow)
    return add("TensorArrayGatherV3", handle, index([0, 1, 2]), flow, dtype=gc.float64), [x]


def split_and_concat() -> tuple[list[gc.Tensor], list[gc.Tensor]]:
    x = source([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    handle, flow = array(2)
    (flow,) = add("TensorArraySplitV3", handle, x, lengths(1, 2), flow)
    value, sizes = add("TensorArrayConcatV3", handle, flow, dtype=gc.float64)
    return [value * value, sizes], [x]


def parts_of(x: gc.Tensor, **attrs: Any) -> gc.Tensor:
    """Rows of `x` in an array with elements cleared after reading, read concurrently."""
    handle, flow = array(2, clear_after_read=True)
    (flow,) = add("TensorArraySplitV3", handle, x * x, lengths(1, 2), flow)
    return add("TensorArrayConcatV3", handle, flow, dtype=gc.float64, **attrs)[0]


def concat_of_known_shape() -> tuple[list[gc.Tensor], list[gc.Tensor]]:
    x = source([[0.5, 1.0], [1.5, 2.0], [0.25, 0.75]])
    value = parts_of(x, element_shape_except0=gc.Shape([2]))
    return [value * value], [x]


def product_of_parts(rows: gc.Tensor) -> gc.Tensor:
    return parts_of(rows, element_shape_except0=gc.Shape([2])) * parts_of(rows)


def two_concats() -> tuple[list[gc.Tensor], list[gc.Tensor]]:
    x = source([[0.5, 1.0], [1.5, 2.0], [0.25, 0.75]])
    return [product_of_parts(x)], [x]


def two_concats_in_a_function() -> tuple[list[gc.Tensor], list[gc.Tensor]]:
    """The same in a function, which TensorFlow cannot differentiate: handles end with the function."""
    x = source([[0.5, 1.0], [1.5, 2.0], [0.25, 0.75]])
    return [gc.function(product_of_parts)(x)], [x]


def grow() -> tuple[list[gc.Tensor], list[gc.Tensor]]:
    x = source([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    handle, flow = array(0, dynamic_size=True)
    (flow,) = add("TensorArrayScatterV3", handle, index([0, 1, 2]), x, flow)
    return [*add("TensorArraySizeV3", handle, flow), *add("TensorArrayReadV3", handle, index(1), flow, dtype=gc.float64)], [x]


def gradient_array() -> tuple[list[gc.Tensor], list[gc.Tensor]]:
    x = source([1.0, 2.0])
    handle, flow = array(2)
    (flow,) = add("TensorArrayWriteV3", handle, index(0), x, flow)
    handle, flow = add("TensorArrayGradV3", handle, flow, source="gradients")
    for _ in range(2):
        (flow,) = add("TensorArrayWriteV3", handle, index(0), x, flow)
    return add("TensorArrayReadV3", handle, index(0), flow, dtype=gc.float64), []


def gradient_array_with_shape() -> tuple[list[gc.Tensor], list[gc.Tensor]]:
    x = source([1.0, 2.0])
    handle, flow = array(1)
    (flow,) = add("TensorArrayWriteV3", handle, index(0), x, flow)
    handle, flow = add("TensorArrayGradWithShape", handle, flow, index([3]), source="gradients")
    return add("TensorArrayReadV3", handle, index(0), flow, dtype=gc.float64), []


def stack() -> tuple[list[gc.Tensor], list[gc.Tensor]]:
    (handle,) = add("StackV2", index(-1), elem_type=gc.float64)
    (first,) = add("StackPushV2", handle, gc.constant(np.asarray([1.0, 2.0])))
    with gc.control_dependencies([first]):
        (second,) = add("StackPushV2", handle, gc.constant(np.asarray(7.0)))
    with gc.control_dependencies([second]):
        (top,) = add("StackPopV2", handle, elem_type=gc.float64)
    with gc.control_dependencies([top]):
        (bottom,) = add("StackPopV2", handle, elem_type=gc.float64)
    return [first, top, bottom], []


PROGRAMS: dict[str, Program] = {
    program.__name__: program
    for program in (
        write_and_read,
        scatter_and_gather,
        split_and_concat,
        concat_of_known_shape,
        two_concats,
        grow,
        gradient_array,
        gradient_array_with_shape,
        stack,
    )
}
