"""Interrupting a notebook: a cell that builds and runs is stopped, and all is consistent afterwards."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from queue import Empty
from typing import Any

import pytest
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager

LIMIT = 60
START = """
%load_ext kernelext
import graphcore as gc
from tests.support.whole_graphs import Mirror, check_whole
graph, mirror = gc.get_default_graph(), Mirror(gc.get_default_graph())
count = gc.Variable(0)
step = count.assign_add(1)
session = gc.Session()
session.run(count.initializer)
"""
WORK = """
print("begins", flush=True)
for number in range(200):
    x = gc.tanh(gc.constant([1.0, 2.0], name=f"x{number}"))
    gc.gradients(gc.cond(gc.reduce_sum(x) > 1.0, lambda: x * 2.0, lambda: x), x)
while True:
    with gc.name_scope("scope/"):
        graph.remove_node(gc.tanh(x, name="again").node)
    session.run(step)
"""
CHECK = """
check_whole(graph, mirror)
assert graph.scopes.name == ""
assert session.run(step) == session.run(count)
"""


@pytest.fixture
def kernel() -> Iterator[tuple[KernelManager, BlockingKernelClient]]:
    """A kernel process, stopped at the end."""
    manager = KernelManager(kernel_name="python3")
    manager.start_kernel(cwd=str(Path(__file__).parents[2]))
    client = manager.client()
    client.start_channels()
    client.wait_for_ready(timeout=LIMIT)
    yield manager, client
    client.stop_channels()
    manager.shutdown_kernel(now=True)


def ended(client: BlockingKernelClient, code: str) -> dict[str, Any]:
    """The end of a cell that is not interrupted."""
    reply = client.execute_interactive(code, timeout=LIMIT, allow_stdin=False, output_hook=lambda _: None)
    return dict(reply["content"])


def heard(client: BlockingKernelClient, asked: str) -> str:
    """The type of the next message about a cell."""
    news = client.get_iopub_msg(timeout=LIMIT)
    return str(news["msg_type"]) if news["parent_header"].get("msg_id") == asked else ""


def stopped(manager: KernelManager, client: BlockingKernelClient) -> dict[str, Any]:
    """The end of a cell interrupted by the stop button.

    It is pressed again if nothing follows: Python loses errors raised in finalisers.
    """
    for _ in range(20):
        manager.interrupt_kernel()
        with suppress(Empty):
            return dict(client.get_shell_msg(timeout=3)["content"])
    raise AssertionError("the cell goes on")


@pytest.mark.slow
def test_cells_that_are_stopped_leave_a_graph_that_works(kernel: tuple[KernelManager, BlockingKernelClient]) -> None:
    manager, client = kernel
    assert ended(client, START)["status"] == "ok"
    for number in range(20):
        asked = client.execute(WORK, stop_on_error=False)
        while heard(client, asked) != "stream":
            pass  # before the cell's own code runs, an interrupt would hit the kernel, which loses the cell's reply
        time.sleep(0.01 * number)  # while nodes are made, and later while they come and go
        reply = stopped(manager, client)
        assert reply["ename"] == "KeyboardInterrupt", reply
        checked = ended(client, CHECK)
        assert checked["status"] == "ok", checked
