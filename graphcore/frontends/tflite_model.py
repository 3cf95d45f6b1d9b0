"""TensorFlow Lite models, which are flatbuffers, read by the classes of the schema."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from graphcore.errors import GraphError, InvalidArgumentError
from graphcore.frontends.foreign import ForeignFunction, ForeignGraph
from graphcore.frontends.libraries import library
from graphcore.frontends.reading import mapped_bytes
from graphcore.frontends.runners.tflite_run import TfliteRunner
from graphcore.frontends.tflite_reader.budget import Budget
from graphcore.frontends.tflite_reader.graphs import OpCodes, SubgraphReader
from graphcore.frontends.tflite_reader.tensors import Buffers, text_of

if TYPE_CHECKING:
    from graphcore.frontends.frontend import Source

KIND: Final = "TensorFlow Lite model (.tflite)"
_MARK: Final = b"TFL3"
_SHOWN: Final = 30
_VERSION: Final = "min_runtime_version"
_CONVERSION: Final = "CONVERSION_METADATA"


def sniff(source: Source) -> bool:
    """True iff the source is a TFLite model."""
    return source.path is not None and source.head[4:8] == _MARK


def read(source: Source) -> ForeignGraph:
    """Read a TFLite model.

    Raises:
        GraphError: it is damaged, exceeds a limit, or `tflite` is missing.
    """
    assert source.path is not None  # files only are sniffed
    tflite = library("tflite", "tflite", "a TensorFlow Lite model")
    library("flatbuffers", "tflite", "a TensorFlow Lite model")
    data = mapped_bytes(source)
    with damage(f"'{source.path.name}'"):
        return _Reader(tflite.Model.GetRootAs(data, 0), data, f"'{source.path.name}'").read()


@contextmanager
def damage(what: str) -> Iterator[None]:
    """Raise the many errors that the library has for damaged bytes as one.

    Raises:
        InvalidArgumentError: the bytes are damaged.
    """
    try:
        yield
    except (GraphError, MemoryError, RecursionError):
        raise
    except Exception as error:  # noqa: BLE001 - the schema's classes check nothing, and fail anyhow
        raise InvalidArgumentError(f"{what} is a damaged TensorFlow Lite model: {str(error)[:200]}") from None


class _Reader:
    """Reads one model."""

    def __init__(self, model: Any, data: Any, what: str) -> None:
        self._model = model
        self._data = data
        self._what = what
        self._budget = Budget(len(data), what)

    def read(self) -> ForeignGraph:
        """The model as a graph; its first subgraph is the main one.

        Raises:
            InvalidArgumentError: it has no subgraph, or is inconsistent.
        """
        model, budget = self._model, self._budget
        count = budget.take(model.SubgraphsLength())
        if not count:
            raise InvalidArgumentError(f"{self._what} has no subgraph")
        subgraphs = [model.Subgraphs(number) for number in range(count)]
        keys = [f"{number}:{text_of(subgraph.Name())}" for number, subgraph in enumerate(subgraphs)]
        self._codes, self._buffers = OpCodes(model, budget), Buffers(model, self._data, budget)
        signatures = self._signatures(count)
        functions: dict[str, ForeignFunction] = {}
        numbers: list[dict[str, list[int]]] = []
        for number, subgraph in enumerate(subgraphs):
            named = next((names for place, names, _ in signatures.values() if place == number), {})
            reader = SubgraphReader(subgraph, self._codes, self._buffers, keys, named, budget)
            functions[keys[number]] = reader.read(text_of(subgraph.Name()) or f"subgraph_{number}")
            numbers.append(reader.numbers)
        facts = {"schema": str(model.Version()), **self._metadata()}
        for key, (place, _, words) in list(signatures.items())[:_SHOWN]:
            facts[f"signature {key}"] = words if place == 0 else f"{words}; subgraph {functions[keys[place]].name}"
        main = functions[keys[0]]
        notes = []
        if count > 1 and any(place > 0 for place, _, _ in signatures.values()):
            notes.append(f"The model has {count} subgraphs; this is the first, '{main.name}'. The others are the functions.")
        title, runner = text_of(subgraphs[0].Name()), partial(TfliteRunner, self._data, main, numbers[0])
        return ForeignGraph("TensorFlow Lite model", main, self._producer(facts), title, functions, facts, notes, runner=runner)

    def _producer(self, facts: dict[str, str]) -> str:
        version = facts.get("converter", "")
        said = text_of(self._model.Description())
        return f"{said} {version}".strip() if version else said

    def _signatures(self, count: int) -> dict[str, tuple[int, dict[int, str], str]]:
        """The signatures by key: the subgraph, the names of tensors by number, and both in words."""
        signatures: dict[str, tuple[int, dict[int, str], str]] = {}
        for number in range(self._budget.take(self._model.SignatureDefsLength())):
            signature = self._model.SignatureDefs(number)
            place = signature.SubgraphIndex()
            if place >= count:
                raise InvalidArgumentError(f"A signature is of subgraph {place}; there are {count}")
            sides = [self._named(signature, "Outputs"), self._named(signature, "Inputs")]
            outputs, inputs = [", ".join(side.values()) for side in sides]
            key = text_of(signature.SignatureKey()) or f"signature_{number}"
            signatures[key] = place, {**sides[0], **sides[1]}, f"{inputs or 'nothing'} -> {outputs or 'nothing'}"
        return signatures

    def _named(self, signature: Any, side: str) -> dict[int, str]:
        count = self._budget.take(getattr(signature, f"{side}Length")())
        maps = [getattr(signature, side)(place) for place in range(count)]
        return {entry.TensorIndex(): text_of(entry.Name()) for entry in maps}

    def _metadata(self) -> dict[str, str]:
        """Metadata as facts: short texts, and the sizes of others."""
        facts: dict[str, str] = {}
        for number in range(self._budget.take(self._model.MetadataLength())):
            metadata = self._model.Metadata(number)
            name = text_of(metadata.Name()) or f"metadata {number}"
            _, size = self._buffers.place(metadata.Buffer())
            if name == _CONVERSION:
                facts |= self._conversion(metadata.Buffer())
            elif name == _VERSION:
                facts["least runtime"] = self._buffers.bytes_of(metadata.Buffer())[:100].rstrip(b"\0").decode(errors="replace")
            elif len(facts) < _SHOWN:
                facts[f"metadata {name}"] = f"{size:,} bytes"
        return facts

    def _conversion(self, buffer: int) -> dict[str, str]:
        """The converter's version: the first text of the first table of a flatbuffer."""
        flatbuffers = library("flatbuffers", "tflite", "a TensorFlow Lite model")
        data = self._buffers.bytes_of(buffer)[: 1 << 16]
        try:
            root = flatbuffers.table.Table(data, flatbuffers.encode.Get(flatbuffers.packer.uoffset, data, 0))
            environment = flatbuffers.table.Table(data, root.Indirect(root.Pos + root.Offset(4)))
            place = environment.Offset(4)
            version = text_of(environment.String(environment.Pos + place)) if place else ""
        except Exception:  # noqa: BLE001 - a damaged note is left out
            return {}
        return {"converter": f"TensorFlow {version}"} if version.isprintable() and version else {}
