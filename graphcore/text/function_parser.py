"""Reads functions and instantiated nodes back from their text."""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from graphcore.definitions.types import FunctionDef, NodeDef, OpDef
from graphcore.dtypes import DType, dtype_by_name
from graphcore.registry import op_registry
from graphcore.text.printer import reads_as_stateful
from graphcore.text.scanner import Scanner
from graphcore.text.signature import read_signature
from graphcore.text.statements import LookUp, ParsedBody, read_body, read_statement

_TYPED: Final = re.compile(r":\s*([a-z]\w*)(?:@([A-Za-z]\w*:\d+))?", re.ASCII)
_TENSOR: Final = re.compile(r"[A-Za-z0-9_.][\w.\-/>]*(?::\d+)?", re.ASCII)


def parse_function(text: str, look_up: LookUp | None = None) -> FunctionDef:
    """Parse a function; inputs are written `arg` or `node:out_arg:index`.

    Args:
        text: as `debug_string` prints a FunctionDef; `#` begins a comment.
        look_up: returns the OpDef of an op by name, to resolve ambiguous values (`[10]` may be a shape or a list);
            the global registry by default.

    Raises:
        InvalidArgumentError: a syntax error, with line, column and expectation.
    """
    look = look_up or op_registry.look_up_op_def
    signature, flags, body = read_function(Scanner(text), look)
    scanner = Scanner(text)
    for statement in body.statements:
        if len(statement.names) > 1:
            scanner.fail("one name for a node (several are for define_function)", statement.position)
    nodes = [statement.node for statement in body.statements]
    return make_function(signature, {"is_stateful": reads_as_stateful(nodes, look), **flags}, body, nodes)


def read_function(scanner: Scanner, look_up: LookUp, attrs: str = "") -> tuple[OpDef, dict[str, Any], ParsedBody]:
    """Read signature and body to the end. The signature's flags are returned as fields of its OpDef.

    Raises:
        InvalidArgumentError: a syntax error.
    """
    signature, flags = read_signature(scanner, attrs)
    start = scanner.skip()
    body = read_body(scanner, look_up)
    if not scanner.at_end():
        scanner.fail("the end of the function")
    if max(body.arg_attr, default=-1) >= len(signature.input_arg):
        scanner.fail(f"attrs of the function's {len(signature.input_arg)} arguments, not of argument {max(body.arg_attr)}", start)
    return signature, flags, body


def make_function(signature: OpDef, flags: dict[str, Any], body: ParsedBody, nodes: list[NodeDef]) -> FunctionDef:
    """Combine signature, flags and body."""
    control_output = tuple(body.control_ret) if body.control_output is None else body.control_output
    return FunctionDef(
        signature=msgspec.structs.replace(signature, control_output=control_output, **flags),
        node_def=tuple(nodes),
        ret=body.ret,
        control_ret=body.control_ret,
        attr=body.attr,
        arg_attr=body.arg_attr,
    )


def parse_nodes(text: str, look_up: LookUp | None = None) -> list[NodeDef]:
    """Parse instantiated nodes, as printed by `debug_string`: `_Arg` nodes, body, `_Retval` nodes.

    The printed form omits names and further attrs of return nodes: they are read as `<input>_RetVal`. Node lines alone are accepted too.

    Raises:
        InvalidArgumentError: a syntax error, with line, column and expectation.
    """
    scanner = Scanner(text)
    look = look_up or op_registry.look_up_op_def
    nodes: list[NodeDef] = []
    if not scanner.sees("("):
        while not scanner.at_end():
            nodes.append(read_statement(scanner, look).node)
        return nodes
    inputs = _read_typed(scanner)
    scanner.expect("->", "'->' and the returns")
    outputs = _read_typed(scanner)
    body = read_body(scanner, look)
    if not scanner.at_end():
        scanner.fail("the end of the nodes")
    nodes += [NodeDef(name, "_Arg", (), device, {"T": dtype, "index": index}) for index, (name, dtype, device) in enumerate(inputs)]
    nodes += [statement.node for statement in body.statements]
    taken = {node.name for node in nodes}
    for index, (source, dtype, device) in enumerate(outputs):
        name = _unused(f"{source.partition(':')[0]}_RetVal", taken)
        nodes.append(NodeDef(name, "_Retval", (source,), device, {"T": dtype, "index": index}))
    return nodes


def _read_typed(scanner: Scanner) -> list[tuple[str, DType, str]]:
    """Read `(x:float, a:1:float@CPU:0)`: tensors with type and device."""
    scanner.expect("(")
    entries: list[tuple[str, DType, str]] = []
    while not scanner.take(")"):
        name = scanner.name("a tensor and its type, such as x:float", _TENSOR)
        start = scanner.skip()
        match = scanner.match(_TYPED)
        dtype = None if match is None else dtype_by_name(match.group(1))
        if match is None or dtype is None:
            scanner.fail("':' and a data type", start)
        entries.append((name, dtype, f"/device:{match.group(2)}" if match.group(2) else ""))
        if not scanner.take(",") and not scanner.sees(")"):
            scanner.fail("',' or ')'")
    return entries


def _unused(name: str, taken: set[str]) -> str:
    number = 0
    unique = name
    while unique in taken:
        number += 1
        unique = f"{name}_{number}"
    taken.add(unique)
    return unique
