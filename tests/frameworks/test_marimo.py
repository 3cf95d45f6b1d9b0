"""Live views in marimo, whose cells run again by themselves after a change of their inputs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.server import ROOT, free_port, stop_process

pytestmark = pytest.mark.browser
pytest.importorskip("marimo", reason="marimo is installed by make frameworks")

START_SECONDS = 90.0
APP = """
import marimo

app = marimo.App()


@app.cell
def _():
    import marimo as mo
    import graphcore as gc
    import widgets
    return gc, mo, widgets


@app.cell
def _(mo):
    layers = mo.ui.number(1, 4, value=1, label="layers")
    layers
    return (layers,)


@app.cell
def _(gc, layers):
    graph = gc.Graph()
    with graph.as_default():
        h = gc.placeholder(gc.float32, [None, 4], name="x")
        for number in range(layers.value):
            h = gc.tanh(h, name=f"layer{number + 1}")
    return (graph,)


@app.cell
def _(graph, widgets):
    widgets.GraphView(graph, title="in marimo")
    return


if __name__ == "__main__":
    app.run()
"""


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """The address of the notebook, served as an app."""
    (tmp_path / "app.py").write_text(APP)
    port = free_port()
    search = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
    environment = {**os.environ, "PYTHONPATH": search, "HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)}
    options = ["--headless", "--no-token", "--host", "127.0.0.1", "--port", str(port)]
    log = (tmp_path / "log").open("wb")
    server = subprocess.Popen(
        [sys.executable, "-m", "marimo", "run", "app.py", *options], cwd=tmp_path, env=environment, stdout=log, stderr=log
    )
    url = f"http://127.0.0.1:{port}"
    deadline = time.monotonic() + START_SECONDS
    while not answers(url):
        if server.poll() is not None or time.monotonic() > deadline:
            stop_process(server)
            pytest.fail(f"marimo did not start:\n{(tmp_path / 'log').read_text()[-2000:]}")
        time.sleep(0.2)
    yield url
    server.send_signal(signal.SIGINT)
    stop_process(server)
    log.close()


def answers(url: str) -> bool:
    """True iff the server serves requests."""
    try:
        with urllib.request.urlopen(f"{url}/health", timeout=5):
            return True
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return False


def test_a_view_in_marimo_shows_answers_and_follows_cells_that_run_again(browser: Browser, address: str, tmp_path: Path) -> None:
    page = browser.new_page(viewport={"width": 1200, "height": 900}, reduced_motion="reduce")
    page.goto(address)
    page.locator('[data-node-id="layer1"]').click()
    expect(page.get_by_label("Inspector", exact=True)).to_contain_text("float [?,4]")
    number = page.get_by_role("textbox", name="layers").or_(page.get_by_role("spinbutton", name="layers")).first
    number.fill("3")
    number.press("Enter")
    page.locator('[data-node-id="layer3"]').wait_for()
    assert page.locator('[data-node-id="layer1"]').count() == 1
    page.screenshot(path=str(tmp_path / "marimo.png"))
    page.close()
