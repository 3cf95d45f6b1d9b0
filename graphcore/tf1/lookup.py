"""`tf.lookup` and `tf.contrib.lookup`: tables from keys to values."""

from __future__ import annotations

from typing import Any

from graphcore.dtypes import DType, as_dtype, int64, string
from graphcore.errors import InvalidArgumentError
from graphcore.graph import Node, Tensor, get_default_graph
from graphcore.tf1.framework import add_to_collection, convert_to_tensor, name_scope
from graphcore.tf1.math.elementwise import cast
from graphcore.tf1.sparse import SparseTensor
from graphcore.tf1.variables.collections import GraphKeys

__all__ = [
    "HashTable",
    "KeyValueTensorInitializer",
    "MutableHashTable",
    "StaticHashTable",
    "TextFileIndex",
    "TextFileInitializer",
    "index_table_from_file",
    "index_table_from_tensor",
    "index_to_string_table_from_file",
    "index_to_string_table_from_tensor",
]


class TextFileIndex:
    """The parts of a line that are not columns."""

    WHOLE_LINE = -2
    LINE_NUMBER = -1


class KeyValueTensorInitializer:
    """The entries of a table, from two vectors.

    Args:
        keys: [n].
        values: [n].
        key_dtype: the type of the keys, by default that of `keys`.
        value_dtype: the type of the values, likewise.
        name: the name of the node.
    """

    def __init__(self, keys: Any, values: Any, key_dtype: Any = None, value_dtype: Any = None, name: str | None = None) -> None:
        self._keys = convert_to_tensor(keys, key_dtype and as_dtype(key_dtype))
        self._values = convert_to_tensor(values, value_dtype and as_dtype(value_dtype))
        self.key_dtype: DType = self._keys.dtype.base
        self.value_dtype: DType = self._values.dtype.base
        self._name = name or "key_value_init"

    def initialize(self, handle: Tensor) -> Node:
        """The node that fills the table behind a handle."""
        return get_default_graph().apply_op("InitializeTableV2", [handle, self._keys, self._values], {}, self._name)


class TextFileInitializer:
    """The entries of a table, from the lines of a text file.

    Args:
        filename: the path, at run time.
        key_dtype: the type of the keys.
        key_index: their column, `TextFileIndex.WHOLE_LINE` or `TextFileIndex.LINE_NUMBER`.
        value_dtype: the type of the values.
        value_index: their column, likewise.
        vocab_size: the number of lines; None for all.
        delimiter: the character between columns.
        name: the name of the node.
    """

    def __init__(
        self,
        filename: Any,
        key_dtype: Any,
        key_index: int,
        value_dtype: Any,
        value_index: int,
        vocab_size: int | None = None,
        delimiter: str = "\t",
        name: str | None = None,
    ) -> None:
        self._filename = filename
        self.key_dtype: DType = as_dtype(key_dtype)
        self.value_dtype: DType = as_dtype(value_dtype)
        self._name = name or "text_file_init"
        self._attrs = {
            "key_index": int(key_index),
            "value_index": int(value_index),
            "vocab_size": -1 if vocab_size is None else vocab_size,
            "delimiter": delimiter,
        }

    def initialize(self, handle: Tensor) -> Node:
        """The node that fills the table behind a handle."""
        filename = convert_to_tensor(self._filename, string)
        add_to_collection(GraphKeys.ASSET_FILEPATHS, filename)
        return get_default_graph().apply_op("InitializeTableFromTextFileV2", [handle, filename], self._attrs, self._name)


class _Table:
    """The common part of tables: a handle, look-ups and a size."""

    def __init__(self, handle: Tensor, key_dtype: DType, value_dtype: DType, default_value: Any, name: str) -> None:
        self.resource_handle = self.table_ref = handle
        self.key_dtype = key_dtype
        self.value_dtype = value_dtype
        self.name = name
        self._default = convert_to_tensor(default_value, value_dtype)

    def __repr__(self) -> str:
        return f"<gc.lookup.{type(self).__name__} '{self.name}' of {self.key_dtype.text} to {self.value_dtype.text}>"

    def lookup(self, keys: Any, name: str | None = None) -> Any:
        """The values of keys, in their shape; of a sparse tensor a sparse one.

        Raises:
            InvalidArgumentError: keys of another type.
        """
        if isinstance(keys, SparseTensor):
            return SparseTensor(keys.indices, self.lookup(keys.values, name), keys.dense_shape)
        return _add("LookupTableFindV2", [self.resource_handle, convert_to_tensor(keys, self.key_dtype), self._default], name)[0]

    def size(self, name: str | None = None) -> Tensor:
        """The number of entries, an int64 scalar."""
        count: Tensor = _add("LookupTableSizeV2", [self.resource_handle], name)[0]
        return count

    def export(self, name: str | None = None) -> tuple[Tensor, Tensor]:
        """All keys and all values."""
        keys, values = _add("LookupTableExportV2", [self.resource_handle], name, Tkeys=self.key_dtype, Tvalues=self.value_dtype)
        return keys, values


