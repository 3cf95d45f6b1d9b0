"""axe-core finds no fault in any view, light or dark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import axe_playwright_python
import pytest
from playwright.sync_api import Browser, Page, expect

import graphcore as gc
from tests.browser.conftest import Lab
from tests.browser.graph_panel import GraphPanel
from widgets import save, to_html

AXE = Path(axe_playwright_python.__file__).with_name("axe.min.js")
START = "%load_ext kernelext\nimport graphcore as gc\n%graph"
BUILD = """x = gc.placeholder(gc.float32, [None, 4], name="x")
W = gc.Variable([[1.0]] * 4, name="W")
with gc.name_scope("layer"):
    y = gc.tanh(x @ W, name="y")
gradient = gc.gradients(y, [W])[0]
"""
STEP = """session = gc.Session()
session.run(gc.global_variables_initializer())
run = session.step_through(gradient, {x: [[0.5] * 4]})
"""
# Faults with the elements that have them; pages of JupyterLab are looked at inside the views only.
FAULTS = """async () => {
  const { violations } = await axe.run({ include: ['.graphloupe'] });
  return violations.flatMap(({ id, help, nodes }) =>
    nodes.map(({ html, failureSummary }) => `${id} (${help}): ${html.slice(0, 200)} | ${failureSummary.slice(0, 300)}`));
}"""


def faults(page: Page) -> list[str]:
    page.evaluate(AXE.read_text(encoding="utf-8"))  # not a script of the page, whose policy admits none
    found: list[str] = page.evaluate(FAULTS)
    return found


def step(panel: GraphPanel) -> None:
    """Open the mirrored picture and the stepper, and make some steps."""
    panel.root.get_by_role("button", name="Mirror gradients").click()
    panel.root.locator('[data-node-id^="∇"]').first.wait_for()
    panel.root.locator(".gl-canvas").focus()
    said = panel.root.locator(".gl-step-said")
    if not said.is_visible():
        panel.page.keyboard.press("s")
    expect(said).to_contain_text("Step")
    for _ in range(3):
        before = said.inner_text()
        panel.root.locator(".gl-canvas").focus()
        panel.page.keyboard.press(".")
        expect(said).not_to_have_text(before)


def use(panel: GraphPanel, name: str = "x") -> None:
    """Open everything that a view can show beside its picture, about the box called `name`."""
    panel.inspect(name, "Outputs")
    panel.root.get_by_role("button", name="Outline: the graph as a list").click()
    panel.root.locator(".gl-legend summary").click()
    panel.find(name)


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("place", ["side", pytest.param("inline", marks=pytest.mark.slow)])
def test_a_live_view_has_no_fault(lab: Lab, place: str, dark: bool) -> None:
    notebook = lab.open_cells([f"{START} {place}", BUILD, STEP])
    notebook.dark_theme(dark)
    try:
        for cell in range(2):
            notebook.run_cell(cell)
        panel = GraphPanel(notebook.page)
        panel.box("x").wait_for()
        assert faults(notebook.page) == []
        use(panel)
        assert faults(notebook.page) == []
        notebook.screenshot("used")
        if place == "side":  # what follows is the same in a cell
            for lens in ("shapes", "gradients", "cells"):
                panel.root.locator(".gl-lenses").select_option(lens)
                assert faults(notebook.page) == []
            notebook.run_cell(2)
            expect(panel.root.locator(".gl-step-said")).to_contain_text("live")
            step(panel)
            assert faults(notebook.page) == []
    finally:
        notebook.dark_theme(False)


@pytest.mark.slow
@pytest.mark.parametrize("dark", [False, True])
def test_a_view_whose_kernel_has_ended_has_no_fault(lab: Lab, dark: bool) -> None:
    notebook = lab.open_cells([START, BUILD])
    notebook.dark_theme(dark)
    try:
        notebook.run_all()
        GraphPanel(notebook.page).box("x").wait_for()
        notebook.restart_kernel()
        notebook.page.locator(".graphloupe.gl-lost").wait_for()
        assert faults(notebook.page) == []
    finally:
        notebook.dark_theme(False)


@pytest.mark.slow
@pytest.mark.parametrize("dark", [False, True])
def test_a_view_of_a_function_has_no_fault(lab: Lab, dark: bool) -> None:
    function = "@gc.function\ndef square(a):\n    return a * a\nsquare(gc.constant(2.0))\nsquare"
    notebook = lab.open_cells([START, function])
    notebook.dark_theme(dark)
    try:
        notebook.run_all()
        notebook.cell(1)
        notebook.page.locator(".jp-Notebook .graphloupe [data-node-id]").first.wait_for()
        assert faults(notebook.page) == []
    finally:
        notebook.dark_theme(False)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_standalone_page_has_no_fault(browser: Browser, tmp_path: Path, scheme: str) -> None:
    graph = gc.Graph()
    with graph.as_default():
        names: dict[str, Any] = {"gc": gc}
        exec(BUILD, names)
        with gc.Session() as session:
            session.run(gc.global_variables_initializer())
            session.run(names["gradient"], {names["x"]: [[0.5] * 4]}, gc.RunOptions(values=True))
    gc.Placer(graph, gc.simulated_devices("1 cpu, 1 gpu")).run()
    file = tmp_path / "page.html"
    file.write_text(to_html(graph), encoding="utf-8")
    page = browser.new_page(color_scheme="dark" if scheme == "dark" else "light")
    try:
        page.goto(file.as_uri())
        panel = GraphPanel(page)
        panel.box("x").wait_for()
        assert faults(page) == []
        use(panel)
        assert faults(page) == []
        panel.root.get_by_role("button", name="Timeline: ").click()
        panel.root.locator(".gl-timeline-table summary").first.click()
        panel.root.locator(".gl-memory-table summary").first.click()
        assert faults(page) == []
        for lens in ("time", "values"):
            panel.root.locator(".gl-lenses").select_option(lens)
            assert faults(page) == []
        panel.root.get_by_role("tab", name="Values").click()
        panel.root.locator(".gl-magnitudes svg").wait_for()
        panel.root.locator(".gl-health summary").click()
        panel.inspect("x", "Values in the last recorded run")
        assert faults(page) == []
        panel.root.get_by_role("tab", name="Stepper").click()
        step(panel)
        assert faults(page) == []
    finally:
        page.close()


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_difference_has_no_fault_and_its_marks_are_in_words(browser: Browser, tmp_path: Path, scheme: str) -> None:
    graph = gc.Graph()
    with graph.as_default():
        x = gc.placeholder(gc.float32, [2], name="x")
        y = gc.square(gc.tanh(x, name="gone"), name="y")
    before = graph.copy()
    with graph.as_default():
        gc.gradients(y, [x])
    graph.update_edge(x.node, 0, y.node, 0)
    file = save(gc.graph_diff(before, graph), tmp_path / "page.html")
    page = browser.new_page(color_scheme="dark" if scheme == "dark" else "light")
    try:
        page.goto(file.as_uri())
        panel = GraphPanel(page)
        panel.box("y").wait_for()
        assert "changed" in (panel.box("y").get_attribute("aria-label") or "")
        assert faults(page) == []
        use(panel)
        panel.root.get_by_role("button", name="Mirror gradients").click()
        assert faults(page) == []
    finally:
        page.close()
