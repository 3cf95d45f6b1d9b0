"""Ten faults in the training of a digit reader, each found within five clicks and keys."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import nbformat
from playwright.sync_api import Locator, expect

from tests.browser.conftest import Lab
from tests.browser.graph_panel import GraphPanel
from tests.browser.notebook_page import NotebookPage

FAULTS: Final = Path(__file__).resolve().parents[2] / "notebooks" / "extra" / "ten_faults.ipynb"
MOST: Final = 5


class Reader:
    """A reader of the notebook: runs a section, then counts clicks and keys."""

    def __init__(self, notebook: NotebookPage) -> None:
        self.notebook = notebook
        self.panel = GraphPanel(notebook.page)
        self.cells = {cell["id"]: index for index, cell in enumerate(nbformat.read(FAULTS, as_version=4).cells)}
        self.actions = 0

    def run(self, *names: str) -> None:
        for name in names:
            self.notebook.run_cell(self.cells[name])
            assert not [output for output in self.notebook.outputs(self.cells[name]) if output["output_type"] == "error"], name
        self.actions = 0

    def key(self, key: str) -> None:
        self.panel.root.locator(".gl-canvas").focus()
        self.notebook.page.keyboard.press(key)
        self.actions += 1

    def click(self, place: Locator) -> None:
        place.click()
        self.actions += 1

    def values(self) -> Locator:
        """The pane of values, opened."""
        if not self.panel.root.locator(".gl-health").is_visible():
            self.key("v")
        return self.panel.root.locator(".gl-health")

    def difference(self, name: str) -> str:
        return self.notebook.text(self.cells[name])


def test_each_of_ten_faults_is_found_within_five_actions(lab: Lab) -> None:
    reader = Reader(lab.open_copy(FAULTS))
    panel = reader.panel
    reader.run("load", "sound")
    panel.box("loss").wait_for()
    assert panel.root.get_attribute("data-lens") == "values"

    reader.run("rate", "rate-show")
    expect(reader.values()).to_contain_text("The first NaN or Inf: hidden/W")
    reader.click(reader.values().get_by_role("button", name="hidden/W", exact=True).first)
    expect(panel.root.locator(".gl-inspector")).to_contain_text("NaN")
    assert reader.actions <= MOST
    reader.notebook.screenshot("rate")

    reader.run("sign", "sign-show")
    assert "AssignAdd" in reader.difference("sign-show")

    reader.run("log", "log-show")
    expect(reader.values()).to_contain_text("The first NaN or Inf: Log")
    expect(reader.values()).to_contain_text("right")
    reader.click(reader.values().get_by_role("button", name="Log", exact=True).first)
    expect(panel.root).to_have_attribute("data-selected", "Log")
    assert reader.actions <= MOST

    reader.run("scale", "scale-show")
    expect(panel.box("x")).to_contain_text("6.554e+04")

    reader.run("cut", "cut-show")
    expect(panel.root.locator(".gl-svg").first).to_contain_text("no gradient of")
    reader.notebook.screenshot("cut")

    reader.run("shared", "shared-show")
    assert "shared_name" in reader.difference("shared-show")

    reader.run("stale", "stale-show")
    expect(panel.box("hidden/add")).to_contain_text("mean")
    expect(panel.box("hidden/MatMul")).not_to_contain_text("mean")

    reader.run("dead", "dead-show")
    expect(panel.box("h")).to_contain_text("all 0")
    expect(reader.values()).to_contain_text("All zero")
    assert reader.actions <= MOST
    reader.notebook.screenshot("dead")

    reader.run("axis", "axis-show")
    assert panel.root.get_attribute("data-lens") == "shapes"
    expect(panel.box("surprise")).to_contain_text("[10]")

    reader.run("control", "control-show")
    assert "no longer waits for more" in reader.difference("control-show")
