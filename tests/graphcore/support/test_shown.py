"""Texts as they are shown: characters without a look of their own are escapes."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphcore.errors import InvalidArgumentError
from graphcore.support.shown import html_text, one_line, shown

CASES = json.loads((Path(__file__).parents[2] / "data" / "shown_cases.json").read_text(encoding="utf-8"))
ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=60)


@pytest.mark.parametrize(("text", "whole", "line"), CASES)
def test_what_has_no_look_of_its_own_is_shown_as_an_escape(text: str, whole: str, line: str) -> None:
    assert shown(text) == whole
    assert one_line(text) == line


@given(ANY_TEXT)
def test_any_text_is_shown_in_utf_8_and_xml_once_and_for_all(text: str) -> None:
    told = shown(text)
    assert told.encode("utf-8").decode("utf-8") == told
    assert shown(told) == told
    assert (ET.fromstring(f"<a>{html_text(text)}</a>").text or "") == told


@given(ANY_TEXT)
def test_the_message_of_an_error_can_be_printed(text: str) -> None:
    error = InvalidArgumentError(f"got {text}")
    assert shown(str(error)) == str(error) == str(InvalidArgumentError(error.message))
