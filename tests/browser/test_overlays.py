"""Overlays in JupyterLab, in saved notebooks, and in pages: opening, switching, legend, list, CSV."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

import graphcore as gc
import widgets
from tests.browser.conftest import Lab
from tests.browser.graph_panel import GraphPanel
from tests.browser.notebook_page import ARTEFACTS
from tests.browser.test_lenses import legend
from tests.browser.test_saved_notebook import open_without_kernel, saved
from widgets import SceneState, add_overlay

BUILD = """
import graphcore as gc
from widgets import GraphView, SceneState
x = gc.placeholder(gc.float32, [None, 4], name="x")
for layer in range(3):
    with gc.name_scope(f"layer{layer}"):
        for step in range(4):
            x = gc.tanh(x, name=f"step{step}")
y = gc.exp(x, name="y")
latency = {f"layer{layer}/step{step}": 10.0 ** layer + step for layer in range(3) for step in range(4)}
"""


def layers() -> gc.Graph:
    """Three layers of four nodes."""
    with gc.Graph().as_default() as graph:
        x = gc.placeholder(gc.float32, [None, 4], name="x")
        for layer in range(3):
            with gc.name_scope(f"layer{layer}"):
                for step in range(4):
                    x = gc.tanh(x, name=f"step{step}")
    return graph


def choose(panel: GraphPanel, lens: str) -> None:
    panel.root.locator(".gl-lenses").select_option(lens)


def marks(panel: GraphPanel) -> dict[str, str]:
    texts: dict[str, str] = panel.root.locator("[data-node-id][data-lens-text]").evaluate_all(
        "boxes => Object.fromEntries(boxes.map(box => [box.dataset.nodeId, box.dataset.lensText]))"
    )
    return texts


def test_a_page_switches_between_overlays_with_legends_lists_and_csv(browser: Browser, tmp_path: Path) -> None:
    graph = layers()
    latency = {node.name: 10.0**layer for layer in range(3) for node in graph.op_nodes() if node.name.startswith(f"layer{layer}/")}
    add_overlay(graph, latency, title="Latency", unit="µs", thresholds=[100, 30])
    add_overlay(graph, {"layer0/step0": 0.25, "layer0/step1": 1 / 3, "layer2": 2}, title="Error", combine="max", scale="linear")
    ARTEFACTS.mkdir(exist_ok=True)
    state = SceneState()
    state.lens = "latency"
    state.collapse("*")
    file = widgets.save(graph, tmp_path / "numbers.html", state)
    for scheme in ("light", "dark"):
        page = browser.new_page(viewport={"width": 1100, "height": 700}, color_scheme="dark" if scheme == "dark" else "light")
        page.goto(file.as_uri())
        panel = GraphPanel(page)
        panel.wait_drawn()
        assert marks(panel) == {"layer0/": "4 µs", "layer1/": "40 µs", "layer2/": "400 µs"}
        assert legend(panel)[:3] == ["100 µs and more", "30 µs to 100 µs", "below 30 µs"]
        page.screenshot(path=ARTEFACTS / f"test_overlays-latency-{scheme}.png")
        choose(panel, "error")
        assert marks(panel) == {"layer0/": "0.333, max of 2", "layer2/": "2"}
        assert legend(panel)[0] == "1.67 and more"
        pane = panel.inspect("layer0", "Numbers")
        assert pane.index("Latency") < pane.index("4 µs, sum of 4") < pane.index("Error")
        assert pane.rindex("· layer0/step1") < pane.rindex("· layer0/step0")
        page.screenshot(path=ARTEFACTS / f"test_overlays-error-{scheme}.png")
        assert panel.export("csv") == f"name,Error\nlayer0,{1 / 3}\nlayer2,2\n"
        choose(panel, "latency")
        assert panel.export("csv").startswith("name,Latency [µs]\nlayer0,4\n")
        choose(panel, "structure")
        panel.root.get_by_role("button", name="Export the picture").click()
        expect(panel.root.locator('[data-export="svg"]')).to_be_visible()
        expect(panel.root.locator('[data-export="csv"]')).to_be_hidden()
        page.close()


SHOWN = "state = SceneState()\nstate.collapse('*')\nview = GraphView(gc.get_default_graph(), state=state)\nview"
OVERLAYS = """
overlay = view.overlay(latency, title="Latency", unit="ms")
view.overlay({"layer1/step0": 3}, title="Error")
print(overlay.to_csv().splitlines()[:2])
"""


def test_overlays_open_in_a_live_view_and_are_replaced(lab: Lab) -> None:
    again = 'latency["layer0/step0"] = 5_000\nview.overlay(latency, title="Latency", unit="ms")'
    notebook = lab.open_cells([BUILD, SHOWN, OVERLAYS, again])
    for cell in (0, 1, 2):
        notebook.run_cell(cell)
    panel = GraphPanel(notebook.page)
    notebook.wait_until(lambda: marks(panel) == {"layer1/": "3"})
    choose(panel, "latency")
    notebook.wait_until(lambda: marks(panel).get("layer2/") == "406 ms")
    notebook.screenshot("live")
    notebook.run_cell(3)
    notebook.wait_until(lambda: marks(panel).get("layer0/") == "5.01 s")


@pytest.mark.slow
def test_a_saved_notebook_keeps_its_overlays(lab: Lab) -> None:
    graph = "%load_ext kernelext\n%graph"
    notebook = open_without_kernel(lab, saved(lab, [graph, BUILD, "%graph overlay latency"]))
    panel = GraphPanel(notebook.page)
    panel.box("y").wait_for()
    assert marks(panel)["layer2/step3"] == "103"
    choose(panel, "structure")
    choose(panel, "latency")
    assert marks(panel)["layer1/step0"] == "10"
