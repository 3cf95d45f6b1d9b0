"""Shapes and names of sizes hold in every run: one name is one number, and equalities are true."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import graphcore as gc
from graphcore.attrs import Func
from graphcore.errors import GraphError, InternalError
from graphcore.inference.expressions import Expression, expression_of
from tests.graphcore.inference.knowledge import Knowledge, Partial
from tests.graphcore.inference.probes import shape_of
from tests.graphcore.inference.shape_fns.test_shapes_agree_with_kernels import (
    BY_OP,
    DRAWN,
    REGISTRY,
    check,
    check_less,
    inferred,
    observed,
    true_of,
)
from tests.graphcore.inference.surroundings import build
from tests.graphcore.inference.sweep_cases import FUNCTIONS
from tests.graphcore.opset.op_cases import Case
from tests.graphcore.runtime.loop_graphs import cond, enter, while_loop
from tests.support.op_checks import checked_for

ops: Any = gc.ops
Made = Callable[..., Any]


def part(x: Any, i: int) -> Any:
    return ops.strided_slice(ops.shape(x), [i], [i + 1], [1], shrink_axis_mask=1)


def call(op: str, *inputs: Any, **attrs: Any) -> Any:
    return gc.get_default_graph().apply_op(op, list(inputs), attrs).outputs


def branch(taken: bool) -> Made:
    """Requirements of a branch do not hold if it is not taken."""
    return lambda x, y: cond(gc.constant(taken), [x, y], lambda a, b: [call("AddN", [a, b])[0]], lambda a, _: [ops.tanh(a)])[0]


def turns(x: Any, y: Any) -> Any:
    """Two iterations of a loop; each doubles the value, and adds a term that fits only at first."""
    limit, one, axis, constant = (enter(value, "loop", constant=True) for value in (gc.constant(2), gc.constant(1), gc.constant(0), y))
    return while_loop(
        lambda i, _: call("Less", i, limit)[0],
        lambda i, a: [call("Add", i, one)[0], call("ConcatV2", [call("Add", a, constant)[0], a], axis)[0]],
        [gc.constant(0), x],
    )[1]


def once(x: Any, y: Any) -> Any:
    """One iteration of a loop that requires two sizes to be equal."""
    limit, one, axis, constant = (enter(value, "loop", constant=True) for value in (gc.constant(1), gc.constant(1), gc.constant(0), y))
    return while_loop(
        lambda i, _: call("Less", i, limit)[0],
        lambda i, a: [call("Add", i, one)[0], call("ConcatV2", [call("AddN", [a, constant])[0], a], axis)[0]],
        [gc.constant(0), x],
    )[1]


def called(name: str) -> Made:
    return lambda x, y: call("PartitionedCall", [x, y], Tout=[gc.float32], f=Func(name))[0]


def chosen(taken: bool, then: str, other: str) -> Made:
    attrs = {"Tout": [gc.float32], "then_branch": Func(then), "else_branch": Func(other)}
    return lambda x, y: call("StatelessIf", gc.constant(taken), [x, y], **attrs)[0]


def rounds(body: str) -> Made:
    return lambda x, _: call("StatelessWhile", [gc.constant(0.0), x], cond=Func("Below3"), body=Func(body))[1]


STEPS: dict[str, Made] = {
    "tanh": lambda x, _: ops.tanh(x),
    "add": ops.add,
    "add_n": lambda x, y: ops.add_n([x, y]),
    "product": ops.mat_mul,
    "batched": lambda x, y: call("BatchMatMulV2", ops.expand_dims(x, 0), ops.expand_dims(y, 0))[0],
    "joined": lambda x, y: ops.concat_v2([x, y], 0),
    "beside": lambda x, y: ops.concat_v2([x, y], 1),
    "turned": lambda x, _: ops.transpose(x, [1, 0]),
    "flat": lambda x, _: gc.reshape(x, [-1, 1]),
    "pairs": lambda x, _: gc.reshape(x, [-1, 2]),
    "tiled": lambda x, _: ops.tile(x, [2, 1]),
    "padded": lambda x, _: ops.pad(x, [[0, 1], [0, 0]]),
    "cut": lambda x, _: ops.strided_slice(x, [1], [0], [1], end_mask=1),
    "every second": lambda x, _: ops.strided_slice(x, [0], [0], [2], begin_mask=1, end_mask=1),
    "sum": lambda x, _: gc.reduce_sum(x, 0, True),
    "counts": lambda x, y: ops.fill(ops.add(ops.shape(x), ops.shape(y)), 1.0),
    "halves": lambda x, _: ops.fill(ops.floor_div(ops.shape(x), 2), 1.0),
    "reshaped": lambda x, y: ops.reshape(x, ops.shape(y)),
    "rows": lambda x, _: ops.reshape(x, ops.pack([part(x, 0), -1])),
    "like": lambda x, y: ops.broadcast_to(x, ops.shape(y)),
    "where": lambda x, _: ops.reshape(ops.fill(ops.shape(ops.where(ops.greater(x, 0.0))), 1.0), [-1, 2]),
    "chosen": lambda x, y: call("SelectV2", ops.greater(x, 0.0), x, y)[0],
    "branch taken": branch(True),
    "branch not taken": branch(False),
    "turns": turns,
    "once": once,
    "called": called("Sum2"),
    "flattened": lambda x, y: ops.expand_dims(called("Flat")(x, y), 0),
    "then": chosen(True, "Same", "Sum2"),
    "else": chosen(False, "Same", "Sum2"),
    "round": rounds("Next"),
    "growing": rounds("Grow"),
}


def holds(graph: gc.Graph, sizes: dict[str, tuple[int, ...]]) -> None:
    """All statements of `graph` about names are true of these sizes."""
    symbols = graph.symbols()
    assert symbols.contradictions == ()
    told: list[tuple[Expression, int]] = []
    for name, real in sizes.items():
        tensor = graph.get_tensor_by_name(name)
        for dim, size in zip(tensor.node.output_handles[tensor.index].dims or (), real, strict=False):
            expression = expression_of(dim)
            if expression is not None:
                told.append((expression, size))
    numbers: dict[str, int] = {}
    for expression, size in told:
        if expression.name:
            assert numbers.setdefault(expression.name, size) == size, f"{expression.name} is {numbers[expression.name]} and {size}"
    equal = [*told, *[(value, numbers[name]) for name, value in symbols.values.items() if name in numbers]]
    for expression, size in equal:
        if expression.names <= numbers.keys():
            assert expression.value(numbers) == size, f"{expression} with {numbers} is not {size}"
    for left, right in symbols.open:
        if (left.names | right.names) <= numbers.keys():
            assert left.value(numbers) == right.value(numbers)


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(st.tuples(st.sampled_from([1, 2, 3]), st.sampled_from([1, 2, 3]), st.booleans(), st.booleans()), min_size=2, max_size=3),
    st.lists(st.tuples(st.sampled_from(list(STEPS)), st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=8),
)
def test_names_hold_in_a_run(given_: list[tuple[int, int, bool, bool]], steps: list[tuple[str, int, int]]) -> None:
    graph = gc.Graph(infer="symbolic")
    with graph.as_default():
        for text in FUNCTIONS:
            graph.library.add_function_def(gc.define_function(text))
        feeds: dict[Any, Any] = {}
        for rows, columns, rows_known, columns_known in given_:
            x = gc.placeholder(gc.float32, [rows if rows_known else None, columns if columns_known else None])
            feeds[x] = np.ones((rows, columns), np.float32)
        tensors: list[Any] = list(feeds)
        sizes = {x.name: value.shape for x, value in feeds.items()}
        for kind, first, second in steps:
            x, y = tensors[first % len(tensors)], tensors[second % len(tensors)]
            if sizes[x.name].count(0) > 1:
                continue  # by convention, Reshape computes -1 beside a size of 0 as if that size were 1
            try:
                with graph.transaction(), gc.Session() as session:
                    made = STEPS[kind](x, y)
                    value = session.run(made, feeds)
            except GraphError:
                continue  # does not fit, which may show only at run time
            tensors.append(made)
            sizes[made.name] = value.shape
        holds(graph, sizes)


def check_names(case: Case, know: Knowledge) -> None:
    """Run the op of a case in a graph with names under partial knowledge: shapes and names are true."""
    with gc.Graph(REGISTRY, infer="symbolic").as_default() as graph:
        built = build(case, know)
        if built.fails is not None:
            with pytest.raises(built.fails):
                observed(graph, built)
            return
        sizes = {tensor.name: value.shape for tensor, value in built.feeds.items()}
        for tensor, value in observed(graph, built):
            known = inferred(tensor)
            assert true_of(tensor, known, value), f"{tensor.name}: {known[0]}, but the kernel gives {shape_of(tensor, value)}"
            if built.loop is None or tensor.node is built.node:
                sizes[tensor.name] = shape_of(tensor, value)
        holds(graph, sizes)


@checked_for(BY_OP, slow=True)
@settings(max_examples=8, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def shapes_and_names_hold_for_any_knowledge(name: str, data: st.DataObject) -> None:
    check_names(data.draw(st.sampled_from(BY_OP[name])), Partial(data.draw))


@checked_for(DRAWN, slow=True)
def shapes_and_names_hold_for_inputs_and_attrs_that_are_drawn(name: str) -> None:
    entry, taken = gc.op_registry.look_up(name), 0

    @settings(max_examples=8, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(data=st.data())
    def draw(data: st.DataObject) -> None:
        nonlocal taken
        drawn = DRAWN[name](data.draw, entry)
        case = Case(entry, 0, drawn.inputs, drawn.attrs, None, differentiable=False)
        with np.errstate(all="ignore"):
            try:
                all_of_it = check(case, Knowledge())
            except InternalError:
                raise
            except GraphError:
                return  # invalid draws are refused
            taken += 1
            check_less(case, all_of_it, data.draw)
            check_names(case, Partial(data.draw))

    draw()
    assert taken, "everything that was drawn was refused"
