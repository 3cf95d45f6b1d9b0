"""GraphRunner: computes tensors of a graph on the CPU, for values needed in graph construction."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from graphcore.attrs import Array
from graphcore.device_spec import DeviceSpec
from graphcore.errors import NotFoundError
from graphcore.graph import Graph, copy_graph
from graphcore.graph.importing.from_nodes import graph_with_library
from graphcore.runtime.functions.function_runtime import FunctionLibraryRuntime
from graphcore.runtime.session.session import Session

_CPU: Final = "/device:CPU:0"


class GraphRunner:
    """Runs small subgraphs on one CPU device, for inference and constant folding.

    Args:
        device: the device, a CPU.

    Raises:
        NotFoundError: it is not a CPU.
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
        """Compute the outputs. The graph is unchanged, and initialised variables are discarded.

        Args:
            graph: the graph.
            inputs: values for tensors by `name:port`.
            output_names: tensors to compute, by `name:port`.
            function_library: the functions that the graph calls; its own library by default.

        Returns:
            One array for each output, independent of runner and graph.

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
