"""Nodes that depend on constants and sizes alone, such as masks, in scopes of their own."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from graphcore.frontends.foreign_ops import draws_at_random, foreign_traits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from graphcore.frontends.foreign import ForeignNode

SCOPE: Final = "constants"
"""The last part of the names of these scopes."""
FEW: Final = 6
"""Fewer nodes than this stay where they are."""
_ENDS: Final = frozenset({"input", "parameter", "buffer"})


def gather_constants(nodes: Sequence[ForeignNode], placed: list[tuple[str, str]]) -> dict[str, str]:
    """Move nodes that depend on constants and sizes alone into a scope, where there are many of them.

    A few that serve a single op, such as weights that an exporter computes, stay: views fold them into that op.

    Modules that depend on these and on buffers alone, such as tables of rotations, lie in it as well. All that these nodes depend on is among
    them, so no other node lies between two of them.

    Args:
        placed: the scope and the last part of the name of each node.

    Returns:
        The new paths of scopes that are moved, by the old ones.
    """
    derived = _derived(nodes, {"constant"})
    if len(derived) < FEW:
        return {}
    fixed = _shared_ones(nodes, derived)
    here = Counter([placed[number][0] for number in fixed])
    everything = Counter([placed[number][0] for number, node in enumerate(nodes) if node.kind == "op"])
    inner = {scope for scope, _ in placed}
    gathered = {
        scope: f"{scope}/{SCOPE}" if scope else SCOPE
        for scope, count in here.items()
        if count >= FEW and (count < everything[scope] or any(other != scope and other.startswith(_below(scope)) for other in inner))
    }
    gathered = {scope: path for scope, path in gathered.items() if path not in inner}
    if not gathered:
        return {}
    stored = set(_derived(nodes, {"constant", "buffer"}))
    others = {placed[number][0] for number, node in enumerate(nodes) if node.kind == "op" and number not in stored}
    moved = {}
    for scope in inner:
        around = scope.rpartition("/")[0]
        if scope and scope not in gathered and around in gathered and not any(f"{other}/".startswith(f"{scope}/") for other in others):
            moved[scope] = f"{gathered[around]}/{scope[len(_below(around)) :]}"
    for number, (scope, leaf) in enumerate(placed):
        if number in fixed and scope in gathered:
            placed[number] = gathered[scope], leaf
            continue
        whole = next((old for old in moved if f"{scope}/".startswith(f"{old}/")), None) if moved else None
        if whole is not None:
            placed[number] = moved[whole] + scope[len(whole) :], leaf
    return moved


def _below(scope: str) -> str:
    """The beginning of the paths of all that is in a scope."""
    return f"{scope}/" if scope else ""


def _derived(nodes: Sequence[ForeignNode], kinds: set[str]) -> dict[int, None]:
    """The places of ops that depend on nodes of some kinds, and on the sizes of inputs, alone."""
    ends = {node.name for node in nodes if node.kind in _ENDS}
    names = {node.name for node in nodes if node.kind in kinds}
    places: dict[int, None] = {}
    for number, node in enumerate(nodes):
        if node.kind != "op" or node.bodies or draws_at_random(node.op):
            continue
        sources = [ref[0] for ref in node.inputs if ref is not None]
        is_size = foreign_traits(node.op).needs_only_shapes and all(source in ends for source in sources)
        if is_size or (all(source in names for source in sources) and (node.outputs or sources)):
            names.add(node.name)
            places[number] = None
    return places


def _shared_ones(nodes: Sequence[ForeignNode], derived: dict[int, None]) -> dict[int, None]:
    """The derived ops without those that are a few in a row to a single op that is not derived."""
    numbers: dict[str, int] = {}
    uses: dict[int, list[int]] = {}
    sizes: dict[int, int] = {}
    for number, node in enumerate(nodes):
        sources = {numbers[ref[0]] for ref in node.inputs if ref is not None and ref[0] in numbers} & derived.keys()
        for source in sources:
            uses.setdefault(source, []).append(number)
        numbers[node.name] = number
        if number in derived:
            sizes[number] = 1 + sum([sizes[source] for source in sources])
    alone: set[int] = set()
    for number in reversed(derived):
        users = uses.get(number, [])
        if len(users) == 1 and (users[0] in alone or (users[0] not in derived and sizes[number] <= FEW)):
            alone.add(number)
    return {number: None for number in derived if number not in alone}
