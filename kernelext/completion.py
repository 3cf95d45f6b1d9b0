"""Completion in strings (names of nodes, devices, values of attrs) and of the words of magics."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, Final

from IPython.core.completer import CompletionContext, SimpleCompletion, SimpleMatcherResult, context_matcher
from IPython.core.interactiveshell import InteractiveShell

from graphcore.graph import Graph, get_default_graph
from kernelext.graph_names import allowed_values, device_names, feedable_names, function_names, graph_of, matching_names
from kernelext.magics import NAMING, QUESTIONS

_TENSORS: Final = frozenset({"run", "get_tensor_by_name", "as_graph_element", "fetch"})
_NODES: Final = frozenset({"find", "get_operation_by_name"})
_CALL: Final = re.compile(
    r"(?P<object>[A-Za-z_]\w*)(?:\.\w+(?:\(\))?)*\.(?P<method>\w+)\([^()'\"]*(?:(['\"])[^'\"]*\3[^()'\"]*)*['\"](?P<typed>[^'\"]*)$"
)
_ITEM: Final = re.compile(r"(?P<object>[A-Za-z_]\w*)(?:\.\w+(?:\(\))?)*\[['\"](?P<typed>[^'\"]*)$")
_FEED: Final = re.compile(r"(?P<object>[A-Za-z_]\w*)\.(?:run|eval)\(.*\{(?:[^{}]*,)?\s*['\"](?P<typed>[^'\"]*)$")
_DEVICE: Final = re.compile(r"\bdevice\(['\"](?P<typed>[^'\"]*)$")
_ATTR: Final = re.compile(r"\.(?P<function>\w+)\([^()]*(?:\([^()]*\)[^()]*)*\b(?P<attr>\w+)=['\"](?P<typed>[^'\"]*)$")
_MAGIC: Final = re.compile(r"^\s*%(?P<name>\w+)\s+(?P<before>.*\s)?(?P<typed>\S*)$")
_MOST: Final = 300

WordSource = Callable[[str, dict[str, Any]], Iterable[str]]


class Completion:
    """Adds a matcher to the shell's completer.

    Args:
        shell: the IPython shell.
        magic_words: returns possible next words of a `%graph` line, from its words before and the user's variables.
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
        if magic := _MAGIC.match(before):
            return self._after_magic(magic)
        if feed := _FEED.search(before):
            return feed["typed"], feedable_names(self._graph(feed["object"]), feed["typed"])
        if (call := _CALL.search(before)) and call["method"] in _TENSORS | _NODES:
            return call["typed"], matching_names(self._graph(call["object"]), call["typed"], outputs=call["method"] in _TENSORS)
        if (item := _ITEM.search(before)) and isinstance(self._shell.user_ns.get(item["object"]), Graph):
            return item["typed"], matching_names(self._graph(item["object"]), item["typed"], outputs=True)
        if device := _DEVICE.search(before):
            return device["typed"], [name for name in device_names(get_default_graph()) if name.startswith(device["typed"])]
        if attr := _ATTR.search(before):
            return attr["typed"], [value for value in allowed_values(attr["function"], attr["attr"]) if value.startswith(attr["typed"])]
        return None

    def _after_magic(self, magic: re.Match[str]) -> tuple[str, list[str]] | None:
        name, typed, before = magic["name"], magic["typed"], magic["before"] or ""
        variables = self._shell.user_ns
        if name == "graph":
            return typed, [word for word in self._magic_words(before, variables) if word.startswith(typed)]
        if name not in NAMING:
            return None
        if name == "why" and not before.strip():
            return typed, [word for word in QUESTIONS if word.startswith(typed)]
        if name == "func":
            return typed, function_names(variables, typed)
        own = [
            word for word, value in variables.items() if not word.startswith("_") and graph_of(value) is not None and word.startswith(typed)
        ]
        return typed, list(dict.fromkeys([*sorted(own), *matching_names(get_default_graph(), typed, outputs=True)]))

    def _graph(self, name: str) -> Graph:
        return graph_of(self._shell.user_ns.get(name)) or get_default_graph()
