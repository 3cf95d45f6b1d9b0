"""Static pictures and standalone pages in a real browser: text stays inside its box in any font."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any, get_args

import pytest
from playwright.sync_api import Browser

from widgets.render import to_page, to_svg
from widgets.scene import Scene, SceneEdge, SceneNode
from widgets.scene.types import Dim, NodeKind

NOTE = "12 from In [12], line 34, which is long"

# The corners at the height of the letters: a text's box is higher than its letters.
STANDS_OUT = """([box, text]) => [...document.querySelectorAll(box)].flatMap(shape => {
  const group = shape.parentElement;
  return [...group.querySelectorAll(text)].filter(line => {
    const { x, y, width, height } = line.getBBox();
    const corners = [x, x + width].flatMap(at => [0.25, 0.8].map(part => new DOMPoint(at, y + part * height)));
    return width === 0 || corners.some(corner => !shape.isPointInFill(corner));
  }).map(line => `${group.getAttribute('class')}: ${line.textContent}`);
})"""

LABELS_STAND_OUT = """([paper, text]) => [...document.querySelectorAll(paper)].filter(back => {
  const [own, words] = [back.getBBox(), back.parentElement.querySelector(text).getBBox()];
  return words.x < own.x - 0.5 || words.x + words.width > own.x + own.width + 0.5;
}).map(back => back.parentElement.querySelector(text).textContent)"""


def wordy_scene() -> Scene:
    """A box of each kind with many wide letters, and edges with labels between them."""
    nodes = [
        SceneNode(
            id=f"{kind}{at}",
            label=f"WWW_{kind}_MMM",
            kind=kind,
            op="" if kind == "scope" else f"{op}{kind}",
            detail="float [?,1000]",
            clash=note,
        )
        for kind in get_args(NodeKind)
        for at, (op, note) in enumerate([("Op", ""), ("RandomStandardNormalOf", NOTE)])
    ]
    labels = ["float [?,10]", "float_ref [1000,1000]", "resource []", "float [broadcast(batch,channels),10]"]
    dims = [Dim(text="broadcast(batch,channels)", key="a"), Dim(text="10", key="b")]
    edges = [
        SceneEdge(
            id=f"e{at}",
            source=a.id,
            target=b.id,
            label=labels[at % 4],
            dims=dims if at % 4 == 3 else [],
            error="does not fit" if at % 3 == 0 else "",
        )
        for at, (a, b) in enumerate(pairwise(nodes))
    ]
    return Scene(title="words", nodes=nodes, edges=edges)


@pytest.fixture
def stands_out(browser: Browser, tmp_path: Path) -> Any:
    def find(text: str, suffix: str, script: str, names: list[str]) -> list[str]:
        file = tmp_path / f"picture.{suffix}"
        file.write_text(text, encoding="utf-8")
        page = browser.new_page()
        try:
            page.goto(file.as_uri())
            page.locator(names[0]).first.wait_for(state="attached")
            found: list[str] = page.evaluate(script, names)
        finally:
            page.close()
        return found

    return find


def test_every_text_of_the_still_picture_lies_inside_its_box(stands_out: Any) -> None:
    svg = to_svg(wordy_scene())
    assert svg.count("✕ 12 from") >= len(get_args(NodeKind)) - 1
    assert stands_out(svg, "svg", STANDS_OUT, [".box", "text:not(.sign)"]) == []
    assert stands_out(svg, "svg", LABELS_STAND_OUT, [".paper", ".label"]) == []


def test_every_text_of_the_live_picture_lies_inside_its_box(stands_out: Any) -> None:
    page = to_page(wordy_scene())
    assert stands_out(page, "html", STANDS_OUT, [".gl-shape", ":scope > text"]) == []
    assert stands_out(page, "html", LABELS_STAND_OUT, [".gl-label-back", ".gl-edge-label"]) == []
