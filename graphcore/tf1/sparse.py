"""Sparse tensors of TensorFlow 1, and the functions on them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from graphcore.api.framework import convert_to_tensor, name_scope, placeholder
from graphcore.api.math import cast
from graphcore.dtypes import DType, as_dtype, bool_, float64, int32, int64, string
from graphcore.errors import InvalidArgumentError
from graphcore.graph import Graph, Tensor, get_default_graph
from graphcore.graph.shapes.constant_values import constant_value
from graphcore.shapes import Shape, as_shape


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
        known = constant_value(self.dense_shape)
        if known is not None:
            return Shape([int(size) for size in known.tolist()])
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
        made = SparseTensor.__new__(SparseTensor)
        made.indices, made.values, made.dense_shape = components
        return made

    def component_shapes(self, shape: Any) -> list[Shape]:
        """The shapes of the tensors where the dense tensor has `shape`."""
        rank = as_shape(shape).rank
        return [Shape([None, rank]), Shape([None]), Shape([rank])]

    def united(self, other: SparseTensor) -> SparseTensor:  # noqa: ARG002 - the tensors have all that is known
        """The same sparse tensor."""
        return self

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
        return self.with_values(_outputs(op, [self.indices, self.values, self.dense_shape, dense], None)[0])

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
        if sizes is None:
            count = shape.shape.num_elements
            shape = None if count is None else [None] * count
        else:
            shape = [int(size) for size in sizes.tolist()]
    known = as_shape(shape)
    rank = known.rank
    given = f"{name}/" if name else ""
    parts = [
        placeholder(as_dtype(dtype), [None], name=f"{given}values"),
        placeholder(int64, [None, rank], name=f"{given}indices"),
    ]
    if shape is not None and known.is_fully_defined:
        return SparseTensor(parts[1], parts[0], np.array(known.as_list(), np.int64))
    return SparseTensor(parts[1], parts[0], placeholder(int64, [rank], name=f"{given}shape"))


def _outputs(op: str, inputs: Sequence[Any], name: str | None, **attrs: Any) -> list[Tensor]:
    return list(get_default_graph().apply_op(op, list(inputs), attrs, name).outputs)


def _parts(sparse: Any) -> tuple[Tensor, Tensor, Tensor]:
    found = SparseTensor.from_value(sparse)
    return found.indices, found.values, found.dense_shape


def sparse_tensor_to_dense(sp_input: Any, default_value: Any = None, validate_indices: bool = True, name: str | None = None) -> Tensor:
    """The dense tensor, with `default_value` (0 or an empty string) where there is no value."""
    indices, values, shape = _parts(sp_input)
    default = (b"" if values.dtype is string else 0) if default_value is None else default_value
    return _outputs(
        "SparseToDense", [indices, shape, values, convert_to_tensor(default, values.dtype)], name, validate_indices=validate_indices
    )[0]


def sparse_tensor_dense_matmul(sp_a: Any, b: Any, adjoint_a: bool = False, adjoint_b: bool = False, name: str | None = None) -> Tensor:
    """The product of a sparse matrix [n, m] and a dense one [m, k]: [n, k]."""
    return _outputs("SparseTensorDenseMatMul", [*_parts(sp_a), b], name, adjoint_a=adjoint_a, adjoint_b=adjoint_b)[0]


def sparse_add(a: Any, b: Any, threshold: Any = None, thresh: Any = None) -> Any:
    """The sum of two tensors, of which one at least is sparse; the sum of two sparse ones is sparse.

    Args:
        a, b: the tensors.
        threshold: in the sum of two sparse tensors, sums of two values are left out if their magnitude is smaller.
        thresh: an older name of threshold.
    """
    limit = next((value for value in (threshold, thresh) if value is not None), 0)
    sparse = [isinstance(each, SparseTensor | SparseTensorValue) for each in (a, b)]
    if all(sparse):
        values = _parts(a)[1]
        real = as_dtype({"complex64": "float", "complex128": "double"}.get(values.dtype.text, values.dtype.text))
        return SparseTensor(*_outputs("SparseAdd", [*_parts(a), *_parts(b), convert_to_tensor(limit, real)], None))
    if not any(sparse):
        raise InvalidArgumentError("sparse_add: at least one of the two must be a SparseTensor")
    first, second = (a, b) if sparse[0] else (b, a)
    return _outputs("SparseTensorDenseAdd", [*_parts(first), second], None)[0]


def sparse_reorder(sp_input: Any, name: str | None = None) -> SparseTensor:
    """The sparse tensor with its indices in ascending order."""
    shape = _parts(sp_input)[2]
    indices, values = _outputs("SparseReorder", _parts(sp_input), name)
    return SparseTensor(indices, values, shape)


def sparse_reshape(sp_input: Any, shape: Any, name: str | None = None) -> SparseTensor:
    """The sparse tensor in another shape; one size may be -1."""
    indices, values, old = _parts(sp_input)
    new_indices, new_shape = _outputs("SparseReshape", [indices, old, convert_to_tensor(shape, int64)], name)
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
    parts = [_parts(each) for each in sp_inputs]
    lists = [list(part) for part in zip(*parts, strict=True)]
    along = axis if axis is not None else concat_dim
    indices, values, shape = _outputs("SparseConcat", lists, name, concat_dim=along)
    return SparseTensor(indices, values, shape)


def sparse_slice(sp_input: Any, start: Any, size: Any, name: str | None = None) -> SparseTensor:
    """The part of a sparse tensor from `start` on, of `size`."""
    return SparseTensor(
        *_outputs("SparseSlice", [*_parts(sp_input), convert_to_tensor(start, int64), convert_to_tensor(size, int64)], name)
    )


def sparse_softmax(sp_input: Any, name: str | None = None) -> SparseTensor:
    """The softmax of the values in each row of the last dimension."""
    indices, _, shape = _parts(sp_input)
    return SparseTensor(indices, _outputs("SparseSoftmax", _parts(sp_input), name)[0], shape)


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
    return _outputs(op, [*_parts(sparse), convert_to_tensor(axes, int32)], None, keep_dims=keep)[0]


def sparse_fill_empty_rows(sp_input: Any, default_value: Any, name: str | None = None) -> tuple[SparseTensor, Tensor]:
    """The sparse tensor with a default value in the first column of each empty row.

    The second result is true for the rows that were empty: bool [rows].
    """
    indices, values, shape = _parts(sp_input)
    filled, new, empty, _ = _outputs("SparseFillEmptyRows", [indices, values, shape, convert_to_tensor(default_value, values.dtype)], name)
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
    given = next((value for value in (delimiter, sep) if value is not None), " ")
    indices, values, shape = _outputs("StringSplit", [source, given], name, skip_empty=skip_empty)
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
    indices, values, _ = _parts(labels)
    given = inputs if logits is None else logits
    x = convert_to_tensor(given) if time_major else _outputs("Transpose", [given, [1, 0, 2]], None)[0]
    attrs = {
        "preprocess_collapse_repeated": preprocess_collapse_repeated,
        "ctc_merge_repeated": ctc_merge_repeated,
        "ignore_longer_outputs_than_inputs": ignore_longer_outputs_than_inputs,
    }
    return _outputs("CTCLoss", [x, indices, values, sequence_length], None, **attrs)[0]


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
    *parts, scores = _outputs(
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
    *parts, scores = _outputs("CTCBeamSearchDecoder", [inputs, sequence_length], None, **attrs)
    paths = [SparseTensor(*parts[i::top_paths]) for i in range(top_paths)]
    return paths, scores


def edit_distance(hypothesis: Any, truth: Any, normalize: bool = True, name: str = "edit_distance") -> Tensor:
    """The Levenshtein distances of the sequences in the last dimension of two sparse tensors."""
    return _outputs("EditDistance", [*_parts(hypothesis), *_parts(truth)], name, normalize=normalize)[0]


def embedding_lookup_sparse(
    params: Any,
    sp_ids: Any,
    sp_weights: Any,
    partition_strategy: str = "mod",
    name: str | None = None,
    combiner: str | None = None,
    max_norm: float | None = None,
    allow_fast_lookup: bool = False,
) -> Tensor:
    """The combined rows of `params` for each row of a sparse matrix of numbers: [rows, ...].

    Args:
        params: [n, ...], or several, which share the rows.
        sp_ids: int64 numbers of rows; a row without any gives zeros.
        sp_weights: the weights of the rows, with the same indices; None for 1.
        partition_strategy: "mod" or "div", see `embedding_lookup`.
        name: the name scope.
        combiner: "sum", "mean" (the default; divided by the sum of weights) or "sqrtn" (by the root of the sum of their squares).
        max_norm: rows with a greater norm are scaled down to it.
        allow_fast_lookup: without effect.
    """
    del allow_fast_lookup
    from graphcore.tf1.nn.embedding import embedding_lookup  # noqa: PLC0415 - not needed for sparse tensors alone

    how = combiner or "mean"
    if how not in ("sum", "mean", "sqrtn"):
        raise InvalidArgumentError(f"combiner must be one of 'mean', 'sqrtn' or 'sum', got {how!r}")
    with name_scope(name or "embedding_lookup_sparse"):
        indices, ids, _ = _parts(sp_ids)
        rows = _outputs("StridedSlice", [indices, [0, 0], [0, 1], [1, 1]], None, begin_mask=1, end_mask=1, shrink_axis_mask=2)[0]
        segments = _outputs("Cast", [rows], None, DstT=int32)[0]
        unique, places = _outputs("Unique", [ids], None)
        found = embedding_lookup(params, unique, partition_strategy=partition_strategy, max_norm=max_norm)
        if sp_weights is None:
            return _outputs("SparseSegment" + ("SqrtN" if how == "sqrtn" else how.title()), [found, places, segments], None)[0]
        weights = _outputs("Cast", [_parts(sp_weights)[1]], None, DstT=found.dtype.base)[0]
        gathered = _outputs("GatherV2", [found, places, 0], None)[0]
        rank = gathered.shape.rank
        if rank is None:
            raise InvalidArgumentError("embedding_lookup_sparse: required params of known rank")
        column = _outputs("Reshape", [weights, [-1] + [1] * (rank - 1)], None)[0]
        total = _outputs("SegmentSum", [gathered * column, segments], None)[0]
        if how == "sum":
            return total
        scale = _outputs("SegmentSum", [column if how == "mean" else column * column, segments], None)[0]
        divisor = scale if how == "mean" else _outputs("Sqrt", [scale], None)[0]
        return _outputs("DivNoNan", [total, divisor], None)[0]  # a row without ids has zeros


def sparse_retain(sp_input: Any, to_retain: Any) -> SparseTensor:
    """The sparse tensor with some of its values. to_retain: bool, one for each."""
    indices, values, shape = _parts(sp_input)
    kept = _outputs("Reshape", [_outputs("Where", [convert_to_tensor(to_retain, bool_)], None)[0], [-1]], None)[0]
    places, numbers = (_outputs("GatherV2", [part, kept, 0], None)[0] for part in (indices, values))
    return SparseTensor(places, numbers, shape)


def sparse_transpose(sp_input: Any, perm: Any = None, name: str | None = None) -> SparseTensor:
    """The sparse tensor with its dimensions in another order, `perm`; reversed by default."""
    with name_scope(name or "SparseTranspose"):
        indices, values, shape = _parts(sp_input)
        if perm is None:
            rank = _outputs("Shape", [shape], None)[0][0]
            perm = _outputs("Range", [rank - 1, -1, -1], None)[0]
        moved = [_outputs("GatherV2", [part, perm, axis], None)[0] for part, axis in ((indices, 1), (shape, 0))]
        return sparse_reorder(SparseTensor(moved[0], values, moved[1]))


def sparse_split(
    keyword_required: Any = None,
    sp_input: Any = None,
    num_split: int | None = None,
    axis: Any = None,
    name: str | None = None,
    split_dim: Any = None,
) -> list[SparseTensor]:
    """The parts of a sparse tensor along `axis` (or `split_dim`); the first ones are larger by one where the size is no multiple.

    Raises:
        InvalidArgumentError: an argument is missing, or given by its place.
    """
    along = axis if axis is not None else split_dim
    if keyword_required is not None or sp_input is None or num_split is None or along is None:
        raise InvalidArgumentError("sparse_split: required sp_input=, num_split= and axis=, by their names")
    found = _outputs("SparseSplit", [convert_to_tensor(along, int64), *_parts(sp_input)], name, num_split=num_split)
    return [SparseTensor(*found[i::num_split]) for i in range(num_split)]


def sparse_maximum(sp_a: Any, sp_b: Any, name: str | None = None) -> SparseTensor:
    """The larger of two sparse tensors of one shape at each place, where no value counts as 0."""
    return _of_two("SparseSparseMaximum", sp_a, sp_b, name)


def sparse_minimum(sp_a: Any, sp_b: Any, name: str | None = None) -> SparseTensor:
    """The smaller of two sparse tensors of one shape at each place, where no value counts as 0."""
    return _of_two("SparseSparseMinimum", sp_a, sp_b, name)


def _of_two(op: str, sp_a: Any, sp_b: Any, name: str | None) -> SparseTensor:
    first = SparseTensor.from_value(sp_a)
    indices, values = _outputs(op, [*_parts(first), *_parts(sp_b)], name)
    return SparseTensor(indices, values, first.dense_shape)


def safe_embedding_lookup_sparse(
    embedding_weights: Any,
    sparse_ids: Any,
    sparse_weights: Any = None,
    combiner: str = "mean",
    default_id: int | None = None,
    name: str | None = None,
    partition_strategy: str = "div",
    max_norm: float | None = None,
    allow_fast_lookup: bool = False,
) -> Tensor:
    """The combined rows for each row of sparse numbers; rows may be empty, and numbers invalid.

    Args:
        embedding_weights: [n, ...], or several, which share the rows.
        sparse_ids: int64 numbers of rows, of any rank; negative ones are left out, and the last dimension is combined.
        sparse_weights: the weights of the rows, with the same indices; those that are not positive are left out, unless the combiner is "sum".
        combiner: "sum", "mean" or "sqrtn".
        default_id: the number for rows without any; None for zeros in their place.
        name: the name scope.
        partition_strategy: "mod" or "div", see `embedding_lookup`.
        max_norm: rows with a greater norm are scaled down to it.
        allow_fast_lookup: without effect.

    Raises:
        InvalidArgumentError: the rank of `sparse_ids` is unknown, or no such combiner.
    """
    del allow_fast_lookup
    with name_scope(name or "embedding_lookup"):
        _, _, whole = _parts(sparse_ids)
        rank = whole.shape.num_elements
        if rank is None:
            raise InvalidArgumentError("safe_embedding_lookup_sparse: required sparse_ids of known rank")
        leading = _outputs("Slice", [whole, [0], [rank - 1]], None)[0]
        flat = [_outputs("Prod", [leading, [0]], None)[0], whole[rank - 1]]
        ids = sparse_reshape(sparse_ids, _outputs("Pack", [flat], None)[0])
        weights = None if sparse_weights is None else SparseTensor(ids.indices, _parts(sparse_weights)[1], ids.dense_shape)
        valid = ids.values >= 0
        if weights is not None and combiner != "sum":
            valid = _outputs("LogicalAnd", [valid, weights.values > 0.0], None)[0]
        ids, weights = sparse_retain(ids, valid), None if weights is None else sparse_retain(weights, valid)
        ids, empty = sparse_fill_empty_rows(ids, default_id or 0)
        if weights is not None:
            weights, _ = sparse_fill_empty_rows(weights, 1.0)
        found = embedding_lookup_sparse(embedding_weights, ids, weights, partition_strategy, None, combiner, max_norm)
        if default_id is None:
            column = _outputs("Reshape", [empty, [-1] + [1] * ((found.shape.rank or 2) - 1)], None)[0]
            found = _outputs("SelectV2", [column, _outputs("ZerosLike", [found], None)[0], found], None)[0]
        sizes = [_outputs("Cast", [leading], None, DstT=int32)[0], _outputs("Shape", [found], None)[0][1:]]
        return _outputs("Reshape", [found, _outputs("ConcatV2", [sizes, 0], None)[0]], None)[0]
