"""The words of a `%graph` line: each does what it says, and what is not understood is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kernelext.conftest import NotebookShell
from tests.kernelext.simulated_page import Page

BUILD = 'x = gc.placeholder(gc.float32, [None, 4], name="x")'


def test_the_words_dock_lens_renderer_and_close_do_what_they_say(shell: NotebookShell, page: Page) -> None:
    shell.run("%graph dock", "a")
    assert [panel.title for panel in page.panels] == ["Graph"]
    shell.run(f"{BUILD}\n%graph lens shapes renderer mermaid", "b")
    message = [message for message in page.sent if message["type"] == "scene"][-1]
    assert (message["renderer"], message["lens"]) == ("mermaid", "shapes")
    shell.run("%graph close", "c")
    assert page.panels[0].closed


FOCUSED = """
with gc.name_scope("outer"), gc.name_scope("inner"):
    parts = [gc.tanh(gc.constant(float(number)), name=f"part{number}") for number in range(40)]
for number in range(40):
    gc.tanh(parts[0], name=f"other{number}")
W = gc.Variable([1.0], name="W")
"""


@pytest.mark.parametrize(
    ("word", "box"), [("outer/inner/part3", "outer/inner/part3"), ("found", "outer/inner/part3"), ("W/read", "W/read"), ("W", "W")]
)
def test_focus_opens_the_scopes_around_a_node_and_selects_it_until_the_user_looks_elsewhere(
    shell: NotebookShell, page: Page, word: str, box: str
) -> None:
    shell.run(f"{FOCUSED}\nfound = parts[3]", "a")
    shell.run(f"%graph focus {word}", "b")
    page.says("ready")
    scenes = [message for message in page.sent if message["type"] == "scene"]
    assert scenes[-1]["focus"] == scenes[-2]["focus"] == box
    assert box in {node["id"] for node in scenes[-1]["scene"]["nodes"]}
    page.panels[-1].view._handle_custom_msg({"type": "look", "look": {"selection": []}}, [])
    shell.run("1 + 1", "c")
    assert [message for message in page.sent if message["type"] == "scene"][-1]["focus"] == ""


def test_overlay_shows_the_numbers_of_a_variable_or_a_file(
    shell: NotebookShell, page: Page, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "peak_memory.json"
    file.write_text('{"x": 3}')
    shell.run(f"{BUILD}\nnumbers = {{'x': 2}}")
    for word, lens, text in (("numbers", "numbers", "2"), (str(file), "peak_memory", "3")):
        assert shell.run(f"%graph dock overlay {word}", "b").success
        page.says("ready")
        message = [message for message in page.sent if message["type"] == "scene"][-1]
        assert message["lens"] == lens
        assert message["scene"]["nodes"][0]["lenses"][lens]["text"] == text
    shell.run("%graph overlay nothing.json")
    assert "%graph: overlay nothing.json: There is no file 'nothing.json' with numbers" in capsys.readouterr().err


def test_without_a_page_focus_prints_the_neighbours_of_a_node(shell: NotebookShell, page: Page, capsys: pytest.CaptureFixture[str]) -> None:
    shell.run(f"{BUILD}\ny = gc.tanh(x, name='y')")
    assert shell.run("%graph focus y").success
    assert "input    x:0  float [?,4]" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("nothing", "'nothing' is no graph and belongs to none"),
        ("dok", "did you mean 'dock'?"),
        ("lens wrong", "lens needs one of"),
        ("focus", "focus needs a variable with a tensor"),
        ("focus nothing", "'nothing' is neither a variable with a tensor nor a name in the graph"),
        ("close focus x", "it does not go with 'close'"),
        ("--lens wrong", "--lens needs one of"),
        ("--renderer", "--renderer needs one of graphviz, mermaid, got ''"),
        ("side inline", "'side' and 'inline' cannot both be meant"),
        ("--what", "'--what' is not understood"),
        ("'", "No closing quotation"),
    ],
)
def test_what_is_not_understood_is_said_in_one_line(
    shell: NotebookShell, page: Page, capfd: pytest.CaptureFixture[str], line: str, says: str
) -> None:
    result = shell.run(f"%graph {line}", "a")
    assert not result.success
    shown = capfd.readouterr()
    assert says in shown.out + shown.err
    assert "Traceback" not in shown.out
    assert page.panels == []


def test_the_words_of_a_graph_line_are_all_understood(shell: NotebookShell, page: Page) -> None:
    assert shell.run("%graph side --renderer mermaid --lens=shapes  # why", "a").success
    shell.run(BUILD, "b")
    message = [message for message in page.sent if message["type"] == "scene"][-1]
    assert (message["renderer"], message["lens"]) == ("mermaid", "shapes")


def test_help_lists_the_words(shell: NotebookShell, page: Page, capsys: pytest.CaptureFixture[str]) -> None:
    shell.run("%graph?", "a")
    text = capsys.readouterr().out
    shell.run("%graph --help", "b")
    assert "%graph diff NAME" in capsys.readouterr().out
    assert not page.panels
    for word in ("dock", "inline", "close", "time", "NAME", "renderer", "lens", "focus", "--mirror"):
        assert word in text
