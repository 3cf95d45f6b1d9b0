"""Gradients of MapAccumulateGrad, which is converted to a While and so can be differentiated again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from graphcore import dtypes
from graphcore.attrs import AttrValue, Func, TensorValue
from graphcore.definitions import FunctionDef
from graphcore.functions.library import GRADIENT_OP
from graphcore.graph import FunctionGraph, Graph, Node, Tensor, constant_node
from graphcore.opset.control_flow.function_calls import func_attr
from graphcore.opset.framework.gradient_text import required_int
from graphcore.passes.functions.defining import define_body, function_label
from graphcore.passes.gradients.functions.differentiation import add_returns
from graphcore.shapes import Shape

MAP_GRADIENT: Final = "MapAccumulateGrad"


def function_of_map_gradient(graph: Graph, node: Node) -> FunctionDef:
    """Define the computation of a MapAccumulateGrad as a function with a While, in `graph`'s library.

    Args:
        graph: the graph of the node.
        node: the MapAccumulateGrad.
    """
    return _MapGradient(graph, node).define()


def has_no_rows(node: Node) -> bool:
    """True iff a MapAccumulateGrad is known to have no rows."""
    shape = node.inputs[required_int(node.node_def.attr, "K")].shape
    return shape.rank is not None and shape.rank > 0 and shape.as_list()[0] == 0


def replace_map_gradients(graph: Graph) -> bool:
    """Replace each MapAccumulateGrad in a body by a call of such a function. True iff there are any."""
    gradients = [node for node in graph.op_nodes() if node.op == MAP_GRADIENT]
    for node in gradients:
        function = function_of_map_gradient(graph, node)
        attrs = {"f": Func(function.name), "Tin": _types(node.inputs), "Tout": _types(node.outputs)}
        call = graph.apply_op("PartitionedCall", [node.inputs], attrs, f"{node.name}_loop")
        for mine, theirs in zip(node.outputs, call.outputs, strict=True):
            for consumer, slot in [(consumer, slot) for consumer, slot in node.consumers() if slot >= 0]:
                if consumer.inputs[slot] is mine:
                    graph.update_edge(call, theirs.index, consumer, slot)
        graph.remove_node(node)
    return bool(gradients)


def _types(tensors: Sequence[Tensor]) -> tuple[dtypes.DType, ...]:
    return tuple([tensor.dtype.base for tensor in tensors])


class _MapGradient:
    """A loop over rows from last to first, with sums of theta's gradients."""

    def __init__(self, graph: Graph, node: Node) -> None:
        self.graph = graph
        self.node = node
        self.count = required_int(node.node_def.attr, "K")
        self.step = func_attr(node.node_def.attr, "g")
        dtype = node.node_def.attr["T"]
        assert isinstance(dtype, dtypes.DType)
        self.dtype = dtype
        self.label = function_label(graph, node.name, "loop")

    def define(self) -> FunctionDef:
        target = FunctionGraph.within(self.graph, self.label)
        args = [target.argument(f"arg_{i}", tensor.dtype, tensor.shape) for i, tensor in enumerate(self.node.inputs)]
        theta, (x, u, y, dy) = args[: self.count], args[self.count :]
        starts = _one(target, "ConcatV2", [[_one(target, "ExpandDims", [u, 0], "first"), y], 0], "starts")
        sizes = _one(target, "Shape", [x], "sizes")
        row = _one(target, "Slice", [sizes, _ints(target, [1], "one"), _ints(target, [-1], "rest")], "row")
        inner = x.shape.as_list()[1:] if x.shape.rank is not None else None
        element = _ints(target, -1 if inner is None else [-1 if size is None else size for size in inner], "element_shape")
        attrs: dict[str, Any] = {"element_dtype": self.dtype, "shape_type": dtypes.int32}
        rows = target.apply_op("EmptyTensorList", [element, _ints(target, -1, "any_number")], attrs, "no_rows").outputs[0]
        number = _one(target, "GatherV2", [sizes, 0, 0], "number")
        variables = [
            number,
            _one(target, "ZerosLike", [u], "zero"),
            rows,
            *[_one(target, "ZerosLike", [weight], "zeros") for weight in theta],
        ]
        loop = self.loop(target, variables, [*theta, x, starts, dy])
        _, du, rows, *dtheta = loop.outputs[: 3 + self.count]
        stacked = target.apply_op("TensorListStack", [rows, row], {"element_dtype": self.dtype}, "stacked").outputs[0]
        dx = _one(target, "ReverseV2", [stacked, _ints(target, [0], "along")], "dx")
        add_returns(target, [*dtheta, dx, du])
        return define_body(target, target.label)

    def loop(self, target: FunctionGraph, variables: Sequence[Tensor], constant: Sequence[Tensor]) -> Node:
        inputs = [*variables, *constant]
        functions = [self.condition(inputs), self.turn(inputs)]
        attrs: dict[str, AttrValue] = {
            "T": _types(inputs),
            "cond": Func(functions[0].name),
            "body": Func(functions[1].name),
            "_lower_using_switch_merge": True,
        }
        return target.apply_op("StatelessWhile", [inputs], attrs, "rows")

    def arguments(self, graph: FunctionGraph, inputs: Sequence[Tensor]) -> list[Tensor]:
        return [graph.argument(f"arg_{i}", tensor.dtype, tensor.shape) for i, tensor in enumerate(inputs)]

    def condition(self, inputs: Sequence[Tensor]) -> FunctionDef:
        graph = FunctionGraph.within(self.graph, f"{self.label}_cond")
        left = self.arguments(graph, inputs)[0]
        add_returns(graph, [_one(graph, "Greater", [left, 0], "rows_left")])
        return define_body(graph, graph.label)

    def turn(self, inputs: Sequence[Tensor]) -> FunctionDef:
        graph = FunctionGraph.within(self.graph, f"{self.label}_body")
        left, du, rows, *rest = self.arguments(graph, inputs)
        sums, constant = rest[: self.count], rest[self.count :]
        theta, (x, starts, dy) = constant[: self.count], constant[self.count :]
        at = _one(graph, "Sub", [left, 1], "at")
        row, start, dy_row = [_one(graph, "GatherV2", [array, at, 0], "row") for array in (x, starts, dy)]
        for tensor, like in ((row, x), (start, du), (dy_row, du)):
            graph.set_shape(tensor, like.shape if like is du else Shape(None if x.shape.rank is None else x.shape.as_list()[1:]))
        *parts, dx, before = self.gradient(graph, [*theta, row, start, _one(graph, "AddV2", [dy_row, du], "arriving")])
        longer = graph.apply_op("TensorListPushBack", [rows, dx], {"element_dtype": self.dtype}, "keep").outputs[0]
        totals = [_one(graph, "AddV2", [total, part], "sum") for total, part in zip(sums, parts, strict=True)]
        for tensor, like in ((before, du), *zip(totals, sums, strict=True)):
            graph.set_shape(tensor, like.shape)
        add_returns(graph, [at, before, longer, *totals, *constant])
        return define_body(graph, graph.label)

    def gradient(self, graph: FunctionGraph, inputs: Sequence[Tensor]) -> list[Tensor]:
        """One step's gradients: of theta, of the row, and of the step's initial value."""
        if self.step.name == GRADIENT_OP:
            return list(graph.apply_op(GRADIENT_OP, [inputs], dict(self.step.attr), "step").outputs)
        attrs = {"f": self.step, "Tin": _types(inputs), "Tout": _types(inputs)[:-1]}
        return list(graph.apply_op("PartitionedCall", [inputs], attrs, "step").outputs)


def _one(graph: Graph, op: str, inputs: list[Any], name: str) -> Tensor:
    return graph.apply_op(op, inputs, None, name).outputs[0]


def _ints(graph: Graph, value: Any, name: str) -> Tensor:
    return constant_node(graph, TensorValue(np.asarray(value, np.int32)), name).outputs[0]
