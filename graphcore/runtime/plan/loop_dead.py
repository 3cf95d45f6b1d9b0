"""Records of dead nodes in a plan: branches that are not taken, loops that do not begin.

The rules are those of dead values: a node is dead if any input is, a Merge if all its inputs are, a ControlTrigger never.
A loop that does not begin is dead in its first iteration, except for nodes that depend only on live values entering it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from graphcore.graph.control_flow.analysis import ControlFlow
from graphcore.graph.model.node import Node
from graphcore.plumbing import CONTROL_TRIGGER, MERGE
from graphcore.runtime.core.events import UNNEEDED
from graphcore.runtime.plan.loop_schedule import enter_phase
from graphcore.runtime.plan.loop_structure import INSIDE, PlannedLoop
from graphcore.runtime.plan.plan_instrumentation import Note


def dead_phase(flow: ControlFlow, loop: PlannedLoop, phase: int) -> list[Note]:
    """The records of a phase of `loop` in an iteration in which it does not run."""
    notes: list[Note] = []
    for unit in loop.phases[phase]:
        if unit.node is not None:
            notes.append(_note(unit.node, unit.node.op == CONTROL_TRIGGER, ()))
        if unit.loop is None:
            continue
        enters = {enter: enter_phase(flow, loop, enter) for enter in unit.loop.enters}
        notes += [Note(enter.name) for enter, own in enters.items() if own == phase]
        notes += _dead_loop(unit.loop, [enter for enter, own in enters.items() if own != phase])
    if phase == INSIDE:
        notes += [Note(variable.next.name) for variable in loop.variables]
    return notes


def dead_loop(flow: ControlFlow, loop: PlannedLoop) -> list[Note]:
    """The records of a loop on a branch that is not taken, without its Enters."""
    return _dead_loop(loop, [enter for enter, guard in flow.loops[loop.name].entering.items() if not guard])


def _dead_loop(loop: PlannedLoop, entering: Iterable[Node], around: tuple[str, ...] = ()) -> list[Note]:
    """The records of a loop that does not begin; the Enters `entering` are live."""
    alive, frames = set(entering), (*around, loop.name)
    notes = [Note(variable.merge.name, frames=frames) for variable in loop.variables]
    for unit in [unit for phase in loop.phases for unit in phase]:
        for node in unit.nodes:
            if _is_alive(node, alive):
                alive.add(node)
            notes.append(_note(node, node in alive, frames))
        if unit.loop is not None:
            notes += _dead_loop(unit.loop, [enter for enter in unit.loop.enters if enter in alive], frames)
    return notes + [Note(variable.next.name, frames=frames) for variable in loop.variables]


def _is_alive(node: Node, alive: Collection[Node]) -> bool:
    if node.op == CONTROL_TRIGGER:
        return True
    inputs = [tensor.node in alive for tensor in node.inputs]
    return all(control in alive for control in node.control_inputs) and (any(inputs) if node.op in MERGE else all(inputs))


def _note(node: Node, is_alive: bool, frames: tuple[str, ...]) -> Note:
    return Note(node.name, UNNEEDED if is_alive else "", frames)
