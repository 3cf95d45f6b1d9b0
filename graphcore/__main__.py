"""Command line: `inspect FILE` summarises a graph file, `view` draws it, `diff A B` compares two."""

from __future__ import annotations

import argparse
import gc
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from graphcore.api import graph_diff, load
from graphcore.api.summary import summarize_graph
from graphcore.definitions.wire.saved_model import INIT_SIGNATURE
from graphcore.difference import GraphDiff
from graphcore.errors import GraphError, InvalidArgumentError
from graphcore.graph import Graph


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command.

    Args:
        arguments: the arguments after the program's name; those of `sys.argv` by default.

    Returns:
        The exit status: 0, or 1 after an error, which is printed to the error stream.
    """
    parser = argparse.ArgumentParser(prog="python -m graphcore", description="Looks at graph files.")
    commands = parser.add_subparsers(dest="command", required=True)
    for name, words in (("inspect", "print what a file holds"), ("view", "write an interactive page that opens without a network")):
        command = commands.add_parser(name, help=words, description=words)
        command.add_argument("file", type=Path, help="GraphDef (binary, pbtxt, JSON), MetaGraphDef, SavedModel file or directory")
        command.add_argument("--tags", help="which graph of a SavedModel that holds several: its tags, separated by commas")
        if name == "view":
            command.add_argument("-o", "--output", type=Path, required=True, help="the file to write: .html, .svg, .dot, .mmd or .txt")
    words = "print what is different in a second file"
    command = commands.add_parser("diff", help=words, description=words)
    command.add_argument("file", type=Path, metavar="A", help="the earlier graph file")
    command.add_argument("other", type=Path, metavar="B", help="the later graph file")
    command.add_argument("-o", "--output", "--out", type=Path, help="draw it as well, to this file: .html, .svg, .dot, .mmd or .txt")
    options = parser.parse_args(arguments)
    try:
        with _collection_paused():
            text = _run(options)
    except (GraphError, OSError) as error:
        sys.stderr.write(f"error: {error.message if isinstance(error, GraphError) else error}\n")
        return 1
    sys.stdout.write(text)
    return 0


def _run(options: argparse.Namespace) -> str:
    """Run a command. Returns the text to print."""
    path: Path = options.file
    if options.command == "diff":
        diff = graph_diff(path, options.other)
        drawn = "" if options.output is None else _view(diff, options.output, f"{path.name} → {options.other.name}")
        return f"{diff}\n{drawn}"
    graph = _load(path, options.tags)
    if options.command == "view":
        if graph.saver_nodes and not graph.signatures.keys() - {INIT_SIGNATURE}:
            sys.stderr.write(
                f"note: {path.name} serves no signature; `inspect` lists its functions, and `widgets.FunctionView(name, graph)` shows one\n"
            )
        return _view(graph, options.output, path.resolve().name)
    return f"{path}  {_bytes_in(path):,} bytes\n{summarize_graph(graph)}"


@contextmanager
def _collection_paused() -> Iterator[None]:
    """Pause the cyclic garbage collector, which would visit all nodes of a growing graph repeatedly."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _load(path: Path, tags: str | None) -> Graph:
    """Load a graph file for inspection. Unregistered ops and contradictory shapes are accepted."""
    chosen = None if tags is None else tags.split(",")
    try:
        return load(path, tags=chosen, allow_unknown_ops=True, allow_internal_ops=True)
    except InvalidArgumentError as error:
        graph = load(path, tags=chosen, allow_unknown_ops=True, allow_internal_ops=True, validate_shape=False)
        sys.stderr.write(f"warning: shapes are left out, because they do not fit: {error.message}\n")
        return graph


def _bytes_in(path: Path) -> int:
    files = [entry for entry in path.rglob("*") if entry.is_file()] if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files)


def _view(graph: Graph | GraphDiff, output: Path, title: str) -> str:
    # The views build on the core. Only this command of the core's command line needs them, and `inspect` need not load them.
    from widgets.files import save  # noqa: PLC0415 - see above

    return f"{save(graph, output, title=title)}\n"


if __name__ == "__main__":
    sys.exit(main())
