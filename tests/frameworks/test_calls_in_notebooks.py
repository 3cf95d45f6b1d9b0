"""`%graph model(x)`: the picture of a call, which follows the cells."""

from __future__ import annotations

import pytest
from IPython.utils.capture import capture_output

from graphcore.graph import Graph
from graphcore.runtime import Trace, ValueRecords
from tests.kernelext.conftest import NotebookShell
from tests.kernelext.conftest import page as page  # noqa: PLC0414 - a fixture
from tests.kernelext.conftest import shell as shell  # noqa: PLC0414 - a fixture
from tests.kernelext.simulated_page import Page
from widgets.scene.time_lens import times_note
from widgets.scene.value_lens import values_note

NET = """
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.first, self.last = nn.Linear(4, hidden), nn.Linear(8, 2)
    def forward(self, x):
        return self.last(torch.relu(self.first(x)))
model, x = Net(8), torch.ones(3, 4)
"""


def shown(page: Page) -> Graph:
    """The graph in the last view."""
    return page.panels[-1].view.graph


def ops(page: Page) -> set[str]:
    return {node.op.rpartition(".")[2] for node in shown(page).nodes}


def test_a_module_is_traced_again_when_a_cell_has_changed_it(shell: NotebookShell, page: Page) -> None:
    pytest.importorskip("torch")
    assert shell.run(NET, "a").success
    assert shell.run("%graph model(x)", "b").success
    page.says("ready")
    assert {"relu", "linear"} <= ops(page)
    before = shown(page)
    assert shell.run("1 + 1", "c").success
    assert shown(page) is before
    assert shell.run(NET.replace("torch.relu", "torch.tanh"), "a").success
    assert "tanh" in ops(page)
    assert "relu" not in ops(page)


def test_a_module_that_fails_is_red_where_it_fails(shell: NotebookShell, page: Page) -> None:
    pytest.importorskip("torch")
    assert shell.run(NET, "a").success
    assert shell.run("%graph model(x)", "b").success
    page.says("ready")
    assert shell.run("model = Net(9)", "c").success
    (failed,) = [node for node in shown(page).nodes if node.error is not None]
    assert failed.name.startswith("last/")
    assert [node["state"] for node in page.scenes()[-1]["nodes"] if node["state"] == "error"]
    assert shell.run("model = Net(8)", "c").success
    assert not [node for node in page.scenes()[-1]["nodes"] if node["state"] == "error"]


def test_a_function_of_jax_is_traced(shell: NotebookShell, page: Page) -> None:
    pytest.importorskip("jax")
    assert shell.run("import jax, jax.numpy as jnp\nf = jax.jit(lambda x: jnp.tanh(x @ x))\nx = jnp.ones((3, 3))", "a").success
    assert shell.run("%graph f(x)", "b").success
    page.says("ready")
    assert {"dot_general", "tanh"} <= ops(page)


@pytest.mark.usefixtures("page")
def test_the_end_of_a_gradient_is_named_by_its_cell(shell: NotebookShell) -> None:
    pytest.importorskip("torch")
    assert shell.run(NET, "a").success
    assert shell.run("def loss():\n    with torch.no_grad():\n        h = model(x)\n    return h.sum()", "b").success
    assert shell.run("import graphcore as gc\ntold = gc.explain_gradient(loss, 'last.weight')", "c").success
    (cut,) = shell.user_ns["told"].cuts
    assert cut.source.where.startswith("cell In [")
    assert cut.source.where.endswith(", line 8")
    assert "line 2: with torch.no_grad():" in cut.reason
    assert "cell In [" in cut.reason


def test_the_gradients_of_a_call_stand_beside_it(shell: NotebookShell, page: Page) -> None:
    torch = pytest.importorskip("torch")
    assert shell.run(NET, "a").success
    assert shell.run("from torch.nn import functional as F\ny = torch.ones(3, 2)", "b").success
    assert shell.run("%graph --mirror F.mse_loss(model(x), y)", "c").success
    page.says("ready")
    assert {"relu", "ReluBackward0", "AccumulateGrad"} <= ops(page)
    assert [node["label"] for node in page.scenes()[-1]["nodes"] if node["label"].startswith("gradient of mse_loss")]
    before = shown(page)
    assert shell.run("1 + 1", "d").success
    assert shown(page) is before
    assert shell.run("%graph values --mirror F.mse_loss(model(x), y)", "v").success
    assert shown(page).trace is not None
    assert "ReluBackward0" in ops(page)
    assert shell.run("%graph F.mse_loss(model(x), y)", "e").success
    assert "ReluBackward0" not in ops(page)
    assert {"relu", "mse_loss"} <= ops(page)
    assert shell.user_ns["model"].first.weight.grad is None
    assert torch.is_grad_enabled()


