"""Pages at 200 % zoom, read from right to left, and in the few colours of high contrast."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

import graphcore as gc
import widgets

INSIDE = """() => {
  const root = document.querySelector('.graphloupe').getBoundingClientRect();
  const parts = [...document.querySelectorAll('.gl-toolbar button, .gl-toolbar select, .gl-status, .gl-inspector h2')];
  return parts.filter(part => part.getClientRects().length > 0).filter(part => {
    const box = part.getBoundingClientRect();
    return box.left < root.left - 1 || box.right > root.right + 1 || box.width === 0;
  }).map(part => part.title || part.textContent);
}"""
WITHIN = """() => {
  const canvas = document.querySelector('.gl-canvas').getBoundingClientRect();
  return [...document.querySelectorAll('[data-node-id]')].every(node => {
    const box = node.getBoundingClientRect();
    return box.left >= canvas.left - 1 && box.right <= canvas.right + 1;
  });
}"""
OUTLINES = """() => [...document.querySelectorAll('.gl-node .gl-shape, .gl-edge .gl-line')].map(part => {
  const style = getComputedStyle(part);
  return [style.stroke, Number.parseFloat(style.strokeWidth) > 0];
})"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    with gc.Graph().as_default() as graph:
        x = gc.placeholder(gc.float32, [None, 4], name="x")
        with gc.name_scope("layer"):
            y = gc.tanh(x @ gc.ones([4, 3], name="W"), name="y")
        gc.gradients(y, [x])
    return widgets.save(graph, tmp_path / "page.html")


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    # The size that a window of 1280 by 800 has for a page at 200 %.
    opened = browser.new_page(viewport={"width": 640, "height": 400}, device_scale_factor=2, color_scheme="light", reduced_motion="reduce")
    yield opened
    opened.close()


def test_at_200_percent_all_controls_are_there_and_nothing_scrolls_sideways(page: Page, file: Path, tmp_path: Path) -> None:
    page.goto(file.as_uri())
    page.locator('[data-node-id="x"]').wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= 640
    assert page.evaluate(INSIDE) == []
    page.locator('[data-node-id="x"]').click()
    expect(page.get_by_label("Inspector", exact=True)).to_contain_text("float [?,4]")
    assert page.evaluate(INSIDE) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 640
    page.screenshot(path=str(tmp_path / "zoom.png"))


def test_in_a_page_from_right_to_left_pictures_stay_in_place_and_answer(page: Page, file: Path, tmp_path: Path) -> None:
    page.set_viewport_size({"width": 1100, "height": 700})
    page.goto(file.as_uri())
    page.locator('[data-node-id="x"]').wait_for()
    page.evaluate("() => { document.documentElement.dir = 'rtl'; }")
    page.get_by_role("button", name="Fit the whole graph").click()
    assert page.evaluate(WITHIN)
    page.locator('[data-node-id="x"]').click()
    expect(page.get_by_label("Inspector", exact=True)).to_contain_text("float [?,4]")
    assert page.evaluate(INSIDE) == []
    page.screenshot(path=str(tmp_path / "right-to-left.png"))


def test_in_forced_colours_boxes_and_lines_keep_an_outline(page: Page, file: Path, tmp_path: Path) -> None:
    page.set_viewport_size({"width": 1100, "height": 700})
    page.emulate_media(forced_colors="active", color_scheme="dark")
    page.goto(file.as_uri())
    page.locator('[data-node-id="x"]').click()
    canvas = page.evaluate("() => getComputedStyle(document.querySelector('.gl-canvas')).backgroundColor")
    outlines = page.evaluate(OUTLINES)
    assert len(outlines) > 4
    assert [part for part in outlines if part[0] in {"none", canvas} or not part[1]] == []
    page.screenshot(path=str(tmp_path / "forced.png"))
