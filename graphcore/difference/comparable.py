"""The tensors of two states that should be equal in runs of both."""

from __future__ import annotations

from collections.abc import Iterable

from graphcore.difference.diff import GraphDiff
from graphcore.difference.kinds import is_passive, traits_of
from graphcore.difference.state import GraphState
from graphcore.difference.wiring import parse_input


def tensors_to_compare(diff: GraphDiff) -> dict[str, str]:
    """The nodes of the later state whose first outputs should be those of earlier nodes.

    Of nodes that became others these are the last ones. Between frameworks, nodes that only move values are left out: one may be moved
    in several ways.
    """
    groups = [] if diff.correspondence is None else [group for group in diff.correspondence.groups if group.way == "became"]
    grouped = {name for group in groups for name in group.before}
    pairs = {
        old: new
        for old, new in diff.pairs.items()
        if old not in grouped and _computes(diff.before, old) and not (diff.is_between_frameworks and is_passive(diff.before.nodes[old]))
    }
    return pairs | {group.before[-1]: group.after[-1] for group in groups}


def _computes(state: GraphState, name: str) -> bool:
    return traits_of(state.nodes[name]).role == "op"


def unmatched_before(diff: GraphDiff, old: str, new: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The computing nodes right before two matched ones that only one state has, of each state."""
    removed = [name for name in diff.removed if name not in diff.explained[0]]
    added = [name for name in diff.added if name not in diff.explained[1]]
    return _behind(diff.before, old, removed), _behind(diff.after, new, added)


def _behind(state: GraphState, name: str, wanted: Iterable[str]) -> tuple[str, ...]:
    left = set(wanted)
    names: list[str] = []
    waiting = [name]
    while waiting:
        for text in state.nodes[waiting.pop()].node_def.input:
            producer = parse_input(text)[0]
            if producer in left:
                left.discard(producer)
                waiting.append(producer)
                if _computes(state, producer):
                    names.append(producer)
    return tuple(names)
