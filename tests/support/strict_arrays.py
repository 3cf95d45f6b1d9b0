"""Arrays as strict as CuPy's: no implicit conversion to NumPy, and only CuPy's functions.

`strict` replaces `k.xp`. A kernel that works with it works with CuPy.
"""

from __future__ import annotations

import operator
import threading
from collections.abc import Callable
from inspect import Signature
from types import ModuleType, SimpleNamespace
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt

from tests.support import cupy_api

FUNCTIONS, UFUNCS, METHODS, _OTHERS = cupy_api.read()
CUPY: Final = _OTHERS.union(FUNCTIONS, UFUNCS)
UFUNC_KEYWORDS: Final = frozenset({"out", "dtype", "casting"})
# The methods of ufuncs that CuPy implements.
UFUNC_METHODS: Final = {
    "reduce": {"add", "multiply"},
    "accumulate": {"add", "multiply"},
    "reduceat": {"add"},
    "at": {"add", "subtract", "maximum", "minimum", "bitwise_and", "bitwise_or", "bitwise_xor"},
    "outer": {"add", "subtract", "multiply", "divide", "maximum", "minimum"},
}
AT_TYPES: Final = {"add": "iIlLqQefd", "subtract": "iI", "maximum": "iIfd", "minimum": "iIfd"}
"""The type codes of the results that CuPy's method `at` accepts."""
_WITHOUT_NAN: Final = {"maximum": np.fmax, "minimum": np.fmin}
PLAIN: Final = frozenset({"dtype", "shape", "ndim", "size", "nbytes", "itemsize", "strides", "flags"})
# Operators with their ufuncs.
BINARY: Final = {
    "add": "add",
    "sub": "subtract",
    "mul": "multiply",
    "truediv": "true_divide",
    "floordiv": "floor_divide",
    "mod": "remainder",
    "pow": "power",
    "lshift": "left_shift",
    "rshift": "right_shift",
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
    "matmul": "matmul",
}
COMPARE: Final = {"eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal"}
_NOT_TO_NUMPY: Final = "Implicit conversion to a NumPy array is not allowed. Please use `.get()` to construct a NumPy array explicitly."


class Machine(Protocol):
    """The device that watches how arrays are used."""

    def made(self, array: StrictArray) -> None:
        """An array is allocated."""

    def use(self, array: StrictArray) -> None:
        """A function of the device uses an array."""

    def read(self, array: StrictArray, stream: Any) -> None:
        """An array is copied to the host."""

    def copy(self, array: StrictArray, source: StrictArray, stream: Any) -> None:
        """An array is copied from another device."""

    def write(self, array: StrictArray, source: npt.NDArray[Any], stream: Any) -> None:
        """An array is copied from the host."""

    def computed(self, again: Callable[[], Any], result: Any) -> None:
        """A function has been computed; `again` computes it on the present values of its inputs."""


MACHINES: Final[list[Machine]] = []
"""Those that watch now."""


class _Fusing(threading.local):
    """The function that `cupy.fuse` compiles in this thread."""

    now: Any = None


FUSING: Final = _Fusing()


class _Memory:
    """The memory of an array on its device."""

    def __init__(self, array: StrictArray) -> None:
        self.array = array
        self.device_id = array.number
        self.ptr = array.held.__array_interface__["data"][0]

    def copy_from_device_async(self, src: _Memory, size: int, stream: Any = None) -> None:
        """Copy from another device."""
        assert src.array.held.flags.c_contiguous
        assert self.array.held.flags.c_contiguous
        assert size == self.array.held.nbytes == src.array.held.nbytes
        for machine in MACHINES:
            machine.copy(self.array, src.array, stream)
        self.array.held[...] = src.array.held


