"""Specialised plans for specific shapes of feeds, in which shapes are constants."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from graphcore.errors import GraphError
from graphcore.graph.model.node import Node, Tensor
from graphcore.runtime.core.kernel_checks import is_built_in
from graphcore.runtime.core.rewrite import copy_with_shapes
from graphcore.runtime.plan.plan import Plan
from graphcore.shapes import Shape

_RUNS_BEFORE: Final = 2
"""The number of runs with the same shapes before a plan is made for them."""
_MOST: Final = 8
"""The most shapes that a function is specialised for; with more of them it gains nothing."""

Build = Callable[[Sequence[Tensor], Sequence[Node], list[Tensor]], Plan]


class Specialised:
    """The plans of one run, by the shapes of its feeds.

    Args:
        general: the plan for all shapes.
        fetches, targets, feeds: those of the run.
        build: makes a plan of other fetches, targets and feeds.

    Attributes:
        is_useless: True if it is called with scalars and known shapes save no operation.
    """

    __slots__ = ("_build", "_counts", "_feeds", "_fetches", "_plans", "_targets", "general", "is_useless")

    def __init__(self, general: Plan, fetches: Sequence[Tensor], targets: Sequence[Node], feeds: Sequence[Tensor], build: Build) -> None:
        self.general = general
        self._fetches = fetches
        self._targets = targets
        self._feeds = feeds
        self._build = build
        self._plans: dict[tuple[Any, ...], Plan] = {}
        self._counts: dict[tuple[Any, ...], int] = {}
        self.is_useless = False

    @staticmethod
    def pays(plan: Plan, feeds: Sequence[Tensor]) -> bool:
        """True iff `plan` computes with shapes known only for specific feeds."""
        return any(not tensor.shape.is_fully_defined for tensor in feeds) and any(
            node.registration.traits.numbers_from_shapes is not None for node in plan.nodes
        )

    @staticmethod
    def pays_in_function(plan: Plan, feeds: Sequence[Tensor]) -> bool:
        """True iff `plan`, the body of a function, can be improved by known argument shapes.

        Then buffers are reused, heavy nodes run concurrently, and shape computations are left out. The kernels
        must be of this package: others may keep state, and each plan would have its own.
        """
        if len(plan.nodes) < 2 or all(tensor.shape.is_fully_defined for tensor in feeds):
            return False
        if any(tensor.dtype.is_ref or tensor.dtype.as_numpy is None for tensor in feeds):
            return False
        return all(is_built_in(node) or node.registration.is_function for node in plan.nodes)

    def plan_for(self, values: Sequence[Any]) -> Plan:
        """The plan to run on `values`."""
        shapes = tuple([value.shape for value in values])
        plan = self._plans.get(shapes)
        return plan if plan is not None else self._count(shapes)

    def _count(self, shapes: tuple[Any, ...]) -> Plan:
        count = self._counts[shapes] = self._counts.get(shapes, 0) + 1
        if count <= _RUNS_BEFORE or len(self._plans) >= _MOST:
            if len(self._counts) > 4 * _MOST:
                self._counts.clear()
            return self.general
        try:
            copied = copy_with_shapes(self._fetches, self._targets, self._feeds, [Shape(shape) for shape in shapes])
            made = self._build(*copied)
        except GraphError:  # the general plan reports the error, if it occurs there
            made = self.general
        self.is_useless = not any(shapes) and len(made.schedule.operations) >= len(self.general.schedule.operations)
        return self._plans.setdefault(shapes, made)

    def close(self) -> None:
        """Release the resources of the plans."""
        for plan in self._plans.values():
            plan.close()
