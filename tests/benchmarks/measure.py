"""Measurement of one variant of one row, in an interpreter of its own."""

from __future__ import annotations

import gc
import importlib
import pkgutil
import statistics
import time
from collections.abc import Callable

from tests.benchmarks import rows as rows_package
from tests.benchmarks.work import Array, Row, Variant, Work

BATCH_SECONDS = 0.01

_current: list[Work] = []


def all_rows() -> dict[str, Row]:
    """Every row by its title, in the order of the table."""
    found: list[Row] = []
    for module in pkgutil.iter_modules(rows_package.__path__, f"{rows_package.__name__}."):
        found += [value for value in vars(importlib.import_module(module.name)).values() if isinstance(value, Row)]
    return {row.title: row for row in sorted(found, key=lambda row: row.order)}


def begin(title: str, variant: Variant) -> list[Array] | None:
    """Prepare the work in this interpreter. Returns its resulting arrays, for comparison of variants."""
    make: Callable[[], Work] | None = getattr(all_rows()[title], variant)
    assert make is not None
    _current[:] = [make()]
    outcome = _current[0].outcome
    return None if outcome is None else list(outcome())


def sample(seconds: float) -> float:
    """Measure the prepared work."""
    return sample_work(_current[0], seconds)


def sample_work(work: Work, seconds: float) -> float:
    """The median figure within about `seconds`: seconds (or bytes) for one run, or for one item of it."""
    if work.figure is not None:
        return work.figure() / work.per
    gc.collect()
    taken = _one_by_one(work, seconds) if work.prepare is not None else _in_batches(work, seconds)
    return statistics.median(taken) / work.per


def _one_by_one(work: Work, seconds: float) -> list[float]:
    assert work.run is not None
    assert work.prepare is not None
    taken: list[float] = []
    while len(taken) < work.fewest or sum(taken) < seconds:
        subject = work.prepare()
        begun = time.perf_counter()
        work.run(subject)
        taken.append(time.perf_counter() - begun)
    return taken


def _in_batches(work: Work, seconds: float) -> list[float]:
    """Short runs are timed in batches, since the clock and the loop cost as much as one."""
    run = work.run
    assert run is not None
    run()
    begun = time.perf_counter()
    run()
    once = max(time.perf_counter() - begun, 1e-9)
    count = max(1, int(BATCH_SECONDS / once))
    taken: list[float] = []
    while len(taken) < work.fewest or sum(taken) * count < seconds:
        begun = time.perf_counter()
        for _ in range(count):
            run()
        taken.append((time.perf_counter() - begun) / count)
    return taken
