"""The code that the README and the docs show, as their readers paste it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parents[2]
README: Final = ROOT / "README.md"
DOCS: Final = ROOT / "notebooks" / "docs"


def code_blocks(page: Path) -> list[str]:
    """The blocks of a page that run in their order, marked as `python`; fragments are marked as `py`."""
    return re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)


def example_of_the_readme() -> str:
    """The block that builds and trains a graph."""
    (block,) = [block for block in code_blocks(README) if "gc.placeholder" in block]
    return block


class Row(NamedTuple):
    """A row of the README's table: the line that answers the question, and the picture of the answer."""

    line: str
    picture: Path


def rows_of_the_table() -> list[Row]:
    """The rows in the README's table of questions, in its order."""
    text = README.read_text(encoding="utf-8")
    return [Row(line, ROOT / picture) for line, picture in re.findall(r"(?m)^\| [^|]+\? \| `([^`]+)` \| !\[[^\]]+\]\(([^)]+)\) \|$", text)]


def lines_of_the_table() -> list[str]:
    """The lines that answer the questions."""
    return [row.line for row in rows_of_the_table()]
