"""Nodes that wait for nothing but each other become one item of the dataflow engine: it has one token where they would have many.

A *group* runs when what its first node waits for is there. A node may join it if all that the node waits for comes from the group
itself or is certainly there when the group runs: what the first node waits for, and what the groups that it waits for give. So
nothing is held up by a value that it does not need, and all of a group is dead or alive together; but for a Switch, of whose values one is
dead, and what computes with that and is waited for by nobody but for its value. What needs no more than feeds is the group that a run starts with;
where that, or a feed, is the same in all iterations of a loop, nobody is held up by waiting for it. A constant is written into the groups
that read it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from graphcore.runtime.dataflow.table import ENTERING_CONSTANT, FETCH, MERGING, PLAIN, SENDING, SWITCH, FrameTable, Item, Table
from graphcore.runtime.dataflow.tapes import CONTROL, Source, write_tape


class Group:
    """Nodes that run together.

    Attributes:
        members: the nodes, producers first.
        triggers: what the group waits for; `around` are the groups among it.
    """

    __slots__ = ("around", "members", "triggers")

    def __init__(self, triggers: Iterable[Source], around: Iterable[Group]) -> None:
        self.members: list[Item] = []
        self.triggers: dict[Source, None] = dict.fromkeys(triggers)
        self.around = set(around)

    def inputs(self) -> list[Source]:
        """The values among the triggers."""
        return [source for source in self.triggers if source[1] != CONTROL]


def fuse(table: Table) -> Table:
    """A table that does what `table` does with fewer items. `table` stays as it is."""
    groups = _Groups(table)
    return _Writer(table, groups).write()


def is_branch(item: Item) -> bool:
    """Whether `item` is a Switch that takes a value and a scalar, neither of them a variable whose value it wants."""
    return item.kind == SWITCH and item.count == 2 and not item.variables and item.node.op != "_SwitchN"


class _Groups:
    """Finds the groups of a table."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.feeds = set(table.feeds)
        self.sources: dict[Item, list[tuple[Source, int]]] = {item: [] for item in (*table.feeds, *table.items)}
        self.constants: dict[Item, Any] = {}
        self.start = Group((), ())
        self.groups: list[Group] = [self.start]
        self.of: dict[Item, Group] = {}
        self.maybe_dead: set[Item] = set()
        self._triggered: dict[frozenset[Source], Group] = {}
        for item in self.sources:
            for port, consumer, slot, _ in item.data_edges:
                self.sources[consumer].append(((item, port), slot - consumer.base))
            for consumer in item.control_edges:
                self.sources[consumer].append(((item, CONTROL), CONTROL))
        self.kept: set[Item] = set()
        done = set(self.feeds)
        for item in table.items:
            self._learn(item)
            if all(source in done for (source, _), _ in self.sources[item]):
                if is_branch(item) or (item.kind == PLAIN and self._only_computes(item)):
                    self._join_with_dead(item)
                if item.kind in (PLAIN, SENDING) and item not in self.of:
                    self._join(item)
            done.add(item)

    def _learn(self, item: Item) -> None:
        """Note a constant that is alive wherever it is read."""
        sources = self.sources[item]
        if item.kind == PLAIN and item.node.op == "Const" and not sources and item.dtypes:
            self.constants[item] = item.kernel()
        elif item.kind == ENTERING_CONSTANT and item.passes and len(sources) == 1 and sources[0][0][0] in self.constants:
            self.constants[item] = self.constants[sources[0][0][0]]
        elif item.kind == ENTERING_CONSTANT and item.passes and len(sources) == 1:
            source = sources[0][0]
            if source[1] != CONTROL and (source[0] in self.kept or self._is_soon_there(source)):
                self.kept.add(item)

    def _join(self, item: Item) -> None:
        """Find the group of `item`, or begin one."""
        wanted = self.wanted(item)
        known = {self.of[source]: None for source, _ in wanted if source in self.of}
        group = next((group for group in known if all(self._is_there(group, source) for source in wanted)), None)
        if group is None:
            if all(self._is_soon_there(source) for source in wanted):
                group = self.start
            else:
                waited = frozenset([source for source in wanted if source[0] not in self.kept] or wanted)
                group = self._triggered.get(waited)
                if group is None:
                    group = self._triggered[waited] = Group(wanted, known)
                    self.groups.append(group)
        self._add(group, item, wanted)

    def _is_soon_there(self, source: Source) -> bool:
        """Whether it needs no more than feeds."""
        return source[0] in self.feeds or (self.of.get(source[0]) is self.start and not self._may_be_dead(source))

    def _add(self, group: Group, item: Item, wanted: Iterable[Source]) -> None:
        for source in wanted:
            if self.of.get(source[0]) is not group:
                group.triggers.setdefault(source)
        group.members.append(item)
        self.of[item] = group

    def _join_with_dead(self, item: Item) -> None:
        """Have a Switch, or what computes with what one gives, run with what gives its inputs, if one group does."""
        wanted = self.wanted(item)
        follows = any(self._may_be_dead(source) for source in wanted)
        if not follows and item.kind != SWITCH:
            return
        for group in {self.of[source]: None for source, _ in wanted if source in self.of}:
            if all(self.of.get(source[0]) is group if self._may_be_dead(source) else self._is_there(group, source) for source in wanted):
                self._add(group, item, wanted)
                self.maybe_dead.add(item)
                return

    def _only_computes(self, item: Item) -> bool:
        """Whether nothing but its values goes in and comes out of `item`, so that it may be dead by itself."""
        return not (item.control_edges or item.merge_controls) and bool(item.dtypes) and all(s[1] != CONTROL for s, _ in self.sources[item])

    def _may_be_dead(self, source: Source) -> bool:
        """Whether it is a value that may be dead though the group that gives it is not."""
        return source[0].kind == SWITCH if source[0] not in self.maybe_dead else source[1] != CONTROL

    def wanted(self, item: Item) -> list[Source]:
        """What `item` waits for, less constants; one that reads nothing else waits for those."""
        sources = [source for source, _ in self.sources[item]]
        return [source for source in sources if source[1] == CONTROL or source[0] not in self.constants] or sources

    def _is_there(self, group: Group, source: Source) -> bool:
        own = self.of.get(source[0])
        return (
            source in group.triggers or source[0] in self.kept or (not self._may_be_dead(source) and (own is group or own in group.around))
        )


