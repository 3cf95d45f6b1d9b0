"""Lenses and the legend in JupyterLab."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

import graphcore as gc
import widgets
from tests.browser.conftest import Lab
from tests.browser.graph_panel import GraphPanel
from tests.browser.notebook_page import NotebookPage

DATA = Path(__file__).parents[1] / "data"
START = "%load_ext kernelext\nimport graphcore as gc\n%graph"
BUILD = 'x = gc.placeholder(gc.float32, [None, 4], name="x")\ny = gc.tanh(x, name="y")'
OWN = """from widgets import lens

@lens(title="<b>Fan-in</b>")
def fan_in(node):
    return f"{len(node.inputs)} <i>inputs</i>" if node.inputs else None
"""


def legend(panel: GraphPanel) -> list[str]:
    if panel.root.locator(".gl-legend:not([open])").count():
        panel.root.locator(".gl-legend summary").click()
    return panel.root.locator(".gl-legend li > span, .gl-legend-note").all_inner_texts()


def choose_own_lens(notebook: NotebookPage) -> None:
    """Choose the lens `OWN` in a view with a placeholder x and a node y of one input."""
    panel = GraphPanel(notebook.page)
    choice = panel.root.locator(".gl-lenses")
    notebook.wait_until(lambda: "<b>Fan-in</b>" in choice.locator("option").all_inner_texts())
    choice.select_option("fan_in")
    assert panel.box("y").get_attribute("data-lens-text") == "1 <i>inputs</i>"
    assert panel.box("x").get_attribute("data-lens-text") is None
    assert "1 <i>inputs</i>" in legend(panel)
    assert (panel.box("y").locator(".gl-mark").text_content() or "").startswith("1 <i>")
    notebook.screenshot("own")


@pytest.mark.slow
def test_a_lens_of_ones_own_is_listed_and_marks_the_picture_with_a_legend(lab: Lab) -> None:
    notebook = lab.open_cells([START, BUILD, OWN])
    notebook.run_all()
    choose_own_lens(notebook)


def test_the_legend_explains_the_shapes_lines_and_badges_in_the_picture(lab: Lab) -> None:
    wrong = "W = gc.Variable([[1.0]] * 3, name='W')\nwith gc.control_dependencies([y]):\n    z = gc.identity(y, name='z')"
    notebook = lab.open_cells([START, BUILD, wrong])
    notebook.run_all()
    panel = GraphPanel(notebook.page)
    panel.box("z").wait_for()
    rows = legend(panel)
    for row in ("computation", "input", "variable", "runs before", "new with the last cell"):
        assert row in rows
    assert "changed by the last cell" not in rows
    panel.root.locator(".gl-lenses").select_option("cells")
    assert {"In [2]", "In [3]"} <= set(legend(panel))
    panel.root.locator(".gl-lenses").select_option("devices")
    assert "No node asks for a device" in legend(panel)
    notebook.screenshot("legend")


COPIES = """
import graphcore as gc
graph = gc.get_default_graph()
with gc.device("/gpu:0"):
    x = gc.placeholder(gc.float32, [10, 50], name="x")
    with gc.device("/gpu:1"):
        y = gc.tanh(x, name="y")
        v = gc.Variable([1.0], name="v")
