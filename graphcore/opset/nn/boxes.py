"""Non-maximum suppression of boxes in images."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from graphcore.inference import InferenceContext
from graphcore.opset.framework.block import NO_GRADIENT, Example, Kernel, KernelContext, op
from graphcore.opset.framework.kernels import float_attr, invalid, on_host, one_int

_BOXES: Final = [[0.0, 0.0, 1.0, 1.0], [0.0, 0.1, 1.0, 1.1], [0.0, -0.1, 1.0, 0.9], [0.0, 10.0, 1.0, 11.0], [0.0, 10.1, 1.0, 11.1]]
_SCORES: Final = [0.9, 0.75, 0.6, 0.95, 0.5]
_FLOATS: Final = "T:{half, float} = float, T_threshold:{half, float} = float"


def overlap(a: Any, b: Any) -> float:
    """The intersection over union of two boxes. Corners may come in any order."""
    a0, a1, b0, b1 = (np.minimum(a[:2], a[2:]), np.maximum(a[:2], a[2:]), np.minimum(b[:2], b[2:]), np.maximum(b[:2], b[2:]))
    areas = float(np.prod(a1 - a0)), float(np.prod(b1 - b0))
    if areas[0] <= 0 or areas[1] <= 0:
        return 0.0
    shared = float(np.prod(np.maximum(np.minimum(a1, b1) - np.maximum(a0, b0), 0)))
    return shared / (areas[0] + areas[1] - shared)


def _selected(k: KernelContext, boxes: Any, scores: Any, most: Any, iou: float, least: float = -np.inf) -> list[int]:
    boxes, scores, count = on_host(boxes), on_host(scores), one_int(k, most)
    if boxes.ndim != 2 or boxes.shape[1] != 4 or scores.shape != boxes.shape[:1]:
        raise invalid(k, f"boxes must be [n, 4] and scores [n], got {list(boxes.shape)} and {list(scores.shape)}")
    if count < 0:
        raise invalid(k, f"max_output_size must be non-negative, got {count}")
    if not 0 <= iou <= 1:
        raise invalid(k, "iou_threshold must be in [0, 1]")
    chosen: list[int] = []
    for at in np.argsort(-scores.astype(np.float64), kind="stable").tolist():
        if len(chosen) >= count:
            break
        if scores[at] > least and all(overlap(boxes[at], boxes[other]) <= iou for other in chosen):
            chosen.append(at)
    return chosen


def _selected_shape(c: InferenceContext) -> None:
    boxes, scores = c.with_rank(c.input(0), 2), c.with_rank(c.input(1), 1)
    c.with_rank(c.input(2), 0)
    c.merge_dim(c.dim(boxes, 0), c.dim(scores, 0))
    c.with_value(c.dim(boxes, 1), 4)
    for index in range(3, c.num_inputs):
        c.with_rank(c.input(index), 0)
    c.set_output(0, c.vector(c.unknown_dim()))


@op
class NonMaxSuppression:
    """The indices of the best boxes by score, without those that overlap a better one too much.

    boxes: [n, 4], two opposite corners each
    scores: [n]
    max_output_size: the most boxes, a scalar
    iou_threshold: the largest intersection over union.
    """

    signature = "NonMaxSuppression[iou_threshold:float = 0.5](boxes:float, scores:float, max_output_size:int32) -> (selected_indices:int32)"
    shape = _selected_shape
    cost = "pairs"
    gradient = NO_GRADIENT
    examples = (Example([_BOXES, _SCORES, 3], outputs=[[3, 0]]),)
    failures = (Example([_BOXES, _SCORES, -1]),)

    def kernel(k: KernelContext) -> Kernel:
        array, iou = k.xp.array, float_attr(k, "iou_threshold")
        return lambda boxes, scores, most: array(_selected(k, boxes, scores, most, iou), np.int32)


@op
class NonMaxSuppressionV2:
    """The indices of the best boxes by score, without those that overlap a better one too much.

    boxes: [n, 4], two opposite corners each
    scores: [n]
    max_output_size: the most boxes, a scalar
    iou_threshold: the largest intersection over union, a scalar
    """

    signature = (
        f"NonMaxSuppressionV2[{_FLOATS}](boxes:T, scores:T, max_output_size:int32, iou_threshold:T_threshold) -> (selected_indices:int32)"
    )
    shape = _selected_shape
    cost = "pairs"
    gradient = NO_GRADIENT
    examples = (Example([_BOXES, _SCORES, 3, 0.9], outputs=[[3, 0, 1]]),)
    failures = (Example([_BOXES, _SCORES, -1, 0.9]),)

    def kernel(k: KernelContext) -> Kernel:
        array = k.xp.array
        return lambda boxes, scores, most, iou: array(_selected(k, boxes, scores, most, float(iou)), np.int32)


@op
class NonMaxSuppressionV3:
    """The indices of the best boxes by score, without those that overlap a better one too much.

    boxes: [n, 4], two opposite corners each
    scores: [n]
    max_output_size: the most boxes, a scalar
    iou_threshold: the largest intersection over union, a scalar
    score_threshold: only better scores count, a scalar
    """

    signature = (
        f"NonMaxSuppressionV3[{_FLOATS}](boxes:T, scores:T, max_output_size:int32, iou_threshold:T_threshold, score_threshold:T_threshold) -> "
        "(selected_indices:int32)"
    )
    shape = _selected_shape
    cost = "pairs"
    gradient = NO_GRADIENT
    examples = (Example([_BOXES, _SCORES, 4, 0.9, 0.55]),)
    failures = (Example([_BOXES, _SCORES, -1, 0.9, 0.55]),)

    def kernel(k: KernelContext) -> Kernel:
        array = k.xp.array
        return lambda boxes, scores, most, iou, least: array(_selected(k, boxes, scores, most, float(iou), float(least)), np.int32)


@op
class NonMaxSuppressionV4:
    """NonMaxSuppressionV3 with the number of indices.

    boxes: [n, 4], two opposite corners each
    scores: [n]
    max_output_size: the most boxes, a scalar
    iou_threshold: the largest intersection over union, a scalar
    score_threshold: only better scores count, a scalar
    pad_to_max_output_size: pad the indices with zeros to the largest number.
    """

    signature = (
        f"NonMaxSuppressionV4[{_FLOATS}, pad_to_max_output_size:bool = false](boxes:T, scores:T, max_output_size:int32, "
        "iou_threshold:T_threshold, score_threshold:T_threshold) -> (selected_indices:int32, valid_outputs:int32)"
    )
    cost = "pairs"
    gradient = NO_GRADIENT
    examples = (Example([_BOXES, _SCORES, 4, 0.9, 0.55]), Example([_BOXES, _SCORES, 4, 0.5, 0.0], {"pad_to_max_output_size": True}))
    failures = (Example([_BOXES, _SCORES, -1, 0.9, 0.55]),)

    def shape(c: InferenceContext) -> None:
        _selected_shape(c)
        if c.attr("pad_to_max_output_size"):
            c.set_output(0, c.vector(c.make_dim_for_scalar_input(2)))
        c.set_output(1, c.scalar())

    def kernel(k: KernelContext) -> Kernel:
        array, pad = k.xp.array, k.attr("pad_to_max_output_size")

        def select(boxes: Any, scores: Any, most: Any, iou: Any, least: Any) -> Any:
            chosen = _selected(k, boxes, scores, most, float(iou), float(least))
            padding = [0] * (one_int(k, most) - len(chosen)) if pad else []
            return array([*chosen, *padding], np.int32), array(len(chosen), np.int32)

        return select
