"""The extension in real kernels, in nbclient and in a real terminal."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager
from nbclient import NotebookClient

ROOT = Path(__file__).parents[2]
START = "%load_ext kernelext\nimport graphcore as gc"
BUILD = "x = gc.placeholder(gc.float32, [None, 4], name='x')\ny = gc.tanh(x, name='y')\ngraph = gc.get_default_graph()"
NAMES = "[node.name for node in gc.get_default_graph().op_nodes()]"
SECONDS = 60


class Kernel:
    """A kernel whose cells have ids, as in a notebook."""

    def __init__(self, folder: Path) -> None:
        self.manager = KernelManager()
        self.manager.start_kernel(cwd=str(folder), env={**os.environ, "PYTHONPATH": str(ROOT)})
        self.client: BlockingKernelClient = self.manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(SECONDS)

    def run(self, code: str, cell: str) -> dict[str, Any]:
        """Run a cell; returns its outputs: `text` (streams, results, errors) and `mimes`."""
        message = self.client.session.msg("execute_request", {"code": code, "silent": False, "store_history": True, "allow_stdin": False})
        message["metadata"] = {"cellId": cell}
        self.client.shell_channel.send(message)
        text, mimes = "", set()
        while True:
            reply = self.client.get_iopub_msg(timeout=SECONDS)
            if reply["parent_header"].get("msg_id") != message["header"]["msg_id"]:
                continue
            kind, content = reply["msg_type"], reply["content"]
            if kind == "status" and content["execution_state"] == "idle":
                break
            if kind == "update_display_data":
                continue
            text += content.get("text", "") + content.get("data", {}).get("text/plain", "") + "\n".join(content.get("traceback", []))
            mimes |= content.get("data", {}).keys()
        self.answer(message["header"]["msg_id"])
        return {"text": text, "mimes": mimes}

    def answer(self, identity: str) -> Any:
        """The content of the reply to a request."""
        while True:
            reply = self.client.get_shell_msg(timeout=SECONDS)
            if reply["parent_header"].get("msg_id") == identity:
                return reply["content"]

    def completions(self, code: str) -> list[str]:
        found: list[str] = self.answer(self.client.complete(code))["matches"]
        return found

    def restart(self) -> None:
        self.manager.restart_kernel(now=True)
        self.client.wait_for_ready(SECONDS)

    def stop(self) -> None:
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    kernel = Kernel(tmp_path_factory.mktemp("kernel"))
    yield kernel
    kernel.stop()


@pytest.fixture
def started(kernel: Kernel) -> Kernel:
    """The kernel of all tests here, with an empty graph."""
    kernel.run("%reset -f", "reset")
    kernel.run(f"{START}\ngc.reset_default_graph()", "start")
    assert kernel.run(BUILD, "build")["text"].startswith("+2 nodes")
    return kernel


def test_names_complete_and_ops_explain_themselves_to_a_page(started: Kernel) -> None:
    assert started.completions('graph["') == ["x", "y"]
    assert started.completions('gc.Session().run(\n    y,\n    {"') == ["x:0"]
    assert "dock" in started.completions("%graph ")
    asked = started.answer(started.client.inspect("gc.ops.mat_mul"))
    assert "a [m,k], b [k,n] -> product [m,n]" in asked["data"]["text/plain"]
    identity = started.client.execute("gc.ops.mat_mul?")
    (payload,) = started.answer(identity)["payload"]
    assert "<img" in payload["data"]["text/html"]


def test_a_reloaded_extension_takes_the_cells_up_again(started: Kernel) -> None:
    assert started.run("%reload_ext kernelext", "reload")["text"] == ""
    started.run(BUILD.replace("tanh", "exp"), "build")
    assert started.run(NAMES, "names")["text"] == "['x', 'y']"
    assert started.run("%graph inline", "view")["mimes"] >= {"text/html", "application/vnd.jupyter.widget-view+json"}
    assert started.run("%unload_ext kernelext", "unload")["text"] == ""
    assert "UsageError" in started.run("%graph", "view")["text"]
    assert started.run("x", "x")["mimes"] == {"text/plain"}


def test_autoreload_takes_the_new_code_of_a_module_and_the_cell_replaces_its_nodes(started: Kernel) -> None:
    write = "from pathlib import Path\nPath('mylayers.py').write_text('import graphcore as gc\\n\\ndef layer(x):\\n    return gc.{op}(x, name=\"z\")\\n')"
    started.run(f"{write.format(op='tanh')}\n%load_ext autoreload\n%autoreload 2", "write")
    started.run("import mylayers", "import")
    started.run("z = mylayers.layer(x)", "use")
    assert started.run("z.node.op", "op")["text"] == "'Tanh'"
    started.run(f"import os\n{write.format(op='sigmoid')}\nos.utime('mylayers.py', (2e9, 2e9))", "edit")
    started.run("z = mylayers.layer(x)", "use")
    assert started.run("z.node.op", "op")["text"] == "'Sigmoid'"
    assert started.run(NAMES, "names")["text"] == "['x', 'y', 'z']"
    started.run("%autoreload 0", "off")


THREADS = """
import threading
def build(number):
    gc.tanh(x, name=f"t{number}")
