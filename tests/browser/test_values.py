"""The values of constants and variables in the inspector, with a kernel and without."""

from __future__ import annotations

from pathlib import Path

import axe_playwright_python
import numpy as np
import pytest
from playwright.sync_api import Browser, expect

import graphcore as gc
import widgets
from tests.browser.conftest import Lab
from tests.browser.graph_panel import GraphPanel
from tests.browser.traffic import Traffic

AXE = Path(axe_playwright_python.__file__).with_name("axe.min.js")
FAULTS = "async () => (await axe.run({ include: ['.gl-inspector'] })).violations.map(({ id }) => id)"
COVERED = """header => {
  const { left, width, top, height } = header.getBoundingClientRect();
  const shares = [0.03, 0.1, 0.3, 0.6];
  return shares.every(x => shares.every(y => header.contains(document.elementFromPoint(left + width * x, top + height * y))));
}"""
START = "%load_ext kernelext\nimport graphcore as gc, numpy as np\n%graph"
BUILD = """samples = gc.constant(np.random.default_rng(0).standard_normal((200, 10)).astype("float32"), name="samples")
W = gc.Variable(gc.zeros([10, 4]), name="W")
y = gc.matmul(samples, W, name="y")
"""
SESSION = "session = gc.Session()\nsession.run(gc.initialize_all_variables())"


@pytest.mark.slow
def test_the_inspector_pages_through_values_and_follows_a_variable(lab: Lab) -> None:
    notebook = lab.open_cells([START, BUILD, SESSION, "session.run(W.assign(W + 2.5)); None"])
    panel = GraphPanel(notebook.page)
    notebook.run_cell(0)
    notebook.run_cell(1)
    panel.box("samples").wait_for()
    panel.inspect("samples", "mean")
    rows = panel.root.locator(".gl-value-rows tr")
    assert rows.count() == 20
    panel.press("›")
    expect(rows.first).to_contain_text("[20, 0]")
    panel.root.get_by_label("First row of the page").fill("195")
    panel.root.get_by_label("First row of the page").press("Enter")
    expect(rows.first).to_contain_text("[180, 0]")
    assert panel.root.locator(".gl-inspector header").evaluate(COVERED), "rows that were scrolled away cover the header"
    notebook.page.add_script_tag(path=AXE)
    for dark in (False, True):
        notebook.dark_theme(dark)
        assert notebook.page.evaluate(FAULTS) == []
        notebook.screenshot("constant-dark" if dark else "constant-light")
    notebook.dark_theme(False)

    panel.inspect("W", "No session of this graph is open")
    notebook.run_cell(2)
    expect(panel.root.locator(".gl-inspector")).to_contain_text("The value in the session made in cell In [3], line 1")
    expect(rows.first).to_have_text("[0, 0]0000")
    notebook.run_cell(3)
    expect(rows.first).to_have_text("[0, 0]2.52.52.52.5")
    notebook.screenshot("variable")


def test_a_page_without_a_kernel_shows_a_preview_and_says_why(browser: Browser, tmp_path: Path) -> None:
    with gc.Graph().as_default() as graph:
        samples = gc.constant(np.arange(2000, dtype=np.float32).reshape(200, 10), name="samples")
        gc.matmul(samples, gc.Variable(gc.zeros([10, 4]), name="W"), name="y")
    traffic = Traffic()
    context = browser.new_context(viewport={"width": 1366, "height": 768})
    traffic.guard(context)
    page = context.new_page()
    traffic.listen(page)
    page.goto(widgets.save(graph, tmp_path / "graph.html").as_uri())
    panel = GraphPanel(page)
    panel.wait_drawn()
    text = panel.inspect("samples", "The first values; all of them are shown where a kernel runs")
    assert panel.root.locator(".gl-value-rows td").all_inner_texts() == list("01234567")
    assert "float [200,10]" in text
    panel.inspect("W", "The value of a variable is shown where a kernel runs")
    context.close()
    traffic.assert_clean()
