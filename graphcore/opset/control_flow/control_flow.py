"""Control-flow ops of branches and loops, which a dataflow engine runs by frames and iterations.

The kernels compute one activation. A value of a branch that was not taken is `DEAD`. Frames and iterations belong to the engine: a kernel
passes a value that enters a loop unchanged.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from graphcore.attrs import attr_text
from graphcore.errors import AbortedError
from graphcore.inference import same_defined_shape
from graphcore.inference.alternatives import common_shape
from graphcore.inference.shape_fns.common_shape_fns import no_outputs, unchanged_shape, unchanged_shape_with_rank
from graphcore.kernel_context import DEAD
from graphcore.opset.framework.block import Example, InferenceContext, Kernel, KernelContext, define_op, no_registered_gradient, op
from graphcore.opset.framework.gradient_text import scalar, vector
from graphcore.opset.framework.kernels import invalid, pass_through
from graphcore.registry import KernelFactory, ShapeFn

_X: Final = [[-3.0, -2.0, -1.0], [1.0, 2.0, 3.5]]
_NO_GRADIENT: Final = no_registered_gradient("a branch or a loop is differentiated as a whole, which takes the graph around this node")
_NO_NUMBERS: Final = no_registered_gradient("it gives no number")
_FRAME: Final = {"frame_name": "loop"}
_NO_SCALARS: Final = f"""
    numbers = {vector("int32", 0, 1)}
    index = PlaceholderWithDefault[dtype=int32, shape=<unknown>](numbers)
    condition = Cast[SrcT=int32, DstT=bool](index)
"""


def _on_values_and_variables(
    signature: str,
    doc: str,
    *examples: Example,
    shape: ShapeFn,
    kernel: KernelFactory = pass_through,
    variable_shape: ShapeFn | None = None,
    allows_uninitialized_input: bool = False,
    failures: Sequence[str] = (),
) -> None:
    """Register a control-flow op on values, and its `Ref` variant on variables.

    Args:
        signature: the signature with `{T}` for a forwarded value, and `{N*T}` for a list of them.
        doc: the docstring, with `{value}` for the value or the variable.
        examples: the examples.
        shape: the shape function.
        kernel: the kernel.
        variable_shape: the shape function on variables, if it is another one.
        allows_uninitialized_input: the variable may be uninitialised.
        failures: uses that fail, with `{prefix}` for the op's.
    """
    for prefix, value, one, several in (("", "`data`", "T", "N*T"), ("Ref", "the variable", "Ref(T)", "Ref(N*T)")):
        whole = prefix + signature.replace("{T}", one).replace("{N*T}", several)
        define_op(
            whole.partition("[")[0],
            doc.replace("{value}", value),
            signature=whole,
            shape=variable_shape if prefix and variable_shape else shape,
            role="control",
            kernel=kernel,
            gradient=_NO_GRADIENT,
            examples=examples,
            failures=[use.replace("{prefix}", prefix) for use in failures],
            allows_uninitialized_input=bool(prefix) and allows_uninitialized_input,
        )


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


_on_values_and_variables(
    "Switch[T:type](data:{T}, pred:bool) -> (output_false:{T}, output_true:{T})",
    """Forwards {value} to `output_true` if `pred` is true, else to `output_false`; the other is dead.

    data: the input to forward
    pred: a scalar
    output_false: {value} if `pred` is false, else dead
    output_true: {value} if `pred` is true, else dead
    """,
    Example([_X, True]),
    Example([_X, False]),
    shape=_switch_shape,
    kernel=_switch,
    allows_uninitialized_input=True,
    failures=[
        f"""{_NO_SCALARS}
        data = VariableV2[dtype=int32, shape=[2]]()
        assign = Assign[T=int32](data, numbers)
        switch = {{prefix}}Switch[T=int32](assign, condition)
    """
    ],
)


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
    failures = (
        f"""{_NO_SCALARS}
        switch = _SwitchN[T=int32, num_outs=2](index, index)
        """,
    )

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


_on_values_and_variables(
    "Merge[T:type, N:int >= 1](inputs:{N*T}) -> (output:{T}, value_index:int32)",
    """Forwards its live input: the end of a conditional, or the beginning of an iteration.

    inputs: all dead but one; of several live ones the first to arrive
    output: that input
    value_index: its index
    """,
    Example([[_X]], outputs=[_X, 0]),
    shape=_merge_shape,
    kernel=_merge,
)


def _enter_shape(c: InferenceContext) -> None:
    # A loop variable may change its shape between iterations; a handle always refers to the same resource.
    handles = c.input_handle_shapes_and_types(0)
    c.set_output(0, c.input(0) if c.attr("is_constant") and not handles else c.unknown_shape())
    if handles:
        c.set_output_handle_shapes_and_types(0, handles)


_on_values_and_variables(
    "Enter[T:type, frame_name:string, is_constant:bool = false, parallel_iterations:int = 10](data:{T}) -> (output:{T})",
    """Forwards {value} into the frame of a loop: to its first iteration, or to all if it is constant.

    frame_name: the loop; nodes that enter by the same name from the same frame enter the same loop.
    is_constant: if true, {value} is the same in all iterations.
    parallel_iterations: the number of iterations that may overlap.
    """,
    Example([_X], _FRAME),
    Example([_X], {"frame_name": "loop", "is_constant": True}),
    shape=_enter_shape,
    variable_shape=unchanged_shape,
)
_on_values_and_variables(
    "Exit[T:type](data:{T}) -> (output:{T})", "Forwards {value} out of the frame of a loop.", Example([_X]), shape=unchanged_shape
)
_on_values_and_variables(
    "NextIteration[T:type](data:{T}) -> (output:{T})",
    "Forwards {value} to the next iteration of its loop.",
    Example([_X]),
    shape=unchanged_shape,
)


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
    exit_without_error: in TensorFlow, ends the process silently; here the run ends with ABORTED all the same.
    """

    signature = "Abort[error_msg:string = '', exit_without_error:bool = false]() -> ()"
    shape = no_outputs
    gradient = _NO_NUMBERS
    examples = (Example([], {"error_msg": "no way"}),)
    failures = examples

    def kernel(k: KernelContext) -> Kernel:
        text = attr_text(k.attr("error_msg"))

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
    failures = (
        f"""{_NO_SCALARS}
        variable = VariableV2[dtype=int32, shape=[2]]()
        assign = Assign[T=int32](variable, numbers)
        one = {scalar("int32", 1)}
        select = RefSelect[N=1, T=int32](one, assign)
        """,
    )

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
