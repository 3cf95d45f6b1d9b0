"""The messages between a view in the browser and its kernel (or the data inside a standalone page).

Every message is one of these structs, identified by its `type` field; the TypeScript side is generated from here.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from widgets.function_views import AttrField, Crumb, FunctionUse
from widgets.inspection import Inspection, Values, WhatIf
from widgets.recorded_values import RunHealth
from widgets.scene.types import Openings, Scene
from widgets.steps import LiveRun, RecordedSteps, StepTest
from widgets.timelines import StepTimeline

Renderer = Literal["graphviz", "mermaid"]
Engine = Literal["core", "graphviz", "mermaid", "lower"]


class Message(msgspec.Struct, frozen=True, kw_only=True, tag_field="type"):
    """The base of every message."""


# ---- kernel to viewer -----------------------------------------------------------------------------------------------


class SearchHit(msgspec.Struct, frozen=True, kw_only=True):
    """A node that matches a query; `node` is the id of its box with all scopes open."""

    node: str
    name: str
    op: str


class Camera(msgspec.Struct, frozen=True, kw_only=True):
    """The picture's point in the middle of the window, in its pixels, and the scale (1: natural size)."""

    x: float
    y: float
    scale: float


class Look(msgspec.Struct, frozen=True, kw_only=True):
    """The user's view of a picture: its camera (None: it follows the graph) and selected boxes."""

    camera: Camera | None = None
    selection: list[str] = []


