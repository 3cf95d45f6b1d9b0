"""`tf.train.Saver`: saves variables to checkpoints, which TensorFlow reads too, and restores them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np

from graphcore import dtypes
from graphcore.brief import brief
from graphcore.checkpoints import CheckpointReader
from graphcore.definitions.wire.meta_graph import FullMetaGraph, SaverDef
from graphcore.errors import FailedPreconditionError, InvalidArgumentError
from graphcore.graph import Graph, Node, Tensor, get_default_graph
from graphcore.graph.model.argument_errors import refuse
from graphcore.runtime import Session
from graphcore.support.files import is_folder
from graphcore.tf1.framework import constant, group
from graphcore.tf1.train.saving import checkpoint_states
from graphcore.tf1.train.saving.meta_graphs import OF_VARIABLES, import_whole, read_meta_graph, whole_meta_graph, write_meta_graph
from graphcore.tf1.variables.choice import VariableChoice
from graphcore.tf1.variables.variables import Variable, listed_variables

_V2: Final = 2
_HOUR: Final = 3600.0


class Saver:
    """Saves variables to checkpoints of TensorFlow's V2 format, and restores them.

    It adds nodes to the graph, below `save/`, that save and restore when they run; `save` and `restore` run them.

    Args:
        var_list: the variables, or a mapping from their names in checkpoints; all variables of the default graph if None.
        reshape: restore values of other shapes with as many elements.
        sharded: has no effect: a checkpoint has one file of data.
        max_to_keep: the number of checkpoints to keep; older ones are removed. None or 0 keeps all.
        keep_checkpoint_every_n_hours: keep one checkpoint of every such span of hours for good.
        name: the name scope of the nodes.
        restore_sequentially: has no effect.
        saver_def: the saver whose nodes are in the graph already; no nodes are added.
        builder: has no effect.
        defer_build: add the nodes when `build` is called.
        allow_empty: allow a graph without variables; then nothing is saved.
        write_version: must be 2.
        pad_step_number: write the number of the step with eight digits.
        save_relative_paths: list checkpoints with paths relative to their folder, so that it can be moved.
        filename: the path of checkpoints if the nodes run without one.

    Raises:
        InvalidArgumentError: there are no variables, two have one name, or an argument is of another kind.

    Example:
        >>> v = gc.Variable([1.0, 2.0], name="v")
        >>> saver = gc.train.Saver()
        >>> with gc.Session() as session:
        ...     session.run(gc.initialize_all_variables())
        ...     saver.save(session, "model", global_step=10)
        'model-10'
        >>> with gc.Session() as session:
        ...     saver.restore(session, "model-10")
        ...     print(session.run(v))
        [1. 2.]
    """

    def __init__(
        self,
        var_list: Sequence[Variable] | Mapping[str, Variable] | None = None,
        reshape: bool = False,
        sharded: bool = False,
        max_to_keep: int | None = 5,
        keep_checkpoint_every_n_hours: float = 10000.0,
        name: str | None = None,
        restore_sequentially: bool = False,  # noqa: ARG002 - TensorFlow's, without effect here
        saver_def: SaverDef | None = None,
        builder: Any = None,  # noqa: ARG002 - TensorFlow's, without effect here
        defer_build: bool = False,
        allow_empty: bool = False,
        write_version: int = _V2,
        pad_step_number: bool = False,
        save_relative_paths: bool = False,
        filename: str | None = None,
    ) -> None:
        if write_version != _V2:
            raise InvalidArgumentError(f"write_version must be 2, the present format of checkpoints; got {write_version!r}")
        self._var_list = var_list
        self._reshape = reshape
        self._name = name or "save"
        self._allow_empty = allow_empty
        self._pad_step_number = pad_step_number
        self._save_relative_paths = save_relative_paths
        self._filename = filename or "model"
        self._graph: Graph | None = None
        self._last_checkpoints: list[tuple[str, float]] = []
        self._is_empty = False
        self.saver_def = saver_def or SaverDef(
            max_to_keep=max_to_keep or 0, keep_checkpoint_every_n_hours=keep_checkpoint_every_n_hours, sharded=sharded
        )
        self._is_built = saver_def is not None
        self._next_kept = time.time() + self.saver_def.keep_checkpoint_every_n_hours * _HOUR
        if saver_def is None and not defer_build:
            self.build()

    def build(self) -> None:
        """Add the nodes to the default graph, unless they are there.

        Raises:
            InvalidArgumentError: there are no variables, or two have one name.
        """
        if self._is_built:
            return
        graph = self._graph = get_default_graph()
        named = _named(self._var_list, graph)
        variables = named()
        self._is_built = True
        self._is_empty = not variables
        if self._is_empty:
            if not self._allow_empty:
                raise InvalidArgumentError("No variables to save: make the variables before the saver")
            return

        def build() -> Node:
            nodes = _Nodes(graph, named(), self._name, self._filename, reshape=self._reshape)
            self.saver_def = msgspec.structs.replace(
                self.saver_def,
                filename_tensor_name=nodes.filename.name,
                save_tensor_name=nodes.save.name,
                restore_op_name=nodes.restore.name,
            )
            return nodes.restore

        graph.derivations.derive(f"the saver '{self._name}'", build, fingerprint=lambda: [_kind(*pair) for pair in named().items()])

    def save(
        self,
        sess: Session,
        save_path: str | os.PathLike[str],
        global_step: Any = None,
        latest_filename: str | None = None,
        meta_graph_suffix: str = "meta",
        write_meta_graph: bool = True,
        write_state: bool = True,
        strip_default_attrs: bool = False,  # noqa: ARG002 - TensorFlow's arguments
        save_debug_info: bool = False,  # noqa: ARG002 - TensorFlow's, without effect here
    ) -> str | None:
        """Save the variables' values of a session. If the process ends meanwhile, the checkpoint before is whole, of this name too.

        Args:
            sess: the session.
            save_path: the path of the checkpoint; the folder must exist.
            global_step: the number of the step, which is put behind the path; an integer, or a tensor or variable.
            latest_filename: the name of the list of checkpoints, `checkpoint` by default.
            meta_graph_suffix: the suffix of the file of the graph.
            write_meta_graph: write the graph beside the checkpoint.
            write_state: write the list of checkpoints.
            strip_default_attrs: has no effect.
            save_debug_info: has no effect.

        Returns:
            The path of the checkpoint, for `restore`; None if there is nothing to save.

        Raises:
            FailedPreconditionError: a variable has no value yet, or a file cannot be written.
            InvalidArgumentError: an argument is of another kind.
        """
        self._check_built(sess)
        name = latest_filename or checkpoint_states.STATE_FILE
        if os.sep in name:
            raise InvalidArgumentError(f"'latest_filename' must be a name without a folder, got '{name}'")
        prefix = checkpoint_states.prefix_of(save_path)
        folder, last = os.path.split(prefix)
        if last == name and global_step is None:
            raise InvalidArgumentError(f"Required a path that ends with a name other than '{name}', got '{prefix}'")
        if folder and not is_folder(folder):
            raise FailedPreconditionError(f"Parent directory of {prefix} doesn't exist, can't save.")
        if global_step is not None:
            step = _step(sess, global_step)
            prefix = f"{prefix}-{step:08d}" if self._pad_step_number else f"{prefix}-{step}"
        if not self._is_empty:
            sess.run(self.saver_def.save_tensor_name, {self.saver_def.filename_tensor_name: prefix})
        if write_meta_graph:
            with sess.graph.as_default():
                self.export_meta_graph(f"{prefix}.{meta_graph_suffix}")
        if write_state and not self._is_empty:  # last, so that only whole checkpoints are listed
            self._note(prefix, folder, meta_graph_suffix, latest_filename)
        return None if self._is_empty else prefix

    def _note(self, prefix: str, folder: str, meta_graph_suffix: str, latest_filename: str | None) -> None:
        """List a new checkpoint, and remove the ones that are too old."""
        place = Path(prefix).resolve()
        self._last_checkpoints = [checkpoint for checkpoint in self._last_checkpoints if Path(checkpoint[0]).resolve() != place]
        self._last_checkpoints.append((prefix, time.time()))
        kept = self.saver_def.max_to_keep
        old = self._last_checkpoints[: -kept or None] if kept else self._last_checkpoints[:-1]
        self._last_checkpoints = self._last_checkpoints[len(old) :]
        checkpoint_states.update_checkpoint_state(
            folder,
            prefix,
            self.last_checkpoints,
            latest_filename,
            [moment for _, moment in self._last_checkpoints],
            relative=self._save_relative_paths,
        )
        for path, moment in old if kept else ():
            if moment > self._next_kept:
                self._next_kept += self.saver_def.keep_checkpoint_every_n_hours * _HOUR
            else:
                checkpoint_states.remove_checkpoint(path, meta_graph_suffix=meta_graph_suffix)

    def restore(self, sess: Session, save_path: str | os.PathLike[str] | None) -> None:
        """Restore the variables of a session from a checkpoint. They need not be initialised.

        Args:
            sess: the session.
            save_path: the path of the checkpoint, as `save` and `latest_checkpoint` return it.

        Raises:
            NotFoundError: there is no such checkpoint, or it lacks a variable; nothing changes.
            InvalidArgumentError: it is damaged, or holds another shape or type.
        """
        if save_path is None:
            raise InvalidArgumentError("Can't load save_path when it is None: is there a checkpoint in the folder?")
        self._check_built(sess)
        if self._is_empty:
            return
        prefix = checkpoint_states.prefix_of(save_path)
        CheckpointReader(prefix)  # with an error that names no node, if there is none
        sess.run(self.saver_def.restore_op_name, {self.saver_def.filename_tensor_name: prefix})

    def _check_built(self, session: Any) -> None:
        if not isinstance(session, Session):
            refuse("sess", "a gc.Session", session)
        if not self._is_built:
            raise FailedPreconditionError("`build()` should be called before save if defer_build==True")

    @property
    def last_checkpoints(self) -> list[str]:
        """The paths of the checkpoints that are kept, the oldest first."""
        return [path for path, _ in self._last_checkpoints]

    def set_last_checkpoints(self, last_checkpoints: Sequence[str]) -> None:
        """Set the checkpoints that count as this saver's, the oldest first."""
        self._last_checkpoints = [(path, np.inf) for path in last_checkpoints]

    def set_last_checkpoints_with_time(self, last_checkpoints_with_time: Sequence[tuple[str, float]]) -> None:
        """Set the checkpoints that count as this saver's, with their times, the oldest first."""
        self._last_checkpoints = list(last_checkpoints_with_time)

    def recover_last_checkpoints(self, checkpoint_paths: Sequence[str]) -> None:
        """Make the given checkpoints that exist the last ones of this saver."""
        present = [path for path in checkpoint_paths if checkpoint_states.checkpoint_exists(path)]
        self.set_last_checkpoints_with_time(list(zip(present, checkpoint_states.get_checkpoint_mtimes(present), strict=True)))

    def as_saver_def(self) -> SaverDef:
        """The names of its nodes, and what it keeps."""
        return self.saver_def

    to_proto = as_saver_def

    def export_meta_graph(
        self,
        filename: str | None = None,
        collection_list: Sequence[str] | None = None,
        as_text: bool = False,
        clear_devices: bool = False,
        **_unused: Any,
    ) -> FullMetaGraph:
        """Write the default graph with this saver and its collections to a file.

        Args:
            filename: the file; None only returns the graph.
            collection_list: the collections; all by default.
            as_text: write protobuf text.
            clear_devices: leave out requested devices.

        Raises:
            FailedPreconditionError: the file cannot be written.
        """
        return export_meta_graph(
            filename, saver_def=self.saver_def, collection_list=collection_list, as_text=as_text, clear_devices=clear_devices
        )


