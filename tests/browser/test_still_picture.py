"""Static pictures and standalone pages in a real browser: text stays inside its box in any font."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, get_args

import pytest
from nbconvert import HTMLExporter
from nbformat import v4
from playwright.sync_api import Browser, Page

import graphcore as gc
from widgets import GraphView
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

PIXEL = """async ([png, x, y]) => {
  const image = await createImageBitmap(await (await fetch(`data:image/png;base64,${png}`)).blob());
  const canvas = new OffscreenCanvas(image.width, image.height).getContext('2d');
  canvas.drawImage(image, 0, 0);
  return Math.max(...canvas.getImageData(x, y, 1, 1).data.slice(0, 3));
}"""
DATA = Path(__file__).parents[1] / "data"


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


@pytest.mark.slow
def test_every_text_of_the_live_picture_lies_inside_its_box(stands_out: Any) -> None:
    page = to_page(wordy_scene())
    assert stands_out(page, "html", STANDS_OUT, [".gl-shape", ":scope > text"]) == []
    assert stands_out(page, "html", LABELS_STAND_OUT, [".gl-label-back", ".gl-edge-label"]) == []


@pytest.fixture
def page(system: str, browser: Browser) -> Iterator[Page]:
    page = browser.new_page(viewport={"width": 1366, "height": 768}, color_scheme="dark" if system == "dark" else "light")
    yield page
    page.close()


def exported(html: str, theme: str) -> str:
    """A notebook with this output, as `nbconvert` exports it."""
    output = v4.new_output("display_data", {"text/html": html})
    notebook = v4.new_notebook(cells=[v4.new_code_cell("view", outputs=[output])])
    exporter = HTMLExporter(theme=theme)  # type: ignore[no-untyped-call]  # nbconvert has no types
    text: str = exporter.from_notebook_node(notebook)[0]
    return text


@pytest.mark.slow
@pytest.mark.parametrize("system", ["light", "dark"])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_an_exported_notebook_shows_the_still_picture_in_the_colors_of_its_theme(theme: str, page: Page) -> None:
    with gc.Graph().as_default() as graph:
        gc.placeholder(gc.float32, [2], name="x")
    page.set_content(exported(GraphView(graph).static_html(), theme))
    image = page.locator(".graphloupe-still img")
    box = image.bounding_box()
    assert box is not None
    shot = base64.b64encode(image.screenshot()).decode("ascii")
    inside = [box["width"] / 2, 22]  # below the upper side of the only box, above its text
    assert (page.evaluate(PIXEL, [shot, *inside]) < 128) == (theme == "dark")


@pytest.mark.slow
@pytest.mark.parametrize("system", ["light"])
@pytest.mark.parametrize("name", sorted(path.stem for path in DATA.glob("*.pb")))
def test_an_exported_model_has_its_natural_size_and_a_click_shows_all_of_it(name: str, page: Page) -> None:
    view = GraphView(gc.load(DATA / f"{name}.pb", allow_unknown_ops=True))
    page.set_content(exported(view.static_html(), "light"))
    sizes = page.locator(".graphloupe-still img").evaluate_all("images => images.map(({ naturalWidth, width }) => [naturalWidth, width])")
    assert sizes[0][0] <= 900
    assert all(natural == width for natural, width in sizes)
    whole = page.get_by_text(f"The whole picture: {len(view.scene.nodes)} boxes")
    assert whole.count() == len(sizes) - 1
    if whole.count():
        whole.click()
        assert page.locator(".graphloupe-still img").last.is_visible()
