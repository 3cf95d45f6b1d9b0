"""Origins of sizes in traced calls of PyTorch: operations, parameters, and the lines that made these."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")
nn: Any = torch.nn
F: Any = nn.functional

import graphcore as gc  # noqa: E402 - after the check for torch
from graphcore import from_source  # noqa: E402 - as above
from graphcore.frontends.frontend import Call  # noqa: E402 - as above
from graphcore.graph import Node  # noqa: E402 - as above

pytestmark = [pytest.mark.frameworks, pytest.mark.filterwarnings("ignore")]
NAME = __name__.rpartition(".")[2]


class Config:
    """Sizes of a model."""

    width = 6
    heads = 2


class Net(nn.Module):  # type: ignore[misc]  # torch is not imported by name
    """A model that fails at the end."""

    def __init__(self, vocab: int, n_embd: int, config: Config, *, is_wide: bool = True) -> None:
        super().__init__()
        self.emb = nn.Embedding(vocab, n_embd)
        self.layers = nn.ModuleList([nn.Linear(n_embd, n_embd) for _ in range(2)])
        self.attend = nn.Linear(n_embd, config.width)
        self.head = nn.Linear(9, 10) if is_wide else nn.Linear(8, 10)
        self.scale = nn.Parameter(torch.ones(n_embd) * 2)

    def forward(self, x: Any) -> Any:
        y = self.emb(x) * self.scale
        for layer in self.layers:
            y = layer(y)
        return self.head(self.attend(y).transpose(0, 1))


LINE = Net.__init__.__code__.co_firstlineno + 4


def failed(function: Any, *args: Any) -> Node:
    graph = from_source(Call(function, args, {}))
    (node,) = [node for node in graph.nodes if node.error is not None]
    return node


def message(node: Node) -> list[str]:
    assert node.error is not None
    return node.error.message.splitlines()


def test_both_sizes_are_followed_to_the_arguments_that_gave_them() -> None:
    node = failed(Net(7, 5, Config()), torch.ones(2, 3, dtype=torch.int64))
    first, one, other, said = message(node)
    assert first == "linear requires axis 2 of its input (6) and axis 1 of its weight (9) to be equal:"
    assert one.startswith("6 is config.width at ")
    assert f"{NAME}.py, line {LINE}" in one
    assert one.endswith("(axis 0 of attend.weight, `nn.Linear(n_embd, config.width)`)")
    assert other == "9 is axis 1 of head.weight, in_features of Linear"  # both branches of its expression make such a layer
    assert said.startswith("PyTorch says: RuntimeError")
    assert node.error is not None
    assert [chain.size for chain in node.error.chains] == [6, 9]
    assert [chain.roots[0].fact.index for chain in node.error.chains] == [0, 1]


def test_explain_shape_follows_a_traced_tensor() -> None:
    node = failed(Net(7, 5, Config()), torch.ones(2, 3, dtype=torch.int64))
    explained = gc.explain_shape(node.inputs[0])
    assert [origin.roots[0].text for origin in explained.dimensions[:2]] == ["is axis 1 of x", "is axis 0 of x"]
    assert "config.width at" in explained.dimensions[2].roots[0].text
    inner = node.graph.find("layers.1/linear_1") or next(other for other in node.graph.nodes if other.name.startswith("layers.1/linear"))
    assert "n_embd at" in gc.explain_shape(inner.outputs[0]).dimensions[2].roots[0].text


ORIGINS: dict[str, tuple[Callable[..., Any], tuple[Any, ...], list[str]]] = {
    "transposed": (lambda a, b: a + b.T, (torch.ones(2, 3), torch.ones(5, 2)), ["3 is axis 1 of a", "5 is axis 0 of b"]),
    "permuted": (lambda a, b: a.permute(2, 0, 1) @ b, (torch.ones(2, 3, 4), torch.ones(5, 5)), ["3 is axis 1 of a", "5 is axis 0 of b"]),
    "product": (lambda a, b: (a @ b) * b, (torch.ones(2, 3), torch.ones(3, 4)), ["2 is axis 0 of a", "3 is axis 0 of b"]),
    "reduced": (lambda a, b: a.sum(1) + b, (torch.ones(2, 3, 4), torch.ones(5)), ["4 is axis 2 of a", "5 is axis 0 of b"]),
    "einsum": (
        lambda a, b: torch.einsum("bij,bjk->bik", a, a.transpose(1, 2)) + b,
        (torch.ones(2, 3, 4), torch.ones(3, 5)),
        ["3 is axis 1 of a", "5 is axis 1 of b"],
    ),
    "split": (
        lambda a, b: a.chunk(2, 1)[1].squeeze(-1) + b,
        (torch.ones(3, 4, 1), torch.ones(5, 2)),
        ["3 is axis 0 of a", "5 is axis 0 of b"],
    ),
    "reshaped": (
        lambda a, b: a.view(2, 12) @ b,
        (torch.ones(2, 3, 4), torch.ones(5, 5)),
        [f"12 is computed by view ({NAME}.py, line ", "5 is axis 0 of b"],
    ),
    "joined": (
        lambda a, b: torch.cat([a, a], 1) @ b,
        (torch.ones(2, 3), torch.ones(5, 5)),
        [f"6 is computed by cat ({NAME}.py, line ", "5 is axis 0 of b"],
    ),
    "unknown": (
        lambda a, b: torch.topk(a, 2)[0] @ b,
        (torch.ones(2, 3), torch.ones(5, 5)),
        [f"2 is axis 1 of what topk gives ({NAME}.py, line ", "5 is axis 0 of b"],
    ),
    "made": (lambda a: torch.zeros(3) + a, (torch.ones(2),), [f"3 is axis 0 of what zeros makes ({NAME}.py, line ", "2 is axis 0 of a"]),
}


@pytest.mark.parametrize("name", ORIGINS)
def test_sizes_are_followed_through_operations(name: str) -> None:
    function, args, origins = ORIGINS[name]
    lines = message(failed(function, *args))[1:3]
    assert all(line.startswith(origin) for line, origin in zip(lines, origins, strict=True)), lines


def test_a_merged_axis_names_the_axes_that_it_is_made_of() -> None:
    lines = message(failed(ORIGINS["reshaped"][0], *ORIGINS["reshaped"][1]))
    assert "from 3 (axis 1 of a) and 4 (axis 2 of a)" in lines[1]


def test_a_container_of_layers_is_read_as_its_constructor_writes_it() -> None:
    class Stack(nn.Module):  # type: ignore[misc]  # as above
        def __init__(self, width: int) -> None:
            super().__init__()
            self.net = nn.Sequential(nn.Linear(4, width), nn.ReLU(), nn.Linear(7, 2))
            self.blocks = nn.ModuleDict({"one": nn.Conv1d(1, width, 3)})

        def forward(self, x: Any) -> Any:
            return self.net(x)

    lines = message(failed(Stack(8), torch.ones(3, 4)))
    assert "8 is width at" in lines[1]
    assert "axis 0 of net.0.weight, `nn.Linear(4, width)`" in lines[1]
    assert lines[2].startswith("7 is axis 1 of net.2.weight, `nn.Linear(7, 2)` at")
    own = message(failed(nn.Sequential(nn.Linear(4, 8), nn.Linear(7, 2)), torch.ones(3, 4)))
    assert own[1:3] == ["8 is axis 0 of 0.weight, out_features of Linear", "7 is axis 1 of 1.weight, in_features of Linear"]


def test_a_size_that_is_no_argument_is_not_guessed() -> None:
    class Changed(nn.Module):  # type: ignore[misc]  # as above
        def __init__(self) -> None:
            super().__init__()
            self.one = nn.Linear(4, 8)
            self.one.weight = nn.Parameter(torch.ones(6, 4))
            self.one.bias = None
            self.two = nn.Linear(7, 2)

        def forward(self, x: Any) -> Any:
            return self.two(self.one(x))

    lines = message(failed(Changed(), torch.ones(3, 4)))
    assert lines[1].startswith("6 is axis 0 of one.weight, `nn.Linear(4, 8)` at")
