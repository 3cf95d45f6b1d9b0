"""What happened to a graph, one small record a change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec

ChangeKind = Literal["added", "removed", "replaced", "inputs", "shapes"]


class Change(msgspec.Struct, frozen=True, gc=False):
    """`node` was added, removed, replaced in place, fed from elsewhere, or has other shapes now."""

    kind: ChangeKind
    node: str
    version: int


Subscriber = Callable[[Change], None]
