"""DOT, Mermaid and the outline: content, and no markup from names."""

from __future__ import annotations

import json
import re

import graphviz
import pytest

import graphcore as gc
import widgets
from graphcore.errors import InvalidArgumentError
from tests.support.graphviz import placed
from widgets.render import to_dot, to_mermaid, to_outline
from widgets.render.compiled import build_scene
from widgets.scene import LensMark, Scene, SceneEdge, SceneGroup, SceneNode, SceneState

HOSTILE = [
    "<img src=x onerror=alert(1)>",
    "</script><script>alert(1)</script>",
    "<<TABLE><TR><TD HREF='http://e/'>x</TD></TR></TABLE>>",
    'a" URL="http://e/" x="',
    "a\nb\r\nc\td",
    "%%{init: {'securityLevel': 'loose'}}%%",
    "n0 --> n1; click n0 callback",
    "end",
    "#35; #lt; &lt;&#60;",
    "back\\slash\\",
    "]]> <!-- --> ]]",
    "\u202emoc.live\u202c",
    "\x00\x07\ufffe",
    "\ud800",
    "π ∇ 漢字 🧠",
    "`${alert(1)}`",
    "",
]


def hostile_scene(text: str) -> Scene:
    """A scene with the same hostile text everywhere."""
    mark = LensMark(text=text)
    box = SceneNode(
        id=text, label=text, kind="op", op=text, detail=text, group="g" + text, state="error", error=text, cell=text, lenses={"x": mark}
    )
    scope = SceneNode(id="s" + text, label=text, kind="scope", count=2, expandable=True)
    stub = SceneNode(id="stub:" + text, label=text, kind="stub", stands_for=text)
    return Scene(
        title=text,
        nodes=[box, scope, stub],
        edges=[
            SceneEdge(id="e" + text, source=text, target="s" + text, label=text, error=text),
            SceneEdge(id="f" + text, source="stub:" + text, target="s" + text, label=text),
        ],
        groups=[SceneGroup(id="g" + text, label=text)],
        summary=text,
    )


@pytest.fixture
def small(graph: gc.Graph) -> gc.Graph:
    """A product in a scope, with its gradient."""
    x = gc.placeholder(gc.float32, [None, 3], name="x")
    w = gc.Variable(gc.zeros([3, 2]), name="W")
    with gc.name_scope("layer"):
        y = gc.tanh(x @ w)
    with gc.control_dependencies([y.node]):
        gc.no_op(name="done")
    gc.gradients(y, [w])
    return graph


OUTLINE = """\
Placeholder x float [?,3]
VariableV2 W float [3,2]
NoOp done @ layer/Tanh
layer/ (2 nodes)
  MatMul layer/matmul <- x float [?,3], W float [3,2]
  Tanh layer/Tanh <- layer/matmul float [?,2]
"""


def test_the_outline_of_a_small_graph(small: gc.Graph) -> None:
    scene = build_scene(small)
    first, rest = to_outline(scene).split("\n", 1)
    assert first == f"graph: {scene.summary}"
    forward, backward = rest.split("gradients/ (")
    assert forward == OUTLINE
    assert "    function gradients/layer/Tanh_grad/ [gradient of layer/Tanh] <- layer/Tanh float [?,2]" in backward
    assert "    MatMul gradients/layer/matmul_grad/dy transpose_a [gradient of layer/matmul] <- x float [?,3]" in backward


MERMAID = """\
flowchart TB
  n0[/"Placeholder<br/>x<br/>float [?,3]"/]
  n1[/"Placeholder<br/>W<br/>float [3,2]"/]
  subgraph g0["layer"]
    n2("MatMul<br/>matmul")
    n3("Tanh")
  end
  n0 -->|"float [?,3]"| n2
  n1 -->|"float [3,2]"| n2
  n2 -->|"float [?,2]"| n3
  classDef kindOp fill:#ffffff,stroke:#aab6c5,color:#1b2430
  classDef kindPlaceholder fill:#e8f1fd,stroke:#4d88d8,color:#174a8c
  classDef groupForward fill:#eef1f5,stroke:#c3ccd7,color:#566171
  class n2,n3 kindOp
  class n0,n1 kindPlaceholder
  class g0 groupForward
"""


def test_the_mermaid_text_of_a_small_graph(graph: gc.Graph) -> None:
    x = gc.placeholder(gc.float32, [None, 3], name="x")
    w = gc.placeholder(gc.float32, [3, 2], name="W")
    with gc.name_scope("layer"):
        gc.tanh(x @ w)
    assert widgets.to_mermaid(graph) == MERMAID


def test_gradient_and_control_lines_look_different(small: gc.Graph) -> None:
    text = to_mermaid(build_scene(small))
    assert "-.->" in text
    assert re.search(r"linkStyle [\d,]+ stroke:#8d44c9", text)
    assert re.search(r"class n[\dn,]+ roleGradient", text)
    dot = to_dot(build_scene(small))
    assert 'style="dashed"' in dot
    assert 'color="#8d44c9"' in dot


