"""Lowering of While to Enter, Merge, Switch, NextIteration and Exit nodes for each loop variable.

They are in a frame named after the node.
"""

from __future__ import annotations

from collections.abc import Sequence

from graphcore import dtypes
from graphcore.attrs import AttrValue, Func
from graphcore.graph import Node, Tensor
from graphcore.passes.lower.lowering import Lowering, colocation_of


def lower_loop(lowering: Lowering) -> None:
    """Lower one While.

    Raises:
        InvalidArgumentError: its functions are missing or do not fit.
    """
    _LoopLowering(lowering).build()


class _LoopLowering:
    def __init__(self, lowering: Lowering) -> None:
        self.lowering = lowering
        self.node = lowering.node
        self.cond, self.body = lowering.func("cond"), lowering.func("body")
        self.goes_round = [dtype.base is not dtypes.resource for dtype in self.node.input_types]
        """For each loop variable, True unless it is a handle, which is loop-invariant."""
        self.colocation = colocation_of(self.node)

    def build(self) -> None:
        node, lowering = self.node, self.lowering
        enters = self.enter()
        merges = self.per_value("merge", "Merge", [[enter.outputs[0]] * 2 for enter in enters], {"N": 2})
        values = [enter.outputs[0] if merge is None else merge.outputs[0] for enter, merge in zip(enters, merges, strict=True)]
        first = next(merge for merge in merges if merge is not None)
        test = lowering.call("cond", self.cond, values, [first])
        continues = lowering.add(
            "LoopCond", "LoopCond", [self.condition(test)], self.colocation, [dtypes.bool_], [test] if self.acts(self.cond) else []
        )
        switches = self.per_value("switch", "Switch", [[value, continues.outputs[0]] for value in values], {})
        taken = [value if switch is None else switch.outputs[1] for value, switch in zip(values, switches, strict=True)]
        first_taken = next(switch for switch in switches if switch is not None).outputs[1]
        dtype = first_taken.dtype
        inside = lowering.add("loop_body_control", "Identity", [first_taken], {"T": dtype, **self.colocation}, [dtype])
        turn = lowering.call("body", self.body, taken, [inside])
        exits = self.per_value("exit", "Exit", [[] if switch is None else [switch.outputs[0]] for switch in switches], {})
        done = lowering.add("LoopExecuted", "NoOp", [], self.colocation, [], [exit_node for exit_node in exits if exit_node is not None])
        following = self.per_value("next_iteration", "NextIteration", [[tensor] for tensor in turn.outputs], {})
        for merge, after in zip(merges, following, strict=True):
            if merge is not None and after is not None:
                lowering.rewriting.feed(merge, 1, after.outputs[0])
                if self.acts(self.body):
                    lowering.rewriting.add_control(turn, after)
        outputs = [node.inputs[i] if exit_node is None else exit_node.outputs[0] for i, exit_node in enumerate(exits)]
        lowering.finish(outputs, done, awaits=False)

    def enter(self) -> list[Node]:
        node, lowering = self.node, self.lowering
        awaited = node.control_inputs
        before = [lowering.add("LoopControlInputs", "NoOp", [], self.colocation, [], awaited)] if awaited else []
        enters = []
        for tensor, goes_round in zip(node.inputs, self.goes_round, strict=True):
            attrs: dict[str, AttrValue] = {
                "T": tensor.dtype.base,
                "frame_name": node.name.encode(),
                "is_constant": not goes_round,
                "parallel_iterations": node.node_def.attr.get("parallel_iterations", 10),
            }
            enter = lowering.add_like("enter", "Enter", [tensor], attrs, [tensor.dtype.base], tensor.node)
            for control in before:
                lowering.rewriting.add_control(control, enter)
            enters.append(enter)
        return enters

    def per_value(self, label: str, op: str, inputs: Sequence[Sequence[Tensor]], attrs: dict[str, AttrValue]) -> list[Node | None]:
        """One node for each loop variable, on the device of its initial value; None for the others."""
        nodes: list[Node | None] = []
        for i, (tensors, goes_round) in enumerate(zip(inputs, self.goes_round, strict=True)):
            if not goes_round:
                nodes.append(None)
                continue
            dtype, like = self.node.input_types[i].base, self.node.inputs[i].node
            outputs = {"Merge": [dtype, dtypes.int32], "Switch": [dtype, dtype]}.get(op, [dtype])
            nodes.append(self.lowering.add_like(label, op, tensors, {"T": dtype, **attrs}, outputs, like))
        return nodes

    def condition(self, test: Node) -> Tensor:
        return self.lowering.as_bool(test.outputs[0])

    def acts(self, func: Func) -> bool:
        return self.lowering.has_state(func)