v.assign_add([1.0], name="more")
gc.Placer(graph, gc.simulated_devices("1 cpu, 2 gpu")).run()
"""


@pytest.mark.slow
def test_the_devices_lens_names_devices_and_copied_bytes(lab: Lab) -> None:
    notebook = lab.open_cells([START, COPIES])
    notebook.run_all()
    panel = GraphPanel(notebook.page)
    panel.box("y").wait_for()
    panel.root.locator(".gl-lenses").select_option("devices")
    tag = panel.root.locator(".gl-edge .gl-mark text")
    tag.wait_for()
    assert tag.text_content() == "2.0 kB"
    rows = legend(panel)
    assert [row for row in rows if "GPU:1 (simulated)" in row]
    assert {"bytes copied to another device", "together: must be on one device"} <= set(rows)
    hull = panel.root.locator(".gl-hull")
    assert (hull.locator("title").text_content() or "").startswith("together: v (3 nodes), more\nreference edge v:0 -> ")
    for box in ("v", "more"):
        inner, outer = panel.box(box).locator(".gl-shape").bounding_box(), hull.bounding_box()
        assert inner is not None
        assert outer is not None
        assert outer["x"] < inner["x"]
        assert inner["x"] + inner["width"] < outer["x"] + outer["width"]
    text = panel.inspect("y", "Why this device")
    assert "not on /job:worker/replica:0/task:0/device:GPU:0 (simulated): 'y' requests /device:GPU:1" in text
    assert "copies x:0 from" in text
    panel.inspect("v", "On one device")
    panel.box("v").press("ArrowDown")
    inspector = panel.root.locator(".gl-inspector")
    expect(inspector.locator("h2")).to_have_text("AssignAdd")
    expect(inspector).to_contain_text("together: v (3 nodes), more")
    notebook.screenshot("devices")
    notebook.dark_theme()
    notebook.screenshot("devices-dark")
    notebook.dark_theme(False)


def test_lenses_of_ones_own_and_copied_bytes_stay_in_a_page_when_a_scope_is_opened(browser: Browser, tmp_path: Path) -> None:
    @widgets.lens(title="Fan-in")
    def fan_in(node: gc.Node) -> str | None:
        return f"{len(node.inputs)} inputs" if node.inputs else None

    with gc.Graph().as_default() as graph:
        exec(COPIES, {})
        with gc.name_scope("part"):
            gc.placeholder(gc.float32, [], name="a")
            gc.exp(gc.placeholder(gc.float32, [], name="b"), name="z")
    state = widgets.SceneState()
    state.collapse("*")
    page = browser.new_page()
    try:
        page.goto(widgets.save(graph, tmp_path / "graph.html", state).as_uri())
    finally:
        widgets.remove_lens("fan_in")
    panel = GraphPanel(page)
    panel.open("part/")
    panel.root.locator(".gl-lenses").select_option("fan_in")
    assert panel.box("part/z").get_attribute("data-lens-text") == "1 inputs"
    panel.root.locator(".gl-lenses").select_option("devices")
    assert panel.root.locator(".gl-edge .gl-mark text").all_text_contents() == ["2.0 kB"]
    page.close()


@pytest.mark.slow
def test_the_legend_stands_beside_the_map_of_a_large_picture(browser: Browser, tmp_path: Path) -> None:
    graph = gc.load(DATA / "mlp_train_v1.pb", allow_unknown_ops=True)
    page = browser.new_page(viewport={"width": 640, "height": 600})
    page.goto(widgets.save(graph, tmp_path / "graph.html").as_uri())
    panel = GraphPanel(page)
    before = panel.wait_drawn().revision
    panel.press("Expand all")
    panel.wait_drawn(before)
    panel.root.locator(".gl-lenses").select_option("shapes")
    legend(panel)
    shown, overview = (panel.root.locator(name).bounding_box() for name in (".gl-legend", ".gl-minimap"))
    page.close()
    assert shown is not None
    assert overview is not None
    assert shown["x"] + shown["width"] <= overview["x"]


def test_a_legend_that_was_taller_for_a_moment_leaves_the_picture_whole(browser: Browser, tmp_path: Path) -> None:
    with gc.Graph().as_default() as graph:
        gc.tanh(gc.placeholder(gc.float32, [None, 4], name="x"), name="y")
    page = browser.new_page(viewport={"width": 640, "height": 600})
    page.goto(widgets.save(graph, tmp_path / "graph.html").as_uri())
    panel = GraphPanel(page)
    panel.wait_drawn()
    style = page.add_style_tag(
        content=".gl-legend { height: 2000px !important; max-height: none !important }"
    )  # as while a theme is loading
    panel.root.locator(".gl-lenses").select_option("shapes")
    style.evaluate("style => style.remove()")
    page.set_viewport_size({"width": 640, "height": 590})
    page.wait_for_timeout(300)
    canvas, box = (each.bounding_box() for each in (panel.root.locator(".gl-canvas"), panel.box("x")))
    page.close()
    assert canvas is not None
    assert box is not None
    assert canvas["y"] < box["y"]


@pytest.mark.slow
def test_the_text_of_a_lens_is_whole_where_there_is_space_beside_its_box(lab: Lab) -> None:
    notebook = lab.open_cells([START, 'W = gc.Variable([[1.0] * 10] * 64, name="W")\nstep = W.assign_sub(W * 0.5)'])
    notebook.run_all()
    panel = GraphPanel(notebook.page)
    panel.box("AssignSub").wait_for()
    panel.root.locator(".gl-lenses").select_option("shapes")
    assert panel.box("AssignSub").locator(".gl-mark text").text_content() == "float_ref [64,10]"
    notebook.screenshot("tag")
