"""The traits of ops on state hold of their kernels: draws, reads_variable, role, takes_value."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import graphcore as gc
from graphcore.attrs import TensorValue
from graphcore.graph import Node
from graphcore.graph.shapes.evaluation import kernel_context
from graphcore.kernel_context import RefVariable
from graphcore.registry import OpRegistration
from tests.graphcore.opset.op_cases import Array, Case, all_cases, constants, with_variables
from tests.graphcore.opset.test_traits import same
from tests.support.op_checks import checked_for
from widgets.scene.words import node_kind

pytestmark = pytest.mark.sweep

RUN = [case for case in all_cases() if case.runs and not case.functions and not case.is_of_lists]
GIVING = [case for case in all_cases() if case.runs and case.op_def.output_arg and not case.takes_variable and not case.functions]
READING = [case for case in RUN if case.takes_handle and case.op_def.output_arg and all(value is not None for value in case.inputs)]


def entries_of(cases: list[Case]) -> list[OpRegistration]:
    return list(dict.fromkeys(case.entry for case in cases))


def name_of(entry: OpRegistration) -> str:
    return entry.op_def.name


@checked_for(entries_of(GIVING))
def just_an_op_that_draws_gives_other_results_in_the_next_run(entry: OpRegistration) -> None:
    """With a seed, the results of a new session are the same from the start."""
    seeds = {"seed": 3, "seed2": 5} if entry.op_def.find_attr("seed") else {}
    differs = []
    for case in GIVING:
        if case.entry is not entry:
            continue
        first, again = (results(case, seeds) for _ in range(2))
        differs.append(any(not same_results(first[0], other) for other in first))
        if seeds or not entry.traits.draws:
            assert all(map(same_results, first, again))
    assert any(differs) == entry.traits.draws


def results(case: Case, seeds: dict[str, int]) -> list[list[Array]]:
    """The outputs of some runs of one session; a shuffled vector is long enough to show its order."""
    shuffled = case.op_def.name == "RandomShuffle"
    arrays = [np.repeat(array, 20, 0) if array.ndim == 1 and shuffled else array for array in case.arrays]
    with gc.Graph().as_default(), gc.Session() as session:
        node = replace(case, attrs={**case.attrs, **seeds}).build(constants(arrays))
        return [[np.asarray(value).copy() for value in session.run(list(node.outputs))] for _ in range(4)]


def same_results(one: list[Array], other: list[Array]) -> bool:
    return all(
        a.shape == b.shape and (a.tobytes() == b.tobytes() if a.dtype != object else (a == b).all())
        for a, b in zip(one, other, strict=True)
    )


@checked_for(entries_of(READING))
def only_an_op_that_reads_a_variable_gives_another_value_after_it_changed(entry: OpRegistration) -> None:
    """Ops that write their variable give no value of it."""
    changed = []
    for case in READING:
        if case.entry is not entry:
            continue
        with gc.Graph().as_default(), gc.Session() as session:
            node, start = with_variables(case)
            session.run(start)
            before = [np.asarray(value).copy() for value in session.run(list(node.outputs))]
            double = gc.apply_op("AssignAddVariableOp", [node.inputs[0], gc.constant(np.ones_like(case.arrays[0]))])
            session.run(double)
            after = session.run(list(node.outputs))
            changed.append(not all(same(one, np.asarray(other)) for one, other in zip(before, after, strict=True)))
            if entry.traits.reads_variable == "whole":
                np.testing.assert_array_equal(before[0], case.arrays[0])
            if entry.traits.reads_variable == "rows":
                np.testing.assert_array_equal(before[0], case.arrays[0][case.arrays[1]])
    assert any(changed) == bool(entry.traits.reads_variable)


ROLES = [case for case in all_cases() if not case.inputs and not case.functions and not case.op_def.name.startswith("_")]


@checked_for(ROLES)
def the_picture_shows_an_op_without_inputs_by_what_it_does(case: Case) -> None:
    """A placeholder must be fed, a constant has a tensor as attr, a variable gives itself.

    Control ops give nothing.
    """
    with gc.Graph().as_default(), gc.Session() as session:
        node = case.build_plain([])
        assert node_kind(node) == role_of(node, session)


def role_of(node: Node, session: gc.Session) -> str:
    if not node.outputs:
        return "op" if node.op == "Abort" else "control"
    if any(isinstance(value, TensorValue) for value in node.attr.values()):
        return "constant"
    if "dtype" in node.attr and (node.outputs[0].dtype.is_ref or node.outputs[0].dtype is gc.resource):
        return "variable"
    try:
        session.run(node.outputs[0])
    except gc.errors.InvalidArgumentError as error:
        return "placeholder" if "feed" in str(error) else "op"
    return "op"


@pytest.mark.parametrize("op", ["TensorArrayConcatV3", "TensorArraySizeV3"])
def test_an_op_that_reads_once_fails_where_it_is_run_a_second_time(op: str) -> None:
    attrs = {"dtype": gc.float32} if op == "TensorArrayConcatV3" else {}
    with gc.Graph().as_default() as graph, gc.Session() as session:
        handle, flow = graph.apply_op("TensorArrayV3", [gc.constant(1)], {"dtype": gc.float32, "clear_after_read": True}).outputs
        written = graph.apply_op("TensorArrayWriteV3", [handle, gc.constant(0), gc.constant([1.0, 2.0]), flow]).outputs[0]
        first = graph.apply_op(op, [handle, written], attrs)
        with gc.control_dependencies([first]):
            second = graph.apply_op(op, [handle, written], attrs)
        session.run(first.outputs[0])
        if first.registration.traits.reads_once:
            with pytest.raises(gc.errors.GraphError, match="read"):
                session.run(second.outputs[0])
        else:
            session.run(second.outputs[0])


TAKING = [case for case in RUN if len(case.inputs) > 1 and case.takes_variable and not case.entry.traits.stores]


@checked_for([entry for entry in entries_of(TAKING) if entry.op_def.input_arg[0].is_handle])
def only_declared_ops_make_their_second_input_the_value_of_a_variable(entry: OpRegistration) -> None:
    taken = []
    for case in TAKING:
        if case.entry is not entry or len(entry.colocated_inputs) > 1:
            continue
        with gc.Graph().as_default():
            node, _ = with_variables(case)
        start, *others = case.inputs
        given = [np.array(array) for array in others]
        assert entry.kernel is not None
        kernel = entry.kernel(kernel_context(node, (None, *given)))
        variable = RefVariable("v", gc.as_dtype(given[0].dtype if start is None else np.asarray(start).dtype), gc.Shape(None))
        if start is not None:
            variable.assign(np.array(start))
        kernel(variable, *given)
        taken.append(variable.value is given[0])
    assert any(taken) == entry.traits.takes_value
