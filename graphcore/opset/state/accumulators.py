"""Accumulators of gradients, dense and of rows, as handles and as references."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from graphcore.attrs import attr_text
from graphcore.dtypes import DType, string
from graphcore.inference import InferenceContext
from graphcore.inference.shape_fns.common_shape_fns import no_outputs, unknown_shape
from graphcore.kernel_context import RefVariable
from graphcore.opset.framework.block import NO_GRADIENT, Example, Kernel, KernelContext, define_op
from graphcore.opset.framework.gradient_text import scalar, vector
from graphcore.opset.framework.kernels import invalid, one_int
from graphcore.opset.framework.type_sets import NUMBER
from graphcore.opset.numerics.accumulator_values import Accumulator, AccumulatorSpec, Take, merged_rows
from graphcore.registry import KernelFactory, ShapeFn
from graphcore.shapes import Shape, as_shape

_OF_FLOATS: Final = {"dtype": "float", "shape": Shape([2])}
_FAILING: Final = f"""
    one = {scalar("int64", 1)}
    n = {scalar("int32", 1)}
    row = {vector("float", 1, 2)}
    rows = {vector("int64", 0, 1)}
    handle = {{make}}[dtype=string, shape=[2]]()
    it = {{op}}{{attrs}}({{args}})
"""
"""A use that fails: the handle is that of a variable."""


class AccumulatorReference(RefVariable):
    """The reference to an accumulator, for the ops of references."""

    __slots__ = ("accumulator",)

    def __init__(self, accumulator: Accumulator, container: str) -> None:
        super().__init__(accumulator.name, string, Shape([2]), None, accumulator.op)
        self.accumulator = accumulator
        self.assign(np.array([(container or "localhost").encode(), accumulator.name.encode()], np.object_))


def _behind(k: KernelContext, handle: Any) -> Accumulator:
    accumulator = handle.accumulator if isinstance(handle, AccumulatorReference) else handle
    if not isinstance(accumulator, Accumulator):
        raise invalid(k, f"required the handle of an accumulator, got {type(accumulator).__name__}")
    return accumulator


def _make(k: KernelContext) -> Kernel:
    dtype, container, shared_name = k.attr("dtype"), attr_text(k.attr("container")), attr_text(k.attr("shared_name"))
    if not isinstance(dtype, DType):
        raise invalid(k, f"attr 'dtype' must be a type, got {dtype!r}")
    is_sparse = k.op.startswith("Sparse")
    spec = AccumulatorSpec(is_sparse, dtype, as_shape(k.attr("shape")).dims, k.attr("reduction_type") == b"MEAN")
    node, op_name, resources, as_reference = k.node_name, k.op, k.resources, k.output_types[0].is_ref
    key = shared_name or (resources, node)

    def find() -> Any:
        shared = resources.shared.find(
            container,
            key,
            node,
            lambda number: Accumulator(shared_name or f"_{number}_{node}", spec, op_name),
            lambda accumulator: accumulator.spec == spec,
        )
        if not isinstance(shared, Accumulator) or shared.spec != spec:
            raise invalid(k, f"'{shared_name}' is shared, and is {shared!r}, not such an accumulator")
        return AccumulatorReference(shared, container) if as_reference else shared

    return find


def _made_shape(c: InferenceContext) -> None:
    c.set_output(0, c.vector(2))


def _apply(k: KernelContext) -> Kernel:
    def apply(handle: Any, step: Any, gradient: Any) -> None:
        accumulator = _typed(k, handle, is_sparse=False)
        accumulator.check(gradient.shape)

        def add(total: Any) -> Any:
            if total is not None and total.shape != gradient.shape:
                raise invalid(k, f"Shape mismatch: expected {list(total.shape)}, got {list(gradient.shape)}")
            return gradient.copy() if total is None else total + gradient

        accumulator.apply(one_int(k, step), add)

    return apply


def _typed(k: KernelContext, handle: Any, *, is_sparse: bool) -> Accumulator:
    accumulator = _behind(k, handle)
    if accumulator.spec.is_sparse is not is_sparse or accumulator.spec.dtype is not k.attr("dtype"):
        raise invalid(
            k,
            f"'{accumulator.name}' is an accumulator of {'rows' if accumulator.spec.is_sparse else 'tensors'} of {accumulator.spec.dtype.text}",
        )
    return accumulator


def _take(k: KernelContext) -> Kernel:
    def take(handle: Any, needed: Any) -> Take:
        accumulator = _typed(k, handle, is_sparse=False)
        mean = accumulator.spec.mean
        return Take(accumulator, _positive(k, needed), lambda total, count: total / total.dtype.type(count) if mean else total)

    return take


def _positive(k: KernelContext, needed: Any) -> int:
    count = one_int(k, needed)
    if count <= 0:
        raise invalid(k, f"Argument num_required must be positive, but was {count}")
    return count


def _apply_rows(k: KernelContext) -> Kernel:
    known_shape = bool(k.attr("has_known_shape"))

    def apply(handle: Any, step: Any, indices: Any, values: Any, shape: Any) -> None:
        accumulator = _typed(k, handle, is_sparse=True)
        if indices.ndim != 1 or not values.ndim or values.shape[0] != indices.shape[0]:
            raise invalid(k, f"indices must be [n] and values [n, ...], got {list(indices.shape)} and {list(values.shape)}")
        sizes = accumulator.spec.sizes
        accumulator.check((*(shape.tolist()[:1] if known_shape else [(sizes or (None,))[0] or 0]), *values.shape[1:]))
        accumulator.apply(one_int(k, step), lambda rows: merged_rows(rows, indices, values))

    return apply


def _take_rows(k: KernelContext) -> Kernel:
    def take(handle: Any, needed: Any) -> Take:
        accumulator = _typed(k, handle, is_sparse=True)
        spec = accumulator.spec

        def result(rows: Any, _count: int) -> Any:
            indices, sums, counts = rows
            values = np.stack(sums)
            if spec.mean:
                values = values / np.array(counts, values.dtype).reshape(-1, *[1] * (values.ndim - 1))
            first = spec.sizes[0] if spec.sizes and spec.sizes[0] is not None else -1
            return np.array(indices, np.int64), values, np.array([first, *values.shape[1:]], np.int64)

        return Take(accumulator, _positive(k, needed), result)

    return take


def _set_step(k: KernelContext) -> Kernel:
    def set_step(handle: Any, step: Any) -> None:
        _behind(k, handle).set_step(one_int(k, step))

    return set_step


def _count(k: KernelContext) -> Kernel:
    return lambda handle: np.array(_behind(k, handle).count(), np.int32)


def _count_shape(c: InferenceContext) -> None:
    c.set_output(0, c.scalar())


def _maker(name: str, output: str, summary: str) -> None:
    define_op(
        name,
        f"""{summary}

        handle: the accumulator
        dtype: the type of the gradients.
        shape: their shape.
        container: a namespace for `shared_name`.
        shared_name: nodes with the same shared name share an accumulator; empty for a private one.
        reduction_type: whether the mean or the sum is taken.
        """.replace("whether the mean or the sum is taken", "MEAN or SUM"),
        signature=f"{name}[dtype:{NUMBER}, shape:shape, container:string = '', shared_name:string = '', "
        f"reduction_type:{{'MEAN', 'SUM'}} = 'MEAN']() -> (handle:{output})",
        stateful=True,
        shape=_made_shape,
        kernel=_make,
        role="variable",
        holds_parameters=output == "resource",
        gradient=NO_GRADIENT,
        device_types=("CPU",),
        examples=(Example([], _OF_FLOATS),),
        failures=(
            f"""
            first = FIFOQueueV2[component_types={{float}}, shared_name="shared"]()
            it = {name}[dtype=float, shape=[2], shared_name="shared"]() @ first
            """,
        ),
    )


_maker("ConditionalAccumulator", "Ref(string)", "An accumulator of gradients of one shape.")
_maker("SparseConditionalAccumulator", "Ref(string)", "An accumulator of gradients of rows.")
_maker("ResourceConditionalAccumulator", "resource", "An accumulator of gradients of one shape, as a handle.")


def _after_scalar(shape: ShapeFn) -> ShapeFn:
    """A shape function that also requires a scalar as the input after the handle, if there is one."""

    def checked(c: InferenceContext) -> None:
        if len(c.inputs) > 1:
            c.with_rank(c.input(1), 0)
        shape(c)

    return checked


def _use(name: str, summary: str, args: str, kernel: KernelFactory, shape: ShapeFn, failing: str, **parts: Any) -> None:
    """Register an op on references, and the one on handles if there is one."""
    attrs, outputs, example_attrs = parts.get("attrs", ""), parts.get("outputs", ""), parts.get("example_attrs", "")
    for prefix in ("", "Resource") if not name.startswith("Sparse") else ("",):
        handle = "handle:resource" if prefix else "handle:Ref(string)"
        define_op(
            f"{prefix}{name}",
            f"{summary}.{parts.get('doc', '')}",
            signature=f"{prefix}{name}{attrs and f'[{attrs}]'}({handle}{args}) -> ({outputs})",
            stateful=bool(prefix),
            shape=_after_scalar(shape),
            kernel=kernel,
            gradient=NO_GRADIENT,
            device_types=("CPU",),
            waits=kernel in (_take, _take_rows),
            examples=(Example([[0.0], *parts["inputs"]], parts.get("chosen", {})),),
            failures=(
                _FAILING.format(
                    make="VarHandleOp" if prefix else "Variable",
                    op=f"{prefix}{name}",
                    attrs=example_attrs and f"[{example_attrs}]",
                    args=", ".join(["handle", *failing.split()]),
                ),
            ),
        )


_DTYPE: Final = f"dtype:{NUMBER}"
_use(
    "AccumulatorApplyGradient",
    "Adds a gradient, unless its step is over",
    ", local_step:int64, gradient:dtype",
    _apply,
    no_outputs,
    "one row",
    attrs=_DTYPE,
    example_attrs="dtype=float",
    inputs=[np.int64(0), [1.0, 2.0]],
)
_use(
    "AccumulatorTakeGradient",
    "The mean of the gradients, once there are enough; then it begins anew, with the next step",
    ", num_required:int32",
    _take,
    unknown_shape,
    "n",
    attrs=_DTYPE,
    outputs="average:dtype",
    example_attrs="dtype=float",
    inputs=[1],
    chosen={"dtype": "float"},
)
_use("AccumulatorNumAccumulated", "The number of gradients", "", _count, _count_shape, "", outputs="num_accumulated:int32", inputs=[])
_use(
    "AccumulatorSetGlobalStep",
    "Sets the step that gradients must be of at least",
    ", new_global_step:int64",
    _set_step,
    no_outputs,
    "one",
    inputs=[np.int64(1)],
)
_use(
    "SparseAccumulatorApplyGradient",
    "Adds a gradient of rows, unless its step is over",
    ", local_step:int64, gradient_indices:int64, gradient_values:dtype, gradient_shape:int64",
    _apply_rows,
    no_outputs,
    "one rows row rows",
    attrs=f"{_DTYPE}, has_known_shape:bool",
    example_attrs="dtype=float, has_known_shape=false",
    inputs=[np.int64(0), np.array([0, 1]), [1.0, 2.0], np.array([2])],
    chosen={"has_known_shape": True},
)


def _rows_shape(c: InferenceContext) -> None:
    for i in range(3):
        c.set_output(i, c.unknown_shape())


_use(
    "SparseAccumulatorTakeGradient",
    "The mean of the gradients of rows, once there are enough; then it begins anew, with the next step",
    ", num_required:int32",
    _take_rows,
    _rows_shape,
    "n",
    attrs=_DTYPE,
    outputs="indices:int64, values:dtype, shape:int64",
    example_attrs="dtype=float",
    inputs=[1],
    chosen={"dtype": "float"},
)
