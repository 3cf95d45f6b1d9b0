"""Traced calls beside cells that change things: lines, names that stay, pictures that are outdated."""

from __future__ import annotations

import signal
import time
from typing import Any

import pytest

from graphcore.graph import Graph, Node
from kernelext.call_state import state_of
from tests.kernelext.conftest import NotebookShell
from tests.kernelext.conftest import page as page  # noqa: PLC0414 - a fixture
from tests.kernelext.conftest import shell as shell  # noqa: PLC0414 - a fixture
from tests.kernelext.simulated_page import Page

NET = """
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self, hidden=8):
        super().__init__()
        self.first, self.drop, self.last = nn.Linear(4, hidden), nn.Dropout(), nn.Linear(8, 2)
    def forward(self, x):
        return self.last(self.drop(torch.relu(self.first(x))))
"""
MODEL = "model, x = Net(), torch.ones(3, 4)"
JAX = "import jax, jax.numpy as jnp\ndef f(x):\n    return jnp.tanh(x @ x)\nx = jnp.ones((3, 3))"


def shown(page: Page) -> Graph:
    return page.panels[-1].view.graph


def node(page: Page, name: str) -> Node:
    return shown(page).get_operation_by_name(name)


def lines(page: Page, run: Any) -> list[str]:
    """The lines below the cell that `run` runs."""
    count = len(page.displays)
    run()
    texts = [display["data"].get("text/plain", "") for display in page.displays[count:]]
    return [text for text in texts if text.startswith("model") and "\n" not in text]


@pytest.fixture
def notebook(shell: NotebookShell, page: Page) -> NotebookShell:
    pytest.importorskip("torch")
    for name, cell in (("net", NET), ("model", MODEL), ("picture", "%graph model(x)")):
        assert shell.run(cell, name).success
    page.says("ready")
    return shell


def test_the_first_picture_has_no_line(shell: NotebookShell, page: Page) -> None:
    pytest.importorskip("torch")
    shell.run(NET + MODEL, "a")
    assert lines(page, lambda: shell.run("%graph model(x)", "b")) == []


@pytest.mark.parametrize(
    ("cell", "line"),
    [
        ("model.last = nn.Linear(8, 5)", "model(x): 1 layer changed (last: Linear), shapes of 3 changed"),
        (
            "model.last = nn.Sequential(nn.Linear(8, 5), nn.ReLU())",
            "model(x): 1 layer replaced (last: Linear → Sequential), shapes of 3 changed",
        ),
        ("model.drop = nn.Identity()", "model(x): −1 layer (drop: Dropout)"),
        ("_ = model.eval()", "model(x): 1 layer changed (drop: Dropout)"),
        ("x = torch.ones(5, 4)", "model(x): shapes of 5 changed"),
        ("_ = model.double(); x = x.double()", "model(x): 2 layers changed (first: Linear, last: Linear), types of 9 changed"),
        ("model = Net(9)", "model(x): 1 layer changed (first: Linear), shapes of 5 changed, 1 error"),
    ],
    ids=["other-size", "other-class", "identity", "eval", "batch", "double", "error"],
)
def test_the_line_says_which_layers_have_changed(notebook: NotebookShell, page: Page, cell: str, line: str) -> None:
    assert lines(page, lambda: notebook.run(cell, "c")) == [line]


def test_a_layer_that_comes_and_goes_is_counted(notebook: NotebookShell, page: Page) -> None:
    with_norm = NET.replace("self.drop,", "self.norm, self.drop,").replace("nn.Dropout()", "nn.BatchNorm1d(8), nn.Dropout()")
    with_norm = with_norm.replace("self.first(x)", "self.norm(self.first(x))")
    assert lines(page, lambda: notebook.run(with_norm + MODEL, "c")) == ["model(x): +1 layer (norm: BatchNorm1d)"]
    assert lines(page, lambda: notebook.run(NET + MODEL, "c")) == ["model(x): −1 layer (norm: BatchNorm1d)"]


