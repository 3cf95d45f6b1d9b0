"""The operations of MLIR modules as nodes, by the parser of `jaxlib`."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from graphcore.errors import GraphError, InvalidArgumentError
from graphcore.frontends.foreign import (
    Attr,
    ForeignFunction,
    ForeignGraph,
    ForeignNode,
    InputRef,
    Port,
    Size,
    WeightRef,
)
from graphcore.frontends.libraries import library
from graphcore.frontends.mlir_reader.bytecode import text_of
from graphcore.frontends.mlir_reader.constants import elements_of, held_elements, value_text
from graphcore.frontends.mlir_reader.locations import placed
from graphcore.frontends.mlir_reader.nesting import check_aliases, check_nesting
from graphcore.frontends.unique_names import UniqueNames

if TYPE_CHECKING:
    from graphcore.attrs import Array

_WHAT: Final = "an MLIR module"
_MAX_TEXT: Final = 500
_MAX_DEPTH: Final = 100
_ROLES: Final = {
    "stablehlo.while": ("cond", "body"),
    "mhlo.while": ("cond", "body"),
    "stablehlo.if": ("then", "else"),
    "mhlo.if": ("then", "else"),
    "scf.if": ("then", "else"),
    "scf.while": ("cond", "body"),
    "scf.for": ("body",),
}
_PARAMETER: Final = re.compile(r"(params|parameters|variables|weights)[\[.]")
"""The beginning of the name of an argument that JAX takes out of a tree of parameters: `params['dense']['kernel']`."""
_TENSOR: Final = re.compile(r"(?:tensor|memref|vector)<((?:[\d?]+x)*)(.*)>", re.DOTALL)


def read_module(data: bytes) -> ForeignGraph:
    """The graph of a module: its entry function, the others as functions.

    Raises:
        GraphError: the module is damaged, or `jaxlib` is missing.
    """
    ir = library("jaxlib.mlir.ir", "mlir", _WHAT)
    context = _context(ir)
    is_bytecode = data.startswith(b"ML\xefR")
    text = text_of(data) if is_bytecode else data.decode(errors="replace")
    encoded = text.encode()
    check_nesting(encoded)
    check_aliases(encoded)
    try:
        with context:
            module = ir.Module.parse(text)
            return _ModuleReader(ir, module, is_bytecode, text[max(text.rfind("{-#"), 0) :] if "{-#" in text else "").read()
    except GraphError:
        raise
    except Exception as error:  # noqa: BLE001 - the bindings raise errors of several classes
        raise InvalidArgumentError(f"The MLIR module cannot be parsed: {' '.join(str(error).split())[:300]}") from None


def _with_parameters(nodes: list[ForeignNode]) -> list[ForeignNode]:
    """The nodes of the entry function. Arguments out of a tree of parameters are such, if there are others."""
    arguments = [node for node in nodes if node.kind == "input"]
    parameters = {node.name for node in arguments if _PARAMETER.match(node.name)}
    if len(parameters) == len(arguments):
        return nodes
    return [replace(node, kind="parameter") if node.name in parameters else node for node in nodes]


def _context(ir: Any) -> Any:
    context = ir.Context()
    extension = library("jaxlib.mlir._mlir_libs._jax_mlir_ext", "mlir", _WHAT)
    registry = ir.DialectRegistry()
    extension.register_dialects(registry)
    context.append_dialect_registry(registry)
    for name in ("stablehlo", "chlo", "mhlo", "sdy"):
        dialect = library(f"jaxlib.mlir.dialects.{name}", "mlir", _WHAT)
        register = getattr(dialect, "register_dialect", None) or getattr(dialect, f"register_{name}_dialect", None)
        if register is not None:
            register(context)
    context.load_all_available_dialects()
    context.allow_unregistered_dialects = True
    return context


class _ModuleReader:
    """The reader of one module."""

    def __init__(self, ir: Any, module: Any, is_bytecode: bool, resources: str) -> None:
        self._ir = ir
        self._module = module
        self._is_bytecode = is_bytecode
        self._resources = resources
        self._functions: dict[str, ForeignFunction] = {}
        self._symbols: set[str] = set()
        self._dialects: Counter[str] = Counter()

    def read(self) -> ForeignGraph:
        root = self._module.operation
        functions = list(self._found(root, "", 0))
        self._symbols = {name for name, _ in functions}
        notes: list[str] = []
        entry = next((name for name, _ in functions if name.rpartition("::")[2] == "main"), functions[0][0] if functions else "")
        main: ForeignFunction | None = None
        for name, operation in functions:
            function = self._block(operation, name, {}, 0)
            if name == entry:
                main = function
            else:
                self._functions[name] = function
        if main is None:
            main = self._block(root, "module", {}, 0)
            notes.append("The module has no function: this is all that it holds.")
        main.nodes = _with_parameters(main.nodes)
        facts = {"dialects": ", ".join([f"{name} ({count})" for name, count in self._dialects.most_common(9)])}
        facts["form"] = "bytecode" if self._is_bytecode else "text"
        name = _text(root, "sym_name")
        kind = "StableHLO module" if "stablehlo" in self._dialects else "MLIR module"
        return ForeignGraph(kind, main, name=name, functions=self._functions, facts=facts, notes=notes)

    def _found(self, operation: Any, prefix: str, depth: int) -> list[tuple[str, Any]]:
        """The functions in a module and in the modules within it."""
        functions: list[tuple[str, Any]] = []
        if depth > _MAX_DEPTH:
            return functions
        for region in operation.regions:
            for block in region.blocks:
                for op_view in block.operations:
                    inner = op_view.operation
                    name = _text(inner, "sym_name")
                    if inner.name == "builtin.module":
                        functions += self._found(inner, f"{prefix}{name}::" if name else prefix, depth + 1)
                    elif name and any(len(part.blocks) for part in inner.regions):
                        functions.append((prefix + name, inner))
        return functions

    def _block(self, operation: Any, name: str, around: dict[Any, str], depth: int, number: int = 0) -> ForeignFunction:
        """The body of a function or a region. Values of the regions around it become further arguments."""
        if depth > _MAX_DEPTH:
            raise InvalidArgumentError(f"Regions are nested deeper than {_MAX_DEPTH}")
        body = _Body(self, name, around, depth)
        region = operation.regions[number]
        blocks = list(region.blocks)
        if len(blocks) > 1:
            raise InvalidArgumentError(f"'{name}' has {len(blocks)} blocks: required one, since branches between blocks form no graph")
        for block in blocks:
            body.fill(block)
        return body.function()

    def port(self, value_type: Any, name: str = "") -> Port:
        """A value's type as a port."""
        text = str(value_type)
        match = _TENSOR.fullmatch(text)
        if match is None:
            return Port(name, text[:_MAX_TEXT], None if "<" in text else ())
        sizes: tuple[Size, ...] = tuple([None if part == "?" else int(part) for part in match[1].split("x") if part])
        element, _, rest = match[2].partition(", ")
        if element.startswith("*x"):
            return Port(name, element[2:], None, rest[:_MAX_TEXT])
        return Port(name, element[:_MAX_TEXT], sizes, rest[:_MAX_TEXT])

    def region(self, operation: Any, number: int, name: str, around: dict[Any, str], depth: int) -> tuple[str, list[Any]]:
        """The key of the function for a region, and the values around it that it takes."""
        key = name
        while key in self._functions or key in self._symbols:
            key += "_"
        body = _Body(self, name, around, depth)
        blocks = list(operation.regions[number].blocks)
        if len(blocks) > 1:
            raise InvalidArgumentError(f"A region of '{operation.name}' has {len(blocks)} blocks: required one")
        for block in blocks:
            body.fill(block)
        self._functions[key] = body.function()
        return key, body.captured

    def count(self, op: str) -> None:
        """Count an operation's dialect."""
        self._dialects[op.partition(".")[0]] += 1

    def callee(self, operation: Any) -> str:
        """The function that a call names, "" for none that is here."""
        name = re.sub(r"^@|[\"]", "", _text(operation, "callee") or _text(operation, "call_target_name"))
        return name if name in self._symbols else ""

    def weight(self, operation: Any, port: Port) -> WeightRef:
        """A constant's elements, read on demand."""
        shape = tuple([size for size in port.shape or () if isinstance(size, int)])
        return WeightRef(port.dtype, shape, -1, partial(self._elements, operation, port.dtype, shape))

    def _elements(self, operation: Any, dtype: str, shape: tuple[int, ...]) -> Array:
        """A constant's elements. Operations are valid as long as their module is there, which this reader keeps."""
        return elements_of(self._ir, operation, dtype, shape, self._resources)


