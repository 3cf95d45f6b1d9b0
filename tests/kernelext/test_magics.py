"""Magics for notebooks and terminals: each answers with an object that prints."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.graph import reset_default_graph
from tests.kernelext.conftest import NotebookShell

SETUP = """
import numpy as np
import graphcore as gc
x = gc.placeholder(gc.float32, [None, 4], name="x")
W = gc.Variable(gc.ones([4, 2]), name="W")
scores = gc.matmul(x, W, name="scores")
loss = gc.reduce_mean(gc.square(scores), name="loss")
(gradient,) = gc.gradients(loss, [W])
session = gc.Session()
session.run(W.initializer)
rows = np.ones((3, 4), np.float32)
@gc.function
def twice(a):
    return a + a
doubled = twice(loss)
"""


@pytest.fixture
def graph_shell(shell: NotebookShell) -> Iterator[NotebookShell]:
    reset_default_graph()
    shell.run("%load_ext kernelext", "load")
    assert shell.run(SETUP, "setup").success
    yield shell
    shell.run("%unload_ext kernelext", "unload")
    reset_default_graph()


def answer(shell: NotebookShell, line: str) -> Any:
    result = shell.run(line, "asked")
    assert result.success, result.error_in_exec
    return result.result


def refusal(shell: NotebookShell, line: str) -> str:
    result = shell.run(line, "refused")
    assert type(result.error_in_exec).__name__ == "UsageError"
    return str(result.error_in_exec)


def test_nodes_are_listed_by_the_words_of_the_search(graph_shell: NotebookShell) -> None:
    found = answer(graph_shell, "%nodes op:MatMul shape:[?,2] scores")
    assert [node.name for node in found] == ["scores"]
    assert repr(found) == "name    op      outputs      cell\nscores  MatMul  float [?,2]  In [2]"
    assert "<td style='text-align:left'>scores</td>" in found._repr_html_()
    assert len(answer(graph_shell, "%nodes")) > 10
    assert repr(answer(graph_shell, "%nodes nothing")) == "no nodes"


def test_why_explains_shapes_devices_and_gradients(graph_shell: NotebookShell) -> None:
    assert "is a literal of `W`" in str(answer(graph_shell, "%why shape scores"))
    assert "float [?,2]" in str(answer(graph_shell, "%why shape scores:0"))
    assert "scores (MatMul) is on" in str(answer(graph_shell, "%why place scores"))
    assert "the gradient of 'loss:0' by 'W:0'" in repr(answer(graph_shell, "%why grad W"))
    assert "the gradient of 'scores:0' by 'x:0'" in repr(answer(graph_shell, "%why grad scores x"))


def test_fetch_runs_in_the_open_session(graph_shell: NotebookShell) -> None:
    np.testing.assert_array_equal(answer(graph_shell, "%fetch W"), np.ones((4, 2)))
    loss, scores = answer(graph_shell, "%fetch loss scores x=rows*2")
    assert loss == 64.0
    assert scores.shape == (3, 2)


def test_trace_and_step_record_a_run(graph_shell: NotebookShell) -> None:
    assert "scores" in {node.name for node in answer(graph_shell, "%trace loss x=rows").nodes}
    text = repr(answer(graph_shell, "%step loss x=rows"))
    assert "scores  MatMul" in text
    assert "loss  Mean" in text
    assert "16" in text
    assert repr(answer(graph_shell, "%step")) == text


def test_diff_compares_with_before_a_cell_and_two_graphs(graph_shell: NotebookShell) -> None:
    graph_shell.run("more = gc.tanh(scores, name='more')", "more")
    assert answer(graph_shell, "%diff").added == ("more",)
    assert "scores" in answer(graph_shell, "%diff 2").added
    graph_shell.run("other = gc.Graph()\nboth = gc.get_default_graph()", "other")
    assert "more" in answer(graph_shell, "%diff other both").added
    steps = answer(graph_shell, "%diff other both other")
    assert [len(step.added) for step in steps] == [len(steps[0].added), 0]
    assert repr(steps).startswith("1 (other → both): ")
    assert not steps.whole


def test_diff_compares_files_commits_and_what_expressions_give(graph_shell: NotebookShell, tmp_path: Path) -> None:
    """Brackets and quotes hold a source together."""
    graph = gc.Graph()
    with graph.as_default():
        x = gc.placeholder(gc.float32, [2], name="x")
        file = gc.save(graph, tmp_path / "my model.pb")
        git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@example.com"]
        for command in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "one"]):
            subprocess.run([*git, *command], check=True)
        gc.tanh(x, name="later")
    gc.save(graph, file)
    diff = answer(graph_shell, f'%diff "{file}@HEAD" "{file}"')
    assert diff.added == ("later",)
    assert diff.titles == ("my model.pb@HEAD", "my model.pb")
    graph_shell.run("graphs = {'a b': gc.load(path)}".replace("path", repr(str(file))), "graphs")
    assert not answer(graph_shell, f'%diff graphs["a b"] "{file}"')
    assert "no file" in refusal(graph_shell, f'%diff "{file}@--help" "{file}"')
    with pytest.raises(gc.errors.NotFoundError, match=r"no 'my model\.pb' in commit 'HEAD~7'"):
        gc.graph_diff(f"{file}@HEAD~7", file)


def test_func_shows_a_function_by_its_name(graph_shell: NotebookShell) -> None:
    assert answer(graph_shell, "%func twice") is graph_shell.user_ns["twice"]
    name = next(iter(graph_shell.user_ns["loss"].graph.library)).name
    assert graph_shell.user_ns["loss"].graph.library.find(name) is not None
    assert "%func" in refusal(graph_shell, "%func no_such_function")
    assert answer(graph_shell, f"found = %func {name}") is None
    assert graph_shell.user_ns["found"].name == name


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("%why", "%why needs one of shape, place, grad and a name"),
        ("%why shape score", "'score' is neither a variable with a tensor nor a name in the graph, did you mean 'scores'?"),
        ("%why place zzz", "%nodes lists them"),
        ("%fetch", "%fetch needs the names"),
        ("%fetch 'x", "No closing quotation"),
        ("%diff 99", "the state before In [99] is not known"),
        ("%diff rows", "%diff takes nothing"),
        ("%diff a b", "'a' is no variable with a graph or model, no file, and no call of one"),
        ("%diff scores 'b", "a quote is not closed"),
        ("%func twise", "did you mean"),
        ("%%graph 3\ny = 1", "%%graph needs the name of a variable"),
        ("%%graph rows\ny = 1", "'rows' is a ndarray of yours"),
    ],
)
def test_what_is_not_understood_is_said_in_one_line(graph_shell: NotebookShell, line: str, says: str) -> None:
    assert says in refusal(graph_shell, line)


def test_magics_have_help(graph_shell: NotebookShell, capsys: pytest.CaptureFixture[str]) -> None:
    for name, word in (
        ("nodes", "op:MatMul"),
        ("why", "%why grad"),
        ("fetch", "x=pixels"),
        ("step", "%step"),
        ("diff", "%diff A B"),
        ("func", "%func"),
    ):
        graph_shell.run(f"%{name}?", "help")
        assert word in capsys.readouterr().out


def test_a_cell_in_a_graph_of_its_own_replaces_its_nodes_when_it_runs_again(graph_shell: NotebookShell) -> None:
    before = len(graph_shell.user_ns["loss"].graph)
    for _ in range(2):
        assert graph_shell.run("%%graph model\nz = gc.constant(1.0, name='z')\ngc.tanh(z, name='t')", "own").success
    assert [node.name for node in graph_shell.user_ns["model"].op_nodes()] == ["z", "t"]
    assert len(graph_shell.user_ns["loss"].graph) == before


def test_a_cell_in_a_graph_of_its_own_that_fails_shows_its_error_once(
    graph_shell: NotebookShell, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert not graph_shell.run("%%graph model\ngc.tanh('text')", "own").success
    out = capsys.readouterr().out
    assert out.count("InvalidArgumentError") == 1
    assert "CellFailed" not in out


def test_a_name_in_brackets_gives_a_node_or_a_tensor(graph_shell: NotebookShell) -> None:
    graph = graph_shell.user_ns["loss"].graph
    assert graph["scores"] is graph_shell.user_ns["scores"].node
    assert graph["scores:0"] is graph_shell.user_ns["scores"]
