"""The subgraphs of a TFLite model as functions."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from graphcore.errors import InvalidArgumentError
from graphcore.frontends.foreign import ForeignFunction, ForeignNode, InputRef
from graphcore.frontends.tflite_reader.options import options_of, word_of
from graphcore.frontends.tflite_reader.tensors import Buffers, FileTensor, text_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from graphcore.frontends.foreign import Attr
    from graphcore.frontends.tflite_reader.budget import Budget

INPUT: Final = "tfl.Input"
CONSTANT: Final = "tfl.Constant"
VARIABLE: Final = "tfl.Variable"
_CUSTOM: Final = 32
_OLD_CODES: Final = 127
"""The number that the older field of an op's code has where the newer one holds the code."""
_SUBGRAPH: Final = "_subgraph_index"
_MAX_CUSTOM: Final = 1 << 16
_MAX_ITEMS: Final = 500
_MAX_DEPTH: Final = 8


class OpCodes:
    """The names of ops by their places in the table of codes."""

    def __init__(self, model: Any, budget: Budget) -> None:
        self.names: list[str] = []
        self.versions: list[int] = []
        for number in range(budget.take(model.OperatorCodesLength())):
            code = model.OperatorCodes(number)
            old = code.DeprecatedBuiltinCode()
            builtin = code.BuiltinCode() if old >= _OLD_CODES or code.BuiltinCode() > old else old
            custom = text_of(code.CustomCode())
            self.names.append(f"tfl.{custom or 'CUSTOM'}" if builtin == _CUSTOM else f"tfl.{word_of('BuiltinOperator', builtin)}")
            self.versions.append(code.Version())

    def place(self, number: int) -> int:
        """A place in the table.

        Raises:
            InvalidArgumentError: there is none.
        """
        if not 0 <= number < len(self.names):
            raise InvalidArgumentError(f"An operator has code {number}; there are {len(self.names)}")
        return number


