"""Arrays as strict as CuPy's, on machines without a GPU: no implicit way to NumPy, and only the functions that CuPy has.

`strict` takes the place of `k.xp`. What a kernel does with its arrays through it, CuPy can do too.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

# The public functions and constants of CuPy 14.
CUPY: Final = frozenset(Path(__file__).with_name("cupy_names.txt").read_text(encoding="utf-8").split())
# The methods of ufuncs that CuPy implements.
UFUNC_METHODS: Final = {
    "reduce": {"add", "multiply"},
    "accumulate": {"add", "multiply"},
    "reduceat": {"add"},
    "at": {"add", "subtract", "maximum", "minimum", "bitwise_and", "bitwise_or", "bitwise_xor"},
    "outer": {"add", "subtract", "multiply", "divide", "maximum", "minimum"},
}
METHODS: Final = frozenset(
    [
        "all",
        "any",
        "argmax",
        "argmin",
        "argpartition",
        "argsort",
        "astype",
        "choose",
        "clip",
        "compress",
        "conj",
        "conjugate",
        "copy",
        "cumprod",
        "cumsum",
        "diagonal",
        "dot",
        "fill",
        "flatten",
        "max",
        "mean",
        "min",
        "nonzero",
        "partition",
        "prod",
        "ravel",
        "repeat",
        "reshape",
        "round",
        "searchsorted",
        "sort",
        "squeeze",
        "std",
        "sum",
        "swapaxes",
        "take",
        "trace",
        "transpose",
        "var",
        "view",
    ]
)
PLAIN: Final = frozenset({"dtype", "shape", "ndim", "size", "nbytes", "itemsize", "strides", "flags"})
_BINARY: Final = "add sub mul truediv floordiv mod pow lshift rshift and or xor matmul"
_COMPARE: Final = "eq ne lt le gt ge"
_NOT_TO_NUMPY: Final = "Implicit conversion to a NumPy array is not allowed. Please use `.get()` to construct a NumPy array explicitly."


class StrictArray:
    """An array that only `strict` and its own methods work on."""

    __array_ufunc__ = None
    __slots__ = ("held",)

    def __init__(self, held: npt.NDArray[Any]) -> None:
        self.held = held

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError(_NOT_TO_NUMPY)

    def __array_function__(self, *_: Any) -> Any:
        raise TypeError(_NOT_TO_NUMPY)

    def __repr__(self) -> str:
        return f"strict {self.held!r}"

    def get(self) -> npt.NDArray[Any]:
        """The way to NumPy."""
        return self.held

    def item(self, *index: int) -> Any:
        return self.held.item(*index)

    def tolist(self) -> Any:
        return self.held.tolist()

    def __len__(self) -> int:
        return len(self.held)

    def __bool__(self) -> bool:
        return bool(self.held)

    def __int__(self) -> int:
        return int(self.held)

    def __index__(self) -> int:
        return operator.index(self.held)

    def __float__(self) -> float:
        return float(self.held)

    def __complex__(self) -> complex:
        return complex(self.held)

    def __iter__(self) -> Any:
        return (wrapped(row) for row in self.held)

    def __hash__(self) -> int:
        raise TypeError("unhashable type: an array")

    def __getitem__(self, index: Any) -> Any:
        return wrapped(self.held[unwrapped(index)])

    def __setitem__(self, index: Any, value: Any) -> None:
        self.held[unwrapped(index)] = unwrapped(value)

    def __neg__(self) -> Any:
        return wrapped(-self.held)

    def __abs__(self) -> Any:
        return wrapped(abs(self.held))

    def __invert__(self) -> Any:
        return wrapped(~self.held)

    @property
    def T(self) -> Any:  # noqa: N802  # the name that arrays give it
        return wrapped(self.held.T)

    @property
    def real(self) -> Any:
        return wrapped(self.held.real)

    @real.setter
    def real(self, value: Any) -> None:
        self.held.real = unwrapped(value)

    @property
    def imag(self) -> Any:
        return wrapped(self.held.imag)

    @imag.setter
    def imag(self, value: Any) -> None:
        self.held.imag = unwrapped(value)

    def __getattr__(self, name: str) -> Any:
        if name in PLAIN:
            return getattr(self.held, name)
        if name not in METHODS:
            raise AttributeError(f"CuPy's arrays have no attribute '{name}'")
        return function(getattr(self.held, name))


def _define(name: str, *, swapped: bool = False, in_place: bool = False) -> None:
    inner = getattr(operator, f"__i{name}__" if in_place else f"__{name}__")

    def method(self: StrictArray, other: Any) -> Any:
        mine, theirs = self.held, unwrapped(other)
        if not in_place:
            return wrapped(inner(theirs, mine) if swapped else inner(mine, theirs))
        self.held = inner(mine, theirs)
        return self

    setattr(StrictArray, f"__{'r' if swapped else 'i' if in_place else ''}{name}__", method)


for _name in _BINARY.split():
    _define(_name)
    _define(_name, swapped=True)
    if _name != "matmul":
        _define(_name, in_place=True)
for _name in _COMPARE.split():
    _define(_name)


def wrapped(value: Any) -> Any:
    """NumPy's results as strict arrays; like CuPy, also scalars."""
    if isinstance(value, np.ndarray | np.generic):
        return StrictArray(np.asarray(value))
    if isinstance(value, tuple | list):
        return type(value)([wrapped(part) for part in value]) if not hasattr(value, "_fields") else type(value)(*map(wrapped, value))
    return value


