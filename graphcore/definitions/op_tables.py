"""Tables for building and checking nodes, computed once for each OpDef and cached on it."""

from __future__ import annotations

from typing import Any, Final

from graphcore.attrs import AttrValue, Placeholder
from graphcore.definitions.attr_value_util import KIND_TYPES, check_attr_kind
from graphcore.definitions.op_def_util import summarize_op_def
from graphcore.definitions.types import ArgDef, AttrDef, NodeDef, OpDef
from graphcore.dtypes import ALL_TYPES, INVALID, DType
from graphcore.errors import InvalidArgumentError, NotFoundError

MAX_SLOTS: Final = 1 << 22
"""No list arg may be longer: a number in a file must not claim all memory."""
_MAX_CACHED: Final = 4096
_KEY: Final = "_tables"

Types = tuple[DType, ...]
InOutTypes = tuple[Types, Types]


class AttrCheck:
    """A fast check of an attr's value. Values that fail it are checked again with the full rules."""

    __slots__ = ("allowed", "attr", "minimum", "scalar")

    def __init__(self, attr: AttrDef) -> None:
        self.attr = attr
        limited = attr.has_minimum or attr.type == "type"
        self.scalar = None if limited else KIND_TYPES.get(attr.type)
        self.allowed: frozenset[AttrValue] | None = None
        self.minimum = attr.minimum if attr.type == "int" and attr.has_minimum and attr.allowed_values is None else None
        if attr.type == "type" and attr.allowed_values is None:
            self.allowed = frozenset(ALL_TYPES)
        if attr.allowed_values is not None:
            self.scalar = None
            values = attr.allowed_values
            # `1 in {True}` holds in Python; types and strings have no such equals.
            if attr.type in {"type", "string"} and all(isinstance(value, DType | bytes) for value in values):
                self.allowed = frozenset(value for value in values if not isinstance(value, DType) or not value.is_ref)


class InputPlan:
    """Requirements on one `input` call of a node builder.

    Attributes:
        arg: the input.
        is_list: True if the call takes several tensors.
        expected: the type, None if an attr decides it.
        is_ref: True if a reference is required.
    """

    __slots__ = ("arg", "expected", "is_list", "is_ref", "type_attr")

    def __init__(self, arg: ArgDef) -> None:
        self.arg = arg
        self.is_list = bool(arg.number_attr or arg.type_list_attr)
        self.is_ref = arg.is_ref
        self.type_attr = arg.type_attr
        self.expected = arg.type.ref if arg.type is not None and arg.is_ref else arg.type


class OpTables:
    """Everything precomputed about one OpDef.

    Attributes:
        attrs: the AttrDef by name.
        checks: the check of each attr.
        defaults: the default of each attr that has one.
        inputs: the requirements on each `input` call of a node builder.
        fixed: all types, if they depend on no attr.
        type_attr: the attr that alone decides all types, if its kind is type.
        type_attrs: all attrs that the types depend on.
        types: the types computed so far, by the value of `type_attr` or by the values of `type_attrs`.
    """

    __slots__ = ("attrs", "checks", "defaults", "fixed", "inputs", "number_attrs", "op_def", "type_attr", "type_attrs", "types")

    def __init__(self, op_def: OpDef) -> None:
        self.op_def = op_def
        self.attrs = {attr.name: attr for attr in op_def.attr}
        self.checks = {attr.name: AttrCheck(attr) for attr in op_def.attr if not attr.name.startswith("_")}
        self.defaults = {attr.name: attr.default_value for attr in op_def.attr if attr.default_value is not None}
        self.inputs = tuple(InputPlan(arg) for arg in op_def.input_arg)
        args = op_def.input_arg + op_def.output_arg
        names = [name for arg in args for name in (arg.number_attr, arg.type_attr, arg.type_list_attr) if name]
        self.type_attrs = tuple(dict.fromkeys(names))
        self.number_attrs = tuple(dict.fromkeys(arg.number_attr for arg in args if arg.number_attr))
        simple = len(self.type_attrs) == 1 and all(not arg.number_attr and not arg.type_list_attr for arg in args)
        self.type_attr = self.type_attrs[0] if simple else ""
        self.types: dict[Any, InOutTypes] = {}
        self.fixed: InOutTypes | None = None
        if not self.type_attrs and all(arg.type is not None for arg in args):
            self.fixed = self.compute_types(NodeDef("", op_def.name))

    def compute_types(self, node_def: NodeDef) -> InOutTypes:
        """Compute the types without a cache look-up and cache them.

        Raises:
            NotFoundError: an attr is missing.
            InvalidArgumentError: an attr or arg is invalid.
        """
        types = _types_of(self.op_def.input_arg, node_def), _types_of(self.op_def.output_arg, node_def)
        if len(self.types) >= _MAX_CACHED:
            self.types.clear()
        if self.type_attr:
            self.types[node_def.attr[self.type_attr]] = types
        elif self.type_attrs:
            self.types[tuple([node_def.attr[name] for name in self.type_attrs])] = types
        return types


