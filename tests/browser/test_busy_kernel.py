"""A view answers at once while its kernel works, and after its kernel has ended. What only the kernel knows comes later, and that is said."""

from __future__ import annotations

import time

import pytest

from tests.browser.conftest import Lab
from tests.browser.graph_panel import GraphPanel
from tests.browser.notebook_page import NotebookPage

START = "%load_ext kernelext\nimport graphcore as gc\n%graph"
BUILD = """x = gc.placeholder(gc.float32, [None, 4], name="x")
y = x
for layer in range(9):
    with gc.name_scope(f"layer{layer}"):
        for step in range(9):
            y = gc.tanh(y, name=f"step{step}")
y = gc.exp(y, name="last")"""
SLEEP = "import time\ntime.sleep(20)"
FREEZE = """import os, signal, subprocess
subprocess.Popen(["sh", "-c", f"sleep 15; kill -CONT {os.getpid()}"])
os.kill(os.getpid(), signal.SIGSTOP)"""  # front ends of today let a kernel answer beside a cell, but not one that is stopped
ENDED = "The kernel of this picture has ended: run its cell again"


def run_without_waiting(notebook: NotebookPage, cell: int) -> None:
    notebook.page.evaluate("([path, cell]) => { window.graphloupeTest.panel(path).content.activeCellIndex = cell; }", [notebook.path, cell])
    notebook.page.evaluate("() => { void window.jupyterapp.commands.execute('notebook:run-cell'); }")


def use_everything_that_needs_no_kernel(panel: GraphPanel) -> None:
    """Open and close a scope, search, change the lens and the renderer, and inspect a box."""
    panel.press("Collapse all")
    panel.press("Fit the whole graph (f)")
    panel.box("layer3").wait_for()
    panel.open("layer3/")
    panel.box("layer3/step5").wait_for()
    panel.root.locator(".gl-search-field").fill("step7")
    panel.root.locator('.gl-hits [role="option"]').nth(8).wait_for()
    panel.root.locator(".gl-search-field").fill("layer6/step7")
    panel.root.locator('.gl-hits [role="option"][data-name="layer6/step7"]').click()
    panel.box("layer6/step7").wait_for()
    panel.root.locator(".gl-lenses").select_option("cells")
    panel.root.locator(".gl-legend").get_by_text("In [").first.wait_for()
    panel.box("layer6/step7").click()
    panel.root.locator(".gl-inspector").get_by_text("Tanh").first.wait_for()


def test_scopes_open_searches_find_and_lenses_change_while_a_cell_sleeps_and_after_the_kernels_end(lab: Lab) -> None:
    notebook = lab.open_cells([START, BUILD, SLEEP, "import os\nos._exit(1)"])
    notebook.run_cell(0)
    notebook.run_cell(1)
    panel = GraphPanel(notebook.page)
    panel.box("last").wait_for()
    run_without_waiting(notebook, 2)
    begin = time.monotonic()
    use_everything_that_needs_no_kernel(panel)
    assert time.monotonic() - begin < 20, "the cell still sleeps"
    notebook.screenshot("busy")
    notebook.wait_idle()
    run_without_waiting(notebook, 3)
    panel.root.page.locator(".graphloupe.gl-lost .gl-status-text").get_by_text(ENDED).wait_for()
    dialog = notebook.page.locator(".jp-Dialog")
    dialog.wait_for()
    dialog.get_by_role("button", name="Ok").click()
    use_everything_that_needs_no_kernel(panel)
    notebook.screenshot("ended")


@pytest.mark.slow
def test_the_inspector_says_that_explanations_wait_for_a_kernel_that_does_not_answer(lab: Lab) -> None:
    notebook = lab.open_cells([START, BUILD, FREEZE])
    notebook.run_cell(0)
    notebook.run_cell(1)
    panel = GraphPanel(notebook.page)
    panel.box("last").wait_for()
    run_without_waiting(notebook, 2)
    use_everything_that_needs_no_kernel(panel)
    waits = panel.root.locator(".gl-waits")
    waits.wait_for()
    assert waits.text_content() == "Explanations and values come when the kernel answers"
    notebook.screenshot("waits")
    panel.root.locator(".gl-inspector").get_by_text("Why this shape").wait_for()
    assert waits.count() == 0
