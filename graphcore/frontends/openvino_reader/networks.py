"""Networks of OpenVINO models, those in bodies of loops and branches too, as functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from graphcore.errors import InvalidArgumentError
from graphcore.frontends.foreign import ForeignFunction, ForeignNode, InputRef, ModuleCall, Port
from graphcore.frontends.openvino_reader.constants import word_of
from graphcore.frontends.unique_names import UniqueNames

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

    from graphcore.frontends.foreign import Attr, Size, WeightRef
    from graphcore.frontends.openvino_reader.constants import Elements

PREFIX: Final = "openvino."
_BODIES: Final = {"body": "body", "then_body": "then", "else_body": "else"}
_MAPS: Final = {"body": "port_map", "then_body": "then_port_map", "else_body": "else_port_map"}
_MODULE: Final = "__module."
_MAX_TEXT: Final = 2000
_PLACES: Final = ("offset", "size")
_KINDS: Final = {"Parameter": "input", "Result": "output", "Const": "constant", "Constant": "constant"}


class NetworkReader:
    """Reads the networks of one model.

    Attributes:
        functions: the bodies of nodes, by key.
        opsets: the number of nodes of each set of ops.
    """

    def __init__(self, elements: Elements) -> None:
        self._elements = elements
        self.functions: dict[str, ForeignFunction] = {}
        self.opsets: dict[str, int] = {}

    def read(self, root: Element, name: str) -> ForeignFunction:
        """A network as a function.

        Args:
            root: the element with its layers and edges.
            name: its name.

        Raises:
            InvalidArgumentError: it is inconsistent.
        """
        layers = root.findall("layers/layer")
        ids = [layer.get("id", "") for layer in layers]
        if len(set(ids)) != len(ids):
            raise InvalidArgumentError(f"Network '{name}' has two layers with one id")
        unique = UniqueNames().unique
        names = [unique((layer.get("name") or f"layer_{layer.get('id')}")[:_MAX_TEXT]) for layer in layers]
        labels = dict(zip(ids, names, strict=True))
        places = {
            (layer.get("id", ""), port.get("id", "")): place for layer in layers for place, port in enumerate(layer.findall("output/port"))
        }
        sources: dict[tuple[str, str], InputRef] = {}
        for edge in root.findall("edges/edge"):
            start = edge.get("from-layer", ""), edge.get("from-port", "")
            end = edge.get("to-layer", ""), edge.get("to-port", "")
            if start not in places or end[0] not in labels:
                raise InvalidArgumentError(f"An edge of network '{name}' goes from {start} to {end}, which are not both there")
            if end in sources:
                raise InvalidArgumentError(f"Two edges of network '{name}' go to {end}")
            sources[end] = labels[start[0]], places[start]
        nodes = [self._node(layer, labels[key], sources, f"{name}/{labels[key]}") for layer, key in zip(layers, ids, strict=True)]
        inputs = tuple([node.outputs[0] for node in nodes if node.kind == "input" and node.outputs])
        results = [node for node in nodes if node.kind == "output"]
        outputs = tuple([node.inputs[0] for node in results if node.inputs])
        return ForeignFunction(name, inputs, outputs, tuple([node.name for node in results]), nodes)

    def _node(self, layer: Element, label: str, sources: dict[tuple[str, str], InputRef], path: str) -> ForeignNode:
        kind = layer.get("type") or "Layer"
        key = layer.get("id", "")
        opset = layer.get("version", "")
        if opset:
            self.opsets[opset] = self.opsets.get(opset, 0) + 1
        data = layer.find("data")
        attrs: dict[str, Attr] = {} if data is None else {name: value[:_MAX_TEXT] for name, value in data.attrib.items()}
        weight: WeightRef | None = None
        if kind in {"Const", "Constant"} and data is not None:
            weight = self._elements.weight(data.attrib, f"Constant '{label}'")
            attrs = {name: value for name, value in attrs.items() if name not in _PLACES}
        ports = layer.findall("input/port")
        refs = [sources.get((key, port.get("id", ""))) for port in ports]
        while refs and refs[-1] is None:
            refs.pop()
        bodies, arguments = self._bodies(layer, [port.get("id", "") for port in ports], path)
        outputs = () if kind == "Result" else tuple([_port(port) for port in layer.findall("output/port")])
        return ForeignNode(
            label,
            f"{PREFIX}{kind}",
            tuple(refs),
            outputs,
            attrs=attrs,
            modules=_modules(label),
            bodies=bodies,
            arguments=arguments,
            weight=weight,
            kind=_KINDS.get(kind, "op"),
            doc=_notes(layer),
        )

    def _bodies(self, layer: Element, ports: list[str], path: str) -> tuple[dict[str, str], dict[str, tuple[int, ...]]]:
        bodies: dict[str, str] = {}
        arguments: dict[str, tuple[int, ...]] = {}
        for tag, role in _BODIES.items():
            body = layer.find(tag)
            if body is None:
                continue
            key = f"{path}:{role}"
            while key in self.functions:
                key += "'"
            self.functions[key] = function = ForeignFunction(key)
            self.functions[key] = function = self.read(body, f"{layer.get('name') or 'layer'}_{role}")
            bodies[role] = key
            external_ports = {
                element.get("internal_layer_id", ""): ports.index(element.get("external_port_id", ""))
                for element in layer.findall(f"{_MAPS[tag]}/input")
                if element.get("external_port_id", "") in ports
            }
            parameters = [element.get("id", "") for element in body.findall("layers/layer") if element.get("type") == "Parameter"]
            arguments[role] = tuple([external_ports.get(element, -1) for element in parameters])[: len(function.inputs)]
        return bodies, arguments


def _port(port: Element) -> Port:
    """The type of a port."""
    names = [name for name in port.get("names", "").split(",") if name]
    return Port(
        names[0][:_MAX_TEXT] if names else "", word_of(port.get("precision", "")), tuple([_size(dim.text) for dim in port.findall("dim")])
    )


def _size(text: str | None) -> Size:
    word = (text or "").strip()
    if word.isdecimal() and word.isascii() and len(word) < 19:
        return int(word)
    return None if word in {"-1", "?", ""} else word[:60]


def _modules(name: str) -> tuple[ModuleCall, ...]:
    """The modules by which PyTorch's nodes are named: `__module.layer1.0/aten::add/Add`."""
    if not name.startswith(_MODULE):
        return ()
    parts = name.removeprefix(_MODULE).partition("/")[0].split(".")[:20]
    return tuple([ModuleCall(".".join(parts[: count + 1])) for count in range(len(parts))])


def _notes(layer: Element) -> str:
    """The notes at a layer: the names that it had before others were fused into it, and the like."""
    noted = [
        f"{attribute.get('name', '')}: {attribute.get('value') or ''}".strip(": ")
        for attribute in layer.findall("rt_info/attribute")
        if attribute.get("name")
    ]
    return "; ".join(noted[:20])[:_MAX_TEXT]
