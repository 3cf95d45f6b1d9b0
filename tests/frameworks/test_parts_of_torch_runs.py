"""Runs of PyTorch with `backward()`, conditions or loops in them: all of their parts have values."""

from __future__ import annotations

import copy
from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")
nn: Any = torch.nn

import graphcore as gc  # noqa: E402 - after the check for torch
from graphcore import from_source  # noqa: E402 - as above
from graphcore.frontends.frontend import Call  # noqa: E402 - as above


def mlp() -> tuple[Any, Any]:
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)), torch.randn(5, 8)


def root_of_zero(model: Any, x: Any) -> Any:
    h = model[0](x)
    z = torch.sqrt(h * 0)  # BAD SqrtBackward0
    return model[2](z).square().mean()


def norm_of_zero(model: Any, x: Any) -> Any:
    h = model(x)
    return (h - h).norm(dim=1).square().sum() + (h * 0).pow(0.5).sum()  # BAD PowBackward0


def masked_log(model: Any, x: Any) -> Any:
    logs = torch.log(model(x) * 0)  # BAD LogBackward0
    return torch.where(logs > 0, logs, 0.0).sum()


@pytest.mark.parametrize("loss_of", [root_of_zero, norm_of_zero, masked_log])
@pytest.mark.parametrize("has_step", [False, True], ids=["backward", "step"])
def test_the_first_bad_value_of_a_backward_pass_within_a_run_is_named(loss_of: Any, has_step: bool) -> None:
    model, x = mlp()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    before = copy.deepcopy(model.state_dict())

    def step() -> Any:
        optimizer.zero_grad()
        loss = loss_of(model, x)
        loss.backward()
        if has_step:
            optimizer.step()
        return loss

    run = gc.run(step)
    values = run.trace.values
    assert values is not None
    bad = [one for one in values if not one.is_finite and "gradients" in one.node]
    node = run.graph.find(bad[0].node)
    assert node is not None
    assert node.source is not None
    assert "# BAD" in node.source.text
    assert node.op == f"torch.{node.source.text.partition('# BAD')[2].strip()}"
    first = values.first_bad
    assert first is not None
    assert loss_of is masked_log or first.tensor.node == node.name
    assert node.source.text in first.cause
    assert all(torch.equal(before[name], tensor) for name, tensor in model.state_dict().items())
    assert all(parameter.grad is None for parameter in model.parameters())


def test_gradients_within_a_run_are_those_of_hooks_bit_for_bit() -> None:
    model, x = mlp()
    shared = model[0](x).detach().requires_grad_()

    def step() -> Any:
        y = model[2](torch.relu(shared)) + model[2](shared)
        y.square().sum().backward(retain_graph=True)
        y.sum().backward()
        return [parameter.grad for parameter in model[2].parameters()]

    run = gc.run(step)
    values, plain = run.trace.values, step()
    assert values is not None
    assert [gradient.tolist() for gradient in run.result] == [gradient.tolist() for gradient in plain]
    ends = [one for one in values if "AccumulateGrad" in one.node]
    assert len(ends) == 6
    assert {(float(gradient.min()), float(gradient.max())) for gradient in (*plain, shared.grad)} <= {(one.min, one.max) for one in ends}
    records = run.graph.gradient_records
    assert {"relu", "square"} <= {record.forward for record in records.values()}


def chosen(x: Any) -> Any:
    return torch.cond(x.sum() > 0, lambda x: (torch.log(x - 4) + 1).sum(), lambda x: x.sin().sum(), (x,))  # BAD log


def turned(x: Any) -> Any:
    def turn(number: Any, value: Any) -> Any:
        lower = value - 1.5
        return number + 1, torch.sqrt(lower)  # BAD sqrt

    return torch.while_loop(lambda number, _: number < 4, turn, (torch.tensor(0), x))[1]


@pytest.mark.parametrize("function", [chosen, turned])
def test_bodies_of_conditions_and_loops_have_values(function: Any) -> None:
    x = torch.full((3,), 4.0)
    run = gc.run(function, x)
    assert run.trace.values is not None
    bad = run.trace.values.first_bad
    assert bad is not None
    node = run.graph.find(bad.tensor.node)
    assert node is not None
    assert node.source is not None
    assert node.op == f"torch.{node.source.text.partition('# BAD')[2].strip()}"
    assert "its inputs were finite" in bad.cause
    assert torch.equal(run.result, function(x)) or bool(function(x).isnan().all())


