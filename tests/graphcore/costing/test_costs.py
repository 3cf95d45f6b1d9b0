"""The work and memory of graphs, counted from shapes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import onnx
import pytest
from onnx import TensorProto, helper

import graphcore as gc

FLOAT = TensorProto.FLOAT


@pytest.fixture(autouse=True)
def own_graph() -> Iterator[None]:
    """A default graph for each test."""
    with gc.Graph().as_default():
        yield


def multiply_adds(tensor: gc.Tensor) -> str:
    return str(gc.costs(tensor.graph).nodes[tensor.node.name].multiply_adds)


@pytest.mark.parametrize(
    ("shapes", "options", "expected"),
    [
        ([[2, 3], [3, 5]], {}, 2 * 3 * 5),
        ([[3, 2], [3, 5]], {"transpose_a": True}, 2 * 3 * 5),
        ([[2, 3], [5, 3]], {"transpose_b": True}, 2 * 3 * 5),
        ([[7, 2, 3], [7, 3, 5]], {}, 7 * 2 * 3 * 5),
    ],
    ids=["plain", "first transposed", "second transposed", "batch"],
)
def test_a_product_has_a_multiply_add_for_each_term(shapes: list[list[int]], options: dict[str, Any], expected: int) -> None:
    a, b = (gc.placeholder(gc.float32, shape) for shape in shapes)
    assert multiply_adds(gc.matmul(a, b, **options)) == str(expected)


def test_a_convolution_and_its_gradients_have_the_same_multiply_adds() -> None:
    x = gc.placeholder(gc.float32, [2, 8, 8, 3])
    w = gc.Variable(gc.zeros([3, 3, 3, 16]), name="w")
    y = gc.nn.conv2d(x, w, strides=[1, 2, 2, 1], padding="SAME")
    gc.gradients(gc.reduce_sum(y), [x, w])
    counted = gc.costs(y).nodes
    by_op = {node.op: counted[node.name].multiply_adds.constant for node in y.graph.op_nodes() if node.op.startswith("Conv2D")}
    assert by_op == dict.fromkeys(["Conv2D", "Conv2DBackpropFilter", "Conv2DBackpropInput"], 2 * 4 * 4 * 16 * 27)


def test_a_depthwise_convolution_multiplies_each_channel_by_its_own_window() -> None:
    y = gc.nn.depthwise_conv2d(gc.placeholder(gc.float32, [1, 8, 8, 4]), gc.zeros([3, 3, 4, 2]), [1, 1, 1, 1], "SAME")
    total = gc.costs(y).total
    assert total.multiply_adds.constant == 8 * 8 * 8 * 9


def test_an_equation_multiplies_the_sizes_of_all_letters() -> None:
    y = gc.einsum("bqhd,bkhd->bhqk", gc.zeros([2, 5, 4, 8]), gc.zeros([2, 7, 4, 8]))
    assert gc.costs(y).total.multiply_adds.constant == 2 * 5 * 7 * 4 * 8


def test_an_unknown_batch_stays_a_name_until_it_is_given() -> None:
    x = gc.placeholder(gc.float32, [None, 784], name="x")
    y = gc.nn.relu(gc.matmul(x, gc.Variable(gc.zeros([784, 10]), name="W")), name="y")
    counted = gc.costs(y)
    assert str(counted.total.multiply_adds) == "7840*batch"
    assert counted.at(batch=3).operations.constant == 3 * (2 * 7840 + 10)
    assert counted.total.parameters == 7840
    with pytest.raises(gc.errors.InvalidArgumentError, match="Required a size for batch, got none"):
        counted.at()


def test_sizes_of_other_inputs_are_called_after_them() -> None:
    x, n = gc.placeholder(gc.float32, [None, 4], name="x"), gc.placeholder(gc.float32, [None, 4], name="n")
    counted = gc.costs(gc.matmul(x, n, transpose_b=True))
    assert str(counted.total.multiply_adds) == "4*batch*n.0"


def test_functions_count_with_the_shapes_of_each_call() -> None:
    @gc.function
    def layer(a: gc.Tensor) -> gc.Tensor:
        return gc.matmul(a, a, transpose_b=True)

    layer(gc.zeros([2, 3]))
    y = layer(gc.zeros([5, 7]))
    assert gc.costs(y.graph).total.multiply_adds.constant == 2 * 2 * 3 + 5 * 5 * 7


def test_the_branch_with_the_most_operations_counts() -> None:
    a = gc.zeros([4, 4])
    y = gc.cond(gc.placeholder(gc.bool_, [], name="p"), lambda: gc.matmul(a, gc.matmul(a, a)), lambda: gc.matmul(a, a))
    counted = gc.costs(y)
    assert counted.total.multiply_adds.constant == 2 * 64
    assert "Of branches, the one with the most operations counts." in str(counted)


def test_a_loop_counts_as_one_turn_and_says_so() -> None:
    _, y = gc.while_loop(lambda i, _: i < 3, lambda i, y: (i + 1, gc.matmul(y, y)), [gc.constant(0), gc.zeros([4, 4])])
    counted = gc.costs(y)
    assert counted.total.multiply_adds.constant == 64
    assert "one turn" in str(counted)


def test_a_node_that_is_not_counted_is_named_with_the_reason() -> None:
    y = gc.matmul(gc.placeholder(gc.float32, name="x"), gc.zeros([3, 3]), name="y")
    counted = gc.costs(y)
    assert counted.unknown == {"y": "a size of input 0 is unknown"}
    assert "not counted: 1 of 3 nodes, such as y: a size of input 0 is unknown" in str(counted)


def test_scopes_add_up_to_the_total() -> None:
    with gc.name_scope("first"):
        a = gc.matmul(gc.zeros([2, 3]), gc.zeros([3, 4]))
    with gc.name_scope("second"):
        gc.matmul(a, gc.zeros([4, 5]))
    counted = gc.costs(a)
    assert {name: cost.multiply_adds.constant for name, cost in counted.scopes().items()} == {"first": 24, "second": 40}


def onnx_costs(nodes: list[onnx.NodeProto], inputs: dict[str, Any], outputs: dict[str, Any]) -> gc.Costs:
    taken, results = ([helper.make_tensor_value_info(name, FLOAT, shape) for name, shape in part.items()] for part in (inputs, outputs))
    return gc.costs(helper.make_model(helper.make_graph(nodes, "g", taken, results)))


@pytest.mark.parametrize(
    ("op", "attrs", "inputs", "output", "expected"),
    [
        ("Gemm", {"transA": 1}, [[3, 2], [3, 5]], [2, 5], 2 * 3 * 5),
        ("Gemm", {"transB": 1}, [[2, 3], [5, 3]], [2, 5], 2 * 3 * 5),
        ("Conv", {"group": 2}, [[1, 4, 8, 8], [6, 2, 3, 3]], [1, 6, 6, 6], 6 * 36 * 2 * 9),
        ("ConvTranspose", {"strides": [2, 2]}, [[1, 4, 5, 5], [4, 6, 2, 2]], [1, 6, 10, 10], 100 * 6 * 4),
        ("LSTM", {"hidden_size": 6}, [[7, 2, 5], [1, 24, 5], [1, 24, 6]], [7, 1, 2, 6], 14 * 24 * 11),
        ("Einsum", {"equation": "...ij,...jk->...ik"}, [[9, 2, 3], [9, 3, 5]], [9, 2, 5], 9 * 30),
    ],
    ids=["first transposed", "second transposed", "groups", "transposed convolution", "recurrent", "equation"],
)
def test_ops_of_onnx(op: str, attrs: dict[str, Any], inputs: list[list[int]], output: list[int], expected: int) -> None:
    names = [f"x{place}" for place in range(len(inputs))]
    counted = onnx_costs([helper.make_node(op, names, ["y"], name="node", **attrs)], dict(zip(names, inputs, strict=True)), {"y": output})
    assert counted.total.multiply_adds.constant == expected
    assert not counted.unknown


def test_a_symbolic_batch_of_onnx_keeps_its_name() -> None:
    counted = onnx_costs([helper.make_node("MatMul", ["x", "w"], ["y"])], {"x": ["N", 3], "w": [3, 5]}, {"y": ["N", 5]})
    assert str(counted.total.multiply_adds) == "15*N"
    assert str(counted).startswith("15 x N multiply-adds\n30 x N operations")


def test_an_op_of_another_domain_is_not_counted() -> None:
    counted = onnx_costs([helper.make_node("Mystery", ["x"], ["y"], domain="my.ops", name="node")], {"x": [3]}, {"y": [3]})
    assert list(counted.unknown.values()) == ["the work of my.ops.Mystery is not known"]


def test_intensity_counts_the_bytes_that_a_node_takes_and_gives() -> None:
    y = gc.matmul(gc.zeros([2, 3]), gc.zeros([3, 5]), name="y")
    cost = gc.costs(y).nodes["y"]
    assert cost.moved_bytes.constant == 4 * (6 + 15 + 10)
    assert cost.intensity == 2 * 30 / (4 * 31)
    head, *rows = gc.costs(y).table(depth=0)
    assert dict(zip(head, rows[0], strict=True))["operations for each byte moved"] == "0.484"


@pytest.mark.parametrize(
    ("size", "total"), [("4*batch", "16*batch"), ("(batch + 1)//2 + 1", "4*((batch+1)//2)+4"), ("no size at all!", "4*no size at all!")]
)
def test_sizes_that_a_model_writes_as_products_are_formulas_in_the_batch(size: str, total: str) -> None:
    nodes = [helper.make_node("Relu", ["x"], ["y"])]
    info = [helper.make_tensor_value_info(name, FLOAT, [size, 4]) for name in "xy"]
    graph = gc.from_source(helper.make_model(helper.make_graph(nodes, "g", info[:1], info[1:])))
    assert str(gc.costs(graph).total.operations) == total


def roofline(**options: Any) -> gc.Roofline:
    """A product and a sum, below roofs with a ridge at 10 operations for each byte."""
    with gc.name_scope("layer"):
        product = gc.matmul(gc.zeros([256, 256]), gc.zeros([256, 256]), name="product")
        y = gc.add(product, product, name="sum")
    return gc.costs(y).roofline({"slow": (1e9, 1e8), "fast": (1e12, 1e11)}, **options)


def test_a_roofline_says_what_bounds_each_node_and_its_least_time() -> None:
    line = roofline()
    product, total = line.points
    assert (product.name, total.name) == ("layer/product", "layer/sum")
    assert [product.bound(roof) for roof in line.roofs] == ["compute", "compute"]
    assert [total.bound(roof) for roof in line.roofs] == ["memory", "memory"]
    assert product.seconds == pytest.approx((2 * 256**3 / 1e9, 2 * 256**3 / 1e12))
    assert total.seconds == pytest.approx((3 * 4 * 256**2 / 1e8, 3 * 4 * 256**2 / 1e11))
    assert line.seconds("fast") >= product.seconds[1] + total.seconds[1]
    assert "layer/sum: 0.0833 operations for each byte\nslow: bound by memory, at least 7.86 ms" in line.svg
    assert "layer/sum  0.0833 for each byte, slow at least 7.86 ms (memory)" in str(line)


def test_the_text_of_a_roofline_in_a_narrow_place_has_at_least_nine_pixels_and_scrolls() -> None:
    line = roofline()
    width, least, font = [float(re.findall(rf'{name}[:=]"?([0-9.]+)', line.svg)[0]) for name in (" width", "min-width", "font-size")]
    assert font * least / width >= 9
    assert line._repr_html_().startswith("<div style='overflow-x:auto'><svg")


def test_a_roofline_has_scopes_and_measured_times() -> None:
    (layer,) = roofline(depth=1, seconds={"layer": 0.1}).points
    assert (layer.name, layer.measured) == ("layer", 0.1)
    assert layer.rate == pytest.approx((2 * 256**3 + 256**2) / 0.1)


@pytest.mark.parametrize(
    ("devices", "options", "message"),
    [
        ({}, {}, "Required devices with their operations and bytes in a second"),
        ({"a": (1e9, 0)}, {}, "two positive numbers, got"),
        ({"a": 5}, {}, "two positive numbers, got 5"),
        ({"a": (1e9, 1e9)}, {"seconds": {"nowhere": 1}}, "got one of 'nowhere'"),
        ({"a": (1e9, 1e9)}, {"seconds": {"y": -1}}, "Required a positive time of 'y'"),
    ],
    ids=["none", "zero", "number", "name", "time"],
)
def test_a_roofline_refuses_what_are_no_devices_or_times(devices: Any, options: Any, message: str) -> None:
    y = gc.matmul(gc.zeros([2, 3]), gc.zeros([3, 5]), name="y")
    with pytest.raises(gc.errors.InvalidArgumentError, match=message):
        gc.costs(y).roofline(devices, **options)


def test_a_roofline_needs_the_sizes_that_are_not_known() -> None:
    y = gc.matmul(gc.placeholder(gc.float32, [None, 3], name="x"), gc.zeros([3, 5]), name="y")
    with pytest.raises(gc.errors.InvalidArgumentError, match="Required a size for batch, got none"):
        gc.costs(y).roofline({"a": (1e9, 1e9)})
    assert len(gc.costs(y).roofline({"a": (1e9, 1e9)}, batch=4).points) == 1
