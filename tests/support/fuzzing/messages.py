"""Random messages of the schema, and damage done to their texts token by token."""

from __future__ import annotations

import copy
import json
import random
import re
from typing import Any, Final

from google.protobuf.descriptor import FieldDescriptor

from graphcore.definitions.wire import schema

KINDS: Final = (
    schema.GraphDef,
    schema.NodeDef,
    schema.OpList,
    schema.FunctionDef,
    schema.SavedModel,
    schema.MetaGraphDef,
    schema.TensorProto,
    schema.AttrValue,
)
_INTS: Final = (0, 1, -1, 7, 100, 2**31 - 1, -(2**31), 2**32 - 1, 2**63 - 1, -(2**63), 2**64 - 1)
_RANGES: Final = {
    FieldDescriptor.CPPTYPE_INT32: range(-(2**31), 2**31),
    FieldDescriptor.CPPTYPE_INT64: range(-(2**63), 2**63),
    FieldDescriptor.CPPTYPE_UINT32: range(2**32),
    FieldDescriptor.CPPTYPE_UINT64: range(2**64),
    FieldDescriptor.CPPTYPE_ENUM: range(-(2**31), 2**31),
}
_FLOATS: Final = (0.0, -0.0, 1.0, 0.5, -1.5, 1e-30, 3.4028234663852886e38, 1e-45, 123456789.0, float("inf"), float("-inf"), float("nan"))
_TEXTS: Final = (
    "",
    "a",
    "T",
    "node/x:0",
    "^c",
    "a b",
    "it's",
    '"q"',
    "tab\tnewline\n",
    "back\\slash",
    "\\n",
    "é€😀",
    "\x00\x01\x7f",
    "#no comment",
    "{",
    "x" * 50,
)
_BYTES: Final = (*[text.encode() for text in _TEXTS], b"\xff\xfe", bytes(range(256)), b"\\x41", b"\xc3")


def scalar(field: Any, rng: random.Random) -> Any:
    """A value for a scalar field."""
    if field.type == FieldDescriptor.TYPE_BYTES:
        return rng.choice(_BYTES)
    if field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
        return rng.choice(_TEXTS)
    if field.cpp_type == FieldDescriptor.CPPTYPE_BOOL:
        return rng.random() < 0.5
    if field.cpp_type in (FieldDescriptor.CPPTYPE_FLOAT, FieldDescriptor.CPPTYPE_DOUBLE):
        return rng.choice(_FLOATS)
    if field.cpp_type == FieldDescriptor.CPPTYPE_ENUM and rng.random() < 0.8:
        return rng.choice(field.enum_type.values).number
    return rng.choice([number for number in _INTS if number in _RANGES[field.cpp_type]])


def fill(message: Any, rng: random.Random, depth: int = 4) -> Any:
    """Set some fields of a message, recursively."""
    fields = message.DESCRIPTOR.fields
    for field in rng.sample(list(fields), min(len(fields), rng.choice([0, 1, 2, 3, 6]))):
        inside = field.message_type
        repeated = isinstance(field.default_value, list)
        value = getattr(message, field.name)
        count = rng.choice([1, 1, 2, 5])
        if inside is None:
            if repeated:
                value.extend([scalar(field, rng) for _ in range(count)])
            else:
                setattr(message, field.name, scalar(field, rng))
        elif depth == 0:
            continue
        elif not repeated:
            value.SetInParent()
            fill(value, rng, depth - 1)
        elif not inside.GetOptions().map_entry:
            for _ in range(count):
                fill(value.add(), rng, depth - 1)
        else:
            key, of = inside.fields
            for _ in range(count):
                if of.message_type is None:
                    value[scalar(key, rng)] = scalar(of, rng)
                else:
                    fill(value[scalar(key, rng)], rng, depth - 1)
    return message


def random_message(rng: random.Random) -> Any:
    """A message of a kind found in files."""
    return fill(rng.choice(KINDS)(), rng)


_TOKEN: Final = re.compile(r"""\s+|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|#[^\n]*|[\w.+-]+|.""", re.DOTALL)
_NAMES: Final = sorted(
    {field.name for kind in KINDS for field in kind.DESCRIPTOR.fields} | {"key", "value", "i", "list", "size", "dim", "unknown", "5", "é"}
)
_PIECES: Final = (
    "{", "}", "<", ">", "[", "]", ",", ";", ":", "#", "# comment\n", "\n", " ", "", "\t", "\r\n", "\x0b", "\xa0", "\u2028", "[]", "[1, 2]", "[1,]", "['a', \"b\"]", "{}", "/", ".",
    "0", "1", "-1", "- 1", "+1", "017", "-017", "08", "0x1F", "-0xf", "0b11", "0o17", "1_000", "1e3", "1.5", "1.5f", ".5", "5.", "-.5", "01.5", "1.5F", "1e400", "-1e400", "0x", "1x",
    "inf", "-inf", "+inf", "Infinity", "inff", "nan", "-nan", "NaN", "nanf", "true", "false", "t", "f", "True", "False", "TRUE", "DT_FLOAT", "DT_NONE", "TFT_VAR", "٣",
    "2147483647", "2147483648", "-2147483649", "4294967296", "9223372036854775808", "18446744073709551615", "18446744073709551616", "9" * 30,
    '""', "''", "'a'", '"a"', "\"it's\"", '"a" "b"', "'a'\n'b'", '"a" # c\n "b"', '"\\', "'", '"', '"\\n\\t\\"\\\'\\\\"', '"\\x41"', '"\\x4"', '"\\x4g"', '"\\x"', '"\\101"', '"\\1"', '"\\12"', '"\\777"',
    '"\\u00e9"', '"\\u12"', '"\\U0001F600"', '"\\U00110000"', '"\\ud800"', '"\\q"', '"\\?"', '"\\8"', '"\\377"', '"\\xff\\xfe"', '"\\303\\251"', '"\\303" "\\251"', '"é€"', '"\\\\x4"', '"\\\\\\x4"',
    "[a.b]: 1", "[a.b.c/d.e] {}", "key: 'k'", "value: {}", "i: 1", "unknown: 1", "unknown { a: 1 [b] { } c: [1, {d: 2}, 'x'] }", "unknown: [{}, <>]", "unknown { a { b < c: 'd' > } }", "unknown: 'a' 'b'",
    "unknown: -", "unknown: é", "unknown: 9" * 3, "version: 1", "version: 0", "node {}", "node <>", "node: {}", "node [{}, <name: 'a'>]", "node: []",
)  # fmt: skip


