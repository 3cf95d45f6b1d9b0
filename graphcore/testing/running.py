"""Checks that run a graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final

import msgspec
import numpy as np

from graphcore.api.interchange import import_graph_def
from graphcore.brief import brief
from graphcore.errors import InvalidArgumentError
from graphcore.graph import Graph, Node, Tensor
from graphcore.runtime import Session
from graphcore.testing.answering import answered
from graphcore.testing.failure import CheckFailed
from graphcore.testing.parts import element, tensor, where

_INITIALIZED: Final = ("variables", "local_variables")
_MOST_LOSSES: Final = 6
_MOST_ELEMENTS: Final = 32
_INDENT: Final = " " * len("  required ")

Feeds = Mapping[Any, Any]


def runs_to(
    fetches: Any, expected: Any, feed_dict: Feeds | None = None, *, rtol: float = 1e-5, atol: float = 1e-6, session: Session | None = None
) -> None:
    """Check the values of tensors in a run.

    Args:
        fetches: a tensor, a variable or the name of a tensor, or a list of these.
        expected: the required array or number, or a list of one for each fetch.
        feed_dict: the values to feed.
        rtol, atol: the allowed difference of an element, relative to the required one and absolute.
        session: the session to run in; by default a new one, in which the variables have their initial values.

    Raises:
        CheckFailed: an element, or the shape of a value, is another one.
        GraphError: the run failed.
    """
    answered(fetches, expected, feed_dict, session)
    several = isinstance(fetches, list | tuple)
    if several and np.ndim(expected) == 0:
        raise CheckFailed(f"Required one tensor, got a list of {len(fetches)}: take the tensor out of the list, as in answer[0]")
    tensors = [tensor(fetch) for fetch in (fetches if several else [fetches])]
    required = list(expected) if several else [expected]
    if len(tensors) != len(required):
        raise InvalidArgumentError(f"Required an expected value for each of {len(tensors)} fetches, got {len(required)}")
    if session is None:
        with Session(tensors[0].graph if tensors else None) as own:
            own.run(_initializers(own.graph))
            values = own.run(tensors, feed_dict)
    else:
        values = session.run(tensors, feed_dict)
    for fetched, value, wanted in zip(tensors, values, required, strict=True):
        _compare(fetched, np.asarray(value), np.asarray(wanted), rtol, atol)


def trains(
    loss: Any,
    train_op: Any,
    feeds: Feeds | Sequence[Feeds] | Callable[[int], Feeds] | None = None,
    *,
    below: float,
    steps: int,
    seed: int = 0,
) -> None:
    """Check that training brings a loss below a bound, always with the same random numbers.

    A copy of the graph is trained in a new session, so that neither the graph nor the variables of other sessions change.

    Args:
        loss: the tensor of the loss, a scalar, or its name.
        train_op: the node or tensor that takes a step, or its name.
        feeds: the values to feed; a list of them for the steps, repeated as often as necessary; or a function of the number of the step, from 0.
        below: the bound; a step whose loss is smaller passes, and ends the training.
        steps: the most steps.
        seed: the seed of random ops that have none of their own.

    Raises:
        CheckFailed: the loss did not fall below the bound, or was NaN or infinite.
        GraphError: a step failed.
    """
    answered(loss, train_op, feeds, below)
    measured, step = tensor(loss), element(train_op)
    graph = measured.graph
    graph.owned(step)
    copy = _seeded(graph, seed)
    with Session(copy) as session:
        session.run([copy.get_operation_by_name(node.name) for node in _initializers(graph)])
        losses = _train(session, measured, step.name, islice(_each_step(feeds), steps), below)
    if losses and losses[-1] < below:
        return
    raise CheckFailed(
        f"Required a loss '{measured.name}'{where(measured.node)} below {below} within {steps} steps, the least was {min(losses, default=np.nan):.4g}"
        f"\n{_course(losses)}"
    )


def _train(session: Session, loss: Tensor, step: str, feeds: Iterator[Feeds | None], below: float) -> list[float]:
    """The losses of steps, up to one below the bound."""
    losses: list[float] = []
    for number, feed_dict in enumerate(feeds):
        named = {_name(key): value for key, value in (feed_dict or {}).items()}
        value = np.asarray(session.run([loss.name, step], named)[0])
        if value.size != 1:
            raise InvalidArgumentError.at(loss.node, f"Required a scalar loss, got '{loss.name}' of shape {list(value.shape)}")
        losses.append(float(value.item()))
        if not np.isfinite(losses[-1]):
            raise CheckFailed(f"The loss '{loss.name}'{where(loss.node)} was {losses[-1]} in step {number + 1}\n{_course(losses)}")
        if losses[-1] < below:
            break
    return losses


def _initializers(graph: Graph) -> list[Node]:
    variables = [variable for key in _INITIALIZED for variable in graph.get_collection(key)]
    return list({variable.initializer.name: variable.initializer for variable in variables}.values())


def _compare(fetch: Tensor, value: np.ndarray[Any, Any], wanted: np.ndarray[Any, Any], rtol: float, atol: float) -> None:
    head = f"'{fetch.name}'{where(fetch.node)}"
    if value.shape != wanted.shape:
        raise CheckFailed(f"Required {head} to run to an array of shape {list(wanted.shape)}, got {list(value.shape)}: {brief(value)}")
    if value.dtype.kind in "biufc" and wanted.dtype.kind in "biufc":
        equal = np.isclose(value, wanted, rtol, atol, equal_nan=True)
    else:
        equal = np.asarray(value == wanted)
    if equal.all():
        return
    index = tuple([int(axis[0]) for axis in np.nonzero(~equal)]) if value.shape else ()
    place = f" at {list(index)}" if index else ""
    count = int(np.sum(~equal))
    lines = [f"Required {head} to run to {brief(wanted[index].item())}{place}, got {brief(value[index].item())}"]
    if value.size > 1:
        lines += [f"{count:,} of {value.size:,} elements differ"]
    if 1 < value.size <= _MOST_ELEMENTS:
        lines += [f"  required {_shown(wanted)}", f"  got      {_shown(value)}"]
    raise CheckFailed("\n".join(lines))


def _shown(array: np.ndarray[Any, Any]) -> str:
    """A small array in rows, with as many digits as tell numbers apart at a glance."""
    if array.dtype.kind not in "biufc":
        return brief(array)
    return np.array2string(array, precision=5, suppress_small=True, prefix=_INDENT)


def _seeded(graph: Graph, seed: int) -> Graph:
    """A copy of a graph whose random ops have seeds."""
    graph_def = graph.as_graph_def()
    nodes = []
    for number, node in enumerate(graph_def.node):
        if node.attr.get("seed") == 0 and node.attr.get("seed2") == 0:
            node = msgspec.structs.replace(node, attr={**node.attr, "seed": seed + 1, "seed2": number + 1})
        nodes.append(node)
    copy = Graph(graph.registry)
    with copy.as_default():
        import_graph_def(msgspec.structs.replace(graph_def, node=tuple(nodes)), prefix="")
    return copy


def _each_step(feeds: Feeds | Sequence[Feeds] | Callable[[int], Feeds] | None) -> Iterator[Feeds | None]:
    number = 0
    while True:
        if callable(feeds):
            yield feeds(number)
        elif feeds is None or isinstance(feeds, Mapping):
            yield feeds
        else:
            yield feeds[number % len(feeds)]
        number += 1


def _name(key: Any) -> str:
    return key if isinstance(key, str) else tensor(key).name


def _course(losses: list[float]) -> str:
    """Some losses of the training, the first and the last among them."""
    chosen = sorted({round(index * (len(losses) - 1) / (_MOST_LOSSES - 1)) for index in range(_MOST_LOSSES)}) if losses else []
    return "losses: " + ", ".join([f"{losses[index]:.4g} (step {index + 1})" for index in chosen])
