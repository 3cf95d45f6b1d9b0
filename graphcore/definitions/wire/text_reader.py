"""Reads protobuf's text form into messages: one regular expression for most fields, lists in blocks.

Text that the expression does not match (lists in brackets, strings in several pieces, all mistakes) is read token by token, which also
locates mistakes and the expectation there. Messages are kept on a stack, so deep nesting needs no recursion.
"""

from __future__ import annotations

import re
from typing import Any, Final

from graphcore.definitions.wire.fields import MOST_NESTED, RANGES, Fields, Schema
from graphcore.definitions.wire.text_cursor import CLOSING, NAME, Cursor, short
from graphcore.definitions.wire.text_scalars import QUOTED, SKIP, WORD, TextField, is_value

_AFTER: Final = rf"{SKIP}(?:[,;]{SKIP})?"
_ITEM: Final = re.compile(
    rf"([A-Za-z_][0-9A-Za-z_]*+){SKIP}(?::{SKIP}(?:({QUOTED}){SKIP}(?![\"'])(?:[,;]{SKIP})?|({WORD}){_AFTER})|:?+{SKIP}([{{<]){SKIP})"
    rf"|([}}>]){_AFTER}"
)
_STRING, _WORD, _OPEN, _CLOSE = 2, 3, 4, 5
"""The groups of it: the value of a scalar field, the brace that opens a message, the one that closes it."""
_LONGEST_REPEATED: Final = 1_000
"""A longer message is not compared with the text after it."""
_NOT_REPEATED: Final = 1 << 62
_MERGED_AT_ONCE: Final = 1_000
_LENGTH_DELIMITED: Final = 2
"""The mark of a message in the wire form."""
_SCHEMA: Final = Schema(TextField)


class _Entry:
    """An entry of a map from strings to messages. Its value is read in place if the key came first."""

    __slots__ = ("_apart", "_messages", "_placed", "key")

    def __init__(self, messages: Any) -> None:
        self.key = ""
        self._messages = messages
        self._placed = False
        self._apart: Any = None

    def HasField(self, _: str) -> bool:  # noqa: N802 - as messages call it
        return self._placed or self._apart is not None

    @property
    def value(self) -> Any:
        if not self.key:
            self._apart = self._messages.GetEntryClass()()
            return self._apart.value
        self._placed = True
        # A later entry with the same key replaces the one before.
        if self.key in self._messages:
            del self._messages[self.key]
        return self._messages[self.key]

    def close(self) -> None:
        if not self._placed:
            value = self._messages[self.key]
            value.Clear()
            if self._apart is not None:
                value.CopyFrom(self._apart.value)


class _Frame:
    """A message being read. Without `fields`, it is skipped."""

    __slots__ = ("began", "closing", "fields", "full_name", "listed", "message", "of", "of_messages", "opened", "values")

    def __init__(self, message: Any, fields: Fields[TextField] | None) -> None:
        self.message = message
        self.fields = None if fields is None else fields.by_name
        self.full_name = "" if fields is None else fields.full_name
        self.of: TextField | None = None
        """The field of this value; None for the whole text, and for skipped fields."""
        self.values: Any = None
        """The map that it is an entry of."""
        self.of_messages = False
        """True if the values of that map are messages."""
        self.began = _NOT_REPEATED
        """The place of the name of its field, if that is repeated."""
        self.closing = ""
        self.opened = 0
        self.listed = False
        """True if it is in a list in brackets."""

    def close(self) -> None:
        """Store the entry in the map."""
        entry = self.message
        if self.values is None:
            return
        if isinstance(entry, _Entry):
            entry.close()
        elif self.of_messages:
            self.values[entry.key].CopyFrom(entry.value)
        else:
            self.values[entry.key] = entry.value


