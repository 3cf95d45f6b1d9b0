"""Shared by all tests: hypothesis profiles, and markers given by folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

TESTS = Path(__file__).parent
MARKED_FOLDERS = {"browser": "browser", "oracle": "oracle", "gpu": "gpu", "notebooks": "notebook"}

# Derandomised: a run on the same code gives the same verdict. HYPOTHESIS_PROFILE=search looks for new cases.
# No deadline and no complaint of slowness: the machine's load is not a property of the code.
settings.register_profile("steady", max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("search", max_examples=2_000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests by folder; run the browser's last: while Playwright runs, its event loop occupies the main thread."""
    for item in items:
        folder = item.path.relative_to(TESTS).parts[0] if item.path.is_relative_to(TESTS) else ""
        if folder in MARKED_FOLDERS:
            item.add_marker(MARKED_FOLDERS[folder])
    items.sort(key=lambda item: "browser" in item.keywords)
