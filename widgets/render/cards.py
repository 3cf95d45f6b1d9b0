"""Cards: pictures of definitions, whose fields are rows and whose references are lines between rows."""

from __future__ import annotations

import re
import unicodedata
from html import escape
from typing import Final, Literal, NamedTuple

from graphcore.support.shown import html_text, one_line
from widgets.render.static_display import figure, to_pre

Kind = Literal["node", "op", "function", "argument", "return", "device", "builder", "end"]
Tone = Literal["", "control", "error", "faint"]
HEAD: Final = -1
"""The number of a card's head, as an end of a line."""

_LETTER: Final = 6.65
_ROW: Final = 19
_HEAD: Final = 25
_PAD: Final = 10
_GAP: Final = 16
_BETWEEN: Final = 76
_MARGIN: Final = 10
_MOST_LETTERS: Final = 46
_MOST_ROWS: Final = 24
_LINE: Final = re.compile(r"var\((\w+)\)")

# The colours of widgets/js/src/style/theme.css: light, dark.
_COLOURS: Final[dict[str, tuple[str, str]]] = {
    "ink": ("#1b2430", "#e6eaf0"),
    "soft": ("#566171", "#a3aebd"),
    "rule": ("#dde2e9", "#30363f"),
    "paper": ("#ffffff", "#222831"),
    "edge": ("#7f8c9d", "#8592a3"),
    "error": ("#8d1414", "#ffb4b4"),
    "control": ("#5b4617", "#ead8ac"),
    "node": ("#f1f3f6", "#2a3038"),
    "node_line": ("#aab6c5", "#5a6675"),
    "op": ("#e6f4f0", "#16312c"),
    "op_line": ("#3f9281", "#4fb09c"),
    "function": ("#fdf2e4", "#352817"),
    "function_line": ("#c98736", "#d39a52"),
    "argument": ("#e8f1fd", "#1a2c45"),
    "argument_line": ("#4d88d8", "#6ca3ec"),
    "return": ("#e8f1fd", "#1a2c45"),
    "return_line": ("#4d88d8", "#6ca3ec"),
    "device": ("#eef2f7", "#252c36"),
    "device_line": ("#8295ad", "#7c8ea5"),
    "builder": ("#f7effd", "#2b1f3a"),
    "builder_line": ("#8d44c9", "#bf8bf0"),
    "end": ("#f7f2e6", "#322b1a"),
    "end_line": ("#a98e57", "#b99d61"),
}
_KINDS: Final = ("node", "op", "function", "argument", "return", "device", "builder", "end")
_RULES: Final = (
    "text{font-family:ui-monospace,Menlo,Consolas,'DejaVu Sans Mono','Noto Sans Mono CJK SC',monospace;font-size:11px;fill:var(ink);white-space:pre}"
    ".title{font-weight:700;font-size:12px}.label{fill:var(soft)}.faint{fill:var(soft);font-style:italic}.error{fill:var(error);font-weight:700}"
    ".control{fill:var(control)}.body{fill:var(paper)}.rule{stroke:var(rule)}.line{fill:none;stroke:var(edge);stroke-width:1.3}"
    ".tip{fill:var(edge)}.line.control{fill:none;stroke-dasharray:2 3}.line.refers{stroke-dasharray:6 3;stroke-width:1}.dot{fill:var(edge)}"
    + "".join([f".{kind} .head{{fill:var({kind})}}.{kind} .frame{{stroke:var({kind}_line)}}" for kind in _KINDS])
    + ".frame{fill:none;stroke-width:1.3}"
)


class Row(NamedTuple):
    """A field of a card: its name and value."""

    label: str
    value: str = ""
    tone: Tone = ""


class Card(NamedTuple):
    """A value with its fields. `name` identifies it in its diagram."""

    name: str
    title: str
    kind: Kind
    rows: tuple[Row, ...] = ()
    note: str = ""

    @property
    def shown_rows(self) -> tuple[Row, ...]:
        """The rows that are drawn: the first of many, with the number of the others."""
        if len(self.rows) <= _MOST_ROWS:
            return self.rows
        more = len(self.rows) - _MOST_ROWS + 1
        return (*self.rows[: _MOST_ROWS - 1], Row(f"… {more} more", "", "faint"))


class Link(NamedTuple):
    """A line between rows of two cards, given by names of cards and numbers of rows.

    `HEAD` stands for the head of a card. `refers` is a name that is looked up elsewhere; the others are as edges of graphs.
    """

    source: tuple[str, int]
    target: tuple[str, int]
    kind: Literal["data", "control", "refers"] = "data"


class Diagram(NamedTuple):
    """Cards in columns, from left to right, and lines between them. `text` says the same in words."""

    title: str
    columns: list[list[Card]]
    links: list[Link]
    text: str


def to_card_html(diagram: Diagram) -> str:
    """The diagram as an `<img>` with alt text and its text folded below it. No script, no style that a sanitiser has to remove."""
    words = html_text(one_line(diagram.title))
    return figure(to_card_svg(diagram), words, [(words, to_pre(html_text(diagram.text)))])


