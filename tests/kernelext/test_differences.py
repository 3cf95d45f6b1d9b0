"""Differences in a notebook: `%graph diff`, and `gc.graph_diff` as the result of a cell."""

from __future__ import annotations

from typing import Any

import pytest

from tests.kernelext.conftest import NotebookShell
from tests.kernelext.simulated_page import Page

INPUT = "x = gc.placeholder(gc.float32, [None, 4], name='x')"
LAYER = "h = gc.{act}(x, name='h')"
OUTPUT = "y = gc.square(h, name='y')"


def build(shell: NotebookShell, act: str = "relu") -> None:
    for cell, code in (("input", INPUT), ("layer", LAYER.format(act=act)), ("output", OUTPUT)):
        assert shell.run(code, cell).success


def diff(shell: NotebookShell, capsys: pytest.CaptureFixture[str], rest: str = "") -> str:
    """The line that `%graph diff` prints."""
    capsys.readouterr()
    result = shell.run(f"%graph diff {rest}", "diff")
    assert result.success
    return capsys.readouterr().out.strip()


def scene(page: Page) -> dict[str, Any]:
    """The picture that the last panel shows."""
    page.says("ready")
    return page.scenes()[-1]


def test_a_cell_run_again_differs_from_its_last_run(shell: NotebookShell, page: Page, capsys: pytest.CaptureFixture[str]) -> None:
    build(shell)
    run = shell.execution_count
    shell.run(LAYER.format(act="tanh"), "layer")
    assert diff(shell, capsys) == f"Since before In [{run}]: 1 changed, 2 unchanged"
    boxes = {node["id"]: (node["state"], node["detail"]) for node in scene(page)["nodes"]}
    assert boxes["h"] == ("changed", "op: Relu → Tanh")
    assert boxes["y"] == ("normal", "")
    assert page.panels[-1].title == "diff"


def test_a_cell_that_rebuilds_its_nodes_identically_shows_no_difference(
    shell: NotebookShell, page: Page, capsys: pytest.CaptureFixture[str]
) -> None:
    build(shell)
    run = shell.execution_count
    shell.run(LAYER.format(act="relu"), "layer")
    assert diff(shell, capsys) == f"Since before In [{run}]: No difference"
    found = scene(page)
    assert {node["state"] for node in found["nodes"]} == {"normal"}
    assert found["summary"].startswith("No difference; 3 nodes")


def test_a_number_names_the_run_to_compare_with(shell: NotebookShell, page: Page, capsys: pytest.CaptureFixture[str]) -> None:
    first = shell.execution_count
    build(shell)
    assert diff(shell, capsys, str(first)).endswith(": 3 added, 0 unchanged")
    assert diff(shell, capsys, str(first + 2)).endswith(": 1 added, 2 unchanged")
    shell.run("%graph diff 999", "wrong")
    assert "the state before In [999] is not known; known are those before" in capsys.readouterr().err
    shell.run("%graph 3", "wrong")
    assert "which only %graph diff 3 compares with" in capsys.readouterr().err


def test_the_view_follows_the_next_runs(shell: NotebookShell, page: Page, capsys: pytest.CaptureFixture[str]) -> None:
    build(shell)
    assert diff(shell, capsys).endswith("1 added, 2 unchanged")
    page.says("ready")
    shell.run("z = gc.exp(y, name='z')", "more")
    states = {node["id"]: node["state"] for node in scene(page)["nodes"]}
    assert (states["z"], states["y"]) == ("new", "normal")


def test_a_difference_of_a_variable_is_shown_live_and_as_a_picture(shell: NotebookShell, page: Page) -> None:
    build(shell)
    shell.run("before = gc.get_default_graph().copy()\n_ = gc.gradients(y, [x])", "gradients")
    shell.run("d = gc.graph_diff(before, gc.get_default_graph())", "compare")
    display: Any = shell.display_formatter
    data = display.format(shell.user_ns["d"])[0]
    assert "<figure" in data["text/html"]
    assert data["text/plain"].startswith(f"{len(shell.user_ns['d'].added)} added, 3 unchanged\n")
    shell.run("%graph d", "show")
    assert {node["state"] for node in scene(page)["nodes"]} == {"normal", "new"}
    assert shell.run("bool(gc.graph_diff(before, before))", "none").result is False


def test_the_difference_of_a_graph_of_a_variable(shell: NotebookShell, page: Page, capsys: pytest.CaptureFixture[str]) -> None:
    shell.run("g = gc.Graph()", "a")
    shell.run("with g.as_default():\n    gc.constant(1.0, name='c')", "b")
    assert diff(shell, capsys, "g").endswith(": 1 added, 0 unchanged")
    shell.run("%graph off", "off")
