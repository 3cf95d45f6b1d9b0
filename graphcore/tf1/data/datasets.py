"""`tf.data.Dataset`: elements made one after another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from operator import add
from typing import Any, Final

import numpy as np

from graphcore import dtypes
from graphcore.errors import InvalidArgumentError, UnimplementedError
from graphcore.graph import Graph, Node, Tensor, get_default_graph
from graphcore.graph.model.argument_errors import refuse
from graphcore.shapes import Shape
from graphcore.tf1.data.functions import TracedFunction, node_with_function
from graphcore.tf1.data.iterators import Iterator, make_initializable_iterator, make_one_shot_iterator
from graphcore.tf1.data.structures import (
    DatasetHandle,
    Spec,
    changed,
    common_shape,
    declared,
    filled,
    flatten,
    leaves_of_shapes,
    padded_shape,
    refuse_sparse,
    shape_of_batch,
)
from graphcore.tf1.framework import convert_to_tensor
from graphcore.tf1.random import seed_attrs

_MANY: Final = 2**62
_BYTES_OF_BUFFER: Final = 256 * 1024


class Dataset(DatasetHandle):
    """Elements of one structure: tensors, or nested tuples and dicts of tensors.

    It is made by the static methods, and by the methods of another one.
    """

    def __repr__(self) -> str:
        return f"<gc.data.Dataset '{self.variant.node.name}' of {self.output_types}, shapes {self.output_shapes}>"

    # ---- from tensors, ranges and generators -----------------------------------------------------------------------

    @staticmethod
    def from_tensors(tensors: Any) -> Dataset:
        """One element.

        Args:
            tensors: a tensor or value, or nested tuples and dicts of these.
        """
        return _from_tensors("TensorDataset", tensors, lambda shape: shape)

    @staticmethod
    def from_tensor_slices(tensors: Any) -> Dataset:
        """An element for each slice along the first dimension.

        Args:
            tensors: as for `from_tensors`, all with one first size.

        Raises:
            InvalidArgumentError: a scalar, different sizes, or a sparse tensor.
        """
        refuse_sparse(flatten(tensors)[0], "from_tensor_slices", "make the rows dense by gc.sparse_tensor_to_dense")
        return _from_tensors("TensorSliceDataset", tensors, _slice_shape)

    @staticmethod
    def range(*args: Any) -> Dataset:
        """Whole numbers (int64), from the arguments of Python's `range`."""
        if not 1 <= len(args) <= 3:
            raise InvalidArgumentError(f"Dataset.range takes 1 to 3 numbers, got {len(args)}")
        numbers = (0, *args, 1) if len(args) == 1 else (*args, 1)[:3]
        inputs = [_long(value, name) for value, name in zip(numbers, ("start", "stop", "step"), strict=True)]
        spec = Spec((dtypes.int64,), (Shape([]),))
        return Dataset(get_default_graph().apply_op("RangeDataset", inputs, spec.attrs()).outputs[0], 0)

    @staticmethod
    def from_generator(generator: Callable[..., Any], output_types: Any, output_shapes: Any = None, args: Any = None) -> Dataset:
        """The elements that a Python generator yields, which is called anew for each pass.

        Args:
            generator: returns an iterable of values in the structure of `output_types`.
            output_types: nested types.
            output_shapes: nested shapes, unknown by default.
            args: values or tensors that the generator takes as arrays.
        """
        from graphcore.tf1.data.generators import handle_of_generator  # noqa: PLC0415 - few programs need it

        if not callable(generator):
            refuse("generator", "a function that returns an iterable", generator)
        structure, spec = declared(output_types, output_shapes)
        return Dataset(handle_of_generator(generator, structure, spec, args), structure)

    @staticmethod
    def zip(datasets: Any) -> Dataset:
        """Elements of several datasets side by side, as long as all have some.

        Args:
            datasets: nested tuples and dicts of datasets.
        """
        structure, sources = flatten(datasets)
        for source in sources:
            _checked(source)
        nested = filled(structure, _numbered(sources))
        graph = get_default_graph()

        def spec() -> Spec:
            specs = [source.spec for source in sources]
            return Spec(tuple([t for part in specs for t in part.types]), tuple([s for part in specs for s in part.shapes]))

        return _derived(graph, sources, "ZipDataset", lambda: ([[source.variant for source in sources]], spec().attrs()), nested)

    @staticmethod
    def list_files(file_pattern: Any, shuffle: bool | None = None, seed: int | None = None) -> Dataset:
        """The names of the files that match a pattern.

        Args:
            file_pattern: a pattern with `*` and `?`, or several.
            shuffle: True, as by default, for a random order in each pass.
            seed: of the order.
        """
        names = get_default_graph().apply_op("MatchingFiles", [convert_to_tensor(file_pattern, dtypes.string)]).outputs[0]
        files = Dataset.from_tensor_slices(names)
        return files if shuffle is False else files.shuffle(np.iinfo(np.int32).max, seed)

    # ---- made of this one --------------------------------------------------------------------------------------------

    def concatenate(self, dataset: Dataset) -> Dataset:
        """The elements of this dataset, then those of another.

        Raises:
            InvalidArgumentError: its elements have another structure, or other types.
        """
        _checked(dataset)
        if self.structure != dataset.structure or self.spec.types != dataset.spec.types:
            raise InvalidArgumentError(
                f"Two datasets to concatenate have different types {self.output_types!r} and {dataset.output_types!r}"
            )

        def attrs() -> dict[str, Any]:
            pairs = zip(self.spec.shapes, dataset.spec.shapes, strict=True)
            return Spec(self.spec.types, tuple([common_shape(a, b) for a, b in pairs])).attrs()

        return _derived(
            self.variant.graph, [self, dataset], "ConcatenateDataset", lambda: ([self.variant, dataset.variant], attrs()), self.structure
        )

    def take(self, count: Any) -> Dataset:
        """The first `count` elements; all for -1."""
        return self._changed("TakeDataset", _long(count, "count"))

    def skip(self, count: Any) -> Dataset:
        """The elements after the first `count`; none for -1."""
        return self._changed("SkipDataset", _long(count, "count"))

    def repeat(self, count: Any = None) -> Dataset:
        """The elements `count` times; without end for None or -1."""
        return self._changed("RepeatDataset", _long(-1 if count is None else count, "count"))

    def prefetch(self, buffer_size: Any) -> Dataset:
        """The same elements; here they are made when they are asked for."""
        return self._changed("PrefetchDataset", _long(-1 if buffer_size is None else buffer_size, "buffer_size"))

    def cache(self, filename: str = "") -> Dataset:
        """The same elements, kept in memory after the first pass.

        Args:
            filename: must be empty; caches in files are not available.
        """
        return self._changed("CacheDataset", convert_to_tensor(filename, dtypes.string, "filename"))

    def shard(self, num_shards: Any, index: Any) -> Dataset:
        """Each `num_shards`-th element, from number `index` on."""
        count, first = int(num_shards), int(index)
        if count < 1 or not 0 <= first < count:
            raise InvalidArgumentError(f"shard: required num_shards >= 1 and 0 <= index < num_shards, got {count} and {first}")
        numbered = Dataset.zip((Dataset.range(_MANY), self))
        chosen = numbered.filter(lambda number, _: get_default_graph().apply_op("Equal", [number % count, np.int64(first)]).outputs[0])
        return chosen.map(lambda _, element: element)

    def enumerate(self, start: Any = 0) -> Dataset:
        """The elements with their numbers (int64) in front."""
        return Dataset.zip((Dataset.range(start, _MANY), self))

    def shuffle(self, buffer_size: Any, seed: int | None = None, reshuffle_each_iteration: bool | None = None) -> Dataset:
        """The elements in random order, each drawn from a buffer of the next ones.

        Args:
            buffer_size: the size of the buffer; that of the dataset for a perfect shuffle.
            seed: the seed; the same order in every session with it, or with the graph's.
            reshuffle_each_iteration: another order in each pass, as by default.
        """
        first, second = seed_attrs(seed).values()
        return self._changed(
            "ShuffleDataset",
            _long(buffer_size, "buffer_size"),
            _long(first, "seed"),
            _long(second, "seed2"),
            attrs={"reshuffle_each_iteration": reshuffle_each_iteration is not False},
        )

    def batch(self, batch_size: Any, drop_remainder: Any = False) -> Dataset:
        """Several elements along a new first dimension.

        Args:
            batch_size: their number.
            drop_remainder: leave out a last batch with fewer; then the size of batches is known.

        Raises:
            InvalidArgumentError: elements have sparse tensors; batch the records first, and parse them by `gc.parse_example`.
        """
        refuse_sparse(self.structure, "batch")
        drop = convert_to_tensor(drop_remainder, dtypes.bool_, "drop_remainder")
        size = int(batch_size) if drop_remainder is True and not isinstance(batch_size, Tensor) else None
        return self._changed("BatchDatasetV2", _long(batch_size, "batch_size"), drop, shape=lambda shape: Shape([size]).concatenate(shape))

    def padded_batch(self, batch_size: Any, padded_shapes: Any = None, padding_values: Any = None, drop_remainder: Any = False) -> Dataset:
        """Several elements along a new first dimension, padded at the ends to one shape.

        Args:
            batch_size: their number.
            padded_shapes: nested shapes, or int64 tensors of sizes, with None or -1 for the largest size in a batch; by default those of the elements.
            padding_values: nested scalars, by default 0 or the empty string.
            drop_remainder: leave out a last batch with fewer.

        Raises:
            InvalidArgumentError: elements have sparse tensors.
        """
        refuse_sparse(self.structure, "padded_batch")
        wanted = self.output_shapes if padded_shapes is None else padded_shapes
        shapes = [padded_shape(shape) for shape in leaves_of_shapes(self.structure, wanted)]
        values = self._padding(padding_values)
        size = int(batch_size) if drop_remainder is True and not isinstance(batch_size, Tensor) else None
        long, drop = _long(batch_size, "batch_size"), convert_to_tensor(drop_remainder, dtypes.bool_, "drop_remainder")

        def inputs() -> tuple[list[Any], dict[str, Any]]:
            spec = self.spec
            out = Spec(spec.types, tuple([shape_of_batch(size, shape) for shape in shapes]))
            shape_inputs = [shape if isinstance(shape, Tensor) else np.array(shape, np.int64) for shape in shapes]
            return [self.variant, long, shape_inputs, values, drop], out.attrs("Toutput_types")

        return _derived(self.variant.graph, [self], "PaddedBatchDatasetV2", inputs, self.structure)

    def _padding(self, values: Any) -> list[Tensor]:
        types = self.spec.types
        if values is None:
            return [convert_to_tensor("" if dtype is dtypes.string else dtype.as_numpy.type(0), dtype) for dtype in types]  # type: ignore[union-attr]  # components are arrays
        structure, leaves = flatten(values)
        if len(leaves) == 1 and len(types) > 1:
            leaves = leaves * len(types)
        elif structure != self.structure:
            raise InvalidArgumentError(f"padding_values: required the structure of the elements, {self.output_types!r}, got {values!r}")
        return [convert_to_tensor(leaf, dtype, "padding_value") for leaf, dtype in zip(leaves, types, strict=True)]

    def map(self, map_func: Callable[..., Any], num_parallel_calls: Any = None) -> Dataset:
        """The results of a function, one for each element.

        Args:
            map_func: takes the components of an element that is a tuple, otherwise the element; returns tensors, or nested tuples and dicts
                of them. It is called once, to build a function of the graph.
            num_parallel_calls: has no effect.
        """
        del num_parallel_calls
        return self._with_function("MapDataset", map_func)

    def filter(self, predicate: Callable[..., Any]) -> Dataset:
        """The elements for which a function is true.

        Args:
            predicate: takes an element as `map` does, and returns a bool scalar.
        """

        def finish(traced: TracedFunction, captured: list[Tensor]) -> Node:
            types, shapes = traced.spec.types, traced.spec.shapes
            if types != (dtypes.bool_,) or shapes[0].rank not in (0, None):
                raise InvalidArgumentError(f"`predicate` must return a scalar boolean tensor, and returns {traced.spec.kinds()}")
            return self._calling("FilterDataset", "predicate", traced, captured, self.spec)

        node, _ = self._traced("FilterDataset", predicate, finish)
        return Dataset(node.outputs[0], self.structure)

    def apply(self, transformation_func: Callable[[Dataset], Dataset]) -> Dataset:
        """`transformation_func(self)`, which must be a dataset."""
        result = transformation_func(self)
        return _checked(result)

    def flat_map(self, map_func: Callable[..., Dataset]) -> Dataset:
        """The elements of the datasets that a function makes of each element, one dataset after another."""
        return self._with_function("FlatMapDataset", map_func, gives_dataset=True)

    def interleave(
        self, map_func: Callable[..., Dataset], cycle_length: Any, block_length: Any = 1, num_parallel_calls: Any = None
    ) -> Dataset:
        """The elements of the datasets that a function makes of each element, of several datasets in turn.

        Args:
            map_func: takes an element, returns a dataset.
            cycle_length: the number of datasets that are read in turn.
            block_length: the number of elements taken from one before the next.
            num_parallel_calls: has no effect.
        """
        del num_parallel_calls
        more = [_long(cycle_length, "cycle_length"), _long(block_length, "block_length")]
        return self._with_function("InterleaveDataset", map_func, *more, gives_dataset=True)

    # ---- iterators ---------------------------------------------------------------------------------------------------

    def make_one_shot_iterator(self) -> Iterator:
        """See `gc.data.make_one_shot_iterator`."""
        return make_one_shot_iterator(self)

    def make_initializable_iterator(self, shared_name: str | None = None) -> Iterator:
        """See `gc.data.make_initializable_iterator`."""
        return make_initializable_iterator(self, shared_name)

    def __iter__(self) -> Any:
        raise UnimplementedError("Elements of a dataset are made by a session: take a tensor of make_one_shot_iterator().get_next()")

    # ---- nodes -------------------------------------------------------------------------------------------------------

    def _changed(
        self, op: str, *inputs: Tensor, attrs: dict[str, Any] | None = None, shape: Callable[[Shape], Shape] = lambda shape: shape
    ) -> Dataset:
        """A dataset of the same structure, whose components have the shapes that `shape` makes of those here."""

        def built() -> tuple[list[Any], dict[str, Any]]:
            spec = self.spec
            return [self.variant, *inputs], {**Spec(spec.types, tuple(map(shape, spec.shapes))).attrs(), **(attrs or {})}

        return _derived(self.variant.graph, [self], op, built, self.structure)

    def _traced(
        self, op: str, function: Callable[..., Any], finish: Callable[..., Node], *, gives_dataset: bool = False
    ) -> tuple[Node, TracedFunction]:
        if not callable(function):
            refuse("map_func", "a function of an element", function)
        return node_with_function(self.variant.graph, op, function, self.structure, lambda: self.spec, finish, gives_dataset=gives_dataset)

    def _calling(self, op: str, attr: str, traced: TracedFunction, captured: Sequence[Tensor], spec: Spec, *more: Tensor) -> Node:
        attrs = {attr: traced.func, **spec.attrs(), "Targuments": tuple([tensor.dtype.base for tensor in captured])}
        return self.variant.graph.building().apply_op(op, [self.variant, list(captured), *more], attrs)

    def _with_function(self, op: str, function: Callable[..., Any], *more: Tensor, gives_dataset: bool = False) -> Dataset:
        def finish(traced: TracedFunction, captured: list[Tensor]) -> Node:
            return self._calling(op, "f", traced, captured, traced.spec, *more)

        node, traced = self._traced(op, function, finish, gives_dataset=gives_dataset)
        return Dataset(node.outputs[0], traced.structure)