class _Nodes:
    """The nodes of a saver: those of TensorFlow, under its names."""

    def __init__(self, graph: Graph, variables: Mapping[str, Variable], name: str, filename: str, *, reshape: bool) -> None:
        self._graph = graph
        with graph.control_dependencies(None), graph.name_scope(name):
            file_input = constant(filename, dtypes.string, name="filename/input")
            default = graph.apply_op("PlaceholderWithDefault", [file_input], {"shape": ()}, "filename").outputs[0]
            self.filename = graph.apply_op("PlaceholderWithDefault", [default], {"shape": ()}, "Const").outputs[0]
            self.save = self._build_save(variables)
            self.restore = self._build_restore(variables, reshape=reshape)

    def _add(self, op: str, variables: Mapping[str, Variable], values: Sequence[Any], attrs: Mapping[str, Any]) -> Node:
        """Add the node that saves or restores, below which its constants are."""
        with self._graph.device("/device:CPU:0"), self._graph.name_scope(op) as scope:
            names = constant(list(variables), dtypes.string, name="tensor_names")
            parts = constant([""] * len(variables), dtypes.string, name="shape_and_slices")
            return self._graph.apply_op(op, [self.filename, names, parts, *values], attrs, scope)

    def _build_save(self, variables: Mapping[str, Variable]) -> Tensor:
        values = [variable.snapshot if variable.is_resource else variable.handle for variable in variables.values()]
        node = self._add("SaveV2", variables, [values], {})
        with self._graph.device("/device:CPU:0"), self._graph.control_dependencies([node]):
            return self._graph.apply_op("Identity", [self.filename], None, "control_dependency").outputs[0]

    def _build_restore(self, variables: Mapping[str, Variable], *, reshape: bool) -> Node:
        restored = self._add("RestoreV2", variables, [], {"dtypes": [variable.dtype.base for variable in variables.values()]})
        assigned = []
        for variable, value in zip(variables.values(), restored.outputs, strict=True):
            with self._graph.device(variable.device or None):
                saved = value
                if reshape:
                    saved = self._graph.apply_op("Reshape", [value, np.array(variable.shape.as_list(), np.int32)]).outputs[0]
                attrs: dict[str, Any] = {} if variable.is_resource else {"_class": [f"loc:@{variable.op.name}"]}
                attrs["validate_shape"] = bool(variable.shape.is_fully_defined)
                op = "AssignVariableOp" if variable.is_resource else "Assign"
                assigned.append(self._graph.apply_op(op, [variable.handle, saved], attrs))
        return group(*assigned, name="restore_all")


