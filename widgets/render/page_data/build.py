"""Builds a page's data from a graph."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Final

import msgspec

from graphcore.definitions.wire.saved_model import INIT_SIGNATURE
from graphcore.frontends.record import foreign_of
from graphcore.passes import InstantiatedFunctions
from graphcore.support.budget import Budget, evaluation_limits
from widgets.inspection import SourceRow
from widgets.render.page_data.bodies import body_key
from widgets.render.page_data.columns import Columns, Tables, one_column
from widgets.render.page_data.differences import difference_record
from widgets.render.page_data.explained import chain_record, op_text, refused_records, why_rows
from widgets.render.page_data.kept import KeptRows
from widgets.render.page_data.rows import RowMaker
from widgets.render.page_data.steps import STEP, Steps, charged, done
from widgets.render.page_data.types import (
    PAGE_FORMAT,
    BodyRecord,
    CallRecord,
    ErrorRecord,
    GapRecord,
    OpText,
    OwnClasses,
    PageHead,
    SpaceColumns,
    SpaceHead,
)
from widgets.scene.calls import Call, CallBody, Opener, callees, calls_functions, has_hub, is_choice, is_loop, is_loop_invariant
from widgets.scene.colocation import groups_of, reasons_of
from widgets.scene.explain import arguments
from widgets.scene.faults import fault_of, fault_text, is_faulty, refused_input
from widgets.scene.function_info import function_infos
from widgets.scene.gaps import Gap, gaps_of
from widgets.scene.lenses import OwnLens, failure_note, own_lenses
from widgets.scene.outside import OutsideOrigins, StepsByGraph
from widgets.scene.overlays import overlays_of
from widgets.scene.shapes.clashes import clashes_of
from widgets.scene.shapes.why import chains_of
from widgets.scene.state import SceneState
from widgets.scene.time_lens import recorded_times
from widgets.scene.value_lens import recorded_values
from widgets.timelines import StepTimeline

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from graphcore.graph import Graph, Node, Tensor
    from widgets.render.page_data.rows import Marks, NodeRow

MAX_EXPLAINED: Final = 1000
"""The shapes of larger graphs are not explained in a page: every node would have to be explained in advance."""
MAX_BODY_NODES: Final = 50_000
"""Bodies with more nodes than this together are not carried in a page."""


class PageData(msgspec.Struct, frozen=True):
    """The whole: tables, texts, source lines, and the columns of each space; the first is the graph."""

    head: PageHead
    texts: list[str]
    sources: list[SourceRow]
    spaces: list[SpaceColumns]


def graph_data(graph: Graph, state: SceneState, kept: KeptRows | None = None) -> PageData:
    """The data of a graph in a view, from its kept rows if they are given."""
    return done(graph_data_in_steps(graph, state, KeptRows(graph) if kept is None else kept))


def graph_data_in_steps(graph: Graph, state: SceneState, kept: KeptRows) -> Steps[PageData]:
    """Make the data of a graph in a view in steps of about a millisecond, and return it.

    The graph must not change between the steps.

    Args:
        kept: the rows of the graph; they are updated.
    """
    budget = Budget(evaluation_limits())
    yield from charged(kept.update(), budget)
    data = yield from charged(Writer(graph, state, kept, share=True).run(), budget)
    # An error in a body is explained through its call: then each call has bodies of its own.
    if any(head.errors for head in data.head.spaces[1:]):
        return (yield from charged(Writer(graph, state, kept, share=False).run(), budget))
    return data


def with_timelines(data: PageData, timelines: list[StepTimeline]) -> PageData:
    """The data with these timelines."""
    return msgspec.structs.replace(data, head=msgspec.structs.replace(data.head, timelines=timelines))


def pack(data: PageData) -> bytes:
    """The data as gzipped `page_lines`, the same for the same data."""
    return gzip.compress(page_lines(data), 6, mtime=0)


def page_lines(data: PageData) -> bytes:
    """Lines of JSON: the format, the head, texts, source lines, and each column of each space."""
    lines = [json_line(PAGE_FORMAT), json_line(data.head), json_line(data.texts), json_line(data.sources)]
    lines.extend(json_line(getattr(space, name)) for space in data.spaces for name in space.__struct_fields__)
    return b"\n".join(lines)


def json_line(value: object) -> bytes:
    """A value as JSON."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:  # a lone surrogate, which json writes as an escape
        return json.dumps(msgspec.to_builtins(value)).encode()


