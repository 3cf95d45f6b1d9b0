"""Types of function arguments under given attrs, precomputed for fast instantiation."""

from __future__ import annotations

from typing import Final

from graphcore.attrs import Attrs
from graphcore.definitions.op_tables import MAX_SLOTS
from graphcore.definitions.types import ArgDef, OpDef
from graphcore.dtypes import ALL_TYPES, INVALID, DType
from graphcore.errors import InvalidArgumentError, NotFoundError

Types = tuple[DType, ...]

_SINGLE: Final[dict[object, Types]] = {dtype: (dtype,) for base in ALL_TYPES for dtype in (base, base.ref)}
_INVALID: Final[Types] = (INVALID,)
_KEY: Final = "_signature_plan"


class ArgPlan:
    """The precomputed properties of an argument.

    Attributes:
        fixed: its types, if no attr decides them.
        type_attr: the attr that is its single type, if it is typed so.
        suffix: `:name`, which follows the node's name in references to an output.
    """

    __slots__ = ("arg", "fixed", "name", "suffix", "type_attr")

    def __init__(self, arg: ArgDef) -> None:
        self.arg = arg
        self.name = arg.name
        self.suffix = ":" + arg.name
        is_list = bool(arg.number_attr or arg.type_list_attr)
        self.fixed: Types | None = (arg.type,) if arg.type is not None and not is_list else None
        self.type_attr = arg.type_attr if not is_list else ""

    def types(self, attrs: Attrs) -> Types:
        """The types under these attrs.

        Raises:
            NotFoundError: an attr is missing.
            InvalidArgumentError: a length is negative or too large.
        """
        if self.fixed is not None:
            return self.fixed
        if self.type_attr and self.type_attr in attrs:
            return _SINGLE.get(attrs[self.type_attr], _INVALID)
        return arg_types(self.arg, attrs)


class SignaturePlan:
    """The arguments of an op and the defaults of its attrs; kept with the OpDef."""

    __slots__ = ("defaults", "inputs", "outputs")

    def __init__(self, op_def: OpDef) -> None:
        self.inputs = tuple([ArgPlan(arg) for arg in op_def.input_arg])
        self.outputs = tuple([ArgPlan(arg) for arg in op_def.output_arg])
        self.defaults = {attr.name: attr.default_value for attr in op_def.attr if attr.default_value is not None}


def plan_of(op_def: OpDef) -> SignaturePlan:
    """The plan of `op_def`, made on the first call."""
    plan: SignaturePlan | None = op_def.__dict__.get(_KEY)
    if plan is None:
        plan = op_def.__dict__[_KEY] = SignaturePlan(op_def)
    return plan


def arg_types(arg: ArgDef, attrs: Attrs) -> Types:
    """The types of `arg` under these attrs, without reference flags.

    Raises:
        NotFoundError: an attr is missing.
        InvalidArgumentError: a length is negative or too large.
    """
    if arg.type_list_attr:
        if arg.type_list_attr not in attrs:
            raise NotFoundError(f"type list attr not found: {arg.type_list_attr}", attr=arg.type_list_attr)
        types = attrs[arg.type_list_attr]
        return tuple([dtype if isinstance(dtype, DType) else INVALID for dtype in types]) if isinstance(types, tuple) else ()
    length = 1
    if arg.number_attr:
        length = _length(arg, attrs)
    dtype = arg.type
    if dtype is None and arg.type_attr:
        if arg.type_attr not in attrs:
            raise NotFoundError(f"type attr not found: {arg.type_attr}", attr=arg.type_attr)
        value = attrs[arg.type_attr]
        dtype = value if isinstance(value, DType) else None
    return (dtype or INVALID,) * length


def _length(arg: ArgDef, attrs: Attrs) -> int:
    value = attrs.get(arg.number_attr)
    if value is None:
        # As in TensorFlow, the error names the type attr, although the length is missing.
        raise NotFoundError(f"type attr not found: {arg.type_attr}", attr=arg.number_attr)
    if not isinstance(value, int) or not 0 <= value <= MAX_SLOTS:
        raise InvalidArgumentError(
            f"Length of '{arg.name}' must be 0 to {MAX_SLOTS}, but attr '{arg.number_attr}' is {value!r}", attr=arg.number_attr
        )
    return value
