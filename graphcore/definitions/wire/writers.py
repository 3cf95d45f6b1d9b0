"""Writes messages in protobuf's text and JSON forms, letter for letter as protobuf does, long lists at once."""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Callable, Iterable
from typing import Any, Final

import numpy as np

from graphcore.definitions.wire.fields import Field, Schema

_FEWEST_DIGITS: Final = 6
_ESCAPED: Final = {code: f"\\{code:03o}" for code in (*range(32), *range(127, 256))} | {
    ord(letter): f"\\{escape}" for letter, escape in zip("\t\n\r\"'\\", "tnr\"'\\", strict=True)
}
_ESCAPED_LETTERS: Final = {code: text for code, text in _ESCAPED.items() if code < 128}
_BYTES: Final = [_ESCAPED.get(code, chr(code)) for code in range(256)]
_TO_ESCAPE: Final = re.compile(r"[\x00-\x1f\x7f\"'\\]")
_TO_ESCAPE_IN_BYTES: Final = re.compile(rb"[\x00-\x1f\x7f-\xff\"'\\]")
_NAMES: Final = {math.inf: "Infinity", -math.inf: "-Infinity"}


def shortest_floats(values: Iterable[float]) -> list[float]:
    """For each float32 the number with the fewest digits, six at least, that is rounded to it."""
    numbers = list(values)
    wanted = np.array(numbers, np.float64)
    left = np.flatnonzero(np.isfinite(wanted)).tolist()
    digits = _FEWEST_DIGITS
    while left:
        form = f"%.{digits}g"
        rounded = [float(form % numbers[i]) for i in left]
        with np.errstate(over="ignore"):  # the largest float may become infinite before its digits suffice
            right = np.array(rounded).astype(np.float32) == wanted[left]
        for i, number, is_right in zip(left, rounded, right.tolist(), strict=True):
            if is_right:
                numbers[i] = number
        left = np.array(left)[~right].tolist()
        digits += 1
    return numbers


def _text_string(value: str) -> str:
    return f'"{value if _TO_ESCAPE.search(value) is None else value.translate(_ESCAPED_LETTERS)}"'


def _text_bytes(value: bytes) -> str:
    return f'"{value.decode() if _TO_ESCAPE_IN_BYTES.search(value) is None else "".join(map(_BYTES.__getitem__, value))}"'


def _json_bytes(value: bytes) -> str:
    return base64.b64encode(value).decode()


def _json_reals(values: Iterable[float]) -> list[float | str]:
    return [value if math.isfinite(value) else _NAMES.get(value, "NaN") for value in values]


class _WrittenField(Field):
    """A field with how lists of its values are written."""

    def __init__(self, descriptor: Any) -> None:
        super().__init__(descriptor)
        self.names = {number: name for name, number in self.numbers.items()}
        self.to_text: Callable[[Iterable[Any]], Iterable[str]] = {
            "float": lambda values: map(str, shortest_floats(values)),
            "bool": lambda values: ["true" if value else "false" for value in values],
            "string": lambda values: map(_text_string, values),
            "bytes": lambda values: map(_text_bytes, values),
            "enum": lambda values: [self.names.get(value) or str(value) for value in values],
        }.get(self.kind, lambda values: map(str, values))
        self.to_json: Callable[[Iterable[Any]], list[Any]] = {
            "float": lambda values: _json_reals(shortest_floats(values)),
            "double": _json_reals,
            "int64": lambda values: list(map(str, values)),
            "uint64": lambda values: list(map(str, values)),
            "bytes": lambda values: list(map(_json_bytes, values)),
            "enum": lambda values: [self.names.get(value, value) for value in values],
            "message": lambda values: list(map(_json_value, values)),
        }.get(self.kind, lambda values: [*values])


_SCHEMA: Final = Schema(_WrittenField)


def write_text(message: Any) -> str:
    """A message in protobuf's text form."""
    lines: list[str] = []
    _write_fields(message, "", lines)
    return "".join(lines)


def _write_fields(message: Any, indent: str, lines: list[str]) -> None:
    fields = _SCHEMA.fields_of(message.DESCRIPTOR).by_name
    for descriptor, value in message.ListFields():
        field = fields[descriptor.name]
        if field.is_map:
            entry = value.GetEntryClass()
            messages: Any = (entry(key=key, value=value[key]) for key in sorted(value))
        elif field.is_message:
            messages = value if field.repeated else (value,)
        else:
            begin = f"{indent}{field.name}: "
            lines += (begin, f"\n{begin}".join(field.to_text(value if field.repeated else (value,))), "\n")
            continue
        for each in messages:
            lines.append(f"{indent}{field.name} {{\n")
            _write_fields(each, f"{indent}  ", lines)
            lines.append(f"{indent}}}\n")


def write_json(message: Any) -> str:
    """A message in protobuf's JSON form."""
    return json.dumps(_json_value(message), indent=2)


def _json_value(message: Any) -> dict[str, Any]:
    fields = _SCHEMA.fields_of(message.DESCRIPTOR).by_name
    members: dict[str, Any] = {}
    for descriptor, value in message.ListFields():
        field = fields[descriptor.name]
        if field.is_map:
            of = _SCHEMA.fields_of(field.inside).by_name["value"]
            keys = list(value)
            members[field.json_name] = dict(zip(map(str, keys), of.to_json([value[key] for key in keys]), strict=True))
        elif field.repeated:
            members[field.json_name] = field.to_json(value)
        else:
            members[field.json_name] = field.to_json((value,))[0]
    return members
