"""The help of ops: formulas of shapes, and an example that runs as it is written."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.api.op_help import example_lines, op_of, uses
from graphcore.api.ops import snake_case
from graphcore.errors import GraphError
from graphcore.inference.expressions import expression_of
from graphcore.runtime import GraphRunner

ops: Any = gc.ops


def sections(name: str) -> str:
    text: str = getattr(ops, name).getdoc()
    return text[text.index("Shapes:") :]


def test_the_help_of_an_op_has_formulas_of_shapes_and_an_example() -> None:
    text = sections("conv2d")
    assert (
        "    filter [rows_2,columns_2,channels_2,output_channels]\n    -> output [batch,rows,columns,output_channels]\n        with strides="
        in text
    )
    assert (
        "output [batch,(rows-rows_2+2)//2,(columns-columns_2+3)//3,output_channels]\n        with strides=[1, 2, 3, 1], padding='VALID'"
        in text
    )
    assert "    gc.ops.conv2d(input, filter, strides=[1, 1, 1, 1], padding='SAME')\n        input float [2,4,5,3], filter" in text
    assert "a [m,k], b [k,n] -> product [m,n]" in sections("mat_mul")


def test_values_on_which_shapes_depend_are_told() -> None:
    text = sections("sum")
    assert "input [a,b], reduction_indices = [1] -> output [a]" in text
    assert "gc.ops.sum([[-3.0, -2.0, -1.0], [1.0, 2.0, 3.5]], [1])\n        -> [-6.0, 6.5]" in text


def test_ops_on_variables_have_no_formulas_and_keep_their_documentation() -> None:
    assert "Shapes:" not in ops.assign.getdoc()
    assert "Args:" in ops.assign.getdoc()


def test_only_functions_of_gc_ops_are_ops() -> None:
    assert op_of(ops.tanh) == gc.op_registry.look_up_op_def("Tanh")
    assert [op_of(other) for other in (gc.tanh, gc.nn, gc.ops, 3, type, None)] == [None] * 6


@pytest.mark.slow
@pytest.mark.sweep
def test_the_formulas_of_all_ops_give_the_shapes_that_their_kernels_give() -> None:
    compared = 0
    for entry in gc.op_registry:
        for use in [] if entry.op_def.is_stateful else uses(entry.op_def):
            node, graph = use.node, use.node.graph
            fed = {tensor.node: use.arrays[tensor.node.name] for tensor in node.inputs if tensor.node.op != "Const"}
            numbers = {
                expression.name: size
                for source, array in fed.items()
                for dim, size in zip(source.output_handles[0].dims or (), array.shape, strict=True)
                if (expression := expression_of(dim)) is not None and expression.name
            }
            try:
                results = GraphRunner().run(
                    graph, {f"{source.name}:0": array for source, array in fed.items()}, [t.name for t in node.outputs]
                )
            except GraphError:
                continue
            for result, handle in zip(results, node.output_handles, strict=True):
                for size, dim in zip(np.shape(result), handle.dims or (), strict=handle.dims is not None):
                    expression = expression_of(dim)
                    if expression is not None and expression.names <= numbers.keys():
                        assert expression.value(numbers) == size, f"{use.formula} with {use.attrs} and {numbers}"
                        compared += 1
    assert compared > 700


@pytest.mark.slow
@pytest.mark.sweep
def test_the_examples_of_all_ops_run_as_they_are_written() -> None:
    run = 0
    for entry in gc.op_registry:
        name = snake_case(entry.op_def.name)
        known = uses(entry.op_def)
        if not known or not example_lines(known[0], name) or entry.op_def.name.startswith("_") or entry.op_def.deprecation is not None:
            continue
        call, *told = example_lines(known[0], name)
        inputs: dict[str, Any] = {"gc": gc}
        with gc.Graph().as_default():
            inputs |= {key: gc.constant(array) for key, array in known[0].arrays.items()}
            assert eval(call, inputs) is not None, call  # it is what a user would paste
            run += bool(told)
    assert run > 300
