"""Feeds: any tensor may be fed, except those read for shape inference; misfits are refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.errors import InvalidArgumentError
from tests.graphcore.runtime.loop_graphs import op, while_loop

ENGINES = pytest.mark.parametrize("engine", ["plan", "dataflow"])


@pytest.fixture(autouse=True)
def graph() -> Iterator[gc.Graph]:
    with gc.Graph().as_default() as graph:
        yield graph


# ---- values ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        (gc.int32, 2**40),
        (gc.int32, [1, -(2**40)]),
        (gc.int32, np.int64(2**31)),
        (gc.int64, 2**63),
        (gc.int8, [300]),
        (gc.uint8, np.array([-1])),
        (gc.uint64, np.array([-1], np.int8)),
        (gc.bool_, np.array([2])),
    ],
    ids=str,
)
def test_an_integer_that_does_not_fit_is_refused_and_not_wrapped_around(dtype: gc.DType, value: Any) -> None:
    x = gc.placeholder(dtype, None, name="x")
    with pytest.raises(InvalidArgumentError, match=rf"Cannot feed .*for Tensor 'x:0', which has dtype {dtype.text}"):
        gc.Session().run(gc.identity(x), {x: value})


@pytest.mark.parametrize("dtype", [gc.uint8, gc.uint64, gc.int8, gc.int32, gc.float32], ids=str)
@pytest.mark.parametrize("value", [[1, 2], np.array([1, 2]), np.array([1, 2], ">i4"), (True, 2), range(1, 3)], ids=str)
def test_integers_that_fit_may_be_fed_in_any_type(dtype: gc.DType, value: Any) -> None:
    x = gc.placeholder(dtype, [2], name="x")
    got = gc.Session().run(gc.identity(x), {x: value})
    assert got.dtype == dtype.as_numpy
    assert got.tolist() == list(value)


def test_the_imaginary_part_of_a_number_is_not_dropped() -> None:
    x = gc.placeholder(gc.bfloat16, [], name="x")
    with pytest.raises(InvalidArgumentError, match="Cannot feed a value of type complex128 for Tensor 'x:0', which has dtype bfloat16"):
        gc.Session().run(gc.identity(x), {x: 1j})
    assert gc.Session().run(gc.identity(x), {x: 1.5}) == 1.5


@pytest.mark.parametrize(
    ("value", "kind"), [(3, "int"), (None, "NoneType"), (["a", 1.5], "float"), ([["a"], ["b", "c"]], "list"), ({"a": 1}, "dict")], ids=str
)
def test_only_text_may_be_fed_to_a_string(value: Any, kind: str) -> None:
    x = gc.placeholder(gc.string, None, name="x")
    with pytest.raises(InvalidArgumentError, match=f"Cannot feed a value of type {kind} for Tensor 'x:0', which has dtype string"):
        gc.Session().run(gc.identity(x), {x: value})


def test_texts_and_bytes_are_fed_to_a_string() -> None:
    x = gc.placeholder(gc.string, None, name="x")
    for value in (["a", b"b"], np.array(["a", "b"]), np.array([b"a", b"b"]), np.array(["a", "b"], object)):
        assert gc.Session().run(gc.identity(x), {x: value}).tolist() == [b"a", b"b"]
    assert gc.Session().run(gc.identity(x), {x: np.str_("a")}) == b"a"


def test_a_text_that_utf_8_cannot_encode_is_not_fed() -> None:
    x = gc.placeholder(gc.string, None, name="x")
    for value in ("a\ud800", ["a", "a\ud800"]):
        with pytest.raises(InvalidArgumentError, match=r"Required text that UTF-8 can encode, or bytes; got .* at 1"):
            gc.Session().run(gc.identity(x), {x: value})


@pytest.mark.parametrize("value", [None, {"a": 1}, [None, 1], 2**100], ids=str)
def test_a_refused_object_is_called_by_its_type(value: Any) -> None:
    x = gc.placeholder(gc.float32, None, name="x")
    kind = type(value[0] if isinstance(value, list) else value).__name__
    with pytest.raises(InvalidArgumentError, match=f"Cannot feed a value of type {kind}"):
        gc.Session().run(gc.identity(x), {x: value})


# ---- tensors of known value --------------------------------------------------------------------------------------


def with_default(value: Any, name: str) -> gc.Tensor:
    """A tensor unknown before the run."""
    default = gc.constant(value)
    made: gc.Tensor = gc.ops.placeholder_with_default(default, default.shape, name=name)
    return made


@ENGINES
def test_results_of_a_fed_constant_are_computed_from_the_feed(engine: str) -> None:
    x, scale, picked = gc.placeholder(gc.float32, [3], name="x"), gc.constant(2.0, name="scale"), gc.constant([0, 2], name="picked")
    doubled = scale * 2.0
    rows = gc.apply_op("GatherV2", [x * doubled, picked, 0])
    session = gc.Session(engine=engine)
    assert session.run([rows, doubled], {x: [1, 2, 3], scale: 5.0, picked: [1, 1]})[0].tolist() == [20, 20]
    assert session.run(rows, {x: [1, 2, 3]}).tolist() == [4, 12]


def reading(read: str) -> tuple[gc.Tensor, gc.Tensor, Any]:
    """A constant that shapes depend on, a tensor made with it, and another value for it."""
    x = gc.placeholder(gc.float32, [2, 3], name="x")
    if read == "a float":
        constant = gc.constant(3.0, name="read")
        return constant, gc.reshape(x, gc.stack([gc.cast(constant, gc.int32), 2]), name="reader"), 2.0
    if read == "a function's argument":
        constant = gc.constant([3, 2], name="read")

        @gc.function
        def in_shape(table: gc.Tensor, sizes: gc.Tensor) -> gc.Tensor:
            return gc.reshape(table, sizes)

        return constant, gc.identity(in_shape(x, constant)), [6, 1]
    cases: dict[str, tuple[Any, Any, Callable[[gc.Tensor], gc.Tensor]]] = {
        "a shape": ([3, 2], [2, 3], lambda read: gc.reshape(x, read, name="reader")),
        "an axis": (0, 1, lambda read: gc.reduce_sum(x, axis=read, name="reader")),
        "a permutation": ([1, 0], [0, 1], lambda read: gc.ops.transpose(x, read, name="reader")),
        "paddings": ([[1, 1], [0, 0]], [[0, 0], [1, 1]], lambda read: gc.ops.pad(x, read, name="reader")),
        "a part of a shape": (3, 2, lambda read: gc.reshape(x, gc.stack([read, gc.placeholder(gc.int32, [])]), name="reader")),
        "an element of a shape": ([7, 3, 2], [7, 2, 3], lambda read: gc.reshape(x, read[1:], name="reader")),
        "a joined shape": ([3], [2], lambda read: gc.reshape(x, gc.concat([gc.cast(read, gc.int64), np.array([-1])], 0), name="reader")),
    }
    value, other, make = cases[read]
    constant = gc.constant(value, name="read")
    return constant, make(constant), other


@pytest.mark.parametrize(
    "read",
    [
        *("a shape", "an axis", "a permutation", "paddings", "a part of a shape", "an element of a shape", "a joined shape", "a float"),
        "a function's argument",
    ],
)
@ENGINES
def test_another_value_than_was_read_to_infer_shapes_may_not_be_fed(engine: str, read: str, graph: gc.Graph) -> None:
    constant, made, other = reading(read)
    x, session = graph.get_tensor_by_name("x:0"), gc.Session(engine=engine)
    fed: dict[gc.Tensor, Any] = {node.outputs[0]: 2 for node in graph.nodes if node.op == "Placeholder"}
    fed[x] = np.ones((2, 3))
    own = session.run(made, fed)
    again = session.run([made, constant], {**fed, constant: session.run(constant)})
    np.testing.assert_array_equal(again[0], own)
    name = "reader" if read != "a function's argument" else "in_shape"
    with pytest.raises(InvalidArgumentError, match=rf"'read:0' may not be fed.*node '{name}' \(op \w+, made in test_feeds.py") as caught:
        session.run(made, {**fed, constant: other})
    assert caught.value.node == "read"
    with pytest.raises(InvalidArgumentError, match="may not be fed"):
        session.make_callable(made, [*fed, constant])(*fed.values(), other)
    handle = session.partial_run_setup(made, [*fed, constant])
    with pytest.raises(InvalidArgumentError, match="may not be fed"):
        session.partial_run(handle, made, {**fed, constant: other})


def test_ancestors_of_a_value_read_for_shapes_may_not_be_fed() -> None:
    x, sizes = gc.placeholder(gc.float32, [6], name="x"), gc.constant([2, 3], name="sizes")
    wide = gc.cast(sizes, gc.int64, name="wide")
    table, session = gc.reshape(x, wide), gc.Session()
    with pytest.raises(InvalidArgumentError, match="'wide:0' may not be fed"):
        session.run(table, {x: np.zeros(6), wide: [3, 2]})
    part = gc.stack([gc.placeholder(gc.int32, []), 3], name="part")
    tables = gc.reshape(x, part)
    assert session.run(tables, {x: np.zeros(6), part: [2, 3]}).shape == (2, 3)
    with pytest.raises(InvalidArgumentError, match="'part:0' may not be fed"):
        session.run(tables, {x: np.zeros(6), part: [3, 2]})


def test_a_value_read_for_shapes_may_not_be_connected() -> None:
    x, sizes = gc.placeholder(gc.float32, [6], name="x"), gc.constant([2, 3], name="sizes")
    gc.constant([3, 2], name="others")
    with pytest.raises(InvalidArgumentError, match="'sizes:0' may not be fed"):
        gc.Session().make_callable(gc.reshape(x, sizes), [x], [("others:0", "sizes:0")])


@ENGINES
def test_a_result_is_not_written_where_only_the_unfed_shape_would_have_room(engine: str) -> None:
    x = gc.placeholder(gc.float32, [None], name="x")
    rows = gc.shape(x)[0]
    few = gc.exp(gc.ops.broadcast_to(gc.constant([[1.0]]), gc.stack([rows, 1])))
    many = gc.exp(gc.reshape(x, gc.stack([gc.shape(x)[0], 1])))
    assert gc.Session(engine=engine).run(few + many, {x: np.zeros(6), rows: 1}).shape == (6, 1)


@ENGINES
def test_a_fed_axis_counts_though_its_default_is_waited_for(engine: str, graph: gc.Graph) -> None:
    x, axis = gc.placeholder(gc.float32, [2, 3], name="x"), with_default(0, "axis")
    with graph.control_dependencies([axis]):
        total = gc.reduce_sum(x, axis=axis)
    assert gc.Session(engine=engine).run(total, {x: np.ones((2, 3)), axis: 1}).tolist() == [3, 3]


def test_a_partial_run_uses_the_size_that_is_fed() -> None:
    x, sizes = gc.placeholder(gc.float32, [6], name="x"), with_default([2, 3], "sizes")
    table = gc.reshape(x, sizes)
    shape = gc.shape(table)
    bias = gc.placeholder(gc.float32, [None], name="bias")
    total = gc.ops.slice(table, [0, 0], [3, 2])
    biased = gc.ops.bias_add(total, bias)
    looped = while_loop(
        lambda v, top: op("Less", [v, top]), lambda v, top: [op("AddV2", [v, v]), top], [gc.reduce_sum(bias), gc.constant(10.0)]
    )[0]
    session = gc.Session()
    handle = session.partial_run_setup([shape, total, biased, looped], [x, sizes, bias])
    assert session.partial_run(handle, [shape, total], {x: np.arange(6.0), sizes: [3, 2]})[1].tolist() == [[0, 1], [2, 3], [4, 5]]
    with pytest.raises(InvalidArgumentError, match="can't be computed from the feeds"):
        session.partial_run(handle, looped)
    assert session.partial_run(handle, [biased, looped], {bias: [1.0, 1.0]})[1] == 16.0


@ENGINES
def test_errors_name_feeds_as_the_user_does_and_feeds_in_loops_are_refused(engine: str) -> None:
    x, sizes = gc.placeholder(gc.float32, [6], name="x"), with_default([2, 3], "sizes")
    table = gc.reshape(x, sizes, name="table")
    session = gc.Session(engine=engine)
    with pytest.raises(InvalidArgumentError, match=r"\[\[\{\{node table\}\}\]\] = Reshape\(x:0 float \[6\], sizes:0 int32 \[2\]\)"):
        session.run(table, {x: np.zeros(6), sizes: [4, 2]})
    turned: list[gc.Tensor] = []

    def body(i: gc.Tensor, top: gc.Tensor) -> list[gc.Tensor]:
        turned.append(op("AddV2", [i, op("OnesLike", [i])]))
        return [turned[0], top]

    counted = while_loop(lambda i, top: op("Less", [i, top]), body, [gc.constant(0), gc.constant(3)])[0]
    with pytest.raises(InvalidArgumentError, match=r"cannot be fed: it has a value in each iteration of loop 'loop'"):
        session.run(counted, {turned[0]: 1})


# ---- fed nodes -----------------------------------------------------------------------------------------------------------


@ENGINES
def test_a_node_with_a_fed_output_still_runs_as_control_input_or_target(engine: str, graph: gc.Graph) -> None:
    count = gc.Variable(0.0, name="count")
    step = count.assign_add(1.0, name="step")
    value = gc.identity(step, name="value")
    with graph.control_dependencies([step]):
        after = gc.constant(1.0) + 1.0
    with graph.control_dependencies([value]):
        later = gc.constant(2.0) + 2.0
    session = gc.Session(engine=engine)
    session.run(count.initializer)
    assert session.run([value, after], {step: 7.0}) == [7.0, 2.0]
    assert session.run(count) == 1.0
    assert session.run([value, value.node, later], {value: 7.0}) == [7.0, None, 4.0]
    assert session.run(count) == 2.0
    assert session.run(value + 1.0, {value: 7.0}) == 8.0
    assert session.run(count) == 2.0


@ENGINES
def test_a_target_with_a_fed_output_still_needs_its_placeholders(engine: str) -> None:
    x = gc.placeholder(gc.float32, [], name="x")
    y = x * 2.0
    with pytest.raises(InvalidArgumentError, match="You must feed a value for placeholder tensor 'x'"):
        gc.Session(engine=engine).run([y, y.node], {y: 3.0})
    assert gc.Session(engine=engine).run([y, y.node], {y: 3.0, x: 1.0}) == [3.0, None]


@ENGINES
def test_a_placeholder_that_is_fed_is_not_waited_for_itself(engine: str, graph: gc.Graph) -> None:
    x = gc.placeholder(gc.float32, [], name="x")
    with graph.control_dependencies([x]):
        y = gc.constant(1.0) + 1.0
    assert gc.Session(engine=engine).run([y, x.node], {x: 3.0}) == [2.0, None]


def test_a_placeholder_without_a_shape_is_no_target_that_fails_once_its_shapes_are_known() -> None:
    x = gc.placeholder(gc.float32, [None, None], name="x")
    total = gc.reduce_sum(x / gc.cast(gc.ops.size(x), gc.float32))
    session = gc.Session()
    assert [session.run([total, x.node], {x: np.ones((2, 3))}) for _ in range(5)] == [[pytest.approx(1.0), None]] * 5


@ENGINES
def test_a_fed_variable_cannot_be_assigned_to(engine: str) -> None:
    w = gc.Variable([1.0, 2.0], name="w")
    update = w.assign_add([1.0, 1.0])
    session = gc.Session(engine=engine)
    session.run(w.initializer)
    with pytest.raises(InvalidArgumentError, match=r"was passed float from w:0.*incompatible with expected float_ref"):
        session.run(update, {w: [5.0, 5.0]})
    assert session.run(w).tolist() == [1, 2]
