"""The names that nodes and scopes of one state have in the other, for views of both side by side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

from graphcore.difference.diff import GraphDiff

_LEAST_COMMON: Final = 1 / 3
"""The part of the nodes of two scopes that they have in common at least."""


def twins(diff: GraphDiff) -> tuple[dict[str, str], dict[str, str]]:
    """The later names of nodes and scopes by their earlier ones, and the earlier by the later.

    Names that both states have are left out; "" stands for none. Of nodes that became others these are the last of them. Scopes end in a slash.
    """
    forth, back = dict(diff.pairs), {new: old for old, new in diff.pairs.items()}
    groups = () if diff.correspondence is None else [group for group in diff.correspondence.groups if group.way == "became"]
    for group in groups:
        for name in group.before:
            forth.setdefault(name, group.after[-1])
        for name in group.after:
            back.setdefault(name, group.before[-1])
    scopes = _scopes(diff.pairs)
    sides = []
    for names, nodes, matched in ((forth, diff.before.nodes, scopes), (back, diff.after.nodes, {new: old for old, new in scopes.items()})):
        all_names = {name: names.get(name, "") for name in nodes}
        all_names |= {scope: matched.get(scope, "") for name in nodes for scope in _around(name)}
        sides.append({name: other for name, other in all_names.items() if name != other})
    return sides[0], sides[1]


def _scopes(pairs: Mapping[str, str]) -> dict[str, str]:
    """Earlier scopes with the later ones that have most nodes in common with them, one with one."""
    common: Counter[tuple[str, str]] = Counter()
    sizes: tuple[Counter[str], Counter[str]] = (Counter(), Counter())
    for old, new in pairs.items():
        scopes = [*_around(old)], [*_around(new)]
        for size, names in zip(sizes, scopes, strict=True):
            size.update(names)
        common.update((first, second) for first in scopes[0] for second in scopes[1])

    def likeness(pair: tuple[str, str]) -> tuple[float, int, int]:
        first, second = pair
        share = common[pair] / (sizes[0][first] + sizes[1][second] - common[pair])
        return -share, first != second, abs(first.count("/") - second.count("/"))

    matched: dict[str, str] = {}
    taken: set[str] = set()
    for first, second in sorted(common, key=likeness):
        if -likeness((first, second))[0] < _LEAST_COMMON:
            break
        if first not in matched and second not in taken:
            matched[first] = second
            taken.add(second)
    return matched


def _around(name: str) -> Iterator[str]:
    """The scopes around a node, outermost first: `a/` and `a/b/` of `a/b/c`."""
    place = name.find("/")
    while place >= 0:
        yield name[: place + 1]
        place = name.find("/", place + 1)
