"""`gc.show` and `python -m graphcore view`: pictures without a set-up."""

from __future__ import annotations

import asyncio
import http.client
import os
import threading
import time
from html import unescape
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import pytest

import graphcore as gc
from graphcore.__main__ import main
from graphcore.errors import InvalidArgumentError
from widgets import shown_once
from widgets.live.graph_view import GraphView
from widgets.render.saved_picture import SCENE_MIME_TYPE
from widgets.serving import PageServer
from widgets.shown_once import show_once, widgets_work


def small_graph() -> gc.Graph:
    with gc.Graph().as_default() as graph:
        gc.negative(gc.placeholder(gc.float32, [2], name="x"), name="y")
    return graph


def fetched(url: str, name: str, host: str = "") -> tuple[int, str]:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=20)
    connection.request("GET", parts.path + name, headers={"Host": host} if host else {})
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


def test_a_served_page_is_made_anew_when_its_file_changes(tmp_path: Path) -> None:
    path = tmp_path / "model.txt"
    path.write_text("first")

    def make() -> str:
        if path.read_text() == "bad":
            raise InvalidArgumentError("it is damaged")
        return f"<p>{path.read_text()}</p>"

    server = PageServer(path, make)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        assert "<iframe" in fetched(server.url, "")[1]
        version = fetched(server.url, "version")[1]
        assert fetched(server.url, "page") == (200, "<p>first</p>")
        path.write_text("second")
        os.utime(path, (1, 1))
        assert fetched(server.url, "version")[1] != version
        assert fetched(server.url, "page")[1] == "<p>second</p>"
        path.write_text("bad")
        assert "it is damaged" in fetched(server.url, "page")[1]
    finally:
        server.stop()
        thread.join()


def test_a_served_page_is_for_those_who_know_its_address_on_this_machine(tmp_path: Path) -> None:
    server = PageServer(tmp_path, lambda: "page")
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        assert fetched(server.url, "page", host="evil.example")[0] == 404
        root = urlsplit(server.url)._replace(path="/").geturl()
        assert fetched(root, "page")[0] == 404
        assert fetched(server.url, "../page")[0] == 404
    finally:
        server.stop()
        thread.join()


def test_view_writes_a_page_beside_the_file_by_default(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = gc.save(small_graph(), tmp_path / "model.pb")
    assert main(["view", str(path)]) == 0
    assert capsys.readouterr().out == f"{tmp_path}/model.pb.html\n"
    assert "<!DOCTYPE html>" in (tmp_path / "model.pb.html").read_text()


def test_outside_of_notebooks_a_page_is_written_and_named(capsys: pytest.CaptureFixture[str]) -> None:
    gc.show(small_graph())
    page = Path(capsys.readouterr().out.strip())
    assert page.name == "Graph.html"
    assert "<!DOCTYPE html>" in page.read_text()


def test_a_file_that_is_not_there_is_named() -> None:
    with pytest.raises(InvalidArgumentError, match=r"no file 'absent\.onnx'"):
        gc.show("absent.onnx")


class Front:
    """A shell of a kernel, and the module IPython: it has the metadata of a request, and keeps results."""

    kernel = object()

    def __init__(self, metadata: dict[str, Any]) -> None:
        self.metadata = metadata
        self.displayed: list[Any] = []

    def get_ipython(self) -> Front:
        return self

    def get_parent(self) -> dict[str, Any]:
        return {"metadata": self.metadata}

    @property
    def display(self) -> Any:
        """`display`, and handles whose updates replace what they displayed."""
        return SimpleNamespace(display=lambda value, **_: self.displayed.append(value), DisplayHandle=lambda: Handle(self.displayed))


class Handle:
    """An output that can be replaced."""

    def __init__(self, displayed: list[Any]) -> None:
        self._displayed = displayed
        self._place = -1

    def display(self, bundle: dict[str, Any], *, raw: bool) -> None:
        assert raw
        self._place = len(self._displayed)
        self._displayed.append(bundle)

    def update(self, bundle: dict[str, Any], *, raw: bool) -> None:
        assert raw
        self._displayed[self._place] = bundle


def test_where_widgets_do_not_work_the_output_holds_the_page_itself() -> None:
    front = Front({})
    show_once(small_graph(), "a model", front)
    (bundle,) = front.displayed
    page = unescape(bundle["text/html"].partition('srcdoc="')[2].rpartition('"')[0])
    assert page.startswith("<!DOCTYPE html>")
    assert "default-src &#x27;none&#x27;" in page
    assert 'sandbox="allow-scripts allow-downloads"' in bundle["text/html"]
    assert bundle["text/plain"].splitlines() == ["a model: 2 nodes, 1 edge", "Placeholder x float [2]", "Neg y <- x float [2]"]


def test_where_widgets_work_the_view_is_live() -> None:
    front = Front({"cellId": "1"})
    show_once(small_graph(), "a model", front)
    view, still = front.displayed
    assert isinstance(view, GraphView)
    assert "<img" in still["text/html"]
    assert SCENE_MIME_TYPE in still


def test_a_view_without_an_answer_becomes_a_page_until_it_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shown_once, "ANSWER_SECONDS", 0.05)
    front = Front({"cellId": "1"})

    async def scenario() -> None:
        show_once(small_graph(), "silent", front)
        await asyncio.sleep(0.3)

    asyncio.run(scenario())
    view, output = front.displayed
    assert "<iframe" in output["text/html"]
    view._handle_custom_msg({"type": "ready"}, [])  # as a comm delivers it
    assert "<img" in front.displayed[1]["text/html"]


def test_a_view_that_answers_in_time_keeps_its_still_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shown_once, "ANSWER_SECONDS", 0.05)
    front = Front({"cellId": "1"})

    async def scenario() -> None:
        show_once(small_graph(), "quick", front)
        front.displayed[0]._handle_custom_msg({"type": "ready"}, [])
        await asyncio.sleep(0.3)

    asyncio.run(scenario())
    assert "<img" in front.displayed[1]["text/html"]


def test_a_busy_kernel_waits_for_answers_in_its_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shown_once, "ANSWER_SECONDS", 0.2)
    front = Front({"cellId": "1"})

    async def scenario() -> None:
        show_once(small_graph(), "busy", front)
        time.sleep(0.6)  # noqa: ASYNC251 - a cell that computes
        await asyncio.sleep(0.05)
        front.displayed[0]._handle_custom_msg({"type": "ready"}, [])
        await asyncio.sleep(0.4)

    asyncio.run(scenario())
    assert "<img" in front.displayed[1]["text/html"]


@pytest.mark.parametrize(("metadata", "expected"), [({"cellId": "1"}, True), ({}, False), ({"cellId": "1", "colab": {}}, False)])
def test_widgets_work_where_the_front_end_names_the_cell(metadata: dict[str, Any], expected: bool) -> None:
    assert widgets_work(Front(metadata)) is expected
