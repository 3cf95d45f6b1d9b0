"""Instances of a repeat that differ: their numbers in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Final

from widgets.scene.tree import Group, Part, nodes_of

if TYPE_CHECKING:
    from graphcore.graph import Node

MOST: Final = 3
"""The most labels with their numbers in one text."""


def numbered(labels: Sequence[str]) -> str:
    """The instances with each label: `number 4: /CPU:1; others: /CPU:0`. "" if all labels are equal."""
    counts = Counter(labels)
    if len(counts) < 2:
        return ""
    usual = max(counts, key=counts.__getitem__) if max(counts.values()) > 1 else None
    rare = [label for label in counts if label != usual]
    words = [f"{_numbers([place for place, each in enumerate(labels, 1) if each == label])}: {label}" for label in rare[:MOST]]
    if len(rare) > MOST:
        words.append("…")
    return "; ".join(words if usual is None else [*words, f"others: {usual}"])


def numbered_classes(part: Part, classify: Callable[[Node], str], rest: str) -> str:
    """The classes of nodes in each instance of a repeat. "" if they are the same in all, or for another part."""
    if not isinstance(part, Group) or not part.instances:
        return ""
    return numbered([_label(map(classify, nodes_of([each])), rest) for each in part.instances])


def number_of(part: Part, node: Node) -> str:
    """The instance of a repeat that contains a node: `number 4, `. "" if there is none."""
    instances = part.instances if isinstance(part, Group) else []
    return next((f"number {number}, " for number, each in enumerate(instances, 1) if node in nodes_of([each])), "")


def _label(classes: Iterable[str], rest: str) -> str:
    """The classes of an instance; with their numbers of nodes if there are several."""
    counts = Counter([found for found in classes if found])
    if len(counts) < 2:
        return next(iter(counts), rest)
    return ", ".join([f"{found} × {counts[found]:,}" for found in sorted(counts)])


def _numbers(places: Sequence[int]) -> str:
    """`number 4`, `numbers 1 to 3, 5`."""
    runs = [[place for _, place in run] for _, run in groupby(enumerate(places), key=lambda item: item[1] - item[0])]
    texts = [str(run[0]) if len(run) == 1 else f"{run[0]} to {run[-1]}" for run in runs]
    return ("number " if len(places) == 1 else "numbers ") + ", ".join(texts)
