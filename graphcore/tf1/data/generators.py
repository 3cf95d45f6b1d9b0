"""Datasets of what Python generators yield."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any, Final

import numpy as np

from graphcore import dtypes
from graphcore.api.branches import define_outputs, unite_arguments
from graphcore.attrs import Func
from graphcore.errors import InvalidArgumentError
from graphcore.graph import FunctionGraph, Node, Tensor, get_default_graph
from graphcore.passes.functions.defining import function_label
from graphcore.shapes import Shape
from graphcore.tf1.data.structures import Spec, changed, flatten
from graphcore.tf1.framework import convert_to_tensor
from graphcore.tf1.python_calls import python_call

_NUMBERS: Final = "biufcV"
"""The kinds of arrays of numbers."""


class _Passes:
    """The passes over a generator that are under way, by their numbers."""

    def __init__(self, generator: Callable[..., Any], structure: Any, spec: Spec) -> None:
        self._generator = generator
        self._structure = structure
        self._spec = spec
        self._numbers = count()
        self._running: dict[int, Iterator[Any]] = {}

    def begin(self, *args: Any) -> Any:
        """Begin a pass."""
        number = next(self._numbers)
        self._running[number] = iter(self._generator(*args))
        return np.int64(number)

    def next(self, number: Any) -> list[Any]:
        """The components of the next element.

        Raises:
            InvalidArgumentError: it does not have the declared structure, types or shapes.
        """
        value = next(self._running[int(number)])
        leaves: list[Any] = []
        try:
            _collect(self._structure, value, leaves)
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidArgumentError(
                f"`generator` yielded an element that did not match the expected structure. The expected structure was "
                f"{changed(self._structure, lambda i: self._spec.types[i])!r}, but the yielded element was {value!r}."
            ) from error
        return [self._as_array(leaf, i) for i, leaf in enumerate(leaves)]

    def _as_array(self, value: Any, place: int) -> Any:
        dtype, shape = self._spec.types[place], self._spec.shapes[place]
        array: Any
        if dtype is dtypes.string:
            array = np.asarray(value, object)
        else:
            array = _cast(value, np.dtype(dtype.as_numpy))
            if array is None:
                raise InvalidArgumentError(
                    f"`generator` yielded an element that could not be converted to the expected type. The expected type was {dtype.text}, "
                    f"but the yielded element was {value!r}."
                )
        if not shape.is_compatible_with(Shape(array.shape)):
            raise InvalidArgumentError(
                f"`generator` yielded an element of shape {list(array.shape)} where an element of shape {shape} was expected."
            )
        return array

    def end(self, number: Any) -> Any:
        """End a pass."""
        running = self._running.pop(int(number), None)
        close = getattr(running, "close", None)
        if close is not None:
            close()
        return np.int64(0)


def _cast(value: Any, wanted: np.dtype[Any]) -> Any:
    """An array of the type, for floats rounded; None if the type does not hold the values."""
    try:
        array = np.asarray(value)
        if array.dtype.kind not in _NUMBERS or (array.dtype.kind == "c" and wanted.kind != "c"):
            return None
        if wanted.kind in "iu" and array.size:
            limits = np.iinfo(wanted)
            if not (np.all(array >= limits.min) and np.all(array <= limits.max) and np.array_equal(np.trunc(array), array)):
                return None
        return array.astype(wanted)
    except (TypeError, ValueError, OverflowError):
        return None


def _collect(structure: Any, value: Any, leaves: list[Any]) -> None:
    """The leaves of a value in the order of a structure."""
    if isinstance(structure, dict):
        if not isinstance(value, dict) or value.keys() != structure.keys():
            raise ValueError("other keys")
        for key in sorted(structure, key=str):
            _collect(structure[key], value[key], leaves)
    elif isinstance(structure, tuple):
        if not isinstance(value, tuple | list):
            raise TypeError("no tuple")
        for part, item in zip(structure, value, strict=True):
            _collect(part, item, leaves)
    else:
        leaves.append(value)


def handle_of_generator(generator: Callable[..., Any], structure: Any, spec: Spec, args: Any) -> Tensor:
    """The handle of a dataset of what a generator yields; see `Dataset.from_generator`."""
    graph = get_default_graph()
    passes = _Passes(generator, structure, spec)
    inputs = [convert_to_tensor(value) for value in (flatten(tuple(args))[1] if args is not None else ())]

    def traced(role: str, types: list[Any], call: Callable[..., Any], outputs: list[Any]) -> tuple[Func, list[Tensor]]:
        body = FunctionGraph.within(graph, function_label(graph, "generator", role))
        own = [body.argument(f"args_{i}", dtype, Shape(None)) for i, dtype in enumerate(types)]
        with body.as_default():
            node = python_call(call, own, outputs, None)
        captured = unite_arguments([body], [own])
        return Func(define_outputs(body, list(node.outputs), outputs).name), captured

    def build() -> Node:
        begin, _ = traced("init", [tensor.dtype.base for tensor in inputs], passes.begin, [dtypes.int64])
        following, _ = traced("next", [dtypes.int64], passes.next, list(spec.types))
        end, _ = traced("finalize", [dtypes.int64], passes.end, [dtypes.int64])
        attrs = {"init_func": begin, "next_func": following, "finalize_func": end, **spec.attrs()}
        return graph.apply_op("GeneratorDataset", [inputs, [], []], attrs)

    return build().outputs[0]
