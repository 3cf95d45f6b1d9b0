"""Reads input and output specs such as `x: T`, `values: N * T`, `ref: Ref(float)`."""

from __future__ import annotations

import re
from typing import Any, Final

from graphcore.definitions.attr_spec import type_by_word
from graphcore.errors import InvalidArgumentError

_NAME: Final = re.compile(r"([a-z][a-z0-9_]*)\s*:\s*", re.ASCII)
_REF_OPEN: Final = re.compile(r"Ref\s*\(\s*", re.ASCII)
_REF_CLOSE: Final = re.compile(r"\)\s*", re.ASCII)
_WORD: Final = re.compile(r"([A-Za-z][A-Za-z0-9_]*)\s*", re.ASCII)
_TIMES: Final = re.compile(r"\*\s*([A-Za-z][A-Za-z0-9_]*)\s*", re.ASCII)


class ArgSpecParser:
    """Parser of one spec; `fields` holds the parts parsed so far, also after an error."""

    def __init__(self, spec: str) -> None:
        self.rest = spec
        self.fields: dict[str, Any] = {"name": ""}

    def parse(self, attr_types: dict[str, str]) -> None:
        """Fill `fields`.

        Args:
            attr_types: the kind of each attr of the op.

        Raises:
            InvalidArgumentError: the message does not name the arg and the op.
        """
        name = self._match(_NAME)
        if name is None:
            raise InvalidArgumentError("Trouble parsing 'name:'")
        self.fields["name"] = name.group(1)
        is_ref = self._match(_REF_OPEN) is not None
        if is_ref:
            self.fields["is_ref"] = True
        word = self._match(_WORD)
        if word is None:
            raise InvalidArgumentError(f"Trouble parsing either a type or an attr name at '{self.rest}'")
        times = self._match(_TIMES)
        if times is not None:
            self.fields["number_attr"] = word.group(1)
        self._type((times or word).group(1), attr_types)
        if is_ref and self._match(_REF_CLOSE) is None:
            raise InvalidArgumentError(f"Did not find closing ')' for 'Ref(', instead found: '{self.rest}'")
        if self.rest:
            raise InvalidArgumentError(f"Extra '{self.rest}' unparsed at the end")

    def _match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        match = pattern.match(self.rest)
        if match is not None:
            self.rest = self.rest[match.end() :]
        return match

    def _type(self, word: str, attr_types: dict[str, str]) -> None:
        dtype = type_by_word(word)
        if dtype is not None:
            self.fields["type"] = dtype
            return
        kind = attr_types.get(word)
        if kind is None:
            raise InvalidArgumentError(f"Reference to unknown attr '{word}'")
        if kind not in {"type", "list(type)"}:
            raise InvalidArgumentError(f"Reference to attr '{word}' with type {kind} that isn't type or list(type)")
        self.fields["type_attr" if kind == "type" else "type_list_attr"] = word
