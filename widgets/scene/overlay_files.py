"""Files of numbers for overlays: JSON, CSV, profiles and traces of other tools."""

from __future__ import annotations

import csv
import gzip
import io
import json
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from graphcore.errors import InvalidArgumentError, NotFoundError
from widgets.scene.overlay_profiles import MICROSECONDS, calls_in, of_events, providers_of
from widgets.scene.overlay_tables import Numbers, number_of, of_records, of_table

MOST_BYTES: Final = 512 * 2**20
_GZIP: Final = b"\x1f\x8b"


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
    text = _text_of(path)
    try:
        numbers = _from_json(json.loads(text)) if text.lstrip()[:1] in {"{", "["} else _from_csv(text)
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise InvalidArgumentError(f"Required numbers by name in '{path}', and {error}") from None
    if not (numbers.values or numbers.calls):
        raise InvalidArgumentError(f"Required numbers by name in '{path}', got none: JSON, CSV, a profile, a trace, or node data")
    return numbers


def _text_of(path: Path) -> str:
    """The text of a file, which may be packed by gzip."""
    data = path.read_bytes()
    if data.startswith(_GZIP):
        try:
            with gzip.GzipFile(fileobj=io.BytesIO(data)) as packed:
                data = packed.read(MOST_BYTES + 1)
        except (OSError, EOFError, zlib.error) as error:
            raise InvalidArgumentError(f"Required numbers by name in '{path}', and {error}") from None
        if len(data) > MOST_BYTES:
            raise InvalidArgumentError(f"Required a file of at most {MOST_BYTES:,} bytes when unpacked, got more in '{path}'")
    return data.decode("utf-8-sig", errors="replace")


def _from_json(data: Any) -> Numbers:
    if isinstance(data, Mapping) and isinstance(data.get("traceEvents"), list):
        return _of_trace(data["traceEvents"])
    if isinstance(data, Mapping) and isinstance(data.get("graphsData"), Mapping):
        return _from_json(data["graphsData"])
    parts = [item for item in (data if isinstance(data, list) else [data, *data.values()]) if isinstance(item, Mapping)]
    table = next((part for part in parts if "cols" in part and "rows" in part), None)
    if table is not None:
        return _of_columns(table)
    if isinstance(data, list) and not any("results" in part for part in parts):
        return _of_trace(data) if any("dur" in part for part in parts) else of_records(parts)
    numbers = {} if isinstance(data, list) else {name: float(value) for name, value in data.items() if _is_number(value)}
    numbers = numbers or _of_node_data(parts)
    if not numbers and isinstance(data, Mapping) and data and len(parts) == 1 + len(data):  # by columns, as pandas writes it
        return of_records([{title: data[title].get(row) for title in data} for row in parts[1]])
    return Numbers(numbers)


def _of_trace(events: list[Any]) -> Numbers:
    return Numbers(of_events(events), MICROSECONDS, providers_of(events), calls_in(events))


def _of_columns(table: Mapping[str, Any]) -> Numbers:
    """A table of XProf: `{"cols": [{"label": "Operation Name"}], "rows": [{"c": [{"v": "y"}]}]}`."""
    titles = [str(column.get("label") or column.get("id") or "") for column in table["cols"]]
    rows = [[str((cell or {}).get("v", "")) for cell in row["c"]] for row in table["rows"]]
    return of_table([titles, *rows])


def _of_node_data(parts: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """The values of node data of Model Explorer, by graph or for one.

    They look like `{"results": {"node": {"value": 1.5}}}`.
    """
    numbers: dict[str, float] = {}
    for part in parts:
        for name, result in (part.get("results") or {}).items():
            value = result.get("value") if isinstance(result, Mapping) else result
            number = number_of(value)
            if number is not None:
                numbers[name] = number
    return numbers


def _from_csv(text: str) -> Numbers:
    first = text.partition("\n")[0]
    return of_table([row for row in csv.reader(io.StringIO(text), delimiter=max(",\t;", key=first.count)) if len(row) > 1])


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
