"""Command line: `inspect FILE` summarises a graph or model, `view` draws it, `diff A B` compares two."""

from __future__ import annotations

import argparse
import gc
import sys
import webbrowser
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
        command.add_argument(
            "file", type=Path, help="a graph of TensorFlow, or a model of another framework: ONNX, PyTorch, Keras, TFLite, ..."
        )
        command.add_argument("--tags", help="which graph of a SavedModel that holds several: its tags, separated by commas")
        if name == "view":
            words = "the file to write: .html, .svg, .dot, .mmd or .txt; FILE.html by default, which is opened in a browser if there is one"
            command.add_argument("-o", "--output", type=Path, help=words)
            command.add_argument("--serve", action="store_true", help="show it in a browser instead, anew whenever the file changes")
            command.add_argument("--port", type=int, default=0, help="with --serve, the port; any free one by default")
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
    if options.command == "view" and options.serve:
        return _serve(path, options.tags, options.port)
    if options.command == "view":
        _begin_engine()
    graph = _load(path, options.tags)
    if options.command == "view":
        if graph.saver_nodes and not graph.signatures.keys() - {INIT_SIGNATURE}:
            sys.stderr.write(
                f"note: {path.name} serves no signature; `inspect` lists its functions, and `widgets.FunctionView(name, graph)` shows one\n"
            )
        written = _view(graph, options.output or path.with_name(f"{path.resolve().name}.html"), path.resolve().name)
        if options.output is None:
            _open_in_browser(Path(written.strip()))
        return written
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


def _begin_engine() -> None:
    """Start the engine of pictures, which takes as long as it takes to read a file."""
    from widgets.render.engine import engine  # noqa: PLC0415 - a layer above, which only this command needs

    engine.begin()


def _open_in_browser(page: Path) -> None:
    from widgets.serving import has_browser  # noqa: PLC0415 - a layer above, which only this command needs

    if has_browser():
        webbrowser.open(page.resolve().as_uri())


def _serve(path: Path, tags: str | None, port: int) -> str:
    """Serve the page of a file until the user presses Ctrl+C."""
    from widgets.files import to_html  # noqa: PLC0415 - a layer above, which only this command needs
    from widgets.serving import PageServer, has_browser  # noqa: PLC0415 - a layer above, which only this command needs

    title = path.resolve().name
    server = PageServer(path, lambda: to_html(_load(path, tags), title=title), port)
    sys.stdout.write(f"{title} is at {server.url} until you press Ctrl+C\n")
    sys.stdout.flush()
    if has_browser():
        webbrowser.open(server.url)
    try:
        server.run()
    except KeyboardInterrupt:
        return "\n"
    return ""


if __name__ == "__main__":
    sys.exit(main())