class ViewState(Openings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything that a user chooses in a view, to be stored and restored."""

    lens: str = "structure"
    renderer: Renderer = "graphviz"
    camera: Camera | None = None
    selection: list[str] = msgspec.field(default_factory=list)


class SceneMessage(Message, frozen=True, kw_only=True, tag="scene"):
    """A new picture.

    `openings` are the open and closed scopes; `look` is where to look, None to leave that to the viewer.
    `sent_at` is the kernel's wall clock (ms since the epoch) at the end of the cell, for measuring the delay.
    """

    scene: Scene
    focus: str = ""
    sent_at: float = 0.0
    lens: str = "structure"
    renderer: Renderer = "graphviz"
    openings: Openings = Openings()
    look: Look | None = None


class InspectionMessage(Message, frozen=True, kw_only=True, tag="inspection"):
    """The answer to `InspectRequest`."""

    inspection: Inspection


class ValuesMessage(Message, frozen=True, kw_only=True, tag="values_page"):
    """The answer to `ValuesRequest`."""

    name: str
    values: Values


class WhatIfMessage(Message, frozen=True, kw_only=True, tag="what_if"):
    """The answer to `WhatIfRequest`."""

    what_if: WhatIf


class TimelinesMessage(Message, frozen=True, kw_only=True, tag="timelines"):
    """The answer to `TimelinesRequest`.

    `timelines` is None if they are still those of `key`, which the viewer has. `boxes` are the boxes of the nodes in the current picture.
    """

    key: str
    timelines: list[StepTimeline] | None = None
    boxes: dict[str, str] = {}


class HealthMessage(Message, frozen=True, kw_only=True, tag="health"):
    """The answer to `HealthRequest`.

    `boxes` are the boxes of its nodes in the current picture. `note` is the reason if there are no values.
    """

    health: RunHealth | None = None
    boxes: dict[str, str] = {}
    note: str = ""


class StepsMessage(Message, frozen=True, kw_only=True, tag="steps"):
    """The answer to `StepsRequest` and `LiveStepRequest`.

    `steps` is None if they are those of `key`, which the viewer has, or nothing was recorded. `run` differs between runs. `boxes` are those of
    the nodes in the current picture. `live` is None for a run that was recorded before.
    """

    key: str
    run: str = ""
    steps: RecordedSteps | None = None
    boxes: dict[str, str] = {}
    live: LiveRun | None = None


class ShowPaneMessage(Message, frozen=True, kw_only=True, tag="show_pane"):
    """Open this pane of the panel below the picture."""

    pane: str


class SearchMessage(Message, frozen=True, kw_only=True, tag="search"):
    """The answer to `SearchRequest`: the best hits, and the number of all."""

    query: str
    hits: list[SearchHit]
    total: int


class EngineMessage(Message, frozen=True, kw_only=True, tag="engine"):
    """A gzipped script follows as this message's one binary buffer: `widgets/static/<engine>.js.gz`.

    "core" is the viewer itself: the widget's own module only requests it, so that saved notebooks stay small.
    """

    engine: Engine


class FailureMessage(Message, frozen=True, kw_only=True, tag="failure"):
    """A failed request of the viewer; `text` is shown in the status line."""

    request: str
    text: str


Pane = Literal["definition", "instance"]
"""The two pictures of a function: as it is defined, and as it was instantiated."""


class FunctionMessage(Message, frozen=True, kw_only=True, tag="function"):
    """The current function: its texts, form, and breadcrumbs. The pictures follow as `PaneMessage`s.

    `chosen` is the number of the selected use, -1 for none. `problem` is the reason if there is no body, `gradient` the label of the
    gradient button ("" if there is nothing to differentiate).
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
    """Bring the view's panel to the front."""


class UnchangedMessage(Message, frozen=True, kw_only=True, tag="unchanged"):
    """A cell has ended, and the picture is the same."""


class GoodbyeMessage(Message, frozen=True, kw_only=True, tag="goodbye"):
    """The view is being closed on purpose, and its picture with it.

    A view whose connection breaks off keeps its picture.
    """


class FunctionClosedMessage(Message, frozen=True, kw_only=True, tag="function_closed"):
    """Return to the graph."""


class HighlightMessage(Message, frozen=True, kw_only=True, tag="highlight"):
    """Dim all boxes but these, until the user selects nothing. `text` says in the status line what they are."""

    boxes: list[str]
    text: str


PictureMessage = (
    SceneMessage
    | InspectionMessage
    | ValuesMessage
    | WhatIfMessage
    | TimelinesMessage
    | HealthMessage
    | StepsMessage
    | ShowPaneMessage
    | SearchMessage
    | HighlightMessage
    | FailureMessage
    | UnchangedMessage
)


class PaneMessage(Message, frozen=True, kw_only=True, tag="pane"):
    """A message for one of the two pictures of a function."""

    pane: Pane
    message: PictureMessage


FromKernel = (
    SceneMessage
    | InspectionMessage
    | ValuesMessage
    | WhatIfMessage
    | TimelinesMessage
    | HealthMessage
    | StepsMessage
    | ShowPaneMessage
    | SearchMessage
    | HighlightMessage
    | EngineMessage
    | FailureMessage
    | FunctionMessage
    | FunctionClosedMessage
    | ToFrontMessage
    | UnchangedMessage
    | GoodbyeMessage
    | PaneMessage
)

# ---- viewer to kernel -----------------------------------------------------------------------------------------------


class ReadyRequest(Message, frozen=True, kw_only=True, tag="ready"):
    """The viewer is mounted and requests the current scene."""


class ClosedReport(Message, frozen=True, kw_only=True, tag="closed"):
    """The viewer is no longer on the page (the user closed its panel, or the page)."""


class EngineRequest(Message, frozen=True, kw_only=True, tag="need_engine"):
    """The page requests an engine it has not loaded yet."""

    engine: Engine


class ExpandRequest(Message, frozen=True, kw_only=True, tag="expand"):
    """Open a collapsed scope or call; "*" opens all, up to the limit of boxes."""

    id: str


class CollapseRequest(Message, frozen=True, kw_only=True, tag="collapse"):
    """Close an open scope or call; "*" closes all."""

    id: str


class InspectRequest(Message, frozen=True, kw_only=True, tag="inspect"):
    """Inspect this box."""

    id: str


class ValuesRequest(Message, frozen=True, kw_only=True, tag="values"):
    """Send the page with row `first` of the values of the node called `name`."""

    name: str
    first: int


class WhatIfRequest(Message, frozen=True, kw_only=True, tag="try_device"):
    """Predict the effect of requesting `device` for these boxes, and request it if `apply`.

    None as device requests the devices to choose from, "" withdraws requests.
    """

    ids: list[str]
    device: str | None = None
    apply: bool = False


class TimelinesRequest(Message, frozen=True, kw_only=True, tag="want_timelines"):
    """Send the timelines, unless their key is `known`, and the boxes of their nodes."""

    known: str = ""


class HealthRequest(Message, frozen=True, kw_only=True, tag="want_health"):
    """Send the health of the last recorded run, and the boxes of its nodes."""


class StepsRequest(Message, frozen=True, kw_only=True, tag="want_steps"):
    """Send the recorded run node by node, unless its key is `known`, and the boxes of its nodes."""

    known: str = ""


class LiveStepRequest(Message, frozen=True, kw_only=True, tag="live_step"):
    """Let a run that waits go on, for a moment, and send its steps.

    `stops` (names of nodes and boxes), `on_bad` (NaN and Inf) and `where` (all tests hold) are breakpoints for the way `run`.
    """

    way: Literal["step", "over", "run"] = "step"
    stops: list[str] = []
    on_bad: bool = False
    where: list[StepTest] = []


class RevealRequest(Message, frozen=True, kw_only=True, tag="reveal"):
    """Open all scopes around this node, and scroll to it unless `quiet`."""

    name: str
    quiet: bool = False


class SearchRequest(Message, frozen=True, kw_only=True, tag="find"):
    """Find at most `limit` nodes that match the query (`widgets.scene.query`)."""

    query: str
    limit: int = 50


class FilterRequest(Message, frozen=True, kw_only=True, tag="filter"):
    """Highlight the boxes with nodes that match the query (`widgets.scene.query`)."""

    query: str


class RendererRequest(Message, frozen=True, kw_only=True, tag="renderer"):
    """Switch to this renderer."""

    renderer: Renderer


class RestoreRequest(Message, frozen=True, kw_only=True, tag="restore"):
    """Open and close scopes as they were."""

    openings: Openings


class LookReport(Message, frozen=True, kw_only=True, tag="look"):
    """Report the camera and the selection, after the user has changed them."""

    look: Look


class LensRequest(Message, frozen=True, kw_only=True, tag="lens"):
    """Report the selected lens (kept for the next view and for the static picture)."""

    lens: str


class DrawnReport(Message, frozen=True, kw_only=True, tag="drawn"):
    """The picture of `revision` is on the screen; `delay_ms` is page clock minus `sent_at`."""

    revision: int
    delay_ms: float
    layout_ms: float
    renderer: Renderer


class OpenFunctionRequest(Message, frozen=True, kw_only=True, tag="open_function"):
    """Open a function called by a box: `place` is its number among the functions of the call."""

    id: str
    place: int = 0


class CrowdedRequest(Message, frozen=True, kw_only=True, tag="crowded"):
    """Open scopes automatically up to this many boxes, 0 for the usual number, in the same picture."""

    boxes: int


class DifferenceRequest(Message, frozen=True, kw_only=True, tag="want_difference"):
    """Show the difference from the graph before run `since` of a cell, or the graph again."""

    since: int


PictureRequest = (
    ReadyRequest
    | ClosedReport
    | ExpandRequest
    | CollapseRequest
    | InspectRequest
    | ValuesRequest
    | WhatIfRequest
    | TimelinesRequest
    | HealthRequest
    | StepsRequest
    | LiveStepRequest
    | DifferenceRequest
    | RevealRequest
    | SearchRequest
    | FilterRequest
    | RendererRequest
    | LensRequest
    | RestoreRequest
    | LookReport
    | DrawnReport
    | CrowdedRequest
    | OpenFunctionRequest
)


class PaneRequest(Message, frozen=True, kw_only=True, tag="to_pane"):
    """A request of one of the two pictures of a function."""

    pane: Pane
    message: PictureRequest


class SetAttrRequest(Message, frozen=True, kw_only=True, tag="set_attr"):
    """Enter text into the field of an attr."""

    name: str
    value: str


class ChooseUseRequest(Message, frozen=True, kw_only=True, tag="choose_use"):
    """Switch to this use of the function."""

    place: int


class DifferentiateRequest(Message, frozen=True, kw_only=True, tag="differentiate"):
    """Show the gradient of the instantiated body."""


class BackRequest(Message, frozen=True, kw_only=True, tag="back"):
    """Navigate back to this breadcrumb; in a view of a graph 0 is the graph."""

    crumb: int


FromViewer = PictureRequest | EngineRequest | PaneRequest | SetAttrRequest | ChooseUseRequest | DifferentiateRequest | BackRequest
