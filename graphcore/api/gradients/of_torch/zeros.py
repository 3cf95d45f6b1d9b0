"""The calls of PyTorch at which a gradient becomes zero, NaN or infinite for the values of a run."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final, NamedTuple

from graphcore.api.gradients.of_torch.bad import is_finite, not_finite
from graphcore.api.gradients.of_torch.forward import Forward
from graphcore.api.gradients.of_torch.steps import Steps
from graphcore.frontends.foreign import GradientEnd
from graphcore.frontends.torch_calls.autograd import CallFacts, is_end
from graphcore.frontends.torch_calls.backward import Backward, Failure, remove_all
from graphcore.frontends.torch_calls.ends import words_on_custom

_FLAT: Final = "is flat almost everywhere: its derivative is zero"
_SATURATED: Final = "is saturated: its slope is zero in floating point at these inputs"
_OTHERS: Final = "takes other elements: those that lead on have no part in its result"
_UNIFORM: Final = "gets one gradient for all elements along its axis: they always sum to 1, so that no input changes the loss"
_HOOKED: Final = "gets zeros: a hook on its result (register_hook) has changed the gradient"
_REASONS: Final[dict[str, str]] = {
    **dict.fromkeys(("round", "sign", "floor", "ceil", "trunc", "fix", "heaviside", "sgn", "floor_divide"), _FLAT),
    **dict.fromkeys(
        ("relu", "relu_", "relu6", "threshold"), "passes nothing on: where a gradient arrives, no input is above 0 (a dead ReLU)"
    ),
    **dict.fromkeys(
        ("clamp", "clamp_", "clip", "hardtanh", "hardsigmoid", "clamp_min", "clamp_max"),
        "passes nothing on: where a gradient arrives, all inputs are outside of its bounds",
    ),
    **dict.fromkeys(("sigmoid", "tanh", "softmax", "log_softmax", "erf", "sigmoid_", "tanh_", "logsigmoid"), _SATURATED),
    **dict.fromkeys(
        ("mul", "mul_", "__mul__", "prod", "matmul", "linear", "bmm", "mm", "einsum", "div"), "multiplies the gradient by zeros"
    ),
    **dict.fromkeys(("where", "masked_fill", "masked_fill_"), "chooses other values everywhere: its condition leaves these out"),
    **dict.fromkeys(
        ("__getitem__", "getitem", "select", "index_select", "gather", "max", "min", "amax", "amin", "narrow", "split", "chunk"), _OTHERS
    ),
    **dict.fromkeys(("dropout", "dropout1d", "dropout2d", "alpha_dropout"), "drops all elements"),
}


class _Flow(NamedTuple):
    """Gradients at a backward function: True for one with an element that is not zero."""

    is_arrived: bool = False
    passed: Sequence[bool] = ()
    is_uniform: bool = False


def zero_cuts(forward: Forward, backward: Backward, steps: Steps, twin: Any) -> tuple[Any, list[GradientEnd], Failure | None]:
    """Run the backward pass.

    Returns:
        The gradient of the leaf, None if nothing arrives; the calls at which it becomes zero, if it is zero, or the one at which it becomes
        NaN or infinite; the error of the pass.
    """
    flows: dict[Any, _Flow] = {}
    bad: list[tuple[Any, Any, Any]] = []
    on_way = set(steps.on_way)
    handles = [function.register_hook(_watcher(function, flows, on_way, bad)) for function in steps.on_way if not is_end(function)]
    gradients, failed = backward.run()
    if failed is not None:
        return None, [], failed
    values = dict(zip([id(leaf) for leaf in backward.leaves()], gradients, strict=True)).get(id(twin))
    remove_all(handles)
    if values is not None and not is_finite(values) and bad:
        function, passed, arrived = bad[0]
        name = backward.owner(function)
        return values, [not_finite(forward, name, passed, arrived, tuple(forward.path_to_result((name, 0))))], None
    if values is None or bool(values.any()):
        return values, [], None
    ends: dict[str, str] = {}
    for function in steps.on_way:
        flow = flows.get(function, _Flow())
        following = {
            taker for is_left, (taker, _) in zip(flow.passed, function.next_functions, strict=False) if is_left and taker in on_way
        }
        if flow.is_arrived and not following:
            ends.setdefault(backward.owner(function), _UNIFORM if flow.is_uniform else "")
        for taker in following:
            if not is_end(taker) and not flows.get(taker, _Flow()).is_arrived:
                ends.setdefault(backward.owner(taker), _HOOKED)
    return (
        values,
        [GradientEnd(*_reason(forward.facts(name), name, why), _way(forward, backward, steps, name)) for name, why in ends.items()],
        None,
    )


def _watcher(function: Any, flows: dict[Any, _Flow], on_way: Collection[Any], bad: list[tuple[Any, Any, Any]]) -> Any:
    """A hook that notes where zeros are passed on, and the first bad gradient made of finite ones."""

    def watch(passed: Any, arrived: Any) -> None:
        flows[function] = _Flow(any(map(_is_nonzero, arrived)), [_is_nonzero(one) for one in passed], _is_uniform(function, arrived))
        if bad or not all(map(is_finite, arrived)):
            return
        for gradient, (following, _) in zip(passed, function.next_functions, strict=False):
            if following in on_way and not is_finite(gradient):
                bad.append((function, gradient, arrived))
                return

    return watch


def _is_uniform(function: Any, arrived: Any) -> bool:
    """True for a softmax that gets one gradient for all elements along its axis."""
    if type(function).__name__ != "SoftmaxBackward0":
        return False
    axis = function._saved_dim
    axis -= 2**64 if axis >= 2**63 else 0
    return bool((arrived[0] == arrived[0].narrow(axis, 0, 1)).all())


def _is_nonzero(gradient: Any) -> bool:
    return gradient is not None and bool(gradient.any())


def _reason(facts: CallFacts | None, name: str, why: str) -> tuple[str, str, str]:
    """The kind of an end, its node and the reason."""
    if why:
        return "zero", name, why
    if facts is not None and facts.custom is not None:
        return "custom gradient", name, words_on_custom(facts.custom, "returns None" if facts.none_for else "returns zeros")
    function = "" if facts is None else facts.function
    return "zero", name, _REASONS.get(function, "passes no gradient on: its derivative is zero at these values")


def _way(forward: Forward, backward: Backward, steps: Steps, name: str) -> tuple[str, ...]:
    start = (backward.owner(steps.on_way[-1]), 0)
    return *forward.path(start, name), *forward.path_to_result((name, 0))[1:]
