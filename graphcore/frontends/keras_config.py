"""Keras models: `.keras` archives, `.h5` files of models and of weights, and objects."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any, Final

from graphcore.errors import GraphError, InvalidArgumentError
from graphcore.frontends.foreign import ForeignFunction, ForeignGraph, ForeignNode, ModuleCall, Port
from graphcore.frontends.keras_reader.layers import LayerReader
from graphcore.frontends.keras_reader.objects import ModelObject
from graphcore.frontends.keras_reader.weights import HdfWeights
from graphcore.frontends.torch_reader.archive import Archive

if TYPE_CHECKING:
    from graphcore.frontends.frontend import Source

KIND: Final = "Keras model (.keras, .h5; keras.Model)"
_HDF: Final = b"\x89HDF\r\n\x1a\n"
_MAX_DEPTH: Final = 40


def sniff(source: Source) -> bool:
    """True iff the source is an archive of Keras, or an HDF5 file."""
    if source.path is None:
        return any(kind.__name__ == "Model" and kind.__module__.partition(".")[0] == "keras" for kind in type(source.value).__mro__)
    return source.head.startswith(_HDF) or ("config.json" in source.members and "metadata.json" in source.members)


def read(source: Source) -> ForeignGraph:
    """Read a Keras model. No class of the model is imported.

    Raises:
        GraphError: it is damaged, exceeds a limit, or `h5py` is missing.
    """
    name = type(source.value).__name__ if source.path is None else source.path.name
    try:
        if source.path is None:
            model = ModelObject(source.value)
            version = str(getattr(sys.modules.get("keras"), "__version__", ""))
            return _graph(model.config, model, f"keras {version}".strip(), {}, [])
        return _of_hdf(source) if source.head.startswith(_HDF) else _of_archive(source)
    except GraphError:
        raise
    except (KeyError, TypeError, IndexError, ValueError, AttributeError, OverflowError) as error:
        reason = f"{type(error).__name__}: {error}"
        raise InvalidArgumentError(f"'{name}' is a damaged Keras model: {reason[:200]}") from None


def _of_archive(source: Source) -> ForeignGraph:
    assert source.path is not None
    archive = Archive(source.path)
    config = json.loads(archive.read("config.json"))
    metadata = json.loads(archive.read("metadata.json"))
    notes: list[str] = []
    weights: HdfWeights | None = None
    if "model.weights.h5" in archive:
        try:
            weights = HdfWeights(source.path, "model.weights.h5")
        except GraphError as error:
            notes.append(f"The weights are not shown: {error.message}")
    else:
        notes.append("The archive holds no weights.")
    version = str(metadata.get("keras_version", ""))
    facts = {"saved": str(metadata["date_saved"])} if "date_saved" in metadata else {}
    return _graph(config, weights, f"keras {version}" if version else "keras", facts, notes)


def _of_hdf(source: Source) -> ForeignGraph:
    assert source.path is not None
    weights = HdfWeights(source.path)
    text = weights.text("model_config")
    version = weights.text("keras_version") or weights.text("keras_version", "model_weights")
    producer = f"keras {version}" if version else ""
    if text:
        return _graph(json.loads(text), weights, producer, {}, [])
    nodes = []
    for path, weight in weights.all.items():
        parts = path.split("/")[:-1][:_MAX_DEPTH]
        modules = tuple([ModuleCall(".".join(parts[: count + 1])) for count in range(len(parts))])
        port = Port(path, weight.dtype, weight.shape)
        nodes.append(ForeignNode(path, "keras.Variable", outputs=(port,), weight=weight, kind="parameter", modules=modules))
    is_keras = bool(weights.text("layer_names") or version or any("/vars/" in path for path in weights.all))
    kind = "Keras weights" if is_keras else "HDF5 file"
    notes = ["The file holds arrays and no graph. `model.save` writes a file with both."]
    return ForeignGraph(kind, ForeignFunction("main", nodes=nodes), producer=producer, notes=notes, has_graph=False)


def _graph(config: Any, weights: HdfWeights | ModelObject | None, producer: str, facts: dict[str, str], notes: list[str]) -> ForeignGraph:
    if not isinstance(config, dict) or not isinstance(config.get("class_name"), str):
        raise InvalidArgumentError("Required the config of a model with `class_name`, got " + type(config).__name__)
    reader = LayerReader(weights)
    main = reader.model(config)
    name = str(config["config"].get("name", "")) if isinstance(config.get("config"), dict) else ""
    facts = {"class": config["class_name"], **facts}
    notes.extend(reader.notes)
    return ForeignGraph("Keras model", main, producer=producer, name=name, functions=reader.functions, facts=facts, notes=notes)