class StrictArray:
    """An array that only `strict` and its own methods accept.

    Attributes:
        copied: the copy that filled it, for the machine that watches.
        number: the number of its device.
        maker: the stream on which it was made, with the number of launches until then.
    """

    __array_ufunc__ = None
    __slots__ = ("__weakref__", "copied", "held", "maker", "number")

    base: Final = None  # CuPy's is the array that a view belongs to

    def __init__(self, held: npt.NDArray[Any]) -> None:
        self.held = held
        self.copied: Any = None
        self.number = 0
        self.maker: Any = None
        for machine in MACHINES:
            machine.made(self)

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError(_NOT_TO_NUMPY)

    def __array_function__(self, *_: Any) -> Any:
        raise TypeError(_NOT_TO_NUMPY)

    def __repr__(self) -> str:
        return f"strict {self.held!r}"

    def get(self, stream: Any = None, order: str = "C", out: npt.NDArray[Any] | None = None, blocking: bool = True) -> npt.NDArray[Any]:
        """Convert to NumPy."""
        for machine in MACHINES:
            machine.read(self, stream)
        if out is None:
            return self.held
        assert blocking
        assert out.shape == self.shape
        assert out.dtype == self.dtype
        out[...] = self.held
        return out

    def set(self, arr: npt.NDArray[Any], stream: Any = None) -> None:
        """Copy from NumPy."""
        assert arr.shape == self.shape
        assert arr.dtype == self.dtype
        for machine in MACHINES:
            machine.write(self, arr, stream)
        self.held[...] = arr

    @property
    def data(self) -> _Memory:
        return _Memory(self)

    def item(self, *index: int) -> Any:
        return self.get().item(*index)

    def tolist(self) -> Any:
        return self.get().tolist()

    def __len__(self) -> int:
        return len(self.held)

    def __bool__(self) -> bool:
        return bool(self.get())

    def __int__(self) -> int:
        return int(self.get())

    def __index__(self) -> int:
        return operator.index(self.get())

    def __float__(self) -> float:
        return float(self.get())

    def __complex__(self) -> complex:
        return complex(self.get())

    def __iter__(self) -> Any:
        return (wrapped(row) for row in self.held)

    def __hash__(self) -> int:
        raise TypeError("unhashable type: an array")

    def __getitem__(self, index: Any) -> Any:
        return computed(operator.getitem, unwrapped(self), unwrapped(index))

    def __setitem__(self, index: Any, value: Any) -> None:
        computed(operator.setitem, unwrapped(self), unwrapped(index), unwrapped(value))

    def __neg__(self) -> Any:
        return computed(operator.neg, unwrapped(self))

    def __abs__(self) -> Any:
        return computed(abs, unwrapped(self))

    def __invert__(self) -> Any:
        return computed(operator.invert, unwrapped(self))

    @property
    def T(self) -> Any:  # noqa: N802  # the name of the array API
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
        return function(getattr(unwrapped(self), name), name, METHODS[name])


def _define(name: str, *, swapped: bool = False, in_place: bool = False) -> None:
    ufunc = {**BINARY, **COMPARE}[name]
    inner = getattr(operator, f"__i{name}__" if in_place else f"__{name}__")

    def method(self: StrictArray, other: Any) -> Any:
        mine, theirs = unwrapped(self), unwrapped(other)
        if not in_place and isinstance(other, StrictArray):
            return getattr(strict, ufunc)(*((other, self) if swapped else (self, other)))
        if not in_place:
            return computed(inner, *((theirs, mine) if swapped else (mine, theirs)))
        computed(inner, mine, theirs)
        return self

    setattr(StrictArray, f"__{'r' if swapped else 'i' if in_place else ''}{name}__", method)


for _name in BINARY:
    _define(_name)
    _define(_name, swapped=True)
    if _name != "matmul":
        _define(_name, in_place=True)
for _name in COMPARE:
    _define(_name)


