"""`gc.compare_runs`: the place from which on two models compute something else."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, get_args

import msgspec

from graphcore.api.graph_diff import state_of
from graphcore.api.quantized_values import after_activations, real_values
from graphcore.api.run_values import values_of
from graphcore.api.tensor_comparison import QUANTIZED, Measure, TensorComparison, coarseness, compare_tensors
from graphcore.difference import GraphDiff, compare, tensors_to_compare, unmatched_before
from graphcore.difference.diff import text_of_group
from graphcore.errors import InvalidArgumentError
from graphcore.frontends.record import foreign_of
from graphcore.graph import Graph
from graphcore.op_names import plain_op
from graphcore.support.shown import html_text, shown

if TYPE_CHECKING:
    from graphcore.attrs import Array

MOST_LISTED: Final = 10
"""The differing tensors that are listed."""


class RunComparison(msgspec.Struct, frozen=True, eq=False):
    """Two runs, compared tensor by tensor. It prints in words; true iff they differ.

    Attributes:
        graph, other: the graphs of both runs.
        diff: their difference.
        tensors: the tensors that both have, in the order of the first run.
        first: the first that differs, None if none does.
        only: the computing nodes right before it that only one of the graphs has, as pairs of their names in the first and in the second.
    """

    graph: Graph
    other: Graph
    diff: GraphDiff
    tensors: tuple[TensorComparison, ...]
    first: TensorComparison | None
    only: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())

    def __bool__(self) -> bool:
        return self.first is not None

    def numbers(self, measure: Measure = "max_abs", *, of_other: bool = False) -> dict[str, float]:
        """A number for each tensor by its node, as `widgets.add_overlay` takes them with the graph.

        Args:
            measure: `max_abs`; `relative`, the greatest difference by the greatest value; `tolerance`, that by the tolerance, above 1 for
                tensors that differ; `cosine`; or `sqnr` in dB.
            of_other: True for the nodes of the second graph.

        Returns:
            The finite numbers.

        Raises:
            InvalidArgumentError: there is no such measure.
        """
        if measure not in get_args(Measure):
            raise InvalidArgumentError(f"Required {', '.join(get_args(Measure)[:-1])} or sqnr, got {measure!r}")
        numbers = {}
        for tensor in self.tensors:
            number = tensor.measured(measure)
            if math.isfinite(number):
                numbers[tensor.other if of_other else tensor.name] = number
        return numbers

    def __str__(self) -> str:
        return shown("\n".join(_lines(self)))

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return f"<pre>{html_text(str(self))}</pre>"


def compare_runs(a: Any, b: Any, /, *args: Any, rtol: float | None = None, atol: float | None = None, **kwargs: Any) -> RunComparison:
    """Run two models on the same inputs, and find the first tensor in which they differ.

    Nodes are matched as `gc.graph_diff` matches them, across frameworks too. Where a convolution and a normalization became one
    convolution, the values after the last of them are compared. Tensors in another layout are permuted where their shapes say so. Each model runs once, in its own
    framework, with its modes as they are: call `model.eval()` first, or dropout differs from run to run.

    Two tensors differ if the greatest absolute difference exceeds `atol + rtol * m` for the greatest absolute value `m` of the first.

    Args:
        a, b: the models: PyTorch modules and functions, JAX functions, the paths or objects of files that a runner runs (ONNX, TFLite, `.pt2`), graphs
            of these, or for graphs of this library the graph, or a session with its variables.
        args, kwargs: the arguments of both calls: values of the inputs by their order and names. Arrays of NumPy and tensors of PyTorch may
            stand for each other.
        rtol, atol: the tolerances; by default those of the least precise type that a value has passed in either run: 1e-4 and 1e-8 for float32,
            1e-2 and 1e-5 for float16, 0.1 of the greatest value behind a quantization of one run alone, 0 for integers.

    Returns:
        The comparison. The values of the first run are kept until they are compared, and no longer; those of a second PyTorch call until it ends.

    Raises:
        FailedPreconditionError: nothing here runs such a model.
        InvalidArgumentError: the arguments do not fit.
        Exception: the error with which a model ends.

    Example:
        >>> comparison = gc.compare_runs(model, "model.onnx", x)  # doctest: +SKIP
        >>> comparison.first.name  # doctest: +SKIP
        >>> widgets.add_overlay(comparison.graph, comparison.numbers(), title="difference")  # doctest: +SKIP
    """
    first, second = values_of(a, args, kwargs), values_of(b, args, kwargs)
    diff = compare(state_of(first.graph), state_of(second.graph))
    pairs = after_activations(tensors_to_compare(diff), first.graph, second.graph)
    former = after_activations({new: old for old, new in pairs.items()}, second.graph, first.graph)
    pairs = {old: new for new, old in former.items()}
    coarse = coarseness(diff.before, _quantized(first.graph)), coarseness(diff.after, _quantized(second.graph))
    kept: dict[str, Array] = {}
    order: list[str] = []

    def keep(name: str, array: Array) -> None:
        real = real_values(first.graph, name, array)
        if real is None:
            return
        if name not in kept:
            order.append(name)
        kept[name] = real

    first.visit(pairs, keep)
    compared: dict[str, TensorComparison] = {}

    def weigh(name: str, array: Array) -> None:
        old, real = former[name], real_values(second.graph, name, array)
        if old in kept and real is not None:
            ops = (plain_op(diff.before.nodes[old].op), plain_op(diff.after.nodes[name].op))
            floor = max(coarse[0][old], coarse[1][name])
            is_alike = floor == QUANTIZED == min(coarse[0][old], coarse[1][name])  # both are rounded in the same way
            compared[old] = compare_tensors((old, name), ops, kept.pop(old), real, rtol, atol, 0.0 if is_alike else floor)

    second.visit(former, weigh)
    tensors = [compared[name] for name in order if name in compared]
    parting = next((tensor for tensor in tensors if tensor.is_different), None)
    only = ((), ()) if parting is None else unmatched_before(diff, parting.name, parting.other)
    return RunComparison(first.graph, second.graph, diff, tuple(tensors), parting, only)


def _lines(comparison: RunComparison) -> Sequence[str]:
    tensors = comparison.tensors
    if not tensors:
        return ["The two runs have no tensor in common"]
    different = [tensor for tensor in tensors if tensor.is_different]
    parting = comparison.first
    if parting is None:
        least = min(tensors, key=lambda tensor: tensor.sqnr)
        return [f"All {len(tensors):,} common tensors agree; the least alike is {least}"]
    before = next(place for place, tensor in enumerate(tensors) if tensor is parting)
    lines = [f"The runs part at {parting}", f"{before:,} tensors before it agree; {len(different):,} of {len(tensors):,} differ"]
    groups = () if comparison.diff.correspondence is None else comparison.diff.correspondence.groups
    group = next((group for group in groups if parting.name in group.before and parting.other in group.after), None)
    if group is not None:
        lines.append(f"it is the end of several: {text_of_group(comparison.diff, group)}")
    for names, nodes, which in zip(comparison.only, _nodes(comparison), ("first", "second"), strict=True):
        if names:
            lines.append(f"right before it, only in the {which}: {', '.join([f'{name} ({plain_op(nodes[name].op)})' for name in names])}")
    change = comparison.diff.changed.get(parting.other)
    if change is not None:
        lines.append(f"its definition differs: {change}")
    rest = [tensor for tensor in different if tensor is not parting]
    lines += [f"then {tensor}" for tensor in rest[:MOST_LISTED]]
    if len(rest) > MOST_LISTED:
        lines.append(f"… and {len(rest) - MOST_LISTED:,} more")
    return lines


def _quantized(graph: Graph) -> set[str]:
    """The nodes for whose values the source says a scale."""
    record = foreign_of(graph)
    return set() if record is None else {name for name, node in record.nodes.items() if node.outputs and node.outputs[0].quantization}


def _nodes(comparison: RunComparison) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    return comparison.diff.before.nodes, comparison.diff.after.nodes
