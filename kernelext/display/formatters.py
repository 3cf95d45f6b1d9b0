"""Display of graphs, nodes, tensors, functions and recorded runs as the last expression of a cell."""

from __future__ import annotations

import re
from collections.abc import Callable
from math import prod
from typing import Any, Final, TypeVar

import numpy as np
from IPython.core.interactiveshell import InteractiveShell

from graphcore.api import Function, Run, RunComparison
from graphcore.api.summary import graph_in_brief
from graphcore.definitions import FunctionDef, NodeDef, OpDef
from graphcore.device_spec import DeviceSpec
from graphcore.difference import GraphDiff, difference_graph
from graphcore.functions import FunctionCallFrame, InstantiationResult
from graphcore.graph import Graph, Node, NodeDefBuilder, Tensor, debug_string
from graphcore.inference import InferenceContext
from graphcore.passes import FunctionBody
from graphcore.placement import DeviceSet
from graphcore.runtime import RunMetadata, StepStats, Trace
from graphcore.shapes import Shape
from graphcore.support.shown import html_text
from graphcore.tf1.variables.variables import Variable
from kernelext.display.array_pictures import picture_html
from kernelext.display.op_pages import op_page
from kernelext.display.timings import metadata_text, stats_text, trace_text
from kernelext.front_end import front_end
from kernelext.guard import Guard
from widgets.live.function_view import FunctionView
from widgets.render.both_states import saved_difference
from widgets.render.cards import Diagram, to_card_html
from widgets.render.definition_cards import (
    builder_diagram,
    context_diagram,
    device_set_diagram,
    end_diagram,
    frame_diagram,
    instantiation_diagram,
    node_def_diagram,
    op_def_diagram,
)
from widgets.render.messages import plain
from widgets.render.run_comparison import saved_comparison
from widgets.render.saved_picture import SCENE_MIME_TYPE
from widgets.render.static_display import to_pre, to_static_html

Shown = TypeVar("Shown")
_DIAGRAMS: Final[dict[type, Callable[[Any], Diagram]]] = {
    NodeDef: node_def_diagram,
    NodeDefBuilder: builder_diagram,
    InstantiationResult: instantiation_diagram,
    FunctionCallFrame: frame_diagram,
    DeviceSet: device_set_diagram,
    InferenceContext: context_diagram,
}
"""The definitions that are displayed as cards, and as the text of these in a terminal."""
_LEFT: Final = "style='text-align:left'"
_LABEL: Final = "style='text-align:left;white-space:nowrap'"
_ROW: Final = re.compile(r"\s*(made in|\S+)\s*(.*)")
"""A line of a text: a label, and the rest."""


