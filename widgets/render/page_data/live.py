"""The data of a graph for pages that keep it: whole at first, then what has changed."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

import msgspec

from graphcore.placement.placer import last_placement
from graphcore.support.budget import within_one_budget
from widgets.render.page_data.bodies import body_key
from widgets.render.page_data.build import Space, Writer, json_line
from widgets.render.page_data.columns import Columns
from widgets.render.page_data.steps import done
from widgets.render.page_data.types import CallRecord, GraphChange, PageHead
from widgets.scene.calls import Call, calls_functions
from widgets.scene.lenses import own_lenses
from widgets.scene.overlays import overlays_of
from widgets.scene.time_lens import times_note
from widgets.scene.value_lens import values_note

if TYPE_CHECKING:
    from graphcore.graph import Graph
    from widgets.render.page_data.kept import KeptRows
    from widgets.render.page_data.rows import NodeRow
    from widgets.scene.state import SceneState


class LiveData:
    """The changes of a graph's data, numbered in the order in which pages apply them.

    Args:
        graph: the graph.
        kept: its rows.
        state: the limits of the view.
    """

    def __init__(self, graph: Graph, kept: KeptRows, state: SceneState) -> None:
        self._graph = graph
        self._kept = kept
        self._changes = kept.read()
        self._state = state
        self._number = 0
        self._calls: object = None
        self._sent: tuple[object, ...] = ()

    def whole(self) -> GraphChange:
        """The data of all nodes, with which any page can begin."""
        self._calls = None
        return self._next(whole=True)

    def change(self) -> GraphChange:
        """The data that has changed since the last call of `whole` or `change`: at first, all."""
        return self._next(whole=self._number == 0)

    @within_one_budget
    def _next(self, *, whole: bool) -> GraphChange:
        done(self._kept.update())
        rows, removed = self._changes.take()
        content = (*_content_but_overlays(self._graph), self._state.max_boxes, self._state.auto_boxes)
        if not (whole or rows or removed) and content == self._sent:
            alone = self._overlays_alone()
            self._number += 1
            return alone
        self._sent = content
        if whole:
            rows, removed = self._kept.rows, []
        calls = self._calls
        made = self._change(rows, removed, whole=whole, share=True)
        # An error in a body is explained through its call: then each call has bodies of its own.
        if any(head.errors for head in made.head.spaces[1:]):
            self._calls = calls
            made = self._change(rows, removed, whole=whole, share=False)
        self._number += 1
        return made

    def _overlays_alone(self) -> GraphChange:
        """The change where at most the overlays are different."""
        head = PageHead(
            spaces=[],
            infos=[],
            signatures=[],
            gradients=[],
            ops={},
            slots=[],
            own_lenses=[],
            max_boxes=self._state.max_boxes,
            auto_boxes=self._state.auto_boxes,
            overlays=overlays_of(self._graph),
        )
        return GraphChange(
            number=self._number,
            whole=False,
            ids=[],
            removed=[],
            merges=self._kept.marks.merges,
            dims=[],
            origins=[],
            with_bodies=False,
            head=head,
            texts=[],
            sources=[],
            spaces=[],
            times_note="",
            values_note="",
        )

    def _change(self, rows: list[NodeRow], removed: list[int], *, whole: bool, share: bool) -> GraphChange:
        graph, kept = self._graph, self._kept
        writer = Writer(graph, self._state, kept, share=share)
        writer.explains = False
        writer.spaces.append(None)
        space = writer.graph_space()
        ids = {node.name: node.id for node in graph.nodes}
        written = Columns(writer.tables, ids, merges=kept.marks.merges, keys=True)
        columns = done(written.write(rows))
        space.write_ops([space.nodes[space.number[row.full_name]] for row in rows])
        calls = self._new_calls(space)
        head = space.head({space.number[row.full_name]: row.user_name for row in kept.rows if row.user_name}, kept.marks)
        writer.spaces[0] = (
            msgspec.structs.replace(
                head, paths=list(written.paths), foreign=written.foreign, calls=calls or [], gradients=written.gradients(rows)
            ),
            columns,
        )
        done(writer.write_bodies())
        data = writer.data()
        return GraphChange(
            number=self._number,
            whole=whole,
            ids=[row.id for row in rows],
            removed=removed,
            merges=kept.marks.merges,
            dims=list(written.dims),
            origins=[number for row in rows if row.origin for number in (row.id, ids[row.origin])],
            with_bodies=calls is not None,
            head=data.head,
            texts=data.texts,
            sources=data.sources,
            spaces=data.spaces,
            times_note=times_note(graph),
            values_note=values_note(graph),
        )

    def _new_calls(self, space: Space) -> list[CallRecord] | None:
        """The records of calls, by ids; None if calls and bodies are those of the change before."""
        nodes = [node for node in space.nodes if calls_functions(node)]
        key = (self._graph.library, own_lenses(), tuple([(node.id, body_key(Call(node, space.opener))) for node in nodes]))
        if key == self._calls:
            return None
        self._calls = key
        return [msgspec.structs.replace(record, node=space.nodes[record.node].id) for record in done(space.calls())]


def content_of(graph: Graph) -> tuple[object, ...]:
    """Everything that decides what the data of a graph is, for comparison of two moments."""
    return (*_content_but_overlays(graph), tuple(overlays_of(graph)))


def _content_but_overlays(graph: Graph) -> tuple[object, ...]:
    cells = graph.cells
    return (
        graph.version,
        graph.library,
        graph.refiner,
        last_placement(graph),
        graph.trace,
        graph.recording,
        cells.faults,
        cells.runs,
        own_lenses(),
    )


def pack_change(change: GraphChange) -> bytes:
    """A change as gzipped JSON."""
    return gzip.compress(json_line(change), 1, mtime=0)