def same(first: Any, second: Any) -> bool:
    """True iff two messages are equal as bytes, since NaN does not equal itself."""
    return bool(first.SerializeToString(deterministic=True) == second.SerializeToString(deterministic=True))


def damaged_text(text: str, rng: random.Random) -> str:
    """A text after one to three changes, mostly of whole tokens."""
    tokens: list[str] = _TOKEN.findall(text)
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        at = rng.randrange(len(tokens) + 1)
        there = rng.randrange(len(tokens) + 1)
        match rng.choice(["drop", "swap", "repeat", "put", "put", "put", "replace", "replace", "name", "cut", "comment", "letter"]):
            case "drop":
                del tokens[at : at + 1]
            case "swap" if max(at, there) < len(tokens):
                tokens[at], tokens[there] = tokens[there], tokens[at]
            case "repeat":
                tokens[at:at] = tokens[min(at, there) : min(at, there) + rng.choice([1, 4, 20])]
            case "replace":
                tokens[at : at + 1] = [rng.choice(_PIECES)]
            case "name":
                tokens[at : at + 1] = [rng.choice(_NAMES)]
            case "cut":
                del tokens[at:]
            case "comment":
                tokens.insert(at, rng.choice([" # comment\n", "#\n", "#c\n#d\n", "\n\n"]))
            case "letter" if at < len(tokens) and tokens[at]:
                where = rng.randrange(len(tokens[at]))
                tokens[at] = tokens[at][:where] + rng.choice("abx019.-+_\"'\\{}[]#\n é:,") + tokens[at][where + rng.choice([0, 1]) :]
            case _:
                tokens.insert(at, f" {rng.choice(_PIECES)} ")
    return "".join(tokens)


_VALUES: Final[tuple[Any, ...]] = (
    None, True, False, 0, 1, -1, 1.0, 1.5, -0.0, 1e3, 1e39, -1e39, 1e308, 2**31, -(2**31) - 1, 2**32, 2**63, 2**64, 10**30, "", "0", "1", "-1", "+1", " 1", "1 ", "\n1", "1.0", "1.5", "1e3", "1_0",
    "0x1", "NaN", "nan", "Infinity", "-Infinity", "inf", "1e400", "1e39", "true", "false", "AQ==", "AQ", "A", "_-8=", "/+8=", "é", "a b", "DT_FLOAT", "DT_NONE", "TFT_VAR", [], {}, [[]], [None], [1, "2"],
    [1, 2.5], [1, True], ["a", 1], [1.5, 1e39], [2.0, 3.0], ["1", " 2"], ["1", "2"], [float("inf")], [float("nan")], float("nan"), float("inf"), {"name": "a"}, {"i": 1, "f": 2}, {"key": "a", "value": {}},
    "\ud800", "😀", ["DT_FLOAT", 1, "2"], ["AQ==", "A"], [{}], [{"name": 1}], {"a": {"i": "1"}}, {"1": 2}, {"1.0": 3}, {"x": 2},
)  # fmt: skip


def _places(value: Any) -> list[tuple[Any, Any]]:
    found: list[tuple[Any, Any]] = []
    items = list(value.items()) if isinstance(value, dict) else list(enumerate(value)) if isinstance(value, list) else []
    for key, item in items:
        found.append((value, key))
        found += _places(item)
    return found


def damaged_json(text: str, rng: random.Random) -> str:
    """A JSON text after one to three changes, mostly of whole values."""
    value = json.loads(text)
    for _ in range(rng.choice([1, 1, 2, 3])):
        places = _places(value)
        if not places:
            break
        holder, key = rng.choice(places)
        match rng.choice(["value", "value", "value", "drop", "name", "add", "text"]):
            case "value":
                holder[key] = copy.deepcopy(rng.choice(_VALUES))
            case "drop":
                del holder[key]
            case "name" if isinstance(holder, dict):
                holder[re.sub(r"[A-Z]", lambda found: f"_{found[0].lower()}", key) if rng.random() < 0.5 else rng.choice(_NAMES)] = (
                    holder.pop(key)
                )
            case "add" if isinstance(holder, dict):
                holder[rng.choice(_NAMES)] = copy.deepcopy(rng.choice(_VALUES))
            case _:
                changed = json.dumps(value)
                at = rng.randrange(len(changed))
                return (
                    changed[:at]
                    + rng.choice(['"', "{", "}", "[", "]", ",", ":", "1", "null", '"a": 1,', ""])
                    + changed[at + rng.choice([0, 1]) :]
                )
    return json.dumps(value)
