"""SVG, HTML and layout: complete, readable, and inert for all names."""

from __future__ import annotations

import base64
import gzip
import hashlib
import re
import sys
import threading
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from pathlib import Path

import msgspec
import pytest

import graphcore as gc
import widgets
from graphcore.errors import FailedPreconditionError
from tests.support.pages import carried_by, data_of
from tests.support.pictures import SVG, Places, places_of
from tests.widgets.test_render_text import HOSTILE, hostile_scene
from widgets.render import to_outline, to_page, to_static_html, to_svg
from widgets.render.compiled import build_scene
from widgets.render.engine import STATIC, Engine, EngineError, EngineTimeoutError, engine
from widgets.render.stills import Size
from widgets.scene import Scene, SceneEdge, SceneNode, SceneState

DATA = Path(__file__).resolve().parents[1] / "data"
TINY = msgspec.json.encode(Scene(title="", nodes=[SceneNode(id="a", label="a", kind="op")], edges=[])).decode()
DRAWING = {"svg", "title", "desc", "style", "g", "rect", "path", "text", "circle", "tspan"}


class Tags(HTMLParser):
    """The elements of a page with their attributes, and the text by kind of element."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, str] = {}
        self._open = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._open = tag

    def handle_data(self, data: str) -> None:
        self.texts[self._open] = self.texts.get(self._open, "") + data


# ---- layout ---------------------------------------------------------------------------------------------------------


def test_graphviz_places_every_box_frame_and_line(softmax_regression: gc.Graph) -> None:
    scene = build_scene(softmax_regression)
    places = places_of(scene)
    assert places.boxes.keys() == {node.id for node in scene.nodes}
    assert places.frames.keys() == {group.id for group in scene.groups}
    assert sorted((line.source, line.target) for line in places.lines) == sorted((edge.source, edge.target) for edge in scene.edges)
    frame = places.frames["gradients/"]
    for node in scene.nodes:
        rect = places.boxes[node.id]
        inside = frame.x <= rect.x and rect.x + rect.width <= frame.x + frame.width
        assert node.group != "gradients/" or (inside and frame.y <= rect.y)


def test_an_arrow_ends_at_its_target_even_when_laid_out_reversed(softmax_regression: gc.Graph) -> None:
    places = places_of(build_scene(softmax_regression))
    for line in places.lines:
        (x, y), rect = line.tip, places.boxes[line.target]
        assert rect.x - 3 <= x <= rect.x + rect.width + 3
        assert rect.y - 3 <= y <= rect.y + rect.height + 3


def test_a_gradient_box_stands_near_its_forward_box(softmax_regression: gc.Graph) -> None:
    scene = build_scene(softmax_regression)
    places = places_of(scene)
    off = [abs(places.boxes[node.id].y - places.boxes[node.mirrors].y) for node in scene.nodes if node.mirrors]
    assert len(off) >= 7
    assert sum(off) / len(off) < places.size.height / 6


def test_the_label_of_a_line_inside_a_frame_lies_inside_that_frame(graph: gc.Graph) -> None:
    gc.while_loop(lambda i, _: i < 10, lambda i, s: (i + 1, s * 1.5), [gc.constant(0), gc.constant(1.0)], name="grow")
    state = SceneState()
    build_scene(graph, state)
    state.expand("grow")
    scene = build_scene(graph, state)
    assert standing_out(scene, places_of(scene)) == []


@pytest.mark.parametrize("name", ["while_v1", "transformer"])
def test_in_a_graph_of_tensorflow_too_labels_lie_inside_their_frames_and_frames_hold_only_their_own(name: str) -> None:
    graph = gc.load(DATA / f"{name}.pb")
    state = SceneState()
    for box in build_scene(graph, state).nodes:
        if box.repeat:
            state.expand(box.id)
    scene = build_scene(graph, state)
    places = places_of(scene)
    assert standing_out(scene, places) == []
    for key, frame in places.frames.items():
        for node in scene.nodes:
            mine = key in around(scene, node.group)
            assert mine == frame.meets(places.boxes[node.id]), f"{node.id} and the frame {key}"
        for other, rect in places.frames.items():
            related = key in around(scene, other) or other in around(scene, key)
            assert related == frame.meets(rect), f"the frames {key} and {other}"


def around(scene: Scene, group: str) -> list[str]:
    """A frame and the frames around it, innermost first."""
    parents = {group.id: group.parent for group in scene.groups}
    return [group, *around(scene, parents[group])] if group in parents else []


def standing_out(scene: Scene, places: Places) -> list[tuple[str, str]]:
    """Lines with labels outside the innermost common frame of their ends."""
    home = {node.id: around(scene, node.group) for node in scene.nodes}
    found, seen = [], 0
    for source, target, _, label in places.lines:
        frame = next((places.frames[key] for key in home[source] if key in home[target]), None)
        if label is None or frame is None:
            continue
        seen += 1
        sides = frame.x < label.x and label.x + label.width < frame.x + frame.width
        if not sides or not frame.y < label.y + label.height / 2 < frame.y + frame.height:
            found.append((source, target))
    assert seen > 2
    return found


def test_a_picture_that_takes_too_long_is_ended_and_the_next_one_works() -> None:
    own = Engine()
    try:
        own.ask("dot", TINY)
        tangle = [(f"n{i}", f"n{(i * i * 7 + i * 13 + j * 101) % 600}") for i in range(600) for j in range(6)]
        nodes = [SceneNode(id=f"n{i}", label="", kind="op") for i in range(600)]
        edges = [SceneEdge(id=f"{at}", source=source, target=target) for at, (source, target) in enumerate(tangle)]
        asked = msgspec.json.encode([Scene(title="", nodes=nodes, edges=edges)]).decode()
        with pytest.raises(EngineTimeoutError, match="no answer within"):
            own.ask("pictures", asked, '{"page": null, "lens": "", "adapts": false, "fast": false}', limit=0.3)
        assert own.ask("dot", TINY).startswith("digraph")
    finally:
        own.close()


def test_what_the_engine_refuses_is_told() -> None:
    with pytest.raises(EngineError, match="JSON"):
        engine.ask("dot", "digraph{a->")


def test_a_worker_that_dies_is_replaced() -> None:
    own = Engine()
    try:
        own.ask("dot", TINY)
        assert own._process is not None
        own._process.kill()
        own._process.wait()
        assert own.ask("dot", TINY).startswith("digraph")
    finally:
        own.close()


def test_an_engine_that_begins_early_starts_once() -> None:
    early = Engine()
    early.begin()
    assert early.is_running
    assert early.ask("forget", "no graph") == "false"
    assert early.starts == 1
    early.close()


def test_threads_may_share_the_engine(softmax_regression: gc.Graph) -> None:
    scene = build_scene(softmax_regression)
    found: list[str] = []
    threads = [threading.Thread(target=lambda: found.append(to_svg(scene))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [to_svg(scene)] * 4


@pytest.fixture
def no_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine that cannot start, as where there is no V8."""
    engine.close()
    monkeypatch.setattr(sys.modules[Engine.__module__], "SCRIPTS", (STATIC / "no such engine",))


