"""`cupy.fuse` on NumPy.

The function gets variables without elements, and what it calls is compiled once for the types and numbers of axes of its inputs. As in CuPy, all results have the shape to which all inputs are broadcast, and loops are chosen by the types of variables and numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from tests.support.strict_arrays import BINARY, COMPARE, FUSING, UFUNCS, StrictArray, computed, strict, unwrapped

_WHERE: Final = tuple(f"?{code}{code}->{code}" for code in "?bBhHiIlLqQefdFD")
_WEAK: Final = {bool: False, int: 0, float: 0.0, complex: 0j}


class _Call(NamedTuple):
    inner: Callable[..., Any]
    takes: Sequence[np.dtype[Any]]
    given: Sequence[Any]
    into: Variable


class Variable:
    """A variable of a function that is being compiled."""

    __array_ufunc__ = None

    def __init__(self, fusing: Fusing, place: int, dtype: np.dtype[Any], ndim: int) -> None:
        self._fusing = fusing
        self.place = place
        self.dtype = dtype
        self.ndim = ndim

    def __getattr__(self, name: str) -> Any:
        raise NotImplementedError(f"`{name}` is not supported, currently.")

    def __bool__(self) -> bool:
        raise TypeError("Cannot convert to Python scalar in cupy.fuse")

    def astype(self, dtype: Any, order: Any = None, casting: Any = None, subok: Any = None, copy: bool = True) -> Variable:
        if not (order is casting is subok is None):
            raise TypeError("order, casting and subok are not supported yet")
        wanted = np.dtype(dtype)
        if not copy and self.dtype == wanted:
            return self
        return self._fusing.add(lambda value: value.astype(wanted), [self.dtype], [self], wanted, None)


def _define(name: str, ufunc: str) -> None:
    function = getattr(strict, ufunc)
    setattr(Variable, f"__{name}__", lambda *both: function(*both))  # noqa: PLW0108  # only a function becomes a method
    setattr(Variable, f"__r{name}__", lambda self, other: function(other, self))
    setattr(Variable, f"__i{name}__", lambda self, other: function(self, other, self))


for _name, _ufunc in {**BINARY, **COMPARE}.items():
    if _name != "matmul":
        _define(_name, _ufunc)
for _name, _ufunc in {"neg": "negative", "invert": "invert"}.items():
    setattr(Variable, f"__{_name}__", lambda self, ufunc=_ufunc: getattr(strict, ufunc)(self))


class Fusion:
    """A function with what it was compiled to, by the types and numbers of axes of its inputs."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._compiled: dict[Any, Fusing] = {}

    def __call__(self, *arrays: Any) -> Any:
        assert all(isinstance(array, StrictArray) for array in arrays)
        key = tuple([(array.dtype.char, array.ndim) for array in arrays])
        if key not in self._compiled:
            self._compiled[key] = Fusing(self._function, arrays)
        return computed(self._compiled[key].run, *[unwrapped(array) for array in arrays])


class Fusing:
    """A function that is being compiled."""

    def __init__(self, function: Callable[..., Any], arrays: Sequence[StrictArray]) -> None:
        self._calls: list[_Call] = []
        self._count = self._inputs = len(arrays)
        given = [Variable(self, place, array.dtype, array.ndim) for place, array in enumerate(arrays)]
        FUSING.now = self
        try:
            found = function(*given)
        finally:
            FUSING.now = None
        self._is_tuple = isinstance(found, tuple)
        results = found if isinstance(found, tuple) else (found,)
        if not all(isinstance(each, Variable) for each in results):
            raise TypeError(f"Fusion function can't return {found!r}")
        self._results = [each.place for each in results]

    def call(self, name: str, inner: Any, arguments: Sequence[Any], named: dict[str, Any]) -> Variable:
        """Record a call of a ufunc or of `where`."""
        loops = _WHERE if name == "where" else UFUNCS.get(name, ())
        out = named.pop("out", None)
        if named or not loops:
            raise TypeError(f"{name} with {sorted(named)} is not supported in fusion")
        count = len(loops[0].partition("->")[0])
        given, into = arguments[:count], [*arguments[count:], *([] if out is None else [out])]
        if len(given) != count or len(into) > 1 or not all(isinstance(each, Variable) for each in into):
            raise TypeError("return arrays must be of ArrayType")
        for loop in loops:
            takes, _, gives = loop.partition("->")
            if all(_fits(value, code) for value, code in zip(given, takes, strict=True)):
                return self.add(inner, [np.dtype(code) for code in takes], given, np.dtype(gives), into[0] if into else None)
        raise TypeError(f"Invalid type cast in '{name}'")

    def add(
        self, inner: Any, takes: Sequence[np.dtype[Any]], given: Sequence[Any], dtype: np.dtype[Any], into: Variable | None
    ) -> Variable:
        """Record a call with its types."""
        ndim = max(each.ndim for each in given if isinstance(each, Variable))
        if into is None:
            into = Variable(self, self._count, dtype, ndim)
            self._count += 1
        assert into.place >= self._inputs, "an input would be changed"
        assert into.ndim >= ndim, "non-broadcastable output operand"
        assert np.can_cast(dtype, into.dtype, "same_kind")
        self._calls.append(_Call(inner, takes, given, into))
        return into

    def run(self, *arrays: npt.NDArray[Any]) -> Any:
        """The results for arrays."""
        values = dict(enumerate(arrays))
        for inner, takes, given, into in self._calls:
            parts = [values[each.place] if isinstance(each, Variable) else each for each in given]
            result = inner(*[np.asarray(part).astype(dtype, copy=False) for part, dtype in zip(parts, takes, strict=True)])
            values[into.place] = np.asarray(result).astype(into.dtype, copy=False)
        shape = np.broadcast_shapes(*[array.shape for array in arrays])
        found = tuple([np.array(np.broadcast_to(values[place], shape)) for place in self._results])
        return found if self._is_tuple else found[0]


def _fits(value: Any, code: str) -> bool:
    """True iff a loop takes a value for a parameter of type `code`."""
    if isinstance(value, Variable | np.generic):
        return np.can_cast(value.dtype, code)
    if type(value) not in _WEAK:
        raise TypeError(f"Unsupported type {type(value)}")
    return bool(np.result_type(_WEAK[type(value)], np.dtype(code)) == code)
