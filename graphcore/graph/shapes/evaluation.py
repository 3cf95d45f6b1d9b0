"""Evaluation of single nodes before a run: by kernels, or by the static shapes of inputs."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from graphcore.attrs import Array, Func, TensorValue
from graphcore.errors import InvalidArgumentError
from graphcore.graph.model.node import Node, Tensor
from graphcore.kernel_context import KernelContext
from graphcore.plumbing import ARG, CONTROL_FLOW, FAKE_PARAM, FEEDABLE, RECV, RETVAL, SEND
from graphcore.shapes import Shape
from graphcore.support.budget import BudgetUsedUpError, budget_of_block, one_budget

SCOPED_ALLOCATOR_ATTR: Final = "_scoped_allocator"
_MOST_STRINGS: Final = 1 << 12
_MOST_STRING_BYTES: Final = 1 << 12
"""Replacing every match of a pattern may take the square of the length of a text."""
_GIVEN_BY_THE_RUN: Final = CONTROL_FLOW | FEEDABLE | ARG | RETVAL | SEND | RECV | {FAKE_PARAM}
"""Ops with kernels whose outputs are nevertheless fed, received, or chosen by the run."""


def kernel_context(node: Node, constants: tuple[Array | None, ...]) -> KernelContext:
    """The context of the kernel of `node`; `constants` are the inputs that are the same in every run."""
    return KernelContext(
        xp=np,
        attrs=node.attr,
        node_name=node.name,
        op=node.op,
        input_types=node.input_types,
        output_types=node.output_types,
        input_shapes=tuple([tensor.shape for tensor in node.inputs]),
        constants=constants,
        source=node.source,
    )


def may_be_evaluated(node: Node) -> bool:
    """True iff the node may be evaluated before a run: it is pure and needs only its inputs."""
    return node.registration.traits.pure and needs_only_inputs(node)


def needs_only_inputs(node: Node) -> bool:
    """True iff the node has no state, and a kernel that needs only its inputs."""
    registration = node.registration
    if node.op in _GIVEN_BY_THE_RUN or node.op_def.is_stateful or node.error is not None:
        return False
    if registration.kernel is None or registration.is_function or SCOPED_ALLOCATOR_ATTR in node.attr:
        return False
    for dtype in (*node.input_types, *node.output_types):
        if dtype.is_ref or dtype.as_numpy is None:
            return False
    for value in node.attr.values():  # noqa: SIM110 - called for every node that may be constant; a generator takes 1.5 times as long
        if isinstance(value, Func):
            return False
    return True


def const_array(node: Node) -> Array | None:
    """The value of a Const; None if its type differs from the declared one, an error of the run."""
    value = node.attr.get("value")
    return value.array if isinstance(value, TensorValue) and value.dtype is node.output_types[0] else None


def evaluate_node(node: Node, inputs: Sequence[Array], shape_of: Callable[[Tensor], Shape]) -> list[Any]:
    """The outputs of the kernel of `node`, which may be evaluated. All evaluation outside of runs is here, within one budget.

    Raises:
        BudgetUsedUpError: they take more memory than is left, or the time is used up.
        Exception: an error of the kernel.
    """
    factory = node.registration.kernel
    assert factory is not None
    budget = budget_of_block()
    if budget is None:
        with one_budget():
            return evaluate_node(node, inputs, shape_of)
    start = time.perf_counter()
    try:
        budget.charge(_bytes_needed(node, inputs, shape_of))
        with np.errstate(all="ignore"):
            result = factory(kernel_context(node, tuple(inputs)))(*inputs)
    finally:
        budget.charge_since(start)
    if not node.outputs:
        return []
    return list(result) if isinstance(result, tuple | list) else [result]


def _bytes_needed(node: Node, inputs: Sequence[Array], shape_of: Callable[[Tensor], Shape]) -> int:
    """The most bytes of the outputs of `node`.

    Raises:
        BudgetUsedUpError: nothing tells their size, or the strings are too long.
    """
    traits = node.registration.traits
    for value in inputs:
        if value.dtype.hasobject:
            _check_strings(inputs)
            break
    if traits.returns_view:
        return 0
    size = None if traits.most_bytes is None else traits.most_bytes(node.attr, inputs)
    if size is not None:
        return size
    total = 0
    for tensor in node.outputs:
        count = shape_of(tensor).num_elements
        if count < 0:
            raise BudgetUsedUpError("the size of its value is known only when it runs")
        dtype = tensor.dtype.as_numpy
        total += count * (1 if dtype is None else dtype.itemsize)
    return total


def _check_strings(inputs: Sequence[Array]) -> None:
    """Check that strings are few and short, since kernels in Python take a microsecond for each."""
    count, size = 0, 0
    for value in inputs:
        if value.dtype.hasobject:
            count += value.size
            size += sum([len(text) for text in value.reshape(-1).tolist()]) if count <= _MOST_STRINGS else 0
    if count > _MOST_STRINGS or size > _MOST_STRING_BYTES:
        raise BudgetUsedUpError(
            f"its inputs are {count:,} strings of {size:,} bytes in all; {_MOST_STRINGS:,} of {_MOST_STRING_BYTES:,} are evaluated"
        )


def values_from_shapes(node: Node, shapes: Sequence[Shape]) -> list[Array] | None:
    """The outputs of a node determined by the shapes of its inputs; None if there are none.

    Raises:
        InvalidArgumentError: a number is too large for the type of the output.
    """
    numbers_from = node.registration.traits.numbers_from_shapes
    numbers = None if numbers_from is None or not shapes else numbers_from(shapes)
    if numbers is None:
        return None
    return [_as_array(number, node.output_types[i].as_numpy) for i, number in enumerate(numbers[: len(node.output_types)])]


def _as_array(number: Any, dtype: np.dtype[Any] | None) -> Array:
    try:
        return np.asarray(number, np.int32 if dtype is None else dtype)
    except OverflowError:
        raise InvalidArgumentError(f"Value is out of {dtype} range: {number}") from None
