"""The correspondence of graphs of other frameworks in words: which nodes became which."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from graphcore.difference.kinds import MOVING, kind_of, traits_of
from graphcore.difference.regrouping import WAYS
from graphcore.op_names import plain_op

if TYPE_CHECKING:
    from graphcore.difference.diff import GraphDiff
    from graphcore.difference.regrouping import Regrouping
    from graphcore.difference.state import GraphState

MOST_GROUPS: Final = 12
"""The kinds of regroupings that are listed."""
MOST_PLACES: Final = 3
"""The places of a kind of regrouping that are named."""
MOST_OPS: Final = 6
"""The ops of a regrouping that are named."""
_NAMES: Final = {
    "onnx": "ONNX",
    "torch": "PyTorch",
    "aten": "PyTorch (ATen)",
    "tfl": "TFLite",
    "keras": "Keras",
    "jax": "JAX",
    "": "Graphloupe",
}


def headline(diff: GraphDiff) -> list[str]:
    """The counts of a difference between two frameworks."""
    across = diff.correspondence
    assert across is not None
    names = [_NAMES.get(word, word) for word in (across.before, across.after)]
    removed, added = len(diff.removed) - len(diff.explained[0]), len(diff.added) - len(diff.explained[1])
    return [
        f"{names[0]} → {names[1]}: {across.matched:,} of {across.computing[0]:,} ops matched with {across.matched:,} of {across.computing[1]:,}",
        regrouped_text(diff),
        f"{added:,} added" if added else "",
        f"{removed:,} removed" if removed else "",
    ]


def regrouped_text(diff: GraphDiff) -> str:
    """The count of nodes that became others, were left out or inserted, "" if there are none."""
    count = 0 if diff.correspondence is None else len(diff.correspondence.groups)
    return f"{count:,} regrouped" if count else ""


def group_lines(diff: GraphDiff) -> Iterable[str]:
    """The nodes that became others, those that became the same counted."""
    across = diff.correspondence
    if across is None:
        return
    alike: dict[tuple[str, str], list[Regrouping]] = {}
    for way in WAYS:
        for group in across.groups:
            if group.way == way:
                alike.setdefault(_words(diff, group), []).append(group)
    lines = [_line(*words, groups) for words, groups in sorted(alike.items(), key=lambda item: (WAYS.index(item[1][0].way), -len(item[1])))]
    yield from lines[:MOST_GROUPS]
    if len(lines) > MOST_GROUPS:
        yield f"… and {len(lines) - MOST_GROUPS:,} more kinds of regrouping"
    yield from _retyped(diff)
    if across.is_between_frameworks:
        yield from _other_ops(diff)


def renamings_explained(diff: GraphDiff) -> frozenset[str]:
    """The earlier names of renamed nodes that need no line.

    These are weights that follow, and parts of regroupings; between frameworks all.
    """
    across = diff.correspondence
    if across is None:
        return frozenset()
    if across.is_between_frameworks:
        return frozenset(diff.renamed)
    return across.followed.union(*[group.before for group in across.groups])


def text_of_group(diff: GraphDiff, group: Regrouping) -> str:
    """A regrouping in words, for a picture."""
    before, after = _words(diff, group)
    return _sentence(before, after, group)


def _words(diff: GraphDiff, group: Regrouping) -> tuple[str, str]:
    return _ops(diff.before, group.before), _ops(diff.after, group.after)


def _ops(state: GraphState, names: Iterable[str]) -> str:
    """The ops of some nodes, joined; of a module with one of them the class of the module."""
    words = [_class_of(state, name) or plain_op(state.nodes[name].op) for name in names]
    more = len(words) - MOST_OPS
    return " + ".join(words[:MOST_OPS]) + (f" + {more:,} more" if more > 0 else "")


def _class_of(state: GraphState, name: str) -> str:
    """The class of the module around a node if it is named like the op: `Conv2d` around conv2d."""
    kind, op = state.classes.get(name.rpartition("/")[0], ""), plain_op(state.nodes[name].op)
    if not op.islower():
        return ""  # an op of a file, which the class of a module would rename
    plain, word = _letters(kind), _letters(op)
    return kind if plain and word and (plain.startswith(word) or word.startswith(plain)) else ""


def _letters(text: str) -> str:
    return text.lower().replace("_", "")


def _line(before: str, after: str, groups: list[Regrouping]) -> str:
    group = groups[0]
    places = [place for place in dict.fromkeys([_place(group.before or group.after) for group in groups]) if place]
    count = len(groups)
    if count == 1:
        return _sentence(before, after, group, f" of {places[0]}" if places else "")
    named = ", ".join(places[:MOST_PLACES]) + (", …" if len(places) > MOST_PLACES else "")
    return f"{count:,} × {_sentence(before, after, group)}" + (f": {named}" if named else "")


def _sentence(before: str, after: str, group: Regrouping, of: str = "") -> str:
    if group.way == "left out":
        return f"{before}{of} left out"
    if group.way == "inserted":
        return f"{after}{of} inserted"
    if group.by:
        return f"{before}{of} became one {after} ({group.by})"
    is_fused = len(group.after) == 1 and len(group.before) > 1
    return f"{before}{of} became {'one ' if is_fused else ''}{after}"


def _place(names: tuple[str, ...]) -> str:
    """The innermost module around all of some nodes, by the last part of its name."""
    scopes = [name.split("/")[:-1] for name in names]
    same = 0
    while all(len(scope) > same and scope[same] == scopes[0][same] for scope in scopes):
        same += 1
    if same:
        return scopes[0][same - 1]
    return " and ".join([scope[-1] for scope in scopes[:2] if scope])


def _retyped(diff: GraphDiff) -> Iterable[str]:
    """The weights of other types, counted."""
    counts: Counter[tuple[str, str]] = Counter()
    for name, change in diff.changed.items():
        if traits_of(diff.after.nodes[name]).role in {"variable", "constant"}:
            counts.update((part.before, part.after) for part in change.of_kind("type"))
    for (old, new), count in counts.items():
        yield f"dtype {old} → {new} of {count:,} weight{'' if count == 1 else 's'}"


def _other_ops(diff: GraphDiff) -> Iterable[str]:
    """The names that ops have in the two frameworks, counted."""
    counts: Counter[tuple[str, str]] = Counter()
    for old, new in diff.pairs.items():
        a, b = diff.before.nodes[old], diff.after.nodes[new]
        if traits_of(a).role == "op" and kind_of(a) not in MOVING:
            counts[plain_op(a.op), plain_op(b.op)] += 1
    words = [f"{old} is {new}{f' ({count:,})' if count > 1 else ''}" for (old, new), count in counts.most_common(2 * MOST_OPS)]
    if words:
        yield f"ops under other names: {', '.join(words)}{', …' if len(counts) > len(words) else ''}"


def names_of_groups(diff: GraphDiff) -> tuple[Mapping[str, Regrouping], Mapping[str, Regrouping]]:
    """The regroupings of the earlier and the later nodes by their names."""
    groups = () if diff.correspondence is None else diff.correspondence.groups
    return {name: group for group in groups for name in group.before}, {name: group for group in groups for name in group.after}
