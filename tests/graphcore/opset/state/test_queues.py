"""Queues: results, errors, shapes at the dequeuing end, and sharing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from tests.graphcore.opset.state.queue_play import play
from tests.support.queue_scenarios import SCENARIOS

# TensorFlow's values, verified by tests/oracle.
EXPECTED: dict[str, list[Any]] = {
    "in_order": [4, [[1.0, 2.0], b"a"], [[[3.0, 4.0], [5.0, 6.0]], [b"b", b"c"]], 1, False, [[], []], [[[7.0, 8.0]], [b"d"]], [[], []]],
    "any_shapes": [
        [[1.0, 2.0], 3.0],
        [[1.0], 5.0],
        "InvalidArgumentError: FIFOQueue's DequeueMany and DequeueUpTo require the components to have specified shapes.",
        "InvalidArgumentError: FIFOQueue's DequeueMany and DequeueUpTo require the components to have specified shapes.",
        "InvalidArgumentError: FIFOQueue's DequeueMany and DequeueUpTo require the components to have specified shapes.",
        "InvalidArgumentError: All input tensors must have the same size in the 0th dimension. Component 1 has 2, and should have 1",
        1,
    ],
    "closed": [
        None,
        True,
        "CancelledError: FIFOQueue '_N_FIFOQueue' is closed.",
        "CancelledError: FIFOQueue '_N_FIFOQueue' is closed.",
        "OutOfRangeError: FIFOQueue '_N_FIFOQueue' is closed and has insufficient elements (requested 1, current size 0)",
        "OutOfRangeError: FIFOQueue '_N_FIFOQueue' is closed and has insufficient elements (requested 2, current size 0)",
        "OutOfRangeError: FIFOQueue '_N_FIFOQueue' is closed and has insufficient elements (requested 2, current size 0)",
        "CancelledError: Queue '_N_FIFOQueue' is already closed.",
        None,
        0,
        None,
        True,
        "CancelledError: FIFOQueue '_N_PaddingFIFOQueue' is closed.",
        "CancelledError: FIFOQueue '_N_PaddingFIFOQueue' is closed.",
        "OutOfRangeError: FIFOQueue '_N_PaddingFIFOQueue' is closed and has insufficient elements (requested 1, current size 0)",
        "OutOfRangeError: PaddingFIFOQueue '_N_PaddingFIFOQueue' is closed and has insufficient elements (requested 2, current size 0)",
        "OutOfRangeError: PaddingFIFOQueue '_N_PaddingFIFOQueue' is closed and has insufficient elements (requested 2, current size 0)",
        "CancelledError: Queue '_N_PaddingFIFOQueue' is already closed.",
        None,
        0,
        None,
        True,
        "CancelledError: RandomShuffleQueue '_N_RandomShuffleQueue' is closed.",
        "CancelledError: RandomShuffleQueue '_N_RandomShuffleQueue' is closed.",
        "OutOfRangeError: RandomShuffleQueue '_N_RandomShuffleQueue' is closed and has insufficient elements (requested 1, current size 0)",
        "OutOfRangeError: RandomShuffleQueue '_N_RandomShuffleQueue' is closed and has insufficient elements (requested 2, current size 0)",
        "OutOfRangeError: RandomShuffleQueue '_N_RandomShuffleQueue' is closed and has insufficient elements (requested 2, current size 0)",
        "CancelledError: Queue '_N_RandomShuffleQueue' is already closed.",
        None,
        0,
    ],
    "closed_with_elements": [
        [1.0],
        "OutOfRangeError: FIFOQueue '_N_q' is closed and has insufficient elements (requested 3, current size 2)",
        2,
        [[2.0, 3.0]],
        "OutOfRangeError: FIFOQueue '_N_q' is closed and has insufficient elements (requested 3, current size 0)",
        [[]],
    ],
    "refused": [
        "InvalidArgumentError: Shape mismatch in tuple component 0. Expected [2], got [3]",
        "InvalidArgumentError: Signature mismatch, have: resource, float, float-> expected: resource, float, int32->",
        "InvalidArgumentError: Signature mismatch, have: resource, float-> expected: resource, float, int32->",
        "InvalidArgumentError: Shape mismatch in tuple component 1. Expected [1], got [2]",
        "InvalidArgumentError: Shape mismatch in tuple component 0. Expected [1,2], got [1,1]",
        "InvalidArgumentError: Signature mismatch, have: resource->float expected: resource->float, int32",
        "InvalidArgumentError: Signature mismatch, have: resource, int32->int32, float expected: resource, int32->float, int32",
        "InvalidArgumentError: DequeueUpToOp requested -1 < 0 elements",
        "InvalidArgumentError: Timeout not supported yet.",
        0,
    ],
    "impossible": [
        "InvalidArgumentError: Different number of component types.  Types: float, Shapes: [[], []]",
        "InvalidArgumentError: Shape [?] is not fully defined",
        "InvalidArgumentError: Shapes must be provided for all components, but received 1 dtypes and 0 shapes.",
        "InvalidArgumentError: shape <unknown> must have known rank.",
        "InvalidArgumentError: min_after_dequeue 3 must be < capacity 3",
        "InvalidArgumentError: min_after_dequeue -1 must be >= 0",
    ],
    "shared": [
        [4.0],
        0,
        "InvalidArgumentError: Shared queue 'a' has capacity 3 but requested capacity was 4",
        "InvalidArgumentError: Shared queue 'a' has component types float but requested component types were int32",
        "InvalidArgumentError: Shared queue 'a' has component shapes [[]] but requested component shapes were [[2]]",
        "InvalidArgumentError: Shared queue 'a' has component shapes [[]] but requested component shapes were []",
        "InvalidArgumentError: Expected FIFOQueue, found RandomShuffleQueueV2",
        "InvalidArgumentError: Expected FIFOQueue, found PaddingFIFOQueueV2",
        0,
    ],
    "shared_shuffled": [
        0,
        "InvalidArgumentError: Shared queue 'b' has min_after_dequeue 2 but requested min_after_dequeue was 3.",
        "InvalidArgumentError: Shared queue 'b' has random seeds (1, 2) but requested seeds are (5, 2).",
        "InvalidArgumentError: Shared queue 'b' has random seeds (1, 2) but requested seeds are (1, 5).",
        "InvalidArgumentError: Shared queue 'b' has capacity 9 but requested capacity was 8",
        0,
    ],
    "padded": [
        [[[[1.0, 1.0], [0.0, 0.0]], [[2.0, 2.0], [3.0, 3.0]]], [[b"a", b"b"], [b"x", b""]]],
        [[[2.0, 2.0], [3.0, 3.0]], [b"x"]],
        [[[[4.0, 4.0]], [[5.0, 5.0]]], [[b"y"], [b"z"]]],
        [[], []],
        "InvalidArgumentError: Shape mismatch in tuple component 0. Expected [?,2], got [1,3]",
        "InvalidArgumentError: Shape mismatch in tuple component 0. Expected [1,?,2], got [1,1,1]",
        "InvalidArgumentError: Shape mismatch in tuple component 1. Expected [1,?], got [1]",
    ],
    "in_one_run": [[[[1.0, 2.0, 3.0]], None], [4.0]],
    "more_than_fits": [None, 0, None, [[1.0, 2.0, 3.0, 4.0, 5.0]]],
    "first_come": [0, True, [[1.0, 2.0, 3.0]], [4.0]],
    "closing_wakes": [
        "OutOfRangeError: FIFOQueue '_N_q' is closed and has insufficient elements (requested 1, current size 0)",
        "OutOfRangeError: FIFOQueue '_N_q' is closed and has insufficient elements (requested 3, current size 0)",
    ],
    "closing_gives_back": [
        0,
        "OutOfRangeError: FIFOQueue '_N_q' is closed and has insufficient elements (requested 2, current size 0)",
        [1.0],
        1,
        [2.0],
    ],
    "closing_contents_up_to": [0, None, [[1.0, 2.0, 3.0, 4.0, 5.0]], 2, None, [[5.0, 4.0, 2.0, 1.0, 3.0]]],
    "closing_waits": [
        False,
        True,
        [5.0],
        [6.0],
        [7.0],
        None,
        None,
        "CancelledError: FIFOQueue '_N_q' is closed.",
        True,
        "OutOfRangeError: FIFOQueue '_N_q' is closed and has insufficient elements (requested 1, current size 0)",
    ],
    "closing_cancels": [
        "CancelledError: Enqueue operation was cancelled",
        "CancelledError: Enqueue operation was cancelled",
        [5.0],
        "OutOfRangeError: FIFOQueue '_N_q' is closed and has insufficient elements (requested 1, current size 0)",
    ],
    "keeps_some": [None, [1], 3],
    "no_room_at_all": [True, 0, None, "CancelledError: Enqueue operation was cancelled"],
    "references": [
        None,
        [1.0],
        None,
        2,
        [[2.0]],
        None,
        True,
        [[3.0]],
        "OutOfRangeError: FIFOQueue '_N_FIFOQueue' is closed and has insufficient elements (requested 1, current size 0)",
        "InvalidArgumentError: Signature mismatch, have: string_ref->int32 expected: string_ref->float",
        None,
        [1.0],
        None,
        2,
        [[2.0]],
        None,
        True,
        [[3.0]],
        "OutOfRangeError: FIFOQueue '_N_PaddingFIFOQueue' is closed and has insufficient elements (requested 1, current size 0)",
        "InvalidArgumentError: Signature mismatch, have: string_ref->int32 expected: string_ref->float",
        None,
        [1.0],
        None,
        2,
        [[3.0]],
        None,
        True,
        [[2.0]],
        "OutOfRangeError: RandomShuffleQueue '_N_RandomShuffleQueue' is closed and has insufficient elements (requested 1, current size 0)",
        "InvalidArgumentError: Signature mismatch, have: string_ref->int32 expected: string_ref->float",
    ],
}
FLOATS: dict[str, Any] = {"component_types": [gc.float32]}


@pytest.fixture(autouse=True)
def graph() -> Iterator[gc.Graph]:
    with gc.Graph().as_default() as graph:
        yield graph


def node(name: str, inputs: Any = (), called: str | None = None, **attrs: Any) -> gc.Node:
    return gc.get_default_graph().apply_op(name, list(inputs), attrs, called)


def queue(kind: str = "FIFOQueueV2", called: str = "q", **attrs: Any) -> gc.Tensor:
    return node(kind, (), called, **{"shapes": [gc.Shape([2])], **FLOATS, **attrs}).outputs[0]


def dequeue(q: gc.Tensor, **attrs: Any) -> gc.Tensor:
    return node("QueueDequeueV2", [q], None, **{**FLOATS, **attrs}).outputs[0]


def size(q: gc.Tensor) -> gc.Tensor:
    return node("QueueSizeV2", [q]).outputs[0]


def enqueue(q: gc.Tensor, *values: Any) -> gc.Node:
    return node("QueueEnqueueV2", [q, [gc.constant(np.array(value, np.float32)) for value in values]])


@pytest.mark.parametrize("name", EXPECTED)
def test_a_scenario_goes_as_in_tensorflow(name: str) -> None:
    assert play(name) == EXPECTED[name]


def test_all_scenarios_are_known_here_but_for_the_long_one() -> None:
    assert EXPECTED.keys() | {"shuffled"} == SCENARIOS.keys()


def test_a_seeded_shuffle_queue_gives_the_order_of_tensorflow() -> None:
    q = queue("RandomShuffleQueueV2", shapes=[gc.Shape([])], capacity=20, min_after_dequeue=3, seed=1, seed2=2)
    with gc.Session() as session:
        session.run(node("QueueEnqueueManyV2", [q, [gc.constant(np.arange(10, dtype=np.float32))]]))
        taken = dequeue(q)
        assert [session.run(taken) for _ in range(7)] == [9, 8, 6, 3, 5, 1, 4]


def test_without_seeds_two_shuffling_queues_give_other_orders() -> None:
    orders = []
    for called in ("a", "b"):
        q = queue("RandomShuffleQueueV2", called, shapes=[gc.Shape([])])
        many = node("QueueDequeueManyV2", [q, gc.constant(60)], None, **FLOATS).outputs[0]
        with gc.Session() as session:
            orders.append(session.run([many, node("QueueEnqueueManyV2", [q, [gc.constant(np.arange(60, dtype=np.float32))]])])[0].tolist())
    assert orders[0] != orders[1]
    assert sorted(orders[0]) == sorted(orders[1]) == list(range(60))


# ---- shapes --------------------------------------------------------------------------------------------------------------


def test_the_shapes_of_components_reach_dequeues() -> None:
    types: dict[str, Any] = {"component_types": [gc.float32, gc.int32]}
    q = queue(**types, shapes=[gc.Shape([2]), gc.Shape([])])
    n = gc.placeholder(gc.int32, [])
    one, many = node("QueueDequeueV2", [q], **types), node("QueueDequeueManyV2", [q, gc.constant(5)], **types)
    some, up_to = node("QueueDequeueManyV2", [q, n], **types), node("QueueDequeueUpToV2", [q, gc.constant(5)], **types)
    assert [[out.shape.dims for out in made.outputs] for made in (one, many, some, up_to)] == [
        [(2,), ()],
        [(5, 2), (5,)],
        [(None, 2), (None,)],
        [(None, 2), (None,)],
    ]


@pytest.mark.parametrize(
    ("kind", "shapes", "expected"), [("PaddingFIFOQueueV2", [gc.Shape([None, 3])], (None, 3)), ("FIFOQueueV2", [], None)]
)
def test_unknown_shapes_of_components_stay_unknown(kind: str, shapes: list[gc.Shape], expected: Any) -> None:
    assert dequeue(queue(kind, shapes=shapes)).shape.dims == expected


def test_the_shapes_pass_through_ops_that_forward_the_queue() -> None:
    q = queue()
    through = node("Identity", [q]).outputs[0]
    switched = node("Switch", [q, gc.placeholder(gc.bool_, [])]).outputs[1]
    assert [dequeue(handle).shape.dims for handle in (through, switched)] == [(2,)] * 2


def test_shapes_of_components_reach_dequeues_in_functions() -> None:
    q, seen = queue(), []

    def body() -> gc.Tensor:
        taken = dequeue(q)
        seen.append(taken.shape.dims)
        return taken

    value = gc.cond(gc.placeholder(gc.bool_, []), body, lambda: gc.constant([0.0, 0.0]))
    assert seen == [(2,)]
    assert value.shape.dims == (2,)


def test_a_queue_of_other_components_gives_no_shapes() -> None:
    assert dequeue(queue(component_types=[gc.float32, gc.float32], shapes=[gc.Shape([2]), gc.Shape([])])).shape.dims is None


def test_a_negative_number_of_elements_is_refused_when_it_is_known() -> None:
    with pytest.raises(gc.errors.InvalidArgumentError, match="Input 'n' must be >= 0, but is -1"):
        node("QueueDequeueManyV2", [queue(), gc.constant(-1)], None, **FLOATS)


def test_shapes_follow_when_the_queue_is_changed(graph: gc.Graph) -> None:
    q = queue()
    taken = dequeue(q)
    graph.set_attr(q.node, "shapes", [gc.Shape([7])])
    assert taken.shape.dims == (7,)


# ---- sharing ---------------------------------------------------------------------------------------------------------


def test_each_session_has_queues_of_its_own() -> None:
    q = queue(shared_name="shared")
    count, put = size(q), enqueue(q, [1.0, 2.0])
    with gc.Session() as first, gc.Session() as second:
        first.run(put)
        assert (first.run(count), second.run(count)) == (1, 0)


def test_a_queue_in_a_function_is_the_one_of_its_shared_name() -> None:
    outside = queue(shared_name="shared")

    @gc.function
    def put(x: gc.float32) -> gc.int32:  # type: ignore[valid-type]  # the decorator reads dtypes
        inside = queue(shared_name="shared")
        with gc.control_dependencies([node("QueueEnqueueV2", [inside, [x]])]):
            return size(inside)

    with gc.Session() as session:
        assert session.run(put(gc.constant([3.0, 4.0]))) == 1
        assert session.run(dequeue(outside)).tolist() == [3.0, 4.0]


def test_nodes_of_one_name_in_two_functions_are_two_queues() -> None:
    @gc.function
    def first(x: gc.float32) -> gc.int32:  # type: ignore[valid-type]  # the decorator reads dtypes
        q = queue()
        with gc.control_dependencies([node("QueueEnqueueV2", [q, [x]])]):
            return size(q)

    @gc.function
    def second(x: gc.float32) -> gc.int32:  # type: ignore[valid-type]  # the decorator reads dtypes
        q = queue()
        with gc.control_dependencies([node("QueueEnqueueManyV2", [q, [gc.stack([x, x])]])]):
            return size(q)

    counts = [first(gc.constant([1.0, 2.0])), second(gc.constant([1.0, 2.0]))]
    with gc.Session() as session:
        assert [session.run(counts) for _ in range(2)] == [[1, 2], [2, 4]]


def test_a_queue_that_is_declared_otherwise_begins_anew(graph: gc.Graph) -> None:
    q = queue(capacity=1)
    count, put, taken = size(q), enqueue(q, [1.0, 2.0]), dequeue(q)
    with gc.Session() as session:
        session.run(put)
        graph.set_attr(q.node, "shapes", [gc.Shape([2])])
        assert session.run(count) == 1
        graph.set_attr(q.node, "capacity", 5)
        assert session.run(count) == 0
        for _ in range(3):
            session.run(put)
        assert session.run([taken, count])[0].tolist() == [1.0, 2.0]


def test_a_queue_keeps_its_elements_when_others_are_made(graph: gc.Graph) -> None:
    q = queue()
    with gc.Session() as session:
        session.run(enqueue(q, [1.0, 2.0]))
        queue(called="another")
        assert session.run(dequeue(q)).tolist() == [1.0, 2.0]


def test_enqueued_values_do_not_change() -> None:
    q, x = queue(), gc.placeholder(gc.float32, [2])
    put, taken = node("QueueEnqueueV2", [q, [x]]), dequeue(q)
    value = np.array([1.0, 2.0], np.float32)
    with gc.Session() as session:
        session.run(put, {x: value})
        value[:] = 7.0
        found = session.run(taken)
        assert found.tolist() == [1.0, 2.0]
        found[:] = 9.0  # the caller owns it


def test_a_handle_of_something_else_is_refused() -> None:
    handle = node("VarHandleOp", dtype=gc.float32, shape=gc.Shape([])).outputs[0]
    with gc.Session() as session, pytest.raises(gc.errors.InvalidArgumentError, match="required the handle of a queue, got RefVariable"):
        session.run(dequeue(handle))


def test_a_gradient_ends_at_a_queue() -> None:
    x = gc.placeholder(gc.float32, [2])
    q = queue()
    node("QueueEnqueueV2", [q, [x]])
    taken = dequeue(q)
    assert gc.gradients(gc.reduce_sum(taken), [x, q]) == [None, None]
    with gc.Session() as session:
        session.run(enqueue(q, [3.0, 4.0]))
        assert session.run(gc.gradients(gc.reduce_sum(taken * x), [x])[0], {x: [1.0, 1.0]}).tolist() == [3.0, 4.0]


def test_every_use_of_a_queue_is_a_function_of_gc_ops() -> None:
    q = gc.ops.fifo_queue_v2(component_types=[gc.float32], shapes=[gc.Shape([2])], name="named")
    put = gc.ops.queue_enqueue_v2(q, [gc.constant([5.0, 6.0])])
    with gc.Session() as session:
        session.run(put)
        assert session.run(gc.ops.queue_dequeue_v2(q, component_types=[gc.float32]))[0].tolist() == [5.0, 6.0]
