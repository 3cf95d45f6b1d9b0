"""Compares two states."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import zip_longest
from typing import Any, Final

from graphcore.attrs import Func, TensorValue
from graphcore.definitions import FunctionDef, NodeDef
from graphcore.definitions.types import without_docs
from graphcore.definitions.value_text import summarize_attr_value
from graphcore.difference.across import correspondence
from graphcore.difference.changes import Change, NodeChange
from graphcore.difference.diff import FunctionsDiff, GraphDiff
from graphcore.difference.following import Following
from graphcore.difference.kinds import sizes_of, vocabulary
from graphcore.difference.matching import COLOCATION, match_nodes
from graphcore.difference.regrouping import Correspondence
from graphcore.difference.settings import setting_changes
from graphcore.difference.state import GraphState, NodeState, state_of_function
from graphcore.difference.wiring import CONTROL, input_text, parse_input
from graphcore.dtypes import DType
from graphcore.inference import ShapeHandle
from graphcore.support.gc_pause import paused_collector

MOST_LETTERS: Final = 60
"""The letters of a value in a change; longer ones are cut off."""
_FOLLOWING: Final = frozenset({"type", "shape", "error"})
_COLOCATED: Final = b"loc:@"


def compare(a: GraphState, b: GraphState) -> GraphDiff:
    """The difference from state `a` to state `b`."""
    with paused_collector():
        return _compare(a, b)


def _compare(a: GraphState, b: GraphState) -> GraphDiff:
    # Across frameworks names mean nothing by themselves: `relu_1` may be another one there.
    pairs = match_nodes(a, b) if vocabulary(a) == vocabulary(b) else {}
    across = correspondence(a, b, pairs)
    functions = _compare_functions(a, b)
    names = {old: new for old, new in pairs.items() if old != new}
    following = None if across is None else Following(a, b, pairs, across)
    is_translated = across is not None and across.is_between_frameworks
    changed = {} if across is None else dict(_settings_of_groups(a, b, pairs, across))
    for old, new in pairs.items():
        before, after = a.nodes[old], b.nodes[new]
        if before is after:
            continue
        if is_translated and following is not None:
            changes = [*_changes_of_values(before, after), *following.settings(old, new), *following.rewired(old, new)]
        else:
            changes = list(_changes(before, after, names, functions.renamed))
            if following is not None:
                changes = list(following.own(old, new, changes))
        if changes:
            settings = changed[new].changes if new in changed else ()
            changed[new] = NodeChange(new, old, (*settings, *changes))
    _mark_following(changed, b)
    kept = set(pairs.values())
    return GraphDiff(
        before=a,
        after=b,
        pairs=pairs,
        added=tuple([name for name in b.nodes if name not in kept]),
        removed=tuple([name for name in a.nodes if name not in pairs]),
        changed={name: changed[name] for name in b.nodes if name in changed},
        renamed=names,
        functions=functions,
        correspondence=across,
    )


def _settings_of_groups(a: GraphState, b: GraphState, pairs: Mapping[str, str], across: Correspondence) -> Iterator[tuple[str, NodeChange]]:
    """The changed settings of layers that became others, by the last node of each.

    In one framework the attrs of matched nodes say the same already.
    """
    for group in across.groups:
        is_said = not across.is_between_frameworks and any(pairs.get(old) in group.after for old in group.before)
        if group.way == "became" and not is_said:
            changes = tuple(setting_changes(a, group.before, b, group.after))
            if changes:
                yield group.after[-1], NodeChange(group.after[-1], group.before[-1], changes)


def _mark_following(changed: dict[str, NodeChange], after: GraphState) -> None:
    """Mark nodes in which only types and shapes have changed, because an input's have."""
    for name, change in changed.items():
        if not all(part.kind in _FOLLOWING for part in change.changes):
            continue
        producers = [parse_input(text)[0] for text in after.nodes[name].node_def.input]
        if any(producer in changed for producer in producers):
            changed[name] = NodeChange(name, change.before, change.changes, follows=True)


def _changes(a: NodeState, b: NodeState, names: Mapping[str, str], functions: Mapping[str, str]) -> Iterator[Change]:
    first, second = a.node_def, b.node_def
    if first is not second:
        if first.op != second.op and functions.get(first.op) != second.op:
            yield Change("op", "", first.op, second.op)
        if first.attr is not second.attr:
            yield from _attr_changes(a, b, names, functions)
        if first.input != second.input or (names and first.input):
            yield from _input_changes(first, second, names)
        if first.device != second.device:
            yield Change("device", "", first.device, second.device)
    if a.device != b.device and a.device and b.device:
        yield Change("placed", "", a.device, b.device)
    if a.output_types != b.output_types and a.output_types and b.output_types:
        yield from _type_changes(a, b)
    elif a.shapes is not b.shapes:
        yield from _shape_changes(a.shapes, b.shapes)
    if a.error != b.error:
        yield Change("error", "", a.error, b.error)


def _changes_of_values(a: NodeState, b: NodeState) -> Iterator[Change]:
    """The changes of types, and of sizes in whatever layout, between nodes of two frameworks.

    Their ops, attrs and inputs have other names, so that a comparison of these would say nothing.
    """
    if a.output_types and b.output_types and a.output_types[0] != b.output_types[0]:
        yield Change("type", "0", _type_text(a.output_types[0]), _type_text(b.output_types[0]))
    first, second = sizes_of(a), sizes_of(b)
    if first is not None and second is not None and sorted(first) != sorted(second):
        yield Change("shape", "0", str(a.shapes[0]), str(b.shapes[0]))


def _type_changes(a: NodeState, b: NodeState) -> Iterator[Change]:
    for index, (old, new) in enumerate(zip_longest(a.output_types, b.output_types)):
        if old != new:
            yield Change("type", str(index), _type_text(old), _type_text(new))


