"""Calls that failed while JAX traced them: the equations so far, and the operation that failed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from graphcore.errors import InvalidArgumentError
from graphcore.frontends.foreign import ForeignFunction, ForeignGraph, ForeignNode, InputRef, SourceFrame
from graphcore.frontends.jax_reader.clashes import chains_of
from graphcore.frontends.jax_reader.failures import Failure, Level, failure_of
from graphcore.frontends.jax_reader.messages import Explained, explained, tidied
from graphcore.frontends.jax_reader.programs import JaxprReader, arg_names
from graphcore.source import SourceLocation

_MOST_OPERANDS: Final = 100


def failed_call(error: Exception, name: str, producer: str, arrays: Mapping[int, str]) -> ForeignGraph:
    """The graph of a call that ended with an error.

    Args:
        error: the error, with its traceback.
        name: the function that was called.
        producer: the framework, with its version.
        arrays: names for constants, by the ids of their values.

    Raises:
        InvalidArgumentError: nothing was traced when the error came.
    """
    failure = failure_of(error)
    said = explained(error)
    reader = JaxprReader(arrays)
    frames = next((level.frames for level in reversed(failure.levels) if level.frames), [])
    text = _text(error, said, chains_of(failure, said, reader), frames)
    if not failure.levels:
        raise InvalidArgumentError(f"The call failed before any operation: {text}").advise(
            said.advice, required=said.required, came=said.came
        ) from error
    inner: ForeignFunction | None = None
    functions: dict[str, ForeignFunction] = {}
    for number in reversed(range(len(failure.levels))):
        level, is_last = failure.levels[number], number == len(failure.levels) - 1
        title = name if number == 0 else level.name
        key = f"{inner.name}_failed_{number}" if inner is not None else ""
        if inner is not None:
            functions[key] = inner
        inner = _function(reader, level, failure, title, text, key, None if is_last else failure.levels[number + 1])
    assert inner is not None, "there is a level"
    inner.name = "main"
    reader.mark_leaks(inner, failure.levels[0].program.consts)
    graph = ForeignGraph("JAX program", inner, producer=producer, name=name, functions={**reader.functions, **functions})
    graph.notes.append(f"The call failed: {text}")
    return graph


def _function(
    reader: JaxprReader, level: Level, failure: Failure, title: str, text: str, key: str, called: Level | None
) -> ForeignFunction:
    program = level.program
    body, inputs = reader.body(program, program.consts, arg_names(program))
    refs = [body.given(value, level.variable(value)) for value in level.operands[:_MOST_OPERANDS]]
    if not refs and not program.eqns:
        refs = [body.ref(variable) for variable in program.invars]
    node = _failed(level, failure, refs, title, called)
    name = body.unique(node.name)
    body.nodes.append(replace(node, name=name, error=text, bodies={"body": key} if key else {}))
    return ForeignFunction(title, tuple(inputs), (), (), body.nodes)


def _failed(level: Level, failure: Failure, refs: Sequence[InputRef], title: str, called: Level | None) -> ForeignNode:
    """The node of the operation that failed."""
    library = level.called
    if called is not None:
        op, leaf = f"jax.{library or 'jit'}", called.name.strip("<>")
    elif library:
        op, leaf = f"jax.{failure.primitive or library}", library
    else:
        leaf = level.frames[-1].function if level.frames else title
        leaf = leaf.strip("<>") or "call"
        op = f"python.{leaf}"
    scopes = [module.path for module in level.modules]
    return ForeignNode(
        "/".join([*scopes, leaf]),
        op,
        tuple(refs),
        attrs={} if not library or (called is None and failure.primitive in {"", library}) else {"called by": library},
        modules=tuple(level.modules),
        frames=tuple(level.frames),
    )


def _text(error: Exception, said: Explained, chains: Sequence[str], frames: Sequence[SourceFrame]) -> str:
    lines = [tidied(error)]
    if frames:
        lines.append(f"At {SourceLocation(frames[-1].file, frames[-1].line).where}: `{frames[-1].text}`")
    if said.required:
        lines.append(f"Required: {said.required}. Came: {said.came}.")
    if chains:
        lines.append(f"Sizes: {'; '.join(chains)}.")
    if said.advice:
        lines.append(f"To do: {said.advice}.")
    return "\n".join(lines)