def tables_of(op_def: OpDef) -> OpTables:
    """The tables of `op_def`, made on the first call."""
    tables: OpTables | None = op_def.__dict__.get(_KEY)
    if tables is None:
        tables = op_def.__dict__[_KEY] = OpTables(op_def)
    return tables


def in_out_types_for_node(node_def: NodeDef, op_def: OpDef) -> InOutTypes:
    """The types of the node's inputs and outputs, list args flattened; shared tuples.

    Raises:
        NotFoundError: an attr is missing.
        InvalidArgumentError: an attr or arg is invalid.
    """
    tables = op_def.__dict__.get(_KEY) or tables_of(op_def)
    if tables.fixed is not None:
        fixed: InOutTypes = tables.fixed
        return fixed
    attr = node_def.attr
    try:
        types: InOutTypes
        if tables.type_attr:
            types = tables.types[attr[tables.type_attr]]
        else:
            for name in tables.number_attrs:
                # A bool would match the entry of the equal int.
                if type(attr[name]) is not int:
                    return tables.compute_types(node_def)
            types = tables.types[tuple([attr[name] for name in tables.type_attrs])]
    except (KeyError, TypeError):
        return tables.compute_types(node_def)
    return types


def attr_of(node_def: NodeDef, name: str) -> AttrValue:
    """The node's attr `name`.

    Raises:
        NotFoundError: it has none.
    """
    try:
        return node_def.attr[name]
    except KeyError:
        where = "" if name.startswith("_") else f"\n\t [[{{{{node {node_def.name}}}}}]]"
        raise NotFoundError(f"No attr named '{name}' in NodeDef:{where}", op=node_def.op, node=node_def.name, attr=name) from None


def _types_of(args: tuple[ArgDef, ...], node_def: NodeDef) -> Types:
    types: list[DType] = []
    for arg in args:
        types += add_arg_to_sig(node_def, arg)
    return tuple(types)


def add_arg_to_sig(node_def: NodeDef, arg: ArgDef) -> list[DType]:
    """The types of arg `arg` in this node.

    Raises:
        NotFoundError: an attr is missing.
        InvalidArgumentError: an attr or the arg is invalid.
    """
    if arg.number_attr:
        length = _length(node_def, arg.number_attr)
        dtype = _one_type(node_def, arg, "Missing type or type_attr field in")
        if dtype is INVALID and type(node_def.attr.get(arg.type_attr)) is Placeholder:
            # As in TensorFlow, the type of a list is checked and that of a single tensor is not.
            text = "AttrValue had value with unexpected type 'placeholder'"
            raise InvalidArgumentError(text, op=node_def.op, node=node_def.name, attr=arg.type_attr)
        types = [dtype] * length
    elif arg.type_list_attr and not arg.type_attr:
        types = _type_list(node_def, arg.type_list_attr)
    else:
        types = [_one_type(node_def, arg, "No type fields in")]
    if not arg.is_ref:
        return types
    if any(dtype.is_ref for dtype in types):
        raise InvalidArgumentError(f"Requested reference to a reference type: {short_text(arg)}", op=node_def.op, node=node_def.name)
    return [dtype.ref for dtype in types]


