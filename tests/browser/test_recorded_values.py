"""Recorded values: the lens, the pane of values and the inspector, in JupyterLab and in pages."""

from __future__ import annotations

from typing import Final

import numpy as np
from playwright.sync_api import Browser, expect

import graphcore as gc
from tests.browser.conftest import Lab
from tests.browser.graph_panel import GraphPanel
from tests.browser.page_worker import PageWorker, comparable
from widgets.scene import SceneState, build_scene
from widgets.scene.inspect import inspect

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
    label = panel.root.locator(".gl-inspector dt", has_text="output 0").first.bounding_box()
    assert label is not None
    assert label["height"] < 24, "the label has one line"
    notebook.screenshot("values-light")
    notebook.dark_theme()
    try:
        notebook.screenshot("values-dark")
    finally:
        notebook.dark_theme(False)
