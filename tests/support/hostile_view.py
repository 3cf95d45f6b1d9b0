"""A live view in which everything has a hostile name, and the scene that it shows."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Final

import graphcore as gc
from kernelext.side_panel import open_side_panel
from tests.support.hostile_names import HOSTILE_NAMES as NAMES
from widgets import GraphView, messages, requests
from widgets.inspection import FunctionInfo, GradientInfo, Inspection, SourceRow, TensorRow, ValueRow, Values, Why, WhyStep
from widgets.scene import Scene, SceneEdge, SceneGroup, SceneNode
from widgets.scene.types import LegendEntry, Lens, LensMark

DEPTH: Final = 10
"""The number of frames around the innermost boxes; the last of each ten names is that of such a box."""


def hostile_scene() -> Scene:
    """Every name as a box, a frame, an edge, an error, and a mark with its row in the legend."""
    nodes = [
        SceneNode(
            id=f"n{at}{name}", label=name, kind="op", op=name, detail=name, cell=name, error=name, state="error", group=f"g{at}{name}",
            lenses={"own": LensMark(text=name, tone=1)},
        )
        for at, name in enumerate(NAMES)
    ]  # fmt: skip
    groups = [
        SceneGroup(id=f"g{at}{name}", label=name, parent="" if at % DEPTH == 0 else f"g{at - 1}{NAMES[at - 1]}")
        for at, name in enumerate(NAMES)
    ]
    edges = [SceneEdge(id=f"e{at}", source=a.id, target=b.id, label=a.label, error=b.label) for at, (a, b) in enumerate(pairwise(nodes))]
    legend = [LegendEntry(tone=1, text=name) for name in NAMES]
    lenses = [Lens(name="structure", title="Structure"), Lens(name="own", title=NAMES[0], legend=legend, note=NAMES[1])]
    return Scene(title=NAMES[0], nodes=nodes, edges=edges, groups=groups, lenses=lenses, summary=" ".join(NAMES))


def hostile_inspection(box: str) -> Inspection:
    """An inspection whose fields are all names, or all texts with every name."""
    text = "\n".join(NAMES)
    source = SourceRow(cell=text, line=1, text=text)
    rows = [TensorRow(name=name, tensor=name, dtype=name, shape=name, node=name, error=name, note=name) for name in NAMES]
    why = [Why(what=name, size=name, steps=[WhyStep(text=name, node=name, name=name, source=source)]) for name in NAMES]
    gradient = GradientInfo(differentiates=text, differentiates_id=text, function=text, definition=text, instantiated=text, built=text)
    return Inspection(
        id=box, name=text, op=text, kind=text, node_def=text, summary=text, doc=text, traits=text, signature=text, device=text, error=text,
        attrs=[(name, name) for name in NAMES], contents=[(name, 1) for name in NAMES], placement=[WhyStep(text=name) for name in NAMES],
        inputs=rows, outputs=rows, control_inputs=rows, control_outputs=rows, source=source, chains=why, why=why,
        gradient=gradient, registered_gradient=gradient, functions=[FunctionInfo(place=0, label=text, name=text, definition=text)],
        values=Values(note=text, dtype=text, shape=text, statistics=[(name, name) for name in NAMES], rows=[ValueRow(index=text, cells=[*NAMES])]),
    )  # fmt: skip


class HostileView(GraphView):
    """A view whose answers consist of hostile names."""

    def _answer(self, request: Any) -> None:
        send = self._send_message
        match request:
            case requests.ReadyRequest():
                send(messages.SceneMessage(scene=hostile_scene()))
            case requests.InspectRequest(id=box):
                send(messages.InspectionMessage(inspection=hostile_inspection(box)))
            case requests.SearchRequest(query=query):
                hits = [messages.SearchHit(node=f"n{at}{name}", name=name, op=name) for at, name in enumerate(NAMES)]
                send(messages.SearchMessage(query=query, hits=hits, total=len(hits)))
            case requests.FilterRequest():
                send(messages.HighlightMessage(boxes=[f"n0{NAMES[0]}"], text=" ".join(NAMES)))


def open_hostile_view() -> HostileView:
    """Open the view in a side panel with a hostile title."""
    view = HostileView(gc.Graph(), title=NAMES[0])
    open_side_panel(view, NAMES[0])
    return view
