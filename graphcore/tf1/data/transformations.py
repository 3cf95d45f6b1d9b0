"""`tf.contrib.data` and `tf.data.experimental`: functions for `Dataset.apply`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from graphcore import dtypes
from graphcore.errors import InvalidArgumentError
from graphcore.graph import FunctionGraph, Graph, Tensor
from graphcore.passes.functions.defining import function_label
from graphcore.shapes import Shape, as_shape
from graphcore.tf1.arrays.layout import identity
from graphcore.tf1.arrays.slices import gather
from graphcore.tf1.checks import assert_less
from graphcore.tf1.data.datasets import Dataset
from graphcore.tf1.data.functions import TracedFunction, trace
from graphcore.tf1.data.structures import Spec, changed, leaves_of_shapes
from graphcore.tf1.framework import constant, control_dependencies, convert_to_tensor
from graphcore.tf1.math.elementwise import cast, where
from graphcore.tf1.math.reductions import reduce_min

__all__ = [
    "AUTOTUNE",
    "batch_and_drop_remainder",
    "bucket_by_sequence_length",
    "enumerate_dataset",
    "group_by_window",
    "map_and_batch",
    "padded_batch_and_drop_remainder",
    "parallel_interleave",
    "prefetch_to_device",
    "shuffle_and_repeat",
    "unbatch",
]

AUTOTUNE: Final = -1
"""As a number of parallel calls or elements: one that is found out."""
Transformation = Callable[[Dataset], Dataset]
_KEY: Final = Spec((dtypes.int64,), (Shape([]),))
_WHOLE: Final = -1


def shuffle_and_repeat(buffer_size: Any, count: Any = None, seed: int | None = None) -> Transformation:
    """Shuffle, and repeat `count` times; see `Dataset.shuffle`."""
    return lambda dataset: dataset.shuffle(buffer_size, seed).repeat(count)


def map_and_batch(
    map_func: Callable[..., Any],
    batch_size: Any,
    num_parallel_batches: Any = None,
    drop_remainder: Any = False,
    num_parallel_calls: Any = None,
) -> Transformation:
    """Batches of the results of a function; see `Dataset.map` and `Dataset.batch`.

    Args:
        map_func, batch_size, drop_remainder: as there.
        num_parallel_batches, num_parallel_calls: have no effect.
    """
    del num_parallel_batches, num_parallel_calls
    return lambda dataset: dataset.map(map_func).batch(batch_size, drop_remainder)


def batch_and_drop_remainder(batch_size: Any) -> Transformation:
    """Batches, without a last one with fewer elements."""
    return lambda dataset: dataset.batch(batch_size, True)


def padded_batch_and_drop_remainder(batch_size: Any, padded_shapes: Any, padding_values: Any = None) -> Transformation:
    """Padded batches, without a last one with fewer elements."""
    return lambda dataset: dataset.padded_batch(batch_size, padded_shapes, padding_values, True)


def prefetch_to_device(device: str, buffer_size: Any = None) -> Transformation:
    """The same elements: those that a device needs are copied to it in any case."""
    del device, buffer_size
    return lambda dataset: dataset


def parallel_interleave(
    map_func: Callable[..., Dataset],
    cycle_length: Any,
    block_length: Any = 1,
    sloppy: Any = False,
    buffer_output_elements: Any = None,
    prefetch_input_elements: Any = None,
) -> Transformation:
    """The elements of datasets in turn; see `Dataset.interleave`.

    Args:
        map_func, cycle_length, block_length: as there.
        sloppy, buffer_output_elements, prefetch_input_elements: have no effect.
    """
    del sloppy, buffer_output_elements, prefetch_input_elements
    return lambda dataset: dataset.interleave(map_func, cycle_length, block_length)


def enumerate_dataset(start: Any = 0) -> Transformation:
    """Pairs of a number and an element; see `Dataset.enumerate`."""
    return lambda dataset: dataset.enumerate(start)


def unbatch() -> Transformation:
    """The rows of batches, one after another."""
    return lambda dataset: dataset.flat_map(lambda *batch: Dataset.from_tensor_slices(batch if len(batch) > 1 else batch[0]))


def group_by_window(
    key_func: Callable[..., Any],
    reduce_func: Callable[[Tensor, Dataset], Dataset],
    window_size: Any = None,
    window_size_func: Callable[[Tensor], Any] | None = None,
) -> Transformation:
    """The elements of the datasets that a function makes of windows: elements of one key, in order.

    Args:
        key_func: takes an element as `Dataset.map` does, and returns its key, an int64 scalar.
        reduce_func: takes a key and the dataset of a window, and returns a dataset, such as that of one batch.
        window_size: the number of elements in a window; what is left at the end makes smaller ones.
        window_size_func: takes a key, and returns the number of elements in its windows.

    Raises:
        InvalidArgumentError: both or none of `window_size` and `window_size_func` are given.
    """
    if (window_size is None) is (window_size_func is None):
        raise InvalidArgumentError("Must pass either window_size or window_size_func.")
    size_func = window_size_func if window_size_func is not None else lambda _: convert_to_tensor(window_size, dtypes.int64)

    def apply(dataset: Dataset) -> Dataset:
        graph, spec, structure = dataset.variant.graph, dataset.spec, dataset.structure

        def reduced(key: Tensor, window: Tensor) -> Dataset:
            declared = window.graph.apply_op("TakeDataset", [window, constant(_WHOLE, dtypes.int64)], spec.attrs())
            return reduce_func(key, Dataset(declared.outputs[0], structure))

        both = Spec((dtypes.int64, dtypes.variant), (Shape([]), Shape([])))
        traced = {
            "key": _traced(graph, "key", lambda *element: _scalar(key_func(*element), "key_func"), structure, spec),
            "reduce": _traced(graph, "reduce", reduced, (0, 1), both, gives_dataset=True),
            "window_size": _traced(graph, "window_size", lambda key: _scalar(size_func(key), "window_size_func"), 0, _KEY),
        }
        attrs: dict[str, Any] = traced["reduce"].spec.attrs()
        for role, function in traced.items():
            attrs[f"{role}_func"] = function.func
            attrs[f"T{role}_func_other_arguments"] = tuple([tensor.dtype.base for tensor in function.captured])
        captured = [list(function.captured) for function in traced.values()]
        node = graph.apply_op("GroupByWindowDataset", [dataset.variant, *captured], attrs)
        return Dataset(node.outputs[0], traced["reduce"].structure)

    return apply


def _traced(
    graph: Graph, role: str, function: Callable[..., Any], structure: Any, spec: Spec, *, gives_dataset: bool = False
) -> TracedFunction:
    body = FunctionGraph.within(graph, function_label(graph, "GroupByWindowDataset", role))
    return trace(body, function, structure, spec, gives_dataset=gives_dataset)


def _scalar(value: Any, what: str) -> Tensor:
    tensor = convert_to_tensor(value)
    if not tensor.dtype.is_integer or tensor.shape.rank not in {0, None}:
        raise InvalidArgumentError(f"`{what}` must return a single int64 scalar, and returns {tensor.dtype.text} {tensor.shape}")
    return tensor if tensor.dtype is dtypes.int64 else cast(tensor, dtypes.int64)


def bucket_by_sequence_length(
    element_length_func: Callable[..., Any],
    bucket_boundaries: Sequence[int],
    bucket_batch_sizes: Sequence[int],
    padded_shapes: Any = None,
    padding_values: Any = None,
    pad_to_bucket_boundary: bool = False,
    no_padding: bool = False,
    drop_remainder: bool = False,
) -> Transformation:
    """Batches of elements of like lengths.

    Args:
        element_length_func: takes an element, and returns its length, an integer.
        bucket_boundaries: the lengths at which the next bucket begins, ascending.
        bucket_batch_sizes: the size of batches of each bucket, one more than there are boundaries.
        padded_shapes, padding_values: as of `Dataset.padded_batch`.
        pad_to_bucket_boundary: pad to the largest length in a bucket; lengths beyond the last boundary are errors then.
        no_padding: the elements of a batch have equal shapes.
        drop_remainder: leave out last batches with fewer elements.

    Raises:
        InvalidArgumentError: the number of sizes does not fit that of boundaries.
    """
    if len(bucket_batch_sizes) != len(bucket_boundaries) + 1:
        raise InvalidArgumentError(
            f"bucket_batch_sizes: required {len(bucket_boundaries) + 1} sizes for {len(bucket_boundaries)} boundaries, got {len(bucket_batch_sizes)}"
        )
    limits = np.iinfo(np.int32)
    lowest, highest = np.array([limits.min, *bucket_boundaries], np.int32), np.array([*bucket_boundaries, limits.max], np.int32)

    def bucket_of(*element: Any) -> Tensor:
        length = cast(convert_to_tensor(element_length_func(*element)), dtypes.int32)
        return reduce_min(where((length >= lowest) & (length < highest)))

    def size_of(bucket: Tensor) -> Tensor:
        return gather(constant(list(bucket_batch_sizes), dtypes.int64), bucket)

    def batched(bucket: Tensor, window: Dataset) -> Dataset:
        size = size_of(bucket)
        if no_padding:
            return window.batch(size, drop_remainder)
        shapes = window.output_shapes if padded_shapes is None else padded_shapes
        if pad_to_bucket_boundary:
            shapes = _filled_shapes(window, shapes, _largest_length(bucket, bucket_boundaries))
        return window.padded_batch(size, shapes, padding_values, drop_remainder)

    return group_by_window(bucket_of, batched, window_size_func=size_of)


def _largest_length(bucket: Tensor, boundaries: Sequence[int]) -> Tensor:
    text = "When pad_to_bucket_boundary=True, elements must have length < max(bucket_boundaries)."
    with control_dependencies([assert_less(bucket, constant(len(boundaries), dtypes.int64), message=text)]):
        return gather(constant(list(boundaries), dtypes.int64), identity(bucket)) - constant(1, dtypes.int64)


def _filled_shapes(window: Dataset, shapes: Any, length: Tensor) -> Any:
    """The shapes with the length in the place of unknown sizes."""
    leaves = [as_shape(leaf).as_list() for leaf in leaves_of_shapes(window.structure, shapes)]
    tensors = [
        convert_to_tensor([length if size is None else np.int64(size) for size in leaf], dtypes.int64) if None in leaf else Shape(leaf)
        for leaf in leaves
    ]
    return changed(window.structure, lambda number: tensors[number])