class Formatters:
    """Registers display functions with the shell.

    Args:
        shell: the IPython shell.
        picture: returns the HTML of a static picture of a graph, None if there is none.
        show: displays a function, live and static; False if it cannot.
        guard: keeps failures away from the cell, which then shows the text.
    """

    def __init__(
        self,
        shell: InteractiveShell,
        picture: Callable[[Graph], str | None],
        show: Callable[[Function | FunctionDef | FunctionView], bool],
        guard: Guard,
    ) -> None:
        self._guard = guard
        self._shell = shell
        self._picture = picture
        self._show = show
        self._before: list[tuple[Any, type, Any]] = []

    def start(self) -> None:
        """Register; earlier functions are kept for `stop`."""
        self._set("text/plain", Graph, _printing(graph_in_brief))
        self._set("text/plain", Node, _printing(node_text))
        self._set("text/html", Node, _node_html)
        self._set_table(Tensor, tensor_text)
        self._set_table(Variable, variable_text)
        self._set("text/plain", OpDef, _printing(op_text))
        self._set("text/html", OpDef, self._op)
        self._set("text/plain", FunctionDef, _printing(function_text))
        self._set("text/plain", DeviceSpec, _printing(device_text))
        self._set("text/html", DeviceSpec, _as_table(device_parts))
        for kind, diagram in _DIAGRAMS.items():
            self._set("text/plain", kind, _printing(_diagram_text(diagram)))
            self._set("text/html", kind, _as_diagram(diagram))
        self._set("text/html", FunctionBody, lambda body: self._picture(body.graph))
        self._set("text/html", Shape, _as_table(shape_text))
        self._set("text/html", np.ndarray, picture_html)
        self._set("text/plain", Trace, _printing(trace_text))
        self._set("text/plain", RunMetadata, _printing(metadata_text))
        self._set("text/plain", StepStats, _printing(stats_text))
        self._set("text/html", Graph, self._picture)
        self._set("text/html", GraphDiff, self.difference)
        self._set_bundle(GraphDiff, self.difference_data)
        self._set("text/html", RunComparison, self.comparison)
        self._set_bundle(RunComparison, self.comparison_data)
        self._set("text/html", Run, self.run)
        for kind in (Function, FunctionDef, FunctionView):
            self._set_display(kind)

    def stop(self) -> None:
        """Restore the earlier functions."""
        for formatter, kind, before in reversed(self._before):
            if before is None:
                formatter.pop(kind, None)
            else:
                formatter.for_type(kind, before)
        self._before.clear()

    def difference(self, diff: GraphDiff) -> str | None:
        """The picture of a difference and its words, None if there is none: then it is displayed as text."""
        picture = self._picture(difference_graph(diff)) if diff else None
        return None if picture is None else picture + to_pre(html_text(str(diff)))

    def difference_data(self, diff: GraphDiff) -> dict[str, Any] | None:
        """The data of a difference for JupyterLab's pictures and words; None where nothing shows it."""
        return {SCENE_MIME_TYPE: plain(saved_difference(diff))} if diff and front_end(self._shell) != "none" else None

    def comparison(self, comparison: RunComparison) -> str | None:
        """The picture of two runs with their differences, and words; None without a common tensor."""
        if not comparison.tensors:
            return None
        picture, scene = saved_comparison(comparison)
        return to_static_html(scene, lens=picture.message.lens) + to_pre(html_text(str(comparison)))

    def comparison_data(self, comparison: RunComparison) -> dict[str, Any] | None:
        """The data of two runs that JupyterLab shows; None where nothing shows it."""
        shows = comparison.tensors and front_end(self._shell) != "none"
        return {SCENE_MIME_TYPE: plain(saved_comparison(comparison)[0])} if shows else None

    def run(self, run: Run) -> str | None:
        """The picture of a run of a model of another framework."""
        return self._picture(run.graph)

    def _op(self, op_def: OpDef) -> str:
        return to_card_html(op_def_diagram(op_def)) + op_page(op_def, self._picture)

    def _set_display(self, kind: type) -> None:
        display_formatter: Any = self._shell.display_formatter
        formatter = display_formatter.ipython_display_formatter
        self._before.append((formatter, kind, formatter.for_type(kind)))
        formatter.for_type(kind, self._display)

    def _display(self, function: Function | FunctionDef | FunctionView) -> None:
        if not self._show(function):
            # IPython's signal to try its other formatters.
            raise NotImplementedError

    def _set_bundle(self, kind: type, data: Callable[[Any], dict[str, Any] | None]) -> None:
        display_formatter: Any = self._shell.display_formatter
        formatter = display_formatter.mimebundle_formatter
        self._before.append((formatter, kind, formatter.for_type(kind)))
        formatter.for_type(kind, self._guarded(data))

    def _set_table(self, kind: type, text: Callable[..., str]) -> None:
        self._set("text/plain", kind, _printing(text))
        self._set("text/html", kind, _as_table(text))

    def _set(self, mime: str, kind: type, function: Callable[..., Any]) -> None:
        display_formatter: Any = self._shell.display_formatter
        formatter = display_formatter.formatters[mime]
        self._before.append((formatter, kind, formatter.for_type(kind)))
        formatter.for_type(kind, self._guarded(function) if mime == "text/html" else function)

    def _guarded(self, function: Callable[[Any], Shown | None]) -> Callable[[Any], Shown | None]:
        """The same function, which gives None when it fails."""

        def show(value: Any) -> Shown | None:
            results: list[Shown | None] = [None]
            with self._guard("displaying a result"):
                results.append(function(value))
            return results[-1]

        return show


