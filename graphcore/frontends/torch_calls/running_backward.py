"""Calls that are made for real with their backward pass, on copies, and recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from graphcore.frontends.frontend import MadeCall
from graphcore.frontends.torch_calls.autograd import GradientRecorder, is_end
from graphcore.frontends.torch_calls.copying import Copies, Twins
from graphcore.frontends.torch_calls.keeping import kept_settings
from graphcore.frontends.torch_calls.recording import torch
from graphcore.frontends.torch_calls.special import unwrapped
from graphcore.frontends.torch_calls.surroundings import untouched
from graphcore.frontends.torch_calls.tracing import add_gradients, graph_of, mark_failure, record
from graphcore.support.watched import long_work

if TYPE_CHECKING:
    from graphcore.frontends.frontend import Call
    from graphcore.frontends.torch_calls.backward import Backward
    from graphcore.runtime.runners import RunRecord


def make_with_gradients(call: Call, watch: RunRecord) -> MadeCall:
    """Make a call and its backward pass once, on copies, and record the values and gradients.

    Raises:
        InvalidArgumentError: the call fails before any operation.
    """
    inner = unwrapped(call)
    with untouched(), kept_settings():
        made = record(inner, Copies(torch, Twins()), GradientRecorder)
        source = graph_of(inner, made)
        _give_values(made.recorder, watch)
        if made.error is None:
            backward = add_gradients(source, made)
            _watch(backward, watch)
            _give_gradients(backward, mark_failure(source, backward), watch)
    long_work.publish(made.recorder.work, 1, 1, "")
    return MadeCall(source, made.result, made.error)


def _give_values(recorder: GradientRecorder, watch: RunRecord) -> None:
    """Record the values of the calls, of a tensor that was changed in place after the last change alone."""
    for tensor in recorder.given():
        watch.give(recorder.ref(tensor)[0], [tensor])
    for name, facts in recorder.facts.items():
        watch.give(name, [tensor if recorder.ref(tensor)[0] == name else None for tensor in facts.outputs])


def _watch(backward: Backward, watch: RunRecord) -> None:
    """Record the functions of a backward pass as they run."""
    for tensor, name in backward.seeds:
        watch.give(name, [torch.ones_like(tensor)])
    for function, name in backward.node_of.items():
        if not is_end(function):
            function.register_prehook(lambda arrived, function=function, name=name: _begin(backward, function, name, arrived, watch))
            function.register_hook(lambda passed, _, name=name: watch.end(name, passed))


def _begin(backward: Backward, function: Any, name: str, arrived: Any, watch: RunRecord) -> None:
    for number, gradient in enumerate(arrived):
        if (function, number) in backward.parts:
            watch.give(backward.arriving[function, number][0], [gradient])
    watch.begin(name)


def _give_gradients(backward: Backward, gradients: Any, watch: RunRecord) -> None:
    """Record the gradients that arrive at leaf tensors."""
    ends = [function for function in backward.order if is_end(function)]
    for function, gradient in zip(ends, gradients, strict=False):
        if (function, 0) in backward.parts:
            watch.give(backward.arriving[function, 0][0], [gradient])
        watch.give(backward.node_of[function], [gradient])
