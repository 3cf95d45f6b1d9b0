"""The line under a cell that says what the cell changed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from graphcore.graph import reset_default_graph
from tests.kernelext.conftest import NotebookShell


@pytest.fixture
def loaded(shell: NotebookShell, capsys: pytest.CaptureFixture[str]) -> Iterator[NotebookShell]:
    reset_default_graph()
    shell.run("%load_ext kernelext\nimport graphcore as gc", "load")
    capsys.readouterr()
    yield shell
    shell.run("%unload_ext kernelext", "unload")
    reset_default_graph()


def test_a_line_counts_nodes_shapes_and_errors(loaded: NotebookShell, capsys: pytest.CaptureFixture[str]) -> None:
    def said(code: str, cell: str) -> str:
        loaded.run(code, cell)
        return capsys.readouterr().out

    assert said("x = gc.placeholder(gc.float32, [2, 3], name='x')", "a") == "+1 node\n"
    assert said("w = gc.constant([[1.0]] * 3, name='w')\ny = gc.tanh(x @ w, name='y')", "b") == "+3 nodes\n"
    assert said("x = gc.placeholder(gc.float32, [5, 3], name='x')", "a") == "1 replaced, shapes of 3 changed\n"
    assert said("x = gc.placeholder(gc.float32, [5, 4], name='x')", "a").startswith("1 replaced, shapes of ")
    assert said("x = gc.placeholder(gc.float32, [5, 3], name='x')", "a").endswith("1 error gone\n")
    assert said("w = gc.constant([[1.0]] * 3, name='w')", "b") == "\u22122 nodes\n"


def test_cells_that_change_nothing_say_nothing(loaded: NotebookShell, capsys: pytest.CaptureFixture[str]) -> None:
    loaded.run("x = gc.constant(1.0, name='x')", "a")
    capsys.readouterr()
    loaded.run("x = gc.constant(1.0, name='x')", "a")
    loaded.run("gc.Session().run(x)\nk = 3", "b")
    assert "node" not in capsys.readouterr().out


def test_lines_end_and_come_back(loaded: NotebookShell, capsys: pytest.CaptureFixture[str]) -> None:
    loaded.run("%graph quiet", "q")
    loaded.run("x = gc.constant(1.0)", "a")
    assert capsys.readouterr().out == ""
    loaded.run("%graph quiet off", "q")
    loaded.run("y = gc.constant(1.0)", "b")
    assert capsys.readouterr().out == "+1 node\n"


def test_another_graph_is_named_by_its_variable(loaded: NotebookShell, capsys: pytest.CaptureFixture[str]) -> None:
    loaded.run("model = gc.Graph()\nwith model.as_default():\n    gc.constant(1.0)", "a")
    assert capsys.readouterr().out == "model: +1 node\n"
    loaded.run("x = None\nwith gc.Graph().as_default() as trial:\n    x = gc.constant(1.0)", "b")
    assert capsys.readouterr().out == "trial: +1 node\n"


def test_nodes_of_deleted_cells_are_named_and_forgotten(loaded: NotebookShell, capsys: pytest.CaptureFixture[str]) -> None:
    loaded.run("x = gc.constant(1.0, name='x')\ny = gc.tanh(x, name='y')", "a")
    capsys.readouterr()
    loaded.run("pass", "b", deletedCells=["a"])
    assert capsys.readouterr().out == "2 nodes without a cell: %graph forget removes them\n"
    assert "In [2], deleted" in repr(loaded.run("%nodes", "c").result)
    assert [node.name for node in loaded.run("%nodes cell:deleted", "c").result] == ["x", "y"]
    capsys.readouterr()
    loaded.run("%graph forget", "d")
    assert capsys.readouterr().out.startswith("2 nodes of deleted cells removed.")
    loaded.run("%graph undo", "e")
    assert "2 nodes" in repr(loaded.run("gc.get_default_graph()", "f").result)
