"""The benchmark rows: the same work three times, with a budget.

This module and the rows are imported in TensorFlow's interpreter too, so they import nothing beyond NumPy; each variant imports the library
it measures.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Float = npt.NDArray[np.float32]
Unit = Literal["s", "ms", "us", "MB", "KB", "x"]
Variant = Literal["ours", "numpy", "tensorflow"]
VARIANTS: tuple[Variant, ...] = ("ours", "numpy", "tensorflow")
IN_UNITS: dict[Unit, float] = {"s": 1.0, "ms": 1e3, "us": 1e6, "MB": 1e-6, "KB": 1e-3, "x": 1.0}


@dataclass(frozen=True, kw_only=True)
class Work:
    """Work to measure.

    Args:
        run: the work itself; takes the result of `prepare`, if there is one.
        prepare: called before each `run`, outside the clock.
        fewest: the smallest number of runs for a figure.
        per: the number of items of one run (nodes); the figure is for one of them.
        outcome: arrays that must be equal for every variant, as proof that the work is the same.
        figure: measures by itself and returns seconds, bytes, or a ratio; replaces `run`.
    """

    run: Callable[..., object] | None = None
    prepare: Callable[[], object] | None = None
    fewest: int = 3
    per: int = 1
    outcome: Callable[[], Sequence[Array]] | None = None
    figure: Callable[[], float] | None = None


@dataclass(frozen=True)
class Budget:
    """The limit for ours: `limit` in the row's unit, or `limit` times another variant's figure.

    The other figure is that of the same run.
    """

    limit: float
    times: Literal["", "numpy", "tensorflow"] = ""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One row of the table. Module-level objects of this class in `rows/` are found automatically.

    `tolerance` is for the comparison of the variants' outcomes; `most_rounds` is for work that takes many seconds.
    """

    order: float
    title: str
    unit: Unit
    budgets: tuple[Budget, ...]
    ours: Callable[[], Work]
    numpy: Callable[[], Work] | None = None
    tensorflow: Callable[[], Work] | None = None
    tolerance: float = 1e-4
    most_rounds: int = 1_000

    def has(self, variant: Variant) -> bool:
        """True iff there is such a variant."""
        return getattr(self, variant) is not None


def random_floats(seed: int, *shape: int, scale: float = 1.0) -> Float:
    """Reproducible values in [0, scale), the same in every interpreter."""
    values: Float = np.random.default_rng(seed).random(shape, dtype=np.float32) * np.float32(scale)
    return values
