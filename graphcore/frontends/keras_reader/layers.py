"""The layers of a saved Keras model as nodes, nested models as scopes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from graphcore.errors import InvalidArgumentError
from graphcore.frontends.foreign import Attr, ForeignFunction, ForeignNode, InputRef, ModuleCall, Port
from graphcore.frontends.keras_reader.objects import ModelObject
from graphcore.frontends.keras_reader.shapes import Shape, result_shape

if TYPE_CHECKING:
    from graphcore.frontends.keras_reader.weights import HdfWeights

Key = tuple[str, int, int]
_GRAPHS: Final = frozenset(["Functional", "Model"])
_LEFT_OUT: Final = frozenset(["name", "trainable", "dtype", "batch_shape", "batch_input_shape", "layers", "input_layers", "output_layers"])
_TWO: Final = re.compile(r"Dense|EinsumDense|(Depthwise)?Conv[123]D(Transpose)?")
"""The classes whose weights are a kernel and a bias."""
_FIRST: Final = frozenset(["kernel", "gamma", "depthwise_kernel"])
"""The weights that come before a layer's others."""
_MAX_NODES: Final = 1_000_000
_MAX_DEPTH: Final = 50


class LayerReader:
    """The reader of one model. `notes` are sentences for the reader, `functions` the operations of layers by the names of their nodes."""

    def __init__(self, weights: HdfWeights | ModelObject | None) -> None:
        self.notes: list[str] = []
        self.functions: dict[str, ForeignFunction] = {}
        self._weights = weights
        self._nodes: list[ForeignNode] = []
        self._names: Counter[str] = Counter()
        self._shapes: dict[InputRef, Shape] = {}
        self._parameters: dict[str, list[tuple[str, str]]] = {}

    def model(self, config: dict[str, Any]) -> ForeignFunction:
        """The graph of the whole model."""
        inner = config["config"]
        kind = config["class_name"]
        outputs: list[InputRef] = []
        names: list[str] = []
        if _is_graph(config):
            outputs = self._expand(config, None, "", (), "", 0)
            layers = inner.get("output_layers") if isinstance(inner, dict) else None
            names = _output_names(layers) if kind != "Sequential" else []
        else:
            layer = str(inner.get("name", kind)) if isinstance(inner, dict) else kind
            self.notes.append(
                f"'{kind}' is a class of its own, whose graph is in the program and not in the file: only its weights are shown."
            )
            self._nodes.append(ForeignNode(layer, f"keras.{kind}", attrs=attrs_of(inner)))
            for path, weight in (self._weights.all if self._weights is not None else {}).items():
                parts = path.split("/")[:-1][:_MAX_DEPTH]
                modules = tuple([ModuleCall(".".join(parts[: count + 1])) for count in range(len(parts))])
                port = Port(path, weight.dtype, weight.shape)
                self._nodes.append(ForeignNode(path, "keras.Variable", outputs=(port,), weight=weight, kind="parameter", modules=modules))
        inputs = tuple([node.outputs[0] for node in self._nodes if node.kind == "input"])
        return ForeignFunction("main", inputs, tuple(outputs), tuple(names), self._nodes)

    def _expand(
        self, config: dict[str, Any], inputs: list[InputRef] | None, path: str, modules: tuple[ModuleCall, ...], stored: str, depth: int
    ) -> list[InputRef]:
        """Add the layers of a model. `inputs` is None for the model itself, which has its own. Returns its results."""
        if depth > _MAX_DEPTH:
            raise InvalidArgumentError(f"Models are nested deeper than {_MAX_DEPTH}")
        inner = config["config"]
        layers = inner["layers"] if isinstance(inner, dict) else inner  # the first versions of Keras wrote a list for Sequential
        places = _stored_places(layers, stored)
        if config["class_name"] == "Sequential":
            return self._chain(layers, inner if isinstance(inner, dict) else {}, inputs, path, modules, places, depth)
        port_types = dict(_port_types(layers))
        entries = _input_keys(inner.get("input_layers"))
        env: dict[Key, InputRef] = {}
        calls = []
        for layer in layers:
            name = _name(layer)
            if layer["class_name"] == "InputLayer":
                key = (name, 0, 0)
                if inputs is not None and key in entries:
                    number = entries.index(key)
                    env[key] = inputs[number] if number < len(inputs) else None
                else:
                    env[key] = self._input(layer, path, modules)
                continue
            for number, call in enumerate(layer.get("inbound_nodes") or []):
                calls.append((layer, number, list(_tensors(call)), call))
        while calls:
            later = []
            for layer, number, tensors, call in calls:
                keys = [key for key, _, _ in tensors]
                if not all(key in env for key in keys):
                    later.append((layer, number, tensors, call))
                    continue
                name = _name(layer)
                outs = self._call(
                    layer,
                    [env[key] for key in keys],
                    path,
                    modules,
                    places.get(name, ""),
                    depth,
                    number,
                    _ports(port_types, name, number),
                    _arguments(call),
                )
                for place, ref in enumerate(outs):
                    env[name, number, place] = ref
            if len(later) == len(calls):
                missing = next(key for key in (key for key, _, _ in later[0][2]) if key not in env)
                raise InvalidArgumentError(
                    f"Layer '{_name(later[0][0])}' takes result {missing[2]} of layer '{missing[0]}', which is not there"
                )
            calls = later
        return [env[key] for key in _input_keys(inner.get("output_layers"))]

    def _chain(
        self,
        layers: list[Any],
        config: dict[str, Any],
        inputs: list[InputRef] | None,
        path: str,
        modules: tuple[ModuleCall, ...],
        places: dict[str, str],
        depth: int,
    ) -> list[InputRef]:
        current = inputs[0] if inputs else None
        if inputs is None and (not layers or layers[0]["class_name"] != "InputLayer"):
            first = layers[0]["config"] if layers else {}
            shape = config.get("build_input_shape") or first.get("batch_input_shape") or first.get("batch_shape")
            entry = {"class_name": "InputLayer", "config": {"name": "input", "batch_shape": shape}}
            current = self._input(entry, path, modules)
        for number, layer in enumerate(layers):
            if layer["class_name"] == "InputLayer":
                current = self._input(layer, path, modules) if inputs is None else current
                continue
            after = layers[number + 1] if number + 1 < len(layers) else None
            shape = _shape((after.get("build_config") or {}).get("input_shape")) if after is not None else None
            port_types: dict[int, tuple[Shape, str]] = {0: (shape, "")} if shape is not None else {}
            outs = self._call(layer, [current], path, modules, places.get(_name(layer), ""), depth, 0, port_types, {})
            current = outs[0] if outs else None
        return [current]

    def _input(self, layer: dict[str, Any], path: str, modules: tuple[ModuleCall, ...]) -> InputRef:
        config = layer["config"]
        shape = _shape(config.get("batch_shape", config.get("batch_input_shape")))
        name = self._unique(path + _name(layer))
        self._add(
            ForeignNode(name, "keras.InputLayer", outputs=(Port(_name(layer), _dtype(config), shape),), kind="input", modules=modules)
        )
        self._shapes[name, 0] = shape
        return name, 0

    def _call(
        self,
        layer: dict[str, Any],
        inputs: list[InputRef],
        path: str,
        modules: tuple[ModuleCall, ...],
        stored: str,
        depth: int,
        number: int,
        port_types: dict[int, tuple[Shape, str]],
        arguments: dict[str, Attr],
    ) -> list[InputRef]:
        kind, name = layer["class_name"], _name(layer)
        title = name if number == 0 else f"{name}_call_{number}"
        if _is_graph(layer):
            around = (*modules, ModuleCall(f"{modules[-1].path}.{title}" if modules else title, kind))
            return self._expand(layer, inputs, f"{path}{title}/", around, stored, depth + 1)
        config = layer.get("config") or {}
        shapes = [self._shapes.get(ref) for ref in inputs]
        count = max(port_types, default=0) + 1
        ports = []
        for place in range(min(count, 1000)):
            shape, dtype = port_types.get(place, (None, ""))
            if shape is None and count == 1:
                shape = result_shape(kind, config, shapes)
            ports.append(Port("", dtype or _dtype(config), shape))
        parameters = self._variables(layer, path, modules, stored)
        unique = self._unique(path + title)
        bodies = self._operations(layer, number, unique)
        self._add(
            ForeignNode(
                unique,
                f"keras.{kind}",
                (*inputs, *[(parameter, 0) for parameter, _ in parameters]),
                tuple(ports),
                ("",) * len(inputs) + tuple([word for _, word in parameters]),
                {**attrs_of(config), **arguments},
                modules=modules,
                bodies=bodies,
                arguments=dict.fromkeys(bodies, tuple(range(len(inputs)))),
                doc=f"Call {number + 1} of layer '{name}', which has the same weights in all of its calls." if number else "",
            )
        )
        for place, port in enumerate(ports):
            self._shapes[unique, place] = port_types.get(place, (None, ""))[0] or port.shape  # type: ignore[assignment]  # sizes are no symbols here
        return [(unique, place) for place in range(len(ports))]

    def _operations(self, layer: dict[str, Any], number: int, node: str) -> dict[str, str]:
        """The function with the operations of a call, of a layer in this process; by its role."""
        operations = layer.get("operations") if isinstance(self._weights, ModelObject) else None
        if not operations:
            return {}
        self.functions[node] = ForeignFunction(node, make=operations[number])
        return {"operations": node}

    def _variables(self, layer: dict[str, Any], path: str, modules: tuple[ModuleCall, ...], stored: str) -> list[tuple[str, str]]:
        """The nodes of a layer's weights, made at its first call."""
        name = _name(layer)
        place = stored or f"\0{path}{name}"
        if place in self._parameters:
            return self._parameters[place]
        variables = []
        for inner, weight in self._arrays(name, stored).items():
            word = _variable_name(layer["class_name"], layer.get("config") or {}, inner)
            unique = self._unique(f"{path}{name}.{word}")
            port = Port(word, weight.dtype, weight.shape)
            self._add(ForeignNode(unique, "keras.Variable", outputs=(port,), weight=weight, kind="parameter", modules=modules))
            variables.append((unique, word))
        self._parameters[place] = variables
        return variables

    def _arrays(self, name: str, stored: str) -> dict[str, Any]:
        if self._weights is None:
            return {}
        below = self._weights.below(stored) if stored else {}
        if below:
            return {key: below[key] for key in sorted(below, key=_natural)}
        older = self._weights.below(f"model_weights/{name}") or self._weights.within("model_weights/", name)
        arrays = {re.sub(r"^\d{4}\.", "", key).partition(":")[0]: older[key] for key in older}
        # `kernel`, but `query/kernel` beside `key/kernel`.
        shared = Counter([end for key in arrays for end in _ends(key)])
        arrays = {next((end for end in _ends(key) if shared[end] == 1), key): weight for key, weight in arrays.items()}
        return {key: arrays[key] for key in sorted(arrays, key=lambda key: (key.rpartition("/")[2] not in _FIRST, key))}

    def _add(self, node: ForeignNode) -> None:
        if len(self._nodes) >= _MAX_NODES:
            raise InvalidArgumentError(f"The model has more than {_MAX_NODES:,} nodes")
        self._nodes.append(node)

    def _unique(self, name: str) -> str:
        self._names[name] += 1
        count = self._names[name]
        return name if count == 1 else self._unique(f"{name}_{count - 1}")