def _printing(text: Callable[[Any], str]) -> Callable[[Any, Any, bool], None]:
    def show(value: Any, printer: Any, cycle: bool) -> None:  # noqa: ARG001 - IPython passes True for circular references
        for number, line in enumerate(text(value).splitlines()):
            if number:
                printer.break_()
            printer.text(line)

    return show


def _as_table(text: Callable[[Any], str]) -> Callable[[Any], str]:
    """The HTML of a text: its first line as a heading, and the others as rows of a label and the rest."""

    def html(value: Any) -> str:
        head, *lines = text(value).splitlines()
        cells = [match.groups() for match in map(_ROW.match, lines) if match is not None]
        rows = "".join(
            [f"<tr><th {_LABEL}>{html_text(label)}</th><td {_LEFT}><code>{html_text(rest)}</code></td></tr>" for label, rest in cells]
        )
        return f"<div><code>{html_text(head)}</code><table>{rows}</table></div>"

    return html


def _diagram_text(diagram: Callable[[Any], Diagram]) -> Callable[[Any], str]:
    """The text of the diagram of a definition."""
    return lambda value: diagram(value).text


def _as_diagram(diagram: Callable[[Any], Diagram]) -> Callable[[Any], str | None]:
    """The HTML of the diagram of a definition, None for one without cards: then there is its text."""

    def html(value: Any) -> str | None:
        drawn = diagram(value)
        return to_card_html(drawn) if any(drawn.columns) else None

    return html


def _node_html(node: Node) -> str:
    """A node as a table; the ends of a graph as diagrams, with the nodes next to them."""
    is_end = node in (node.graph.source_node, node.graph.sink_node)
    return to_card_html(end_diagram(node)) if is_end else _as_table(node_text)(node)


def variable_text(variable: Variable) -> str:
    """A variable's type and shape, its initial value, and the line that made it."""
    start = variable.initial_value
    lines = [repr(variable), f"  begins   as {start.name}  {start.dtype.text} {start.shape}"]
    return "\n".join(lines + _state(variable.op))


def op_text(op_def: OpDef) -> str:
    """The signature of an op in the text form, and its first sentence."""
    return "\n".join(filter(None, [debug_string(op_def), op_def.summary]))


def function_text(function: FunctionDef) -> str:
    """A function in the text form."""
    return debug_string(function).strip()


def device_text(device: DeviceSpec) -> str:
    """The name of a device."""
    return f"<gc.DeviceSpec '{device.to_string()}'>"


def device_parts(device: DeviceSpec) -> str:
    """The parts of the name of a device; `any` stands for those that it leaves open."""
    parts = {"job": device.job, "replica": device.replica, "task": device.task, "type": device.type, "number": device.id}
    return "\n".join([device_text(device), *[f"  {name:9}{'any' if value is None else value}" for name, value in parts.items()]])


def shape_text(shape: Shape) -> str:
    """A shape's rank, its sizes, and the number of elements."""
    if shape.dims is None:
        return f"{shape!r}\n  rank     unknown"
    least = prod([size for size in shape.dims if size is not None])
    elements = f"{least:,}" if None not in shape.dims or not least else f"a multiple of {least:,}" if least > 1 else "unknown"
    return f"{shape!r}\n  rank     {len(shape.dims)}\n  sizes    {shape}\n  elements  {elements}"


def tensor_text(tensor: Tensor) -> str:
    """Type and shape of a tensor, its op, and the line that made it."""
    lines = [repr(tensor), f"  from     {tensor.node.name} ({tensor.node.op})"]
    return "\n".join(lines + _state(tensor.node))


def node_text(node: Node) -> str:
    """A node's inputs, outputs and attrs with types and shapes, and the line that made it."""
    lines = [repr(node)]
    lines += [f"  input    {tensor.name}  {tensor.dtype.text} {tensor.shape}" for tensor in node.inputs]
    lines += [f"  after    {control.name}" for control in node.control_inputs]
    lines += [f"  output   {tensor.name}  {tensor.dtype.text} {tensor.shape}" for tensor in node.outputs]
    return "\n".join(lines + _state(node))


def _state(node: Node) -> list[str]:
    lines = [f"  device   {node.device}"] if node.device else []
    lines += [f"  error    {node.error.message}"] if node.error is not None else []
    return [*lines, f"  made in  {node.source}"] if node.source is not None else lines
