"""The browser and the JupyterLab of a worker, which the tests of this folder share.

A process has one Playwright.
"""

from __future__ import annotations

from tests.browser.conftest import browser, lab, lab_server, playwright, window

__all__ = ["browser", "lab", "lab_server", "playwright", "window"]
