"""Pass-through ops with side effects: checks, messages, marks for differentiation."""

from __future__ import annotations

import sys
import threading
from typing import Any, Final

import numpy as np

from graphcore.attrs import Attrs
from graphcore.errors import InvalidArgumentError
from graphcore.inference import InferenceContext, partial_rules
from graphcore.inference.shape_fns.common_shape_fns import no_outputs, unchanged_shape
from graphcore.inference.shape_fns.elementwise import shape_attr
from graphcore.opset.control_flow.control import IDENTITY_GRADIENT
from graphcore.opset.framework.block import NO_GRADIENT, Example, Kernel, KernelContext, op
from graphcore.opset.framework.families import Passing
from graphcore.opset.framework.gradient_text import required_int
from graphcore.opset.framework.kernels import invalid, on_host, pass_through
from graphcore.opset.framework.type_sets import FLOATING
from graphcore.shapes import Shape, as_shape

_X: Final = [[-3.0, -2.0, -1.0], [1.0, 2.0, 3.5]]


def _text(value: object) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else ""


def _written(value: Any, count: int) -> str:
    """The first `count` elements of a tensor (all if negative), in brackets."""
    flat = on_host(value).reshape(-1)
    shown = [_one(item) for item in (flat if count < 0 else flat[:count])]
    return "[" + " ".join(shown) + ("..." if 0 <= count < flat.size else "") + "]"


def _one(item: Any) -> str:
    if isinstance(item, bytes):
        return item.decode(errors="replace")
    if isinstance(item, np.bool_):
        return str(int(item))
    return f"{item:g}" if isinstance(item, np.floating) else str(item)


@op
class Snapshot:
    """The input itself at this moment."""

    pure = True
    signature = "Snapshot[T:type](input:T) -> (output:T)"
    shape = unchanged_shape
    kernel = pass_through
    gradient = IDENTITY_GRADIENT
    examples = (Example([_X], outputs=[_X]),)


@op
class DeepCopy:
    """A copy of the input."""

    signature = "DeepCopy[T:type](x:T) -> (y:T)"
    can_fail = False
    stateful = True
    shape = unchanged_shape
    gradient = IDENTITY_GRADIENT
    examples = (Example([_X], outputs=[_X]),)

    def kernel(k: KernelContext) -> Kernel:
        return lambda x: x.copy()


@op
class PreventGradient:
    """The input itself; a gradient through it is an error.

    message: the reason.
    """

    pure = True
    signature = "PreventGradient[T:type, message:string = ''](input:T) -> (output:T)"
    shape = unchanged_shape
    partial_rule = partial_rules.SAME
    kernel = pass_through
    examples = (Example([_X], {"message": "not yet"}, outputs=[_X], differentiable=False),)

    def gradient(attrs: Attrs) -> str:
        raise InvalidArgumentError(f"Gradient explicitly disabled. Reason: {_text(attrs.get('message'))}", op="PreventGradient")


@op
class EnsureShape(Passing):
    """The input itself, which must have a shape that fits the attr `shape`.

    shape: the shape; unknown dimensions fit any size.
    """

    memory = "view"
    pure = True
    signature = "EnsureShape[shape:shape, T:type](input:T) -> (output:T)"
    gradient = IDENTITY_GRADIENT
    examples = (Example([_X], {"shape": Shape([None, 3])}, outputs=[_X]),)

    def shape(c: InferenceContext) -> None:
        c.set_output(0, c.merge(c.input(0), shape_attr(c)))

    def kernel(k: KernelContext) -> Kernel:
        wanted = as_shape(k.attr("shape"))

        def ensure(x: Any) -> Any:
            if not wanted.is_compatible_with(Shape(x.shape)):
                raise invalid(k, f"Shape of tensor input {list(x.shape)} is not compatible with expected shape {wanted}.")
            return x

        return ensure


