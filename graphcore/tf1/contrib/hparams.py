"""`tf.contrib.training.HParams`: settings of a model, as attributes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from graphcore.brief import brief
from graphcore.errors import InvalidArgumentError

__all__ = ["HParams"]

_OBJECT_REQUIRED: Final = """HParams.parse_json: required an object in JSON, such as '{"rate": 0.5}'"""


class HParams:
    """Settings with names, each of the type of its first value.

    Args:
        hparam_def: not taken; None.
        model_structure: without effect.
        kwargs: the settings.
    """

    def __init__(self, hparam_def: Any = None, model_structure: Any = None, **kwargs: Any) -> None:
        if hparam_def is not None:
            raise InvalidArgumentError("HParams: a message as hparam_def is not available here; required the settings as arguments")
        del model_structure
        self._types: dict[str, tuple[type, bool]] = {}
        for name, value in kwargs.items():
            self.add_hparam(name, value)

    def add_hparam(self, name: str, value: Any) -> None:
        """Add a setting.

        Raises:
            InvalidArgumentError: the name is taken, or `value` is an empty list.
        """
        if hasattr(self, name):
            raise InvalidArgumentError(f"Hyperparameter name is reserved: {name}")
        is_list = isinstance(value, list | tuple)
        if is_list and not value:
            raise InvalidArgumentError(f"Multi-valued hyperparameters cannot be empty: {name}")
        self._types[name] = type(value[0] if is_list else value), is_list
        setattr(self, name, list(value) if is_list else value)

    def set_hparam(self, name: str, value: Any) -> None:
        """Change a setting.

        Raises:
            InvalidArgumentError: there is none of that name, or the value is of another type.
        """
        kind, is_list = self._known(name)
        if isinstance(value, list | tuple) != is_list:
            raise InvalidArgumentError(f"{name}: required {'a list' if is_list else 'one value'}, got {brief(value)}")
        setattr(self, name, [_as(name, kind, item) for item in value] if is_list else _as(name, kind, value))

    def del_hparam(self, name: str) -> None:
        """Remove a setting, if there is one of that name."""
        if self._types.pop(name, None) is not None:
            delattr(self, name)

    def _known(self, name: str) -> tuple[type, bool]:
        if name not in self._types:
            raise InvalidArgumentError(f"Unknown hyperparameter: {name}; there are {', '.join(sorted(self._types))}")
        return self._types[name]

    def parse(self, values: str) -> HParams:
        """Change settings by text such as `rate=0.5,sizes=[1,2],name=abc`.

        Raises:
            InvalidArgumentError: the text is of another form, or a setting is unknown or of another type.
        """
        for name, text in _parts(values):
            kind, is_list = self._known(name)
            texts = text[1:-1].split(",") if text.startswith("[") else [text]
            if text.startswith("[") != is_list:
                raise InvalidArgumentError(f"{name}: required {'a list' if is_list else 'one value'}, got {text}")
            parsed = [_parsed(name, kind, text.strip()) for text in texts]
            setattr(self, name, parsed if is_list else parsed[0])
        return self

    def override_from_dict(self, values_dict: Mapping[str, Any]) -> HParams:
        """Change settings to those of a mapping."""
        for name, value in values_dict.items():
            self.set_hparam(name, value)
        return self

    def parse_json(self, values_json: str) -> HParams:
        """Change settings to those of an object in JSON.

        Raises:
            InvalidArgumentError: the text is no object in JSON, or a setting is unknown or of another type.
        """
        try:
            settings = json.loads(values_json)
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidArgumentError(f"{_OBJECT_REQUIRED}, got {brief(values_json)}: {error}") from error
        if not isinstance(settings, dict):
            raise InvalidArgumentError(f"{_OBJECT_REQUIRED}, got {brief(values_json)}")
        return self.override_from_dict(settings)

    def values(self) -> dict[str, Any]:
        """The settings by their names."""
        return {name: getattr(self, name) for name in self._types}

    def to_json(self, indent: Any = None, separators: Any = None, sort_keys: bool = False) -> str:
        """The settings as an object in JSON."""
        return json.dumps(self.values(), indent=indent, separators=separators, sort_keys=sort_keys)

    def get(self, key: str, default: Any = None) -> Any:
        """A setting, `default` without one of that name."""
        return getattr(self, key) if key in self._types else default

    def __contains__(self, key: object) -> bool:
        return key in self._types

    def __repr__(self) -> str:
        return f"HParams({', '.join(f'{name}={value!r}' for name, value in sorted(self.values().items()))})"


def _as(name: str, kind: type, value: Any) -> Any:
    """A value as one of a type: no float becomes an int, no number a bool or text."""
    if value is None or kind is type(None) or (isinstance(value, kind) and not (kind is int and isinstance(value, bool))):
        return value
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if kind is int and isinstance(value, float) and value.is_integer():
        return int(value)
    raise InvalidArgumentError(f"{name}: required a value of type {kind.__name__}, got {brief(value)}")


def _parsed(name: str, kind: type, text: str) -> Any:
    if kind is bool:
        words = {"true": True, "1": True, "false": False, "0": False}
        if text.lower() not in words:
            raise InvalidArgumentError(f"{name}: required true or false, got {text}")
        return words[text.lower()]
    try:
        return text if kind is type(None) else kind(text)
    except ValueError as error:
        raise InvalidArgumentError(f"{name}: required a value of type {kind.__name__}, got {text}") from error


def _parts(values: str) -> list[tuple[str, str]]:
    parts: list[tuple[str, str]] = []
    depth, start = 0, 0
    for place, sign in enumerate([*values, ","]):
        depth += (sign == "[") - (sign == "]")
        if sign == "," and depth == 0:
            part, start = values[start:place].strip(), place + 1
            name, equals, text = part.partition("=")
            if part and not (equals and name.strip()):
                raise InvalidArgumentError(f"HParams.parse: required name=value, got {part!r}")
            if part:
                parts.append((name.strip(), text.strip()))
    return parts
