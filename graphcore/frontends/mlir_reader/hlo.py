"""The computations and instructions in the text of an HLO module."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from graphcore.errors import InvalidArgumentError
from graphcore.frontends.foreign import Attr, ForeignFunction, ForeignGraph, ForeignNode, InputRef, ModuleCall, Port, SourceFrame

_MODULE: Final = re.compile(r"\s*(?://[^\n]*\n\s*)*HloModule\s+([^,\s]+)")
_COMPUTATION: Final = re.compile(r"^(ENTRY\s+)?%?([^\s(={]+)\s*(\(.*)?\{\s*$")
_INSTRUCTION: Final = re.compile(r"^\s+(ROOT\s+)?%?([^\s=]+)\s*=\s*(.*)$")
_OPCODE: Final = re.compile(r"\s*([A-Za-z][\w-]*)\(")
_ARRAY: Final = re.compile(r"([a-z][a-z0-9]*)\[([^\]]*)\](\{[^}]*\})?")
_TABLE: Final = re.compile(r"^(FileNames|FunctionNames|FileLocations|StackFrames)\s*$")
_ROW: Final = re.compile(r"^(\d{1,9})\s+(.*)$", re.ASCII)
_FIELD: Final = re.compile(r"(\w+)=(\d{1,9})", re.ASCII)
_CALLS: Final = {"calls": "calls", "to_apply": "to_apply", "condition": "cond", "body": "body", "true_computation": "then"}
_MORE_CALLS: Final = {"false_computation": "else", "select": "select", "scatter": "scatter", "called_computations": "called"}
_ROLES: Final = {**_CALLS, **_MORE_CALLS}
_MAX_TEXT: Final = 500
_MAX_FRAMES: Final = 20


@dataclass(slots=True)
class _Computation:
    name: str
    is_entry: bool
    lines: list[tuple[bool, str, str]] = field(default_factory=list)


class HloReader:
    """The reader of one module's text."""

    def __init__(self, text: str) -> None:
        head = _MODULE.match(text)
        if head is None:
            raise InvalidArgumentError("Required the text of an HLO module, which begins with `HloModule`")
        self._name = head[1]
        self._tables: dict[str, dict[int, str]] = {}
        self._computations: dict[str, _Computation] = {}
        self._split(text)
        rows = self._tables.get("StackFrames", {})
        # Newer versions count parents from one, so that a frame without a parent says 1 and may seem to be its own.
        self._first_parent = int(any(f"parent_frame_id={number}}}" in row for number, row in rows.items()))

    def read(self) -> ForeignGraph:
        """The graph of the entry computation, the others as functions.

        Raises:
            InvalidArgumentError: the text is damaged.
        """
        entry = next((computation for computation in self._computations.values() if computation.is_entry), None)
        if entry is None:
            if not self._computations:
                raise InvalidArgumentError(f"HLO module '{self._name}' has no computation")
            entry = list(self._computations.values())[-1]
        functions = {name: self._function(computation) for name, computation in self._computations.items() if computation is not entry}
        return ForeignGraph("HLO module", self._function(entry), producer="XLA", name=self._name, functions=functions)

    def _split(self, text: str) -> None:
        current: _Computation | None = None
        table: dict[int, str] | None = None
        for number, line in enumerate(text.split("\n"), 1):
            if not line.strip() or line.lstrip().startswith("//"):
                continue
            found_table = _TABLE.match(line)
            if current is None and found_table is not None:
                table = self._tables.setdefault(found_table[1], {})
                continue
            if current is None:
                row = _ROW.match(line) if table is not None else None
                if row is not None and table is not None:
                    table[int(row[1])] = row[2]
                    continue
                heading = None if line.startswith((" ", "HloModule")) else _COMPUTATION.match(line)
                if heading is not None:
                    current = self._computations.setdefault(heading[2], _Computation(heading[2], bool(heading[1])))
                continue
            if line.startswith("}"):
                current = None
                continue
            instruction = _INSTRUCTION.match(line)
            if instruction is None:
                raise InvalidArgumentError(f"Line {number} of the HLO module is no instruction: {line.strip()[:80]}")
            current.lines.append((bool(instruction[1]), instruction[2], instruction[3]))
        if current is not None:
            raise InvalidArgumentError(f"Computation '{current.name}' is cut off: required a line with a closing brace")

    def _function(self, computation: _Computation) -> ForeignFunction:
        nodes: list[ForeignNode] = []
        arguments: dict[int, ForeignNode] = {}
        root = ""
        for is_root, name, text in computation.lines:
            node, number = self._node(name, text, computation.name)
            if node.kind != "input":
                nodes.append(node)
            elif arguments.setdefault(number, node) is not node:
                raise InvalidArgumentError(f"Computation '{computation.name}' has two parameters of number {number}")
            root = name if is_root else root
        root = root or (nodes[-1].name if nodes else "")
        ordered = [arguments[number] for number in sorted(arguments)]
        inputs = tuple([Port(node.name, node.outputs[0].dtype, node.outputs[0].shape) for node in ordered])
        return ForeignFunction(computation.name, inputs, ((root, 0),) if root else (), nodes=[*ordered, *nodes])

    def _node(self, name: str, text: str, inside: str) -> tuple[ForeignNode, int]:
        shape_text, rest = _shape_and_rest(text)
        opcode = _OPCODE.match(rest)
        if opcode is None:
            raise InvalidArgumentError(f"Instruction '{name}' of computation '{inside}' has no opcode: {text[:80]}")
        end = _closing(rest, opcode.end() - 1)
        op, operands = opcode[1], rest[opcode.end() : end]
        options = dict(_options(rest[end + 1 :]))
        metadata = _metadata(options.pop("metadata", ""))
        bodies: dict[str, str] = {}
        for key in list(options):
            self._calls(key, options, bodies)
        attrs: dict[str, Attr] = {key: value[:_MAX_TEXT] for key, value in options.items() if key != "control-predecessors"}
        controls = tuple(re.findall(r"%?([^\s,{}%]+)", options.get("control-predecessors", "")))
        refs: tuple[InputRef, ...] = ()
        kind, number = "op", 0
        if op == "parameter":
            kind, number = "input", int(operands) if re.fullmatch(r"\d{1,6}", operands, re.ASCII) else 0
            attrs["number"] = number
        elif op == "constant":
            kind = "constant"
            attrs["value"] = operands[:_MAX_TEXT]
        else:
            refs = tuple([(_operand(part), 0) for part in _parts(operands)])
        stack = str(metadata.get("op_name", ""))
        modules = _modules(stack) if kind == "op" else ()
        node = ForeignNode(
            name,
            f"hlo.{op}",
            refs,
            (_port(shape_text),),
            attrs=attrs,
            modules=modules,
            frames=self._frames(metadata),
            control_inputs=controls,
            bodies=bodies,
            kind=kind,
            doc=stack[:_MAX_TEXT],
        )
        return node, number

    def _calls(self, key: str, options: dict[str, str], bodies: dict[str, str]) -> None:
        """Take the computations that an option names."""
        if key != "branch_computations" and key not in _ROLES:
            return
        names = [part.strip().lstrip("%") for part in options[key].strip("{}").split(",")]
        if not all(name in self._computations for name in names):
            return
        del options[key]
        role = _ROLES.get(key, "branch")
        for number, name in enumerate(names):
            bodies[role if len(names) == 1 else f"{role}_{number}"] = name

    def _frames(self, metadata: dict[str, str]) -> tuple[SourceFrame, ...]:
        if "source_file" in metadata:
            line = metadata.get("source_line", "0")
            return (SourceFrame(metadata["source_file"], int(line) if line.isdecimal() and len(line) < 10 else 0),)
        frames: list[SourceFrame] = []
        number = metadata.get("stack_frame_id", "")
        current = int(number) if number.isdecimal() and len(number) < 10 else 0
        while current > 0 and len(frames) < _MAX_FRAMES:
            frame = dict(_FIELD.findall(self._row("StackFrames", current)))
            place = dict(_FIELD.findall(self._row("FileLocations", int(frame.get("file_location_id", 0)))))
            file = self._row("FileNames", int(place.get("file_name_id", 0))).strip('"')
            function = self._row("FunctionNames", int(place.get("function_name_id", 0))).strip('"')
            if file:
                frames.append(SourceFrame(file, int(place.get("line", 0)), "", function))
            parent = int(frame.get("parent_frame_id", 0))
            current = parent - self._first_parent
        return tuple(reversed(frames))

    def _row(self, table: str, number: int) -> str:
        return self._tables.get(table, {}).get(number, "")


