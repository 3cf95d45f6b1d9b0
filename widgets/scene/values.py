"""The inspector's values of constants and variables: statistics, a histogram, and pages."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from graphcore.attrs import Array, TensorValue
from graphcore.dtypes import as_dtype
from graphcore.errors import GraphError
from graphcore.frontends.record import foreign_of
from graphcore.runtime import Session, get_default_session, live_sessions
from widgets.inspection import ValueRow, Values
from widgets.scene.words import counted

if TYPE_CHECKING:
    from graphcore.graph import Node

PAGE_ROWS: Final = 20
"""The rows of a page."""
MAX_COLUMNS: Final = 16
"""The most values of a row. A longer last dimension continues in further rows."""
SPLIT_COLUMNS: Final = 10
MAX_CHARACTERS: Final = 40
BINS: Final = 32
MAX_COUNTED: Final = 2**24
"""The most values of which statistics are made: kernels answer requests between cells."""
MAX_SAMPLE: Final = 2**16
"""The most values of which a histogram is made."""


def values_of(node: Node, first: int = 0) -> Values | None:
    """The values of a constant, or of a variable in a session.

    The session is the default session if it has the node's graph, else the one made last for this graph.

    Args:
        node: the node.
        first: the number of the first row of the page.

    Returns:
        None for other nodes.
    """
    role = node.registration.traits.role
    if node.is_opaque:
        return _foreign(node, first)
    if role == "constant":
        value = node.node_def.attr.get("value")
        return page_of(value.array, value.dtype.text, "", first) if isinstance(value, TensorValue) else None
    return _variable(node, first) if role == "variable" else None


def _foreign(node: Node, first: int) -> Values | None:
    """The values of a tensor of another framework's file, read now."""
    record = foreign_of(node.graph)
    try:
        array = None if record is None else record.value(node)
    except GraphError as error:
        return Values(note=f"The values cannot be read: {error.message}")
    if array is not None and node.outputs:
        return page_of(array, node.outputs[0].dtype.text, "", first)
    held = None if record is None or node.name not in record.nodes else record.nodes[node.name].weight
    return None if held is None else Values(note="The source does not hold the values")


def _variable(node: Node, first: int) -> Values:
    session = _session_of(node)
    if session is None:
        return Values(note="No session of this graph is open")
    place = f"in {_named(session)}"
    container, shared = (_text(node.node_def.attr.get(name)) for name in ("container", "shared_name"))
    value: Any = session.resources.value_of(container, shared or node.name)
    if value is None:
        return Values(note=f"Not initialised {place}")
    array: Array = np.asarray(value.get() if hasattr(value, "get") else value)
    return page_of(array, as_dtype(node.get_attr("dtype")).text, f"The value {place}", first)


def _session_of(node: Node) -> Session | None:
    default = get_default_session()
    if default is not None and default.graph is node.graph and not default.is_closed:
        return default
    return next((session for session in reversed(live_sessions()) if session.graph is node.graph), None)


def _named(session: Session) -> str:
    if session is get_default_session():
        return "the default session"
    others = sum(other.graph is session.graph for other in live_sessions()) - 1
    which = "the session" if others == 0 else f"the last of {others + 1} sessions, the one"
    return f"{which} made in {session.source.where}"


def page_of(array: Array, dtype: str, note: str, first: int = 0) -> Values:
    """One page of the values of an array, with statistics and a histogram."""
    width = array.shape[-1] if array.ndim else 1
    step = width if width <= MAX_COLUMNS else SPLIT_COLUMNS
    pieces = -(-width // step) if step else 0
    total = prod(array.shape[:-1]) * pieces
    first = max(0, min(first, total - 1)) // PAGE_ROWS * PAGE_ROWS
    rows = [_row(array, number, step, pieces) for number in range(first, min(first + PAGE_ROWS, total))]
    return Values(
        note=note,
        dtype=dtype,
        shape=f"[{','.join(map(str, array.shape))}]",
        statistics=list(_statistics(array)) if array.size > 1 else [],
        bins=_bins(array),
        rows=rows,
        first=first,
        total=total,
        page=PAGE_ROWS,
    )


def _row(array: Array, number: int, step: int, pieces: int) -> ValueRow:
    if array.ndim == 0:
        return ValueRow(index="", cells=[cell_text(array[()])])
    outer = [int(place) for place in np.unravel_index(number // pieces, array.shape[:-1])] if array.ndim > 1 else []
    start = number % pieces * step
    row = array[tuple(outer)][start : start + step]
    return ValueRow(index=str([*outer, start]), cells=[cell_text(value) for value in row])


def cell_text(value: Any) -> str:
    """A value of a tensor as a short text without line breaks."""
    if isinstance(value, bytes | str):
        text = repr(value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else value)
    elif isinstance(value, bool | np.bool_):
        text = "true" if value else "false"
    elif isinstance(value, complex | np.complexfloating):
        text = f"{complex(value):.4g}"
    elif isinstance(value, int | np.integer):
        text = str(int(value))
    else:
        text = _number(value)
    return text if len(text) <= MAX_CHARACTERS else f"{text[: MAX_CHARACTERS - 1]}…"


def _number(value: Any) -> str:
    try:
        return f"{float(value):.6g}"
    except (TypeError, ValueError):
        return str(value)


def _statistics(array: Array) -> Iterator[tuple[str, str]]:
    if array.dtype.kind in "OSU" or array.size == 0:
        yield "values", f"{array.size:,}"
        return
    values = array.reshape(-1)[:MAX_COUNTED]
    if values.size < array.size:
        yield "of the first", counted(values.size, "value")
    if values.dtype.kind == "b":
        true = int(np.count_nonzero(values))
        yield from (("true", f"{true:,}"), ("false", f"{values.size - true:,}"))
        return
    finite, nans, infinities = _finite(values)
    if finite.size and values.dtype.kind != "c":
        yield from (("min", cell_text(finite.min())), ("max", cell_text(finite.max())))
    if finite.size:
        kind = np.complex128 if values.dtype.kind == "c" else np.float64
        yield "mean", cell_text(finite.mean(dtype=kind))
    if finite.size and values.dtype.kind != "c":
        yield "std", cell_text(finite.std(dtype=np.float64))
    yield from (("NaN", f"{nans:,}"), ("Inf", f"{infinities:,}"))


def _finite(values: Array) -> tuple[Array, int, int]:
    """The finite values, and the numbers of NaNs and infinities."""
    if values.dtype.kind in "iu":
        return values, 0, 0
    values = values if values.dtype.kind in "fc" else values.astype(np.float64)
    is_finite = np.isfinite(values)
    if is_finite.all():
        return values, 0, 0
    nans = int(np.count_nonzero(np.isnan(values)))
    finite = values[is_finite]
    return finite, nans, values.size - finite.size - nans


def _bins(array: Array) -> list[int]:
    """The numbers of values in equal intervals between the least and the greatest."""
    if array.dtype.kind in "bcOSU" or array.size <= MAX_COLUMNS:
        return []
    values = array.reshape(-1)
    finite = _finite(values[:: -(-values.size // MAX_SAMPLE)])[0].astype(np.float64)
    if finite.size == 0 or not np.isfinite(np.ptp(finite)) or np.ptp(finite) == 0:
        return []
    return [int(count) for count in np.histogram(finite, BINS)[0]]


def _text(value: object) -> str:
    return value.decode() if isinstance(value, bytes) else ""
