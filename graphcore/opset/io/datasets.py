"""Datasets from tensors, and datasets made of others: their parts, batches, orders and repetitions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain, islice
from typing import Any, Final

import numpy as np

from graphcore.dtypes import DType
from graphcore.errors import UnimplementedError
from graphcore.kernel_context import KernelContext, owned
from graphcore.opset.framework.block import Example, Kernel
from graphcore.opset.framework.kernels import invalid, on_host
from graphcore.opset.io.dataset_blocks import (
    METADATA,
    NO_DATASET,
    OUTPUTS,
    RANGE,
    dataset_of,
    dataset_op,
    from_source,
    number,
    output_types,
)
from graphcore.opset.numerics.dataset_values import Dataset, Element, as_array, batches, padded, shuffled, stacked
from graphcore.shapes import Shape

_FROM_TENSORS: Final = "Toutput_types:list(type) >= 1, output_shapes:list(shape) >= 1"
_OF_NUMBERS: Final = {"output_types": ["int64"], "output_shapes": [Shape([])]}
_NUMBERS: Final = [0, 1, 2, 3, 4]
_SPLIT: Final = "replicate_on_split:bool = false"
_RANGE_OUT: Final = "[output_types={int64}, output_shapes=[[]]]"
_FROM_TENSORS_OUT: Final = "[Toutput_types={float}, output_shapes=[[]]]"


def _kept(k: KernelContext, values: tuple[Any, ...]) -> tuple[Any, ...]:
    """The inputs as arrays that no other code may change."""
    return tuple([owned(as_array(on_host(value), dtype.base)) for value, dtype in zip(values, k.input_types, strict=True)])


def _slices(k: KernelContext) -> Kernel:
    types = output_types(k)

    def make(*components: Any) -> Dataset:
        arrays = _kept(k, components)
        sizes = [array.shape[0] if array.ndim else None for array in arrays]
        if None in sizes or len(set(sizes)) != 1:
            raise invalid(k, f"required components with equal first dimensions, got {[list(array.shape) for array in arrays]}")
        return Dataset(types, lambda: _rows(arrays, types))

    return make


def _rows(arrays: tuple[Any, ...], types: tuple[DType, ...]) -> Iterator[Element]:
    for i in range(len(arrays[0])):
        yield tuple([as_array(array[i], dtype) for array, dtype in zip(arrays, types, strict=True)])


def _whole(k: KernelContext) -> Kernel:
    types = output_types(k)

    def make(*components: Any) -> Dataset:
        element = _kept(k, components)
        return Dataset(types, lambda: iter([element]))

    return make


def _range(k: KernelContext) -> Kernel:
    types = output_types(k)

    def make(start: Any, stop: Any, step: Any) -> Dataset:
        numbers = [number(k, value, "a limit") for value in (start, stop, step)]
        if not numbers[2]:
            raise invalid(k, "step must be a non-zero integer.")
        return Dataset(types, lambda: ((np.asarray(i, types[0].as_numpy),) for i in range(*numbers)))

    return make


def _zip(k: KernelContext) -> Kernel:
    types = output_types(k)

    def make(*inputs: Any) -> Dataset:
        sources = [dataset_of(k, source) for source in inputs]
        return Dataset(types, lambda: _side_by_side([source.iterate() for source in sources]))

    return make


def _side_by_side(sources: list[Iterator[Element]]) -> Iterator[Element]:
    def step() -> Element:
        return tuple(chain.from_iterable([next(source) for source in sources]))

    return iter(step, None)


def _concatenate(k: KernelContext) -> Kernel:
    def change(source: Dataset, other: Any) -> Callable[[], Iterator[Element]]:
        second = dataset_of(k, other)
        return lambda: chain(source.iterate(), second.iterate())

    return from_source(k, change)


def _take(k: KernelContext) -> Kernel:
    def change(source: Dataset, count: Any) -> Callable[[], Iterator[Element]]:
        most = number(k, count, "count")
        return source.iterate if most < 0 else lambda: islice(source.iterate(), most)

    return from_source(k, change)


def _skip(k: KernelContext) -> Kernel:
    def change(source: Dataset, count: Any) -> Callable[[], Iterator[Element]]:
        left_out = number(k, count, "count")
        return (lambda: iter(())) if left_out < 0 else lambda: islice(source.iterate(), left_out, None)

    return from_source(k, change)


def _repeat(k: KernelContext) -> Kernel:
    def change(source: Dataset, count: Any) -> Callable[[], Iterator[Element]]:
        times = number(k, count, "count")
        return lambda: _repeated(source, times)

    return from_source(k, change)


def _repeated(source: Dataset, times: int) -> Iterator[Element]:
    begun, elements = 0, iter(list[Element]())

    def step() -> Element:
        nonlocal begun, elements
        element = next(elements, None)
        if element is None and (times < 0 or begun < times):
            begun, elements = begun + 1, source.iterate()
            element = next(elements, None)
        if element is None:
            raise StopIteration
        return element

    return iter(step, None)


def _pass_on(k: KernelContext) -> Kernel:
    return from_source(k, lambda source, *_: source.iterate)


def _shuffle(k: KernelContext) -> Kernel:
    reshuffle = bool(k.attr("reshuffle_each_iteration"))

    def change(source: Dataset, size: Any, seed: Any, seed2: Any) -> Callable[[], Iterator[Element]]:
        most = number(k, size, "buffer_size", 1)
        return shuffled(source, most, (number(k, seed, "seed"), number(k, seed2, "seed2")), reshuffle=reshuffle)

    return from_source(k, change)


def _batch(k: KernelContext) -> Kernel:
    types = output_types(k)

    def change(source: Dataset, size: Any, drop: Any = None) -> Callable[[], Iterator[Element]]:
        drops = drop is not None and bool(on_host(drop).item())
        return batches(source, number(k, size, "batch_size", 1), lambda rows: stacked(rows, types), drop=drops)

    return from_source(k, change)


def _padded_batch(k: KernelContext) -> Kernel:
    types = output_types(k)
    count = len(types)

    def change(source: Dataset, size: Any, *inputs: Any) -> Callable[[], Iterator[Element]]:
        shapes = [on_host(shape).reshape(-1).tolist() for shape in inputs[:count]]
        values = [on_host(value) for value in inputs[count : 2 * count]]
        values = [value.item() if dtype.as_numpy == np.object_ else value for value, dtype in zip(values, types, strict=True)]
        drops = bool(on_host(inputs[2 * count]).item()) if len(inputs) > 2 * count else False
        return batches(source, number(k, size, "batch_size", 1), lambda rows: padded(rows, types, shapes, values), drop=drops)

    return from_source(k, change)


def _cache(k: KernelContext) -> Kernel:
    def change(source: Dataset, filename: Any) -> Callable[[], Iterator[Element]]:
        if on_host(filename).item():
            raise UnimplementedError(
                f"'{k.node_name}' (op {k.op}): caches in files are not available; cache() without a name keeps the elements in memory",
                op=k.op,
                node=k.node_name,
                source=k.source,
            )
        cached: list[list[Element]] = []
        return lambda: iter(cached[0]) if cached else _noting(source.iterate(), cached)

    return from_source(k, change)


def _noting(elements: Iterator[Element], cached: list[list[Element]]) -> Iterator[Element]:
    """The elements; when all were taken, they are put into `cached`."""
    seen: list[Element] = []

    def step() -> Element:
        try:
            seen.append(next(elements))
        except StopIteration:
            if not cached:
                cached.append(seen)
            raise
        return seen[-1]

    return iter(step, None)


dataset_op(
    "TensorSliceDataset",
    "The slices of tensors along their first dimension.\n\ncomponents: tensors with equal first dimensions",
    f"[{_FROM_TENSORS}, is_files:bool = false, {METADATA}, {_SPLIT}](components:Toutput_types)",
    _slices,
    (Example([[[1.0, 2.0]]], {"Toutput_types": ["float"], "output_shapes": [Shape([])]}),),
    (
        """
        one = Const[dtype=float, value=Tensor<type: float shape: [1] values: 1>]()
        two = Const[dtype=float, value=Tensor<type: float shape: [2] values: 1 2>]()
        slices = TensorSliceDataset[Toutput_types={float, float}, output_shapes=[[], []]](one, two)
        """,
    ),
    stateful=True,
)
dataset_op(
    "TensorDataset",
    "One element.\n\ncomponents: its components",
    f"[{_FROM_TENSORS}, {METADATA}](components:Toutput_types)",
    _whole,
    (Example([[[1.0, 2.0]]], {"Toutput_types": ["float"], "output_shapes": [Shape([2])]}),),
    (),
    stateful=True,
    can_fail=False,
)
dataset_op(
    "RangeDataset",
    "The whole numbers from `start` on, before `stop`.\n\nstart: the first\nstop: the first that is too far\nstep: the distance",
    f"[{OUTPUTS}, {METADATA}, {_SPLIT}](start:int64, stop:int64, step:int64)",
    _range,
    (Example([0, 5, 1], _OF_NUMBERS),),
    (RANGE + f"it = RangeDataset{_RANGE_OUT}(start, stop, none)",),
    stateful=True,
)
dataset_op(
    "ZipDataset",
    "The elements of several datasets side by side, as long as all have some.\n\ninput_datasets: the datasets",
    f"[{OUTPUTS}, N:int >= 1, {METADATA}](input_datasets:N*variant)",
    _zip,
    (Example([[_NUMBERS, _NUMBERS]], {"output_types": ["int64", "int64"], "output_shapes": [Shape([]), Shape([])]}),),
    (NO_DATASET + f"it = ZipDataset{_RANGE_OUT[:-1]}, N=1](list)",),
)
dataset_op(
    "ConcatenateDataset",
    "The elements of one dataset, then those of another.\n\ninput_dataset: the first\nanother_dataset: the second",
    f"[{OUTPUTS}, {METADATA}](input_dataset:variant, another_dataset:variant)",
    _concatenate,
    (Example([_NUMBERS, _NUMBERS], _OF_NUMBERS),),
    (NO_DATASET + f"it = ConcatenateDataset{_RANGE_OUT}(list, list)",),
)
for _name, _doc, _kernel in (
    ("TakeDataset", "The first elements, all for a negative number.\n\ninput_dataset: the dataset\ncount: their number", _take),
    (
        "SkipDataset",
        "The elements after the first ones, none for a negative number.\n\ninput_dataset: the dataset\ncount: their number",
        _skip,
    ),
    (
        "RepeatDataset",
        "The elements several times, without end for a negative number.\n\ninput_dataset: the dataset\ncount: the number",
        _repeat,
    ),
):
    dataset_op(
        _name,
        _doc,
        f"[{OUTPUTS}, {METADATA}](input_dataset:variant, count:int64)",
        _kernel,
        (Example([_NUMBERS, 2], _OF_NUMBERS),),
        (NO_DATASET + f"it = {_name}{_RANGE_OUT}(list, count)",),
    )
dataset_op(
    "PrefetchDataset",
    "The same elements; they are made when they are asked for.\n\ninput_dataset: the dataset\nbuffer_size: has no effect",
    f"[{OUTPUTS}, slack_period:int = 0, legacy_autotune:bool = true, buffer_size_min:int = 0, {METADATA}]"
    "(input_dataset:variant, buffer_size:int64)",
    _pass_on,
    (Example([_NUMBERS, 1], _OF_NUMBERS),),
    (NO_DATASET + f"it = PrefetchDataset{_RANGE_OUT}(list, count)",),
)
dataset_op(
    "OptimizeDataset",
    "The same elements.\n\ninput_dataset: the dataset\noptimizations: has no effect",
    f"[{OUTPUTS}, optimization_configs:list(string) = []](input_dataset:variant, optimizations:string)",
    _pass_on,
    (Example([_NUMBERS, np.array([], object)], _OF_NUMBERS),),
    (NO_DATASET + f"it = OptimizeDataset{_RANGE_OUT}(list, text)",),
)
dataset_op(
    "ModelDataset",
    "The same elements.\n\ninput_dataset: the dataset",
    f"[algorithm:int = 0, cpu_budget:int = 0, ram_budget:int = 0, {OUTPUTS}](input_dataset:variant)",
    _pass_on,
    (Example([_NUMBERS], _OF_NUMBERS),),
    (NO_DATASET + f"it = ModelDataset{_RANGE_OUT}(list)",),
)
dataset_op(
    "ShuffleDataset",
    "The elements in random order, each drawn from a buffer of the next ones.\n\n"
    "input_dataset: the dataset\nbuffer_size: the size of the buffer\nseed, seed2: the seeds, both 0 for random ones\n"
    "reshuffle_each_iteration: another order in each iteration.",
    f"[reshuffle_each_iteration:bool = true, {OUTPUTS}, {METADATA}](input_dataset:variant, buffer_size:int64, seed:int64, seed2:int64)",
    _shuffle,
    (Example([_NUMBERS, 5, 1, 2], _OF_NUMBERS),),
    (RANGE + f"it = ShuffleDataset{_RANGE_OUT}(range, none, none, none)",),
)
dataset_op(
    "BatchDataset",
    "Several elements along a new first dimension.\n\ninput_dataset: the dataset\nbatch_size: their number, fewer in the last",
    f"[{OUTPUTS}, {METADATA}](input_dataset:variant, batch_size:int64)",
    _batch,
    (Example([_NUMBERS, 2], {"output_types": ["int64"], "output_shapes": [Shape([None])]}),),
    (RANGE + "it = BatchDataset[output_types={int64}, output_shapes=[[?]]](range, none)",),
)
dataset_op(
    "BatchDatasetV2",
    "Several elements along a new first dimension.\n\n"
    "input_dataset: the dataset\nbatch_size: their number\ndrop_remainder: leave out a last batch with fewer\nparallel_copy: has no effect.",
    f"[parallel_copy:bool = false, {OUTPUTS}, {METADATA}](input_dataset:variant, batch_size:int64, drop_remainder:bool)",
    _batch,
    (Example([_NUMBERS, 2, True], {"output_types": ["int64"], "output_shapes": [Shape([2])]}),),
    (RANGE + "it = BatchDatasetV2[output_types={int64}, output_shapes=[[?]]](range, none, yes)",),
)
_PADDED: Final = "batch_size:int64, padded_shapes:N*int64, padding_values:Toutput_types"
_PADDED_DOC: Final = (
    "Several elements along a new first dimension, padded to one shape.\n\ninput_dataset: the dataset\nbatch_size: their number\n"
    "padded_shapes: the shape of each component; -1 for the largest size in the batch\npadding_values: a scalar for each component"
)
dataset_op(
    "PaddedBatchDataset",
    _PADDED_DOC,
    f"[{_FROM_TENSORS}, N:int >= 1, {METADATA}](input_dataset:variant, {_PADDED})",
    _padded_batch,
    (Example([_NUMBERS, 2, [np.array([], np.int64)], [np.int64(0)]], {"Toutput_types": ["int64"], "output_shapes": [Shape([None])]}),),
    (RANGE + "it = PaddedBatchDataset[Toutput_types={int64}, output_shapes=[[?]], N=1](range, none, none, none)",),
)
dataset_op(
    "PaddedBatchDatasetV2",
    _PADDED_DOC + "\ndrop_remainder: leave out a last batch with fewer\nparallel_copy: has no effect.",
    f"[parallel_copy:bool = false, {_FROM_TENSORS}, N:int >= 1, {METADATA}](input_dataset:variant, {_PADDED}, drop_remainder:bool)",
    _padded_batch,
    (
        Example(
            [_NUMBERS, 2, [np.array([], np.int64)], [np.int64(0)], True], {"Toutput_types": ["int64"], "output_shapes": [Shape([None])]}
        ),
    ),
    (RANGE + "it = PaddedBatchDatasetV2[Toutput_types={int64}, output_shapes=[[?]], N=1](range, none, none, none, yes)",),
)
dataset_op(
    "CacheDataset",
    "The elements, kept in memory once all were made.\n\ninput_dataset: the dataset\nfilename: must be empty",
    f"[{OUTPUTS}, {METADATA}](input_dataset:variant, filename:string)",
    _cache,
    (Example([_NUMBERS, np.array(b"", object)], _OF_NUMBERS),),
    (NO_DATASET + f"it = CacheDataset{_RANGE_OUT}(list, text)",),
)