@op
class CheckNumerics:
    """The input itself, in which NaN and infinity are errors.

    message: the beginning of the error's text.
    """

    signature = f"CheckNumerics[T:{FLOATING}, message:string](tensor:T) -> (output:T)"
    stateful = True
    only_checks = True
    shape = unchanged_shape
    gradient = """[T:{half, bfloat16, float, double}, message:string](x:T, dy:T) -> (dx:T) {
      dx = CheckNumerics[T=$T, message="Not a number (NaN) or infinity (Inf) values detected in gradient."](dy)
    }"""
    examples = (Example([_X], {"message": "weights"}, outputs=[_X]),)
    failures = (Example([[[np.nan, np.nan, np.nan], [np.nan, np.nan, np.nan]]], {"message": "weights"}),)

    def kernel(k: KernelContext) -> Kernel:
        isfinite, isnan, isinf, message = k.xp.isfinite, k.xp.isnan, k.xp.isinf, _text(k.attr("message"))

        def check(x: Any) -> Any:
            if not isfinite(x).all():
                kinds = " and ".join(name for name, present in (("Inf", isinf(x).any()), ("NaN", isnan(x).any())) if present)
                raise invalid(k, f"{message} : Tensor had {kinds} values").advise(
                    "In training, try a tenth of the learning rate. Else look where it begins: with `%graph values` in a cell above, "
                    "this run marks the first bad tensor in the picture.",
                    required="finite numbers",
                    came=kinds,
                )
            return x

        return check


@op
class Assert:
    """Fails unless the condition is true; the data are in the error's text.

    condition: a scalar
    data: the data to show
    summarize: the number of elements of each to show.
    """

    signature = "Assert[T:list(type), summarize:int = 3](condition:bool, data:T) -> ()"
    stateful = True
    shape = no_outputs
    gradient = NO_GRADIENT
    examples = (Example([True, [_X, 7]]),)
    failures = (Example([False, [_X, 7]]),)

    def kernel(k: KernelContext) -> Kernel:
        count = required_int(k.attrs, "summarize")

        def check(condition: Any, *data: Any) -> None:
            if not condition:
                raise invalid(k, f"assertion failed: {' '.join(_written(value, count) for value in data)}")

        return check


class _Counter:
    """A thread-safe counter."""

    def __init__(self) -> None:
        self.count = 0
        self.lock = threading.Lock()

    def next(self) -> int:
        """The next number, from 0 on."""
        with self.lock:
            self.count += 1
            return self.count - 1


@op
class Print:
    """The input itself; `data` are written to the standard error stream when it runs.

    data: the data to write
    message: written first.
    first_n: write only the first so many times; negative for always.
    summarize: the number of elements of each to write.
    """

    signature = "Print[T:type, U:list(type) >= 0, message:string = '', first_n:int = -1, summarize:int = 3](input:T, data:U) -> (output:T)"
    can_fail = False
    device_types = ("CPU",)
    stateful = True
    shape = unchanged_shape
    examples = (Example([_X, [[1, 2, 3, 4]]], {"message": "x: "}, outputs=[_X]), Example([_X, []], outputs=[_X]))

    def gradient(attrs: Attrs) -> str:
        """The written data have no gradient."""
        types = attrs.get("U")
        names = [dtype.text for dtype in types] if isinstance(types, tuple) else []
        if not names:
            return "[T:type](x:T, dy:T) -> (dx:T) {\n  dx = Identity[T=$T](dy)\n}"
        zeros = "".join(f"  d{i} = ZerosLike[T={name}](data:{i})\n" for i, name in enumerate(names))
        return (
            "[T:type, U:list(type)](x:T, data:U, dy:T) -> (dx:T, ddata:U) {\n  dx = Identity[T=$T](dy)\n"
            f"{zeros}  ddata = IdentityN[T=$U]({', '.join(f'd{i}' for i in range(len(names)))})\n}}"
        )

    def kernel(k: KernelContext) -> Kernel:
        message, first_n, count = _text(k.attr("message")), required_int(k.attrs, "first_n"), required_int(k.attrs, "summarize")
        times = k.resources.state((k.op, k.node_name), _Counter)

        def write(x: Any, *data: Any) -> Any:
            if first_n < 0 or times.next() < first_n:
                sys.stderr.write(f"{message}{''.join(_written(value, count) for value in data)}\n")
            return x

        return write


@op
class PrintV2:
    """Writes a string to a stream.

    input: a scalar
    output_stream: stderr, stdout, or log(info) and the like, which go to stderr.
    end: written at the end.
    """

    signature = "PrintV2[output_stream:string = 'stderr', end:string = '\\n'](input:string) -> ()"
    can_fail = False
    stateful = True
    gradient = NO_GRADIENT
    examples = (Example([b"step 1"]),)

    def shape(c: InferenceContext) -> None:
        c.with_rank(c.input(0), 0)

    def kernel(k: KernelContext) -> Kernel:
        to_output, end = k.attr("output_stream") == b"stdout", _text(k.attr("end"))

        def write(text: Any) -> None:
            (sys.stdout if to_output else sys.stderr).write(_text(text.item()) + end)

        return write
