"""Gradients of PyTorch in the mirrored view, paired with their calls by autograd's record."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch: Any = pytest.importorskip("torch")
nn: Any = torch.nn

from graphcore import from_source, graph_diff  # noqa: E402 - after the check for torch
from graphcore.api.gradients.missing_gradients import missing_gradients  # noqa: E402 - as above
from graphcore.api.run import run_of  # noqa: E402 - as above
from graphcore.difference import difference_graph  # noqa: E402 - as above
from graphcore.frontends.frontend import Call  # noqa: E402 - as above
from graphcore.frontends.record import foreign_of  # noqa: E402 - as above
from graphcore.frontends.torch_calls.autograd import GradientRecorder  # noqa: E402 - as above
from graphcore.frontends.torch_calls.backward import Backward  # noqa: E402 - as above
from graphcore.frontends.torch_calls.copying import Copies, Twins  # noqa: E402 - as above
from graphcore.frontends.torch_calls.tracing import record  # noqa: E402 - as above
from graphcore.graph import Graph, Node  # noqa: E402 - as above
from graphcore.runtime.core.tracing import Trace  # noqa: E402 - as above
from tests.support.asking import inspect  # noqa: E402 - as above
from widgets import to_outline  # noqa: E402 - as above
from widgets.render.compiled import build_scene  # noqa: E402 - as above
from widgets.scene import SceneState  # noqa: E402 - as above

F: Any = nn.functional
WIDTH = 6


class Attention(nn.Module):  # type: ignore[misc]  # torch is not imported by name
    """Self-attention over the rows of a batch."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.MultiheadAttention(WIDTH, 2, batch_first=True)

    def forward(self, x: Any) -> Any:
        return self.inner(x[None], x[None], x[None])[0][0]


class Convolution(nn.Module):  # type: ignore[misc]  # as above
    """A convolution along the rows."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Conv1d(1, 2, 3, padding=1)

    def forward(self, x: Any) -> Any:
        return self.inner(x[:, None]).mean(1)


class Residual(nn.Module):  # type: ignore[misc]  # as above
    """A module, and its input added."""

    def __init__(self, inner: Any) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Any) -> Any:
        return x + self.inner(x)


class Changing(nn.Module):  # type: ignore[misc]  # as above
    """Changes of its own tensors in place, of views too."""

    def forward(self, x: Any) -> Any:
        y = x.clone()
        y[0] = x[1] * 2
        y[:, 1:3].mul_(3)
        y += 1
        left, right = y.split(WIDTH // 2, 1)
        return torch.cat([right, left], 1)


class Doubling(torch.autograd.Function):  # type: ignore[misc]  # as above
    """A function with a gradient of its own."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:  # noqa: ARG004 - the form of such functions
        return x * 2

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:  # noqa: ARG004 - as above
        return gradient * 2


class Custom(nn.Module):  # type: ignore[misc]  # as above
    """Calls a function with a gradient of its own, and computes anew what it needs."""

    def forward(self, x: Any) -> Any:
        return torch.utils.checkpoint.checkpoint(torch.sin, Doubling.apply(x), use_reentrant=False)


class Guarded(nn.Module):  # type: ignore[misc]  # as above
    """Parts without gradients."""

    def forward(self, x: Any) -> Any:
        with torch.no_grad():
            scale = x.abs().mean()
        return x / (1 + scale) + x.detach()


MODULES = {
    "linear": lambda: nn.Linear(WIDTH, WIDTH),
    "norm": lambda: nn.LayerNorm(WIDTH),
    "batch norm": lambda: nn.BatchNorm1d(WIDTH),
    "tanh": nn.Tanh,
    "attention": Attention,
    "convolution": Convolution,
    "changing": Changing,
    "custom": Custom,
    "guarded": Guarded,
    "residual": lambda: Residual(nn.Linear(WIDTH, WIDTH)),
}


def network(names: list[str], *, shared: bool) -> Any:
    """Modules in a row; shared ones appear twice."""
    torch.manual_seed(len(names))
    parts = [MODULES[name]() for name in names]
    return nn.Sequential(*parts, *(parts if shared else []), nn.Linear(WIDTH, 2))


def traced(function: Any, *args: Any) -> Graph:
    return from_source(Call(function, args, gradients=True))


def notes_of(graph: Graph) -> list[str]:
    """The sentences about the whole picture."""
    record = foreign_of(graph)
    assert record is not None
    return record.source.notes


def backward_of(graph: Graph, forward: str) -> list[Node]:
    """The gradient nodes that differentiate a node."""
    return [node for node in graph.nodes if (found := graph.gradient_records.get(node.name)) is not None and found.forward == forward]


