"""The time lens, the timeline and its memory, in JupyterLab and in pages."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser, expect

import graphcore as gc
import widgets
from tests.browser.conftest import Lab
from tests.browser.graph_panel import GraphPanel
from tests.browser.page_worker import PageWorker
from tests.golden.scenes import comparable
from tests.support.asking import inspect
from widgets.render.compiled import build_scene
from widgets.scene import SceneState


def recorded(devices: gc.DeviceSet | None = None) -> gc.Graph:
    """A recorded run with functions in functions, loops and branches."""
    graph = gc.Graph()
    with graph.as_default():
        x = gc.placeholder(gc.float32, [4, 4], name="x")

        @gc.function
        def inner(a: gc.Tensor) -> gc.Tensor:
            return gc.tanh(gc.matmul(a, a))

        @gc.function
        def outer(a: gc.Tensor) -> Any:
            return inner(gc.while_loop(lambda i, _: i < 2, lambda i, b: [i + 1, inner(b)], [gc.constant(0), a])[1])

        y = gc.while_loop(lambda i, _: i < 3, lambda i, a: [i + 1, outer(a)], [gc.constant(0), x], name="loop")[1]
        with gc.device("/gpu:0" if devices else ""):
            z = gc.cond(gc.reduce_sum(y) > 0, lambda: gc.tanh(y), lambda: gc.exp(y), name="choice")
        dx = gc.gradients(z, [x])[0]
    with gc.Session(graph, devices) as session:
        session.run([z, dx], {x: np.ones((4, 4), np.float32)}, gc.RunOptions(trace=True))
    return graph


@pytest.mark.slow
def test_a_page_tells_the_same_times_as_the_kernel(browser: Browser) -> None:
    page = browser.new_page()
    for graph in (recorded(), recorded(gc.simulated_devices("1 cpu, 1 gpu"))):
        for mode in ("none", "all"):
            state = SceneState(max_boxes=400)
            state.expand("*") if mode == "all" else state.collapse("*")
            worker = PageWorker(page, graph, state)
            found, _ = worker.scene(type="ready")
            scene = build_scene(graph, state)
            assert comparable(found) == comparable(scene)
            marked = [node.id for node in scene.nodes if "time" in node.lenses]
            assert marked
            for box in marked[:: max(1, len(marked) // 12)]:
                told = inspect(graph, state, box)
                assert told is not None
                assert told.times
                assert worker.ask(type="inspect", id=box)["inspection"]["times"] == [list(row) for row in told.times], box
    page.close()


BUILD = """
x = gc.placeholder(gc.float32, [64, 64], name="x")

@gc.function
def cell(a):
    return gc.tanh(gc.matmul(a, a, name="product"), name="squash")

y = gc.while_loop(lambda i, _: i < 4, lambda i, a: [i + 1, cell(a)], [gc.constant(0), x], name="loop")[1]
with gc.name_scope("end"):
    z = gc.reduce_sum(y * y, name="z")
session = gc.Session()
"""
RUN = "session.run(z, {x: np.ones((64, 64), np.float32)})"


@pytest.mark.slow
def test_graph_time_marks_the_boxes_of_the_next_run_and_the_timeline_opens_functions(lab: Lab) -> None:
    notebook = lab.open_cells(["%load_ext kernelext\nimport numpy as np\nimport graphcore as gc\n%graph", BUILD, "%graph time", RUN])
    notebook.run_all()
    panel = GraphPanel(notebook.page)
    root = panel.root
    expect(panel.box("loop")).to_have_attribute("data-lens-text", re.compile(r"\S+ [mµ]s, \d+ % of the step, self \S+ [mµ]s"))
    assert "without the functions that it calls" in panel.inspect("loop", "Time in the last recorded run")
    root.get_by_role("button", name="Timeline: ").click()
    table = root.locator(".gl-memory-table").first
    expect(table.locator("summary")).to_contain_text(re.compile(r"Memory at the peak: .* alive at .* on cpu:0: "))
    notebook.screenshot("light")
    # By keyboard alone: to the first moment with a tensor, to the peak, back, and to the node that made the tensor.
    table.locator("summary").press("Enter")
    moment = table.get_by_role("slider", name="Moment of the step")
    moment.press("Home")
    moment.press("ArrowRight")
    expect(table.locator("summary")).not_to_contain_text("at the peak")
    table.get_by_role("button", name="At the peak").press("Enter")
    expect(table.locator("tbody tr")).not_to_have_count(1)
    moment.press("Home")
    moment.press("ArrowRight")
    table.locator("tbody button", has_text="product").first.press("Enter")
    panel.box("loop:body/cell:/product").wait_for()
    expect(root).to_have_attribute("data-selected", "loop:body/cell:/product")
    expect(panel.box("loop:body/cell:/product")).to_have_attribute("data-lens-text", re.compile("4 runs"))
    notebook.dark_theme(True)
    try:
        notebook.screenshot("dark")
    finally:
        notebook.dark_theme(False)


def test_a_page_has_the_time_lens_and_the_memory_of_its_recorded_run(browser: Browser, tmp_path: Path) -> None:
    state = SceneState()
    state.lens = "time"
    state.collapse("*")
    file = widgets.save(recorded(), tmp_path / "run.html", state)
    page = browser.new_page(viewport={"width": 1100, "height": 800})
    page.goto(file.as_uri())
    root = page.locator(".graphloupe")
    loop = page.locator('[data-node-id="gradients/"]')
    expect(loop).to_have_attribute("data-lens-text", re.compile("% of the step"))
    root.get_by_role("button", name="Timeline: ").click()
    plot = root.locator(".gl-plot").first
    plot.press("m")
    expect(root.locator(".gl-timeline-said")).to_contain_text("alive at")
    root.locator(".gl-memory-table summary").first.click()
    link = root.locator(".gl-memory-table tbody button").first
    link.click()
    expect(root).to_have_attribute("data-selected", re.compile("."))
    assert root.locator(".gl-bar.gl-lit").count() >= 1
    page.close()
