"""Schemas of ONNX's ops: documentation, names of inputs and outputs, and defaults of attributes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from graphcore.frontends.foreign import Attr

_STANDARD: Final = ("", "ai.onnx")


def qualified(domain: str, op: str) -> str:
    """The name of an op with its domain: `onnx.Conv`, `com.microsoft.FusedMatMul`."""
    return f"onnx.{op}" if domain in _STANDARD else f"{domain}.{op}"


class Schema:
    """The schema of one op; empty where ONNX has none.

    Attributes:
        doc: the documentation.
        inputs, outputs: the names of the arguments. The last may stand for any number.
        defaults: the values of attributes that may be left out.
    """

    def __init__(self, doc: str = "", inputs: tuple[str, ...] = (), outputs: tuple[str, ...] = (), *, many: bool = False) -> None:
        self.doc = doc
        self.inputs = inputs
        self.outputs = outputs
        self.many = many
        self.defaults: dict[str, Attr] = {}

    def input_names(self, count: int) -> tuple[str, ...]:
        """The names of `count` inputs."""
        if not self.inputs:
            return ()
        if not self.many or count <= len(self.inputs):
            return self.inputs[:count] if not self.many else (*self.inputs[:-1], f"{self.inputs[-1]}[0]")[:count]
        first = len(self.inputs) - 1
        return (*self.inputs[:first], *[f"{self.inputs[first]}[{number}]" for number in range(count - first)])


class Schemas:
    """The schemas for the versions of the op sets of one model.

    Args:
        onnx: the library.
        opsets: the version of each domain.
        value_of: the value of an attribute.
    """

    def __init__(self, onnx: Any, opsets: Mapping[str, int], value_of: Any) -> None:
        self._onnx = onnx
        self._opsets = opsets
        self._value_of = value_of
        self._known: dict[tuple[str, str], Schema] = {}
        self._by_name: dict[str, Schema] = {}

    def of(self, domain: str, op: str) -> Schema:
        """The schema of an op."""
        schema = self._known.get((domain, op))
        if schema is None:
            schema = self._known[domain, op] = self._made(domain, op)
            self._by_name[qualified(domain, op)] = schema
        return schema

    def doc(self, name: str) -> str:
        """The documentation of an op by its qualified name, "" without any."""
        schema = self._by_name.get(name)
        return "" if schema is None else schema.doc

    def _made(self, domain: str, op: str) -> Schema:
        domain = "" if domain in _STANDARD else domain
        version = self._opsets.get(domain, 0)
        try:
            definition = self._onnx.defs.get_schema(op, version, domain) if version > 0 else self._onnx.defs.get_schema(op, domain)
        except Exception:  # noqa: BLE001 - the library has an error class of its own for ops that it does not know
            return Schema()
        inputs = tuple([formal.name for formal in definition.inputs])
        many = bool(inputs) and definition.inputs[-1].option == self._onnx.defs.OpSchema.FormalParameterOption.Variadic
        schema = Schema((definition.doc or "").strip(), inputs, tuple([formal.name for formal in definition.outputs]), many=many)
        for name, attribute in definition.attributes.items():
            default = attribute.default_value
            if default.type:
                schema.defaults[name] = self._value_of(default)
        return schema
