"""The definition of a page's data: a graph in columns.

The TypeScript types are generated from these structs. A page without a kernel builds any scene from it. Numbers named *text* are places in `PageData.texts`, numbers of nodes are places in the
columns of their space, in the order of node ids.
"""

from __future__ import annotations

from typing import Final

import msgspec

from widgets.inspection import Clash, FunctionInfo, SourceRow, Why
from widgets.overlays import Overlay
from widgets.recorded_values import RunValues
from widgets.timelines import StepTimeline
from widgets.times import RunTimes

PAGE_FORMAT: Final = 2
"""The version of the data. A viewer reads only its own; each change of what a number or field means raises it. The first had none."""


class TensorInfo(msgspec.Struct, frozen=True, kw_only=True):
    """Type and shape of a tensor.

    The sizes are texts, None for an unknown rank; `reference` is true for references and resources; `bytes` is None if unknown.
    """

    dtype: str
    sizes: list[str] | None
    reference: bool
    bytes: int | None


class ForeignTensor(msgspec.Struct, frozen=True, kw_only=True):
    """An input that is no output of a node of its space: its producer was removed or replaced. `name` is that of the producer."""

    name: str
    slot: int
    info: TensorInfo
    dims: list[int] | None


class BodyRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A body of a call: a space whose names follow `label`.

    `scope_label` is the label of its scope if it is one of several bodies.
    """

    space: int
    label: str
    scope_label: str


class CallRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A call: a box that opens into bodies.

    Attributes:
        node: the node that calls.
        refusal: the reason for which it does not open, "" if it may.
        failure: the reason for which its bodies could not be made, known once it was opened.
        hub: true for branches and loops, which keep their own box when they are open.
        called: the titles of its functions.
        invariant: for each output of a loop `1` for each dimension that is loop-invariant, else `0`.
        functions: the inspector's entries.
    """

    node: int
    refusal: str = ""
    failure: str = ""
    hub: bool = False
    loop: bool = False
    choice: bool = False
    called: str = ""
    bodies: list[BodyRecord] = []
    invariant: list[str] = []
    functions: list[FunctionInfo] = []


class ErrorRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The errors of a node: all in words, by input slot, and the paths of clashing numbers.

    Each chain has its steps as pairs of producer and consumer, and its notes as pairs of a node and a text. `has_error` is false if only
    inputs have errors. `circle` is the node that it was to take although that depends on it, -1 for none. `clashes` and `explained` are the
    inspector's, with empty places.
    """

    text: str
    inputs: dict[str, str] = {}
    has_error: bool = True
    circle: int = -1
    chains: list[tuple[list[tuple[str, str]], list[tuple[str, str]]]] = []
    clashes: list[Clash] = []
    explained: list[Why] = []


class RefusedRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A node that could not be made, with the error.

    `inputs` are the tensors that it was to take, as pairs of node and output.
    """

    name: str
    text: str
    inputs: list[tuple[int, int]]


class GradientRow(msgspec.Struct, frozen=True, kw_only=True):
    """A gradient node: the names of the node it differentiates and of the gradient function.

    Seeds and sums have no function. `info` is the place of the inspector's entry in `PageHead.gradients`, -1 for none, `body_node` the node in the function's body.
    """

    node: int
    forward: str
    function: str | None
    info: int = -1
    body_node: str = ""


class GapRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A node whose gradient is None.

    Each cut is a place where gradients stop: the last gradient node on the way, the responsible node (-1 for none), and the reason.
    """

    node: int
    cuts: list[tuple[int, int, str]]


class OwnClasses(msgspec.Struct, frozen=True, kw_only=True):
    """The classes of nodes under a lens of a user, as texts, or the note of its failure."""

    classes: list[int] = []
    failure: str = ""


class DifferenceRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The marks of a difference, by nodes.

    Attributes:
        nodes: the kind of each node's difference, and its words.
        new_inputs: consumer, slot and producer of each new edge between kept nodes; the producer of a data edge is -1, the slot of a
            control edge.
        old_edges: producer, output, consumer and slot of each edge to a kept node that is gone.
        scopes: the former names of renamed scopes by their later ones.
        summary: the counts.
    """

    nodes: dict[int, tuple[str, str]]
    new_inputs: list[tuple[int, int, int]]
    old_edges: list[tuple[int, int, int, int]]
    scopes: dict[str, str]
    summary: str


