"""The difference of two graphs as a value, and in words: counts first, then the nodes by scope."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Final

import msgspec

from graphcore.difference.changes import NodeChange
from graphcore.difference.kinds import MOVING, kind_of, traits_of
from graphcore.difference.regrouping import WAYS, Correspondence, Regrouping
from graphcore.difference.scopes import renamed_scopes, scope_of_renaming
from graphcore.difference.state import GraphState
from graphcore.op_names import plain_op
from graphcore.support.shown import html_text, shown

_MOST_NODES: Final = 12
"""The nodes of a kind that are listed in one scope."""
_MOST_SCOPES: Final = 20
"""The scopes that are listed."""
_MOST_CHANGES: Final = 4
"""The changes of a node that are listed."""
_SIGNS: Final = {"added": "+", "removed": "−", "changed": "~", "renamed": "»"}
_MOST_GROUPS: Final = 12
"""The kinds of regroupings that are listed."""
_MOST_PLACES: Final = 3
"""The places of a kind of regrouping that are named."""
_MOST_OPS: Final = 6
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


class FunctionsDiff(msgspec.Struct, frozen=True, eq=False):
    """The difference of two function libraries; true iff there is one.

    Attributes:
        added, removed: names of functions.
        changed: the difference of the bodies of each function that has changed.
        renamed: the later names of functions whose bodies are equal.
        gradients: by function, its former and its later gradient function where these differ, "" for none.
    """

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: Mapping[str, GraphDiff] = {}
    renamed: Mapping[str, str] = {}
    gradients: Mapping[str, tuple[str, str]] = {}

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.changed or self.renamed or self.gradients)


class GraphDiff(msgspec.Struct, frozen=True, eq=False, dict=True):
    """The difference of a later state of a graph from an earlier one; true iff there is one. It prints in words.

    Attributes:
        before, after: the two states.
        pairs: the later name of each node that was there before and still is.
        added: names of new nodes.
        removed: former names of nodes that are gone.
        changed: the changes of nodes that are there before and after, by their later names.
        renamed: the later names of renamed nodes by their former ones. A node may be renamed and changed.
        functions: the difference of the libraries.
        correspondence: for graphs of other frameworks, the nodes that became others; None for two graphs of this library.
    """

    before: GraphState
    after: GraphState
    pairs: Mapping[str, str]
    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: Mapping[str, NodeChange]
    renamed: Mapping[str, str]
    functions: FunctionsDiff
    correspondence: Correspondence | None = None

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.changed or self.renamed or self.functions)

    @property
    def titles(self) -> tuple[str, str]:
        """The names of the two states, `before` and `after` for those that have none."""
        return self.before.title or "before", self.after.title or "after"

    @cached_property
    def renamed_scopes(self) -> dict[str, str]:
        """The later names of renamed scopes by their former ones. Their nodes are in `renamed` too."""
        return renamed_scopes(self.renamed)

    @property
    def is_between_frameworks(self) -> bool:
        """True iff the ops of the two states are of different frameworks."""
        return self.correspondence is not None and self.correspondence.is_between_frameworks

    @cached_property
    def explained(self) -> tuple[frozenset[str], frozenset[str]]:
        """The removed and the added nodes that became or replaced others, or only hold weights of such."""
        across = self.correspondence
        if across is None:
            return frozenset(), frozenset()
        before = {name for group in across.groups for name in group.before} | across.followers_before
        after = {name for group in across.groups for name in group.after} | across.followers_after
        return frozenset(before & self.removed_names), frozenset(after.intersection(self.added))

    @cached_property
    def removed_names(self) -> frozenset[str]:
        """The names in `removed`, for look-up."""
        return frozenset(self.removed)

    def __str__(self) -> str:
        return shown(diff_text(self))

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return f"<pre>{html_text(str(self))}</pre>"


def counts_text(added: int, removed: int, changed: int, renamed: int = 0) -> str:
    """Counts with their signs: `+3 −1 ~2`; "" if all are 0."""
    counts = zip(_SIGNS.values(), (added, removed, changed, renamed), strict=True)
    return " ".join([f"{sign}{count:,}" for sign, count in counts if count])


def diff_text(diff: GraphDiff) -> str:
    """The difference in words."""
    if not diff:
        return "No difference"
    own = [change for change in diff.changed.values() if not change.follows]
    following = [change for change in diff.changed.values() if change.follows]
    lines = [", ".join(filter(None, _summary(diff, len(own), len(following)))), *_group_lines(diff)]
    explained = diff.explained
    hidden = _renamings_explained(diff)
    own = [change for change in own if not _is_retyped_weight(diff, change)]
    scopes = {} if diff.is_between_frameworks else diff.renamed_scopes
    moved: set[tuple[str, str] | None] = {*scopes.items()}
    for old, new in sorted(scopes.items()):
        count = sum(1 for pair in diff.renamed.items() if scope_of_renaming(*pair) == (old, new))
        lines.append(f"{_SIGNS['renamed']} {_moved(old, new)} ({_counted(count, 'node')})")
    entries: dict[str, list[tuple[int, str]]] = {}
    for name in (name for name in diff.removed if name not in explained[0]):
        entries.setdefault(_scope_of(name), []).append((0, f"{_SIGNS['removed']} {_last(name)}  {_op(diff.before.nodes[name].op)}"))
    for name in (name for name in diff.added if name not in explained[1]):
        node = diff.after.nodes[name].node_def
        fed = f" <- {', '.join(node.input)}" if node.input else ""
        entries.setdefault(_scope_of(name), []).append((1, f"{_SIGNS['added']} {_last(name)}  {_op(node.op)}{_cut(fed)}"))
    for old, new in diff.renamed.items():
        if old not in hidden and scope_of_renaming(old, new) not in moved:
            entries.setdefault(_scope_of(new), []).append((2, f"{_SIGNS['renamed']} {old} is now {new}"))
    for change in own:
        entries.setdefault(_scope_of(change.name), []).append((3, f"{_SIGNS['changed']} {_last(change.name)}  {_changes(change)}"))
    lines.extend(_scope_lines(entries))
    if following:
        lines.append(f"{_counted(len(following), 'node')} of other types or shapes because of these: {_names(following)}")
    lines.extend(_function_lines(diff.functions))
    return "\n".join(lines)


def _is_retyped_weight(diff: GraphDiff, change: NodeChange) -> bool:
    """True for a weight of another framework of which only type or shape has changed.

    These are counted together.
    """
    is_retyped = diff.correspondence is not None and all(part.kind in {"type", "shape"} for part in change.changes)
    return is_retyped and traits_of(diff.after.nodes[change.name]).role in {"variable", "constant"}


def _summary(diff: GraphDiff, changed: int, following: int) -> list[str]:
    if diff.is_between_frameworks:
        return [*_headline(diff), f"{changed:,} changed" if changed else ""]
    functions = diff.functions
    added, removed = (
        len(names) - len(explained) for names, explained in zip((diff.added, diff.removed), reversed(diff.explained), strict=True)
    )
    count = len(functions.added) + len(functions.removed) + len(functions.changed) + len(functions.renamed)
    return [
        f"{added:,} added" if added else "",
        f"{removed:,} removed" if removed else "",
        _regrouped_text(diff),
        f"{changed:,} changed" if changed else "",
        f"{len(diff.renamed):,} renamed" if diff.renamed else "",
        f"{following:,} of other types or shapes" if following else "",
        f"{_counted(count, 'function')} different" if count else "",
        "other gradient functions" if functions.gradients and not count else "",
        f"{len(diff.pairs) - len(diff.changed) - sum(1 for new in diff.renamed.values() if new not in diff.changed):,} unchanged",
    ]


def _scope_lines(entries: dict[str, list[tuple[int, str]]]) -> Iterable[str]:
    scopes = sorted(entries)
    for scope in scopes[:_MOST_SCOPES]:
        scope_entries = entries[scope]
        if scope:
            yield f"{scope}/  {counts_text(*[sum(1 for kind, _ in scope_entries if kind == wanted) for wanted in (1, 0, 3, 2)])}"
        indent = "  " if scope else ""
        for kind in range(4):
            lines = [line for entry_kind, line in scope_entries if entry_kind == kind]
            yield from (indent + line for line in lines[:_MOST_NODES])
            if len(lines) > _MOST_NODES:
                yield f"{indent}{lines[0][0]} … and {len(lines) - _MOST_NODES:,} more"
    if len(scopes) > _MOST_SCOPES:
        left = sum(len(entries[scope]) for scope in scopes[_MOST_SCOPES:])
        yield f"… and {left:,} more in {_counted(len(scopes) - _MOST_SCOPES, 'scope')}"


def _function_lines(functions: FunctionsDiff) -> Iterable[str]:
    yield from (f"{_SIGNS['removed']} function {name}" for name in functions.removed)
    yield from (f"{_SIGNS['added']} function {name}" for name in functions.added)
    yield from (f"{_SIGNS['renamed']} function {old} is now {new}" for old, new in functions.renamed.items())
    for name, (old, new) in functions.gradients.items():
        yield f"{_SIGNS['changed']} gradient function of {name}: {old or 'none'} → {new or 'none'}"
    for name, diff in functions.changed.items():
        first, *more = (diff_text(diff) if diff else "signature or attrs differ").splitlines()
        yield f"{_SIGNS['changed']} function {name}: {first}"
        yield from (f"    {line}" for line in more)


def _changes(change: NodeChange) -> str:
    words = change.words()
    parts = words[:_MOST_CHANGES]
    if len(words) > _MOST_CHANGES:
        parts.append(f"and {len(words) - _MOST_CHANGES} more")
    return "; ".join(parts)


def _names(changes: Sequence[NodeChange]) -> str:
    return ", ".join([change.name for change in changes[:_MOST_CHANGES]]) + (", …" if len(changes) > _MOST_CHANGES else "")


def _op(op: str) -> str:
    return f"({op})"


def _moved(old: str, new: str) -> str:
    if old and new:
        return f"scope {old}/ is now {new}/"
    return f"now in scope {new}/" if new else f"no longer in scope {old}/"


def _scope_of(name: str) -> str:
    return name.rpartition("/")[0]


def _last(name: str) -> str:
    return name.rpartition("/")[2]


def _cut(text: str, most: int = 80) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


# ---- regroupings -------------------------------------------------------------------------------------------------------


def _headline(diff: GraphDiff) -> list[str]:
    """The counts of a difference between two frameworks."""
    across = diff.correspondence
    assert across is not None
    names = [_NAMES.get(word, word) for word in (across.before, across.after)]
    removed, added = len(diff.removed) - len(diff.explained[0]), len(diff.added) - len(diff.explained[1])
    return [
        f"{names[0]} → {names[1]}: {across.matched:,} of {across.computing[0]:,} ops matched with {across.matched:,} of {across.computing[1]:,}",
        _regrouped_text(diff),
        f"{added:,} added" if added else "",
        f"{removed:,} removed" if removed else "",
    ]


def _regrouped_text(diff: GraphDiff) -> str:
    """The count of nodes that became others, were left out or inserted, "" if there are none."""
    count = 0 if diff.correspondence is None else len(diff.correspondence.groups)
    return f"{count:,} regrouped" if count else ""


def _group_lines(diff: GraphDiff) -> Iterable[str]:
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
    yield from lines[:_MOST_GROUPS]
    if len(lines) > _MOST_GROUPS:
        yield f"… and {len(lines) - _MOST_GROUPS:,} more kinds of regrouping"
    yield from _retyped(diff)
    if across.is_between_frameworks:
        yield from _other_ops(diff)


def _renamings_explained(diff: GraphDiff) -> frozenset[str]:
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
    more = len(words) - _MOST_OPS
    return " + ".join(words[:_MOST_OPS]) + (f" + {more:,} more" if more > 0 else "")


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
    named = ", ".join(places[:_MOST_PLACES]) + (", …" if len(places) > _MOST_PLACES else "")
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
    words = [f"{old} is {new}{f' ({count:,})' if count > 1 else ''}" for (old, new), count in counts.most_common(2 * _MOST_OPS)]
    if words:
        yield f"ops under other names: {', '.join(words)}{', …' if len(counts) > len(words) else ''}"


def names_of_groups(diff: GraphDiff) -> tuple[Mapping[str, Regrouping], Mapping[str, Regrouping]]:
    """The regroupings of the earlier and the later nodes by their names."""
    groups = () if diff.correspondence is None else diff.correspondence.groups
    return {name: group for group in groups for name in group.before}, {name: group for group in groups for name in group.after}
