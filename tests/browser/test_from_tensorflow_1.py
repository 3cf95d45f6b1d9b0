"""The notebook with a program of TensorFlow 1: pasted, run, seen and stepped, by mouse."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import nbformat
import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Lab
from tests.browser.graph_panel import GraphPanel

NOTEBOOK: Final = Path(__file__).resolve().parents[2] / "notebooks" / "extra" / "from_tensorflow_1.ipynb"


@pytest.mark.slow
def test_a_pasted_program_of_tensorflow_1_is_seen_and_stepped_with_the_mouse(lab: Lab) -> None:
    notebook = lab.open_copy(NOTEBOOK)
    cells = {cell["id"]: index for index, cell in enumerate(nbformat.read(NOTEBOOK, as_version=4).cells)}
    panel = GraphPanel(notebook.page)
    root = panel.root
    notebook.run_cell(cells["load"])
    notebook.run_cell(cells["program"])
    panel.box("x").wait_for()
    assert "test accuracy" in notebook.text(cells["program"])
    expect(notebook.cell(cells["program"]).locator(".graphloupe-progress img")).to_be_visible()
    notebook.screenshot("program")

    notebook.run_cell(cells["step"])
    said = root.locator(".gl-step-said")
    expect(said).to_contain_text("hidden/Relu ran")
    root.get_by_role("button", name="Step in: open the box of the next node").click()
    panel.box("hidden/Relu").wait_for()
    expect(said).to_contain_text("hidden/dropout/truediv ran")
    root.get_by_role("button", name="One step: the next node runs").click()
    expect(said).to_contain_text("hidden/dropout/Shape ran")
    notebook.screenshot("stepper")
    notebook.dark_theme()
    notebook.screenshot("stepper-dark")
    notebook.dark_theme(on=False)

    for name in ("finish", "list", "restore", "missing"):
        notebook.run_cell(cells[name])
        assert not [output for output in notebook.outputs(cells[name]) if output["output_type"] == "error"], name
    accuracy = notebook.text(cells["restore"]).splitlines()[0]
    assert accuracy.startswith("test accuracy: ")
    assert accuracy in notebook.text(cells["program"]).splitlines()
    assert "did you mean gc.nn.relu?" in notebook.text(cells["missing"])
    notebook.cell(cells["missing"])
    notebook.screenshot("end")
