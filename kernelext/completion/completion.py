"""Completion in strings (names of nodes, devices, values of attrs) and of the words of magics."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from IPython.core.completer import CompletionContext, SimpleCompletion, SimpleMatcherResult, context_matcher
from IPython.core.interactiveshell import InteractiveShell

from graphcore.graph import Graph, get_default_graph
from graphcore.registry import op_registry
from kernelext.completion.open_string import Bracket, OpenString, open_string
from kernelext.graph_line import FOCUS
from kernelext.graph_names import (
    allowed_values,
    beginning,
    device_names,
    feedable_names,
    function_names,
    graph_of,
    matching_names,
    own_names,
)
from kernelext.guard import Guard
from kernelext.magics import FEEDING, NAMING, QUESTIONS

_TENSORS: Final = frozenset({"run", "get_tensor_by_name", "as_graph_element", "fetch"})
_NODES: Final = frozenset({"find", "get_operation_by_name"})
_OPS: Final = {"apply_op": 0, "look_up": 0, "look_up_op_def": 0, "NodeDefBuilder": 1, "NodeBuilder": 1, "create_op": 0}
"""Functions with the name of an op among their arguments, and its place."""
_FEEDING: Final = frozenset({"run", "eval"})
_FEEDS: Final = re.compile(r"\bfeed\w*\s*(:[^=]*)?=\s*$")
_MAGIC: Final = re.compile(r"^\s*(?:[\w, ]+=\s*)?%(?P<name>\w+)\s+(?P<before>.*\s)?(?P<typed>\S*)$")
_CELL_MAGIC: Final = re.compile(r"^%%graph\s+(?P<typed>\w*)$")
_MOST: Final = 300

Words = tuple[str, list[str], str]
"""The word that was begun, the words that it may be, and their kind, for icons."""
WordSource = Callable[[str, str, dict[str, Any]], list[str]]


class Completion:
    """Adds a matcher to the shell's completer.

    Args:
        shell: the IPython shell.
        magic_words: returns possible next words of a `%graph` line, from the text before, the beginning of the word, and the user's
            variables.
        guard: keeps failures away from the user.
    """

    def __init__(self, shell: InteractiveShell, magic_words: WordSource, guard: Guard) -> None:
        self._shell = shell
        self._magic_words = magic_words
        self._guard = guard
        self._matcher: Any = None

    def start(self) -> None:
        """Register the matcher."""

        @context_matcher(identifier="graphloupe")  # type: ignore[untyped-decorator]  # IPython gives it no types
        def matcher(context: CompletionContext) -> SimpleMatcherResult:
            results = [SimpleMatcherResult(completions=[])]
            with self._guard("completing a word"):
                results.append(self._match(context))
            return results[-1]

        self._matcher = matcher
        self._shell.Completer.custom_matchers.append(matcher)

    def stop(self) -> None:
        """Unregister the matcher."""
        matchers = self._shell.Completer.custom_matchers
        if self._matcher in matchers:
            matchers.remove(self._matcher)

    def _match(self, context: CompletionContext) -> SimpleMatcherResult:
        lines = context.full_text.split("\n")[: context.cursor_line]
        before = "\n".join([*lines, context.line_with_cursor[: context.cursor_position]])
        names = self.words(before)
        if names is None:
            return SimpleMatcherResult(completions=[])
        typed, words, kind = names
        return SimpleMatcherResult(
            completions=[SimpleCompletion(text=word, type=kind) for word in words[:_MOST]],
            matched_fragment=typed,
            suppress=bool(words),
            ordered=True,
        )

    def words(self, before: str) -> Words | None:
        """The partial word at the end of the text before the cursor, its completions, and their kind.

        None if there is nothing to complete.
        """
        line = before.rpartition("\n")[2]
        if magic := _MAGIC.match(line):
            return self._after_magic(magic)
        if cell := _CELL_MAGIC.match(before):
            graphs = [name for name, value in self._shell.user_ns.items() if isinstance(value, Graph)]
            return cell["typed"], beginning(cell["typed"], sorted(own_names(graphs))), "graph"
        string = open_string(before)
        return None if string is None or not string.brackets else self._in_brackets(string)

    def _in_brackets(self, string: OpenString) -> Words | None:
        """The completions of a string in brackets; None if any text is as good."""
        typed, inner = string.typed, string.brackets[-1]
        call = next((bracket for bracket in reversed(string.brackets) if bracket.kind == "(" and bracket.callee), None)
        if inner.is_key:
            fed = _FEEDS.search(string.statement) or any(bracket.keyword.startswith("feed") for bracket in string.brackets)
            if not fed and not (call is not None and call.callee in _FEEDING and (call.place > 0 or call.callee == "eval")):
                return None
            return typed, feedable_names(self._graph("" if call is None else call.object), typed), "node"
        if inner.kind == "[" and self._is_graph(inner):
            return typed, matching_names(self._graph(inner.object), typed, outputs=True), "node"
        if call is None:
            return None
        if call.callee in _TENSORS | _NODES and call.place == 0:
            return typed, matching_names(self._graph(call.object), typed, outputs=call.callee in _TENSORS), "node"
        if call.callee == "device":
            return typed, beginning(typed, device_names(get_default_graph())), "device"
        if _OPS.get(call.callee) == call.place:
            return typed, beginning(typed, sorted(op_registry.names())), "op"
        values = allowed_values(call.callee, call.keyword or call.place)
        return (typed, beginning(typed, values), "value") if values else None

    def _is_graph(self, bracket: Bracket) -> bool:
        """True iff what is indexed by a bracket is a graph: a variable, or the default graph."""
        is_variable = isinstance(self._shell.user_ns.get(bracket.object), Graph) and bracket.callee == bracket.object
        return is_variable or bracket.callee == get_default_graph.__name__

    def _after_magic(self, magic: re.Match[str]) -> Words | None:
        name, typed, before = magic["name"], magic["typed"], magic["before"] or ""
        variables = self._shell.user_ns
        if name == "graph":
            return typed, self._magic_words(before, typed, variables), "node" if before.split()[-1:] == [FOCUS] else "option"
        if name not in NAMING:
            return None
        if name == "why" and not before.strip():
            return typed, beginning(typed, QUESTIONS), "option"
        if name == "func":
            return typed, function_names(variables, typed), "function"
        if name == "nodes" and typed.startswith("op:"):
            return typed, beginning(typed, sorted({f"op:{node.op}" for node in get_default_graph().op_nodes()})), "op"
        fed, is_feed, _ = typed.partition("=")
        if is_feed and name in FEEDING:
            values = [word for word, value in variables.items() if graph_of(value) is None and not callable(value)]
            return typed, beginning(typed, [f"{fed}={word}" for word in sorted(own_names(values))]), "feed"
        own = beginning(typed, sorted(own_names(word for word, value in variables.items() if graph_of(value) is not None)))
        return typed, list(dict.fromkeys([*own, *matching_names(get_default_graph(), typed, outputs=True)])), "node"

    def _graph(self, name: str) -> Graph:
        return graph_of(self._shell.user_ns.get(name)) or get_default_graph()
