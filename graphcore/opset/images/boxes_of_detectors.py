"""Boxes in images: drawn, chosen among many, and drawn at random."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from graphcore.errors import InvalidArgumentError
from graphcore.inference import InferenceContext
from graphcore.opset.framework.block import NO_GRADIENT, Example, Kernel, KernelContext, op
from graphcore.opset.framework.kernels import invalid, one_int
from graphcore.opset.nn.boxes import overlap

_BOXES: Final = [[0.0, 0.0, 1.0, 1.0], [0.0, 0.1, 1.0, 1.1], [0.0, -0.1, 1.0, 0.9], [0.0, 10.0, 1.0, 11.0], [0.0, 10.1, 1.0, 11.1]]
_SCORES: Final = [0.9, 0.75, 0.6, 0.95, 0.5]
_COLOURS: Final = (
    (1, 1, 0, 1),
    (0, 0, 1, 1),
    (1, 0, 0, 1),
    (0, 1, 0, 1),
    (0.5, 0, 0.5, 1),
    (0.5, 0.5, 0, 1),
    (0.5, 0, 0, 1),
    (0, 0, 0.5, 1),
    (0, 1, 1, 1),
    (1, 0, 1, 1),
)
_THREE: Final = [[[box] for box in _BOXES[:3]]]
_OF_CLASSES: Final = [[[_BOXES[0], _BOXES[2]], [_BOXES[1], _BOXES[3]]]]
_IMAGES: Final = np.zeros((2, 5, 6, 3), np.float32)
_DRAWN: Final = [[[0.1, 0.2, 0.9, 0.7], [0.5, 0.5, 1.4, 1.0]], [[-0.3, 0.0, 0.4, 0.4], [0.6, 0.6, 0.2, 0.9]]]


def _drawing(k: KernelContext) -> Kernel:
    def draw(images: Any, boxes: Any, colors: Any = None) -> Any:
        depth = images.shape[-1] if images.ndim == 4 else 0
        if depth not in (1, 3, 4) or boxes.ndim != 3 or boxes.shape[2] != 4 or boxes.shape[0] != images.shape[0]:
            raise invalid(
                k,
                f"images must be [batch, rows, columns, 1, 3 or 4] and boxes [batch, n, 4], got {list(images.shape)} and {list(boxes.shape)}",
            )
        own = colors is not None and colors.size
        if own and (colors.ndim != 2 or colors.shape[1] < depth):
            raise invalid(k, f"colors must be [n, {depth}], got {list(colors.shape)}")
        colours = (colors if own else np.array(_COLOURS))[:, :depth].astype(images.dtype)
        if depth == 1 and not own:
            colours[:, 0] = 1
        out, (rows, columns) = images.copy(), images.shape[1:3]
        for image, image_boxes in zip(out, boxes, strict=True):
            for number, box in enumerate(image_boxes):
                top, left, bottom, right = (
                    int(np.float32(part) * np.float32(size - 1)) for part, size in zip(box, (rows, columns) * 2, strict=True)
                )
                if top > bottom or left > right or top >= rows or left >= columns or bottom < 0 or right < 0:
                    continue
                colour = colours[number % len(colours)]
                inside = slice(max(top, 0), min(bottom, rows - 1) + 1), slice(max(left, 0), min(right, columns - 1) + 1)
                for at, size in ((top, rows), (bottom, rows)):
                    if 0 <= at < size:
                        image[at, inside[1]] = colour
                for at, size in ((left, columns), (right, columns)):
                    if 0 <= at < size:
                        image[inside[0], at] = colour
        return out

    return draw


def _drawn_shape(c: InferenceContext) -> None:
    images, boxes = c.with_rank(c.input(0), 4), c.with_rank(c.input(1), 3)
    depth = c.value(c.dim(images, 3))
    if depth >= 0 and depth not in (1, 3, 4):
        raise InvalidArgumentError(f"Channel depth should be either 1 (GRY), 3 (RGB), or 4 (RGBA), got {depth}")
    c.with_value(c.dim(boxes, 2), 4)
    c.set_output(0, images)


@op
class DrawBoundingBoxes:
    """Images with boxes drawn on them, in ten colours in turn.

    images: [batch, rows, columns, channels], with 1, 3 or 4 channels
    boxes: [batch, n, 4], top, left, bottom and right as parts of the image
    """

    signature = "DrawBoundingBoxes[T:{float, half} = float](images:T, boxes:float) -> (output:T)"
    shape = _drawn_shape
    device_types = ("CPU",)
    gradient = NO_GRADIENT
    kernel = _drawing
    examples = (Example([_IMAGES, _DRAWN]), Example([np.zeros((2, 5, 6, 1), np.float32), _DRAWN]))
    failures = (
        """
        pixels = Const[dtype=float, value=Tensor<type: float shape: [1,1,1,2] values: 0 1>]()
        boxes = Const[dtype=float, value=Tensor<type: float shape: [1,1,4] values: 0 0 1 1>]()
        images = PlaceholderWithDefault[dtype=float, shape=<unknown>](pixels)
        it = DrawBoundingBoxes[T=float](images, boxes)
        """,
    )


@op
class DrawBoundingBoxesV2:
    """Images with boxes drawn on them, in the given colours in turn.

    images: [batch, rows, columns, channels], with 1, 3 or 4 channels
    boxes: [batch, n, 4], top, left, bottom and right as parts of the image
    colors: [m, channels]; without any, ten colours
    """

    signature = "DrawBoundingBoxesV2[T:{float, half} = float](images:T, boxes:float, colors:float) -> (output:T)"
    device_types = ("CPU",)
    gradient = NO_GRADIENT
    kernel = _drawing
    examples = (Example([_IMAGES, _DRAWN, [[0.5, 0.25, 0.125]]]),)
    failures = (Example([np.zeros((2, 5, 6, 2), np.float32), _DRAWN, [[0.5, 0.25, 0.125]]]),)

    def shape(c: InferenceContext) -> None:
        c.set_output(0, c.with_rank_at_least(c.input(0), 3))


def suppressed(
    scores: Any, most: int, likeness: Callable[[int, int], float], limit: float, least: float, sigma: float = 0.0
) -> list[tuple[int, float]]:
    """The boxes that stay, best first, with their scores.

    A box that is too much like a better one is left out, or, for a sigma above 0, its score is reduced.
    """
    waiting = [(-float(score), i, 0) for i, score in enumerate(scores.tolist()) if score > least]
    heapq.heapify(waiting)
    chosen: list[tuple[int, float]] = []
    while waiting and len(chosen) < most:
        negative, at, begin = heapq.heappop(waiting)
        score = start = -negative
        dropped = False
        for other, _ in reversed(chosen[begin:]):
            like = likeness(at, other)
            if sigma > 0:
                score = float(np.float32(score * (math.exp(-0.5 / sigma * like * like) if like <= limit else 0.0)))
            elif like > limit:
                dropped = True
                break
            if score <= least:
                break
        if dropped:
            continue
        if score == start:
            chosen.append((at, score))
        elif score > least:
            heapq.heappush(waiting, (-score, at, len(chosen)))
    return chosen


def _vector_of_unknown_size(c: InferenceContext, outputs: int = 1) -> None:
    for i in range(outputs):
        c.set_output(i, c.vector(c.unknown_dim()))


@op
class NonMaxSuppressionV5:
    """The best boxes by score; the scores of boxes that overlap a better one are reduced.

    boxes: [n, 4], two opposite corners each
    scores: [n]
    max_output_size: the most boxes, a scalar
    iou_threshold: the largest intersection over union, a scalar
    score_threshold: only better scores count, a scalar
    soft_nms_sigma: how far scores are reduced, a scalar; 0 to leave out overlapping boxes
    selected_scores: the reduced scores
    valid_outputs: the number of boxes
    pad_to_max_output_size: pad both with zeros to the largest number.
    """

    signature = (
        "NonMaxSuppressionV5[T:{half, float} = float, pad_to_max_output_size:bool = false](boxes:T, scores:T, max_output_size:int32, "
        "iou_threshold:T, score_threshold:T, soft_nms_sigma:T) -> (selected_indices:int32, selected_scores:T, valid_outputs:int32)"
    )
    device_types = ("CPU",)
    cost = "pairs"
    gradient = NO_GRADIENT
    examples = (
        Example([_BOXES, _SCORES, 4, 0.5, 0.1, 0.0]),
        Example([_BOXES, _SCORES, 4, 1.0, 0.1, 0.5]),
        Example([_BOXES, _SCORES, 5, 0.5, 0.7, 0.0], {"pad_to_max_output_size": True}),
    )
    failures = (Example([_BOXES, _SCORES, -1, 0.5, 0.1, 0.0]),)

    def shape(c: InferenceContext) -> None:
        boxes, scores = c.with_rank(c.input(0), 2), c.with_rank(c.input(1), 1)
        c.merge_dim(c.dim(boxes, 0), c.dim(scores, 0))
        c.with_value(c.dim(boxes, 1), 4)
        for i in range(2, 6):
            c.with_rank(c.input(i), 0)
        _vector_of_unknown_size(c, 2)
        if c.attr("pad_to_max_output_size"):
            size = c.make_dim_for_scalar_input(2)
            c.set_output(0, c.vector(size))
            c.set_output(1, c.vector(size))
        c.set_output(2, c.scalar())

    def kernel(k: KernelContext) -> Kernel:
        pad = bool(k.attr("pad_to_max_output_size"))

        def select(boxes: Any, scores: Any, most: Any, iou: Any, least: Any, sigma: Any) -> Any:
            count = one_int(k, most)
            if count < 0 or not 0 <= float(iou) <= 1 or float(sigma) < 0:
                raise invalid(k, "max_output_size and soft_nms_sigma must be non-negative, and iou_threshold in [0, 1]")
            selected = suppressed(scores, count, lambda a, b: overlap(boxes[a], boxes[b]), float(iou), float(least), float(sigma))
            padding = [(0, 0.0)] * (count - len(selected)) if pad else []
            both = [*selected, *padding]
            return np.array([i for i, _ in both], np.int32), np.array([s for _, s in both], scores.dtype), np.array(len(selected), np.int32)

        return select


@op
class NonMaxSuppressionWithOverlaps:
    """The best boxes by score, without those that are too much like a better one by a given table.

    overlaps: [n, n]
    scores: [n]
    max_output_size: the most boxes, a scalar
    overlap_threshold: the largest overlap, a scalar
    score_threshold: only better scores count, a scalar
    """

    signature = (
        "NonMaxSuppressionWithOverlaps(overlaps:float, scores:float, max_output_size:int32, overlap_threshold:float, "
        "score_threshold:float) -> (selected_indices:int32)"
    )
    device_types = ("CPU",)
    gradient = NO_GRADIENT
    examples = (Example([[[1.0, 0.6, 0.1], [0.6, 1.0, 0.3], [0.1, 0.3, 1.0]], [0.5, 0.9, 0.4], 3, 0.5, 0.0], outputs=[[1, 2]]),)
    failures = (Example([[[1.0, 0.6, 0.1], [0.6, 1.0, 0.3], [0.1, 0.3, 1.0]], [0.5, 0.9, 0.4], -1, 0.5, 0.0]),)

    def shape(c: InferenceContext) -> None:
        overlaps, scores = c.with_rank(c.input(0), 2), c.with_rank(c.input(1), 1)
        side = c.merge_dim(c.dim(overlaps, 0), c.dim(scores, 0))
        c.merge_dim(side, c.dim(overlaps, 1))
        for i in range(2, 5):
            c.with_rank(c.input(i), 0)
        _vector_of_unknown_size(c)

    def kernel(k: KernelContext) -> Kernel:
        def select(overlaps: Any, scores: Any, most: Any, limit: Any, least: Any) -> Any:
            count = one_int(k, most)
            if count < 0 or overlaps.shape != scores.shape * 2:
                raise invalid(k, f"max_output_size must be non-negative, got {count}; overlaps {list(overlaps.shape)} must be a square")
            selected = suppressed(scores, count, lambda a, b: float(overlaps[a, b]), float(limit), float(least))
            return np.array([i for i, _ in selected], np.int32)

        return select


@op
class CombinedNonMaxSuppression:
    """The best boxes of each image over all classes.

    boxes: [batch, n, 1 or classes, 4]
    scores: [batch, n, classes]
    max_output_size_per_class: the most boxes of a class, a scalar
    max_total_size: the most boxes of an image, a scalar
    iou_threshold: the largest intersection over union, a scalar
    score_threshold: only better scores count, a scalar
    nmsed_boxes: [batch, m, 4]
    nmsed_scores: [batch, m]
    nmsed_classes: [batch, m]
    valid_detections: [batch], the number of boxes; the rest are zeros
    pad_per_class: m is at most the number of classes times the most boxes of a class.
    clip_boxes: move corners into [0, 1].
    """

    signature = (
        "CombinedNonMaxSuppression[pad_per_class:bool = false, clip_boxes:bool = true](boxes:float, scores:float, "
        "max_output_size_per_class:int32, max_total_size:int32, iou_threshold:float, score_threshold:float) -> "
        "(nmsed_boxes:float, nmsed_scores:float, nmsed_classes:float, valid_detections:int32)"
    )
    device_types = ("CPU",)
    gradient = NO_GRADIENT
    examples = (
        Example([_THREE, [[[0.9, 0.2], [0.75, 0.8], [0.3, 0.6]]], 2, 5, 0.5, 0.25]),
        Example([_OF_CLASSES, [[[0.9, 0.2], [0.75, 0.8]]], 2, 9, 0.5, 0.0], {"pad_per_class": True, "clip_boxes": False}),
    )
    failures = (Example([_OF_CLASSES, [[[0.9, 0.2], [0.75, 0.8]]], -1, 9, 0.5, 0.0]),)

    def shape(c: InferenceContext) -> None:
        boxes, scores = c.with_rank(c.input(0), 4), c.with_rank(c.input(1), 3)
        for i in range(2, 6):
            c.with_rank(c.input(i), 0)
        c.with_value(c.dim(boxes, 3), 4)
        c.merge_dim(c.dim(boxes, 1), c.dim(scores, 1))
        per_class, total = c.input_tensor(2), c.input_tensor(3)
        batch, size, classes = c.dim(boxes, 0), c.unknown_dim(), c.value(c.dim(scores, 2))
        if total is not None and not c.attr("pad_per_class"):
            size = c.make_dim(int(total))
        elif total is not None and per_class is not None and classes >= 0:
            size = c.make_dim(min(int(total), int(per_class) * classes))
        c.set_output(0, c.make_shape([batch, size, 4]))
        c.set_output(1, c.matrix(batch, size))
        c.set_output(2, c.matrix(batch, size))
        c.set_output(3, c.vector(batch))

    def kernel(k: KernelContext) -> Kernel:
        pad, clip = bool(k.attr("pad_per_class")), bool(k.attr("clip_boxes"))

        def select(boxes: Any, scores: Any, most: Any, total: Any, iou: Any, least: Any) -> Any:
            per_class, size = one_int(k, most), one_int(k, total)
            if per_class <= 0 or size <= 0 or not 0 <= float(iou) <= 1:
                raise invalid(k, "max_output_size_per_class and max_total_size must be > 0, and iou_threshold in [0, 1]")
            if boxes.ndim != 4 or scores.ndim != 3 or boxes.shape[:2] != scores.shape[:2] or boxes.shape[2] not in (1, scores.shape[2]):
                raise invalid(k, f"boxes {list(boxes.shape)} do not fit scores {list(scores.shape)}")
            batch, _, classes = scores.shape
            length = min(size, per_class * classes) if pad else size
            result = np.zeros((batch, length, 6), np.float32)
            valid = np.zeros(batch, np.int32)
            for image in range(batch):
                scored: list[tuple[float, int, list[float]]] = []
                for number in range(classes):
                    own = boxes[image, :, number if boxes.shape[2] > 1 else 0]
                    kept = suppressed(
                        scores[image, :, number], per_class, lambda a, b, own=own: overlap(own[a], own[b]), float(iou), float(least)
                    )
                    scored += [(-score, len(scored) + i, [*own[at].tolist(), score, number]) for i, (at, score) in enumerate(kept)]
                rows = [row for _, _, row in sorted(scored)[:length]]
                valid[image] = len(rows)
                if rows:
                    result[image, : len(rows)] = rows
            places = np.clip(result[..., :4], 0, 1) if clip else result[..., :4].copy()
            return places, result[..., 4].copy(), result[..., 5].copy(), valid

        return select
