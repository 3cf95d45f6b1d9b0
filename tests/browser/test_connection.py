"""The link between a view and its notebook: source lines, reloads, and the end of kernels and comms. Nothing reaches the console."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator

from tests.browser.conftest import Lab
from tests.browser.graph_panel import GraphPanel
from tests.browser.notebook_page import NotebookPage

START = "%load_ext kernelext\nimport graphcore as gc\n%graph"
BUILD = 'x = gc.placeholder(gc.float32, [None, 4], name="x")\ny = gc.tanh(x, name="y")'
FIND_VIEW = "from ipywidgets.widgets import widget\nview = next(w for w in widget._instances.values() if type(w).__name__ == 'GraphView')\n"
FILLER = "\n".join(f"# line {line}" for line in range(20))
ENDED = "The kernel of this picture has ended: run its cell again"


def selected_line(notebook: NotebookPage) -> str:
    return str(notebook.page.evaluate("() => document.getSelection().toString()"))


def lost(notebook: NotebookPage) -> Locator:
    """The status line of views that say why they no longer change."""
    return notebook.page.locator(".graphloupe.gl-lost .gl-status")


def wait_lost(notebook: NotebookPage, text: str) -> None:
    lost(notebook).locator(".gl-status-text").get_by_text(text).wait_for()


def test_a_click_on_the_place_that_made_a_node_shows_the_cell_and_selects_the_line(lab: Lab) -> None:
    notebook = lab.open_cells([START, BUILD, *[FILLER] * 30, "1 + 1"])
    notebook.run_all()
    panel = GraphPanel(notebook.page)
    notebook.cell(32).click()
    panel.inspect("y", "Made by")
    panel.root.locator("button.gl-place").first.click()
    notebook.wait_until(lambda: selected_line(notebook) == 'y = gc.tanh(x, name="y")')
    active = notebook.page.locator(".jp-Notebook .jp-Cell.jp-mod-active")
    assert active.get_attribute("data-windowed-list-index") == "1"
    assert active.is_visible()
    notebook.screenshot("source")


def test_a_click_on_the_place_works_from_a_view_between_cells(lab: Lab) -> None:
    notebook = lab.open_cells([START + " inline", BUILD])
    notebook.run_all()
    panel = GraphPanel(notebook.page)
    panel.box("x").wait_for()
    panel.inspect("x", "Made by")
    panel.root.locator("button.gl-place").first.click()
    notebook.wait_until(lambda: selected_line(notebook).startswith("x = gc.placeholder"))


def test_a_restart_is_announced_without_a_click_and_one_click_reconnects(lab: Lab) -> None:
    notebook = lab.open_cells([START, BUILD])
    notebook.run_all()
    panel = GraphPanel(notebook.page)
    panel.box("y").wait_for()
    notebook.restart_kernel()
    wait_lost(notebook, ENDED)
    assert panel.box("y").is_visible()
    notebook.screenshot("announced")
    lost(notebook).get_by_role("button", name="Reconnect").click()
    lost(notebook).wait_for(state="detached")
    notebook.wait_idle()
    notebook.run_cell(1)
    panel.box("y").wait_for()
    assert notebook.page.locator(".graphloupe").count() == 1


def test_a_kernel_that_dies_in_the_middle_of_an_update_leaves_the_last_picture_and_a_way_back(lab: Lab) -> None:
    die = "import os\nfor step in range(200):\n    gc.identity(y, name=f'late{step}')\nos._exit(1)"
    notebook = lab.open_cells([START, BUILD, die])
    notebook.run_cell(0)
    notebook.run_cell(1)
    panel = GraphPanel(notebook.page)
    panel.box("y").wait_for()
    notebook.page.evaluate("path => { window.graphloupeTest.panel(path).content.activeCellIndex = 2; }", notebook.path)
    notebook.page.evaluate("() => { void window.jupyterapp.commands.execute('notebook:run-cell'); }")
    wait_lost(notebook, ENDED)
    assert panel.box("y").is_visible()
    dialog = notebook.page.locator(".jp-Dialog")
    dialog.wait_for()
    dialog.get_by_role("button", name="Ok").click()
    notebook.wait_ready()
    lost(notebook).get_by_role("button", name="Reconnect").click()
    lost(notebook).wait_for(state="detached")
    notebook.wait_idle()
    notebook.run_cell(1)
    panel.box("y").wait_for()


def test_a_comm_that_the_kernel_has_lost_is_noticed_and_one_click_reconnects(lab: Lab) -> None:
    forget = FIND_VIEW + "from comm import get_comm_manager\nget_comm_manager().unregister_comm(view.comm)"
    notebook = lab.open_cells([START, BUILD, forget])
    notebook.run_cell(0)
    notebook.run_cell(1)
    panel = GraphPanel(notebook.page)
    panel.box("y").wait_for()
    notebook.run_cell(2)
    panel.box("y").click()
    wait_lost(notebook, "The kernel no longer knows this picture")
    assert panel.box("y").is_visible()
    lost(notebook).get_by_role("button", name="Reconnect").click()
    lost(notebook).wait_for(state="detached")
    panel.inspect("y", "Made by")
    assert notebook.page.locator(".graphloupe").count() == 1


@pytest.mark.parametrize("place", ["side", "inline"])
def test_a_comm_that_the_kernel_closes_leaves_the_picture_and_a_way_back(lab: Lab, place: str) -> None:
    close = FIND_VIEW + "view.comm.close()"
    notebook = lab.open_cells([f"{START} {place}", BUILD, close])
    notebook.run_cell(0)
    notebook.run_cell(1)
    panel = GraphPanel(notebook.page)
    panel.box("y").wait_for()
    notebook.run_cell(2)
    wait_lost(notebook, "The kernel no longer knows this picture")
    assert panel.box("y").is_visible()
    notebook.screenshot(f"closed-{place}")
    lost(notebook).get_by_role("button", name="Reconnect").click()
    lost(notebook).wait_for(state="detached")
    panel.inspect("y", "Made by")
    assert notebook.page.locator(".graphloupe").count() == 1


def test_two_views_of_one_graph_both_follow_and_both_announce_the_end(lab: Lab) -> None:
    notebook = lab.open_cells([START, BUILD, "from widgets.live.graph_view import GraphView\nGraphView(gc.get_default_graph())"])
    notebook.run_all()
    views = notebook.page.locator(".graphloupe")
    views.nth(1).locator("[data-name='y']").wait_for(state="attached")
    assert views.count() == 2
    notebook.restart_kernel()
    notebook.wait_until(lambda: lost(notebook).count() == 2)
    assert notebook.page.locator(".graphloupe.gl-lost [data-name='y']").count() == 2


def test_a_reloaded_page_has_its_view_back_and_follows(lab: Lab) -> None:
    notebook = lab.open_cells([START, BUILD, "z = gc.exp(y, name='z')"], page_of_its_own=True)
    notebook.run_cell(0)
    notebook.run_cell(1)
    panel = GraphPanel(notebook.page)
    panel.box("y").wait_for()
    # The still picture changes the notebook, too.
    notebook.cell(0).get_by_text("Outline of graph: 2 nodes").wait_for()
    notebook.save()
    notebook.reload()
    panel.box("y").wait_for()
    notebook.run_cell(2)
    panel.box("z").wait_for()
    assert lost(notebook).count() == 0
