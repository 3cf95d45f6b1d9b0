"""The map of packages in CONTRIBUTING.md, made of their docstrings. `python -m tests.lint.package_map` writes it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.lint.files import PACKAGES, ROOT

GUIDE = ROOT / "CONTRIBUTING.md"
BEGIN, END = "docstrings -->\n", "<!-- end -->"
MOST_LINES = 150
WIDTH = 24


def package_map() -> str:
    """One line for each listed package: its place and the first sentence of its docstring."""
    return "\n" + "\n".join(line for package in PACKAGES for line in _lines(ROOT / package, 0)) + "\n\n"


def _lines(folder: Path, depth: int) -> Iterator[str]:
    docstring = ast.get_docstring(ast.parse((folder / "__init__.py").read_text(encoding="utf-8"))) or ""
    yield "    " + ("  " * depth + folder.name + "/").ljust(WIDTH) + docstring.split("\n")[0].split(". ")[0].rstrip(".")
    if depth == 0:
        for inner in sorted(folder.glob("*/__init__.py")):
            yield from _lines(inner.parent, depth + 1)


def the_guide_has_the_packages_own_words() -> Iterator[str]:
    """CONTRIBUTING.md's map is made of the packages' docstrings: `python -m tests.lint.package_map`."""
    text = GUIDE.read_text(encoding="utf-8")
    if text[text.index(BEGIN) + len(BEGIN) : text.index(END)] != package_map():
        yield "CONTRIBUTING.md: the map differs from the docstrings"


def the_guide_is_short() -> Iterator[str]:
    """CONTRIBUTING.md is read before the first change, so it has at most MOST_LINES lines."""
    count = len(GUIDE.read_text(encoding="utf-8").splitlines())
    if count > MOST_LINES:
        yield f"CONTRIBUTING.md: {count} lines, more than {MOST_LINES}"


RULES = (the_guide_has_the_packages_own_words, the_guide_is_short)


def main() -> None:
    """Write the map into CONTRIBUTING.md."""
    text = GUIDE.read_text(encoding="utf-8")
    GUIDE.write_text(text[: text.index(BEGIN) + len(BEGIN)] + package_map() + text[text.index(END) :], encoding="utf-8")


if __name__ == "__main__":
    main()
