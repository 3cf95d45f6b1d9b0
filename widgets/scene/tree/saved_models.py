"""SavedModels in pictures: groups of signatures, of variables, and of what saves and restores."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from graphcore.definitions.wire.saved_model import INIT_SIGNATURE
from graphcore.plumbing import ARG, NO_OP, RETVAL
from widgets.scene.calls import calls_functions
from widgets.scene.structure.items import Items, make_items
from widgets.scene.structure.serving import is_parameter, is_plumbing, is_variable
from widgets.scene.tree.folds import Fold, Group, Thing, nodes_of, structured
from widgets.scene.words import counted

if TYPE_CHECKING:
    from graphcore.graph import Graph, Node
    from widgets.scene.tree.scopes import Part

SAVING: Final = "saving and restoring"
_DEPTH: Final = 50
"""The depth of these groups: deeper than that of groups by dataflow, so that their keys differ."""
_DEFAULT: Final = "serving_default"


def signature_label(name: str) -> str:
    """The label of the group of a signature."""
    return f"signature {name}"


def with_signatures(parts: list[Part], graph: Graph) -> list[Part]:
    """The parts of a SavedModel's graph, with signatures, variables and the saver in groups.

    A signature is a call of a function and its inputs. In files of TensorFlow 1 it is the graph itself, and has no group.
    """
    items = make_items([nodes_of([part]) for part in parts], [False] * len(parts))
    owner = {node.name: place for place, nodes in enumerate(items.members) for node in nodes}
    after = _after(items)
    saving = _saving(items, after, owner, graph)
    if len(saving) == len(parts):
        return parts
    signatures = _signatures(items, owner, graph)
    taken = saving.union(*signatures.values())
    variables = _variables(items, after, taken) if signatures else []
    taken.update(variables)
    rest = [part for place, part in enumerate(parts) if place not in taken]
    groups = [_group(signature_label(name), [parts[place] for place in places]) for name, places in signatures.items()]
    if variables:
        groups.insert(0, _group(_variables_label(nodes_of([parts[place] for place in variables])), [parts[place] for place in variables]))
    if saving:
        groups.append(_group(SAVING, [parts[place] for place in sorted(saving)]))
    return [*structured("", rest, 0), *groups] if signatures else structured("", [*rest, *groups], 0)


def within_function(path: str, parts: list[Part]) -> list[Part]:
    """The parts of a function's body or a scope in one, with what only passes values on at its edges.

    The handles of variables that only calls take are one group; a handle that one part takes belongs to that part. Results that wait for the
    side effects of the body, as TensorFlow 2 makes them, belong to their return.
    """
    handles = {place for place, part in enumerate(parts) if not isinstance(part, Fold) and _is_handle(part)}
    waits = [place for place, part in enumerate(parts) if not isinstance(part, Fold) and part.op == NO_OP]
    if not handles and not waits:
        return parts
    items = make_items([nodes_of([part]) for part in parts], [False] * len(parts))
    after = _after(items)
    kept: dict[int, Part] = dict(enumerate(parts))
    passed = sorted(place for place in handles if after[place] and all(calls_functions(items.members[to][0]) for to in after[place]))
    if len(passed) > 1:
        inside = [kept.pop(place) for place in passed]
        kept[passed[0]] = Group.of(path, _DEPTH, _variables_label(nodes_of(inside)), inside)
    for place in sorted(handles.difference(passed)):
        if len(after[place]) == 1:
            (host,) = after[place]
            kept[host] = _with_helper(kept[host], kept.pop(place))
    for place in waits:
        ends = _results_behind(items, after, place)
        if ends and all(end in kept for end in ends):  # the results may wait for others too, and be theirs
            returns = [end for end in ends if items.members[end][0].op in RETVAL]
            inside = [kept.pop(each) for each in ends]
            main = returns[-1]
            if len(returns) > 1:
                kept[main] = Group.of(path, _DEPTH, f"{len(returns)} results", inside)
            else:
                kept[main] = _with_helper(inside.pop(), *inside)
    return [kept[place] for place in sorted(kept)]


def _results_behind(items: Items, after: Sequence[set[int]], wait: int) -> list[int]:
    """A node that waits for side effects, the identities that wait for it, and their returns.

    [] for any other node.
    """
    identities = sorted(after[wait])
    returns = sorted({to for identity in identities for to in after[identity]})
    is_end = all(is_plumbing(items.members[each][0]) and len(items.members[each]) == 1 for each in identities)
    if not returns or not is_end or any(items.members[each][0].op not in RETVAL for each in returns):
        return []
    return [wait, *identities, *returns]


def _with_helper(main: Part, *helpers: Part) -> Part:
    if not isinstance(main, Fold):
        return Thing(main, None, helpers)
    main.take_in(helpers)
    return main


def served(graph: Graph, parts: Iterable[Part]) -> Group | None:
    """The group of the signature that is open first: `serving_default`, else the first by name.

    None if no signature has a group.
    """
    groups = {part.label: part for part in parts if isinstance(part, Group)}
    names = [_DEFAULT, *graph.signatures]
    return next((groups[label] for label in map(signature_label, names) if label in groups), None)


def passes_on(part: Part) -> bool:
    """True for arguments, returns, and what passes a value on."""
    nodes = nodes_of([part])
    return all(node.op in ARG or node.op in RETVAL or node.op == NO_OP or is_plumbing(node) for node in nodes)


def _after(items: Items) -> list[set[int]]:
    """The items that take tensors of each item or wait for it."""
    after = [set(targets) for targets in items.outputs]
    for item, sources in enumerate(items.awaited):
        for source in sources:
            after[source].add(item)
    return after


def _saving(items: Items, after: Sequence[set[int]], owner: Mapping[str, int], graph: Graph) -> set[int]:
    """The items that only save and restore: the saver's nodes, and what serves nothing else."""
    kept = {owner[name] for names in ends_of_signatures(graph).values() for name in names if name in owner}
    found = {owner[name] for name in graph.saver_nodes if name in owner} - kept
    pending = [source for item in found for source in items.before(item)]
    while pending:
        item = pending.pop()
        if item not in found and item not in kept and after[item] <= found:
            found.add(item)
            pending.extend(items.before(item))
    return {item for item in found if after[item] <= found}


