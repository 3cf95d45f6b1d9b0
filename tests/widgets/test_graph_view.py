"""The live view: messages and answers, without errors in cells."""

from __future__ import annotations

import asyncio
import gzip
import json
import logging
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from traitlets.log import get_logger

import graphcore as gc
from graphcore.difference import difference_graph
from tests.widgets.conftest import RunCell
from widgets import GraphView, port
from widgets.messages import ChangeMessage, Choices, FromKernel
from widgets.render.page_data.types import GraphChange
from widgets.render.saved_picture import NOT_YET, TOO_LARGE

Sent = list[tuple[Any, list[bytes] | None]]


class Page:
    """A simulated browser: receives messages of a view, and sends requests."""

    def __init__(self, view: GraphView) -> None:
        self.view = view
        self.sent: Sent = []
        view.send = lambda content, buffers=None: self.sent.append((content, buffers))

    def ask(self, **message: object) -> list[dict[str, Any]]:
        """The replies to a message."""
        self.sent.clear()
        self.view._handle_custom_msg(message, [])
        return [content for content, _ in self.sent]

    def ask_one(self, **message: object) -> dict[str, Any]:
        (answer,) = self.ask(**message)
        return answer

    def names(self) -> set[str]:
        """The boxes of the picture."""
        return {node.id for node in self.view.scene.nodes}

    def changes(self) -> list[GraphChange]:
        """The changes of the graph that were sent."""
        return [msgspec.json.decode(gzip.decompress(buffers[0]), type=GraphChange) for _, buffers in self.sent if buffers]


@pytest.fixture
def page(softmax_regression: gc.Graph) -> Iterator[Page]:
    view = GraphView(softmax_regression, title="digits")
    yield Page(view)
    view.close()


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    """The messages of the application's logger."""
    logger = get_logger()
    assert isinstance(logger, logging.Logger)
    logger.addHandler(caplog.handler)
    yield caplog
    logger.removeHandler(caplog.handler)


# ---- sending --------------------------------------------------------------------------------------------------------


def test_a_refresh_sends_what_has_changed(page: Page, graph: gc.Graph) -> None:
    page.view.refresh(sent_at=1234.5)
    late = gc.placeholder(gc.float32, [3], name="late").node
    page.view.refresh()
    first, second = (msgspec.convert(content, FromKernel) for content, _ in page.sent)
    assert isinstance(first, ChangeMessage)
    assert isinstance(second, ChangeMessage)
    assert first.sent_at == 1234.5
    assert abs(second.sent_at - time.time() * 1000) < 5000
    assert (first.title, second.title) == ("digits", "digits")
    assert (first.choices, second.choices) == (Choices(), None)
    whole, more = page.changes()
    assert (whole.number, whole.whole, len(whole.ids)) == (0, True, len(graph) - 1)
    assert (more.number, more.whole, more.ids, second.fresh) == (1, False, [late.id], [late.id])


