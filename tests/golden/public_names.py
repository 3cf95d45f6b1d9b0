"""The names that users can type, with the parameters of functions: tests/golden/public_names.txt.

`python -m tests.golden.public_names` writes the file anew when a name was added or removed on purpose.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Final

import graphcore as gc
import kernelext
import widgets

GOLDEN: Final = Path(__file__).with_suffix(".txt")
ALIAS: Final = "graphcore.compat"
"""`compat.v1` is `graphcore` itself."""


def public_names() -> Iterator[str]:
    """One line for each public name of `graphcore` and its namespaces, of `widgets` and `kernelext`."""
    for module in (gc, widgets, kernelext):
        yield from _names(module, module.__name__, set())


def text() -> str:
    """The contents of the file."""
    return "".join(f"{line}\n" for line in public_names())


def _names(namespace: ModuleType, path: str, seen: set[int]) -> Iterator[str]:
    """The names of a namespace, and of those within it that no path has led to yet."""
    seen.add(id(namespace))
    for name in sorted(getattr(namespace, "__all__", None) or dir(namespace)):
        value = getattr(namespace, name)
        if name.startswith("_") or _is_internal(namespace, value):
            continue
        yield f"{path}.{name}{_parameters(value)}"
        if isinstance(value, ModuleType) and id(value) not in seen and f"{path}.{name}" != ALIAS:
            yield from _names(value, f"{path}.{name}", seen)


def _is_internal(namespace: ModuleType, value: object) -> bool:
    """True for what a file without a list of its names imports for its own use."""
    if hasattr(namespace, "__all__") or not getattr(namespace, "__file__", None) or namespace is gc:
        return False
    return isinstance(value, ModuleType) or getattr(value, "__module__", namespace.__name__) != namespace.__name__


def _parameters(value: object) -> str:
    """The names of the parameters of a function, or of a class's `__init__`: `(x, axis, *, name)`."""
    function = value.__init__ if isinstance(value, type) else value  # type: ignore[misc]  # its own or an inherited one
    if not inspect.isfunction(function):
        return ""
    parameters = list(inspect.signature(function).parameters.values())[isinstance(value, type) :]
    marks: dict[object, str] = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    names = [marks.get(each.kind, "") + each.name for each in parameters]
    by_name = [index for index, each in enumerate(parameters) if each.kind is inspect.Parameter.KEYWORD_ONLY]
    if by_name and not any(each.kind is inspect.Parameter.VAR_POSITIONAL for each in parameters):
        names.insert(by_name[0], "*")
    return f"({', '.join(names)})"


if __name__ == "__main__":
    GOLDEN.write_text(text(), encoding="utf-8")