def test_a_long_loop_is_recorded_for_its_first_turns() -> None:
    def long(x: Any) -> Any:
        return torch.while_loop(
            lambda number, _: number < 300, lambda number, value: (number + 1, value * 0.99 + 0.1), (torch.tensor(0), x)
        )[1]

    x = torch.ones(3)
    run = gc.run(long, x)
    assert torch.equal(run.result, long(x))
    made = [node.op for node in run.graph.op_nodes()]
    assert 100 <= made.count("torch.mul") < 300
    assert made.count("torch.turns_left") == 1


def test_a_backward_pass_that_fails_within_a_run_is_marked() -> None:
    w = torch.ones(3, requires_grad=True)

    def twice() -> Any:
        loss = (w * w).sum()
        loss.backward()
        loss.backward()

    run = gc.run(twice)
    assert "second time" in str(run.error)
    (failed,) = [node for node in run.graph.nodes if node.error is not None]
    assert failed.op == "torch.backward"
    assert w.grad is None


def test_passes_that_are_called_directly_have_values_and_the_first_bad_one() -> None:
    w = torch.zeros(3, requires_grad=True)

    def logarithm() -> Any:
        y = torch.where(w > 0, w.log(), w * 2).sum()  # BAD log
        (gradient,) = torch.autograd.grad(y, w)
        return gradient

    values = gc.run(logarithm).trace.values
    assert values is not None
    first = values.first_bad
    assert first is not None
    assert "LogBackward0" in first.tensor.node
    assert "its inputs were finite" in first.cause

    def seeded() -> Any:
        results = [(w * 2).sum(), (w * w).sum()]
        return torch.autograd.grad(results, [w], [torch.tensor(2.0), torch.tensor(1.0)])

    run = gc.run(seeded)
    assert {node.op for node in run.graph.nodes if node.name in run.graph.gradient_records} >= {
        "torch.SumBackward0",
        "torch.AccumulateGrad",
    }


def test_gradients_of_direct_passes_are_those_of_the_plain_call_bit_for_bit() -> None:
    model, x = mlp()

    def both(x: Any) -> Any:
        hidden = model[0](x)
        y = model[2](torch.relu(hidden))
        (inner,) = torch.autograd.grad(y.sum(), hidden, create_graph=True)
        torch.autograd.backward([y.square().mean(), inner.norm()], inputs=list(model.parameters()))
        return [inner, *[parameter.grad for parameter in model.parameters()]]

    run = gc.run(both, x)
    values, plain = run.trace.values, both(x)
    assert [gradient.tolist() for gradient in run.result] == [gradient.tolist() for gradient in plain]
    assert values is not None
    assert len([one for one in values if "AccumulateGrad" in one.node]) == len(plain) - 1
    outputs = [node.inputs[0] for node in run.graph.nodes if node.op == "graph.Output"]
    assert all(tensor.node.name in run.graph.gradient_records for tensor in outputs)


def test_calls_within_vmap_are_linked_recorded_and_explained() -> None:
    first, last, x = nn.Linear(4, 3), nn.Linear(3, 2), torch.randn(5, 4)

    def mapped(x: Any) -> Any:
        return torch.vmap(lambda row: torch.log(last(first(row).detach()) * 0))(x).sum()

    graph = from_source(Call(mapped, (x,)))
    (log,) = [node for node in graph.nodes if node.op == "torch.log"]
    (total,) = [node for node in graph.nodes if node.op == "torch.sum"]
    assert list(total.inputs) == list(log.outputs)
    assert [node.op for node in graph.op_nodes()].count("torch.nn.functional.linear") == 2
    values = gc.run(mapped, x).trace.values
    assert values is not None
    bad = values.first_bad
    assert bad is not None
    assert (bad.tensor.node, bad.tensor.shape) == ("log", (5, 2))
    (cut,) = gc.explain_gradient(lambda: mapped(x), first.weight).cuts
    assert cut.kind == "detached"


def test_gradients_for_each_example_are_those_of_the_plain_call() -> None:
    model, x, y = nn.Linear(4, 1), torch.randn(5, 4), torch.randn(5, 1)

    def loss(parameters: Any, x: Any, y: Any) -> Any:
        return nn.functional.mse_loss(torch.func.functional_call(model, parameters, (x,)), y)

    def gradients(x: Any, y: Any) -> Any:
        return torch.vmap(torch.func.grad(loss), in_dims=(None, 0, 0))(dict(model.named_parameters()), x, y)

    run, plain = gc.run(gradients, x, y), gradients(x, y)
    assert {name: gradient.tolist() for name, gradient in run.result.items()} == {name: one.tolist() for name, one in plain.items()}
    for node in [node for node in run.graph.nodes if node.op == "graph.Output"]:
        assert node.inputs[0].node.name in run.graph.gradient_records
