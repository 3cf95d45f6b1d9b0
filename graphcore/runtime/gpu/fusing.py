"""Chains of elementwise operations as single kernels."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any, Final

from graphcore.graph.shapes.evaluation import kernel_context, needs_only_inputs
from graphcore.runtime.core.kernel_checks import explain_at, is_built_in
from graphcore.runtime.gpu.expressions import Expression, expression_of
from graphcore.runtime.gpu.gpu import Gpu
from graphcore.runtime.gpu.kernels import DeviceKernel, bound
from graphcore.runtime.plan.schedule import Operation, Schedule, Value, number

_logger: Final = logging.getLogger("graphcore.gpu")
_MOST_INPUTS: Final = 16
"""The most arrays that a fused kernel reads: they are its arguments, whose size CUDA limits."""
_MOST_SHAPES: Final = 256
"""The most shapes of inputs that a chain knows to fit."""


def fuse_chains(schedule: Schedule, gpu: Gpu) -> Schedule | None:
    """A schedule with each chain of elementwise operations as one; None if there is no chain.

    A chain is launched once, and intermediate results that nothing else needs stay in registers. `schedule` is unchanged.
    """
    users: dict[Value, list[Operation]] = {}
    places = {operation: place for place, operation in enumerate(schedule.operations)}
    for operation in schedule.operations:
        for value in operation.inputs:
            users.setdefault(value, []).append(operation)
    expressions: dict[Operation, Expression] = {}
    chains: dict[Value, list[Operation]] = {}
    for operation in schedule.operations:
        expression = _expression(operation, gpu)
        if expression is None:
            continue
        expressions[operation] = expression
        chain = [operation]
        before = [value for value in dict.fromkeys(operation.inputs) if value in chains]
        for values in (before, *[[value] for value in before]):  # all at once, or as many as possible
            longer = sorted([*itertools.chain(*[chains.get(value, ()) for value in values]), *chain], key=places.__getitem__)
            if chains.keys() >= set(values) and _may_be_one(longer, users, places):
                chain = longer
                for value in values:
                    del chains[value]
        chains[operation.outputs[0]] = chain
    within = {operation for chain in chains.values() for operation in chain[:-1]}
    if not within:
        return None
    copies: dict[Value, Value] = {}

    def own(values: Sequence[Value]) -> list[Value]:
        return [copies.setdefault(value, copy(value)) for value in values]

    operations: list[Operation] = []
    for operation in schedule.operations:
        if operation not in within:
            made = copy(operation)
            chain = chains.get(operation.outputs[0], []) if operation.outputs else []
            if len(chain) > 1:
                made.inputs, made.outputs = _inputs(chain), _results(chain, users)
                made.reads = [False] * len(made.inputs)
                fused = FusedChain(gpu, [(member, expressions[member]) for member in chain], made.inputs, made.outputs)
                made.kernel = DeviceKernel(gpu, fused, made.reads, [value.constant for value in made.inputs])
            made.inputs, made.outputs = own(made.inputs), own(made.outputs)
            for number_of_result, value in enumerate(made.outputs):
                if value.name not in schedule.variables:
                    value.name = f"u{len(operations)}_{number_of_result}"  # the text of a plan gives names to several values
            operations.append(made)
    results = own(schedule.results)
    number(operations, results)
    return Schedule(operations, own(schedule.feeds), results, schedule.variables)


def _expression(operation: Operation, gpu: Gpu) -> Expression | None:
    """The kernel of an operation as an expression, if it can be part of a chain."""
    node = operation.node
    if type(operation.kernel) is not DeviceKernel or operation.apart or any(operation.reads) or len(operation.outputs) != 1:
        return None
    factory = node.registration.kernel
    if factory is None or not is_built_in(node) or not needs_only_inputs(node):
        return None
    return expression_of(factory, kernel_context(node, bound([value.constant for value in operation.inputs])), gpu.cupy)


def _may_be_one(chain: Sequence[Operation], users: Mapping[Value, Sequence[Operation]], places: Mapping[Operation, int]) -> bool:
    """True iff operations can run at the place of the last one, as one kernel.

    All results of a kernel have the shape to which its inputs are broadcast.
    """
    inputs = _inputs(chain)
    if len(inputs) > _MOST_INPUTS:
        return False
    reached = {value: set() if value.constant is not None and not value.constant.ndim else {value} for value in inputs}
    for operation in chain:
        reached[operation.outputs[0]] = set().union(*[reached[value] for value in operation.inputs])
    results = _results(chain, users)
    whole = reached[results[-1]]
    outside = {user for value in results[:-1] for user in users.get(value, ())}.difference(chain)
    return all(reached[value] == whole for value in results) and all(places[user] > places[chain[-1]] for user in outside)


def _inputs(chain: Sequence[Operation]) -> list[Value]:
    """The values that a chain reads and does not make."""
    made = {operation.outputs[0] for operation in chain}
    return list(dict.fromkeys([value for operation in chain for value in operation.inputs if value not in made]))


def _results(chain: Sequence[Operation], users: Mapping[Value, Sequence[Operation]]) -> list[Value]:
    """The values that a chain makes for others, that of the last operation at the end."""
    made = [operation.outputs[0] for operation in chain]
    inner = [value for value in made[:-1] if value.is_kept or not set(users[value]).issubset(chain)]
    return [*inner, made[-1]]


class FusedChain:
    """The kernel of a chain: one that `cupy.fuse` compiles, else one kernel after the other.

    Args:
        gpu: the device.
        chain: the operations with their expressions.
        inputs: the values that it reads.
        results: the values that it makes for others.
    """

    def __init__(self, gpu: Gpu, chain: Sequence[tuple[Operation, Expression]], inputs: Sequence[Value], results: Sequence[Value]) -> None:
        places = {value: place for place, value in enumerate([*inputs, *[operation.outputs[0] for operation, _ in chain]])}
        self._steps = [(member.node, member.kernel.kernel, how, [places[value] for value in member.inputs]) for member, how in chain]
        self._results = [places[value] for value in results]
        self._depends_on_shapes = any(how.alike for _, how in chain)
        self._fits: dict[Any, bool] = {}
        self._fused: Any = gpu.cupy.fuse(self._compute)

    def __call__(self, *inputs: Any) -> Any:
        """The results for arrays of the device.

        Raises:
            GraphError: the error of one of the kernels, with its node.
        """
        if self._fused is not None and (not self._depends_on_shapes or self._fit([value.shape for value in inputs])):
            try:
                return self._fused(*inputs)
            except Exception:  # it has no side effects, and whatever cannot be fused is computed one by one
                result = self._compute_one_by_one(inputs)
                _logger.info("The chain that ends in '%s' is not fused", self._steps[-1][0].name, exc_info=True)
                self._fused = None
                return result
        return self._compute_one_by_one(inputs)

    def _fit(self, shapes: list[tuple[int, ...]]) -> bool:
        """True iff the expressions are right for inputs of these shapes."""
        key = tuple(shapes)
        if key not in self._fits:
            if len(self._fits) >= _MOST_SHAPES:
                self._fits.clear()
            try:
                for _, _, expression, places in self._steps:
                    shapes.append(expression.shape(*[shapes[place] for place in places]))
                self._fits[key] = True
            except ValueError:
                self._fits[key] = False
        return self._fits[key]

    def _compute(self, *inputs: Any) -> Any:
        values = list(inputs)
        for _, _, expression, places in self._steps:
            values.append(expression.compute(*[values[place] for place in places]))
        return self._chosen(values)

    def _compute_one_by_one(self, inputs: Sequence[Any]) -> Any:
        values = list(inputs)
        for node, kernel, _, places in self._steps:
            taken = [values[place] for place in places]
            try:
                values.append(kernel(*taken))
            except Exception as error:
                raise explain_at(node, error, taken) from error
        return self._chosen(values)

    def _chosen(self, values: Sequence[Any]) -> Any:
        results = tuple([values[place] for place in self._results])
        return results if len(results) > 1 else results[0]