class SubgraphReader:
    """Reads one subgraph.

    Args:
        subgraph: the subgraph.
        codes, buffers: those of the model.
        keys: the keys of all subgraphs, by number.
        names: names of arguments by the numbers of their tensors, as a signature gives them.
        budget: limits what is read.

    Attributes:
        numbers: the tensors that the nodes give, by the names of these.
    """

    def __init__(self, subgraph: Any, codes: OpCodes, buffers: Buffers, keys: list[str], names: Mapping[int, str], budget: Budget) -> None:
        self._subgraph = subgraph
        self._codes = codes
        self._keys = keys
        self._given = names
        self._budget = budget
        self._tensors = [FileTensor(subgraph.Tensors(number), buffers, budget) for number in range(budget.take(subgraph.TensorsLength()))]
        self.numbers: dict[str, list[int]] = {}
        self._values: dict[int, InputRef] = {}
        self._names: dict[str, int] = {}
        self._made: set[int] = set()
        self._nodes: list[ForeignNode] = []

    def read(self, name: str) -> ForeignFunction:
        """The subgraph as a function.

        Raises:
            InvalidArgumentError: it names tensors or operators that are not there.
        """
        subgraph = self._subgraph
        arguments = self._numbers(subgraph, "Inputs")
        for number in arguments:
            tensor = self._tensor(number)
            label = self._unused(self._given.get(number) or tensor.name or "input")
            self._nodes.append(ForeignNode(label, INPUT, outputs=(tensor.port(),), kind="input"))
            self._values[number] = (label, 0)
            self.numbers[label] = [number]
        operators = [subgraph.Operators(place) for place in range(self._budget.take(subgraph.OperatorsLength()))]
        outputs = [self._numbers(operator, "Outputs") for operator in operators]
        labels = []
        for operator, results in zip(operators, outputs, strict=True):
            labels.append(self._unused(self._label(operator, results)))
            self.numbers[labels[-1]] = [number for number in results if number >= 0]
            for place, number in enumerate(self.numbers[labels[-1]]):
                if number in self._made:
                    raise InvalidArgumentError(f"Tensor '{self._tensor(number).name}' is made by two operators")
                self._tensor(number)
                self._made.add(number)
                self._values[number] = (labels[-1], place)
        for operator, label in zip(operators, labels, strict=True):
            self._add(operator, label)
        results = self._numbers(subgraph, "Outputs")
        names = tuple([self._given.get(number) or _first(self._tensor(number).name) for number in results])
        refs = tuple([self._value(number) for number in results])
        inputs = tuple([self._tensor(number).port(self._given.get(number, "")) for number in arguments])
        return ForeignFunction(name, inputs, refs, names, self._nodes)

    def _add(self, operator: Any, label: str) -> None:
        code = self._codes.place(operator.OpcodeIndex())
        attrs: dict[str, Attr] = {}
        defaults: dict[str, Attr] = {}
        for union in ("BuiltinOptions", "BuiltinOptions2"):
            options, left_out = options_of(union, getattr(operator, f"{union}Type")(), getattr(operator, union)(), self._budget)
            attrs |= options
            defaults |= left_out
        bodies = self._bodies(attrs, defaults)
        attrs |= self._custom(operator)
        intermediates = self._numbers(operator, "Intermediates")
        if intermediates:
            attrs["intermediates"] = [self._tensor(number).name for number in intermediates[:20] if number >= 0]
        if self._codes.versions[code] > 1:
            attrs["version"] = self._codes.versions[code]
        refs = tuple([None if number < 0 else self._value(number) for number in self._numbers(operator, "Inputs")])
        while refs and refs[-1] is None:
            refs = refs[:-1]
        ports = tuple([self._tensor(number).port() for number in self.numbers[label]])
        self._nodes.append(ForeignNode(label, self._codes.names[code], refs, ports, attrs=attrs, defaults=defaults, bodies=bodies))

    def _bodies(self, attrs: dict[str, Attr], defaults: dict[str, Attr]) -> dict[str, str]:
        """The subgraphs that an operator calls, which are no attrs then."""
        bodies: dict[str, str] = {}
        for table in (attrs, defaults):
            for name in [name for name in table if name.endswith(_SUBGRAPH) or name == "subgraph"]:
                number = table.pop(name)
                if not isinstance(number, int) or number < 0:
                    continue
                if number >= len(self._keys):
                    raise InvalidArgumentError(f"An operator calls subgraph {number}; there are {len(self._keys)}")
                bodies[name.removesuffix(_SUBGRAPH)] = self._keys[number]
        return bodies

    def _custom(self, operator: Any) -> dict[str, Attr]:
        """The options of a custom op: a table where they are a flexbuffer, else their bytes as a text."""
        size = operator.CustomOptionsLength()
        if not size:
            return {}
        if self._budget.take(size) > _MAX_CUSTOM:
            return {"custom_options": f"{size:,} bytes"}
        data = operator.CustomOptionsAsNumpy().tobytes()
        try:
            flexbuffers = import_module("flatbuffers.flexbuffers")
            value = _plain(flexbuffers.GetRoot(data), [_MAX_ITEMS], 0)
        except Exception:  # noqa: BLE001 - anything comes from bytes that are no flexbuffer
            value = None
        if isinstance(value, dict):
            return {str(key)[:200]: _attr(item) for key, item in value.items()}
        return {"custom_options": data.hex(" ")[:2000]}

    def _value(self, number: int) -> InputRef:
        """The output of a tensor; a node for a constant or a variable, which no operator makes.

        Raises:
            InvalidArgumentError: there is no such tensor.
        """
        ref = self._values.get(number)
        if ref is not None:
            return ref
        tensor = self._tensor(number)
        label = self._unused(tensor.name or "constant")
        op, kind = (VARIABLE, "buffer") if tensor.is_variable else (CONSTANT, "constant")
        self._nodes.append(ForeignNode(label, op, outputs=(tensor.port(),), weight=tensor.weight(), kind=kind))
        self.numbers[label] = [number]
        self._values[number] = (label, 0)
        return self._values[number]

    def _tensor(self, number: int) -> FileTensor:
        if not 0 <= number < len(self._tensors):
            raise InvalidArgumentError(f"Tensor {number} is used; there are {len(self._tensors)}")
        return self._tensors[number]

    def _label(self, operator: Any, results: list[int]) -> str:
        """The name of an operator: that of its first result, or its op."""
        first = next((self._tensor(number).name for number in results if number >= 0), "")
        return _first(first) or self._codes.names[self._codes.place(operator.OpcodeIndex())].rpartition(".")[2]

    def _unused(self, name: str) -> str:
        base = name
        while name in self._names:
            self._names[base] += 1
            name = f"{base}_{self._names[base]}"
        self._names[name] = 0
        return name

    def _numbers(self, table: Any, field: str) -> list[int]:
        count = self._budget.take(getattr(table, f"{field}Length")())
        return getattr(table, f"{field}AsNumpy")().tolist() if count else []


def _first(name: str) -> str:
    """The first of the names that a fused operator has: `a/Relu` of `a/Relu;a/BiasAdd;b/Conv2D`."""
    parts = [part for part in name.split(";") if part]
    return next((part for part in parts if "/" in part), parts[0] if parts else "")


def _plain(reference: Any, left: list[int], depth: int) -> Any:
    """A value of a flexbuffer, whose parts may claim to be within each other many times over."""
    left[0] -= 1
    if left[0] < 0 or depth > _MAX_DEPTH:
        return "…"
    if reference.IsMap:
        table = reference.AsMap
        count = min(len(table), left[0])
        keys, values = table.Keys, table.Values
        return {keys[place].AsKey: _plain(values[place], left, depth + 1) for place in range(count)}
    if reference.IsVector or reference.IsTypedVector or reference.IsFixedTypedVector:
        vector = (
            reference.AsVector
            if reference.IsVector
            else reference.AsTypedVector
            if reference.IsTypedVector
            else reference.AsFixedTypedVector
        )
        return [_plain(vector[place], left, depth + 1) for place in range(min(len(vector), left[0]))]
    value = reference.Value
    return value if isinstance(value, bool | int | float | str) else str(value)[:500]


def _attr(value: Any) -> Attr:
    attr: Attr = str(value)[:2000] if isinstance(value, dict) else value
    return attr