def attrs_of(config: Any) -> dict[str, Attr]:
    """The options of a layer as attrs. Parts that are objects are written by their class and name."""
    if not isinstance(config, dict):
        return {}
    return {str(key): _plain(value) for key, value in config.items() if key not in _LEFT_OUT and value is not None}


def _plain(value: Any, depth: int = 0) -> Attr:
    if isinstance(value, dict):
        if isinstance(value.get("class_name"), str):
            inner = value.get("config")
            name = inner.get("name") if isinstance(inner, dict) and value["class_name"] == "DTypePolicy" else value["class_name"]
            return str(name)
        return (
            "{" + ", ".join([f"{key}: {_plain(item, depth + 1)}" for key, item in list(value.items())[:50]]) + "}" if depth < 5 else "{...}"
        )
    if isinstance(value, list):
        return [_plain(item, depth + 1) for item in value[:1000]] if depth < 5 else "[...]"
    return value if isinstance(value, str | int | float | bool) else str(value)


def _is_graph(layer: dict[str, Any]) -> bool:
    config = layer.get("config")
    if layer["class_name"] == "Sequential":
        return isinstance(config, list) or (isinstance(config, dict) and isinstance(config.get("layers"), list))
    return isinstance(config, dict) and isinstance(config.get("layers"), list) and "output_layers" in config