def test_nothing_is_traced_or_said_where_nothing_has_changed(notebook: NotebookShell, page: Page) -> None:
    before = shown(page)
    loop = "loss = 0.5\nfor step in range(3):\n    loss = model(x).sum(); loss.backward()\nhistory = [loss.item()]"
    for cell in (
        loop,
        NET,
        "other = Net(3)",
        "torch.nn.init.zeros_(model.last.weight)",
        "def unused():\n    return 1",
        "x = torch.zeros(3, 4)",
    ):
        assert lines(page, lambda cell=cell: notebook.run(cell, "c")) == []
        assert shown(page) is before


def test_a_node_keeps_its_name_when_another_one_of_its_kind_comes_before_it(notebook: NotebookShell, page: Page) -> None:
    before = node(page, "relu").inputs[0].node.name
    twice = NET.replace("self.first(x)", "self.first(torch.relu(x))")
    (line,) = lines(page, lambda: notebook.run(twice + MODEL, "c"))
    assert line == "model(x): +1 node"
    assert node(page, "relu").inputs[0].node.name == before
    assert node(page, "relu_1").inputs[0].node.name == "x"


def test_variables_that_a_function_uses_count(shell: NotebookShell, page: Page) -> None:
    pytest.importorskip("torch")
    shell.run(
        "import torch\nscale = 2\ndef inner(x):\n    return x * scale\ndef model(x):\n    return inner(x).sum()\nx = torch.ones(3)", "a"
    )
    shell.run("%graph model(x)", "b")
    page.says("ready")
    assert lines(page, lambda: shell.run("scale = 3", "c")) == ["model(x): 1 replaced"]
    assert lines(page, lambda: shell.run("def inner(x):\n    return (x * scale).tanh()", "c")) == ["model(x): +1 node"]
    assert lines(page, lambda: shell.run("unrelated = 3", "c")) == []


def test_an_argument_is_computed_once_and_again_only_when_a_name_in_it_changes(notebook: NotebookShell, page: Page) -> None:
    notebook.run("calls = []\nrows = 3\ndef make(n):\n    calls.append(n)\n    return torch.randn(n, 4)", "make")
    notebook.run("torch.manual_seed(0); before = torch.get_rng_state().clone()", "seed")
    notebook.run("%graph model(make(rows))", "b")
    page.says("ready")
    notebook.run("1 + 1", "c")
    notebook.run("_ = model.eval()", "c")
    assert notebook.user_ns["calls"] == [3]
    notebook.run("rows = 5", "c")
    assert notebook.user_ns["calls"] == [3, 5]
    assert "[5,2]" in str(node(page, "last/linear").outputs[0].shape).replace(" ", "")
    notebook.run("same = bool((torch.get_rng_state() == before).all())", "d")
    assert notebook.user_ns["same"] is True
    notebook.run("%graph model(make(rows))", "b")
    assert notebook.user_ns["calls"] == [3, 5, 5]


def test_a_name_that_is_gone_leaves_the_picture_marked(notebook: NotebookShell, page: Page) -> None:
    before = shown(page)
    (line,) = lines(page, lambda: notebook.run("del x", "c"))
    assert line == "model(x): name 'x' is not defined; the picture is that of the version before"
    assert shown(page) is before
    assert page.scenes()[-1]["title"] == "model(x): picture of the version before (name 'x' is not defined)"
    assert lines(page, lambda: notebook.run("1 + 1", "d")) == []
    (line,) = lines(page, lambda: notebook.run("x = torch.ones(3, 4)", "e"))
    assert line == "model(x): the picture is up to date again"
    assert page.scenes()[-1]["title"] == "model(x)"


def test_a_call_that_fails_before_any_operation_marks_the_picture(notebook: NotebookShell, page: Page) -> None:
    broken = NET.replace("def forward(self, x):", "def forward(self, x):\n        raise ValueError('not yet')")
    (line,) = lines(page, lambda: notebook.run(broken + MODEL, "c"))
    assert "ValueError: not yet" in line
    assert line.endswith("the picture is that of the version before")
    (line,) = lines(page, lambda: notebook.run(NET + MODEL, "c"))
    assert line == "model(x): the picture is up to date again"


def test_a_module_that_fails_and_is_mended_says_so(notebook: NotebookShell, page: Page) -> None:
    notebook.run("model = Net(9)", "c")
    assert [node for node in page.scenes()[-1]["nodes"] if node["state"] == "error"]
    (line,) = lines(page, lambda: notebook.run("model = Net(8)", "c"))
    assert line.endswith("1 error gone")
    assert not [node for node in page.scenes()[-1]["nodes"] if node["state"] == "error"]


