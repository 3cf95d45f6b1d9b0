"""Columns: rows of nodes, with tables of the values that many of them have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from widgets.render.page_data.steps import STEP
from widgets.render.page_data.texts import Numbers
from widgets.render.page_data.types import ForeignTensor, GradientRow, GradientText, SpaceColumns, TensorInfo

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from widgets.inspection import SourceRow
    from widgets.render.page_data.rows import InfoRow, InputRow, Names, NodeRow
    from widgets.render.page_data.steps import Steps


class Tables:
    """The tables that the columns of all graphs of one page share."""

    def __init__(self) -> None:
        self.texts: Numbers[str] = Numbers()
        self.sources: Numbers[SourceRow] = Numbers()
        self.gradients: Numbers[GradientText] = Numbers()
        self.slots: Numbers[Names] = Numbers()
        self._infos: Numbers[InfoRow] = Numbers()
        self._signatures: Numbers[tuple[InfoRow, ...]] = Numbers()
        self.texts[""]  # number 0

    def info(self, row: InfoRow) -> TensorInfo:
        """Type and shape of a tensor, which become one of those of the page."""
        self._infos[row]
        return _info_of(row)

    def signature(self, outputs: tuple[InfoRow, ...]) -> int:
        """The number of the types and shapes of a node's outputs."""
        if outputs not in self._signatures:
            for row in outputs:
                self._infos[row]
        return self._signatures[outputs]

    def tensors(self) -> tuple[list[TensorInfo], list[list[int]]]:
        """The types and shapes of tensors, and their places in each signature."""
        signatures = [[self._infos[row] for row in rows] for rows in self._signatures]
        return [_info_of(row) for row in self._infos], signatures


def _info_of(row: InfoRow) -> TensorInfo:
    """Type and shape of a tensor."""
    dtype, sizes, reference, size = row
    return TensorInfo(dtype=dtype, sizes=None if sizes is None else list(sizes), reference=reference, bytes=size)


class Columns:
    """The columns of one graph or body.

    Args:
        number: the numbers of nodes by name.
        merges: equal dimensions that merges have found are one, so that nothing is known of those of lost tensors.
        keys: give dimensions from elsewhere by key, for a page that has dimensions of other nodes.

    Attributes:
        paths: the paths of the scopes that hold nodes.
        foreign: inputs from elsewhere.
        dims: the keys of dimensions in the order in which they come.
    """

    def __init__(self, tables: Tables, number: Mapping[str, int], *, merges: bool, keys: bool = False) -> None:
        self.paths: Numbers[str] = Numbers()
        self.foreign: list[ForeignTensor] = []
        self.dims: Numbers[int] = Numbers()
        self._tables = tables
        self._number = number
        self._merges = merges
        self._keys = keys
        self._foreign_dims: dict[int, int] = {}
        self.paths[""]  # number 0

    def write(self, rows: Sequence[NodeRow]) -> Steps[SpaceColumns]:
        """Write the columns of some rows."""
        tables, number, texts, paths = self._tables, self._number, self._tables.texts, self.paths
        scopes: list[int] = []
        kinds: list[int] = []
        details: list[int] = []
        definitions: list[int] = []
        registered: list[int] = []
        producers: list[int] = []
        slots: list[int] = []
        awaited: list[int] = []
        signatures: list[int] = []
        dims: list[int] = []
        sources: list[int] = []
        for count, row in enumerate(rows):
            if count % STEP == 0:
                yield
            place = number[row.full_name]
            scopes.append(paths[row.path])
            for source in row.inputs:
                slots.append(source.slot)
                if source.info is None:
                    producers.append(place - number[source.name])
                else:
                    producers.append(0)
                    self.foreign.append(self._foreign(source, source.info))
            awaited.extend([place - number[other] for other in row.waits])
            kinds.append(texts[row.kind])
            details.append(texts[row.detail])
            definitions.append(texts[row.definition])
            registered.append(-1 if row.registered is None else tables.gradients[row.registered])
            signatures.append(tables.signature(row.outputs))
            for key in row.dims:
                newest = len(self.dims)
                dims.append(newest - self.dims[key])
            sources.append(-1 if row.source is None else tables.sources[row.source])
        return SpaceColumns(
            scopes=scopes,
            names=[row.name for row in rows],
            ops=self._texts([row.op for row in rows]),
            kinds=one_column(kinds),
            details=one_column(details),
            cells=self._texts([row.cell for row in rows]),
            devices=self._texts([row.device for row in rows]),
            requests=self._texts([row.request for row in rows]),
            functions=self._texts([row.functions for row in rows]),
            definitions=one_column(definitions),
            slot_names=one_column([tables.slots[row.slot_names] for row in rows]),
            registered=one_column(registered),
            sources=one_column(sources),
            flags=one_column([row.flags for row in rows]),
            arities=one_column([len(row.inputs) for row in rows]),
            producers=producers,
            slots=one_column(slots),
            waits=one_column([len(row.waits) for row in rows]),
            awaited=awaited,
            signatures=one_column(signatures),
            dims=one_column(dims),
        )

    def gradients(self, rows: Iterable[NodeRow]) -> list[GradientRow]:
        """The records of gradient nodes among some rows."""
        number, texts = self._number, self._tables.gradients
        return [
            GradientRow(
                node=number[row.full_name],
                forward=row.gradient.forward,
                function=row.gradient.function,
                info=-1 if row.gradient.text is None else texts[row.gradient.text],
                body_node=row.gradient.body_node,
            )
            for row in rows
            if row.gradient is not None
        ]

    def _texts(self, values: list[str]) -> list[int]:
        return one_column(list(map(self._tables.texts.__getitem__, values)))

    def _foreign(self, lost: InputRow, info: InfoRow) -> ForeignTensor:
        dims = None if lost.dims is None else list(lost.dims) if self._keys else [self._foreign_dim(key) for key in lost.dims]
        return ForeignTensor(name=lost.name, slot=lost.slot, info=self._tables.info(info), dims=dims)

    def _foreign_dim(self, key: int) -> int:
        """The number of a dimension from elsewhere: negative, unless a node of the space has it too."""
        place = None if self._merges else self.dims.get(key)
        return self._foreign_dims.setdefault(key, -1 - len(self._foreign_dims)) if place is None else place


def one_column(values: list[int]) -> list[int]:
    """A column; one value if all are equal."""
    return values[:1] if values and values.count(values[0]) == len(values) else values
