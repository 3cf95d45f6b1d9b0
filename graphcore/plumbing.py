"""The names of control-flow and plumbing ops, which engines and passes carry out themselves.

All other ops are known by their traits; see `graphcore.traits`.
"""

from __future__ import annotations

from typing import Final

ENTER: Final = frozenset({"Enter", "RefEnter"})
EXIT: Final = frozenset({"Exit", "RefExit"})
MERGE: Final = frozenset({"Merge", "RefMerge"})
SWITCH: Final = frozenset({"Switch", "RefSwitch"})
SWITCH_N: Final = "_SwitchN"
ANY_SWITCH: Final = SWITCH | {SWITCH_N}
NEXT_ITERATION: Final = frozenset({"NextIteration", "RefNextIteration"})
LOOP_COND: Final = "LoopCond"
CONTROL_TRIGGER: Final = "ControlTrigger"
FRAME_OPS: Final = ENTER | EXIT | NEXT_ITERATION
"""Ops that move a value between frames or iterations."""
CONTROL_FLOW: Final = ANY_SWITCH | MERGE | FRAME_OPS | {LOOP_COND, CONTROL_TRIGGER}
"""Ops that choose which way values go, rather than compute."""

ARG: Final = frozenset({"_Arg", "_DeviceArg"})
"""The arguments of a function's body."""
USER_NAME: Final = "_user_specified_name"
"""The attr of an argument with the name that the user's code has for it."""
DECLARED_SHAPES: Final = "_declared_shapes"
"""The attr of a node of a body with the shapes of its outputs by `set_shape`, which its op cannot tell."""
STANDS_FOR: Final = "_stands_for"
"""The attr of a node that a run adds, with the name of the tensor it stands for: of a feed's argument, or of a late read of a variable."""
KEEPS_VALUE: Final = "_keeps_value"
"""The attr of an Identity of a variable that waits for its initializer: run for its sake, the initializer leaves a value as it is."""
VALUE_OF: Final = "_value_of"
"""The attr of a VarHandleOp with the name of the reference variable whose storage it is a handle of."""
RETVAL: Final = frozenset({"_Retval", "_DeviceRetval"})
"""The results of a function's body."""
PLACEHOLDER: Final = frozenset({"Placeholder", "PlaceholderV2"})
"""Ops that have a value only where one is fed."""
FEEDABLE: Final = PLACEHOLDER | {"PlaceholderWithDefault"}
"""Ops that stand for a value that a caller may feed."""
SEND: Final = frozenset({"_Send", "_HostSend"})
RECV_ON_DEVICE: Final = "_Recv"
RECV: Final = frozenset({RECV_ON_DEVICE, "_HostRecv"})

CALL: Final = frozenset({"PartitionedCall", "StatefulPartitionedCall"})
"""Ops that call one function."""
SYMBOLIC_GRADIENT: Final = "SymbolicGradient"
IF: Final = frozenset({"If", "StatelessIf"})
CASE: Final = frozenset({"Case", "StatelessCase"})
BRANCH: Final = IF | CASE
"""Ops that call one of several functions."""
WHILE: Final = frozenset({"While", "StatelessWhile"})
FAKE_PARAM: Final = "FakeParam"
"""The op that stands in a branch for a value which only another branch computes."""
MAP_GRADIENT: Final = "MapAccumulateGrad"
LIST_CONVERTERS: Final = frozenset({"_ListToArray", "_ArrayToList"})
"""Ops that fit a list of tensors to an argument of another type."""
CONST: Final = "Const"
IDENTITY: Final = "Identity"
NO_OP: Final = "NoOp"


def is_back_edge(src_op: str, dst_op: str) -> bool:
    """True iff an edge between nodes of these ops may close a loop."""
    return src_op in NEXT_ITERATION and dst_op in MERGE
