"""A graph, a node or a tensor as the last expression of a cell."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from graphcore.graph import Graph, reset_default_graph
from kernelext.formatters import Formatters
from tests.kernelext.conftest import NotebookShell

SETUP = """
import graphcore as gc
x = gc.placeholder(gc.float32, [None, 64], name="x")
with gc.device("/cpu:0"), gc.control_dependencies([x.node]):
    y = gc.reduce_sum(x, axis=1, name="y")
"""


@pytest.fixture
def formatted(shell: NotebookShell) -> Iterator[NotebookShell]:
    reset_default_graph()
    formatters = Formatters(shell, lambda graph: f"<p>{len(graph)} nodes</p>", lambda _function: False)
    formatters.start()
    assert shell.run(SETUP, "setup").success
    yield shell
    formatters.stop()
    reset_default_graph()


def shown(shell: NotebookShell, value: object) -> dict[str, Any]:
    display: Any = shell.display_formatter
    data: dict[str, Any] = display.format(value)[0]
    return data


def test_a_tensor_tells_type_shape_and_origin(formatted: NotebookShell) -> None:
    text = shown(formatted, formatted.user_ns["x"])["text/plain"]
    assert "'x:0' float [?,64]" in text
    assert "from     x (Placeholder)" in text
    assert "made in  " in text


def test_a_node_tells_inputs_outputs_and_device(formatted: NotebookShell) -> None:
    text = shown(formatted, formatted.user_ns["y"].node)["text/plain"]
    assert "input    x:0  float [?,64]" in text
    assert "output   y:0  float [?]" in text
    assert "after    x" in text
    assert "device   /device:CPU:0" in text


def test_a_graph_has_a_picture_and_words(formatted: NotebookShell) -> None:
    data = shown(formatted, Graph())
    assert data["text/html"] == "<p>0 nodes</p>"
    assert "0 nodes" in data["text/plain"]


def test_what_was_there_before_comes_back(shell: NotebookShell) -> None:
    display: Any = shell.display_formatter
    html = display.formatters["text/html"]
    html.for_type(Graph, lambda _graph: "theirs")
    formatters = Formatters(shell, lambda _graph: "ours", lambda _function: True)
    formatters.start()
    assert html(Graph()) == "ours"
    formatters.stop()
    assert html(Graph()) == "theirs"
    html.pop(Graph)
