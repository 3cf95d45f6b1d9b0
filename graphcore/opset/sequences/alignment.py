"""Losses and decoders of sequences of labels that are shorter than their inputs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, ClassVar, Final

import numpy as np

from graphcore.inference import InferenceContext
from graphcore.opset.framework.block import NO_GRADIENT, Example, Kernel, KernelContext, op
from graphcore.opset.framework.gradient_text import required_int
from graphcore.opset.framework.kernels import invalid
from graphcore.opset.numerics.alignments import beam_search, collapsed, greedy, loss_and_gradient

_X: Final = (np.arange(48, dtype=np.float32).reshape(4, 3, 4) * 7 % 11 / 4).astype(np.float32)
_PLACES: Final = np.array([[0, 0], [0, 1], [1, 0], [2, 0], [2, 1]])
_LABELS: Final = np.array([1, 1, 2, 0, 2], np.int32)
_LENGTHS: Final = np.array([4, 3, 2], np.int32)


def _check_lengths(k: KernelContext, x: Any, lengths: Any) -> None:
    if x.ndim != 3 or lengths.shape != x.shape[1:2] or not x.shape[2]:
        raise invalid(
            k, f"inputs must be [time, batch, classes] and sequence_length [batch], got {list(x.shape)} and {list(lengths.shape)}"
        )
    if lengths.size and not 0 <= lengths.min() <= lengths.max() <= x.shape[0]:
        raise invalid(k, f"sequence_length must be in [0, {x.shape[0]}], got {lengths.tolist()}")


@op
class CTCLoss:
    """The losses of labels by connectionist temporal classification; the last class is the blank.

    inputs: logits, [time, batch, classes]
    labels_indices: [n, 2], batch and place of each label
    labels_values: [n]
    sequence_length: [batch], the times of each
    loss: [batch]
    gradient: of the losses by the inputs
    preprocess_collapse_repeated: take repeated labels for one.
    ctc_merge_repeated: repeated classes in an alignment are one label.
    ignore_longer_outputs_than_inputs: losses are 0 where there are more labels than times.
    """

    signature = (
        "CTCLoss[preprocess_collapse_repeated:bool = false, ctc_merge_repeated:bool = true, ignore_longer_outputs_than_inputs:bool = false, "
        "T:{float, double} = float](inputs:T, labels_indices:int64, labels_values:int32, sequence_length:int32) -> (loss:T, gradient:T)"
    )
    device_types = ("CPU",)
    gradient = """[T:type, preprocess_collapse_repeated:bool, ctc_merge_repeated:bool, ignore_longer_outputs_than_inputs:bool](x:T, indices:int64, values:int32, lengths:int32, dloss:T, dother:T) -> (dx:T, dindices:int64, dvalues:int32, dlengths:int32) {
      loss, by_x = CTCLoss[T=$T, preprocess_collapse_repeated=$preprocess_collapse_repeated, ctc_merge_repeated=$ctc_merge_repeated, ignore_longer_outputs_than_inputs=$ignore_longer_outputs_than_inputs](x, indices, values, lengths)
      once = PreventGradient[T=$T, message="Currently there is no way to take the second derivative of ctc_loss due to the fused implementation's interaction with tf.gradients()"](by_x)
      last = Const[dtype=int32, value=Tensor<type: int32 shape: [] values: -1>]()
      column = ExpandDims[T=$T](dloss, last)
      dx = Mul[T=$T](column, once)
      dindices = ZerosLike[T=int64](indices)
      dvalues = ZerosLike[T=int32](values)
      dlengths = ZerosLike[T=int32](lengths)
    }"""
    no_gradient_through: ClassVar = {"gradient": "it is a gradient itself, which the op's gradient multiplies"}
    examples = (
        Example([_X, _PLACES, _LABELS, _LENGTHS]),
        Example([_X, _PLACES, _LABELS, _LENGTHS], {"ctc_merge_repeated": False}),
        Example([_X, _PLACES, _LABELS, _LENGTHS], {"preprocess_collapse_repeated": True}),
        Example([_X, _PLACES, _LABELS, [4, 3, 1]], {"ignore_longer_outputs_than_inputs": True}),
    )
    failures = (Example([_X, _PLACES, _LABELS, [2, 3, 1]]),)

    def shape(c: InferenceContext) -> None:
        x, places = c.with_rank(c.input(0), 3), c.with_rank(c.input(1), 2)
        c.merge_dim(c.dim(places, 0), c.dim(c.with_rank(c.input(2), 1), 0))
        batch = c.merge_dim(c.dim(x, 1), c.dim(c.with_rank(c.input(3), 1), 0))
        c.set_output(0, c.vector(batch))
        c.set_output(1, c.replace_dim(x, 1, batch))

    def kernel(k: KernelContext) -> Kernel:
        collapse, merge = bool(k.attr("preprocess_collapse_repeated")), bool(k.attr("ctc_merge_repeated"))
        ignore, dtype = bool(k.attr("ignore_longer_outputs_than_inputs")), k.dtype("T")

        def losses(x: Any, places: Any, values: Any, lengths: Any) -> Any:
            _check_lengths(k, x, lengths)
            _, batch, classes = x.shape
            if places.ndim != 2 or places.shape[1] != 2 or values.shape != places.shape[:1]:
                raise invalid(k, f"labels_indices must be [n, 2] and labels_values [n], got {list(places.shape)} and {list(values.shape)}")
            rows: list[list[int]] = [[] for _ in range(batch)]
            for (row, _place), label in zip(places.tolist(), values.tolist(), strict=True):
                if not 0 <= row < batch:
                    raise invalid(k, f"labels batch index must be in [0, {batch}), got {row}")
                if not 0 <= label < classes - 1:
                    raise invalid(k, f"Saw a label {label}; required are labels in [0, num_classes - 1 = {classes - 1})")
                rows[row].append(label)
            loss, gradient = np.zeros(batch, dtype), np.zeros_like(x)
            for b, (row_labels, length) in enumerate(zip(rows, lengths.tolist(), strict=True)):
                labels = collapsed(row_labels) if collapse else row_labels
                required = len(labels) + (sum(a == b for a, b in pairwise(labels)) if merge else 0)
                if required > length:
                    if not ignore:
                        raise invalid(
                            k, f"Not enough time for target transition sequence (required: {required}, available: {length}) in row {b}"
                        )
                    continue
                if length:
                    loss[b], gradient[:length, b] = loss_and_gradient(x[:length, b], labels, merge=merge)
            return loss, gradient

        return losses


def _sparse_sequences(rows: Sequence[Sequence[int]]) -> tuple[Any, Any, Any]:
    places = [(b, t) for b, row in enumerate(rows) for t in range(len(row))]
    values = [label for row in rows for label in row]
    sizes = [len(rows), max(map(len, rows), default=0)]
    return np.array(places, np.int64).reshape(-1, 2), np.array(values, np.int64), np.array(sizes, np.int64)


def _decoded_shape(c: InferenceContext, paths: int) -> None:
    x, lengths = c.with_rank(c.input(0), 3), c.with_rank(c.input(1), 1)
    batch = c.merge_dim(c.dim(x, 1), c.dim(lengths, 0))
    for i in range(paths):
        c.set_output(i, c.matrix(c.unknown_dim(), 2))
        c.set_output(paths + i, c.vector(c.unknown_dim()))
        c.set_output(2 * paths + i, c.vector(2))
    c.set_output(3 * paths, c.matrix(batch, paths))


@op
class CTCGreedyDecoder:
    """The labels of the best class at each time, without blanks, as a sparse matrix.

    inputs: logits, [time, batch, classes]
    sequence_length: [batch], the times of each
    decoded_indices: [n, 2]
    decoded_values: [n]
    decoded_shape: [2]
    log_probability: [batch, 1], the negative sums of the best logits
    merge_repeated: repeated classes are one label.
    blank_index: the blank; negative to count from the end.
    """

    signature = (
        "CTCGreedyDecoder[merge_repeated:bool = false, blank_index:int = -1, T:{float, double} = float]"
        "(inputs:T, sequence_length:int32) -> (decoded_indices:int64, decoded_values:int64, decoded_shape:int64, log_probability:T)"
    )
    device_types = ("CPU",)
    gradient = NO_GRADIENT
    examples = (Example([_X, _LENGTHS]), Example([_X, _LENGTHS], {"merge_repeated": True, "blank_index": 0}))
    failures = (Example([_X, [9, 9, 9]]),)

    def shape(c: InferenceContext) -> None:
        _decoded_shape(c, 1)

    def kernel(k: KernelContext) -> Kernel:
        merge, blank = bool(k.attr("merge_repeated")), required_int(k.attrs, "blank_index")

        def decode(x: Any, lengths: Any) -> Any:
            _check_lengths(k, x, lengths)
            classes = x.shape[2]
            if not -classes <= blank < classes:
                raise invalid(k, f"blank_index must be in [{-classes}, {classes}), got {blank}")
            decoded = [greedy(x[:length, b], blank % classes, merge=merge) for b, length in enumerate(lengths.tolist())]
            scores = np.array([score for _, score in decoded], x.dtype).reshape(-1, 1)
            return *_sparse_sequences([row for row, _ in decoded]), scores

        return decode


@op
class CTCBeamSearchDecoder:
    """The most likely sequences of labels over all alignments, each a sparse matrix.

    inputs: logits, [time, batch, classes]; the last class is the blank
    sequence_length: [batch], the times of each
    decoded_indices: of each path, [n, 2]
    decoded_values: of each path, [n]
    decoded_shape: of each path, [2]
    log_probability: [batch, top_paths]
    beam_width: the number of sequences to follow.
    top_paths: the number of sequences to return.
    merge_repeated: take repeated labels of a result for one.
    """

    signature = (
        "CTCBeamSearchDecoder[beam_width:int >= 1, top_paths:int, merge_repeated:bool = true, T:{float, double} = float]"
        "(inputs:T, sequence_length:int32) -> (decoded_indices:top_paths*int64, decoded_values:top_paths*int64, "
        "decoded_shape:top_paths*int64, log_probability:T)"
    )
    device_types = ("CPU",)
    gradient = NO_GRADIENT
    examples = (
        Example([_X, _LENGTHS], {"beam_width": 8, "top_paths": 2, "merge_repeated": False}),
        Example([_X, _LENGTHS], {"beam_width": 20, "top_paths": 1}),
    )
    failures = (Example([_X, [9, 9, 9]], {"beam_width": 8, "top_paths": 2}),)

    def shape(c: InferenceContext) -> None:
        _decoded_shape(c, c.int_attr("top_paths"))

    def kernel(k: KernelContext) -> Kernel:
        width, paths = required_int(k.attrs, "beam_width"), required_int(k.attrs, "top_paths")
        merge = bool(k.attr("merge_repeated"))

        def decode(x: Any, lengths: Any) -> Any:
            _check_lengths(k, x, lengths)
            results = [beam_search(x[:length, b], width, paths) for b, length in enumerate(lengths.tolist())]
            if any(len(row) < paths for row in results):
                raise invalid(k, f"fewer than {paths} paths were found with a beam of width {width}")
            rows = [[collapsed(row[p][0]) if merge else row[p][0] for row in results] for p in range(paths)]
            decoded = [_sparse_sequences(row) for row in rows]
            scores = np.array([[score for _, score in row] for row in results], x.dtype).reshape(-1, paths)
            return *[part[i] for i in range(3) for part in decoded], scores

        return decode