@pytest.mark.parametrize("text", HOSTILE)
def test_mermaid_text_holds_no_hostile_character(text: str) -> None:
    for line in to_mermaid(hostile_scene(text)).splitlines():
        bare = re.sub(r'"[^"]*"', '""', line)
        assert re.fullmatch(r'[\w \[\](){}/:;,.#"|<>&=-]*', bare)
        for label in re.findall(r'"([^"]*)"', line):
            assert re.fullmatch(r"(?:[A-Za-z0-9 _[\],.?+/-]|#\d+;|<br/>)*", label)


@pytest.mark.parametrize("text", HOSTILE)
def test_a_hostile_name_stays_one_plain_label_in_dot(text: str) -> None:
    graph = placed(to_dot(hostile_scene(text)))
    assert sorted(item["name"] for item in graph["objects"]) == ["cluster_0", "n0", "n1", "n2"]
    assert len(graph["edges"]) == 2
    for item in (graph, *graph["objects"], *graph["edges"]):
        assert not {"URL", "href", "image", "target"} & item.keys()


def test_dot_is_a_source_of_the_graphviz_package_that_a_notebook_shows_without_its_program(small: gc.Graph) -> None:
    found = widgets.to_dot(small)
    assert isinstance(found, graphviz.Source)
    shown = found._repr_mimebundle_()
    assert "<svg" in shown["image/svg+xml"]
    assert shown["text/plain"] == found.source == to_dot(build_scene(small))


def test_a_label_that_looks_like_markup_is_text_in_dot() -> None:
    graph = placed(to_dot(hostile_scene("<b>bold</b>")))
    box = next(item for item in graph["objects"] if item["name"] == "n0")
    assert box["label"].startswith("<b>bold</b>")
    assert any(operation["op"] == "T" and operation["text"] == "<b>bold</b>" for operation in box["_ldraw_"])


def test_mermaid_labels_are_legible_and_signs_that_mean_something_are_numbers() -> None:
    names = ["float [?,64]", 'a_b 1<"%#;', "i" * 200]
    text = to_mermaid(Scene(title="", nodes=[SceneNode(id=name, label="", kind="op", op=name) for name in names], edges=[]))
    legible, numbers, long = re.findall(r'n\d\("(.*?)<br', text) or re.findall(r'n\d\("(.*?)"\)', text)
    assert (legible, numbers) == ("float [?,64]", "a_b 1#60;#34;#37;#35;#59;")
    assert long.count("i") == 59


@pytest.mark.parametrize("text", HOSTILE)
def test_the_outline_keeps_one_line_a_box(text: str) -> None:
    outline = to_outline(hostile_scene(text))
    assert not re.search(r"[\x00-\x09\x0b-\x1f\u202a-\u202e]", outline)
    outline.encode("utf-8")


def test_errors_stand_below_their_box_in_the_outline() -> None:
    scene = Scene(title="t", nodes=[SceneNode(id="a", label="a", kind="op", op="Add", state="error", error="one\ntwo")], edges=[])
    assert to_outline(scene).splitlines()[1:] == ["Add a [error]", "  ! one", "  ! two"]


@pytest.mark.parametrize("suffix", [".svg", ".dot", ".mmd", ".html", ".txt"])
def test_a_graph_is_saved_in_the_format_its_suffix_says(small: gc.Graph, suffix: str, tmp_path: object) -> None:
    path = widgets.save(small, f"{tmp_path}/picture{suffix}")
    begins = {".svg": "<svg ", ".dot": "digraph", ".mmd": "flowchart", ".html": "<!DOCTYPE html>", ".txt": "graph: "}[suffix]
    assert path.read_text("utf-8").startswith(begins)


def test_an_unknown_suffix_is_refused_with_the_known_ones(small: gc.Graph, tmp_path: object) -> None:
    with pytest.raises(InvalidArgumentError, match=r"'picture.png': required a name that ends in one of \.svg, \.dot"):
        widgets.save(small, f"{tmp_path}/picture.png")


def test_a_state_says_what_is_folded_in_a_saved_picture(small: gc.Graph) -> None:
    state = SceneState()
    state.collapse("*")
    assert "layer/matmul" not in widgets.to_outline(small, state)
    assert "layer/matmul" in widgets.to_outline(small)


@pytest.mark.parametrize("text", HOSTILE)
def test_a_page_of_hostile_names_can_be_written_and_holds_them_as_data(text: str) -> None:
    page = widgets.to_html(hostile_scene(text))
    assert page.encode("utf-8")
    data = re.search(r'<script type="application/json" id="graphloupe-data">(.*?)</script>', page, re.DOTALL)
    assert data is not None
    assert json.loads(data[1])["message"]["scene"]["nodes"][0]["label"] == text
