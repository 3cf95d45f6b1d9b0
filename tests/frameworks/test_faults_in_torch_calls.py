"""Programs of PyTorch with one fault each: the picture or a remark names it, with its line.

Faults of values (NaN, Inf) and gradients that are None are found by runs and by `gc.explain_gradient`; their tests are elsewhere.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")
nn: Any = torch.nn
F: Any = nn.functional

from graphcore import from_source  # noqa: E402 - after the check for torch
from graphcore.frontends.frontend import Call  # noqa: E402 - as above
from graphcore.remarks import collect_remarks, collected_remarks  # noqa: E402 - as above

pytestmark = [pytest.mark.frameworks, pytest.mark.filterwarnings("ignore")]
MARK = "# fault"
IMAGES = torch.ones(4, 3, 8, 8)
ROWS = torch.ones(4, 6)
IDS = torch.ones(4, 5, dtype=torch.int64)
LABELS = torch.ones(4, dtype=torch.int64)


def wrong_width(x: Any = ROWS) -> Any:
    x = nn.Linear(6, 8)(x).relu()
    return nn.Linear(9, 2)(x)  # fault


def forgotten_flatten(x: Any = IMAGES) -> Any:
    x = nn.Conv2d(3, 5, 3)(x).relu()
    return nn.Linear(5 * 6 * 6, 10)(x)  # fault


def wrong_flatten(x: Any = IMAGES) -> Any:
    x = nn.MaxPool2d(2)(nn.Conv2d(3, 5, 3)(x))
    return nn.Linear(5 * 6 * 6, 10)(x.flatten(1))  # fault


def channels_last(x: Any = IMAGES) -> Any:
    return nn.Conv2d(3, 5, 3)(x.permute(0, 2, 3, 1))  # fault


def lost_batch(x: Any = IMAGES) -> Any:
    return nn.Linear(3 * 8 * 8, 10)(x.view(-1))  # fault


def wrong_view(x: Any = IMAGES) -> Any:
    return x.view(4, 3, 60)  # fault


def untransposed(q: Any = ROWS, k: Any = ROWS) -> Any:
    return (q @ k).softmax(-1)  # fault


def wrong_cat(x: Any = ROWS, y: Any = ROWS) -> Any:
    both = torch.cat([x, y])
    return nn.Linear(12, 2)(both)  # fault


def uneven_cat(x: Any = ROWS, y: Any = torch.ones(5, 6)) -> Any:  # noqa: B008 - a tensor that is not changed
    return torch.cat([x, y], 1)  # fault


def uneven_sum(x: Any = ROWS, y: Any = torch.ones(4)) -> Any:  # noqa: B008 - as above
    return x + y  # fault


def wrong_norm(x: Any = ROWS) -> Any:
    return nn.LayerNorm(4)(x)  # fault


def wrong_batch_norm(x: Any = IMAGES) -> Any:
    return nn.BatchNorm2d(8)(x)  # fault


def float_indices(x: Any = ROWS) -> Any:
    return nn.Embedding(10, 4)(x)  # fault


def float_labels(x: Any = ROWS) -> Any:
    return F.cross_entropy(x, LABELS.float())  # fault


def labels_as_column(x: Any = ROWS) -> Any:
    return F.cross_entropy(x, LABELS[:, None])  # fault


def integer_input(x: Any = IDS) -> Any:
    return nn.Linear(5, 2)(x)  # fault


def two_devices(x: Any = ROWS) -> Any:
    weight = torch.ones(6, 2, device="meta")
    return x @ weight  # fault


def wrong_recurrence(x: Any = torch.ones(4, 7, 6)) -> Any:  # noqa: B008 - as above
    return nn.LSTM(7, 8)(x)  # fault


def changed_leaf(x: Any = torch.ones(3, requires_grad=True)) -> Any:  # noqa: B008 - as above
    x += 1  # fault
    return x


def changed_in_place(x: Any = torch.ones(3, requires_grad=True)) -> Any:  # noqa: B008 - as above
    y = torch.exp(x)
    y += 1  # fault
    return y.sum()


def activated_in_place(x: Any = torch.ones(3, requires_grad=True)) -> Any:  # noqa: B008 - as above
    y = torch.sigmoid(x)
    return y + nn.ReLU(inplace=True)(y)  # fault


def accidental_broadcast(x: Any = ROWS, y: Any = torch.ones(4)) -> Any:  # noqa: B008 - as above
    z = nn.Linear(6, 1)(x)
    return ((z - y) ** 2).mean()  # fault


def probabilities_as_logits(x: Any = ROWS) -> Any:
    return F.cross_entropy(x.softmax(-1), LABELS)  # fault


def softmax_over_examples(x: Any = ROWS) -> Any:
    return F.softmax(x, 0)  # fault


def forgotten_eval(x: Any = ROWS) -> Any:
    model = nn.Sequential(nn.Linear(6, 4), nn.Dropout())
    with torch.no_grad():
        return model(x)  # fault


@torch.inference_mode()  # type: ignore[untyped-decorator]  # torch has no types here
def decorated_without_eval(x: Any = ROWS) -> Any:
    return nn.Sequential(nn.Linear(6, 4), nn.Dropout())(x)  # fault


def forgotten_return(x: Any = ROWS) -> Any:
    def block(value: Any) -> None:
        value.relu()

    return block(x) + 1  # type: ignore[func-returns-value, operator]  # fault


FAULTS: list[tuple[Callable[..., Any], str]] = [
    (wrong_width, "axis 1 of its input (8) and axis 1 of its weight (9) to be equal"),
    (forgotten_flatten, "axis 3 of its input (6) and axis 1 of its weight (180) to be equal"),
    (wrong_flatten, "45 is computed by flatten"),
    (channels_last, "axis 1 of its input (8) and axis 1 of its weight (3) to be equal"),
    (lost_batch, "768 is computed by view"),
    (wrong_view, "[4, 3, 8, 8] has 768, and [4, 3, 60] has 720"),
    (untransposed, "axis 1 of its first input (6) and axis 0 of its second input (4) to be equal"),
    (wrong_cat, "6 is axis 1 of x"),
    (uneven_cat, "cat along axis 1 requires axis 0 of the first tensor (4) and axis 0 of tensor 2 (5) to be equal"),
    (uneven_sum, "axis 1 of its first input (6) and axis 0 of its second input (4) to be equal, or one of them to be 1"),
    (wrong_norm, "axis 1 of its input (6)"),
    (wrong_batch_norm, "axis 1 of its input (3)"),
    (float_indices, "requires whole numbers as its input: input is float32"),
    (float_labels, "requires whole numbers as its target: target is float32"),
    (labels_as_column, "requires a target with one axis less than the input"),
    (integer_input, "requires tensors of one type"),
    (two_devices, "requires its tensors on one device"),
    (wrong_recurrence, "input.size(-1) must be equal to input_size"),
    (changed_leaf, "leaf"),
    (changed_in_place, "changes in place a tensor that the gradient of exp"),
    (activated_in_place, "changes in place a tensor that the gradient of sigmoid"),
    (accidental_broadcast, "make a matrix (4, 4) in sub"),
    (probabilities_as_logits, "applies a softmax itself"),
    (softmax_over_examples, "is along axis 0, which is axis 0 of x"),
    (forgotten_eval, "dropout works as in training under torch.no_grad()"),
    (decorated_without_eval, "dropout works as in training under torch.no_grad()"),
    (forgotten_return, "NoneType"),
]


def line_of(function: Any) -> int:
    lines, first = inspect.getsourcelines(function)
    return first + next(number for number, line in enumerate(lines) if MARK in line)


@pytest.mark.parametrize(("function", "text"), FAULTS, ids=[function.__name__ for function, _ in FAULTS])
def test_a_fault_is_named_with_its_line(function: Callable[..., Any], text: str) -> None:
    given = {name: parameter.default for name, parameter in inspect.signature(function).parameters.items()}
    collect_remarks()
    graph = from_source(Call(function, (), given))
    remarks = collected_remarks()
    wrong = [node for node in graph.nodes if node.error is not None]
    if wrong:
        (node,) = wrong
        assert node.error is not None
        assert text in node.error.message
        assert node.source is not None
        assert node.source.line == line_of(function)
        return
    (remark,) = [said for said in remarks if text in said]
    assert f", line {line_of(function)}" in remark
