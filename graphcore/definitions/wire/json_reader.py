"""Reads protobuf's JSON form into messages, long lists at once."""

from __future__ import annotations

import base64
import collections
import functools
import json
import math
import re
from collections.abc import Callable
from typing import Any, Final

from graphcore.definitions.wire.fields import MOST_NESTED, RANGES, Field, Fields, Schema

_LARGEST: Final = {"float": float.fromhex("0x1.fffffefffffffp+127"), "double": float.fromhex("0x1.fffffffffffffp+1023")}
"""Larger values are not rounded to a number of the field's type."""
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_SHOWN: Final = 40
_WRONG: Final = (ValueError, TypeError, OverflowError)
"""The errors of conversions, and of messages for a value beyond the range of its field."""


class JsonError(ValueError):
    """A JSON text does not encode the message: place, expectation and actual text."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what
        self.path: list[str] = []
        """The place, from the innermost part outwards."""

    def __str__(self) -> str:
        place = "".join(reversed(self.path)).removeprefix(".")
        return f"{place}: {self.what}" if place else self.what


def _shown(value: Any) -> str:
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    if isinstance(value, str):
        return json.dumps(value if len(value) <= _SHOWN else f"{value[:_SHOWN]}...")
    text = json.dumps(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _integer(value: Any) -> int:
    if type(value) is int:
        return value
    if isinstance(value, bool) or (isinstance(value, float) and not value.is_integer()) or (isinstance(value, str) and " " in value):
        raise ValueError
    try:
        return int(value)
    except ValueError:
        number = float(value)
        if not number.is_integer():
            raise
        return int(number)


def _real(value: Any, largest: float) -> float:
    # NaN and infinities are strings in JSON.
    if (isinstance(value, float) and not -largest <= value <= largest) or value == "nan":
        raise ValueError
    return float(value)


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError
    return value


def _string(value: Any) -> str:
    if not isinstance(value, str) or _SURROGATE.search(value) is not None:
        raise TypeError
    return value


def _bytes(value: Any) -> bytes:
    if not isinstance(value, str):
        raise TypeError
    data = value.encode()
    return base64.urlsafe_b64decode(data + b"=" * (4 - len(data) % 4))


_ONE: Final[dict[str, Callable[[Any], Any]]] = {
    **dict.fromkeys(RANGES, _integer),
    "float": functools.partial(_real, largest=_LARGEST["float"]),
    "double": functools.partial(_real, largest=_LARGEST["double"]),
    "bool": _flag,
    "string": _string,
    "bytes": _bytes,
}


class JsonField(Field):
    """A field with a reader for its values."""

    __slots__ = ("one",)

    def __init__(self, descriptor: Any) -> None:
        super().__init__(descriptor)
        self.one: Callable[[Any], Any] = self._member if self.kind == "enum" else _ONE.get(self.kind, _string)

    def _member(self, value: Any) -> int:
        number = self.numbers.get(value)
        return int(value) if number is None else number

    def many(self, values: list[Any]) -> list[Any]:
        """The values of a list.

        Raises:
            ValueError, TypeError or OverflowError: one of them is invalid; the caller searches for it.
        """
        kinds = set(map(type, values))
        if self.kind in _INTEGERS:
            if kinds == {int}:
                return values
            if kinds == {str} and " " not in "".join(values):
                return list(map(int, values))
        elif kinds == {float} and self.kind in _LARGEST and all(map(math.isfinite, values)):
            largest = _LARGEST[self.kind]
            if -largest <= min(values) and max(values) <= largest:
                return values
        return list(map(self.one, values))


_INTEGERS: Final = frozenset(RANGES) - {"enum"}
_SCHEMA: Final = Schema(JsonField)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        count = collections.Counter(name for name, _ in pairs)
        raise JsonError(f"duplicate key {_shown(count.most_common(1)[0][0])}")
    return members


def read_json(text: str, message: Any) -> None:
    """Fill an empty message from protobuf's JSON form.

    Args:
        text: the text, an object.
        message: of a kind without extensions; the schema has no others.

    Raises:
        JsonError: the text does not encode such a message. The message may be partly filled.
    """
    try:
        value = json.loads(text, object_pairs_hook=_unique)
    except RecursionError:
        raise JsonError("nested deeper than can be read") from None
    except json.JSONDecodeError as error:
        raise JsonError(f"line:column {error.lineno}:{error.colno}: {error.msg}") from None
    except JsonError:
        raise
    except ValueError as error:
        raise JsonError(str(error)) from None
    _fill(message, _SCHEMA.fields_of(message.DESCRIPTOR), value, 1)


def _fill(message: Any, fields: Fields[JsonField], value: Any, depth: int) -> None:
    if depth > MOST_NESTED:
        raise JsonError(f"messages may be nested {MOST_NESTED} deep, these are nested deeper")
    if type(value) is not dict:
        raise JsonError(f"expected an object, found {_shown(value)}")
    chosen: dict[str, str] = {}
    for name, item in value.items():
        field = fields.by_json_name.get(name)
        if field is None:
            raise JsonError(f"{fields.full_name} has no field named {_shown(name)}")
        if field.oneof is not None and item is not None and chosen.setdefault(field.oneof, name) != name:
            raise JsonError(f'"{name}" beside "{chosen[field.oneof]}": {fields.full_name} has one of them')
        try:
            _fill_field(message, field, item, depth)
        except JsonError as error:
            error.path.append(f".{name}")
            raise


def _fill_field(message: Any, field: JsonField, value: Any, depth: int) -> None:
    if field.repeated or value is None:
        message.ClearField(field.name)
    if value is None:
        return
    if field.is_map:
        _fill_map(getattr(message, field.name), field, value, depth)
    elif field.repeated:
        if type(value) is not list:
            raise JsonError(f"expected a list, found {_shown(value)}")
        values = getattr(message, field.name)
        if field.is_message:
            _fill_messages(values, field, value, depth)
        else:
            _fill_scalars(values, field, value)
    elif field.is_message:
        inside = getattr(message, field.name)
        inside.SetInParent()
        _fill(inside, _SCHEMA.fields_of(field.inside), value, depth + 1)
    else:
        try:
            setattr(message, field.name, field.one(value))
        except _WRONG:
            raise _expected(field, value) from None


def _expected(field: JsonField, value: Any) -> JsonError:
    return JsonError(f"expected {field.expected}, found {_shown(value)}")


def _fill_messages(values: Any, field: JsonField, items: list[Any], depth: int) -> None:
    fields = _SCHEMA.fields_of(field.inside)
    add = values.add
    index = 0
    try:
        for index, item in enumerate(items):  # noqa: B007 - used in errors, for the place
            _fill(add(), fields, item, depth + 1)
    except JsonError as error:
        error.path.append(f"[{index}]")
        raise


def _fill_scalars(values: Any, field: JsonField, items: list[Any]) -> None:
    try:
        values.extend(field.many(items))
    except _WRONG:
        del values[:]
        for index, item in enumerate(items):
            try:
                values.append(field.one(item))
            except _WRONG:
                error = _expected(field, item)
                error.path.append(f"[{index}]")
                raise error from None


def _fill_map(values: Any, field: JsonField, items: Any, depth: int) -> None:
    if type(items) is not dict:
        raise JsonError(f"expected an object, found {_shown(items)}")
    fields = _SCHEMA.fields_of(field.inside).by_name
    key_field, value_field = fields["key"], fields["value"]
    for name, item in items.items():
        try:
            _fill_entry(values, key_field, value_field, name, item, depth)
        except JsonError as error:
            error.path.append(f"[{_shown(name)}]")
            raise


def _fill_entry(values: Any, key_field: JsonField, value_field: JsonField, name: str, item: Any, depth: int) -> None:
    try:
        key = key_field.one(name)
        inside = values[key] if value_field.is_message else None
    except _WRONG:
        raise JsonError(f"expected {key_field.expected} as a key") from None
    if inside is not None:
        _fill(inside, _SCHEMA.fields_of(value_field.inside), item, depth + 1)
        return
    try:
        values[key] = value_field.one(item)
    except _WRONG:
        raise _expected(value_field, item) from None
