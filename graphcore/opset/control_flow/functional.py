"""Arguments and returns of function bodies, and ops that call functions."""

from __future__ import annotations

from typing import Any, Final

from graphcore.attrs import Attrs, Func
from graphcore.dtypes import float32
from graphcore.errors import InvalidArgumentError
from graphcore.functions.canonicalize import CALL_EXECUTOR_ATTR, EXECUTOR_ATTR
from graphcore.inference import ShapeAndType
from graphcore.inference.shape_fns.common_shape_fns import called_function_shape, no_outputs
from graphcore.opset.control_flow.function_calls import INVERSE, NO_INVERSE, called, func_attr, types_attr
from graphcore.opset.framework.block import Example, InferenceContext, Kernel, KernelContext, no_registered_gradient, op
from graphcore.shapes import Shape, as_shape

_X: Final = [[1.0, -2.0], [3.0, 0.5]]
_DY: Final = [[1.0, 1.0], [2.0, 4.0]]


def _arg_shape(c: InferenceContext) -> None:
    shapes = c.attrs.get("_output_shapes")
    if shapes is None:
        c.set_output(0, c.unknown_shape())
        return
    if not isinstance(shapes, tuple) or not shapes or not isinstance(shapes[0], Shape):
        raise InvalidArgumentError('Invalid "_output_shapes" attribute value for _Arg node: no shapes specified', attr="_output_shapes")
    c.set_output(0, c.make_shape_from_shape(shapes[0]))
    dtypes, pointed = types_attr(c.attrs, "_handle_dtypes"), c.attrs.get("_handle_shapes")
    if dtypes and isinstance(pointed, tuple) and len(pointed) == len(dtypes):
        data = [ShapeAndType(c.make_shape_from_shape(as_shape(shape)), dtype) for shape, dtype in zip(pointed, dtypes, strict=True)]
        c.set_output_handle_shapes_and_types(0, data)


@op
class _Arg:
    """An argument of a function, inside its body.

    index: the number of the argument.
    """

    signature = "_Arg[T:type, index:int >= 0]() -> (output:T)"
    stateful = True
    shape = _arg_shape
    memory = "held"
    role = "placeholder"
    gradient = no_registered_gradient("an argument has no inputs")
    examples = (Example([], {"T": "float", "index": 0}),)
    failures = examples

    def kernel(k: KernelContext) -> Kernel:
        def raise_unfed() -> Any:
            raise InvalidArgumentError(
                f"Argument '{k.node_name}' (index {k.attr('index')!r}) has a value only while its function is called; feed it to run it alone",
                op=k.op,
                node=k.node_name,
                source=k.source,
            )

        return raise_unfed


def _discard(_value: Any) -> None:
    return None


@op
class _Retval:
    """A value that a function returns.

    index: its number.
    """

    signature = "_Retval[T:type, index:int >= 0](input:T) -> ()"
    stateful = True
    shape = no_outputs
    role = "return"
    gradient = no_registered_gradient("a return has no outputs")
    examples = (Example([_X], {"index": 0}),)

    def kernel(k: KernelContext) -> Kernel:
        return _discard


@op
class _DeviceArg:
    """An argument of a function, on the device of the function.

    index: the number of the argument.
    """

    signature = "_DeviceArg[T:type, index:int >= 0]() -> (output:T)"
    stateful = True
    shape = _arg_shape
    role = "placeholder"
    kernel = _Arg.kernel
    gradient = _Arg.gradient
    examples = _Arg.examples
    failures = examples


@op
class _DeviceRetval:
    """A value that a function returns, on the device of the function.

    index: its number.
    """

    signature = "_DeviceRetval[T:type, index:int >= 0](input:T) -> ()"
    stateful = True
    shape = no_outputs
    role = "return"
    kernel = _Retval.kernel
    gradient = _Retval.gradient
    examples = _Retval.examples