def test_a_function_of_jax_that_fails_is_red_where_it_fails(shell: NotebookShell, page: Page) -> None:
    pytest.importorskip("jax")
    assert shell.run(
        "import jax, jax.numpy as jnp\nw, x = jnp.ones((3, 3)), jnp.ones((2, 3))\ndef f(x): return jnp.tanh(x) @ w", "a"
    ).success
    assert shell.run("%graph f(x)", "b").success
    page.says("ready")
    assert shell.run("w = jnp.ones((4, 3))", "c").success
    (failed,) = [node for node in shown(page).nodes if node.error is not None]
    assert "3 is axis 1 of x; 4 is axis 0 of w" in str(failed.error)
    assert failed.source is not None
    assert failed.source.line == 3
    assert shell.run("w = jnp.ones((3, 5))", "c").success
    assert "dot_general" in ops(page)
    assert not [node for node in shown(page).nodes if node.error is not None]


def test_the_gradients_of_a_function_of_jax_stand_beside_it(shell: NotebookShell, page: Page) -> None:
    pytest.importorskip("jax")
    assert shell.run("import jax, jax.numpy as jnp\nx = jnp.ones((2, 3))\ndef f(x): return jnp.tanh(x).sum()", "a").success
    for text in ("f(x)", "jax.grad(f)(x)"):
        assert shell.run(f"%graph --mirror {text}", "b").success
        page.says("ready")
        assert {record.forward for record in shown(page).gradient_records.values()} == {"tanh", "reduce_sum"}
        assert [node["label"] for node in page.scenes()[-1]["nodes"] if node["label"].startswith("gradient of tanh")]


@pytest.mark.parametrize("text", ["torch.log(model(x)).mean()", "torch.log(f(x)).abs().mean()", "(model(x) * 2).sum()"])
@pytest.mark.parametrize("words", ["", "values "])
def test_a_method_of_what_a_call_gives_is_shown_with_that_call(shell: NotebookShell, page: Page, text: str, words: str) -> None:
    pytest.importorskip("torch")
    assert shell.run(NET + "f = lambda x: torch.relu(model(x))", "a").success
    assert shell.run(f"%graph {words}{text}", "b").success
    page.says("ready")
    assert {"linear", text.rsplit(".", maxsplit=1)[-1][:-2]} <= ops(page)


@pytest.mark.parametrize("words", ["", "values "])
def test_a_method_of_what_a_function_of_jax_gives_is_shown_with_it(shell: NotebookShell, page: Page, words: str) -> None:
    pytest.importorskip("jax")
    assert shell.run("import jax, jax.numpy as jnp\nf = jax.jit(lambda x: jnp.tanh(x @ x))\nx = jnp.ones((3, 3))", "a").success
    assert shell.run(f"%graph {words}jnp.log(f(x)).sum()", "b").success
    page.says("ready")
    assert {"jit", "log", "reduce_sum"} <= ops(page)


def recorded_values_of(graph: Graph) -> ValueRecords | None:
    return graph.trace.values if isinstance(graph.trace, Trace) else None


def test_a_call_is_run_once_with_its_values_until_the_model_changes(shell: NotebookShell, page: Page) -> None:
    pytest.importorskip("torch")
    assert shell.run(NET, "a").success
    assert shell.run("%graph values model(x)", "b").success
    page.says("ready")
    run = shown(page)
    values = recorded_values_of(run)
    assert values is not None
    assert "relu" in ops(page)
    assert values["relu"].shape == (3, 8)
    assert shell.run("y = model(x)", "c").success
    assert shown(page) is run
    step = "with torch.no_grad():\n    model.last.bias += 1"
    assert shell.run(step, "d").success
    assert recorded_values_of(shown(page)) is None
    assert "earlier version of the model" in values_note(shown(page))
    assert "earlier version of the model" in times_note(shown(page))
    assert shell.run("%graph values model(x)", "b").success
    assert recorded_values_of(shown(page)) is not None


def test_a_recorded_call_that_fails_keeps_the_values_before_it(shell: NotebookShell, page: Page) -> None:
    pytest.importorskip("torch")
    assert shell.run(NET.replace("Net(8)", "Net(9)"), "a").success
    assert shell.run("%graph values model(x)", "b").success
    page.says("ready")
    values = recorded_values_of(shown(page))
    assert values is not None
    assert values["relu"].shape == (3, 9)
    (failed,) = [node.name for node in shown(page).nodes if node.error is not None]
    assert failed.startswith("last/linear")


