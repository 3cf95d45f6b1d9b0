"""Stacks of tensors, by which loops pass values from the forward to the backward pass."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from graphcore.attrs import attr_text
from graphcore.inference.shape_fns.common_shape_fns import no_outputs, unknown_shape
from graphcore.kernel_context import KernelContext
from graphcore.opset.framework.block import Example, InferenceContext, Kernel, no_registered_gradient, op
from graphcore.opset.framework.families import Storing
from graphcore.opset.framework.gradient_text import scalar
from graphcore.opset.framework.kernels import invalid

_X: Final = [[-3.0, -2.0, -1.0], [1.0, 2.0, 3.5]]
_NO_SPACE: Final = f"zero = {scalar('int32', 0)}\nstack = StackV2[elem_type=int32](zero)\n"
_NO_GRADIENT: Final = no_registered_gradient("a stack hands values from a loop to its gradient, and is not differentiated itself")


class Stack:
    """The value of a stack handle.

    Attributes:
        name: the name in error texts.
        limit: the most values, -1 for any number.
        values: the values, the last one on top.
        shape: the shape of the handle itself, in TensorFlow a pair of strings.
    """

    __slots__ = ("closed", "limit", "name", "values")

    shape: tuple[int, ...] = (2,)

    def __init__(self, name: str, limit: int) -> None:
        self.name = name
        self.limit = limit
        self.values: list[Any] = []
        self.closed = False

    @property
    def nbytes(self) -> int:
        """The bytes that the values take."""
        return sum([value.nbytes for value in self.values])


def _stack(k: KernelContext, handle: Any) -> Stack:
    if not isinstance(handle, Stack):
        raise invalid(k, f"required the handle of a stack, got {type(handle).__name__}")
    if handle.closed:
        raise invalid(k, f"Stack[{handle.name}] has already been closed.")
    return handle


@op
class StackV2:
    """An empty stack with the lifetime of the run.

    max_size: the most values; negative for any number
    elem_type: the type of the values.
    stack_name: for error texts.
    """

    signature = "StackV2[elem_type:type, stack_name:string = ''](max_size:int32) -> (handle:resource)"
    stateful = True
    gradient = _NO_GRADIENT
    examples = (Example([-1], {"elem_type": "float"}),)
    failures = (Example([[1, 2]], {"elem_type": "float"}),)

    def shape(c: InferenceContext) -> None:
        c.set_output(0, c.vector(2))

    def kernel(k: KernelContext) -> Kernel:
        label = attr_text(k.attr("stack_name")) or k.node_name

        def make(size: Any) -> Stack:
            if np.ndim(size) > 0:
                raise invalid(k, f"Stack size must be a scalar, but had shape: {list(size.shape)}")
            return Stack(label, int(size))

        return make


def _pushed_shape(c: InferenceContext) -> None:
    c.set_output(0, c.input(1))


@op
class StackPushV2(Storing):
    """Pushes a value onto a stack and returns it.

    elem: the value
    swap_memory: ignored.
    """

    signature = "StackPushV2[T:type, swap_memory:bool = false](handle:resource, elem:T) -> (output:T)"
    stateful = True
    shape = _pushed_shape
    gradient = _NO_GRADIENT
    examples = (Example([_X, _X], outputs=[_X], differentiable=False),)
    failures = (_NO_SPACE + "push = StackPushV2[T=int32](stack, zero)",)

    def kernel(k: KernelContext) -> Kernel:
        def push(handle: Any, elem: Any) -> Any:
            stack = _stack(k, handle)
            if 0 <= stack.limit <= len(stack.values):
                raise invalid(k, f"Stack[{stack.name}] overflowed its max_size ({stack.limit})")
            stack.values.append(elem)
            return elem

        return push


@op
class StackPopV2(Storing):
    """Pops the value from the top of a stack."""

    signature = "StackPopV2[elem_type:type](handle:resource) -> (elem:elem_type)"
    stateful = True
    shape = unknown_shape
    gradient = _NO_GRADIENT
    examples = (Example([_X], {"elem_type": "float"}, differentiable=False),)
    failures = (_NO_SPACE + "pop = StackPopV2[elem_type=int32](stack)",)

    def kernel(k: KernelContext) -> Kernel:
        def pop(handle: Any) -> Any:
            stack = _stack(k, handle)
            if not stack.values:
                raise invalid(k, f"Stack[{stack.name}] is empty when calling Pop().")
            return stack.values.pop()

        return pop


@op
class StackCloseV2(Storing):
    """Releases the values of a stack, which cannot be used any more."""

    signature = "StackCloseV2(handle:resource) -> ()"
    stateful = True
    shape = no_outputs
    gradient = _NO_GRADIENT
    examples = (Example([_X]),)
    failures = (_NO_SPACE + "closed = StackCloseV2(stack)\nagain = StackCloseV2(stack) @ closed",)

    def kernel(k: KernelContext) -> Kernel:
        def close(handle: Any) -> None:
            stack = _stack(k, handle)
            stack.closed, stack.values = True, []

        return close
