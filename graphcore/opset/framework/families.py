"""Base classes of op blocks: the traits that the ops of a family share. A block's own attribute goes before its family's."""

from __future__ import annotations

from graphcore.traits import FailsOn


class Elementwise:
    """Ops that compute each element by itself, make a new array and cannot fail."""

    elementwise = True
    can_fail = False
    memory = "fresh"


class Passing:
    """Ops that give their inputs themselves."""

    can_fail = False
    memory = "alias"


class Rearranging:
    """Ops that show the elements of their first input in another shape, without a copy where that is possible."""

    can_fail = False
    memory = "view"


class Reduction:
    """Ops that combine the elements along the axes that the second input names."""

    can_fail = FailsOn(values=("reduction_indices",))
    memory = "fresh"
    reduces = True


class Total:
    """Ops that make a new array and cannot fail."""

    can_fail = False
    memory = "fresh"