class TFRecordDataset(Dataset):
    """The records of files that `gc.python_io.TFRecordWriter` writes, as strings.

    Args:
        filenames: one name or several, or a dataset of them.
        compression_type: "", "ZLIB" or "GZIP".
        buffer_size, num_parallel_reads: have no effect.
    """

    def __init__(
        self, filenames: Any, compression_type: str | None = None, buffer_size: int | None = None, num_parallel_reads: int | None = None
    ) -> None:
        del num_parallel_reads
        dataset = _of_files("TFRecordDataset", filenames, compression_type, buffer_size)
        super().__init__(dataset.variant, dataset.structure)


class TextLineDataset(Dataset):
    """The lines of text files as strings, without their ends.

    The arguments are those of `TFRecordDataset`.
    """

    def __init__(
        self, filenames: Any, compression_type: str | None = None, buffer_size: int | None = None, num_parallel_reads: int | None = None
    ) -> None:
        del num_parallel_reads
        dataset = _of_files("TextLineDataset", filenames, compression_type, buffer_size)
        super().__init__(dataset.variant, dataset.structure)


class FixedLengthRecordDataset(Dataset):
    """The records of files that all have one size, as strings.

    Args:
        filenames: one name or several, or a dataset of them.
        record_bytes: the bytes of a record.
        header_bytes, footer_bytes: the bytes to leave out at the beginning and at the end of a file.
        buffer_size, num_parallel_reads: have no effect.
        compression_type: "", "ZLIB" or "GZIP".
    """

    def __init__(
        self,
        filenames: Any,
        record_bytes: Any,
        header_bytes: Any = None,
        footer_bytes: Any = None,
        buffer_size: int | None = None,
        compression_type: str | None = None,
        num_parallel_reads: int | None = None,
    ) -> None:
        del num_parallel_reads
        sizes = [_long(size or 0, name) for size, name in ((header_bytes, "header"), (record_bytes, "record"), (footer_bytes, "footer"))]
        dataset = _of_files("FixedLengthRecordDatasetV2", filenames, compression_type, buffer_size, sizes)
        super().__init__(dataset.variant, dataset.structure)


