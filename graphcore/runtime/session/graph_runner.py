"""GraphRunner: computes some tensors of a graph on the CPU, right here, for whoever needs a value while a graph is looked at."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from graphcore.attrs import Array
from graphcore.device_spec import DeviceSpec
from graphcore.errors import NotFoundError
from graphcore.graph import Graph, copy_graph
from graphcore.graph.importing.from_nodes import graph_with_library
from graphcore.runtime.session.function_runtime import FunctionLibraryRuntime
from graphcore.runtime.session.session import Session

_CPU: Final = "/device:CPU:0"


class GraphRunner:
    """Runs small parts of graphs on one CPU device, without placement: for inference and constant folding, not for heavy work.

    Args:
        device: the device; only a CPU will do.

    Raises:
        NotFoundError: it is none.
    """

    __slots__ = ("device",)

    def __init__(self, device: str = _CPU) -> None:
        if (DeviceSpec.parse(device).type or "CPU") != "CPU":
            raise NotFoundError(f"Cannot find a device for GraphRunner. It runs on a CPU only, got {device}")
        self.device = device

    def run(
        self,
        graph: Graph,
        inputs: Mapping[str, Any] | Iterable[tuple[str, Any]] = (),
        output_names: Sequence[str] = (),
        function_library: FunctionLibraryRuntime | None = None,
    ) -> list[Array]:
        """Compute the outputs; the graph is not changed, and variables that it initialises are gone afterwards.

        Args:
            graph: what to run.
            inputs: values for tensors by `name:port`.
            output_names: what to compute, by `name:port`.
            function_library: where the functions are that the graph calls; its own library unless given.

        Returns:
            One array an output, which stays valid whatever becomes of the runner and the graph.

        Raises:
            NotFoundError: no such node.
            InvalidArgumentError: no such port, or an input that does not fit.
        """
        run = graph
        if function_library is not None:
            run = graph_with_library(function_library.library.copy())
            copy_graph(graph, run)
        feeds = dict(inputs)
        with Session(graph=run) as session:
            values = session.run(list(output_names), feeds)
        return [np.array(value) for value in values]
