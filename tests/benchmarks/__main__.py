"""Time this project, NumPy and TensorFlow on the same work.

    python -m tests.benchmarks [--only TEXT] [--rounds N] [--check]

Each variant of a row has its own interpreter, and the rounds alternate between the variants, so that a slow moment of the machine affects
all of them. Before timing, the variants' results are compared.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

from tests.benchmarks.measure import all_rows
from tests.benchmarks.report import Result, table
from tests.benchmarks.work import VARIANTS, Array, Row, Variant
from tests.support.remote import ROOT, Remote, RemoteError

MEASURE = "tests.benchmarks.measure"
QUIET = {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}


def interpreter(variant: Variant) -> Path:
    """The Python interpreter for a variant."""
    if variant != "tensorflow":
        return Path(sys.executable)
    return Path(os.environ.get("GRAPHLOUPE_ORACLE") or ROOT / ".venv-oracle" / "bin" / "python")


def difference(row: Row, outcomes: dict[Variant, list[Array]]) -> str:
    """The difference between the results of two variants; empty if the work is the same."""
    expected = outcomes.get("tensorflow") or outcomes.get("numpy")
    for variant, values in outcomes.items():
        same = expected is None or (
            len(values) == len(expected)
            and all(
                a.shape == b.shape and np.allclose(a, b, rtol=row.tolerance, atol=row.tolerance)
                for a, b in zip(values, expected, strict=True)
            )
        )
        if not same:
            return f"{variant} computes something else"
    return ""


def measure(row: Row, rounds: int, seconds: float, variants: list[Variant]) -> Result:
    """Run all rounds of one row. A failing variant is reported and left out; the others are measured all the same."""
    figures: dict[Variant, list[float]] = {}
    outcomes: dict[Variant, list[Array]] = {}
    problems: list[str] = []
    with contextlib.ExitStack() as stack:
        remotes: dict[Variant, Remote] = {}

        def ask(variant: Variant, function: str, *arguments: object) -> Any:
            try:
                return remotes[variant].call(f"{MEASURE}:{function}", *arguments)
            except RemoteError as error:
                print(error, file=sys.stderr)
                problems.append(f"{variant}: {error.kind}: {error.message.partition(chr(10))[0]}")
                remotes.pop(variant)
                figures.pop(variant, None)
                return None

        for variant in filter(row.has, variants):
            remotes[variant] = stack.enter_context(Remote(interpreter(variant), QUIET))
            outcome = ask(variant, "begin", row.title, variant)
            if outcome is not None:
                outcomes[variant] = outcome
        if wrong := difference(row, outcomes):
            problems.append(wrong)
        for _ in range(min(rounds, row.most_rounds)):
            for variant in list(remotes):
                figure = ask(variant, "sample", seconds)
                if figure is not None:
                    figures.setdefault(variant, []).append(figure)
    return Result(row, figures, "; ".join(problems))


def main() -> int:
    """Print the table; with --check return 1 if a row exceeds its budget or cannot be measured."""
    options = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    options.add_argument("--only", default="", help="rows whose title contains this text")
    options.add_argument("--rounds", type=int, default=7, help="how often each variant is measured")
    options.add_argument("--seconds", type=float, default=0.2, help="for how long each time")
    options.add_argument("--without", action="append", default=[], choices=["numpy", "tensorflow"], help="leave a variant out")
    options.add_argument("--check", action="store_true", help="fail when a budget is broken")
    chosen = options.parse_args()
    variants = [variant for variant in VARIANTS if variant not in chosen.without]
    results: list[Result] = []
    for title, row in all_rows().items():
        if chosen.only.lower() not in title.lower():
            continue
        print(f"{title} ...", file=sys.stderr, flush=True)
        results.append(measure(row, chosen.rounds, chosen.seconds, variants))
    print(table(results))
    artefacts = ROOT / "artefacts"
    artefacts.mkdir(exist_ok=True)
    kept = {result.row.title: {"unit": result.row.unit, "rounds": result.rounds, "verdict": result.verdict()} for result in results}
    (artefacts / "bench.json").write_text(json.dumps(kept, indent=1))
    return int(chosen.check and any(result.verdict() != "ok" for result in results))


if __name__ == "__main__":
    sys.exit(main())
