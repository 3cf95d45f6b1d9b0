"""Changes of single nodes, in words."""

from __future__ import annotations

from typing import Literal

import msgspec

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
            return f"no longer waits for {self.before}" if self.before else f"waits for {self.after}"
        if self.kind == "error":
            return f"error: {self.after}" if self.after else "no error any more"
        heads = {"attr": self.what, "input": f"input {self.what}", "placed": "placed on"}
        head = heads.get(self.kind) or (f"output {self.what}" if self.what else self.kind)
        return f"{head}: {self.before or 'none'} → {self.after or 'none'}"


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
        return "; ".join(map(str, self.changes))

    def of_kind(self, kind: ChangeKind) -> list[Change]:
        """The changes of one kind."""
        return [change for change in self.changes if change.kind == kind]
