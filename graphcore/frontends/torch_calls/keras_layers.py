"""Models of Keras on PyTorch: they call their layers by themselves, past the hooks of PyTorch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from graphcore.frontends.keras_reader.calls import check_built, is_layer, layers_of

if TYPE_CHECKING:
    from graphcore.frontends.frontend import Call
    from graphcore.frontends.torch_calls.recording import Recorder, States


def layers_in(call: Call) -> set[int]:
    """The ids of the user's own layers that a call takes, which are never changed."""
    values = (call.function, getattr(call.function, "__self__", None), *call.args, *call.kwargs.values())
    return {id(layer) for value in values if is_layer(value) for _, layer in layers_of(value)}


def follow_layers(model: Any, name: str, recorder: Recorder, own: set[int]) -> None:
    """Tell a recorder which layer of the copy of a model is called.

    Raises:
        InvalidArgumentError: a layer has no variables yet.
    """
    if not is_layer(model):
        return
    check_built(model)
    for path, layer in layers_of(model):
        if id(layer) in recorder.modules_by_id or id(layer) in own:
            continue  # an attribute, which PyTorch calls with its hooks; or one that refuses to be copied, and is shared
        full = f"{name}.{path}" if name and path else name or path
        object.__setattr__(layer, "call", _followed(layer.call, full, type(layer).__name__, recorder))


def _followed(call: Any, path: str, kind: str, recorder: Recorder) -> Any:
    def followed(*args: Any, **kwargs: Any) -> Any:
        recorder.enter(path, kind)
        try:
            return call(*args, **kwargs)
        finally:
            recorder.leave()

    return followed


def states_of_layers(model: Any, prefix: str) -> States:
    """The names and kinds of the variables of a model of Keras, by the ids of their tensors."""
    if not is_layer(model):
        return {}
    own = {id(variable) for variable in model.trainable_variables}
    return {
        id(variable.value): (
            f"{prefix}{str(variable.path).replace('/', '.').removeprefix(f'{model.name}.')}",
            "parameter" if id(variable) in own else "buffer",
        )
        for variable in model.variables
    }
