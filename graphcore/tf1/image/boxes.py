"""`tf.image.non_max_suppression`: the best of boxes that overlap."""

from __future__ import annotations

from typing import Any

from graphcore.graph import Tensor
from graphcore.tf1.calls import apply_one

__all__ = ["non_max_suppression"]


def non_max_suppression(
    boxes: Any,
    scores: Any,
    max_output_size: Any,
    iou_threshold: Any = 0.5,
    score_threshold: Any = float("-inf"),
    name: str | None = None,
) -> Tensor:
    """The numbers of the boxes with the best scores that do not overlap with a better one.

    Args:
        boxes: [n, 4], floats: two corners of each.
        scores: [n], floats.
        max_output_size: the greatest number of boxes, an int scalar.
        iou_threshold: boxes overlap whose common area is more than this part of their union.
        score_threshold: boxes with at most this score are left out.
        name: the name of the node.

    Returns:
        [k], ints.
    """
    return apply_one("NonMaxSuppressionV3", [boxes, scores, max_output_size, iou_threshold, score_threshold], name)
