"""`%graph loss(model(x), y) + reg`: any expression of calls and operators is traced as a whole."""

from __future__ import annotations

from typing import Any

import pytest

from graphcore.graph import Graph
from tests.kernelext.conftest import NotebookShell
from tests.kernelext.conftest import page as page  # noqa: PLC0414 - a fixture
from tests.kernelext.conftest import shell as shell  # noqa: PLC0414 - a fixture
from tests.kernelext.simulated_page import Page

TORCH = """
import torch
from torch import nn
from torch.nn import functional as F
model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 2))
models, x, y, steps = {"head": model}, torch.ones(3, 4), torch.zeros(3, 2), []
def step(x):
    steps.append(1)
    model[0].bias.data += 1
    return {"loss": F.mse_loss(model(x), y), "n": 3}
"""
JAX = """
import jax, jax.numpy as jnp
w, x = jnp.ones((4, 2)), jnp.ones((3, 4))
def f(x): return jnp.tanh(x @ w)
"""
EXPRESSIONS = {
    "F.mse_loss(model(x), y) + 0.1 * model[0].weight.square().sum()": {"linear", "mse_loss", "square", "mul", "add"},
    "F.mse_loss(model(x),y)+0.1": {"mse_loss", "add"},
    "-model(x)": {"linear", "neg"},
    "model(x) > 0": {"linear", "gt"},
    "model(x)[0]": {"linear", "getitem"},
    "model(x).T": {"linear", "T"},
    'step(x)["loss"]': {"linear", "mse_loss"},
    "(step(x)['loss'] + 1).log()": {"mse_loss", "add", "log"},
    "model(x), -model(2 * x)": {"linear", "neg"},
    "[m(x).sum() for m in models.values()]": {"linear", "sum"},
    "x @ y.T": {"matmul", "T"},
    "x - -y[:1, :1]": {"sub", "neg", "getitem"},
    "model(x) if model.training else x": {"linear"},
}
OF_JAX = {
    "f(x).sum() + 0.1 * (w ** 2).sum()": {"tanh", "reduce_sum", "add"},
    "-f(x)": {"tanh", "neg"},
    "f(x)[0]": {"tanh", "squeeze"},
    "x @ w": {"dot_general"},
    "jax.grad(lambda x: f(x).sum())(x) - x": {"sub", "mul"},
}


def ops(page: Page) -> set[str]:
    graph: Graph = page.panels[-1].view.graph
    return {node.op.rpartition(".")[2] for node in graph.nodes}


def state(shell: NotebookShell) -> Any:
    torch: Any = pytest.importorskip("torch")
    model = shell.user_ns["model"]
    return (
        {name: tensor.tolist() for name, tensor in model.state_dict().items()},
        [parameter.grad for parameter in model.parameters()],
        torch.get_rng_state().tolist(),
        shell.user_ns["x"].tolist(),
    )


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_an_expression_of_pytorch_is_shown_as_a_whole(shell: NotebookShell, page: Page, text: str) -> None:
    pytest.importorskip("torch")
    assert shell.run(TORCH, "a").success
    before = state(shell)
    for words in ("", "values ", "--mirror "):
        result = shell.run(f"%graph {words}{text}", "b")
        assert result.success, result.error_in_exec
        page.says("ready")
        assert EXPRESSIONS[text] <= ops(page)
        assert state(shell) == before
        if words != "values ":
            assert not shell.user_ns["steps"]
        shell.user_ns["steps"].clear()  # a run leaves what a function does to lists around it
        assert shell.run("1 + 1", "c").success
        shown = page.panels[-1].view.graph
        assert shell.run("1 + 1", "c").success
        assert page.panels[-1].view.graph is shown


@pytest.mark.parametrize("text", OF_JAX)
def test_an_expression_of_jax_is_shown_as_a_whole(shell: NotebookShell, page: Page, text: str) -> None:
    pytest.importorskip("jax")
    assert shell.run(JAX, "a").success
    for words in ("", "values "):
        result = shell.run(f"%graph {words}{text}", "b")
        assert result.success, result.error_in_exec
        page.says("ready")
        assert OF_JAX[text] <= ops(page)


def test_an_expression_follows_the_cells(shell: NotebookShell, page: Page) -> None:
    pytest.importorskip("torch")
    assert shell.run(TORCH + "reg = model[0].weight.sum()", "a").success
    assert shell.run("%graph F.mse_loss(model(x), y) + reg", "b").success
    page.says("ready")
    shown = page.panels[-1].view.graph
    assert shell.run("model[2] = nn.Linear(8, 2)\nmodel[1] = nn.Tanh()", "c").success
    assert page.panels[-1].view.graph is not shown
    assert "tanh" in ops(page)


@pytest.mark.parametrize(
    "text",
    ["list(programs.values())[0]", "[p for p in programs.values()][1 - 1]", "programs['tra' + 'ced']", "(fx.symbolic_trace(model) or 1)"],
)
def test_an_expression_that_gives_a_model_shows_the_model(shell: NotebookShell, page: Page, text: str) -> None:
    pytest.importorskip("torch")
    assert shell.run(TORCH + "from torch import fx\nprograms = {'traced': fx.symbolic_trace(model)}", "a").success
    result = shell.run(f"%graph {text}", "b")
    assert result.success, result.error_in_exec
    page.says("ready")
    assert ops(page)


