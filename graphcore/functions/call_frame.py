"""Call frames: the arguments and return values of a running function."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np

from graphcore.attrs import TensorValue
from graphcore.dtypes import DType, as_dtype
from graphcore.errors import GraphError, InternalError, InvalidArgumentError


class FunctionCallFrame:
    """Arguments and return values of one call. A return value is set once.

    Args:
        arg_types, ret_types: the types of arguments and returns.
    """

    __slots__ = ("_args", "_has_value", "_rets", "arg_types", "ret_types")

    def __init__(self, arg_types: Iterable[DType | str], ret_types: Iterable[DType | str]) -> None:
        self.arg_types = tuple([as_dtype(dtype) for dtype in arg_types])
        self.ret_types = tuple([as_dtype(dtype) for dtype in ret_types])
        self._args: tuple[Any, ...] = ()
        self._rets: list[Any] = [None] * len(self.ret_types)
        self._has_value = [False] * len(self.ret_types)

    @property
    def num_args(self) -> int:
        """The number of arguments."""
        return len(self.arg_types)

    @property
    def num_retvals(self) -> int:
        """The number of return values."""
        return len(self.ret_types)

    def set_args(self, args: Sequence[Any]) -> None:
        """Set all arguments.

        Raises:
            InvalidArgumentError: a wrong number of arguments, or one of a wrong type.
        """
        if len(args) != len(self.arg_types):
            raise InvalidArgumentError(f"Expects {len(self.arg_types)} arguments, but {len(args)} is provided")
        for index, (value, dtype) in enumerate(zip(args, self.arg_types, strict=True)):
            if not _fits(value, dtype):
                raise InvalidArgumentError(f"Expects arg[{index}] to be {dtype.text} but {_type_name(value)} is provided")
        self._args = tuple(args)

    def check_call(self, arg_types: Sequence[DType], ret_types: Sequence[DType]) -> None:
        """Check that this frame fits a function of these types and has its arguments.

        Raises:
            InvalidArgumentError: the frame has fewer arguments or returns, or of other types.
            InternalError: the arguments are not set yet, or a return is set already.
        """
        for index, dtype in enumerate(arg_types):
            self.get_arg(index)
            if self.arg_types[index] is not dtype:
                raise InvalidArgumentError(f"Type mismatch: actual {self.arg_types[index].text} vs. expect {dtype.text}")
        for index, dtype in enumerate(ret_types):
            self._check_retval(index, partial(_other_type, dtype))

    def get_arg(self, index: int) -> Any:
        """Argument `index`.

        Raises:
            InvalidArgumentError: there is none.
            InternalError: the arguments are not set yet.
        """
        if not 0 <= index < len(self.arg_types):
            raise InvalidArgumentError(f"GetArg {index} is not within [0, {len(self.arg_types)})")
        if not self._args:
            raise InternalError(f"Arg[{index}] does not have value")
        return self._args[index]

    def set_retval(self, index: int, value: Any) -> None:
        """Set return value `index`.

        Raises:
            InvalidArgumentError: there is none, or it is of another type.
            InternalError: it is set already.
        """
        self._check_retval(index, lambda dtype: "" if _fits(value, dtype) else _type_name(value))
        self._rets[index] = value
        self._has_value[index] = True

    def _check_retval(self, index: int, misfit: Callable[[DType], str]) -> None:
        """Check that return `index` may be set. `misfit` returns the name of a type that does not fit."""
        if not 0 <= index < len(self.ret_types):
            raise InvalidArgumentError(f"SetRetval {index} is not within [0, {len(self.ret_types)})")
        dtype = self.ret_types[index]
        provided = misfit(dtype)
        if provided:
            raise InvalidArgumentError(f"Expects ret[{index}] to be {dtype.text}, but {provided} is provided.")
        if self._has_value[index]:
            raise InternalError(f"Retval[{index}] has already been set.")

    def get_retvals(self) -> list[Any]:
        """All return values.

        Raises:
            InternalError: one is missing.
        """
        if False in self._has_value:
            raise InternalError(f"Retval[{self._has_value.index(False)}] does not have value")
        return list(self._rets)

    def consume_retvals(self) -> list[Any]:
        """All return values; the frame releases them.

        Raises:
            InternalError: one is missing.
        """
        values = self.get_retvals()
        self._rets = [None] * len(values)
        self._has_value = [False] * len(values)
        return values


def _other_type(actual: DType, wanted: DType) -> str:
    return "" if actual is wanted else actual.text


def _fits(value: Any, dtype: DType) -> bool:
    """True iff `value` is of type `dtype`. Handles and other objects that are no arrays fit resource and variant."""
    own = getattr(value, "dtype", None)
    if dtype.as_numpy is None:
        return not isinstance(own, np.dtype) and not isinstance(value, TensorValue | bool | int | float | complex | str | bytes)
    if isinstance(own, DType):
        return own.base is dtype.base
    return own is not None and bool(dtype.as_numpy == own)


def _type_name(value: Any) -> str:
    own = getattr(value, "dtype", None)
    if isinstance(own, DType):
        return own.text
    try:
        return as_dtype(own if own is not None else np.asarray(value).dtype).text
    except GraphError:
        return type(value).__name__
