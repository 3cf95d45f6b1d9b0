"""The requests and reports of a view in the browser to its kernel, or to the data of a page.

Each is identified by its `type` field; the TypeScript side is generated from here.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from widgets.messages import Engine, Look, Message, Pane, Renderer
from widgets.scene.types import Openings
from widgets.steps import StepTest


class ReadyRequest(Message, frozen=True, kw_only=True, tag="ready"):
    """The viewer is mounted and requests the picture."""


class WholeRequest(Message, frozen=True, kw_only=True, tag="want_whole"):
    """A change did not fit: send the whole graph."""


class OpeningsReport(Message, frozen=True, kw_only=True, tag="openings"):
    """Report what is open, after the user has changed it."""

    openings: Openings


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


class ExplainRequest(Message, frozen=True, kw_only=True, tag="explain"):
    """Explain the node `name`, which is inspected as `id`."""

    id: str
    name: str


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


class RequestDeviceRequest(Message, frozen=True, kw_only=True, tag="request_device"):
    """`WhatIfRequest` with the names of the nodes of its boxes."""

    ids: list[str]
    names: list[str]
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
    stops: list[str] = msgspec.field(default_factory=list)
    on_bad: bool = False
    where: list[StepTest] = msgspec.field(default_factory=list)


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
    | WholeRequest
    | OpeningsReport
    | ExplainRequest
    | RequestDeviceRequest
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
    """A request of one of two pictures."""

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


class StatesRequest(Message, frozen=True, kw_only=True, tag="want_states"):
    """Show both states of the difference that the picture shows, or the one picture again."""

    open: bool


FromViewer = (
    PictureRequest | EngineRequest | PaneRequest | SetAttrRequest | ChooseUseRequest | DifferentiateRequest | BackRequest | StatesRequest
)