chosen = st.tuples(st.lists(st.sampled_from(sorted(MODULES)), min_size=1, max_size=4), st.booleans())


@settings(max_examples=25, deadline=None)
@given(chosen)
def test_each_gradient_that_arrives_is_that_of_its_tensor(choice: tuple[list[str], bool]) -> None:
    module, x = network(choice[0], shared=choice[1]), torch.randn(3, WIDTH, requires_grad=True)
    made = record(Call(lambda: module(x).pow(2).sum()), Copies(torch, Twins()), GradientRecorder)
    recorder = made.recorder
    backward = Backward(recorder, [made.result])
    ports = {node.name: node.outputs for node in backward.nodes}
    seen: dict[int, Any] = {}
    given_back: dict[str, Any] = {}
    leaves = backward.leaves()
    tensors = [tensor for facts in recorder.facts.values() for tensor in facts.outputs if tensor.grad_fn in backward.node_of]
    last = {(tensor.grad_fn, tensor.output_nr): tensor for tensor in tensors}
    for tensor in last.values():
        tensor.register_hook(lambda gradient, tensor=tensor: seen.__setitem__(id(tensor), gradient))
    for function, name in backward.node_of.items():
        function.register_hook(lambda inner, _, name=name: given_back.__setitem__(name, inner))
    gradients = backward.run()[0]

    def value(name: str, place: int) -> Any:
        node = next(node for node in backward.nodes if node.name == name)
        if node.part == "seed":
            return torch.ones_like(made.result)
        return sum(value(*ref) for ref in node.inputs if ref is not None) if node.part == "sum" else given_back[name][place]

    assert len(seen) == len(last) > 1
    for (function, number), tensor in last.items():
        name, place = backward.arriving[function, number]
        assert ports[name][place].shape == tuple(tensor.shape)
        torch.testing.assert_close(value(name, place), seen[id(tensor)], msg=f"{name} for {backward.owner(function)}")
        assert recorder.owners[function] == recorder.ref(tensor)[0]
    for function in [function for function in backward.node_of if type(function).__name__ == "AccumulateGrad"]:
        name, place = backward.arriving[function, 0]
        position = next(number for number, leaf in enumerate(leaves) if leaf is function.variable)
        torch.testing.assert_close(value(name, place), gradients[position])
        assert recorder.ref(function.variable)[0] == backward.owner(function)
    places = {node.name: place for place, node in enumerate(recorder.nodes)}
    made_in_turn = sorted(recorder.owners, key=lambda function: function._sequence_nr())
    assert (order := [places[recorder.owners[function]] for function in made_in_turn]) == sorted(order)


@settings(max_examples=10, deadline=None)
@given(chosen)
def test_the_recorded_gradient_agrees_with_finite_differences(choice: tuple[list[str], bool]) -> None:
    names = [
        name for name in choice[0] if name not in {"guarded", "batch norm"}
    ]  # detached parts have no such gradient; running ones change
    module, x = network(names, shared=choice[1]).double(), torch.randn(3, WIDTH, dtype=torch.float64, requires_grad=True)
    made = record(Call(lambda: module(x).pow(2).sum()), Copies(torch, Twins()), GradientRecorder)
    backward = Backward(made.recorder, [made.result])
    leaves, gradients = backward.leaves(), backward.run()[0]
    by_original = {id(made.recorder.copies.original[id(leaf)]): g for leaf, g in zip(leaves, gradients, strict=True)}
    step = 1e-5
    with torch.no_grad():
        for row, column in ((0, 0), (2, WIDTH - 1)):
            shift = torch.zeros_like(x)
            shift[row, column] = step
            difference = (module(x + shift).pow(2).sum() - module(x - shift).pow(2).sum()) / (2 * step)
            torch.testing.assert_close(by_original[id(x)][row, column], difference, rtol=1e-4, atol=1e-6)


@settings(max_examples=15, deadline=None)
@given(chosen)
def test_a_trace_with_gradients_is_that_of_the_real_run(choice: tuple[list[str], bool]) -> None:
    module, x = network(choice[0], shared=choice[1]), torch.randn(3, WIDTH)
    made = record(Call(lambda: module(x).pow(2).sum()), Copies(torch, Twins()), GradientRecorder)
    real = Backward(made.recorder, [made.result])
    graph = traced(lambda: module(x).pow(2).sum())
    fake = [node for node in graph.nodes if node.name in graph.gradient_records]
    assert [node.op for node in fake] == [node.op for node in real.nodes]
    shapes = [[list(port.shape) for port in node.outputs if port.shape is not None] for node in real.nodes]
    assert [[tensor.shape.as_list() for tensor in node.outputs if tensor.shape.rank is not None] for node in fake] == shapes
    assert not [node for node in graph.nodes if node.error is not None]


