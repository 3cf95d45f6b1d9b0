"""Calls of PyTorch that are run once and recorded: results, values, faults, no side effects."""

from __future__ import annotations

import base64
import copy
import gzip
import inspect
import random
import re
import signal
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

torch: Any = pytest.importorskip("torch")
torchvision: Any = pytest.importorskip("torchvision")
nn: Any = torch.nn
F: Any = torch.nn.functional

import graphcore as gc  # noqa: E402 - after the check for torch
from graphcore.errors import GraphError  # noqa: E402 - as above
from graphcore.frontends.record import foreign_of  # noqa: E402 - as above
from widgets import to_html  # noqa: E402 - as above
from widgets.scene.steps import steps_of  # noqa: E402 - as above
from widgets.scene.time_lens import recorded_times  # noqa: E402 - as above
from widgets.scene.value_lens import recorded_values  # noqa: E402 - as above


class Net(nn.Module):  # type: ignore[misc]  # torch is not imported by name
    """A network with statistics, dropout, own lists and tensors."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(8, 8)
        self.norm = nn.BatchNorm1d(8)
        self.drop = nn.Dropout(0.5)
        self.last = nn.Linear(8, 3)
        self.calls: list[int] = []
        self.seen = {"count": 0}
        self.cache = torch.zeros(3)

    def forward(self, x: Any) -> Any:
        self.calls.append(random.randrange(9))
        self.seen["count"] += 1
        noise = torch.rand(3) + float(np.random.rand())  # noqa: NPY002 - the global generator is what must stay as it is
        y = self.last(self.drop(torch.relu(self.norm(self.first(x))))) + noise
        self.cache[1:] = y[0, 1:].detach()
        self.extra = y.sum()
        return y + self.cache


def mlp() -> tuple[Any, Any]:
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4), nn.Softmax(-1)), torch.randn(5, 8)


def resnet() -> tuple[Any, Any]:
    return torchvision.models.resnet18(), torch.randn(2, 3, 32, 32)


def transformer() -> tuple[Any, Any]:
    return nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 2, 32, batch_first=True), 2), torch.randn(2, 5, 16)


def net() -> tuple[Any, Any]:
    return Net(), torch.randn(4, 8)


@pytest.mark.parametrize("make", [mlp, resnet, transformer, net])
@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
@pytest.mark.parametrize("has_grad", [True, False], ids=["autograd", "no_grad"])
def test_results_are_those_of_the_plain_call_bit_for_bit(make: Callable[[], tuple[Any, Any]], training: bool, has_grad: bool) -> None:
    torch.manual_seed(0)
    module, x = make()
    module.train(training)
    with torch.set_grad_enabled(has_grad):
        watched = gc.run(module, x).result
        assert torch.equal(watched, module(x))
    assert watched.requires_grad == has_grad


@pytest.mark.parametrize("make", [mlp, resnet, transformer])
def test_values_are_those_of_forward_hooks_bit_for_bit(make: Callable[[], tuple[Any, Any]]) -> None:
    torch.manual_seed(0)
    module, x = make()
    run = gc.run(module, x)
    seen: dict[str, Any] = {}
    leaves = (nn.Linear, nn.Conv2d, nn.BatchNorm2d, nn.LayerNorm, nn.MaxPool2d, nn.AdaptiveAvgPool2d)
    for path, part in module.named_modules():
        if isinstance(part, leaves) and not path.endswith("out_proj"):
            part.register_forward_hook(lambda _part, _args, out, path=path: seen.update({path: out.detach().clone()}))
    module(x)
    values = run.trace.values
    assert values is not None
    compared = 0
    for path, tensor in seen.items():
        made = [one for one in values if module_of(run, one.node) == path and one.shape == tuple(tensor.shape)]
        assert made, path
        assert (made[-1].min, made[-1].max) == (float(tensor.min()), float(tensor.max())), path
        compared += 1
    assert compared >= 2


def module_of(run: gc.Run, node: str) -> str:
    """The path of the module that has called an operation."""
    record = foreign_of(run.graph)
    assert record is not None
    made = record.nodes.get(node)
    return made.modules[-1].path if made is not None and made.modules else ""


def wholesale(module: Any, x: Any) -> Any:
    """Everything about a module, an input and the generators that a call may change, as plain values."""
    numpy_state: Any = np.random.get_state()  # noqa: NPY002 - as above
    return (
        {name: tensor.tolist() for name, tensor in module.state_dict().items()},
        {
            path: {key: repr(value) for key, value in vars(part).items() if not key.startswith("_forward")}
            for path, part in module.named_modules()
        },
        [(p.requires_grad, None if p.grad is None else p.grad.tolist()) for p in module.parameters()],
        [(list(part._forward_hooks), list(part._forward_pre_hooks)) for part in module.modules()],
        x.tolist(),
        random.getstate(),
        torch.get_rng_state().tolist(),
        (numpy_state[0], numpy_state[1].tolist(), *numpy_state[2:]),
        torch.is_grad_enabled(),
        len(nn.modules.module._global_forward_hooks),
        torch.overrides.has_torch_function,
    )


@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
def test_everything_is_as_before(training: bool) -> None:
    module, x = net()
    module.train(training)
    module(x).sum().backward()
    before = wholesale(module, x)
    gc.run(module, x)
    assert wholesale(module, x) == before


def test_hooks_of_the_user_run_as_in_a_plain_call() -> None:
    module, x = mlp()
    seen: list[float] = []
    module[0].register_forward_hook(lambda _part, _args, out: seen.append(float(out.detach().sum())))
    module[2].register_forward_hook(lambda _part, _args, out: out * 2)
    run = gc.run(module, x)
    assert len(seen) == 1
    assert torch.equal(run.result, module(x))


def test_a_step_of_training_is_run_and_taken_back() -> None:
    module, x = net()
    optimizer = torch.optim.Adam(module.parameters())
    module(x).sum().backward()
    optimizer.step()

    def step() -> Any:
        optimizer.zero_grad()
        loss = module(x).square().sum()
        loss.backward()
        optimizer.step()
        return module(x)

    state, before = copy.deepcopy(optimizer.state_dict()), wholesale(module, x)
    watched = gc.run(step).result
    assert wholesale(module, x) == before
    assert repr(optimizer.state_dict()) == repr(state)
    assert torch.equal(watched, step())


def test_an_argument_that_is_changed_in_place_is_set_back_and_the_result_is_not() -> None:
    x = torch.ones(3)
    run = gc.run(lambda x: x.add_(1), x)
    assert x.tolist() == [1, 1, 1]
    assert run.result.tolist() == [2, 2, 2]


def first_bad(function: Any, *args: Any) -> Any:
    run = gc.run(function, *args)
    assert run.error is None, run.error
    values = run.trace.values
    assert values is not None
    bad = values.first_bad
    assert bad is not None
    node = run.graph.find(bad.tensor.node)
    assert node is not None
    return node, bad


def log_of_zero(x: Any) -> Any:
    return (x - x).log() + 1  # BAD log


def zero_by_zero(x: Any) -> Any:
    return (x - x) / (x - x)  # BAD


def root_of_negative(x: Any) -> Any:
    y = -x.abs() - 1
    return y.sqrt().sum()  # BAD sqrt


def overflow_of_exp(x: Any) -> Any:
    return (x.abs() * 1000 + 1000).exp() * 0  # BAD exp


def overflow_of_half(x: Any) -> Any:
    scores = x.half().abs() + 1
    scores = scores * 60000 * 2  # BAD
    return scores.softmax(-1)


def no_deviation(x: Any) -> Any:
    flat = torch.ones_like(x)
    return (flat - flat.mean()) / flat.std()  # BAD


def masked_row(x: Any) -> Any:
    scores = x @ x.T
    scores = scores.masked_fill(torch.ones_like(scores).bool(), float("-inf"))
    return scores.softmax(-1)  # BAD softmax


def infinity_less_infinity(x: Any) -> Any:
    scale = x.sum()
    scores = torch.full((2, 2), 3e38) * 10  # BAD
    return (scores - scores) * scale


def power_of_negative(x: Any) -> Any:
    base = -x.abs() - 1
    return base**0.5  # BAD


def overflow_of_a_weight(x: Any) -> Any:
    weight = nn.Parameter(torch.ones(3))
    loss = (x[:3] * 1e37 * weight).sum()
    loss.backward()
    with torch.no_grad():
        weight -= 1e3 * weight.grad  # BAD
    return weight * 2


def assignment(x: Any) -> Any:
    y = x * 1
    y[0] = float("nan")  # BAD setitem
    return y + 1


FAULTS = [
    log_of_zero, zero_by_zero, root_of_negative, overflow_of_exp, overflow_of_half, no_deviation, masked_row, infinity_less_infinity,
    power_of_negative, overflow_of_a_weight, assignment,
]  # fmt: skip


@pytest.mark.parametrize("function", FAULTS)
def test_the_first_bad_value_is_named_with_its_node_and_line(function: Any) -> None:
    x = torch.linspace(1.0, 2.0, 4).reshape(2, 2) if function is masked_row else torch.linspace(1.0, 2.0, 4)
    node, bad = first_bad(function, x)
    assert node.source is not None
    text = node.source.text
    assert "# BAD" in text, (node, text)
    wanted = text.partition("# BAD")[2].strip()
    assert wanted in node.op, (node.op, wanted)
    assert bad.cause.startswith(f"produced at test_torch_runs.py, line {node.source.line} ({text})")
    if function is masked_row:
        mask = inspect.getsourcelines(masked_row)[1] + 2
        assert f"not finite: the infinities of 'masked_fill' (test_torch_runs.py, line {mask})" in bad.cause
        return
    assert bad.cause.endswith("finite") or not bad.inputs
    assert all(one.is_finite for one in bad.inputs), "what produced it had finite inputs"


def test_a_bad_input_is_said_to_come_in() -> None:
    module, x = mlp()
    x[0, 0] = float("nan")
    node, bad = first_bad(module, x)
    assert (node.name, bad.inputs, bad.cause) == ("input", (), "it came into the run with this input")


def test_a_bad_parameter_is_said_to_come_in() -> None:
    module, x = mlp()
    with torch.no_grad():
        module[2].bias[1] = float("inf")
    node, bad = first_bad(module, x)
    assert bad.cause == "it came into the run with this parameter"
    assert node.op == "torch.Parameter"
    assert "2/bias" in node.name or node.name.endswith("bias")


def test_a_module_that_is_called_twice_has_the_values_of_each_call() -> None:
    part = nn.Linear(4, 4)
    x = torch.randn(2, 4)
    run = gc.run(lambda x: part(part(x)), x)
    values = run.trace.values
    assert values is not None
    with torch.no_grad():
        once, twice = part(x), part(part(x))
    made = [one for one in values if "linear" in one.node]
    assert [(one.min, one.max) for one in made] == [
        (float(once.min()), float(once.max())),
        (float(twice.min()), float(twice.max())),
    ]


def test_attention_has_its_values() -> None:
    attention, x = nn.MultiheadAttention(8, 2, batch_first=True), torch.randn(2, 3, 8)
    run = gc.run(attention, x, x, x)
    output, weights = (part.detach() for part in attention(x, x, x))
    assert torch.equal(run.result[0], output)
    assert torch.equal(run.result[1], weights)
    values = run.trace.values
    assert values is not None
    assert any(one.shape == (2, 3, 8) and one.max == float(output.max()) for one in values)
    assert any("softmax" in node.op for node in run.graph.nodes), "the function that computes attention is open"


def test_each_operation_has_one_record_though_functions_call_others() -> None:
    module, x = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(inplace=True), nn.MaxPool2d(2)).eval(), torch.randn(1, 3, 8, 8)
    run = gc.run(module, x)
    values = run.trace.values
    assert values is not None
    record = foreign_of(run.graph)
    assert record is not None
    operations = [name for name, node in record.nodes.items() if node.kind == "op"]
    assert len(operations) == 4
    assert {name: run.trace.node_runs().get(name) for name in operations} == dict.fromkeys(operations, 1)
    assert all(len(values.of_node(name)) == 1 for name in operations)
    assert {one.node for one in values} <= {node.name for node in run.graph.nodes}


def test_a_failing_operation_is_marked_and_the_values_before_it_are_kept() -> None:
    module, x = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(9, 2)), torch.randn(4, 8)
    run = gc.run(module, x)
    with pytest.raises(RuntimeError, match="cannot be multiplied"):
        _ = run.result
    (failed,) = [node for node in run.graph.nodes if node.error is not None]
    assert module_of(run, failed.name) == "2"
    values = run.trace.values
    assert values is not None
    relu = next(node for node in run.graph.nodes if node.op.endswith("relu"))
    assert values[relu.outputs[0]].min == 0.0
    assert values.of_node(failed.name) == ()


def test_a_call_that_fails_before_any_operation_is_an_error() -> None:
    with pytest.raises(GraphError, match="failed before any operation: TypeError"):
        gc.run(Net(), torch.ones(4, 8), 3)


def test_an_interruption_ends_the_run_with_everything_set_back() -> None:
    module, x = net()

    def interrupted(*_: Any) -> None:
        signal.raise_signal(signal.SIGINT)

    module.last.register_forward_hook(interrupted)
    before = wholesale(module, x)
    with pytest.raises(KeyboardInterrupt):
        gc.run(module, x)
    assert wholesale(module, x) == before
    assert torch.overrides._get_current_function_mode() is None


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float8_e4m3fn", "float8_e5m2", "complex64", "int8", "bool"])
def test_types_that_numpy_lacks_have_values(dtype: str) -> None:
    run = gc.run(lambda x: x.to(getattr(torch, dtype)), torch.tensor([0.0, 1.0]))
    values = run.trace.values
    assert values is not None
    last = list(values)[-1]
    assert last.mean == 0.5
    assert run.result.dtype == getattr(torch, dtype)


def test_empty_scalar_sparse_and_listed_outputs_do_not_stop_a_run() -> None:
    def function(x: Any) -> Any:
        parts = x.chunk(2)
        return parts[0].sum(), x[:0], x.to_sparse(), x.conj(), list(parts)

    run = gc.run(function, torch.ones(4, 3))
    assert run.error is None
    values = run.trace.values
    assert values is not None
    chunks = [one for one in values if "chunk" in one.node]
    assert [one.output for one in chunks] == [0, 1]


def test_a_branch_on_data_is_taken_as_the_data_say() -> None:
    def branching(x: Any) -> Any:
        y = x * 2
        return y.exp() if y.sum() > 0 else -y

    run = gc.run(branching, torch.ones(3))
    assert any(node.op.endswith("exp") for node in run.graph.nodes)
    assert not any(node.op.endswith("neg") for node in run.graph.nodes)


def test_lenses_steps_and_pages_hold_the_run() -> None:
    module, x = mlp()
    run = gc.run(module, x)
    lens, times, steps = recorded_values(run.graph), recorded_times(run.graph), steps_of(run.graph)
    assert lens is not None
    assert lens.values.health.summary.startswith("All values are finite")
    assert any(page.bins for page in lens.values.details.values())
    assert times is not None
    assert sum(times.times.runs) == 4
    assert steps is not None
    assert run.trace.peak_bytes >= 5 * 16 * 4
    values = run.trace.values
    assert values is not None
    packed = re.search(r'"graph_gzip_base64": ?"([^"]+)"', to_html(run.graph))
    assert packed is not None
    page = gzip.decompress(base64.b64decode(packed[1])).decode()
    softmax = next(one for one in values if "softmax" in one.node)
    assert softmax.words in page
    assert '"bins":[' in page


@pytest.mark.filterwarnings("ignore:Lazy modules")
def test_lazy_modules_are_as_before_their_first_call() -> None:
    module, x = nn.Sequential(nn.LazyLinear(4), nn.LazyBatchNorm1d()), torch.randn(3, 5)
    torch.manual_seed(0)
    watched = gc.run(module, x).result
    assert type(module[0]) is nn.LazyLinear
    assert type(module[0].weight) is nn.UninitializedParameter
    assert type(module[1].running_mean) is nn.UninitializedBuffer
    torch.manual_seed(0)
    assert torch.equal(watched, module(x))


@pytest.mark.filterwarnings("ignore:.*torch.jit")
def test_a_scripted_part_is_one_operation_with_its_value() -> None:
    module, x = nn.Sequential(torch.jit.script(nn.Linear(5, 4)), nn.ReLU()), torch.randn(3, 5)
    run = gc.run(module, x)
    assert torch.equal(run.result, module(x))
    (part,) = [node for node in run.graph.nodes if node.op == "torch.nn.Linear"]
    assert [tensor.node.name for tensor in part.inputs] == ["input"]
    values = run.trace.values
    assert values is not None
    assert values[part.outputs[0]].shape == (3, 4)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_nested_tensors_do_not_stop_a_run() -> None:
    run = gc.run(lambda a: a * 2, torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]))
    assert run.error is None
    assert run.result.is_nested


@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
def test_a_language_model_gives_the_same_and_is_as_before(training: bool) -> None:
    transformers: Any = pytest.importorskip("transformers")
    sizes = {"n_layer": 2, "n_embd": 16, "n_head": 2, "vocab_size": 50, "n_positions": 16, "bos_token_id": 1, "eos_token_id": 2}
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(**sizes)).train(training)
    tokens = torch.randint(0, 50, (2, 7))
    state = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    run = gc.run(model, input_ids=tokens)
    assert torch.equal(run.result.logits, model(input_ids=tokens).logits)
    assert all(torch.equal(state[name], tensor) for name, tensor in model.state_dict().items())


def test_a_causal_mask_is_not_blamed_for_nans_that_come_from_elsewhere() -> None:
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    mask, x = nn.Transformer.generate_square_subsequent_mask(4), torch.randn(2, 4, 8)

    def function(x: Any) -> Any:
        y = layer(x, src_mask=mask)
        return (-y.abs()).log()  # BAD log

    node, bad = first_bad(function, x)
    assert node.op == "torch.log"
    assert "# BAD log" in bad.cause


def test_a_mask_that_comes_in_is_named_beside_the_softmax_that_makes_nan_of_it() -> None:
    mask = torch.zeros(2, 2)
    mask[1] = float("-inf")

    def function(x: Any, mask: Any) -> Any:
        scores = x @ x.T + mask
        return torch.softmax(scores, -1) @ x

    node, bad = first_bad(function, torch.ones(2, 2), mask)
    assert node.op == "torch.softmax"
    assert "the infinities of 'mask'" in bad.cause
