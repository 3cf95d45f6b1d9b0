"""The function view: definition and body, form, navigation, and static display."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

import graphcore as gc
from widgets import FunctionView, GraphView
from widgets.function import Definition
from widgets.messages import FromKernel
from widgets.scene import Scene

SCALED = """Scaled[T:{float, double, int32}, N:int >= 2 = 3](x:N*T) -> (y:T) {
  s = AddN[N=$N, T=$T](x)
  q = Square[T=$T](s:sum:0)
  return y = q:y:0
}"""


class Page:
    """A simulated browser: receives messages of a view, and sends requests."""

    def __init__(self, view: FunctionView | GraphView) -> None:
        self.view = view
        self.sent: list[dict[str, Any]] = []
        view.send = lambda content, _buffers=None: self.sent.append(content)

    def ask(self, **message: object) -> list[dict[str, Any]]:
        """The replies to a message, checked for validity."""
        self.sent.clear()
        self.view._handle_custom_msg(message, [])
        for content in self.sent:
            msgspec.convert(content, FromKernel)
        return self.sent

    def function(self, **message: object) -> dict[str, Any]:
        """The function shown after a message."""
        return next(content for content in self.ask(**message) if content["type"] == "function")

    def scene(self, pane: str) -> Scene:
        """The latest picture of one side."""
        if pane == "instance":
            session = self.view._session
            assert session is not None
            return session.scene
        sent = [one["message"] for one in self.sent if one["type"] == "pane" and one["message"]["type"] == "scene"]
        return msgspec.convert(sent[-1]["scene"], Scene)

    def boxes(self, pane: str) -> set[str]:
        """The boxes of the latest picture of one side."""
        return {node.id for node in self.scene(pane).nodes}

    def lines(self, pane: str) -> dict[str, str]:
        """The labels of the lines of the latest picture of one side."""
        return {edge.id: edge.label for edge in self.scene(pane).edges}

    def picture(self, pane: str) -> None:
        """Request the picture of one side."""
        self.ask(type="to_pane", pane=pane, message={"type": "ready"})


@pytest.fixture
def layer(graph: gc.Graph) -> Any:
    """A function that calls `squash`, called once."""

    @gc.function
    def squash(x: gc.Tensor) -> Any:
        return gc.tanh(x * x)

    @gc.function
    def layer(x: gc.Tensor, w: gc.Tensor) -> Any:
        return squash(x @ w)

    layer(gc.placeholder(gc.float32, [None, 4], name="x"), gc.placeholder(gc.float32, [4, 2], name="W"))
    return layer


def scaled(**attrs: object) -> Page:
    return Page(FunctionView(gc.parse_function(SCALED), gc.Graph(), attrs))


# ---- the definition -------------------------------------------------------------------------------------------------


def test_a_definition_is_drawn_with_types_as_they_are_written() -> None:
    scene = Definition(gc.parse_function(SCALED), gc.Graph().library).scene()
    assert [(node.id, node.kind, node.detail) for node in scene.nodes] == [
        ("x", "placeholder", "N × T"),
        ("s", "op", "N=$N, T=$T"),
        ("q", "op", "T=$T"),
        ("return:y", "return", "T"),
    ]
    assert {edge.id: edge.label for edge in scene.edges} == {"x->s": "N × T", "s->q": "T", "q->return:y": "T"}


def test_a_node_of_a_definition_is_told_of_with_its_signature() -> None:
    found = Definition(gc.parse_function(SCALED), gc.Graph().library).inspect("q")
    assert found is not None
    assert found.attrs == [("T", "$T")]
    assert found.node_def == "q = Square[T=$T](s:sum:0)"
    assert found.signature.startswith("Square[T:")


# ---- the form -------------------------------------------------------------------------------------------------------


def test_the_right_side_follows_the_form() -> None:
    page = scaled(N=2)
    shown = page.function(type="ready")
    assert shown["crumbs"] == [{"label": "Scaled", "detail": "T=float, N=2"}]
    assert shown["instantiated"].startswith("(x_0:float, x_1:float) -> (q:float)")
    changed = page.function(type="set_attr", name="T", value="double")
    assert changed["instantiated"].startswith("(x_0:double, x_1:double)")
    assert page.lines("instance")["s->q"] == "double ?"
    page.ask(type="set_attr", name="N", value="4")
    assert {"x_0", "x_1", "x_2", "x_3"} <= page.boxes("instance")


def test_a_wrong_value_changes_nothing_but_its_field() -> None:
    page = scaled(N=2)
    before = page.function(type="ready")
    after = page.function(type="set_attr", name="N", value="1")
    assert [content["type"] for content in page.sent] == ["function"], "no new picture"
    assert after["instantiated"] == before["instantiated"]
    assert after["fields"][1]["error"] == "Value for attr 'N' of 1 must be at least minimum 2"
    later = page.function(type="set_attr", name="T", value="int32")
    assert later["fields"][1]["value"] == "1", "nothing that was typed is lost"
    assert "x_1:int32" in later["instantiated"]


def test_attrs_that_give_no_body_leave_the_last_one_and_say_why() -> None:
    text = "Pick[T:type](x:T) -> (y:T) {\n  a = Tanh[T=$T](x)\n  return y = a:y:0\n}"
    page = Page(FunctionView(gc.parse_function(text), gc.Graph()))
    page.ask(type="ready")
    wrong = page.function(type="set_attr", name="T", value="string")
    assert "Value for attr 'T' of string is not in the list of allowed values" in wrong["problem"]
    assert "(x:float)" in wrong["instantiated"]
    assert page.function(type="set_attr", name="T", value="double")["problem"] == ""


# ---- where functions come from --------------------------------------------------------------------------------------


def test_a_traced_function_lists_its_instantiations_and_its_calls(layer: Any, graph: gc.Graph) -> None:
    page = Page(FunctionView(layer))
    shown = page.function(type="ready")
    assert [(use["label"], use["detail"]) for use in shown["uses"]] == [
        ("layer", "float, float"),
        ("call layer", "float [?,4], float [4,2]"),
    ]
    page.function(type="choose_use", place=1)
    assert page.lines("instance")["matmul->squash"] == "float [?,2]"


def test_a_function_is_found_by_its_name(layer: Any, graph: gc.Graph) -> None:
    assert FunctionView("squash", graph).subject.name == "squash"
    with pytest.raises(gc.errors.NotFoundError, match=r"Function nowhere is not defined\. The functions of the graph are: squash, layer"):
        FunctionView("nowhere", graph)


def test_a_function_that_was_never_called_has_nothing_to_show(graph: gc.Graph) -> None:
    with pytest.raises(gc.errors.InvalidArgumentError, match="has not been called yet"):
        FunctionView(gc.function(lambda x: x, name="idle"))


def test_an_attr_that_the_function_has_not_is_refused() -> None:
    with pytest.raises(gc.errors.InvalidArgumentError, match="Scaled has no attr 'M'; its attrs are: T, N"):
        scaled(M=1)


def test_a_function_outside_of_the_graph_leaves_the_graphs_library_as_it_was(graph: gc.Graph) -> None:
    FunctionView(gc.parse_function(SCALED), graph)
    assert "Scaled" not in graph.library


# ---- navigation --------------------------------------------------------------------------------------------------


def test_crumbs_lead_into_a_nested_call_and_back(layer: Any) -> None:
    page = Page(FunctionView(layer))
    page.ask(type="ready")
    inner = page.function(type="to_pane", pane="instance", message={"type": "open_function", "id": "squash", "place": 0})
    assert [crumb["label"] for crumb in inner["crumbs"]] == ["layer", "squash"]
    assert "mul" in page.boxes("definition")
    assert "mul" in page.boxes("instance")
    back = page.function(type="back", crumb=0)
    assert back["name"] == "layer"
    assert "squash" in page.boxes("instance")


def test_a_nested_call_opened_from_a_call_with_shapes_has_them(layer: Any) -> None:
    page = Page(FunctionView(layer))
    page.ask(type="choose_use", place=1)
    page.ask(type="to_pane", pane="instance", message={"type": "open_function", "id": "squash", "place": 0})
    assert page.lines("instance")["mul->Tanh"] == "float [?,2]"


def test_a_call_in_a_definition_opens_with_the_attrs_of_the_form(graph: gc.Graph) -> None:
    graph.library.add_function_def(gc.parse_function(SCALED))
    outer = "Outer[T:{float, double}](x:T) -> (y:T) {\n  a = Scaled[T=$T, N=2](x, x)\n  return y = a:y:0\n}"
    graph.library.add_function_def(gc.parse_function(outer, graph.library.look_up_op_def))
    page = Page(FunctionView("Outer", graph, {"T": gc.float64}))
    page.ask(type="ready")
    inner = page.function(type="to_pane", pane="definition", message={"type": "open_function", "id": "a", "place": 0})
    assert inner["crumbs"][-1] == {"label": "Scaled", "detail": "T=double, N=2"}


def test_the_gradient_is_derived_on_the_left_and_expanded_on_the_right(layer: Any) -> None:
    page = Page(FunctionView("squash"))
    page.ask(type="ready")
    shown = page.function(type="differentiate")
    assert (shown["name"], shown["derived"]) == ("squashGrad", True)
    assert "SymbolicGradient" in shown["definition"]
    assert "SymbolicGradient" not in shown["instantiated"]
    roles = {node.id: node.role for node in page.scene("instance").nodes}
    assert (roles["mul"], roles["Func/_0"]) == ("forward", "gradient")


def test_a_gradient_has_the_shapes_of_the_call_it_came_from(layer: Any) -> None:
    page = Page(FunctionView(layer))
    page.ask(type="choose_use", place=1)
    page.ask(type="to_pane", pane="instance", message={"type": "open_function", "id": "squash", "place": 0})
    page.ask(type="differentiate")
    assert page.lines("instance")["x->mul"] == "float [?,2]"


def test_gradients_of_gradients_are_further_steps(layer: Any) -> None:
    page = Page(FunctionView("squash"))
    page.ask(type="ready")
    first = page.function(type="differentiate")
    shown = page.function(type="differentiate")
    assert (first["problem"], shown["problem"]) == ("", "")
    assert [crumb["label"] for crumb in shown["crumbs"]] == ["squash", "∇ squash", "∇ ∇ squash"]
    assert "SymbolicGradient" not in shown["instantiated"]


def test_a_gradient_function_of_the_library_is_shown_as_it_was_defined(graph: gc.Graph) -> None:
    for text in (
        "Half(x:float) -> (y:float) {\n  a = Identity[T=float](x)\n  return y = a:output:0\n}",
        "MyHalfGrad(x:float, dy:float) -> (dx:float) {\n  a = Neg[T=float](dy)\n  return dx = a:y:0\n}",
    ):
        graph.library.add_function_def(gc.parse_function(text))
    graph.library.add_gradient_def(gc.GradientDef("Half", "MyHalfGrad"))
    page = Page(FunctionView("Half", graph))
    page.ask(type="ready")
    shown = page.function(type="differentiate")
    assert (shown["name"], shown["derived"], shown["crumbs"][-1]["label"]) == ("MyHalfGrad", False, "∇ Half")


def test_the_view_of_a_graph_opens_a_function_and_comes_back(layer: Any, graph: gc.Graph) -> None:
    page = Page(GraphView(graph, title="digits"))
    shown = page.function(type="open_function", id="layer:/squash", place=0)
    assert [crumb["label"] for crumb in shown["crumbs"]] == ["digits", "squash"]
    assert page.lines("instance")["mul->Tanh"] == "float [?,2]"
    assert page.ask(type="back", crumb=0) == [{"type": "function_closed"}]
    assert page.ask(type="differentiate") == []


def test_a_box_that_calls_nothing_is_told_so(layer: Any, graph: gc.Graph) -> None:
    (answer,) = Page(GraphView(graph)).ask(type="open_function", id="x", place=0)
    assert answer == {"type": "failure", "request": "open_function", "text": "'x' calls no function"}


# ---- static display ----------------------------------------------------------------------------------------------


def test_text_and_pictures_stay_without_a_kernel(layer: Any) -> None:
    bundle = FunctionView(layer).still_bundle()
    assert bundle["text/html"].count("<img src=") == 2
    assert "layer(x:float, w:float)" in bundle["text/html"]
    assert "<script" not in bundle["text/html"]
    assert "Instantiated" in bundle["text/plain"]


def test_text_that_stays_has_columns_whatever_page_it_is_in(layer: Any) -> None:
    """Some pages, such as exported notebooks, give `pre` a proportional font."""
    html = FunctionView(layer).static_html()
    assert html.count("<pre") == html.count('<pre style="font-family:monospace">') > 2


@pytest.mark.parametrize("name", ["<img src=x onerror=alert(1)>", "a&b</pre><script>alert(1)</script>"])
def test_names_in_a_still_function_are_only_text(name: str) -> None:
    fdef = gc.parse_function(SCALED)
    hostile = msgspec.structs.replace(fdef, signature=msgspec.structs.replace(fdef.signature, name=name))
    html = FunctionView(hostile, gc.Graph()).static_html()
    assert name not in html
    assert "<script" not in html
