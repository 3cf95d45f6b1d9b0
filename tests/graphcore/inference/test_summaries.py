"""The short text of tensor values in error messages."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from graphcore.inference.summaries import summarize_value


@pytest.mark.parametrize(
    ("value", "limit", "expected"),
    [
        (np.array(7), 9, "7"),
        (np.array([1, 2, 3]), 9, "1 2 3"),
        (np.array([[1, 2], [3, 4]]), 9, "[1 2][3 4]"),
        (np.array([[[1], [2]], [[3], [4]]]), 9, "[[1][2]][[3][4]]"),
        (np.array([], np.int32), 9, ""),
        (np.zeros((2, 0)), 9, "[][]"),
        (np.array([1, 2, 3]), 2, "1 2..."),
        (np.array([[1, 2, 3], [4, 5, 6]]), 2, "[1 2...]..."),
        (np.array([[1, 2, 3], [4, 5, 6], [7, 8, 9]]), 4, "[1 2 3][4...]..."),
        (np.array([[1, 2], [3, 4]]), 2, "[1 2]..."),
        (np.array([1.5, -0.25, 3], np.float32), 9, "1.5 -0.25 3"),
        (np.array([True, False]), 9, "1 0"),
        (np.array([b"ab", b"\xff"], object), 9, "ab \\xff"),
    ],
)
def test_values_are_listed_row_by_row(value: npt.NDArray[np.generic], limit: int, expected: str) -> None:
    assert summarize_value(value, limit) == expected
