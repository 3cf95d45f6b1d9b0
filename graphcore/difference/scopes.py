"""Renamed scopes: what renamed nodes have in common."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping


def renamed_scopes(renamed: Mapping[str, str]) -> dict[str, str]:
    """The later names of scopes by their former ones, for scopes of at least two renamed nodes."""
    counts: Counter[tuple[str, str]] = Counter(scope for old, new in renamed.items() if (scope := scope_of_renaming(old, new)) is not None)
    return {old: new for (old, new), count in counts.items() if count >= 2}


def scope_of_renaming(old: str, new: str) -> tuple[str, str] | None:
    """The former and later scope if only that is different, None if the name itself is. `""` is the outermost scope."""
    first, second = old.split("/"), new.split("/")
    same = 0
    while same < min(len(first), len(second)) and first[-1 - same] == second[-1 - same]:
        same += 1
    if same == 0:
        return None
    return "/".join(first[: len(first) - same]), "/".join(second[: len(second) - same])
