"""Parts that open: nodes with their helpers, and groups that dataflow joins."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, cast

from widgets.scene.calls import calls_functions
from widgets.scene.structure import FEW_PARTS, Bunch, Unit, arrange
from widgets.scene.structure.items import cycles, make_items
from widgets.scene.structure.naming import is_foreign
from widgets.scene.structure.serving import CONE, is_end, is_variable

if TYPE_CHECKING:
    from graphcore.graph import Node
    from widgets.scene.tree.scopes import Part, Scope

FEW_NODES: Final = 150
"""Parts with more nodes than this together cannot all be open, so repeats among them are shown once."""
FEW_FOREIGN: Final = 24
"""In a smaller graph of another framework, where each weight is a node, repeats are not joined."""


class Fold(ABC):
    """A part that opens. `helpers` are parts from around it that serve only its nodes, such as their parameters."""

    __slots__ = ("helpers",)

    def __init__(self, helpers: Iterable[Part] = ()) -> None:
        self.helpers: list[Part] = list(helpers)

    @property
    @abstractmethod
    def key(self) -> str:
        """The name by which it is opened, unique in its graph."""

    @property
    @abstractmethod
    def total(self) -> int:
        """The number of nodes inside, at any depth, helpers included."""

    @abstractmethod
    def parts(self) -> list[Part]:
        """The parts shown when it is open."""

    @abstractmethod
    def all_nodes(self) -> list[Node]:
        """Every node inside, at any depth, helpers included."""

    @abstractmethod
    def leads_to(self, target: str, *, is_node: bool) -> bool:
        """True iff it is or contains the node, or the part with the key, `target`."""

    def apart(self) -> list[Part]:
        """The parts in its place if it cannot be kept whole; itself by default."""
        return [cast("Part", self)]

    def take_in(self, helpers: Sequence[Part]) -> None:
        """Add parts from around it that serve its nodes."""
        self.helpers.extend(helpers)


class Thing(Fold):
    """A node with what serves it: a box that opens.

    That is the small scope of its own name (`W` with `W/read`, `W/Assign`), and parameters.
    """

    __slots__ = ("node", "scope")

    def __init__(self, node: Node, scope: Scope | None, helpers: Sequence[Part] = ()) -> None:
        super().__init__(helpers)
        self.node = node
        self.scope = scope

    @property
    def key(self) -> str:
        """The name of the node, which is also the path of the scope."""
        return self.node.name

    @property
    def total(self) -> int:
        """The number of nodes, the main one included."""
        return 1 + (self.scope.total if self.scope is not None else 0) + total_of(self.helpers)

    def parts(self) -> list[Part]:
        """The parts shown when it is open. Things inside are open, too: a weight has no frame of its own."""
        inside = [*(self.scope.parts() if self.scope is not None else []), *self.helpers]
        return [self.node, *[inner for part in inside for inner in (part.parts() if isinstance(part, Thing) else [part])]]

    def all_nodes(self) -> list[Node]:
        """The main node and its helpers."""
        return [self.node, *(self.scope.all_nodes() if self.scope is not None else []), *nodes_of(self.helpers)]

    def leads_to(self, target: str, *, is_node: bool) -> bool:
        """True iff it is or contains the node, or the part with the key, `target`."""
        return target == self.key or target.startswith(self.key + "/") or any_leads_to(self.helpers, target, is_node=is_node)


class Group(Fold):
    """Parts of a scope that dataflow joins; a repeat if it has `instances`.

    Attributes:
        key: the scope's path, the depth, and the name of its first part, so that it survives changes elsewhere.
        items: the parts inside, in the order of the dataflow.
        helpers: parameters that all instances share.
        differences: the ops in which the instances differ, in words; "" if they are exactly alike.
        outputs: the tensor that each instance passes on.
    """

    __slots__ = ("_contents", "_key", "_total", "depth", "differences", "instances", "items", "label", "outputs", "path")

    def __init__(self, path: str, depth: int, bunch: Bunch, units: Sequence[Part]) -> None:
        super().__init__([units[unit] for unit in bunch.shared])
        self.path = path
        self.depth = depth
        self.items = [units[unit] for unit in bunch.items]
        self._key = f"{path}/#{depth}.{_name_at_start(self.items[0]) if self.items else ''}"
        self.label = bunch.label
        self.differences = bunch.differences
        self.instances: list[Part] = [group_or_part(path, depth + 1, inner, units) for inner in bunch.instances]
        self.outputs = [inner.output for inner in bunch.instances]
        self._total = total_of(self.items) + total_of(self.helpers)
        self._contents: list[Part] | None = self.items if bunch.is_plain else None

    @classmethod
    def of(
        cls, path: str, depth: int, label: str, items: Sequence[Part], contents: list[Part] | None = None, *, plain: bool = True
    ) -> Group:
        """A group that opens into these parts, by default its items; without further grouping if it is plain."""
        group = cls(path, depth, Bunch(list(range(len(items))), label, is_plain=plain), items)
        if contents is not None:
            group._contents = contents
        return group

    @property
    def key(self) -> str:
        """The name by which it is opened."""
        return self._key

    @property
    def total(self) -> int:
        """The number of nodes inside."""
        return self._total

    def take_in(self, helpers: Sequence[Part]) -> None:
        """Add parts from around it that serve its nodes."""
        super().take_in(helpers)
        self._total += total_of(helpers)

    def parts(self) -> list[Part]:
        """The parts shown when it is open."""
        if self._contents is None:
            self._contents = in_rows(self.path, self.instances) if self.instances else structured(self.path, self.items, self.depth + 1)
        return [*self._contents, *self.helpers]

    def all_nodes(self) -> list[Node]:
        """Every node inside, at any depth."""
        return nodes_of([*self.items, *self.helpers])

    def leads_to(self, target: str, *, is_node: bool) -> bool:
        """True iff it is or contains the node, or the part with the key, `target`."""
        if not is_node and "/#" in target:
            return target == self.key or any_leads_to(self.parts(), target, is_node=False)
        return any_leads_to([*self.items, *self.helpers], target, is_node=is_node)


def structured(path: str, parts: list[Part], depth: int) -> list[Part]:
    """The parts of a scope or group as they are shown: grouped and in order if they are many.

    Args:
        path: the path of the scope.
        depth: the number of groups around.
    """
    if len(parts) < 2:
        return parts
    total = total_of(parts)
    few = len(parts) <= FEW_PARTS and total <= FEW_NODES
    if few and not is_foreign(nodes_of(parts[:1])[0]):
        return with_initial_values(parts)
    parts = without_cycles_of_names(parts)
    members = [nodes_of([part]) for part in parts]
    arranged = arrange(members, [_is_backward(nodes) for nodes in members])
    units = [_unit(unit, path, depth, parts) for unit in arranged.units]
    if few and total <= FEW_FOREIGN:
        return units
    return [group_or_part(path, depth, bunch, units) for bunch in arranged.bunches]


def without_cycles_of_names(parts: list[Part]) -> list[Part]:
    """The parts, with scopes taken apart that form a cycle although their nodes form none.

    Scopes in a cycle stay whole if all of them share one loop of nodes.
    """
    loop_of: dict[str, int] | None = None
    while True:
        members = [nodes_of([part]) for part in parts]
        clumps = cycles(make_items(members, [False] * len(parts)))
        scopes = {place for clump in clumps for place in clump if _apart(parts[place]) != [parts[place]]}
        if not scopes:
            return parts
        if loop_of is None:
            nodes = [node for each in members for node in each]
            found = cycles(make_items([[node] for node in nodes], [False] * len(nodes)))
            loop_of = {nodes[place].name: number for number, loop in enumerate(found) for place in loop}
        cut: set[int] = set()
        for clump in clumps:
            loops = {place: {loop_of[node.name] for node in members[place] if node.name in loop_of} for place in clump}
            if len(set().union(*loops.values())) == 1 and all(loops.values()):
                continue
            cut.update([place for place in clump if place in scopes and len(loops[place]) != 1] or scopes.intersection(clump))
        if not cut:
            return parts
        parts = [inner for place, part in enumerate(parts) for inner in (_apart(part) if place in cut else [part])]


def _apart(part: Part) -> list[Part]:
    return part.apart() if isinstance(part, Fold) else [part]


def with_initial_values(parts: list[Part]) -> list[Part]:
    """The parts in their order, with what only an initial value needs inside its variable."""
    variables = {place: part for place, part in enumerate(parts) if isinstance(part, Thing) and is_variable(part.node)}
    if not variables:
        return parts
    members = [nodes_of([part]) for part in parts]
    items = make_items(members, [False] * len(parts))
    names = {node.name for nodes in members for node in nodes}
    constant: set[int] = set()
    for place, nodes in enumerate(members):
        if len(nodes) <= CONE and constant.issuperset(items.before(place)) and not any(map(_varies, nodes)):
            constant.add(place)
    folded: dict[int, int] = {}
    for place in sorted(constant, reverse=True):
        served = {folded.get(target, target) for target in items.outputs[place]}
        ours = all(slot >= 0 and consumer.name in names for node in members[place] for consumer, slot in node.consumers())
        if len(served) == 1 and served <= variables.keys() and ours:
            (folded[place],) = served
    for place, variable in sorted(folded.items()):
        variables[variable].take_in([parts[place]])
    return [part for place, part in enumerate(parts) if place not in folded]


def group_or_part(path: str, depth: int, bunch: Bunch, units: Sequence[Part]) -> Part:
    """A group of these units, or the only one."""
    return Group(path, depth, bunch, units) if len(bunch.items) > 1 else units[bunch.items[0]]


def in_rows(path: str, instances: list[Part], level: int = 0, number: int = 1) -> list[Part]:
    """The instances of a repeat, joined in rows of neighbours if they are many."""
    if len(instances) <= FEW_PARTS:
        return instances
    size = FEW_PARTS
    while size * FEW_PARTS < len(instances):
        size *= FEW_PARTS
    rows: list[Part] = []
    for start in range(0, len(instances), size):
        row = instances[start : start + size]
        label = f"{number + start} to {number + start + len(row) - 1}"
        rows.append(Group.of(path, -1 - level, label, row, in_rows(path, row, level + 1, number + start)))
    return rows


def nodes_of(parts: Iterable[Part]) -> list[Node]:
    """Every node in some parts."""
    nodes: list[Node] = []
    for part in parts:
        if isinstance(part, Fold):
            nodes.extend(part.all_nodes())
        else:
            nodes.append(part)
    return nodes


def total_of(parts: Iterable[Part]) -> int:
    """The number of nodes in some parts."""
    return sum([part.total if isinstance(part, Fold) else 1 for part in parts])


def leads_to(part: Part, target: str, *, is_node: bool) -> bool:
    """True iff a part is or contains the node, or the part with the key, `target`."""
    return part.leads_to(target, is_node=is_node) if isinstance(part, Fold) else is_node and part.name == target


def any_leads_to(parts: Iterable[Part], target: str, *, is_node: bool) -> bool:
    """True iff one of some parts leads to `target`."""
    return any(leads_to(part, target, is_node=is_node) for part in parts)


def _unit(unit: Unit, path: str, depth: int, parts: Sequence[Part]) -> Part:
    """One part, or a group of the parts of a cycle, together with what serves it."""
    inside = [parts[part] for part in unit.parts]
    helpers = [parts[part] for part in unit.helpers]
    # A cycle has no order to find.
    main = inside[0] if len(inside) == 1 else Group.of(path, depth, _scope_of_most(inside) or unit.label, inside)
    if helpers and not isinstance(main, Fold):
        return Thing(main, None, helpers)
    if helpers and isinstance(main, Fold):
        main.take_in(helpers)
    return main


def _scope_of_most(parts: Sequence[Part]) -> str:
    """The last word of the path of the scope with most of the nodes, "" if there is none."""
    largest = max(parts, key=lambda part: part.total if isinstance(part, Fold) else 1)
    if not isinstance(largest, Fold) or 2 * largest.total <= total_of(parts):
        return ""
    return largest.label if isinstance(largest, Group) else largest.key.rpartition("/")[2]


def _varies(node: Node) -> bool:
    return is_variable(node) or is_end(node) or calls_functions(node)


def _is_backward(nodes: list[Node]) -> bool:
    records = nodes[0].graph.gradient_records
    return bool(records) and 2 * sum(1 for node in nodes if node.name in records) > len(nodes)


def _name_at_start(first: Part) -> str:
    return first.key if isinstance(first, Fold) else first.name
