"""The files that the rules are about."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
PACKAGES: Final = ("graphcore", "widgets", "kernelext")


def python_files(*folders: str) -> list[Path]:
    """The Python files below the folders, in order."""
    return [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py")) if "node_modules" not in path.parts]


@cache
def source_files() -> list[Path]:
    """Hand-written source files: files that git tracks or would track, without generated ones."""
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    kinds = {".py", ".ts", ".mjs", ".js", ".css", ".sh"}
    paths = [ROOT / line for line in listing.stdout.splitlines()]
    return [path for path in paths if path.suffix in kinds and path.exists() and "static" not in path.parts and not _is_generated(path)]


def place(path: Path, line: int | None = None) -> str:
    """The place of a fault, as editors and terminals link it."""
    where = path.relative_to(ROOT).as_posix()
    return where if line is None else f"{where}:{line}"


def _is_generated(path: Path) -> bool:
    """True iff the first lines say that the file is generated."""
    head = path.read_text(encoding="utf-8")[:400].lower()
    return path.stem.endswith("_pb2") or "do not edit" in head
