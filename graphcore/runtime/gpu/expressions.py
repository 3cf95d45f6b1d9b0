"""Kernels as expressions of ufuncs, found by calling them once on symbols."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from graphcore.kernel_context import KernelContext
from graphcore.registry import KernelFactory

_NUMBERS: Final = (bool, int, float, complex, np.number, np.bool_)
_MOST_CALLS: Final = 32
"""The longest kernel: a series of hundreds of terms would take seconds to compile."""


class Place(int):
    """The index of a value among the inputs, followed by the results of the calls."""


class Call(NamedTuple):
    """A call of a function on values, by their places, and numbers."""

    function: Callable[..., Any]
    arguments: Sequence[Any]


class Expression(NamedTuple):
    """The calls that a kernel makes.

    Attributes:
        calls: the calls, in order.
        result: the place of the result.
        ranks: the ranks of inputs on which the calls depend.
        alike: pairs of values on whose equal shapes the calls depend.
    """

    calls: Sequence[Call]
    result: Place
    ranks: Mapping[Place, int]
    alike: Sequence[tuple[Place, Place]]

    def shape(self, *inputs: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of the result for inputs of some shapes.

        Raises:
            ValueError: they do not fit together, or other calls are made for them.
        """
        shapes = list(inputs)
        for _, arguments in self.calls:
            shapes.append(np.broadcast_shapes(*[shapes[place] for place in arguments if type(place) is Place]))
        if any(shapes[one] != shapes[other] for one, other in self.alike):
            raise ValueError("the kernel makes other calls for inputs of these shapes")
        return shapes[self.result]

    def compute(self, *inputs: Any) -> Any:
        """The result for arrays, or for the variables of `cupy.fuse`.

        Raises:
            TypeError: an input has another rank than its static one.
        """
        if any(inputs[place].ndim != rank for place, rank in self.ranks.items()):
            raise TypeError("the kernel makes other calls for inputs of these ranks")
        values = list(inputs)
        for function, arguments in self.calls:
            values.append(function(*[values[argument] if type(argument) is Place else argument for argument in arguments]))
        return values[self.result]


def expression_of(factory: KernelFactory, context: KernelContext, cupy: Any) -> Expression | None:
    """The kernel as an expression; None if the kernel does more than call ufuncs on its inputs.

    Such a kernel computes each element separately, and `cupy.fuse` can compile it.

    Args:
        factory: makes the kernel, which has no side effects.
        context: the context of the kernel; its array module is replaced.
        cupy: the array module.
    """
    recording = _Recording(cupy, len(context.input_shapes))
    context.xp = _Module(recording)
    inputs = [Symbol(recording, Place(number), shape.rank) for number, shape in enumerate(context.input_shapes)]
    try:
        result = factory(context)(*inputs)
    except Exception:  # noqa: BLE001  # a kernel that needs more than symbols fails in its own way
        return None
    if len(recording.calls) > _MOST_CALLS:
        return None
    read = {argument for call in recording.calls for argument in call.arguments if type(argument) is Place}
    if type(result) is not Symbol or result.place < recording.inputs or not read.issuperset(range(recording.inputs)):
        return None
    return Expression(recording.calls, result.place, recording.ranks, recording.alike)


class Symbol(NDArrayOperatorsMixin):
    """A value of a kernel while it is recorded. It has no elements, size or type that the kernel could depend on.

    Args:
        recording: the recording.
        place: the place of the value; another one once the kernel has changed the value in place.
        rank: the static rank of an input, if known.
    """

    def __init__(self, recording: _Recording, place: Place, rank: int | None = None) -> None:
        self._recording = recording
        self.place = place
        self._rank = rank

    @property
    def ndim(self) -> int:
        """The static rank, on which the calls now depend.

        Raises:
            TypeError: it is unknown.
        """
        if self._rank is None:
            raise TypeError("the rank is unknown")
        self._recording.ranks[self.place] = self._rank
        return self._rank

    @property
    def shape(self) -> _Shape:
        """A shape that can be compared."""
        return _Shape(self._recording, self.place)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **named: Any) -> Any:
        return self._recording.function(ufunc.__name__)(*inputs, **named) if method == "__call__" else NotImplemented

    def __bool__(self) -> bool:
        raise TypeError("a symbol has no truth value")

    def astype(self, dtype: Any) -> Symbol:
        """The value in another type."""
        return self._recording.add(lambda value: value.astype(dtype), [self])


class _Shape:
    """The shape of a symbol. It compares equal to any other; the expression then requires that both are equal."""

    def __init__(self, recording: _Recording, place: Place) -> None:
        self._recording = recording
        self._place = place

    def __eq__(self, other: object) -> bool:
        if type(other) is not _Shape:
            raise TypeError("a shape can be compared with that of a symbol")
        self._recording.alike.append((self._place, other._place))
        return True

    def __hash__(self) -> int:
        raise TypeError("a shape of a symbol has no hash")

    def __bool__(self) -> bool:
        raise TypeError("a shape of a symbol has no truth value")


class _Recording:
    """The calls that a kernel makes, instead of their results.

    Args:
        cupy: the array module.
        inputs: the number of the inputs of the kernel.
    """

    def __init__(self, cupy: Any, inputs: int) -> None:
        self._cupy = cupy
        self.inputs = inputs
        self.calls: list[Call] = []
        self.ranks: dict[Place, int] = {}
        self.alike: list[tuple[Place, Place]] = []

    def function(self, name: str) -> Callable[..., Symbol]:
        """The function of the array module that records its calls.

        Raises:
            AttributeError: it is neither a ufunc with one result nor `where`.
        """
        function = getattr(self._cupy, name)
        if name == "where":
            return lambda condition, x, y: self.add(function, [condition, x, y])
        if not isinstance(function, self._cupy.ufunc) or function.nout != 1:
            raise AttributeError(name)
        return partial(self._call, function)

    def _call(self, ufunc: Any, *arguments: Any, out: Any = None) -> Symbol:
        inputs, into = arguments[: ufunc.nin], [*arguments[ufunc.nin :], *(out if type(out) is tuple else [out] * (out is not None))]
        made = self.add(ufunc, inputs)
        if not into:
            return made
        (target,) = into
        if target.place < self.inputs:
            raise TypeError("an input would be changed")
        target.place = made.place
        return target  # type: ignore[no-any-return]  # a symbol, since it has a place

    def add(self, function: Callable[..., Any], arguments: Sequence[Any]) -> Symbol:
        """Record a call.

        Raises:
            TypeError: an argument is neither a symbol nor a number.
        """
        if not all(isinstance(argument, (Symbol, *_NUMBERS)) for argument in arguments):
            raise TypeError("required symbols and numbers")
        self.calls.append(Call(function, [argument.place if type(argument) is Symbol else argument for argument in arguments]))
        return Symbol(self, Place(self.inputs + len(self.calls) - 1))


class _Module:
    """The array module of a kernel that is recorded."""

    def __init__(self, recording: _Recording) -> None:
        self._recording = recording

    def __getattr__(self, name: str) -> Any:
        return self._recording.function(name)
