"""Calls of PyTorch's modules and functions, traced without computing and without side effects."""

from __future__ import annotations

import gc
import random
import sys
from typing import Any

import numpy as np
import pytest

torch: Any = pytest.importorskip("torch")
nn: Any = torch.nn

from graphcore import from_source  # noqa: E402 - after the check for torch
from graphcore.errors import GraphError  # noqa: E402 - as above
from graphcore.frontends.frontend import Call  # noqa: E402 - as above
from graphcore.graph import Graph  # noqa: E402 - as above
from widgets import to_outline  # noqa: E402 - as above


class Net(nn.Module):  # type: ignore[misc]  # torch is not imported by name
    """A network with statistics, dropout and a hook."""

    def __init__(self, hidden: int = 8) -> None:
        super().__init__()
        self.first = nn.Linear(8, hidden)
        self.norm = nn.BatchNorm1d(hidden)
        self.drop = nn.Dropout(0.5)
        self.last = nn.Linear(8, 3)
        self.calls: list[int] = []
        self.scale = torch.full((3,), 2.0)

    def forward(self, x: Any) -> Any:
        self.calls.append(random.randrange(9))
        noise = torch.rand(3) + float(np.random.rand())  # noqa: NPY002 - the global generator is what must stay as it is
        return self.last(self.drop(torch.relu(self.norm(self.first(x))))) * self.scale + noise


def traced(function: Any, *args: Any, **kwargs: Any) -> Graph:
    return from_source(Call(function, args, kwargs))


def ops(graph: Graph) -> list[str]:
    return [node.op for node in graph.nodes if node.inputs and not node.op.startswith("graph.")]


def test_a_module_is_shown_with_scopes_parameters_and_lines() -> None:
    graph = traced(Net(), torch.randn(4, 8))
    assert ops(graph).count("torch.nn.functional.linear") == 2
    linear = next(node for node in graph.nodes if node.op == "torch.nn.functional.linear")
    assert linear.name.startswith("first/")
    assert [tensor.node.name for tensor in linear.inputs] == ["x", "first/weight", "first/bias"]
    assert linear.outputs[0].shape.as_list() == [4, 8]
    assert linear.source is not None
    assert "self.first(x)" in linear.source.text


def state_of(module: Any) -> Any:
    tensors = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    return tensors, module.training, [p.requires_grad for p in module.parameters()], [p.grad for p in module.parameters()]


@pytest.mark.parametrize("hidden", [8, 9], ids=["sound", "failing"])
def test_a_trace_leaves_everything_as_it_was(hidden: int) -> None:
    module, x = Net(hidden), torch.randn(4, 8)
    seen: list[object] = []
    module.first.register_forward_hook(lambda *_: seen.append(1))
    tensors, *others = state_of(module)
    states = random.getstate(), torch.get_rng_state(), str(np.random.get_state())  # noqa: NPY002 - as above
    traced(module, x)
    after, *same = state_of(module)
    assert all(torch.equal(tensors[name], after[name]) for name in tensors)
    assert others == same
    assert module.calls == []
    assert seen == []
    assert len(module.first._forward_hooks) == 1
    assert random.getstate() == states[0]
    assert torch.equal(torch.get_rng_state(), states[1])
    assert str(np.random.get_state()) == states[2]  # noqa: NPY002 - as above


def test_a_clash_of_shapes_is_drawn_up_to_the_operation_that_fails() -> None:
    graph = traced(Net(9), torch.randn(4, 8))
    (failed,) = [node for node in graph.nodes if node.error is not None]
    assert failed.name.startswith("last/")
    assert failed.error is not None
    assert "[4, 9] X [8, 3]" in failed.error.message
    assert "1 with errors" in to_outline(graph)


def test_a_function_of_tensors_is_shown() -> None:
    graph = traced(lambda a, b: {"out": [(a @ b).softmax(-1), a.mean()]}, torch.ones(4, 8), b=torch.ones(8, 2))
    assert {node.name for node in graph.nodes if not node.inputs} == {"a", "b"}
    assert sorted(ops(graph)) == ["torch.matmul", "torch.mean", "torch.softmax"]


def test_a_method_is_traced_on_a_copy_of_its_module() -> None:
    module = Net()
    module.embed = lambda: None
    graph = traced(module.forward, torch.randn(4, 8))
    assert "norm/batch_norm" in {node.name for node in graph.nodes}
    assert int(module.norm.num_batches_tracked) == 0


def test_weights_are_those_of_the_module() -> None:
    module = Net()
    graph = traced(module, torch.randn(4, 8))
    from graphcore.frontends.record import foreign_of  # noqa: PLC0415 - used here only

    record = foreign_of(graph)
    weight = graph.find("first/weight")
    assert record is not None
    assert weight is not None
    np.testing.assert_array_equal(record.value(weight), module.first.weight.detach().numpy())


def test_a_call_that_fails_before_any_operation_is_an_error() -> None:
    with pytest.raises(GraphError, match="failed before any operation: TypeError"):
        traced(Net(), torch.ones(4, 8), 3)


def test_a_module_of_tensors_without_memory_is_shown() -> None:
    with torch.device("meta"):
        module = nn.Linear(1 << 20, 1 << 20)
    assert "linear" in to_outline(traced(module, torch.empty(2, 1 << 20, device="meta")))


def test_frames_of_threads_are_read_while_the_collector_is_paused(monkeypatch: pytest.MonkeyPatch) -> None:
    frames, paused = sys._current_frames, []

    def current_frames() -> Any:
        paused.append(not gc.isenabled())
        return frames()

    monkeypatch.setattr(sys, "_current_frames", current_frames)
    traced(Net(), torch.randn(4, 8))
    assert paused
    assert all(paused)
    assert gc.isenabled()
