"""The limit of what is read of one file, for formats whose parts can be claimed many times over."""

from __future__ import annotations

from graphcore.errors import InvalidArgumentError, ResourceExhaustedError


class Budget:
    """Counts the items that are read: a right file has no more of them than bytes.

    Args:
        size: the bytes of the file.
        what: the file, for errors.
    """

    def __init__(self, size: int, what: str) -> None:
        self._size = size
        self._left = 2 * size + 1000
        self._what = what

    def take(self, count: int) -> int:
        """The count of items of a list, after it is checked.

        Raises:
            InvalidArgumentError: the file cannot have so many.
            ResourceExhaustedError: all lists together have more items than the file has bytes.
        """
        if not 0 <= count <= self._size:
            raise InvalidArgumentError(f"{self._what} is damaged: a list claims {count:,} items in {self._size:,} bytes")
        self._left -= count
        if self._left < 0:
            raise ResourceExhaustedError(f"{self._what} is damaged: its lists claim more items than it has bytes")
        return count
