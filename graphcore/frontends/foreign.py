"""A graph of another framework as plain data, as a frontend reads it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from graphcore.runtime.runners import Runner

Size: TypeAlias = "int | str | None"
"""A size: a number, a symbol (`batch`, `2*s0`), or None if it is unknown."""

Attr: TypeAlias = "str | int | float | bool | Sequence[Attr] | WeightRef"
"""The value of an attr. What is none of these is written as text."""


@dataclass(frozen=True, slots=True)
class Port:
    """A tensor that a node, a graph or a function takes or gives.

    Attributes:
        name: the tensor's or argument's name in the source, "" if it has none.
        dtype: the type in the framework's own words (`bfloat16`, `FLOAT8E4M3FN`), "" if it is unknown.
        shape: the sizes, None if the rank is unknown.
        note: what the source says about it: layout, alias.
        quantization: scale and zero point of quantised values in words: `scale 0.02, zero point 128`. "" for others.
    """

    name: str = ""
    dtype: str = ""
    shape: tuple[Size, ...] | None = None
    note: str = ""
    quantization: str = ""


@dataclass(frozen=True, slots=True)
class WeightRef:
    """A tensor that a source holds; its elements are read when `load` is called.

    Attributes:
        dtype: the type in the framework's own words.
        shape: the sizes.
        nbytes: the bytes in the source, -1 if they are unknown.
        load: reads the elements; None if the source does not hold them. It raises a GraphError where they cannot be read.
        where: the place in the source: a file's name and an offset.
    """

    dtype: str
    shape: tuple[int, ...]
    nbytes: int = -1
    load: Callable[[], np.ndarray] | None = field(default=None, compare=False)
    where: str = ""


@dataclass(frozen=True, slots=True)
class SourceFrame:
    """A line of the program that made a node. Files are never read: `text` is what the source says, "" if it says nothing."""

    file: str
    line: int
    text: str = ""
    function: str = ""


@dataclass(frozen=True, slots=True)
class ModuleCall:
    """A module or a named scope around a node.

    Attributes:
        path: the path of the module (`model.layers.0.mlp`), or the last part of the scope's name.
        type_name: the class (`LlamaMLP`), "" for a scope without one.
    """

    path: str
    type_name: str = ""


@dataclass(frozen=True, slots=True)
class SizeStep:
    """A step backwards from a size of an output of a node to those that it comes from.

    Attributes:
        how: `passed` for one that is the size of an input, `computed` from some, `given` where it begins, `unknown` where it is not followed.
        text: the step in words that follow "it"; "" for sizes that are passed.
        sources: the inputs and their axes that the size comes from, the inputs counted without those that are left out.
    """

    how: Literal["passed", "computed", "given", "unknown"]
    text: str
    sources: tuple[tuple[int, int], ...] = ()


InputRef: TypeAlias = "tuple[str, int] | None"
"""The name of a node and the number of its output; None for an optional input that is left out."""


@dataclass(slots=True)
class ForeignNode:
    """A node.

    Attributes:
        name: unique within its graph or function. Any text; the lowering makes it a valid name.
        op: the op with its domain: `onnx.Conv`, `aten.convolution.default`, `jax.dot_general`, `stablehlo.add`, `tfl.CONV_2D`, `keras.Dense`.
        inputs: its inputs, by nodes of the same graph or function.
        outputs: its outputs.
        input_names: the names of the op's arguments for the inputs, as far as they are known.
        attrs: the attrs that the source gives.
        defaults: attrs that the source leaves out, with the values that they then have.
        modules: the modules around it, outermost first.
        frames: the lines that made it, the innermost last.
        device: the device, or how its results are sharded over several (`sharded P('data', None)`, `replicated`); "" if neither is said.
        control_inputs: names of the nodes that run before it.
        bodies: functions that it calls, by their roles: `then`, `else`, `cond`, `body`, or the function's name. Values are keys of `functions`.
        arguments: for each role of `bodies` the numbers of the inputs that the body's arguments are, -1 for one that is none of them. By
            default the inputs in their order, or all but the first if the body takes one less.
        weight: the tensor of a constant or parameter.
        kind: what it is beside an op: `input`, `output`, `parameter`, `buffer`, `constant`, `op`.
        doc: the source's own note on the node.
        error: the message with which the framework refused it, "" if it did not.
        clashes: the sizes for which it did: inputs and their axes, the inputs counted without those that are left out.
        differentiates: the name of the node that a node of the backward pass differentiates, "" for other nodes. That node comes before it.
        part: what it is in the backward pass: `seed`, `sum`, or the name of the function.
    """

    name: str
    op: str
    inputs: tuple[InputRef, ...] = ()
    outputs: tuple[Port, ...] = ()
    input_names: tuple[str, ...] = ()
    attrs: Mapping[str, Attr] = field(default_factory=dict)
    defaults: Mapping[str, Attr] = field(default_factory=dict)
    modules: tuple[ModuleCall, ...] = ()
    frames: tuple[SourceFrame, ...] = ()
    device: str = ""
    control_inputs: tuple[str, ...] = ()
    bodies: Mapping[str, str] = field(default_factory=dict)
    arguments: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    weight: WeightRef | None = None
    kind: str = "op"
    doc: str = ""
    error: str = ""
    clashes: tuple[tuple[int, int], ...] = ()
    differentiates: str = ""
    part: str = ""


@dataclass(slots=True)
class ForeignFunction:
    """A function with a body: an ONNX function or the graph of an If, a jaxpr, a TFLite subgraph.

    Attributes:
        name: its name.
        inputs: its arguments. The body has a node of kind `input` for each, in this order.
        outputs: its results, by nodes of the body.
        output_names: the names of the results, as far as they are known.
        nodes: the body, in an order in which producers come first.
        doc: the source's own note.
        make: makes the body when it is opened; None if it is here.
    """

    name: str
    inputs: tuple[Port, ...] = ()
    outputs: tuple[InputRef, ...] = ()
    output_names: tuple[str, ...] = ()
    nodes: list[ForeignNode] = field(default_factory=list)
    doc: str = ""
    make: Callable[[], ForeignGraph] | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class GradientEnd:
    """A place where a gradient stops.

    Attributes:
        kind: as of a `GradientCut`.
        node: the node at which it stops, "" if there is none.
        reason: the reason; a sentence with the node as its subject.
        path: the nodes from the tensor without a gradient to the result.
    """

    kind: str
    node: str
    reason: str
    path: tuple[str, ...] = ()


@dataclass(slots=True)
class ForeignGraph:
    """A graph of another framework.

    Attributes:
        kind: the kind of source in words: `ONNX model`, `PyTorch exported program`.
        producer: what wrote it, with its version: `pytorch 2.14`.
        name: its own name.
        main: the graph: its inputs, outputs and nodes.
        functions: the functions that nodes call, by key.
        facts: further facts in the order in which to show them: `opset` to `ai.onnx 18`.
        notes: sentences for the reader: what is missing, what was left out.
        has_graph: False for weights without a graph.
        size_step: gives the step backwards from a size by the node, its output and the axis; None if there is none.
        missing: nodes whose tensors were to have gradients and have none, with the places where these stop.
        docs: gives the op's documentation, by the op's name with its domain; "" if there is none.
        runner: makes what runs the model in its own framework, when a run is asked for; None if it can only be shown.
    """

    kind: str
    main: ForeignFunction
    producer: str = ""
    name: str = ""
    functions: dict[str, ForeignFunction] = field(default_factory=dict)
    facts: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    has_graph: bool = True
    size_step: Callable[[ForeignNode, int, int], SizeStep | None] | None = None
    missing: dict[str, list[GradientEnd]] = field(default_factory=dict)
    docs: Callable[[str], str] | None = None
    runner: Callable[[], Runner] | None = field(default=None, compare=False)

    def opened(self, key: str) -> ForeignFunction:
        """The function with its body, which is made now if it was not before. Functions that it calls are then among `functions`.

        Raises:
            GraphError: its body cannot be made.
        """
        function = self.functions[key]
        if function.make is None:
            return function
        made = function.make()
        for inner, called in made.functions.items():
            self.functions[f"{key}/{inner}"] = replace(called, nodes=_below(key, called.nodes))
        main = made.main
        doc = " ".join(filter(None, (function.doc, *made.notes)))
        opened = ForeignFunction(function.name, main.inputs, main.outputs, main.output_names, _below(key, main.nodes), doc)
        self.functions[key] = opened
        return opened


def _below(key: str, nodes: Sequence[ForeignNode]) -> list[ForeignNode]:
    """Nodes that call functions of a graph within another one, by their keys there."""
    return [
        replace(node, bodies={role: f"{key}/{inner}" for role, inner in node.bodies.items()}) if node.bodies else node for node in nodes
    ]
