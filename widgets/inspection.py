"""The content of the inspector, sent in messages and stored in pages."""

from __future__ import annotations

import msgspec


class TensorRow(msgspec.Struct, frozen=True, kw_only=True):
    """One input or output of the inspected node. `node` is the other end's box id ("" if none)."""

    name: str
    tensor: str
    dtype: str
    shape: str
    node: str = ""
    error: str = ""
    note: str = ""


class SourceRow(msgspec.Struct, frozen=True, kw_only=True):
    """The line of user code that made a node: cell label such as `In [3]`, 1-based line, and its text.

    `file` is "" in a notebook. `cell_id` is the lasting id of the cell that holds the line, "" for a line of a file.
    """

    cell: str
    line: int
    text: str
    file: str = ""
    cell_id: str = ""


class GradientInfo(msgspec.Struct, frozen=True, kw_only=True):
    """For a gradient node: the forward node it differentiates and the registered function.

    `definition` is the FunctionDef in the text form, `instantiated` its body with the types of this use, `built` the part of it in the graph:
    all of it, or the rest after simplification.
    """

    differentiates: str
    differentiates_id: str
    function: str
    definition: str
    instantiated: str
    body_node: str = ""
    built: str = ""


class FunctionInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A function called by the inspected node: its definition, and its body with the types of this call.

    `place` is its number among the functions of this call, `label` distinguishes them (`then`, `body`). `derived` means that the definition
    was made by differentiation, `note` is the reason if there is no body, `opens` means that it can be opened on its own.
    """

    place: int
    label: str
    name: str
    attrs: str = ""
    definition: str = ""
    instantiated: str = ""
    derived: bool = False
    note: str = ""
    opens: bool = False


class WhyStep(msgspec.Struct, frozen=True, kw_only=True):
    """One step towards the origin of a number.

    It describes node `name`, in the box `node`, made at `source`.
    """

    text: str
    node: str = ""
    name: str = ""
    depth: int = 0
    source: SourceRow | None = None


class Why(msgspec.Struct, frozen=True, kw_only=True):
    """The explanation of one dimension. Equal keys stand for the same number; "" if this is unknown."""

    what: str
    size: str
    key: str = ""
    steps: list[WhyStep] = []


class Clash(msgspec.Struct, frozen=True, kw_only=True):
    """One side of a shape or type clash: the tensor, its shape, and the origin of the shape."""

    tensor: str
    shape: str
    source: SourceRow | None = None


class ValueRow(msgspec.Struct, frozen=True, kw_only=True):
    """A row of values along the last dimension. `index` is the index of its first value, "" for a scalar."""

    index: str
    cells: list[str]


class Values(msgspec.Struct, frozen=True, kw_only=True):
    """Values of a constant or variable: statistics, and one page of rows.

    `note` is the session of the values, or the reason if there are none. `bins` are the numbers of values in equal intervals between `min`
    and `max`, empty without a histogram. `first` is the number of the first row of this page, of `total` rows; a page has `page` rows.
    `picture` has the grey levels (0 to 255) of the first of `pictures` images, by rows.
    """

    note: str = ""
    dtype: str = ""
    shape: str = ""
    statistics: list[tuple[str, str]] = []
    bins: list[int] = []
    rows: list[ValueRow] = []
    first: int = 0
    total: int = 0
    page: int = 0
    picture: list[list[int]] = []
    pictures: int = 0


class DeviceChoice(msgspec.Struct, frozen=True, kw_only=True):
    """A device to choose. `label` says if it is simulated."""

    name: str
    label: str


class EffectRow(msgspec.Struct, frozen=True, kw_only=True):
    """A quantity of the step before and after a request. `change` is the difference in words."""

    what: str
    before: str
    after: str
    change: str = ""


class RequestLine(msgspec.Struct, frozen=True, kw_only=True):
    """The line of code that requests the device, to be put above `source`.

    That line made the nodes, and `others` more.
    """

    source: SourceRow | None
    code: str
    nodes: list[str]
    others: int = 0


class Effect(msgspec.Struct, frozen=True, kw_only=True):
    """The effect of a requested device.

    `error` is the constraint that it breaks, `conflict` a minimal set of nodes in conflict. `moved` are nodes that change their device, `more`
    the number of those not listed.
    """

    error: str = ""
    conflict: list[WhyStep] = []
    rows: list[EffectRow] = []
    moved: list[WhyStep] = []
    more: int = 0
    notes: list[str] = []
    lines: list[RequestLine] = []


class WhatIf(msgspec.Struct, frozen=True, kw_only=True):
    """The devices to choose from for the boxes `ids`, and the effect of one.

    `requested` is the device that all their nodes request, `device` the chosen one, None before a choice. `note` is the reason if there is no
    choice. `applied` is true after the request was made.
    """

    ids: list[str]
    devices: list[DeviceChoice] = []
    requested: str = ""
    device: str | None = None
    effect: Effect | None = None
    applied: bool = False
    note: str = ""


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """The part of an inspection that only a kernel knows; the fields are as those of `Inspection`.

    Keys of dimensions are `output:dimension`, and steps have no places.
    """

    node_def: str = ""
    summary: str = ""
    placement: list[WhyStep] = []
    why: list[Why] = []
    values: Values | None = None


class Inspection(msgspec.Struct, frozen=True, kw_only=True):
    """The inspector's content for one node or scope. Texts are plain text, never markup.

    For a node of another framework `modules` are the classes and paths of the modules around it, outermost first, `quantization` has the scale
    and zero point of its inputs and outputs, `origin` what its source says beside that. `waits` is true until the kernel's explanation has come.
    """

    id: str
    name: str
    op: str
    kind: str
    node_def: str = ""
    summary: str = ""
    doc: str = ""
    traits: str = ""
    signature: str = ""
    device: str = ""
    placement: list[WhyStep] = []
    attrs: list[tuple[str, str]] = []
    modules: list[tuple[str, str]] = []
    quantization: list[tuple[str, str]] = []
    origin: list[tuple[str, str]] = []
    inputs: list[TensorRow] = []
    outputs: list[TensorRow] = []
    control_inputs: list[TensorRow] = []
    control_outputs: list[TensorRow] = []
    source: SourceRow | None = None
    error: str = ""
    clashes: list[Clash] = []
    chains: list[Why] = []
    why: list[Why] = []
    gradient: GradientInfo | None = None
    registered_gradient: GradientInfo | None = None
    functions: list[FunctionInfo] = []
    contents: list[tuple[str, int]] = []
    times: list[tuple[str, str]] = []
    numbers: list[tuple[str, str]] = []
    recorded: list[tuple[str, str]] = []
    values: Values | None = None
    waits: bool = False