def test_a_step_in_an_expression_is_not_made(shell: NotebookShell, page: Page) -> None:
    pytest.importorskip("torch")
    assert shell.run(TORCH, "a").success
    before = state(shell)
    for text in ("step(x)['loss'].log()", "torch.log(step(x)['loss']) * 2"):
        assert shell.run(f"%graph {text}", "b").success
        page.says("ready")
        assert {"mse_loss", "log"} <= ops(page)
    assert state(shell) == before


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("missing + 1", "name 'missing' is not defined"),
        ("1 / 0", "cannot both be meant"),
        ("x @", "'@' is not understood"),
        ("diff -1", "'-1' is not understood"),
        ("inline --mirorr", "did you mean '--mirror'"),
    ],
)
def test_what_is_no_expression_is_refused_in_its_own_words(shell: NotebookShell, page: Page, line: str, says: str) -> None:
    pytest.importorskip("torch")
    assert shell.run(TORCH, "a").success
    assert says in str(shell.run(f"%graph {line}", "b").error_in_exec)


def test_why_grad_explains_an_expression_of_operators(shell: NotebookShell, page: Page) -> None:
    pytest.importorskip("torch")
    assert shell.run(TORCH, "a").success
    result = shell.run("%why grad F.mse_loss(model(x).detach(), y) + 0.1 * model[2].bias.sum() model[0].weight", "b")
    assert result.success, result.error_in_exec
    assert "'detach' is .detach(), which ends gradients" in repr(result.result)
    assert "detach -> mse_loss -> add" in repr(result.result)


LISTS = """
import jax, jax.numpy as jnp, equinox as eqx, torch
from flax import nnx
keys, rngs, i = jax.random.split(jax.random.key(0), 3), nnx.Rngs(0), 0
def of_equinox(n): return eqx.nn.Linear(4, n, key=keys[0])
def of_nnx(n): return nnx.Linear(4, n, rngs=rngs)
def of_torch(n): return torch.nn.Linear(4, n)
es, ns, ts = [of_equinox(4) for _ in keys], nnx.List([of_nnx(4) for _ in keys]), [of_torch(4) for _ in keys]
x, t = jnp.ones(4), torch.ones(4)
"""


@pytest.mark.parametrize(
    ("text", "change", "names"),
    [
        ("es[i + 1](x)", "es[1] = of_equinox(6)", {"model.weight", "x"}),
        ("es[len(es) - 2](x)", "es[1] = of_equinox(6)", {"model.weight"}),
        ("ns[i + 1](x)", "ns[1] = of_nnx(6)", {"model.kernel"}),
        ("[m(x) for m in ns]", "ns[2] = of_nnx(6)", {"ns_1_.kernel", "x"}),
        ("[m(x) + n(x) for m, n in zip(es, ns)]", "es[2], ns[2] = of_equinox(6), of_nnx(6)", {"es_1_.weight", "ns_1_.kernel"}),
        ("sum(m(x).sum() for m in es[i + 1:])", "es[2] = of_equinox(6)", {"es_1_.weight"}),
        ("ts[i + 1](t)", "ts[1] = of_torch(6)", {"weight"}),
        ("sum(m(t).sum() for m in ts)", "ts[2] = of_torch(6)", set()),
    ],
)
def test_layers_in_lists_are_followed_by_their_computed_indexes(
    shell: NotebookShell, page: Page, text: str, change: str, names: set[str]
) -> None:
    for module in ("torch", "flax.nnx", "equinox"):
        pytest.importorskip(module)
    assert shell.run(LISTS, "a").success
    assert shell.run(f"%graph {text}", "b").success
    page.says("ready")
    graph = page.panels[-1].view.graph
    assert names <= {node.name for node in graph.nodes}
    assert not [node for node in graph.nodes if [6] in [tensor.shape.as_list() for tensor in node.outputs]]
    assert shell.run(change, "c").success
    graph = page.panels[-1].view.graph
    assert [node for node in graph.nodes if [6] in [tensor.shape.as_list() for tensor in node.outputs]]


@pytest.mark.parametrize(
    "code",
    [
        "import torch\ndef f(): return torch.log(torch.zeros(3)).sum()",
        "import jax.numpy as jnp\ndef f(): return jnp.log(jnp.zeros(3)).sum()",
    ],
    ids=["torch", "jax"],
)
def test_a_function_without_tensors_around_it_is_shown_and_run(shell: NotebookShell, page: Page, code: str) -> None:
    pytest.importorskip(code.split()[1].partition(".")[0])
    assert shell.run(code, "a").success
    for words in ("", "values "):
        assert shell.run(f"%graph {words}f()", "b").success
        page.says("ready")
        assert "log" in ops(page)


def test_a_function_that_makes_a_model_is_made(shell: NotebookShell, page: Page) -> None:
    pytest.importorskip("torch")
    code = "import torch\ndef make(): return torch.fx.symbolic_trace(torch.nn.Sequential(torch.nn.Linear(4, 2), torch.nn.Tanh()))"
    assert shell.run(code, "a").success
    assert shell.run("%graph make()", "b").success
    page.says("ready")
    assert len(page.panels[-1].view.graph.nodes) > 2


def test_gradients_of_a_call_without_values_are_not_shown_by_the_lens_of_values(shell: NotebookShell, page: Page) -> None:
    pytest.importorskip("torch")
    assert shell.run(TORCH, "a").success
    lenses = []
    for words in ("values ", "--mirror ", "values "):
        assert shell.run(f"%graph {words}F.mse_loss(model(x), y)", "b").success
        page.says("ready")
        lenses.append(page.panels[-1].view.choices.lens)
    assert lenses == ["values", "structure", "values"]
