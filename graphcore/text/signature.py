"""Signatures of ops and functions: `Name[attrs](inputs) -> (outputs)`."""

from __future__ import annotations

import inspect
import re
from functools import lru_cache
from typing import Any, Final

import msgspec

from graphcore.attrs import AttrValue, attr_kind
from graphcore.definitions.attr_spec import parse_attr_spec
from graphcore.definitions.op_doc import split_doc
from graphcore.definitions.types import ArgDef, AttrDef, OpDef, OpDeprecation
from graphcore.dtypes import dtype_by_name, resource
from graphcore.errors import InvalidArgumentError
from graphcore.text.scanner import Scanner, fail_at, name_text, quote
from graphcore.text.value_parser import parse_attr_text
from graphcore.text.values import attr_value_text

_ARG: Final = re.compile(
    r"([A-Za-z0-9_.][\w.\-/>]*|\"(?:[^\"\\\n]|\\.)*\")\s*:\s*(?:(Ref)\s*\(\s*)?(?:([A-Za-z_]\w*)\s*\*\s*)?([A-Za-z_]\w*)(?(2)\s*\))",
    re.ASCII,
)
_SPEC_PIECE: Final = re.compile(r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|[\[\](){},=]|[^\"'\[\](){},=]+", re.DOTALL)
_OPEN: Final = frozenset("[({")
_CLOSE: Final = frozenset("])}")
_NUMBER: Final = re.compile(r"-?[0-9]{1,18}")
_FLAGS: Final = {
    "stateful": "is_stateful",
    "commutative": "is_commutative",
    "aggregate": "is_aggregate",
    "allows_uninitialized_input": "allows_uninitialized_input",
    "distributed_communication": "is_distributed_communication",
}


def parse_op_signature(text: str, doc: str = "") -> OpDef:
    """Parse a signature, such as `Name[T:type, N:int >= 1 = 3](x:N*T) -> (y:T)`, to an OpDef.

    Args:
        text: the signature; flags may follow it (`@stateful @commutative`).
        doc: a docstring; `name: text` lines at its end describe arguments and attrs.

    Raises:
        InvalidArgumentError: a syntax error (line, column, expectation), an unknown attr, a name used twice.
    """
    scanner = Scanner(text)
    if scanner.sees("(") or scanner.sees("["):
        scanner.fail("the name of an op")
    op_def, flags = read_signature(scanner)
    if not scanner.at_end():
        scanner.fail("the end of the signature")
    names = [part.name for group in (op_def.input_arg, op_def.output_arg, op_def.attr) for part in group]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidArgumentError(f"Duplicate name: {twice} in Op {op_def.name}", op=op_def.name)
    if "is_stateful" not in flags and _touches_resource(op_def):
        flags["is_stateful"] = True
    if doc:
        flags.update(_documented(op_def, inspect.cleandoc(doc)))
    return msgspec.structs.replace(op_def, **flags) if flags else op_def


def _documented(op_def: OpDef, doc: str) -> dict[str, Any]:
    summary, description, items = split_doc(doc)
    texts = dict(items)
    parts: dict[str, tuple[ArgDef | AttrDef, ...]] = {"input_arg": op_def.input_arg, "output_arg": op_def.output_arg, "attr": op_def.attr}
    unknown = next((name for name in texts if all(part.name != name for group in parts.values() for part in group)), None)
    if unknown is not None:
        raise InvalidArgumentError(f"No matching input/output/attr for name '{unknown}' from Doc() for Op {op_def.name}", op=op_def.name)
    fields: dict[str, Any] = {"summary": summary, "description": description}
    for field, group in parts.items():
        if any(part.name in texts for part in group):
            fields[field] = tuple([msgspec.structs.replace(part, description=texts.get(part.name, "")) for part in group])
    return fields


def _touches_resource(op_def: OpDef) -> bool:
    return any(arg.type is resource for arg in op_def.input_arg + op_def.output_arg)


def read_signature(scanner: Scanner, attrs: str = "") -> tuple[OpDef, dict[str, Any]]:
    """Read a signature and the flags after it.

    Args:
        attrs: the attr list, for a signature that has none of its own.

    Returns:
        The OpDef without the flags, and the flags as fields of it.
    """
    name = "_" if scanner.sees("(") or scanner.sees("[") else scanner.name("a name")
    start = scanner.skip()
    attr_defs = _read_attr_defs(scanner) if scanner.take("[") else _read_attr_defs(Scanner(attrs + "]"))
    by_name = {attr.name: attr for attr in attr_defs}
    if len(by_name) < len(attr_defs):
        scanner.fail("attrs with different names", start)
    inputs = _read_args(scanner, by_name)
    scanner.expect("->", "'->' and the outputs")
    outputs = _read_args(scanner, by_name)
    return OpDef(name=name, input_arg=inputs, output_arg=outputs, attr=tuple(by_name.values())), _read_flags(scanner)


def signature_text(op_def: OpDef, *, stateful_by_default: bool | None = None) -> str:
    """Print a signature.

    Args:
        stateful_by_default: the statefulness that a reader would assume; None for the rule of op signatures.
    """
    if stateful_by_default is None:
        stateful_by_default = _touches_resource(op_def)
    text = name_text(op_def.name)
    if op_def.attr:
        lengths = {arg.number_attr or arg.type_list_attr for arg in op_def.input_arg + op_def.output_arg}
        text += "[" + ", ".join([attr_def_text(attr, attr.name in lengths) for attr in op_def.attr]) + "]"
    inputs = ", ".join([arg_text(arg) for arg in op_def.input_arg])
    outputs = ", ".join([arg_text(arg) for arg in op_def.output_arg])
    return f"{text}({inputs}) -> ({outputs}){_flags_text(op_def, stateful_by_default)}"


def arg_text(arg: ArgDef) -> str:
    """`x:float`, `x:Ref(T)`, `x:N*T`; for a `list(type)` argument the attr."""
    kind = arg.type.text if arg.type is not None else arg.type_attr or arg.type_list_attr
    if arg.number_attr:
        kind = f"{arg.number_attr}*{kind}"
    name = name_text(arg.name)
    return f"{name}:Ref({kind})" if arg.is_ref else f"{name}:{kind}"


def attr_def_text(attr: AttrDef, is_length: bool = False) -> str:
    """`T:{float, double} = float`, `N:int >= 2`; the minimum 1 of a length goes without saying."""
    text = f"{attr.name}:{_kind_text(attr)}"
    if attr.has_minimum and not (is_length and attr.minimum == 1):
        text += f" >= {attr.minimum}"
    return text if attr.default_value is None else f"{text} = {_default_text(attr.default_value)}"


def _kind_text(attr: AttrDef) -> str:
    if not attr.allowed_values:
        return attr.type
    values = "{" + ", ".join([attr_value_text(value) for value in attr.allowed_values]) + "}"
    return f"list({values})" if attr.type.startswith("list(") else values


def _default_text(value: AttrValue) -> str:
    # `{float, int32}` could be proto text or allowed values, so lists of types are written as lists.
    if isinstance(value, tuple):
        return "[" + ", ".join([attr_value_text(item) for item in value]) + "]"
    return attr_value_text(value)


def _flags_text(op_def: OpDef, stateful_by_default: bool) -> str:
    flags = [flag for flag, field in _FLAGS.items() if flag != "stateful" and getattr(op_def, field)]
    if op_def.is_stateful != stateful_by_default:
        flags.append("stateful" if op_def.is_stateful else "stateless")
    if op_def.deprecation is not None:
        flags.append(f"deprecated({op_def.deprecation.version}, {quote(op_def.deprecation.explanation.encode())})")
    return "".join([f" @{flag}" for flag in flags])


def _read_flags(scanner: Scanner) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    while scanner.take("@"):
        start = scanner.skip()
        flag = scanner.name("a flag")
        if flag == "stateless":
            fields["is_stateful"] = False
        elif flag == "deprecated":
            fields["deprecation"] = _read_deprecation(scanner)
        elif flag in _FLAGS:
            fields[_FLAGS[flag]] = True
        else:
            scanner.fail(f"one of the flags {', '.join([*_FLAGS, 'stateless', 'deprecated'])}", start)
    return fields


def _read_deprecation(scanner: Scanner) -> OpDeprecation:
    scanner.expect("(")
    version = scanner.match(_NUMBER)
    if version is None:
        scanner.fail("the version from which on it is refused")
    scanner.expect(",")
    explanation = scanner.name("why, in quotes")
    scanner.expect(")")
    return OpDeprecation(int(version.group()), explanation)


def _read_attr_defs(scanner: Scanner) -> list[AttrDef]:
    attrs: list[AttrDef] = []
    while not scanner.take("]"):
        attrs.append(_read_attr_def(scanner))
        if not scanner.take(",") and not scanner.sees("]"):
            scanner.fail("',' or ']'")
    return attrs


def _read_attr_def(scanner: Scanner) -> AttrDef:
    start = scanner.skip()
    text = scanner.text
    depth = 0
    equals = -1
    pos = start
    while pos < len(text):
        piece = _SPEC_PIECE.match(text, pos)
        if piece is None:
            fail_at(text, pos, "expected a closed string")
        mark = piece.group()
        if depth == 0 and mark in {",", "]"}:
            break
        depth += (mark in _OPEN) - (mark in _CLOSE)
        if mark == "=" and depth == 0 and equals < 0 and text[pos - 1] != ">":
            equals = pos
        pos = piece.end()
    scanner.pos = pos
    try:
        if equals < 0:
            return _attr_def(text[start:pos].rstrip(), "", "")
        return _attr_def(text[start:pos].rstrip(), text[start:equals].rstrip(), text[equals + 1 : pos])
    except InvalidArgumentError as error:
        fail_at(text, start, error.message)


@lru_cache(maxsize=1024)
def _attr_def(spec: str, without_default: str, default: str) -> AttrDef:
    """Read an attr definition. A default may be in this text form, or in that of op builders."""
    if not default:
        return parse_attr_spec(spec)
    attr = parse_attr_spec(without_default)
    try:
        value = parse_attr_text(default, attr.type)
    except InvalidArgumentError:
        return parse_attr_spec(spec)
    kind = attr_kind(value)
    if kind != attr.type and not (kind == "list" and attr.type.startswith("list(")):
        return parse_attr_spec(spec)
    return msgspec.structs.replace(attr, default_value=value)


def _read_args(scanner: Scanner, attrs: dict[str, AttrDef]) -> tuple[ArgDef, ...]:
    scanner.expect("(")
    args: list[ArgDef] = []
    while not scanner.take(")"):
        start = scanner.skip()
        match = scanner.match(_ARG)
        if match is None:
            scanner.fail("an argument such as x:T, x:N*T or x:Ref(T)")
        args.append(_arg(scanner, match, attrs, start))
        if not scanner.take(",") and not scanner.sees(")"):
            scanner.fail("',' or ')'")
    if len({arg.name for arg in args}) < len(args):
        scanner.fail("arguments with different names before this")
    return tuple(args)


def _arg(scanner: Scanner, match: re.Match[str], attrs: dict[str, AttrDef], start: int) -> ArgDef:
    name, ref, number, kind = match.groups(default="")
    is_ref = bool(ref)
    if name.startswith('"'):
        name = Scanner(name).name("the name of an argument")
    if number:
        _require_kind(scanner, attrs, number, "int", start)
        _give_length(attrs, number)
    dtype = dtype_by_name(kind)
    if dtype is not None:
        if dtype.is_ref:
            scanner.fail(f"Ref({dtype.base.text})", start)
        return ArgDef(name=name, type=dtype, number_attr=number, is_ref=is_ref)
    attr = _require_kind(scanner, attrs, kind, "type", start)
    if attr.type == "type":
        return ArgDef(name=name, type_attr=kind, number_attr=number, is_ref=is_ref)
    if number:
        scanner.fail("a list either by a length or by a list of types, not both,", start)
    _give_length(attrs, kind)
    return ArgDef(name=name, type_list_attr=kind, is_ref=is_ref)


def _require_kind(scanner: Scanner, attrs: dict[str, AttrDef], name: str, kind: str, start: int) -> AttrDef:
    attr = attrs.get(name)
    if attr is None:
        fail_at(scanner.text, start, f"Reference to unknown attr '{name}'")
    if attr.type != kind and not (kind == "type" and attr.type == "list(type)"):
        wanted = "type or list(type)" if kind == "type" else kind
        fail_at(scanner.text, start, f"Reference to attr '{name}' with type {attr.type} that isn't {wanted}")
    return attr


def _give_length(attrs: dict[str, AttrDef], name: str) -> None:
    """Set the minimum of an attr that is a length to 1, unless it has one."""
    if not attrs[name].has_minimum:
        attrs[name] = msgspec.structs.replace(attrs[name], has_minimum=True, minimum=1)
