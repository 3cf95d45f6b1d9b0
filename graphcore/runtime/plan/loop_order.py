"""An execution order: dependencies first, and units with equal guards together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from heapq import heappop, heappush
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graphcore.graph.control_flow.analysis import Guard
    from graphcore.runtime.plan.loop_structure import Unit


def clustered(units: Sequence[Unit], needs: Mapping[Unit, Sequence[Unit]]) -> list[Unit]:
    """`units` in topological order, with equal guards adjacent as far as possible."""
    place = {unit: i for i, unit in enumerate(units)}
    waiting = {}
    followers: dict[Unit, list[Unit]] = {}
    ready: dict[Guard, list[int]] = {}
    for unit in units:
        own = place.keys() & needs[unit]
        waiting[unit] = len(own)
        for need in own:
            followers.setdefault(need, []).append(unit)
        if not own:
            heappush(ready.setdefault(unit.guard, []), place[unit])
    order: list[Unit] = []
    current: Guard | None = None
    while ready:
        if current not in ready:
            current = min(ready, key=lambda guard: ready[guard][0])
        heap = ready[current]
        unit = units[heappop(heap)]
        if not heap:
            del ready[current]
        order.append(unit)
        for follower in followers.get(unit, ()):
            waiting[follower] -= 1
            if not waiting[follower]:
                heappush(ready.setdefault(follower.guard, []), place[follower])
    return order
