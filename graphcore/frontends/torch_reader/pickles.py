"""A reader of pickles that runs nothing, for the few opcodes and classes of tensors and containers."""

from __future__ import annotations

import mmap
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from graphcore.errors import GraphError, InvalidArgumentError
from graphcore.frontends.torch_reader.tensors import STORAGES

_MARK: Final = object()
_MAX_NUMBER: Final = 64
"""The most bytes of a whole number."""


@dataclass(frozen=True, slots=True)
class Word:
    """A class, function or constant that a pickle names; it is never looked up."""

    module: str
    name: str

    @property
    def text(self) -> str:
        """The whole name."""
        return f"{self.module}.{self.name}"


@dataclass(frozen=True, slots=True)
class Storage:
    """The elements of tensors in a file.

    Attributes:
        dtype: their type.
        key: the name of the place.
        count: the number of elements, or of bytes where `is_bytes`.
        start: the first element of a part of a larger storage.
    """

    dtype: str
    key: str
    count: int
    start: int = 0


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """A tensor in a storage, in elements."""

    storage: Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str
    is_parameter: bool = False


@dataclass(slots=True)
class Thing:
    """An object of a class of TorchScript: its class's name and its fields."""

    kind: str
    state: dict[str, Any] = field(default_factory=dict)


class PickleReader:
    """Reads one pickle.

    Args:
        data: the bytes.
        has_things: True iff objects of TorchScript's classes are wanted.
        what: the pickle in words, for errors.
        start: the place in `data` where the pickle begins.

    Attributes:
        place: the place after what was read.
    """

    def __init__(self, data: bytes | mmap.mmap, has_things: bool, what: str, start: int = 0) -> None:
        self.place = start
        self._data = data
        self._has_things = has_things
        self._what = what
        self._stack: list[Any] = []
        self._memo: dict[int, Any] = {}

    def read(self) -> Any:
        """The object, made of plain data, `StoredTensor`, `Word` and `Thing`.

        Raises:
            InvalidArgumentError: it is damaged, or holds anything else.
        """
        try:
            while True:
                code = self._data[self.place]
                self.place += 1
                if code == 0x2E:
                    return self._popped()
                step = _STEPS.get(code)
                if step is None:
                    raise self._unfit(f"the opcode {code:#04x}, which tensors do not need")
                step(self)
        except GraphError:
            raise
        except (IndexError, KeyError, ValueError, TypeError, AttributeError, struct.error, OverflowError):
            raise InvalidArgumentError(f"{self._what} is a damaged pickle, at byte {self.place:,}") from None

    def _unfit(self, came: str) -> InvalidArgumentError:
        required = "tensors, numbers, texts and containers of them"
        return InvalidArgumentError(
            f"{self._what} is not opened, since unpickling can run any code: required {required}, got {came} (at byte {self.place:,})"
        ).advise(
            "Save the weights alone: torch.save(model.state_dict(), file), or the graph: torch.export.save(torch.export.export(model, ...), file).",
            required=required,
            came=came,
        )

    def _take(self, count: int) -> bytes:
        if count < 0 or self.place + count > len(self._data):
            raise IndexError
        data = self._data[self.place : self.place + count]
        self.place += count
        return data

    def _number(self, form: str) -> Any:
        return struct.unpack(form, self._take(struct.calcsize(form)))[0]

    def _line(self) -> str:
        end = self._data.find(b"\n", self.place)
        if end < 0:
            raise IndexError
        line = self._data[self.place : end]
        self.place = end + 1
        return line.decode()

    def _text(self, form: str) -> None:
        self._stack.append(self._take(self._number(form)).decode("utf-8", "surrogatepass"))

    def _raw(self, form: str, is_text: bool = False) -> None:
        data = self._take(self._number(form))
        self._stack.append(data.decode(errors="backslashreplace") if is_text else data)

    def _long(self, form: str) -> None:
        size = self._number(form)
        if size > _MAX_NUMBER:
            raise ValueError
        self._stack.append(int.from_bytes(self._take(size), "little", signed=True))

    def _put(self, key: int) -> None:
        self._memo[key] = self._stack[-1]

    def _get(self, key: int) -> None:
        self._stack.append(self._memo[key])

    def _since_mark(self) -> list[Any]:
        place = len(self._stack) - 1
        while self._stack[place] is not _MARK:
            place -= 1
            if place < 0:
                raise IndexError
        items = self._stack[place + 1 :]
        del self._stack[place:]
        return items

    def _tuple(self, count: int) -> None:
        if count > len(self._stack):
            raise IndexError
        items = tuple(self._stack[len(self._stack) - count :])
        del self._stack[len(self._stack) - count :]
        if any(item is _MARK for item in items):
            raise ValueError
        self._stack.append(items)

    def _popped(self) -> Any:
        item = self._stack.pop()
        if item is _MARK:
            raise ValueError
        return item

    def _append(self, items: list[Any]) -> None:
        target = self._stack[-1]
        if not isinstance(target, list):
            raise TypeError
        target.extend(items)

    def _set(self, items: list[Any]) -> None:
        target = self._stack[-1]
        if not isinstance(target, dict) or len(items) % 2:
            raise TypeError
        for key, value in zip(items[::2], items[1::2], strict=True):
            if not isinstance(key, str | int | float | bool | None):
                raise self._unfit(f"a table whose key is a {type(key).__name__}")
            target[key] = value

    def _append_one(self) -> None:
        self._append([self._popped()])

    def _set_one(self) -> None:
        value, key = self._popped(), self._popped()
        self._set([key, value])

    def _global(self, module: str, name: str) -> None:
        word = Word(module, name)
        if not (word.text in _CALLS or word.text in _WORDS or module == "torch" or self._is_script(word)):
            raise self._unfit(f"'{word.text[:200]}'")
        self._stack.append(word)

    def _is_script(self, word: Word) -> bool:
        return self._has_things and (word.module.startswith("__torch__") or word.module == "torch.jit._pickle")

    def _stack_global(self) -> None:
        name, module = self._stack.pop(), self._stack.pop()
        if not (isinstance(name, str) and isinstance(module, str)):
            raise TypeError
        self._global(module, name)

    def _new(self) -> None:
        arguments, word = self._stack.pop(), self._stack.pop()
        if not isinstance(word, Word) or not isinstance(arguments, tuple):
            raise TypeError
        if self._is_script(word):
            self._stack.append(Thing(word.text))
        else:
            self._call(word, arguments)

    def _reduce(self) -> None:
        arguments, word = self._stack.pop(), self._stack.pop()
        if not isinstance(word, Word) or not isinstance(arguments, tuple):
            raise TypeError
        self._call(word, arguments)

    def _call(self, word: Word, arguments: tuple[Any, ...]) -> None:
        made = _CALLS.get(word.text)
        if made is None and self._has_things and word.module == "torch.jit._pickle" and arguments:
            self._stack.append(arguments[0])
            return
        if made is None:
            raise self._unfit(f"a call of '{word.text[:200]}'")
        self._stack.append(made(*arguments))

    def _build(self) -> None:
        state, target = self._stack.pop(), self._stack[-1]
        if isinstance(target, Thing):
            if isinstance(state, Mapping):
                target.state.update({str(key): value for key, value in state.items()})
            else:
                target.state["state"] = state
        elif not isinstance(target, dict | StoredTensor):  # tables have an attribute with versions, parameters have hooks
            raise self._unfit(f"the state of a {type(target).__name__}")

    def _persistent(self) -> None:
        persistent_id = self._stack.pop()
        if not (isinstance(persistent_id, tuple) and len(persistent_id) >= 5 and persistent_id[0] == "storage"):
            raise self._unfit("a reference to something that is no storage of a tensor")
        kind, key, count = persistent_id[1], persistent_id[2], persistent_id[4]
        dtype = STORAGES.get(kind.name) if isinstance(kind, Word) else None
        if dtype is None or not isinstance(count, int):
            raise self._unfit(f"a storage of the class '{kind.text if isinstance(kind, Word) else kind!r:.50}'")
        view = persistent_id[5] if len(persistent_id) > 5 else None
        start = view[1] if isinstance(view, tuple) and len(view) == 3 and isinstance(view[1], int) else 0
        self._stack.append(Storage(dtype, str(key), count, start))