def _name(layer: dict[str, Any]) -> str:
    name = layer.get("name") or layer["config"].get("name") or layer["class_name"]
    if not isinstance(name, str):
        raise InvalidArgumentError(f"Required a layer's name, got {str(name)[:40]}")
    return name


def _dtype(config: dict[str, Any]) -> str:
    policy = config.get("dtype")
    if isinstance(policy, dict):
        inner = policy.get("config")
        policy = inner.get("name") if isinstance(inner, dict) else None
    return policy.removeprefix("mixed_") if isinstance(policy, str) else ""


def _shape(sizes: Any) -> Shape:
    if not isinstance(sizes, list) or not all(size is None or (isinstance(size, int) and 0 <= size < 1 << 60) for size in sizes):
        return None
    return tuple(sizes)


def _tensors(value: Any, depth: int = 0) -> Iterator[tuple[Key, Shape, str]]:
    """The tensors in the arguments of a call, in the forms of Keras 3 and of Keras 2."""
    if depth > _MAX_DEPTH:
        return
    if isinstance(value, dict):
        if value.get("class_name") == "__keras_tensor__":
            inner = value["config"]
            name, node, place = inner["keras_history"]
            yield (str(name), int(node), int(place)), _shape(inner.get("shape")), str(inner.get("dtype", ""))
            return
        for item in value.values():
            yield from _tensors(item, depth + 1)
    elif isinstance(value, list):
        if _is_key(value) or (len(value) == 4 and _is_key(value[:3]) and isinstance(value[3], dict)):
            if value[0] != "_CONSTANT_VALUE":
                yield (value[0], value[1], value[2]), None, ""
            value = value[3:]
        for item in value:
            yield from _tensors(item, depth + 1)


