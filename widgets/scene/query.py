"""The query language of the search: words, and terms such as `op:MatMul` and `strides=2`.

A page without a kernel reads queries by the same rules (`scene/query.ts`); `tests/data/search_cases.json` holds both to them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol

import msgspec

_PART: Final = re.compile(r'(?:"[^"]*"?|[^\s"])+')
_FIELD: Final = re.compile(r"(op|attr|shape|dtype|cell|device):(.+)", re.DOTALL)
_ATTR: Final = re.compile(r"([a-z_]\w*)=(.*)", re.DOTALL)


class Searched(Protocol):
    """The facts of one node that a query can test."""

    @property
    def name(self) -> str:
        """The name of the node."""

    @property
    def op(self) -> str:
        """The op."""

    @property
    def cell(self) -> str:
        """The label of the cell, "" outside a notebook."""

    @property
    def device(self) -> str:
        """The device it is on, "" if none is known."""

    @property
    def dtypes(self) -> Sequence[str]:
        """The dtypes of the outputs."""

    @property
    def shapes(self) -> Sequence[str]:
        """The shapes of the outputs, such as `[?,10]`."""

    @property
    def attrs(self) -> Mapping[str, str]:
        """The attrs as texts, by name."""


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """Facts that are known beforehand."""

    name: str
    op: str = ""
    cell: str = ""
    device: str = ""
    dtypes: list[str] = []
    shapes: list[str] = []
    attrs: dict[str, str] = {}


Test = Callable[[Searched], int | None]
"""The rank of a node for one part of a query, 0 the best; None if it does not match."""


class Query:
    """A parsed query. A node matches if each part of the query does, whatever the case.

    Args:
        text: words and terms, separated by white space; quotation marks keep white space together.
    """

    def __init__(self, text: str) -> None:
        self.tests = [_test(part.replace('"', "")) for part in _PART.findall(text.lower()) if part.strip('"')]

    def rank(self, node: Searched) -> int | None:
        """The rank of a node, 0 the best; None if it does not match."""
        total = 0
        for test in self.tests:
            rank = test(node)
            if rank is None:
                return None
            total += rank
        return total if self.tests else None


def _test(part: str) -> Test:
    field = _FIELD.fullmatch(part)
    if field is not None:
        return _field_test(field[1], field[2])
    attr = _ATTR.fullmatch(part)
    return _word_test(part) if attr is None else _attr_test(attr[1], attr[2])


def _field_test(field: str, wanted: str) -> Test:
    if field == "op":
        return lambda node: _unless(wanted in node.op.lower())
    if field == "dtype":
        return lambda node: _unless(any(dtype.startswith(wanted) for dtype in node.dtypes))
    if field == "device":
        return lambda node: _unless(wanted in node.device.lower())
    if field == "cell":
        return lambda node: _unless(f"[{wanted}]" in node.cell if wanted.isdecimal() else wanted in node.cell.lower())
    if field == "shape":
        return lambda node: _unless(any(_fits(shape.lower(), wanted) for shape in node.shapes))
    name, equals, value = wanted.partition("=")
    return _attr_test(name, value if equals else "")


def _fits(shape: str, wanted: str) -> bool:
    """True iff a shape has the dimension `wanted`, or contains the part of a shape `wanted`."""
    return wanted in shape if re.search(r"[\[\],]", wanted) else wanted in re.split(r"[\[\],]", shape)


def _attr_test(name: str, value: str) -> Test:
    return lambda node: _unless(any(key.lower() == name and value in text.lower() for key, text in node.attrs.items()))


def _word_test(word: str) -> Test:
    def rank(node: Searched) -> int | None:
        name = node.name.lower()
        if word in name:
            last = name.rpartition("/")[2]
            return 0 if word in {name, last} else 1 if last.startswith(word) else 2
        if word in node.op.lower():
            return 3
        return _unless(word in node.cell.lower(), 4)

    return rank


def _unless(matches: bool, rank: int = 0) -> int | None:
    return rank if matches else None
