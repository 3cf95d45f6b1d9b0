"""Sparse tensors of TensorFlow 1, and the functions on them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from graphcore.dtypes import DType, as_dtype, bool_, float64, int32, int64, string
from graphcore.errors import InvalidArgumentError
from graphcore.graph import Graph, Tensor, get_default_graph
from graphcore.graph.shapes.constant_values import constant_value
from graphcore.shapes import Shape, as_shape
from graphcore.tf1.framework import convert_to_tensor, name_scope, placeholder
from graphcore.tf1.math.elementwise import cast


class SparseTensorValue(NamedTuple):
    """The arrays of a `SparseTensor` in a run."""

    indices: Any
    values: Any
    dense_shape: Any


class SparseTensor:
    """A tensor with values at some places and zeros elsewhere. It can be fetched, and fed as a `SparseTensorValue`.

    Args:
        indices: int64 [n, rank], the places in ascending order.
        values: [n].
        dense_shape: int64 [rank].
    """

    def __init__(self, indices: Any, values: Any, dense_shape: Any) -> None:
        self.indices = convert_to_tensor(indices, int64)
        self.values = convert_to_tensor(values)
        self.dense_shape = convert_to_tensor(dense_shape, int64)

    @classmethod
    def from_value(cls, value: Any) -> SparseTensor:
        """The sparse tensor itself, or one of the arrays of a `SparseTensorValue`."""
        return value if isinstance(value, SparseTensor) else cls(*value)

    def __repr__(self) -> str:
        return f"<gc.SparseTensor of '{self.values.name}' at '{self.indices.name}' {self.dtype.text} {self.shape}>"

    @property
    def dtype(self) -> DType:
        """The dtype of the values."""
        return self.values.dtype

    @property
    def graph(self) -> Graph:
        """The graph of the values."""
        return self.values.graph

    @property
    def op(self) -> Any:
        """The node of the values."""
        return self.values.node

    @property
    def shape(self) -> Shape:
        """The shape of the dense tensor, as far as it is known."""
        static_sizes = constant_value(self.dense_shape)
        if static_sizes is not None:
            return Shape([int(size) for size in static_sizes.tolist()])
        sizes = self.dense_shape.shape.dims
        rank = sizes[0] if sizes else None
        return Shape(None if rank is None else [None] * rank)

    def get_shape(self) -> Shape:
        """The shape of the dense tensor, as far as it is known."""
        return self.shape

    @property
    def components(self) -> tuple[Any, ...]:
        """Indices, values and shape; see `structures.Composite`."""
        return self.indices, self.values, self.dense_shape

    @property
    def form(self) -> str:
        """Its kind, for messages."""
        return "SparseTensor"

    def with_components(self, components: Sequence[Any]) -> SparseTensor:
        """A sparse tensor of other tensors."""
        copy = SparseTensor.__new__(SparseTensor)
        copy.indices, copy.values, copy.dense_shape = components
        return copy

    def component_shapes(self, shape: Any) -> list[Shape]:
        """The shapes of the tensors where the dense tensor has `shape`."""
        rank = as_shape(shape).rank
        return [Shape([None, rank]), Shape([None]), Shape([rank])]

    def with_values(self, values: Any) -> SparseTensor:
        """Other values at the same places."""
        return SparseTensor(self.indices, values, self.dense_shape)

    def __mul__(self, other: Any) -> SparseTensor:
        """The values times those of a dense tensor at their places; its shape is broadcast."""
        return self._with_dense("SparseDenseCwiseMul", other)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> SparseTensor:
        """The values divided by those of a dense tensor at their places; integers become doubles."""
        if self.dtype.is_integer:
            return self.with_values(cast(self.values, float64))._with_dense(
                "SparseDenseCwiseDiv", cast(convert_to_tensor(other, self.dtype), float64)
            )
        return self._with_dense("SparseDenseCwiseDiv", other)

    def _with_dense(self, op: str, other: Any) -> SparseTensor:
        dense = convert_to_tensor(other, self.dtype)
        return self.with_values(outputs_of(op, [self.indices, self.values, self.dense_shape, dense], None)[0])

    def as_fetches(self) -> SparseTensorValue:
        """The tensors, in the form of the result of a run."""
        return SparseTensorValue(self.indices, self.values, self.dense_shape)

    def eval(self, feed_dict: Any = None, session: Any = None) -> SparseTensorValue:
        """The arrays, computed in `session` or the default session."""
        return SparseTensorValue(*[part.eval(feed_dict, session) for part in self.as_fetches()])


def sparse_placeholder(dtype: Any, shape: Any = None, name: str | None = None) -> SparseTensor:
    """A sparse tensor that is fed.

    Args:
        dtype: of its values.
        shape: of the dense tensor; a tensor of its sizes; None for any shape.
        name: the prefix of the names of its parts.
    """
    if isinstance(shape, Tensor):
        sizes = constant_value(shape)
        shape = [None] * (shape.shape.num_elements or 0) or None if sizes is None else [int(size) for size in sizes.tolist()]
    known_shape = as_shape(shape)
    rank = known_shape.rank
    prefix = f"{name}/" if name else ""
    parts = [
        placeholder(as_dtype(dtype), [None], name=f"{prefix}values"),
        placeholder(int64, [None, rank], name=f"{prefix}indices"),
    ]
    if shape is not None and known_shape.is_fully_defined:
        return SparseTensor(parts[1], parts[0], np.array(known_shape.as_list(), np.int64))
    return SparseTensor(parts[1], parts[0], placeholder(int64, [rank], name=f"{prefix}shape"))


def outputs_of(op: str, inputs: Sequence[Any], name: str | None, **attrs: Any) -> list[Tensor]:
    """The outputs of a new node."""
    return list(get_default_graph().apply_op(op, list(inputs), attrs, name).outputs)


def parts_of(sparse: Any) -> tuple[Tensor, Tensor, Tensor]:
    """Indices, values and shape of a sparse tensor, or of the arrays of one."""
    converted = SparseTensor.from_value(sparse)
    return converted.indices, converted.values, converted.dense_shape


def sparse_tensor_to_dense(sp_input: Any, default_value: Any = None, validate_indices: bool = True, name: str | None = None) -> Tensor:
    """The dense tensor, with `default_value` (0 or an empty string) where there is no value."""
    indices, values, shape = parts_of(sp_input)
    default = (b"" if values.dtype is string else 0) if default_value is None else default_value
    return outputs_of(
        "SparseToDense", [indices, shape, values, convert_to_tensor(default, values.dtype)], name, validate_indices=validate_indices
    )[0]


def sparse_tensor_dense_matmul(sp_a: Any, b: Any, adjoint_a: bool = False, adjoint_b: bool = False, name: str | None = None) -> Tensor:
    """The product of a sparse matrix [n, m] and a dense one [m, k]: [n, k]."""
    return outputs_of("SparseTensorDenseMatMul", [*parts_of(sp_a), b], name, adjoint_a=adjoint_a, adjoint_b=adjoint_b)[0]


def sparse_add(a: Any, b: Any, threshold: Any = None, thresh: Any = None) -> Any:
    """The sum of two tensors, of which one at least is sparse; the sum of two sparse ones is sparse.

    Args:
        a, b: the tensors.
        threshold: in the sum of two sparse tensors, sums of two values are left out if their magnitude is smaller.
        thresh: an older name of threshold.
    """
    limit = next((value for value in (threshold, thresh) if value is not None), 0)
    sparse = [isinstance(operand, SparseTensor | SparseTensorValue) for operand in (a, b)]
    if all(sparse):
        values = parts_of(a)[1]
        real = as_dtype({"complex64": "float", "complex128": "double"}.get(values.dtype.text, values.dtype.text))
        return SparseTensor(*outputs_of("SparseAdd", [*parts_of(a), *parts_of(b), convert_to_tensor(limit, real)], None))
    if not any(sparse):
        raise InvalidArgumentError("sparse_add: at least one of the two must be a SparseTensor")
    first, second = (a, b) if sparse[0] else (b, a)
    return outputs_of("SparseTensorDenseAdd", [*parts_of(first), second], None)[0]


def sparse_reorder(sp_input: Any, name: str | None = None) -> SparseTensor:
    """The sparse tensor with its indices in ascending order."""
    shape = parts_of(sp_input)[2]
    indices, values = outputs_of("SparseReorder", parts_of(sp_input), name)
    return SparseTensor(indices, values, shape)


def sparse_reshape(sp_input: Any, shape: Any, name: str | None = None) -> SparseTensor:
    """The sparse tensor in another shape; one size may be -1."""
    indices, values, old = parts_of(sp_input)
    new_indices, new_shape = outputs_of("SparseReshape", [indices, old, convert_to_tensor(shape, int64)], name)
    return SparseTensor(new_indices, values, new_shape)


def sparse_concat(
    axis: int | None = None,
    sp_inputs: Sequence[Any] = (),
    name: str | None = None,
    expand_nonconcat_dim: bool = False,
    concat_dim: int | None = None,
    expand_nonconcat_dims: bool | None = None,
) -> SparseTensor:
    """Sparse tensors one after another along `axis`; `concat_dim` is its older name.

    Raises:
        InvalidArgumentError: other dimensions are to be expanded, which is not available.
    """
    if expand_nonconcat_dim or expand_nonconcat_dims:
        raise InvalidArgumentError("sparse_concat: expand_nonconcat_dims must be False; reshape the parts to equal sizes first")
    parts = [parts_of(tensor) for tensor in sp_inputs]
    lists = [list(part) for part in zip(*parts, strict=True)]
    along = axis if axis is not None else concat_dim
    indices, values, shape = outputs_of("SparseConcat", lists, name, concat_dim=along)
    return SparseTensor(indices, values, shape)


def sparse_slice(sp_input: Any, start: Any, size: Any, name: str | None = None) -> SparseTensor:
    """The part of a sparse tensor from `start` on, of `size`."""
    return SparseTensor(
        *outputs_of("SparseSlice", [*parts_of(sp_input), convert_to_tensor(start, int64), convert_to_tensor(size, int64)], name)
    )


def sparse_softmax(sp_input: Any, name: str | None = None) -> SparseTensor:
    """The softmax of the values in each row of the last dimension."""
    indices, _, shape = parts_of(sp_input)
    return SparseTensor(indices, outputs_of("SparseSoftmax", parts_of(sp_input), name)[0], shape)


def sparse_reduce_sum(
    sp_input: Any, axis: Any = None, keepdims: bool | None = None, reduction_axes: Any = None, keep_dims: bool | None = None
) -> Tensor:
    """The sums along dimensions, as a dense tensor. `reduction_axes` and `keep_dims` are older names of `axis` and `keepdims`."""
    return _reduced("SparseReduceSum", sp_input, axis if axis is not None else reduction_axes, bool(keepdims or keep_dims))


def sparse_reduce_max(
    sp_input: Any, axis: Any = None, keepdims: bool | None = None, reduction_axes: Any = None, keep_dims: bool | None = None
) -> Tensor:
    """The greatest values along dimensions, as a dense tensor. `reduction_axes` and `keep_dims` are older names."""
    return _reduced("SparseReduceMax", sp_input, axis if axis is not None else reduction_axes, bool(keepdims or keep_dims))


def _reduced(op: str, sp_input: Any, axis: Any, keep: bool) -> Tensor:
    sparse = SparseTensor.from_value(sp_input)
    rank = sparse.dense_shape.shape.dims[0] if sparse.dense_shape.shape.dims else None
    if axis is None and rank is None:
        raise InvalidArgumentError(f"{op}: required axes, as the rank is not known")
    axes = list(range(rank or 0)) if axis is None else axis
    return outputs_of(op, [*parts_of(sparse), convert_to_tensor(axes, int32)], None, keep_dims=keep)[0]


def sparse_fill_empty_rows(sp_input: Any, default_value: Any, name: str | None = None) -> tuple[SparseTensor, Tensor]:
    """The sparse tensor with a default value in the first column of each empty row.

    The second result is true for the rows that were empty: bool [rows].
    """
    indices, values, shape = parts_of(sp_input)
    filled, new, empty, _ = outputs_of(
        "SparseFillEmptyRows", [indices, values, shape, convert_to_tensor(default_value, values.dtype)], name
    )
    return SparseTensor(filled, new, shape), empty


def string_split(
    source: Any, sep: Any = None, skip_empty: bool = True, delimiter: Any = None, result_type: str = "SparseTensor", name: str | None = None
) -> SparseTensor:
    """The words of each string, as a sparse matrix. source: [n] -> [n, words].

    Args:
        source: strings.
        sep: another name of delimiter.
        skip_empty: leave out empty words.
        delimiter: each of its bytes separates words, by default a blank; empty to split into bytes.
        result_type: must be "SparseTensor".
        name: the name of the node.

    Raises:
        InvalidArgumentError: another result type.
    """
    if result_type != "SparseTensor":
        raise InvalidArgumentError(f"string_split: result_type must be 'SparseTensor', got {result_type!r}")
    separator = next((value for value in (delimiter, sep) if value is not None), " ")
    indices, values, shape = outputs_of("StringSplit", [source, separator], name, skip_empty=skip_empty)
    return SparseTensor(indices, values, shape)


def ctc_loss(
    labels: Any,
    inputs: Any = None,
    sequence_length: Any = None,
    preprocess_collapse_repeated: bool = False,
    ctc_merge_repeated: bool = True,
    ignore_longer_outputs_than_inputs: bool = False,
    time_major: bool = True,
    logits: Any = None,
) -> Tensor:
    """The losses of labels by connectionist temporal classification: [batch].

    Args:
        labels: a sparse matrix of int32, [batch, labels].
        inputs: logits, [time, batch, classes]; the last class is the blank.
        sequence_length: int32 [batch].
        preprocess_collapse_repeated: take repeated labels for one.
        ctc_merge_repeated: repeated classes in an alignment are one label.
        ignore_longer_outputs_than_inputs: losses are 0 where there are more labels than times.
        time_major: if false, the inputs are [batch, time, classes].
        logits: a later name of inputs.
    """
    indices, values, _ = parts_of(labels)
    scores = inputs if logits is None else logits
    x = convert_to_tensor(scores) if time_major else outputs_of("Transpose", [scores, [1, 0, 2]], None)[0]
    attrs = {
        "preprocess_collapse_repeated": preprocess_collapse_repeated,
        "ctc_merge_repeated": ctc_merge_repeated,
        "ignore_longer_outputs_than_inputs": ignore_longer_outputs_than_inputs,
    }
    return outputs_of("CTCLoss", [x, indices, values, sequence_length], None, **attrs)[0]


def ctc_greedy_decoder(
    inputs: Any, sequence_length: Any, merge_repeated: bool = True, blank_index: int | None = None
) -> tuple[list[SparseTensor], Tensor]:
    """The labels of the best class at each time, as one sparse matrix.

    The second result has the negative sums of logits: [batch, 1].

    Args:
        inputs: logits, [time, batch, classes].
        sequence_length: int32 [batch].
        merge_repeated: repeated classes are one label.
        blank_index: the blank; the last class by default.
    """
    *parts, scores = outputs_of(
        "CTCGreedyDecoder",
        [inputs, sequence_length],
        None,
        merge_repeated=merge_repeated,
        blank_index=-1 if blank_index is None else blank_index,
    )
    return [SparseTensor(*parts)], scores


def ctc_beam_search_decoder(
    inputs: Any, sequence_length: Any, beam_width: int = 100, top_paths: int = 1, merge_repeated: bool = True
) -> tuple[list[SparseTensor], Tensor]:
    """The most likely labels over all alignments, a sparse matrix a path.

    The second result has log probabilities: [batch, top_paths].
    """
    attrs = {"beam_width": beam_width, "top_paths": top_paths, "merge_repeated": merge_repeated}
    *parts, scores = outputs_of("CTCBeamSearchDecoder", [inputs, sequence_length], None, **attrs)
    paths = [SparseTensor(*parts[i::top_paths]) for i in range(top_paths)]
    return paths, scores


def edit_distance(hypothesis: Any, truth: Any, normalize: bool = True, name: str = "edit_distance") -> Tensor:
    """The Levenshtein distances of the sequences in the last dimension of two sparse tensors."""
    return outputs_of("EditDistance", [*parts_of(hypothesis), *parts_of(truth)], name, normalize=normalize)[0]


def sparse_retain(sp_input: Any, to_retain: Any) -> SparseTensor:
    """The sparse tensor with some of its values. to_retain: bool, one for each."""
    indices, values, shape = parts_of(sp_input)
    kept = outputs_of("Reshape", [outputs_of("Where", [convert_to_tensor(to_retain, bool_)], None)[0], [-1]], None)[0]
    places, numbers = (outputs_of("GatherV2", [part, kept, 0], None)[0] for part in (indices, values))
    return SparseTensor(places, numbers, shape)


def sparse_transpose(sp_input: Any, perm: Any = None, name: str | None = None) -> SparseTensor:
    """The sparse tensor with its dimensions in another order, `perm`; reversed by default."""
    with name_scope(name or "SparseTranspose"):
        indices, values, shape = parts_of(sp_input)
        if perm is None:
            rank = outputs_of("Shape", [shape], None)[0][0]
            perm = outputs_of("Range", [rank - 1, -1, -1], None)[0]
        moved = [outputs_of("GatherV2", [part, perm, axis], None)[0] for part, axis in ((indices, 1), (shape, 0))]
        return sparse_reorder(SparseTensor(moved[0], values, moved[1]))


def sparse_split(
    keyword_required: Any = None,
    sp_input: Any = None,
    num_split: int | None = None,
    axis: Any = None,
    name: str | None = None,
    split_dim: Any = None,
) -> list[SparseTensor]:
    """The parts of a sparse tensor along `axis` (or `split_dim`).

    The first ones are larger by one where the size is no multiple.

    Raises:
        InvalidArgumentError: an argument is missing, or given by its place.
    """
    along = axis if axis is not None else split_dim
    if keyword_required is not None or sp_input is None or num_split is None or along is None:
        raise InvalidArgumentError("sparse_split: required sp_input=, num_split= and axis=, by their names")
    outputs = outputs_of("SparseSplit", [convert_to_tensor(along, int64), *parts_of(sp_input)], name, num_split=num_split)
    return [SparseTensor(*outputs[i::num_split]) for i in range(num_split)]


def sparse_maximum(sp_a: Any, sp_b: Any, name: str | None = None) -> SparseTensor:
    """The larger of two sparse tensors of one shape at each place, where no value counts as 0."""
    return _of_two("SparseSparseMaximum", sp_a, sp_b, name)


def sparse_minimum(sp_a: Any, sp_b: Any, name: str | None = None) -> SparseTensor:
    """The smaller of two sparse tensors of one shape at each place, where no value counts as 0."""
    return _of_two("SparseSparseMinimum", sp_a, sp_b, name)


def _of_two(op: str, sp_a: Any, sp_b: Any, name: str | None) -> SparseTensor:
    first = SparseTensor.from_value(sp_a)
    indices, values = outputs_of(op, [*parts_of(first), *parts_of(sp_b)], name)
    return SparseTensor(indices, values, first.dense_shape)
