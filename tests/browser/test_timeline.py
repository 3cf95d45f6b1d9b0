"""The timeline of recorded and predicted steps, by mouse."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, expect

import graphcore as gc
import widgets
from tests.browser.conftest import Lab
from tests.browser.graph_panel import GraphPanel

START = "%load_ext kernelext\nimport numpy as np\nimport graphcore as gc\n%graph"
BUILD = """
x = gc.placeholder(gc.float32, [64, 64], name="x")
with gc.device("/gpu:0"), gc.name_scope("layer"):
    h = x
    for number in range(40):
        h = gc.tanh(gc.matmul(h, x), name=f"h{number}")
with gc.device("/gpu:1"):
    y = gc.exp(h, name="y")
"""
RUN = """
with gc.Session(devices=gc.simulated_devices("1 cpu, 2 gpu")) as session:
    session.run(y, {x: np.ones((64, 64), np.float32)}, gc.RunOptions(trace=True))
"""


def bars(root: Locator, node: str) -> Locator:
    """The bars of a node in the recorded run."""
    return root.locator(f'.gl-chart >> nth=0 >> .gl-bar[data-node="{node}"]')


@pytest.mark.slow
def test_bars_lead_to_boxes_and_boxes_to_bars_in_light_and_dark(lab: Lab) -> None:
    notebook = lab.open_cells([START, BUILD, RUN])
    notebook.run_all()
    panel = GraphPanel(notebook.page)
    panel.box("y").wait_for()
    root = panel.root
    root.get_by_role("button", name="Timeline: ").click()
    bars(root, "y").first.wait_for()
    assert "virtual clock of simulated devices" in root.locator(".gl-timeline-clock").first.inner_text()
    bars(root, "y").last.click()
    expect(root).to_have_attribute("data-selected", "y")
    assert root.locator(".gl-chart >> nth=0 >> .gl-lit").count() == bars(root, "y").count()
    notebook.screenshot("light")

    inner = bars(root, "layer/h20").first
    while not inner.count():
        root.get_by_role("button", name="Zoom into the time").click()
    inner.click()
    panel.box("layer/h20").wait_for()
    expect(root).to_have_attribute("data-selected", "layer/h20")

    root.get_by_role("button", name="The whole time").click()
    times = root.locator(".gl-chart >> nth=0 >> .gl-time")
    whole = times.all_text_contents()
    root.locator(".gl-plot").first.hover()
    notebook.page.keyboard.down("Control")
    notebook.page.mouse.wheel(0, -600)
    notebook.page.keyboard.up("Control")
    notebook.wait_until(lambda: times.all_text_contents() != whole)
    notebook.dark_theme(True)
    try:
        notebook.screenshot("dark")
    finally:
        notebook.dark_theme(False)


def test_a_page_has_the_recorded_run_and_opens_the_box_of_a_bar(browser: Browser, tmp_path: Path) -> None:
    graph = gc.Graph()
    with graph.as_default():
        x = gc.placeholder(gc.float32, [8, 8], name="x")
        with gc.name_scope("outer"), gc.device("/gpu:0"):
            y = gc.tanh(gc.tanh(gc.matmul(x, x, name="y")))
    with gc.Session(graph, gc.simulated_devices("1 cpu, 1 gpu")) as session:
        session.run(y, {x: [[0.0] * 8] * 8}, gc.RunOptions(trace=True))
    file = widgets.save(graph, tmp_path / "run.html")
    page = browser.new_page(viewport={"width": 1000, "height": 700}, color_scheme="dark")
    page.goto(file.as_uri())
    root = page.locator(".graphloupe")
    page.locator("[data-node-id]").first.wait_for()
    root.get_by_role("button", name="Collapse all").click()
    page.locator('[data-node-id="outer/y"]').wait_for(state="detached")
    root.get_by_role("button", name="Timeline: ").click()
    bars(root, "outer/y").last.click()
    expect(root).to_have_attribute("data-selected", "outer/y")
    page.locator('[data-node-id="outer/y"]').wait_for()
    page.screenshot(path=str(tmp_path / "dark.png"))
    page.close()
