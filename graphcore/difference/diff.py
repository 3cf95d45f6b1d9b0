"""The difference of two graphs as a value."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import msgspec

from graphcore.difference.changes import NodeChange
from graphcore.difference.regrouping import Correspondence
from graphcore.difference.scopes import renamed_scopes
from graphcore.difference.state import GraphState
from graphcore.difference.text import diff_text
from graphcore.support.shown import html_text, shown


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
