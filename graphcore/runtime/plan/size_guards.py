"""Refusal of allocations: tensors that exceed the limit are refused before they are made.

Known shapes are checked before the run. Otherwise the kernel of a node with an output that may exceed its inputs is guarded: the op's shape
function is called if, and only if, the actual inputs may give such an output.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

from graphcore.attrs import Array
from graphcore.dtypes import DType
from graphcore.errors import GraphError, ResourceExhaustedError
from graphcore.graph.model.node import Node, Tensor
from graphcore.inference import InferenceContext, ShapeHandle, handle_to_shape
from graphcore.inference.handles import DimensionHandle, is_fully_defined, shape_of_sizes
from graphcore.inference.partial_types import PartialValue
from graphcore.inference.partial_values import as_shape_handle
from graphcore.inference.shape_fns.broadcast import broadcast_binary_op_shape_fn
from graphcore.registry import Kernel
from graphcore.runtime.core.kernel_checks import too_large
from graphcore.runtime.core.sizes import tensor_bytes
from graphcore.runtime.plan.schedule import Schedule
from graphcore.shapes import Shape
from graphcore.support.memory_limits import memory_limit

_HIGHEST_RANK_OF_SIZES: Final = 2
"""The highest rank of values that give sizes: numbers, shapes, and paddings with two numbers a dimension."""
_LONGEST_VALUE: Final = 64
"""The most elements of a value that gives sizes; longer ones are left to the shape function."""
_EMPTY: Final = 1 << 62
"""The assumed size of an array without elements, since arrays made of it may have many."""


def guard_sizes(schedule: Schedule, *, any_large: bool = True) -> None:
    """Refuse outputs beyond the allocation limit, at once for known shapes, else before they are made.

    Args:
        any_large: False if all known shapes are small.

    Raises:
        ResourceExhaustedError: a tensor exceeds the limit.
    """
    for operation in schedule.operations:
        node = operation.node
        if any_large:
            refuse_known(node)
        if operation.kernel is not None:
            operation.kernel = guarded(node, operation.kernel, [value.constant for value in operation.inputs])
    for value in schedule.results if any_large else ():
        refuse_fetched(value.tensor)


def refuse_known(node: Node) -> None:
    """Check the known outputs of `node` against the allocation limit.

    Raises:
        ResourceExhaustedError: one exceeds it.
    """
    if not node.registration.traits.returns_view:
        for tensor in node.outputs:
            refuse_fetched(tensor)


def refuse_fetched(tensor: Tensor) -> None:
    """Check a fetched tensor, which is a separate array, against the allocation limit.

    Raises:
        ResourceExhaustedError: it exceeds the limit.
    """
    size = tensor_bytes(tensor)
    if size is not None and size > memory_limit() and not tensor.dtype.is_ref:
        raise _too_large(tensor.node, tensor.shape, tensor.dtype, size)


def guarded(node: Node, kernel: Kernel, constants: Sequence[Array | None]) -> Kernel:
    """Guard `kernel` against outputs beyond the allocation limit, for shapes known only at run time.

    Args:
        constants: the inputs that are the same in every run.
    """
    if getattr(kernel, "has_own_limit", False) or not _is_of_unknown_size(node):
        return kernel
    requested = _requested_slots(node, constants)
    if not requested and not _may_outgrow(node):
        return kernel
    guard = _Guard(node, constants, requested)
    is_of_both = not requested and node.registration.shape_fn is broadcast_binary_op_shape_fn
    call = _guarding_both(guard, kernel) if is_of_both else _guarding(guard, kernel, bool(requested))
    call.__module__ = getattr(kernel, "__module__", None) or "numpy"  # buffer reuse depends on the origin of a kernel
    call.__dict__["__wrapped__"] = kernel
    return call


def _guarding_both(guard: _Guard, kernel: Kernel) -> Kernel:
    """Guard `kernel` with two broadcast inputs, cheaply, since loops call it often."""
    most = guard.most

    def call(first: Any, second: Any) -> Any:
        if first.size * second.size > most:
            guard.check((first, second))
        return kernel(first, second)

    return call


def _guarding(guard: _Guard, kernel: Kernel, reads_values: bool) -> Kernel:
    power, most = guard.power, guard.most

    def call(*values: Any) -> Any:
        total = 0
        for value in values:
            total += value.size or _EMPTY
        if total**power > most or (reads_values and guard.may_be_large(total, values)):
            guard.check(values)
        return kernel(*values)

    return call


class _Guard:
    """A check before a kernel runs.

    Attributes:
        most: the elements within the limit; fewer if attrs may multiply the inputs.
        power: if all inputs together have `n` elements, an output has at most `n ** power`, for any shapes.
    """

    __slots__ = ("_constants", "_last_shapes", "_node", "_requested", "most", "power")

    def __init__(self, node: Node, constants: Sequence[Array | None], requested: Sequence[int]) -> None:
        self._node = node
        self._constants = constants
        self._requested = requested
        largest = max([_itemsize(dtype) for dtype in node.output_types], default=1)
        numbers = [number for value in node.attr.values() if isinstance(value, tuple) for number in value if isinstance(number, int)]
        self.most = memory_limit() // largest // math.prod([abs(number) + 1 for number in numbers])
        self.power = max(2, len(node.inputs)) if node.registration.traits.cost == "contraction" else 2
        self._last_shapes: tuple[Any, ...] | None = None

    def may_be_large(self, total: int, values: Sequence[Any]) -> bool:
        """True iff the input values may give a size beyond the limit."""
        for slot in self._requested:
            value = values[slot]
            if value.dtype.kind not in "iu" or value.size > _LONGEST_VALUE:
                return True
            for number in value.reshape(-1).tolist():
                total *= (abs(number) + 1) ** 2  # the length of a diagonal determines two dimensions
        return total > self.most

    def check(self, values: Sequence[Any]) -> None:
        """Check the outputs against the allocation limit.

        Raises:
            ResourceExhaustedError: one exceeds it.
        """
        shapes = tuple([value.shape for value in values])
        if not self._requested and shapes == self._last_shapes:
            return
        node = self._node
        inputs = dict(enumerate(self._constants)) | {slot: values[slot] for slot in self._requested}
        context = InferenceContext(
            node.name,
            node.op_def,
            node.attr,
            [shape_of_sizes(shape) for shape in shapes],
            input_tensor=lambda slot: _on_host(inputs.get(slot)),
            input_partial_shape=lambda slot: _as_shape(_on_host(inputs.get(slot))),
            num_outputs=len(node.outputs),
        )
        assert node.registration.shape_fn is not None  # it has a guard
        try:
            context.run(node.registration.shape_fn)
        except GraphError:
            return  # the kernel reports inconsistent inputs
        for handle, dtype in zip(context.outputs, node.output_types, strict=True):
            shape = Shape(None) if handle is None else handle_to_shape(handle)
            size = shape.num_elements * _itemsize(dtype)
            if size > memory_limit():
                raise _too_large(node, shape, dtype, size)
        self._last_shapes = shapes


def _is_of_unknown_size(node: Node) -> bool:
    """True if only the shape function of `node` can give the size of its output."""
    registration = node.registration
    if registration.shape_fn is None or registration.is_function or not node.inputs:
        return False
    if registration.traits.returns_view and registration.traits.memory != "broadcast view":
        return False
    if all(is_fully_defined(shape) for shape in node.output_handles):
        return False
    return not any(dtype.is_ref or dtype.as_numpy is None for dtype in (*node.input_types, *node.output_types))


def _requested_slots(node: Node, constants: Sequence[Array | None]) -> list[int]:
    """The inputs whose values the shape function reads, except constants."""
    shape_fn = node.registration.shape_fn
    if not node.requested_values or shape_fn is None:
        return []
    inputs = [_handle(tensor) for tensor in node.inputs]
    may_be_sizes = [slot for slot, shape in enumerate(inputs) if constants[slot] is None and shape.rank <= _HIGHEST_RANK_OF_SIZES]
    if not may_be_sizes:
        return []
    context = InferenceContext(node.name, node.op_def, node.attr, inputs, num_outputs=len(node.outputs))
    with suppress(GraphError):
        context.run(shape_fn)
        requested = context.requested_input_tensors | context.requested_input_tensors_as_partial_shapes
        return [slot for slot in may_be_sizes if slot in requested]
    return may_be_sizes


def _may_outgrow(node: Node) -> bool:
    """True iff outputs of `node` may exceed each of its inputs by shape, as far as known."""
    if len(node.output_handles) == 1:  # most outputs have the shape of an input
        dims, size = node.output_handles[0].dims, _itemsize(node.output_types[0])
        for tensor in node.inputs if dims is not None else ():
            if _handle(tensor).dims is dims and size <= _itemsize(tensor.dtype):
                return False
    inputs = [(_handle(tensor), _itemsize(tensor.dtype)) for tensor in node.inputs]
    outputs = [(shape, _itemsize(dtype)) for shape, dtype in zip(node.output_handles, node.output_types, strict=False)]
    if node.registration.shape_fn is broadcast_binary_op_shape_fn and outputs[0][1] <= min(inputs[0][1], inputs[1][1]):
        return _may_outgrow_both(inputs[0][0], inputs[1][0])
    return not all(any(_covers(*source, *output) for source in inputs) for output in outputs)


def _handle(tensor: Tensor) -> ShapeHandle:
    handles = tensor.node.output_handles
    return handles[tensor.index] if tensor.index < len(handles) else ShapeHandle()


def _itemsize(dtype: DType) -> int:
    return 1 if dtype.as_numpy is None else dtype.as_numpy.itemsize


def _covers(source: ShapeHandle, source_itemsize: int, shape: ShapeHandle, itemsize: int) -> bool:
    """True iff all factors of `shape` are in `source`, so that it is not larger."""
    if source is shape:
        return itemsize <= source_itemsize
    if source.dims is None or shape.dims is None:
        return False
    if source.dims is shape.dims:
        return itemsize <= source_itemsize
    source_dims, size = _parts(source.dims)
    wanted, wanted_size = _parts(shape.dims)
    if wanted_size * itemsize > size * source_itemsize:
        return False
    for dim in wanted:
        if dim not in source_dims:
            return False
        source_dims.remove(dim)
    return True


def _parts(dims: tuple[DimensionHandle, ...]) -> tuple[list[DimensionHandle], int]:
    """The unknown dimensions, and the product of the known ones."""
    product = 1
    unknown: list[DimensionHandle] = []
    for dim in dims:
        if dim.value < 0:
            unknown.append(dim)
        else:
            product *= dim.value
    return unknown, product


def _may_outgrow_both(x: ShapeHandle, y: ShapeHandle) -> bool:
    """True iff the broadcast of two shapes may exceed both: each must be smaller in some dimension."""
    if x is y:
        return False
    if x.dims is None or y.dims is None:
        return not (x.rank == 0 or y.rank == 0)
    rank = max(len(x.dims), len(y.dims))
    ones = [None] * rank
    left = right = either = 0
    for a, b in zip([*ones, *x.dims][-rank:], [*ones, *y.dims][-rank:], strict=True) if rank else ():
        mine, theirs = 1 if a is None else a.value, 1 if b is None else b.value
        if a is b or (mine == theirs and mine >= 0):
            continue
        if theirs == 1 or mine > 1:
            left += 1
        elif mine == 1 or theirs > 1:
            right += 1
        else:
            either += 1
    return bool(left and right) or (either > 0 and left + right + either > 1)


def _on_host(value: Any) -> Array | None:
    array: Array | None = value.get() if hasattr(value, "get") else value
    return array


def _as_shape(value: Array | None) -> ShapeHandle | None:
    if value is None or value.ndim != 1 or value.dtype.kind not in "iu":
        return None
    return as_shape_handle(PartialValue(tuple(value.tolist())))


def _too_large(node: Node, shape: Shape, dtype: DType, size: int) -> ResourceExhaustedError:
    return too_large(node, f"has shape {shape} and type {dtype.text}", size)
