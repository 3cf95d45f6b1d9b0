"""Errors of cells as students see them: golden displays of sixty mistakes, as text and as HTML."""

from __future__ import annotations

import re

import pytest

from tests.golden.mistakes.displays import HTML, TEXT, Display, displays, golden

pytestmark = pytest.mark.slow

RENEW = "`python -m tests.golden.mistakes.displays` writes them anew"
NO_PLACE = {
    "branches of different types",
    "cell deleted",
    "checkpoint that is not there",
    "closed session",
    "device that is misspelt",
    "fetching a number",
    "labels and logits swapped",
    "missing reduce_mean",
    "name of a cell that has not run",
    "op that does not exist",
    "reuse of a variable that is not there",
    "run before build",
    "training of an integer variable",
    "values of different lengths",
    "wrong number of arguments",
}
"""The mistakes without a picture: they name no node, or one that is gone."""


@pytest.fixture(scope="module")
def made() -> list[Display]:
    return [*displays()]


def test_the_displays_of_mistakes_are_those_that_were_read_aloud(made: list[Display]) -> None:
    text, html = golden(made)
    assert text == TEXT.read_text(encoding="utf-8"), RENEW
    assert html == HTML.read_text(encoding="utf-8"), RENEW


def test_each_display_says_what_was_required_what_came_where_and_what_to_do(made: list[Display]) -> None:
    assert len(made) > 60
    for display in made:
        words = [line[:8].strip() for line in display.text.splitlines()]
        for word in ("required", "came", "here", "to do"):
            assert words.count(word) == 1, f"{display.mistake.title}: {word}"
        assert len(words) <= 20, display.mistake.title


def test_each_display_of_a_node_has_a_picture_and_a_folded_traceback(made: list[Display]) -> None:
    without = {display.mistake.title for display in made if "<img src=" not in display.html}
    assert without - NO_PLACE - {"a typo in a function's name", "a typo in a tensor's name"} == {
        "feed by a name that is not in the graph",
        "fetching a string that is no node",
    }
    for display in made:
        assert "<details><summary" in display.html
        assert "Traceback</summary>" in display.html


def test_the_displays_are_safe_and_speak_of_no_machine(made: list[Display]) -> None:
    for display in made:
        html = re.sub(r'src="data:image/svg\+xml;base64,[^"]*"', "", display.html)
        assert not re.search(r"<script|onerror|javascript:|0x[0-9a-f]{6,}|/home/|/root/|site-packages", html), display.mistake.title
