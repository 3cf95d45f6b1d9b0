"""`map_fn`, `scan`, `foldl` and `foldr`: Python functions along the first dimension of tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from graphcore.api.loops import while_loop
from graphcore.dtypes import int32
from graphcore.errors import InvalidArgumentError
from graphcore.graph import Tensor
from graphcore.tf1 import nest
from graphcore.tf1.arrays.layout import shape as shape_of
from graphcore.tf1.arrays.layout import stop_gradient
from graphcore.tf1.following import derived
from graphcore.tf1.framework import constant, convert_to_tensor, name_scope
from graphcore.tf1.tensor_array import TensorArray

__all__ = ["foldl", "foldr", "map_fn", "scan"]


class _Rows:
    """The rows of (nested) tensors."""

    def __init__(self, elems: Any) -> None:
        flat = [convert_to_tensor(leaf, name="elem") for leaf in nest.flatten(elems)]
        if any(tensor.shape.rank == 0 for tensor in flat):
            raise InvalidArgumentError("elements must be 1+ dimensional Tensors, not scalars")
        self._form = elems
        self._arrays = [TensorArray(tensor.dtype, 0).unstack(tensor) for tensor in flat]
        sizes = {size: tensor for tensor in flat if tensor.shape.rank is not None and (size := tensor.shape.as_list()[0]) is not None}
        if len(sizes) > 1:
            came = " and ".join([f"'{tensor.name}' of {size}" for size, tensor in sizes.items()])
            raise InvalidArgumentError(f"elems: required tensors of one number of rows, got {came}")
        self.known = next(iter(sizes), None)
        self.count = shape_of(flat[0])[0] if self.known is None else constant(self.known, int32)

    def __call__(self, index: Any) -> Any:
        return nest.pack_sequence_as(self._form, [array.read(index) for array in self._arrays])


def _stacked(form: Any, arrays: list[TensorArray], count: int | None) -> Any:
    tensors = [array.stack() for array in arrays]
    for tensor in tensors:
        if tensor.shape.rank is not None:
            tensor.set_shape([count, *tensor.shape.as_list()[1:]])
    return nest.pack_sequence_as(form, tensors)


def _finished(value: Any, back_prop: bool) -> Any:
    return value if back_prop else nest.map_structure(stop_gradient, value)


def map_fn(
    fn: Callable[..., Any],
    elems: Any,
    dtype: Any = None,
    parallel_iterations: int | None = None,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    name: str | None = None,
    fn_output_signature: Any = None,
) -> Any:
    """Apply a function to each row of `elems`, and stack the results.

    Args:
        fn: takes a row: a tensor, or tensors in the form of `elems`.
        elems: a tensor, or (nested) tensors, of the same first size.
        dtype, fn_output_signature: the dtype of the results, or (nested) dtypes in their form; by default the dtypes and form of `elems`.
        parallel_iterations: the number of calls that may overlap; 10 by default.
        back_prop: False stops gradients at the results.
        swap_memory: without effect.
        infer_shape: the results of all rows have the shape of the first.
        name: the name scope.
    """
    del swap_memory
    wanted = dtype if fn_output_signature is None else fn_output_signature

    def build() -> Any:
        with name_scope(name or "map"):
            rows = _Rows(elems)
            form = elems if wanted is None else wanted
            kinds = [
                leaf.dtype if wanted is None else leaf
                for leaf in nest.flatten(nest.map_structure(_with_dtype, elems) if wanted is None else wanted)
            ]
            arrays = [TensorArray(kind, rows.count, infer_shape=infer_shape) for kind in kinds]
            shapes: list[TensorArray] = []

            def one(i: Any, arrays: list[TensorArray]) -> Any:
                values = nest.flatten(fn(rows(i)))
                if len(values) != len(arrays):
                    raise InvalidArgumentError(f"map_fn: the function gives {len(values)} values, and dtype says {len(arrays)}")
                written = [array.write(i, value) for array, value in zip(arrays, values, strict=True)]
                shapes[:] = written
                return i + 1, written

            _, after = while_loop(
                lambda i, _: i < rows.count, one, (constant(0, int32), arrays), parallel_iterations=parallel_iterations or 10
            )
            after = [seen.with_flow(array.flow) for seen, array in zip(shapes, after, strict=True)]
            return _finished(_stacked(form, after, rows.known), back_prop)

    return derived("map_fn", build, elems)


def _with_dtype(value: Any) -> Tensor:
    return convert_to_tensor(value)


def _fold(fn: Callable[..., Any], elems: Any, initializer: Any, parallel: int | None, back_prop: bool, scope: str, backwards: bool) -> Any:
    """The folds, from the first row or from the last."""

    def build() -> Any:
        with name_scope(scope):
            rows = _Rows(elems)
            count = rows.count
            if initializer is None:
                start = rows(count - 1 if backwards else 0)
                first: Any = count - 1 if backwards else constant(1, int32)
            else:
                start = nest.map_structure(convert_to_tensor, initializer)
                first = count if backwards else constant(0, int32)
            if backwards:
                _, results = while_loop(
                    lambda i, _: i > 0, lambda i, a: (i - 1, fn(a, rows(i - 1))), (first, start), parallel_iterations=parallel or 10
                )
            else:
                _, results = while_loop(
                    lambda i, _: i < count, lambda i, a: (i + 1, fn(a, rows(i))), (first, start), parallel_iterations=parallel or 10
                )
            return _finished(results, back_prop)

    return derived(scope, build, elems, initializer)


def foldl(
    fn: Callable[..., Any],
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int | None = None,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
) -> Any:
    """The result of `a = fn(a, row)` for all rows of `elems`, from the first on.

    Args:
        fn: takes the value so far and a row.
        elems: a tensor, or (nested) tensors, of the same first size.
        initializer: the value before the first call; the first row if None.
        parallel_iterations: the number of calls that may overlap; 10 by default.
        back_prop: False stops gradients at the result.
        swap_memory: without effect.
        name: the name scope.
    """
    del swap_memory
    return _fold(fn, elems, initializer, parallel_iterations, back_prop, name or "foldl", backwards=False)


def foldr(
    fn: Callable[..., Any],
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int | None = None,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
) -> Any:
    """The result of `a = fn(a, row)` for all rows of `elems`, from the last on; see `foldl`."""
    del swap_memory
    return _fold(fn, elems, initializer, parallel_iterations, back_prop, name or "foldr", backwards=True)


def scan(
    fn: Callable[..., Any],
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    reverse: bool = False,
    name: str | None = None,
) -> Any:
    """All values of `a = fn(a, row)` for the rows of `elems`, stacked.

    Args:
        fn: takes the value so far and a row.
        elems: a tensor, or (nested) tensors, of the same first size.
        initializer: the value before the first call; the first row if None, which is the first value then.
        parallel_iterations: the number of calls that may overlap.
        back_prop: False stops gradients at the results.
        swap_memory: without effect.
        infer_shape: all values have the same shape.
        reverse: start from the last row; the values are in the order of the rows.
        name: the name scope.
    """
    del swap_memory

    def build() -> Any:
        with name_scope(name or "scan"):
            rows = _Rows(elems)
            count = rows.count
            first: Any = count - 1 if reverse else constant(0, int32)
            start = rows(first) if initializer is None else nest.map_structure(convert_to_tensor, initializer)
            flat = nest.flatten(start)
            arrays = [TensorArray(tensor.dtype, count, element_shape=tensor.shape if infer_shape else None) for tensor in flat]
            if initializer is None:
                arrays = [array.write(first, value) for array, value in zip(arrays, flat, strict=True)]
                first = first - 1 if reverse else first + 1

            def one(i: Any, a: Any, arrays: list[TensorArray]) -> Any:
                a = fn(a, rows(i))
                nest.assert_same_structure(start, a, check_types=False)
                written = [array.write(i, value) for array, value in zip(arrays, nest.flatten(a), strict=True)]
                return i - 1 if reverse else i + 1, nest.pack_sequence_as(start, nest.flatten(a)), written

            def more(i: Any, *_: Any) -> Any:
                return i >= 0 if reverse else i < count

            _, _, after = while_loop(more, one, (first, start, arrays), parallel_iterations=parallel_iterations)
            return _finished(_stacked(start, after, rows.known), back_prop)

    return derived("scan", build, elems, initializer)
