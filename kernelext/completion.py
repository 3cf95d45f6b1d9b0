"""Completion of node names inside strings, and of the options of `%graph`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, Final

from IPython.core.completer import CompletionContext, SimpleCompletion, SimpleMatcherResult, context_matcher
from IPython.core.interactiveshell import InteractiveShell

from graphcore.graph import get_default_graph
from kernelext.graph_names import graph_of, matching_names

_TENSORS: Final = frozenset({"run", "get_tensor_by_name", "as_graph_element", "fetch"})
_NODES: Final = frozenset({"find", "get_operation_by_name"})
_CALL: Final = re.compile(
    r"(?P<object>[A-Za-z_]\w*)(?:\.\w+(?:\(\))?)*\.(?P<method>\w+)\([^()'\"]*(?:(['\"])[^'\"]*\3[^()'\"]*)*['\"](?P<typed>[^'\"]*)$"
)
_MAGIC: Final = re.compile(r"^\s*%graph\s+(?:.*\s)?(?P<typed>[\w-]*)$")
_MOST: Final = 300

WordSource = Callable[[str, dict[str, Any]], Iterable[str]]


class Completion:
    """Adds a matcher to the shell's completer.

    Args:
        shell: the IPython shell.
        magic_words: returns possible next words of a `%graph` line, from the text before the word and the user's variables.
    """

    def __init__(self, shell: InteractiveShell, magic_words: WordSource) -> None:
        self._shell = shell
        self._magic_words = magic_words
        self._matcher: Any = None

    def start(self) -> None:
        """Register the matcher."""

        @context_matcher(identifier="graphloupe")  # type: ignore[untyped-decorator]
        def matcher(context: CompletionContext) -> SimpleMatcherResult:
            return self._match(context)

        self._matcher = matcher
        self._shell.Completer.custom_matchers.append(matcher)

    def stop(self) -> None:
        """Unregister the matcher."""
        matchers = self._shell.Completer.custom_matchers
        if self._matcher in matchers:
            matchers.remove(self._matcher)

    def _match(self, context: CompletionContext) -> SimpleMatcherResult:
        before = context.line_with_cursor[: context.cursor_position]
        names = self.words(before)
        if names is None:
            return SimpleMatcherResult(completions=[])
        typed, words = names
        return SimpleMatcherResult(
            completions=[SimpleCompletion(text=word, type="node") for word in words[:_MOST]],
            matched_fragment=typed,
            suppress=bool(words),
            ordered=True,
        )

    def words(self, before: str) -> tuple[str, list[str]] | None:
        """The partial word before the cursor and its completions; None if there is nothing to complete."""
        magic = _MAGIC.match(before)
        if magic is not None:
            typed = magic["typed"]
            words = self._magic_words(before[: magic.start("typed")], self._shell.user_ns)
            return typed, [word for word in words if word.startswith(typed)]
        call = _CALL.search(before)
        if call is None or call["method"] not in _TENSORS | _NODES:
            return None
        graph = graph_of(self._shell.user_ns.get(call["object"]))
        if graph is None:
            graph = get_default_graph()
        return call["typed"], matching_names(graph, call["typed"], outputs=call["method"] in _TENSORS)