def _sizes(value: object) -> tuple[int, ...]:
    if not isinstance(value, tuple | list) or not all(isinstance(size, int) for size in value):
        raise TypeError
    return tuple(value)


def _tensor(storage: object, offset: object, shape: object, strides: object, *_rest: Any) -> StoredTensor:
    if not isinstance(storage, Storage) or not isinstance(offset, int):
        raise TypeError
    return StoredTensor(storage, offset + storage.start, _sizes(shape), _sizes(strides), storage.dtype)


def _typed_tensor(storage: object, offset: object, shape: object, strides: object, *rest: Any) -> StoredTensor:
    """A tensor whose type is no class of storages: the storage counts bytes."""
    dtype = next((word.name for word in rest if isinstance(word, Word) and word.module == "torch"), "")
    if not isinstance(storage, Storage) or not isinstance(offset, int) or not dtype:
        raise TypeError
    return StoredTensor(storage, offset, _sizes(shape), _sizes(strides), dtype)


def _parameter(data: object, *_rest: Any) -> StoredTensor:
    if not isinstance(data, StoredTensor):
        raise TypeError
    return StoredTensor(data.storage, data.offset, data.shape, data.strides, data.dtype, True)


def _of_class(function: object, _kind: object, arguments: object, *_rest: Any) -> StoredTensor:
    """A tensor of a subclass, such as the parameters of quantised layers."""
    made = _CALLS.get(function.text) if isinstance(function, Word) else None
    if made is None or not isinstance(arguments, tuple):
        raise TypeError
    tensor = made(*arguments)
    if not isinstance(tensor, StoredTensor):
        raise TypeError
    return tensor