class _Body:
    """The nodes of one block."""

    def __init__(self, reader: _ModuleReader, name: str, around: dict[Any, str], depth: int) -> None:
        if depth > _MAX_DEPTH:
            raise InvalidArgumentError(f"Regions are nested deeper than {_MAX_DEPTH}")
        self._reader = reader
        self._name = name
        self._around = around
        self._depth = depth
        self._refs: dict[Any, InputRef] = {}
        self._nodes: list[ForeignNode] = []
        self._arguments: list[ForeignNode] = []
        self._results: tuple[InputRef, ...] = ()
        self._names = UniqueNames()
        self.captured: list[Any] = []

    def fill(self, block: Any) -> None:
        for number, value in enumerate(block.arguments):
            modules, _, name = placed(self._reader._ir, value.location)
            self._argument(value, name or "/".join([module.path for module in modules]) or f"arg{number}")
        operations = [op_view.operation for op_view in block.operations]
        for operation in operations:
            word = operation.name.rpartition(".")[2]
            if operation is operations[-1] and word in {"return", "yield"} and not len(operation.results):
                self._results = tuple([self._ref(value) for value in operation.operands])
                continue
            self._operation(operation)

    def function(self) -> ForeignFunction:
        inputs = tuple([node.outputs[0] for node in self._arguments])
        return ForeignFunction(self._name, inputs, self._results, nodes=[*self._arguments, *self._nodes])

    def _argument(self, value: Any, name: str) -> None:
        unique = self._names.unique(name)
        port = self._reader.port(value.type, unique)
        self._arguments.append(ForeignNode(unique, "mlir.argument", outputs=(port,), kind="input"))
        self._refs[value] = (unique, 0)

    def _ref(self, value: Any) -> InputRef:
        ref = self._refs.get(value)
        if ref is None:
            self.captured.append(value)
            self._argument(value, self._around.get(value, "outer"))
            ref = self._refs[value]
        return ref

    def _operation(self, operation: Any) -> None:
        op = operation.name
        reader = self._reader
        reader.count(op)
        modules, frames, _ = placed(reader._ir, operation.location)
        word = op.partition(".")[2] or op
        name = self._names.unique("/".join([*[module.path for module in modules], word]))
        ports = tuple([reader.port(value.type) for value in operation.results])
        held = held_elements(reader._ir, operation)
        if held is not None or (word == "constant" and len(ports) == 1 and "value" in operation.attributes):
            weight = reader.weight(operation, ports[0]) if ports[0].shape else None
            attrs = {} if weight is not None else {"value": _attr_at(operation, "value")}
            self._nodes.append(
                ForeignNode(name, op, outputs=ports, attrs=attrs, modules=modules, frames=frames, weight=weight, kind="constant")
            )
            self._refs[operation.results[0]] = (name, 0)
            return
        inputs = [self._ref(value) for value in operation.operands]
        bodies, arguments = self._bodies(operation, inputs)
        self._nodes.append(
            ForeignNode(
                name,
                op,
                tuple(inputs),
                ports,
                attrs={key: _attr_at(operation, key) for key in operation.attributes},
                modules=modules,
                frames=frames,
                bodies=bodies,
                arguments=arguments,
            )
        )
        for number, value in enumerate(operation.results):
            self._refs[value] = (name, number)

    def _bodies(self, operation: Any, inputs: list[InputRef]) -> tuple[dict[str, str], dict[str, tuple[int, ...]]]:
        """The functions of an operation's regions. Values that these take from around become inputs of the node."""
        bodies: dict[str, str] = {}
        arguments: dict[str, tuple[int, ...]] = {}
        callee = self._reader.callee(operation)
        if callee:
            bodies["f"] = callee
        roles = _ROLES.get(operation.name, ())
        own = len(inputs)
        around = {**self._around, **{value: ref[0].rpartition("/")[2] for value, ref in self._refs.items() if ref is not None}}
        regions = list(operation.regions)
        for number, region in enumerate(regions):
            if not len(region.blocks):
                continue
            role = roles[number] if number < len(roles) else "body" if len(regions) == 1 else f"region_{number}"
            title = f"{operation.name.partition('.')[2]}_{role}"
            taken = len(list(region.blocks[0].arguments))
            key, captured = self._reader.region(operation, number, title, around, self._depth + 1)
            bodies[role] = key
            places = list(range(taken)) if taken == own else [-1] * taken
            for value in captured:
                ref = self._ref(value)
                if ref not in inputs[own:]:
                    inputs.append(ref)
                places.append(own + inputs[own:].index(ref))
            arguments[role] = tuple(places)
        return bodies, arguments


