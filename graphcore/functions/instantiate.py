"""Instantiation of functions: binds attrs, resolves inputs to node and port, adds _Arg and _Retval."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NoReturn

import msgspec

from graphcore.attrs import Attrs, AttrValue, Func, Placeholder
from graphcore.definitions.attr_value_util import check_attr_kind
from graphcore.definitions.node_def_util import format_node_for_error
from graphcore.definitions.op_def_util import summarize_op_def
from graphcore.definitions.types import ArgDef, FunctionDef, NodeDef, OpDef
from graphcore.definitions.value_text import summarize_attr_value
from graphcore.dtypes import DType, int32
from graphcore.errors import GraphError, InternalError, InvalidArgumentError, NotFoundError
from graphcore.functions.arg_types import SignaturePlan, Types, arg_types, plan_of
from graphcore.functions.placeholders import given_attr, substitute_placeholders
from graphcore.registry import op_registry
from graphcore.text.signature import arg_text
from graphcore.text.statements import LookUp

INTS_ON_DEVICE_ATTR: Final = "experimental_ints_on_device"
_MAY_HOLD_PLACEHOLDERS: Final = frozenset({Placeholder, Func, tuple})


class InstantiationResult(msgspec.Struct, frozen=True):
    """A function with bound attrs: `_Arg` nodes, body, `_Retval` nodes.

    Inputs are `node` or `node:port`.
    """

    arg_types: list[DType]
    ret_types: list[DType]
    nodes: list[NodeDef]


def instantiate_function(fdef: FunctionDef, attrs: Mapping[str, object], get_function: LookUp | None = None) -> InstantiationResult:
    """The body of `fdef` for these attrs.

    Args:
        fdef: the function.
        attrs: a value for each attr that has no default; others are ignored.
        get_function: returns the OpDef of an op or function by name; the global registry by default.

    Raises:
        InvalidArgumentError: an unbound placeholder, an undefined input or return, or one of another type, a name used twice.
        NotFoundError: an attr or an op is missing.
    """
    return FunctionInstantiationHelper(fdef, attrs, get_function or op_registry.look_up_op_def).run()


# The meaning of a name in the body: True for an argument, its node, its first port, its types.
_Item = tuple[bool, int, int, Types]


class FunctionInstantiationHelper:
    """One instantiation: indexes arguments and node outputs, then adds nodes, then returns.

    Args:
        fdef, attrs, get_function: those of `instantiate_function`.

    Attributes:
        nodes, arg_types, ret_types: the results so far.

    Raises:
        NotFoundError, InvalidArgumentError: an attr of the function is missing or invalid.
    """

    __slots__ = ("arg_types", "attrs", "fdef", "get_function", "ints_on_device", "items", "names", "nodes", "owners", "plans", "ret_types")

    def __init__(self, fdef: FunctionDef, attrs: Mapping[str, object], get_function: LookUp) -> None:
        self.fdef = fdef
        self.get_function = get_function
        self.attrs = validate_signature_with_attrs(fdef.signature, attrs)
        self.ints_on_device = fdef.attr.get(INTS_ON_DEVICE_ATTR) is True
        self.items: dict[str, _Item] = {}
        self.owners: dict[str, int] = {}
        self.plans: dict[str, SignaturePlan] = {}
        self.names: list[str] = []
        self.nodes: list[NodeDef] = []
        self.arg_types: list[DType] = []
        self.ret_types: list[DType] = []

    def run(self) -> InstantiationResult:
        """Run all the steps.

        Raises:
            NotFoundError, InvalidArgumentError: as `instantiate_function`.
        """
        signature = self.fdef.signature
        for position, arg in enumerate(signature.input_arg):
            try:
                self.build_input_arg_index(arg, self.fdef.arg_attr.get(position))
            except GraphError as error:
                _fail(error, f"In {arg_text(arg)}")
        body = self.fdef.node_def
        bound = [self.bound_node_attrs(node) for node in body]
        self.names += [node.name for node in body]
        number = len(self.nodes)
        for node, (attrs, plan) in zip(body, bound, strict=True):
            try:
                self.build_node_output_index(node, attrs, plan, number)
            except GraphError as error:
                _fail(error, f"In {format_node_for_error(node)}")
            number += 1
        for node, (attrs, plan) in zip(body, bound, strict=True):
            try:
                self.instantiate_node(node, attrs, plan)
            except GraphError as error:
                _fail(error, f"In {format_node_for_error(node)}")
        for arg in signature.output_arg:
            try:
                self.add_return_node(arg)
            except GraphError as error:
                _fail(error, f"In function output {arg_text(arg)}")
        return InstantiationResult(self.arg_types, self.ret_types, self.nodes)

    def add_item(self, name: str, item: _Item) -> None:
        """Index the meaning of `name`.

        Raises:
            InvalidArgumentError: the name is in use.
        """
        if name in self.items:
            raise InvalidArgumentError(f"Duplicated {'arg' if item[0] else 'ret'} name: {name}")
        self.items[name] = item

    def get_item_or_none(self, name: str) -> _Item | None:
        """The meaning of `name`, None if it is unknown.

        It consists of True for an argument, the node, the first port, and the types.
        """
        return self.items.get(name)

    def build_input_arg_index(self, arg: ArgDef, attrs: Attrs | None) -> None:
        """Index an argument and add its `_Arg` nodes, one an element.

        Raises:
            NotFoundError, InvalidArgumentError: an attr is missing, or its name is taken.
        """
        types = arg_types(arg, self.attrs)
        if not types:
            raise InternalError("Expected a list of at least one dtype")
        first = len(self.nodes)
        self.add_item(arg.name, (True, first, 0, types))
        self.owners[arg.name] = first
        for index, dtype in enumerate(types):
            number = first + index
            self.add_item(f"{arg.name}:{index}", (True, number, 0, (dtype,)))
            name = arg.name if len(types) == 1 else f"{arg.name}_{index}"
            op = "_DeviceArg" if self.ints_on_device and dtype is int32 else "_Arg"
            node_attrs: dict[str, AttrValue] = {"T": dtype.ref if arg.is_ref else dtype, "index": number}
            if attrs is not None:
                node_attrs.update(attrs)
            self.nodes.append(NodeDef(name, op, (), "", node_attrs))
            self.names.append(name)
        self.arg_types += types

    def bound_node_attrs(self, node: NodeDef) -> tuple[dict[str, AttrValue], SignaturePlan]:
        """The node's attrs with placeholders bound and the op's defaults added."""
        bound = self.attrs
        attrs: dict[str, AttrValue] = {}
        for name, value in node.attr.items():
            if type(value) in _MAY_HOLD_PLACEHOLDERS:
                bound_value = bound.get(value.name) if type(value) is Placeholder else substitute_placeholders(bound.get, value)
                if bound_value is None:
                    raise InvalidArgumentError(
                        f"Failed to bind all placeholders in {summarize_attr_value(value)}", node=node.name, attr=name
                    )
                value = bound_value
            attrs[name] = value
        plan = self.plans.get(node.op)
        if plan is None:
            plan = self.plans[node.op] = plan_of(self.get_function(node.op))
        for name, default in plan.defaults.items():
            if name not in attrs:
                attrs[name] = default
        return attrs, plan

    def build_node_output_index(self, node: NodeDef, attrs: Attrs, plan: SignaturePlan, number: int) -> None:
        """Index the outputs of a body node: each as a whole, and each element.

        Raises:
            NotFoundError, InvalidArgumentError: an attr is missing, or a name is taken.
        """
        name = node.name
        self.owners.setdefault(name, number)
        if not plan.outputs:
            self.add_item(name, (False, number, 0, ()))
            return
        items = self.items
        port = 0
        for output in plan.outputs:
            types = output.types(attrs)
            base = name + output.suffix
            if base in items:
                raise InvalidArgumentError(f"Duplicated ret name: {base}")
            items[base] = (False, number, port, types)
            for index, dtype in enumerate(types):
                element = f"{base}:{index}"
                if element in items:
                    raise InvalidArgumentError(f"Duplicated ret name: {element}")
                items[element] = (False, number, port + index, (dtype,))
            port += len(types)

    def instantiate_node(self, node: NodeDef, attrs: dict[str, AttrValue], plan: SignaturePlan) -> None:
        """Add a body node with its inputs named by node and port.

        Raises:
            NotFoundError, InvalidArgumentError: an input is missing or of another type, or there are too many.
        """
        names = node.input
        inputs: list[str] = []
        position = 0
        for arg in plan.inputs:
            types = arg.types(attrs)
            count = len(types)
            done = 0
            while done < count:
                if position >= len(names):
                    raise InvalidArgumentError(f"Attempt to access beyond input size: {position} >= {len(names)}")
                name = names[position]
                position += 1
                item = self.items.get(name)
                if item is None:
                    raise InvalidArgumentError(f"input {name} is not found: {format_node_for_error(node)}", input=name)
                got = item[3]
                if got != (types if done == 0 and len(got) == count else types[done : done + len(got)]):
                    _fail_input(arg.name, types, done, name, got)
                inputs += self._ports(item) if len(got) != 1 else (self._port(item),)
                done += len(got)
        for index in range(position, len(names)):
            inputs.append(self._control(names[index], index))
        self.nodes.append(
            NodeDef(node.name, node.op, tuple(inputs), node.device, attrs, node.original_node_names, node.original_func_names)
        )

    def _port(self, item: _Item) -> str:
        name = self.names[item[1]]
        return name if item[2] == 0 else f"{name}:{item[2]}"

    def _ports(self, item: _Item) -> list[str]:
        is_arg, number, port, types = item
        if is_arg:
            return self.names[number : number + len(types)]
        name = self.names[number]
        return [name if index == 0 else f"{name}:{index}" for index in range(port, port + len(types))]

    def _control(self, name: str, index: int) -> str:
        if not name.startswith("^"):
            raise InvalidArgumentError(f"Expected input[{index}] == '{name}' to be a control input.", input=name)
        number = self.owners.get(name[1:])
        if number is None:
            item = self.items.get(name[1:])
            if item is None:
                raise InvalidArgumentError(f"input[{index}] == '{name}', is not found.", input=name)
            number = item[1]
        return "^" + self.names[number]

    def add_return_node(self, arg: ArgDef) -> None:
        """Add the `_Retval` nodes of a return, one an element.

        Raises:
            InvalidArgumentError: it is missing, or of another type.
        """
        value = self.fdef.ret.get(arg.name)
        if value is None:
            raise InvalidArgumentError(f"Return {arg.name} missing.")
        types = arg_types(arg, self.attrs)
        item = self.items.get(value)
        if item is None:
            raise InvalidArgumentError(f"Return {arg.name} -> {value} is not found.", input=value)
        if types != item[3]:
            raise InvalidArgumentError(f"Invalid ret types {arg.name} : {_type_names(types)} vs. {_type_names(item[3])}")
        for index, (dtype, source) in enumerate(zip(types, self._ports(item), strict=True)):
            name = f"{arg.name}_RetVal" if len(types) == 1 else f"{arg.name}_RetVal_{index}"
            op = "_DeviceRetval" if self.ints_on_device and dtype is int32 else "_Retval"
            self.nodes.append(NodeDef(name, op, (source,), "", {"T": dtype, "index": len(self.ret_types)}))
            self.ret_types.append(dtype)


def arg_num_type(attrs: Attrs, arg: ArgDef) -> tuple[bool, Types]:
    """True for a list of types, and the types of an argument under these attrs.

    Raises:
        NotFoundError: an attr is missing.
        InvalidArgumentError: a length is negative or too large.
    """
    return bool(arg.type_list_attr), arg_types(arg, attrs)


def get_set_attrs(fdef: FunctionDef) -> dict[str, AttrValue]:
    """The attrs set on a function itself."""
    return dict(fdef.attr)


def validate_signature_with_attrs(signature: OpDef, attrs: Mapping[str, object]) -> dict[str, AttrValue]:
    """All attrs that placeholders may name: the caller's values and the signature's defaults.

    Raises:
        NotFoundError: an attr without a default is not given.
        InvalidArgumentError: a value is of another kind, or a placeholder itself.
    """
    bound: dict[str, AttrValue] = {}
    kinds = {attr.name: attr.type for attr in signature.attr}
    for name, value in attrs.items():
        bound[name] = given_attr(value, kinds.get(name))
    for attr in signature.attr:
        if attr.name in bound:
            try:
                check_attr_kind(bound[attr.name], attr.type)
            except GraphError as error:
                _fail(error, f"for attr '{attr.name}'")
        elif attr.default_value is not None:
            bound[attr.name] = attr.default_value
        else:
            raise NotFoundError(f"Attr {attr.name} is not found from {summarize_op_def(signature)}", attr=attr.name)
    return bound


def _fail_input(arg: str, types: Types, done: int, name: str, got: Types) -> NoReturn:
    if len(got) > len(types) - done:
        raise InvalidArgumentError(f"Input {name} too long for {arg}", input=name)
    index = next(index for index, dtype in enumerate(got) if dtype is not types[done + index])
    wanted = types[done + index].text
    raise InvalidArgumentError(
        f"input {arg}[{done + index}] expected type {wanted} != {got[index].text}, the type of {name}[{index}]", input=name
    )


def _type_names(types: Types) -> str:
    return ", ".join([dtype.text for dtype in types])


def _fail(error: GraphError, where: str) -> NoReturn:
    """Raise the same error with one more line about its place."""
    raise type(error)(f"{error.message}\n\t{where}", op=error.op, node=error.node, attr=error.attr, input=error.input) from None
