"""Chains of elementwise operations as single kernels."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, Final

from graphcore.runtime.core.kernel_checks import explain_at
from graphcore.runtime.gpu.kernels import DeviceKernel
from graphcore.runtime.plan.schedule import Operation, Schedule, Value, number

if TYPE_CHECKING:
    from graphcore.runtime.gpu.gpu import Gpu

_logger: Final = logging.getLogger("graphcore.gpu")
_MOST_INPUTS: Final = 16
"""The most arrays that a fused kernel reads: they are its arguments, whose size CUDA limits."""


def fuse_chains(schedule: Schedule, gpu: Gpu) -> Schedule | None:
    """A schedule with each chain of elementwise operations as one; None if there is no chain.

    A chain is launched once, and its intermediate results stay in registers. `schedule` is unchanged.
    """
    uses = Counter([value for operation in schedule.operations for value in set(operation.inputs)])
    chains: dict[Value, list[Operation]] = {}
    for operation in schedule.operations:
        if not _is_elementwise(operation, gpu):
            continue
        chain = [operation]
        for value in dict.fromkeys(operation.inputs):
            longer = [*chains.get(value, ()), *chain]
            if value in chains and uses[value] == 1 and not value.is_kept and len(_inputs(longer)) <= _MOST_INPUTS:
                chain = longer
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
                made.inputs = _inputs(chain)
                made.reads = [False] * len(made.inputs)
                made.kernel = DeviceKernel(gpu, FusedChain(gpu, chain), made.reads, [value.constant for value in made.inputs])
            made.inputs, made.outputs = own(made.inputs), own(made.outputs)
            for value in made.outputs:
                if value.name not in schedule.variables:
                    value.name = f"u{len(operations)}_{value.tensor.index}"  # the text of a plan gives names to several values
            operations.append(made)
    results = own(schedule.results)
    number(operations, results)
    return Schedule(operations, own(schedule.feeds), results, schedule.variables)


def _is_elementwise(operation: Operation, gpu: Gpu) -> bool:
    kernel = operation.kernel
    if type(kernel) is not DeviceKernel or operation.apart or any(operation.reads) or len(operation.outputs) != 1:
        return False
    return isinstance(kernel.kernel, gpu.cupy.ufunc) and kernel.kernel.nout == 1


def _inputs(chain: Sequence[Operation]) -> list[Value]:
    """The values that a chain reads and does not make."""
    made = {operation.outputs[0] for operation in chain}
    return list(dict.fromkeys([value for operation in chain for value in operation.inputs if value not in made]))


class FusedChain:
    """The kernel of a chain: one that `cupy.fuse` compiles, else one ufunc after the other.

    Args:
        gpu: the device.
        chain: the operations; only the result of the last one is used outside.
    """

    def __init__(self, gpu: Gpu, chain: Sequence[Operation]) -> None:
        places = {value: place for place, value in enumerate([*_inputs(chain), *[operation.outputs[0] for operation in chain]])}
        self._steps = [(each.node, each.kernel.kernel, [places[value] for value in each.inputs]) for each in chain]
        self._fused: Any = gpu.cupy.fuse(self._compute)

    def __call__(self, *inputs: Any) -> Any:
        """The result for arrays of the device.

        Raises:
            GraphError: the error of one of the ufuncs, with its node.
        """
        if self._fused is not None:
            try:
                return self._fused(*inputs)
            except Exception:  # it has no side effects, and whatever cannot be fused is computed one by one
                result = self._compute_one_by_one(inputs)
                _logger.info("The chain that ends in '%s' is not fused", self._steps[-1][0].name, exc_info=True)
                self._fused = None
                return result
        return self._compute_one_by_one(inputs)

    def _compute(self, *inputs: Any) -> Any:
        values = list(inputs)
        for _, ufunc, places in self._steps:
            values.append(ufunc(*[values[place] for place in places]))
        return values[-1]

    def _compute_one_by_one(self, inputs: Sequence[Any]) -> Any:
        values = list(inputs)
        for node, ufunc, places in self._steps:
            given = [values[place] for place in places]
            try:
                values.append(ufunc(*given))
            except Exception as error:
                raise explain_at(node, error, given) from error
        return values[-1]
