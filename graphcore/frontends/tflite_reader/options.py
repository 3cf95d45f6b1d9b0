"""The options of TFLite's ops as attrs, read by the classes of the schema."""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from graphcore.frontends.foreign import Attr
    from graphcore.frontends.tflite_reader.budget import Budget

_ENUMS: Final = {
    "Padding": "Padding",
    "FusedActivationFunction": "ActivationFunctionType",
    "WeightsFormat": "FullyConnectedOptionsWeightsFormat",
    "Combiner": "CombinerType",
    "Mode": "MirrorPadMode",
    "InDataType": "TensorType",
    "OutDataType": "TensorType",
    "OutputType": "TensorType",
    "IdxOutType": "TensorType",
    "QuantizedBiasType": "TensorType",
    "ReduceFunction": "ReduceWindowFunction",
    "ComparisonDirection": "StablehloComparisonDirection",
    "CompareType": "StablehloComparisonType",
    "Algorithm": "RngAlgorithm",
}
"""The enumerations of the fields that hold one."""
_OF_CLASSES: Final = {
    ("LSTMOptions", "KernelType"): "LSTMKernelType",
    ("LSHProjectionOptions", "Type"): "LSHProjectionType",
}
_HELPERS: Final = ("AsNumpy", "Length", "IsNone")
_WORD_ENDS: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_MAX_ITEMS: Final = 1000
_MAX_TEXT: Final = 4000


@cache
def words_of(enumeration: str) -> dict[int, str]:
    """The words of an enumeration of the schema by their numbers; none if there is no such one."""
    try:
        kind = getattr(import_module(f"tflite.{enumeration}"), enumeration)
    except (ImportError, AttributeError):
        return {}
    return {value: name for name, value in vars(kind).items() if isinstance(value, int) and not name.startswith("_")}


def word_of(enumeration: str, number: int) -> str:
    """The word for a number of an enumeration, or the number itself."""
    return words_of(enumeration).get(number, str(number))


def snake_case(name: str) -> str:
    """`fused_activation_function` for `FusedActivationFunction`."""
    return _WORD_ENDS.sub("_", name).lower()


@cache
def _fields(kind: type) -> tuple[tuple[str, str, bool], ...]:
    """The fields of a class of the schema: accessor, name of the attr, and whether it is a list."""
    names = [name for name, value in vars(kind).items() if name[0].isupper() and name != "Init" and not isinstance(value, classmethod)]
    all_names = set(names)
    helpers = {f"{name}{helper}" for name in names for helper in _HELPERS}
    return tuple([(name, snake_case(name), f"{name}Length" in all_names) for name in names if name not in helpers])


class _Watched:
    """A table of a file that notes whether the field last asked for is there."""

    def __init__(self, table: Any) -> None:
        self._table = table
        self.is_there = False

    def Offset(self, slot: int) -> int:  # noqa: N802 - the schema's classes call it so
        """The place of a field, 0 if it is left out."""
        offset: int = self._table.Offset(slot)
        self.is_there = offset != 0
        return offset

    def __getattr__(self, name: str) -> Any:
        return getattr(self._table, name)


def options_of(union: str, number: int, table: Any, budget: Budget) -> tuple[dict[str, Attr], dict[str, Attr]]:
    """The options of an op: those that the file gives, and the defaults of those that it leaves out.

    Args:
        union: `BuiltinOptions` or `BuiltinOptions2`.
        number: which of its classes.
        table: the options.
        budget: limits what is read.
    """
    name = words_of(union).get(number, "NONE")
    if name == "NONE" or table is None:
        return {}, {}
    try:
        kind = getattr(import_module(f"tflite.{name}"), name)
    except (ImportError, AttributeError):
        return {"options": name}, {}
    options = kind()
    options.Init(table.Bytes, table.Pos)
    watched = options._tab = _Watched(options._tab)
    stated: dict[str, Attr] = {}
    left_out: dict[str, Attr] = {}
    for accessor, attr, is_list in _fields(kind):
        value = _list(options, accessor, budget) if is_list else _value(getattr(options, accessor))
        if value is None:
            continue
        enumeration = _OF_CLASSES.get((name, accessor)) or _ENUMS.get(accessor)
        if enumeration is not None and isinstance(value, int):
            value = word_of(enumeration, value)
        (stated if watched.is_there else left_out)[attr] = value
    return stated, left_out


def _value(get: Callable[[], Any]) -> Attr | None:
    try:
        value = get()
    except TypeError:  # an accessor with further arguments, for tables within tables
        return None
    if isinstance(value, bytes):
        return value[:_MAX_TEXT].decode(errors="replace")
    return value if isinstance(value, bool | int | float) else None


def _list(options: Any, accessor: str, budget: Budget) -> Attr:
    count = budget.take(getattr(options, f"{accessor}Length")())
    get = getattr(options, accessor)
    items = [get(place) for place in range(min(count, _MAX_ITEMS))]
    return [item for item in items if isinstance(item, bool | int | float)]