class _Writer:
    """Makes the new table: items that stand alone are copied, each group becomes one."""

    def __init__(self, table: Table, groups: _Groups) -> None:
        self.old = table
        self.groups = groups
        self.new = Table()
        self.frames: dict[FrameTable, FrameTable] = {}
        self.items: dict[Item, Item] = {}
        self.fused: dict[Group, Item] = {}
        self.registers: dict[Group, dict[Source, int]] = {}

    def write(self) -> Table:
        old, new, groups = self.old, self.new, self.groups
        new.outermost = self._frame(old.outermost)
        new.nodes, new.fetches, new.given = old.nodes, old.fetches, old.given
        new.feeds = [self._copy(item) for item in old.feeds]
        fetched = [item for item in old.items if item.kind == FETCH and self._source(item)[0] in groups.of]
        apart = set(fetched)
        alone = [item for item in old.items if item not in groups.of and item not in apart]
        read = self._read(alone, fetched)
        alone = [item for item in alone if not self._is_left_out(item, read)]
        for item in alone:
            self._copy(item)
        for group in groups.groups:
            if group.members:
                self._write_group(group, read)
        for item in fetched:
            source = self._source(item)
            tape = self.fused[groups.of[source[0]]].tape
            assert tape is not None
            tape.fetches.append((item.number, self.registers[groups.of[source[0]]][source]))
        movers = {item for item in alone if self._connect(item)}
        for group, item in self.fused.items():
            self._connect_group(group, item)
        self._connect_merges()
        new.items = [*[self.items[item] for item in alone], *self.fused.values()]
        started = [self.items[item] for item in alone if item not in movers] + list(self.fused.values())
        new.roots = [item for item in started if not item.frame.pending[item.index]]
        for item in alone:
            self.items[item].branches = is_branch(item)
        new.settle()
        return new

    def _frame(self, frame: FrameTable) -> FrameTable:
        found = self.frames.get(frame)
        if found is None:
            found = self.frames[frame] = FrameTable(frame.name)
            found.enters, found.parallel = frame.enters, frame.parallel
        return found

    def _copy(self, item: Item) -> Item:
        copied = self.items[item] = Item(item.node, item.name, item.kind, self._frame(item.frame))
        copied.child = self._frame(item.child)
        copied.count, copied.variables, copied.number, copied.passes = item.count, item.variables, item.number, item.passes
        copied.dtypes, copied.dtype, copied.kernel, copied.context = item.dtypes, item.dtype, item.kernel, item.context
        copied.frame.slots += copied.count
        copied.frame.pending[copied.index] = int(item.kind == MERGING)
        return copied

    def _source(self, item: Item) -> Source:
        return self.groups.sources[item][0][0]

    def _read(self, alone: Iterable[Item], fetched: Iterable[Item]) -> set[Source]:
        """What is read outside of the group that gives it."""
        found = {source for group in self.groups.groups for source in group.triggers}
        found.update([source for item in (*alone, *fetched) for source, _ in self.groups.sources[item]])
        found.update([(item, port) for item in self.groups.sources for port, _, _ in item.merge_edges])
        return found

    def _is_left_out(self, item: Item, read: set[Source]) -> bool:
        """Whether `item` brings a constant into a loop where all who read it know it already, and others open the loop."""
        if item not in self.groups.constants or (item, 0) in read or item.control_edges or item.merge_controls:
            return False
        frame = self._frame(item.child)
        if frame.enters < 2:
            return False
        frame.enters -= 1
        return True

    def _write_group(self, group: Group, read: set[Source]) -> None:
        first, inputs = group.members[0], group.inputs()
        item = self.fused[group] = Item(first.node, first.name, PLAIN, self._frame(first.frame))
        item.count = len(inputs)
        item.frame.slots += item.count
        item.tape, self.registers[group] = write_tape(group.members, inputs, self.groups.sources, self.groups.constants, read)

    def _new(self, source: Source) -> Source:
        """What gives in the new table what `source` gives in the old."""
        item, port = source
        group = self.groups.of.get(item)
        if group is None:
            return self.items[item], port
        return self.fused[group], port if port == CONTROL else self.registers[group][source]

    def _connect(self, item: Item) -> bool:
        """Make the edges to an item that stands alone. True if it runs with what it takes the value of, and needs none."""
        copied, sources = self.items[item], self.groups.sources[item]
        if item.moves and item.passes and len(sources) == 1 and sources[0][1] != CONTROL:
            giver, port = self._new(sources[0][0])
            giver.movers.append((port, copied))
            return True
        self._wait(copied, [(self._new(source), slot) for source, slot in sources])
        return False

    def _connect_group(self, group: Group, item: Item) -> None:
        inputs = {source: slot for slot, source in enumerate(group.inputs())}
        self._wait(item, [(self._new(source), inputs.get(source, CONTROL)) for source in group.triggers])

    def _wait(self, item: Item, sources: Iterable[tuple[Source, int]]) -> None:
        """Have `item` wait for values, and once for each item that it waits for otherwise."""
        waited = set()
        for (giver, port), slot in sources:
            if port != CONTROL:
                giver.data_edges.append((port, item, item.base + slot, item.index))
            elif giver in waited:
                continue
            else:
                waited.add(giver)
                giver.control_edges.append(item)
            item.frame.pending[item.index] += 1

    def _connect_merges(self) -> None:
        waited = set()
        for item in self.groups.sources:
            for port, merge, number in item.merge_edges:
                giver, new_port = self._new((item, port))
                giver.merge_edges.append((new_port, self.items[merge], number))
            for merge in item.merge_controls:
                giver, _ = self._new((item, CONTROL))
                if (giver, merge) not in waited:
                    waited.add((giver, merge))
                    giver.merge_controls.append(self.items[merge])
                    self.items[merge].frame.pending[self.items[merge].index] += 2
