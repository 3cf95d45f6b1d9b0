"""Differences of traced calls in words: layers that were added, removed, replaced and changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from graphcore.difference import GraphDiff
from graphcore.frontends.record import ForeignRecord

MOST_NAMES: Final = 3
"""The layers of one kind of change that are named."""
_OWN: Final = frozenset({"op", "attr", "shape", "type", "device"})
_REWIRED: Final = frozenset({"input", "control"})


class LayerChanges:
    """The changes of layers between two traces of a call.

    Args:
        diff: the difference.
        before, after: what stands behind the two graphs.

    Attributes:
        parts: the changes in words.
        outside: the names of new, removed and changed nodes that are in no layer.
    """

    def __init__(self, diff: GraphDiff, before: ForeignRecord, after: ForeignRecord) -> None:
        self._before, self._after = before, after
        self._noun = "layer" if before.classes or after.classes else "scope"
        old, new = before.modules, after.modules
        replaced = _outermost([path for path in new if path in old and before.classes.get(path) != after.classes.get(path)])
        moved = {first: last for first, last in diff.renamed_scopes.items() if first in old and not _within(first, replaced)}
        gone = _outermost([path for path in old if path not in new and path not in moved and not _within(path, replaced)])
        come = _outermost([path for path in new if path not in old and path not in moved.values() and not _within(path, replaced)])
        whole = [*gone, *come, *replaced]
        touched = [name for name, change in diff.changed.items() if _is_own({part.kind for part in change.changes}, follows=change.follows)]
        failed, fails = [any(node.error for node in state.nodes.values()) for state in (diff.before, diff.after)]
        added, removed = (() if failed else diff.added), (() if fails else diff.removed)  # a call that fails does not reach the rest
        changed: dict[str, None] = {}
        self.outside: list[str] = []
        for name in (*added, *removed, *touched):
            owner = _owner(name, {**old, **new})
            if owner and not _within(owner, whole):
                changed[owner] = None
            elif not owner:
                self.outside.append(name)
        renamed = [f"{old[first]} \u2192 {new.get(last, last)}" for first, last in moved.items()]
        self.parts = [
            self._counted(*(("", come, " reached") if failed else ("+", come, "")), [self._titled(path, after) for path in come]),
            self._counted(*(("", gone, " not reached") if fails else ("\u2212", gone, "")), [self._titled(path, before) for path in gone]),
            self._counted("", replaced, " replaced", [self._exchanged(path) for path in replaced]),
            self._counted("", renamed, " renamed", renamed),
            self._counted("", list(changed), " changed", [self._titled(path, after) for path in changed]),
        ]

    def _counted(self, sign: str, paths: list[str], verb: str, titles: list[str]) -> str:
        if not paths:
            return ""
        names = ", ".join(titles[:MOST_NAMES]) + (", \u2026" if len(titles) > MOST_NAMES else "")
        return f"{sign}{len(paths):,} {self._noun}{'' if len(paths) == 1 else 's'}{verb} ({names})"

    def _titled(self, path: str, record: ForeignRecord) -> str:
        kind = record.classes.get(path) or self._before.classes.get(path, "")
        name = record.modules.get(path) or self._before.modules.get(path, path)
        return f"{name}: {kind}" if kind else name

    def _exchanged(self, path: str) -> str:
        kinds = [record.classes.get(path, "none") for record in (self._before, self._after)]
        return f"{self._after.modules[path]}: {kinds[0]} \u2192 {kinds[1]}"


def _is_own(kinds: set[str], *, follows: bool) -> bool:
    """True for changes of a node that do not only follow from others."""
    return not follows and bool(kinds & _OWN) and not (kinds & _REWIRED and not kinds & {"op", "attr", "device"})


def _outermost(paths: Iterable[str]) -> list[str]:
    every = list(paths)
    inside = set(every)
    return [path for path in every if not any(outer in inside for outer in _around(path))]


def _within(path: str, modules: Iterable[str]) -> bool:
    """True iff a path is that of one of some modules, or below it."""
    return any(path == module or path.startswith(f"{module}/") for module in modules)


def _around(path: str) -> Iterable[str]:
    parts = path.split("/")[:-1]
    return ["/".join(parts[: count + 1]) for count in range(len(parts))]


def _owner(name: str, modules: Mapping[str, str]) -> str:
    """The innermost module around a node, "" if there is none."""
    return next((path for path in reversed(list(_around(name))) if path in modules), "")
