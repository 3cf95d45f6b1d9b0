"""A recorder of calls that are made for real: operations, times, and the statistics of values."""

from __future__ import annotations

import weakref
from bisect import bisect_left
from collections.abc import Callable, Mapping
from functools import partial
from threading import get_ident
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from graphcore.frontends.foreign import ForeignNode, ModuleCall
from graphcore.frontends.torch_calls.autograd import CallFacts, is_end, next_number
from graphcore.frontends.torch_calls.backward import Backward, remove_all
from graphcore.frontends.torch_calls.failures import Failure
from graphcore.frontends.torch_calls.higher_order import turns_of
from graphcore.frontends.torch_calls.keeping import Kept, is_lazy
from graphcore.frontends.torch_calls.opening import body_of
from graphcore.frontends.torch_calls.passes import Pass, pass_of
from graphcore.frontends.torch_calls.recording import Recorder, is_quiet, tensors_of, title_of, torch
from graphcore.frontends.torch_calls.transforms import innermost, wrapped_in
from graphcore.frontends.torch_calls.watched_backward import give_gradients, watch
from graphcore.frontends.torch_reader.objects import port_of
from graphcore.frontends.unique_names import UniqueNames

if TYPE_CHECKING:
    from graphcore.runtime.runners import RunRecord


class WatchedRecorder(Recorder):
    """Writes down the operations of a call while it runs, with their values.

    Args:
        record: the record of the run.
        kept: the state to set back after the call.
    """

    def __init__(self, record: RunRecord, kept: Kept) -> None:
        super().__init__({}, {})
        self._record = record
        self._saved = kept
        self._thread = get_ident()
        self._alive: dict[int, weakref.ref[Any]] = {}
        self._held: dict[int, _Held] = {}
        self._last: tuple[str, list[int]] = "", []
        self._dropped = ""
        self._begun: list[int] = []
        self._roots = UniqueNames()
        self._objects: list[Any] = []
        self._makers: dict[int, str] = {}
        self._numbers: list[int] = []
        self._first = next_number()
        self.facts: dict[str, CallFacts] = {}

    def name_module(self, module: Any, name: str) -> None:
        """Give a module, its parts and its tensors their paths, below `name`."""
        prefix = f"{name}." if name else ""
        for path, part in module.named_modules():
            self.modules_by_id.setdefault(id(part), ModuleCall(prefix + path if path else name, type(part).__name__))
            self._objects.append(part)  # an id is unique only while its object lives
        for kind, tensors in (("buffer", module.named_buffers()), ("parameter", module.named_parameters())):
            for path, tensor in tensors:
                self._states.setdefault(id(tensor), (prefix + path, kind))

    def enter_module(self, module: Any, _args: object) -> None:
        """A module is about to run. One that the call has come upon gets a name, and is kept."""
        if get_ident() != self._thread:
            return
        if id(module) not in self.modules_by_id:
            self._saved.keep([module])
            self.name_module(module, self._roots.unique(type(module).__name__))
        called = self.modules_by_id[id(module)]
        self.enter(called.path, called.type_name)
        self._begun.append(perf_counter_ns())

    def leave_module(self, module: Any, args: object, result: object) -> None:
        """A module has run. One whose operations cannot be followed, such as a scripted one, is one operation."""
        if get_ident() != self._thread:
            return
        with torch._C.DisableTorchFunction():
            outputs = tensors_of(result)
            if any(id(tensor) not in self._refs and id(tensor) not in self._states for tensor in outputs):
                self._add_module(module, args, outputs)
        self._begun.pop()
        self.leave()

    def _add_module(self, module: Any, args: object, outputs: list[Any]) -> None:
        kind = getattr(module, "original_name", type(module).__name__)
        name = self.names.unique(f"{self._modules[-1].path}/{kind}")
        inputs = tuple([self.ref(tensor) for tensor in tensors_of(args)])
        ports = tuple([port_of("", tensor) for tensor in outputs])
        self._add(ForeignNode(name, f"torch.nn.{kind}", inputs, ports, modules=tuple(self._modules)), outputs)
        self._finish(name, self._begun[-1], outputs)

    def __torch_function__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None) -> Any:
        """Call a function, and write down what it takes and gives, with values as they are then."""
        kwargs = dict(kwargs or {})
        name = getattr(func, "__name__", "")
        self._saved.before(func, args, kwargs)
        ran = pass_of(func, args, kwargs)
        if ran is not None:
            return self._differentiated(ran, func, args, kwargs)
        taken = tensors_of([*args, *kwargs.values()])
        if any(map(is_lazy, taken)):
            return func(*args, **kwargs)
        if is_quiet(func) or name == "__get__":
            return self._read(func, args, kwargs)
        for tensor in taken:
            self.ref(tensor)  # a state is recorded before the operation may change it
        body = turns_of(func, args, kwargs) or body_of(func)
        self._dropped = ""
        start = perf_counter_ns()
        try:
            result = func(*args, **kwargs) if body is None else self._opened(func, body, args, kwargs)
        except Exception as error:
            if not self.failed:
                self.failed = self._call(func, args, kwargs, None)
                self.failure = Failure(title_of(func), args, kwargs, error)
                self._record.begin(self.failed)
            raise
        outputs = tensors_of(args[0] if name == "__setitem__" else result)
        if any(id(output) not in self._made_within for output in outputs):
            self._finish(self._call(func, args, kwargs, outputs), start, outputs)
        self._made_within = set()
        return result

    def owner(self, function: Any) -> str:
        """The node that made a function of the backward pass, "" if it is not known.

        Of the functions that one call makes the last is that of its result: its number is the next known one.
        """
        if is_end(function):
            return str(self.ref(function.variable)[0])
        if len(self._numbers) != len(self._makers):
            self._numbers = sorted(self._makers)
        number = function._sequence_nr()
        place = bisect_left(self._numbers, number)
        return self._makers[self._numbers[place]] if number >= self._first and place < len(self._numbers) else ""

    def claim_result(self, tensor: Any) -> None:
        """Nothing to note: functions are known by their numbers."""

    def _differentiated(self, ran: Pass, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run a backward pass, and write its functions down with the gradients that they give."""
        backward = Backward(self, ran.roots, ran.inputs)
        self.nodes += backward.nodes
        handles = watch(backward, self._record, ran.seeds)
        try:
            result = func(*args, **kwargs)
        except Exception as error:
            self.failed = self._call(func, args, kwargs, None)
            self.failure = Failure(title_of(func), args, kwargs, error)
            self._record.begin(self.failed)
            raise
        finally:
            remove_all(handles)
        leaves = backward.leaves()
        tensors = leaves if ran.inputs is None else ran.inputs
        gradients = result if ran.gives else [tensor.grad for tensor in tensors]
        by_tensor = {id(tensor): gradient for tensor, gradient in zip(tensors, gradients, strict=True)}
        give_gradients(backward, [by_tensor[id(leaf)] for leaf in leaves], self._record)
        for tensor, gradient in zip(tensors, gradients, strict=True):
            ref = backward.gradient_of(tensor)
            if gradient is None or ref is None:
                continue
            if (tensor.grad_fn, tensor.output_nr) in backward.parts and tensor.grad_fn not in backward.node_of:
                self._record.give(ref[0], [gradient])
            self._note_origin(gradient, *ref)
            if gradient.grad_fn is not None:
                self._makers.setdefault(gradient.grad_fn._sequence_nr(), ref[0])
        return result

    def _drop_single(self, first: int, kept: int) -> bool:
        names = [node.name for node in self.nodes[first:] if node.kind == "op"]
        if len(names) > 1:
            return False
        self.nodes[first:] = [node for node in self.nodes[first:] if node.kind != "op"]
        for key, before in reversed(self._kept[kept:]):
            if self._refs.get(key, ("", 0))[0] in names:
                if before is None:
                    del self._refs[key]
                else:
                    self._refs[key] = before
        self._dropped = names[0] if names else ""
        return True

    def _read(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a function that reads sizes, types or properties. A property that is a new tensor, such as `x.T`, is written down."""
        start = perf_counter_ns()
        result = func(*args, **kwargs)
        is_new = isinstance(result, torch.Tensor) and id(result) not in self._refs and id(result) not in self._states
        if is_new and getattr(func, "__name__", "") == "__get__":
            self._finish(self._call(func, args, kwargs, [result]), start, [result])
        return result

    def _finish(self, name: str, start: int, outputs: list[Any]) -> None:
        ids = [id(tensor) for tensor in outputs]
        dropped, self._dropped = self._dropped, ""
        if dropped and self._last == (dropped, ids):
            self._record.rename(dropped, name)  # the function has called one operation, which is recorded
        else:
            if dropped:
                self._record.drop(dropped)
            self._record.ran(name, start, list(map(innermost, outputs)))
            for tensor in outputs:
                self._hold(name, tensor)
        for function in [tensor.grad_fn for tensor in outputs if tensor.grad_fn is not None]:
            number = function._sequence_nr()
            if self._makers.get(number, dropped) == dropped:
                self._makers[number] = name
        self._last = name, ids

    def _hold(self, name: str, tensor: Any) -> None:
        """Count the memory of an output until its last tensor is gone.

        One with a gradient counts to the end: its elements may be needed for the backward pass.
        """
        try:
            with torch._C.DisableTorchFunctionSubclass():
                storage = tensor.untyped_storage()
        except (NotImplementedError, RuntimeError):  # a tensor without a storage, such as a sparse one
            return
        place = storage.data_ptr()
        held = self._held.get(place)
        if held is None:
            if self._saved.knows(tensor):
                return
            held = self._held[place] = _Held(self._record.hold(name, storage.nbytes()))
        held.count += 1
        if tensor.grad_fn is None:
            weakref.finalize(tensor, self._release, place, held).atexit = False

    def _release(self, place: int, held: _Held) -> None:
        held.count -= 1
        if not held.count:
            held.end()
            if self._held.get(place) is held:
                del self._held[place]

    def _add(self, node: ForeignNode, tensors: Any) -> None:
        self.nodes.append(node)
        for place, tensor in enumerate(tensors):
            for one in (tensor, *wrapped_in(tensor)):
                self._kept.append((id(one), self._refs.get(id(one))))
            self._note_origin(tensor, node.name, place)
        if node.kind != "op":
            self._record.give(node.name, tensors)

    def _note_origin(self, tensor: Any, name: str, place: int) -> None:
        for one in (tensor, *wrapped_in(tensor)):  # the inner ones are what leaves a transform
            self._refs[id(one)] = name, place
            self._alive[id(one)] = weakref.ref(one, partial(self._forget, id(one)))

    def _forget(self, key: int, ref: weakref.ref[Any]) -> None:
        """A tensor is gone; another one may get its id."""
        if self._alive.get(key) is ref:
            del self._alive[key]
            self._refs.pop(key, None)


class _Held:
    """Memory that some tensors share."""

    def __init__(self, end: Callable[[], None]) -> None:
        self.count = 0
        self.end = end