@pytest.mark.usefixtures("no_engine")
def test_without_the_engine_a_picture_is_the_outline_and_the_reason(softmax_regression: gc.Graph) -> None:
    scene = build_scene(softmax_regression)
    texts = [text.text for text in ET.fromstring(to_svg(scene)).iter(f"{SVG}text")]
    assert (texts[0] or "").startswith("drawn as text: the engine is missing: ")
    assert texts[2:] == to_outline(scene).splitlines()
    found = Tags(to_static_html(scene))
    assert "img" not in [tag for tag, _ in found.elements]
    assert found.texts["figcaption"].startswith("No picture: the engine is missing: ")
    assert found.texts["pre"] == to_outline(scene)


@pytest.mark.usefixtures("no_engine")
def test_without_the_engine_dot_and_mermaid_say_why_there_is_none(softmax_regression: gc.Graph) -> None:
    for write in (widgets.to_dot, widgets.to_mermaid):
        with pytest.raises(FailedPreconditionError, match="the engine is missing"):
            write(softmax_regression)


def test_a_huge_scene_is_not_laid_out() -> None:
    nodes = [SceneNode(id=f"n{i}", label=f"n{i}", kind="op", op="Add") for i in range(1600)]
    assert "drawn as text: 1,600 boxes are too many to be laid out" in to_svg(Scene(title="huge", nodes=nodes, edges=[]))


def test_an_empty_scene_is_an_empty_picture() -> None:
    root = ET.fromstring(to_svg(Scene(title="", nodes=[], edges=[])))
    assert root.tag.endswith("svg")
    assert not [element for element in root.iter() if "box" in element.get("class", "").split()]


# ---- SVG ------------------------------------------------------------------------------------------------------------


def test_the_svg_shows_names_types_shapes_and_values(softmax_regression: gc.Graph) -> None:
    root = ET.fromstring(widgets.to_svg(softmax_regression))
    texts = {text.text for text in root.iter(f"{SVG}text")}
    assert {"MatMul", "float [?1,10]", "∇ y_grad", "W", "0.5", "∇ gradients"} <= texts


