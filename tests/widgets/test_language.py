"""The words of pictures and panes in another language."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import graphcore as gc
import widgets
from tests.lint.files import ROOT
from widgets.language import CHINESE, LANGUAGES, set_language

SOURCES = [*sorted((ROOT / "widgets/js/src").rglob("*.ts")), *sorted((ROOT / "widgets").rglob("*.py"))]
LITERAL = r'"((?:[^"\\\n]|\\.)*)"'
SAID = re.compile(rf"(?:\bword\(|\bsection\(|\bsays:|iconButton\(\s*ICONS\.\w+,|readonly title =)\s*{LITERAL}")
FIELD = re.compile(r"\{\w+\}")


@pytest.fixture(autouse=True)
def _english_again() -> Iterator[None]:
    yield
    set_language("en")


def sources() -> dict[Path, str]:
    return {path: path.read_text("utf-8") for path in SOURCES if path.name not in {"language.py", "generated.ts"}}


def test_each_word_that_the_sources_say_has_a_translation() -> None:
    missing = {text for source in sources().values() for text in SAID.findall(source)} - CHINESE.keys()
    assert missing == set()


def test_the_table_has_no_word_that_nobody_says() -> None:
    literals = {text for source in sources().values() for text in re.findall(LITERAL, source)}
    tones = re.findall(r"^  (\w+): \d,$", (ROOT / "widgets/js/src/page/edges.ts").read_text("utf-8"), re.MULTILINE)
    dated = [f"{state} with the last cell" for state in ("new", "removed", "changed")]
    assert CHINESE.keys() - literals - {*tones, *dated} == set()


def test_translations_have_the_fields_of_the_originals() -> None:
    different = [text for text, said in CHINESE.items() if sorted(FIELD.findall(text)) != sorted(FIELD.findall(said))]
    assert different == []


def test_pictures_speak_the_chosen_language_and_names_stay() -> None:
    with gc.Graph().as_default() as graph, gc.name_scope("Legend"):
        for number in range(3):
            gc.constant(float(number), name="Inputs")
    state = widgets.SceneState()
    state.mode = "none"
    english = widgets.to_svg(graph, state)
    assert "scope · 3 nodes" in english
    set_language("zh")
    picture = widgets.to_svg(graph, state)
    assert "作用域 · 3 个节点" in picture
    assert ">Legend<" in picture
    assert 'lang="zh"' in widgets.to_html(graph)


def test_a_language_without_a_table_is_refused() -> None:
    with pytest.raises(gc.errors.InvalidArgumentError, match=r"Required a language of en, zh, got 'de'"):
        set_language("de")
    assert LANGUAGES == ("en", "zh")
