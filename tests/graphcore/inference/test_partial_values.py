"""A value used as a shape may be partially known."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.errors import InvalidArgumentError
from graphcore.graph.shapes.constant_values import constant_value
from graphcore.inference import ShapeHandle
from graphcore.inference.partial_values import partial_shape, partial_value
from tests.support.shape_rows import shape

ops: Any = gc.ops
Make = Callable[[], Any]


@pytest.fixture(autouse=True)
def graph() -> Iterator[gc.Graph]:
    graph = gc.Graph()
    with graph.as_default():
        yield graph


def shape_of(node: Any, index: int) -> ShapeHandle:
    found: ShapeHandle = node.output_handles[index]
    return found


def constant_of(node: Any, index: int) -> Any:
    return constant_value(node.outputs[index])


def value_as_shape(tensor: Any) -> str:
    found = partial_shape(tensor.node, tensor.index, shape_of, constant_of)
    return "?" if found is None else str(found)


def const(value: object, dtype: Any = None) -> Any:
    return gc.constant(value, dtype or gc.int32)


def number(dtype: Any = gc.int32) -> Any:
    """A scalar that is known only at run time."""
    return gc.placeholder(dtype, [])


def dims(*sizes: int | None) -> Any:
    return gc.placeholder(gc.float32, list(sizes))


def five() -> Any:
    return ops.shape(dims(1, None, 3, None, 5))


def sliced(value: Any, begin: int, end: int, stride: int = 1, **masks: int) -> Any:
    return ops.strided_slice(value, const([begin]), const([end]), const([stride]), **masks)


def row(text: str, make: Make, expected: str) -> Any:
    return pytest.param(make, expected, id=f"S7 {text} -> {expected}")


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        row("Const", lambda: const([3, -1, 1]), "[3,?,1]"),
        row("Placeholder of known length", lambda: gc.placeholder(gc.int32, [2]), "[?,?]"),
        row("Placeholder of unknown length", lambda: gc.placeholder(gc.int32, [None]), "?"),
        row("PlaceholderWithDefault is not constant", lambda: ops.placeholder_with_default(const([1, 2]), shape=[2]), "[?,?]"),
        row("Shape", lambda: ops.shape(dims(1, None, 3)), "[1,?,3]"),
        row("Shape int64", lambda: ops.shape(dims(1, None, 3), out_type=gc.int64), "[1,?,3]"),
        row("Shape of unknown rank", lambda: ops.shape(gc.placeholder(gc.float32)), "?"),
        row("ShapeN", lambda: ops.shape_n([dims(1), dims(2, None)])[1], "[2,?]"),
        row("Pack int32", lambda: ops.pack([const(10), const(20), number(), const(40)]), "[10,20,?,40]"),
        row("Pack int64", lambda: ops.pack([const(10, gc.int64), number(gc.int64), const(2**40, gc.int64)]), f"[10,?,{2**40}]"),
        row("Pack -1", lambda: ops.pack([number(), const(-1)]), "[?,?]"),
        row("Pack vectors", lambda: ops.pack([const([10]), gc.placeholder(gc.int32, [1])]), "?"),
        row("Pack of Rank", lambda: ops.pack([ops.rank(dims(1, None, 3)), number()]), "[3,?]"),
        row("Pack of Rank unknown", lambda: ops.pack([ops.rank(gc.placeholder(gc.float32)), const(2)]), "[?,2]"),
        row("Pack of Size", lambda: ops.pack([ops.size(dims(1, 2, 3)), number()]), "[6,?]"),
        row("Pack of Size unknown", lambda: ops.pack([ops.size(dims(1, None, 3)), const(2)]), "[?,2]"),
        row("Pack of Size empty", lambda: ops.pack([ops.size(dims(0, None, 3)), const(2)]), "[0,2]"),
        row("Concat", lambda: ops.concat_v2([ops.shape(dims(1, None, 3)), const([7])], const(0)), "[1,?,3,7]"),
        row("Concat v1", lambda: ops.concat(const(0), [ops.shape(dims(1, None)), const([7])]), "[1,?,7]"),
        row("Concat with -1", lambda: ops.concat_v2([ops.shape(dims(1, None)), const([-1])], const(0)), "[1,?,?]"),
        row("Concat of unknown", lambda: ops.concat_v2([five(), gc.placeholder(gc.int32, [1])], const(0)), "[1,?,3,?,5,?]"),
        row("Concat of unknown length", lambda: ops.concat_v2([five(), gc.placeholder(gc.int32, [None])], const(0)), "?"),
        row("StridedSlice 2:5", lambda: sliced(five(), 2, 5), "[3,?,5]"),
        row("StridedSlice 10:0:-1", lambda: sliced(five(), 10, 0, -1), "[5,?,3,?]"),
        row("StridedSlice ::2", lambda: sliced(five(), 0, 0, 2, begin_mask=1, end_mask=1), "[1,3,5]"),
        row("StridedSlice :-1", lambda: sliced(five(), 3, -1, begin_mask=1), "[1,?,3,?]"),
        row("StridedSlice 3:", lambda: sliced(five(), 3, -1, end_mask=1), "[?,5]"),
        row("StridedSlice, ellipsis", lambda: sliced(five(), 0, 0, ellipsis_mask=1), "[?,?,?,?,?]"),
        row("StridedSlice of unknown rank", lambda: sliced(ops.shape(gc.placeholder(gc.float32)), 0, 3), "?"),
        row(
            "StridedSlice, unknown begin",
            lambda: ops.strided_slice(five(), gc.placeholder(gc.int32, [1]), const([3]), const([1])),
            "?",
        ),
        row(
            "StridedSlice of a matrix",
            lambda: ops.strided_slice(ops.expand_dims(five(), const(0)), const([0, 1]), const([1, 3]), const([1, 1])),
            "?",
        ),
        row("StridedSlice, shrink_axis on an unknown dim", lambda: sliced(five(), 1, 2, shrink_axis_mask=1), "?"),
        row("Pack of shrink_axis, known", lambda: ops.pack([sliced(five(), 2, 3, shrink_axis_mask=1), number()]), "[3,?]"),
        row("Pack of shrink_axis, last", lambda: ops.pack([sliced(five(), -1, 0, shrink_axis_mask=1), number()]), "[5,?]"),
        row("Identity", lambda: ops.identity(five()), "[1,?,3,?,5]"),
        row("StopGradient", lambda: ops.stop_gradient(five()), "[1,?,3,?,5]"),
        row("Cast", lambda: ops.cast(ops.shape(dims(1, None), out_type=gc.int64), DstT=gc.int32), "[1,?]"),
        row("Cast through float", lambda: ops.cast(ops.cast(five(), DstT=gc.float32), DstT=gc.int32), "[?,?,?,?,?]"),
        row("Slice", lambda: ops.slice(five(), const([1]), const([3])), "[?,3,?]"),
        row("Slice to the end", lambda: ops.slice(five(), const([2]), const([-1])), "[3,?,5]"),
        row("Gather", lambda: ops.gather(five(), const([0, 1, 4])), "[1,?,5]"),
        row("GatherV2", lambda: ops.gather_v2(five(), const([4, 3]), const(0)), "[5,?]"),
        row("Unpack", lambda: ops.pack([ops.unpack(five(), 5)[2], number()]), "[3,?]"),
        row("ExpandDims", lambda: ops.expand_dims(sliced(five(), 2, 3, shrink_axis_mask=1), const(0)), "[3]"),
        row("Reshape", lambda: ops.reshape(ops.pack([const(3), number()]), const([-1])), "[3,?]"),
        row("Squeeze", lambda: ops.pack([ops.squeeze(sliced(five(), 4, 5)), number()]), "[5,?]"),
        row("Prod", lambda: ops.pack([ops.prod(ops.gather(five(), const([0, 2])), const([0])), number()]), "[3,?]"),
        row("Prod of unknown", lambda: ops.pack([ops.prod(five(), const([0])), const(2)]), "[?,2]"),
        row("Fill", lambda: ops.fill(const([2]), number()), "[?,?]"),
        row("Add", lambda: ops.add(five(), const(1)), "[2,?,4,?,6]"),
        row("AddV2", lambda: ops.add_v2(const([1]), five()), "[2,?,4,?,6]"),
        row("Sub", lambda: ops.sub(five(), const([1, 1, 1, 1, 1])), "[0,?,2,?,4]"),
        row("Mul", lambda: ops.mul(five(), const([2, 0, 2, 1, 2])), "[2,0,6,?,10]"),
        row("FloorDiv", lambda: ops.floor_div(five(), const(2)), "[0,?,1,?,2]"),
        row("Maximum", lambda: ops.maximum(five(), const(3)), "[3,?,3,?,5]"),
        row("Minimum", lambda: ops.minimum(five(), const(3)), "[1,?,3,?,3]"),
        row("Neg", lambda: ops.neg(five()), "[?,?,?,?,?]"),
        row("a long vector", lambda: ops.fill(const([1000]), number()), "?"),
    ],
)
def test_the_known_parts_of_a_value_are_kept(make: Make, expected: str) -> None:
    assert value_as_shape(make()) == expected


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda: ops.pack([number(), const(-2)]), id="S7 Pack"),
        pytest.param(lambda: ops.concat_v2([five(), const([-2])], const(0)), id="S7 Concat"),
        pytest.param(lambda: const([1, -2]), id="S7 Const"),
        pytest.param(lambda: ops.sub(five(), const(3)), id="S7 Sub"),
    ],
)
def test_a_size_below_minus_one_is_refused(make: Make) -> None:
    with pytest.raises(InvalidArgumentError, match=r"^Invalid value in tensor used for shape: -2$"):
        value_as_shape(make())


def test_a_shape_made_of_parts_of_another_shares_its_dimensions() -> None:
    x = gc.placeholder(gc.float32, [None, None, 3])
    given = shape_of(x.node, 0).dims
    assert given is not None
    read = ops.shape(x)
    parts = [sliced(read, i, i + 1, shrink_axis_mask=1) for i in range(3)]
    packed = ops.pack([parts[1], ops.mul(parts[0], const(1)), ops.add(parts[2], const(0))])
    found = partial_shape(packed.node, 0, shape_of, constant_of)
    assert found is not None
    assert found.dims is not None
    assert [found.dims[0] is given[1], found.dims[1] is given[0], found.dims[2].value] == [True, True, 3]


def test_an_extreme_of_the_same_dimension_is_that_dimension() -> None:
    x = gc.placeholder(gc.float32, [None])
    read = ops.shape(x)
    for of in (ops.maximum, ops.minimum):
        found = partial_shape(of(read, read).node, 0, shape_of, constant_of)
        assert found is not None
        assert found.dims == shape_of(x.node, 0).dims


def test_a_long_chain_needs_no_deep_recursion() -> None:
    value = five()
    for _ in range(3000):
        value = ops.identity(value)
    assert value_as_shape(value) == "[1,?,3,?,5]"


def test_nodes_that_are_not_of_a_graph_serve_as_well() -> None:
    def node(op: str, *inputs: Any, **attrs: object) -> Any:
        tensors = [SimpleNamespace(node=given, index=0) for given in inputs]
        return SimpleNamespace(op=op, registration=gc.op_registry.look_up(op), inputs=tensors, attr=attrs)

    x, two = node("Placeholder"), node("Const")
    shapes = {id(x): shape("[?,7]"), id(two): shape("[2]")}
    values = {id(two): np.array([2, 2])}

    def get_shape(found: Any, index: int) -> ShapeHandle:
        assert index == 0
        return shapes.get(id(found), shape("[2]"))

    def get_constant(found: Any, index: int) -> Any:
        assert index == 0
        return values.get(id(found))

    doubled = partial_value(node("Mul", node("Shape", x), two), 0, get_shape, get_constant)
    assert doubled is not None
    assert not doubled.is_scalar
    assert [getattr(item, "value", item) for item in doubled.items] == [-1, 14]


def test_the_value_of_an_invalid_slice_is_unknown() -> None:
    def node(op: str, *inputs: Any, **attrs: object) -> Any:
        tensors = [SimpleNamespace(node=given, index=0) for given in inputs]
        return SimpleNamespace(op=op, registration=gc.op_registry.look_up(op), inputs=tensors, attr=attrs)

    x, begin = node("Placeholder"), node("Const")
    wrong = node("StridedSlice", node("Shape", x), begin, begin, begin, shrink_axis_mask=1)
    found = partial_value(
        wrong,
        0,
        lambda given, _: shape("[?,7]") if given is x else shape("[]"),
        lambda given, _: np.array([9]) if given is begin else None,
    )
    assert found is not None
    assert found.is_scalar
    assert [str(item) for item in found.items] == ["?"]
