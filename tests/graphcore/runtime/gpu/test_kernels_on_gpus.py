"""Every kernel with inputs in the memory where sessions have them."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pytest

import graphcore as gc
from graphcore.graph.shapes.evaluation import kernel_context
from graphcore.kernel_context import RefVariable
from graphcore.placement.partition.host_memory import decides_shapes
from graphcore.plumbing import ARG, CONST, CONTROL_FLOW, FAKE_PARAM, FEEDABLE, NO_OP, RECV, RETVAL, SEND
from graphcore.runtime.gpu.gpu import Gpu
from graphcore.runtime.gpu.kernels import kernels_on, runs_on_host
from tests.graphcore.opset.backend_cases import CASES, WITH_VARIABLES, Prepared, PreparedWithVariables, assert_same, host, values_of
from tests.graphcore.opset.op_cases import Array, Case
from tests.support.op_checks import checked_for, make_all

_NOT_ARITHMETIC: Final = (
    *("TensorArray", "Stack", "Optional", "FIFOQueue", "PaddingFIFOQueue", "RandomShuffleQueue", "Var", "Print", "Abort"),
    *(
        "Case",
        "If",
        "While",
        "Stateless",
        "StatefulPartitionedCall",
        "PartitionedCall",
        "SymbolicGradient",
        "MapAccumulate",
        "_WhileGradient",
    ),
)


@checked_for(CASES)
def a_kernel_in_a_session_on_a_gpu_gives_what_numpy_gives(case: Case) -> None:
    gpu = Gpu(gc.Device("/gpu:0", cuda=0))
    prepared = Prepared(case)
    node = prepared.node
    plain = prepared.inputs(lambda array: array)
    has_handles = any(arg.type is gc.variant for arg in case.op_def.input_arg)
    known: list[Array | None] = [array if case.number % 2 and not has_handles else None for array in case.arrays]
    expected = prepared.run(np, plain, known)

    found = run_on(gpu, node, [gpu.to_device(value) if slot % 2 else value for slot, value in enumerate(plain)], known)
    for mine, wanted in zip(found, expected, strict=True):
        if case.deterministic:
            assert_same(host(mine), host(wanted))


@checked_for(WITH_VARIABLES)
def a_kernel_moves_the_value_of_a_variable_to_the_gpu(case: Case) -> None:
    prepared = PreparedWithVariables(case)
    known: list[Array | None] = [None] * len(prepared.node.inputs)
    plain, given = (prepared.inputs(lambda array: array) for _ in range(2))
    expected = values_of([*prepared.run(np, plain, known), *plain])
    found = values_of([*run_on(Gpu(gc.Device("/gpu:0", cuda=0)), prepared.node, given, known), *given])
    for mine, wanted in zip(found, expected, strict=True):
        if wanted is not None:
            assert_same(host(mine), host(wanted))
    for value in given:
        if isinstance(value, RefVariable) and value.value is not None:
            assert isinstance(value.value, np.ndarray) == (value.dtype is gc.int32 or runs_on_host(prepared.node))


def run_on(gpu: Gpu, node: gc.Node, inputs: list[Any], known: list[Array | None]) -> list[Any]:
    """The outputs of the kernel of a node on a GPU."""

    def make(_: gc.Node, context: Any) -> Any:
        assert node.registration.kernel is not None
        return node.registration.kernel(context)

    kernel = kernels_on(gpu, make)(node, kernel_context(node, tuple(known)))
    with np.errstate(all="ignore"):
        result = kernel(*inputs)
    return [] if result is None else list(result) if isinstance(result, tuple | list) else [result]


CHECKS: Final = [a_kernel_in_a_session_on_a_gpu_gives_what_numpy_gives, a_kernel_moves_the_value_of_a_variable_to_the_gpu]


@pytest.mark.slow
@pytest.mark.usefixtures("cupy")
@pytest.mark.parametrize("op", list(dict.fromkeys(case.op_def.name for case in (*CASES, *WITH_VARIABLES))))
def test_the_kernel_of_an_op_gives_on_a_gpu_what_numpy_gives(op: str) -> None:
    make_all(CHECKS, op)


def test_every_kernel_for_a_gpu_is_swept_or_belongs_to_a_structure_that_engines_run() -> None:
    """The others are control flow, calls, transfers, and objects of the host such as queues."""
    swept = {case.op_def.name for case in (*CASES, *WITH_VARIABLES)}
    others = {entry.op_def.name for entry in gc.op_registry if entry.kernel is not None and "GPU" in entry.traits.device_types} - swept
    structures = CONTROL_FLOW | FEEDABLE | ARG | RETVAL | SEND | RECV | {CONST, NO_OP, FAKE_PARAM}
    assert not [name for name in others - structures if not name.startswith(_NOT_ARITHMETIC)]


def test_values_that_decide_shapes_stay_on_the_host() -> None:
    nodes = {case.op_def.name: Prepared(case).node for case in CASES}
    on_host = {name for name, node in nodes.items() if any(decides_shapes(node, slot) for slot in range(len(node.inputs)))}
    assert {"Reshape", "Tile", "Slice", "Pad", "ConcatV2", "Fill"} <= on_host
    assert not on_host & {"MatMul", "AddV2", "Conv2D", "Softmax"}
