"""Values of the top level under TensorFlow 1's names."""

from __future__ import annotations

from typing import Final

from graphcore import dtypes
from graphcore.dimension import Dimension
from graphcore.errors import GraphError
from graphcore.graph import Node
from graphcore.release import __version__
from graphcore.shapes import Shape

__all__ = ["COMPILER_VERSION", "GIT_VERSION", "QUANTIZED_DTYPES", "VERSION", "Dimension", "OpError", "Operation", "TensorShape", "bool"]

Operation = Node
TensorShape = Shape
OpError = GraphError
bool = dtypes.bool_  # noqa: A001 - TF1's name
VERSION: Final = __version__
GIT_VERSION: Final = "graphloupe"
COMPILER_VERSION: Final = "none"
QUANTIZED_DTYPES: Final = frozenset({dtypes.qint8, dtypes.quint8, dtypes.qint32, dtypes.qint16, dtypes.quint16})
