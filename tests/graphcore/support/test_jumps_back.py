"""Ctrl-C at the end of an iteration skips no `with` that holds a lock, and no clean-up.

Since 3.12, CPython leaves some jumps back to the head of a loop out of the exception table: those after an `if` or a `while` condition at the
loop's end. KeyboardInterrupt is raised at such a jump as anywhere, but passes the `with` and `try` blocks of the same function that the loop
stands in. So such a loop belongs into a function of its own, whose call is covered.
"""

from __future__ import annotations

import ast
import dis
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType
from typing import Final

ROOT: Final = Path(__file__).parents[3]
CLEANS_UP: Final = re.compile(r"^ *with |finally:|except:|BaseException|KeyboardInterrupt", re.MULTILINE)
"""Stands in each file with a clean-up, so that others need not be parsed."""
MODULES: Final = sorted(path for package in ("graphcore", "kernelext", "widgets") for path in (ROOT / package).rglob("*.py"))


def functions(code: CodeType) -> Iterator[CodeType]:
    """The code and all functions within it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from functions(constant)


def bare_jumps(code: CodeType) -> Iterator[int]:
    """The lines of jumps back that no handler covers."""
    bytecode = dis.Bytecode(code)
    for instruction in bytecode:
        if "JUMP_BACKWARD" not in instruction.opname or "NO_INTERRUPT" in instruction.opname:  # those of `await` raise nothing
            continue
        if not any(entry.start <= instruction.offset < entry.end for entry in bytecode.exception_entries):  # type: ignore[attr-defined]
            yield instruction.positions.lineno or code.co_firstlineno if instruction.positions else code.co_firstlineno


def has_loop(block: ast.AST) -> bool:
    """True iff a loop, or a comprehension, which is one too, stands in a block."""
    return any(isinstance(part, ast.For | ast.AsyncFor | ast.While | ast.comprehension) for part in ast.walk(block))


def is_clean_up(block: ast.AST) -> bool:
    """True for a `with`, and for a `try` that Ctrl-C must not pass."""
    if isinstance(block, ast.Try):
        handled = [ast.unparse(handler.type) if handler.type else "" for handler in block.handlers]
        return bool(block.finalbody) or any(name in ("", "BaseException", "KeyboardInterrupt") for name in handled)
    return isinstance(block, ast.With) and not any(ast.unparse(item.context_expr).startswith("suppress(") for item in block.items)


def defers(block: ast.AST) -> bool:
    """True for a critical section."""
    return isinstance(block, ast.With) and any(ast.unparse(item.context_expr) == "critical_section" for item in block.items)


def spans(tree: ast.AST, wanted: Callable[[ast.AST], bool]) -> list[tuple[int, int]]:
    """The first and last line of the bodies of the `wanted` blocks."""
    return [(block.body[0].lineno, block.body[-1].end_lineno or 0) for block in ast.walk(tree) if wanted(block)]  # type: ignore[attr-defined]


def wrong_lines(text: str) -> list[int]:
    """The lines of loops whose jump back passes a clean-up."""
    if not CLEANS_UP.search(text):
        return []
    tree = ast.parse(text)
    blocks = spans(tree, lambda block: is_clean_up(block) and has_loop(block))
    if not blocks:  # most files are not compiled
        return []
    sections = spans(tree, defers)
    found = set()
    for code in functions(compile(text, "<text>", "exec")):
        for line in bare_jumps(code):
            within = [first for first, last in blocks if code.co_firstlineno < first <= line <= last]
            if within and not any(first <= line <= last for first, last in sections):
                found.add(line)
    return sorted(found)


def test_no_loop_ends_outside_of_the_block_that_it_stands_in() -> None:
    found = {str(path.relative_to(ROOT)): wrong_lines(path.read_text(encoding="utf-8")) for path in MODULES}
    assert {path: lines for path, lines in found.items() if lines} == {}


def test_such_a_loop_is_found_where_python_leaves_it_uncovered() -> None:
    text = "def f(lock, pending):\n    with lock:\n        while pending:\n            pending.pop()\n"
    (body,) = [code for code in functions(compile(text, "<text>", "exec")) if code.co_name == "f"]
    assert wrong_lines(text) == ([3] if list(bare_jumps(body)) else [])
