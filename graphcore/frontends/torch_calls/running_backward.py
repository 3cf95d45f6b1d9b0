"""Calls that are made for real with their backward pass, on copies, and recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphcore.frontends.frontend import MadeCall
from graphcore.frontends.torch_calls.autograd import GradientRecorder
from graphcore.frontends.torch_calls.backward import remove_all
from graphcore.frontends.torch_calls.copying import Copies, Twins
from graphcore.frontends.torch_calls.recording import torch
from graphcore.frontends.torch_calls.special import unwrapped
from graphcore.frontends.torch_calls.surroundings import untouched
from graphcore.frontends.torch_calls.tracing import add_gradients, graph_of, mark_failure, record
from graphcore.frontends.torch_calls.watched_backward import give_gradients
from graphcore.frontends.torch_calls.watched_backward import watch as watch_pass
from graphcore.support.random_states import kept_random_states
from graphcore.support.watched import long_work

if TYPE_CHECKING:
    from graphcore.frontends.frontend import Call
    from graphcore.runtime.runners import RunRecord


def make_with_gradients(call: Call, watch: RunRecord) -> MadeCall:
    """Make a call and its backward pass once, on copies, and record the values and gradients.

    Raises:
        InvalidArgumentError: the call fails before any operation.
    """
    inner = unwrapped(call)
    with untouched(inner.function), kept_random_states():
        made = record(inner, Copies(torch, Twins()), GradientRecorder)
        source = graph_of(inner, made)
        _give_values(made.recorder, watch)
        if made.error is None:
            backward = add_gradients(source, made)
            handles = watch_pass(backward, watch)
            give_gradients(backward, mark_failure(source, backward, has_passes=made.recorder.has_passes), watch)
            remove_all(handles)
    long_work.publish(made.recorder.work, 1, 1, "")
    return MadeCall(source, made.result, made.error)


def _give_values(recorder: GradientRecorder, watch: RunRecord) -> None:
    """Record the values of the calls, of a tensor that was changed in place after the last change alone."""
    for tensor in recorder.given():
        watch.give(recorder.ref(tensor)[0], [tensor])
    for name, facts in recorder.facts.items():
        watch.give(name, [tensor if recorder.ref(tensor)[0] == name else None for tensor in facts.outputs])
