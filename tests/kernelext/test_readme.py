"""The example of the README runs as it is pasted."""

from __future__ import annotations

import re
from pathlib import Path

from graphcore.graph import get_default_graph, reset_default_graph
from tests.kernelext.conftest import NotebookShell

README = Path(__file__).resolve().parents[2] / "README.md"


def test_the_first_cells_of_the_readme_run_one_after_the_other(shell: NotebookShell) -> None:
    reset_default_graph()
    first, model, *_ = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    for number, code in enumerate((first, model)):
        result = shell.run(code, str(number))
        assert result.success, result.error_in_exec
    graph = get_default_graph()
    assert not graph.cells.failed
    assert graph.find("W") is not None
    shell.run("%unload_ext kernelext")
    reset_default_graph()
