"""Every notebook runs from top to bottom in a fresh kernel."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import nbformat
import pytest

from tests.support.tools.course import NOTEBOOKS, ROOT, course_notebooks, execute, read

ALL = sorted(NOTEBOOKS.rglob("*.ipynb"))
WITHOUT_OUTPUTS = [path for path in ALL if path not in course_notebooks()]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(NOTEBOOKS.rglob("*.md"))]
NEEDED = {"pytorch": "torch", "jax": "jax"}
"""The frameworks that notebooks need; their findings are tested in tests/frameworks."""
LINK = re.compile(r"\]\(([^)\s]+)\)")


@pytest.mark.slow
@pytest.mark.parametrize("path", [path for path in WITHOUT_OUTPUTS if path.parent.name != "solutions"], ids=lambda path: path.stem)
def test_a_notebook_runs_from_top_to_bottom(path: Path) -> None:
    if path.stem in NEEDED:
        pytest.importorskip(NEEDED[path.stem], reason=f"{path.name} needs {NEEDED[path.stem]}, as in make frameworks")
    notebook = read(path)
    execute(notebook, path.parent)
    assert notebook.cells


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.stem)
def test_a_notebook_is_committed_without_a_kernel_of_its_own(path: Path) -> None:
    notebook: Any = read(path)
    nbformat.validate(notebook)
    assert notebook.metadata.get("kernelspec", {}).get("name", "python3") == "python3"


@pytest.mark.parametrize("path", WITHOUT_OUTPUTS, ids=lambda path: path.stem)
def test_a_notebook_outside_the_course_is_committed_without_outputs(path: Path) -> None:
    cells = [cell for cell in read(path).cells if cell.cell_type == "code"]
    assert all(cell.outputs == [] and cell.execution_count is None for cell in cells), "clear the outputs before committing"


@pytest.mark.parametrize("path", [*PAGES, *ALL], ids=lambda path: path.stem)
def test_links_lead_to_files(path: Path) -> None:
    text = (
        path.read_text(encoding="utf-8")
        if path.suffix == ".md"
        else "\n".join(cell.source for cell in read(path).cells if cell.cell_type == "markdown")
    )
    targets = [link.partition("#")[0] for link in LINK.findall(text) if "://" not in link]
    assert [target for target in targets if target and not (path.parent / target).exists()] == []
