"""Datasets made of others by functions: mapped, filtered, and flattened."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, Final

import numpy as np

from graphcore.attrs import Func
from graphcore.errors import InvalidArgumentError, OutOfRangeError
from graphcore.kernel_context import KernelContext
from graphcore.opset.control_flow.function_calls import types_attr
from graphcore.opset.framework.block import Example, Kernel
from graphcore.opset.framework.kernels import on_host
from graphcore.opset.io.dataset_blocks import METADATA, OUTPUTS, dataset_of, dataset_op, from_source, function_of, number, output_types
from graphcore.opset.numerics.dataset_values import Dataset, Element, grouped, interleaved
from graphcore.shapes import Shape

_ARGUMENTS: Final = "Targuments:list(type) >= 0"
_NUMBERS: Final = [0, 1, 2]
_OF_NUMBERS: Final = {"output_types": ["int64"], "output_shapes": [Shape([])]}
_SAME: Final = "Same(x:int64) -> (y:int64) {\n  y = Identity[T=int64](x)\n}"
_EVEN: Final = "Even(x:int64) -> (y:bool) {\n  y = Equal[T=int64](x, x)\n}"
_RANGE: Final = (
    "Below(x:int64) -> (y:variant) {\n"
    "  zero = Const[dtype=int64, value=Tensor<type: int64 shape: [] values: 0>]()\n"
    "  one = Const[dtype=int64, value=Tensor<type: int64 shape: [] values: 1>]()\n"
    "  y = RangeDataset[output_types={int64}, output_shapes=[[]]](zero, x, one)\n}"
)


def _map(k: KernelContext) -> Kernel:
    function, keeps_count = function_of(k, "f"), bool(k.attr("preserve_cardinality"))

    def change(source: Dataset, *captured: Any) -> Callable[[], Iterator[Element]]:
        def iterate() -> Iterator[Element]:
            elements = source.iterate()

            def step() -> Element:
                element = next(elements)
                try:
                    return function(*element, *captured)
                except OutOfRangeError as error:
                    if keeps_count:
                        raise InvalidArgumentError(f"Function invocation produced OutOfRangeError: {error.message}") from error
                    raise StopIteration from None

            return iter(step, None)

        return iterate

    return from_source(k, change)


def _parallel_map(k: KernelContext) -> Kernel:
    make = _map(k)
    return lambda source, *inputs: make(source, *inputs[:-1])


def _filter(k: KernelContext) -> Kernel:
    predicate = function_of(k, "predicate")

    def change(source: Dataset, *captured: Any) -> Callable[[], Iterator[Element]]:
        def iterate() -> Iterator[Element]:
            elements = source.iterate()

            def step() -> Element:
                while True:
                    element = next(elements)
                    (kept,) = predicate(*element, *captured)
                    value = on_host(kept)
                    if value.ndim:
                        raise InvalidArgumentError("Filter predicate `f` must return a scalar bool.")
                    if value:
                        return element

            return iter(step, None)

        return iterate

    return from_source(k, change)


def _inner(k: KernelContext, captured: tuple[Any, ...]) -> Callable[..., Dataset]:
    function = function_of(k, "f")
    return lambda *element: dataset_of(k, function(*element, *captured)[0])


def _flat_map(k: KernelContext) -> Kernel:
    types = output_types(k)

    def make(source: Any, *captured: Any) -> Dataset:
        return Dataset(types, interleaved(dataset_of(k, source), _inner(k, captured), 1, 1))

    return make


def _interleave(k: KernelContext) -> Kernel:
    types = output_types(k)

    def make(source: Any, *inputs: Any) -> Dataset:
        *captured, cycle, block = inputs
        length, size = number(k, cycle, "cycle_length", 1), number(k, block, "block_length", 1)
        return Dataset(types, interleaved(dataset_of(k, source), _inner(k, tuple(captured)), length, size))

    return make


def _parallel_interleave(k: KernelContext) -> Kernel:
    make = _interleave(k)
    return lambda source, *inputs: make(source, *inputs[:-1])


_FUNCTION: Final = "input_dataset: the dataset\nother_arguments: further arguments of the function"
_INPUTS: Final = "input_dataset:variant, other_arguments:Targuments"


def _mapping(name: str, doc: str, attrs: str, inputs: str, kernel: Any, function: str, attr: str, given_inputs: list[Any]) -> None:
    """Register an op with a function; its failing use is its example on something that is no dataset."""
    label = function.partition("(")[0]
    examples = (Example([_NUMBERS, [], *given_inputs], {attr: Func(label), **_OF_NUMBERS}, functions=(function,)),)
    dataset_op(
        name,
        f"{doc}\n\n{_FUNCTION}",
        f"[{attr}:func, {_ARGUMENTS}, {OUTPUTS}{attrs}, {METADATA}]({_INPUTS}{inputs})",
        kernel,
        examples,
        examples,
    )


_BOTH: Final = ", use_inter_op_parallelism:bool = true"
_mapping(
    "MapDataset", "The results of a function, one for each element.", f"{_BOTH}, preserve_cardinality:bool = false, force_synchronous:bool = false",
    "", _map, _SAME, "f", [],
)  # fmt: skip
_mapping(
    "ParallelMapDataset", "The results of a function, one for each element.", f"{_BOTH}, sloppy:bool = false, preserve_cardinality:bool = false",
    ", num_parallel_calls:int32", _parallel_map, _SAME, "f", [1],
)  # fmt: skip
_mapping("FilterDataset", "The elements for which a function is true.", "", "", _filter, _EVEN, "predicate", [])
_mapping("FlatMapDataset", "The elements of the datasets that a function makes of each element.", "", "", _flat_map, _RANGE, "f", [])
_mapping(
    "InterleaveDataset", "The elements of the datasets that a function makes of each element, in turn.", "",
    ", cycle_length:int64, block_length:int64", _interleave, _RANGE, "f", [2, 1],
)  # fmt: skip
_mapping(
    "ParallelInterleaveDatasetV2", "The elements of the datasets that a function makes of each element, in turn.", ", sloppy:bool = false",
    ", cycle_length:int64, block_length:int64, num_parallel_calls:int64", _parallel_interleave, _RANGE, "f", [2, 1, 1],
)  # fmt: skip


def _generate(k: KernelContext) -> Kernel:
    begin, following, end = (function_of(k, f"{role}_func") for role in ("init", "next", "finalize"))
    types = output_types(k)
    counts = [len(types_attr(k.attrs, f"T{role}_func_args")) for role in ("init", "next", "finalize")]

    def make(*inputs: Any) -> Dataset:
        first, second = inputs[: counts[0]], inputs[counts[0] : counts[0] + counts[1]]
        last = inputs[counts[0] + counts[1] :]

        def iterate() -> Iterator[Element]:
            state: Element | None = None
            is_over = False

            def step() -> Element:
                nonlocal state, is_over
                if is_over:
                    raise StopIteration
                if state is None:
                    state = begin(*first)
                try:
                    return following(*state, *second)
                except OutOfRangeError:
                    is_over = True
                    end(*state, *last)
                    raise StopIteration from None

            return iter(step, None)

        return Dataset(types, iterate)

    return make


_GENERATED: Final = Example(
    [[], [], []],
    {"init_func": Func("Start"), "next_func": Func("Same"), "finalize_func": Func("Same"), **_OF_NUMBERS},
    functions=(_SAME, "Start() -> (y:int64) {\n  y = Const[dtype=int64, value=Tensor<type: int64 shape: [] values: 0>]()\n}"),
)
dataset_op(
    "GeneratorDataset",
    "The results of a function that is called until it raises OutOfRangeError.\n\n"
    "init_func_other_args, next_func_other_args, finalize_func_other_args: further arguments\n"
    "init_func: returns the state.\nnext_func: takes the state, returns an element.\nfinalize_func: takes the state, at the end.",
    "[init_func:func, next_func:func, finalize_func:func, Tinit_func_args:list(type) >= 0, Tnext_func_args:list(type) >= 0, "
    f"Tfinalize_func_args:list(type) >= 0, {OUTPUTS}, {METADATA}](init_func_other_args:Tinit_func_args, "
    "next_func_other_args:Tnext_func_args, finalize_func_other_args:Tfinalize_func_args)",
    _generate,
    (_GENERATED,),
    (),
    stateful=True,
    can_fail=False,
)


def _group(k: KernelContext) -> Kernel:
    key_of, reduce, size_of = (function_of(k, f"{role}_func") for role in _ROLES)
    counts = [len(types_attr(k.attrs, f"T{role}_func_other_arguments")) for role in _ROLES]

    def make(handle: Any, *inputs: Any) -> Dataset:
        source, more = dataset_of(k, handle), iter(inputs)
        for_key, for_reduce, for_size = (tuple(islice(more, count)) for count in counts)

        def window(key: int, rows: list[Element]) -> Iterator[Element]:
            (reduced,) = reduce(np.asarray(key, np.int64), Dataset(source.types, lambda: iter(rows)), *for_reduce)
            return dataset_of(k, reduced).iterate()

        def size(key: int) -> int:
            return number(k, size_of(np.asarray(key, np.int64), *for_size)[0], "The window size", 1)

        return Dataset(output_types(k), grouped(source, lambda element: number(k, key_of(*element, *for_key)[0], "The key"), size, window))

    return make


_ROLES: Final = ("key", "reduce", "window_size")
_WINDOW: Final = "Window(key:int64, window:variant) -> (y:variant) {\n  y = Identity[T=variant](window)\n}"
_GROUPED: Final = Example(
    [_NUMBERS, [], [], []],
    {"key_func": Func("Same"), "reduce_func": Func("Window"), "window_size_func": Func("Same"), **_OF_NUMBERS},
    functions=(_SAME, _WINDOW),
)
dataset_op(
    "GroupByWindowDataset",
    "The elements of the datasets that a function makes of windows: elements of one key, in order. What is left at the end makes smaller windows.\n\n"
    "input_dataset: the dataset\n"
    "key_func_other_arguments, reduce_func_other_arguments, window_size_func_other_arguments: further arguments of the functions\n"
    "key_func: takes an element, returns its key.\nreduce_func: takes a key and the dataset of a window, returns a dataset.\n"
    "window_size_func: takes a key, returns the number of elements in its windows.",
    "[key_func:func, reduce_func:func, window_size_func:func, Tkey_func_other_arguments:list(type) >= 0, "
    "Treduce_func_other_arguments:list(type) >= 0, Twindow_size_func_other_arguments:list(type) >= 0, "
    f"{OUTPUTS}, {METADATA}](input_dataset:variant, key_func_other_arguments:Tkey_func_other_arguments, "
    "reduce_func_other_arguments:Treduce_func_other_arguments, window_size_func_other_arguments:Twindow_size_func_other_arguments)",
    _group,
    (_GROUPED,),
    (_GROUPED,),
)
