"""The sets of types used by many signatures, in TensorFlow's order."""

from __future__ import annotations

from typing import Final

FLOATING: Final = "{bfloat16, half, float, double}"
FLOATING_OR_COMPLEX: Final = "{bfloat16, half, float, double, complex64, complex128}"
SIGNED: Final = "{bfloat16, half, float, double, int8, int16, int32, int64, complex64, complex128}"
REAL: Final = "{float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}"
NUMBER: Final = (
    "{float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, quint16, uint16, complex128, half, "
    "uint32, uint64}"
)
ORDERED: Final = (
    "{float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64, qint8, quint8, qint32, qint16, quint16}"
)
INTEGER: Final = "{int8, int16, int32, int64, uint8, uint16, uint32, uint64}"
INDEX: Final = "{int32, int64}"
