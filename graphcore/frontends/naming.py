"""Names of nodes in lowered graphs: scopes from modules and paths, and short last parts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from graphcore.frontends.foreign_ops import is_task
from graphcore.frontends.gathering import gather_constants
from graphcore.frontends.words import valid_part

if TYPE_CHECKING:
    from graphcore.frontends.foreign import ForeignNode, ModuleCall

WEIGHTS: Final = frozenset({"parameter", "buffer", "constant"})
"""The kinds of nodes that hold a tensor of the source."""
_NUMBER: Final = re.compile(r"\d+", re.ASCII)
_STATE: Final = re.compile(r"^(L__self___|p_|b_|c_|self_)")
_FIXED: Final = frozenset({"input", "output", *WEIGHTS})
MAX_DEPTH: Final = 40
"""The most scopes within each other; what is further inside lies in the innermost of these."""


class Scopes:
    """The scopes of the nodes of one graph.

    Attributes:
        classes: the classes of modules by the paths of their scopes.
        modules: the paths of modules by the paths of their scopes.
    """

    def __init__(self, prefix: str = "") -> None:
        self._prefix = prefix
        self.classes: dict[str, str] = {}
        self.modules: dict[str, str] = {}
        self._of_modules: dict[tuple[ModuleCall, ...], str] = {}

    def path(self, modules: tuple[ModuleCall, ...]) -> str:
        """The path of the scope that stands for the innermost of some modules; "" for the root."""
        cached = self._of_modules.get(modules)
        if cached is not None:
            return cached
        parent = self.path(modules[:-1]) if len(modules) > 1 else ""
        module = modules[-1]
        part = _relative(module.path, modules[-2].path if len(modules) > 1 else "")
        if not part or parent.count("/") >= MAX_DEPTH:
            path = parent
        else:
            path = f"{parent}/{valid_part(part)}" if parent else valid_part(part)
            if module.type_name:
                self.classes.setdefault(self._prefix + path, module.type_name)
            self.modules.setdefault(self._prefix + path, module.path)
        self._of_modules[modules] = path
        return path


def _relative(path: str, parent: str) -> str:
    """The part of a module's path that its scope is named by.

    It is `self_attn` for `model.layers.0.self_attn` in `model.layers.0`. A number alone keeps the name of what it counts: `layers.0`.
    """
    part = path[len(parent) + 1 :] if parent and path.startswith(f"{parent}.") else path
    if _NUMBER.fullmatch(part):
        above = parent.rpartition(".")[2]
        return f"{above}.{part}" if above and not _NUMBER.fullmatch(above) else f"layer.{part}"
    return part.strip(".")


def split_name(name: str) -> tuple[str, str]:
    """The scope and the last part of a node whose name is a path: `/layer1/conv1/Conv`."""
    if "/" not in name:
        return "", valid_part(name)
    parts = [valid_part(part) for part in name.split("/") if part.strip()]
    if not parts:
        return "", "node"
    return "/".join(parts[:-1][:MAX_DEPTH]), parts[-1]


def node_names(nodes: Sequence[ForeignNode], scopes: Scopes, prefix: str) -> list[str]:
    """The names of nodes: valid, unique, with the scopes of their modules or of their own paths.

    A tensor that is used in one scope only lies in it, whatever its name.
    """
    named = any(node.modules for node in nodes)
    placed = [(scopes.path(node.modules), _leaf(node)) if node.modules else split_name(_plain(node.name, named)) for node in nodes]
    _place_helpers(nodes, placed)
    for old, new in gather_constants(nodes, placed).items():
        for table in (scopes.classes, scopes.modules):
            table.update({new + path[len(old) :]: word for path, word in table.items() if f"{path}/".startswith(f"{old}/")})
    _place_weights(nodes, placed)
    taken: set[str] = set()
    numbers: dict[str, int] = {}
    names: list[str] = []
    for scope, leaf in placed:
        base = name = f"{prefix}{scope}/{leaf}" if scope else prefix + leaf
        while name in taken:
            number = numbers[base] = numbers.get(base, 0) + 1
            name = f"{base}_{number}"
        taken.add(name)
        names.append(name)
    return names


def _plain(name: str, by_exporter: bool) -> str:
    """A name without the prefix that PyTorch's exporter gives to all."""
    return (name.removeprefix("node_") or name) if by_exporter else name


def _leaf(node: ForeignNode) -> str:
    name = _plain(node.name.rpartition("/")[2] or node.name, by_exporter=True)
    if node.kind in WEIGHTS:
        return valid_part(_STATE.sub("", name).rpartition(".")[2] or name)
    return valid_part(name)


def _place_helpers(nodes: Sequence[ForeignNode], placed: list[tuple[str, str]]) -> None:
    """Move nodes that an exporter adds into the innermost scope of all that they are connected with.

    Neighbours without a scope move together.
    """
    numbers = {node.name: number for number, node in enumerate(nodes)}
    helpers = [not (placed[number][0] or node.modules or node.kind in _FIXED or is_task(node.op)) for number, node in enumerate(nodes)]
    if not any(helpers) or not any(scope for scope, _ in placed):
        return
    group = list(range(len(nodes)))

    def head(number: int) -> int:
        while group[number] != number:
            group[number] = number = group[group[number]]
        return number

    edges = [
        (source, number)
        for number, node in enumerate(nodes)
        for ref in node.inputs
        if ref is not None and (source := numbers.get(ref[0])) is not None and nodes[source].kind not in WEIGHTS
    ]
    for source, target in edges:
        if helpers[source] and helpers[target]:
            group[head(source)] = head(target)
    around: dict[int, list[str]] = {}
    for one, other in edges:
        for own, neighbour in ((one, other), (other, one)):
            if helpers[own] and not helpers[neighbour]:
                place, path = head(own), placed[neighbour][0]
                around[place] = _shared(around[place], path) if place in around else path.split("/")
    for number, is_helper in enumerate(helpers):
        if is_helper:
            placed[number] = "/".join(around.get(head(number), ())), placed[number][1]


def _place_weights(nodes: Sequence[ForeignNode], placed: list[tuple[str, str]]) -> None:
    """Move tensors whose scope does not hold all nodes that take them into one that does.

    Converters keep one of equal tensors, under the name of any of the nodes that take it.
    """
    waiting = {node.name: number for number, node in enumerate(nodes) if node.kind in WEIGHTS and not node.modules}
    if not waiting:
        return
    used: dict[int, list[str]] = {}
    for number, node in enumerate(nodes):
        for ref in node.inputs:
            place = None if ref is None else waiting.get(ref[0])
            if place is not None:
                used[place] = _shared(used[place], placed[number][0]) if place in used else placed[number][0].split("/")
    for place, parts in used.items():
        own, leaf = placed[place]
        scope = "/".join(parts)
        if not own and scope:
            placed[place] = scope, _short(nodes[place].name)
        elif own and not f"{scope}/".startswith(f"{own}/"):
            placed[place] = scope, leaf


def _shared(parts: list[str], path: str) -> list[str]:
    shared = []
    for one, other in zip(parts, path.split("/"), strict=False):
        if one != other:
            break
        shared.append(one)
    return shared


def _short(name: str) -> str:
    """The last part of the name of a tensor: `weight` of `layer1.0.conv1.weight`."""
    tail = name.rpartition(".")[2]
    return valid_part(tail if re.search(r"[A-Za-z]", tail) else name)
