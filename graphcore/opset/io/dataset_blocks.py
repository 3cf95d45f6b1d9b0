"""Shared parts of the ops that make datasets."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from graphcore.dtypes import DType
from graphcore.inference import InferenceContext
from graphcore.inference.shape_fns.common_shape_fns import scalar_shape
from graphcore.kernel_context import KernelContext
from graphcore.opset.control_flow.function_calls import called, func_attr, types_attr
from graphcore.opset.framework.block import define_op, no_registered_gradient
from graphcore.opset.framework.kernels import invalid, on_host, one_int
from graphcore.opset.numerics.dataset_values import Dataset, Element
from graphcore.registry import Kernel, KernelFactory
from graphcore.shapes import Shape

NO_GRADIENT_OF_DATASETS: Final = no_registered_gradient(
    "elements of datasets come from outside of the graph; differentiate what is made of them"
)
OUTPUTS: Final = "output_types:list(type) >= 1, output_shapes:list(shape) >= 1"
METADATA: Final = "metadata:string = ''"
RANGE: Final = """
    start = Const[dtype=int64, value=Tensor<type: int64 shape: [] values: 0>]()
    stop = Const[dtype=int64, value=Tensor<type: int64 shape: [] values: 5>]()
    step = Const[dtype=int64, value=Tensor<type: int64 shape: [] values: 1>]()
    none = Const[dtype=int64, value=Tensor<type: int64 shape: [] values: 0>]()
    yes = Const[dtype=bool, value=Tensor<type: bool shape: [] values: true>]()
    range = RangeDataset[output_types={int64}, output_shapes=[[]]](start, stop, step)
"""
"""A dataset of numbers, for uses that fail."""
NO_DATASET: Final = """
    list_shape = Const[dtype=int32, value=Tensor<type: int32 shape: [0] values: >]()
    none = Const[dtype=int32, value=Tensor<type: int32 shape: [] values: 0>]()
    count = Const[dtype=int64, value=Tensor<type: int64 shape: [] values: 1>]()
    yes = Const[dtype=bool, value=Tensor<type: bool shape: [] values: true>]()
    text = Const[dtype=string, value=Tensor<type: string shape: [] values: "">]()
    list = TensorListReserve[element_dtype=float, shape_type=int32](list_shape, none)
"""
"""A variant that is no dataset, for uses that fail."""


def dataset_op(name: str, doc: str, signature: str, kernel: KernelFactory, examples: Any, failures: Any, **parts: Any) -> None:
    """Register an op that makes a dataset.

    Args:
        name, doc, kernel, examples, failures: the parts of its block.
        signature: its attrs, inputs and outputs.
        parts: parts that differ from those of most.
    """
    whole = {
        "signature": f"{name}{signature} -> (handle:variant)",
        "shape": scalar_shape,
        "kernel": kernel,
        "gradient": NO_GRADIENT_OF_DATASETS,
        "examples": examples,
        "failures": failures,
        "device_types": ("CPU",),
    }
    define_op(name, doc, **{**whole, **parts})


def output_types(k: KernelContext) -> tuple[DType, ...]:
    """The declared types of the components."""
    return types_attr(k.attrs, "output_types" if "output_types" in k.attrs else "Toutput_types")


def output_shapes(k: KernelContext | InferenceContext) -> tuple[Shape, ...]:
    """The declared shapes of the components."""
    value = k.attr("output_shapes")
    return tuple([item for item in value if isinstance(item, Shape)]) if isinstance(value, tuple) else ()


def dataset_of(k: KernelContext, handle: Any) -> Dataset:
    """The dataset behind a handle.

    Raises:
        InvalidArgumentError: it is another kind of variant.
    """
    if not isinstance(handle, Dataset):
        raise invalid(k, f"required a dataset, got {type(handle).__name__}")
    return handle


def number(k: KernelContext, value: Any, name: str, least: int | None = None) -> int:
    """The single element of an integer input.

    Raises:
        InvalidArgumentError: it is less than `least`.
    """
    count = one_int(k, on_host(value))
    if least is not None and count < least:
        raise invalid(k, f"{name} must be {'greater than zero' if least == 1 else f'at least {least}'}, got {count}")
    return count


def from_source(k: KernelContext, change: Callable[..., Callable[[], Iterator[Element]]]) -> Kernel:
    """A kernel of a dataset made of another one.

    Args:
        change: takes the other dataset and the other inputs; returns what makes an iterator.
    """
    types = output_types(k)

    def make(source: Any, *inputs: Any) -> Dataset:
        return Dataset(types, change(dataset_of(k, source), *inputs))

    return make


def function_of(k: KernelContext, attr: str) -> Callable[..., Element]:
    """The function in an attr, which returns a tuple."""
    func = func_attr(k.attrs, attr)
    kernel = called(k, func.name, func.attr)
    assert k.functions is not None
    count = len(k.functions.function_types(func.name, func.attr)[1])
    return (lambda *args: (kernel(*args),)) if count == 1 else kernel


def listed(element: Sequence[Any]) -> Element:
    """An element as a tuple."""
    return tuple(element)
