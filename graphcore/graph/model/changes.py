"""Records of changes of a graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec

ChangeKind = Literal["added", "removed", "replaced", "inputs", "shapes", "device"]


class Change(msgspec.Struct, frozen=True, gc=False):
    """A change of `node`: added, removed, replaced in place, reconnected, with other shapes, or moved."""

    kind: ChangeKind
    node: str
    version: int


Subscriber = Callable[[Change], None]