def _add(op: str, inputs: list[Any], name: str | None, **attrs: Any) -> Any:
    return get_default_graph().apply_op(op, inputs, attrs, name).outputs


class StaticHashTable(_Table):
    """A table that `tables_initializer` gives its entries.

    Args:
        initializer: the entries, such as a `KeyValueTensorInitializer`.
        default_value: the value of other keys.
        shared_name: tables with the same one are one table.
        name: the name of the node.
    """

    def __init__(self, initializer: Any, default_value: Any, shared_name: str | None = None, name: str | None = None) -> None:
        label = name or "hash_table"
        attrs = {"key_dtype": initializer.key_dtype, "value_dtype": initializer.value_dtype, "shared_name": shared_name or ""}
        with name_scope(label):
            node = get_default_graph().apply_op("HashTableV2", [], attrs, label)
            super().__init__(node.outputs[0], initializer.key_dtype, initializer.value_dtype, default_value, node.name)
            self.initializer = self.init = initializer.initialize(node.outputs[0])
        add_to_collection(GraphKeys.TABLE_INITIALIZERS, self.initializer)


HashTable = StaticHashTable


class MutableHashTable(_Table):
    """A table with entries that change, empty at first.

    Args:
        key_dtype: the type of the keys.
        value_dtype: the type of the values.
        default_value: the value of other keys.
        shared_name: tables with the same one are one table.
        name: the name of the node.
    """

    def __init__(
        self, key_dtype: Any, value_dtype: Any, default_value: Any, shared_name: str | None = None, name: str = "MutableHashTable"
    ) -> None:
        kinds = as_dtype(key_dtype), as_dtype(value_dtype)
        attrs = {"key_dtype": kinds[0], "value_dtype": kinds[1], "shared_name": shared_name or ""}
        node = get_default_graph().apply_op("MutableHashTableV2", [], attrs, name)
        super().__init__(node.outputs[0], *kinds, default_value, node.name)

    def insert(self, keys: Any, values: Any, name: str | None = None) -> Node:
        """A node that adds entries, in place of those with the same keys."""
        inputs = [self.resource_handle, convert_to_tensor(keys, self.key_dtype), convert_to_tensor(values, self.value_dtype)]
        return get_default_graph().apply_op("LookupTableInsertV2", inputs, {}, name)

    def remove(self, keys: Any, name: str | None = None) -> Node:
        """A node that removes the entries of keys."""
        return get_default_graph().apply_op(
            "LookupTableRemoveV2", [self.resource_handle, convert_to_tensor(keys, self.key_dtype)], {}, name
        )


class _WithBuckets(_Table):
    """A table in which other keys are distributed over buckets after the entries."""

    def __init__(self, table: StaticHashTable, entries: int | None, buckets: int) -> None:
        super().__init__(table.resource_handle, table.key_dtype, table.value_dtype, -1, table.name)
        self.initializer = self.init = table.initializer
        self._entries, self._buckets = entries, buckets

    def lookup(self, keys: Any, name: str | None = None) -> Any:
        """The number of each key; for other keys, the number of a bucket."""
        if isinstance(keys, SparseTensor):
            return super().lookup(keys, name)
        key_tensor = convert_to_tensor(keys, self.key_dtype)
        values = super().lookup(key_tensor, name)
        text = key_tensor if self.key_dtype is string else _add("AsString", [key_tensor], None)[0]
        bucket = _add("StringToHashBucketFast", [text], None, num_buckets=self._buckets)[0]
        start = super().size() if self._entries is None else convert_to_tensor(self._entries, int64)
        missing = _add("Equal", [values, self._default], None)[0]
        return _add("SelectV2", [missing, bucket + start, values], None)[0]

    def size(self, name: str | None = None) -> Tensor:
        """The number of entries and buckets."""
        return super().size(name) + convert_to_tensor(self._buckets, int64)


