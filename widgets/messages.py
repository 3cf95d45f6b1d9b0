"""The messages between a view in the browser and its kernel (or the data inside a standalone page).

Every message is one of these structs, told apart by its `type` field; the TypeScript side is generated from here.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from widgets.scene.types import Scene

Renderer = Literal["graphviz", "mermaid"]
ExportFormat = Literal["svg", "dot", "mermaid"]
Engine = Literal["core", "graphviz", "mermaid"]


class Message(msgspec.Struct, frozen=True, kw_only=True, tag_field="type"):
    """The base of every message."""


# ---- kernel to viewer -----------------------------------------------------------------------------------------------


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
    """The line of user code that made something: cell label such as `In [3]`, 1-based line, and its text."""

    cell: str
    line: int
    text: str
    file: str = ""


class GradientInfo(msgspec.Struct, frozen=True, kw_only=True):
    """For a gradient node: the forward node it differentiates and the registered function it comes from.

    `definition` is the FunctionDef in the text form, `instantiated` its body with the types of this use, `built` what of it is in the graph:
    all of it, or what its simplification left.
    """

    differentiates: str
    differentiates_id: str
    function: str
    definition: str
    instantiated: str
    body_node: str = ""
    built: str = ""


class FunctionInfo(msgspec.Struct, frozen=True, kw_only=True):
    """One function that the inspected call calls: its definition, and its body with the types of this call.

    `place` is its number among the functions of this call, `label` what tells them apart (`then`, `body`). `derived` says that the
    definition was made by differentiating, `note` why there is no body, `opens` that the function can be looked at by itself.
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
    """One step on the way to where a number entered: what happens at node `name`, whose box is `node`; `source` where it was written."""

    text: str
    node: str = ""
    name: str = ""
    depth: int = 0
    source: SourceRow | None = None


class Why(msgspec.Struct, frozen=True, kw_only=True):
    """Why one dimension is what it is. `key` is the same for dimensions that are the same number, "" where that is not known."""

    what: str
    size: str
    key: str = ""
    steps: list[WhyStep] = []


class Clash(msgspec.Struct, frozen=True, kw_only=True):
    """One side of a shape or type clash: which tensor, its shape, and where that came from."""

    tensor: str
    shape: str
    source: SourceRow | None = None


class Inspection(msgspec.Struct, frozen=True, kw_only=True):
    """All that the inspector shows of one node or scope. Texts are plain text, never markup."""

    id: str
    name: str
    op: str
    kind: str
    node_def: str = ""
    summary: str = ""
    doc: str = ""
    signature: str = ""
    device: str = ""
    attrs: list[tuple[str, str]] = []
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


class SearchHit(msgspec.Struct, frozen=True, kw_only=True):
    """One node found by name, op or cell; `node` is its box id once its scopes are open, `name` its graph name."""

    node: str
    name: str
    op: str


class SceneMessage(Message, frozen=True, kw_only=True, tag="scene"):
    """A new picture. `mermaid` is its Mermaid text when the Mermaid renderer is on (else "").

    `sent_at` is the kernel's wall clock (ms since the epoch) at the end of the cell, for measuring the delay.
    """

    scene: Scene
    mermaid: str = ""
    focus: str = ""
    sent_at: float = 0.0
    lens: str = "structure"
    renderer: Renderer = "graphviz"


class InspectionMessage(Message, frozen=True, kw_only=True, tag="inspection"):
    """The answer to `InspectRequest`."""

    inspection: Inspection


class SearchMessage(Message, frozen=True, kw_only=True, tag="search"):
    """The answer to `SearchRequest`."""

    query: str
    hits: list[SearchHit]
    total: int


class ExportMessage(Message, frozen=True, kw_only=True, tag="export"):
    """The answer to `ExportRequest`: the text of a file."""

    format: ExportFormat
    name: str
    text: str


class EngineMessage(Message, frozen=True, kw_only=True, tag="engine"):
    """A gzipped script follows as this message's one binary buffer: `widgets/static/<engine>.js.gz`.

    "core" is the viewer itself: the widget's own module only asks for it, so that a saved notebook stays small.
    """

    engine: Engine


class FailureMessage(Message, frozen=True, kw_only=True, tag="failure"):
    """Something the viewer asked for went wrong; `text` says what, for the status line."""

    request: str
    text: str


Pane = Literal["definition", "instance"]
"""The two pictures of a function: as it is defined, and as it was instantiated."""


class AttrField(msgspec.Struct, frozen=True, kw_only=True):
    """One attr of a function in the form: `value` is what stands in the field, right or wrong, `error` what is wrong with it.

    `kind` is a kind of attr (`type`, `list(int)`); `choices` are the values to choose from, none where anything may be typed.
    """

    name: str
    kind: str
    value: str
    choices: list[str] = []
    hint: str = ""
    doc: str = ""
    error: str = ""


class Crumb(msgspec.Struct, frozen=True, kw_only=True):
    """One step on the way to what is shown: the graph, a function, a gradient."""

    label: str
    detail: str = ""


