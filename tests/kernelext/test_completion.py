"""Node names complete inside strings, options complete after `%graph`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from IPython.core.completer import provisionalcompleter

from graphcore.graph import reset_default_graph
from kernelext.completion import Completion
from tests.kernelext.conftest import NotebookShell

SETUP = """
import graphcore as gc
x = gc.placeholder(gc.float32, [None, 64], name="x")
W = gc.Variable(gc.zeros([64, 10]), name="W")
graph = gc.get_default_graph()
session = gc.Session()
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
    completion = Completion(shell, lambda before, variables: ["side", "--lens"] if "x" in variables else [before])
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
        ("%graph ", ["side", "--lens"]),
        ("%graph --le", ["--lens"]),
        ("%graph graph s", ["side"]),
    ],
)
def test_names_and_options_are_offered(completing: NotebookShell, text: str, words: list[str]) -> None:
    found = offered(completing, text)
    assert [word for word in found if word in words] == words
    assert len(found) == len(words)


@pytest.mark.parametrize("text", ['print("W', 'open("W', "graph.fi", 'graph.find("W") + "W', "%matplotlib in"])
def test_everything_else_is_left_to_others(completing: NotebookShell, text: str) -> None:
    assert "W/read" not in offered(completing, text)
    assert "side" not in offered(completing, text)


def test_nothing_stays_behind(shell: NotebookShell) -> None:
    before = list(shell.Completer.custom_matchers)
    completion = Completion(shell, lambda _before, _variables: [])
    completion.start()
    assert shell.Completer.custom_matchers != before
    completion.stop()
    completion.stop()
    assert shell.Completer.custom_matchers == before
