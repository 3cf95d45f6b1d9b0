"""Differences as text: counts first, then the nodes by scope."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from graphcore.difference.across_text import group_lines, headline, regrouped_text, renamings_explained
from graphcore.difference.kinds import traits_of
from graphcore.difference.scopes import scope_of_renaming

if TYPE_CHECKING:
    from graphcore.difference.changes import NodeChange
    from graphcore.difference.diff import FunctionsDiff, GraphDiff

MOST_NODES: Final = 12
"""The nodes of a kind that are listed in one scope."""
MOST_SCOPES: Final = 20
"""The scopes that are listed."""
MOST_CHANGES: Final = 4
"""The changes of a node that are listed."""
SIGNS: Final = {"added": "+", "removed": "−", "changed": "~", "renamed": "»"}


def counts_text(added: int, removed: int, changed: int, renamed: int = 0) -> str:
    """Counts with their signs: `+3 −1 ~2`; "" if all are 0."""
    counts = zip(SIGNS.values(), (added, removed, changed, renamed), strict=True)
    return " ".join([f"{sign}{count:,}" for sign, count in counts if count])


def diff_text(diff: GraphDiff) -> str:
    """The difference in words."""
    if not diff:
        return "No difference"
    own = [change for change in diff.changed.values() if not change.follows]
    following = [change for change in diff.changed.values() if change.follows]
    lines = [", ".join(filter(None, _summary(diff, len(own), len(following)))), *group_lines(diff)]
    explained = diff.explained
    hidden = renamings_explained(diff)
    own = [change for change in own if not _is_retyped_weight(diff, change)]
    scopes = {} if diff.is_between_frameworks else diff.renamed_scopes
    moved: set[tuple[str, str] | None] = {*scopes.items()}
    for old, new in sorted(scopes.items()):
        count = sum(1 for pair in diff.renamed.items() if scope_of_renaming(*pair) == (old, new))
        lines.append(f"{SIGNS['renamed']} {_moved(old, new)} ({_counted(count, 'node')})")
    entries: dict[str, list[tuple[int, str]]] = {}
    for name in (name for name in diff.removed if name not in explained[0]):
        entries.setdefault(_scope_of(name), []).append((0, f"{SIGNS['removed']} {_last(name)}  {_op(diff.before.nodes[name].op)}"))
    for name in (name for name in diff.added if name not in explained[1]):
        node = diff.after.nodes[name].node_def
        fed = f" <- {', '.join(node.input)}" if node.input else ""
        entries.setdefault(_scope_of(name), []).append((1, f"{SIGNS['added']} {_last(name)}  {_op(node.op)}{_cut(fed)}"))
    for old, new in diff.renamed.items():
        if old not in hidden and scope_of_renaming(old, new) not in moved:
            entries.setdefault(_scope_of(new), []).append((2, f"{SIGNS['renamed']} {old} is now {new}"))
    for change in own:
        entries.setdefault(_scope_of(change.name), []).append((3, f"{SIGNS['changed']} {_last(change.name)}  {_changes(change)}"))
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
        return [*headline(diff), f"{changed:,} changed" if changed else ""]
    functions = diff.functions
    added, removed = (
        len(names) - len(explained) for names, explained in zip((diff.added, diff.removed), reversed(diff.explained), strict=True)
    )
    count = len(functions.added) + len(functions.removed) + len(functions.changed) + len(functions.renamed)
    return [
        f"{added:,} added" if added else "",
        f"{removed:,} removed" if removed else "",
        regrouped_text(diff),
        f"{changed:,} changed" if changed else "",
        f"{len(diff.renamed):,} renamed" if diff.renamed else "",
        f"{following:,} of other types or shapes" if following else "",
        f"{_counted(count, 'function')} different" if count else "",
        "other gradient functions" if functions.gradients and not count else "",
        f"{len(diff.pairs) - len(diff.changed) - sum(1 for new in diff.renamed.values() if new not in diff.changed):,} unchanged",
    ]


def _scope_lines(entries: dict[str, list[tuple[int, str]]]) -> Iterable[str]:
    scopes = sorted(entries)
    for scope in scopes[:MOST_SCOPES]:
        scope_entries = entries[scope]
        if scope:
            yield f"{scope}/  {counts_text(*[sum(1 for kind, _ in scope_entries if kind == wanted) for wanted in (1, 0, 3, 2)])}"
        indent = "  " if scope else ""
        for kind in range(4):
            lines = [line for entry_kind, line in scope_entries if entry_kind == kind]
            yield from (indent + line for line in lines[:MOST_NODES])
            if len(lines) > MOST_NODES:
                yield f"{indent}{lines[0][0]} … and {len(lines) - MOST_NODES:,} more"
    if len(scopes) > MOST_SCOPES:
        left = sum(len(entries[scope]) for scope in scopes[MOST_SCOPES:])
        yield f"… and {left:,} more in {_counted(len(scopes) - MOST_SCOPES, 'scope')}"


def _function_lines(functions: FunctionsDiff) -> Iterable[str]:
    yield from (f"{SIGNS['removed']} function {name}" for name in functions.removed)
    yield from (f"{SIGNS['added']} function {name}" for name in functions.added)
    yield from (f"{SIGNS['renamed']} function {old} is now {new}" for old, new in functions.renamed.items())
    for name, (old, new) in functions.gradients.items():
        yield f"{SIGNS['changed']} gradient function of {name}: {old or 'none'} → {new or 'none'}"
    for name, diff in functions.changed.items():
        first, *more = (diff_text(diff) if diff else "signature or attrs differ").splitlines()
        yield f"{SIGNS['changed']} function {name}: {first}"
        yield from (f"    {line}" for line in more)


def _changes(change: NodeChange) -> str:
    words = change.words()
    parts = words[:MOST_CHANGES]
    if len(words) > MOST_CHANGES:
        parts.append(f"and {len(words) - MOST_CHANGES} more")
    return "; ".join(parts)


def _names(changes: Sequence[NodeChange]) -> str:
    return ", ".join([change.name for change in changes[:MOST_CHANGES]]) + (", …" if len(changes) > MOST_CHANGES else "")


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
