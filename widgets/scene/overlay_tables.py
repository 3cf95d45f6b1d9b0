"""Tables of names and numbers for overlays: of files, of pandas and of polars."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from widgets.scene.overlay_profiles import MICROSECONDS, OpCalls

_NAMES: Final = frozenset({"name", "node", "operation", "op", "module", "tensor", "layer"})
_COUNTS: Final = frozenset({"", "rank", "count", "calls", "occurrences", "id", "program id", "index"})
"""Titles of numbers that are taken only where a table has no others."""
_SELF_TIME: Final = re.compile(r"total self[ -]time(?! on)(?!.*%)")
_UNIT: Final = re.compile(r"[\[(]([^\])%]+)[\])]$")


class Numbers(NamedTuple):
    """Numbers by name.

    Attributes:
        values: the numbers.
        unit: their unit, "" if it is not said.
        devices: the devices on which nodes ran, by name, as far as they are said.
        calls: in place of numbers, the calls of PyTorch's ops.
    """

    values: Mapping[Any, Any]
    unit: str = ""
    devices: Mapping[str, str] = MappingProxyType({})
    calls: Sequence[OpCalls] = ()


def of_table(rows: Sequence[Sequence[Any]]) -> Numbers:
    """The columns of names and one of numbers; rows of one name add up. The first row may have titles.

    Of the times in a table of XProf it is the total self time. Without a title that says so, the names are the first column of text, and the numbers the first
    that are no ranks or counts.
    """
    if not rows:
        return Numbers({})
    titles = [re.sub(r"[#_]", " ", str(title)).strip().lower() for title in rows[0]]
    texts = [place for place, cell in enumerate(rows[-1]) if number_of(cell) is None]
    exact = [place for place, title in enumerate(titles) if title in _NAMES or title.endswith(" name")]
    similar = [place for place in texts if place < len(titles) and titles[place].startswith(tuple(_NAMES))]
    names = exact or similar[:1] or texts[:1] or [0]
    numbers = [place for place, cell in enumerate(rows[-1]) if place not in names and number_of(cell) is not None]
    if not numbers:
        return Numbers({})

    def rank(place: int) -> tuple[bool, bool]:
        title = titles[place] if place < len(titles) else ""
        return not _SELF_TIME.match(title), title in _COUNTS

    column = min(numbers, key=rank)
    unit = _UNIT.search(str(rows[0][column]).strip()) if column < len(rows[0]) else None
    return Numbers(_added(rows, names, column), "" if unit is None else unit[1].replace("us", MICROSECONDS))


def _added(rows: Iterable[Sequence[Any]], names: Sequence[int], column: int) -> dict[Any, float]:
    numbers: dict[Any, float] = {}
    for row in rows:
        value = number_of(row[column]) if column < len(row) else None
        if value is not None:
            for name in dict.fromkeys([row[place] for place in names if place < len(row)]):
                numbers[name] = numbers.get(name, 0.0) + value
    return numbers


def of_records(records: Sequence[Mapping[Any, Any]]) -> Numbers:
    """Those of rows that have titles themselves: `{"layer": "conv1", "ms": 1.5}`."""
    titles = list(dict.fromkeys([title for record in records for title in record]))
    return of_table([titles, *[[record.get(title) for title in titles] for record in records]])


def number_of(cell: Any) -> float | None:
    """The number in a cell, None for any other."""
    if isinstance(cell, bool):
        return None
    try:
        return float(cell)
    except (TypeError, ValueError):
        return None
