"""Kernels of tests that are forks."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jupyter_client.manager import KernelManager

from tests.support.forked_kernels import AVAILABLE, ForkedKernels

pytestmark = pytest.mark.skipif(not AVAILABLE, reason="kernels start as usual on this system")
SECONDS = 60
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    folder = tmp_path_factory.mktemp("forks")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JUPYTER_PATH", str(folder))
        patch.setenv("IPYTHONDIR", str(folder / "ipython"))
        patch.setenv("PYDEVD_DISABLE_FILE_VALIDATION", "1")
        forked = ForkedKernels(folder, {**os.environ, "PYTHONPATH": str(ROOT)})
        forked.start()
        yield
        forked.stop()


class Running:
    """A kernel and its client."""

    def __init__(self, folder: Path, **variables: str) -> None:
        self.manager = KernelManager(kernel_name="python3")
        self.manager.start_kernel(cwd=str(folder), env={**os.environ, **variables})
        self.client = self.manager.blocking_client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=SECONDS)

    def text(self, code: str) -> str:
        """The text that a cell prints, or the name of its error."""
        said: list[str] = []

        def keep(message: dict[str, Any]) -> None:
            said.append(message["content"].get("text", "") or message["content"].get("ename", ""))

        self.client.execute_interactive(code, timeout=SECONDS, output_hook=keep)
        return "".join(said)

    def end(self) -> None:
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)


@pytest.fixture
def running(kernels: None, tmp_path: Path) -> Iterator[Running]:
    kernel = Running(tmp_path, GIVEN="to this kernel")
    yield kernel
    kernel.end()


def gone(process: int) -> bool:
    """True once the process has ended."""
    deadline = time.monotonic() + SECONDS
    while Path(f"/proc/{process}").exists():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def test_kernels_of_one_parent_have_their_folder_and_variables_and_nothing_of_each_other(running: Running, tmp_path: Path) -> None:
    assert running.text("import os; print(os.getcwd(), os.environ['GIVEN'])") == f"{tmp_path} to this kernel\n"
    running.text("import graphcore as gc; gc.placeholder(gc.float32, name='x'); left = 1")
    other = Running(tmp_path)
    assert other.text("import graphcore as gc; print(len(gc.get_default_graph().nodes), 'left' in globals())") == "0 False\n"
    parent = "import os; print(os.getppid())"
    assert other.text(parent) == running.text(parent) != f"{os.getpid()}\n"
    other.end()


def test_an_interrupt_reaches_a_cell_that_sleeps(running: Running) -> None:
    request = running.client.execute("print('on'); import time; time.sleep(1000)")
    while running.client.get_iopub_msg(timeout=SECONDS)["content"].get("text") != "on\n":
        pass
    running.manager.interrupt_kernel()
    reply = running.client.get_shell_msg(timeout=SECONDS)
    while reply["parent_header"]["msg_id"] != request:  # an answer to one of the questions whether it is ready
        reply = running.client.get_shell_msg(timeout=SECONDS)
    assert reply["content"]["ename"] == "KeyboardInterrupt"


def test_a_kernel_that_is_killed_ends_and_one_that_ends_is_seen_to_be_dead(running: Running, tmp_path: Path) -> None:
    process = int(running.text("import os; print(os.getpid())"))
    running.manager.shutdown_kernel(now=True)
    assert gone(process)
    other = Running(tmp_path)
    other.client.execute("import os; os._exit(1)")
    deadline = time.monotonic() + SECONDS
    while other.manager.is_alive():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    other.end()
