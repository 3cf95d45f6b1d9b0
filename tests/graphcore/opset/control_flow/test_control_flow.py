"""Control-flow ops: shapes, and kernels for one activation. The engines' tests run them in graphs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.errors import AbortedError, InvalidArgumentError
from graphcore.kernel_context import DEAD, KernelContext, RefVariable
from tests.graphcore.opset.op_cases import Case, all_cases, constants, with_variables

# The ops that the registry sweep leaves to this file.
NAMES = {"Switch", "RefSwitch", "_SwitchN", "Enter", "RefEnter", "Exit", "RefExit", "NextIteration", "RefNextIteration"}
CASES = [case for case in all_cases() if case.op_def.name in NAMES]


@pytest.fixture(autouse=True)
def graph() -> Iterator[gc.Graph]:
    with gc.Graph().as_default() as graph:
        yield graph


def kernel_of(node: gc.Node) -> Any:
    """The node's kernel, on NumPy."""
    assert node.registration.kernel is not None
    return node.registration.kernel(
        KernelContext(
            xp=np, attrs=node.node_def.attr, node_name=node.name, op=node.op, input_types=node.input_types, output_types=node.output_types
        )
    )


def made(name: str, *inputs: Any, **attrs: Any) -> gc.Node:
    return gc.get_default_graph().apply_op(name, list(inputs), attrs)


def unknown(*dims: int | None, dtype: gc.DType = gc.float32) -> gc.Tensor:
    return gc.placeholder(dtype, list(dims))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_the_value_is_passed_on_as_it_is_and_the_shape_with_it(case: Case) -> None:
    node = with_variables(case)[0] if case.takes_variable else case.build(constants(case.arrays))
    value = RefVariable("v", gc.float32, gc.Shape([2, 3])) if case.takes_variable else case.inputs[0]
    given = kernel_of(node)(value, *case.inputs[1:])
    outputs = given if isinstance(given, tuple) else (given,)
    alive = [(output, found) for output, found in zip(node.outputs, outputs, strict=True) if found is not DEAD]
    assert len(alive) == 1
    assert alive[0][1] is value
    assert alive[0][0].shape.is_compatible_with(gc.Shape([2, 3]))


@pytest.mark.parametrize(("pred", "taken"), [(True, 1), (False, 0)])
def test_switch_forwards_to_the_side_of_the_predicate(pred: bool, taken: int) -> None:
    given = kernel_of(made("Switch", gc.constant(1.0), gc.constant(pred)))(np.float32(1.0), np.bool_(pred))
    assert (given[taken], given[1 - taken]) == (1.0, DEAD)
    assert repr(DEAD) == "<dead>"


@pytest.mark.parametrize(("index", "taken"), [(0, 0), (1, 1), (2, 2), (3, 2), (-1, 2)])
def test_switch_n_takes_the_last_side_for_a_number_that_names_none(index: int, taken: int) -> None:
    node = made("_SwitchN", gc.constant(1.0), gc.constant(index), num_outs=3)
    given = kernel_of(node)(np.float32(1.0), np.int32(index))
    assert [value is not DEAD for value in given] == [i == taken for i in range(3)]


def test_switch_decides_by_a_scalar() -> None:
    with pytest.raises(InvalidArgumentError, match="must be rank 0"):
        made("Switch", gc.constant(1.0), gc.constant([True]))
    node = made("Switch", gc.constant(1.0), gc.placeholder(gc.bool_))
    with pytest.raises(InvalidArgumentError, match="The second input must be a scalar, but it has shape"):
        kernel_of(node)(np.float32(1.0), np.array([True]))


def test_merge_gives_the_input_that_is_there_and_its_number() -> None:
    node = made("Merge", [gc.constant(1.0), gc.constant(2.0), gc.constant(3.0)])
    assert kernel_of(node)(DEAD, np.float32(2.0), DEAD) == (2.0, 1)
    assert kernel_of(node)(DEAD, DEAD, DEAD) == (DEAD, DEAD)


@pytest.mark.parametrize(
    ("shapes", "merged"),
    [
        ([(2, 3), (2, 3)], (2, 3)),
        ([(2, 3), (2, 4)], (2, None)),
        ([(2, None), (2, 4)], (2, None)),
        ([(2, None), (2, None)], (2, None)),
        ([(2, 3), (2,)], None),
        ([(2, 3), None], None),
        ([None, (2, 3)], None),
    ],
)
def test_the_shape_of_a_merge_is_common_to_its_inputs(shapes: list[Any], merged: Any) -> None:
    inputs = [gc.placeholder(gc.float32) if shape is None else unknown(*shape) for shape in shapes]
    node = made("Merge", inputs)
    assert node.outputs[0].shape.dims == merged
    assert node.outputs[1].shape.dims == ()


def test_the_shape_behind_a_handle_goes_along_branches_and_into_loops() -> None:
    handle = made("VarHandleOp", dtype=gc.float32, shape=gc.Shape([7])).outputs[0]
    for tensor in (*made("Switch", handle, gc.constant(True)).outputs, *made("Enter", handle, frame_name="f").outputs):
        assert made("ReadVariableOp", tensor, dtype=gc.float32).outputs[0].shape.dims == (7,)


def test_loop_cond_takes_a_scalar() -> None:
    assert made("LoopCond", gc.placeholder(gc.bool_)).outputs[0].shape.dims == ()
    with pytest.raises(InvalidArgumentError, match="must be rank 0"):
        made("LoopCond", gc.constant([True]))


@pytest.mark.parametrize(("attrs", "text"), [({"error_msg": "no way"}, "no way"), ({}, "Abort node 'Abort' was run")])
def test_abort_is_an_error_with_its_text(attrs: dict[str, str], text: str) -> None:
    with pytest.raises(AbortedError, match=text):
        kernel_of(made("Abort", **attrs))()


def test_ref_select_gives_the_variable_that_the_index_names() -> None:
    refs = [made("VariableV2", dtype=gc.float32, shape=gc.Shape([size])).outputs[0] for size in (2, 2, 3)]
    assert made("RefSelect", gc.constant(0), refs[:2]).outputs[0].shape.dims == (2,)
    node = made("RefSelect", gc.constant(0), refs)
    assert node.outputs[0].shape.dims is None
    variables = [RefVariable(str(i), gc.float32, gc.Shape([i])) for i in range(3)]
    assert kernel_of(node)(np.int32(2), *variables) is variables[2]
    with pytest.raises(InvalidArgumentError, match=r"Index must be in the range \[0, 3\) but got 3"):
        kernel_of(node)(np.int32(3), *variables)
    with pytest.raises(InvalidArgumentError, match="Index must be a scalar"):
        kernel_of(node)(np.array([1], np.int32), *variables)
