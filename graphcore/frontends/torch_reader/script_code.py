"""The code of TorchScript archives: classes, methods and functions, parsed and never run."""

from __future__ import annotations

import ast
import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from graphcore.errors import InvalidArgumentError

if TYPE_CHECKING:
    from graphcore.frontends.torch_reader.archive import Archive

_MAX_NESTING: Final = 150
_OPENING: Final = "([{"
_CLOSING: Final = ")]}"
NAMES: Final = "__torch__"


@dataclass(slots=True)
class ScriptClass:
    """A class.

    Attributes:
        methods: its methods by name.
        buffers: the names of its buffers.
        fields: the names of its fields, in order.
    """

    methods: dict[str, ast.FunctionDef] = field(default_factory=dict)
    buffers: frozenset[str] = frozenset()
    fields: list[str] = field(default_factory=list)


@dataclass(slots=True)
class ScriptFile:
    """A file of code.

    Attributes:
        name: the member's name.
        lines: its lines.
        classes, functions: what it defines.
    """

    name: str
    lines: list[str]
    classes: dict[str, ScriptClass] = field(default_factory=dict)
    functions: dict[str, ast.FunctionDef] = field(default_factory=dict)


class ScriptCode:
    """The code of an archive, parsed file by file."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._files: dict[str, ScriptFile] = {}

    def file_of(self, name: str) -> tuple[ScriptFile, str]:
        """The file that defines a qualified name, and the last part of the name.

        Raises:
            InvalidArgumentError: there is no such file, or it is damaged.
        """
        path, _, last = name.rpartition(".")
        member = f"code/{path.replace('.', '/')}.py"
        file = self._files.get(member)
        if file is None:
            file = self._files[member] = _parsed(member, self._archive.read(member))
        return file, last

    def class_of(self, name: str) -> tuple[ScriptFile, ScriptClass] | None:
        """A class by its qualified name, None if there is none."""
        file, last = self.file_of(name)
        script_class = file.classes.get(last)
        return None if script_class is None else (file, script_class)

    def function(self, name: str) -> tuple[ScriptFile, ast.FunctionDef] | None:
        """A function by its qualified name, None if there is none."""
        file, last = self.file_of(name)
        definition = file.functions.get(last)
        return None if definition is None else (file, definition)


def _parsed(member: str, data: bytes) -> ScriptFile:
    text = data.decode(errors="replace")
    if _nesting(text) > _MAX_NESTING:
        raise InvalidArgumentError(f"'{member}' has brackets that are nested more than {_MAX_NESTING} deep")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of odd escapes and comparisons in the text
            tree = ast.parse(text)
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        raise InvalidArgumentError(f"'{member}' is damaged: {str(error)[:200]}") from None
    file = ScriptFile(member, text.split("\n"))
    for statement in tree.body:
        if isinstance(statement, ast.ClassDef):
            file.classes[statement.name] = _class(statement)
        elif isinstance(statement, ast.FunctionDef):
            file.functions[statement.name] = statement
    return file


def _nesting(text: str) -> int:
    depth = most = 0
    for letter in text:
        if letter in _OPENING:
            depth += 1
            most = max(most, depth)
        elif letter in _CLOSING:
            depth -= 1
    return most


def _class(statement: ast.ClassDef) -> ScriptClass:
    script_class = ScriptClass()
    for part in statement.body:
        if isinstance(part, ast.FunctionDef):
            script_class.methods[part.name] = part
        elif isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
            script_class.fields.append(part.target.id)
        elif isinstance(part, ast.Assign) and isinstance(part.targets[0], ast.Name) and part.targets[0].id == "__buffers__":
            items = part.value.elts if isinstance(part.value, ast.List) else []
            script_class.buffers = frozenset(
                [item.value for item in items if isinstance(item, ast.Constant) and isinstance(item.value, str)]
            )
    return script_class
