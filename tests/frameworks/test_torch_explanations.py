"""`gc.explain_gradient` for PyTorch: why a `.grad` is None or zero, each reason with its line."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

torch: Any = pytest.importorskip("torch")
nn: Any = torch.nn

import graphcore as gc  # noqa: E402 - after the check for torch
from graphcore.errors import InvalidArgumentError  # noqa: E402 - as above

F: Any = nn.functional


class Net(nn.Module):  # type: ignore[misc]  # torch is not imported by name
    """A network with a part that is never called, and one whose result is not used."""

    def __init__(self, between: Callable[[Any], Any] = torch.relu) -> None:
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.norm = nn.BatchNorm1d(4)
        self.last = nn.Linear(4, 2)
        self.never = nn.Linear(2, 2)
        self.aside = nn.Linear(4, 4)
        self.between = between
        self.calls: list[float] = []

    def forward(self, x: Any) -> Any:
        self.calls.append(random.random())
        h = self.norm(self.first(x)) + F.dropout(x)
        self.aside(h)
        return self.last(self.between(h))


X = torch.arange(12.0).reshape(3, 4) / 7
Y = torch.tensor([0, 1, 0])


class Case(NamedTuple):
    """A function between two layers that ends the gradient, the kind of the cut, and a part of its line."""

    between: Callable[[Any], Any]
    kind: str
    line: str
    reason: str


def off(h: Any) -> Any:
    with torch.no_grad():
        return h * 2


def inference(h: Any) -> Any:
    with torch.inference_mode():
        doubled = h * 2
    return doubled.clone()


def best(h: Any) -> Any:
    chosen = h.argmax(1)
    return F.one_hot(chosen, 4).float()


def positive(h: Any) -> Any:
    return (h > 0).float()


def whole(h: Any) -> Any:
    return h.long() * 1.0


def as_number(h: Any) -> Any:
    scale = h.sum().item()
    return torch.ones(3, 4) * scale


def by_numpy(h: Any) -> Any:
    raw = h.detach().numpy()
    return torch.tensor(raw + 1)


def copied(h: Any) -> Any:
    return torch.tensor(h)


def like(h: Any) -> Any:
    return torch.ones_like(h)


CASES = {
    "detach": Case(lambda h: h.detach(), "detached", "h.detach()", ".detach()"),
    "data": Case(lambda h: h.data * 2, "detached", "h.data", ".data"),
    "no_grad": Case(off, "no_grad", "return h * 2", "with torch.no_grad():"),
    "inference_mode": Case(inference, "no_grad", "doubled = h * 2", "inference_mode"),
    "argmax": Case(best, "dtype", "h.argmax(1)", "int64"),
    "comparison": Case(positive, "dtype", "(h > 0)", "bool"),
    "long": Case(whole, "dtype", "h.long()", "int64"),
    "item": Case(as_number, "taken out", "h.sum().item()", "number or array"),
    "numpy": Case(by_numpy, "taken out", "h.detach().numpy()", "number or array"),
    "torch.tensor": Case(copied, "detached", "torch.tensor(h)", "torch.tensor of a tensor"),
    "ones_like": Case(like, "shape only", "torch.ones_like(h)", "shape"),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore:To copy construct from a tensor")
def test_a_gradient_that_is_none_is_explained_by_the_call_that_ends_it(name: str) -> None:
    case = CASES[name]
    net = Net(case.between)
    told = gc.explain_gradient(lambda: F.cross_entropy(net(X), Y), net.first.weight)
    F.cross_entropy(net(X), Y).backward()
    assert net.first.weight.grad is None
    assert told.is_none
    assert told.x == "net.first.weight"
    (cut,) = told.cuts
    assert cut.kind == case.kind
    assert cut.source is not None
    assert case.line in cut.source.text
    assert case.reason in cut.reason
    assert cut.path[0] == "net/first/weight"
    assert f"{case.kind}: '{cut.node}' " in repr(told)
    assert cut.node in told._repr_html_().replace("<wbr>", "")
    other = gc.explain_gradient(lambda: F.cross_entropy(net(X), Y), "last.weight")
    assert (other.gradient, other.cuts, other.is_zero) == ("net.last.weight.grad", (), False)


def test_parameters_outside_of_the_way_are_explained() -> None:
    net = Net()
    loss = lambda: F.cross_entropy(net(X), Y)  # noqa: E731 - the form that users write
    kinds = {name: gc.explain_gradient(loss, name).cuts[0] for name in ("never.weight", "aside.weight")}
    assert kinds["never.weight"].kind == "never called"
    assert "module 'net.never'" in kinds["never.weight"].reason
    assert kinds["aside.weight"].kind == "unused"
    assert kinds["aside.weight"].source is not None
    assert kinds["aside.weight"].source.text == "self.aside(h)"
    (stranger,) = gc.explain_gradient(loss, nn.Parameter(torch.ones(2))).cuts
    assert (stranger.kind, "replaced" in stranger.reason) == ("no path", True)
    net.first.requires_grad_(False)
    (frozen,) = gc.explain_gradient(loss, net.first.weight).cuts
    assert (frozen.kind, "requires_grad=False" in frozen.reason) == ("requires_grad", True)
    (whole,) = gc.explain_gradient(loss, net.norm.num_batches_tracked).cuts
    assert whole.kind == "dtype"


def test_a_tensor_that_is_no_leaf_keeps_no_gradient() -> None:
    w = nn.Parameter(torch.ones(4)) * 0.1
    told = gc.explain_gradient(lambda: torch.sum(X * w), w)
    assert told.is_none
    assert told.paths == (("w", "mul", "sum"),)
    (cut,) = told.cuts
    assert (cut.kind, "MulBackward0" in cut.reason) == ("not a leaf", True)
    w.retain_grad()
    assert gc.explain_gradient(lambda: torch.sum(X * w), w).gradient == "w.grad"


def dead(w: Any) -> Any:
    return torch.relu(-w.abs() - 1).sum()


def rounded(w: Any) -> Any:
    return (w * 2).round().sum()


def clamped(w: Any) -> Any:
    return (w + 100).clamp(0, 1).sum()


def times_zero(w: Any) -> Any:
    return (w * torch.zeros(3)).sum()


def not_chosen(w: Any) -> Any:
    return torch.where(torch.zeros(3).bool(), w, 1.0).sum()


def saturated(w: Any) -> Any:
    return torch.sigmoid(w * 1e5 + 1e6).sum()


ZEROS = {
    "dead ReLU": (dead, "torch.relu", "dead ReLU"),
    "round": (rounded, "round()", "flat"),
    "clamp": (clamped, ".clamp(0, 1)", "bounds"),
    "times zero": (times_zero, "* torch.zeros(3)", "by zeros"),
    "where": (not_chosen, "torch.where", "condition"),
    "sigmoid": (saturated, "torch.sigmoid", "saturated"),
}


@pytest.mark.parametrize("name", ZEROS)
def test_a_gradient_that_is_zero_is_explained_by_the_call_that_makes_it_so(name: str) -> None:
    function, line, reason = ZEROS[name]
    w = torch.tensor([0.3, 0.5, 2.0], requires_grad=True)
    told = gc.explain_gradient(lambda: function(w), w)
    assert told.is_zero
    assert "it is zero for these values" in repr(told)
    (cut,) = told.cuts
    assert (cut.kind, reason in cut.reason) == ("zero", True)
    assert cut.source is not None
    assert line in cut.source.text
    assert w.grad is None


def test_the_way_of_a_gradient_is_told_with_sums_and_lines() -> None:
    net = Net()
    told = gc.explain_gradient(lambda: F.cross_entropy(net(X) + net(2 * X), Y), net.last.weight)
    assert (told.gradient, told.kind, told.path_count) == ("net.last.weight.grad", "float32 [2, 4]", 2)
    assert [step.op.rpartition(".")[2] for step in told.steps] == ["cross_entropy", "add", "linear", "linear", "Parameter"]
    (total,) = told.sums
    assert total.tensor == "net/last/weight:0"
    assert {part.node for part in total.parts} == {step.node for step in told.steps if step.op.endswith("linear")}
    assert all(step.source is not None for step in told.steps[:-1])


def modified(w: Any) -> Any:
    y = torch.sigmoid(w)
    z = (y * 2).sum()
    y.mul_(3)
    return z + y.sum()


def twice(w: Any) -> Any:
    loss = (w * w).sum()
    loss.backward()
    loss.backward()
    return loss


def of_leaf(w: Any) -> Any:
    w += 1
    return w.sum()


@pytest.mark.parametrize(
    ("function", "line", "said"),
    [(modified, "y.mul_(3)", "inplace operation"), (twice, "loss.backward()", "second time"), (of_leaf, "w += 1", "leaf Variable")],
    ids=["changed in place", "backward twice", "leaf changed in place"],
)
def test_an_error_names_its_line(function: Callable[[Any], Any], line: str, said: str) -> None:
    w = torch.ones(3, requires_grad=True)
    told = gc.explain_gradient(lambda: function(w), w)
    assert said in told.error
    assert line in repr(told)
    assert w.grad is None
    assert torch.equal(w, torch.ones(3))


def by_state(net: Any) -> Any:
    out = net(X)
    net.state_dict()["last.weight"].mul_(0.5)
    return out.sum()


def by_data(net: Any) -> Any:
    out = net(X)
    net.last.weight.data.mul_(0.5)
    return out.sum()


def before_use(net: Any) -> Any:
    with torch.no_grad():
        net.first.weight.mul_(0.5)
    return net(X).sum()


def test_a_tensor_of_state_dict_is_said_to_be_another_name_of_a_parameter() -> None:
    net = Net()
    (cut,) = gc.explain_gradient(lambda: net(X).sum(), net.state_dict()["first.weight"]).cuts
    assert cut.kind == "alias"
    assert "shares its memory with 'net.first.weight'" in cut.reason
    assert "state_dict()" in cut.reason


def test_parameters_that_are_changed_in_place_are_named_with_the_line() -> None:
    net = Net()
    failed = gc.explain_gradient(lambda: by_state(net), net.first.weight)
    (cut,) = failed.cuts
    assert "inplace operation" in failed.error
    assert (cut.kind, cut.source is not None and cut.source.text) == (
        "changed in place",
        'net.state_dict()["last.weight"].mul_(0.5)',
    )
    silent = gc.explain_gradient(lambda: by_data(net), net.first.weight)
    assert silent.gradient is not None
    (note,) = [note for note in silent.notes if "changed in place" in note]
    assert "'net.last.weight' is changed in place by 'mul' (test_torch_explanations.py, line" in note
    assert "net.last.weight.data.mul_(0.5)" in note
    assert "autograd does not notice" in note
    changed = gc.explain_gradient(lambda: before_use(net), net.first.weight)
    assert changed.gradient is not None
    (note,) = [note for note in changed.notes if "changed in place" in note]
    assert "'net.first.weight' is changed in place by 'mul'" in note
    assert "autograd does not notice" not in note
    assert not [note for note in gc.explain_gradient(lambda: net(X).sum(), net.first.weight).notes if "in place" in note]


def test_an_explanation_leaves_everything_as_it_was() -> None:
    net, w = Net(), torch.ones(4, requires_grad=True)
    holder = type("Holder", (), {"net": nn.BatchNorm1d(4)})()
    seen: list[int] = []
    net.register_full_backward_hook(lambda *_: seen.append(1))
    net.first.register_forward_hook(lambda *_: seen.append(2))
    net.first.weight.register_hook(lambda _: seen.append(3))
    net.first.bias.grad = torch.ones(4)
    before = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    drawn = random.getstate(), torch.get_rng_state(), str(np.random.get_state())  # noqa: NPY002 - the global generator is what must stay
    told = gc.explain_gradient(lambda: F.cross_entropy(net(holder.net(X * w)), Y), net.first.weight)
    assert told.gradient is not None
    assert any("1 hook" in note for note in told.notes)
    assert all(torch.equal(before[name], tensor) for name, tensor in net.state_dict().items())
    assert int(holder.net.num_batches_tracked) == 0
    assert (random.getstate(), str(np.random.get_state())) == (drawn[0], drawn[2])  # noqa: NPY002 - as above
    assert torch.equal(torch.get_rng_state(), drawn[1])
    assert (net.calls, seen) == ([], [])
    assert [parameter.grad is None for parameter in net.parameters()] == [name != "first.bias" for name, _ in net.named_parameters()]
    assert w.grad is None
    assert (len(net._backward_hooks), len(net.first._forward_hooks), len(net.first.weight._backward_hooks)) == (1, 1, 1)


def test_a_computed_loss_is_explained_by_its_record() -> None:
    net = Net(lambda h: h.detach())
    loss = F.cross_entropy(net(X), Y)
    reached = gc.explain_gradient(loss, net.last.weight)
    assert reached.gradient == "grad"
    assert reached.paths[0][0] == "AccumulateGrad"
    assert reached.paths[0][-1] == type(loss.grad_fn).__name__
    missing = gc.explain_gradient(loss, net.first.weight)
    assert missing.is_none
    assert missing.cuts[0].kind == "no path"
    assert any("reaches 2 leaf tensors" in note for note in missing.notes)
    assert any("lambda" in note for note in missing.notes)
    assert gc.explain_gradient(loss.detach(), net.last.weight).cuts[0].kind == "no record"
    assert gc.explain_gradient(loss, X).cuts[0].kind == "requires_grad"
    inner = X.clone().requires_grad_() * 2
    assert gc.explain_gradient(inner.sum(), inner).cuts[0].kind == "not a leaf"


def test_a_name_is_that_in_the_whole_module_before_that_in_a_part() -> None:
    net = nn.Sequential(nn.Linear(4, 4), nn.Sequential(nn.Linear(4, 4)))
    told = [gc.explain_gradient(lambda: net(X).sum(), name).gradient for name in ("0.weight", "1.0.weight", "net.0.bias")]
    assert told == ["net.0.weight.grad", "net.1.0.weight.grad", "net.0.bias.grad"]


def test_names_and_results_that_do_not_fit_are_refused() -> None:
    net = Net()

    def loss() -> Any:
        return F.cross_entropy(net(X), Y)

    with pytest.raises(InvalidArgumentError, match=r"got 'frist.weight': no module .* there are: net.first.weight"):
        gc.explain_gradient(loss, "frist.weight")
    with pytest.raises(InvalidArgumentError, match="got 'weight': several tensors"):
        gc.explain_gradient(loss, "weight")
    with pytest.raises(InvalidArgumentError, match="returns a tensor, got one that returns float"):
        gc.explain_gradient(lambda: loss().item(), net.first.weight)
    with pytest.raises(InvalidArgumentError, match="requires a tensor for x"):
        gc.explain_gradient(loss(), "first.weight")
    with pytest.raises(InvalidArgumentError, match="requires a tensor of PyTorch or its name, got int"):
        gc.explain_gradient(loss, 3)


def test_an_optimizer_that_leaves_a_parameter_as_it_is_is_named() -> None:
    net = nn.Linear(4, 2)

    def loss() -> Any:
        return net(X).sum()

    holding = torch.optim.SGD([{"params": [net.bias]}, {"params": [net.weight], "lr": 0.0}], lr=0.1)
    assert gc.explain_gradient(loss, net.bias, optimizer=holding).notes == gc.explain_gradient(loss, net.bias).notes
    for y in (loss, loss()):
        (still, *_) = gc.explain_gradient(y, net.weight, optimizer=holding).notes
        assert "(SGD) has the learning rate 0 for it" in still
        (absent, *_) = gc.explain_gradient(y, net.weight, optimizer=torch.optim.Adam(nn.Linear(4, 2).parameters())).notes
        assert "(Adam) holds 2 tensors, and not this one" in absent
        assert "1 others of float32 [2, 4]" in absent
    with pytest.raises(InvalidArgumentError, match="requires an optimizer of PyTorch, got Linear"):
        gc.explain_gradient(loss, net.weight, optimizer=net)


class Halved(nn.Module):  # type: ignore[misc]  # torch is not imported by name
    """A network whose forward pass freezes, copies, differentiates or normalises."""

    def __init__(self, does: str) -> None:
        super().__init__()
        self.first, self.last, self.does = nn.Linear(4, 6), nn.Linear(6, 3), does

    def forward(self, x: Any) -> Any:
        first = self.first
        if self.does == "frozen":
            first.requires_grad_(False)
        if self.does == "copied":
            first = copy.deepcopy(first)
        h = first(x)
        if self.does == "hooked":
            h.register_hook(lambda gradient: gradient * 0)
        y = self.last(h).sum(1)
        if self.does == "softmax":
            y = self.last(h)[:, :1].softmax(1)  # one score: always 1
        if self.does == "differentiated":
            (y,) = torch.autograd.grad(y.pow(2).sum(), h)
        return y


@pytest.mark.parametrize(
    ("does", "kind", "says", "line"),
    [
        ("frozen", "requires_grad", "switches requires_grad off", "first.requires_grad_(False)"),
        ("copied", "unused", "", "first = copy.deepcopy(first)"),
        ("hooked", "zero", "a hook on its result (register_hook)", "h = first(x)"),
        ("softmax", "zero", "they always sum to 1", "y = self.last(h)[:, :1].softmax(1)"),
        ("differentiated", "detached", "without create_graph=True", "torch.autograd.grad(y.pow(2).sum(), h)"),
    ],
)
def test_an_end_within_a_forward_pass_is_named_with_the_line_of_the_user(does: str, kind: str, says: str, line: str) -> None:
    net = Halved(does)
    (cut,) = gc.explain_gradient(lambda: net(X).sum(), net.first.weight).cuts
    assert cut.kind == kind
    assert says in cut.reason
    assert cut.source is not None
    assert line in cut.source.text
