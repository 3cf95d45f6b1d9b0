"""The trait `stores` holds of kernels: only ops that declare it keep arrays or take kept ones."""

from __future__ import annotations

import gc as garbage
import tracemalloc
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import pytest

import graphcore as gc
from graphcore.graph.shapes.evaluation import kernel_context

pytestmark = pytest.mark.sweep

LARGE: Final = np.ones((1024, 1024), np.float32)
"""4 MB: modules that a kernel imports on first use take less than half of it."""
STORES: Final = {op.op_def.name for op in gc.op_registry if op.traits.stores}


class Program:
    """Runs nodes one by one as they are made, and measures the memory that each leaves held.

    Attributes:
        stored: for each op, True for a node that kept, took, copied out or released arrays.
    """

    def __init__(self) -> None:
        self.stored: dict[str, list[bool]] = {}

    def run(self, op: str, inputs: Sequence[Any], attrs: dict[str, Any] | None = None) -> list[Any]:
        """The outputs of a node, with zeros for arrays, so that nothing here holds its results."""
        tensors = [value[0] if is_handle(value) else gc.constant(value) for value in inputs]
        node = gc.get_default_graph().apply_op(op, [tensors[0], tensors[1:]] if "Tcomponents" in (attrs or {}) else tensors, attrs or {})
        assert node.registration.kernel is not None
        kernel = node.registration.kernel(kernel_context(node, (None,) * len(node.inputs)))
        before = held()
        given = [value[1] if is_handle(value) else np.array(value) for value in inputs]
        taken = sum(np.asarray(value).nbytes for value in inputs if not is_handle(value))
        result = completed(kernel(*given))
        outputs = list(result) if isinstance(result, tuple | list) else [] if result is None else [result]
        gained = sum(output.nbytes for output in outputs if is_array(output)) - taken
        others = [np.zeros_like(output) if is_array(output) else (node.outputs[slot], output) for slot, output in enumerate(outputs)]
        del result, outputs, given
        kept = held() - before - sum(np.asarray(other).nbytes for other in others if not is_handle(other))
        self.stored.setdefault(op, []).append(abs(kept) > LARGE.nbytes // 2 or gained > LARGE.nbytes // 2)
        return others


def is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray | np.generic)


def is_handle(value: Any) -> bool:
    return isinstance(value, tuple)


def held() -> int:
    garbage.collect()
    return tracemalloc.get_traced_memory()[0]


def completed(result: Any) -> Any:
    """The outputs of a kernel that may wait."""
    if not hasattr(result, "begin"):
        return result
    done: list[tuple[Any, Exception | None]] = []
    result.begin(lambda outputs, error: done.append((outputs, error)))
    [(outputs, error)] = done
    assert error is None
    return outputs


@pytest.fixture
def program() -> Iterator[Program]:
    garbage.collect()
    garbage.freeze()  # or each collection visits whatever earlier tests left
    tracemalloc.start()
    with gc.Graph().as_default():
        yield Program()
    tracemalloc.stop()


def check(program: Program) -> None:
    assert {op: any(stored) for op, stored in program.stored.items()} == {op: op in STORES for op in program.stored}


def use_stack(program: Program) -> None:
    [stack] = program.run("StackV2", [np.int32(-1)], {"elem_type": gc.float32})
    for _ in range(2):
        program.run("StackPushV2", [stack, LARGE])
    program.run("StackPopV2", [stack], {"elem_type": gc.float32})
    program.run("StackCloseV2", [stack])


def use_arrays(program: Program) -> None:
    def new(size: int) -> tuple[Any, Any]:
        handle, flow = program.run("TensorArrayV3", [np.int32(size)], {"dtype": gc.float32})
        return handle, flow

    kind = {"dtype": gc.float32}
    array, flow = new(3)
    program.run("TensorArrayWriteV3", [array, np.int32(0), LARGE, flow])
    program.run("TensorArrayScatterV3", [array, np.array([1, 2], np.int32), np.stack([LARGE, LARGE]), flow])
    program.run("TensorArraySizeV3", [array, flow])
    program.run("TensorArrayReadV3", [array, np.int32(0), flow], kind)
    program.run("TensorArrayGatherV3", [array, np.array([1, 2], np.int32), flow], kind)
    array, flow = new(2)
    program.run("TensorArraySplitV3", [array, LARGE, np.array([512, 512], np.int64), flow])
    program.run("TensorArrayGradV3", [array, flow], {"source": "a"})
    program.run("TensorArrayGradWithShape", [array, flow, np.array([1], np.int32)], {"source": "b"})
    program.run("TensorArrayConcatV3", [array, flow], kind)
    array, flow = new(1)
    program.run("TensorArrayWriteV3", [array, np.int32(0), LARGE, flow])
    program.run("TensorArrayCloseV3", [array])


def use_queue(program: Program, kind: str, version: str) -> None:
    declared = {"component_types": [gc.float32], "shapes": [LARGE.shape]}
    [queue] = program.run(kind + version, [], declared)
    component, components = {"Tcomponents": [gc.float32]}, {"component_types": [gc.float32]}
    for _ in range(2):
        program.run("QueueEnqueue" + version, [queue, LARGE], component)
    program.run("QueueEnqueueMany" + version, [queue, np.stack([LARGE] * 3)], component)
    program.run("QueueSize" + version, [queue])
    program.run("QueueIsClosed" + version, [queue])
    program.run("QueueDequeue" + version, [queue], components)
    program.run("QueueDequeueMany" + version, [queue, np.int32(2)], components)
    program.run("QueueDequeueUpTo" + version, [queue, np.int32(2)], components)
    program.run("QueueClose" + version, [queue])


def test_ops_on_stacks_that_keep_or_take_arrays_are_those_that_say_so(program: Program) -> None:
    use_stack(program)
    check(program)


def test_ops_on_tensor_arrays_that_keep_or_take_arrays_are_those_that_say_so(program: Program) -> None:
    use_arrays(program)
    check(program)


@pytest.mark.parametrize("version", ["", "V2"])
@pytest.mark.parametrize("kind", ["FIFOQueue", "PaddingFIFOQueue", "RandomShuffleQueue"])
def test_ops_on_queues_that_keep_or_take_arrays_are_those_that_say_so(kind: str, version: str, program: Program) -> None:
    use_queue(program, kind, version)
    check(program)


def test_every_op_that_stores_is_measured(program: Program) -> None:
    use_stack(program)
    use_arrays(program)
    for version in ("", "V2"):
        use_queue(program, "FIFOQueue", version)
    assert set(program.stored) >= STORES
