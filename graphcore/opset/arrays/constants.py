"""Source ops: constants, placeholders, filled and counted tensors."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from graphcore import dtypes
from graphcore.attrs import TensorValue
from graphcore.errors import InvalidArgumentError
from graphcore.inference import partial_rules
from graphcore.inference.shape_fns.common_shape_fns import (
    const_shape,
    fill_shape,
    linspace_shape,
    placeholder_shape,
    range_shape,
    unchanged_shape,
)
from graphcore.inference.shape_fns.elementwise import shape_attr
from graphcore.opset.framework.block import NO_GRADIENT, Example, InferenceContext, Kernel, KernelContext, no_registered_gradient, op
from graphcore.opset.framework.families import Elementwise
from graphcore.opset.framework.gradient_text import INDEX_TYPE, index_typed, scalar
from graphcore.opset.framework.kernels import constant_ints, ints, invalid, pass_through
from graphcore.opset.framework.type_sets import FLOATING, INDEX
from graphcore.opset.numerics.tensor_list_values import zeros_like_list
from graphcore.shapes import Shape, as_shape
from graphcore.traits import FailsOn

_X: Final = [[-3.0, -2.0, -1.0], [1.0, 2.0, 3.5]]
_ONES_TYPES: Final = (
    "{bfloat16, half, float, double, int8, uint8, int16, uint16, int32, uint32, int64, uint64, complex64, complex128, bool}"
)


@op
class Const:
    """A constant tensor, given in the attr `value`."""

    signature = "Const[value:tensor, dtype:type]() -> (output:dtype)"
    shape = const_shape
    memory = "held"
    role = "constant"
    can_fail = False
    gradient = NO_GRADIENT
    examples = (
        Example([], {"value": TensorValue(np.float32(2.5)), "dtype": "float"}),
        Example([], {"value": TensorValue(np.arange(6).reshape(2, 3)), "dtype": "int64"}),
    )

    def kernel(k: KernelContext) -> Kernel:
        tensor = k.attr("value")
        if not isinstance(tensor, TensorValue):
            raise invalid(k, f"attr 'value' must be a tensor, got {tensor!r}")
        value = tensor.array if tensor.array.dtype == np.object_ else k.xp.asarray(tensor.array)
        return lambda: value


@op
class Placeholder:
    """A value that must be fed in every run.

    shape: the shape of the fed value; unknown dimensions fit any size.
    """

    signature = "Placeholder[dtype:type, shape:shape = ?]() -> (output:dtype)"
    shape = placeholder_shape
    memory = "held"
    role = "placeholder"
    gradient = no_registered_gradient("a placeholder has no inputs")
    examples = (Example([], {"dtype": "float", "shape": Shape([None, 3])}),)
    failures = examples

    def kernel(k: KernelContext) -> Kernel:
        dtype, shape = k.output_types[0].text, as_shape(k.attr("shape"))

        def must_be_fed() -> Any:
            raise InvalidArgumentError(
                f"You must feed a value for placeholder tensor '{k.node_name}' with dtype {dtype} and shape {shape}",
                op=k.op,
                node=k.node_name,
                source=k.source,
            ).advise(
                f"Feed it: `session.run(..., {{\u00ab{k.node_name}:0\u00bb: value}})`, with a value of the shape {shape}"
                + (", where ? is any number." if "?" in str(shape) else "."),
                required=f"a value for '{k.node_name}'",
                came="none",
            )

        return must_be_fed


@op
class PlaceholderV2:
    """A value that must be fed in every run (the older form of Placeholder)."""

    signature = (
        'PlaceholderV2[dtype:type, shape:shape]() -> (output:dtype) @deprecated(23, "Placeholder now behaves the same as PlaceholderV2.")'
    )
    shape = placeholder_shape
    memory = "held"
    role = "placeholder"
    kernel = Placeholder.kernel
    gradient = Placeholder.gradient
    examples = Placeholder.examples
    failures = examples


def _merged_with_attr(c: InferenceContext) -> None:
    # A fed value may have any shape that the attr allows, so the shape of the default is not used.
    c.merge(c.input(0), shape_attr(c))
    c.set_output(0, shape_attr(c))


@op
class PlaceholderWithDefault:
    """A value that may be fed; `input` by default.

    shape: the shape of the fed value; unknown dimensions fit any size.
    """

    signature = "PlaceholderWithDefault[dtype:type, shape:shape](input:dtype) -> (output:dtype)"
    shape = _merged_with_attr
    role = "placeholder"
    memory = "unknown"
    kernel = pass_through
    gradient = "[dtype:type](x:dtype, dy:dtype) -> (dx:dtype) {\n  dx = Identity[T=$dtype](dy)\n}"
    examples = (Example([_X], {"shape": Shape([None, 3])}),)


@op
class ZerosLike(Elementwise):
    """Zeros of the shape and type of x.

    For booleans these are False, for strings empty strings, for a list a list of zeros.
    """

    signature = "ZerosLike[T:type](x:T) -> (y:T)"
    shape = unchanged_shape
    needs_only_shapes = True
    gradient = NO_GRADIENT
    examples = (Example([_X], outputs=[np.zeros((2, 3))]), Example([[True, False]], outputs=[[False, False]]))

    def kernel(k: KernelContext) -> Kernel:
        if k.attr("T") is dtypes.variant:
            return lambda x: zeros_like_list(k, x)
        if k.dtype("T") == np.object_:
            return lambda x: np.full(x.shape, b"", np.object_)
        zeros, dtype = k.xp.zeros, k.dtype("T")
        return lambda x: zeros(x.shape, dtype)


@op
class OnesLike(Elementwise):
    """Ones of the shape and type of x."""

    signature = f"OnesLike[T:{_ONES_TYPES}](x:T) -> (y:T)"
    shape = unchanged_shape
    needs_only_shapes = True
    gradient = NO_GRADIENT
    examples = (Example([_X], outputs=[np.ones((2, 3))]),)

    def kernel(k: KernelContext) -> Kernel:
        ones, dtype = k.xp.ones, k.dtype("T")
        return lambda x: ones(x.shape, dtype)


@op
class Fill:
    """A tensor of shape `dims` with all elements equal to `value`.

    dims: the sizes, [rank]
    value: a scalar
    """

    pure = True
    signature = f"Fill[T:type, index_type:{INDEX} = int32](dims:index_type, value:T) -> (output:T)"
    shape = fill_shape
    partial_rule = partial_rules.FILL
    can_fail = FailsOn(values=("dims",))
    gradient = index_typed(
        "index_type",
        f"""[T:type](dims:{INDEX_TYPE}, x:T, dy:T) -> (d_dims:{INDEX_TYPE}, dx:T) {{
          d_dims = ZerosLike[T={INDEX_TYPE}](dims)
          zero = {scalar("int32", 0)}
          rank = Rank[T=$T](dy)
          one = {scalar("int32", 1)}
          r = Range(zero, rank, one)
          dx = Sum[T=$T](dy, r)
        }}""",
    )
    examples = (Example([[2, 3], 7.5], outputs=[np.full((2, 3), 7.5)]), Example([np.zeros(0, np.int32), 7], outputs=[7]))
    failures = (Example([[-1, -1], 7.5]),)

    def kernel(k: KernelContext) -> Kernel:
        full, dtype = k.xp.full, k.dtype("T")
        constant_sizes = constant_ints(k, 0)
        if constant_sizes is not None:
            return lambda _, value: full(constant_sizes, value, dtype)
        return lambda dims, value: full(ints(dims), value, dtype)


@op
class Range:
    """The numbers from `start` in steps of `delta` as long as they are before `limit`.

    start: the first number, a scalar
    limit: the end, not included, a scalar
    delta: the step, not 0, a scalar
    """

    pure = True
    signature = (
        "Range[Tidx:{bfloat16, half, float, double, int8, int16, int32, int64, uint16, uint32, uint64} = int32]"
        "(start:Tidx, limit:Tidx, delta:Tidx) -> (output:Tidx)"
    )
    shape = range_shape
    can_fail = FailsOn(values=("start", "limit", "delta"))
    gradient = NO_GRADIENT
    examples = (
        Example([3, 18, 3], outputs=[[3, 6, 9, 12, 15]]),
        Example([3.0, 1.0, -0.5], outputs=[[3.0, 2.5, 2.0, 1.5]]),
        Example([3, 3, 1], outputs=[[]]),
    )
    failures = (Example([99, 18, 3]),)

    def kernel(k: KernelContext) -> Kernel:
        arange, dtype = k.xp.arange, k.dtype("Tidx")

        def check(start: Any, limit: Any, delta: Any) -> None:
            if delta == 0:
                raise invalid(k, f"Requires delta != 0: {delta}")
            if delta > 0 and start > limit:
                raise invalid(k, f"Requires start <= limit when delta > 0: {start}/{limit}")
            if delta < 0 and start < limit:
                raise invalid(k, f"Requires start >= limit when delta < 0: {start}/{limit}")

        def integers(start: Any, limit: Any, delta: Any) -> Any:
            check(start, limit, delta)
            return arange(int(start), int(limit), int(delta), dtype)

        def floats(start: Any, limit: Any, delta: Any) -> Any:
            check(start, limit, delta)
            size = math.ceil(abs((limit - start) / delta))
            # Each number is computed from its index, so that rounding errors do not add up.
            return (float(start) + arange(size) * float(delta)).astype(dtype)

        return integers if dtype.kind in "iu" else floats


@op
class LinSpace:
    """`num` numbers from `start` to `stop` at equal distances, both included.

    start: the first number, a scalar
    stop: the last number, a scalar
    num: the number of them, at least 1, a scalar
    """

    pure = True
    signature = f"LinSpace[T:{FLOATING}, Tidx:{INDEX} = int32](start:T, stop:T, num:Tidx) -> (output:T)"
    shape = linspace_shape
    can_fail = FailsOn(values=("num",))
    gradient = NO_GRADIENT
    examples = (Example([10.0, 12.0, 3], outputs=[[10.0, 11.0, 12.0]]), Example([1.0, 5.0, 1], outputs=[[1.0]]))
    failures = (Example([10.0, 12.0, -1]),)

    def kernel(k: KernelContext) -> Kernel:
        linspace, dtype = k.xp.linspace, k.dtype("T")

        def spaced(start: Any, stop: Any, num: Any) -> Any:
            if num <= 0:
                raise invalid(k, f"Requires num > 0: {num}")
            return linspace(float(start), float(stop), int(num)).astype(dtype)

        return spaced
