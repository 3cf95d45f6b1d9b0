"""Devices as roofs, and nodes as points below them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Roof:
    """A device.

    Attributes:
        name: its name.
        peak: the operations in a second that it makes at most.
        bandwidth: the bytes in a second that its memory moves at most.
    """

    name: str
    peak: float
    bandwidth: float

    @property
    def ridge(self) -> float:
        """The operations for each byte below which the memory bounds."""
        return self.peak / self.bandwidth

    def seconds(self, operations: float, moved: float) -> float:
        """The least time for some operations and bytes."""
        return max(operations / self.peak, moved / self.bandwidth)


@dataclass(frozen=True, slots=True)
class RooflinePoint:
    """A node or scope.

    Attributes:
        name: its name.
        operations: its floating-point operations.
        moved_bytes: the bytes that it takes and gives.
        seconds: the least time by device, in the order of the roofs.
        measured: the measured time on the first device in seconds, None without one.
    """

    name: str
    operations: float
    moved_bytes: float
    seconds: tuple[float, ...]
    measured: float | None = None

    @property
    def intensity(self) -> float:
        """Operations for each byte moved."""
        return self.operations / self.moved_bytes

    @property
    def rate(self) -> float:
        """Operations in a second on the first device: as measured, or at most."""
        return self.operations / (self.measured or self.seconds[0])

    def bound(self, roof: Roof) -> str:
        """The bound on a device: `memory` or `compute`."""
        return "memory" if self.intensity < roof.ridge else "compute"
