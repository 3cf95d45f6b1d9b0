"""A graph, a node or a tensor as the last expression of a cell."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

import graphcore as gc
from graphcore.graph import Graph, reset_default_graph
from kernelext.display.formatters import Formatters
from kernelext.display.timings import duration
from kernelext.guard import Guard
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
    formatters = Formatters(shell, lambda graph: f"<p>{len(graph)} nodes</p>", lambda _function: False, Guard())
    formatters.start()
    assert shell.run(SETUP, "setup").success
    yield shell
    formatters.stop()
    reset_default_graph()


def shown(shell: NotebookShell, value: object) -> dict[str, Any]:
    display: Any = shell.display_formatter
    data: dict[str, Any] = display.format(value)[0]
    return data


def test_a_graph_shows_its_inputs_scopes_and_ops(formatted: NotebookShell) -> None:
    with Graph().as_default() as graph:
        x = gc.placeholder(gc.float32, [None, 2], name="x")
        with gc.name_scope("layer"):
            gc.tanh(x @ gc.ones([2, 2], name="W"))
    text = shown(formatted, graph)["text/plain"]
    assert text == (
        "<gc.Graph 4 nodes>\n  inputs   x  float [?,2]\n  scopes   layer/ 3\n  ops      1 Placeholder, 1 Const, 1 MatMul, 1 Tanh"
    )


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


def test_tensors_nodes_and_variables_are_tables_without_markup_of_names(formatted: NotebookShell) -> None:
    formatted.run("v = gc.Variable([1.0, 2.0], name='v')", "v")
    html = shown(formatted, formatted.user_ns["x"])["text/html"]
    assert "<code>&lt;gc.Tensor &#x27;x:0&#x27; float [?,64]&gt;</code>" in html
    assert "<th style='text-align:left;white-space:nowrap'>from</th><td style='text-align:left'><code>x (Placeholder)</code></td>" in html
    assert "<th style='text-align:left;white-space:nowrap'>made in</th>" in html
    data = shown(formatted, formatted.user_ns["v"])
    assert "begins   as v/initial_value:0  float [2]" in data["text/plain"]
    assert "<table>" in data["text/html"]
    assert "float [?]" in shown(formatted, formatted.user_ns["y"].node)["text/html"]


def test_definitions_and_devices_are_short(formatted: NotebookShell) -> None:
    @gc.function
    def twice(a: gc.Tensor) -> gc.Tensor:
        return a + a

    twice(gc.constant(1.0))
    assert shown(formatted, twice.instantiations[0].fdef)["text/plain"].startswith("twice(a:float) -> (")
    op = shown(formatted, gc.op_registry.look_up_op_def("Tanh"))["text/plain"]
    assert op.startswith("Tanh[T:")
    assert op.count("\n") == 1
    assert shown(formatted, gc.DeviceSpec.parse("/gpu:1"))["text/plain"] == "<gc.DeviceSpec '/device:GPU:1'>"


def test_shapes_and_devices_are_tables(formatted: NotebookShell) -> None:
    html = shown(formatted, gc.Shape([None, 3, 4]))["text/html"]
    assert "Shape([None, 3, 4])" in html
    assert [text for text in ("rank", "[?,3,4]", "a multiple of 12") if text not in html] == []
    assert shown(formatted, gc.Shape([2, 3]))["text/html"].count("<code>6</code>") == 1
    assert "unknown" in shown(formatted, gc.Shape(None))["text/html"]
    assert shown(formatted, gc.Shape([2, 3]))["text/plain"] == "Shape([2, 3])"
    device = shown(formatted, gc.DeviceSpec.parse("/job:ps/gpu:1"))["text/html"]
    assert [text for text in ("<code>ps</code>", "<code>any</code>", "<code>GPU</code>", "<code>1</code>") if text not in device] == []


def test_a_graph_has_a_picture_and_words(formatted: NotebookShell) -> None:
    data = shown(formatted, Graph())
    assert data["text/html"] == "<p>0 nodes</p>"
    assert "0 nodes" in data["text/plain"]


def test_a_display_that_fails_leaves_the_text(shell: NotebookShell, capfd: pytest.CaptureFixture[str]) -> None:
    def fail(_graph: Graph) -> str:
        raise ZeroDivisionError

    formatters = Formatters(shell, fail, lambda _function: False, Guard())
    formatters.start()
    assert "0 nodes" in shown(shell, Graph())["text/plain"]
    assert "text/html" not in shown(shell, Graph())
    assert "Traceback" not in "".join(capfd.readouterr())
    formatters.stop()


def test_what_was_there_before_comes_back(shell: NotebookShell) -> None:
    display: Any = shell.display_formatter
    html = display.formatters["text/html"]
    html.for_type(Graph, lambda _graph: "theirs")
    formatters = Formatters(shell, lambda _graph: "ours", lambda _function: True, Guard())
    formatters.start()
    assert html(Graph()) == "ours"
    formatters.stop()
    assert html(Graph()) == "theirs"
    html.pop(Graph)


RUN = """
session = gc.Session()
metadata = gc.RunMetadata()
turns = gc.while_loop(lambda i: i < 5, lambda i: (i + 1,), [gc.constant(0)], name="turns")
session.run([y, turns], {x: [[1.0] * 64]}, options=gc.RunOptions(trace=True), run_metadata=metadata)
"""


def test_a_recorded_run_tells_how_long_its_nodes_took(formatted: NotebookShell) -> None:
    assert formatted.run(RUN, "run").success
    metadata = formatted.user_ns["metadata"]
    first, *rows = shown(formatted, metadata.trace)["text/plain"].splitlines()
    assert re.fullmatch(r"<gc\.Trace \d+ node runs in [\d.,]+ ms, at most [\d,]+ bytes at once>", first)
    assert any(re.fullmatch(r"  y +[\d.,]+ [um]s +4 B  Sum", row) for row in rows), rows
    assert any(re.fullmatch(r"  turns:turns_body > add +[\d.,]+ [um]?s +20 B  5 times", row) for row in rows), rows
    ran = [entry.op_end_rel_nanos for device in metadata.step_stats.dev_stats for entry in device.node_stats if entry.node_name == "y"]
    assert any(row.split()[1:3] == duration(sum(ran)).split() for row in rows if row.split()[0] == "y")
    assert shown(formatted, metadata)["text/plain"].splitlines()[1:] == [first, *rows]
    stats = shown(formatted, metadata.step_stats)["text/plain"].splitlines()
    assert stats[0].startswith("<gc.StepStats ")
    assert len(stats) == len(rows) + 1


def test_metadata_without_a_trace_says_how_to_get_one(formatted: NotebookShell) -> None:
    formatted.run("metadata = gc.RunMetadata()", "run")
    text = shown(formatted, formatted.user_ns["metadata"])["text/plain"]
    assert text == "<gc.RunMetadata without a trace: run with options=gc.RunOptions(trace=True)>"


@pytest.mark.parametrize(
    ("ns", "text"),
    [(0, "0 ns"), (999, "999 ns"), (1_000, "1 us"), (22_644_904, "22.6 ms"), (999_960, "1,000 us"), (3_725_290_000_000, "3,725 s")],
)
def test_durations_have_three_digits_and_a_unit(ns: int, text: str) -> None:
    assert duration(ns) == text