class Writer:
    """Writes spaces: the graph, then bodies as calls are met."""

    def __init__(self, graph: Graph, state: SceneState, kept: KeptRows, *, share: bool) -> None:
        self.graph = graph
        self.state = state
        self.kept = kept
        self.share = share
        self.tables = Tables()
        self.ops: dict[str, OpText] = {}
        self.steps = StepsByGraph()
        self.own_lenses = own_lenses()
        self.spaces: list[tuple[SpaceHead, SpaceColumns] | None] = []
        self.known: dict[object, int] = {}
        self.pending: list[tuple[int, CallBody, Opener, dict[str, Tensor]]] = []
        self.body_nodes = 0
        self.explains = len(graph) <= MAX_EXPLAINED

    def run(self) -> Steps[PageData]:
        """Write graph and bodies."""
        self.spaces.append(None)
        self.spaces[0] = yield from self.graph_space().write()
        yield from self.write_bodies()
        return self.data()

    def graph_space(self) -> Space:
        """The space of the graph itself."""
        return Space(self, self.graph, "", Opener(InstantiatedFunctions(self.graph.library)), None, {})

    def write_bodies(self) -> Steps[None]:
        """Write the bodies of the calls that were met, and of those in them."""
        while self.pending:
            place, body, opener, arguments = self.pending.pop()
            self.spaces[place] = yield from Space(self, body.graph, f"{body.path}/", opener, body, arguments).write()

    def data(self) -> PageData:
        """The written spaces with all tables."""
        written = [space for space in self.spaces if space is not None]
        recorded, valued = recorded_times(self.graph), recorded_values(self.graph)
        infos, signatures = self.tables.tensors()
        foreign = foreign_of(self.graph)
        head = PageHead(
            spaces=[head for head, _ in written],
            infos=infos,
            signatures=signatures,
            gradients=list(self.tables.gradients),
            ops=self.ops,
            slots=[(list(inputs), list(outputs)) for inputs, outputs in self.tables.slots],
            own_lenses=[(name, own.title) for name, own in self.own_lenses],
            max_boxes=self.state.max_boxes,
            auto_boxes=self.state.auto_boxes,
            times=None if recorded is None else recorded.times,
            values=None if valued is None else valued.values,
            overlays=overlays_of(self.graph),
            device_words="" if foreign is None else foreign.device_words,
        )
        return PageData(head, list(self.tables.texts), list(self.tables.sources), [columns for _, columns in written])

    def rows_of(self, body: CallBody | None) -> Steps[tuple[list[NodeRow], Marks]]:
        """The rows of the graph or of a body, and the facts about the whole."""
        if body is None:
            return self.kept.rows, self.kept.marks
        maker = RowMaker(body.graph, attrs=self.kept.attrs, slots=self.kept.slots, prefix=f"{body.path}/", backward=body.gradients)
        maker.look()
        rows: list[NodeRow] = []
        for node in sorted(body.graph.nodes, key=lambda node: node.id):
            if len(rows) % STEP == 0:
                yield
            rows.append(maker.row(node))
        return rows, maker.marks

    def own_classes(self, nodes: Sequence[Node]) -> list[OwnClasses]:
        """The classes of nodes under each lens of the user."""
        return [self._own_classes(own, nodes) for _, own in self.own_lenses]

    def _own_classes(self, own: OwnLens, nodes: Sequence[Node]) -> OwnClasses:
        try:
            classes = [own.class_of(node) for node in nodes]
        except Exception as error:  # noqa: BLE001 - a user's function must not cost the user the page
            return OwnClasses(failure=failure_note(error))
        return OwnClasses(classes=one_column([self.tables.texts[text] for text in classes]))

    def bodies_of(self, call: Call, outer_arguments: dict[str, Tensor]) -> list[BodyRecord]:
        """The bodies of a call; those that are not known yet are to be written."""
        key = body_key(call) if self.share else None
        bodies = call.bodies()
        if not bodies:
            return []
        several = len(bodies) > 1
        records = []
        for body in bodies:
            # A lens of the user may tell calls apart.
            whole = (key, body.callee.label, msgspec.json.encode(self.own_classes(body.nodes)))
            place = None if key is None else self.known.get(whole)
            if place is None:
                place = len(self.spaces)
                self.spaces.append(None)
                self.body_nodes += len(body.nodes)
                if key is not None:
                    self.known[whole] = place
                inside = outer_arguments if has_hub(call.node) else {**outer_arguments, **arguments(call.node, body)}
                self.pending.append((place, body, call.opener.inner(body), inside))
            records.append(
                BodyRecord(
                    space=place, label=body.callee.label, scope_label=f"{body.callee.label} · {body.callee.title}" if several else ""
                )
            )
        return records


def _ends_of_signatures(graph: Graph) -> dict[str, set[str]]:
    """The names of the nodes of the inputs and outputs of each signature."""
    return {
        name: {info.name.partition(":")[0] for infos in (signature.inputs, signature.outputs) for info in infos.values()}
        for name, signature in graph.signatures.items()
        if name != INIT_SIGNATURE
    }


def _gap_record(gap: Gap, number: Mapping[str, int]) -> GapRecord:
    cuts = [(number.get(cut.last, -1), number.get(cut.node, -1), cut.reason) for cut in gap.cuts]
    return GapRecord(node=number[gap.node], cuts=cuts)