threads = [threading.Thread(target=build, args=[number]) for number in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""
LATE = """
import threading
go = threading.Event()
def late():
    go.wait()
    gc.exp(x, name="late")
thread = threading.Thread(target=late)
thread.start()
"""


def test_nodes_of_threads_belong_to_the_cell_that_started_them(started: Kernel) -> None:
    for _ in range(2):
        assert "Error" not in started.run(THREADS, "threads")["text"]
    assert started.run(f"sorted({NAMES})", "names")["text"] == "['t0', 't1', 't2', 't3', 'x', 'y']"
    started.run("pass", "threads")
    assert started.run(f"sorted({NAMES})", "names")["text"] == "['x', 'y']"


def test_a_thread_that_goes_on_after_its_cell_disturbs_no_other(started: Kernel) -> None:
    started.run(LATE, "late")
    assert "Error" not in started.run("go.set(); thread.join()\nz = gc.tanh(y, name='z')", "next")["text"]
    assert started.run(f"sorted({NAMES})", "names")["text"] == "['late', 'x', 'y', 'z']"
    started.run("z = gc.tanh(y, name='z')", "next")
    assert started.run(f"sorted({NAMES})", "names")["text"] == "['late', 'x', 'y', 'z']"


def test_after_a_restart_all_cells_give_the_same_names_and_the_same_picture(started: Kernel) -> None:
    cells = {"start": START, "build": BUILD, "more": "W = gc.Variable(gc.ones([4, 3]), name='W')\nz = x @ W\n(g,) = gc.gradients(z, [W])"}
    look = f"from widgets.render.outline import to_outline\nfrom widgets import build_scene\nprint({NAMES}, to_outline(build_scene(gc.get_default_graph())))"
    for cell, code in cells.items():
        started.run(code, cell)
    before = started.run(look, "look")["text"]
    assert "MatMul" in before
    started.restart()
    for cell, code in cells.items():
        started.run(code, cell)
    assert started.run(look, "look")["text"] == before


def test_nbclient_keeps_a_picture_that_needs_no_kernel_and_says_nothing_else(tmp_path: Path) -> None:
    notebook = nbformat.v4.new_notebook()
    notebook.cells = [nbformat.v4.new_code_cell(source) for source in (START, "%graph", BUILD, "%nodes", "1 + 1")]
    NotebookClient(notebook, timeout=SECONDS, resources={"metadata": {"path": str(tmp_path)}}).execute()
    (picture,) = notebook.cells[1].outputs
    assert "Outline of graph: 2 nodes" in picture.data["text/html"]
    assert picture.data["application/vnd.graphloupe.scene+json"]["graph_gzip_base64"]
    assert [cell.outputs for cell in (notebook.cells[0], notebook.cells[2])] == [[], []]
    assert notebook.cells[3].outputs[0].data["text/plain"].startswith("name  op")


TERMINAL = f"""{START}
x = gc.placeholder(gc.float32, [None, 4], name="x")
y = gc.tanh(x, name="y")
%graph
%graph focus y
%nodes op:Tanh
%why shape y
%fetch y x=[[0.0]*4]
%step y x=[[0.0]*4]
%trace
%diff
%graph undo
gc.get_default_graph()
gc.ops.mat_mul?
gc.tanh(5, name="wrong", other=3)
%unload_ext kernelext
exit
"""


def test_everything_is_text_in_a_terminal(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "IPython", "--simple-prompt", "--no-banner", "--colors=NoColor", "--ipython-dir", str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "dumb", "PAGER": "cat"}
    done = subprocess.run(command, input=TERMINAL, env=environment, capture_output=True, text=True, timeout=SECONDS, check=True)
    for text in (
        "+1 node",
        "Tanh y <- x float [?,4]",
        "input    x:0  float [?,4]",
        "y     Tanh  float [?,4]  In [4]",
        "is a literal of `x`",
        "array([[0., 0., 0., 0.]], dtype=float32)",
        "2  y  Tanh",
        "node run in",
        "1 added, 1 unchanged",
        "are undone",
        "<gc.Graph 1 nodes",
        "a [m,k], b [k,n] -> product [m,n]",
        "TypeError",
    ):
        assert text in done.stdout, f"{text}\n{done.stdout}\n{done.stderr}"
    assert "Placeholder x" not in done.stdout.rpartition("TypeError")[2], "unloading says nothing"
    assert "kernelext" not in done.stderr