def test_in_a_loop_of_events_changes_are_sent_ten_times_a_second_at_most_and_the_latest_wins(
    page: Page, graph: gc.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.monotonic() + 60.0
    monkeypatch.setattr(port, "time", SimpleNamespace(monotonic=lambda: now, time=time.time))  # at one moment, however slow the machine is

    async def many() -> None:
        for number in range(20):
            gc.placeholder(gc.float32, [3], name=f"late{number}")
            page.view.refresh()
        assert len(page.sent) == 1
        await asyncio.sleep(0.3)  # after the pending timer, of which the loop itself keeps the time

    asyncio.run(many())
    assert len(page.sent) == 2
    assert "late19" in page.names()


@pytest.mark.parametrize("request_", ["ready", "want_whole"])
def test_a_page_that_is_ready_or_has_missed_something_gets_the_whole_graph(page: Page, request_: str) -> None:
    page.view.refresh()
    again = page.ask_one(type=request_)
    assert (again["type"], again["choices"]["lens"], again["sent_at"]) == ("change", "structure", 0.0)
    assert [change.whole for change in page.changes()] == [True]


def test_new_boxes_are_marked_until_the_next_cell(run_cell: RunCell, graph: gc.Graph) -> None:
    view = GraphView(graph)
    view.refresh()
    run_cell("a", "a = gc.placeholder(gc.float32, [3], name='a')")
    view.refresh()
    assert [node.state for node in view.scene.nodes] == ["new"]
    view.choices.expand("*")
    assert [node.state for node in view.scene.nodes] == ["new"]
    assert Page(view).ask_one(type="ready")["fresh"] == [node.id for node in graph.nodes]
    view.refresh()
    assert [node.state for node in view.scene.nodes] == ["normal"]
    view.close()


def test_runs_are_followed_by_a_new_picture_and_open_sessions_alone_are_not(page: Page, graph: gc.Graph) -> None:
    def sent_by_a_cell() -> list[str]:
        before = len(page.sent)
        page.view.refresh()
        return [content["type"] for content, _ in page.sent[before:]]

    with graph.as_default():
        x = gc.placeholder(gc.float32, [2], name="fed")
        total = gc.ops.sum(x, [0])
        variable = gc.Variable([1.0], name="kept")
    page.view.refresh()
    page.view.refresh()  # its boxes are no longer new
    with gc.Session(graph) as session:
        call = session.make_callable(total, [x])
        assert sent_by_a_cell() == ["unchanged"]
        runs = [
            lambda: session.run(variable.initializer),
            lambda: session.run(total, {x: [1.0, 2.0]}),
            lambda: call([1.0, 2.0]),
            lambda: session.run(total, {x: [1.0, 2.0]}, gc.RunOptions(values=True)),
            lambda: session.partial_run(session.partial_run_setup([total], [x]), total, {x: [1.0, 2.0]}),
            session.close,
        ]
        for run in runs:
            run()
            assert sent_by_a_cell() == ["change"]
            assert sent_by_a_cell() == ["unchanged"]


def test_a_cell_that_leaves_the_graph_alone_costs_nothing(page: Page, graph: gc.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    page.view.refresh()
    page.view.refresh()
    settled, sent = page.view.scene, len(page.sent)
    with monkeypatch.context() as patched:
        patched.setattr(port, "pack_change", None)
        page.view.refresh()
    assert page.view.scene is settled
    assert [content["type"] for content, _ in page.sent[sent:]] == ["unchanged"]
    gc.placeholder(gc.float32, [3], name="late")
    page.view.refresh()
    assert "late" in page.names()


@pytest.mark.parametrize(("more", "box"), [("", "a"), ("gc.cond(a > 0.0, lambda: a, lambda: -a)", "cond:then/a")])
def test_a_cell_that_makes_the_same_nodes_again_is_named_in_their_boxes(run_cell: RunCell, graph: gc.Graph, more: str, box: str) -> None:
    view = GraphView(graph)
    view.choices.expand("*")
    for number in (1, 2, 3):
        run_cell("a", f"a = gc.placeholder(gc.float32, [], name='a')\n{more}")
        view.refresh()
        assert box in {node.id for node in view.scene.nodes}
        assert {node.cell for node in view.scene.nodes} == {f"In [{number}]"}
    view.close()


def test_another_graph_can_be_shown(page: Page) -> None:
    other = gc.Graph()
    other.apply_op("NoOp", name="alone")
    page.view.show(other)
    page.view.refresh()
    assert page.names() == {"alone"}
    assert page.view.graph is other


def test_what_stays_is_html_and_text(page: Page) -> None:
    page.view.refresh()
    bundle = page.view.still_bundle()
    assert bundle["text/html"] == page.view.static_html()
    assert bundle["text/plain"].startswith("digits: ")


def test_a_picture_says_that_its_graph_is_not_written_yet_or_too_large_to_be_saved(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    page.view.refresh()
    early = page.view.take_still(with_graph=False)
    assert early.graph_gzip_base64 == ""
    assert early.message.scene.summary.endswith(NOT_YET)
    monkeypatch.setattr("widgets.render.saved_picture.MAX_SAVED_BYTES", 100)
    large = page.view.take_still(with_graph=True)
    assert large.graph_gzip_base64 == ""
    assert large.message.scene.summary.endswith(TOO_LARGE)


def test_a_graph_that_changes_while_it_is_packed_is_not_saved_half(page: Page) -> None:
    steps = page.view.pack()
    next(steps)
    page.view.graph.apply_op("NoOp", name="late")
    assert list(steps) == []
    assert not page.view.is_packed
    assert page.view.take_still(with_graph=True).graph_gzip_base64
    assert page.view.is_packed


def test_a_graph_of_ten_thousand_nodes_is_saved_whole(page: Page) -> None:
    graph = gc.Graph()
    with graph.as_default():
        tensor = gc.placeholder(gc.float32, [8, 8], name="x")
        for scope in range(100):
            with gc.name_scope(f"block{scope // 100}/layer{scope % 100}"):
                for _ in range(100):
                    tensor = gc.tanh(tensor)
    page.view.show(graph)
    assert page.view.take_still(with_graph=True).graph_gzip_base64


def test_the_widgets_own_module_is_small_and_engines_are_no_traits(page: Page) -> None:
    state = page.view.get_state()
    assert len(state["_esm"]) <= 50 * 1024
    assert len(str(state)) <= 52 * 1024


# ---- answering ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["core", "graphviz", "mermaid", "lower", "page"])
def test_an_engine_travels_packed_as_a_binary_buffer(page: Page, engine: str) -> None:
    assert page.ask_one(type="need_engine", engine=engine) == {"type": "engine", "engine": engine}
    buffers = page.sent[0][1]
    assert buffers is not None
    assert len(gzip.decompress(buffers[0])) > 10_000


def test_what_a_page_has_opened_is_open_in_still_pictures(page: Page) -> None:
    assert page.ask(type="openings", openings={"opened": ["W"], "closed": ["gradients"]}) == []
    assert page.names() > {"W/read", "gradients/"}
    page.ask(type="openings", openings={"mode": "none"})
    assert page.names().isdisjoint({"W/read"})


def test_a_node_is_explained_and_a_lost_one_is_told_as_a_failure(page: Page) -> None:
    answer = page.ask_one(type="explain", id="box", name="matmul")
    assert (answer["type"], answer["id"]) == ("explanation", "box")
    explanation = answer["explanation"]
    assert explanation["summary"].startswith("{{node matmul}} = MatMul[")
    assert [why["key"] for why in explanation["why"]] == ["0:0", "0:1"]
    lost = page.ask_one(type="explain", id="nowhere", name="nowhere")
    assert lost == {"type": "failure", "request": "inspect", "text": "'nowhere' is no longer in the graph"}


def test_the_lens_is_kept_for_the_next_picture(page: Page) -> None:
    page.view.refresh()
    assert page.ask(type="lens", lens="cells") == []
    assert page.ask_one(type="ready")["choices"]["lens"] == "cells"
    page.view.choose(lens="no such lens", renderer="no such renderer")
    assert (page.view.choices.lens, page.view.choices.renderer) == ("cells", "graphviz")


def test_a_view_is_stored_as_json_and_restored(run_cell: RunCell, graph: gc.Graph) -> None:
    run_cell("a", "with gc.name_scope('model'):\n    a = gc.tanh(gc.placeholder(gc.float32, [3], name='a'))")
    view = GraphView(graph)
    first = Page(view)
    first.ask(type="openings", openings={"closed": ["model"]})
    first.ask(type="lens", lens="cells")
    first.ask(type="look", look={"camera": {"x": 10.5, "y": 20, "scale": 0.5}, "selection": ["model/"]})
    stored = json.loads(json.dumps(view.state))
    assert stored == {
        "opened": [],
        "closed": ["model"],
        "mode": "auto",
        "mirror": False,
        "lens": "cells",
        "renderer": "graphviz",
        "camera": {"x": 10.5, "y": 20.0, "scale": 0.5},
        "selection": ["model/"],
    }
    other = GraphView(graph)
    page = Page(other)
    assert page.names() > {"model/a"}
    other.state = stored
    assert page.names() == {"model/"}
    sent = page.ask_one(type="ready")
    assert (sent["choices"]["openings"]["closed"], sent["choices"]["lens"]) == (["model"], "cells")
    assert sent["look"] == {"camera": stored["camera"], "selection": ["model/"]}
    assert other.state == stored
    page.ask(type="look", look={"camera": None, "selection": []})
    assert page.ask_one(type="ready")["look"] is None
    view.close()
    other.close()


@pytest.mark.parametrize(
    "wrong", [None, {"mode": "some"}, {"lens": "no such lens"}, {"camera": {"x": 1}}, {"openend": []}, {"selection": "a"}], ids=str
)
def test_a_state_that_is_none_is_refused_and_changes_nothing(page: Page, wrong: Any) -> None:
    before = page.view.state
    with pytest.raises(gc.errors.InvalidArgumentError):
        page.view.state = wrong
    assert page.view.state == before


def test_the_viewers_report_is_kept(page: Page) -> None:
    page.ask(type="drawn", revision=3, delay_ms=42.0, layout_ms=7.0, renderer="graphviz")
    assert page.view.drawn is not None
    assert page.view.drawn.delay_ms == 42.0


# ---- failing --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content",
    [
        None,
        5,
        [],
        {},
        {"type": "format_disk"},
        {"type": "explain"},
        {"type": "explain", "id": 5},
        {"type": "need_engine", "engine": "../x"},
    ],
)
def test_a_garbled_message_is_answered_with_a_failure(page: Page, content: object) -> None:
    page.view._handle_custom_msg(content, [])
    (answer,) = [content for content, _ in page.sent]
    assert answer["type"] == "failure"
    assert answer["text"]


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=5
)
KINDS = st.sampled_from(["ready", "need_engine", "openings", "explain", "request_device", "values", "renderer", "lens", "drawn", "closed"])


@given(st.dictionaries(st.sampled_from(["id", "name", "query", "engine", "renderer", "lens", "revision"]), JSON), KINDS)
def test_no_message_makes_the_kernel_raise(fields: dict[str, object], kind: str) -> None:
    view = GraphView(gc.Graph())
    sent = Page(view).ask(**(fields | {"type": kind}))
    for content in sent:
        msgspec.convert(content, FromKernel)
    view.close()


def test_a_view_that_fails_says_so_and_spares_the_cell(page: Page, monkeypatch: pytest.MonkeyPatch, log: pytest.LogCaptureFixture) -> None:
    def broken(*_args: object, **_options: object) -> None:
        raise RuntimeError("the picture is broken")

    monkeypatch.setattr(port, "pack_change", broken)
    with log.at_level(logging.WARNING):
        page.view.refresh()
    (answer,) = [content for content, _ in page.sent]
    assert answer == {"type": "failure", "request": "refresh", "text": "the picture is broken"}
    assert "Graphloupe's view failed at 'refresh'" in log.text


def test_even_a_dead_connection_spares_the_cell(page: Page, log: pytest.LogCaptureFixture) -> None:
    def dead(*_args: object) -> None:
        raise OSError("connection lost")

    page.view.send = dead
    with log.at_level(logging.WARNING):
        page.view.refresh()
        page.view.fail("hello")
    assert "connection lost" in log.text


def test_a_closed_view_sends_nothing_after_its_goodbye(page: Page) -> None:
    page.view.close()
    assert [message["type"] for message, _ in page.sent] == ["goodbye"]
    page.sent.clear()
    page.view.refresh()
    page.view.fail("hello")
    assert page.sent == []


def test_a_title_that_no_connection_can_carry_reaches_the_page_with_escapes(softmax_regression: gc.Graph) -> None:
    view = GraphView(softmax_regression, title="a\ud800b")
    page = Page(view)
    sent = page.ask_one(type="ready")
    assert (view.title, sent["title"]) == ("a\\ud800b", "a\\ud800b")
    assert json.dumps(sent, ensure_ascii=False).encode("utf-8")
    view.close()


def test_of_a_graph_that_gets_numbers_only_these_are_sent(page: Page) -> None:
    page.ask(type="ready")
    page.sent.clear()
    page.view.overlay({"y": 1.5}, title="Error")
    (change,) = page.changes()
    assert (change.head.spaces, change.texts, [overlay.values for overlay in change.head.overlays]) == ([], [], [[1.5]])
    page.sent.clear()
    with page.view.graph.as_default():
        gc.constant(1.0, name="more")
    page.view.overlay({"more": 2.5}, title="Error")
    (change,) = page.changes()
    assert (len(change.ids), len(change.head.spaces)) == (1, 1)


# ---- both states of a difference ------------------------------------------------------------------------------------


def changed(op: Callable[..., gc.Tensor], name: str) -> gc.Graph:
    """The difference of a graph from that of one node, `y = Relu(x)`."""
    graphs = []
    for act, act_name in ((gc.relu, "y"), (op, name)):
        with gc.Graph().as_default() as graph:
            act(gc.placeholder(gc.float32, [2], name="x"), name=act_name)
        graphs.append(graph)
    return difference_graph(gc.graph_diff(graphs[0], graphs[1]))


def test_both_states_of_a_difference_are_pictures_of_their_own_and_follow_it() -> None:
    page = Page(GraphView(changed(gc.tanh, "y")))
    states = page.ask_one(type="want_states", open=True)
    assert (states["type"], states["titles"], states["twins"]) == ("states", ("before", "after"), ({}, {}))
    assert "Relu → Tanh" in states["words"]
    for pane, op in (("before", "Relu"), ("after", "Tanh")):
        answer = page.ask_one(type="to_pane", pane=pane, message={"type": "ready"})
        assert (answer["pane"], answer["message"]["title"]) == (pane, pane)
        assert op in page.changes()[0].texts
    failure = page.ask_one(type="to_pane", pane="after", message={"type": "open_function", "id": "y"})
    assert failure["message"]["text"] == "Functions open in the one picture of both states"
    page.sent.clear()
    page.view.show(changed(gc.relu, "z"))
    page.view.refresh()
    sent = {content.get("pane", content["type"]): content for content, _ in page.sent}
    assert sent["states"]["twins"] == ({"y": "z"}, {"z": "y"})
    assert {"before", "after"} <= set(sent)


def test_both_states_close_when_they_are_no_longer_asked_for_or_there_is_no_difference(graph: gc.Graph) -> None:
    page = Page(GraphView(changed(gc.tanh, "y")))
    page.ask(type="want_states", open=True)
    assert page.ask_one(type="want_states", open=False) == {"type": "states_closed"}
    assert page.ask(type="to_pane", pane="before", message={"type": "ready"}) == []
    page.ask(type="want_states", open=True)
    page.view.show(graph)
    page.sent.clear()
    page.view.refresh()
    assert [content["type"] for content, _ in page.sent][-1] == "states_closed"
    assert page.ask_one(type="want_states", open=True)["text"] == "This picture shows no difference any more"
