"""Neighborhoods, ways between boxes and filters in a notebook, by keyboard and from Python."""

from __future__ import annotations

import pytest

from tests.browser.conftest import Lab
from tests.browser.graph_panel import GraphPanel
from tests.browser.notebook_page import NotebookPage

START = "%load_ext kernelext\nimport graphcore as gc\n%graph"
BUILD = """x = gc.placeholder(gc.float32, [None, 8], name="x")
left = gc.tanh(x, name="left")
right = gc.relu(x, name="right")
y = gc.square(gc.add(left, right, name="sum"), name="y")"""


@pytest.fixture
def notebook(lab: Lab) -> NotebookPage:
    opened = lab.open_cells([START, BUILD])
    opened.run_all()
    GraphPanel(opened.page).box("y").wait_for()
    return opened


def test_keys_and_the_search_highlight_parts_of_a_picture(notebook: NotebookPage) -> None:
    panel, keys = GraphPanel(notebook.page), notebook.page.keyboard
    panel.wait_drawn()
    panel.box("left").click()
    keys.press("n")
    panel.root.locator(".gl-node.gl-off[data-node-id=y]").wait_for()
    assert panel.root.locator(".gl-node.gl-off").count() == 2
    notebook.screenshot("neighborhood")
    keys.press("Escape")
    panel.box("x").click()
    panel.box("sum").click(modifiers=["Shift"])
    keys.press("p")
    panel.root.locator(".gl-node.gl-off").wait_for()
    assert panel.root.locator(".gl-node.gl-off").get_attribute("data-node-id") == "y"
    keys.press("Escape")
    keys.press("/")
    keys.type("op:relu")
    panel.root.locator(".gl-hit-note button", has_text="Highlight all").wait_for()
    keys.press("Shift+Enter")
    panel.root.locator(".gl-node.gl-off[data-node-id=left]").wait_for()
    assert panel.root.locator(".gl-node[data-node-id]:not(.gl-off)").get_attribute("data-node-id") == "right"
    notebook.screenshot("filter")


@pytest.mark.slow
def test_buttons_of_the_inspector_highlight_what_is_around_a_selection(notebook: NotebookPage) -> None:
    panel = GraphPanel(notebook.page)
    panel.wait_drawn()
    panel.inspect("left", "Tanh")
    panel.press("Neighborhood")
    panel.root.locator(".gl-node.gl-off[data-node-id=y]").wait_for()
    assert panel.root.locator('[data-way="near"]').get_attribute("aria-pressed") == "true"
    assert panel.root.locator('[data-way="paths"]').count() == 0
    panel.press("Neighborhood")
    panel.root.locator(".gl-node.gl-off[data-node-id=y]").wait_for(state="detached")
    panel.box("x").click()
    panel.box("sum").click(modifiers=["Shift"])
    panel.press("Ways between")
    panel.root.locator(".gl-node.gl-off[data-node-id=y]").wait_for()
    assert panel.root.locator(".gl-node.gl-off").count() == 1
    notebook.screenshot("ways")
