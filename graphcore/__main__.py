"""Command line: `graphloupe FILE`, or `python -m graphcore view FILE`, draws a model; see `--help`."""

from __future__ import annotations

import argparse
import gc
import sys
import webbrowser
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from runpy import run_module
from typing import Final

from graphcore.api import costs, graph_diff, load
from graphcore.api.summary import summarize_graph
from graphcore.costing.costs import amount_text, short
from graphcore.definitions.wire.saved_model import INIT_SIGNATURE
from graphcore.difference import GraphDiff
from graphcore.errors import FailedPreconditionError, GraphError, InvalidArgumentError
from graphcore.graph import Graph
from graphcore.release import package_version
from graphcore.shell_completion import SHELLS, completion_script

_COMMANDS: Final = {
    "view": "write an interactive page that opens without a network",
    "stats": "print multiply-adds, parameters and bytes, in all and by scope",
    "inspect": "print what a file holds",
    "diff": "print what is different in a second file",
    "lab": "open JupyterLab, where %%load_ext kernelext shows graphs beside the cells",
    "completion": "print a script that completes this command in a shell",
}
_EXAMPLES: Final = {
    "": """
  {program} resnet50.onnx                 view a model in the browser
  {program} view model.pt2 -o model.svg   draw it to a file
  {program} stats model.tflite            print how large it is
  {program} diff before.pb after.pb       print what has changed
  {program} lab                           open JupyterLab
""",
    "view": """
  {program} view model.onnx                  write model.onnx.html, and open it
  {program} view model.onnx -o model.svg     draw the first picture to a file
  {program} view saved_model --tags serve    one graph of a SavedModel
  {program} view model.onnx --serve          show it anew whenever the file changes
""",
    "stats": """
  {program} stats resnet50.onnx
""",
    "inspect": """
  {program} inspect checkpoint.safetensors
  {program} inspect graph.pb
""",
    "diff": """
  {program} diff float.onnx int8.onnx
  {program} diff before.pb after.pb -o changes.html
""",
    "lab": """
  {program} lab
  {program} lab notebook.ipynb --port 9000
""",
    "completion": """
  eval "$(graphloupe completion bash)"          in ~/.bashrc
  eval "$(graphloupe completion zsh)"           in ~/.zshrc, after compinit
  graphloupe completion fish | source           in ~/.config/fish/config.fish
""",
}
_MOST_SCOPES: Final = 20


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command.

    Args:
        arguments: the arguments after the program's name; those of `sys.argv` by default.

    Returns:
        The exit status: 0, or 1 after an error, which is printed to the error stream.
    """
    words = sys.argv[1:] if arguments is None else list(arguments)
    if words and words[0] not in _COMMANDS and not words[0].startswith("-"):
        words = ["view", *words]  # the file alone
    options = _parser().parse_args(words)
    try:
        with _collection_paused():
            text = _run(options)
    except (GraphError, OSError) as error:
        sys.stderr.write(f"error: {error.message if isinstance(error, GraphError) else error}\n")
        return 1
    sys.stdout.write(text)
    return 0


def _parser() -> argparse.ArgumentParser:
    program = "python -m graphcore" if Path(sys.argv[0]).name == "__main__.py" else Path(sys.argv[0]).name
    parser = argparse.ArgumentParser(
        prog=program,
        description="Shows graphs and models of TensorFlow, ONNX, PyTorch, JAX, Keras, TFLite and others. A file alone is viewed.",
        epilog=_examples("", program),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"graphloupe {package_version}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def add(name: str) -> argparse.ArgumentParser:
        words, style = _COMMANDS[name], argparse.RawDescriptionHelpFormatter
        return commands.add_parser(name, help=words, description=words, epilog=_examples(name, program), formatter_class=style)

    for name in ("view", "stats", "inspect"):
        command = add(name)
        command.add_argument(
            "file", type=Path, help="a graph of TensorFlow, or a model of another framework: ONNX, PyTorch, Keras, TFLite, ..."
        )
        command.add_argument("--tags", help="which graph of a SavedModel that holds several: its tags, separated by commas")
        if name == "view":
            words = "the file to write: .html, .svg, .dot, .mmd or .txt; FILE.html by default, which is opened in a browser if there is one"
            command.add_argument("-o", "--output", type=Path, help=words)
            command.add_argument("--serve", action="store_true", help="show it in a browser instead, anew whenever the file changes")
            command.add_argument("--port", type=int, default=0, help="with --serve, the port; any free one by default")
    command = add("diff")
    command.add_argument("file", type=Path, metavar="A", help="the earlier graph file")
    command.add_argument("other", type=Path, metavar="B", help="the later graph file")
    command.add_argument("-o", "--output", "--out", type=Path, help="draw it as well, to this file: .html, .svg, .dot, .mmd or .txt")
    command = add("lab")
    command.add_argument("options", nargs=argparse.REMAINDER, help="options of JupyterLab, such as a notebook or --port")
    command = add("completion")
    command.add_argument("shell", choices=SHELLS, help="the shell")
    return parser


def _examples(command: str, program: str) -> str:
    return f"examples:{_EXAMPLES[command].format(program=program)}"


def _run(options: argparse.Namespace) -> str:
    """Run a command. Returns the text to print."""
    if options.command == "lab":
        return _lab(options.options)
    if options.command == "completion":
        return completion_script(options.shell, _parser(), "graphloupe")
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
    if options.command == "stats":
        return f"{path}  {_bytes_in(path):,} bytes\n{_stats(graph)}"
    return f"{path}  {_bytes_in(path):,} bytes\n{summarize_graph(graph)}"


def _stats(graph: Graph) -> str:
    """The costs of a graph, and those of its largest scopes."""
    counted = costs(graph)
    scopes = sorted(counted.scopes().items(), key=lambda item: -item[1].weight())[:_MOST_SCOPES]
    lines = [f"  {name:<32} {amount_text(cost.multiply_adds):>12}   {short(cost.parameters):>10}" for name, cost in scopes if cost.weight()]
    table = [f"\n  {'scope':<32} {'multiply-adds':>12}  {'parameters':>10}", *lines] if lines else []
    return "\n".join([str(counted), *table, ""])


def _lab(words: Sequence[str]) -> str:
    """Run JupyterLab until the user stops it.

    Raises:
        FailedPreconditionError: it is not installed.
    """
    if find_spec("jupyterlab") is None:
        raise FailedPreconditionError("JupyterLab is not installed: pip install 'graphloupe[lab]'")
    sys.argv = ["jupyter-lab", *words]
    run_module("jupyterlab", run_name="__main__")
    return ""


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
