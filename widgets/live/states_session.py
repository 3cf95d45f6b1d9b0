"""The two states of a difference in a live view, each in a picture of its own."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from graphcore.difference import GraphDiff, state_graphs, twins
from graphcore.graph import Graph
from widgets import messages, requests
from widgets.messages import FailureMessage, Message, PaneMessage, StatesMessage
from widgets.port import Port

Send = Callable[[Message, list[bytes]], None]
"""Sends a message with its binary buffers."""


class StatesSession:
    """Shows both states of a difference, and of those that follow it.

    Args:
        send: a callback for each message.
        diff: the difference.
    """

    def __init__(self, send: Send, diff: GraphDiff) -> None:
        self._send = send
        self._diff = diff
        before, after = state_graphs(diff)
        self._ports: dict[messages.Pane, Port] = {"before": self._port("before", before), "after": self._port("after", after)}
        self._name()

    def send(self) -> None:
        """Send the names of both states, and the difference in words; the pages ask for the pictures."""
        self._send(StatesMessage(titles=self._diff.titles, words=str(self._diff), twins=twins(self._diff)), [])

    def follow(self, diff: GraphDiff) -> None:
        """Show the states of a later difference; the same scopes stay open."""
        if diff is self._diff:
            return
        self._diff = diff
        self._name()
        self.send()
        for port, graph in zip(self._ports.values(), state_graphs(diff), strict=True):
            port.show(graph)
            port.send()

    def answer(self, pane: messages.Pane, request: requests.PictureRequest) -> None:
        """Answer a request of one of the two pictures."""
        if isinstance(request, requests.OpenFunctionRequest):
            text = "Functions open in the one picture of both states"
            self._reply(pane, FailureMessage(request="open_function", text=text), [])
        else:
            self._ports[pane].answer(request)

    def _port(self, pane: messages.Pane, graph: Graph) -> Port:
        return Port(graph, partial(self._reply, pane))

    def _reply(self, pane: messages.Pane, message: messages.PictureMessage, buffers: list[bytes]) -> None:
        self._send(PaneMessage(pane=pane, message=message), buffers)

    def _name(self) -> None:
        for port, title in zip(self._ports.values(), self._diff.titles, strict=True):
            port.name = title
