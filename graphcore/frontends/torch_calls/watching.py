"""A recorder of calls that are made for real: operations, times, and the statistics of values."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import get_ident
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, Final

from graphcore.frontends.torch_calls.keeping import Kept
from graphcore.frontends.torch_calls.recording import Recorder, is_quiet, tensors_of, torch

if TYPE_CHECKING:
    from graphcore.frontends.foreign import ForeignNode
    from graphcore.runtime.runners import RunRecord

_OWN: Final = str(Path(__file__).parents[2])


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
        self._paths: dict[int, str] = {}
        self._roots: set[str] = set()

    def name_module(self, module: Any, name: str) -> None:
        """Give a module, its parts and its tensors their paths, below `name`."""
        prefix = f"{name}." if name else ""
        for path, part in module.named_modules():
            self._paths.setdefault(id(part), prefix + path if path else name)
            self._kept.append(part)
        states: dict[int, tuple[str, str]] = self._states
        for kind, tensors in (("buffer", module.named_buffers()), ("parameter", module.named_parameters())):
            for path, tensor in tensors:
                states.setdefault(id(tensor), (prefix + path, kind))

    def enter_module(self, module: Any, _args: object) -> None:
        """A module is about to run. One that the call has come upon gets a name, and is kept."""
        if get_ident() != self._thread:
            return
        if id(module) not in self._paths:
            self._saved.keep([module])
            base = name = type(module).__name__
            number = 1
            while name in self._roots:
                number += 1
                name = f"{base}_{number}"
            self._roots.add(name)
            self.name_module(module, name)
        self.enter(self._paths[id(module)], type(module).__name__)

    def leave_module(self, _module: object, _args: object, _result: object) -> None:
        """A module has run."""
        if get_ident() == self._thread:
            self.leave()

    def __torch_function__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None) -> Any:
        """Call a function, and write down what it takes and gives, with values as they are then."""
        kwargs = dict(kwargs or {})
        name = getattr(func, "__name__", "")
        self._saved.before(func, args, kwargs)
        if is_quiet(func) or name == "__get__":
            return self._read(func, args, kwargs, name)
        for tensor in tensors_of([*args, *kwargs.values()]):
            self.ref(tensor)  # a state is recorded before the operation may change it
        start = perf_counter_ns()
        try:
            result = func(*args, **kwargs)
        except Exception:
            if not self.failed:
                self.failed = self._call(func, args, kwargs, None)
                self._record.begin(self.failed)
            raise
        outputs = tensors_of(args[0] if name == "__setitem__" else result)
        if outputs:
            self._finish(self._call(func, args, kwargs, outputs), start, outputs)
        return result

    def _read(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], name: str) -> Any:
        """Call a function that reads sizes, types or properties. A property that is a new tensor, such as `x.T`, is written down."""
        start = perf_counter_ns()
        result = func(*args, **kwargs)
        if name == "__get__" and isinstance(result, torch.Tensor) and id(result) not in self._refs and id(result) not in self._states:
            self._finish(self._call(func, args, kwargs, [result]), start, [result])
        return result

    def _finish(self, name: str, start: int, outputs: list[Any]) -> None:
        self._record.ran(name, start, outputs)
        for tensor in outputs:
            self._hold(name, tensor)

    def _hold(self, name: str, tensor: Any) -> None:
        """Count the memory of an output until its last tensor is gone.

        One with a gradient counts to the end: its elements may be needed for the backward pass.
        """
        try:
            storage = tensor.untyped_storage()
        except (NotImplementedError, RuntimeError):
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
        own = [place for place, frame in enumerate(node.frames) if frame.file.startswith(_OWN)]
        self.nodes.append(replace(node, frames=node.frames[own[-1] + 1 :]) if own else node)
        for place, tensor in enumerate(tensors):
            self._refs[id(tensor)] = node.name, place
            self._alive[id(tensor)] = weakref.ref(tensor, partial(self._forget, id(tensor)))
        if node.kind != "op":
            self._record.give(node.name, tensors)

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
