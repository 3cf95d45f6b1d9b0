"""Function runtimes of several devices: a function runs on its target device."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.attrs import AttrValue
from graphcore.errors import InvalidArgumentError, NotFoundError
from graphcore.kernel_context import KernelContext
from tests.graphcore.passes.function_examples import X_TIMES_FOUR, X_TIMES_TWO, library, times_library

CPU = [f"/job:a/replica:0/task:0/device:CPU:{index}" for index in range(3)]
FLOAT: dict[str, AttrValue] = {"T": gc.float32}
X = np.array([1, 2, 3, 4], np.float32)
WHERE = "FindDevice(x:float) -> (y:float) {\n  y = Neg[T=float](x)\n  return y = y:y:0\n}"
OUTER = "Outer(x:float) -> (y:float) {\n  @attr _noinline = true\n  y = FindDevice(x)\n  return y = y:y:0\n}"
ONE = np.float32(1)


def device_of(node: gc.Node, context: KernelContext) -> Any:
    """A kernel of Neg that reports its device, by number."""
    number = np.float32(CPU.index(context.device))
    return (lambda _: number) if node.op == "Neg" else None


def process(*texts: str) -> gc.ProcessFunctionLibraryRuntime:
    return gc.ProcessFunctionLibraryRuntime(library(*texts) if texts else times_library(), CPU, custom_kernel_creator=device_of)


@pytest.mark.parametrize("asked", [0, 1, 2])
@pytest.mark.parametrize("target", [0, 1, 2])
def test_f8_a_function_with_a_target_device_runs_there_whichever_runtime_is_asked(asked: int, target: int) -> None:
    made = process(WHERE, OUTER)
    for name in ("FindDevice", "Outer"):
        handle = made.get_flr(CPU[asked]).instantiate(name, {}, gc.InstantiateOptions(target=CPU[target]))
        assert [made.get_flr(device).run(handle, [ONE]) for device in CPU] == [[target]] * 3
        assert made.run(handle, [ONE]) == [target]


def test_f8_without_a_target_a_function_runs_on_the_device_of_the_runtime_that_instantiates_it() -> None:
    made = process(WHERE)
    handles = [made.get_flr(device).instantiate("FindDevice") for device in CPU]
    assert len(set(handles)) == 3
    assert [made.run(handle, [ONE]) for handle in handles] == [[0], [1], [2]]
    assert made.run(made.instantiate("FindDevice"), [ONE]) == [0]


def test_f8_one_target_gives_one_handle_from_any_runtime() -> None:
    made = process()
    options = gc.InstantiateOptions(target=CPU[1])
    handles = {made.get_flr(device).instantiate("XTimesTwo", FLOAT, options) for device in CPU}
    assert len(handles) == 1
    assert made.run(handles.pop(), [X])[0].tolist() == [2, 4, 6, 8]


def test_a_target_may_be_named_in_part() -> None:
    made = process(WHERE)
    handle = made.instantiate("FindDevice", {}, gc.InstantiateOptions(target="/device:CPU:2"))
    assert made.run(handle, [ONE]) == [2]


def test_a_device_that_is_not_there_is_named() -> None:
    made = process()
    with pytest.raises(NotFoundError, match="No function runtime for device '/device:GPU:0'"):
        made.instantiate("XTimesTwo", FLOAT, gc.InstantiateOptions(target="/device:GPU:0"))
    with pytest.raises(NotFoundError, match="No function runtime for device '/cpu:7'"):
        made.get_flr("/cpu:7")
    for devices in ([], ["/cpu:0"]):
        with pytest.raises(InvalidArgumentError, match="Required full names of one device or more"):
            gc.ProcessFunctionLibraryRuntime(times_library(), devices)


def test_a_handle_released_by_one_runtime_is_released_for_all() -> None:
    made = process(X_TIMES_TWO, X_TIMES_FOUR)
    handle = made.get_flr(CPU[1]).instantiate("XTimesFour", FLOAT)
    assert made.devices == CPU
    assert made.run(handle, [X])[0].tolist() == [4, 8, 12, 16]
    made.release_handle(handle)
    with pytest.raises(NotFoundError, match="Handle 0 not found"):
        made.get_flr(CPU[1]).run(handle, [X])
