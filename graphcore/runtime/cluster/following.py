"""Steps over a cluster that go on one node at a time."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from graphcore.errors import GraphError
from graphcore.runtime.cluster.cluster_step import ClusterStep
from graphcore.runtime.cluster.connection import Connection
from graphcore.runtime.cluster.links import Link
from graphcore.runtime.cluster.messages import News, Records
from graphcore.runtime.stepping.gate import Gate


class Followers:
    """One thread for each task of a step: the gate of the stepped run lets the task go on node by node.

    Args:
        connection: the tasks.
        step: the step.
        number: its number.
        links: the tasks that take part.
        gate: the gate of the stepped run, which gets the events and values.
    """

    def __init__(self, connection: Connection, step: ClusterStep, number: int, links: Sequence[Link], gate: Gate) -> None:
        self._connection = connection
        self._step = step
        self._number = number
        self._gate = gate
        self._is_over = False
        self._known = {link.device: (0, 0) for link in links}
        self._threads = [threading.Thread(target=self._follow, args=(link,), name="graphcore-follower", daemon=True) for link in links]
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        """Take the last events of the tasks, after the end of the step."""
        self._is_over = True
        self._gate.close()
        for thread in self._threads:
            thread.join()
        for device, outcome in self._step.outcomes.items():
            if outcome.records is not None:
                self._take_last(device, outcome.records)

    def _follow(self, link: Link) -> None:
        try:
            self._follow_nodes(link)
        except GraphError:  # the gate is closed, or the task is lost, for which the step has an error
            return
        finally:
            self._gate.leave()

    def _follow_nodes(self, link: Link) -> None:
        while not self._is_over and link.device not in self._step.outcomes:
            news: News = self._connection.ask(link, "follow", self._number, *self._known[link.device])
            self._take(link.device, news)
            if news.place is not None:
                self._gate.wait_before(*news.place)
                self._connection.ask(link, "allow", self._number)

    def _take(self, device: str, news: News) -> None:
        events, values = self._known[device]
        self._gate.adopt(news.events)
        if news.values is not None and self._gate.values is not None:
            self._gate.values.merge([news.values], {})
            values += len(news.values[0])
        self._known[device] = events + len(news.events), values

    def _take_last(self, device: str, records: Records) -> None:
        events, values = self._known[device]
        rows, _, same = records.values
        self._take(device, News(records.events[events:], (rows[values:], {}, same)))
