"""The values of variables that lie beside a loaded graph, or are missing there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from graphcore.errors import FailedPreconditionError
from graphcore.graph.model.plain_graph import PlainGraph
from graphcore.kernel_context import NOT_INITIALIZED, uninitialized_name

_OF_VARIABLES: Final = ("variables", "local_variables")
"""The collections of the variables that Python knows."""
_READS: Final = (
    "`gc.train.import_meta_graph(path + '.meta').restore(session, path)` reads a graph together with its checkpoint, `gc.load(folder)` a "
    "SavedModel with its values, and `gc.restore_variables(session, path)` a file of `gc.save_variables`"
)


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
        explained = _with_text(error, text)
        return explained.advise(f"{advice}.", required=error.required, came="none: the graph was loaded without values")


def with_absent_values(error: BaseException, graph: PlainGraph, absent_values: Sequence[AbsentValues]) -> BaseException:
    """The error, or a clearer one for a variable that `initialize_all_variables` does not initialise."""
    name = uninitialized_name(error) if isinstance(error, FailedPreconditionError) else ""
    if not name or not isinstance(error, FailedPreconditionError):
        return error
    variables = [variable for collection in _OF_VARIABLES for variable in graph.collections.get(collection, ())]
    if any(getattr(variable, "name", "") == f"{name}:0" for variable in variables):
        return error
    lacking = next((absent for absent in absent_values if name in absent.names), None)
    return _unknown_to_python(error, graph, name) if lacking is None else lacking.instead_of(error)


def _unknown_to_python(error: FailedPreconditionError, graph: PlainGraph, name: str) -> FailedPreconditionError:
    """The error for a variable that has nodes, as in an imported graph, but no Python object."""
    explained = _with_text(error, ": no variable of Python has this name, so gc.initialize_all_variables() does not initialise it")
    initializer = _initializer(graph, name)
    advice = f"Run `session.run('{initializer}')` for its initial value, or restore a saved one" if initializer else "Restore its value"
    return explained.advise(f"{advice}, in the same session: {_READS}.", required=error.required, came=error.came)


def _initializer(graph: PlainGraph, name: str) -> str:
    """The name of the node that gives a variable its initial value, "" if the graph has none."""
    for node in graph.op_nodes():
        shared = node.node_def.attr.get("shared_name") or node.name
        if node.registration.traits.role == "variable" and (shared.decode() if isinstance(shared, bytes) else shared) == name:
            assign = graph.find(f"{node.name}/Assign")
            return "" if assign is None else assign.name
    return ""


def _with_text(error: FailedPreconditionError, text: str) -> FailedPreconditionError:
    """The error with another text behind the name of the variable."""
    copy = FailedPreconditionError(
        error.message.replace(NOT_INITIALIZED, text, 1),
        op=error.op,
        node=error.node,
        attr=error.attr,
        input=error.input,
        source=error.source,
    )
    copy.device = error.device
    return copy