class Net(nn.Module):  # type: ignore[misc]  # torch is not imported by name
    """A network with a layer that is used twice."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(WIDTH, WIDTH)
        self.norm = nn.BatchNorm1d(WIDTH)
        self.last = nn.Linear(WIDTH, 3)
        self.calls: list[int] = []

    def forward(self, x: Any) -> Any:
        self.calls.append(len(x))
        h = torch.relu(self.norm(self.first(x)))
        return self.last(h + F.dropout(self.first(h)))


LABELS = torch.tensor([0, 1, 2, 0])


def test_the_mirrored_picture_has_each_gradient_beside_its_call() -> None:
    net, x = Net(), torch.randn(4, WIDTH)
    state = SceneState(mirror=True)
    state.expand("net/")
    graph = traced(lambda: F.cross_entropy(net(x), LABELS))
    scene = build_scene(graph, state)
    labels = {node.label: node for node in scene.nodes if node.role == "gradient"}
    assert labels["sum of 2 gradients of relu"].mirrors == "net/relu"
    assert labels["gradient of batch_norm"].mirrors == "net/norm/batch_norm"
    assert labels["gradient of cross_entropy"].mirrors == "cross_entropy"
    forward = {node.id for node in scene.nodes if node.role == "forward"}
    assert {node.mirrors for node in labels.values()} <= forward
    outline = to_outline(scene)
    assert "gradients/net/ReluBackward0 [gradient of net/relu] <- gradients/net/sum float [4,6]" in outline
    assert "∇net/last/ (4 nodes) [gradient of net/last/] <- ∇cross_entropy float [4,3]" in outline
    assert {node.op for node in backward_of(graph, "net/last/weight")} == {"torch.AccumulateGrad"}
    (total, end) = backward_of(graph, "net/first/weight")
    assert (total.op, end.op) == ("torch.sum", "torch.AccumulateGrad")
    assert [tensor.shape.as_list() for tensor in end.outputs] == [[WIDTH, WIDTH]]
    assert end.inputs == total.outputs
    (relu,) = [node for node in backward_of(graph, "net/relu") if node.op == "torch.ReluBackward0"]
    assert relu.source is not None
    assert "torch.relu(self.norm" in relu.source.text


def test_the_inspector_says_which_call_a_gradient_differentiates() -> None:
    net, x, state = Net(), torch.randn(4, WIDTH), SceneState(mirror=True)
    state.expand("net/")
    graph = traced(lambda: F.cross_entropy(net(x), LABELS))
    differentiated = {
        box: None if (asked := inspect(graph, state, box)) is None or asked.gradient is None else asked.gradient.differentiates
        for box in ("gradients/net/ReluBackward0", "gradients/net/sum", "∇net/norm/batch_norm", "net/relu")
    }
    assert differentiated == {
        "gradients/net/ReluBackward0": "net/relu",
        "gradients/net/sum": "net/relu",
        "∇net/norm/batch_norm": "net/norm/batch_norm",
        "net/relu": None,
    }


def test_a_difference_of_calls_shows_their_gradients() -> None:
    net, x = nn.Linear(WIDTH, 3), torch.randn(4, WIDTH)
    before = traced(lambda: F.cross_entropy(net(x), LABELS))
    after = traced(lambda: F.cross_entropy(net(x).tanh(), LABELS))
    difference = graph_diff(before, after)
    assert set(difference.added) == {"tanh", "gradients/TanhBackward0"}
    assert difference_graph(difference).gradient_records["gradients/TanhBackward0"].forward == "tanh"


def test_a_real_run_has_the_magnitudes_of_gradients_by_depth() -> None:
    net, x = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4), nn.Tanh(), nn.Dropout(0.0), nn.Linear(4, 1)), torch.randn(5, 4)
    net[2].weight.data *= 1e-3
    run = run_of(Call(lambda: net(x).pow(2).sum(), gradients=True))
    assert run is not None
    assert run.error is None
    trace = run.graph.trace
    assert isinstance(trace, Trace)
    assert trace.values is not None
    magnitudes = {one.node: one for one in trace.values.gradient_magnitudes(run.graph)}
    net(x).pow(2).sum().backward()
    gradients = {name: parameter.grad for name, parameter in net.named_parameters()}
    for place in (0, 2, 5):
        (name,) = [name for name in magnitudes if name.endswith("weight") and f".{place}/" in name]
        assert magnitudes[name].value == pytest.approx(float(gradients[f"{place}.weight"].abs().max()), rel=1e-5)
        assert magnitudes[name].weight
    calls = [one for one in magnitudes.values() if not one.weight and "tanh" in one.node]
    assert len(calls) == 2
    assert calls[0].depth < calls[1].depth
    first, second = [one.value or 0.0 for one in calls]
    assert 0 < first < second / 10
    net.zero_grad()
    assert all(parameter.grad is None for parameter in net.parameters())


def test_a_result_that_is_no_number_is_summed_and_says_so() -> None:
    net, x = nn.Linear(3, 2), torch.ones(1, 3)
    notes = {
        name: " ".join(notes_of(traced(function)))
        for name, function in {
            "scalar": lambda: net(x).sum(),
            "matrix": lambda: net(x),
            "two": lambda: (net(x), net(2 * x)),
            "none": lambda: net(x).detach(),
        }.items()
    }
    assert notes["scalar"] == ""
    assert "the sum of its elements" in notes["matrix"]
    assert "2 results" in notes["two"]
    assert "No result requires gradients" in notes["none"]


def test_a_trace_of_gradients_leaves_everything_as_it_was() -> None:
    net, x, w = Net(), torch.randn(4, WIDTH), torch.randn(WIDTH, requires_grad=True)
    holder = type("Holder", (), {"net": nn.BatchNorm1d(WIDTH)})()
    seen: list[str] = []
    net.register_full_backward_hook(lambda *_: seen.append("module"))
    net.register_full_backward_pre_hook(lambda *_: seen.append("module"))
    net.first.weight.register_hook(lambda _: seen.append("tensor"))
    w.register_post_accumulate_grad_hook(lambda _: seen.append("leaf"))
    net.last.bias.grad = torch.ones(3)
    states = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    drawn = torch.get_rng_state()
    loss = lambda: F.cross_entropy(net(holder.net(x * w)), LABELS)  # noqa: E731 - the form that users write
    graph = traced(loss)
    assert any(node.op == "torch.AccumulateGrad" for node in graph.nodes)
    assert not [node for node in graph.nodes if node.error is not None]
    assert all(torch.equal(states[name], tensor) for name, tensor in net.state_dict().items())
    assert int(holder.net.num_batches_tracked) == 0
    assert torch.equal(torch.get_rng_state(), drawn)
    assert (net.calls, seen) == ([], [])
    assert net.first.weight.grad is None
    assert w.grad is None
    assert torch.equal(net.last.bias.grad, torch.ones(3))
    assert (len(net._backward_hooks), len(net._backward_pre_hooks), len(net.first._forward_hooks)) == (1, 1, 0)


def test_an_error_of_the_backward_pass_is_at_the_call_that_changed_the_tensor() -> None:
    def loss(x: Any) -> Any:
        y = torch.sigmoid(x)
        z = (y * 2).sum()
        y.add_(1)
        return z + y.sum()

    graph = traced(loss, torch.ones(3, requires_grad=True))
    (failed,) = [node for node in graph.nodes if node.error is not None]
    assert failed.op == "torch.add"
    assert failed.error is not None
    assert "modified by an inplace operation" in failed.error.message
    assert failed.source is not None
    assert failed.source.text == "y.add_(1)"


def test_a_parameter_without_a_gradient_is_an_edge_that_ends_with_its_reason() -> None:
    first, last = nn.Linear(4, 4), nn.Linear(4, 2)

    def loss(x: Any) -> Any:
        h = first(x).detach()
        return last(h).sum()

    graph = traced(loss, torch.ones(3, 4))
    state = SceneState(mirror=True)
    for box in ("first/", "last/"):
        state.expand(box)
    scene = build_scene(graph, state)
    (gap,) = [node for node in scene.nodes if node.id.startswith("gap:")]
    assert gap.label == "no gradient of weight, bias"
    assert gap.error == "'detach' is .detach(), which ends gradients"
    (edge,) = [edge for edge in scene.edges if edge.target == gap.id]
    assert edge.label == "stopped at detach"
    assert missing_gradients(traced(lambda x: last(first(x)), torch.ones(3, 4))) == []


def test_views_made_by_properties_are_part_of_the_picture() -> None:
    graph = traced(lambda x: (x.T @ x.data).sum(), torch.ones(3, 2, requires_grad=True))
    assert [node.op for node in graph.nodes if node.name in {"T", "data"}] == ["torch.T", "torch.data"]
    assert {node.op for node in backward_of(graph, "T")} == {"torch.PermuteBackward0"}
    assert backward_of(graph, "data") == []
