"""Models of Keras in this process, written in the form that Keras saves."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import numpy as np

from graphcore.errors import InvalidArgumentError
from graphcore.frontends.foreign import WeightRef
from graphcore.frontends.keras_reader.calls import is_layer
from graphcore.frontends.keras_reader.opening import operations_of

_MAX_DEPTH: Final = 50
_PLAIN: Final = (str, bool, int, float)


class ModelObject:
    """A model as its config and its weights, which are those of the object.

    Attributes:
        config: the layers with their calls. No method of the user's classes is called before a layer is opened.
        all: the weights by the layers' paths, the first part of which is `model_weights`.
    """

    def __init__(self, model: Any) -> None:
        self.all: dict[str, WeightRef] = {}
        self.config = self._layer(model, 0)

    def below(self, path: str) -> dict[str, WeightRef]:
        """The weights of a layer, by their names."""
        return {name[len(path) + 1 :]: weight for name, weight in self.all.items() if name.startswith(f"{path}/")}

    def within(self, prefix: str, group: str) -> dict[str, WeightRef]:
        """The weights of a layer within any model."""
        return self.below(f"{prefix}{group}")

    def _layer(self, layer: Any, depth: int) -> dict[str, Any]:
        if depth > _MAX_DEPTH:
            raise InvalidArgumentError(f"Models are nested deeper than {_MAX_DEPTH}")
        kind, name = type(layer).__name__, str(layer.name)
        graph = _graph_of(layer)
        if graph is None:
            for number, variable in enumerate(getattr(layer, "weights", None) or ()):
                word = str(getattr(variable, "path", variable.name)).partition("/")[2] or str(variable.name)
                shape = tuple([int(size) for size in variable.shape])
                path = f"model_weights/{name}/{number:04d}.{word.replace('/', '.')}"
                self.all[path] = WeightRef(str(variable.dtype), shape, -1, partial(_elements, variable))
            return {"class_name": kind, "name": name, "module": str(type(layer).__module__), "config": _options(layer)}
        nodes = [node for level in graph._nodes_by_depth.values() for node in level]
        kept = {id(node) for node in nodes}
        places: dict[int, tuple[str, int]] = {}
        layers = []
        for operation in graph.operations:
            own = [node for node in operation._inbound_nodes if id(node) in kept]
            places.update({id(node): (str(operation.name), number) for number, node in enumerate(own)})
        for operation in graph.operations:
            own = [node for node in operation._inbound_nodes if id(node) in kept]
            entry: dict[str, Any]
            if type(operation).__name__ == "InputLayer":
                entry = {"class_name": "InputLayer", "name": str(operation.name), "config": _entry(operation)}
            else:
                entry = self._layer(operation, depth + 1)
                entry["inbound_nodes"] = [{"args": [[_tensor(tensor, places) for tensor in node.input_tensors]]} for node in own]
                entry["outputs"] = [[_described(tensor) for tensor in node.outputs] for node in own]
                entry["operations"] = [partial(operations_of, operation, node) for node in own] if is_layer(operation) else []
            layers.append(entry)
        inner = {
            "name": name,
            "layers": layers,
            "input_layers": [list(_key(tensor, places)) for tensor in graph.inputs],
            "output_layers": [list(_key(tensor, places)) for tensor in graph.outputs],
        }
        return {"class_name": "Functional" if kind == "Sequential" else kind, "name": name, "config": inner}


def _graph_of(layer: Any) -> Any:
    """The model with a graph of layers that a layer is, None for another."""
    inner = getattr(layer, "_functional", None) if type(layer).__name__ == "Sequential" else layer
    return inner if hasattr(inner, "_nodes_by_depth") and hasattr(inner, "operations") else None


def _key(tensor: Any, places: dict[int, tuple[str, int]]) -> tuple[str, int, int]:
    operation, node, place = tensor._keras_history
    name, number = places[id(operation._inbound_nodes[node])]
    return name, number, int(place)


def _described(tensor: Any) -> dict[str, Any]:
    sizes = [None if size is None else int(size) for size in tensor.shape]
    return {"shape": sizes, "dtype": str(tensor.dtype)}


def _tensor(tensor: Any, places: dict[int, tuple[str, int]]) -> dict[str, Any]:
    return {"class_name": "__keras_tensor__", "config": {**_described(tensor), "keras_history": list(_key(tensor, places))}}


def _entry(layer: Any) -> dict[str, Any]:
    return {"batch_shape": [None if size is None else int(size) for size in layer.batch_shape], "dtype": str(layer.dtype)}


def _options(layer: Any) -> dict[str, Any]:
    """The plain values among a layer's public attributes."""
    options: dict[str, Any] = {}
    for key, value in vars(layer).items():
        if key.startswith("_") or key in {"name", "built", "autocast", "supports_jit", "supports_masking", "input_spec"}:
            continue
        if isinstance(value, _PLAIN):
            options[key] = value
        elif isinstance(value, tuple | list) and len(value) < 50 and all(isinstance(item, _PLAIN) for item in value):
            options[key] = list(value)
        elif callable(value) and hasattr(value, "__name__"):
            options[key] = str(value.__name__)
    return options


def _elements(variable: Any) -> np.ndarray:
    return np.asarray(variable.value)
