"""The values of variables that lie beside a loaded graph, or are missing there."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from graphcore.errors import FailedPreconditionError
from graphcore.kernel_context import NOT_INITIALIZED, uninitialized_name


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


class AbsentValues(msgspec.Struct, frozen=True):
    """The values that a loaded graph lacks.

    Args:
        index: the path of the file that was looked for.
        is_there: the file is there, but the graph has no node that restores it.
        names: the names that the variables of the graph may have.
        filename_tensor, restore_op: as of `SavedValues`; "" if the graph has no such node.
    """

    index: str
    is_there: bool
    names: frozenset[str]
    filename_tensor: str = ""
    restore_op: str = ""

    def instead_of(self, error: FailedPreconditionError) -> FailedPreconditionError:
        """The error to raise instead of one about a variable of this graph that has no value."""
        why = "but the graph has no node that restores them" if self.is_there else "which is not there"
        text = f": the file of the graph was loaded without values; they were looked for at '{self.index}', {why}"
        advice = "Restore the values first, in the same session: `gc.restore_variables(session, path)` reads a file of `gc.save_variables`"
        if self.restore_op:
            advice += (
                f"; `session.run('{self.restore_op}', {{'{self.filename_tensor}': path}})` runs the saver of the graph, "
                "where `path` is a checkpoint without its suffixes"
            )
        made = FailedPreconditionError(
            error.message.replace(NOT_INITIALIZED, text, 1),
            op=error.op,
            node=error.node,
            attr=error.attr,
            input=error.input,
            source=error.source,
        )
        made.device = error.device
        return made.advise(f"{advice}.", required=error.required, came="none: the graph was loaded without values")


def with_absent_values(error: BaseException, absent: Iterable[AbsentValues]) -> BaseException:
    """The error, or a clearer one if it is about a variable that a loaded graph has no value for."""
    if not isinstance(error, FailedPreconditionError):
        return error
    name = uninitialized_name(error)
    lacking = next((each for each in absent if name in each.names), None)
    return error if lacking is None else lacking.instead_of(error)
