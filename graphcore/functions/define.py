"""The Define form: inputs are written as result names and resolved to `node:out_arg:index`."""

from __future__ import annotations

from typing import Any, NoReturn

import msgspec

from graphcore.attrs import Attrs
from graphcore.definitions.types import ArgDef, FunctionDef, NodeDef, OpDef
from graphcore.errors import InvalidArgumentError
from graphcore.registry import op_registry
from graphcore.text.function_parser import make_function, read_function
from graphcore.text.scanner import Scanner, fail_at
from graphcore.text.statements import LookUp, ParsedBody, Statement


def define_function(text: str, attrs: str = "", look_up: LookUp | None = None) -> FunctionDef:
    """Define a function from text, with inputs written as result names, as in gradient functions.

        _[T:{half, float, double}](x:T, y:T, dz:T) -> (dx:T, dy:T) {
          sx = Shape[T=$T](x)
          rx, ry = BroadcastGradientArgs(sx, sy)
          dx = Reshape[T=$T](sum_gx, sx) @ dz
        }

    A node lists a name for each of its results; one name for a list result stands for the whole list. `node:out_arg:index` is used
    unchanged. A return needs a `return` line only if nothing in the body has its name.

    Args:
        text: the definition; the name (default `_`) and the attr list may be left out.
        attrs: the attr list, if the text has none: `T:{half, float, double}`.
        look_up: returns the OpDef of an op by name; the global registry by default.

    Raises:
        InvalidArgumentError: a syntax error, an undefined input, results without names.
        NotFoundError: an op is unknown.
    """
    look = look_up or op_registry.look_up_op_def
    signature, flags, body = read_function(Scanner(text), look, attrs)
    return define_body(signature, flags, body, look, text)


def define_body(signature: OpDef, flags: dict[str, Any], body: ParsedBody, look_up: LookUp, text: str | None = None) -> FunctionDef:
    """Resolve the body's result names to `node:out_arg:index`.

    Args:
        text: the source text, for errors. None if there is none: then each result must have a name, and each input be one,
            as in TensorFlow.

    Raises:
        InvalidArgumentError: an undefined input or return, results without names.
        NotFoundError: an op is unknown.
    """
    names = _Names(signature, text)
    nodes = []
    stateful = False
    for statement in body.statements:
        op_def = look_up(statement.node.op)
        stateful = stateful or op_def.is_stateful
        nodes.append(names.converted(statement))
        names.add(statement, op_def)
    ret = {output.name: names.returned(output.name, body.ret) for output in signature.output_arg}
    ret.update({name: names.tensors.get(value, value) for name, value in body.ret.items() if name not in ret})
    return make_function(signature, {"is_stateful": stateful, **flags}, msgspec.structs.replace(body, ret=ret), nodes)


class _Names:
    """Result names with their tensors (`tensors`) and their nodes or arguments (`owners`)."""

    def __init__(self, signature: OpDef, text: str | None) -> None:
        self.function = signature.name
        self.text = text
        self.tensors = {arg.name: arg.name for arg in signature.input_arg}
        self.owners = dict(self.tensors)

    def converted(self, statement: Statement) -> NodeDef:
        node = statement.node
        inputs = [self._control(name) if name.startswith("^") else self._data(name, statement) for name in node.input]
        return msgspec.structs.replace(node, input=tuple(inputs))

    def add(self, statement: Statement, op_def: OpDef) -> None:
        node, names = statement.node, statement.names
        self.owners.update(dict.fromkeys(names, node.name))
        single = op_def.output_arg[0] if len(op_def.output_arg) == 1 and len(names) == 1 else None
        if single is not None and self.text is not None and _is_list(single) and _length(single, node.attr, op_def) != 1:
            self.tensors[names[0]] = f"{node.name}:{single.name}"
            return
        position = 0
        for arg in op_def.output_arg:
            length = _length(arg, node.attr, op_def)
            if length is None:
                self._fail(statement, f"Length of output '{arg.name}' in '{node.name}' of {self.function} is not known")
            for index in range(length):
                if position >= len(names):
                    self._fail(statement, f"Missing ret for output '{arg.name}' in '{node.name}' of {self.function}")
                self.tensors[names[position]] = f"{node.name}:{arg.name}:{index}"
                position += 1
        if position < len(names) and not (position == 0 and len(names) == 1):
            self._fail(statement, f"No output for ret '{names[position]}' in '{node.name}' of {self.function}")

    def returned(self, name: str, returns: dict[str, str]) -> str:
        value = returns.get(name, name)
        tensor = self.tensors.get(value)
        if tensor is None and name not in returns:
            raise InvalidArgumentError(f"Return '{name}' in '{self.function}' not found.")
        return tensor or value

    def _data(self, name: str, statement: Statement) -> str:
        tensor = self.tensors.get(name)
        if tensor is not None:
            return tensor
        explicit = ":" in name and self.text is not None
        if not explicit:
            self._fail(statement, f"Node input '{name}' in '{statement.node.name}' of {self.function} not found")
        return name

    def _control(self, name: str) -> str:
        return "^" + self.owners.get(name[1:], name[1:])

    def _fail(self, statement: Statement, message: str) -> NoReturn:
        if self.text is not None:
            fail_at(self.text, statement.position, message)
        raise InvalidArgumentError(message, node=statement.node.name, op=statement.node.op)


def _is_list(arg: ArgDef) -> bool:
    return bool(arg.number_attr or arg.type_list_attr)


def _length(arg: ArgDef, attrs: Attrs, op_def: OpDef) -> int | None:
    """The number of tensors of an output; None if it depends on a placeholder attr."""
    if not _is_list(arg):
        return 1
    name = arg.number_attr or arg.type_list_attr
    value = attrs.get(name)
    if value is None:
        attr = op_def.find_attr(name)
        value = None if attr is None else attr.default_value
    if isinstance(value, tuple):
        return len(value)
    return value if isinstance(value, int) else None
