"""The messages of a kernel, or of the data inside a standalone page, to a view in the browser.

Every message is one of these structs, identified by its `type` field; the TypeScript side is generated from here. `widgets/requests.py` has
those of the other direction.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from widgets.function_views import AttrField, Crumb, FunctionUse
from widgets.inspection import Explanation, Inspection, Values, WhatIf
from widgets.recorded_values import RunHealth
from widgets.scene.types import Openings, Scene
from widgets.steps import LiveRun, RecordedSteps
from widgets.timelines import StepTimeline

Renderer = Literal["graphviz", "mermaid"]
Engine = Literal["core", "graphviz", "mermaid", "lower", "page"]


class Message(msgspec.Struct, frozen=True, kw_only=True, tag_field="type"):
    """The base of every message."""


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


class Choices(msgspec.Struct, frozen=True, kw_only=True):
    """The user's choices that decide the content of a picture: what is open, lens and renderer."""

    openings: Openings = Openings()
    lens: str = "structure"
    renderer: Renderer = "graphviz"


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


class ChangeMessage(Message, frozen=True, kw_only=True, tag="change"):
    """A change of a graph, which follows as this message's one binary buffer: a gzipped `GraphChange`.

    `choices` are what was chosen in the kernel, None if the page keeps its own. `fresh` and `altered` are the ids of new and of changed nodes.
    `focus` is the node to bring into view, `look` where to look, None to leave that to the viewer. `sent_at` is as in `SceneMessage`.
    `outdated` is true for the picture of an earlier version, as the title says.
    """

    title: str
    choices: Choices | None = None
    fresh: list[int] = []
    altered: list[int] = []
    focus: str = ""
    sent_at: float = 0.0
    look: Look | None = None
    outdated: bool = False


class InspectionMessage(Message, frozen=True, kw_only=True, tag="inspection"):
    """The answer to `InspectRequest`."""

    inspection: Inspection


class ExplanationMessage(Message, frozen=True, kw_only=True, tag="explanation"):
    """The answer to `ExplainRequest`: `id` is the inspected box."""

    id: str
    explanation: Explanation


class ValuesMessage(Message, frozen=True, kw_only=True, tag="values_page"):
    """The answer to `ValuesRequest`."""

    name: str
    values: Values


class WhatIfMessage(Message, frozen=True, kw_only=True, tag="what_if"):
    """The answer to `WhatIfRequest` and `RequestDeviceRequest`."""

    what_if: WhatIf


class TimelinesMessage(Message, frozen=True, kw_only=True, tag="timelines"):
    """The answer to `TimelinesRequest`.

    `timelines` is None if they are still those of `key`, which the viewer has. `boxes` are the boxes of the nodes in the current picture, which
    the page adds.
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
    the nodes in the current picture, which the page adds. `live` is None for a run that was recorded before.
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


Pane = Literal["definition", "instance", "before", "after"]
"""The two pictures of a function, as it is defined and as it was instantiated, and those of the two states of a difference."""


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


class StatesMessage(Message, frozen=True, kw_only=True, tag="states"):
    """Both states of the difference that the picture shows. Their pictures follow as `PaneMessage`s.

    `twins` are the later names of nodes and scopes by their earlier ones, and back, where they are different.
    """

    titles: tuple[str, str]
    words: str
    twins: tuple[dict[str, str], dict[str, str]]


class StatesClosedMessage(Message, frozen=True, kw_only=True, tag="states_closed"):
    """Return to the one picture of both states."""


class NamesMessage(Message, frozen=True, kw_only=True, tag="names"):
    """Dim all boxes but those of the nodes `names`. `what` is what they have in common, after their number: `for op:Relu`."""

    names: list[str]
    what: str


class HighlightMessage(Message, frozen=True, kw_only=True, tag="highlight"):
    """Dim all boxes but these, until the user selects nothing. `text` says in the status line what they are."""

    boxes: list[str]
    text: str


PictureMessage = (
    SceneMessage
    | ChangeMessage
    | ExplanationMessage
    | NamesMessage
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
    """A message for one of two pictures."""

    pane: Pane
    message: PictureMessage


FromKernel = (
    SceneMessage
    | ChangeMessage
    | ExplanationMessage
    | NamesMessage
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
    | StatesMessage
    | StatesClosedMessage
    | ToFrontMessage
    | UnchangedMessage
    | GoodbyeMessage
    | PaneMessage
)