class Space:
    """Writes one graph or body.

    Args:
        prefix: what the names of its nodes begin with: "" for the graph, `call:then/` for a body.
        opener: opens its calls.
        outer_arguments: the tensors given to the arguments of the bodies around, by argument.
    """

    def __init__(
        self,
        writer: Writer,
        graph: Graph,
        prefix: str,
        opener: Opener,
        body: CallBody | None,
        outer_arguments: dict[str, Tensor],
    ) -> None:
        self.writer = writer
        self.graph = graph
        self.prefix = prefix
        self.opener = opener
        self.body = body
        self.outer_arguments = outer_arguments
        self.outside = OutsideOrigins(outer_arguments, writer.steps)
        self.nodes = sorted(graph.nodes, key=lambda node: node.id)
        self.number = {node.name: place for place, node in enumerate(self.nodes)}

    def write(self) -> Steps[tuple[SpaceHead, SpaceColumns]]:
        """Head and columns."""
        rows, marks = yield from self.writer.rows_of(self.body)
        places = {name[len(self.prefix) :]: place for name, place in self.number.items()}
        written = Columns(self.writer.tables, places, merges=marks.merges)
        columns = yield from written.write(rows)
        self.write_ops(self.nodes)
        why = (yield from why_rows(self.nodes, self.outside)) if self.writer.explains else {}
        calls = yield from self.calls()
        gradients = written.gradients([rows[self.number[name]] for name in marks.records if name in self.number])
        origins = [self.number[name] for pair in marks.origins.items() for name in pair]
        user_names = {place: row.user_name for place, row in enumerate(rows) if row.user_name}
        head = self.head(user_names, marks)
        return msgspec.structs.replace(
            head, paths=list(written.paths), foreign=written.foreign, calls=calls, gradients=gradients, origins=origins, why=why
        ), columns

    def _classes(self) -> dict[str, str]:
        """The classes of the modules of another framework, by the paths of scopes."""
        foreign = foreign_of(self.graph)
        return {} if foreign is None else {path.removeprefix(self.prefix): kind for path, kind in foreign.classes.items()}

    def write_ops(self, nodes: Iterable[Node]) -> None:
        """Write the texts of the ops of some nodes."""
        for node in nodes:
            if node.op not in self.writer.ops:
                self.writer.ops[node.op] = op_text(node)

    def calls(self) -> Steps[list[CallRecord]]:
        """The records of calls; their bodies are to be written."""
        calls: list[CallRecord] = []
        for node in self.nodes:
            if calls_functions(node):
                calls.append(self._call(Call(node, self.opener)))
                yield
        return calls

    def head(self, user_names: dict[int, str], marks: Marks) -> SpaceHead:
        """The head without what comes with rows, calls and explanations of shapes."""
        body = self.body
        return SpaceHead(
            paths=[],
            errors=self._errors(),
            gradient_count=len(marks.records),
            gaps=[] if body is not None else [_gap_record(gap, self.number) for gap in gaps_of(self.graph)],
            user_names=user_names,
            colocations=[([self.number[node.name] for node in group.nodes], reasons_of(group)) for group in groups_of(self.graph)]
            if body is None
            else [],
            refused=refused_records(self.graph, self.number),
            own_classes=self.writer.own_classes(self.nodes),
            arguments=[] if body is None else [self.number[node.name] for node in body.args],
            returns=[] if body is None else [self.number[node.name] for node in body.rets],
            control_returns=[] if body is None else [self.number[node.name] for node in body.control_rets],
            difference=difference_record(self.graph, self.number),
            saver_nodes=self._places(self.graph.saver_nodes),
            classes=self._classes(),
            saved_signatures=[(name, self._places(ends)) for name, ends in _ends_of_signatures(self.graph).items()],
        )

    def _places(self, names: Iterable[str]) -> list[int]:
        return sorted(self.number[name] for name in names if name in self.number)

    def _errors(self) -> dict[int, ErrorRecord]:
        return {
            place: ErrorRecord(
                text=fault_text(node),
                inputs={str(slot): said for slot, said in node.input_errors.items()},
                has_error=fault_of(node) is not None,
                circle=self.number.get(refused_input(node), -1),
                chains=chain_record(node, self.outside),
                clashes=clashes_of(node),
                explained=chains_of(node, self.outside),
            )
            for place, node in enumerate(self.nodes)
            if is_faulty(node)
        }

    def _call(self, call: Call) -> CallRecord:
        node, writer = call.node, self.writer
        refusal = "" if call.failure else call.refusal
        bodies: list[BodyRecord] = []
        if not refusal and writer.body_nodes > MAX_BODY_NODES:
            refusal = "the functions are too large for one page: open them in a notebook"
        elif not refusal:
            bodies = writer.bodies_of(call, self.outer_arguments)
        titles = ", ".join(callee.title for callee in callees(node))
        loop = is_loop(node)
        return CallRecord(
            node=self.number[node.name],
            refusal=refusal,
            failure=call.failure,
            hub=has_hub(node),
            loop=loop,
            choice=is_choice(node),
            called=titles,
            bodies=bodies,
            invariant=[_invariant(node, index) for index in range(len(node.outputs))] if loop and bodies else [],
            functions=function_infos(call),
        )


def _invariant(node: Node, index: int) -> str:
    if index >= len(node.inputs):
        return ""
    return "".join("1" if is_loop_invariant(node, index, place) else "0" for place in range(len(node.output_handles[index].dims or ())))