class FunctionUse(msgspec.Struct, frozen=True, kw_only=True):
    """One instantiation to choose: traced for these types, or used by this call."""

    label: str
    detail: str = ""


class FunctionMessage(Message, frozen=True, kw_only=True, tag="function"):
    """A function to show: its texts, its form, and the way here. The pictures follow as `PaneMessage`s.

    `chosen` is the number of the use whose types are shown, -1 for none. `problem` says why there is no body, `gradient` what the
    gradient button says ("" where there is nothing to differentiate).
    """

    name: str
    crumbs: list[Crumb]
    definition: str
    instantiated: str
    fields: list[AttrField] = []
    uses: list[FunctionUse] = []
    chosen: int = -1
    derived: bool = False
    problem: str = ""
    gradient: str = ""
    revision: int = 0


class ToFrontMessage(Message, frozen=True, kw_only=True, tag="to_front"):
    """Bring the panel that the view is in before those that cover it."""


class FunctionClosedMessage(Message, frozen=True, kw_only=True, tag="function_closed"):
    """Back to the graph."""


PictureMessage = SceneMessage | InspectionMessage | SearchMessage | ExportMessage | FailureMessage


class PaneMessage(Message, frozen=True, kw_only=True, tag="pane"):
    """Something for one of the two pictures of a function."""

    pane: Pane
    message: PictureMessage


FromKernel = (
    SceneMessage
    | InspectionMessage
    | SearchMessage
    | ExportMessage
    | EngineMessage
    | FailureMessage
    | FunctionMessage
    | FunctionClosedMessage
    | ToFrontMessage
    | PaneMessage
)

# ---- viewer to kernel -----------------------------------------------------------------------------------------------


class ReadyRequest(Message, frozen=True, kw_only=True, tag="ready"):
    """The viewer is mounted and wants the current scene."""


class ClosedReport(Message, frozen=True, kw_only=True, tag="closed"):
    """The viewer is no longer on the page (the user closed its panel, or the page)."""


class EngineRequest(Message, frozen=True, kw_only=True, tag="need_engine"):
    """This page has not got the engine yet."""

    engine: Engine


class ExpandRequest(Message, frozen=True, kw_only=True, tag="expand"):
    """Open a collapsed scope or call; "*" opens all (as far as the box limit allows)."""

    id: str


class CollapseRequest(Message, frozen=True, kw_only=True, tag="collapse"):
    """Close an open scope or call; "*" closes all."""

    id: str


class InspectRequest(Message, frozen=True, kw_only=True, tag="inspect"):
    """Tell all about this box."""

    id: str


class RevealRequest(Message, frozen=True, kw_only=True, tag="reveal"):
    """Open whatever hides this node and bring it into view."""

    name: str


class SearchRequest(Message, frozen=True, kw_only=True, tag="find"):
    """Find nodes whose name, op or cell contains the query (case-insensitive)."""

    query: str


class ExportRequest(Message, frozen=True, kw_only=True, tag="want_export"):
    """Give the graph as text in this format (SVG is drawn by the viewer itself while it runs)."""

    format: ExportFormat


class RendererRequest(Message, frozen=True, kw_only=True, tag="renderer"):
    """Use this renderer from now on."""

    renderer: Renderer


class LensRequest(Message, frozen=True, kw_only=True, tag="lens"):
    """The lens that the user looks through now (kept for the next view and for the static picture)."""

    lens: str


class DrawnReport(Message, frozen=True, kw_only=True, tag="drawn"):
    """The picture of `revision` is on the screen; `delay_ms` is page clock minus `sent_at`."""

    revision: int
    delay_ms: float
    layout_ms: float
    renderer: Renderer


class OpenFunctionRequest(Message, frozen=True, kw_only=True, tag="open_function"):
    """Show by itself a function that a box calls: `place` is its number among those of the call."""

    id: str
    place: int = 0


PictureRequest = (
    ReadyRequest
    | ClosedReport
    | ExpandRequest
    | CollapseRequest
    | InspectRequest
    | RevealRequest
    | SearchRequest
    | ExportRequest
    | RendererRequest
    | LensRequest
    | DrawnReport
    | OpenFunctionRequest
)


class PaneRequest(Message, frozen=True, kw_only=True, tag="to_pane"):
    """One of the two pictures of a function asks for something."""

    pane: Pane
    message: PictureRequest


class SetAttrRequest(Message, frozen=True, kw_only=True, tag="set_attr"):
    """The user has put this into the field of an attr."""

    name: str
    value: str


class ChooseUseRequest(Message, frozen=True, kw_only=True, tag="choose_use"):
    """Show the function as this use of it has it."""

    place: int


class DifferentiateRequest(Message, frozen=True, kw_only=True, tag="differentiate"):
    """Show the gradient of the instantiated body."""


class BackRequest(Message, frozen=True, kw_only=True, tag="back"):
    """Go back to this crumb; 0 in a view of a graph is the graph."""

    crumb: int


FromViewer = PictureRequest | EngineRequest | PaneRequest | SetAttrRequest | ChooseUseRequest | DifferentiateRequest | BackRequest
