"""Pictures by Mermaid: titles of nested frames are legible; Graphviz draws the large ones."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

import graphcore as gc
import widgets
from tests.browser.graph_panel import GraphPanel
from tests.browser.traffic import Traffic

DATA = Path(__file__).parents[1] / "data"
COVERED_TITLES = """root => {
  const area = element => element.getBoundingClientRect();
  const titles = [...root.querySelectorAll('.cluster-label')].map(title => [title.textContent, area(title)]);
  const frames = [...root.querySelectorAll('.cluster > rect')].map(frame => ['a frame', area(frame)]);
  const boxes = [...root.querySelectorAll('g.node')].map(box => [box.dataset.name, area(box)]);
  const meet = (a, b) => a.left + 1 < b.right && b.left + 1 < a.right && a.top + 1 < b.bottom && b.top + 1 < a.bottom;
  const holds = (a, b) => a.left < b.left + 1 && b.right < a.right + 1 && a.top < b.top + 1 && b.bottom < a.bottom + 1;
  return titles.flatMap(([text, title], place) => [
    ...[...titles.slice(place + 1), ...boxes].filter(([, other]) => meet(title, other)),
    ...frames.filter(([, frame]) => meet(title, frame) && !holds(frame, title)),
  ].map(([other]) => [text, other]));
}"""


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    traffic = Traffic()
    context = browser.new_context(viewport={"width": 1366, "height": 768})
    traffic.guard(context)
    found = context.new_page()
    traffic.listen(found)
    yield found
    context.close()
    traffic.assert_clean()


def opened(page: Page, model: str, tmp_path: Path) -> GraphPanel:
    graph = gc.load(DATA / f"{model}.pb", allow_unknown_ops=True)
    page.goto(widgets.save(graph, tmp_path / "graph.html").as_uri())
    panel = GraphPanel(page)
    panel.wait_drawn()
    return panel


@pytest.mark.slow
@pytest.mark.parametrize("model", ["functions_v2", "mlp_train_v1"])
def test_the_titles_of_nested_frames_do_not_overlap(model: str, page: Page, tmp_path: Path) -> None:
    panel = opened(page, model, tmp_path)
    before = panel.drawn().revision
    panel.press("Expand all")
    panel.wait_drawn(before)
    panel.choose_renderer("mermaid")
    assert page.locator(".cluster-label").count() > 20
    assert panel.root.evaluate(COVERED_TITLES) == []


@pytest.mark.slow
def test_the_first_picture_of_a_large_model_is_drawn_by_mermaid_and_all_of_it_by_graphviz(page: Page, tmp_path: Path) -> None:
    panel = opened(page, "mobilenetv2", tmp_path)
    panel.choose_renderer("mermaid")
    assert 10 < len(panel.names()) <= 40
    before = panel.drawn().revision
    panel.press("Expand all")
    panel.wait_drawn(before)
    expect(panel.root).to_have_attribute("data-renderer", "graphviz")
    expect(panel.root.locator(".gl-status")).to_contain_text("Mermaid draws up to 150 boxes")