def computed(inner: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """The result of a function of NumPy as strict arrays."""
    result = wrapped(inner(*arguments, **named))
    for machine in MACHINES:
        machine.computed(lambda: inner(*arguments, **named), result)
    return result


def wrapped(value: Any) -> Any:
    """NumPy's results as strict arrays; like CuPy, also scalars."""
    if isinstance(value, np.ndarray | np.generic):
        return StrictArray(np.asarray(value))
    if isinstance(value, tuple | list):
        return type(value)([wrapped(part) for part in value]) if not hasattr(value, "_fields") else type(value)(*map(wrapped, value))
    return value


def unwrapped(value: Any) -> Any:
    """Unwrap an argument of a backend function; NumPy arrays are refused."""
    if isinstance(value, StrictArray):
        for machine in MACHINES:
            machine.use(value)
        return value.held
    if isinstance(value, np.ndarray):
        raise TypeError("Unsupported type <class 'numpy.ndarray'>")
    if isinstance(value, tuple | list):
        return type(value)([unwrapped(part) for part in value])
    return value


def function(inner: Callable[..., Any], name: str, signature: Signature | None = None) -> Callable[..., Any]:
    """A function on strict arrays that refuses arguments CuPy's does not take."""

    def call(*arguments: Any, **named: Any) -> Any:
        if FUSING.now is not None:
            return FUSING.now.call(name, inner, arguments, named)
        if signature is not None:
            try:
                signature.bind(*arguments, **named)
            except TypeError as error:
                raise TypeError(f"CuPy's {name}{signature}: {error}") from None
        out = named.get("out")
        given = {name: unwrapped(value) for name, value in named.items()}
        result = computed(inner, *[unwrapped(argument) for argument in arguments], **given)
        return out if isinstance(out, StrictArray) else result

    return call


class StrictUfunc:
    """A ufunc with CuPy's loops, keywords and methods."""

    def __init__(self, inner: np.ufunc) -> None:
        self.inner = inner
        self.__name__ = inner.__name__
        self.nin = inner.nin
        self.nout = inner.nout
        self._loops = [loop.split("->") for loop in UFUNCS.get(self.__name__, ())]

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        if FUSING.now is not None:
            return FUSING.now.call(self.__name__, self.inner, arguments, named)
        beyond = sorted(set(named) - UFUNC_KEYWORDS)
        if beyond:
            raise TypeError(f"Wrong arguments {beyond}: CuPy's {self.__name__} takes {sorted(UFUNC_KEYWORDS)}")
        out = next((part for part in (*arguments[self.inner.nin :], named.get("out")) if isinstance(part, StrictArray)), None)
        result = function(self.inner, self.__name__)(*arguments, **named)
        if out is not None:
            return out
        if not named and all(isinstance(part, StrictArray) for part in arguments):
            self._require_loop([part.dtype for part in arguments], result)
        return result

    def _require_loop(self, given: list[np.dtype], result: Any) -> None:
        """Require a loop of CuPy for the inputs: the first castable one, with NumPy's result type."""
        if not self._loops:
            return
        for takes, gives in self._loops:
            if all(np.can_cast(dtype, wanted) for dtype, wanted in zip(given, takes, strict=True)):
                found = [part.dtype for part in (result if isinstance(result, tuple) else (result,))]
                if found != [np.dtype(code) for code in gives]:
                    raise TypeError(f"CuPy's {self.__name__} of {given} gives {gives}, NumPy's {found}")
                return
        raise TypeError(f"CuPy's {self.__name__} has no loop for {given}: {self._loops}")

    def __getattr__(self, name: str) -> Any:
        if self.inner.__name__ not in UFUNC_METHODS.get(name, ()):
            raise NotImplementedError(f"`cupy_{self.inner.__name__}.{name}` is not supported yet")
        if name == "at":
            return self._at
        return function(getattr(self.inner, name), name)

    def _at(self, result: Any, places: Any, values: Any) -> None:
        """Combine as CuPy does: for few types, and by extremes that ignore NaN."""
        known = AT_TYPES.get(self.__name__, "iIlLqQ")
        if result.dtype.char not in known:
            raise TypeError(f"cupy.{self.__name__}.at only supports {known} as data type")
        function(_WITHOUT_NAN.get(self.__name__, self.inner).at, "at")(result, places, values)


def _from_host(inner: Callable[..., Any]) -> Callable[..., Any]:
    """`asarray` and `array`, which copy from NumPy to the device."""

    def call(value: Any, *arguments: Any, **named: Any) -> Any:
        return StrictArray(inner(unwrapped(value) if isinstance(value, StrictArray) else _parts(value), *arguments, **named))

    return call


def _parts(value: Any) -> Any:
    return [_parts(part) for part in value] if isinstance(value, list | tuple) else value.held if isinstance(value, StrictArray) else value


def _named(module: Any, name: str) -> Callable[..., Any]:
    return function(getattr(module, name.rpartition(".")[2]), name, FUNCTIONS[name])


class StrictModule(ModuleType):
    """The functions that CuPy shares with NumPy."""

    lib: Final = SimpleNamespace(stride_tricks=SimpleNamespace(as_strided=_named(np.lib.stride_tricks, "lib.stride_tricks.as_strided")))
    errstate: Final = np.errstate

    def __getattr__(self, name: str) -> Any:
        if name not in CUPY:
            raise AttributeError(f"CuPy has no '{name}'")
        found = getattr(np, name)
        if isinstance(found, np.ufunc) and name in UFUNCS:
            made: Any = StrictUfunc(found)
        elif name in {"array", "asarray", "ascontiguousarray"}:
            made = _from_host(found)
        elif isinstance(found, ModuleType):
            prefix = f"{name}."
            made = SimpleNamespace(
                **{known.removeprefix(prefix): _named(found, known) for known in FUNCTIONS if known.startswith(prefix)},
                **{
                    known.removeprefix(prefix): getattr(found, known.removeprefix(prefix))
                    for known in _OTHERS
                    if known.startswith(prefix) and hasattr(found, known.removeprefix(prefix))
                },
            )
        elif isinstance(found, type) or not callable(found):
            made = found
        else:
            made = function(found, name, FUNCTIONS.get(name))
        setattr(self, name, made)
        return made


strict: Final = StrictModule("strict")