def test_the_line_of_the_first_bad_value_is_said(shell: NotebookShell, page: Page) -> None:
    pytest.importorskip("torch")
    assert shell.run(NET.replace("torch.relu(self.first(x))", "torch.log(self.first(x) * 0)"), "a").success
    assert shell.run("%graph values model(x)", "b").success
    page.says("ready")
    values = recorded_values_of(shown(page))
    assert values is not None
    assert values.first_bad is not None
    assert "produced at cell In [" in values.first_bad.cause
    assert "], line 8 (return self.last(torch.log(" in values.first_bad.cause
    assert values.first_bad.cause.endswith("; its inputs were finite")


def test_a_fault_of_jax_without_an_error_has_a_remark_under_the_cell(shell: NotebookShell, page: Page) -> None:
    pytest.importorskip("jax")
    assert shell.run(
        "import jax.numpy as jnp\np, y = jnp.ones(3), jnp.ones((3, 1))\ndef loss(p, y): return ((p - y) ** 2).mean()", "a"
    ).success
    with capture_output() as captured:
        assert shell.run("%graph loss(p, y)", "b").success
    page.says("ready")
    remarks = [output.data["text/plain"] for output in captured.outputs if "--jp-warn-color1" in (output.data or {}).get("text/html", "")]
    assert len(remarks) == 1
    assert "A vector (3,) and a column (3, 1) make a matrix (3, 3) in sub" in remarks[0]
    assert "line 3" in remarks[0]


JAX_CODE = """
import jax, jax.numpy as jnp
w = jnp.ones(3)
def turn(carry, row):
    return carry + row, jnp.log(carry)
def f(x):
    return jax.lax.scan(turn, x.sum() * 0, x * w)
x = jnp.arange(3.0)
"""


def test_a_function_of_jax_is_run_once_with_its_values_until_an_array_changes(shell: NotebookShell, page: Page) -> None:
    pytest.importorskip("jax")
    assert shell.run(JAX_CODE, "a").success
    assert shell.run("%graph values f(x)", "b").success
    page.says("ready")
    run = shown(page)
    values = recorded_values_of(run)
    assert values is not None
    assert values.first_bad is not None
    assert values.first_bad.tensor.call == "scan:scan"
    assert values.first_bad.cause == "produced at cell In [2], line 4 (return carry + row, jnp.log(carry)); its inputs were finite"
    assert shell.run("y = f(x)", "c").success
    assert shown(page) is run
    assert shell.run("w = w * 2", "d").success
    assert recorded_values_of(shown(page)) is None
    assert "earlier version of the model" in values_note(shown(page))


def remarks_under(shell: NotebookShell, code: str, cell: str) -> str:
    with capture_output() as captured:
        assert shell.run(code, cell).success
    return "\n".join([output.data["text/plain"] for output in captured.outputs if "text/plain" in (output.data or {})])


def test_a_function_of_jax_that_is_compiled_again_and_again_has_a_remark(shell: NotebookShell, page: Page) -> None:
    pytest.importorskip("jax")
    code = "import jax, jax.numpy as jnp\ndef f(x, n): return x[:n].sum()\nf = jax.jit(f, static_argnums=1)\nx, n = jnp.arange(9.0), 2"
    assert shell.run(code, "a").success
    assert shell.run("%graph f(x, n)", "b").success
    page.says("ready")
    assert "compiled" not in remarks_under(shell, "for n in (3, 3, 3): f(x, n)", "c")
    assert "`f` has been compiled 4 times (in this picture n was 2, 3, 6)" in remarks_under(shell, "for n in (4, 5, 6): f(x, n)", "d")
    assert "compiled" not in remarks_under(shell, "f(x, 6)", "e")


COMPILED = """
import torch
def f(x):
    return torch.relu(x)
class Net(torch.nn.Module):
    steps = 0
    def forward(self, x):
        self.steps += 1
        return f(x) * self.steps
g, model, x = torch.compile(f, backend="eager", dynamic=False), torch.compile(Net(), backend="eager"), torch.ones(2, 4)
"""


@pytest.mark.parametrize(
    ("name", "line", "reason"),
    [("g", 2, "tensor 'x' size mismatch at index 0. expected 3, actual 5"), ("model", 6, "self.steps ==")],
    ids=["shape", "int"],
)
def test_a_function_of_pytorch_that_is_compiled_again_and_again_has_a_remark(
    shell: NotebookShell, page: Page, name: str, line: int, reason: str
) -> None:
    torch = pytest.importorskip("torch")
    torch._dynamo.reset()
    assert shell.run(COMPILED, "a").success
    assert shell.run(f"%graph {name}(x)", "b").success
    page.says("ready")
    assert "compiled" not in remarks_under(shell, f"y = {name}(x)", "c")
    said = remarks_under(shell, f"for rows in (3, 5): y = {name}(torch.ones(rows, 4))", "d")
    assert f"], line {line}) has been compiled 2 times more" in said
    assert reason in said
    assert "compiled" not in remarks_under(shell, f"y = {name}(torch.ones(5, 4))", "e")