def _signatures(items: Items, owner: Mapping[str, int], graph: Graph) -> dict[str, list[int]]:
    """The items of each signature whose results are those of calls: its inputs and these calls."""
    found: dict[str, list[int]] = {}
    taken: set[int] = set()
    for name, ends in ends_of_signatures(graph).items():
        places = {owner[end] for end in ends if end in owner}
        calls = [place for place in places if calls_functions(items.members[place][0])]
        if calls and all(place in calls or not items.before(place) for place in places) and not places & taken:
            found[name] = sorted(places)
            taken |= places
    return found


def ends_of_signatures(graph: Graph) -> dict[str, set[str]]:
    """The names of the nodes of the inputs and outputs of each signature."""
    return {
        name: {info.name.partition(":")[0] for infos in (signature.inputs, signature.outputs) for info in infos.values()}
        for name, signature in graph.signatures.items()
        if name != INIT_SIGNATURE
    }


def _variables(items: Items, after: Sequence[set[int]], taken: set[int]) -> list[int]:
    """The items of variables and constants that only signatures and the saver take."""
    found: dict[int, list[Node]] = {}
    for item in range(len(items)):
        sources = [node for node in items.members[item] if not node.inputs]
        if item not in taken and after[item] and after[item] <= taken and sources and all(map(is_parameter, sources)):
            found[item] = sources
    return list(found) if sum(map(len, found.values())) > 1 else []


def _group(label: str, items: Sequence[Part]) -> Group:
    return Group.of("", _DEPTH, label, items, plain=False)


def _variables_label(nodes: Iterable[Node]) -> str:
    """The label of a group of variables or handles of them, and constants."""
    sources = [node for node in nodes if not node.inputs and (is_variable(node) or _is_handle(node))]
    return counted(len(sources), "variable") if sources else "constants"


def _is_handle(node: Node) -> bool:
    """True for an argument that is the handle of a resource."""
    return node.op in ARG and node.output_types[0].text == "resource"
