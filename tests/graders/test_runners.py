"""papermill and `jupyter console` run the extension: no page, no cell ids."""

from __future__ import annotations

import json
import os
from pathlib import Path

import nbformat
import pexpect
import pytest

from tests.graders.test_graders import environment, run

__all__ = ["environment"]

pytestmark = pytest.mark.graders

SECONDS = 120
CELLS = (
    ("%load_ext kernelext\nimport graphcore as gc", ()),
    ("size = 3", ("parameters",)),
    ("%graph", ()),
    ("x = gc.placeholder(gc.float32, [None, size], name='x')\ny = gc.tanh(x, name='y')", ()),
    ("%fetch y x=[[0.0]*size]", ()),
)


def test_papermill_runs_a_notebook_with_parameters_and_keeps_the_picture(environment: dict[str, str], tmp_path: Path) -> None:
    notebook = nbformat.v4.new_notebook()
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook.cells = [nbformat.v4.new_code_cell(source, metadata={"tags": list(tags)}) for source, tags in CELLS]
    nbformat.write(notebook, tmp_path / "in.ipynb")
    run(environment, tmp_path, "papermill", "in.ipynb", "out.ipynb", "-p", "size", "5", "--cwd", str(tmp_path), "--no-progress-bar")
    cells = [cell for cell in json.loads((tmp_path / "out.ipynb").read_text())["cells"] if cell["cell_type"] == "code"]
    outputs = ["".join([json.dumps(output) for output in cell["outputs"]]) for cell in cells]
    assert "Outline of graph: 2 nodes" in outputs[3]
    assert "float [?,5]" in outputs[3]
    assert outputs[4] == ""
    assert "array([[0., 0., 0., 0., 0.]], dtype=float32)" in outputs[5]


def test_a_console_shows_text_and_completes(environment: dict[str, str], tmp_path: Path) -> None:
    python = str(Path(environment["PATH"].split(os.pathsep)[0]) / "python")
    spawned = {**environment, "HOME": str(tmp_path), "TERM": "dumb"}
    console = pexpect.spawn(
        python, ["-m", "jupyter_console", "--simple-prompt"], env=spawned, cwd=str(tmp_path), encoding="utf-8", timeout=SECONDS
    )
    console.expect(r"In \[1\]")
    for number, (code, shows) in enumerate(
        (
            ("%load_ext kernelext", r"In \[2\]"),
            ("import graphcore as gc", r"In \[3\]"),
            ("x = gc.placeholder(gc.float32, [2, 4], name='x')", r"In \[4\]"),
            ("%graph", r"Placeholder x float \[2,4\]"),
            ("%nodes", r"x\s+Placeholder\s+float \[2,4\]"),
            ("gc.tanh('text')", "InvalidArgumentError"),
            ("gc.ops.mat_mul?", r"a \[m,k\], b \[k,n\] -> product \[m,n\]"),
        ),
        1,
    ):
        console.sendline(code)
        assert console.expect([shows, pexpect.TIMEOUT]) == 0, f"{number}: {code}\n{console.before}"
    console.sendline("exit")
    console.close(force=True)