def test_an_interrupted_trace_leaves_the_picture_marked(notebook: NotebookShell, page: Page) -> None:
    before = shown(page)
    slow = NET.replace("def forward(self, x):", "def forward(self, x):\n        import time; time.sleep(30)")
    previous = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 1.0)
        started = time.monotonic()
        (line,) = lines(page, lambda: notebook.run(slow + MODEL, "c"))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
    assert time.monotonic() - started < 20
    assert line == "model(x): tracing was interrupted; the picture is that of the version before"
    assert shown(page) is before
    (line,) = lines(page, lambda: notebook.run(NET + MODEL, "c"))
    assert line == "model(x): the picture is up to date again"


def test_the_cell_of_the_picture_can_run_again_and_two_calls_stand_side_by_side(notebook: NotebookShell, page: Page) -> None:
    notebook.run("%graph model(x)", "picture")
    notebook.run("%graph model(torch.ones(7, 4))", "second")
    assert len(page.panels) == 2
    assert page.panels[1].ref is page.panels[0]
    texts = lines(page, lambda: notebook.run("model.last = nn.Linear(8, 6)", "c"))
    assert [text.partition(":")[0] for text in texts] == ["model(x)", "model(torch.ones(7, 4))"]
    for panel, rows in zip(page.panels, (3, 7), strict=True):
        assert f"[{rows},6]" in str(panel.view.graph.get_operation_by_name("last/linear").outputs[0].shape).replace(" ", "")


def test_a_call_that_is_shown_anew_keeps_names_and_says_the_difference(notebook: NotebookShell, page: Page) -> None:
    twice = NET.replace("self.first(x)", "self.first(torch.relu(x))")
    before = node(page, "relu").inputs[0].node.name
    (line,) = lines(page, lambda: notebook.run(f"{twice}{MODEL}\n%graph model(x)", "picture"))
    assert line == "model(x): +1 node"
    assert node(page, "relu").inputs[0].node.name == before


def test_a_whole_with_a_call_of_a_module_within_follows_the_cells(notebook: NotebookShell, page: Page) -> None:
    notebook.run("%graph nn.functional.mse_loss(model(x), torch.zeros(3, 2))", "loss")
    graph = shown(page)
    assert lines(page, lambda: notebook.run("1 + 1", "c")) == []
    assert shown(page) is graph
    notebook.run("_ = model.eval()", "c")
    assert shown(page) is not graph


def test_the_difference_of_a_call_is_shown(notebook: NotebookShell, page: Page) -> None:
    notebook.run("model.last = nn.Linear(8, 6)", "c")
    count = notebook.execution_count - 1
    page.panels[-1].view._handle_custom_msg({"type": "want_difference", "since": count}, [])
    assert page.scenes()[-1]["summary"].startswith("2 changed, 1 of other types or shapes")


def test_a_function_of_jax_follows_the_cells(shell: NotebookShell, page: Page) -> None:
    pytest.importorskip("jax")
    shell.run(JAX, "a")
    shell.run("model = jax.jit(f)\n%graph model(x)", "b")
    page.says("ready")
    changed = JAX.replace("jnp.tanh(x @ x)", "jnp.tanh(x @ x) + 1")
    (line,) = lines(page, lambda: shell.run(changed + "\nmodel = jax.jit(f)", "a"))
    assert line.startswith("model(x): ")
    assert line == "model(x): +2 nodes"
    assert lines(page, lambda: shell.run("y = 1", "c")) == []


def test_a_model_of_a_thousand_modules_is_compared_quickly(record_property: Any) -> None:
    torch = pytest.importorskip("torch")
    from graphcore.frontends.frontend import Call  # noqa: PLC0415 - beside torch

    model = torch.nn.Sequential(*[torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.BatchNorm1d(4)) for _ in range(250)])
    call = Call(model, (torch.ones(2, 4),))
    assert state_of(call) == state_of(call)
    times = []
    for _ in range(20):
        begun = time.perf_counter()
        state_of(call)
        times.append(time.perf_counter() - begun)
    record_property("state of 1,000 modules", f"{1000 * min(times):.1f} ms")
    assert min(times) < 0.1  # it is 5 ms on a machine that does nothing else
