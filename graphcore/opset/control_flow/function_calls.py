"""Shared parts of ops that run functions: function attrs, type checks, truth values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from graphcore import dtypes
from graphcore.attrs import Attrs, Func
from graphcore.dtypes import DType
from graphcore.errors import InvalidArgumentError
from graphcore.inference import InferenceContext
from graphcore.kernel_context import KernelContext
from graphcore.opset.framework.block import define_op
from graphcore.registry import Kernel
from graphcore.shapes import Shape

_AS_NUMBERS: Final = frozenset(
    {dtypes.float32, dtypes.float64, dtypes.int32, dtypes.uint8, dtypes.int16, dtypes.int8, dtypes.int64, dtypes.bool_}
)
INVERSE: Final = "Inverse(x:float) -> (y:float) {\n  y = MatrixInverse[T=float](x)\n}"
"""A function that fails on `NO_INVERSE`."""
NO_INVERSE: Final = [[0.0, 0.0], [0.0, 0.0]]
Truth = Callable[[Any], bool]


def called(k: KernelContext, name: str, attrs: Attrs) -> Kernel:
    """A callable that runs function `name`.

    Raises:
        InvalidArgumentError: the context cannot run functions.
    """
    if k.functions is None:
        raise InvalidArgumentError(
            f"'{k.node_name}' (op {k.op}) calls function '{name}', and nothing here can run functions", op=k.op, node=k.node_name
        )
    return k.functions.function_kernel(name, attrs)


def func_attr(attrs: Attrs, name: str) -> Func:
    """The function in attr `name`.

    Raises:
        InvalidArgumentError: it is not a function.
    """
    value = attrs.get(name)
    if not isinstance(value, Func):
        raise InvalidArgumentError(f"Required a function in attr '{name}', got {value!r}", attr=name)
    return value


def types_attr(attrs: Attrs, name: str) -> tuple[DType, ...]:
    """The types in attr `name`."""
    value = attrs.get(name)
    return tuple([item for item in value if isinstance(item, DType)]) if isinstance(value, tuple) else ()


def fitting(k: KernelContext, func: Func, inputs: Sequence[DType], outputs: Sequence[DType] | None) -> Kernel:
    """A callable that runs `func` on values of these types.

    Args:
        outputs: the required result types; None for any.

    Raises:
        InvalidArgumentError: its argument or result types differ.
    """
    kernel = called(k, func.name, func.attr)
    assert k.functions is not None
    takes, gives = k.functions.function_types(func.name, func.attr)
    problem = _argument_problem(takes, inputs) or ("" if outputs is None else _return_problem(gives, outputs))
    if problem:
        raise InvalidArgumentError(
            f"Function {func.name}, which '{k.node_name}' (op {k.op}) calls: {problem}", op=k.op, node=k.node_name, source=k.source
        )
    return kernel


def _argument_problem(takes: Sequence[DType], inputs: Sequence[DType]) -> str:
    if len(takes) != len(inputs):
        return f"Expects {len(takes)} arguments, but {len(inputs)} is provided"
    for index, (wanted, actual) in enumerate(zip(takes, inputs, strict=True)):
        if wanted.base is not actual.base:
            return f"Expects arg[{index}] to be {wanted.base.text} but {actual.base.text} is provided"
    return ""


def _return_problem(gives: Sequence[DType], outputs: Sequence[DType]) -> str:
    if len(gives) != len(outputs):
        return f"Expects {len(outputs)} return values, but {len(gives)} is provided"
    for index, (actual, wanted) in enumerate(zip(gives, outputs, strict=True)):
        if wanted.base is not actual.base:
            return f"Expects ret[{index}] to be {wanted.base.text}, but {actual.base.text} is provided."
    return ""


def truth_of(dtype: DType) -> Truth:
    """The conversion of a value of this type to a condition.

    True are a number other than 0, a string that is not empty, and a tensor of another rank with elements.
    """
    if dtype.base is dtypes.bool_:
        return _truth_of_bool
    if dtype.base in _AS_NUMBERS:
        return _truth_of_number
    if dtype.base is dtypes.string:
        return _truth_of_string
    return lambda value: _truth_of_other(value, dtype.base)


def _truth_of_bool(value: Any) -> bool:
    # A fast path for NumPy scalars, the usual case.
    return bool(value) if type(value) is np.bool_ or not value.shape else value.size > 0


def _truth_of_number(value: Any) -> bool:
    return bool(value != 0) if not value.shape else value.size > 0


def _truth_of_string(value: Any) -> bool:
    if isinstance(value, bytes | str):
        return len(value) > 0
    return len(value.item()) > 0 if not value.shape else value.size > 0


def _truth_of_other(value: Any, dtype: DType) -> bool:
    if not value.shape:
        raise InvalidArgumentError(f"{dtype.text} cannot be converted to a boolean")
    return bool(value.size > 0)


def declared_shapes(c: InferenceContext) -> list[Shape] | None:
    """The attr `output_shapes`; None if it is empty.

    Raises:
        InvalidArgumentError: it does not have one shape for each output.
    """
    value = c.attr("output_shapes")
    shapes = [item for item in value if isinstance(item, Shape)] if isinstance(value, tuple) else []
    if not shapes:
        return None
    if len(shapes) != c.num_outputs:
        raise InvalidArgumentError(f"`output_shapes` must be the same length as num outputs ({len(shapes)} vs. {c.num_outputs}")
    return shapes


def with_stateless_variant(name: str, doc: str, signature: str, gradient: Callable[[str], Any], **parts: Any) -> None:
    """Register an op that runs functions with state, and its variant on functions without.

    Args:
        name: the name of the op; the variant's begins with `Stateless`.
        doc: the docstring, with `{state}` for the words on the functions' state.
        signature: the signature without the name.
        gradient: the gradient by the name of the op.
        parts: the other parts.
    """
    for prefix, state in (("", "may have state"), ("Stateless", "have no state")):
        whole = prefix + name
        own = {"signature": whole + signature, "gradient": gradient(whole), "stateful": not prefix}
        define_op(whole, doc.replace("{state}", state), **own, **parts)