def _of_files(op: str, filenames: Any, compression: str | None, buffer: int | None, sizes: Sequence[Tensor] = ()) -> Dataset:
    def of(names: Any) -> Dataset:
        packed, length = convert_to_tensor(compression or "", dtypes.string), _long(buffer or _BYTES_OF_BUFFER, "buffer_size")
        inputs = [names, *sizes, length, packed] if sizes else [names, packed, length]
        return Dataset(get_default_graph().apply_op(op, inputs).outputs[0], 0)

    if isinstance(filenames, Dataset):
        return filenames.flat_map(of)
    return of(convert_to_tensor(filenames, dtypes.string, "filenames"))


def _from_tensors(op: str, tensors: Any, shape: Callable[[Shape], Shape]) -> Dataset:
    structure, leaves = flatten(tensors)
    graph = get_default_graph()
    components = [convert_to_tensor(leaf, name=f"component_{i}") for i, leaf in enumerate(leaves)]
    if not components:
        raise InvalidArgumentError("Required a tensor, or tuples and dicts of them, got none")

    def inputs() -> tuple[list[Any], dict[str, Any]]:
        shapes = tuple([shape(tensor.shape) for tensor in components])
        return [components], Spec(tuple([tensor.dtype.base for tensor in components]), shapes).attrs("Toutput_types")

    def build() -> Node:
        values, attrs = inputs()
        return graph.apply_op(op, values, attrs)

    node: Node = graph.derivations.derive(
        "a dataset", build, depends_on=components, fingerprint=lambda: [f"{tensor.dtype.text} {tensor.shape}" for tensor in components]
    )
    return Dataset(node.outputs[0], structure)


