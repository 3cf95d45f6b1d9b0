"""Files of numbers for overlays: JSON, CSV, profiles and traces of other tools."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from graphcore.errors import InvalidArgumentError, NotFoundError
from widgets.scene.overlay_profiles import MICROSECONDS, of_events, providers_of

MOST_BYTES: Final = 512 * 2**20
_NAMES: Final = frozenset({"name", "node", "operation", "op", "module", "tensor", "layer"})
_COUNTS: Final = frozenset({"rank", "count", "calls", "occurrences", "id", "program id", "index"})
"""Titles of numbers that are taken only where a table has no others."""
_SELF_TIME: Final = re.compile(r"total self[ -]time(?! on)(?!.*%)")
_UNIT: Final = re.compile(r"[\[(]([^\])%]+)[\])]$")


class Numbers(NamedTuple):
    """Numbers by name.

    Attributes:
        values: the numbers.
        unit: their unit, "" if it is not said.
        devices: the devices on which nodes ran, by name, as far as they are said.
    """

    values: Mapping[Any, Any]
    unit: str = ""
    devices: Mapping[str, str] = MappingProxyType({})


def read_numbers(path: Path) -> Numbers:
    """The numbers in a file.

    Raises:
        NotFoundError: there is no such file.
        InvalidArgumentError: it is too large, or holds no numbers by name.
    """
    if not path.is_file():
        raise NotFoundError(f"There is no file '{path}' with numbers")
    if path.stat().st_size > MOST_BYTES:
        raise InvalidArgumentError(f"Required a file of at most {MOST_BYTES:,} bytes, got {path.stat().st_size:,} in '{path}'")
    text = path.read_text(encoding="utf-8", errors="replace")
    try:
        numbers = _from_json(json.loads(text)) if text.lstrip()[:1] in {"{", "["} else _from_csv(text)
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise InvalidArgumentError(f"Required numbers by name in '{path}', and {error}") from None
    if not numbers.values:
        raise InvalidArgumentError(f"Required numbers by name in '{path}', got none: JSON, CSV, a profile, a trace, or node data")
    return numbers


def _from_json(data: Any) -> Numbers:
    if isinstance(data, Mapping) and isinstance(data.get("traceEvents"), list):
        return Numbers(of_events(data["traceEvents"]), MICROSECONDS)
    parts = [item for item in (data if isinstance(data, list) else [data, *data.values()]) if isinstance(item, Mapping)]
    table = next((part for part in parts if "cols" in part and "rows" in part), None)
    if table is not None:
        return _of_columns(table)
    if isinstance(data, list) and not any("results" in part for part in parts):
        return Numbers(of_events(data), MICROSECONDS, providers_of(data))
    numbers = {} if isinstance(data, list) else {name: float(value) for name, value in data.items() if _is_number(value)}
    return Numbers(numbers or _of_node_data(parts))


def _of_columns(table: Mapping[str, Any]) -> Numbers:
    """A table of XProf: `{"cols": [{"label": "Operation Name"}], "rows": [{"c": [{"v": "y"}]}]}`."""
    titles = [str(column.get("label") or column.get("id") or "") for column in table["cols"]]
    rows = [[str((cell or {}).get("v", "")) for cell in row["c"]] for row in table["rows"]]
    return _of_table([titles, *rows])


def _of_node_data(parts: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """The values of node data of Model Explorer, by graph or for one.

    They look like `{"results": {"node": {"value": 1.5}}}`.
    """
    numbers: dict[str, float] = {}
    for part in parts:
        for name, result in (part.get("results") or {}).items():
            value = result.get("value") if isinstance(result, Mapping) else result
            if value is not None and _is_number(value):
                numbers[name] = float(value)
    return numbers


def _from_csv(text: str) -> Numbers:
    return _of_table([row for row in csv.reader(io.StringIO(text)) if len(row) > 1])


def _of_table(rows: Sequence[Sequence[str]]) -> Numbers:
    """The columns of names and one of numbers; rows of one name add up. The first row may have titles.

    Of the times in a table of XProf it is the total self time. Without a title that says so, the names are the first column, and the numbers the first that
    are no ranks or counts.
    """
    if not rows:
        return Numbers({})
    titles = [re.sub(r"[#_]", " ", title).strip().lower() for title in rows[0]]
    exact = [place for place, title in enumerate(titles) if title in _NAMES or title.endswith(" name")]
    names = exact or [place for place, title in enumerate(titles) if title.startswith(tuple(_NAMES))][:1] or [0]
    numbers = [place for place, text in enumerate(rows[-1]) if place not in names and _number(text) is not None]
    if not numbers:
        return Numbers({})

    def rank(place: int) -> tuple[bool, bool]:
        title = titles[place] if place < len(titles) else ""
        return not _SELF_TIME.match(title), title in _COUNTS

    column = min(numbers, key=rank)
    unit = _UNIT.search(rows[0][column].strip()) if column < len(rows[0]) else None
    return Numbers(_added(rows, names, column), "" if unit is None else unit[1].replace("us", MICROSECONDS))


def _added(rows: Iterable[Sequence[str]], names: Sequence[int], column: int) -> dict[str, float]:
    numbers: dict[str, float] = {}
    for row in rows:
        value = _number(row[column]) if column < len(row) else None
        if value is not None:
            for name in dict.fromkeys([row[place] for place in names if place < len(row)]):
                numbers[name] = numbers.get(name, 0.0) + value
    return numbers


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
