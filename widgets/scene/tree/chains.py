"""The scopes that names form, with long chains of scopes in scopes as one."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable
from itertools import pairwise
from typing import Final

MOST_SINGLE: Final = 4
"""Up to this many scopes in a row that hold nothing but the next one are scopes of their own; more are one with the last."""
_LONGEST_LABEL: Final = 40


def parents_of(root: str, prefixes: Collection[str], names: Iterable[str]) -> dict[str, str]:
    """The scope around each scope below `root`, outermost first.

    A name with 100,000 scopes would give paths of gigabytes, so that a path exists only where something is: nodes, several scopes, or a node
    of the same name.

    Args:
        root: the path of the outermost scope.
        prefixes: the paths that hold nodes.
        names: the names of these nodes.
    """
    held = sorted(f"{prefix}/" for prefix in prefixes if prefix != root)
    needed = set(held)
    for one, other in pairwise(held):
        needed.add(_shared(one, other))
    for name in names:
        path = f"{name}/"
        place = bisect_left(held, path)
        if place < len(held) and held[place].startswith(path):
            needed.add(path)
    top = f"{root}/" if root else ""
    needed -= {"", top}
    parents: dict[str, str] = {}
    around = [top]
    for path in sorted(needed):
        while not path.startswith(around[-1]):
            around.pop()
        outer = around[-1]
        if path[len(outer) : -1].count("/") <= MOST_SINGLE:
            for place in (i for i in range(len(outer), len(path) - 1) if path[i] == "/"):
                parents[path[:place]] = outer[:-1]
                outer = path[: place + 1]
        parents[path[:-1]] = outer[:-1]
        around.append(path)
    return parents


def chain_label(path: str, parent: str | None) -> str:
    """The last component of a path, or `a/b/c` of a chain of scopes, abbreviated where it is long."""
    inside = path[len(parent) + 1 :] if parent else path
    if "/" not in inside or len(inside) <= _LONGEST_LABEL:
        return inside
    return f"{inside.partition('/')[0]}/…/{inside.rpartition('/')[2]}"


def _shared(one: str, other: str) -> str:
    """The longest path, with its slash, that begins both."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[:middle] == other[:middle]:
            low = middle
        else:
            high = middle - 1
    return one[: one.rfind("/", 0, low) + 1]
