"""Lookup tables: maps from keys to values, with the lifetime of the session."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ClassVar, Final

import msgspec
import numpy as np

from graphcore.dtypes import DType, string
from graphcore.errors import FailedPreconditionError, GraphError, InvalidArgumentError, UnimplementedError
from graphcore.opset.numerics.string_arrays import strings
from graphcore.support.files import file_bytes
from graphcore.support.forking import new_lock

_READERS: Final[dict[str, Callable[[bytes], Any]]] = {"string": bytes, "int32": int, "int64": int, "float": float, "double": float}


class TableSpec(msgspec.Struct, frozen=True):
    """The properties that a node declares of its table.

    Args:
        kind: the op without `V2`.
        key_dtype: the type of the keys.
        value_dtype: the type of the values.
        value_shape: the shape of a value.
        key_shape: the shape of a key.
        reserved: keys that no entry may have.
    """

    kind: str
    key_dtype: DType
    value_dtype: DType
    value_shape: tuple[int, ...] = ()
    key_shape: tuple[int, ...] = ()
    reserved: tuple[Any, ...] = ()

    @property
    def changes(self) -> bool:
        """True if entries can be added and removed at any time."""
        return self.kind != "HashTable"


class Table:
    """A table. Thread-safe.

    Attributes:
        name: the name in error texts.
        spec: its properties.
        op, owner: see `SharedResource`.
        shape: the shape of the handle itself.
    """

    shape: ClassVar[tuple[int, ...]] = ()

    def __init__(self, name: str, spec: TableSpec, op: str) -> None:
        self.name = name
        self.spec = spec
        self.op = op
        self.owner = ""
        self._lock = new_lock()
        self._entries: dict[Any, Any] | None = {} if spec.changes else None

    def __repr__(self) -> str:
        count = "not initialized" if self._entries is None else f"{len(self._entries)} entries"
        return f"<{self.spec.kind} '{self.name}': {count}>"

    def end(self) -> None:
        """Remove all entries."""
        with self._lock:
            self._entries = {} if self.spec.changes else None

    def size(self) -> int:
        """The number of entries, 0 if it is not initialized."""
        return len(self._entries or ())

    def find(self, keys: Any, default: Any) -> Any:
        """The values of keys: keys.shape without the shape of a key + the shape of a value.

        Args:
            keys: an array of keys.
            default: the value for other keys, or one for each key.

        Raises:
            FailedPreconditionError: it is not initialized.
        """
        prefix = keys.shape[: keys.ndim - len(self.spec.key_shape)]
        shape = (*prefix, *self.spec.value_shape)
        if default.shape not in (self.spec.value_shape, shape):
            allowed = f"{list(self.spec.value_shape)} or {list(shape)}"
            raise self._invalid(f"the default value must have shape {allowed}, got {list(default.shape)}")
        entries = self._entries
        if entries is None:
            raise FailedPreconditionError(
                f"Table not initialized: run tables_initializer() in this session first ({self.name})", op=self.op
            )
        defaults = np.broadcast_to(default, shape).reshape(-1, *self.spec.value_shape)
        values = [entries.get(key, defaults[i]) for i, key in enumerate(self.keys(keys))]
        return self._array(values, self.spec.value_dtype, self.spec.value_shape).reshape(shape)

    def initialize(self, keys: Iterable[Any], values: Iterable[Any]) -> None:
        """Give a table that cannot change its entries.

        Raises:
            FailedPreconditionError: it has others already.
            InvalidArgumentError: a key has two values.
        """
        entries: dict[Any, Any] = {}
        for key, value in zip(keys, values, strict=True):
            if entries.setdefault(key, value) != value:
                raise self._invalid(
                    f"HashTable has different value for same key. Key {key!r} has {entries[key]!r} and trying to add value {value!r}"
                )
        with self._lock:
            if self._entries is not None and self._entries != entries:
                raise FailedPreconditionError(f"Table already initialized ({self.name})", op=self.op)
            self._entries = entries

    def insert(self, keys: Any, values: Any, *, replace: bool = False) -> None:
        """Add entries, in place of those with the same keys, or of all.

        Raises:
            UnimplementedError: the table cannot change.
            InvalidArgumentError: the shapes do not fit, or a key is reserved.
        """
        wanted = (*keys.shape[: keys.ndim - len(self.spec.key_shape)], *self.spec.value_shape)
        if values.shape != wanted:
            raise self._invalid(f"Expected shape {list(wanted)} for value, got {list(values.shape)}")
        rows = values.reshape(-1, *self.spec.value_shape)
        added = list(zip(self.keys(keys), rows.tolist() if not self.spec.value_shape else rows, strict=True))
        if not self.spec.changes:
            if not replace:
                raise UnimplementedError("Insert not supported by HashTable implementations", op=self.op)
            self.initialize([key for key, _ in added], [value for _, value in added])
            return
        for key, _ in added:
            self._check(key)
        with self._lock:
            self._entries = {} if replace or self._entries is None else dict(self._entries)
            self._entries.update(added)

    def remove(self, keys: Any) -> None:
        """Remove the entries of keys, as far as there are any.

        Raises:
            UnimplementedError: the table cannot change.
            InvalidArgumentError: a key is reserved.
        """
        if not self.spec.changes:
            raise UnimplementedError("Remove not supported by HashTable implementations", op=self.op)
        removed = self.keys(keys)
        for key in removed:
            self._check(key)
        with self._lock:
            self._entries = _without(self._entries or {}, set(removed))

    def export(self) -> tuple[Any, Any]:
        """All keys and all values.

        Raises:
            FailedPreconditionError: it is not initialized.
        """
        if self._entries is None:
            raise FailedPreconditionError(f"HashTable is not initialized ({self.name})", op=self.op)
        entries = dict(self._entries)
        return self._array(entries, self.spec.key_dtype, self.spec.key_shape), self._array(
            entries.values(), self.spec.value_dtype, self.spec.value_shape
        )

    def keys(self, keys: Any) -> list[Any]:
        """An array of keys as dictionary keys."""
        if not self.spec.key_shape:
            return list(keys.reshape(-1).tolist())
        if keys.shape[keys.ndim - len(self.spec.key_shape) :] != self.spec.key_shape:
            raise self._invalid(f"Expected key shape {list(self.spec.key_shape)}, got {list(keys.shape)}")
        return [tuple(row) for row in keys.reshape(-1, int(np.prod(self.spec.key_shape))).tolist()]

    def _check(self, key: Any) -> None:
        if key in self.spec.reserved:
            raise self._invalid("Using the empty_key or the deleted_key as a table key is not allowed")

    def _array(self, values: Iterable[Any], dtype: DType, shape: tuple[int, ...]) -> Any:
        flat = list(values)
        if dtype is string and not shape:
            return strings(flat, (len(flat),))
        return np.array(flat, dtype.as_numpy).reshape(len(flat), *shape)

    def _invalid(self, text: str) -> GraphError:
        return InvalidArgumentError(f"{self.spec.kind} '{self.name}': {text}", op=self.op)


WHOLE_LINE: Final = -2
LINE_NUMBER: Final = -1


def columns_of_file(
    path: str, wanted: tuple[tuple[int, DType], tuple[int, DType]], size: int, delimiter: bytes, offset: int
) -> list[list[Any]]:
    """The keys and the values in the lines of a text file.

    Args:
        path: the file.
        wanted: for keys and values, the column, WHOLE_LINE or LINE_NUMBER, and the type.
        size: the number of lines to read, -1 for all.
        delimiter: separates columns.
        offset: the number of lines to leave out at the beginning.

    Raises:
        InvalidArgumentError: the file has fewer lines, a line fewer columns, or a number cannot be read.
        NotFoundError, FailedPreconditionError: the file cannot be read.
    """
    lines = file_bytes(path).split(b"\n")
    if lines and not lines[-1]:
        lines.pop()
    lines = [line.removesuffix(b"\r") for line in lines[offset:]]
    if size >= 0:
        if len(lines) < size:
            raise InvalidArgumentError(f"Invalid vocab_size in {path}: expected {size} but got {len(lines)}")
        lines = lines[:size]
    return [[_part(line, number, column, dtype, delimiter) for number, line in enumerate(lines)] for column, dtype in wanted]


def _part(line: bytes, number: int, column: int, dtype: DType, delimiter: bytes) -> Any:
    if column == LINE_NUMBER:
        return number
    text = line
    if column >= 0:
        parts = line.split(delimiter)
        if column >= len(parts):
            raise InvalidArgumentError(
                f"Invalid number of columns in line {number} ({line!r}): expected more than {column}, got {len(parts)}"
            )
        text = parts[column]
    try:
        return _READERS[dtype.text](text)
    except ValueError:
        raise InvalidArgumentError(f"Field {text!r} in line {number} is not a valid {dtype.text}.") from None


def _without(entries: dict[Any, Any], removed: set[Any]) -> dict[Any, Any]:
    return {key: value for key, value in entries.items() if key not in removed}
