"""The protocols of clusters, on which sessions may run."""

from __future__ import annotations

from typing import Protocol

from graphcore.graph import Graph
from graphcore.kernel_context import ResourceManager
from graphcore.runtime.core.options import SessionOptions
from graphcore.runtime.session.placing import SessionDevices


class OpenedCluster(Protocol):
    """The part of a cluster that one session uses."""

    @property
    def devices(self) -> SessionDevices:
        """Its devices."""

    @property
    def resources(self) -> ResourceManager:
        """The variables and other resources that it holds for the session."""

    def close(self) -> None:
        """Release all of it."""


class Cluster(Protocol):
    """A cluster."""

    def open(self, graph: Graph, options: SessionOptions) -> OpenedCluster:
        """Begin the work for one session.

        Args:
            graph, options: those of the session.
        """