@pytest.mark.parametrize("change", ["x = x + 1", "w[0] = 2"])
def test_values_of_jax_are_those_of_the_present_arrays(shell: NotebookShell, page: Page, change: str) -> None:
    pytest.importorskip("jax")
    code = "import jax.numpy as jnp, numpy as np\nx, w = jnp.ones(3), np.ones(3, np.float32)\ndef f(x, w): return jnp.tanh(x * w)"
    assert shell.run(code, "a").success
    assert shell.run("%graph values f(x, w)", "b").success
    page.says("ready")
    assert shell.run("1 + 1", "c").success
    values = recorded_values_of(shown(page))
    assert values is not None
    assert values["tanh"].max == pytest.approx(0.7615942)
    assert shell.run(change, "d").success
    assert recorded_values_of(shown(page)) is None


def answer_of(shell: NotebookShell, line: str) -> str:
    result = shell.run(line, "z")
    assert result.success, result.error_in_exec
    return repr(result.result)


def test_why_grad_explains_an_expression_of_pytorch_with_its_line(shell: NotebookShell, page: Page) -> None:
    pytest.importorskip("torch")
    assert shell.run(NET.replace("torch.relu(self.first(x))", "torch.relu(self.first(x).detach())"), "a").success
    text = answer_of(shell, "%why grad model(x).sum() model.first.weight")
    assert "is None" in text
    assert "self.first(x).detach()" in text
    assert "In [" in text
    assert "model.last.weight.grad" in answer_of(shell, "%why grad model(x).sum() last.weight")
    assert shell.run("loss = model(x).sum()", "b").success
    assert "no path" in answer_of(shell, "%why grad loss model.first.weight")
    failed = shell.run("%why grad model(x).sum() third.weight", "z")
    assert "requires the name of one tensor, got 'third.weight'" in str(failed.error_in_exec)


def test_why_grad_names_an_optimizer_that_changes_nothing(shell: NotebookShell, page: Page) -> None:
    pytest.importorskip("torch")
    assert shell.run(NET, "a").success
    assert shell.run("opt = torch.optim.SGD(model.parameters(), lr=0.1)", "b").success
    line = "%why grad model(x).sum() model.first.weight"
    assert "optimizer" not in answer_of(shell, line)
    assert shell.run("opt.param_groups[0]['lr'] = 0.0", "b").success
    assert "The optimizer (SGD) has the learning rate 0 for it" in answer_of(shell, line)
    assert shell.run("model = Net(8)", "c").success
    assert "The optimizer (SGD) holds 4 tensors, and not this one" in answer_of(shell, line)


def test_why_grad_explains_an_expression_of_jax(shell: NotebookShell, page: Page) -> None:
    pytest.importorskip("jax")
    assert shell.run("import jax, jax.numpy as jnp\nw, x = jnp.ones(3), jnp.ones((2, 3))", "a").success
    assert shell.run("def loss(w, x):\n    return jnp.round(x @ w).sum()", "b").success
    text = answer_of(shell, "%why grad loss(w, x) w")
    assert "it is zero" in text
    assert "rounds, so its derivative is zero" in text


def test_a_call_is_stepped_through_with_its_values(shell: NotebookShell, page: Page) -> None:
    pytest.importorskip("torch")
    assert shell.run(NET, "a").success
    lines = answer_of(shell, "%step model(x)").splitlines()
    page.says("ready")
    relu = next(line for line in lines if "torch.relu" in line)
    assert "float [3,8]" in relu
    assert lines[0].split()[:4] == ["1", "x", "torch.Input", "fed"]
    assert [message["pane"] for message in page.sent if message["type"] == "show_pane"] == ["stepper"]
    page.says("want_steps")
    steps = next(message["steps"] for message in reversed(page.sent) if message["type"] == "steps")
    assert "relu" in steps["nodes"]
    last = steps["nodes"].index("last/linear")
    (row,) = [place for place, label in enumerate(steps["runs"]["labels"]) if label == last]
    assert steps["runs"]["counts"][row] == 1
    assert steps["texts"][steps["runs"]["texts"][row]].startswith("float [3,2]")
