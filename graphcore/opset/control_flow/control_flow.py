"""Control-flow ops of branches and loops, which a dataflow engine runs by frames and iterations.

The kernels compute one activation. A value of a branch that was not taken is `DEAD`. Frames and iterations belong to the engine: to a
kernel, a value that enters a loop is the value itself.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from graphcore.errors import AbortedError
from graphcore.inference import same_defined_shape
from graphcore.inference.alternatives import common_shape
from graphcore.inference.shape_fns.common_shape_fns import no_outputs, unchanged_shape, unchanged_shape_with_rank
from graphcore.kernel_context import DEAD
from graphcore.opset.framework.block import Example, InferenceContext, Kernel, KernelContext, no_registered_gradient, op
from graphcore.opset.framework.kernels import invalid, pass_through

_X: Final = [[-3.0, -2.0, -1.0], [1.0, 2.0, 3.5]]
_NO_GRADIENT: Final = no_registered_gradient("a branch or a loop is differentiated as a whole, which takes the graph around this node")
_NO_NUMBERS: Final = no_registered_gradient("it gives no number")
_FRAME: Final = {"frame_name": "loop"}
_ENTER_ATTRS: Final = "frame_name:string, is_constant:bool = false, parallel_iterations:int = 10"


def _switch_shape(c: InferenceContext) -> None:
    c.with_rank(c.input(1), 0)
    handles = c.input_handle_shapes_and_types(0)
    for i in range(c.num_outputs):
        c.set_output(i, c.input(0))
        if handles:
            c.set_output_handle_shapes_and_types(i, handles)


def _switch(k: KernelContext) -> Kernel:
    def switch(data: Any, pred: Any) -> tuple[Any, Any]:
        if pred.shape:
            raise invalid(k, f"The second input must be a scalar, but it has shape {list(pred.shape)}")
        return (DEAD, data) if pred else (data, DEAD)

    return switch


@op
class Switch:
    """Forwards `data` to `output_true` if `pred` is true, else to `output_false`; the other is dead.

    data: the value to forward
    pred: a scalar
    output_false: `data` if `pred` is false, else dead
    output_true: `data` if `pred` is true, else dead
    """

    signature = "Switch[T:type](data:T, pred:bool) -> (output_false:T, output_true:T)"
    shape = _switch_shape
    role = "control"
    kernel = _switch
    gradient = _NO_GRADIENT
    examples = (Example([_X, True]), Example([_X, False]))


@op
class RefSwitch:
    """Forwards a variable to `output_true` if `pred` is true, else to `output_false`; the other is dead.

    data: the variable
    pred: a scalar
    output_false: the variable if `pred` is false, else dead
    output_true: the variable if `pred` is true, else dead
    """

    signature = "RefSwitch[T:type](data:Ref(T), pred:bool) -> (output_false:Ref(T), output_true:Ref(T))"
    allows_uninitialized_input = True
    shape = _switch_shape
    role = "control"
    kernel = _switch
    gradient = _NO_GRADIENT
    examples = (Example([_X, True]), Example([_X, False]))


@op
class _SwitchN:
    """Forwards `data` to one of its outputs; the others are dead.

    data: the value to forward
    output_index: a scalar; an index out of range selects the last
    outputs: `data` at that index, the others dead
    """

    signature = "_SwitchN[num_outs:int >= 1, T:type](data:T, output_index:int32) -> (outputs:num_outs*T)"
    shape = _switch_shape
    gradient = _NO_GRADIENT
    examples = (Example([_X, 1], {"num_outs": 3}), Example([_X, 7], {"num_outs": 3}))

    def kernel(k: KernelContext) -> Kernel:
        count = len(k.output_types)

        def switch(data: Any, output_index: Any) -> Any:
            if output_index.shape:
                raise invalid(k, f"The second input must be a scalar, but it has shape {list(output_index.shape)}")
            taken = int(output_index)
            taken = taken if 0 <= taken < count else count - 1
            return tuple([data if i == taken else DEAD for i in range(count)]) if count != 1 else data

        return switch


def _merge_shape(c: InferenceContext) -> None:
    c.set_output(0, common_shape(c.inputs))  # any of them may be forwarded
    c.set_output(1, c.scalar())


def _merge(k: KernelContext) -> Kernel:
    indices = [np.int32(i) for i in range(len(k.input_types))]

    def merge(*inputs: Any) -> tuple[Any, Any]:
        for index, value in zip(indices, inputs, strict=True):
            if value is not DEAD:
                return value, index
        return DEAD, DEAD

    return merge


@op
class Merge:
    """Forwards its live input: the end of a conditional, or the beginning of an iteration.

    inputs: all dead but one; of several live ones the first to arrive
    output: that input
    value_index: its index
    """

    signature = "Merge[T:type, N:int >= 1](inputs:N*T) -> (output:T, value_index:int32)"
    shape = _merge_shape
    role = "control"
    kernel = _merge
    gradient = _NO_GRADIENT
    examples = (Example([[_X]], outputs=[_X, 0]),)


@op
class RefMerge:
    """Forwards its live variable.

    inputs: all dead but one; of several live ones the first to arrive
    output: that variable
    value_index: its index
    """

    signature = "RefMerge[T:type, N:int >= 1](inputs:Ref(N*T)) -> (output:Ref(T), value_index:int32)"
    shape = _merge_shape
    role = "control"
    kernel = _merge
    gradient = _NO_GRADIENT
    examples = (Example([[_X]]),)


@op
class Enter:
    """Forwards `data` into the frame of a loop: to its first iteration, or to all if it is constant.

    frame_name: the loop; nodes that enter by the same name from the same frame enter the same loop.
    is_constant: if true, the value is the same in all iterations.
    parallel_iterations: the number of iterations that may overlap.
    """

    signature = f"Enter[T:type, {_ENTER_ATTRS}](data:T) -> (output:T)"
    role = "control"
    kernel = pass_through
    gradient = _NO_GRADIENT
    examples = (Example([_X], _FRAME), Example([_X], {"frame_name": "loop", "is_constant": True}))

    def shape(c: InferenceContext) -> None:
        # A loop variable may change its shape between iterations; a handle always refers to the same resource.
        handles = c.input_handle_shapes_and_types(0)
        c.set_output(0, c.input(0) if c.attr("is_constant") and not handles else c.unknown_shape())
        if handles:
            c.set_output_handle_shapes_and_types(0, handles)


@op
class RefEnter:
    """Forwards a variable into the frame of a loop.

    frame_name: the loop; nodes that enter by the same name from the same frame enter the same loop.
    is_constant: if true, it is forwarded to all iterations.
    parallel_iterations: the number of iterations that may overlap.
    """

    signature = f"RefEnter[T:type, {_ENTER_ATTRS}](data:Ref(T)) -> (output:Ref(T))"
    shape = unchanged_shape
    role = "control"
    kernel = pass_through
    gradient = _NO_GRADIENT
    examples = (Example([_X], _FRAME),)


@op
class Exit:
    """Forwards `data` out of the frame of a loop."""

    signature = "Exit[T:type](data:T) -> (output:T)"
    shape = unchanged_shape
    role = "control"
    kernel = pass_through
    gradient = _NO_GRADIENT
    examples = (Example([_X]),)


@op
class RefExit:
    """Forwards a variable out of the frame of a loop."""

    signature = "RefExit[T:type](data:Ref(T)) -> (output:Ref(T))"
    shape = unchanged_shape
    role = "control"
    kernel = pass_through
    gradient = _NO_GRADIENT
    examples = (Example([_X]),)


@op
class NextIteration:
    """Forwards `data` to the next iteration of its loop."""

    signature = "NextIteration[T:type](data:T) -> (output:T)"
    shape = unchanged_shape
    role = "control"
    kernel = pass_through
    gradient = _NO_GRADIENT
    examples = (Example([_X]),)


@op
class RefNextIteration:
    """Forwards a variable to the next iteration of its loop."""

    signature = "RefNextIteration[T:type](data:Ref(T)) -> (output:Ref(T))"
    shape = unchanged_shape
    role = "control"
    kernel = pass_through
    gradient = _NO_GRADIENT
    examples = (Example([_X]),)


@op
class LoopCond:
    """Forwards the condition of a loop to its Switch nodes.

    input: true to continue
    """

    signature = "LoopCond(input:bool) -> (output:bool)"
    role = "control"
    kernel = pass_through
    gradient = _NO_NUMBERS
    examples = (Example([True], outputs=[True]), Example([False], outputs=[False]))

    def shape(c: InferenceContext) -> None:
        unchanged_shape_with_rank(c, 0)


@op
class ControlTrigger:
    """Does nothing, but is live even if its control inputs are dead."""

    signature = "ControlTrigger() -> ()"
    shape = no_outputs
    role = "control"
    can_fail = False
    gradient = _NO_NUMBERS
    examples = (Example([]),)

    def kernel(k: KernelContext) -> Kernel:
        return lambda: None


@op
class Abort:
    """Ends the run with an error.

    error_msg: the text of the error.
    exit_without_error: in the reference, ends the process silently; here the run ends with ABORTED all the same.
    """

    signature = "Abort[error_msg:string = '', exit_without_error:bool = false]() -> ()"
    shape = no_outputs
    gradient = _NO_NUMBERS
    examples = (Example([], {"error_msg": "no way"}),)

    def kernel(k: KernelContext) -> Kernel:
        message = k.attr("error_msg")
        text = message.decode(errors="backslashreplace") if isinstance(message, bytes) else str(message)

        def abort() -> None:
            raise AbortedError(text or f"Abort node '{k.node_name}' was run", op=k.op, node=k.node_name, source=k.source)

        return abort


@op
class RefSelect:
    """The variable at `index`.

    index: a scalar
    inputs: the variables
    output: one of them
    """

    signature = "RefSelect[T:type, N:int >= 1](index:int32, inputs:Ref(N*T)) -> (output:Ref(T))"
    gradient = no_registered_gradient("it gives a variable; differentiate its value instead")
    examples = (Example([0, [_X]]),)

    def shape(c: InferenceContext) -> None:
        c.with_rank(c.input(0), 0)
        same = all(same_defined_shape(c.input(1), other) for other in c.inputs[2:])
        c.set_output(0, c.input(1) if same else c.unknown_shape())

    def kernel(k: KernelContext) -> Kernel:
        def select(index: Any, *refs: Any) -> Any:
            if index.shape:
                raise invalid(k, f"Index must be a scalar, but it has shape {list(index.shape)}")
            if not 0 <= int(index) < len(refs):
                raise invalid(k, f"Index must be in the range [0, {len(refs)}) but got {int(index)}")
            return refs[int(index)]

        return select