def _derived(
    graph: Graph, sources: Sequence[Dataset], op: str, inputs: Callable[[], tuple[list[Any], dict[str, Any]]], structure: Any
) -> Dataset:
    """A dataset whose attrs are made again when those of its sources change."""

    def build() -> Node:
        values, attrs = inputs()
        return graph.building().apply_op(op, values, attrs)

    node: Node = graph.building().derivations.derive(
        f"the dataset by {op}",
        build,
        depends_on=[source.variant for source in sources],
        fingerprint=lambda: [source.spec.kinds() for source in sources],
    )
    return Dataset(node.outputs[0], structure)


def _checked(dataset: Any) -> Dataset:
    if not isinstance(dataset, Dataset):
        refuse("dataset", "a gc.data.Dataset", dataset)
    return dataset


def _numbered(sources: Sequence[Dataset]) -> list[Any]:
    """The structures of several datasets, with numbers that go on from one to the next."""
    numbered, start = [], 0
    for source in sources:
        numbered.append(changed(source.structure, partial(add, start)))
        start += len(source.spec.types)
    return numbered


def _long(value: Any, name: str) -> Tensor:
    return convert_to_tensor(value if isinstance(value, Tensor) else np.int64(value), dtypes.int64, name)


def _slice_shape(shape: Shape) -> Shape:
    if shape.rank == 0:
        raise InvalidArgumentError("from_tensor_slices: required tensors with a first dimension, got a scalar; from_tensors takes it")
    return Shape(None) if shape.dims is None else Shape(shape.dims[1:])
