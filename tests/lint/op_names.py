"""Outside `graphcore.opset` nothing is decided by the name of an op: traits say what an op is like."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

import graphcore as gc
from graphcore import plumbing
from tests.lint.files import PACKAGES, place, python_files

FILES: Final = [path for path in python_files(*PACKAGES) if "opset" not in path.parts and path.name != "plumbing.py"]
PLUMBING: Final = {
    name
    for value in vars(plumbing).values()
    if isinstance(value, str | frozenset)
    for name in ({value} if isinstance(value, str) else value)
    if name in gc.op_registry
}
"""Ops that are control flow or plumbing themselves."""
KEPT: Final = {
    "BroadcastGradientArgs": "gradient bodies write it around every broadcasting op; known shapes make it go away",
    "DynamicStitch": "gradient bodies of reductions put shapes together with it; known shapes make it go away",
    "ScatterNd": "gradient bodies fill with it, which it refuses for tensors without elements",
    "Shape": "gradient bodies pass the shape of a tensor to Reshape, and the simplifier asks whose shape that is",
    "ZerosLike": "a gradient of zeros is recognised as the passes write it",
    "Fill": "a gradient of zeros is recognised as the passes write it",
    "Slice": "its gradient is written for the size that was asked for, and gets the actual one",
    "StopGradient": "explanations of gradients say that it was put there to cut them off; TensorFlow folds it whatever its shape",
    "IdentityN": "TensorFlow folds it whatever its shape; handles of variables go through it",
    "Cast": "TensorFlow folds it whatever its shape",
    "Less": "TensorFlow folds it whatever its shape",
    "StackPushV2": "gradients through stacks are refused, which pairs a push with its pop",
    "StackPopV2": "gradients through stacks are refused, which pairs a push with its pop",
    "TensorArrayGradV3": "backward passes call it once for each array and source",
    "VarHandleOp": "an uninitialised variable takes the type of the last handle that looks it up",
}
"""The other ops that some code asks for by name, with the reason."""
MOST_KEPT: Final = 15
CONTAINERS: Final = {"frozenset", "set", "dict", "list", "tuple", "startswith", "endswith", "fromkeys", "get", "count", "index"}


def decisions(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and name of each op that is named other than to make a node of it."""
    constants = [(node, node.value) for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    named = [(constant, name) for constant, name in constants if name in gc.op_registry]
    parents = {child: parent for parent in ast.walk(tree) for child in ast.iter_child_nodes(parent)} if named else {}
    for constant, name in named:
        child: ast.AST = constant
        parent = parents[child]
        while isinstance(parent, ast.IfExp | ast.BoolOp | ast.keyword | ast.Starred | ast.JoinedStr) and not (
            isinstance(parent, ast.IfExp) and parent.test is child
        ):
            child, parent = parent, parents[parent]
        if not _makes_a_node(parent, parents):
            yield constant.lineno, name


@cache
def decisions_in(path: Path) -> list[tuple[int, str]]:
    """The decisions in a file."""
    return list(decisions(ast.parse(path.read_text(encoding="utf-8"))))


def _makes_a_node(parent: ast.AST, parents: dict[ast.AST, ast.AST]) -> bool:
    """True where a name is handed to a call, a default, a result, or a variable of a function."""
    if isinstance(parent, ast.Call):
        called = parent.func
        return (called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")) not in CONTAINERS
    if isinstance(parent, ast.Tuple):
        return isinstance(parents[parent], ast.Return)
    if isinstance(parent, ast.Assign | ast.AnnAssign):
        return not isinstance(parents[parent], ast.Module)
    if isinstance(parent, ast.List):  # the names that a package exports
        outer = parents[parent]
        return isinstance(outer, ast.Assign) and ast.unparse(outer.targets[0]) == "__all__"
    return isinstance(parent, ast.arguments | ast.Expr | ast.Return)


def by_parts_of_names(text: str) -> Iterator[int]:
    """Lines that ask how the name of an op begins or ends, other than with `_`."""
    for node in ast.walk(ast.parse(text)) if ".op." in text else ():
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in {"startswith", "endswith"}:
            asked = node.func.value
            if isinstance(asked, ast.Attribute) and asked.attr == "op" and [ast.unparse(each) for each in node.args] != ["'_'"]:
                yield node.lineno


def no_decision_is_made_by_the_name_of_an_op() -> Iterator[str]:
    """A trait in the block of an op says what the op is like; others ask for that."""
    for path in FILES:
        for line, name in decisions_in(path):
            if name not in PLUMBING | KEPT.keys():
                yield f"{place(path, line)}: asks for {name} by name; declare a trait in the block of the op and ask for that"
        for line in by_parts_of_names(path.read_text(encoding="utf-8")):
            yield f"{place(path, line)}: asks for a part of an op's name; declare a trait"


def few_other_ops_are_asked_for_by_name_and_each_is() -> Iterator[str]:
    """KEPT holds no op in vain, and few."""
    asked = {name for path in FILES for _, name in decisions_in(path)}
    yield from (f"{place(Path(__file__))}: KEPT has {name}, for which no code asks" for name in sorted(set(KEPT) - asked))
    if len(KEPT) > MOST_KEPT:
        yield f"{place(Path(__file__))}: KEPT has {len(KEPT)} ops, more than {MOST_KEPT}"


RULES = (no_decision_is_made_by_the_name_of_an_op, few_other_ops_are_asked_for_by_name_and_each_is)