def _table(*items: Any) -> dict[Any, Any]:
    pairs = items[0] if items else []
    if isinstance(pairs, dict):
        return dict(pairs)
    table: dict[Any, Any] = {}
    for key, value in pairs:
        if not isinstance(key, str | int | float | bool | None):
            raise TypeError
        table[key] = value
    return table


def _listed(*items: Any) -> list[Any]:
    return list(items[0]) if items and isinstance(items[0], list | tuple) else []


def _device(*parts: Any) -> str:
    return ":".join(str(part) for part in parts[:2])


_CALLS: Final[dict[str, Callable[..., Any]]] = {
    "torch._utils._rebuild_tensor_v2": _tensor,
    "torch._utils._rebuild_tensor": _tensor,
    "torch._utils._rebuild_tensor_v3": _typed_tensor,
    "torch._utils._rebuild_qtensor": _tensor,
    "torch._utils._rebuild_parameter": _parameter,
    "torch._utils._rebuild_parameter_with_state": _parameter,
    "torch._tensor._rebuild_from_type_v2": _of_class,
    "collections.OrderedDict": _table,
    "builtins.dict": _table,
    "__builtin__.dict": _table,
    "builtins.set": _listed,
    "__builtin__.set": _listed,
    "torch.Size": lambda *items: _sizes(items[0] if items else ()),
    "torch.device": _device,
}
"""The functions that may be called, with those that are called instead."""
_WORDS: Final = frozenset(
    {"torch.nn.parameter.Parameter", "torch._tensor.Tensor", "torch.storage.UntypedStorage", "torch.storage.TypedStorage"}
)
"""Further names that may stand in a pickle."""


def _pop(reader: PickleReader) -> None:
    reader._stack.pop()


def _pushes(value: Callable[[], Any]) -> Callable[[PickleReader], None]:
    return lambda reader: reader._stack.append(value())


def _reads(form: str) -> Callable[[PickleReader], None]:
    return lambda reader: reader._stack.append(reader._number(form))


_STEPS: Final[dict[int, Callable[[PickleReader], Any]]] = {
    ord("("): _pushes(lambda: _MARK),
    ord("0"): _pop,
    ord("1"): lambda reader: reader._since_mark(),
    ord("N"): _pushes(lambda: None),
    0x88: _pushes(lambda: True),
    0x89: _pushes(lambda: False),
    ord("J"): _reads("<i"),
    ord("K"): _reads("<B"),
    ord("M"): _reads("<H"),
    ord("G"): _reads(">d"),
    0x8A: lambda reader: reader._long("<B"),
    0x8B: lambda reader: reader._long("<i"),
    ord("X"): lambda reader: reader._text("<I"),
    0x8C: lambda reader: reader._text("<B"),
    0x8D: lambda reader: reader._text("<Q"),
    ord("T"): lambda reader: reader._raw("<i", is_text=True),
    ord("U"): lambda reader: reader._raw("<B", is_text=True),
    ord("B"): lambda reader: reader._raw("<I"),
    ord("C"): lambda reader: reader._raw("<B"),
    0x8E: lambda reader: reader._raw("<Q"),
    ord("}"): _pushes(dict),
    ord("]"): _pushes(list),
    ord(")"): _pushes(tuple),
    0x8F: _pushes(list),
    0x85: lambda reader: reader._tuple(1),
    0x86: lambda reader: reader._tuple(2),
    0x87: lambda reader: reader._tuple(3),
    ord("t"): lambda reader: reader._stack.append(tuple(reader._since_mark())),
    ord("l"): lambda reader: reader._stack.append(reader._since_mark()),
    ord("a"): PickleReader._append_one,
    ord("e"): lambda reader: reader._append(reader._since_mark()),
    0x90: lambda reader: reader._append(reader._since_mark()),
    ord("s"): PickleReader._set_one,
    ord("u"): lambda reader: reader._set(reader._since_mark()),
    ord("q"): lambda reader: reader._put(reader._number("<B")),
    ord("r"): lambda reader: reader._put(reader._number("<I")),
    0x94: lambda reader: reader._put(len(reader._memo)),
    ord("h"): lambda reader: reader._get(reader._number("<B")),
    ord("j"): lambda reader: reader._get(reader._number("<I")),
    ord("c"): lambda reader: reader._global(reader._line(), reader._line()),
    0x93: PickleReader._stack_global,
    ord("R"): PickleReader._reduce,
    0x81: PickleReader._new,
    ord("b"): PickleReader._build,
    ord("Q"): PickleReader._persistent,
    0x80: lambda reader: reader._take(1),
    0x95: lambda reader: reader._take(8),
}
"""The steps of the reader by opcodes. Absent ones are refused."""
