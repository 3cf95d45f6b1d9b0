"""PyTorch's exported programs: `.pt2` files, read without PyTorch."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Final

from graphcore.errors import InvalidArgumentError
from graphcore.frontends.runners.torch_program_run import ProgramRunner, loaded
from graphcore.frontends.torch_reader.archive import Archive, inner_names
from graphcore.frontends.torch_reader.exported_program import ProgramReader
from graphcore.frontends.torch_reader.program_weights import PayloadWeights, StateWeights
from graphcore.frontends.torch_reader.schema import Program, decoded

if TYPE_CHECKING:
    from pathlib import Path

    from graphcore.frontends.foreign import ForeignGraph
    from graphcore.frontends.frontend import Source

KIND: Final = "PyTorch exported program (.pt2)"
_OLD: Final = "serialized_exported_program.json"
_MODEL: Final = re.compile(r"models/[^/]+\.json")


def sniff(source: Source) -> bool:
    """True iff the source is an exported program."""
    names = inner_names(source)
    return _OLD in names or "archive_format" in names or (bool(names) and any(_MODEL.fullmatch(name) for name in names))


def read(source: Source) -> ForeignGraph:
    """Read an exported program.

    Raises:
        GraphError: it is damaged, or exceeds a limit.
    """
    assert source.path is not None  # files only are sniffed
    archive = Archive(source.path)
    if _OLD in archive:
        program = decoded(archive.read(_OLD), Program, f"'{_OLD}'")
        return _runnable(ProgramReader(program, StateWeights(archive)).read(), source.path)
    models = sorted([name for name in archive.sizes if _MODEL.fullmatch(name)], key=lambda name: (name != "models/model.json", name))
    if not models:
        raise InvalidArgumentError(
            f"'{source.path.name}' is a PyTorch package without an exported program: required models/model.json, got "
            + ", ".join(list(archive.sizes)[:5])
        )
    program = decoded(archive.read(models[0]), Program, f"'{models[0]}'")
    name = models[0].removeprefix("models/").removesuffix(".json")
    graph = ProgramReader(program, PayloadWeights(archive, name)).read()
    if len(models) > 1:
        graph.notes.insert(0, f"The package has {len(models)} programs; this is '{name}'. The others: {', '.join(models[1:9])}.")
    return _runnable(graph, source.path) if len(models) == 1 else graph


def _runnable(graph: ForeignGraph, path: Path) -> ForeignGraph:
    runner = ProgramRunner(partial(loaded, str(path)), graph.main)
    graph.runner = lambda: runner
    return graph