def _attr_changes(a: NodeState, b: NodeState, names: Mapping[str, str], functions: Mapping[str, str]) -> Iterator[Change]:
    first: Mapping[str, Any] = a.attr
    second: Mapping[str, Any] = b.attr
    for name in dict.fromkeys([*first, *second]):
        old = _value(a, name)
        new = _value(b, name)
        if old is new or _equal(old, new):
            continue
        if name == COLOCATION and names and _renamed_classes(old, names) == new:
            continue
        if functions and isinstance(old, Func) and isinstance(new, Func) and functions.get(old.name) == new.name and old.attr == new.attr:
            continue
        before, after = _texts(old, new)
        if before == after:
            before, after = (f"{before} (before)", f"{after} (other values)")
        yield Change("attr", name, before, after)


def _equal(old: Any, new: Any) -> bool:
    return type(old) is type(new) and bool(old == new)


def _value(node: NodeState, name: str) -> Any:
    """The value of an attr, its default if the definition leaves that out."""
    value = node.attr.get(name)
    if value is None and node.registration is not None:
        attr = node.registration.op_def.find_attr(name)
        return None if attr is None else attr.default_value
    return value


def _renamed_classes(value: Any, names: Mapping[str, str]) -> Any:
    if not isinstance(value, tuple):
        return value
    return tuple([_COLOCATED + names.get(name, name).encode() if (name := _colocated(item)) else item for item in value])


def _colocated(item: object) -> str:
    """The node that an entry of `_class` names, "" if it names none."""
    return item[len(_COLOCATED) :].decode("utf-8", "replace") if isinstance(item, bytes) and item.startswith(_COLOCATED) else ""


def _input_changes(first: NodeDef, second: NodeDef, names: Mapping[str, str]) -> Iterator[Change]:
    old_data, old_controls = _inputs(first, names)
    new_data, new_controls = _inputs(second, {})
    if old_data != new_data:
        for slot, (old, new) in enumerate(zip_longest(old_data, new_data, fillvalue="")):
            if old != new:
                yield Change("input", str(slot), old, new)
    if old_controls != new_controls:
        for name in old_controls:
            if name not in new_controls:
                yield Change("control", "", name, "")
        for name in new_controls:
            if name not in old_controls:
                yield Change("control", "", "", name)


def _inputs(node_def: NodeDef, names: Mapping[str, str]) -> tuple[list[str], dict[str, None]]:
    """Data inputs and control inputs, under the later names."""
    data = []
    controls: dict[str, None] = {}
    for text in node_def.input:
        name, output = parse_input(text)
        name = names.get(name, name)
        if output == CONTROL:
            controls[name] = None
        else:
            data.append(input_text(name, output))
    return data, controls


def _shape_changes(first: tuple[ShapeHandle, ...], second: tuple[ShapeHandle, ...]) -> Iterator[Change]:
    for index, (old, new) in enumerate(zip(first, second, strict=False)):
        if old is not new and _sizes(old) != _sizes(new):
            yield Change("shape", str(index), str(old), str(new))


def _sizes(shape: ShapeHandle) -> list[int] | None:
    return None if shape.dims is None else [dim.value for dim in shape.dims]


def _type_text(dtype: DType | None) -> str:
    return "" if dtype is None else dtype.text


def _texts(old: Any, new: Any) -> tuple[str, str]:
    """Two values of an attr in words; type and shape of tensors only if those differ."""
    before, after = value_text(old), value_text(new)
    if isinstance(old, TensorValue) and isinstance(new, TensorValue):
        (head, colon, first), (other, _, second) = before.partition(": "), after.partition(": ")
        if colon and head == other:
            return first, second
    return before, after


def value_text(value: Any) -> str:
    """The value of an attr in few letters."""
    if value is None:
        return ""
    if isinstance(value, DType):
        return value.text
    if isinstance(value, bool):
        return str(value).lower()
    text = summarize_attr_value(value)
    if isinstance(value, TensorValue):
        text = text.removeprefix("Tensor<").removesuffix(">").replace("type: ", "").replace(" shape: ", " ").replace(" values: ", ": ")
    text = " ".join(text.split())
    return text if len(text) <= MOST_LETTERS else text[: MOST_LETTERS - 1] + "…"


# ---- functions -----------------------------------------------------------------------------------------------------------


def _compare_functions(a: GraphState, b: GraphState) -> FunctionsDiff:
    gone = [name for name in a.functions if name not in b.functions]
    new = {name: None for name in b.functions if name not in a.functions}
    renamed = {}
    for old in gone:
        body = _anonymous(a.functions[old])
        same = next((name for name in new if _anonymous(b.functions[name]) == body), None)
        if same is not None:
            renamed[old] = same
            del new[same]
    changed = {}
    for name, before in a.functions.items():
        after = b.functions.get(name)
        if after is not None and before is not after and before != after:
            changed[name] = compare_functions(before, after)
    both = [name for name in {**a.gradients, **b.gradients} if a.gradients.get(name) != b.gradients.get(name)]
    return FunctionsDiff(
        added=tuple(new),
        removed=tuple([name for name in gone if name not in renamed]),
        changed=changed,
        renamed=renamed,
        gradients={name: (a.gradients.get(name, ""), b.gradients.get(name, "")) for name in both},
    )


def _anonymous(function: FunctionDef) -> object:
    """A function without its name, for comparison."""
    signature = without_docs(function.signature)
    return (
        *(signature.input_arg, signature.output_arg, signature.attr),
        *(function.node_def, function.ret, function.control_ret),
    )


def compare_functions(a: FunctionDef, b: FunctionDef) -> GraphDiff:
    """The difference of two functions as they are defined."""
    return compare(state_of_function(a), state_of_function(b))
