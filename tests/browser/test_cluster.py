"""A run over the processes of a cluster is seen in JupyterLab like one in the kernel."""

from __future__ import annotations

import json
import re
import time
from typing import Final

import psutil
import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Lab
from tests.browser.graph_panel import GraphPanel

CELLS: Final = [
    "%load_ext kernelext\nimport json, os\nimport graphcore as gc\n%graph",
    "cluster = gc.LocalCluster(workers=2)\ncluster",
    """
x = gc.placeholder(gc.float32, [2, 3], name="x")
with gc.device("/job:worker/task:0"):
    weights = gc.Variable(gc.ones([3, 2]), name="weights")
    product = gc.matmul(x, weights, name="product")
with gc.device("/job:worker/task:1"):
    y = gc.tanh(product, name="y")
session = gc.Session(cluster=cluster)
session.run(weights.initializer)
session.run(y, {x: [[0, 1, 2], [3, 4, 5]]}, gc.RunOptions(trace=True, values=True))""",
    "json.dumps(sorted(cluster.client.run(os.getpid).values()))",
    "run = session.step_through(y, {x: [[0, 1, 2], [3, 4, 5]]})",
    "run.finish()",
    """
with gc.device("/job:worker/task:1"):
    turns = gc.placeholder_with_default(10**9, [])
    total = gc.Variable(1, name="total")
    change = total.assign_add(gc.while_loop(lambda i: i < turns, lambda i: i + 1, [gc.constant(0)]))
session.run(total.initializer)
print("begun")
session.run(change)""",
    "session.run(change, {turns: 3})",
]


@pytest.mark.slow
def test_a_run_on_a_local_cluster_is_seen_like_one_in_the_kernel_and_ends_with_it(lab: Lab) -> None:
    notebook = lab.open_cells(CELLS)
    for cell in range(4):
        notebook.run_cell(cell)
    shown = notebook.cell(1).locator("table")
    assert re.search(r"/job:worker/task:1\s+1\s+graphloupe://\S+\s+\S+ GiB", shown.inner_text())
    panel = GraphPanel(notebook.page)
    panel.box("y").wait_for()
    root = panel.root
    lenses = root.locator(".gl-lenses")
    for lens, box, text in (
        ("devices", "y", re.compile("task:1")),
        ("time", "product", re.compile("% of the time of all devices")),
        ("values", "product", re.compile("mean 7.5")),
    ):
        lenses.select_option(lens)
        expect(panel.box(box)).to_have_attribute("data-lens-text", text)
        notebook.screenshot(lens)
    root.get_by_role("button", name="Timeline: ").click()
    root.locator(".gl-chart").first.wait_for()
    notebook.screenshot("timeline")
    notebook.run_cell(4)
    said = root.locator(".gl-step-said")
    expect(said).to_contain_text("live")
    root.get_by_label("Stop where this holds").fill("product")
    root.get_by_role("button", name="Run to the next breakpoint").click()
    expect(said).to_contain_text("product ran: float [2,2]")
    notebook.dark_theme()
    notebook.screenshot("live-dark")
    notebook.dark_theme(False)
    notebook.run_cell(5)
    assert "array(" in notebook.text(5)
    notebook.cell(6).click()
    # Not `run_cell`, which waits for the end.
    notebook.page.evaluate("() => { window.jupyterapp.commands.execute('notebook:run-cell'); }")
    notebook.wait_until(lambda: "begun" in notebook.text(6))
    notebook.page.wait_for_timeout(500)
    notebook.interrupt()  # reaches the workers too
    notebook.wait_idle()
    assert "KeyboardInterrupt" in notebook.text(6)
    notebook.run_cell(7)
    assert notebook.text(7) == "np.int32(4)"
    workers = [psutil.Process(number) for number in json.loads(notebook.text(3).strip("'"))]
    assert len(workers) == 2
    notebook.restart_kernel()
    deadline = time.monotonic() + 20
    while any(each.is_running() for each in workers) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert [each for each in workers if each.is_running()] == []
