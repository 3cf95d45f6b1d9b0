"""The tree of parts in one column of whole numbers.

Each part is `code + 8 * rest`, before its contents. A node, a thing and a call have as `rest` the zigzag distance from the node before
them in the column, a scope the number of its path; groups are numbered as they come. A thing, group and scope are followed by the number of
their parts, a call by that of the parts beside its bodies.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from widgets.render.page_data.steps import STEP, Steps
from widgets.render.page_data.types import GroupRecord
from widgets.scene.lenses import passed_on
from widgets.scene.tree import FOLDS, Call, Group, Part, Scope, Thing

if TYPE_CHECKING:
    from graphcore.graph import Node

NODE: Final = 0
THING: Final = 1
CALL: Final = 2
GROUP: Final = 3
SCOPE: Final = 4


def write_tree(
    parts: list[Part],
    number: Mapping[str, int],
    scope_number: Callable[[str], int],
    part_number: Callable[[Scope], int],
    on_call: Callable[[Call], None],
) -> Steps[tuple[list[int], list[GroupRecord]]]:
    """Write the column of some parts, and their groups, in steps.

    Args:
        parts: the parts of a root.
        number: the numbers of nodes by name.
        scope_number: gives the number of a path.
        part_number: gives the number of a scope in the tree.
        on_call: is given each call, in the order of the column.
    """
    column: list[int] = []
    groups: list[GroupRecord] = []
    last = pause = 0
    stack: list[Part] = parts[::-1]
    while stack:
        if len(column) >= pause:
            pause = len(column) + STEP
            yield
        part = stack.pop()
        if not isinstance(part, FOLDS):
            place = number[part.name]
            step = place - last
            last = place
            column.append((step << 4) if step >= 0 else ((-step) << 4) - 8)
            continue
        if isinstance(part, Scope):
            column.append(SCOPE + 8 * part_number(part))
        elif isinstance(part, Group):
            column.append(GROUP)
            groups.append(_record(part, number, scope_number))
        else:
            place = number[part.node.name]
            step = place - last
            last = place
            column.append((THING if isinstance(part, Thing) else CALL) + ((step << 4) if step >= 0 else ((-step) << 4) - 8))
        inner = _beside(part, on_call) if isinstance(part, Call) else part.parts()
        column.append(len(inner))
        stack.extend(reversed(inner))
    return column, groups


def _beside(call: Call, on_call: Callable[[Call], None]) -> list[Part]:
    """The parts of a call beside its bodies."""
    on_call(call)
    return [*(call.scope.parts() if call.scope is not None else []), *call.helpers]


def _record(group: Group, number: Mapping[str, int], scope_number: Callable[[str], int]) -> GroupRecord:
    keys: list[tuple[int, int]] = []
    first: Part = group
    while isinstance(first, Group):
        keys.append((scope_number(first.path), first.depth))
        first = first.items[0]
    is_scope = isinstance(first, Scope)
    name = _name(first)
    shape_class, text = passed_on(group)
    return GroupRecord(
        keys=keys,
        first=scope_number(name) if is_scope else number[name],
        first_is_scope=is_scope,
        label=group.label,
        differences=group.differences,
        instances=len(group.instances),
        shape_class=shape_class,
        passed_on=text,
    )


def _name(part: Node | Thing | Call | Scope) -> str:
    return part.key if isinstance(part, Scope | Thing | Call) else part.name
