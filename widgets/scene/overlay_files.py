"""Files of numbers for overlays: JSON, CSV, profiles and traces of other tools."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from graphcore.errors import InvalidArgumentError, NotFoundError

MOST_BYTES: Final = 512 * 2**20
_NAMES: Final = ("name", "node", "operation", "op", "module", "tensor", "layer")
_KERNEL: Final = "_kernel_time"
"""The end of the names of nodes in a profile of ONNX Runtime."""


def read_numbers(path: Path) -> dict[str, float]:
    """The numbers in a file, by name.

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
    if not numbers:
        raise InvalidArgumentError(f"Required numbers by name in '{path}', got none: JSON, CSV, a profile, a trace, or node data")
    return numbers


def _from_json(data: Any) -> dict[str, float]:
    if isinstance(data, Mapping) and isinstance(data.get("traceEvents"), list):
        return _of_events(data["traceEvents"])
    if isinstance(data, list):
        return _of_node_data(data) if any("results" in item for item in data if isinstance(item, Mapping)) else _of_events(data)
    numbers = {name: float(value) for name, value in data.items() if isinstance(value, int | float) and not isinstance(value, bool)}
    return numbers or _of_node_data([data, *data.values()])


def _of_events(events: Iterable[Any]) -> dict[str, float]:
    """The microseconds of nodes in a profile of ONNX Runtime, else of events of a trace by name."""
    nodes: dict[str, float] = {}
    others: dict[str, float] = {}
    for event in events:
        if not isinstance(event, Mapping) or not isinstance(event.get("dur"), int | float):
            continue
        name = str(event.get("name", ""))
        sums, name = (nodes, name.removesuffix(_KERNEL)) if name.endswith(_KERNEL) else (others, name)
        sums[name] = sums.get(name, 0.0) + event["dur"]
    return nodes or others


def _of_node_data(parts: Iterable[Any]) -> dict[str, float]:
    """The values of node data of Model Explorer, by graph or for one.

    They look like `{"results": {"node": {"value": 1.5}}}`.
    """
    numbers: dict[str, float] = {}
    for part in parts:
        results = part.get("results") if isinstance(part, Mapping) else None
        for name, result in (results or {}).items():
            value = result.get("value") if isinstance(result, Mapping) else result
            if isinstance(value, int | float):
                numbers[name] = float(value)
    return numbers


def _from_csv(text: str) -> dict[str, float]:
    """The first column of names and the first of numbers; rows of one name add up."""
    rows = [row for row in csv.reader(io.StringIO(text)) if len(row) > 1]
    if not rows:
        return {}
    titles = [title.strip().lower() for title in rows[0]]
    at = next((place for place, title in enumerate(titles) if any(title.startswith(word) for word in _NAMES)), 0)
    column = next((place for place in range(len(rows[-1])) if place != at and _number(rows[-1][place]) is not None), None)
    numbers: dict[str, float] = {}
    for row in rows:
        value = _number(row[column]) if column is not None and column < len(row) else None
        if value is not None and at < len(row):
            numbers[row[at]] = numbers.get(row[at], 0.0) + value
    return numbers


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
