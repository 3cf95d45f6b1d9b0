"""DOT text: graphs, subgraphs as scopes, attributes, chains of edges, ports."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from graphcore.errors import InvalidArgumentError, ResourceExhaustedError
from graphcore.frontends.object_reader.dot_syntax import Token, line_of, tokens_of
from graphcore.frontends.object_reader.plain import PlainNode, plain_graph

if TYPE_CHECKING:
    from graphcore.frontends.foreign import ForeignGraph

_BEGINNING: Final = re.compile(
    r"\s*(?:(?://[^\n]*|/\*.*?\*/|#[^\n]*)\s*)*(?:strict\s+)?(?:di)?graph\b[^;=\[\]{}]{0,2000}\{", re.DOTALL | re.IGNORECASE
)
_LINES: Final = re.compile(r"\\[nlr]")
_MAX_DEPTH: Final = 100
_MAX_EDGES: Final = 1_000_000
_MAX_NAME: Final = 500


def is_dot(text: str) -> bool:
    """True iff a text begins as DOT does."""
    return _BEGINNING.match(text[:4096]) is not None


def read_dot(text: str) -> ForeignGraph:
    """A DOT text as a graph; labels of nodes are their docs, subgraphs their scopes.

    Raises:
        InvalidArgumentError: it is no DOT text, or its graph is undirected.
        ResourceExhaustedError: it is too large.
    """
    return _Reader(text).read()


@dataclass(slots=True)
class _Scope:
    """A graph or subgraph while it is read: path, defaults of attributes, nodes that it names."""

    path: tuple[str, ...]
    node_defaults: dict[str, str]
    edge_defaults: dict[str, str]
    attrs: dict[str, str] = field(default_factory=dict)
    members: dict[str, None] = field(default_factory=dict)


class _Reader:
    """Reads one text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = tokens_of(text)
        self._place = 0
        self._nodes: dict[str, PlainNode] = {}
        self._edges = 0
        self._titles: dict[tuple[str, ...], str] = {}

    def read(self) -> ForeignGraph:
        """The graph."""
        is_strict = self._takes_word("strict")
        if self._takes_word("graph"):
            raise InvalidArgumentError(
                "Required a directed graph, `digraph { a -> b }`, got an undirected one, whose edges say nothing on the order of nodes"
            )
        if not self._takes_word("digraph"):
            raise self._unexpected("digraph")
        name = self._next().text if self._is_id() else ""
        root = _Scope((), {}, {})
        self._body(root, 0)
        for node in self._nodes.values():
            node.scopes = tuple([self._titles.get(node.scopes[: count + 1], part) for count, part in enumerate(node.scopes)])
            if is_strict:
                kept = {source: place for place, source in reversed(list(enumerate(node.sources)))}
                places = sorted(kept.values())
                node.sources, node.labels = [node.sources[place] for place in places], [node.labels[place] for place in places]
        facts = {word: value[:200] for word, value in list(root.attrs.items())[:50]}
        return plain_graph("DOT graph", self._nodes, name=name[:_MAX_NAME], facts=facts)

    # ---- tokens ----

    def _peek(self) -> Token | None:
        return self._tokens[self._place] if self._place < len(self._tokens) else None

    def _next(self) -> Token:
        token = self._peek()
        if token is None:
            raise InvalidArgumentError("The DOT text ends within a graph")
        self._place += 1
        return token

    def _is_id(self) -> bool:
        token = self._peek()
        return token is not None and token.is_id

    def _is_mark(self, *marks: str) -> bool:
        token = self._peek()
        return token is not None and not token.is_id and token.text in marks

    def _takes(self, *marks: str) -> bool:
        if self._is_mark(*marks):
            self._place += 1
            return True
        return False

    def _takes_word(self, word: str) -> bool:
        token = self._peek()
        if token is not None and token.is_word and token.text.lower() == word:
            self._place += 1
            return True
        return False

    def _unexpected(self, wanted: str) -> InvalidArgumentError:
        token = self._peek()
        if token is None:
            return InvalidArgumentError(f"The DOT text ends; required {wanted}")
        return InvalidArgumentError(f"DOT text, {line_of(self._text, token.place)}: required {wanted}, got {token.text[:60]!r}")

    def _id(self) -> str:
        if not self._is_id():
            raise self._unexpected("a name")
        text = self._next().text
        while self._takes("+"):
            text += self._next().text
        return text

    # ---- statements ----

    def _body(self, scope: _Scope, depth: int) -> None:
        """The statements in braces."""
        if depth > _MAX_DEPTH:
            raise ResourceExhaustedError(f"The DOT text has subgraphs within each other, more than {_MAX_DEPTH} deep")
        if not self._takes("{"):
            raise self._unexpected("{")
        while not self._takes("}"):
            if not self._takes(";", ","):
                self._statement(scope, depth)
        if scope.path and scope.attrs.get("label"):
            self._titles[scope.path] = _one_line(scope.attrs["label"])

    def _statement(self, scope: _Scope, depth: int) -> None:
        for word, target in (("node", scope.node_defaults), ("edge", scope.edge_defaults), ("graph", scope.attrs)):
            if self._takes_word(word):
                target |= self._attributes()
                return
        following = self._tokens[self._place + 1] if self._place + 1 < len(self._tokens) else None
        if self._is_id() and following is not None and not following.is_id and following.text == "=":
            word = self._id()
            self._next()
            scope.attrs[word] = self._id()
            return
        ends = [self._end(scope, depth)]
        while self._is_mark("->", "--"):
            if self._next().text == "--":
                raise InvalidArgumentError("Required a directed graph, with edges `->`, got an edge `--`")
            ends.append(self._end(scope, depth))
        attributes = self._attributes()
        if len(ends) == 1:
            names, is_subgraph = ends[0]
            if not is_subgraph:
                self._describe(names[0], attributes)
            return
        attrs = {**scope.edge_defaults, **attributes}
        for (sources, _), (targets, _) in pairwise(ends):
            self._join(sources, targets, attrs)

    def _end(self, scope: _Scope, depth: int) -> tuple[list[str], bool]:
        """The nodes at an end of an edge, and whether they are those of a subgraph."""
        if self._is_mark("{"):
            inner = _Scope(scope.path, dict(scope.node_defaults), dict(scope.edge_defaults))
        elif self._takes_word("subgraph"):
            name = self._id() if self._is_id() else ""
            part = re.sub(r"^cluster_?", "", name) or name
            path = (*scope.path, part[:_MAX_NAME]) if part else scope.path
            inner = _Scope(path, dict(scope.node_defaults), dict(scope.edge_defaults))
        else:
            name = self._id()
            for _ in range(2):  # a port and a point of the compass
                if self._takes(":"):
                    self._id()
            scope.members[name] = None
            if name not in self._nodes:
                self._nodes[name] = PlainNode("dot.Node", scopes=scope.path)
                self._describe(name, scope.node_defaults)
            elif len(scope.path) > len(self._nodes[name].scopes):
                self._nodes[name].scopes = scope.path
            return [name], False
        self._body(inner, depth + 1)
        scope.members |= inner.members
        return list(inner.members), True

    def _attributes(self) -> dict[str, str]:
        attributes: dict[str, str] = {}
        while self._takes("["):
            while not self._takes("]"):
                if self._takes(";", ","):
                    continue
                word = self._id()
                attributes[word[:100]] = self._id() if self._takes("=") else "true"
        return attributes

    def _describe(self, name: str, attributes: dict[str, str]) -> None:
        node = self._nodes[name]
        for word, value in attributes.items():
            if word == "label":
                node.doc = _LINES.sub("\n", value)[:2000]
            node.attrs[word] = value[:2000]

    def _join(self, sources: list[str], targets: list[str], attrs: dict[str, str]) -> None:
        self._edges += len(sources) * len(targets)
        if self._edges > _MAX_EDGES:
            raise ResourceExhaustedError(f"The DOT text has more than {_MAX_EDGES:,} edges")
        label = _one_line(attrs.get("label", ""))[:200]
        for target in targets:
            self._nodes[target].sources.extend(sources)
            self._nodes[target].labels.extend([label] * len(sources))


def _one_line(text: str) -> str:
    return " ".join(_LINES.sub(" ", text).split())[:_MAX_NAME]
