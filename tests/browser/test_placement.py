"""The placement notebook by mouse: lens, a device tried and applied, timeline."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import nbformat
import pytest
from playwright.sync_api import Locator, expect

from tests.browser.conftest import Lab
from tests.browser.graph_panel import GraphPanel
from tests.browser.notebook_page import NotebookPage

PLACEMENT: Final = Path(__file__).resolve().parents[2] / "notebooks" / "08_placement.ipynb"
GPU: Final = "/job:worker/replica:0/task:0/device:GPU:1"


@pytest.mark.slow
def test_the_placement_notebook_by_mouse_in_light_and_dark(lab: Lab) -> None:
    notebook = lab.open_copy(PLACEMENT)
    cells = {cell["id"]: index for index, cell in enumerate(nbformat.read(PLACEMENT, as_version=4).cells)}
    panel = GraphPanel(notebook.page)
    for cell in ("load", "machine", "model", "run"):
        run(notebook, cells[cell])
    panel.box("right").wait_for()
    assert panel.root.get_attribute("data-lens") == "devices"
    panel.inspect("right", "nodes")
    effect = try_device(panel, f"{GPU} (simulated)")
    expect(effect).to_contain_text("predicted step")
    expect(effect).to_contain_text("virtual clock of simulated devices")
    picture(notebook, "tried")
    effect.get_by_role("button", name="Apply").click()
    expect(effect).to_contain_text('with gc.device("/job:worker/replica:0/task:0/device:GPU:1"):')
    expect(panel.box("right")).to_contain_text("GPU:1")
    run(notebook, cells["compare"])
    assert "virtual clock" in notebook.text(cells["compare"])
    panel.root.get_by_role("button", name="Timeline: ").click()
    bar = panel.root.locator('.gl-chart >> nth=0 >> .gl-bar[data-node="left/layer1/MatMul"]').last
    panel.root.locator(".gl-chart").first.wait_for()
    picture(notebook, "timeline")
    bar.click()
    expect(panel.root).to_have_attribute("data-selected", "left/layer1/MatMul")


def picture(notebook: NotebookPage, name: str) -> None:
    """Take a screenshot in the light theme and one in the dark theme."""
    notebook.screenshot(f"{name}-light")
    notebook.dark_theme()
    try:
        notebook.screenshot(f"{name}-dark")
    finally:
        notebook.dark_theme(False)


def run(notebook: NotebookPage, cell: int) -> None:
    notebook.run_cell(cell)
    assert not [output for output in notebook.outputs(cell) if output["output_type"] == "error"], notebook.text(cell)


def try_device(panel: GraphPanel, label: str) -> Locator:
    """Choose a device in the inspector, and return the predicted effect."""
    panel.root.get_by_text("What if it were on another device?").click()
    panel.root.get_by_label("Device").select_option(label=label)
    return panel.root.locator(".gl-what-if-result")
