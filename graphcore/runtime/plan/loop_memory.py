"""A bound on the live arrays of a plan with branches and loops.

All branches count as taken. Arrays that a branch or loop may leave unreleased count until the end, and twice in a loop, where the next
iteration makes them before the old ones are released.
"""

from __future__ import annotations

from graphcore.errors import UnimplementedError
from graphcore.runtime.core.sizes import PeakMemory, Sizes
from graphcore.runtime.plan.loop_schedule import Begin, End, Mark, Test
from graphcore.runtime.plan.schedule import Schedule, Value


def peak_of_loops(schedule: Schedule, sizes: Sizes) -> PeakMemory:
    """The bound for a schedule."""
    operations = schedule.operations
    segments: list[int] = []  # units that run equally often: between the same ends of iterations and tests
    around, depths = [0], []
    for number, operation in enumerate(operations):
        if isinstance(operation, End):
            around.pop()
        segments.append(around[-1])
        depths.append(len(around) - 1)
        if isinstance(operation, Begin):
            around.append(number + 1)
        elif isinstance(operation, Test):
            around[-1] = number + 1
    live = peak = 0
    try:
        taken: dict[Value, int] = {}
        going: dict[int, list[Value]] = {}
        for number, operation in enumerate(operations):
            if not isinstance(operation, Mark):
                peak = max(peak, live + (sizes.within(operation.node).bytes or 0))
            for value in operation.outputs:
                if value.is_reference or value.name in schedule.variables:
                    continue
                size, last = sizes.of(value.tensor), value.last_use
                goes = not value.is_kept and segments[last] == segments[number]
                if goes and operations[last].guard <= operation.guard:
                    going.setdefault(last, []).append(value)
                elif depths[number] and not isinstance(operation, Begin):
                    size *= 2
                taken[value] = size
                live += size
            peak = max(peak, live)
            live -= sum([taken[value] for value in going.get(number, ())])
    except UnimplementedError as error:
        return PeakMemory(None, reason=error.message)
    what = "loops" if any(isinstance(operation, Begin) for operation in operations) else "branches"
    return PeakMemory(peak, True, f"how much its {what} hold depends on values: all branches count as taken")
