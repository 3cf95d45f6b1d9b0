"""Navigation at the size of a laptop: the rubber band, the minimap, overlays."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest
from playwright.sync_api import FloatRect, Locator

from tests.browser.conftest import VIEWPORT, Lab
from tests.browser.graph_panel import GraphPanel
from tests.browser.notebook_page import NotebookPage

START = "%load_ext kernelext\nimport graphcore as gc\n%graph"
BUILD = """x = gc.placeholder(gc.float32, [None, 8], name="x")
h = x
for layer in range(3):
    with gc.name_scope(f"layer{layer}"):
        w = gc.constant([[0.1] * 8] * 8, name="weight")
        h = gc.tanh(h @ w, name="out")
loss = gc.reduce_sum(h, name="loss")"""


def box_of(place: Locator) -> FloatRect:
    found = place.bounding_box()
    assert found is not None
    return found


def surround_boxes(notebook: NotebookPage) -> None:
    """Select boxes by a drag with Shift around them."""
    panel, mouse = GraphPanel(notebook.page), notebook.page.mouse
    panel.wait_drawn()
    first, last = box_of(panel.box("x")), box_of(panel.box("loss"))
    left = min(first["x"], last["x"]) - 60
    notebook.page.keyboard.down("Shift")
    mouse.move(left, first["y"] - 6)
    mouse.down()
    mouse.move(left + 30, first["y"] + 30)
    mouse.move(max(first["x"] + first["width"], last["x"] + last["width"]) + 60, last["y"] + last["height"] + 6)
    assert box_of(panel.root.locator(".gl-band"))["height"] > last["y"] - first["y"]
    notebook.screenshot("band")
    mouse.up()
    notebook.page.keyboard.up("Shift")
    panel.inspector("boxes")
    assert "loss" in panel.inspector()
    assert panel.root.locator(".gl-band").count() == 0
    notebook.screenshot("selection")


def use_minimap(notebook: NotebookPage) -> None:
    """Zoom in until the minimap shows, and click on it."""
    panel, mouse = GraphPanel(notebook.page), notebook.page.mouse
    minimap = panel.root.locator(".gl-minimap")
    assert not minimap.is_visible()
    for _ in range(6):
        panel.press("Zoom in (+)")
    minimap.wait_for(state="visible")
    frame, before = panel.root.locator(".gl-minimap-frame"), panel.camera()
    notebook.screenshot("minimap")
    there = box_of(minimap)
    mouse.click(there["x"] + there["width"] / 2, there["y"] + there["height"] - 4)
    notebook.wait_until(lambda: bool(panel.camera() != before))
    assert box_of(frame)["y"] + box_of(frame)["height"] > there["y"] + there["height"] - 8
    assert box_of(panel.box("loss"))["y"] < 768


def trace_a_box(notebook: NotebookPage) -> None:
    """Find a box, show its upstream and its breadcrumbs, and open the list of keys."""
    panel = GraphPanel(notebook.page)
    panel.find("layer2/out")
    notebook.page.keyboard.press("Enter")
    panel.inspector("Made by")
    panel.press("Upstream")
    panel.root.get_by_role("navigation").get_by_text("layer2").wait_for()
    notebook.screenshot("traced")
    panel.root.locator(".gl-canvas").press("?")
    dialog = panel.root.get_by_role("dialog")
    dialog.wait_for()
    shown = box_of(dialog)
    assert shown["x"] >= 0
    assert shown["x"] + shown["width"] <= 1366
    assert shown["y"] + shown["height"] <= 768


@pytest.fixture
def notebook(lab: Lab) -> Iterator[NotebookPage]:
    opened = lab.open_cells([START, BUILD])
    opened.page.set_viewport_size({"width": 1366, "height": 768})
    opened.run_all()
    GraphPanel(opened.page).box("loss").wait_for()
    yield opened
    opened.dark_theme(False)
    opened.page.set_viewport_size(VIEWPORT)


def has_focus(notebook: NotebookPage, selector: str) -> bool:
    return bool(notebook.page.evaluate("selector => document.activeElement?.matches(selector) ?? false", selector))


def test_keys_lead_from_the_cells_to_the_picture_and_back(notebook: NotebookPage) -> None:
    notebook.cell(1)
    notebook.page.keyboard.press("Escape")
    for place in (".gl-canvas", ".jp-Cell", ".gl-canvas"):
        notebook.page.keyboard.press("Control+Shift+Period")
        notebook.wait_until(partial(has_focus, notebook, place))
    notebook.page.keyboard.press("Home")
    notebook.wait_until(partial(has_focus, notebook, '[data-name="x"]'))


def test_a_drag_with_shift_selects_boxes_and_the_minimap_moves_the_window(notebook: NotebookPage) -> None:
    surround_boxes(notebook)
    use_minimap(notebook)


@pytest.mark.slow
@pytest.mark.parametrize("dark", [False, True])
def test_a_selected_box_its_trace_and_the_list_of_keys_fit_on_a_laptop(notebook: NotebookPage, dark: bool) -> None:
    notebook.dark_theme(dark)
    trace_a_box(notebook)
    notebook.screenshot("keys-dark" if dark else "keys-light")
