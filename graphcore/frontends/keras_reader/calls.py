"""Models of Keras that are called: their layers with paths, and calls that change no variable."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from graphcore.errors import InvalidArgumentError
from graphcore.frontends.foreign import ModuleCall

if TYPE_CHECKING:
    from graphcore.frontends.foreign import ForeignGraph

_MAX_DEPTH: Final = 30


def is_layer(value: object) -> bool:
    """True iff a value is a layer or model of Keras 3."""
    return any(kind.__name__ == "Layer" and kind.__module__.startswith("keras.") for kind in type(value).__mro__)


def is_layer_of_jax(value: object) -> bool:
    """True iff a value is a layer or model of Keras on JAX."""
    return is_layer(value) and any(kind.__module__ == "keras.src.backend.jax.layer" for kind in type(value).__mro__)


def layers_of(layer: Any, path: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """A layer and all layers within it, with their paths: `encoder.dense`; "" for the first."""
    yield path, layer
    if depth < _MAX_DEPTH:
        for inner in _within(layer):
            yield from layers_of(inner, f"{path}.{inner.name}" if path else str(inner.name), depth + 1)


def _within(layer: Any) -> list[Any]:
    """The layers directly in one. The graph that a Sequential model keeps of itself is not one of them."""
    inner = layer.layers if type(layer).__name__ in {"Sequential", "Functional"} else layer._flatten_layers(False, False)
    return [sublayer for sublayer in inner if type(sublayer).__name__ != "InputLayer"]


def check_built(model: Any) -> None:
    """Require that the layers of a model have their variables.

    Raises:
        InvalidArgumentError: one has none yet: the call would make them.
    """
    missing = [path or str(model.name) for path, layer in layers_of(model) if not layer.built]
    if missing:
        raise InvalidArgumentError(
            f"The call of '{model.name}' would make the variables of its layers ({', '.join(missing[:3])}), which a traced call must not. "
            "Required: a model that was called once, or built by model.build(shape)"
        )


def without_effects(model: Any) -> Callable[..., Any]:
    """A function that gives what a model does, by its variables as they are, which no call of it changes.

    Raises:
        InvalidArgumentError: the model has no variables yet: the call would make them.
    """
    check_built(model)
    trainable = [variable.value for variable in model.trainable_variables]
    others = [variable.value for variable in model.non_trainable_variables]

    def call(*args: Any, **kwargs: Any) -> Any:
        return model.stateless_call(trainable, others, *args, **kwargs)[0]

    call.__name__ = str(model.name)
    call.__signature__ = inspect.signature(model.call)  # type: ignore[attr-defined]  # JAX takes the names of arguments from it
    return call


def variable_names(model: Any) -> dict[int, str]:
    """The names of the variables of a model, by the ids of their values."""
    return {id(variable.value): str(variable.path).replace("/", ".") for variable in model.variables}


def name_layers(graph: ForeignGraph, model: Any) -> None:
    """Give the scopes of a traced call the classes of the layers that they are.

    Scopes are named after layers, and the outermost one after the model itself.
    """
    kinds = {path: type(layer).__name__ for path, layer in layers_of(model)}
    for function in (graph.main, *graph.functions.values()):
        for place, node in enumerate(function.nodes):
            modules = _of_layers(node.modules, str(model.name), kinds)
            if modules != node.modules:
                function.nodes[place] = replace(node, modules=modules)


def _of_layers(scopes: tuple[ModuleCall, ...], name: str, kinds: dict[str, str]) -> tuple[ModuleCall, ...]:
    inner = scopes[1:] if scopes and scopes[0].path == name else scopes
    path, modules = "", []
    for scope in inner:
        last = scope.path.rpartition(".")[2]
        path = f"{path}.{last}" if path else last
        modules.append(ModuleCall(path, kinds.get(path, scope.type_name)))
    return tuple(modules)
