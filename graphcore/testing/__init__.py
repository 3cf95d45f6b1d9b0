"""Checks of graphs, for exercises and for tests: `gc.testing.shape_is(y, [None, 10])`.

Each check returns None, or raises `CheckFailed`, an AssertionError that says what was required, what came, and which cell and line made it.
"""

from graphcore.testing.answering import answered, holds
from graphcore.testing.aside import aside
from graphcore.testing.differing import same_graph
from graphcore.testing.failure import CheckFailed
from graphcore.testing.ordering import no_missing_control_edge
from graphcore.testing.running import runs_to, trains
from graphcore.testing.structure import has_gradient_path, has_no_gradient_path, placed_on, shape_is, uses_ops

__all__ = [
    "CheckFailed",
    "answered",
    "aside",
    "has_gradient_path",
    "has_no_gradient_path",
    "holds",
    "no_missing_control_edge",
    "placed_on",
    "runs_to",
    "same_graph",
    "shape_is",
    "trains",
    "uses_ops",
]
