"""Text is legible when a picture opens: at least 9 pixels high and not covered, on any screen."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from playwright.sync_api import Browser, Page

import graphcore as gc
import widgets
from tests.browser.conftest import VIEWPORT, Lab
from tests.browser.graph_panel import wait_still
from tests.browser.traffic import Traffic

DATA = Path(__file__).parents[1] / "data"
NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))
LAPTOP, DESKTOP = (1366, 768), (1600, 1000)
LEAST = 8.99
"""Pixels: 9, less the rounding of the scale."""
SIZES = """root => [...root.querySelectorAll('.gl-world text')].map(text => [
  parseFloat(getComputedStyle(text).fontSize) * Math.abs(text.getScreenCTM().d), text.textContent,
])"""
OUTSIDE = """root => {
  const window = root.querySelector('.gl-canvas').getBoundingClientRect();
  return [...root.querySelectorAll('.gl-world [data-node-id]')].filter(box => {
    const { left, right, top, bottom } = box.getBoundingClientRect();
    return left < window.left - 1 || right > window.right + 1 || top < window.top - 1 || bottom > window.bottom + 1;
  }).map(box => box.dataset.name);
}"""
OVERLAPS = """root => {
  const area = element => element.getBoundingClientRect();
  const labels = [...root.querySelectorAll('.gl-world .gl-edge-label')].filter(
    label => getComputedStyle(label).visibility !== 'hidden' && area(label).width > 0);
  const boxes = [...root.querySelectorAll('.gl-world [data-node-id]')].map(box => [box.dataset.name, area(box.querySelector('.gl-shape'))]);
  const meet = (a, b) => a.left + 1 < b.right && b.left + 1 < a.right && a.top + 1 < b.bottom && b.top + 1 < a.bottom;
  return labels.flatMap((label, place) => [
    ...boxes.filter(([, box]) => meet(area(label), box)).map(([name]) => [label.textContent, name]),
    ...labels.slice(place + 1).filter(other => meet(area(label), area(other))).map(other => [label.textContent, other.textContent]),
  ]);
}"""
DRAWN = "() => [...document.querySelectorAll('.graphloupe')].every(root => root.dataset.busy !== 'true')"


def wait_drawn(page: Page) -> None:
    """Wait until no view is at work and the pictures have come to rest."""
    page.wait_for_function(DRAWN)
    wait_still(page)


def too_small(page: Page) -> list[Any]:
    """The texts drawn lower than 9 pixels in any view of the page, with their heights."""
    wait_drawn(page)
    return [text for root in page.locator(".graphloupe").all() for text in root.evaluate(SIZES) if text[0] < LEAST]


def overlaps(page: Page) -> list[Any]:
    """The labels of edges that overlap a box or another label in any view, with its name or text."""
    wait_drawn(page)
    return [pair for root in page.locator(".graphloupe").all() for pair in root.evaluate(OVERLAPS)]


@pytest.fixture
def page(size: tuple[int, int], browser: Browser) -> Iterator[Page]:
    width, height = size
    traffic = Traffic()
    context = browser.new_context(viewport={"width": width, "height": height})
    traffic.guard(context)
    found = context.new_page()
    traffic.listen(found)
    yield found
    context.close()
    traffic.assert_clean()


@pytest.mark.slow
@pytest.mark.parametrize("size", [LAPTOP, DESKTOP], ids=["laptop", "desktop"])
@pytest.mark.parametrize("file", sorted(DATA.glob("*.pb")), ids=lambda file: file.stem)
def test_the_first_picture_of_a_model_fits_whole_and_is_legible(file: Path, size: tuple[int, int], page: Page, tmp_path: Path) -> None:
    graph = gc.load(file, allow_unknown_ops=True)
    page.goto(widgets.save(graph, tmp_path / "graph.html").as_uri())
    page.locator(".graphloupe[data-busy='false'] .gl-world text").first.wait_for()
    assert too_small(page) == []
    assert page.locator(".graphloupe").evaluate(OUTSIDE) == []
    assert overlaps(page) == []


def with_skips() -> gc.Graph:
    """A network in one scope: blocks of different lengths, later ones with a skip from an earlier one."""
    gc.reset_default_graph()
    x = gc.zeros([4, 16], name="x")
    skips = []
    with gc.name_scope("network"):
        for level in range(8):
            with gc.name_scope(f"encoder_of_level_{level}"):
                for _ in range(level + 3):
                    x = gc.tanh(gc.sigmoid(x))
            skips.append(x)
        for level in range(7):
            with gc.name_scope(f"decoder_of_level_{level}"):
                x = gc.add(x, skips[6 - level]) if level > 2 else x
                for _ in range(9 - level):
                    x = gc.relu(gc.square(x))
    return gc.get_default_graph()


@pytest.mark.parametrize("size", [LAPTOP])
def test_a_network_in_one_scope_is_shown_without_labels_rather_than_closed(page: Page, tmp_path: Path) -> None:
    page.goto(widgets.save(with_skips(), tmp_path / "graph.html").as_uri())
    page.locator(".graphloupe[data-busy='false'] .gl-world text").first.wait_for()
    assert too_small(page) == []
    assert page.locator(".graphloupe").evaluate(OUTSIDE) == []
    assert page.locator(".gl-world [data-node-id]").count() >= 12


@pytest.fixture
def laptop(lab: Lab) -> Iterator[Lab]:
    """The notebooks' window in the size of a laptop."""
    page = lab.window.page()
    page.set_viewport_size({"width": LAPTOP[0], "height": LAPTOP[1]})
    yield lab
    page.set_viewport_size(VIEWPORT)


@pytest.mark.slow
@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.stem)
def test_the_picture_beside_a_notebook_is_legible_on_a_laptop_after_each_cell(file: Path, laptop: Lab) -> None:
    """Cells that are meant to fail are part of the notebooks."""
    notebook = laptop.open_copy(file)
    small, overlapping = {}, {}
    for index, cell in enumerate(nbformat.read(file, as_version=4).cells):
        if cell["cell_type"] == "code":
            notebook.run_cell(index)
            small[index] = too_small(notebook.page)
            overlapping[index] = overlaps(notebook.page)
    notebook.screenshot("end")
    assert notebook.page.locator(".gl-world text").count()
    assert {index: texts for index, texts in small.items() if texts} == {}
    assert {index: pairs for index, pairs in overlapping.items() if pairs} == {}
