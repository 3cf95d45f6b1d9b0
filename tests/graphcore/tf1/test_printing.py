"""`gc.print`."""

from __future__ import annotations

import io
import sys
from typing import Any

import pytest

import graphcore as gc
from graphcore.errors import InvalidArgumentError
from graphcore.tf1.printing import print_


@pytest.mark.parametrize(
    ("build", "written"),
    [
        (lambda t: ["loss", t, 3], "loss [1 2 3 4] 3\n"),
        (lambda t: ["a {} b", t], "a {} b [1 2 3 4]\n"),
        (lambda t: [{"x": (t,), "y": [1, "z"]}], "{'x': ([1 2 3 4],), 'y': [1, 'z']}\n"),
        (lambda _: ["no tensor"], "no tensor\n"),
        (lambda _: [gc.constant("text alone")], "text alone\n"),
    ],
)
def test_tensors_stand_among_texts_and_in_structures(build: Any, written: str, capsys: pytest.CaptureFixture[str]) -> None:
    with gc.Graph().as_default():
        step = print_(*build(gc.constant([1.0, 2.0, 3.0, 4.0])), output_stream=sys.stdout)
        assert capsys.readouterr().out == ""
        gc.Session().run(step)
        assert capsys.readouterr().out == written


def test_separators_ends_and_sizes_are_as_given(capsys: pytest.CaptureFixture[str]) -> None:
    with gc.Graph().as_default():
        v = gc.Variable([1, 2, 3, 4, 5])
        with gc.control_dependencies([v.initializer]):
            step = print_(v.read_value(), "x", sep=" | ", end=".", summarize=1)
        gc.Session().run(step)
        assert capsys.readouterr().err == "[1 ... 5] | x."


def test_another_stream_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match=r"required sys.stderr or sys.stdout as output_stream, got <_io.StringIO"):
        print_("x", output_stream=io.StringIO())
