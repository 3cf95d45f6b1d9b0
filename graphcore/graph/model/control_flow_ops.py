"""The ops of which loops and branches are made."""

from __future__ import annotations

from typing import Final

ENTER: Final = frozenset({"Enter", "RefEnter"})
EXIT: Final = frozenset({"Exit", "RefExit"})
MERGE: Final = frozenset({"Merge", "RefMerge"})
SWITCH: Final = frozenset({"Switch", "RefSwitch"})
ANY_SWITCH: Final = SWITCH | {"_SwitchN"}
NEXT_ITERATION: Final = frozenset({"NextIteration", "RefNextIteration"})
LOOP_COND: Final = "LoopCond"
CONTROL_TRIGGER: Final = "ControlTrigger"
FRAME_OPS: Final = ENTER | EXIT | NEXT_ITERATION
"""Ops that move a value between frames or iterations."""
CONTROL_FLOW: Final = ANY_SWITCH | MERGE | FRAME_OPS | {LOOP_COND, CONTROL_TRIGGER}
"""Ops that choose which way values go, rather than compute."""


def is_back_edge(src_op: str, dst_op: str) -> bool:
    """True iff an edge between nodes of these ops may close a loop."""
    return src_op in NEXT_ITERATION and dst_op in MERGE
