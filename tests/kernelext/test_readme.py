"""The code of the README and the docs that needs no framework runs as it is pasted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from graphcore.graph import get_default_graph, reset_default_graph
from tests.kernelext.conftest import NotebookShell
from tests.support.readme import DOCS, code_blocks, example_of_the_readme, lines_of_the_table

# The blocks about an op, a lens and a frontend have tests of their own.
PAGES = sorted(page for page in DOCS.rglob("*.md") if code_blocks(page) and page.stem != "extend")


@pytest.fixture
def notebook(shell: NotebookShell) -> Iterator[NotebookShell]:
    reset_default_graph()
    shell.run("%load_ext kernelext\nimport graphcore as gc", "start")
    yield shell
    shell.run("%unload_ext kernelext")
    reset_default_graph()


def run(shell: NotebookShell, *cells: str) -> None:
    for number, code in enumerate(cells):
        result = shell.run(code, str(number))
        assert result.success, (code, result.error_in_exec)


def test_the_graph_of_the_readme_is_built_trained_and_placed(notebook: NotebookShell) -> None:
    run(notebook, example_of_the_readme(), next(line for line in lines_of_the_table() if "placement" in line))
    graph = get_default_graph()
    assert not graph.cells.failed
    assert graph.find("W") is not None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_code_of_a_how_to_runs_from_top_to_bottom(notebook: NotebookShell, page: Path) -> None:
    run(notebook, *code_blocks(page))
