"""Programs whose partitions run on the tasks of a cluster."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable, Sequence
from functools import cached_property
from hashlib import blake2b
from typing import Any, Final

import msgspec

from graphcore.definitions.wire.files import graph_def_to_bytes
from graphcore.errors import CancelledError, GraphError, InternalError
from graphcore.functions import FunctionLibraryDefinition
from graphcore.graph.model.node import Node
from graphcore.plumbing import ARG
from graphcore.runtime.cluster.cluster_step import ClusterStep
from graphcore.runtime.cluster.connection import Connection
from graphcore.runtime.cluster.following import Followers
from graphcore.runtime.cluster.messages import Outcome, Request, Shipment, arrived, checked_to_travel
from graphcore.runtime.cluster.records import merge_records
from graphcore.runtime.core.program import Step
from graphcore.runtime.core.sizes import OWN_SIZES, PeakMemory, Sizes
from graphcore.runtime.core.tokens import TRANSFER
from graphcore.runtime.partitions.partition_graphs import PartGraph, Partition
from graphcore.runtime.stepping.gate import Gate

_UNWATCHED: Final = Step()


class ClusterProgram:
    """A subgraph prepared for the tasks of a cluster. Thread-safe.

    Args:
        connection: the tasks.
        partitions: the partitions.
        library, seed: those of the graph.
        feeds: the names of the fed tensors.
        fetches: the number of fetches.
        engine, threads, mild: see `Shipment`.

    Raises:
        GraphError: a partition cannot be prepared, or a task is lost.
    """

    source: Final = ""

    def __init__(
        self,
        connection: Connection,
        partitions: Sequence[Partition],
        library: FunctionLibraryDefinition,
        seed: int | None,
        feeds: Sequence[str],
        fetches: int,
        engine: str,
        threads: int,
        mild: Sequence[str],
    ) -> None:
        self.parts = list(partitions)
        self._connection = connection
        self._library = library
        self._seed = seed
        self._feeds = feeds
        self._fetches = fetches
        self._engine = engine
        self._threads = threads
        self._mild = mild
        self._names = {part.device: _names(part) for part in partitions}
        self._lock = threading.Lock()
        self._digests: dict[str, str] = {}
        self._library_version = -1
        self._ship()

    def __repr__(self) -> str:
        return f"<ClusterProgram on {len(self.parts)} tasks>"

    def _ship(self) -> None:
        """Let the tasks prepare the partitions with the functions as they are now."""
        version = self._library.version
        self._connection.release(self._digests)
        self._digests = {}
        shipments = [self._shipment(part) for part in self.parts]
        self._connection.prepare(shipments)
        self._digests = {shipment.device: shipment.digest for shipment in shipments}
        self._library_version = version

    def _shipment(self, part: Partition) -> Shipment:
        functions = self._library.reachable_definitions(part.graph_def.node).to_proto()
        graph_def = msgspec.structs.replace(part.graph_def, library=functions)
        unnamed = Shipment(
            digest="",
            device=part.device,
            graph_def=graph_def_to_bytes(graph_def),
            sources=part.sources,
            feeds=part.feeds,
            fetches=part.fetches,
            targets=part.targets,
            seed=self._seed,
            is_alone=len(self.parts) == 1,
            engine=self._engine,
            threads=self._threads,
            num_feeds=len(self._feeds),
            mild=self._mild,
        )
        contents = repr([getattr(unnamed, field) for field in unnamed.__struct_fields__]).encode()
        return msgspec.structs.replace(unnamed, digest=blake2b(contents, digest_size=16).hexdigest())

    @cached_property
    def nodes(self) -> list[Node]:
        """The nodes of all partitions, sends and receives included."""
        graphs = [PartGraph(part, self._library, self._seed).graph for part in self.parts]
        return [node for graph in graphs for node in graph.nodes if node.op not in ARG]

    def run(self, *values: Any) -> list[Any]:
        """Fed arrays in, fetched arrays out.

        Raises:
            GraphError: an error of a kernel, with its node and device; the other partitions were stopped.
            AbortedError: a task is lost.
        """
        return self.run_step(_UNWATCHED, values)

    def run_step(self, step: Step, values: Sequence[Any]) -> list[Any]:
        """Run with recording; cancellation stops all partitions before their next nodes.

        Raises:
            CancelledError: it was cancelled.
        """
        connection = self._connection
        connection.check([connection.links[part.device] for part in self.parts], self._names)
        with self._lock:
            if self._library_version != self._library.version:
                self._ship()
        number = connection.next_step()
        under_way = ClusterStep(connection, number, self._requests(number, step, values), self._names)
        gate = step.recorder if isinstance(step.recorder, Gate) else None
        links = [connection.links[part.device] for part in self.parts]
        followers = None if gate is None else Followers(connection, under_way, number, links, gate)
        try:
            self._wait(under_way, step)
        finally:
            connection.steps.discard(number)
            if followers is not None:
                followers.end()
                self.close()  # it is prepared for this run alone
            elif step.recorder is not None:
                merge_records(step, {connection.links[device]: outcome for device, outcome in under_way.outcomes.items()})
        return _results(under_way.outcomes.values(), self._fetches)

    def _requests(self, number: int, step: Step, values: Sequence[Any]) -> dict[str, Request]:
        checked = [checked_to_travel(value, f"The value fed for '{name}'") for name, value in zip(self._feeds, values, strict=True)]
        recorder = step.recorder
        patterns = None if recorder is None or recorder.values is None else recorder.values.patterns
        oldest = min(self._connection.steps, default=number)
        return {
            part.device: Request(
                self._digests[part.device],
                number,
                oldest,
                {place: checked[place] for place in part.feeds},
                recorder is not None,
                patterns,
                isinstance(recorder, Gate),
            )
            for part in self.parts
        }

    def _wait(self, under_way: ClusterStep, step: Step) -> None:
        """Wait for the end of a step. Ctrl-C and the cancellation of `step` stop it first."""
        connection = self._connection
        ended = asyncio.run_coroutine_threadsafe(under_way.run(), connection.loop)

        def stop() -> None:
            connection.loop.call_soon_threadsafe(under_way.stop)

        cancellation = step.cancellation
        token = None if cancellation is None else cancellation.get_cancellation_token()
        if cancellation is not None and token is not None and not cancellation.register_callback(token, stop):
            stop()
        try:
            ended.result()
        except KeyboardInterrupt:
            stop()
            try:
                ended.result()
            except GraphError:  # how its nodes ended does not matter
                raise KeyboardInterrupt from None
            raise
        finally:
            if cancellation is not None and token is not None:
                cancellation.try_deregister_callback(token)

    def peak_memory(self, sizes: Sizes = OWN_SIZES) -> PeakMemory:  # noqa: ARG002 - the signature is Program's
        """Unknown, as it depends on the order in which values arrive."""
        return PeakMemory(None, reason="it runs on a cluster, and how much is alive at once depends on when values arrive")

    def explain(self, error: BaseException) -> BaseException:
        """Convert `error` to a GraphError; errors of nodes are converted already."""
        if isinstance(error, asyncio.CancelledError):
            return CancelledError("The step was given up")
        is_plain = isinstance(error, Exception) and not isinstance(error, GraphError)
        return InternalError(f"{type(error).__name__}: {error}") if is_plain else error

    def close(self) -> None:
        """Release the partitions on the tasks."""
        self._connection.release(self._digests)


def _names(part: Partition) -> list[str]:
    """The names of the nodes of a partition, without those that exchange values."""
    return [node.name for node in part.graph_def.node if node.op not in ARG and TRANSFER not in node.attr]


def _results(outcomes: Iterable[Outcome], count: int) -> list[Any]:
    results: list[Any] = [None] * count
    for outcome in outcomes:
        for place, value in outcome.results.items():
            results[place] = arrived(value)
    return results
