"""PyTorch's graphs in memory: `torch.export.ExportedProgram` and `torch.fx.GraphModule`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

from graphcore.frontends.foreign import ForeignFunction, ForeignGraph
from graphcore.frontends.runners.torch_program_run import ProgramRunner
from graphcore.frontends.torch_reader.exported_program import limits_text
from graphcore.frontends.torch_reader.fx_graph import FxReader
from graphcore.frontends.torch_reader.objects import is_class
from graphcore.frontends.torch_reader.placing import placed_states
from graphcore.frontends.torch_reader.signature import State

if TYPE_CHECKING:
    from graphcore.frontends.frontend import Source

KIND: Final = "PyTorch graph in memory (torch.export.ExportedProgram, torch.fx.GraphModule)"
_KINDS: Final = {"PARAMETER": "parameter", "BUFFER": "buffer", "CONSTANT_TENSOR": "constant", "CUSTOM_OBJ": "constant"}
_OWN: Final = {"USER_OUTPUT", "LOSS_OUTPUT"}


def sniff(source: Source) -> bool:
    """True iff the source is an exported program or a traced module."""
    return source.path is None and (is_program(source.value) or is_class(source.value, "GraphModule", "torch.fx"))


def is_program(value: object) -> bool:
    """True iff a value is an exported program."""
    return is_class(value, "ExportedProgram", "torch.export")


def read(source: Source) -> ForeignGraph:
    """Read a graph. Nothing in it is changed or run.

    Raises:
        GraphError: it is inconsistent.
    """
    graph = _program(source.value) if is_program(source.value) else _module(source.value)
    graph.main.nodes = placed_states(graph.main.nodes)
    graph.producer = f"PyTorch {getattr(sys.modules.get('torch'), '__version__', '')}".strip()
    roots = [call.type_name for node in graph.main.nodes for call in node.modules[:1] if not call.path]
    graph.name = roots[0] if roots else graph.name
    return graph


def _module(module: Any) -> ForeignGraph:
    functions: dict[str, ForeignFunction] = {}
    main = FxReader(module, functions, {}, ()).read("main")
    name = getattr(module, "_graph_name", None) or type(module).__name__
    return ForeignGraph("PyTorch traced module", main, name=str(name), functions=functions)


def _program(program: Any) -> ForeignGraph:
    functions: dict[str, ForeignFunction] = {}
    signature = program.graph_signature
    states: dict[str, Any] = {}
    facts: dict[str, str] = {}
    for spec in signature.input_specs:
        kind, name = _KINDS.get(spec.kind.name), spec.arg.name
        if kind is not None:
            tensor = program.state_dict.get(spec.target)
            tensor = program.constants.get(spec.target) if tensor is None else tensor
            states[name] = State(kind, spec.target, "not saved with the state" if spec.persistent is False else ""), tensor
        elif hasattr(spec.arg, "value"):
            states[name] = None, None
            facts[f"argument {name}"] = str(spec.arg.value)[:200]
    results, notes = _results(program)
    main = FxReader(program.graph_module, functions, states, results).read("main")
    for symbol, limits in program.range_constraints.items():
        facts[f"size {symbol}"] = limits_text(_bound(limits.lower), _bound(limits.upper))
    graph = ForeignGraph("PyTorch exported program", main, functions=functions, facts=facts)
    graph.notes = notes
    runner = ProgramRunner(lambda: program, main)
    graph.runner = lambda: runner
    return graph


def _results(program: Any) -> tuple[list[str], list[str]]:
    """The names of the results, and sentences on what the program writes."""
    specs = program.graph_signature.output_specs
    leaves = _leaves(program.call_spec.out_spec, "")
    own = [spec for spec in specs if spec.kind.name in _OWN]
    leaf_names = iter(leaves if len(leaves) == len(own) else [""] * len(own))
    names, notes = [], []
    for spec in specs:
        if spec.kind.name in _OWN:
            name = next(leaf_names)
            if hasattr(spec.arg, "value"):
                continue
            names.append(name)
        else:
            names.append(f"new {spec.target}")
            notes.append(f"The program writes {spec.kind.name.partition('_')[0].lower()} '{spec.target}'.")
    return names, notes[:50]


def _leaves(spec: Any, name: str) -> list[str]:
    """The names of the leaves of a structure."""
    children = spec.children() if callable(getattr(spec, "children", None)) else getattr(spec, "children_specs", [])
    if getattr(spec, "type", None) is None:
        return [name]
    keys = getattr(spec, "context", None)
    if isinstance(keys, list | tuple) and len(keys) == 2 and isinstance(keys[0], list) and len(keys[0]) == len(children) != 2:
        keys = keys[0]
    is_named = isinstance(keys, list) and len(keys) == len(children) and all(isinstance(key, str) for key in keys)
    names = []
    for number, child in enumerate(children):
        key = keys[number] if is_named and isinstance(keys, list) else ""
        names += _leaves(child, f"{name}.{key}" if name and key else name or key)
    return names


def _bound(value: Any) -> int | None:
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError, AttributeError):
        return None
