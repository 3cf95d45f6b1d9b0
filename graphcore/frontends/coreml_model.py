"""CoreML models: neural networks, ML programs and pipelines of models, as files and as packages."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from graphcore.errors import InvalidArgumentError
from graphcore.frontends.coreml_reader.building import Body
from graphcore.frontends.coreml_reader.messages import Message, check_depth, feature_port
from graphcore.frontends.coreml_reader.networks import read_network
from graphcore.frontends.coreml_reader.programs import ProgramReader
from graphcore.frontends.coreml_reader.values import Values
from graphcore.frontends.foreign import ForeignFunction, ForeignGraph, ForeignNode
from graphcore.frontends.protobuf_fields import fields_of
from graphcore.frontends.reading import source_bytes
from graphcore.support.files import file_bytes, is_file

if TYPE_CHECKING:
    from pathlib import Path

    from graphcore.frontends.frontend import Source

KIND: Final = "CoreML model (.mlmodel, .mlpackage)"
_MANIFEST: Final = "Manifest.json"
_DESCRIPTION: Final = frozenset({1, 10, 11, 12, 13, 14, 20, 21, 50, 100})
_MAX_VERSION: Final = 100
_NETWORKS: Final = (500, 403, 303)
_PROGRAM: Final = 502
_PIPELINES: Final = {202: "pipeline", 200: "pipeline of a classifier", 201: "pipeline of a regressor"}
_PLAIN: Final = 202
_OTHERS: Final = {
    300: "linear regressor",
    301: "support vector regressor",
    302: "ensemble of trees",
    304: "Bayesian probit regressor",
    400: "linear classifier",
    401: "support vector classifier",
    402: "classifier by an ensemble of trees",
    404: "nearest neighbours",
    555: "custom model",
    600: "one-hot encoder",
    601: "imputer",
    602: "feature vectorizer",
    603: "dictionary vectorizer",
    604: "scaler",
    606: "categorical mapping",
    607: "normalizer",
    609: "array feature extractor",
    610: "non-maximum suppression",
    900: "identity",
    2000: "text classifier",
    2001: "word tagger",
    2002: "vision feature print",
    2005: "word embedding",
}
_METADATA: Final = {1: "description", 2: "version", 3: "author", 4: "license"}


def sniff(source: Source) -> bool:
    """True iff the source is a CoreML model or a package of one."""
    if source.path is None or source.members:
        return False
    if source.path.is_dir():
        return is_file(source.path / _MANIFEST) and (source.path / "Data").is_dir()
    return _begins_model(source.head)


def _begins_model(head: bytes) -> bool:
    """True iff the bytes begin with a version and a description, whose first feature has name and type."""
    if len(head) < 4 or head[0] != 8 or not 1 <= head[1] <= _MAX_VERSION or head[2] != 0x12:
        return False
    place, size, shift = 3, 0, 0
    while place < len(head) and shift < 35:
        size |= (head[place] & 127) << shift
        place, shift = place + 1, shift + 7
        if head[place - 1] < 128:
            break
    with suppress(InvalidArgumentError):
        for number, value in fields_of(head[place : place + size], "The description"):
            if number not in _DESCRIPTION:
                return False
            if number in {1, 10} and isinstance(value, bytes):
                feature = Message(value)
                return set(feature.fields) <= {1, 2, 3} and {1, 3} <= set(feature.fields) and feature.text(1).isprintable()
    return False


def read(source: Source) -> ForeignGraph:
    """Read a CoreML model.

    Raises:
        GraphError: it is damaged, exceeds a limit, or is not supported.
    """
    path = source.path
    assert path is not None  # files and folders only are sniffed
    if path.is_dir():
        place = _in_package(path)
        return _model(Message(file_bytes(place)), Values(place.parent), path.name)
    return _model(Message(source_bytes(source)), Values(None), path.name)


def _in_package(folder: Path) -> Path:
    """The model that a package's manifest names.

    Raises:
        InvalidArgumentError: the manifest is damaged, or the model is not within the package.
    """
    try:
        manifest: Any = json.loads(file_bytes(folder / _MANIFEST))
        name = manifest["itemInfoEntries"][manifest["rootModelIdentifier"]]["path"]
        parts = name.split("/")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InvalidArgumentError(f"The manifest of '{folder.name}' does not name its model: {str(error)[:200]}") from None
    if any(part in {"", ".", ".."} or "\\" in part or "\0" in part for part in parts):
        raise InvalidArgumentError(f"The manifest of '{folder.name}' names '{name[:200]}', which is not in the package")
    place = folder.joinpath("Data", *parts)
    if not place.resolve().is_relative_to(folder.resolve()) or not is_file(place):
        raise InvalidArgumentError(f"The model '{name[:200]}' of '{folder.name}' is not in the package")
    return place


def _model(model: Message, values: Values, name: str) -> ForeignGraph:
    functions: dict[str, ForeignFunction] = {}
    facts = {"specification": str(model.number(1))}
    description = model.message(2) or Message(b"")
    metadata = description.message(100) or Message(b"")
    facts |= {word: metadata.text(field)[:500] for field, word in _METADATA.items() if metadata.text(field)}
    own = {key: value[:200].decode(errors="replace") for key, value in list(metadata.entries(100).items())[:30]}
    producer = own.pop("com.github.apple.coremltools.version", "")
    facts |= {key.removeprefix("com.github.apple.coremltools."): value for key, value in own.items()}
    kind, main = _function("main", model, values, functions, facts, 0)
    label = name.removesuffix(".mlmodel").removesuffix(".mlpackage")
    return ForeignGraph(f"CoreML {kind}", main, f"coremltools {producer}" if producer else "", label, functions, facts)


def _function(
    name: str, model: Message, values: Values, functions: dict[str, ForeignFunction], facts: dict[str, str], depth: int
) -> tuple[str, ForeignFunction]:
    """The kind of a model in words, and the model as a function."""
    check_depth(depth)
    description = model.message(2) or Message(b"")
    inputs, outputs = [feature_port(part) for part in description.parts(1)], [feature_port(part) for part in description.parts(10)]
    program = model.message(_PROGRAM)
    if program is not None:
        reader = ProgramReader(values, functions)
        parts = program.entries(2)
        first = description.text(21) if description.text(21) in parts else "main" if "main" in parts else next(iter(parts), "")
        if not first:
            raise InvalidArgumentError("The ML program has no function")
        main = reader.read(name, parts[first])
        for other, data in parts.items():
            if other != first:
                functions[other] = reader.read(other, data)
        facts["sets of ops"] = ", ".join(sorted(reader.opsets))
        return "ML program", main
    network = next((nested for field in _NETWORKS if (nested := model.message(field)) is not None), None)
    if network is not None:
        produced = set()
        for part in network.parts(1):
            produced.update(Message(part).texts(3))
        results = [port.name for port in outputs if port.name in produced]
        return "neural network", read_network(name, network, inputs, results, functions)
    body = Body(name, inputs)
    pipeline = next((field for field in _PIPELINES if field in model.fields), 0)
    if pipeline:
        chain = model.message(pipeline) or Message(b"")
        chain = chain if pipeline == _PLAIN else chain.message(1) or Message(b"")
        names = chain.texts(2)
        for number, part in enumerate(chain.parts(1)):
            key = f"{name}/{number}"
            stage = Message(part)
            word, functions[key] = _function(key, stage, values, functions, facts, depth + 1)
            _stage(body, names[number] if number < len(names) else f"model {number}", word, stage, {"model": key})
        return _PIPELINES[pipeline], body.function([port.name for port in outputs if body.type_of(port.name)])
    word = next((word for field, word in _OTHERS.items() if field in model.fields), "model of an unknown kind")
    _stage(body, word, word, model, {})
    return word, body.function([port.name for port in outputs])


def _stage(body: Body, label: str, kind: str, model: Message, bodies: dict[str, str]) -> None:
    """A model as one node."""
    description = model.message(2) or Message(b"")
    inputs = [feature_port(part).name for part in description.parts(1)]
    outputs = tuple([feature_port(part) for part in description.parts(10)])
    refs = tuple([body.ref(name) for name in inputs])
    op = "coreml." + "".join([word.capitalize() for word in kind.replace("-", " ").split()])
    body.add(ForeignNode(body.unused(label), op, refs, outputs, tuple(inputs), bodies=bodies))