def test_states_have_signs_and_errors_their_own_look() -> None:
    nodes = [SceneNode(id=state, label=state, kind="op", op="Add", state=state) for state in ("normal", "new", "changed", "error", "stale")]
    edges = [SceneEdge(id="e", source="new", target="error", label="float [3]", error="does not fit")]
    svg = to_svg(Scene(title="t", nodes=nodes, edges=edges))
    root = ET.fromstring(svg)
    signs = [text.text for text in root.iter(f"{SVG}text") if text.get("class") == "sign"]
    assert signs == ["+", "~", "!", "…"]
    assert "✕ float [3]" in svg
    assert 'class="data forward error"' in svg


@pytest.mark.parametrize("text", HOSTILE)
def test_a_hostile_name_stays_text_in_svg(text: str) -> None:
    scene = hostile_scene(text)
    root = ET.fromstring(to_svg(scene))
    for element in root.iter():
        assert element.tag.removeprefix(SVG) in DRAWING
        assert not [name for name in element.attrib if name.startswith("on") or "href" in name]
        assert "url(" not in "".join(element.attrib.values())


def chain(count: int) -> Scene:
    """Boxes in a row, each fed by the one before."""
    nodes = [SceneNode(id=f"n{at}", label=f"n{at}", kind="op", op="Op") for at in range(count)]
    edges = [SceneEdge(id=f"e{at}", source=f"n{at}", target=f"n{at + 1}", label="float [2]") for at in range(count - 1)]
    return Scene(title="chain", nodes=nodes, edges=edges)


def test_a_long_chain_is_folded_into_the_page() -> None:
    page = Size(800, 600)
    long, folded = places_of(chain(40)), places_of(chain(40), page=page)
    assert long.size.height > 2 * page.height
    assert folded.size.width <= page.width / 0.9 + 32
    assert folded.size.height <= page.height / 0.9 + 32
    for line in folded.lines:
        box, (x, y) = folded.boxes[line.target], line.tip
        assert box.x - 8 <= x <= box.x + box.width + 8
        assert box.y - 8 <= y <= box.y + box.height + 8


def test_a_still_picture_keeps_its_natural_size_and_shows_fewer_boxes_where_all_would_be_too_large() -> None:
    html = to_static_html(chain(300), chain(20), chain(5))
    images = [attributes for tag, attributes in Tags(html).elements if tag == "img"]
    summary, whole = [ET.fromstring(base64.b64decode((image["src"] or "").partition(",")[2])) for image in images]
    assert float(summary.attrib["width"]) <= 900
    assert [len(svg.findall(f".//{SVG}g[@class='op forward']")) for svg in (summary, whole)] == [20, 300]
    assert "<details><summary>The whole picture: 300 boxes</summary>" in html
    assert all("max-width:none" in (image["style"] or "") for image in images)


# ---- HTML -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", HOSTILE)
def test_the_static_display_has_an_image_an_outline_and_nothing_else(text: str) -> None:
    html = to_static_html(hostile_scene(text))
    found = Tags(html)
    assert [tag for tag, _ in found.elements] == ["figure", "style", "div", "img", "figcaption", "details", "summary", "pre"]
    image = found.elements[3][1]
    assert image.keys() == {"src", "alt", "style"}
    assert found.elements[0][1] == {"class": "graphloupe-still"}
    assert found.elements[-1][1] == {"style": "font-family:monospace"}
    assert found.elements[2][1] == {"style": "overflow-x:auto"}
    assert all(not attributes for tag, attributes in found.elements if tag not in {"img", "figure", "pre", "div"})
    address = image["src"] or ""
    assert address.startswith("data:image/svg+xml;base64,")
    assert ET.fromstring(base64.b64decode(address.partition(",")[2])).tag == f"{SVG}svg"


def test_the_static_display_tells_the_graph_in_words(softmax_regression: gc.Graph) -> None:
    scene = build_scene(softmax_regression, title="digits")
    found = Tags(to_static_html(scene))
    assert found.elements[3][1]["alt"] == f"digits: {scene.summary}"
    assert "MatMul matmul <- x float [?,64]" in found.texts["pre"]


@pytest.mark.parametrize("text", HOSTILE)
def test_a_hostile_name_cannot_leave_its_place_in_the_standalone_page(text: str) -> None:
    scene = hostile_scene(text.replace("\ud800", "?"))
    page = to_page(scene)
    found = Tags(page)
    tags = [tag for tag, _ in found.elements]
    assert tags == [
        "html",
        "head",
        "meta",
        "meta",
        "meta",
        "title",
        "style",
        "body",
        "div",
        "noscript",
        "pre",
        "script",
        "script",
        "script",
    ]
    data = re.search(r'id="graphloupe-data">(.*?)</script>', page, re.DOTALL)
    assert data is not None
    assert not re.search(r"[<>&]", data[1])
    assert msgspec.json.decode(data[1])["message"]["scene"]["title"] == scene.title


