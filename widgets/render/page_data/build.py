"""Builds a page's data from a graph."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any, Final

import msgspec

from graphcore.graph.shapes.symbolic_refiner import SymbolicRefiner
from graphcore.plumbing import ARG
from graphcore.runtime.core.memory import tensor_bytes
from graphcore.support.budget import Budget, evaluation_limits
from widgets.inspection import SourceRow
from widgets.render.page_data.bodies import body_key
from widgets.render.page_data.differences import difference_record
from widgets.render.page_data.explained import Gradients, Outside, SlotNames, chain_record, op_text, refused_records, why_rows
from widgets.render.page_data.steps import STEP, Steps, charged
from widgets.render.page_data.texts import AttrTexts, Numbers
from widgets.render.page_data.types import (
    PAGE_FORMAT,
    BodyRecord,
    CallRecord,
    ErrorRecord,
    ForeignTensor,
    GapRecord,
    GradientRow,
    OpText,
    OwnClasses,
    PageHead,
    SpaceColumns,
    SpaceHead,
    TensorInfo,
)
from widgets.scene.calls import CallBody, Opener, callees, calls_functions, has_hub, is_choice, is_loop, is_loop_invariant
from widgets.scene.colocation import groups_of, reasons_of
from widgets.scene.devices import assigned_device, is_elsewhere
from widgets.scene.faults import fault_of, fault_text, is_faulty, refused_input
from widgets.scene.function_info import function_infos
from widgets.scene.gaps import Gap, gaps_of
from widgets.scene.lenses import OwnLens, cell_label, failure_note, own_lenses
from widgets.scene.origins import origins_of
from widgets.scene.outside import StepsByGraph
from widgets.scene.roles import Roles
from widgets.scene.shapes.clashes import clashes_of, source_row
from widgets.scene.shapes.unknowns import MAX_NODES, size_texts
from widgets.scene.shapes.why import chains_of
from widgets.scene.state import SceneState
from widgets.scene.time_lens import recorded_times
from widgets.scene.tree import Call, ends_of_signatures
from widgets.scene.value_lens import recorded_values
from widgets.scene.visible import scope_tree
from widgets.scene.words import called_functions, is_short, user_name
from widgets.timelines import StepTimeline

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from graphcore.graph import Graph, Node, Tensor

MAX_PREVIEWED: Final = 10_000
"""A larger graph has no previews of its constants: its page would be too large."""
MAX_EXPLAINED: Final = 1000
"""The shapes of larger graphs are not explained in a page: every node would have to be explained in advance."""
MAX_BODY_NODES: Final = 50_000
"""Bodies with more nodes than this together are not carried in a page."""
SHORT: Final = 1
GRADIENT: Final = 2
PARTIAL: Final = 4
DIFFERENTIATED: Final = 8
ELSEWHERE: Final = 16
_REFERENCES: Final = ("resource",)
_InfoRow = tuple[str, tuple[str, ...] | None, bool, int | None]


class PageData(msgspec.Struct, frozen=True):
    """The whole: tables, texts, source lines, and the columns of each space; the first is the graph."""

    head: PageHead
    texts: list[str]
    sources: list[SourceRow]
    spaces: list[SpaceColumns]


def graph_data(graph: Graph, state: SceneState) -> PageData:
    """The data of a graph in a view."""
    steps = graph_data_in_steps(graph, state)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            data: PageData = end.value
            return data


def graph_data_in_steps(graph: Graph, state: SceneState) -> Steps[PageData]:
    """Make the data of a graph in a view in steps of about a millisecond, and return it.

    The graph must not change between the steps.
    """
    graph.settle()
    budget = Budget(evaluation_limits())
    data = yield from charged(_Writer(graph, state, share=True).run(), budget)
    # An error in a body is explained through its call: then each call has bodies of its own.
    if any(head.errors for head in data.head.spaces[1:]):
        return (yield from charged(_Writer(graph, state, share=False).run(), budget))
    return data


def with_timelines(data: PageData, timelines: list[StepTimeline]) -> PageData:
    """The data with these timelines."""
    return msgspec.structs.replace(data, head=msgspec.structs.replace(data.head, timelines=timelines))


def pack(data: PageData) -> bytes:
    """The data as gzipped lines of JSON, the same for the same data.

    The lines are the format, the head, texts, source lines, and each column of each space.
    """
    lines = [_line(PAGE_FORMAT), _line(data.head), _line(data.texts), _line(data.sources)]
    lines.extend(_line(getattr(space, name)) for space in data.spaces for name in space.__struct_fields__)
    return gzip.compress(b"\n".join(lines), 6, mtime=0)


def _line(value: object) -> bytes:
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:  # a lone surrogate, which json writes as an escape
        return json.dumps(msgspec.to_builtins(value)).encode()


class _Writer:
    """Writes spaces: the graph, then bodies as calls are met."""

    def __init__(self, graph: Graph, state: SceneState, *, share: bool) -> None:
        self.graph = graph
        self.state = state
        self.share = share
        self.texts: Numbers[str] = Numbers()
        self.gradients = Gradients()
        self.attrs = AttrTexts(self.texts, self.gradients, with_previews=len(graph) <= MAX_PREVIEWED)
        self.sources: Numbers[SourceRow] = Numbers()
        self.infos: Numbers[_InfoRow] = Numbers()
        self.signatures: Numbers[tuple[int, ...]] = Numbers()
        self.ops: dict[str, OpText] = {}
        self.slots, self.steps = SlotNames(), StepsByGraph()
        self.own_lenses = own_lenses()
        self.spaces: list[tuple[SpaceHead, SpaceColumns] | None] = []
        self.known: dict[object, int] = {}
        self.pending: list[tuple[int, CallBody, Opener, dict[str, Tensor]]] = []
        self.body_nodes = 0
        self.explains = len(graph) <= MAX_EXPLAINED

    def run(self) -> Steps[PageData]:
        tree = scope_tree(self.graph, self.state)
        self.texts.of("")
        self.spaces.append(None)
        self.spaces[0] = yield from _Space(self, self.graph, "", tree.root.opener, Roles(self.graph, tree), None, {}).write()
        while self.pending:
            place, body, opener, given = self.pending.pop()
            self.spaces[place] = yield from _Space(self, body.graph, f"{body.path}/", opener, None, body, given).write()
        written = [space for space in self.spaces if space is not None]
        recorded, valued = recorded_times(self.graph), recorded_values(self.graph)
        head = PageHead(
            spaces=[head for head, _ in written],
            infos=[_info(row) for row in self.infos.values],
            signatures=[list(infos) for infos in self.signatures.values],
            gradients=self.gradients.texts,
            ops=self.ops,
            slots=self.slots.lists,
            own_lenses=[(name, own.title) for name, own in self.own_lenses],
            max_boxes=self.state.max_boxes,
            auto_boxes=self.state.auto_boxes,
            times=None if recorded is None else recorded.times,
            values=None if valued is None else valued.values,
        )
        return PageData(head, self.texts.values, self.sources.values, [columns for _, columns in written])

    def info(self, tensor: Tensor) -> int:
        dims = tensor.shape.dims
        dtype = tensor.node.output_types[tensor.index]
        sizes = None if dims is None else tuple(size_texts(tensor))
        return self.infos.of((tensor.dtype.text, sizes, dtype.is_ref or dtype.text in _REFERENCES, tensor_bytes(tensor)))

    def own_classes(self, nodes: Sequence[Node]) -> list[OwnClasses]:
        """The classes of nodes under each lens of the user."""
        return [self._own_classes(own, nodes) for _, own in self.own_lenses]

    def _own_classes(self, own: OwnLens, nodes: Sequence[Node]) -> OwnClasses:
        try:
            classes = [own.class_of(node) for node in nodes]
        except Exception as error:  # noqa: BLE001 - a user's function must not cost the user the page
            return OwnClasses(failure=failure_note(error))
        return OwnClasses(classes=_column([self.texts.of(found) for found in classes]))

    def bodies_of(self, call: Call, given: dict[str, Tensor]) -> list[BodyRecord]:
        key = body_key(call) if self.share else None
        bodies = call.bodies()
        if not bodies:
            return []
        several = len(bodies) > 1
        roots = call.roots
        records = []
        for body, root in zip(bodies, roots, strict=True):
            # A lens of the user may tell calls apart.
            whole = (key, body.callee.label, msgspec.json.encode(self.own_classes(body.nodes)))
            place = None if key is None else self.known.get(whole)
            if place is None:
                place = len(self.spaces)
                self.spaces.append(None)
                self.body_nodes += len(body.nodes)
                if key is not None:
                    self.known[whole] = place
                inside = given if has_hub(call.node) else {**given, **_arguments(call, body)}
                self.pending.append((place, body, root.opener, inside))
            records.append(BodyRecord(space=place, label=body.callee.label, scope_label=root.label if several else ""))
        return records


def _info(row: _InfoRow) -> TensorInfo:
    dtype, sizes, reference, size = row
    return TensorInfo(dtype=dtype, sizes=None if sizes is None else list(sizes), reference=reference, bytes=size)


def _arguments(call: Call, body: CallBody) -> dict[str, Tensor]:
    return {arg.name: tensor for arg, tensor in zip(body.args, call.node.inputs, strict=False)}


def _gap_record(gap: Gap, number: Mapping[str, int]) -> GapRecord:
    cuts = [(number.get(cut.last, -1), number.get(cut.node, -1), cut.reason) for cut in gap.cuts]
    return GapRecord(node=number[gap.node], cuts=cuts)


class _Space:
    """Writes one graph or body.

    Args:
        prefix: what the names of its nodes begin with: "" for the graph, `call:then/` for a body.
        opener: opens its calls.
        roles: the roles of the graph's nodes, None for a body, whose gradient nodes follow from its call.
        given: the tensors given to the arguments of the bodies around, by argument.
    """

    def __init__(
        self,
        writer: _Writer,
        graph: Graph,
        prefix: str,
        opener: Opener,
        roles: Roles | None,
        body: CallBody | None,
        given: dict[str, Tensor],
    ) -> None:
        self.writer = writer
        self.graph = graph
        self.prefix = prefix
        self.opener = opener
        self.roles = roles
        self.body = body
        self.given = given
        self.outside = Outside(given, writer.steps)
        self.nodes = sorted(graph.nodes, key=lambda node: node.id)
        self.number = {node.name: place for place, node in enumerate(self.nodes)}
        self.paths: dict[str, int] = {prefix.removesuffix("/"): 0}
        self.foreign: list[ForeignTensor] = []
        self.dim_numbers: dict[object, int] = {}
        self.foreign_dims: dict[int, int] = {}
        self.classes = graph.dimension_classes() if len(graph) <= MAX_NODES else {}

    def write(self) -> Steps[tuple[SpaceHead, SpaceColumns]]:
        columns = yield from self._columns()
        why = (yield from why_rows(self.nodes, self.outside)) if self.writer.explains else {}
        calls: list[CallRecord] = []
        for node in self.nodes:
            if calls_functions(node):
                calls.append(self._call(Call(node, None, self.opener)))
                yield
        body = self.body
        records = self.graph.gradient_records if body is None else {}
        origins = origins_of(self.graph, scope_tree(self.graph, self.writer.state)) if body is None else {}
        head = SpaceHead(
            paths=[path[len(self.prefix) :] for path in self.paths],
            calls=calls,
            foreign=self.foreign,
            errors=self._errors(),
            gradients=[
                GradientRow(
                    node=self.number[name],
                    forward=record.forward,
                    function=None if record.function is None else record.function.name,
                    info=self.writer.gradients.of_record(self.graph, record),
                    body_node=record.body_node,
                )
                for name, record in records.items()
                if name in self.number
            ],
            gradient_count=len(records),
            origins=[self.number[name] for pair in origins.items() for name in pair],
            gaps=[] if body is not None else [_gap_record(gap, self.number) for gap in gaps_of(self.graph, origins)],
            why=why,
            user_names={place: name for place, node in enumerate(self.nodes) if node.op in ARG and (name := user_name(node.attr))},
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
            saved_signatures=[(name, self._places(ends)) for name, ends in ends_of_signatures(self.graph).items()],
        )
        return head, SpaceColumns(**columns)

    def _places(self, names: Iterable[str]) -> list[int]:
        return sorted(self.number[name] for name in names if name in self.number)

    def _scope(self, path: str) -> int:
        return self.paths.setdefault(path, len(self.paths))

    def _columns(self) -> Steps[dict[str, Any]]:
        writer = self.writer
        text = writer.texts.of
        nodes, number = self.nodes, self.number
        scopes: list[int] = []
        names: list[str] = []
        producers: list[int] = []
        slots: list[int] = []
        awaited: list[int] = []
        described = []
        signatures: list[int] = []
        dims: list[int] = []
        runs: dict[object, int] = {}
        sources: list[int] = []
        signature_of: dict[object, int] = {}
        symbolic = isinstance(self.graph.refiner, SymbolicRefiner)
        for place, node in enumerate(nodes):
            if place % STEP == 0:
                yield
            path, _, name = node.name.rpartition("/")
            scopes.append(self._scope(path))
            names.append(name)
            for tensor in node.inputs:
                source = tensor.node
                found = number.get(source.name)
                if found is None or found == place or nodes[found] is not source:
                    producers.append(0)
                    slots.append(tensor.index)
                    self.foreign.append(self._foreign(tensor))
                else:
                    producers.append(place - found)
                    slots.append(tensor.index)
            awaited.extend([place - number[other.name] for other in node.control_inputs if other.name in number])
            described.append(writer.attrs.of(node))
            sizes = tuple([None if h.dims is None else tuple([dim.value for dim in h.dims]) for h in node.output_handles])
            is_numbered = symbolic or (self.body is None and any(-1 in each for each in sizes if each is not None))
            key = None if is_numbered or len(sizes) != len(node.output_types) else (node.output_types, sizes)
            signature = None if key is None else signature_of.get(key)
            if signature is None:
                signature = signature_of[key] = writer.signatures.of(tuple([writer.info(tensor) for tensor in node.outputs]))
            signatures.append(signature)
            self._write_dims(node, dims)
            origin = node.source
            if origin is None:
                sources.append(-1)
            else:
                run = runs.get(origin)
                if run is None:
                    row = source_row(origin)
                    run = runs[origin] = -1 if row is None else writer.sources.of(row)
                sources.append(run)
            if node.op not in writer.ops:
                writer.ops[node.op] = op_text(node)
        return {
            "scopes": scopes,
            "names": names,
            "ops": _column([text(node.op) for node in nodes]),
            "kinds": _column([kind for kind, *_ in described]),
            "details": _column([detail for _, detail, *_ in described]),
            "cells": _column([text(cell_label(node)) for node in nodes]),
            "devices": _column([text(assigned_device(node)) for node in nodes]),
            "requests": _column([text(node.device) for node in nodes]),
            "functions": _column([text(", ".join(called_functions(node))) if calls_functions(node) else 0 for node in nodes]),
            "definitions": _column([attrs for _, _, attrs, _ in described]),
            "slot_names": _column([writer.slots.of(node) for node in nodes]),
            "registered": _column([gradient for *_, gradient in described]),
            "sources": _column(sources),
            "flags": _column(self._flags()),
            "arities": _column([len(node.inputs) for node in nodes]),
            "producers": producers,
            "slots": _column(slots),
            "waits": _column([len([1 for other in node.control_inputs if other.name in number]) for node in nodes]),
            "awaited": awaited,
            "signatures": _column(signatures),
            "dims": _column(dims),
        }

    def _write_dims(self, node: Node, dims: list[int]) -> None:
        """Append the dimensions of the outputs of known rank."""
        numbers = self.dim_numbers
        for index, handle in enumerate(node.output_handles):
            if handle.dims is None:
                continue
            keys = self.classes.get(f"{node.name}:{index}") if self.classes else None
            for key in handle.dims if keys is None else keys:
                newest = len(numbers)
                known = numbers.setdefault(key if keys is not None else id(key), newest)
                dims.append(newest - known)

    def _foreign(self, tensor: Tensor) -> ForeignTensor:
        handles = tensor.node.output_handles
        handle = handles[tensor.index] if tensor.index < len(handles) else None
        keys = None
        if handle is not None and handle.dims is not None:
            keys = [self._foreign_dim(id(dim)) for dim in handle.dims]
        info = self.writer.info(tensor)
        return ForeignTensor(
            name=tensor.node.name.removeprefix(self.prefix),
            slot=tensor.index,
            info=_info(self.writer.infos.values[info]),
            dims=keys,
        )

    def _foreign_dim(self, key: int) -> int:
        """The number of a dimension from elsewhere: negative, unless a node of the space has it too."""
        known = None if self.classes else self.dim_numbers.get(key)
        return self.foreign_dims.setdefault(key, -1 - len(self.foreign_dims)) if known is None else known

    def _flags(self) -> list[int]:
        graph, roles, body = self.graph, self.roles, self.body
        records = graph.gradient_records if body is None else {}
        differentiated = {record.forward for record in records.values()}
        failed = bool(graph.cells.failed)
        gradients = frozenset() if body is None else body.gradients
        flags = []
        for node in self.nodes:
            flag = SHORT if node.registration.traits.role == "constant" and is_short(node) else 0
            if node.name in gradients if roles is None else records and roles.is_gradient(node):
                flag |= GRADIENT
            if failed and graph.cells.is_partial(node):
                flag |= PARTIAL
            if node.name in differentiated:
                flag |= DIFFERENTIATED
            if is_elsewhere(node):
                flag |= ELSEWHERE
            flags.append(flag)
        return flags

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
            bodies = writer.bodies_of(call, self.given)
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


def _column(values: list[int]) -> list[int]:
    """A column; one value if all are equal."""
    return values[:1] if values and values.count(values[0]) == len(values) else values
