"""Parts of TorchScript's syntax: targets, types, checks, results of branches."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from graphcore.frontends.torch_reader.script_building import Building, Ref


@dataclass(frozen=True, slots=True)
class Result:
    """A result of a branch, by its number."""

    number: int


def placed(value: Any, building: Building, node: str) -> Any:
    """A value in which numbers of results are the outputs of a node."""
    if isinstance(value, tuple):
        return tuple([placed(item, building, node) for item in value])
    return Ref(building, node, value.number) if isinstance(value, Result) else value


def type_of(parameter: ast.arg) -> str:
    """The type of a parameter as a text, "" for a tensor."""
    return ast.unparse(parameter.annotation)[:60] if parameter.annotation is not None and not _is_tensor(parameter.annotation) else ""


def _is_tensor(annotation: ast.expr) -> bool:
    return isinstance(annotation, ast.Name) and annotation.id == "Tensor"


def target_names(target: ast.expr) -> tuple[str, ...]:
    """The names of the variables that an assignment sets, "" for what is no variable."""
    if isinstance(target, ast.Name):
        return (target.id,)
    if isinstance(target, ast.Tuple | ast.List):
        return tuple([part.id if isinstance(part, ast.Name) else "" for part in target.elts])
    return ("",)


def assigned_names(body: Sequence[ast.stmt]) -> list[str]:
    """The names of the variables that statements assign."""
    names: dict[str, None] = {}
    for statement in body:
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                names[node.id] = None
    return list(names)


def only_raises(body: Sequence[ast.stmt]) -> bool:
    """True iff statements do nothing but raise an error."""
    last = body[-1] if body else None
    if not (isinstance(last, ast.Expr) and isinstance(last.value, ast.Call) and isinstance(last.value.func, ast.Attribute)):
        return False
    is_raise = last.value.func.attr == "RaiseException"
    return is_raise and all(isinstance(statement, ast.Assign | ast.Expr) for statement in body)