def _kind(name: str, variable: Variable) -> tuple[str, str, str, str, bool]:
    return name, variable.op.name, variable.dtype.text, str(variable.shape), variable.is_resource


def _named(var_list: Any, graph: Graph) -> Callable[[], dict[str, Variable]]:
    """The variables of a saver by their names in checkpoints, at the time of a call."""
    if isinstance(var_list, Mapping):
        by_name = {str(name): variable for name, variable in var_list.items()}
        choice = VariableChoice(graph, listed_variables("var_list", by_name.values()))
        return lambda: dict(sorted(zip(by_name, choice.now(), strict=True)))
    choice = VariableChoice(graph, None if var_list is None else listed_variables("var_list", var_list))

    def now() -> dict[str, Variable]:
        variables = choice.now()
        by_name = {variable.op.name: variable for variable in variables}
        if len(by_name) != len(variables):
            raise InvalidArgumentError(f"var_list: a variable is given twice: {brief([variable.op.name for variable in variables])}")
        return dict(sorted(by_name.items()))

    return now


def _step(session: Session, global_step: Any) -> int:
    value = session.run(global_step) if isinstance(global_step, Tensor | Variable) else global_step
    try:
        return int(np.asarray(value).item())
    except (TypeError, ValueError):
        raise InvalidArgumentError(f"global_step must be an integer, or a tensor of one; got {brief(value)}") from None


