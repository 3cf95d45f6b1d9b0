"""Allocations beyond the limit are refused before they are made, by both engines and for every op."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.errors import GraphError, InvalidArgumentError, ResourceExhaustedError
from graphcore.opset.math import sorting
from graphcore.runtime.plan import parallel, size_guards
from graphcore.runtime.session.session import Session
from graphcore.support import memory_limits as room
from tests.graphcore.opset.op_cases import Array, Case, all_cases, constants, run

ENGINES = pytest.mark.parametrize("engine", ["plan", "dataflow"])
MILLION = 1_000_000
PURE = [
    case for case in all_cases() if case.runs and case.deterministic and not case.takes_variable and not case.is_of_lists and case.arrays
]


@pytest.fixture(autouse=True)
def graph() -> Iterator[gc.Graph]:
    with gc.Graph().as_default() as graph:
        yield graph


def huge(op: str) -> tuple[gc.Tensor, dict[Any, Any]]:
    """A tensor of 10^12 elements, known only at run time."""
    n = gc.placeholder(gc.int32, [None], name="n")
    k = gc.placeholder(gc.int32, [], name="k")
    a = gc.placeholder(gc.float32, [None, 1], name="a")
    b = gc.placeholder(gc.float32, [None, None], name="b")
    column, row, one = np.zeros((MILLION, 1), np.float32), np.zeros((1, MILLION), np.float32), np.zeros((1, 1), np.float32)
    both = [MILLION, MILLION]
    if op == "fill":
        return gc.ops.fill(n, 1.0), {n: both}
    if op == "random":
        return gc.ops.random_uniform(n, dtype=gc.float32), {n: both}
    if op == "tile":
        return gc.ops.tile(b, n), {b: one, n: both}
    if op == "broadcast_to":
        return gc.ops.broadcast_to(gc.constant(1.0), n), {n: both}
    if op == "outer product":
        return a * gc.transpose(a, [1, 0]), {a: column}
    if op == "matmul":
        return gc.matmul(a, b), {a: column, b: row}
    if op == "einsum":
        return gc.ops.einsum([a, b], equation="ij,jk->ik"), {a: column, b: row}
    if op == "range":
        limit = gc.placeholder(gc.int64, [], name="limit")
        return gc.ops.range(gc.constant(0, gc.int64), limit, gc.constant(1, gc.int64)), {limit: MILLION * MILLION}
    if op == "one_hot":
        return gc.ops.one_hot(n, k, 1.0, 0.0), {n: np.zeros(MILLION, np.int32), k: MILLION}
    if op == "pad":
        margins = gc.placeholder(gc.int32, [2, 2], name="margins")
        return gc.ops.pad(b, margins), {b: one, margins: [[0, MILLION - 1], [MILLION - 1, 0]]}
    if op == "concat":
        parts = [b] * 2_000
        return gc.ops.concat_v2(parts, gc.constant(0)), {b: np.broadcast_to(np.float32(0), (500_000, 1_000))}
    if op == "gather":
        return gc.ops.gather(b, n), {b: row, n: np.zeros(MILLION, np.int32)}
    if op == "diagonal":
        return gc.ops.matrix_diag(gc.placeholder(gc.float32, [None], name="d")), {"d:0": np.zeros(MILLION, np.float32)}
    if op in ("segment_sum", "segment_max", "sparse_segment_sum", "unsorted_segment_prod"):
        rows, ids = gc.placeholder(gc.float32, None, name="rows"), gc.placeholder(gc.int64, None, name="ids")
        last, two = MILLION * MILLION - 1, np.zeros(2, np.float32)
        if op == "sparse_segment_sum":
            return gc.ops.sparse_segment_sum(rows, [0, 1], ids), {rows: two, ids: [0, last]}
        if op == "unsorted_segment_prod":
            count = gc.placeholder(gc.int64, None, name="count")
            return gc.ops.unsorted_segment_prod(rows, ids, count), {rows: two, ids: [0, 1], count: last + 1}
        reduce = gc.ops.segment_sum if op == "segment_sum" else gc.ops.segment_max
        return reduce(rows, ids), {rows: two, ids: [0, last]}
    if op == "band":
        d = gc.placeholder(gc.float32, None, name="d")
        return gc.ops.matrix_diag_v3(d, k, -1, -1, 0.0), {d: np.zeros(1, np.float32), k: MILLION - 1}
    if op == "resource gather":
        w = gc.Variable(np.zeros((1, MILLION), np.float32), name="w", use_resource=True)
        start = gc.placeholder(gc.int32, [None], name="start")
        with gc.control_dependencies([w.initializer]):
            return gc.ops.resource_gather(w.handle, start, dtype=gc.float32), {start: np.zeros(MILLION, np.int32)}
    if op.startswith("list"):
        made = gc.ops.tensor_list_reserve(n, k, element_dtype=gc.float32)
        feeds: dict[Any, Any] = {n: [MILLION], k: MILLION}
        if op == "list stack":
            return gc.ops.tensor_list_stack(made, n, element_dtype=gc.float32), feeds
        if op == "list item":
            return gc.ops.tensor_list_get_item(made, 0, n, element_dtype=gc.float32), {n: both, k: 1}
        if op == "list gather":
            return gc.ops.tensor_list_gather(made, np.zeros(MILLION, np.int32), n, element_dtype=gc.float32), feeds
        assert op == "list concat"
        leading = np.full(1000, 1000_000_000)
        return gc.ops.tensor_list_concat_v2(made, n, leading, element_dtype=gc.float32)[0], {n: [-1], k: 1000}
    if op.startswith("array"):
        array, flow = gc.ops.tensor_array_v3(k, dtype=gc.float32, element_shape=[MILLION])
        if op == "array gather":
            return gc.ops.tensor_array_gather_v3(array, np.arange(MILLION, dtype=np.int32), flow, dtype=gc.float32), {k: MILLION}
        assert op == "array concat"
        return gc.ops.tensor_array_concat_v3(array, flow, dtype=gc.float32)[0], {k: MILLION}
    assert op == "conv"
    image = gc.placeholder(gc.float32, [1, None, None, 1], name="image")
    filters = gc.placeholder(gc.float32, [1, 1, 1, None], name="filters")
    conv = gc.ops.conv2d(image, filters, strides=[1, 1, 1, 1], padding="VALID")
    return conv, {image: np.zeros((1, 1000, 1000, 1), np.float32), filters: row.reshape(1, 1, 1, MILLION)}


OPS = (
    "fill",
    "random",
    "tile",
    "broadcast_to",
    "outer product",
    "matmul",
    "einsum",
    "range",
    "one_hot",
    "pad",
    "concat",
    "gather",
    "diagonal",
    "conv",
    "segment_sum",
    "segment_max",
    "sparse_segment_sum",
    "unsorted_segment_prod",
    "band",
    "resource gather",
    "list stack",
    "list item",
    "list gather",
    "list concat",
    "array gather",
    pytest.param("array concat", marks=pytest.mark.slow),
)
LISTS = ("reserve", "resize", "set item", "scatter", "array", "array write")


def refusal(engine: str, y: Any, feeds: dict[Any, Any]) -> ResourceExhaustedError:
    with pytest.raises(ResourceExhaustedError, match="GiB, and there are") as caught:
        gc.Session(engine=engine).run(y, feeds)
    return caught.value


@pytest.mark.parametrize("op", OPS)
def test_feeds_cannot_request_arrays_larger_than_the_memory(op: str) -> None:
    y, feeds = huge(op)
    errors = [refusal(engine, y, feeds) for engine in ("plan", "dataflow")]
    assert errors[0].message == errors[1].message
    for error in errors:
        assert (error.node, error.op) == (y.node.name, y.node.op)
        assert f"The output of '{y.node.name}' = {y.node.op}({y.node.inputs[0].name} " in error.message
        assert ("7450.58 GiB" if y.dtype is gc.int64 else "3725.29 GiB") in error.message
        assert error.source is not None


def huge_list(op: str, count: gc.Tensor) -> Any:
    """A node that makes a list of `count` elements."""
    empty = gc.ops.empty_tensor_list([2], -1, element_dtype=gc.float32)
    row = gc.constant([1.0, 2.0])
    if op == "reserve":
        return gc.ops.tensor_list_reserve([2], count, element_dtype=gc.float32, name="made")
    if op == "resize":
        return gc.ops.tensor_list_resize(empty, count, name="made")
    if op == "set item":
        return gc.ops.tensor_list_set_item(empty, count - 1, row, resize_if_index_out_of_bounds=True, name="made")
    if op == "scatter":
        return gc.ops.tensor_list_scatter([[1.0, 2.0]], gc.ops.expand_dims(count - 1, 0), [2], name="made")
    if op == "array":
        return gc.ops.tensor_array_v3(count, dtype=gc.float32, name="made")[0]
    assert op == "array write"
    array, flow = gc.ops.tensor_array_v3(0, dtype=gc.float32, dynamic_size=True)
    return gc.ops.tensor_array_write_v3(array, count - 1, row, flow, name="made")


@ENGINES
@pytest.mark.parametrize("op", LISTS)
def test_a_list_whose_places_alone_take_more_than_the_memory_is_refused_too(op: str, engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "memory_limit", lambda: 1 << 20)
    count = gc.placeholder(gc.int32, [], name="count")
    made = huge_list(op, count)
    error = refusal(engine, made, {count: 2_000_000_000})
    assert (error.node, error.op) == ("made", made.node.op)
    assert f"The output of 'made' = {made.node.op}(" in error.message
    assert " is a list of 2000000000 elements: that takes " in error.message
    gc.Session(engine=engine).run(made, {count: 3})


@ENGINES
def test_padding_that_leaves_no_whole_blocks_is_refused_before_anything_is_padded(engine: str) -> None:
    x, pads = gc.placeholder(gc.float32, [1, 2, 2, 1], name="x"), gc.placeholder(gc.int32, [2, 2], name="pads")
    y = gc.ops.space_to_batch_nd(x, [2, 2], pads)
    with pytest.raises(InvalidArgumentError, match="not divisible"):
        gc.Session(engine=engine).run(y, {x: np.zeros((1, 2, 2, 1), np.float32), pads: [[0, 2_000_000_001], [0, 2_000_000_001]]})


@pytest.mark.parametrize("op", ["fill", "random", "tile", "outer product", "matmul", "view"])
def test_known_shapes_larger_than_the_memory_are_refused_alike(op: str) -> None:
    x = gc.placeholder(gc.float32, [MILLION, 1], name="x")
    made: dict[str, Callable[[], Any]] = {
        "fill": lambda: gc.ops.fill([MILLION, MILLION], 1.0),
        "random": lambda: gc.ops.random_uniform([MILLION, MILLION], dtype=gc.float32),
        "tile": lambda: gc.ops.tile(x, [1, MILLION]),
        "outer product": lambda: x * gc.transpose(x, [1, 0]),
        "matmul": lambda: gc.matmul(x, x, transpose_b=True),
        "view": lambda: gc.ops.broadcast_to(x, [MILLION, MILLION]),
    }
    y = made[op]()
    errors = [refusal(engine, y, {x: np.zeros((MILLION, 1), np.float32)}) for engine in ("plan", "dataflow")]
    assert errors[0].message == errors[1].message
    assert (errors[0].node, errors[0].op) == (y.node.name, y.node.op)
    assert "3725.29 GiB" in errors[0].message


@ENGINES
def test_a_refusal_in_a_loop_or_a_function_names_the_node_and_the_session_works_afterwards(engine: str) -> None:
    n = gc.placeholder(gc.int32, [2], name="n")

    @gc.function
    def filled(size: gc.Tensor) -> Any:
        return gc.ops.fill(size, 1.0, name="within")

    _, y = gc.while_loop(
        lambda i, _: i < 3, lambda i, _: (i + 1, gc.reduce_sum(gc.ops.fill(n, 2.0, name="turned"))), [gc.constant(0), gc.constant(0.0)]
    )
    session = gc.Session(engine=engine)
    for z, name in ((gc.reduce_sum(filled(n)), "within"), (y, "turned")):
        with pytest.raises(ResourceExhaustedError, match=r"3725\.29 GiB, and there are") as caught:
            session.run(z, {n: [MILLION, MILLION]})
        assert caught.value.node == name
        assert caught.value.source is not None
        assert session.run(z, {n: [3, 1]}) == (3.0 if name == "within" else 6.0)


def fed(case: Case, sizes: str) -> tuple[gc.Node, dict[Any, Any]]:
    """The node of a case with fed inputs: of unknown rank, or of known shapes with integers constant."""
    tensors: list[Any] = []
    feeds: dict[Any, Any] = {}
    for number, array in enumerate(case.arrays):
        if sizes == "known" and array.dtype.kind in "iu":
            tensors += constants([array])
            continue
        shape = gc.Shape(array.shape) if sizes == "known" else gc.Shape(None)
        tensors.append(gc.placeholder(gc.as_dtype(array.dtype), shape, name=f"fed{number}"))
        feeds[tensors[-1]] = array
    return case.build(tensors), feeds


def size_of(arrays: list[Array]) -> int:
    """Bytes of the largest array; a string alone, which NumPy reads as characters, is none."""
    return max([array.nbytes for array in arrays if array.dtype.kind != "S"], default=0)


@ENGINES
@pytest.mark.parametrize("sizes", ["unknown", "known"])
def test_no_op_makes_an_array_larger_than_the_memory_and_than_its_inputs(sizes: str, engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit is one byte below the need of the op's example."""
    monkeypatch.setattr(parallel, "_LARGE", 0)
    made: list[str] = []
    count = 0
    for case in PURE:
        with gc.Graph().as_default():
            values = run(case.build(constants(case.arrays)))
            largest = size_of(values)
            if largest <= size_of(case.arrays):
                continue
            node, feeds = fed(case, sizes)
            if not feeds:
                continue
            count += 1
            for limit, fits in ((largest, True), (largest - 1, False)):
                for module in (size_guards, room, sorting):
                    monkeypatch.setattr(module, "memory_limit", lambda limit=limit: limit)
                try:
                    Session(graph=node.graph, engine=engine).run(list(node.outputs), feeds)
                    outcome = "made"
                except ResourceExhaustedError as error:
                    outcome = "refused" if error.node == node.name and "GiB, and there are" in error.message else repr(error)
                except GraphError as error:
                    outcome = repr(error)
                if outcome != ("made" if fits else "refused"):
                    made.append(f"{case.id}, which takes {largest} bytes of {limit}: {outcome}")
                monkeypatch.undo()
                monkeypatch.setattr(parallel, "_LARGE", 0)
    assert not made, "\n".join(made)
    assert count > 50
