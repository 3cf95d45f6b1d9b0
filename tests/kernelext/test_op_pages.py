"""`gc.ops.NAME?` in a notebook is a page with a picture, and text elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import graphcore as gc
from graphcore.graph import reset_default_graph
from tests.kernelext.conftest import NotebookShell


@pytest.fixture
def pages(shell: NotebookShell) -> Iterator[list[Any]]:
    """Everything that the pager of a notebook is given to show."""
    reset_default_graph()
    shown: list[Any] = []

    def pager(_shell: object, data: Any, **_options: object) -> None:
        shown.append(data)

    hooked: Any = shell
    hooked.set_hook("show_in_pager", pager, 90)
    assert shell.run("%load_ext kernelext\nimport graphcore as gc", "load").success
    yield shown
    shell.run("%unload_ext kernelext", "unload")
    reset_default_graph()


def test_the_page_of_an_op_has_formulas_a_picture_and_an_example(shell: NotebookShell, pages: list[Any]) -> None:
    shell.run("gc.ops.conv2d?", "ask")
    (page,) = pages
    html = page["text/html"]
    assert "<code>gc.ops.conv2d</code></b> A two-dimensional convolution" in html
    assert "-&gt; output [batch,rows,columns,output_channels]" in html
    assert 'src="data:image/svg+xml;base64,' in html
    assert "gc.ops.conv2d(input, filter, strides=[1, 1, 1, 1], padding=&#x27;SAME&#x27;)" in html
    assert "Shapes:\n    input [batch,rows" in page["text/plain"]
    assert list(page) == ["text/plain", "text/html"]


@pytest.mark.parametrize("asked", ["gc.tanh?", "gc?", "gc.ops.conv2d??", "len?"])
def test_everything_else_has_the_page_that_it_has_without_the_extension(shell: NotebookShell, pages: list[Any], asked: str) -> None:
    shell.run(asked, "ask")
    assert list(pages[0]) == ["text/plain"]


def test_tooltips_are_text(shell: NotebookShell, pages: list[Any]) -> None:
    inspected: Any = shell
    assert "Shapes:" in inspected.object_inspect_mime("gc.ops.tanh")["text/plain"]


def test_a_terminal_shows_the_text(shell: NotebookShell, capsys: pytest.CaptureFixture[str]) -> None:
    shell.run("%load_ext kernelext\nimport graphcore as gc", "load")
    shell.run("gc.ops.mat_mul?", "ask")
    shell.run("%unload_ext kernelext", "unload")
    assert "a [m,k], b [k,n] -> product [m,n]" in capsys.readouterr().out


def test_every_kind_of_op_has_a_page(shell: NotebookShell, pages: list[Any]) -> None:
    for name in ("assign", "add_n", "const", "decode_png", "random_uniform", "no_op", "print", "partitioned_call", "fifo_queue_v2"):
        shell.run(f"gc.ops.{name}?", "ask")
        assert f"<code>gc.ops.{name}</code>" in pages[-1]["text/html"]


def test_a_failure_leaves_the_text(shell: NotebookShell, pages: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_args: object) -> str:
        raise ZeroDivisionError

    monkeypatch.setattr("kernelext.display.op_pages.op_page", fail)
    shell.run("gc.ops.tanh?", "ask")
    assert list(pages[0]) == ["text/plain"]


def test_a_definition_of_an_op_is_the_same_page(shell: NotebookShell, pages: list[Any]) -> None:
    display: Any = shell.display_formatter
    data = display.format(gc.op_registry.look_up_op_def("MatMul"))[0]
    assert "-&gt; product [m,n]" in data["text/html"]
    own = gc.OpDefBuilder("Mine").input("x: float").output("y: float").doc("Does nothing.").finalize()
    assert "<code>Mine</code></b> Does nothing." in display.format(own)[0]["text/html"]
