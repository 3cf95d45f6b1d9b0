"""Base classes of op blocks: traits of op families. A block's own attribute overrides its family's."""

from __future__ import annotations

from graphcore.traits import FailsOn


class Elementwise:
    """Ops that compute each element separately, make a new array and cannot fail."""

    elementwise = True
    pure = True
    can_fail = False
    memory = "fresh"


class Passing:
    """Ops that return their inputs themselves."""

    can_fail = False
    memory = "alias"


class Reduction:
    """Ops that combine the elements along the axes in the second input."""

    pure = True
    can_fail = FailsOn(values=("reduction_indices",))
    memory = "fresh"
    neutral = "no axes"


class Total:
    """Ops that make a new array and cannot fail."""

    can_fail = False
    memory = "fresh"


class Storing:
    """Ops that put arrays into stacks, queues and tensor arrays, or take them out."""

    stores = True