def _call_gradient(attrs: Attrs) -> str:
    types = {name: ", ".join([item.text for item in types_attr(attrs, name)]) for name in ("Tin", "Tout")}
    both = ", ".join([item.text for name in ("Tin", "Tout") for item in types_attr(attrs, name)])
    if not types["Tin"] or not types["Tout"]:
        raise InvalidArgumentError("A call without inputs or outputs has no gradient")
    return f"""[Tin:list(type), Tout:list(type), f:func](x:Tin, dy:Tout) -> (dx:Tin) {{
      dx = SymbolicGradient[Tin={{{both}}}, Tout=$Tin, f=$f](x, dy)
    }}"""


_CALL_ATTRS: Final = (
    'Tin:list(type) >= 0, Tout:list(type) >= 0, f:func, config:string = "", config_proto:string = "", executor_type:string = ""'
)
_SQUARED: Final = "Squared(x:float) -> (y:float) {\n  y = Square[T=float](x)\n}"
_CALL_EXAMPLE: Final = Example(
    [[_X]], {"Tout": ["float"], "f": Func("Squared")}, outputs=[[[1.0, 4.0], [9.0, 0.25]]], functions=(_SQUARED,)
)

_FAILING_CALL: Final = Example([[NO_INVERSE]], {"Tout": ["float"], "f": Func("Inverse")}, functions=(INVERSE,))


def _call(k: KernelContext) -> Kernel:
    func = func_attr(k.attrs, "f")
    executor = k.attrs.get(CALL_EXECUTOR_ATTR)
    return called(k, func.name, {**func.attr, EXECUTOR_ATTR: executor} if executor else func.attr)


@op
class PartitionedCall:
    """Calls the function in attr `f`.

    args: its arguments.
    output: its results.
    f: the function and its attrs.
    executor_type: the type of the executor that runs it, "" for the default.
    """

    signature = f"PartitionedCall[{_CALL_ATTRS}](args:Tin) -> (output:Tout)"
    shape = called_function_shape
    kernel = _call
    gradient = _call_gradient
    examples = (_CALL_EXAMPLE,)
    failures = (_FAILING_CALL,)


@op
class StatefulPartitionedCall:
    """Calls the function in attr `f`, even if its results are not used.

    args: its arguments.
    output: its results.
    f: the function and its attrs.
    """

    signature = f"StatefulPartitionedCall[{_CALL_ATTRS}](args:Tin) -> (output:Tout)"
    stateful = True
    distributed_communication = True
    shape = called_function_shape
    kernel = _call
    gradient = _call_gradient
    examples = (_CALL_EXAMPLE,)
    failures = (_FAILING_CALL,)


def _gradient_shape(c: InferenceContext) -> None:
    # A gradient has the shape of its input, and inputs come first.
    if c.num_inputs < c.num_outputs:
        raise InvalidArgumentError("len(inputs) < len(outputs)")
    for i in range(c.num_outputs):
        c.set_output(i, c.input(i))


@op
class SymbolicGradient:
    """The gradients of the inputs of a function or op, from its inputs and the gradients of its outputs.

    input: the inputs of `f`, then one gradient for each output of `f`.
    output: one gradient for each input of `f`.
    f: the function or op.
    """

    signature = "SymbolicGradient[Tin:list(type), Tout:list(type), f:func](input:Tin) -> (output:Tout)"
    shape = _gradient_shape
    gradient = no_registered_gradient("it is inlined before it is differentiated")
    examples = (Example([[_X, _DY]], {"Tout": ["float"], "f": Func("Square", {"T": float32})}, outputs=[[[2.0, -4.0], [12.0, 4.0]]]),)
    failures = (Example([[NO_INVERSE, _DY]], {"Tout": ["float"], "f": Func("MatrixInverse", {"T": float32})}),)

    def kernel(k: KernelContext) -> Kernel:
        return called(k, k.op, {"f": func_attr(k.attrs, "f")})
