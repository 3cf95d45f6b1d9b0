"""`tf.nn`: dilation and erosion of images."""

from __future__ import annotations

from typing import Any

from graphcore.graph import Tensor
from graphcore.tf1.calls import apply_one, either
from graphcore.tf1.framework import constant, name_scope


def dilation2d(
    input: Any,
    filter: Any = None,
    strides: Any = None,
    rates: Any = None,
    padding: Any = None,
    name: str | None = None,
    filters: Any = None,
    dilations: Any = None,
) -> Tensor:
    """The largest sum of a pixel and a filter element in each window. input: [b, h, w, c], filter: [fh, fw, c] -> [b, rows, columns, c].

    Args:
        input: the images.
        filter, filters: the structuring function of each channel.
        strides: [1, rows, columns, 1] from one window to the next.
        rates, dilations: [1, rows, columns, 1] from one element of a window to the next.
        padding: "SAME" or "VALID".
        name: the name of the node.
    """
    attrs = {"strides": strides, "rates": either("dilations", dilations, "rates", rates), "padding": padding}
    return apply_one("Dilation2D", [input, either("filters", filters, "filter", filter)], name, attrs)


def erosion2d(value: Any, kernel: Any, strides: Any, rates: Any, padding: Any, name: str | None = None) -> Tensor:
    """The smallest difference of a pixel and a kernel element in each window; shapes as of `dilation2d`.

    It is the negative dilation of the negative images by the mirrored kernel.
    """
    with name_scope(name or "erosion2d") as scope:
        mirrored = apply_one("ReverseV2", [kernel, constant([0, 1])], None)
        dilated = apply_one(
            "Dilation2D", [apply_one("Neg", [value], None), mirrored], scope, {"strides": strides, "rates": rates, "padding": padding}
        )
        return apply_one("Neg", [dilated], None)
