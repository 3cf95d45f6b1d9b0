"""The README's cells about PyTorch and the lines of its table run as they are pasted."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kernelext.conftest import NotebookShell
from tests.kernelext.conftest import page as page  # noqa: PLC0414 - a fixture
from tests.kernelext.conftest import shell as shell  # noqa: PLC0414 - a fixture
from tests.kernelext.simulated_page import Page
from tests.support.readme import README, code_blocks, lines_of_the_table
from tests.support.readme_models import MAKE_THE_OTHERS, write_before


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
def test_the_cells_and_the_table_of_the_readme_run(
    shell: NotebookShell, page: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    write_before(tmp_path)
    blocks = code_blocks(README)
    lines = lines_of_the_table()
    assert len(lines) > 7
    assert lines[0] + "\n" in blocks
    about_graphs = [line for line in lines if "placement" in line]
    cells = (
        [block for block in blocks if "gc.placeholder" not in block]
        + [MAKE_THE_OTHERS]
        + [line for line in lines if line not in about_graphs]
    )
    for number, code in enumerate(cells):
        result = shell.run(code, str(number))
        assert result.success, (code, result.error_in_exec)
        assert "UsageError" not in capsys.readouterr().err, code  # a magic that refuses a line is no failed cell
    assert {"model.onnx", "after.onnx"} <= {path.name for path in tmp_path.iterdir()}
    assert len(page.panels) >= 1
