"""Views in Notebook 7: in a side panel that stays, or in a cell. Nothing reaches the console."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser import test_lenses as lenses
from tests.browser import test_navigation as navigation
from tests.browser.conftest import Lab
from tests.browser.graph_panel import GraphPanel
from tests.browser.notebook_page import NotebookPage

START = "%load_ext kernelext\nimport graphcore as gc\n%graph"
BUILD = 'x = gc.placeholder(gc.float32, [None, 4], name="x")\ny = gc.tanh(x, name="y")'
LATER = "z = gc.exp(y, name='z')"
FILLER = "\n".join(f"# line {line}" for line in range(20))


def opened(lab: Lab, *cells: str) -> NotebookPage:
    return lab.open_in_notebook7(lab.write_cells(list(cells)))


@pytest.mark.slow
def test_the_view_stays_beside_the_cells_and_a_click_on_the_place_that_made_a_node_selects_the_line(lab: Lab) -> None:
    notebook = opened(lab, START, BUILD, *[FILLER] * 20, LATER)
    notebook.run_cell(0)
    notebook.run_cell(1)
    panel = GraphPanel(notebook.page)
    panel.box("y").wait_for()
    notebook.run_cell(22)
    panel.box("z").wait_for()
    expect(panel.root).to_be_in_viewport(ratio=0.9)
    box = panel.root.bounding_box()
    assert box is not None
    assert box["width"] > 500
    expect(notebook.page.locator(".graphloupe")).to_have_count(1)
    notebook.screenshot("side")
    panel.inspect("y", "Made by")
    panel.root.locator("button.gl-place").first.click()
    notebook.wait_until(lambda: notebook.page.evaluate("() => document.getSelection().toString()") == 'y = gc.tanh(x, name="y")')


@pytest.mark.slow
def test_a_second_graph_line_brings_its_panel_forward(lab: Lab) -> None:
    other = "g = gc.Graph()\nwith g.as_default():\n    gc.constant(1.0, name='apart')\n%graph g"
    notebook = opened(lab, START, BUILD, other, "%graph")
    shown, apart = (notebook.page.locator(f'[data-name="{name}"]') for name in ("y", "apart"))
    notebook.run_cell(0)
    notebook.run_cell(1)
    shown.wait_for()
    notebook.run_cell(2)
    apart.wait_for()
    expect(shown).not_to_be_visible()
    notebook.run_cell(3)
    shown.wait_for()
    expect(apart).not_to_be_visible()
    notebook.page.locator(".jp-SidePanel-collapse:visible").click()
    expect(shown).not_to_be_visible()
    notebook.run_cell(3)
    shown.wait_for()
    assert notebook.page.locator(".graphloupe").count() == 2
    notebook.screenshot("forward")


@pytest.mark.slow
def test_a_view_in_a_cell_follows_and_opens_scopes(lab: Lab) -> None:
    scope = 'with gc.name_scope("layer"):\n    for step in range(50):\n        gc.tanh(y, name=f"step{step}")'
    notebook = opened(lab, START + " inline", BUILD, scope)
    notebook.run_all()
    panel = GraphPanel(notebook.page)
    panel.open("layer/")
    panel.box("layer/step7").wait_for(state="attached")
    notebook.screenshot("inline")


def test_navigation_search_and_lenses_work_in_the_side_panel(lab: Lab) -> None:
    notebook = opened(lab, START, navigation.BUILD + '\ny = gc.exp(loss, name="y")', lenses.OWN)
    notebook.page.set_viewport_size({"width": 1366, "height": 768})
    notebook.run_all()
    panel, keys = GraphPanel(notebook.page), notebook.page.keyboard
    panel.box("loss").wait_for()
    navigation.surround_boxes(notebook)
    navigation.use_minimap(notebook)
    panel.press("Fit the whole graph (f)")
    navigation.trace_a_box(notebook)
    keys.press("Escape")
    lenses.choose_own_lens(notebook)

    panel.press("Collapse all")
    panel.root.locator('[data-node-id="layer1/"]').wait_for()
    panel.press("Fit the whole graph (f)")
    panel.open("layer1/")
    panel.box("layer1/out").wait_for()
    notebook.page.wait_for_timeout(1000)  # a place counts once the user has stayed there
    panel.root.locator('[data-group-id="layer1/"] [data-action="collapse"]').click()
    panel.box("layer1/out").wait_for(state="detached")
    panel.press("Back to where you were (Alt+Left)")
    panel.box("layer1/out").wait_for()
    panel.find("loss")
    keys.press("Tab")
    keys.press("Enter")
    lit = panel.root.locator(".gl-node[data-node-id]:not(.gl-off)")
    expect(lit).to_have_count(1)
    assert lit.get_attribute("data-node-id") == "loss"
    notebook.screenshot("highlighted")


def test_a_restart_leaves_the_picture_and_one_click_reconnects(lab: Lab) -> None:
    notebook = opened(lab, START, BUILD)
    notebook.run_all()
    panel = GraphPanel(notebook.page)
    panel.box("y").wait_for()
    notebook.restart_kernel()
    lost = notebook.page.locator(".graphloupe.gl-lost .gl-status")
    lost.get_by_role("button", name="Reconnect").click()
    notebook.page.locator(".graphloupe:not(.gl-lost)").wait_for()
    notebook.wait_idle()
    notebook.run_cell(1)
    notebook.page.locator(".graphloupe:not(.gl-lost) [data-name='y']").wait_for()
