"""The index of op modules. `python -m tests.support.tools.op_modules` writes it.

The file is `graphcore/opset/op_modules.py`; its content comes from the registrations of the modules.
"""

from __future__ import annotations

import importlib
import pkgutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

ROOT = Path(__file__).parents[3]
INDEX = ROOT / "graphcore" / "opset" / "op_modules.py"
HEAD = '''"""The ops of each module, so that a module need not be imported to know them. Written by `make op-index`; do not edit."""

from typing import Final

OP_MODULES: Final = {
'''


def registered() -> dict[str, list[str]]:
    """The ops registered by each module of `graphcore.opset`. For a process that has imported none of them."""
    package = ModuleType("graphcore")  # in place of the real one, which imports some of the op modules
    package.__path__ = [str(ROOT / "graphcore")]
    sys.modules["graphcore"] = package
    from graphcore.registry import op_registry

    found: dict[str, list[str]] = {}
    register: Callable[..., None] = op_registry.register_lazy

    def note(name: str, make: Callable[[], Any]) -> None:
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and frame.f_code.co_name != "<module>":
            frame = frame.f_back
        assert frame is not None, f"op {name} is registered outside the import of a module"
        found.setdefault(frame.f_globals["__name__"], []).append(name)
        register(name, make)

    op_registry.register_lazy = note  # type: ignore[method-assign]  # records each registration with its module
    import graphcore.opset

    for module in pkgutil.walk_packages(graphcore.opset.__path__, "graphcore.opset."):
        importlib.import_module(module.name)
    return {module: sorted(found[module]) for module in sorted(found)}


def text_of(modules: dict[str, list[str]]) -> str:
    """The text of the index."""
    return HEAD + "".join(f'    "{module}": "{" ".join(names)}",\n' for module, names in modules.items()) + "}\n"


def index_text() -> str:
    """The expected text of the index, found by importing all modules in a new interpreter."""
    command = [sys.executable, "-m", "tests.support.tools.op_modules", "--print"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    if sys.argv[1:] == ["--print"]:
        sys.stdout.write(text_of(registered()))
    else:
        INDEX.write_text(HEAD + "}\n", encoding="utf-8")  # an index with moved modules would fail to import
        INDEX.write_text(index_text(), encoding="utf-8")
