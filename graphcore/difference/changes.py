"""Changes of single nodes, in words."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

MOST_NAMES: Final = 3
"""The control inputs that are named in words."""
ChangeKind = Literal["op", "attr", "input", "control", "type", "shape", "device", "placed", "error"]


class Change(msgspec.Struct, frozen=True):
    """One change of a node.

    Attributes:
        kind: what has changed; `device` is the requested device, `placed` the one that the placer assigned.
        what: the attr, or the number of the input or output; "" otherwise.
        before, after: the values in words, "" for none.
    """

    kind: ChangeKind
    what: str
    before: str
    after: str

    def __str__(self) -> str:
        if self.kind == "control":
            return _waits([self])
        if self.kind == "error":
            return f"error: {self.after}" if self.after else "no error any more"
        heads = {"attr": self.what, "input": f"input {self.what}", "placed": "placed on"}
        head = heads.get(self.kind) or (f"output {self.what}" if self.what else self.kind)
        return f"{head}: {self.before or 'none'} → {self.after or 'none'}"


def _last_parts(before: str, after: str) -> tuple[str, str]:
    """Two names without their scopes, unless these are the difference or the names are only numbers."""
    short = before.rpartition("/")[2], after.rpartition("/")[2]
    return (before, after) if short[0] == short[1] or any(name.startswith("_") for name in short) else short


def _waits(changes: list[Change]) -> str:
    """Control inputs that are all gone, or all new."""
    names = [change.before or change.after for change in changes]
    words = "no longer waits for" if changes[0].before else "waits for"
    more = f" and {len(names) - MOST_NAMES:,} more" if len(names) > MOST_NAMES else ""
    return f"{words} {', '.join(names[:MOST_NAMES])}{more}"


class NodeChange(msgspec.Struct, frozen=True):
    """The changes of one node.

    Attributes:
        name: its name now.
        before: its former name.
        changes: what has changed, the name excepted.
        follows: True iff nothing is different but types and shapes, which follow from a change before it.
    """

    name: str
    before: str
    changes: tuple[Change, ...]
    follows: bool = False

    def __str__(self) -> str:
        return "; ".join(self.words())

    def words(self) -> list[str]:
        """The changes in words; control inputs take at most two of them."""
        waits = self.of_kind("control")
        gone, new = [wait for wait in waits if wait.before], [wait for wait in waits if wait.after]
        return [*(str(change) for change in self.changes if change.kind != "control"), *(_waits(group) for group in (gone, new) if group)]

    def brief(self) -> str:
        """The changes in words for a picture, where the edges show the scopes of producers."""
        shortened = [
            Change(change.kind, change.what, *_last_parts(change.before, change.after)) if change.kind in ("input", "control") else change
            for change in self.changes
        ]
        return str(NodeChange(self.name, self.before, tuple(shortened)))

    def of_kind(self, kind: ChangeKind) -> list[Change]:
        """The changes of one kind."""
        return [change for change in self.changes if change.kind == kind]
