"""Lazy import of op modules: all ops are known by name, and modules are imported on demand.

Importing a hundred ops takes as long as the rest of the package.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from graphcore.opset.op_modules import OP_MODULES
from graphcore.registry import OpRegistry, op_registry
from graphcore.support.safe_import import import_whole


def promise_modules(modules: Mapping[str, str], registry: OpRegistry = op_registry) -> None:
    """Declare the ops of each module; a module is imported when one of its ops is looked up.

    Args:
        modules: the full name of each module, with the names of its ops, separated by spaces.
        registry: the registry that the modules register their ops in.

    Raises:
        AlreadyExistsError: an op of that name exists.
    """
    for module, names in modules.items():
        registry.promise(names.split(), partial(import_whole, module))


promise_modules(OP_MODULES)
