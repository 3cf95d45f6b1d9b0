"""Every op: whatever is known of its inputs, what its shape function says is true of what its kernel gives."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import graphcore as gc
from tests.graphcore.ops.op_cases import Array, Case, all_cases, constants, run, with_variables

BY_OP: dict[str, list[Case]] = {}
for _case in all_cases():
    if _case.runs:
        BY_OP.setdefault(_case.op_def.name, []).append(_case)


@cache
def truth(case_id: str) -> tuple[tuple[int, ...], ...]:
    """The shapes that the kernel gives for an example."""
    name, _, number = case_id.rpartition("-")
    case = next(case for case in BY_OP[name] if case.number == int(number))
    with gc.Graph().as_default():
        if not case.takes_variable:
            return tuple([value.shape for value in run(case.build(constants(case.arrays)))])
        node, start = with_variables(case)
        with gc.Session() as session:
            session.run(start)
            if not node.outputs:
                session.run(node)
            return tuple([np.shape(value) for value in session.run(list(node.outputs))])


@st.composite
def partial_shapes(draw: st.DrawFn, full: tuple[int, ...]) -> gc.Shape:
    """A shape with any of its sizes unknown, or of unknown rank."""
    if draw(st.booleans()) and draw(st.booleans()):
        return gc.Shape(None)
    return gc.Shape([None if draw(st.booleans()) else size for size in full])


@st.composite
def known_in_part(draw: st.DrawFn, case: Case) -> gc.Node:
    """The node of an example, built on inputs of which less is known."""

    def tensor(array: Array) -> Any:
        if draw(st.booleans()):
            return gc.constant(array)
        attrs = {"dtype": gc.as_dtype(array.dtype), "shape": draw(partial_shapes(array.shape))}
        return gc.apply_op("Placeholder", attrs=attrs)

    if not case.takes_variable:
        return case.build([tensor(array) for array in case.arrays])

    def holder(arg: Any, value: Any) -> Any:
        if isinstance(value, list):
            return [holder(arg, part) for part in value]
        if arg.type is gc.resource:
            attrs = {"shape": draw(partial_shapes(value.shape)), "dtype": gc.as_dtype(value.dtype)}
            return gc.apply_op("VarHandleOp", attrs=attrs)
        if not arg.is_ref:
            return tensor(value)
        shape = gc.Shape([] if value is None else value.shape)
        dtype = gc.as_dtype(case.attrs["dtype"]) if value is None else gc.as_dtype(value.dtype)
        return gc.apply_op("VariableV2", attrs={"shape": shape, "dtype": dtype})

    made = [holder(arg, value) for arg, value in zip(case.op_def.input_arg, case.inputs, strict=True)]
    return case.build([part for item in made for part in (item if isinstance(item, list) else [item])])


@pytest.mark.parametrize("name", BY_OP)
@settings(max_examples=8, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_what_is_said_of_the_output_is_true_of_it(name: str, data: st.DataObject) -> None:
    case = data.draw(st.sampled_from(BY_OP[name]))
    with gc.Graph().as_default():
        node = data.draw(known_in_part(case))
        for output, shape in zip(node.outputs, truth(case.id), strict=True):
            assert output.shape.is_compatible_with(gc.Shape(shape)), f"{output.name}: {output.shape}, but the kernel gives {list(shape)}"
