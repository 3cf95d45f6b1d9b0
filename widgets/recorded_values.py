"""The recorded values of a run, shown in views and stored in pages."""

from __future__ import annotations

import msgspec

from widgets.inspection import Values


class HealthRow(msgspec.Struct, frozen=True, kw_only=True):
    """A tensor of the run: its node in the picture, and its statistics in words."""

    node: str
    text: str


class GradientMagnitude(msgspec.Struct, frozen=True, kw_only=True):
    """The greatest absolute value of the gradient by the outputs of a forward node.

    `level` is its decimal logarithm, None for a gradient of zeros. `bad` is true if there are NaNs or infinities, and `weight` for variables,
    constants and nodes computed from those alone.
    """

    node: str
    depth: int
    text: str
    level: float | None = None
    bad: bool = False
    weight: bool = False


class RunHealth(msgspec.Struct, frozen=True, kw_only=True):
    """The faults in the values of a run.

    `first` is the first tensor with NaNs or infinities and `inputs` are those of its node; `bad` and `zeros` are all tensors with such values and
    all tensors of zeros, at most 100 of each, and `more_bad` and `more_zeros` the numbers of others. `summary` says the same in a sentence.
    """

    summary: str
    first: HealthRow | None = None
    inputs: list[HealthRow] = []
    bad: list[HealthRow] = []
    zeros: list[HealthRow] = []
    more_bad: int = 0
    more_zeros: int = 0
    magnitudes: list[GradientMagnitude] = []


class RunValues(msgspec.Struct, frozen=True, kw_only=True):
    """The statistics of all nodes that ran, as columns of equal length.

    The name of a node is its entry in `prefixes`, "" or the open calls around it (`loop:body/`), followed by that in `names`. `classes` are places
    in `widgets.scene.value_lens.CLASSES`, `words` the statistics in words. `rows` are those of the inspector, and `details` its pages of
    the nodes with full statistics, by row.
    """

    health: RunHealth
    prefixes: list[str] = []
    places: list[int] = []
    names: list[str] = []
    classes: list[int] = []
    words: list[str] = []
    rows: list[list[tuple[str, str]]] = []
    details: dict[int, Values] = {}
