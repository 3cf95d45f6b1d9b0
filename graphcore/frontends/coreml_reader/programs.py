"""ML programs: functions of blocks of operations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from graphcore.errors import InvalidArgumentError
from graphcore.frontends.coreml_reader.building import Body
from graphcore.frontends.coreml_reader.messages import Message, check_depth
from graphcore.frontends.coreml_reader.values import Values, port_of
from graphcore.frontends.foreign import ForeignFunction, ForeignNode, InputRef, Port

if TYPE_CHECKING:
    from graphcore.frontends.foreign import Attr

_CONSTANT: Final = "const"
_BLOCKS: Final = {"cond": ("then", "else"), "while_loop": ("cond", "body")}


class ProgramReader:
    """Reads the functions of a program; blocks become functions of their own."""

    def __init__(self, values: Values, functions: dict[str, ForeignFunction]) -> None:
        self._values = values
        self._functions = functions
        self.opsets: set[str] = set()

    def read(self, name: str, data: bytes) -> ForeignFunction:
        """A function: its block for the opset that it names.

        Raises:
            InvalidArgumentError: it has no block, or is inconsistent.
        """
        function = Message(data)
        opset = function.text(2)
        self.opsets.add(opset)
        blocks = function.entries(3)
        block = blocks.get(opset) or next(iter(blocks.values()), None)
        if block is None:
            raise InvalidArgumentError(f"Function '{name[:200]}' has no block")
        return self._block(name, block, [_named(part) for part in function.parts(1)], None, 0)[0]

    def _block(self, name: str, data: bytes, inputs: list[Port], outer: Body | None, depth: int) -> tuple[ForeignFunction, list[str]]:
        """A block, and the names of the values from around that it takes."""
        check_depth(depth)
        block = Message(data)
        body = Body(name, [*inputs, *[_named(part) for part in block.parts(1)]], outer)
        for part in block.parts(3):
            self._operation(body, Message(part), depth)
        function = body.function(block.texts(2))
        return function, body.captured

    def _operation(self, body: Body, operation: Message, depth: int) -> None:
        kind = operation.text(1)
        outputs = tuple([_named(part) for part in operation.parts(3)])
        entries = operation.entries(5)
        label = body.unused(self._values.text(entries.get("name", b"")) or (outputs[0].name if outputs else kind))
        if kind == _CONSTANT:
            weight = self._values.weight(entries.get("val", b""), f"Constant '{label[:200]}'")
            body.add(ForeignNode(label, "coreml.const", outputs=outputs, weight=weight, kind="constant"))
            return
        attrs: dict[str, Attr] = {
            word: text for word, value in entries.items() if word != "name" and (text := self._values.text(value)) is not None
        }
        inputs: list[InputRef] = []
        words: list[str] = []
        for word, argument in sorted(operation.entries(2).items()):
            for part in Message(argument).parts(1):
                binding = Message(part)
                if 1 in binding.fields:
                    inputs.append(body.ref(binding.text(1)))
                    words.append(word)
                elif (text := self._values.text(binding.raw(2))) is not None:
                    attrs[word] = text
        bodies: dict[str, str] = {}
        arguments: dict[str, tuple[int, ...]] = {}
        blocks = operation.parts(4)
        roles = _BLOCKS.get(kind, ())
        for number, part in enumerate(blocks):
            role = roles[number] if len(roles) == len(blocks) else f"block {number}"
            key = f"{body.name}/{label}/{role}"
            function, captured = self._block(key, part, [], body, depth + 1)
            self._functions[key] = function
            bodies[role] = key
            own = len(function.inputs) - len(captured)
            places = [place for place, word in enumerate(words) if word == "loop_vars"][:own] if kind == "while_loop" else []
            places += [-1] * (own - len(places))
            for name in captured:
                places.append(len(inputs))
                inputs.append(body.ref(name))
                words.append("from around")
            arguments[role] = tuple(places)
        body.add(ForeignNode(label, f"coreml.{kind}", tuple(inputs), outputs, tuple(words), attrs, bodies=bodies, arguments=arguments))


def _named(data: bytes) -> Port:
    value = Message(data)
    return port_of(value.text(1), value.raw(2))
