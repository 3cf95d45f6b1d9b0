"""The standalone page in a real browser: it works offline and alone, and names are inert."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Dialog, Page, expect

import graphcore as gc
import widgets
from tests.browser.traffic import Traffic
from tests.widgets.test_render_text import HOSTILE
from widgets.render import to_page
from widgets.scene import Scene, SceneEdge, SceneGroup, SceneNode, SceneState

NAMES = (
    "<img src=http://example.com/x onerror=alert(1)>",
    "</script><script>alert(1)</script>",
    "%%{init: {'securityLevel': 'loose'}}%%",
    'a" --> b; click n0 "javascript:alert(1)"',
    "<a href='javascript:alert(1)'>x</a>\n\\\"#60;",
    "end",
)


@dataclass
class Opened:
    """A page opened from a file, with its requests and console messages."""

    page: Page
    dialogs: list[str] = field(default_factory=list)
    fetched: list[str] = field(default_factory=list)

    def refuse(self, dialog: Dialog) -> None:
        """Record a dialog (there must be none) and close it."""
        self.dialogs.append(dialog.message)
        dialog.dismiss()

    def wait_drawn(self, renderer: str) -> None:
        """Wait until this renderer has drawn."""
        self.page.wait_for_function(
            "name => { const root = document.querySelector('.graphloupe');"
            " return root && root.dataset.renderer === name && root.dataset.busy === 'false'; }",
            arg=renderer,
        )

    def show(self, file: Path) -> None:
        """Open a file and wait for its picture."""
        self.page.goto(file.as_uri())
        self.wait_drawn("graphviz")

    def boxes(self) -> int:
        """The number of boxes drawn."""
        return self.page.locator("[data-node-id]").count()


@pytest.fixture
def opened(browser: Browser) -> Iterator[Opened]:
    traffic = Traffic()
    context = browser.new_context(viewport={"width": 1200, "height": 800})
    traffic.guard(context)
    found = Opened(context.new_page())
    traffic.listen(found.page)
    found.page.on("dialog", found.refuse)
    found.page.on("request", lambda request: found.fetched.append(request.url))
    yield found
    context.close()
    traffic.assert_clean()
    assert found.dialogs == []
    assert {url.partition(":")[0] for url in found.fetched} <= {"file", "blob"}


def test_a_saved_page_shows_inspects_and_switches_the_renderer_without_a_kernel(opened: Opened, tmp_path: Path) -> None:
    gc.reset_default_graph()
    x = gc.placeholder(gc.float32, [None, 3], name="x")
    w = gc.Variable(gc.zeros([3, 2]), name="W")
    gc.gradients(gc.tanh(x @ w), [w])
    opened.show(widgets.save(gc.get_default_graph(), tmp_path / "graph.html"))
    gc.reset_default_graph()
    boxes = opened.boxes()
    assert boxes >= 6
    opened.page.locator('[data-node-id="gradients/Tanh_grad/"]').click(force=True)
    opened.page.locator(".gl-inspector").get_by_text("Registered gradient function", exact=True).wait_for()
    opened.page.locator('[data-renderer-choice="mermaid"]').click()
    opened.wait_drawn("mermaid")
    assert opened.boxes() == boxes


def test_the_search_of_a_saved_page_finds_what_a_closed_box_holds(opened: Opened, tmp_path: Path) -> None:
    with gc.Graph().as_default() as graph, gc.name_scope("model"):
        gc.tanh(gc.placeholder(gc.float32, [2], name="x"), name="needle")
    state = SceneState()
    state.collapse("*")
    opened.show(widgets.save(graph, tmp_path / "out.html", state, title="mlp.pb"))
    assert opened.page.title() == "mlp.pb"
    opened.page.locator(".gl-status-text").get_by_text("mlp.pb").wait_for()
    assert opened.page.locator('[data-node-id="model/needle"]').count() == 0
    opened.page.locator(".gl-search-field").fill("needle")
    hit = opened.page.locator('.gl-hits [data-name="model/needle"]')
    hit.get_by_text("Tanh").wait_for()
    opened.page.keyboard.press("Enter")
    opened.page.locator('[data-node-id="model/needle"]').wait_for()
    opened.page.locator(".gl-inspector").get_by_text("model/needle").first.wait_for()
    opened.page.locator(".gl-search-field").fill("nowhere")
    opened.page.get_by_text("Nothing is called “nowhere”").wait_for()
    opened.page.screenshot(path=tmp_path / "search.png")


def test_the_search_of_a_saved_page_takes_terms_and_shows_as_many_hits_as_are_asked_for(opened: Opened, tmp_path: Path) -> None:
    with gc.Graph().as_default() as graph, gc.name_scope("model"):
        x = gc.placeholder(gc.float32, [2, 7], name="x")
        for _ in range(70):
            gc.tanh(x, name="needle")
        gc.matmul(x, x, transpose_a=True, name="product")
    state = SceneState()
    state.collapse("*")
    opened.show(widgets.save(graph, tmp_path / "out.html", state))
    field = opened.page.locator(".gl-search-field")
    field.fill("needle op:tanh shape:7")
    opened.page.get_by_text("50 of 70 hits").wait_for()
    opened.page.locator(".gl-hit-note button", has_text="Show more").click()
    opened.page.locator(".gl-hits [role=option]").nth(69).wait_for()
    field.fill("transpose_a=true dtype:float")
    opened.page.locator('.gl-hits [data-name="model/product"]').wait_for()
    assert opened.page.locator(".gl-hits [role=option]").count() == 1


def test_every_scope_of_a_saved_page_opens_by_its_handle_a_double_click_and_keys(opened: Opened, tmp_path: Path) -> None:
    with gc.Graph().as_default() as graph:
        x = gc.placeholder(gc.float32, [2], name="x")
        for scope in ("alpha", "beta", "gamma"):
            with gc.name_scope(scope), gc.name_scope("inner"):
                for _ in range(12):
                    x = gc.exp(gc.tanh(x))
    state = SceneState()
    state.collapse("*")
    opened.show(widgets.save(graph, tmp_path / "graph.html", state))
    page = opened.page
    page.locator('[data-node-id="alpha/"] [data-action="expand"]').click()
    page.locator('[data-node-id="alpha/inner/"]').wait_for()
    opened.wait_drawn("graphviz")
    page.locator('[data-group-id="alpha/"] [data-action="collapse"]').click()
    page.locator('[data-node-id="alpha/"]').wait_for()
    page.locator('[data-node-id="alpha/"]').dblclick()
    page.locator('[data-node-id="alpha/inner/"]').dblclick()
    page.locator('[data-node-id="alpha/inner/Tanh"]').wait_for()
    page.get_by_role("button", name="Collapse all").click()
    page.locator('[data-node-id="alpha/"]').wait_for()
    opened.wait_drawn("graphviz")
    page.get_by_role("button", name="Fit").click()
    expect(page.locator('[data-node-id="beta/"]')).to_be_in_viewport(ratio=1)
    page.locator('[data-node-id="beta/"]').click()
    page.locator(".gl-inspector").get_by_text("beta").first.wait_for()
    page.keyboard.press("Enter")
    page.locator('[data-node-id="beta/inner/"]').wait_for()
    page.get_by_role("button", name="Expand all").click()
    page.locator('[data-node-id="gamma/inner/Exp_11"]').wait_for()
    opened.page.screenshot(path=tmp_path / "opened.png")


def test_bodies_of_functions_and_loops_open_in_a_saved_page(opened: Opened, tmp_path: Path) -> None:
    @gc.function
    def layer(x: gc.Tensor) -> gc.Tensor:
        return gc.tanh(x) * 2.0

    with gc.Graph().as_default() as graph:
        x = gc.placeholder(gc.float32, [None, 3], name="x")
        y = layer(x)
        gc.while_loop(lambda i, _: i < 3, lambda i, s: (i + 1, gc.exp(s)), [gc.constant(0), y], name="loop")
    calls = [node.name for node in graph.nodes if node.op in {"layer", "While", "StatelessWhile", "PartitionedCall"} or "layer" in node.op]
    opened.show(widgets.save(graph, tmp_path / "graph.html"))
    page = opened.page
    for call in calls:
        page.locator(f'[data-node-id="{call}"] [data-action="expand"]').click()
        page.locator(f'[data-group-id="{call}/"]').wait_for()
    texts = page.locator(".gl-world text").all_text_contents()
    assert {"Tanh", "Exp"} <= set(texts)
    page.locator("[data-node-id]", has_text="Exp").first.click()
    page.locator(".gl-inspector").get_by_text("float [?,3]").first.wait_for()
    page.screenshot(path=tmp_path / "bodies.png")


def test_a_hidden_node_of_a_saved_model_is_found_and_exports_follow_what_is_open(opened: Opened, tmp_path: Path) -> None:
    graph = gc.load(Path(__file__).parents[1] / "data" / "mobilenetv2.pb", allow_unknown_ops=True)
    opened.show(widgets.save(graph, tmp_path / "graph.html", title="mobilenetv2.pb"))
    page = opened.page
    name = "mobilenetv2_0.35_96_1/bn_Conv1_1/batchnorm/mul"
    page.locator(".gl-search-field").fill("bn_Conv1_1/batchnorm/mul")
    page.locator(f'.gl-hits [data-name="{name}"]').click()
    page.locator(f'[data-node-id="{name}"]').wait_for()
    opened.wait_drawn("graphviz")
    with page.expect_download() as download:
        page.get_by_role("button", name="Export the picture").click()
        page.locator('[data-export="dot"]').click()
    dot = Path(download.value.path()).read_text("utf-8")
    assert "bn_Conv1_1/batchnorm/mul" in dot
    page.locator('[data-renderer-choice="mermaid"]').click()
    opened.wait_drawn("mermaid")
    assert page.locator(f'[data-node-id="{name}"]').count() == 1


@pytest.mark.slow
def test_a_page_of_100_000_nodes_opens_finds_and_shows_any_of_them(opened: Opened, tmp_path: Path) -> None:
    with gc.Graph().as_default() as graph:
        x = gc.placeholder(gc.float32, [None, 64], name="x")
        w = gc.placeholder(gc.float32, [64, 64], name="w")
        for block in range(157):
            with gc.name_scope(f"block{block}"):
                for layer in range(20):
                    with gc.name_scope(f"layer{layer}"):
                        for _ in range(8):
                            x = gc.tanh(gc.matmul(x, w)) * 0.5
    assert len(graph) > 100_000
    file = widgets.save(graph, tmp_path / "large.html")
    assert file.stat().st_size < 5_000_000
    opened.show(file)
    page = opened.page
    middle = "block78/layer7/Tanh_3"
    page.locator(".gl-search-field").fill(middle)
    page.locator(f'.gl-hits [data-name="{middle}"]').click()
    page.locator(f'[data-node-id="{middle}"]').wait_for()
    page.locator(".gl-inspector").get_by_text("float [?,64]").first.wait_for()
    page.screenshot(path=tmp_path / "large.png")


def test_png_and_pdf_are_made_in_the_page_and_named_after_the_model_with_hostile_names_as_text(opened: Opened, tmp_path: Path) -> None:
    nodes = [SceneNode(id=name, label=name, kind="op", op=name, detail=name) for name in HOSTILE]
    file = tmp_path / "page.html"
    file.write_text(to_page(Scene(title="resnet50.pb", nodes=nodes, edges=[])), "utf-8")
    page = opened.page
    # Without a printer the frame that would be printed stays.
    page.add_init_script("window.print = () => {}")
    opened.show(file)

    def choose(kind: str) -> None:
        page.get_by_role("button", name="Export the picture").click()
        page.locator(f'[data-export="{kind}"]').click()

    with page.expect_download() as download:
        choose("png")
    assert download.value.suggested_filename == "resnet50.png"
    png = Path(download.value.path()).read_bytes()
    assert png.startswith(b"\x89PNG")
    width, height = struct.unpack(">II", png[16:24])
    natural = page.evaluate("() => { const box = document.querySelector('.gl-world').getBBox(); return [box.width, box.height]; }")
    assert width > 1.9 * natural[0]
    assert height > 1.9 * natural[1]
    choose("pdf")
    frame = page.frame_locator(".gl-print")
    frame.locator("svg text").first.wait_for(state="attached")
    assert frame.locator("script, image, foreignObject, iframe, img, a").count() == 0
    assert "alert(1)" in "".join(frame.locator("svg text").all_text_contents())
    page.locator(".gl-status-text").get_by_text("Save as PDF").wait_for()


def test_hostile_names_are_only_names_in_both_renderers(opened: Opened, tmp_path: Path) -> None:
    nodes = [SceneNode(id=name, label=name, kind="op", op=name, detail=name, error=name, state="error", group="g" + name) for name in NAMES]
    edges = [SceneEdge(id=f"e{i}", source=a, target=b, label=a, error=b) for i, (a, b) in enumerate(pairwise(NAMES))]
    groups = [SceneGroup(id="g" + name, label=name) for name in NAMES]
    file = tmp_path / "hostile.html"
    file.write_text(to_page(Scene(title=NAMES[1], nodes=nodes, edges=edges, groups=groups, summary=NAMES[0]), with_mermaid=True), "utf-8")
    opened.show(file)
    assert opened.boxes() == len(NAMES)
    opened.page.locator('[data-renderer-choice="mermaid"]').click()
    opened.wait_drawn("mermaid")
    assert opened.boxes() == len(NAMES)
    assert opened.page.locator("#graphloupe img, #graphloupe a, #graphloupe script").count() == 0