def unwrapped(value: Any) -> Any:
    """What a function of the backend may be given; an array of NumPy may not."""
    if isinstance(value, StrictArray):
        return value.held
    if isinstance(value, np.ndarray):
        raise TypeError("Unsupported type <class 'numpy.ndarray'>")
    if isinstance(value, tuple | list):
        return type(value)([unwrapped(part) for part in value])
    return value


def function(inner: Callable[..., Any]) -> Callable[..., Any]:
    """A function that takes and gives strict arrays."""

    def call(*arguments: Any, **named: Any) -> Any:
        out = named.get("out")
        given = {name: unwrapped(value) for name, value in named.items()}
        result = inner(*[unwrapped(argument) for argument in arguments], **given)
        return out if isinstance(out, StrictArray) else wrapped(result)

    return call


class StrictUfunc:
    """A ufunc with the methods that CuPy has of it."""

    def __init__(self, inner: np.ufunc) -> None:
        self.inner = inner
        self.__name__ = inner.__name__

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        out = next((part for part in (*arguments[self.inner.nin :], named.get("out")) if isinstance(part, StrictArray)), None)
        result = function(self.inner)(*arguments, **named)
        return result if out is None else out

    def __getattr__(self, name: str) -> Any:
        if self.inner.__name__ not in UFUNC_METHODS.get(name, ()):
            raise NotImplementedError(f"`cupy_{self.inner.__name__}.{name}` is not supported yet")
        return function(getattr(self.inner, name))


def _from_host(inner: Callable[..., Any]) -> Callable[..., Any]:
    """`asarray` and `array`, which are the way from NumPy to the device."""

    def call(value: Any, *arguments: Any, **named: Any) -> Any:
        return StrictArray(inner(value.held if isinstance(value, StrictArray) else _parts(value), *arguments, **named))

    return call


def _parts(value: Any) -> Any:
    return [_parts(part) for part in value] if isinstance(value, list | tuple) else value.held if isinstance(value, StrictArray) else value


class StrictModule(ModuleType):
    """NumPy's functions as far as CuPy has them."""

    lib: Final = SimpleNamespace(stride_tricks=SimpleNamespace(as_strided=function(np.lib.stride_tricks.as_strided)))
    errstate: Final = np.errstate

    def __getattr__(self, name: str) -> Any:
        if name not in CUPY:
            raise AttributeError(f"CuPy has no '{name}'")
        found = getattr(np, name)
        if isinstance(found, np.ufunc):
            made: Any = StrictUfunc(found)
        elif name in {"array", "asarray", "ascontiguousarray"}:
            made = _from_host(found)
        elif isinstance(found, ModuleType):
            made = SimpleNamespace(**{part: function(getattr(found, part)) for part in dir(found) if callable(getattr(found, part))})
        elif isinstance(found, type) or not callable(found):
            made = found
        else:
            made = function(found)
        setattr(self, name, made)
        return made


strict: Final = StrictModule("strict")
