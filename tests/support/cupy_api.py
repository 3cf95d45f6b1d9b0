"""CuPy's functions, ufuncs and array methods as a list, for checks on machines without a GPU.

`python -m tests.support.cupy_api` writes the list from an installed CuPy; importing that needs no GPU.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from inspect import Parameter, Signature
from operator import attrgetter
from pathlib import Path
from typing import Any, Final

LIST: Final = Path(__file__).with_name("cupy_api.txt")
_MODULES: Final = ("", "linalg.", "fft.", "lib.stride_tricks.")
_CUDA: Final = ("Device", "Event", "Graph", "MemoryPool", "Stream")
_CUDA_FUNCTIONS: Final = (
    "fuse",
    "get_default_pinned_memory_pool",
    "cuda.alloc_pinned_memory",
    "cuda.set_pinned_memory_allocator",
    "cuda.using_allocator",
    "cuda.runtime.getDeviceCount",
)
_PROPERTIES: Final = frozenset({"Device.mem_info", "Event.done", "Stream.done"})
_NO_ARRAY_FUNCTION: Final = frozenset(
    [
        "asnumpy",
        "clear_memo",
        "cuda",
        "fuse",
        "get_array_module",
        "is_available",
        "memoize",
        "random",
        "testing",
        "typing",
        "who",
        "ElementwiseKernel",
        "RawKernel",
        "RawModule",
        "ReductionKernel",
    ]
)
_DECLARED: Final = re.compile(r"\.(\w+)\((.*?)\)(?: ->|$|\n)", re.DOTALL)


def read() -> tuple[dict[str, Signature], dict[str, tuple[str, ...]], dict[str, Signature], frozenset[str]]:
    """Functions by name, ufunc loops, array methods, and other names (types, constants, modules)."""
    functions: dict[str, Signature] = {}
    ufuncs: dict[str, tuple[str, ...]] = {}
    methods: dict[str, Signature] = {}
    others: set[str] = set()
    for line in LIST.read_text(encoding="utf-8").splitlines():
        kind, text = line.split(" ", 1)
        if kind == "ufunc":
            name, *loops = text.split()
            ufuncs[name] = tuple(loops)
        elif kind == "other":
            others.update(text.split())
        elif kind != "cuda":
            name, _, rest = text.partition("(")
            (functions if kind == "function" else methods)[name] = _signature(rest.removesuffix(")"))
    return functions, ufuncs, methods, frozenset(others)


def read_cuda() -> dict[str, Signature]:
    """The functions of streams, memory and transfers, and their methods; properties take nothing."""
    lines = [line.removeprefix("cuda ") for line in LIST.read_text(encoding="utf-8").splitlines() if line.startswith("cuda ")]
    return {name: _signature(rest.removesuffix(")")) for name, _, rest in (line.partition("(") for line in lines)}


def _signature(text: str) -> Signature:
    """`a, axis=, *, dtype=, **kwargs` as a signature; the defaults themselves do not matter."""
    parameters: list[Parameter] = []
    kind: Any = Parameter.POSITIONAL_OR_KEYWORD
    for part in filter(None, text.split(", ")):
        name = part.strip("*=")
        if part == "/":
            parameters = [each.replace(kind=Parameter.POSITIONAL_ONLY) for each in parameters]
        elif part == "*":
            kind = Parameter.KEYWORD_ONLY
        elif part.startswith("**"):
            parameters.append(Parameter(name, Parameter.VAR_KEYWORD))
        elif part.startswith("*"):
            parameters.append(Parameter(name, Parameter.VAR_POSITIONAL))
            kind = Parameter.KEYWORD_ONLY
        else:
            parameters.append(Parameter(name, kind, default=None if part.endswith("=") else Parameter.empty))
    return Signature(parameters)


def _text(signature: Signature) -> str:
    parts: list[str] = []
    for each in signature.parameters.values():
        if each.kind is Parameter.KEYWORD_ONLY and not any(part.startswith("*") for part in parts):
            parts.append("*")
        stars = "*" * (each.kind is Parameter.VAR_POSITIONAL) + "**" * (each.kind is Parameter.VAR_KEYWORD)
        parts.append(f"{stars}{each.name}" + ("" if stars or each.default is Parameter.empty else "="))
    return ", ".join(parts)


def _declared(method: Any) -> str | None:
    """The parameters of a compiled method, parsed from its doc."""
    found = _DECLARED.search(method.__doc__ or "")
    if found is None:
        return None
    parts = [part.strip() for part in found.group(2).split(",")]
    return ", ".join(
        re.sub(r"^\w+ (?=\w)|=.*", lambda m: "=" if m.group().startswith("=") else "", part) for part in parts if part != "self"
    )


def _lines(cupy: Any) -> Iterator[str]:
    others: list[str] = []
    for prefix in _MODULES:
        module = attrgetter(prefix[:-1])(cupy) if prefix else cupy
        for name in dir(module):
            found = getattr(module, name)
            if name.startswith("_") or name in _NO_ARRAY_FUNCTION:
                continue
            if isinstance(found, cupy.ufunc):
                yield f"ufunc {prefix}{name} {' '.join(found.types)}"
            elif isinstance(found, type) or not callable(found):
                others.append(prefix + name)
            else:
                try:
                    yield f"function {prefix}{name}({_text(inspect.signature(found))})"
                except ValueError:
                    others.append(prefix + name)
    for name in dir(cupy.ndarray):
        method = getattr(cupy.ndarray, name)
        if name.startswith("_") or not callable(method):
            continue
        declared = _declared(method)
        yield f"method {name}({_text(inspect.signature(method)).removeprefix('self, ') if declared is None else declared})"
    yield f"other {' '.join(sorted(others))}"
    for name in _CUDA_FUNCTIONS:
        yield f"cuda {name}({_taken(attrgetter(name)(cupy))})"
    for kind in _CUDA:
        known = getattr(cupy.cuda, kind)
        for name in dir(known):
            if f"{kind}.{name}" in _PROPERTIES:
                yield f"cuda {kind}.{name}()"
            elif not name.startswith("_") and callable(getattr(known, name)):
                yield f"cuda {kind}.{name}({_taken(getattr(known, name))})"


def _taken(function: Any) -> str:
    """The parameters of a function or method of CUDA, from its signature or its doc."""
    try:
        return _text(inspect.signature(function)).removeprefix("self, ").removeprefix("self")
    except ValueError:
        found = re.search(r"\((.*?)\)", function.__doc__ or "", re.DOTALL)
        assert found is not None, function
        parts = [part.strip() for part in found.group(1).split(",")]
        return ", ".join(
            re.sub(r"^[\w ]* (?=[\w*]+)|=.*|:.*", lambda m: "=" if "=" in m.group() else "", part)
            for part in parts
            if part not in {"self", "cls", ""}
        )


def main() -> None:
    """Write the list."""
    from importlib import import_module

    cupy = import_module("cupy")
    LIST.write_text("".join(f"{line}\n" for line in _lines(cupy)), encoding="utf-8")


if __name__ == "__main__":
    main()
