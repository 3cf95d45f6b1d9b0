"""SavedModels with the values of their variables, which TensorFlow reads and writes too."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from graphcore.definitions.wire import Signature, TensorInfo
from graphcore.definitions.wire.meta_graph import FullMetaGraph, saved_model_from_bytes, saved_model_to_bytes
from graphcore.definitions.wire.saved_model import MODEL_FILE, MODEL_TEXT_FILE
from graphcore.errors import AlreadyExistsError, InvalidArgumentError, NotFoundError
from graphcore.graph import Node, Tensor, get_default_graph
from graphcore.runtime import Session
from graphcore.support.files import checked_path, file_bytes, file_errors, is_file, is_folder, is_there
from graphcore.support.replacing import write_file
from graphcore.tf1.train.saving.meta_graphs import whole_meta_graph
from graphcore.tf1.train.saving.saver import Saver, import_meta_graph

__all__ = [
    "SavedModelBuilder",
    "build_signature_def",
    "build_tensor_info",
    "classification_signature_def",
    "contains_saved_model",
    "load",
    "predict_signature_def",
    "regression_signature_def",
    "simple_save",
]

SERVING: Final = "serve"
TRAINING: Final = "train"
EVAL: Final = "eval"
GPU: Final = "gpu"
TPU: Final = "tpu"
DEFAULT_SERVING_SIGNATURE_DEF_KEY: Final = "serving_default"
PREDICT_METHOD_NAME: Final = "tensorflow/serving/predict"
PREDICT_INPUTS: Final = "inputs"
PREDICT_OUTPUTS: Final = "outputs"
CLASSIFY_METHOD_NAME: Final = "tensorflow/serving/classify"
CLASSIFY_INPUTS: Final = "inputs"
CLASSIFY_OUTPUT_CLASSES: Final = "classes"
CLASSIFY_OUTPUT_SCORES: Final = "scores"
REGRESS_METHOD_NAME: Final = "tensorflow/serving/regress"
REGRESS_INPUTS: Final = "inputs"
REGRESS_OUTPUTS: Final = "outputs"
ASSETS_DIRECTORY: Final = "assets"
VARIABLES_DIRECTORY: Final = "variables"
VARIABLES_FILENAME: Final = "variables"
SAVED_MODEL_FILENAME_PB: Final = MODEL_FILE
SAVED_MODEL_FILENAME_PBTXT: Final = MODEL_TEXT_FILE
SAVED_MODEL_SCHEMA_VERSION: Final = 1
_MAIN_OP: Final = "saved_model_main_op"
_LEGACY_INIT_OP: Final = "legacy_init_op"


def build_tensor_info(tensor: Tensor) -> TensorInfo:
    """The name, dtype and shape of a tensor, for a signature."""
    return TensorInfo(tensor.name, tensor.dtype.base, tensor.shape)


def build_signature_def(
    inputs: Mapping[str, TensorInfo] | None = None, outputs: Mapping[str, TensorInfo] | None = None, method_name: str | None = None
) -> Signature:
    """A signature of tensor infos by argument name."""
    return Signature(dict(inputs or {}), dict(outputs or {}), method_name or "")


def predict_signature_def(inputs: Mapping[str, Tensor], outputs: Mapping[str, Tensor]) -> Signature:
    """A signature that computes `outputs` from `inputs`, tensors by argument name."""
    return build_signature_def(_infos(inputs), _infos(outputs), PREDICT_METHOD_NAME)


def classification_signature_def(examples: Tensor, classes: Tensor | None, scores: Tensor | None) -> Signature:
    """A signature that computes classes or scores, or both, of serialized examples."""
    outputs = {
        name: tensor for name, tensor in ((CLASSIFY_OUTPUT_CLASSES, classes), (CLASSIFY_OUTPUT_SCORES, scores)) if tensor is not None
    }
    if not outputs:
        raise InvalidArgumentError("At least one of classes and scores must be given")
    return build_signature_def(_infos({CLASSIFY_INPUTS: examples}), _infos(outputs), CLASSIFY_METHOD_NAME)


def regression_signature_def(examples: Tensor, predictions: Tensor) -> Signature:
    """A signature that computes predictions of serialized examples."""
    return build_signature_def(_infos({REGRESS_INPUTS: examples}), _infos({REGRESS_OUTPUTS: predictions}), REGRESS_METHOD_NAME)


def _infos(tensors: Mapping[str, Tensor]) -> dict[str, TensorInfo]:
    return {name: build_tensor_info(tensor) for name, tensor in tensors.items()}


class SavedModelBuilder:
    """Writes graphs, the values of their variables, and signatures to a directory.

    Args:
        export_dir: the directory, which must not exist or be empty.

    Raises:
        AlreadyExistsError: the directory holds files.
    """

    def __init__(self, export_dir: str | os.PathLike[str]) -> None:
        self._directory = checked_path(export_dir)
        with file_errors(export_dir, "make"):
            if is_there(export_dir) and (not is_folder(export_dir) or any(self._directory.iterdir())):
                raise AlreadyExistsError(f"Export directory {export_dir} already exists, and isn't empty. Choose a different directory")
            self._directory.mkdir(parents=True, exist_ok=True)
        self._meta_graphs: list[FullMetaGraph] = []

    def add_meta_graph_and_variables(
        self,
        sess: Session,
        tags: Sequence[str],
        signature_def_map: Mapping[str, Signature] | None = None,
        assets_collection: Any = None,
        legacy_init_op: Node | None = None,
        clear_devices: bool = False,
        main_op: Node | None = None,
        strip_default_attrs: bool = False,  # noqa: ARG002 - TensorFlow's, without effect here
        saver: Saver | None = None,
    ) -> None:
        """Add the session's graph, and write the values of its variables.

        Args:
            sess: the session.
            tags: the tags of the graph, often `[tag_constants.SERVING]`.
            signature_def_map: the signatures by name.
            assets_collection: None or empty; files beside a model are not written.
            legacy_init_op, main_op: a node that runs after loading, such as an initializer of tables.
            clear_devices: leave out requested devices.
            strip_default_attrs: has no effect.
            saver: saves and restores the variables; by default all of the graph.

        Raises:
            InvalidArgumentError: another graph was added before, or `assets_collection` holds files.
            FailedPreconditionError: a variable has no value yet, or a file cannot be written.
        """
        if self._meta_graphs:
            raise InvalidArgumentError("Variables and assets have been saved already; use add_meta_graph() for further graphs")
        with sess.graph.as_default():
            saver = saver or Saver(allow_empty=True)
            folder = self._directory / VARIABLES_DIRECTORY
            with file_errors(folder, "make"):
                folder.mkdir(exist_ok=True)
            saver.save(sess, str(folder / VARIABLES_FILENAME), write_meta_graph=False, write_state=False)
            self._add(saver, tags, signature_def_map, assets_collection, legacy_init_op, clear_devices=clear_devices, main_op=main_op)

    def add_meta_graph(
        self,
        tags: Sequence[str],
        signature_def_map: Mapping[str, Signature] | None = None,
        assets_collection: Any = None,
        legacy_init_op: Node | None = None,
        clear_devices: bool = False,
        main_op: Node | None = None,
        strip_default_attrs: bool = False,  # noqa: ARG002 - TensorFlow's, without effect here
        saver: Saver | None = None,
    ) -> None:
        """Add the default graph, whose variables are those written before.

        Raises:
            InvalidArgumentError: `add_meta_graph_and_variables` was not called, or `assets_collection` holds files.
        """
        if not self._meta_graphs:
            raise InvalidArgumentError("The first graph must be added by add_meta_graph_and_variables()")
        saver = saver or Saver(allow_empty=True)
        self._add(saver, tags, signature_def_map, assets_collection, legacy_init_op, clear_devices=clear_devices, main_op=main_op)

    def _add(
        self,
        saver: Saver,
        tags: Sequence[str],
        signatures: Mapping[str, Signature] | None,
        assets: Any,
        legacy_init_op: Node | None,
        *,
        clear_devices: bool,
        main_op: Node | None,
    ) -> None:
        if assets:
            raise InvalidArgumentError("assets_collection: files beside a model are not written; read them when the program starts")
        whole = whole_meta_graph(get_default_graph(), saver.as_saver_def(), None, clear_devices=clear_devices)
        if not whole.saver_def or not whole.saver_def.restore_op_name:
            whole = msgspec.structs.replace(whole, saver_def=None)
        collections = dict(whole.collections)
        for key, node in ((_MAIN_OP, main_op), (_LEGACY_INIT_OP, legacy_init_op)):
            if node is not None:
                collections[key] = [node.name]
        self._meta_graphs.append(
            msgspec.structs.replace(whole, collections=collections, tags=tuple(tags), signature_def=dict(signatures or {}))
        )

    def save(self, as_text: bool = False) -> str:
        """Write the graphs, and return the path of the file.

        Raises:
            FailedPreconditionError: the file cannot be written.
        """
        path = self._directory / (MODEL_TEXT_FILE if as_text else MODEL_FILE)
        write_file(path, saved_model_to_bytes(self._meta_graphs, text=as_text))
        return str(path)


def simple_save(
    session: Session,
    export_dir: str | os.PathLike[str],
    inputs: Mapping[str, Tensor],
    outputs: Mapping[str, Tensor],
    legacy_init_op: Node | None = None,
) -> None:
    """Write a session's graph with one signature, from `inputs` to `outputs`, for serving.

    Raises:
        AlreadyExistsError: the directory holds files.
        FailedPreconditionError: a variable has no value yet, or a file cannot be written.
    """
    builder = SavedModelBuilder(export_dir)
    signatures = {DEFAULT_SERVING_SIGNATURE_DEF_KEY: predict_signature_def(inputs, outputs)}
    builder.add_meta_graph_and_variables(session, [SERVING], signatures, main_op=legacy_init_op, clear_devices=True)
    builder.save()


def contains_saved_model(export_dir: str | os.PathLike[str]) -> bool:
    """True iff a directory holds a SavedModel."""
    return any(is_file(Path(export_dir) / name) for name in (MODEL_FILE, MODEL_TEXT_FILE))


maybe_saved_model_directory = contains_saved_model


def load(sess: Session, tags: Sequence[str], export_dir: str | os.PathLike[str], import_scope: str | None = None) -> FullMetaGraph:
    """Add the graph of a SavedModel to a session's graph, and restore its variables in the session.

    Args:
        sess: the session.
        tags: the tags of the graph.
        export_dir: the directory.
        import_scope: a name scope for the nodes.

    Returns:
        The graph as it was saved; `signature_def` holds the signatures.

    Raises:
        NotFoundError: there is no SavedModel, or it has no graph with these tags.
        InvalidArgumentError: it is damaged.
    """
    place = checked_path(export_dir)
    name = next((name for name in (MODEL_FILE, MODEL_TEXT_FILE) if is_file(place / name)), None)
    if name is None:
        raise NotFoundError(f"No {MODEL_FILE} or {MODEL_TEXT_FILE} in directory {export_dir}")
    graphs = saved_model_from_bytes(file_bytes(place / name))
    whole = next((graph for graph in graphs if set(graph.tags) == set(tags)), None)
    if whole is None:
        choices = ", ".join(["{" + ", ".join(graph.tags) + "}" for graph in graphs])
        raise NotFoundError(f"{export_dir} holds no graph tagged {{{', '.join(sorted(tags))}}}; there are: {choices}")
    with sess.graph.as_default():
        saver = import_meta_graph(whole, import_scope=import_scope)
        sess.graph.signatures = {**sess.graph.signatures, **whole.signature_def}
    if saver is not None and whole.saver_def is not None:
        saver.restore(sess, str(place / VARIABLES_DIRECTORY / VARIABLES_FILENAME))
    start = f"{import_scope}/" if import_scope else ""
    for key in (_MAIN_OP, _LEGACY_INIT_OP):
        for node in whole.collections.get(key, ())[:1]:
            sess.run(sess.graph.get_operation_by_name(start + node))
    return whole
