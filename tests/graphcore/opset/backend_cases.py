"""The registry's examples as kernels alone, for any backend: arrays enter and leave as its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import graphcore as gc
from graphcore.kernel_context import KernelContext, RefVariable
from graphcore.opset.numerics.tensor_list_values import TensorList
from tests.graphcore.opset.op_cases import Array, Case, all_cases, constants, with_variables

# CuPy has neither strings nor bfloat16.
_ON_THE_HOST = {gc.string, gc.bfloat16}


def on_device(case: Case) -> bool:
    """True iff the case involves numbers only, and the kernel is not bound to the CPU."""
    calls = any(attr.type in {"func", "list(func)"} for attr in case.op_def.attr)
    return (
        case.runs
        and "GPU" in case.entry.traits.device_types
        and not calls
        and case.op_def.name not in {"_Send", "_HostSend"}
        and not case.takes_variable
        and not any(gc.as_dtype(array.dtype) in _ON_THE_HOST for array in case.arrays)
    )


def host(value: Any) -> Any:
    """A result as NumPy arrays; lists by their elements."""
    if isinstance(value, TensorList):
        return [None if item is None else np.asarray(host(item)) for item in value.items]
    get = getattr(value, "get", None)  # CuPy's name for copying to the host
    return value if get is None else get()


class Prepared:
    """A case's node, and its kernel on any backend."""

    def __init__(self, case: Case) -> None:
        with gc.Graph().as_default():
            self.node = case.build_plain(constants(case.arrays))
        self.case = case

    def run(self, xp: Any, inputs: Sequence[Any], known: Sequence[Array | None]) -> list[Any]:
        node = self.node
        factory = node.registration.kernel
        assert factory is not None
        context = KernelContext(
            xp=xp,
            attrs=node.node_def.attr,
            node_name=node.name,
            op=node.op,
            input_types=node.input_types,
            output_types=node.output_types,
            input_shapes=tuple(tensor.shape for tensor in node.inputs),
            constants=tuple(known),
        )
        with np.errstate(all="ignore"):
            result = factory(context)(*inputs)
        return [] if result is None else list(result) if isinstance(result, tuple | list) else [result]

    def inputs(self, wrap: Any) -> list[Any]:
        """The arrays, rows of lists as lists."""
        made: list[Any] = []
        arrays = iter(self.case.arrays)
        for arg, value in zip(self.case.op_def.input_arg, self.case.inputs, strict=True):
            for _ in value if isinstance(value, list) else [value]:
                array = next(arrays)
                made.append(_handle(self.case, array, wrap) if arg.type is gc.variant else wrap(array))
        return made


def _handle(case: Case, array: Array, wrap: Any) -> Any:
    handle = TensorList(gc.as_dtype(array.dtype), gc.Shape(array.shape[1:]), [wrap(row) for row in array])
    if case.op_def.name != "TensorListPushBackBatch":
        return handle
    handles = np.empty(1, np.object_)
    handles[0] = handle
    return handles


def on_device_with_variables(case: Case) -> bool:
    """True iff the case involves numbers, and variables of numbers, only."""
    values: list[Any] = list(case.arrays)  # None stands for an uninitialised variable
    return case.runs and case.takes_variable and not any(v is not None and gc.as_dtype(v.dtype) in _ON_THE_HOST for v in values)


WITH_VARIABLES = [case for case in all_cases() if on_device_with_variables(case)]


class PreparedWithVariables(Prepared):
    """A case's node with variables among its inputs, and its kernel on any backend."""

    def __init__(self, case: Case) -> None:
        with gc.Graph().as_default():
            self.node = with_variables(case)[0]
        self.case = case

    def inputs(self, wrap: Any) -> list[Any]:
        """The arrays, and variables that hold arrays."""
        made: list[Any] = []
        for arg, value in zip(self.case.op_def.input_arg, self.case.inputs, strict=True):
            for part in value if isinstance(value, list) else [value]:
                if not arg.is_ref and arg.type is not gc.resource:
                    made.append(wrap(part))
                    continue
                dtype = gc.float32 if part is None else gc.as_dtype(part.dtype)
                made.append(RefVariable("v", dtype, gc.Shape(None)))
                if part is not None:
                    made[-1].assign(wrap(part))
        return made


def values_of(results: Sequence[Any]) -> list[Any]:
    """Results with variables replaced by their values."""
    return [result.value if isinstance(result, RefVariable) else result for result in results]


CASES = [case for case in all_cases() if on_device(case) and case.arrays]


def assert_same(mine: Any, wanted: Any, rtol: float | None = None) -> None:
    """Check that two results on the host agree in structure, dtype and value.

    The default tolerance is a few roundings.
    """
    if isinstance(wanted, list):
        assert len(mine) == len(wanted)
        for part, other in zip(mine, wanted, strict=True):
            assert_same(part, other, rtol)
        return
    if wanted is None or (isinstance(wanted, np.ndarray) and wanted.dtype == np.object_):
        return
    assert mine.dtype == wanted.dtype
    if wanted.dtype.kind not in "fc":
        np.testing.assert_array_equal(mine, wanted)
        return
    if rtol is None:
        rtol = 8 * float(np.finfo(wanted.dtype).eps)
    size = np.max(np.abs(wanted[np.isfinite(wanted)]), initial=0.0)
    np.testing.assert_allclose(mine, wanted, rtol=rtol, atol=rtol * float(size))