def _is_key(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 3 and isinstance(value[0], str) and type(value[1]) is int and type(value[2]) is int


def _port_types(layers: list[Any]) -> Iterator[tuple[Key, tuple[Shape, str]]]:
    """The shapes and types that calls state of the tensors that they take."""
    for layer in layers:
        for call in layer.get("inbound_nodes") or []:
            for key, shape, dtype in _tensors(call):
                yield key, (shape, dtype)
        for number, results in enumerate(layer.get("outputs") or []):
            for place, result in enumerate(results):
                yield (_name(layer), number, place), (_shape(result["shape"]), str(result["dtype"]))


def _ports(port_types: dict[Key, tuple[Shape, str]], name: str, number: int) -> dict[int, tuple[Shape, str]]:
    of_call: dict[int, tuple[Shape, str]] = {}
    place = 0
    while place < 64:
        if (name, number, place) in port_types:
            of_call[place] = port_types[name, number, place]
        place += 1
    return of_call


def _arguments(call: Any) -> dict[str, Attr]:
    """The arguments of a call that are no tensors."""
    if isinstance(call, dict):
        arguments = {str(key): value for key, value in (call.get("kwargs") or {}).items() if value is not None}
        for number, value in enumerate(call.get("args") or []):
            arguments[f"arg{number}"] = value
    else:
        arguments = {str(key): value for item in call if isinstance(item, list) and len(item) == 4 for key, value in dict(item[3]).items()}
    return {key: _argument(value) for key, value in arguments.items() if not any(True for _ in _tensors(value))}


def _argument(value: Any) -> Attr:
    if isinstance(value, dict) and value.get("class_name") == "__slice__":
        inner = value["config"]
        return ":".join(["" if inner.get(key) is None else str(inner[key]) for key in ("start", "stop", "step")]).rstrip(":") or ":"
    return [_argument(item) for item in value] if isinstance(value, list) else _plain(value)


def _input_keys(nested: Any, depth: int = 0) -> list[Key]:
    if depth > _MAX_DEPTH or nested is None:
        return []
    if _is_key(nested):
        return [(nested[0], nested[1], nested[2])]
    items = nested.values() if isinstance(nested, dict) else nested
    return [key for item in items for key in _input_keys(item, depth + 1)]


def _output_names(outputs: Any) -> list[str]:
    names = [str(key) for key in outputs] if isinstance(outputs, dict) else [key[0] for key in _input_keys(outputs)]
    return names if len(set(names)) == len(names) == len(_input_keys(outputs)) else []


def _stored_places(layers: list[Any], stored: str) -> dict[str, str]:
    """The groups of the layers' weights: the classes in small letters, counted in order."""
    counts: Counter[str] = Counter()
    places = {}
    for layer in layers:
        if ".ops." in str(layer.get("module", "")):
            continue
        word = _snake(layer["class_name"])
        number = counts[word]
        counts[word] += 1
        places[_name(layer)] = f"{stored}{'/' if stored else ''}layers/{word}" + (f"_{number}" if number else "")
    return places


def _snake(name: str) -> str:
    name = re.sub(r"\W+", "", name)
    name = re.sub("(.)([A-Z][a-z]+)", r"\1_\2", name)
    return re.sub("([a-z])([A-Z])", r"\1_\2", name).lower()


def _variable_name(kind: str, config: dict[str, Any], inner: str) -> str:
    """The name of a weight: by the layer's class where that says it."""
    match = re.fullmatch(r"vars/(\d{1,6})", inner, re.ASCII)
    if match is None:
        return inner.replace("vars/", "").replace("/", ".") or "weight"
    names: tuple[str, ...] = ("kernel", "bias") if _TWO.fullmatch(kind) else ("embeddings",) if kind == "Embedding" else ()
    if kind in {"BatchNormalization", "LayerNormalization", "GroupNormalization"}:
        names = tuple([word for word, option in (("gamma", "scale"), ("beta", "center")) if config.get(option, True)])
        names += ("moving_mean", "moving_variance") if kind == "BatchNormalization" else ()
    number = int(match[1])
    return names[number] if number < len(names) else f"weight_{number}"


def _ends(path: str) -> list[str]:
    """The last part of a path, the last two, and all of it."""
    parts = path.split("/")
    return list(dict.fromkeys([parts[-1], "/".join(parts[-2:]), path]))


def _natural(text: str) -> tuple[tuple[int, str], ...]:
    return tuple([(int(part), "") if part.isdecimal() and len(part) < 10 else (-1, part) for part in text.split("/")])
