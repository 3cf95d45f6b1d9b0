"""Fixtures and settings for all tests: hypothesis profiles, and markers by folder."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

TESTS = Path(__file__).parent
MARKED_FOLDERS = {
    "browser": "browser",
    "oracle": "oracle",
    "gpu": "gpu",
    "frameworks": "frameworks",
    "notebooks": "notebook",
    # They compute on graphs by code of this project alone, or by the stand-in for CuPy, the same on each version of Python and the dependencies.
    "graphcore/inference": "sweep",
    "graphcore/passes": "sweep",
    "graphcore/placement": "sweep",
    "graphcore/difference": "sweep",
    "graphcore/runtime/gpu": "sweep",
    "graphcore/graph/shapes": "sweep",
    # They test the tests' own tools.
    "benchmarks": "sweep",
    "lint": "sweep",
    "support": "sweep",
}
ONLY_IN_FOLDERS = {"browser", "oracle", "gpu", "notebook", "frameworks"}
"""The markers that no other test has."""

# Derandomised, so that the same code gives the same result. HYPOTHESIS_PROFILE=search looks for new cases; `few` is for further versions of
# Python, on which another version has tried all examples of `steady`. No deadline and no health check
# for slowness: the machine's load is not a property of the code.
settings.register_profile("steady", max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("few", settings.get_profile("steady"), max_examples=15)
settings.register_profile("search", max_examples=2_000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))

# jsonschema, a dependency of nbformat, uses this optionally for the format "iri". No notebook has one, and importing its grammar takes a
# second in each of four processes.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]  # None makes an import fail


def marker_of(path: Path) -> str:
    """The marker of the tests in a file or folder by its place."""
    return next((marker for folder, marker in MARKED_FOLDERS.items() if path.is_relative_to(TESTS / folder)), "")


def pytest_configure(config: pytest.Config) -> None:
    """Let Ctrl-C raise KeyboardInterrupt, also where a shell's background job ignores SIGINT."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Skip the import of folders from which a plain `-m` expression selects nothing."""
    if not collection_path.is_relative_to(TESTS) or collection_path == TESTS:
        return None
    conditions = [condition.strip() for condition in config.option.markexpr.split(" and ")]
    marker = marker_of(collection_path)
    if any(wanted in conditions and wanted != marker for wanted in ONLY_IN_FOLDERS):
        return True
    return True if marker and f"not {marker}" in conditions else None


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Exclude the objects made by collection from garbage collection.

    All modules and items live to the end; every full garbage collection, such as the one that closing an IPython shell requests, would visit
    them: 600,000 objects, 0.6 seconds each. Objects made by tests are still collected.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests by folder, and run browser tests last: Playwright's event loop occupies the main thread."""
    for item in items:
        marker = marker_of(item.path)
        if marker:
            item.add_marker(marker)
    items.sort(key=lambda item: "browser" in item.keywords)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print measurements of tests that no assertion depends on."""
    measured = [line for report in terminalreporter.getreports("passed") for line in report.user_properties]
    if measured:
        terminalreporter.section("measured")
        for name, value in measured:
            terminalreporter.line(f"{name}: {value}")