def read_text(text: str, message: Any, *, allow_unknown_field: bool = False) -> None:
    """Fill an empty message from protobuf's text form.

    Args:
        text: the text.
        message: of a kind without extensions; the schema has no others.
        allow_unknown_field: skip unknown fields instead of refusing them.

    Raises:
        TextError: the text does not encode such a message. The message may be partly filled.
    """
    _Reader(text, message, allow_unknown_field).read()


class _Reader(Cursor):
    def __init__(self, text: str, message: Any, allow_unknown_field: bool) -> None:
        super().__init__(text)
        self.allow_unknown_field = allow_unknown_field
        self.frame = _Frame(message, _SCHEMA.fields_of(message.DESCRIPTOR))
        self.stack: list[_Frame] = []
        """The messages around it."""
        self.mark = 0
        """A token that is not long before the present one."""
        self.no_run_before = 0
        """In a run up to here something is wrong: it is read one by one."""

    def read(self) -> None:
        """Read the whole text."""
        text, match = self.text, _ITEM.match
        pos = self.skip(0)
        while True:
            token = match(text, pos)
            if token is None:
                if pos < len(text):
                    self.mark = pos
                elif not self.stack:
                    return
                pos = self.item(pos)
                continue
            self.mark = pos
            frame, group = self.frame, token.lastindex or 0
            if group == _CLOSE:
                if token[_CLOSE] == frame.closing and not frame.listed:
                    frame.close()
                    self.frame = self.stack.pop()
                    pos = token.end()
                    if 0 < pos - frame.began < _LONGEST_REPEATED:
                        pos = self.repeat(frame, pos)
                else:
                    pos = self.item(pos)
            elif frame.fields is None:
                pos = self.skip_found(token, group)
            else:
                field = frame.fields.get(token[1])
                if field is None:
                    pos = self.item(pos)
                elif group == _OPEN:
                    pos = self.open_found(frame.message, field, token)
                else:
                    pos = self.scalar_found(frame.message, field, token, group)

    # Handlers of matches. Each falls back to reading token by token if something is wrong.

    def scalar_found(self, message: Any, field: TextField, token: re.Match[str], group: int) -> int:
        """Read `name: value`."""
        if field.is_message:
            return self.item(token.start())
        word = token[group]
        name = field.name
        try:
            if group == _STRING:
                value = field.string(word[1:-1])
            elif field.word is not None:
                value = field.word(word)
            else:
                return self.item(token.start())
            if field.repeated:
                values = getattr(message, name)
                values.append(value)
                pos = token.end()
                return self.run(values, field, pos) if self.text.startswith(name, pos) else pos
            if field.oneof is not None:
                if message.WhichOneof(field.oneof) is not None:
                    return self.item(token.start())
            elif getattr(message, name) != field.default:
                return self.item(token.start())
            setattr(message, name, value)
        except (ValueError, TypeError):
            return self.item(token.start())
        return token.end()

    def run(self, values: Any, field: TextField, pos: int) -> int:
        """Read `name: value name: value ...` as far as it goes."""
        while pos >= self.no_run_before:
            match = field.run.match(self.text, pos)
            if match is None or not self.take(values, field, match):
                break
            self.mark = pos
            pos = match.end()
        return pos

    def take(self, values: Any, field: TextField, match: re.Match[str]) -> bool:
        """Store the values of a run: all, or none if one is invalid."""
        length = len(values)
        try:
            values.extend(field.in_run(match[0]))
        except (ValueError, TypeError):
            del values[length:]
            self.no_run_before = match.end()
            return False
        return True

    def open_found(self, message: Any, field: TextField, token: re.Match[str]) -> int:
        """Read `name {`."""
        if not field.is_message or (not field.repeated and self.is_set(message, field)) or len(self.stack) == MOST_NESTED:
            return self.item(token.start())
        self.push(field, token.start(_OPEN), listed=False)
        if field.repeated and not field.is_map:
            self.frame.began = token.start()
        return token.end()

    def repeat(self, done: _Frame, pos: int) -> int:
        """Read verbatim repetitions of the repeated message just read.

        The last repetition is left out: a comma may follow it.
        """
        text = self.text
        block = text[done.began : pos]
        count = 0
        while text.startswith(block, pos) and text.startswith(block, pos + len(block)):
            pos += len(block)
            count += 1
        if count and done.of is not None:
            data = done.message.SerializeToString()
            entry = _varint(done.of.number << 3 | _LENGTH_DELIMITED) + _varint(len(data)) + data
            while count > 0:
                self.frame.message.MergeFromString(entry * min(count, _MERGED_AT_ONCE))
                count -= _MERGED_AT_ONCE
        return pos

    def skip_found(self, token: re.Match[str], group: int) -> int:
        """Skip a field of a message that is skipped."""
        if group == _OPEN and len(self.stack) < MOST_NESTED:
            self.push(None, token.start(_OPEN), listed=False)
        elif group == _OPEN or not is_value(token[group]):
            return self.item(token.start())
        return token.end()

    # Token by token.

    def item(self, pos: int) -> int:
        """Read a field, or the end of the message. Returns the position after it."""
        frame = self.frame
        name = self.token(pos)
        if name == frame.closing and name:
            return self.close(pos)
        if not name:
            raise self.unclosed(frame.opened, self.mark)
        if frame.fields is None:
            return self.skip_contents(self.skip_name(pos, frame.closing))
        if name == "[":
            raise self.error(pos, f"{frame.full_name} has no extensions")
        if not NAME.match(name):
            raise self.expected(pos, f'the name of a field or "{frame.closing}"' if frame.closing else "the name of a field")
        after = self.skip(pos + len(name))
        field = frame.fields.get(name)
        if field is not None:
            return self.field(field, pos, after)
        if self.allow_unknown_field:
            return self.skip_contents(after)
        raise self.error(pos, f"{frame.full_name} has no field named {short(name)}")

    def field(self, field: TextField, start: int, pos: int) -> int:
        """Read the rest of a field after its name, which is at `start`."""
        message = self.frame.message
        if field.oneof is not None:
            other = message.WhichOneof(field.oneof)
            if other is not None and other != field.name:
                raise self.error(start, f'"{field.name}" beside "{other}": {self.frame.full_name} has one of them')
        if self.token(pos) == ":":
            pos = self.skip(pos + 1)
        elif not field.is_message:
            raise self.expected(pos, f'":" after "{field.name}"')
        listed = field.repeated and self.token(pos) == "["
        if listed:
            pos = self.skip(pos + 1)
            if self.token(pos) == "]":
                return self.after(pos + 1)
        if field.is_message:
            return self.open(field, pos, listed)
        if listed:
            return self.after(self.list(getattr(message, field.name), field, pos))
        value, last, pos = self.scalar(field, pos)
        if field.repeated:
            getattr(message, field.name).append(value)
        elif self.is_set(message, field):
            raise self.error(last, f'{self.frame.full_name} has one "{field.name}", this is another')
        else:
            setattr(message, field.name, value)
        return self.after(pos)

    def is_set(self, message: Any, field: TextField) -> bool:
        """True iff a singular field has a value already."""
        if field.oneof is not None:
            return message.WhichOneof(field.oneof) is not None
        if field.has_presence:
            return bool(message.HasField(field.name))
        return bool(getattr(message, field.name) != field.default)

    def list(self, values: Any, field: TextField, pos: int) -> int:
        """Read `value, value, ...]`."""
        while True:
            match = field.listed.match(self.text, pos) if pos >= self.no_run_before else None
            if match is not None and self.take(values, field, match):
                pos = match.end()
                continue
            self.mark = pos
            value, _, pos = self.scalar(field, pos)
            values.append(value)
            sign = self.token(pos)
            if sign == "]":
                return pos + 1
            if sign != ",":
                raise self.expected(pos, '"," or "]"')
            pos = self.skip(pos + 1)

    def scalar(self, field: TextField, pos: int) -> tuple[Any, int, int]:
        """Read a value. Returns it, the position of its last token, and the next position."""
        if field.word is None:
            pieces, last, end = self.strings(pos, field.expected)
            try:
                return (pieces.decode() if field.is_text else pieces), last, end
            except UnicodeDecodeError as error:
                raise self.error(pos, f"a string that is no UTF-8 at its byte {error.start}") from None
        sign = self.token(pos)
        try:
            value = field.word(sign)
        except ValueError:
            raise self.expected(pos, field.expected) from None
        if field.kind in RANGES and value not in RANGES[field.kind]:
            raise self.expected(pos, field.expected)
        return value, pos, self.skip(pos + len(sign))

    def open(self, field: TextField | None, pos: int, listed: bool) -> int:
        """Read the brace that opens a message. Returns the position after it."""
        sign = self.token(pos)
        if sign not in CLOSING:
            raise self.expected(pos, '"{"')
        if field is not None and not field.repeated and self.is_set(self.frame.message, field):
            raise self.error(pos, f'{self.frame.full_name} has one "{field.name}", this is another')
        if len(self.stack) == MOST_NESTED:
            raise self.error(pos, f"messages may be nested {MOST_NESTED} deep, these are nested deeper")
        self.push(field, pos, listed)
        return self.skip(pos + 1)

    def push(self, field: TextField | None, pos: int, listed: bool) -> None:
        """Begin a message after its opening brace."""
        outer = self.frame
        self.stack.append(outer)
        if field is None:
            frame = _Frame(None, None)
        else:
            fields = _SCHEMA.fields_of(field.inside)
            frame = _Frame(None, fields)
            place = getattr(outer.message, field.name)
            if field.is_map:
                frame.values = place
                frame.of_messages = fields.by_name["value"].is_message
                in_place = frame.of_messages and fields.by_name["key"].kind == "string"
                frame.message = _Entry(place) if in_place else place.GetEntryClass()()
            elif field.repeated:
                frame.message = place.add()
            else:
                place.SetInParent()
                frame.message = place
        frame.of = field
        frame.closing = CLOSING[self.text[pos]]
        frame.opened = pos
        frame.listed = listed
        self.frame = frame

    def close(self, pos: int) -> int:
        """Read the closing brace of a message, and in a list the comma or bracket after it."""
        done = self.frame
        done.close()
        self.frame = self.stack.pop()
        if not done.listed:
            return self.after(pos + 1)
        pos = self.skip(pos + 1)
        sign = self.token(pos)
        if sign == "]":
            return self.after(pos + 1)
        if sign != ",":
            raise self.expected(pos, '"," or "]"')
        pos = self.skip(pos + 1)
        return self.skip_list(pos) if done.of is None else self.open(done.of, pos, listed=True)

    # Skipped fields.

    def skip_contents(self, pos: int) -> int:
        """Skip an unknown field after its name."""
        if self.token(pos) == ":":
            pos = self.skip(pos + 1)
            sign = self.token(pos)
            if sign == "[":
                pos = self.skip(pos + 1)
                return self.after(pos + 1) if self.token(pos) == "]" else self.skip_list(pos)
            if sign not in CLOSING:
                return self.after(self.skip_value(pos))
        return self.open(None, pos, listed=False)

    def skip_list(self, pos: int) -> int:
        """Skip the values of a list, up to its end or to a message in it."""
        while self.token(pos) not in CLOSING:
            self.mark = pos
            pos = self.skip_value(pos)
            sign = self.token(pos)
            if sign == "]":
                return self.after(pos + 1)
            if sign != ",":
                raise self.expected(pos, '"," or "]"')
            pos = self.skip(pos + 1)
        return self.open(None, pos, listed=True)


def _varint(number: int) -> bytes:
    data = bytearray()
    while number > 0x7F:
        data.append(number & 0x7F | 0x80)
        number >>= 7
    data.append(number)
    return bytes(data)
