"""Node names complete inside strings, options complete after `%graph`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from IPython.core.completer import provisionalcompleter

from graphcore.graph import reset_default_graph
from kernelext.completion import Completion
from kernelext.graph_line import next_words
from kernelext.guard import Guard
from tests.kernelext.conftest import NotebookShell

SETUP = """
import graphcore as gc
x = gc.placeholder(gc.float32, [None, 64], name="x")
W = gc.Variable(gc.zeros([64, 10]), name="W")
graph = gc.get_default_graph()
session = gc.Session()
rows = [[1.0] * 64]
@gc.function
def twice(a):
    return a + a
other = gc.Graph()
with other.as_default():
    gc.constant(1.0, name="apart")
"""


@pytest.fixture
def completing(shell: NotebookShell) -> Iterator[NotebookShell]:
    reset_default_graph()
    completion = Completion(shell, next_words, Guard())
    completion.start()
    assert shell.run(SETUP, "setup").success
    yield shell
    completion.stop()
    reset_default_graph()


def offered(shell: NotebookShell, text: str) -> list[str]:
    with provisionalcompleter():
        return [completion.text for completion in shell.Completer.completions(text, len(text))]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('graph.find("W', ["W", "W/Assign", "W/read"]),
        ("graph.find('W/", ["W/Assign", "W/read"]),
        ('graph.get_operation_by_name("x', ["x"]),
        ('session.run("W/re', ["W/read"]),
        ('session.run(["x", "W/re', ["W/read"]),
        ('session.run("W/read:', ["W/read:0"]),
        ('value = 3 * session.run("W/re', ["W/read"]),
        ('other.find("', ["apart"]),
        ('gc.get_default_graph().find("W/re', ["W/read"]),
        ('graph["W/', ["W/Assign", "W/read"]),
        ('graph["W/read:', ["W/read:0"]),
        ('session.run(W, {"', ["x:0"]),
        ('session.run(W, feed_dict={"x:0": 1, "', ["x:0"]),
        ('session.run(W, {"W/re', ["W/read:0"]),
        ('with gc.device("/c', ["/cpu:0"]),
        ('gc.ops.max_pool(x, ksize=[1, 2, 2, 1], padding="', ["SAME", "VALID", "EXPLICIT"]),
        ("%nodes W/re", ["W/read"]),
        ("%why ", ["shape", "place", "grad"]),
        ("%why shape W", ["W", "W/Assign", "W/read"]),
        ("%func tw", ["twice"]),
        ("session.run(\n    [W, x],\n    feed_dict={\n        W: min(1, 2),  # it's one\n        \"", ["x:0"]),
        ('feeds = {"', ["x:0"]),
        ('step(data, feed_dict={"', ["x:0"]),
        ('x.eval({"x:', ["x:0"]),
        ('session.run({"a": "W/re', ["W/read"]),
        ('gc.get_default_graph()["W/re', ["W/read"]),
        ('gc.ops.max_pool(x, [1, 2, 2, 1], [1, 1, 1, 1], "V', ["VALID"]),
        ('gc.apply_op("BiasAddG', ["BiasAddGrad"]),
        ('gc.NodeDefBuilder("n", "BiasAddG', ["BiasAddGrad"]),
        ("%nodes op:Pl", ["op:Placeholder"]),
        ("%fetch W x=ro", ["x=rows"]),
        ("y = %fetch W/re", ["W/read"]),
        ("%%graph o", ["other"]),
        ("%graph ", ["dock", "inline", "close", "diff", "lens", "renderer", "focus", "undo", "quiet", "--mirror", "graph", "twice"]),
        ("%graph lens ce", ["cells"]),
        ("%graph --lens ce", ["cells"]),
        ("%graph renderer ", ["graphviz", "mermaid"]),
        ("%graph focus W", ["W", "W/Assign", "W/read"]),
        ("%graph other focus ", ["apart"]),
        ("%graph graph inline l", ["lens", "language"]),
    ],
)
def test_names_and_options_are_offered(completing: NotebookShell, text: str, words: list[str]) -> None:
    found = offered(completing, text)
    assert [word for word in found if word in words] == words
    assert len(found) == len(words) or text == "%graph "


@pytest.mark.parametrize(
    "text", ['print("W', 'open("W', "graph.fi", 'graph.find("W") + "W', "%matplotlib in", 'session.run(W, {x: 3}, "', 'session.run({"']
)
def test_everything_else_is_left_to_others(completing: NotebookShell, text: str) -> None:
    assert "W/read" not in offered(completing, text)
    assert "side" not in offered(completing, text)


def test_nothing_stays_behind(shell: NotebookShell) -> None:
    before = list(shell.Completer.custom_matchers)
    completion = Completion(shell, next_words, Guard())
    completion.start()
    assert shell.Completer.custom_matchers != before
    completion.stop()
    completion.stop()
    assert shell.Completer.custom_matchers == before


def test_a_failure_of_the_completion_is_logged_and_others_complete(shell: NotebookShell, capfd: pytest.CaptureFixture[str]) -> None:
    def fail(*_args: object) -> list[str]:
        raise ZeroDivisionError

    failures: list[str] = []
    completion = Completion(shell, fail, Guard(failures.append))
    completion.start()
    offered(shell, "%graph s")
    assert failures == ["completing a word: ZeroDivisionError: "]
    assert "Traceback" not in capfd.readouterr().err
    completion.stop()
