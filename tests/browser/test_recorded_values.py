"""Recorded values: the lens, the pane of values and the inspector, in JupyterLab and in pages."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

import numpy as np
import pytest
from playwright.sync_api import Browser, expect

import graphcore as gc
import widgets
from tests.browser.conftest import Lab
from tests.browser.graph_panel import GraphPanel
from tests.browser.notebook_page import ARTEFACTS
from tests.browser.page_worker import PageWorker
from tests.browser.test_mirror import digits, lstm, mobilenet, while_loop
from tests.golden.scenes import comparable
from tests.support.asking import inspect
from widgets.render.compiled import build_scene
from widgets.scene import SceneState

LOAD: Final = "%load_ext kernelext\nimport numpy as np\nimport graphcore as gc\n%graph values --full 'head/*'"
MODEL: Final = """
x = gc.placeholder(gc.float32, [None, 64], name="x")
h = x
for number in range(4):
    with gc.name_scope(f"layer{number}"):
        W = gc.Variable(gc.random_normal([64, 64], stddev=0.01, seed=number), name="W")
        h = gc.sigmoid(gc.matmul(h, W), name="h")
with gc.name_scope("head"):
    score = gc.log(gc.relu(h - 1.0), name="score")
loss = gc.reduce_mean(score, name="loss")
dx, = gc.gradients(loss, [x])
"""
RUN: Final = """
with gc.Session() as session:
    session.run(gc.initialize_all_variables())
    session.run([loss, dx], {x: np.random.default_rng(0).random((10, 64))})
"""


def faulty() -> gc.Graph:
    """A run with a loop, a call and a logarithm of zero, recorded with full statistics."""
    graph = gc.Graph()
    with graph.as_default():
        x = gc.placeholder(gc.float32, [4, 64], name="x")

        @gc.function
        def twice(a: gc.Tensor) -> gc.Tensor:
            return gc.tanh(a + a)

        y = gc.while_loop(lambda i, _: i < 3, lambda i, a: [i + 1, twice(a)], [gc.constant(0), x], name="loop")[1]
        z = gc.reduce_sum(gc.log(gc.relu(y), name="log"), name="z")
        dx = gc.identity(gc.gradients(z, [x])[0], name="dx")
    with gc.Session(graph) as session:
        session.run([z, dx], {x: np.linspace(-1, 1, 256, dtype=np.float32).reshape(4, 64)}, gc.RunOptions(values="*"))
    return graph


def test_a_page_tells_the_same_values_as_the_kernel(browser: Browser) -> None:
    page = browser.new_page()
    graph = faulty()
    for mode in ("none", "all"):
        state = SceneState(max_boxes=400)
        state.expand("*") if mode == "all" else state.collapse("*")
        worker = PageWorker(page, graph, state)
        found, _ = worker.scene(type="ready")
        scene = build_scene(graph, state)
        assert comparable(found) == comparable(scene)
        marked = [node.id for node in scene.nodes if "values" in node.lenses]
        assert marked
        for box in marked[:: max(1, len(marked) // 12)]:
            told = inspect(graph, state, box)
            assert told is not None
            answer = worker.ask(type="inspect", id=box)["inspection"]
            assert answer["recorded"] == [list(row) for row in told.recorded], box
            if told.values is not None and told.kind != "constant":
                assert answer["values"]["statistics"] == [list(row) for row in told.values.statistics], box
        health = worker.ask(type="want_health")
        assert health["health"]["first"]["node"] == "log"
        assert health["boxes"]["log"] == "log"
    page.close()


def test_the_first_bad_node_is_found_in_two_clicks_in_light_and_dark(lab: Lab) -> None:
    notebook = lab.open_cells([LOAD, MODEL, RUN])
    notebook.run_all()
    panel = GraphPanel(notebook.page)
    panel.box("loss").wait_for()
    assert panel.root.get_attribute("data-lens") == "values"
    expect(panel.box("loss")).to_contain_text("1 Inf")
    panel.root.locator(".gl-canvas").focus()
    notebook.page.keyboard.press("v")
    health = panel.root.locator(".gl-health")
    expect(health).to_contain_text("The first NaN or Inf: head/score")
    expect(health).to_contain_text("Gradients along the depth")
    health.get_by_role("button", name="head/score").first.click()
    expect(panel.root).to_have_attribute("data-selected", "head/score")
    expect(panel.root.locator(".gl-inspector")).to_contain_text("Values in the last recorded run")
    expect(panel.root.locator(".gl-image svg")).to_be_attached()
    panel.inspector("output 0")  # explained, so that no later answer puts another list in the place of this one
    label = panel.root.locator(".gl-inspector dt", has_text="output 0").first
    assert label.evaluate("label => label.getBoundingClientRect().height") < 24, "the label has one line"
    notebook.screenshot("values-light")
    notebook.dark_theme()
    try:
        notebook.screenshot("values-dark")
    finally:
        notebook.dark_theme(False)


@pytest.mark.slow
@pytest.mark.parametrize("build", [digits, lstm, while_loop, mobilenet])
def test_a_page_shows_values_and_times_of_a_run_in_light_and_dark(browser: Browser, tmp_path: Path, build: Callable[[], None]) -> None:
    with gc.Graph().as_default() as graph:
        build()
        init = gc.initialize_all_variables()
        feeds = {
            node.outputs[0]: np.full([size or 3 for size in node.outputs[0].shape.as_list()], 0.5, np.float32)
            for node in graph.nodes
            if node.op == "Placeholder"
        }
        gradients = [node.outputs[0] for node in graph.nodes if node.name in graph.gradient_records and node.op == "Identity"]
        with gc.Session() as session:
            session.run(init)
            session.run(gradients, feeds, gc.RunOptions(values="*"))
    state = SceneState()
    state.lens = "values"
    page = browser.new_page(viewport={"width": 1366, "height": 768}, reduced_motion="reduce")
    page.goto(widgets.save(graph, tmp_path / "page.html", state, title=build.__name__).as_uri())
    panel = GraphPanel(page)
    panel.wait_drawn()
    assert panel.root.locator("[data-node-id][data-lens-text]").count() >= 3
    ARTEFACTS.mkdir(exist_ok=True)
    for lens, key, part in (("values", "v", ".gl-magnitudes .gl-point"), ("time", "t", ".gl-chart .gl-bar")):
        panel.root.locator(".gl-lenses").select_option(lens)
        panel.root.locator(".gl-canvas").press(key)
        panel.root.locator(part).first.wait_for()
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
            page.screenshot(path=ARTEFACTS / f"{lens}_{build.__name__}_{scheme}.png")
    page.close()
