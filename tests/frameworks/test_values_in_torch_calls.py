"""Traces of PyTorch's calls: decisions by values, interruptions, other threads, opened functions."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")
nn: Any = torch.nn

from graphcore import from_source  # noqa: E402 - after the check for torch
from graphcore.frontends.frontend import Call  # noqa: E402 - as above
from graphcore.frontends.record import foreign_of  # noqa: E402 - as above
from graphcore.graph import Graph  # noqa: E402 - as above

pytestmark = [pytest.mark.frameworks, pytest.mark.filterwarnings("ignore")]


def traced(function: Any, *args: Any, **kwargs: Any) -> Graph:
    return from_source(Call(function, args, kwargs))


def notes_of(graph: Graph) -> list[str]:
    record = foreign_of(graph)
    assert record is not None
    return [note.partition(" depends on values: ")[2] for note in record.source.notes]


def ops_of(graph: Graph) -> set[str]:
    return {node.op.removeprefix("torch.") for node in graph.nodes}


def branching(x: Any) -> Any:
    y = x * 2
    return y.sin() if y.sum() > 0 else y.cos()


def guarding(x: Any) -> Any:
    if torch.isnan(x).any():
        raise ValueError("not a number")
    assert (x > 0).all()
    return x.exp()


def looping(x: Any) -> Any:
    while x.norm() > 1:
        x = x * 0.5
    return x.exp()


def searching(x: Any) -> Any:
    while True:
        x = x * 0.5
        if x.norm() < 1:
            break
    return x.exp()


def counting(x: Any) -> Any:
    for _ in range(int(x.sum())):
        x = x.sin()
    return x.exp()


def comparing(x: Any) -> Any:
    return x.sin() if x.max().item() > 3 else x.cos()


def listing(x: Any) -> Any:
    return x.exp() * max(x.tolist())


CASES: dict[str, tuple[Callable[[Any], Any], set[str], list[str]]] = {
    "if": (branching, {"sin", "python.branch"}, ["drawn as if true"]),
    "raise and assert": (guarding, {"exp", "python.branch"}, ["drawn as if false", "drawn as if true"]),
    "while": (looping, {"mul", "exp"}, ["drawn with 2 iterations"]),
    "while true": (searching, {"mul", "exp"}, ["drawn as if true"]),
    "int": (counting, {"sin", "exp"}, ["drawn as if 2"]),
    "item": (comparing, {"sin", "item"}, ["drawn as if true"]),
    "tolist": (listing, {"exp", "item"}, ["drawn as if true"]),
    "mask": (lambda x: (x[x > 0] * 2).exp(), {"getitem", "exp"}, []),
    "nonzero": (lambda x: torch.nonzero(x).float().exp(), {"nonzero", "exp"}, []),
    "format": (lambda x: [x.exp(), f"{x.sum():.3f}"][0], {"exp"}, []),
    "slice": (lambda x: x[: x.sum().long()].exp(), {"getitem", "exp"}, ["drawn as if 2"]),
    "unique": (lambda x: torch.unique(x).exp(), {"exp"}, []),
}


@pytest.mark.parametrize("name", CASES)
def test_what_depends_on_values_is_named_and_the_rest_is_drawn(name: str) -> None:
    function, ops, notes = CASES[name]
    graph = traced(function, torch.ones(3))
    assert [node.error for node in graph.nodes if node.error is not None] == []
    assert ops <= ops_of(graph)
    assert list(dict.fromkeys(notes_of(graph))) == notes


def test_a_decision_is_a_node_with_its_line() -> None:
    graph = traced(branching, torch.ones(3))
    (branch,) = [node for node in graph.nodes if node.op == "python.branch"]
    assert branch.source is not None
    assert "if y.sum() > 0" in branch.source.text
    assert branch.inputs[0].node.op == "torch.gt"
    record = foreign_of(graph)
    assert record is not None
    assert any("`return y.sin() if" in text or "depends on values" in text for *_, text in record.details(branch))


def test_values_that_leave_pytorch_are_named() -> None:
    graph = traced(lambda x: torch.from_numpy(x.exp().numpy()), torch.ones(3))
    (failed,) = [node for node in graph.nodes if node.error is not None]
    assert failed.error is not None
    assert failed.error.message.startswith("numpy takes values out of PyTorch, and a trace has none: `gc.run`")
    assert "exp" in ops_of(graph)


def test_sizes_that_depend_on_values_are_symbols() -> None:
    graph = traced(lambda x: x[x > 0] * 2, torch.ones(3, 4))
    product = next(node for node in graph.nodes if node.op == "torch.mul")
    assert product.outputs[0].shape.as_list() == [None]
    assert "u0" in graph.shape_text(product.outputs[0])


def test_parts_along_a_size_that_depends_on_values_are_pasted_where_values_say() -> None:
    def pasted(masks: Any, boxes: Any) -> Any:
        canvas = torch.zeros(30, 40)
        for mask, box in zip(masks, boxes[boxes[:, 0] >= 0], strict=True):
            x, width = max(box[0], 0), min(box[1] + 1, 40)
            canvas[:, x:width] = mask[:, x - box[0] : width - box[0]]
        return canvas * 2

    graph = traced(pasted, torch.ones(2, 30, 40), torch.ones(2, 4, dtype=torch.int64))
    assert [node.error for node in graph.nodes if node.error is not None] == []
    parts = next(node for node in graph.nodes if node.op == "torch.unbind" and len(node.outputs[0].shape.as_list()) == 1)
    assert [part.shape.as_list() for part in parts.outputs] == [[4], [4]]
    assert "torch.mul" in {node.op for node in graph.nodes}


def test_an_error_of_python_is_drawn_at_its_line_in_its_module() -> None:
    class Refusing(nn.Module):  # type: ignore[misc]  # torch is not imported by name
        def forward(self, x: Any) -> Any:
            if x.shape[0] == 3:
                raise ValueError("three is too few")
            return x

    graph = traced(nn.Sequential(nn.Linear(4, 4), Refusing()), torch.ones(3, 4))
    (failed,) = [node for node in graph.nodes if node.error is not None]
    assert failed.op == "python.raise"
    assert failed.source is not None
    assert "three is too few" in failed.source.text
    assert failed.name.startswith("layer.1/")


def test_functions_written_in_python_are_opened() -> None:
    graph = traced(nn.MultiheadAttention(8, 2), *[torch.ones(5, 2, 8)] * 3)
    inner = [node.name for node in graph.nodes if node.name.startswith("multi_head_attention_forward/")]
    assert len(inner) > 5
    relu = traced(lambda x: nn.functional.relu(nn.functional.dropout(x)), torch.ones(3))
    assert {"nn.functional.relu", "nn.functional.dropout"} <= ops_of(relu)


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit], ids=["interrupt", "exit"])
def test_an_interrupted_trace_leaves_no_mode_behind(error: type[BaseException]) -> None:
    def stopped(x: Any) -> Any:
        x * 2
        random.random()
        raise error

    state = random.getstate()
    with pytest.raises(error):
        traced(stopped, torch.ones(3))
    assert random.getstate() == state
    assert type(torch.ones(3) * 2) is torch.Tensor
    assert not torch._C._is_torch_function_mode_enabled()
    assert "sin" in ops_of(traced(branching, torch.ones(3)))


def test_a_thread_that_trains_is_neither_recorded_nor_disturbed() -> None:
    started, stop = threading.Event(), threading.Event()
    drawn: list[float] = []

    def train() -> None:
        while not stop.is_set():
            noise = torch.rand(4).tanh()
            assert type(noise) is torch.Tensor
            drawn.append(float(noise[0]) + random.random())
            started.set()

    thread = threading.Thread(target=train)
    thread.start()
    try:
        started.wait(20)
        graphs = [traced(nn.Sequential(nn.Linear(4, 4), nn.Dropout()), torch.ones(2, 4)) for _ in range(5)]
    finally:
        stop.set()
        thread.join(20)
    assert all("tanh" not in ops_of(graph) for graph in graphs)
    assert len(set(drawn)) == len(drawn)


def test_a_seed_that_is_set_in_a_call_is_set_back() -> None:
    def seeded(x: Any) -> Any:
        torch.manual_seed(0)
        return x + torch.rand(3)

    torch.rand(3)
    state = torch.get_rng_state()
    traced(seeded, torch.ones(3))
    assert torch.equal(torch.get_rng_state(), state)
