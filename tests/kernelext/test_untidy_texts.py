"""Displays of texts with control characters and lone surrogates are whole and can be encoded."""

from __future__ import annotations

import base64
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from html.parser import HTMLParser

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

import widgets
from graphcore.definitions import OpDef
from graphcore.errors import InvalidArgumentError
from graphcore.support.shown import shown
from kernelext.curve import curve_svg
from kernelext.display.op_pages import op_page
from kernelext.errors.card import to_card
from kernelext.errors.text import error_lines, short_lines
from kernelext.errors.told import Told
from kernelext.progress import Progress
from tests.widgets.test_render_text import hostile_scene
from widgets.messages import SceneMessage
from widgets.render import to_page, to_static_html
from widgets.render.messages import plain
from widgets.render.saved_picture import SavedPicture, to_saved_bundle

ODD = st.sampled_from(
    ["\x00", "\x01", "\x1b[0m", "\r", "\x85", "\u202e", "\u2066", "\u200f", "\u200b", "\ud800", "\udfff", "\ufffe", "\U000e0041"]
)
TEXTS = st.lists(st.one_of(ODD, st.text(st.characters(exclude_categories=()), max_size=8)), max_size=6).map("".join)


def check(display: str) -> None:
    """It can be sent and printed, and nothing in it hides or turns other letters."""
    assert display.encode("utf-8").decode("utf-8") == display
    assert shown(display) == display


class Pictures(HTMLParser):
    """Parses each picture in an HTML display as XML."""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        source = dict(attrs).get("src") or ""
        if source.startswith("data:image/svg+xml;base64,"):
            svg = base64.b64decode(source.partition(",")[2]).decode("utf-8")
            ET.fromstring(svg)
            check(svg)


def check_html(display: str) -> None:
    check(display)
    Pictures().feed(display)


@given(TEXTS, TEXTS)
def test_progress_and_its_curves(title: str, name: str) -> None:
    progress = Progress(3, title=title)
    progress.series = {name: [(0, 1.0), (1, 2.0)]}
    check_html(progress._repr_html_())
    check(repr(progress))
    ET.fromstring(curve_svg(progress.series, 3))


@given(TEXTS)
def test_op_pages(text: str) -> None:
    check(op_page(OpDef(name="_x", summary=text, description=text), lambda _: None))


@given(TEXTS)
def test_displays_of_errors(text: str) -> None:
    told = Told(kind="InvalidArgumentError", message=text or "x", facts=[("came", text)], suggestion=text, chains=text, traceback=text)
    check_html(to_card(told))
    for line in (*error_lines(told, plain=True), *(re.sub(r"\x1b\[[012]m", "", line) for line in (*error_lines(told), *short_lines(told)))):
        check(line)
    check(str(InvalidArgumentError(text).advise(text or "x")))


@settings(max_examples=15, deadline=None)
@given(TEXTS)
def test_pictures_and_pages(text: str) -> None:
    scene = hostile_scene(text)
    forms: list[Callable[[], str]] = [
        lambda: widgets.to_svg(scene),
        lambda: widgets.to_outline(scene),
        lambda: widgets.to_mermaid(scene),
        lambda: widgets.to_dot(scene).source,
        lambda: re.sub(r'(?s)<script type="application/json".*?</script>', "", to_page(scene)).partition("<script>")[0],
        lambda: to_static_html(scene),
    ]
    for form in forms:
        check_html(form())
    ET.fromstring(widgets.to_svg(scene))
    bundle = to_saved_bundle(SavedPicture(message=SceneMessage(scene=scene)))
    assert msgspec.json.decode(msgspec.json.encode(bundle)) == bundle
    assert msgspec.json.encode(plain(SceneMessage(scene=scene)))
