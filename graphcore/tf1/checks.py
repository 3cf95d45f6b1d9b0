"""`tf.assert_equal` and the like: nodes that fail where tensors are not as required."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from graphcore import dtypes
from graphcore.dtypes import DType, as_dtype
from graphcore.errors import InvalidArgumentError
from graphcore.graph import Node, Tensor, get_default_graph
from graphcore.graph.shapes.constant_values import constant_value
from graphcore.tf1.calls import apply_one
from graphcore.tf1.framework import control_dependencies, convert_to_tensor, name_scope, no_op
from graphcore.tf1.math.elementwise import cast
from graphcore.tf1.math.reductions import reduce_all

__all__ = [
    "assert_equal",
    "assert_greater",
    "assert_greater_equal",
    "assert_integer",
    "assert_less",
    "assert_less_equal",
    "assert_near",
    "assert_negative",
    "assert_non_negative",
    "assert_non_positive",
    "assert_none_equal",
    "assert_positive",
    "assert_rank",
    "assert_rank_at_least",
    "assert_rank_in",
    "assert_scalar",
    "assert_type",
    "is_numeric_tensor",
    "verify_tensor_all_finite",
]


def _required(holds: Tensor, data: Sequence[Any] | None, message: str | None, usual: Sequence[Any]) -> Node:
    """A node that fails unless `holds`, a scalar, is true.

    Raises:
        InvalidArgumentError: it is false in every run.
    """
    static_value = constant_value(holds)
    parts = [*([message] if message else []), *(usual if data is None else data)]
    if static_value is not None and not static_value:
        text = " ".join([_text(part) for part in parts])
        raise InvalidArgumentError.at(holds.node, text)
    if static_value is not None:
        return no_op("static_checks_determined_all_ok")
    return get_default_graph().apply_op("Assert", [holds, [convert_to_tensor(part) for part in parts]], None, "Assert")


def _text(part: Any) -> str:
    value = constant_value(part) if isinstance(part, Tensor) else part
    return part.name if value is None else str(value)


def _compared(label: str, sign: str, test: Callable[[Tensor, Tensor], Tensor]) -> Callable[..., Node]:
    def check(
        x: Any, y: Any, data: Sequence[Any] | None = None, summarize: int | None = None, message: str | None = None, name: str | None = None
    ) -> Node:
        del summarize
        with name_scope(name or label):
            left = convert_to_tensor(x, name="x")
            right = convert_to_tensor(y, left.dtype.base, name="y")
            usual = [f"Condition x {sign} y did not hold element-wise:", f"x ({left.name}) = ", left, f"y ({right.name}) = ", right]
            return _required(reduce_all(test(left, right)), data, message, usual)

    return _described(check, label, f"A node that fails, with `message` and `data`, unless `x {sign} y` for all elements.")


def _signed(label: str, sign: str, test: Callable[[Tensor, Tensor], Tensor]) -> Callable[..., Node]:
    def check(
        x: Any, data: Sequence[Any] | None = None, summarize: int | None = None, message: str | None = None, name: str | None = None
    ) -> Node:
        del summarize
        with name_scope(name or label):
            tensor = convert_to_tensor(x, name="x")
            usual = [f"Condition x {sign} 0 did not hold element-wise:", f"x ({tensor.name}) = ", tensor]
            return _required(reduce_all(test(tensor, convert_to_tensor(0, tensor.dtype.base))), data, message, usual)

    return _described(check, label, f"A node that fails, with `message` and `data`, unless `x {sign} 0` for all elements.")


def _described(check: Callable[..., Node], label: str, text: str) -> Callable[..., Node]:
    check.__name__ = check.__qualname__ = label
    check.__doc__ = text
    return check


def _op(name: str) -> Callable[[Tensor, Tensor], Tensor]:
    return lambda x, y: apply_one(name, [x, y], None)


assert_equal = _compared("assert_equal", "==", _op("Equal"))
assert_none_equal = _compared("assert_none_equal", "!=", _op("NotEqual"))
assert_less = _compared("assert_less", "<", _op("Less"))
assert_less_equal = _compared("assert_less_equal", "<=", _op("LessEqual"))
assert_greater = _compared("assert_greater", ">", _op("Greater"))
assert_greater_equal = _compared("assert_greater_equal", ">=", _op("GreaterEqual"))
assert_positive = _signed("assert_positive", ">", _op("Greater"))
assert_negative = _signed("assert_negative", "<", _op("Less"))
assert_non_negative = _signed("assert_non_negative", ">=", _op("GreaterEqual"))
assert_non_positive = _signed("assert_non_positive", "<=", _op("LessEqual"))


def assert_near(
    x: Any,
    y: Any,
    rtol: Any = None,
    atol: Any = None,
    data: Sequence[Any] | None = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> Node:
    """A node that fails unless `|x - y| <= atol + rtol * |y|`; by default, both are 10 machine epsilons."""
    del summarize
    with name_scope(name or "assert_near"):
        left = convert_to_tensor(x, name="x")
        right = convert_to_tensor(y, left.dtype.base, name="y")
        step = 10 * float(np.finfo(left.dtype.base.as_numpy_dtype).eps)
        near, far = [convert_to_tensor(step if tolerance is None else tolerance, left.dtype.base) for tolerance in (atol, rtol)]
        holds = abs(left - right) <= near + far * abs(right)
        usual = ["x and y not equal to tolerance", f"x ({left.name}) = ", left, f"y ({right.name}) = ", right]
        return _required(reduce_all(holds), data, message, usual)


def assert_rank(
    x: Any, rank: Any, data: Sequence[Any] | None = None, summarize: int | None = None, message: str | None = None, name: str | None = None
) -> Node:
    """A node that fails unless `x` has a rank."""
    del summarize
    return _ranked("assert_rank", x, [rank], data, message, name, lambda actual, wanted: apply_one("Equal", [actual, wanted[0]], None))


def assert_rank_at_least(
    x: Any, rank: Any, data: Sequence[Any] | None = None, summarize: int | None = None, message: str | None = None, name: str | None = None
) -> Node:
    """A node that fails unless `x` has a rank or a greater one."""
    del summarize
    return _ranked(
        "assert_rank_at_least", x, [rank], data, message, name, lambda actual, wanted: apply_one("GreaterEqual", [actual, wanted[0]], None)
    )


def assert_rank_in(
    x: Any, ranks: Any, data: Sequence[Any] | None = None, summarize: int | None = None, message: str | None = None, name: str | None = None
) -> Node:
    """A node that fails unless `x` has one of some ranks."""
    del summarize

    def test(actual: Tensor, wanted: list[Any]) -> Tensor:
        holds = apply_one("Equal", [actual, wanted[0]], None)
        for wanted_rank in wanted[1:]:
            holds = apply_one("LogicalOr", [holds, apply_one("Equal", [actual, wanted_rank], None)], None)
        return holds

    return _ranked("assert_rank_in", x, list(ranks), data, message, name, test)


def _ranked(label: str, x: Any, ranks: list[Any], data: Any, message: Any, name: Any, test: Callable[[Tensor, list[Any]], Tensor]) -> Node:
    with name_scope(name or label):
        tensor = convert_to_tensor(x, name="x")
        wanted = [cast(convert_to_tensor(rank), dtypes.int32) for rank in ranks]
        rank = apply_one("Rank", [tensor], None)
        if tensor.shape.rank is not None:
            rank = convert_to_tensor(tensor.shape.rank, dtypes.int32)
        numbers = ", ".join([_text(rank) for rank in wanted])
        usual = [f"{label}: Tensor {tensor.name} must have rank {numbers}. Received shape {tensor.shape}"]
        return _required(test(rank, wanted), data, message, usual)


def assert_scalar(tensor: Any, name: str | None = None, message: str | None = None) -> Tensor:
    """The tensor.

    Raises:
        InvalidArgumentError: its rank is known, and not 0.
    """
    scalar = convert_to_tensor(tensor, name=name)
    if scalar.shape.rank not in (None, 0):
        raise InvalidArgumentError.at(scalar.node, f"{message or ''}Expected scalar shape, saw shape: {scalar.shape}.")
    return scalar


def assert_type(tensor: Any, tf_type: Any, message: str | None = None, name: str | None = None) -> Node:
    """A node that does nothing.

    Raises:
        InvalidArgumentError: the tensor has another dtype.
    """
    checked = convert_to_tensor(tensor)
    if checked.dtype.base is not as_dtype(tf_type).base:
        text = f"{message or ''}{checked.name} must be of type {as_dtype(tf_type).text}, got {checked.dtype.text}"
        raise InvalidArgumentError.at(checked.node, text)
    return no_op(name or "statically_determined_correct_type")


def assert_integer(x: Any, message: str | None = None, name: str | None = None) -> Node:
    """A node that does nothing.

    Raises:
        InvalidArgumentError: the tensor is not of integers.
    """
    tensor = convert_to_tensor(x, name="x")
    if not tensor.dtype.is_integer:
        raise InvalidArgumentError.at(tensor.node, f'{message or ""}Expected "x" to be integer type. Found: {tensor.dtype.text}')
    return no_op(name or "statically_determined_was_integer")


def is_numeric_tensor(tensor: Any) -> bool:
    """True for a tensor of numbers."""
    return isinstance(tensor, Tensor) and _is_numeric(tensor.dtype.base)


def _is_numeric(dtype: DType) -> bool:
    return dtype.is_integer or dtype.is_floating or dtype.is_complex


def verify_tensor_all_finite(t: Any = None, msg: str = "", name: str | None = None, x: Any = None, message: str | None = None) -> Tensor:
    """The tensor; its computation fails, with a message, where it is not finite."""
    with name_scope(name or "VerifyFinite"):
        tensor = convert_to_tensor(x if t is None else t)
        checked = apply_one("CheckNumerics", [tensor], None, {"message": message or msg})
        with control_dependencies([checked]):
            return apply_one("Identity", [tensor], None)
