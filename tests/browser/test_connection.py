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


@pytest.mark.slow
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
    # The scene is sent, and what follows it in an update is not: the end of the cell, the still picture, answers to the page.
    late = "for step in range(200):\n    gc.identity(y, name=f'late{step}')\n"
    die = FIND_VIEW + late + "import os, time\nview.refresh()\ntime.sleep(0.05)\nos._exit(1)"
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


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_two_views_of_one_graph_both_follow_announce_the_end_and_follow_again_when_reconnected(lab: Lab) -> None:
    again = "%load_ext kernelext\nimport graphcore as gc\nagain = gc.get_default_graph()\n%graph again inline"
    notebook = lab.open_cells([START, again, BUILD])
    notebook.run_all()
    views = notebook.page.locator(".graphloupe")
    followers = views.filter(has=notebook.page.locator("[data-name='y']"))
    notebook.wait_until(lambda: followers.count() == 2)
    notebook.restart_kernel()
    notebook.wait_until(lambda: lost(notebook).count() == 2)
    assert notebook.page.locator(".graphloupe.gl-lost [data-name='y']").count() == 2
    for remaining in (1, 0):
        lost(notebook).first.get_by_role("button", name="Reconnect").click()
        lost(notebook).nth(remaining).wait_for(state="detached")
        notebook.wait_idle()
    notebook.run_cell(2)
    notebook.wait_until(lambda: followers.count() == 2)
    assert views.count() == 2


@pytest.mark.slow
def test_eight_views_of_one_graph_all_follow_a_cell(lab: Lab) -> None:
    eight = "for number in range(8):\n    globals()[f'g{number}'] = gc.get_default_graph()\n    get_ipython().run_line_magic('graph', f'g{number} inline')"
    notebook = lab.open_cells([START.removesuffix("%graph"), eight, BUILD])
    notebook.run_all()
    views = notebook.page.locator(".graphloupe")
    notebook.wait_until(lambda: views.filter(has=notebook.page.locator("[data-name='y']")).count() == 8)
    assert lost(notebook).count() == 0


@pytest.mark.slow
def test_a_reloaded_page_has_its_view_back_and_follows(lab: Lab) -> None:
    notebook = lab.open_cells([START, BUILD, "z = gc.exp(y, name='z')"], page_of_its_own=True)
    notebook.run_cell(0)
    notebook.run_cell(1)
    panel = GraphPanel(notebook.page)
    panel.box("y").wait_for()
    # The still picture changes the notebook, too.
    notebook.cell(0).get_by_text("Outline of graph: 2 nodes").wait_for(state="attached")
    notebook.save()
    notebook.reload()
    panel.box("y").wait_for()
    notebook.run_cell(2)
    panel.box("z").wait_for()
    assert lost(notebook).count() == 0