def export_meta_graph(
    filename: str | None = None,
    meta_info_def: Any = None,  # noqa: ARG001 - TensorFlow's, without effect here
    graph_def: Any = None,  # noqa: ARG001 - TensorFlow's, without effect here
    saver_def: SaverDef | None = None,
    collection_list: Sequence[str] | None = None,
    as_text: bool = False,
    graph: Graph | None = None,
    clear_devices: bool = False,
    **_unused: Any,
) -> FullMetaGraph:
    """Write a graph with its collections to a file.

    Args:
        filename: the file; None only returns the graph.
        meta_info_def: has no effect.
        graph_def: has no effect.
        saver_def: the saver of the graph.
        collection_list: the collections; all by default.
        as_text: write protobuf text.
        graph: the graph; the default graph if None.
        clear_devices: leave out requested devices.

    Raises:
        FailedPreconditionError: the file cannot be written.
    """
    whole = whole_meta_graph(graph or get_default_graph(), saver_def, collection_list, clear_devices=clear_devices)
    if filename:
        write_meta_graph(whole, filename, text=as_text)
    return whole


def import_meta_graph(
    meta_graph_or_file: FullMetaGraph | str | os.PathLike[str],
    clear_devices: bool = False,
    import_scope: str | None = None,
    **_unused: Any,
) -> Saver | None:
    """Add the graph in a file to the default graph, with its collections.

    Args:
        meta_graph_or_file: the file, such as `model.ckpt-100.meta`, or what `export_meta_graph` returned.
        clear_devices: leave out requested devices.
        import_scope: a name scope for the nodes.

    Returns:
        The saver of the graph; None if it has none and no variables.

    Raises:
        NotFoundError: there is no such file.
        InvalidArgumentError: it is damaged, or its nodes do not fit into the graph.
    """
    whole = meta_graph_or_file if isinstance(meta_graph_or_file, FullMetaGraph) else read_meta_graph(meta_graph_or_file)
    scope = import_scope or ""
    import_whole(whole, scope, clear_devices=clear_devices)
    if whole.saver_def is not None and whole.saver_def.restore_op_name:
        start = f"{scope}/" if scope else ""
        names = {
            field: start + getattr(whole.saver_def, field) for field in ("filename_tensor_name", "save_tensor_name", "restore_op_name")
        }
        return Saver(saver_def=msgspec.structs.replace(whole.saver_def, **names), name=scope)
    if any(whole.collections.get(name) for name in OF_VARIABLES):
        return Saver()
    return None
