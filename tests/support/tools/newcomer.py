"""Walk the three ways in of the README, each from an empty environment, and say how long it takes.

Network is used for packages only. A way that takes longer than two minutes, installation included, fails.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

from tests.support.tools.wheel_smoke import PIP, run, tracked_copy

LIMIT = 120.0
"""The most seconds for each way."""
MODEL = """
import onnx
from onnx.helper import make_graph, make_model, make_node, make_tensor_value_info as value

nodes = [make_node("MatMul", ["x", "w"], ["h"]), make_node("Relu", ["h"], ["y"])]
onnx.save(make_model(make_graph(nodes, "model", [value("x", 1, ["n", 3]), value("w", 1, [3, 2])], [value("y", 1, ["n", 2])])), "model.onnx")
"""
PORT = 8979
CELLS = [
    "%load_ext kernelext\nimport jax\nimport jax.numpy as jnp",
    "def f(params, x):\n    return jax.nn.softmax(x @ params['w'] + params['b'])\n\nparams = {'w': jnp.zeros((784, 10)), 'b': jnp.zeros(10)}",
    "%graph f(params, jnp.ones((32, 784)))",
]


def environment(folder: Path) -> Path:
    """The Python of a new environment."""
    run([sys.executable, "-m", "venv", folder / "venv"], folder)
    return folder / "venv" / "bin" / "python"


def by_notebook(clone: Path, _folder: Path) -> str:
    """`make lab`, until JupyterLab serves the quick start."""
    process = subprocess.Popen(
        ["make", "lab", f"PYTHON={sys.executable}", f"ARGS=--no-browser --port={PORT} --IdentityProvider.token=t"],
        cwd=clone,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        return served(process)
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait()


def served(process: subprocess.Popen[bytes]) -> str:
    """Wait for the quick start at JupyterLab's address."""
    url = f"http://localhost:{PORT}/api/contents/00_quickstart.ipynb?content=0&token=t"
    while process.poll() is None:
        answer = answer_of(url)
        if answer:
            return f"JupyterLab serves {json.loads(answer)['path']}"
        time.sleep(0.2)
    raise SystemExit(f"`make lab` ended with {process.returncode}")


def answer_of(url: str) -> bytes:
    """The answer of the server, nothing while there is none."""
    try:
        with urllib.request.urlopen(url) as response:
            return bytes(response.read())
    except OSError:
        return b""


def by_file(clone: Path, folder: Path) -> str:
    """`pip install '.[lab]'`, then `graphloupe model.onnx`."""
    python = environment(folder)
    run([python, *PIP, "install", f"{clone}[lab]"], folder)
    run([python, "-c", MODEL], folder)
    run([python.parent / "graphloupe", "view", "model.onnx", "-o", "page.html"], folder)
    return f"a page of {(folder / 'page.html').stat().st_size / 1e6:.1f} MB"


def by_cell(clone: Path, folder: Path) -> str:
    """A function of JAX in a notebook, executed by a kernel. (PyTorch is alike, and a download of gigabytes on Linux.)"""
    python = environment(folder)
    run([python, *PIP, "install", f"{clone}[lab]", "jax"], folder)
    cells: list[dict[str, object]] = [
        {"cell_type": "code", "source": text, "metadata": {}, "outputs": [], "execution_count": None} for text in CELLS
    ]
    (folder / "cells.ipynb").write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 4}), "utf-8")
    run([python, "-m", "jupyter", "nbconvert", "--to", "notebook", "--execute", "--output", "done.ipynb", "cells.ipynb"], folder)
    outputs = json.loads((folder / "done.ipynb").read_text("utf-8"))["cells"][-1]["outputs"]
    kinds = sorted({kind for output in outputs for kind in output.get("data", ())})
    if not any("graphloupe" in kind for kind in kinds):
        raise SystemExit(f"the cell shows no picture, only {kinds}")
    return f"the cell shows {', '.join(kinds)}"


def timed(way: Callable[[Path, Path], str]) -> float:
    """The seconds of one way, in a copy of the project and an empty folder of its own."""
    with tempfile.TemporaryDirectory(prefix="graphloupe-newcomer-") as scratch:
        clone, folder = Path(scratch) / "graphloupe", Path(scratch) / "folder"
        clone.mkdir()
        folder.mkdir()
        tracked_copy(clone)
        started = time.monotonic()
        result = way(clone, folder)
        seconds = time.monotonic() - started
    print(f"{way.__name__}: {seconds:.0f} s, {result}", flush=True)
    return seconds


def main() -> None:
    """Walk all ways, or the chosen ones."""
    ways = [way for way in (by_notebook, by_file, by_cell) if not sys.argv[1:] or way.__name__ in sys.argv[1:]]
    slow = [way.__name__ for way in ways if timed(way) > LIMIT]
    if slow:
        raise SystemExit(f"longer than {LIMIT:.0f} s: {', '.join(slow)}")


if __name__ == "__main__":
    main()
