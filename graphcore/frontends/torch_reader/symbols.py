"""Symbolic sizes: expressions as SymPy writes them, in the usual notation."""

from __future__ import annotations

import ast
from functools import lru_cache
from typing import Final

_MAX_TEXT: Final = 4000
_MAX_NESTING: Final = 40
_INFIX: Final = dict(
    pair.split(":")
    for pair in [
        "Add: + ",
        "Mul:*",
        "FloorDiv://",
        "CleanDiv://",
        "IntTrueDiv:/",
        "FloatTrueDiv:/",
        "Mod: % ",
        "PythonMod: % ",
        "Pow:**",
        "PowByNatural:**",
        "Eq: == ",
        "Ne: != ",
        "And: and ",
        "Or: or ",
        "LessThan: <= ",
        "StrictLessThan: < ",
        "GreaterThan: >= ",
        "StrictGreaterThan: > ",
        "Equality: == ",
        "Unequality: != ",
    ]
)
"""SymPy's names of operators and what is written between their operands."""


@lru_cache(maxsize=4096)
def symbol_text(expression: str) -> str:
    """An expression in the usual notation: `2*s0` for `Mul(Integer(2), Symbol('s0'))`.

    One that is already in it, or that is not understood, stays as it is.
    """
    if "(" not in expression or len(expression) > _MAX_TEXT or _nesting(expression) > _MAX_NESTING:
        return expression[:_MAX_TEXT]
    try:
        return _text(ast.parse(expression.strip(), mode="eval").body, False)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return expression


def _nesting(text: str) -> int:
    depth = most = 0
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        most = max(most, depth)
    return most


def _text(node: ast.expr, is_inner: bool) -> str:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        word = node.func.id
        if word in {"Symbol", "Integer", "Float", "Dummy"} and node.args and isinstance(node.args[0], ast.Constant):
            return str(node.args[0].value)
        if word == "Rational" and len(node.args) == 2:
            return "/".join(_text(part, True) for part in node.args)
        if word in _INFIX and len(node.args) > 1:
            text = _INFIX[word].join(_text(part, True) for part in node.args).replace(" + -", " - ")
            return f"({text})" if is_inner and _INFIX[word] != "*" else text
        return f"{word}({', '.join(_text(part, False) for part in node.args)})"
    if isinstance(node, ast.Constant | ast.Name | ast.UnaryOp):
        return ast.unparse(node)
    text = ast.unparse(node)
    return f"({text})" if is_inner else text