def test_the_standalone_page_carries_everything_and_fetches_nothing(softmax_regression: gc.Graph) -> None:
    page = widgets.to_html(softmax_regression, SceneState(lens="cells"))
    data = msgspec.json.decode(re.findall(r'id="graphloupe-data">(.*?)</script>', page, re.DOTALL)[0])
    assert data["message"]["lens"] == "cells"
    carried = carried_by(data)
    assert "MatMulGrad" in [gradient["function"] for gradient in carried.head["gradients"]]
    assert sorted(carried.names) == sorted(node.name for node in softmax_regression.op_nodes())
    assert any("transpose_a=false" in text.splitlines() for text in carried.texts)
    assert base64.b64decode(data["engine_gzip_base64"]).startswith(b"\x1f\x8b")
    assert base64.b64decode(data["mermaid_engine_gzip_base64"]).startswith(b"\x1f\x8b")
    policy = next(attributes["content"] for tag, attributes in Tags(page).elements if tag == "meta" and attributes.get("http-equiv"))
    assert policy is not None
    assert policy.startswith("default-src 'none'")
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}' 'wasm-unsafe-eval' blob:;" in policy
    assert "'unsafe-inline'" not in policy.replace("style-src 'unsafe-inline'", "")
    assert "connect-src" not in policy
    assert "Eclipse Public License - v 2.0" in re.findall(r'id="graphloupe-licences">(.*?)</script>', page, re.DOTALL)[0]
    assert "http" not in policy


def test_a_page_begins_with_the_picture_of_the_live_view_and_carries_what_is_closed_in_it(graph: gc.Graph) -> None:
    with graph.as_default(), gc.name_scope("model"):
        x = gc.placeholder(gc.float32, [2], name="x")
        for layer in range(160):
            with gc.name_scope(f"layer{layer}"):
                x = gc.tanh(x) * 2.0
    live = build_scene(graph)
    data = data_of(widgets.to_html(graph))
    assert [node["id"] for node in data["message"]["scene"]["nodes"]] == [node.id for node in live.nodes]
    assert [node["repeat"] for node in data["message"]["scene"]["nodes"] if node.get("expandable")] == [160]
    chosen = SceneState()
    chosen.collapse("*")
    data = data_of(widgets.to_html(graph, chosen))
    assert [node["id"] for node in data["message"]["scene"]["nodes"]] == ["model/"]
    assert data["message"]["openings"]["mode"] == "none"
    assert sorted(carried_by(data).names) == sorted(node.name for node in graph.op_nodes())


def test_the_page_of_a_scene_alone_offers_no_opening() -> None:
    data = data_of(to_page(Scene(title="one", nodes=[SceneNode(id="a/", label="a", kind="scope", expandable=True)], edges=[])))
    assert not data["message"]["scene"]["nodes"][0].get("expandable")
    assert "graph_gzip_base64" not in data


def test_equal_graphs_give_equal_pages_and_the_view_they_were_made_from_stays_as_it_is(softmax_regression: gc.Graph) -> None:
    state = SceneState()
    before = build_scene(softmax_regression, state)
    assert widgets.to_html(softmax_regression, state) == widgets.to_html(softmax_regression, state)
    assert build_scene(softmax_regression, state) == before


def test_calls_with_equal_arguments_share_one_body_in_a_page(graph: gc.Graph) -> None:
    graph.library.add_function_def(gc.parse_function("f(x:float) -> (y:float) {\n  a = Tanh[T=float](x)\n  return y = a:y:0\n}"))
    x = gc.placeholder(gc.float32, [2], name="x")
    for number in range(5):
        graph.apply_op("f", [x], None, f"call{number}")
    graph.apply_op("f", [gc.placeholder(gc.float32, [3], name="y")], None, "other")
    head = carried_by(data_of(widgets.to_html(graph))).head
    assert [call["bodies"][0]["space"] for call in head["spaces"][0]["calls"]] == [1, 1, 1, 1, 1, 2]


@pytest.mark.parametrize("nodes", [12_000])
def test_the_data_of_a_large_graph_is_at_most_twice_its_compressed_graph_def(nodes: int, tmp_path: Path) -> None:
    graph = gc.Graph()
    with graph.as_default():
        x = gc.placeholder(gc.float32, [None, 64], name="x")
        w = gc.placeholder(gc.float32, [64, 64], name="w")
        while len(graph) < nodes:
            with gc.name_scope("layer"):
                x = gc.tanh(gc.matmul(x, w) + x)
    packed = gzip.compress(gc.save(graph, tmp_path / "graph.pb").read_bytes(), 9)
    assert len(data_of(widgets.to_html(graph))["graph_gzip_base64"]) <= 2 * len(packed)
