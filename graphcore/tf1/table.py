"""The modules of TensorFlow 1's namespaces, and of names that lie elsewhere.

Nothing here is imported before it is asked for.
"""

from __future__ import annotations

from typing import Final

NAMESPACES: Final[dict[str, str]] = {
    "app": "graphcore.tf1.app",
    "compat": "",
    "compat.v1": "graphcore",
    "contrib": "",
    "flags": "graphcore.tf1.flags",
    "gfile": "graphcore.tf1.gfile",
    "logging": "graphcore.tf1.logging",
    "python": "",
    "python.framework": "",
    "python.ops": "",
    "python.platform": "",
}
"""The module of each namespace; "" for one that only holds what is listed under its name here."""

NAMES: Final[dict[str, str]] = {}
"""The public names in each module, by their full names in TensorFlow; `there=here` where they differ."""


def places() -> dict[str, tuple[str, str]]:
    """Module and attribute of each name in `NAMES`."""
    found: dict[str, tuple[str, str]] = {}
    for module, names in NAMES.items():
        for entry in names.split():
            there, _, here = entry.partition("=")
            found[there] = module, here or there.rpartition(".")[2]
    return found


PLACES: Final = places()
