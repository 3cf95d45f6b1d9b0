"""Neural networks of CoreML: lists of layers."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np

from graphcore.frontends.coreml_reader.building import Body
from graphcore.frontends.coreml_reader.messages import Message, check_depth
from graphcore.frontends.foreign import ForeignFunction, ForeignNode, Port, WeightRef

if TYPE_CHECKING:
    from graphcore.attrs import Array
    from graphcore.frontends.foreign import Attr

_LAYERS: Final = {
    100: "convolution",
    120: "pooling",
    130: "activation",
    140: "innerProduct",
    150: "embedding",
    160: "batchnorm",
    165: "mvn",
    170: "l2normalize",
    175: "softmax",
    180: "lrn",
    190: "crop",
    200: "padding",
    210: "upsample",
    211: "resizeBilinear",
    212: "cropResize",
    220: "unary",
    230: "add",
    231: "multiply",
    240: "average",
    245: "scale",
    250: "bias",
    260: "max",
    261: "min",
    270: "dot",
    280: "reduce",
    290: "loadConstant",
    300: "reshape",
    301: "flatten",
    310: "permute",
    320: "concat",
    330: "split",
    340: "sequenceRepeat",
    345: "reorganizeData",
    350: "slice",
    400: "simpleRecurrent",
    410: "gru",
    420: "uniDirectionalLSTM",
    430: "biDirectionalLSTM",
    500: "custom",
    600: "copy",
    605: "branch",
    615: "loop",
    620: "loopBreak",
    625: "loopContinue",
}
_ACTIVATIONS: Final = {
    5: "linear",
    10: "ReLU",
    15: "leakyReLU",
    20: "thresholdedReLU",
    25: "PReLU",
    30: "tanh",
    31: "scaledTanh",
    40: "sigmoid",
    41: "sigmoidHard",
    50: "ELU",
    70: "softsign",
    71: "softplus",
    80: "parametricSoftplus",
}
_ATTRS: Final[dict[str, dict[int, str]]] = {
    "convolution": {
        1: "outputChannels",
        2: "kernelChannels",
        10: "nGroups",
        20: "kernelSize",
        30: "stride",
        40: "dilationFactor",
        60: "isDeconvolution",
    },
    "innerProduct": {1: "inputChannels", 2: "outputChannels", 10: "hasBias"},
    "pooling": {10: "kernelSize", 20: "stride", 60: "globalPooling"},
    "batchnorm": {1: "channels", 6: "instanceNormalization"},
    "concat": {100: "sequenceConcat"},
    "permute": {1: "axis"},
    "flatten": {1: "mode"},
    "reshape": {1: "targetShape", 2: "mode"},
}
_WEIGHTS: Final[dict[str, dict[int, str]]] = {
    "convolution": {90: "weights", 91: "bias"},
    "innerProduct": {20: "weights", 21: "bias"},
    "batchnorm": {15: "gamma", 16: "beta", 17: "mean", 18: "variance"},
    "embedding": {20: "weights", 21: "bias"},
    "scale": {2: "scale", 5: "bias"},
    "bias": {2: "bias"},
    "loadConstant": {2: "data"},
}
_POOLS: Final = ("MAX", "AVERAGE", "L2")
_BODIES: Final = {"branch": {1: "then", 2: "else"}, "loop": {3: "cond", 5: "body"}}


def read_network(
    name: str, network: Message, inputs: list[Port], outputs: list[str], functions: dict[str, ForeignFunction], outer: Body | None = None
) -> ForeignFunction:
    """The layers of a network as a function; those of branches and loops become functions of their own.

    Raises:
        InvalidArgumentError: a layer takes what none before it gives.
    """
    body = Body(name, inputs, outer)
    check_depth(name.count("\n"))
    for part in network.parts(1):
        _layer(body, Message(part), functions)
    return body.function(outputs)


def _layer(body: Body, layer: Message, functions: dict[str, ForeignFunction]) -> None:
    field = next((number for number in layer.fields if number >= 100), 0)
    kind = _LAYERS.get(field, f"layer_{field}")
    params = layer.message(field) or Message(b"")
    label = body.unused(layer.text(1) or kind)
    attrs: dict[str, Attr] = {}
    for number, word in _ATTRS.get(kind, {}).items():
        if number in params.fields:
            numbers = params.numbers(number)
            attrs[word] = numbers[0] if len(numbers) == 1 else numbers
    op = kind
    if kind == "activation":
        op = next((_ACTIVATIONS[number] for number in params.fields if number in _ACTIVATIONS), kind)
    elif kind == "pooling":
        number = params.number(1)
        attrs["type"] = _POOLS[number] if number < len(_POOLS) else number
    elif kind == "convolution":
        attrs["padding"] = "same" if 51 in params.fields else "valid"
    elif kind == "custom":
        op = params.text(10) or kind
    inputs = [body.ref(name) for name in layer.texts(2)]
    words = [""] * len(inputs)
    for number, word in _WEIGHTS.get(kind, {}).items():
        if params.raw(number):
            inputs.append((_weight(body, f"{label}.{word}", params.raw(number)), 0))
            words.append(word)
    bodies, arguments = {}, {}
    for number, role in _BODIES.get(kind, {}).items():
        inner = params.message(number)
        if inner is None:
            continue
        key = f"{body.name}\n{label}/{role}"
        function = read_network(key, inner, [], [], functions, body)
        functions[key] = function
        bodies[role] = key
        arguments[role] = tuple(range(len(inputs), len(inputs) + len(function.inputs)))
        inputs += [body.ref(port.name) for port in function.inputs]
        words += ["from around"] * len(function.inputs)
    ports = tuple([Port(name) for name in layer.texts(3)])
    body.add(ForeignNode(label, f"coreml.{op}", tuple(inputs), ports, tuple(words), attrs, bodies=bodies, arguments=arguments))


def _weight(body: Body, name: str, data: bytes) -> str:
    """A node for weights, which are flat in the file."""
    label = body.unused(name)
    params = Message(data)
    half, full, raw = params.raw(2), b"".join(params.parts(1)), params.raw(30)
    if raw:
        weight = WeightRef("uint8", (len(raw),), len(raw), partial(_load, raw, "u1"))
    elif half:
        weight = WeightRef("float16", (len(half) // 2,), len(half), partial(_load, half, "<f2"))
    else:
        weight = WeightRef("float32", (len(full) // 4,), len(full), partial(_load, full, "<f4"))
    quantization = "of the file" if 40 in params.fields else ""
    port = Port(label, weight.dtype, weight.shape, quantization=quantization)
    body.add(ForeignNode(label, "coreml.Weights", outputs=(port,), weight=weight, kind="parameter"))
    return label


def _load(data: bytes, kind: str) -> Array:
    dtype = np.dtype(kind)
    return np.frombuffer(data[: len(data) // dtype.itemsize * dtype.itemsize], dtype)