def _attr_at(operation: Any, key: str) -> Attr:
    """An attribute of an operation as a plain value."""
    try:
        return attr_of(operation.attributes[key])
    except Exception:  # noqa: BLE001 - the bindings refuse elements of some types, such as complex ones, by errors of several classes
        return (value_text(operation) if key == "value" else "")[:_MAX_TEXT] or "dense elements"


def attr_of(attr: Any) -> Attr:
    """An attribute as a plain value; what is none is written as MLIR writes it."""
    kind = type(attr).__name__
    if kind in {"StringAttr", "BoolAttr"}:
        value = attr.value
        return value if isinstance(value, str | bool) else str(value)
    if kind == "IntegerAttr":
        return int(attr.value)
    if kind == "FloatAttr":
        return float(attr.value)
    if kind in {"DenseI64ArrayAttr", "DenseI32ArrayAttr", "DenseBoolArrayAttr", "DenseF32ArrayAttr", "DenseF64ArrayAttr"}:
        return list(attr)
    if kind.startswith("Dense"):
        return kind if "Resource" in kind or len(attr) > 100 else str(attr)[:_MAX_TEXT]
    return str(attr)[:_MAX_TEXT]


def _text(operation: Any, key: str) -> str:
    if key not in operation.attributes:
        return ""
    attr = operation.attributes[key]
    value = getattr(attr, "value", None)
    return value if isinstance(value, str) else ""
