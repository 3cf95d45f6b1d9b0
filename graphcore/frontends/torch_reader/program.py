"""Exported programs: graphs with their signatures, functions, facts and notes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from graphcore.frontends.foreign import ForeignFunction, ForeignGraph, WeightRef
from graphcore.frontends.torch_reader.placing import placed_states
from graphcore.frontends.torch_reader.program_graph import GraphReader
from graphcore.frontends.torch_reader.schema import Graph, Program, TensorMeta
from graphcore.frontends.torch_reader.signature import meaning_of
from graphcore.frontends.torch_reader.symbols import symbol_text
from graphcore.frontends.torch_reader.tensors import dtype_word
from graphcore.frontends.torch_reader.traces import Traces

KIND: Final = "PyTorch exported program"
_SHOWN: Final = 50
Weights = Callable[[str, str, tuple[int, ...]], WeightRef]
"""Gives a tensor of the source by its name, type and shape."""


class ProgramReader:
    """Reads a program.

    Args:
        program: the program.
        weights: gives the tensors that the source holds.

    Attributes:
        traces: reads traces.
        meaning: what inputs and outputs are.
    """

    def __init__(self, program: Program, weights: Weights) -> None:
        self.traces = Traces()
        self.meaning = meaning_of(program.graph_module)
        self._program = program
        self._weights = weights
        self._functions: dict[str, ForeignFunction] = {}
        metas = program.graph_module.graph.tensor_values.values()
        self._devices = list(dict.fromkeys([meta.device.text for meta in metas if meta.device is not None and meta.device.type]))

    def read(self) -> ForeignGraph:
        """The graph.

        Raises:
            InvalidArgumentError: it is damaged.
        """
        program = self._program
        main = GraphReader(self, program.graph_module.graph, 0).read("main", self.meaning.states, self.meaning.results)
        roots = [call.type_name for node in main.nodes for call in node.modules[:1] if not call.path]
        graph = ForeignGraph(KIND, main, producer=f"PyTorch {program.torch_version}".strip(), name=roots[0] if roots else "")
        main.nodes = placed_states(main.nodes)
        graph.functions = self._functions
        graph.facts = self._facts()
        graph.notes = [*self.meaning.writes, *self._changes_in_place()][:_SHOWN]
        return graph

    def body(self, name: str, graph: Graph, depth: int) -> str:
        """Read a graph that a node calls. Returns its key."""
        key, number = name, 1
        while key in self._functions:
            number += 1
            key = f"{name}_{number}"
        self._functions[key] = ForeignFunction(key)
        self._functions[key] = GraphReader(self, graph, depth).read(key, {}, [])
        return key

    def arguments(self, key: str) -> int:
        """The number of arguments of a called graph."""
        return len(self._functions[key].inputs)

    def device(self, meta: TensorMeta | None) -> str:
        """The device of a tensor, "" where the whole program is on one."""
        return "" if len(self._devices) < 2 or meta is None or meta.device is None else meta.device.text

    def weight(self, name: str, meta: TensorMeta | None) -> WeightRef | None:
        """A tensor of the program, None for an object that is none."""
        if meta is None:
            return None
        shape = tuple([size.as_int if size.as_int is not None else -1 for size in meta.sizes])
        return self._weights(name, dtype_word(meta.dtype), shape)

    def _changes_in_place(self) -> list[str]:
        changes = []
        for node in self._program.graph_module.graph.nodes:
            parts = node.target.split(".")
            if len(parts) > 3 and parts[-2].endswith("_") and not parts[-2].startswith("__") and node.inputs:
                first = node.inputs[0].arg.get("as_tensor")
                name = first.get("name") if isinstance(first, dict) else None
                state = self.meaning.states.get(name) if isinstance(name, str) else None
                if state is not None:
                    changes.append(f"Node '{node.name or parts[-2]}' changes {state.kind} '{state.name}' in place.")
        return changes

    def _facts(self) -> dict[str, str]:
        program = self._program
        version = program.schema_version
        if isinstance(version, dict):
            version = f"{version.get('major', '?')}.{version.get('minor', '?')}"
        facts = {"schema": str(version)} if version is not None else {}
        if program.opset_version:
            facts["opset"] = ", ".join([f"{name} {number}" for name, number in program.opset_version.items()][:_SHOWN])
        facts |= self.meaning.constants
        if len(self._devices) == 1:
            facts["device"] = self._devices[0]
        places = self._places()
        for symbol, limits in list(program.range_constraints.items())[:_SHOWN]:
            name = symbol_text(symbol)
            facts[f"size {name}"] = "; ".join([limits_text(limits.min_val, limits.max_val), *places.get(name, [])[:3]])
        return facts

    def _places(self) -> dict[str, list[str]]:
        """The sizes of inputs that symbols are."""
        graph = self._program.graph_module.graph
        places: dict[str, list[str]] = {}
        for argument in graph.inputs:
            tensor = argument.get("as_tensor")
            name = tensor.get("name") if isinstance(tensor, dict) else None
            meta = graph.tensor_values.get(name) if isinstance(name, str) else None
            for number, size in enumerate(meta.sizes if meta is not None else ()):
                if size.as_expr is not None:
                    places.setdefault(symbol_text(size.as_expr.expr_str), []).append(f"size {number} of {name}")
        return places


def limits_text(least: object, most: object) -> str:
    """The range of a symbolic size in words."""
    is_open = not isinstance(most, int) or most < 0 or most >= 2**62
    if is_open:
        return f"at least {least}" if isinstance(least, int) and least > -(2**62) else "any"
    return f"{least} to {most}" if isinstance(least, int) else f"at most {most}"
