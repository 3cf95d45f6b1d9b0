"""Tensor arrays and stacks: results, gradients, errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphcore as gc
from tests.graphcore.opset.array_programs import PROGRAMS, add, array, index, lengths, source, two_concats, two_concats_in_a_function

EXPECTED: dict[str, list[Any]] = {
    "write_and_read": [[6.0, 30.0], [3.0, 5.0], 3],
    "scatter_and_gather": [[[3.0, 4.0], [0.0, 0.0], [1.0, 2.0]]],
    "split_and_concat": [[[1.0, 4.0], [9.0, 16.0], [25.0, 36.0]], [1, 2]],
    "grow": [3, [3.0, 4.0]],
    "gradient_array": [[2.0, 4.0]],
    "gradient_array_with_shape": [np.zeros((3, 2))],
    "concat_of_known_shape": [[[0.0625, 1.0], [5.0625, 16.0], [0.00390625, 0.31640625]]],
    "two_concats": [[[0.0625, 1.0], [5.0625, 16.0], [0.00390625, 0.31640625]]],
    "stack": [[1.0, 2.0], 7.0, [1.0, 2.0]],
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_gives_the_values_of_its_array(name: str) -> None:
    with gc.Graph().as_default(), gc.Session() as session:
        fetches, _ = PROGRAMS[name]()
        for value, expected in zip(session.run(fetches), EXPECTED[name], strict=True):
            np.testing.assert_array_equal(value, expected)


@pytest.mark.parametrize("simplify", [True, False])
@pytest.mark.parametrize("name", ["write_and_read", "scatter_and_gather", "grow"])
def test_a_gradient_flows_through_the_places_of_an_array(name: str, simplify: bool) -> None:
    check_gradients(name, simplify)


@pytest.mark.parametrize("simplify", [True, False])
@pytest.mark.parametrize("name", ["split_and_concat", "concat_of_known_shape", "two_concats"])
def test_a_gradient_flows_through_the_parts_of_an_array_although_reading_clears_them(name: str, simplify: bool) -> None:
    check_gradients(name, simplify)


@pytest.mark.parametrize("engine", ["plan", "dataflow"])
@pytest.mark.parametrize("simplify", [True, False])
def test_in_a_function_the_gradient_through_the_parts_of_an_array_is_the_same(simplify: bool, engine: Any) -> None:
    found = []
    for program in (two_concats, two_concats_in_a_function):
        with gc.Graph().as_default(), gc.Session(engine=engine) as session:
            (y,), xs = program()
            (first,) = gc.gradients(y, xs, simplify=simplify)
            found.append(session.run(first))
    np.testing.assert_array_equal(*found)


def check_gradients(name: str, simplify: bool) -> None:
    with gc.Graph().as_default(), gc.Session() as session:
        fetches, xs = PROGRAMS[name]()
        loss = gc.add_n([gc.reduce_sum(fetch * fetch) for fetch in fetches if fetch.dtype is gc.float64])
        for x, gradient in zip(xs, gc.gradients(loss, xs, simplify=simplify), strict=True):
            value = session.run(x)
            wanted = np.zeros_like(value)
            for at in np.ndindex(*value.shape):
                step = np.zeros_like(value)
                step[at] = 1e-5
                wanted[at] = (session.run(loss, {x: value + step}) - session.run(loss, {x: value - step})) / 2e-5
            np.testing.assert_allclose(session.run(gradient), wanted, rtol=1e-6, atol=1e-6)


def test_two_calls_of_gradients_keep_their_gradients_apart() -> None:
    with gc.Graph().as_default(), gc.Session() as session:
        (y, *_), xs = PROGRAMS["write_and_read"]()
        first, second = gc.gradients(y, xs[:1]), gc.gradients(y, xs[:1])
        alone = session.run(first)
        np.testing.assert_array_equal(session.run([*first, *second]), [alone[0], alone[0]])


def written(handle: gc.Tensor, flow: gc.Tensor, place: int, value: Any) -> gc.Tensor:
    return add("TensorArrayWriteV3", handle, index(place), value, flow)[0]


def read(handle: gc.Tensor, flow: gc.Tensor, place: int) -> gc.Tensor:
    return add("TensorArrayReadV3", handle, index(place), flow, dtype=gc.float64)[0]


def beyond_the_end() -> Any:
    handle, flow = array(2)
    return written(handle, flow, 2, source(1.0))


def twice() -> Any:
    handle, flow = array(2)
    return written(handle, written(handle, flow, 0, source(1.0)), 0, source(1.0))


def another_shape() -> Any:
    handle, flow = array(2, identical_element_shapes=True)
    return written(handle, written(handle, flow, 0, source([1.0, 2.0])), 1, source(1.0))


def read_twice() -> Any:
    handle, flow = array(2)
    flow = written(handle, flow, 0, source(1.0))
    first = read(handle, flow, 0)
    with gc.control_dependencies([first]):
        return read(handle, flow, 0)


def read_nothing() -> Any:
    handle, flow = array(2)
    return read(handle, flow, 0)


def another_type() -> Any:
    handle, flow = array(2)
    return written(handle, flow, 0, gc.constant(1.0))


def closed() -> Any:
    handle, flow = array(2)
    node = gc.get_default_graph().apply_op("TensorArrayCloseV3", [handle])
    with gc.control_dependencies([node]):
        return add("TensorArraySizeV3", handle, flow)[0]


def wrong_lengths() -> Any:
    handle, flow = array(2)
    return add("TensorArraySplitV3", handle, source([1.0, 2.0, 3.0]), lengths(1, 1), flow)[0]


def empty_stack() -> Any:
    return add("StackPopV2", add("StackV2", index(-1), elem_type=gc.float64)[0], elem_type=gc.float64)[0]


def full_stack() -> Any:
    (handle,) = add("StackV2", index(0), elem_type=gc.float64)
    return add("StackPushV2", handle, source(1.0))[0]


@pytest.mark.parametrize(
    ("program", "text"),
    [
        (beyond_the_end, "Tried to write to index 2 but array is not resizeable and size is: 2"),
        (twice, "Could not write to TensorArray index 0 because it has already been written to"),
        (another_shape, "incompatible with the TensorArray's inferred element shape"),
        (read_twice, "Could not read index 0 twice because it was cleared after a previous read"),
        (read_nothing, "Could not read from TensorArray index 0.  Furthermore, the element shape is not fully defined"),
        (another_type, "TensorArray dtype is double but Op has dtype"),
        (closed, "has already been closed"),
        (wrong_lengths, "sum of lengths is 2"),
        (empty_stack, r"is empty when calling Pop\(\)"),
        (full_stack, r"overflowed its max_size \(0\)"),
    ],
    ids=lambda part: part.__name__ if callable(part) else "",
)
def test_invalid_uses_of_an_array_are_errors_in_words(program: Any, text: str) -> None:
    with gc.Graph().as_default(), gc.Session() as session:
        fetch = program()
        with pytest.raises(gc.errors.InvalidArgumentError, match=text):
            session.run(fetch)
