"""Finds the op blocks of a folder without importing them: a hundred ops cost as much to import as all the rest of the package."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Final

from graphcore.importing import import_whole
from graphcore.registry import OpRegistry, op_registry

_BLOCK: Final = re.compile(r"^@op\nclass (\w+)", re.MULTILINE)


def block_names(source: str) -> list[str]:
    """The names of the op blocks in the text of a module."""
    return _BLOCK.findall(source)


def promise_families(package: str, path: Iterable[str], registry: OpRegistry = op_registry) -> None:
    """Make the ops of every module of a package known to the registry; each module is imported when one of its ops is asked for.

    Args:
        package: its name.
        path: its folders. A module whose source is not there as a file (in a zip archive, say) is imported at once.
        registry: where the blocks register themselves.
    """
    for folder in path:
        for module in pkgutil.iter_modules([folder]):
            name = f"{package}.{module.name}"
            file = Path(folder, f"{module.name}.py")
            if not file.is_file():
                importlib.import_module(name)
                continue
            registry.promise(block_names(file.read_text(encoding="utf-8")), partial(import_whole, name))


promise_families(__package__, [str(Path(__file__).parent)])
