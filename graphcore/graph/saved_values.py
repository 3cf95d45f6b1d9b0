"""The values of variables that lie beside a loaded graph."""

from __future__ import annotations

import msgspec


class SavedValues(msgspec.Struct, frozen=True):
    """The checkpoint of a SavedModel, and the nodes that restore it. A session restores it before its first run.

    Args:
        prefix: the path of the checkpoint without its suffixes.
        filename_tensor: the tensor that takes the path.
        restore_op: the node that restores the variables.
        init_ops: the nodes that run afterwards, such as initializers of tables.
    """

    prefix: str
    filename_tensor: str
    restore_op: str
    init_ops: tuple[str, ...] = ()