def _shape_and_rest(text: str) -> tuple[str, str]:
    """The shape at the beginning of an instruction, and what follows."""
    if text.startswith("("):
        end = _closing(text, 0)
        return text[: end + 1], text[end + 1 :]
    match = _ARRAY.match(text)
    if match is not None:
        return match[0], text[match.end() :]
    first, _, rest = text.partition(" ")
    return first, f" {rest}"


def _unquoted(text: str, start: int = 0) -> Iterator[tuple[int, str, int]]:
    """The letters outside of quotes from a place on: place, letter, and the brackets open after it."""
    depth, quoted, place = 0, False, start
    while place < len(text):
        letter = text[place]
        if quoted and letter == "\\":
            place += 1
        elif letter == '"':
            quoted = not quoted
        elif not quoted:
            depth += (letter in "([{") - (letter in ")]}")
            yield place, letter, depth
        place += 1


def _closing(text: str, start: int) -> int:
    """The place of the bracket that closes the one at `start`; quoted text has none."""
    for place, letter, depth in _unquoted(text, start):
        if depth == 0 and letter in ")]}":
            return place
    raise InvalidArgumentError(f"A bracket of an HLO instruction is not closed: {text[start : start + 80]}")


def _parts(text: str) -> list[str]:
    """The parts of a list between commas, where brackets and quotes count as one."""
    parts, start = [], 0
    for place, letter, depth in _unquoted(text):
        if letter == "," and depth == 0:
            parts.append(text[start:place])
            start = place + 1
    parts.append(text[start:])
    return [part.strip() for part in parts if part.strip()]


