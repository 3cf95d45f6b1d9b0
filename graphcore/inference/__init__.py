"""Shape inference: handles, the context of a shape function, and the shape functions that ops share."""

from __future__ import annotations

from graphcore.inference.context import InferenceContext, count_outputs, run_error_suffix
from graphcore.inference.handles import (
    UNKNOWN,
    DimensionHandle,
    HandleData,
    ShapeAndType,
    ShapeHandle,
    handle_to_shape,
    is_fully_defined,
    same_defined_shape,
    same_handle_data,
    shape_of_sizes,
    shape_to_handle,
)

__all__ = [
    "UNKNOWN",
    "DimensionHandle",
    "HandleData",
    "InferenceContext",
    "ShapeAndType",
    "ShapeHandle",
    "count_outputs",
    "handle_to_shape",
    "is_fully_defined",
    "run_error_suffix",
    "same_defined_shape",
    "same_handle_data",
    "shape_of_sizes",
    "shape_to_handle",
]