class SpaceHead(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a space that is rare in its nodes.

    Attributes:
        paths: the paths of the scopes that hold nodes, the first is the root's.
        calls: in the order of their nodes.
        foreign: inputs from elsewhere, in the order of use.
        errors: by node.
        origins: each gradient node, and after it the node that it differentiates.
        gaps: the nodes whose gradient is None.
        gradient_count: the number of gradient nodes on record.
        refused: the nodes that could not be made.
        why: the inspector's explanations of dimensions by node, with empty places; their keys are `output:dimension`.
        user_names: the names that the user's code has for arguments, by node.
        colocations: the colocation groups of the last placement: their nodes, and the constraints that join them.
        own_classes: a column for each of `PageHead.own_lenses`.
        arguments, returns, control_returns: nodes of a body, by index.
        difference: the difference that the graph shows, None for any other graph.
        saver_nodes: the nodes of a SavedModel that save and restore.
        saved_signatures: the signatures of a SavedModel but for that of its initialization, each with the nodes of its inputs and outputs.
        classes: the classes of the modules of another framework, by the paths of the scopes that stand for them.
    """

    paths: list[str]
    calls: list[CallRecord] = []
    foreign: list[ForeignTensor] = []
    errors: dict[int, ErrorRecord] = {}
    gradients: list[GradientRow] = []
    gradient_count: int = 0
    origins: list[int] = []
    gaps: list[GapRecord] = []
    refused: list[RefusedRecord] = []
    why: dict[int, list[Why]] = {}
    user_names: dict[int, str] = {}
    colocations: list[tuple[list[int], list[str]]] = []
    own_classes: list[OwnClasses] = []
    arguments: list[int] = []
    returns: list[int] = []
    control_returns: list[int] = []
    difference: DifferenceRecord | None = None
    saver_nodes: list[int] = []
    saved_signatures: list[tuple[str, list[int]]] = []
    classes: dict[str, str] = {}


class SpaceColumns(msgspec.Struct, frozen=True, kw_only=True):
    """The nodes of a graph, or of the body of a function, in columns. A column of one value has only that one.

    Attributes:
        scopes: the scope whose path begins the name of the node.
        names: the last part of the name.
        ops, kinds, details, cells, functions: texts.
        devices, requests: texts of the assigned and the requested device, "" for none.
        definitions: texts of attrs, a line `name=value` for each, and of facts in sections of the inspector, `section<tab>name=value`.
        slot_names: places in `PageHead.slots`.
        registered: places of the op's gradient in `PageHead.gradients`, -1 for none.
        sources: places in `PageData.sources`, -1 for none.
        flags: bits of `Flag`.
        arities: the number of inputs.
        producers: the number of a node less that of each input's producer; 0 takes the next of `foreign`.
        slots: the output of the producer.
        waits: the number of control inputs; `awaited` are as `producers`.
        signatures: places in `PageData.signatures`.
        dims: the dimensions of outputs of known rank, one by one: 0 for one not seen before, else its distance from the newest, from 1 on.
    """

    scopes: list[int]
    names: list[str]
    ops: list[int]
    kinds: list[int]
    details: list[int]
    cells: list[int]
    devices: list[int]
    requests: list[int]
    functions: list[int]
    definitions: list[int]
    slot_names: list[int]
    registered: list[int]
    sources: list[int]
    flags: list[int]
    arities: list[int]
    producers: list[int]
    slots: list[int]
    waits: list[int]
    awaited: list[int]
    signatures: list[int]
    dims: list[int]


class OpText(msgspec.Struct, frozen=True, kw_only=True):
    """The documentation of an op, for the inspector, and the traits from which its nodes are grouped.

    `label` is the name in pictures if it is another one: without the domain of another framework.
    """

    doc: str
    traits: str
    signature: str
    layer: str
    memory: str
    elementwise: bool
    needs_only_shapes: bool
    label: str = ""


class GradientText(msgspec.Struct, frozen=True, kw_only=True):
    """A registered gradient function: its name, its definition, and its body with the attrs of one use."""

    function: str
    definition: str
    instantiated: str


class PageHead(msgspec.Struct, frozen=True, kw_only=True):
    """The tables of a page's data.

    Attributes:
        ops: the documentation of ops by name.
        slots: names of inputs and outputs.
        own_lenses: the names and titles of lenses of the user.
        max_boxes, auto_boxes: the limits of the view.
        times: the times of the last recorded run, None if there is none.
        timelines: the timelines of a saved picture; those of pages are beside the data.
        values: its values, None if they were not recorded.
        overlays: numbers of the user.
        device_words: the words of a model of another framework about devices, "" for graphs of this library.
    """

    spaces: list[SpaceHead]
    infos: list[TensorInfo]
    signatures: list[list[int]]
    gradients: list[GradientText]
    ops: dict[str, OpText]
    slots: list[tuple[list[str], list[str]]]
    own_lenses: list[tuple[str, str]]
    max_boxes: int
    auto_boxes: int
    times: RunTimes | None = None
    timelines: list[StepTimeline] = []
    values: RunValues | None = None
    overlays: list[Overlay] = []
    device_words: str = ""


class GraphChange(msgspec.Struct, frozen=True, kw_only=True):
    """The data of a graph that a page does not have yet, in place of `PageData` with all nodes.

    Attributes:
        number: one more than that of the change before.
        whole: the page begins anew with this change.
        ids: the ids of the nodes that are new or different, in the order of the columns.
        removed: the ids of the nodes that are gone.
        merges: equal dimensions that merges have found are one.
        dims: the key of each dimension of the columns; equal keys are one dimension.
        origins: each of these nodes that is a gradient node, and after it the node that it differentiates, by ids.
        with_bodies: the calls and bodies are other ones.
        head: of the page. The first space has calls and gradients of these nodes by ids, everything else in it is of all nodes by places.
            Without any space it has the overlays alone: nothing else is different.
        texts, sources: of these nodes.
        spaces: the columns of these nodes, with ids for numbers of nodes, and those of bodies.
        times_note, values_note: the reasons if there are no recorded times and values.
    """

    number: int
    whole: bool
    ids: list[int]
    removed: list[int]
    merges: bool
    dims: list[int]
    origins: list[int]
    with_bodies: bool
    head: PageHead
    texts: list[str]
    sources: list[SourceRow]
    spaces: list[SpaceColumns]
    times_note: str
    values_note: str
