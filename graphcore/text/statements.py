"""Reads the body of a function: nodes, returns, and directives that begin with `@`."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

import msgspec

from graphcore.attrs import AttrValue, Func
from graphcore.definitions.types import NodeDef, OpDef
from graphcore.errors import NotFoundError
from graphcore.shapes import Shape
from graphcore.text.scanner import INPUT, NAME, Scanner
from graphcore.text.value_parser import as_kind, read_attrs, read_value

_SHORT_DEVICE: Final = re.compile(r"device\s*=\s*((?:[A-Za-z]\w*)?:\d+|<FAILED_TO_PARSE>)", re.ASCII)
_INDEX: Final = re.compile(r"\d{1,9}(?!\w)", re.ASCII)
_SAME_LINE_AT: Final = re.compile(r"[ \t]*@")
_RETURN: Final = re.compile(r"return(?![\w.\-/>])(?!\s*[=,])", re.ASCII)
_DIRECTIVES: Final = "return, attr, arg or control_output after '@'"
_OPEN_KINDS: Final = frozenset({int, tuple, Shape, Func})

LookUp = Callable[[str], OpDef]
"""Takes an op's name, gives its OpDef, raises NotFoundError if there is none."""


class Statement(msgspec.Struct):
    """A node as written: all its result names, and its position in the text."""

    names: list[str]
    node: NodeDef
    position: int


class ParsedBody(msgspec.Struct):
    """The parsed body of a function."""

    statements: list[Statement] = []
    ret: dict[str, str] = {}
    control_ret: dict[str, str] = {}
    attr: dict[str, AttrValue] = {}
    arg_attr: dict[int, dict[str, AttrValue]] = {}
    control_output: tuple[str, ...] | None = None


def read_body(scanner: Scanner, look_up: LookUp) -> ParsedBody:
    """Read `{ ... }`.

    Raises:
        InvalidArgumentError: a syntax error.
    """
    scanner.expect("{", "'{' and the body")
    body = ParsedBody()
    while not scanner.take("}"):
        if scanner.at_end():
            scanner.fail("a node, a return or '}'")
        if scanner.take("@"):
            _read_directive(scanner, body)
        elif scanner.match(_RETURN):
            _read_return(scanner, body.ret)
        else:
            body.statements.append(read_statement(scanner, look_up))
    return body


def read_statement(scanner: Scanner, look_up: LookUp) -> Statement:
    """Read `name, name = Op[attrs](inputs) @ control inputs`.

    Raises:
        InvalidArgumentError: a syntax error.
    """
    start = scanner.skip()
    names = _read_names(scanner, "the name of a node", NAME)
    scanner.expect("=")
    op = scanner.name("the name of an op")
    attrs, device = _read_node_attrs(scanner)
    settle_kinds(op, attrs, look_up)
    scanner.expect("(", "'(' and the inputs")
    inputs: list[str] = []
    while not scanner.take(")"):
        inputs.append(scanner.name("an input", INPUT))
        if not scanner.take(",") and not scanner.sees(")"):
            scanner.fail("',' or ')'")
    if scanner.match_here(_SAME_LINE_AT):
        inputs += ["^" + name for name in _read_names(scanner, "a control input", INPUT)]
    return Statement(names, NodeDef(names[0], op, tuple(inputs), device, attrs), start)


def settle_kinds(op: str, attrs: dict[str, AttrValue], look_up: LookUp) -> None:
    """Resolve ambiguous values by the OpDef: `[10]` to a shape or a list, `1` to an int or a float."""
    if not any(type(value) in _OPEN_KINDS for value in attrs.values()):
        return
    for value in attrs.values():
        if isinstance(value, Func) and value.attr:
            settle_kinds(value.name, value.attr, look_up)
    try:
        op_def = look_up(op)
    except NotFoundError:
        return
    for attr in op_def.attr:
        if attr.name in attrs:
            attrs[attr.name] = as_kind(attrs[attr.name], attr.type)


def _read_names(scanner: Scanner, what: str, pattern: re.Pattern[str]) -> list[str]:
    names = [scanner.name(what, pattern)]
    while scanner.take(","):
        names.append(scanner.name(what, pattern))
    return names


def _read_node_attrs(scanner: Scanner) -> tuple[dict[str, AttrValue], str]:
    """Read the attrs, then the device: `device=TYPE:N`, optionally followed by the full name."""
    attrs: dict[str, AttrValue] = {}
    if not scanner.take("["):
        return attrs, ""
    while not scanner.take("]"):
        short = scanner.match(_SHORT_DEVICE)
        if short is not None:
            device = scanner.name("the full device name") if scanner.sees('"') else f"/device:{short.group(1)}"
            scanner.expect("]")
            return attrs, device
        key = _read_new(scanner, attrs, "an attr")
        attrs[key] = read_value(scanner)
        if not scanner.take(",") and not scanner.sees("]"):
            scanner.fail("',' or ']'")
    return attrs, ""


def _read_directive(scanner: Scanner, body: ParsedBody) -> None:
    start = scanner.skip()
    word = scanner.name(_DIRECTIVES)
    if word == "return":
        _read_return(scanner, body.control_ret)
    elif word == "attr":
        key = _read_new(scanner, body.attr, "an attr")
        body.attr[key] = read_value(scanner)
    elif word == "arg":
        _read_arg_attrs(scanner, body)
    elif word == "control_output":
        scanner.expect("[")
        body.control_output = () if scanner.sees("]") else tuple(_read_names(scanner, "a control output", NAME))
        scanner.expect("]")
    else:
        scanner.fail(_DIRECTIVES, start)


def _read_return(scanner: Scanner, returns: dict[str, str]) -> None:
    name = _read_new(scanner, returns, "a return")
    returns[name] = scanner.name("a node or an argument", INPUT)


def _read_arg_attrs(scanner: Scanner, body: ParsedBody) -> None:
    match = scanner.match(_INDEX)
    if match is None:
        scanner.fail("the index of an argument")
    index = int(match.group())
    if index in body.arg_attr:
        scanner.fail("the attrs of each argument once", match.start())
    scanner.expect("[")
    body.arg_attr[index] = read_attrs(scanner, "]")


def _read_new(scanner: Scanner, taken: dict[str, AttrValue] | dict[str, str], what: str) -> str:
    """Read `name =`, with a name that is not in use."""
    start = scanner.skip()
    name = scanner.name(f"the name of {what}")
    if name in taken:
        scanner.fail(f"{what} that is not there yet", start)
    scanner.expect("=")
    return name