def to_card_svg(diagram: Diagram) -> str:
    """The diagram as SVG text without script or links, light or dark as its place in the page."""
    columns = [column for column in diagram.columns if column]
    heights = [sum(map(_height, column)) + _GAP * (len(column) - 1) for column in columns]
    tallest = max(heights, default=0)
    places: dict[str, tuple[float, float, float, Card]] = {}
    left = float(_MARGIN)
    for column, height in zip(columns, heights, strict=True):
        width, top = max(map(_width, column)), _MARGIN + (tallest - height) / 2
        for card in column:
            places[card.name] = (left, top, width, card)
            top += _height(card) + _GAP
        left += width + _BETWEEN
    width, height = left - _BETWEEN + _MARGIN if columns else 2 * _MARGIN, tallest + 2 * _MARGIN
    lines = [_line(link, places) for link in diagram.links if link.source[0] in places and link.target[0] in places]
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}" role="img">'
    style = f"<style>{_rules(0)}@media (prefers-color-scheme:dark){{{_rules(1)}}}</style>"
    cards = [_card(*place) for place in places.values()]
    return "\n".join([head, f"<title>{_content(diagram.title)}</title>{style}", *cards, *lines, "</svg>\n"])


def _rules(theme: int) -> str:
    return _LINE.sub(lambda name: _COLOURS[name[1]][theme], _RULES)


def _content(text: str) -> str:
    return escape(one_line(text))


def _fitting(text: str) -> str:
    text = one_line(text)
    return text if len(text) <= _MOST_LETTERS else text[: _MOST_LETTERS - 1] + "…"


def _letters(text: str) -> float:
    """The width of a text in letters of Latin; Chinese ones are wider."""
    return sum([1.66 if unicodedata.east_asian_width(letter) in "WF" else 1.0 for letter in text])


def _label_width(card: Card) -> float:
    return max([_letters(_fitting(row.label)) for row in card.shown_rows if row.value], default=0)


def _width(card: Card) -> float:
    labels = _label_width(card)
    rows = [labels + 2 + _letters(_fitting(row.value)) if row.value else _letters(_fitting(row.label)) for row in card.shown_rows]
    head = 1.1 * (_letters(_fitting(card.title)) + (2 + _letters(_fitting(card.note)) if card.note else 0))
    return max([*rows, head]) * _LETTER + 2 * _PAD


def _height(card: Card) -> float:
    return _HEAD + _ROW * len(card.shown_rows) + (4 if card.rows else 0)


def _card(left: float, top: float, width: float, card: Card) -> str:
    height, labels = _height(card), _label_width(card)
    note = f'<tspan class="label" font-weight="400" dx="10">{_content(_fitting(card.note))}</tspan>' if card.note else ""
    parts = [
        f'<g class="{card.kind}" transform="translate({left:.1f},{top:.1f})"><title>{_content(card.title)}</title>',
        f'<rect class="body" width="{width:.1f}" height="{height:.1f}" rx="7"/>',
        f'<path class="head" d="M0,{_HEAD}V7A7,7 0 0 1 7,0H{width - 7:.1f}A7,7 0 0 1 {width:.1f},7V{_HEAD}Z"/>'
        if card.rows
        else f'<rect class="head" width="{width:.1f}" height="{height:.1f}" rx="7"/>',
        f'<text class="title" x="{_PAD}" y="16.5">{_content(_fitting(card.title))}{note}</text>',
    ]
    for number, row in enumerate(card.shown_rows):
        base = _HEAD + _ROW * number + 14
        if number:
            parts.append(f'<path class="rule" d="M1,{base - 14}H{width - 1:.1f}"/>')
        whole = f"<title>{_content(f'{row.label} {row.value}')}</title>"
        parts.append(
            f'<text class="{row.tone or ("label" if row.value else "")}" x="{_PAD}" y="{base}">{_content(_fitting(row.label))}{whole}</text>'
        )
        if row.value:
            beside = _PAD + (labels + 2) * _LETTER
            parts.append(f'<text class="{row.tone}" x="{beside:.1f}" y="{base}">{_content(_fitting(row.value))}{whole}</text>')
    return "".join([*parts, f'<rect class="frame" width="{width:.1f}" height="{height:.1f}" rx="7"/></g>'])


def _line(link: Link, places: dict[str, tuple[float, float, float, Card]]) -> str:
    (x1, y1, width, card), (x2, y2, other_width, other) = places[link.source[0]], places[link.target[0]]
    begin, end = y1 + _middle(card, link.source[1]), y2 + _middle(other, link.target[1])
    if x2 > x1:
        start, tip, bend = x1 + width, x2, max(30.0, (x2 - x1 - width) / 2)
        path = f"M{start:.1f},{begin:.1f}C{start + bend:.1f},{begin:.1f} {tip - bend:.1f},{end:.1f} {tip - 6:.1f},{end:.1f}"
        arrow = f"M{tip - 7:.1f},{end - 4:.1f}L{tip:.1f},{end:.1f}L{tip - 7:.1f},{end + 4:.1f}Z"
    else:  # back to an earlier column, or within one
        start, tip = x1 + width, x2 + other_width
        bend = max(start, tip) + 34
        path = f"M{start:.1f},{begin:.1f}C{bend:.1f},{begin:.1f} {bend:.1f},{end:.1f} {tip + 6:.1f},{end:.1f}"
        arrow = f"M{tip + 7:.1f},{end - 4:.1f}L{tip:.1f},{end:.1f}L{tip + 7:.1f},{end + 4:.1f}Z"
    return f'<g><path class="line {link.kind}" d="{path}"/><circle class="dot" cx="{start:.1f}" cy="{begin:.1f}" r="2.2"/><path class="tip" d="{arrow}"/></g>'


def _middle(card: Card, row: int) -> float:
    return _HEAD / 2 if row == HEAD else _HEAD + _ROW * (min(row, len(card.shown_rows) - 1) + 0.5)