def index_table_from_tensor(
    vocabulary_list: Any = None,
    num_oov_buckets: int = 0,
    default_value: int = -1,
    hasher_spec: Any = None,
    dtype: Any = string,
    name: str | None = None,
    mapping: Any = None,
) -> Any:
    """A table of the numbers of keys in a list.

    Args:
        vocabulary_list: the keys, different ones.
        num_oov_buckets: the number of buckets for other keys, after the keys.
        default_value: the number of other keys without buckets.
        hasher_spec: must be the default.
        dtype: the type of the keys; whole numbers are looked up as int64.
        name: the name scope.
        mapping: the name that `tf.contrib.lookup` has for `vocabulary_list`.
    """
    if hasher_spec is not None and getattr(hasher_spec, "hasher", "fasthash") != "fasthash":
        raise InvalidArgumentError(f"index_table_from_tensor: hasher_spec must be the default, got {hasher_spec!r}")
    with name_scope(name or "string_to_index"):
        keys = convert_to_tensor(mapping if vocabulary_list is None else vocabulary_list, None if as_dtype(dtype) is not string else string)
        if keys.dtype.is_integer:
            keys = cast(keys, int64)
        count = keys.shape.num_elements
        if count is None:
            raise InvalidArgumentError("index_table_from_tensor: required a vocabulary of known size")
        table = StaticHashTable(KeyValueTensorInitializer(keys, list(range(count)), None, int64), default_value)
        return _WithBuckets(table, count, num_oov_buckets) if num_oov_buckets else table


def index_table_from_file(
    vocabulary_file: Any = None,
    num_oov_buckets: int = 0,
    vocab_size: int | None = None,
    default_value: int = -1,
    hasher_spec: Any = None,
    key_dtype: Any = string,
    name: str | None = None,
    key_column_index: int = TextFileIndex.WHOLE_LINE,
    value_column_index: int = TextFileIndex.LINE_NUMBER,
    delimiter: str = "\t",
) -> Any:
    """A table of the numbers of the lines of a file. See `index_table_from_tensor` for the other arguments."""
    if hasher_spec is not None and getattr(hasher_spec, "hasher", "fasthash") != "fasthash":
        raise InvalidArgumentError(f"index_table_from_file: hasher_spec must be the default, got {hasher_spec!r}")
    with name_scope(name or "string_to_index"):
        kind = as_dtype(key_dtype)
        entries = TextFileInitializer(
            vocabulary_file, int64 if kind.is_integer else kind, key_column_index, int64, value_column_index, vocab_size, delimiter
        )
        table = StaticHashTable(entries, default_value)
        return _WithBuckets(table, vocab_size, num_oov_buckets) if num_oov_buckets else table


def index_to_string_table_from_tensor(
    vocabulary_list: Any = None, default_value: str = "UNK", name: str | None = None, mapping: Any = None
) -> StaticHashTable:
    """A table of the strings at numbers. `mapping` is the name of `vocabulary_list` in `tf.contrib.lookup`."""
    with name_scope(name or "index_to_string"):
        values = convert_to_tensor(mapping if vocabulary_list is None else vocabulary_list, string)
        count = values.shape.num_elements
        if count is None:
            raise InvalidArgumentError("index_to_string_table_from_tensor: required a vocabulary of known size")
        return StaticHashTable(KeyValueTensorInitializer(list(range(count)), values, int64, string), default_value)


def index_to_string_table_from_file(
    vocabulary_file: Any,
    vocab_size: int | None = None,
    default_value: str = "UNK",
    name: str | None = None,
    key_column_index: int = TextFileIndex.LINE_NUMBER,
    value_column_index: int = TextFileIndex.WHOLE_LINE,
    delimiter: str = "\t",
) -> StaticHashTable:
    """A table of the lines of a file at their numbers."""
    with name_scope(name or "index_to_string"):
        entries = TextFileInitializer(vocabulary_file, int64, key_column_index, string, value_column_index, vocab_size, delimiter)
        return StaticHashTable(entries, default_value)
