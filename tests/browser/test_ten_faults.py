"""Ten faults in the training of a digit reader, each found within five clicks and keys."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import nbformat
import pytest
from playwright.sync_api import Locator, expect

from tests.browser.conftest import Lab
from tests.browser.graph_panel import GraphPanel, wait_still
from tests.browser.notebook_page import NotebookPage

FAULTS: Final = Path(__file__).resolve().parents[2] / "notebooks" / "extra" / "ten_faults.ipynb"
MOST: Final = 5


class Reader:
    """A reader of the notebook: runs a section, then looks, clicks and presses keys, which are counted."""

    def __init__(self, notebook: NotebookPage) -> None:
        self.notebook = notebook
        self.panel = GraphPanel(notebook.page, ".graphloupe:not(.jp-Notebook *)")  # not a difference below a cell
        self.root = self.panel.root
        self.cells = {cell["id"]: index for index, cell in enumerate(nbformat.read(FAULTS, as_version=4).cells)}
        self.actions = 0

    @contextmanager
    def section(self, *names: str) -> Iterator[None]:
        """Run the cells of a section; what follows may take at most five clicks and keys."""
        for name in names:
            self.notebook.run_cell(self.cells[name])
            assert not [output for output in self.notebook.outputs(self.cells[name]) if output["output_type"] == "error"], name
        self.actions = 0
        yield
        assert self.actions <= MOST
        self.notebook.screenshot(names[0])
        if self.root.locator(".gl-lower").is_visible():
            self.root.get_by_role("button", name="Close the panel").click()

    def key(self, key: str) -> None:
        if not self.root.evaluate("root => root.contains(document.activeElement)"):
            self.root.locator(".gl-canvas").focus()  # as after any click on the picture
        self.notebook.page.keyboard.press(key)
        self.actions += 1

    def click(self, place: Locator) -> None:
        place.click()
        self.actions += 1

    def sees(self, box: str, text: str) -> None:
        """The box is in the window, and says this."""
        expect(self.panel.box(box)).to_be_in_viewport()
        expect(self.panel.box(box)).to_contain_text(text)

    def search(self, name: str) -> None:
        """Find a box by its name: a key, the name, and Enter."""
        self.key("/")
        self.root.locator(".gl-search-field").fill(name)
        self.actions += 1
        self.root.locator(f'.gl-hits [data-name="{name}"]').wait_for()
        self.key("Enter")

    def health(self) -> Locator:
        """The pane of values, opened by its key."""
        self.key("v")
        return self.root.locator(".gl-health")

    def difference(self, name: str) -> str:
        """The words of the difference that a cell has returned, shown in place of its picture."""
        cell = self.notebook.cell(self.cells[name])
        self.click(cell.get_by_role("button", name="In words"))
        words = cell.locator(".gl-diff-words")
        expect(words).to_be_in_viewport()
        return words.inner_text()


@pytest.mark.slow
def test_each_of_ten_faults_is_found_within_five_clicks_and_keys(lab: Lab) -> None:
    reader = Reader(lab.open_copy(FAULTS))
    root, panel = reader.root, reader.panel
    with reader.section("load", "sound"):
        panel.box("loss").wait_for()
        assert root.get_attribute("data-lens") == "values"

    with reader.section("rate"):
        health = reader.health()
        expect(health).to_contain_text("The first NaN or Inf: hidden/W")
        reader.click(health.get_by_role("button", name="hidden/W", exact=True).first)
        reader.sees("hidden/W", "NaN")
        expect(root.locator(".gl-inspector")).to_contain_text("NaN")

    with reader.section("sign", "sign-show"):
        text = reader.difference("sign-show")
        assert (len(re.findall(r"− \S+  \(AssignSub\)", text)), len(re.findall(r"\+ \S+  \(AssignAdd\)", text))) == (4, 4), text

    with reader.section("log"):
        health = reader.health()
        expect(health).to_contain_text("The first NaN or Inf: Log")
        expect(health.locator("h4:text('Computed from') + ul")).to_contain_text("right")
        reader.click(health.get_by_role("button", name="Log", exact=True).first)
        reader.sees("Log", "Inf")
        expect(root).to_have_attribute("data-selected", "Log")

    with reader.section("scale"):
        reader.key("f")
        reader.sees("x", "6.554e+04")

    with reader.section("cut"):
        reader.key("m")
        end = root.locator(".gl-node", has_text="no gradient of").first
        end.wait_for()
        wait_still(reader.notebook.page)  # the whole picture is that of the layout with gradients
        reader.key("f")
        wait_still(reader.notebook.page)
        expect(end).to_be_in_viewport()
        reader.click(end)
        expect(root.locator(".gl-inspector")).to_contain_text("Cast[DstT=DT_INT32")
        expect(root.locator(".gl-svg").first).to_contain_text("stopped at Cast")
    root.locator(".gl-canvas").press("m")

    with reader.section("shared", "shared-show"):
        assert reader.difference("shared-show").count('shared_name: "" → "weights"') == 2

    with reader.section("stale"):
        reader.search("hidden/MatMul")
        reader.sees("hidden/add", "mean")
        reader.sees("hidden/MatMul", "MatMul")
        assert panel.box("hidden/MatMul").get_attribute("data-lens-text") is None
        assert panel.box("x").get_attribute("data-lens-text")

    with reader.section("dead"):
        health = reader.health()
        expect(health).to_contain_text("All zero")
        reader.click(health.get_by_role("button", name="h", exact=True))
        reader.sees("h", "all 0")

    with reader.section("axis"):
        reader.click(root.locator(".gl-lenses"))
        root.locator(".gl-lenses").select_option("shapes")
        reader.search("surprise")
        reader.sees("surprise", "[10]")
        assert "[10]" in panel.inspector("surprise")

    with reader.section("control", "control-show"):
        assert "counted  no longer waits for more" in reader.difference("control-show")