def _length(node_def: NodeDef, attr: str) -> int:
    value = attr_of(node_def, attr)
    if type(value) is not int:
        raise _wrong_kind(value, "int", node_def, attr)
    if value > MAX_SLOTS:
        raise InvalidArgumentError(f"Number of outputs is too big: {value}", op=node_def.op, node=node_def.name, attr=attr)
    if value < 0:
        raise InvalidArgumentError(f"Value for number_attr() {value} < 0", op=node_def.op, node=node_def.name, attr=attr)
    return value


def _one_type(node_def: NodeDef, arg: ArgDef, missing: str) -> DType:
    if not arg.type_attr:
        if arg.type is None:
            raise InvalidArgumentError(f"{missing} {short_text(arg)}", op=node_def.op, node=node_def.name)
        return arg.type
    value = attr_of(node_def, arg.type_attr)
    if type(value) is Placeholder:
        return INVALID
    if type(value) is not DType:
        raise _wrong_kind(value, "type", node_def, arg.type_attr)
    return value


def _type_list(node_def: NodeDef, attr: str) -> list[DType]:
    value = attr_of(node_def, attr)
    types = [item for item in value if type(item) is DType] if type(value) is tuple else []
    if type(value) is tuple and len(types) != len(value):
        raise _wrong_kind(value, "list(type)", node_def, attr)
    if len(types) > MAX_SLOTS:
        raise InvalidArgumentError(f"Number of outputs is too big: {len(types)}", op=node_def.op, node=node_def.name, attr=attr)
    return types


def _wrong_kind(value: AttrValue, kind: str, node_def: NodeDef, attr: str) -> InvalidArgumentError:
    try:
        check_attr_kind(value, kind)
    except InvalidArgumentError as error:
        return InvalidArgumentError(error.message, op=node_def.op, node=node_def.name, attr=attr)
    raise AssertionError(f"{value!r} is a {kind}")


def short_text(arg: ArgDef) -> str:
    """The arg in protobuf's short form: `name: "a" type_attr: "T"`."""
    fields = [f'name: "{arg.name}"']
    if arg.type is not None:
        fields.append(f"type: {arg.type.enum_name}")
    fields += [f'{field}: "{getattr(arg, field)}"' for field in ("type_attr", "number_attr", "type_list_attr") if getattr(arg, field)]
    if arg.is_ref:
        fields.append("is_ref: true")
    return " ".join(fields)


Ranges = dict[str, tuple[int, int]]


def name_ranges_for_node(node_def: NodeDef, op_def: OpDef) -> tuple[Ranges, Ranges]:
    """The half-open range of slots of each input arg and each output arg.

    Raises:
        NotFoundError: an attr is missing.
        InvalidArgumentError: an attr or arg is invalid.
    """
    return _ranges(op_def.input_arg, node_def, op_def), _ranges(op_def.output_arg, node_def, op_def)


def _ranges(args: tuple[ArgDef, ...], node_def: NodeDef, op_def: OpDef) -> Ranges:
    ranges: Ranges = {}
    start = 0
    for arg in args:
        if arg.number_attr:
            count = _length(node_def, arg.number_attr)
        elif arg.type_list_attr:
            count = len(_type_list(node_def, arg.type_list_attr))
        elif arg.type_attr or arg.type is not None:
            count = 1
        else:
            raise InvalidArgumentError(f"Argument '{arg.name}' incorrectly specified in op definition: {summarize_op_def(op_def)}")
        ranges[arg.name] = start, start + count
        start += count
    return ranges
