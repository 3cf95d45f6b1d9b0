"""`gc.show`: the view of anything that has a graph, in a notebook or a browser, without any set-up."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from graphcore.api.interchange import from_source, load
from graphcore.errors import InvalidArgumentError
from graphcore.frontends.frontend import Call
from graphcore.graph import Graph
from graphcore.support.files import is_file, is_folder


def graph_behind(value: Any) -> Graph:
    """The graph of a value: a tensor, a session and the like, a file, or an object of another framework.

    Raises:
        InvalidArgumentError: it has none; the message lists what can be opened.
        GraphError: it cannot be read.
    """
    if isinstance(value, Graph):
        return value
    own = getattr(value, "graph", None) if type(value).__module__.startswith("graphcore.") else None
    if isinstance(own, Graph):
        return own
    if isinstance(value, str) and not is_file(value) and not is_folder(value) and "\n" not in value and "{" not in value:
        raise InvalidArgumentError(f"show: there is no file '{value}'")
    if isinstance(value, str) and (is_file(value) or is_folder(value)):
        return load(value, allow_unknown_ops=True, allow_internal_ops=True)
    return from_source(value)


def show(value: Any, *args: Any, title: str = "", **kwargs: Any) -> None:
    """Show a graph, a model file, a model of another framework, or a call of a module or function.

    In a notebook the view stands below the cell: live where widgets work, otherwise as a page of its own within the output, which needs no network
    and stays in the saved notebook. Elsewhere a page is written to a temporary folder, and opened if there is a browser.

    Args:
        value: a `gc.Graph` or something that has one; the path of a file; an object: an `onnx.ModelProto`, a `torch.export.ExportedProgram`, a
            `keras.Model` and others; a PyTorch module, or a function of PyTorch or JAX, with the arguments of a call.
        args, kwargs: these arguments. The call is traced by types and shapes: nothing is computed, and nothing of the module changes.
        title: the title.

    Raises:
        InvalidArgumentError: nothing here shows such a value; the message lists what can be opened.
        GraphError: it cannot be read, or a library is missing.

    Example:
        >>> gc.show("resnet50.onnx")  # doctest: +SKIP
        >>> gc.show(model, x)  # doctest: +SKIP
    """
    graph = graph_behind(Call(value, args, kwargs) if args or kwargs else value)
    title = title or _title_of(value)
    # The views build on the core, and are loaded only here.
    import_module("widgets.shown_once").show_once(graph, title, sys.modules.get("IPython"))


def _title_of(value: Any) -> str:
    """The name of a file; of something else, the name of its class."""
    is_path = isinstance(value, os.PathLike) or (isinstance(value, str) and "\n" not in value)
    return Path(value).name if is_path else type(value).__name__
