"""The names of variables say what they hold."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

from tests.lint.files import PACKAGES, place, python_files

EMPTY: Final = frozenset({"each", "found", "given", "known", "told"})
"""Words that say how a value came about or that there is one, and nothing about the value."""


def empty_names(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and name of each variable and parameter with an empty name, which fields of classes are not."""
    fields = {
        id(statement.target)
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        for statement in node.body
        if isinstance(statement, ast.AnnAssign)
    }
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) if id(node) not in fields:
                pass
            case ast.arg(arg=name) | ast.MatchAs(name=name) | ast.MatchStar(name=name) | ast.ExceptHandler(name=name):
                pass
            case _:
                continue
        if name in EMPTY:
            yield node.lineno, name


def variables_are_named_after_the_values_they_hold() -> Iterator[str]:
    """A variable or parameter of a package has a name that says something about its value."""
    for path in python_files(*PACKAGES):
        for line, name in empty_names(ast.parse(path.read_text(encoding="utf-8"))):
            yield f"{place(path, line)}: `{name}` says nothing about the value"


RULES = (variables_are_named_after_the_values_they_hold,)
