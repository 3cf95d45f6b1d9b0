"""Reads attr specs such as `T: {float, int32} = DT_FLOAT` and `N: int >= 2`."""

from __future__ import annotations

import re
from typing import Any, Final

from graphcore import dtypes
from graphcore.attrs import AttrValue
from graphcore.definitions.attr_text import MOST_DIGITS, parse_attr_value
from graphcore.definitions.proto_text import unescape
from graphcore.definitions.types import AttrDef
from graphcore.dtypes import DType, dtype_by_name
from graphcore.errors import InvalidArgumentError

_SPACE: Final = " \t\n\v\f\r"
_NAME: Final = re.compile(r"([A-Za-z][A-Za-z0-9_]*)\s*:\s*", re.ASCII)
_LIST: Final = re.compile(r"list\s*\(\s*", re.ASCII)
_TYPE: Final = re.compile(r"([a-z0-9]+)\s*", re.ASCII)
_QUOTED: Final = re.compile(r""""((?:[^"\\]|\\.)*)"\s*|'((?:[^'\\]|\\.)*)'\s*""", re.ASCII | re.DOTALL)
_BOUND: Final = re.compile(r"\s*(-?[0-9]+)\s*", re.ASCII)
_KINDS: Final = ("string", "int", "float", "bool", "type", "shape", "tensor", "func")
_INT64: Final = range(-(2**63), 2**63)

_REAL: Final = "float double int32 uint8 int16 int8 int64 bfloat16 uint16 half uint32 uint64"
# TensorFlow's order; the types that it does not list follow.
_NUMBER: Final = (
    "float double int32 uint8 int16 int8 complex64 int64 qint8 quint8 qint32 bfloat16 uint16 complex128 half uint32 uint64 qint16 quint16"
)


def _named(names: str) -> tuple[DType, ...]:
    return tuple(dtypes.as_dtype(name) for name in names.split())


TYPE_GROUPS: Final[dict[str, tuple[DType, ...]]] = {
    "numbertype": _named(_NUMBER),
    "numerictype": _named(_NUMBER),
    "quantizedtype": _named("qint8 quint8 qint32 qint16 quint16"),
    "realnumbertype": _named(_REAL),
}
"""Words that stand for several allowed types."""


def parse_attr_spec(spec: str, op_name: str = "") -> AttrDef:
    """Parse `name : type [>= min] [= default]` to an AttrDef.

    Args:
        spec: the text.
        op_name: the op, for the error text.

    Raises:
        InvalidArgumentError: the text is no attr spec; the message ends in ` from Attr("<spec>") for Op <op_name>`.
    """
    parser = AttrSpecParser(spec)
    try:
        parser.parse()
    except InvalidArgumentError as error:
        raise InvalidArgumentError(f'{error.message} from Attr("{spec}") for Op {op_name}', op=op_name) from None
    return AttrDef(**parser.fields)


class AttrSpecParser:
    """Parser of one spec; `fields` holds the parts parsed so far, also after an error."""

    def __init__(self, spec: str) -> None:
        self.rest = spec
        self.fields: dict[str, Any] = {"name": "", "type": ""}

    def parse(self) -> None:
        """Fill `fields`.

        Raises:
            InvalidArgumentError: the message does not name the attr and the op.
        """
        name = self._match(_NAME)
        if name is None:
            raise InvalidArgumentError("Trouble parsing '<name>:'")
        self.fields["name"] = name.group(1)
        is_list = self._match(_LIST) is not None
        kind = self._kind()
        self._skip()
        if is_list and not self._take(")"):
            raise InvalidArgumentError(f"Expected ) to close 'list(', not: '{self.rest}'")
        if is_list:
            self._skip()
        self.fields["type"] = kind = f"list({kind})" if is_list else kind
        if (is_list or kind == "int") and self._take(">="):
            self.fields["has_minimum"], self.fields["minimum"] = True, self._bound()
        if self._take("="):
            self._skip()
            self.fields["default_value"] = self._default(kind)
        elif self.rest:
            raise InvalidArgumentError(f"Extra '{self.rest}' unparsed at the end")

    def _match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        match = pattern.match(self.rest)
        if match is not None:
            self.rest = self.rest[match.end() :]
        return match

    def _take(self, literal: str) -> bool:
        if not self.rest.startswith(literal):
            return False
        self.rest = self.rest[len(literal) :]
        return True

    def _skip(self) -> None:
        self.rest = self.rest.lstrip(_SPACE)

    def _kind(self) -> str:
        for kind in _KINDS:
            if self._take(kind):
                return kind
        for group, types in TYPE_GROUPS.items():
            if self._take(group):
                self.fields["allowed_values"] = types
                return "type"
        self._take("any")  # reserved for ops of TensorFlow itself
        if not self._take("{"):
            raise InvalidArgumentError(f"Trouble parsing type string at '{self.rest}'")
        self._skip()
        of_strings = self.rest[:1] in {'"', "'"}
        allowed: list[AttrValue] = []
        while True:
            allowed += [self._allowed_string()] if of_strings else self._allowed_types()
            self.fields["allowed_values"] = tuple(allowed)
            if self._take("}"):
                break
            if not self._take(","):
                raise InvalidArgumentError(f"Expected , or }} after {'strings' if of_strings else 'types'} in list, not: '{self.rest}'")
            self._skip()
            if self._take("}"):
                break
        return "string" if of_strings else "type"

    def _allowed_string(self) -> bytes:
        match = self._match(_QUOTED)
        if match is None:
            raise InvalidArgumentError(f"Trouble parsing allowed string at '{self.rest}'")
        text = match.group(1) if match.group(1) is not None else match.group(2)
        try:
            return unescape(text)
        except InvalidArgumentError as error:
            raise InvalidArgumentError(f'Trouble unescaping "{text}", got error: {error.message}') from None

    def _allowed_types(self) -> tuple[DType, ...]:
        match = self._match(_TYPE)
        if match is None:
            raise InvalidArgumentError(f"Trouble parsing type string at '{self.rest}'")
        word = match.group(1)
        dtype = type_by_word(word)
        if word in TYPE_GROUPS:
            return TYPE_GROUPS[word]
        if dtype is None:
            raise InvalidArgumentError(f"Unrecognized type string '{word}'")
        return (dtype,)

    def _bound(self) -> int:
        match = _BOUND.match(self.rest)
        if match is None or len(match.group(1)) > MOST_DIGITS or int(match.group(1)) not in _INT64:
            raise InvalidArgumentError(f"Could not parse integer lower limit after '>=', found '{self.rest}' instead")
        self.rest = self.rest[match.end() :]
        return int(match.group(1))

    def _default(self, kind: str) -> AttrValue:
        try:
            return parse_attr_value(kind, self.rest)
        except InvalidArgumentError:
            raise InvalidArgumentError(f"Could not parse default value '{self.rest}'") from None


_ALIASES: Final = {"float32": "float", "float64": "double", "float16": "half"}


def type_by_word(word: str) -> DType | None:
    """The type that a spec may call `word` (`float`, `float32`, `int32_ref`), None if there is none."""
    base, ref = (word[:-4], "_ref") if word.endswith("_ref") else (word, "")
    return dtype_by_name(_ALIASES.get(base, base) + ref)
