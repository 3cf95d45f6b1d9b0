"""Names of nodes that are unique within a graph."""

from __future__ import annotations

from collections import Counter


class UniqueNames:
    """Names, each followed by a number where another one is equal."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._counts: Counter[str] = Counter()

    def unique(self, base: str) -> str:
        """A name that has not been given before: `base`, or `base_1` and so on."""
        name = base
        while name in self._taken:
            self._counts[base] += 1
            name = f"{base}_{self._counts[base]}"
        self._taken.add(name)
        return name

    def release(self, name: str) -> None:
        """Let a name that was given last for its base be given again."""
        self._taken.discard(name)
        base, _, number = name.rpartition("_")
        if number.isdecimal() and self._counts[base] == int(number):
            self._counts[base] -= 1
