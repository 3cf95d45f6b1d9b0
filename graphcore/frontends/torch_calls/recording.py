"""A mode of PyTorch that writes down each function called on tensors."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from importlib import import_module
from typing import Any, Final

from graphcore.frontends.foreign import ForeignNode, ModuleCall, Port, SourceFrame
from graphcore.frontends.torch_calls.branches import DECIDING, Decision, Decisions
from graphcore.frontends.torch_calls.failures import Failure, refuse_types
from graphcore.frontends.torch_calls.lines import MAX_FRAMES, frames_of, is_library, line_of, source_frame
from graphcore.frontends.torch_calls.opening import body_of
from graphcore.frontends.torch_calls.passes import Pass, leaves_of, pass_of
from graphcore.frontends.torch_calls.sequences import SHAPED
from graphcore.frontends.torch_calls.transforms import wrapped_in
from graphcore.frontends.torch_reader.arguments import Named, collect
from graphcore.frontends.torch_reader.objects import literal, port_of, weight_of_object
from graphcore.frontends.unique_names import UniqueNames
from graphcore.support.watched import long_work

overrides: Any = import_module("torch.overrides")
fake_tensor: Any = import_module("torch._subclasses.fake_tensor")
torch: Any = import_module("torch")
_QUIET: Final = frozenset({"__set__", "size", "dim", "stride", "is_floating_point", "numel", "type", "__len__", "is_complex"})
_CONVERSIONS: Final = frozenset({"to", "contiguous", "float", "double", "half", "bfloat16", "cpu", "cuda", "type_as"})
_OUTSIDE: Final = (ModuleCall(""),)
_VIEWS: Final = frozenset({"T", "mT", "H", "mH", "real", "imag", "data"})
"""The properties of tensors that are tensors made of them."""
States = dict[int, tuple[str, str]]
Originals = Mapping[int, Any]
_NO_SIZES: Final = ("failed to unpack the object", "can be converted to an index")
"""Words of errors about tensors as sizes and indices."""
_UNKNOWN_TEXT: Final = "?"
SYMBOLIC: Final = (torch.SymInt, torch.SymFloat, torch.SymBool)


class Recorder(overrides.TorchFunctionMode):  # type: ignore[misc]  # the class is known where torch is
    """Writes down the calls made in it.

    Args:
        states: paths of the tensors of the module, by the ids of fake tensors.
        original: the tensor behind a fake one, by the id of the fake one.

    Attributes:
        work: what is done in words, as progress is to say it.
        decisions: answers what depends on values.
        nodes: what was called, inputs first.
        failed: the node at which the call ended with an error, "" if it did not.
        failure: the operation that failed there, None if the error is none of an operation.
        names: the names of nodes, which are unique.
        tensors: the tensors by their nodes and outputs.
        makers: the nodes that made the functions of the backward pass, as far as they are seen.
        changed: the nodes that changed tensors in place, with these.
        without_gradients: the nodes that were called while no gradients were recorded.
        has_passes: True once the call has run a backward pass itself.
        modules_by_id: paths and classes of the modules that are followed, by their ids.
    """

    def __init__(self, states: States, original: Originals) -> None:
        super().__init__()
        self.work = "tracing"
        self.nodes: list[ForeignNode] = []
        self.failed = ""
        self.failure: Failure | None = None
        self.decisions = Decisions()
        self.modules_by_id: dict[int, ModuleCall] = {}
        self._states = states
        self._original = original
        self._refs: dict[int, tuple[str, int]] = {}
        self._kept: list[Any] = []
        self.names = UniqueNames()
        self._scopes = UniqueNames()
        self._modules: list[ModuleCall] = []
        self._made_within: set[int] = set()
        self.tensors: dict[tuple[str, int], Any] = {}
        self.makers: dict[Any, str] = {}
        self.changed: list[tuple[str, Any]] = []
        self.without_gradients: set[str] = set()
        self.has_passes = False
        self._symbols: dict[str, tuple[str, int]] = {}
        self._depth = 0

    def know(self, states: States, original: Originals) -> None:
        """Take the tensors that the recorder is to know, as its arguments are."""
        self._states, self._original = states, original

    def enter(self, path: str, kind: str) -> None:
        """A module is called."""
        self._modules.append(ModuleCall(path, kind))
        long_work.publish(self.work, len(self.nodes), 0, f"{path} ({kind})" if path else kind)

    def leave(self) -> None:
        """The module that was called last has returned."""
        self._modules.pop()

    def add_input(self, name: str, tensor: Any) -> None:
        """A tensor that is given. One that is given twice has its first name."""
        if id(tensor) in self._refs:
            return
        self._add(ForeignNode(self.names.unique(name), "torch.Input", outputs=(port_of(name, tensor),), kind="input"), [tensor])

    def ref(self, tensor: Any) -> tuple[str, int]:
        """The node and output that a tensor comes from; one that is not known yet is a state or a constant."""
        ref = self._refs.get(id(tensor))
        for inner in wrapped_in(tensor) if ref is None else ():
            if id(inner) in self._refs or id(inner) in self._states:
                return self.ref(inner)
        if ref is None:
            path, kind = self._states.get(id(tensor), ("constant", "constant"))
            weight = weight_of_object(self._original.get(id(tensor), tensor))
            name = self.names.unique(path)
            node = ForeignNode(name, f"torch.{kind.capitalize()}", outputs=(port_of(path, tensor),), weight=weight, kind=kind)
            self._add(node, [tensor])
            ref = name, 0
        return ref

    def __torch_function__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None) -> Any:
        """Call a function, and write down what it takes and gives."""
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        if name in DECIDING and args and isinstance(args[0], fake_tensor.FakeTensor):
            return self._decided(name, args[0])
        if name == "__format__" and isinstance(args[0], fake_tensor.FakeTensor):
            return _UNKNOWN_TEXT
        if name == "tolist":
            return _listed(args[0])
        ran = pass_of(func, args, kwargs)
        if ran is not None and not ran.gives:
            return self._ran_backward(ran, func, args, kwargs)
        body = body_of(func)
        version = _version(args)
        self._depth += 1
        try:
            refuse_types(name.strip("_"), _fakes_among(args[:2]))
            result = _called(func, args, kwargs) if body is None else self._opened(func, body, args, kwargs)
        except Exception as error:
            if name == "__setitem__" and self.decisions.has_number(line_of(sys._getframe(1))):
                self._note(self._call(func, args, kwargs, list(args[:1])), args, list(args[:1]), is_changed=True)  # sizes that were decided
                return None
            if not self.failed:
                self.failed = self._call(func, args, kwargs, None)
                self.failure = Failure(title_of(func), args, dict(kwargs), error)
            raise
        finally:
            self._depth -= 1
        outputs = tensors_of(args[0] if name == "__setitem__" else result)
        if name == "item" and isinstance(result, SYMBOLIC):
            self._symbols[str(result)] = self._call(func, args, kwargs, []), 0
            self.nodes[-1] = replace(self.nodes[-1], outputs=(port_of("", result),))
        elif (
            outputs
            and not is_quiet(func)
            and not _is_nothing(func, args, outputs)
            and any(id(output) not in self._made_within for output in outputs)
        ):
            self._note(self._call(func, args, kwargs, outputs), args, outputs, is_changed=_version(args) != version)
        self._made_within = set()
        return result

    def _ran_backward(self, ran: Pass, func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """Run a backward pass of the call itself, and write it down with the gradients that it gives."""
        leaves = leaves_of(ran)
        self.has_passes = True
        try:
            func(*args, **kwargs)
        except Exception as error:
            if not self.failed:
                self.failed = self._call(func, args, kwargs, None)
                self.failure = Failure(title_of(func), args, dict(kwargs), error)
            raise
        self._call(func, args, kwargs, [leaf.grad for leaf in leaves if leaf.grad is not None])

    def _note(self, node: str, args: tuple[Any, ...], outputs: list[Any], *, is_changed: bool) -> None:
        """Note what remarks are made of."""
        if not torch.is_grad_enabled():
            self.without_gradients.add(node)
        if is_changed:
            self.changed.append((node, args[0]))
        for tensor in outputs:
            if tensor.grad_fn is not None:
                self.makers.setdefault(tensor.grad_fn, node)

    def _opened(self, func: Any, body: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Call a function that is written in Python, and write down its operations if it has several."""
        first, kept = len(self.nodes), len(self._kept)
        scope = self._scopes.unique(".".join([*[call.path for call in self._modules[-1:]], func.__name__]).strip("."))
        self._modules.append(ModuleCall(scope))
        try:
            with self:
                result = body(*args, **kwargs)
        except Exception:
            if self._drop_single(first, kept):
                self.failed = ""
            raise
        finally:
            self._modules.pop()
        if self._drop_single(first, kept):
            self._scopes.release(scope)
        else:
            self._made_within = {id(tensor) for tensor in tensors_of(result)}
        return result

    def _drop_single(self, first: int, kept: int) -> bool:
        """Take back the operations since the node `first` and the tensor `kept` unless there are several. True if that was done."""
        names = [node.name for node in self.nodes[first:] if node.kind == "op"]
        if len(names) > 1:
            return False
        self.nodes[first:] = [node for node in self.nodes[first:] if node.kind != "op"]
        for name in names:
            self.names.release(name)
        for tensor, before in reversed(self._kept[kept:]):
            if self._refs.get(id(tensor), ("", 0))[0] in names:
                if before is None:
                    del self._refs[id(tensor)]
                else:
                    self._refs[id(tensor)] = before
        return True

    def _decided(self, name: str, tensor: Any) -> Any:
        """The value of a tensor that Python asks for, as one of several that it may have."""
        line = line_of(sys._getframe(2))
        if name == "__bool__":
            self.decisions.decide(line)
        else:
            self.decisions.number(line, float if name == "__float__" else int)
        self.record_decision(self.decisions.made[-1], [self.ref(tensor)])
        return self.decisions.made[-1].answer

    def record_decision(self, decision: Decision, refs: Sequence[tuple[str, int]]) -> None:
        """Write a decision down as a node that takes the tensors on which it depends."""
        name = self.names.unique("branch")
        frames = frames_of(sys._getframe(1))
        self._add(
            ForeignNode(name, "python.branch", tuple(refs), modules=tuple(self._modules) or _OUTSIDE, frames=frames, doc=decision.note), []
        )

    def decided_by_symbols(self, decision: Decision, symbols: Any) -> None:
        """Write a decision about numbers of tensors down."""
        refs = [self._symbols[str(symbol)] for symbol in symbols if str(symbol) in self._symbols]
        self.record_decision(decision, refs)

    def line_of_user(self) -> tuple[tuple[str, int], bool]:
        """The line of the user that runs, and True if it is within an operation."""
        return line_of(sys._getframe(1)), self._depth > 0

    def add_failure(self, error: BaseException) -> None:
        """Write down an error that no operation has raised, at its line."""
        frames: list[SourceFrame] = []
        modules: dict[ModuleCall, None] = {}
        trace = error.__traceback__
        while trace is not None:
            owner = self.modules_by_id.get(id(trace.tb_frame.f_locals.get("self")))
            if owner is not None:
                modules[owner] = None
            if not is_library(trace.tb_frame.f_code.co_filename):
                frames.append(source_frame(trace.tb_frame, trace.tb_lineno))
            trace = trace.tb_next
        self.failed = self.names.unique(type(error).__name__)
        self._add(ForeignNode(self.failed, "python.raise", modules=tuple(modules), frames=tuple(frames[-MAX_FRAMES:])), [])

    def _call(self, func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], outputs: list[Any] | None) -> str:
        arguments = [("", self._plain(value)) for value in args] + [(key, self._plain(value)) for key, value in kwargs.items()]
        collected = collect(arguments, self._named, {})
        title = title_of(func)
        leaf = title.rpartition(".")[2]
        if not self._modules:
            long_work.publish(self.work, len(self.nodes), 0, title)
        name = self.names.unique(
            f"{self._modules[-1].path}/{leaf}" if self._modules and self._modules[-1].path else leaf
        )  # numbered in each module
        node = ForeignNode(
            name,
            title,
            tuple(collected.inputs),
            (Port(),) if outputs is None else tuple([port_of("", tensor) for tensor in outputs]),
            tuple(collected.names),
            collected.attrs,
            modules=tuple(self._modules) or _OUTSIDE,
            frames=frames_of(sys._getframe(2)),
        )
        self._add(node, outputs or [])
        return name

    def _plain(self, value: Any) -> object:
        """An argument as plain data, tensors as `Named`."""
        if isinstance(value, torch.Tensor):
            name, place = self.ref(value)
            return Named(f"{place}:{name}")
        if isinstance(value, Mapping):
            return {str(key): self._plain(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self._plain(item) for item in value]
        return literal(value)

    def _named(self, text: str) -> tuple[str, int]:
        place, _, name = text.partition(":")
        return name, int(place)

    def _add(self, node: ForeignNode, tensors: Any) -> None:
        self.nodes.append(node)
        for place, tensor in enumerate(tensors):
            for one in (tensor, *wrapped_in(tensor)):  # the inner ones are what leaves the transform
                self._kept.append((one, self._refs.get(id(one))))  # an id is unique only while its object lives
                self._refs[id(one)] = node.name, place
            self.tensors[node.name, place] = tensor


def _version(args: tuple[Any, ...]) -> int:
    """A number that grows with each change in place of the first argument, 0 for other values."""
    if not args or not isinstance(args[0], torch.Tensor) or hasattr(type(args[0]), "materialize") or args[0].is_inference():
        return 0
    return int(args[0]._version)


def _fakes_among(args: tuple[Any, ...]) -> list[Any]:
    return [tensor for tensor in tensors_of(args) if isinstance(tensor, fake_tensor.FakeTensor)]


def _called(func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """Call a function, with symbols in place of tensors that it takes as sizes."""
    shaped = SHAPED.get(getattr(func, "__name__", "")) if _fakes_among(args) else None
    result = NotImplemented if shaped is None else shaped(*args, **kwargs)
    if result is not NotImplemented:
        return result
    try:
        return func(*args, **kwargs)
    except TypeError as error:
        if not any(words in str(error) for words in _NO_SIZES):
            raise
        return func(*_as_sizes(args), **{key: _as_sizes(value) for key, value in kwargs.items()})


def _as_sizes(value: Any) -> Any:
    if isinstance(value, slice):
        return slice(_as_sizes(value.start), _as_sizes(value.stop), _as_sizes(value.step))
    if isinstance(value, list | tuple):
        return type(value)([_as_sizes(item) for item in value])
    return value.item() if isinstance(value, torch.Tensor) and not value.dim() and not value.dtype.is_floating_point else value


def _listed(tensor: Any) -> Any:
    """The elements of a tensor as a list, each a number that depends on values."""
    return [_listed(part) for part in tensor] if tensor.dim() else tensor.item()


def tensors_of(value: Any) -> list[Any]:
    """The tensors in a value: one, or those in lists, tables and records."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, Mapping):
        value = list(value.values())
    elif is_dataclass(value) and not isinstance(value, type):
        value = [getattr(value, field.name) for field in fields(value)]
    if isinstance(value, list | tuple):
        return [tensor for item in value for tensor in tensors_of(item)]
    return []


def name_of(func: Any) -> str:
    """The name of a function; of the reading of a property, that of the property."""
    name: str = getattr(func, "__name__", type(func).__name__)
    return str(getattr(getattr(func, "__self__", None), "__name__", name)) if name == "__get__" else name


def changes(function: str) -> bool:
    """True for the name of a function that changes its first argument: `add_`, `__iadd__`, `__setitem__`."""
    if function.startswith("__"):
        return function == "__setitem__" or (function.startswith("__i") and function not in {"__invert__", "__index__", "__int__"})
    return function.endswith("_")


def _is_nothing(func: Any, args: tuple[Any, ...], outputs: list[Any]) -> bool:
    """True for a conversion to the type and device that the tensor has."""
    return name_of(func) in _CONVERSIONS and bool(args) and outputs[0] is args[0]


def is_quiet(func: Any) -> bool:
    """True for functions that are not shown: they read sizes, types and the like."""
    is_property = getattr(func, "__name__", "") == "__get__"
    return name_of(func) not in _VIEWS if is_property else name_of(func) in _QUIET


def title_of(func: Any) -> str:
    """The name under which users know a function."""
    plain = name_of(func).strip("_")
    module = getattr(func, "__module__", "") or ""
    if module.startswith("torch.nn.functional") or module == "torch._C._nn":
        return f"torch.nn.functional.{plain}"
    return f"torch.{plain}"