def _options(text: str) -> list[tuple[str, str]]:
    pairs = [part.partition("=") for part in _parts(text)]
    return [(key.strip(), value.strip()) for key, separator, value in pairs if separator]


def _operand(text: str) -> str:
    """The name of an operand, before which older versions write its shape."""
    return re.sub(r"/\*.*?\*/", "", text).rpartition(" ")[2].lstrip("%")


def _metadata(text: str) -> dict[str, str]:
    pairs = re.findall(r'(\w+)=("(?:[^"\\]|\\.)*"|[^\s{}"]+)', text)
    return {key: re.sub(r"\\(.)", r"\1", value.strip('"')) for key, value in pairs}


def _modules(stack: str) -> tuple[ModuleCall, ...]:
    """The scopes in a name of an op: `jit(f)/encoder/dot_general` lies in `encoder`."""
    parts, depth, start = [], 0, 0
    for place, letter in enumerate(stack):
        depth += (letter == "(") - (letter == ")")
        if letter == "/" and depth == 0:
            parts.append(stack[start:place])
            start = place + 1
    return tuple([ModuleCall(part) for part in parts if part and not re.match(r"p?jit\(", part)])


def _port(text: str) -> Port:
    if text.startswith("("):
        return Port("", "tuple", None, text[:_MAX_TEXT])
    match = _ARRAY.match(text)
    if match is None:
        return Port("", text[:40], None)
    sizes: list[int | str | None] = []
    for part in match[2].split(","):
        size = part.strip()
        if size:
            sizes.append(int(size) if re.fullmatch(r"\d{1,18}", size, re.ASCII) else size[:40])
    return Port("", match[1], tuple(sizes), f"layout {match[3]}" if match[3] else "")
