"""`%graph` in the real JupyterLab: panels, inline views, several graphs, Run All, restarts."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import VIEWPORT, Lab
from tests.browser.graph_panel import GraphPanel
from tests.browser.notebook_page import NotebookPage

START = "%load_ext kernelext\nimport graphcore as gc\n%graph"
BUILD = 'x = gc.placeholder(gc.float32, [None, 4], name="x")\ny = gc.tanh(x, name="y")'
OTHER = "g = gc.Graph()\nwith g.as_default():\n    gc.constant(1.0, name='apart')\n%graph g"


def live_views(notebook: NotebookPage) -> int:
    return notebook.page.locator(".graphloupe").count()


def side_tabs(notebook: NotebookPage) -> list[str]:
    tabs: list[str] = notebook.page.locator("#jp-main-dock-panel .lm-TabBar-tabLabel").all_inner_texts()
    return [tab for tab in tabs if not tab.endswith(".ipynb") and tab != "Launcher"]


def columns(notebook: NotebookPage) -> list[list[str]]:
    """The titles of the tabs, column by column from left to right."""
    found: list[list[str]] = notebook.page.locator("#jp-main-dock-panel > .lm-TabBar").evaluate_all(
        """bars => bars.filter(bar => bar.offsetParent !== null)
             .sort((a, b) => a.getBoundingClientRect().x - b.getBoundingClientRect().x)
             .map(bar => [...bar.querySelectorAll('.lm-TabBar-tabLabel')].map(label => label.textContent).filter(label => label !== 'Launcher'))"""
    )
    return found


def width(notebook: NotebookPage) -> float:
    """The width of the visible notebook, in pixels."""
    box = notebook.page.locator(".jp-NotebookPanel:not(.lm-mod-hidden)").bounding_box()
    assert box is not None
    return box["width"]


def close_tab(notebook: NotebookPage, title: str) -> None:
    tab = notebook.page.locator("#jp-main-dock-panel .lm-TabBar-tab").filter(has_text=title)
    tab.locator(".lm-TabBar-tabCloseIcon").click()
    notebook.page.wait_for_function("() => !document.querySelector('.graphloupe')")
    notebook.page.wait_for_timeout(600)  # as long as a person would take; a panel that is only dragged is back by then


def test_run_all_shows_the_whole_graph(lab: Lab) -> None:
    notebook = lab.open_cells([START, BUILD, 'z = gc.exp(y, name="z")'])
    notebook.run_all()
    panel = GraphPanel(notebook.page)
    panel.box("z").wait_for()
    assert panel.names() == ["x", "y", "z"]
    assert live_views(notebook) == 1
    notebook.cell(0).get_by_text("Outline of graph: 3 nodes").wait_for(state="attached")


@pytest.mark.slow
def test_a_second_graph_line_reuses_the_panel_and_a_closed_panel_opens_again(lab: Lab) -> None:
    notebook = lab.open_cells([START, BUILD, "%graph"])
    notebook.run_all()
    panel = GraphPanel(notebook.page)
    panel.box("y").wait_for()
    notebook.run_cell(2)
    assert side_tabs(notebook) == ["Graph"]
    close_tab(notebook, "Graph")
    notebook.run_cell(2)
    panel.box("y").wait_for()
    assert side_tabs(notebook) == ["Graph"]


@pytest.mark.slow
def test_off_closes_the_panel_and_the_cells_go_on_without_it(lab: Lab) -> None:
    notebook = lab.open_cells([START, BUILD, "%graph off", 'z = gc.exp(y, name="z"); z.name', "%graph"])
    notebook.run_cell(0)
    notebook.run_cell(1)
    GraphPanel(notebook.page).box("y").wait_for()
    notebook.run_cell(2)
    notebook.page.wait_for_function("() => !document.querySelector('.graphloupe')")
    assert side_tabs(notebook) == []
    notebook.run_cell(3)
    assert notebook.text(3) == "'z:0'\n+1 node"
    notebook.run_cell(4)
    # Beside the notebook: below the first cell the saved picture may be there.
    notebook.page.locator(".jp-LinkedOutputView .graphloupe [data-name='z']").wait_for()


def test_inline_shows_the_view_in_the_cell(lab: Lab) -> None:
    notebook = lab.open_cells([START.replace("%graph", "%graph inline --renderer mermaid --lens cells"), BUILD])
    notebook.run_all()
    panel = GraphPanel(notebook.page)
    panel.box("y").wait_for()
    assert side_tabs(notebook) == []
    assert notebook.page.locator(".jp-Notebook .graphloupe").count() == 1
    assert panel.drawn().revision > 0
    assert panel.root.get_attribute("data-renderer") == "mermaid"
    still = notebook.page.locator(".jp-Notebook figure.graphloupe-still")
    still.get_by_text("Outline of graph: 2 nodes").wait_for(state="attached")
    assert not still.is_visible(), "the still picture shows only where the live view does not"
    notebook.screenshot("inline")


@pytest.mark.slow
def test_each_graph_has_a_tab_of_its_own_and_the_cells_keep_their_room(lab: Lab) -> None:
    notebook = lab.open_cells([START, BUILD, OTHER, "%graph"])
    notebook.run_cell(0)
    notebook.run_cell(1)
    notebook.page.locator('[data-name="y"]').wait_for()
    room = notebook.page.locator(".jp-Notebook").bounding_box()
    notebook.run_cell(2)
    notebook.page.locator('[data-name="apart"]').wait_for()
    assert sorted(side_tabs(notebook)) == ["Graph", "g"]
    assert notebook.page.locator(".jp-Notebook").bounding_box() == pytest.approx(room, abs=1)  # layouts round to pixels at different times
    assert not notebook.page.locator('[data-name="y"]').is_visible()
    notebook.run_cell(3)
    notebook.page.locator('[data-name="y"]').wait_for()
    assert not notebook.page.locator('[data-name="apart"]').is_visible()
    notebook.screenshot("tabs")


@pytest.mark.slow
def test_the_tabs_of_several_graphs_tell_them_apart_in_a_narrow_window(lab: Lab) -> None:
    graphs = "\n".join(f"{name} = gc.Graph()" for name in ("encoder", "decoder", "teacher"))
    notebook = lab.open_cells([START, graphs, "%graph encoder", "%graph decoder", "%graph teacher"])
    notebook.page.set_viewport_size({"width": 1366, "height": 768})
    notebook.run_all()
    notebook.wait_until(lambda: len(side_tabs(notebook)) == 4)
    shown = notebook.page.locator("#jp-main-dock-panel .lm-TabBar-tabLabel").evaluate_all(
        "labels => labels.filter(label => label.scrollWidth <= label.clientWidth).map(label => label.textContent)"
    )
    assert {"Graph", "encoder", "decoder", "teacher"} <= set(shown)
    notebook.screenshot("narrow")
    notebook.page.set_viewport_size(VIEWPORT)


@pytest.mark.slow
def test_files_are_named_after_the_graph_or_else_the_notebook(lab: Lab) -> None:
    notebook = lab.open(lab.write_cells([START, BUILD], "digits.ipynb"), page_of_its_own=False)
    notebook.run_all()
    panel = GraphPanel(notebook.page)
    panel.box("y").wait_for()
    panel.root.get_by_role("button", name=re.compile("^Export")).click()
    with notebook.page.expect_download() as download:
        panel.root.locator('[data-export="svg"]').click()
    assert download.value.suggested_filename == "digits.svg"


def test_a_restarted_kernel_starts_over_in_one_panel(lab: Lab) -> None:
    notebook = lab.open_cells([START, BUILD])
    notebook.run_all()
    panel = GraphPanel(notebook.page)
    panel.box("y").wait_for()
    notebook.restart_kernel()
    panel.box("y").click()
    notebook.wait_until(lambda: "The kernel of this picture has ended: run its cell again" in panel.status())
    notebook.screenshot("restarted")
    notebook.edit_and_run(1, BUILD.replace('"y"', '"again"'))
    assert "NameError" in notebook.text(1)
    notebook.run_all()
    notebook.page.locator('[data-name="again"]').first.wait_for()
    assert live_views(notebook) == 1
    assert notebook.page.locator('[data-name="y"]').count() == 0


@pytest.mark.slow
def test_after_a_restart_the_panels_of_all_graphs_are_one_column_as_before(lab: Lab) -> None:
    notebook = lab.open_cells([START, BUILD, OTHER])
    notebook.run_all()
    notebook.page.locator('[data-name="apart"]').wait_for()
    assert columns(notebook) == [["notebook.ipynb"], ["Graph", "g"]]
    room = width(notebook)
    notebook.restart_kernel()
    notebook.run_cell(0)
    notebook.edit_and_run(1, BUILD.replace('"y"', '"again"'))
    notebook.page.locator('[data-name="again"]').wait_for()
    notebook.wait_until(lambda: len(columns(notebook)) == 2 and abs(width(notebook) - room) < 2)
    assert sorted(columns(notebook)[1]) == ["Graph", "g"]
    notebook.page.locator(".graphloupe.gl-lost", has=notebook.page.locator('[data-name="apart"]')).wait_for(state="attached")
    notebook.run_cell(2)
    notebook.page.locator(".graphloupe:not(.gl-lost) [data-name='apart']").wait_for()
    notebook.wait_until(lambda: [sorted(column) for column in columns(notebook)] == [["notebook.ipynb"], ["Graph", "g"]])
    notebook.page.wait_for_function("() => !document.querySelector('.graphloupe.gl-lost')")
    notebook.screenshot("restarted-both")


@pytest.mark.slow
def test_the_panels_of_two_notebooks_share_a_column_and_the_one_that_works_is_seen(lab: Lab) -> None:
    first = lab.open_cells([START, BUILD])
    first.run_all()
    first.page.locator('[data-name="y"]').wait_for()
    first.cell(1).click()
    room = width(first)
    second = lab.open_cells([START, BUILD.replace('"y"', '"other"'), "x"], name="second.ipynb")
    second.run_all()
    second.page.locator('[data-name="other"]').wait_for()
    second.wait_until(lambda: len(columns(second)) == 2 and abs(width(second) - room) < 2)
    notebooks, panels = columns(second)
    assert notebooks == ["notebook.ipynb", "second.ipynb"]
    assert panels == ["Graph · notebook", "Graph · second"]
    first.run_cell(1)
    first.page.locator('[data-name="y"]').wait_for()
    assert not first.page.locator('[data-name="other"]').is_visible()
    second.run_cell(2)
    second.page.locator('[data-name="other"]').wait_for()
    second.screenshot("two-notebooks")
    # A notebook that is opened while a graph is the current tab becomes a tab beside it.
    second.page.locator('[data-name="other"]').click()
    third = lab.open_cells([START, BUILD.replace('"y"', '"covering"')], name="third.ipynb")
    assert "third.ipynb" in columns(third)[1]
    third.run_all()
    third.page.locator('[data-name="covering"]').wait_for()
    expect(third.page.locator(".jp-NotebookPanel:visible .cm-content", has_text='"covering"')).to_be_visible()
    assert "Graph · third" not in columns(third)[1]
    third.screenshot("beside-its-notebook")


@pytest.mark.slow
def test_a_page_that_is_reloaded_has_its_panel_back(lab: Lab) -> None:
    notebook = lab.open_cells([START, BUILD, "%graph"], page_of_its_own=True)
    notebook.run_all()
    GraphPanel(notebook.page).box("y").wait_for()
    notebook.save()
    notebook.reload()
    GraphPanel(notebook.page).box("y").wait_for()
    notebook.run_cell(2)
    assert side_tabs(notebook) == ["Graph"]
    close_tab(notebook, "Graph")
    notebook.run_cell(2)
    GraphPanel(notebook.page).box("y").wait_for()
    assert side_tabs(notebook) == ["Graph"]


def test_an_error_in_a_cell_is_short_and_the_view_goes_on(lab: Lab) -> None:
    notebook = lab.open_cells([START, BUILD, "w = gc.Variable(gc.zeros([5, 2]), name='w')\nx @ w", "z = gc.exp(y, name='z')"])
    notebook.run_all()
    text = notebook.text(2)
    assert "InvalidArgumentError: Dimensions must be equal, but are 4 and 5" in text
    assert "cell In [3], line 2" in text
    assert "interactiveshell.py" not in text
    card = notebook.cell(2).locator(".graphloupe-error")
    card.get_by_text("write 4 in place of 5 in cell In [3], line 1").wait_for()
    card.locator("img[alt*=\"around 'matmul'\"]").wait_for()
    frame = card.get_by_text("cell In [3], line 2, in <module>")
    assert not frame.is_visible()
    card.get_by_text("Traceback").click()
    frame.wait_for()
    notebook.run_cell(3)
    GraphPanel(notebook.page).box("z").wait_for()
    notebook.screenshot("error")
