"""A form for the attrs of a function: fields, their values, and errors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from graphcore.attrs import AttrValue, Placeholder
from graphcore.definitions.attr_value_util import validate_attr_value
from graphcore.definitions.types import AttrDef
from graphcore.dtypes import ALL_TYPES, DType, float32
from graphcore.errors import GraphError, InvalidArgumentError
from graphcore.shapes import Shape
from graphcore.text import attr_value_text, parse_attr_text
from widgets.function_views import AttrField

_GUESSES: Final[dict[str, AttrValue]] = {"type": float32, "bool": False, "string": b"", "float": 0.0, "shape": Shape([])}


class AttrForm:
    """One field for each attr. An invalid entry stays with its error; the last valid value remains in use.

    Args:
        attrs: the attrs of the function.
        given: initial values; other attrs have their defaults, or the first allowed value.
    """

    def __init__(self, attrs: Iterable[AttrDef], values: Mapping[str, AttrValue]) -> None:
        self._attrs = {attr.name: attr for attr in attrs}
        self._values: dict[str, AttrValue] = {}
        self._texts: dict[str, str] = {}
        self._errors: dict[str, str] = {}
        self.fill(values)

    def fill(self, values: Mapping[str, AttrValue]) -> None:
        """Reset to these values."""
        self._errors.clear()
        for name, attr in self._attrs.items():
            value = values.get(name, attr.default_value)
            if value is None or isinstance(value, Placeholder):
                value = first_value(attr)
            self._values.pop(name, None)
            self._texts[name] = ""
            if value is None:
                self._errors[name] = f"'{name}' has no default: required a value of kind {attr.type}"
                continue
            self._values[name] = value
            self._texts[name] = field_text(value, attr.type)

    @property
    def values(self) -> dict[str, AttrValue]:
        """The last valid value of each attr that has had one."""
        return dict(self._values)

    def set(self, name: str, text: str) -> bool:
        """Enter text into a field. True iff a value has changed.

        Raises:
            InvalidArgumentError: there is no such attr.
        """
        attr = self._attrs.get(name)
        if attr is None:
            raise InvalidArgumentError(f"There is no attr '{name}'; the attrs are: {', '.join(self._attrs) or 'none'}", attr=name)
        self._texts[name] = text
        try:
            value = parse_field(text, attr)
        except GraphError as error:
            self._errors[name] = error.message
            return False
        self._errors.pop(name, None)
        changed = name not in self._values or self._values[name] != value
        self._values[name] = value
        return changed

    def fields(self) -> list[AttrField]:
        """The current fields."""
        return [self._field(attr) for attr in self._attrs.values()]

    def _field(self, attr: AttrDef) -> AttrField:
        return AttrField(
            name=attr.name,
            kind=attr.type,
            value=self._texts[attr.name],
            choices=choices(attr),
            hint=_hint(attr),
            doc=attr.description,
            error=self._errors.get(attr.name, ""),
        )


def parse_field(text: str, attr: AttrDef) -> AttrValue:
    """Parse the text of a field.

    Raises:
        InvalidArgumentError: it is not a value, or not allowed for the attr; the message is TensorFlow's.
    """
    value = _read(text.strip(), attr.type)
    if isinstance(value, Placeholder):
        raise InvalidArgumentError(f"Value for attr '{attr.name}' must be given, not ${value.name}", attr=attr.name)
    validate_attr_value(value, attr)
    return value


def field_text(value: AttrValue, kind: str) -> str:
    """The field's text for a value: strings without quotes, lists without brackets."""
    if kind == "string" and isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    if kind.startswith("list(") and isinstance(value, tuple):
        return ", ".join([attr_value_text(item) for item in value])
    return attr_value_text(value)


def choices(attr: AttrDef) -> list[str]:
    """The values to choose from; empty for free text."""
    if attr.type == "bool":
        return ["false", "true"]
    if attr.allowed_values is not None and attr.type in {"type", "string"}:
        return [field_text(value, attr.type) for value in attr.allowed_values]
    return [dtype.text for dtype in ALL_TYPES] if attr.type == "type" else []


def first_value(attr: AttrDef) -> AttrValue | None:
    """A value for an attr without one: the first allowed one, or the smallest. None if there is no obvious one."""
    if attr.allowed_values and not attr.type.startswith("list("):
        return attr.allowed_values[0]
    if attr.type == "int":
        return attr.minimum if attr.has_minimum else 1
    if attr.type.startswith("list("):
        kind = attr.type[5:-1]
        item = attr.allowed_values[0] if attr.allowed_values else _GUESSES.get(kind, 1 if kind == "int" else None)
        return None if item is None else (item,) * max(attr.minimum, 1)
    return _GUESSES.get(attr.type)


def _read(text: str, kind: str) -> AttrValue:
    if kind == "string":
        return text.encode()
    if kind == "list(shape)" or not kind.startswith("list("):
        return parse_attr_text(text if kind != "list(shape)" or text.startswith("[[") else f"[{text}]", kind)
    opening, closing = ("{", "}") if kind == "list(type)" else ("[", "]")
    if not text:
        return ()
    bare = text[1:-1] if text.startswith(opening) and text.endswith(closing) else text
    if kind == "list(type)":
        return tuple([_type(word.strip()) for word in bare.split(",")])
    return parse_attr_text(f"[{bare}]", kind)


def _type(word: str) -> AttrValue:
    value = parse_attr_text(word)
    if not isinstance(value, DType):
        raise InvalidArgumentError(f"Required types such as float, got '{word}'")
    return value


def _hint(attr: AttrDef) -> str:
    parts = [attr.type]
    if attr.has_minimum:
        parts.append(f"at least {attr.minimum}" + (" of them" if attr.type.startswith("list(") else ""))
    if attr.allowed_values is not None and attr.type.startswith("list("):
        parts.append("of " + ", ".join([attr_value_text(value) for value in attr.allowed_values]))
    if attr.default_value is not None:
        parts.append(f"default {field_text(attr.default_value, attr.type) or 'empty'}")
    return ", ".join(parts)
