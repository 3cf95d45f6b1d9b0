"""The record of calls with the functions of the backward pass that each of them makes."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from graphcore.frontends.foreign import SourceFrame
from graphcore.frontends.torch_calls.copying import Copies
from graphcore.frontends.torch_calls.lines import frames_of
from graphcore.frontends.torch_calls.recording import (
    SYMBOLIC,
    Originals,
    Recorder,
    States,
    changes,
    is_quiet,
    name_of,
    tensors_of,
    torch,
)
from graphcore.frontends.torch_calls.transforms import innermost, wrapped_in

TAKEN_OUT: Final = frozenset({"item", "numpy", "tolist", "__float__", "__int__", "__array__", "__complex__"})
"""Functions that give a value of Python or NumPy, which no gradient leaves."""


@dataclass(slots=True)
class CallFacts:
    """The facts about a call that autograd depends on.

    Attributes:
        function: the function's name.
        args: the arguments.
        outputs: the tensors that it gives.
        needs_gradient: for each of them True iff autograd follows it, directly after the call.
        is_enabled: True iff autograd is on.
        disabled_at: the lines at which it was switched off.
        changed: the tensor that it changes in place, None for none.
        kwargs: the arguments by name.
        custom: for the last call in a function of `torch.autograd.Function` that function of the backward pass, None for other calls.
        none_for: the inputs of it for which its backward has returned None, by their order in its `next_functions`.
    """

    function: str
    args: tuple[Any, ...]
    outputs: list[Any]
    needs_gradient: list[bool]
    is_enabled: bool
    disabled_at: tuple[SourceFrame, ...] = ()
    changed: Any = None
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    custom: Any = None
    none_for: set[int] = field(default_factory=set)


class GradientRecorder(Recorder):
    """Writes down, beside calls, the functions of the backward pass.

    Attributes:
        copies: the copies on which the call is made.
        owners: for each function of the backward pass the node that made it.
        facts: by the names of nodes what autograd does with them.
    """

    def __init__(self, states: States, original: Originals) -> None:
        super().__init__(states, original)
        self.copies: Copies
        self.owners: dict[Any, str] = {}
        self.facts: dict[str, CallFacts] = {}
        self._claimed: dict[str, list[Any]] = {}
        self._made: set[int] = set()
        self._disabled_at: tuple[SourceFrame, ...] = ()
        self._first = next_number()

    def __torch_function__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None) -> Any:
        """Call a function on copies, and write down what autograd makes of it."""
        if name_of(func) == "_set_grad_enabled" and args:
            self._disabled_at = () if args[0] else frames_of(sys._getframe(1))
        if is_quiet(func):
            return super().__torch_function__(func, types, args, kwargs)
        args, kwargs = self._inside(args), self._inside(dict(kwargs or {}))
        for tensor in tensors_of([*args, *kwargs.values()]):
            self.claim_result(tensor)
        result = super().__torch_function__(func, types, args, kwargs)
        if name_of(func) in TAKEN_OUT and not isinstance(result, SYMBOLIC):
            self._call(func, args, kwargs, [])
        return result

    def state_name(self, tensor: Any) -> str:
        """The name of a copy in its module, or that of the variable; "" if it has none."""
        return self._states.get(id(tensor), ("", ""))[0]

    def given(self) -> list[Any]:
        """The tensors that no call has made: inputs, parameters and constants."""
        kinds = {node.name for node in self.nodes if node.kind != "op"}
        return [tensor for tensor, _ in self._kept if self._refs.get(id(tensor), ("", 0))[0] in kinds]

    def claim_result(self, tensor: Any) -> None:
        """Note that the node behind a tensor made the functions without an owner: those of custom functions."""
        function = tensor.grad_fn
        if function is None:
            return
        if function not in self.owners:
            self._claim(function, self.ref(tensor)[0])
        if is_custom(function):
            name, place = self.ref(tensor)
            facts = self.facts.get(name)
            if facts is not None and self.owners[function] == name and place < len(facts.needs_gradient):
                facts.custom = function
                facts.needs_gradient[place] = True  # autograd is off while the calls in it run

    def owner(self, function: Any) -> str:
        """The node that made a function, "" if it is not known; the leaf tensor where a gradient ends."""
        return str(self.ref(function.variable)[0]) if is_end(function) else self.owners.get(function, "")

    def _call(self, func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], outputs: list[Any] | None) -> str:
        name = super()._call(func, args, kwargs, outputs)
        function = name_of(func)
        changed = args[0] if args and isinstance(args[0], torch.Tensor) and changes(function) else None
        for tensor in outputs or []:
            self._claim(innermost(tensor).grad_fn, name)
            self._made.add(id(tensor))
        if changed is not None and changed._base is not None:
            self._claim(changed._base.grad_fn, name)
        needs = [innermost(tensor).requires_grad for tensor in outputs or []]
        self.facts[name] = CallFacts(function, args, outputs or [], needs, torch.is_grad_enabled(), self._disabled_at, changed, kwargs)
        return name

    def _drop_single(self, first: int, kept: int) -> bool:
        names = [node.name for node in self.nodes[first:] if node.kind == "op"]
        is_dropped = super()._drop_single(first, kept)
        for name in names if is_dropped else ():
            self.facts.pop(name, None)
            for function in self._claimed.pop(name, ()):
                del self.owners[function]  # the function around it claims them
        return bool(is_dropped)

    def _claim(self, function: Any, name: str) -> None:
        """Note that a node made a function, and those behind it without an owner."""
        pending = [function]
        while pending:
            function = pending.pop()
            if function is None or function in self.owners or is_end(function):
                continue
            self.owners[function] = name
            self._claimed.setdefault(name, []).append(function)
            pending += [following for following, _ in function.next_functions]

    def _inside(self, value: Any) -> Any:
        """Arguments with copies in place of tensors from outside of the call."""
        if isinstance(value, torch.Tensor):
            return value if self._is_inside(value) else self.copies.of_tensor(value)
        if type(value) in {list, tuple}:
            return type(value)([self._inside(item) for item in value])
        if type(value) is dict:
            return {key: self._inside(item) for key, item in value.items()}
        return value

    def _is_inside(self, tensor: Any) -> bool:
        if id(tensor) in self._made or id(tensor) in self.copies.original or type(tensor).__name__ == "FakeTensor":
            return True
        if wrapped_in(tensor):
            return True
        return tensor.grad_fn is not None and tensor.grad_fn._sequence_nr() >= self._first


def is_end(function: Any) -> bool:
    """True for the function at which the gradient of a leaf tensor arrives."""
    return type(function).__name__ == "AccumulateGrad"


def is_custom(function: Any) -> bool:
    """True for a function of the backward pass that the user has written, as a `torch.autograd.Function`."""
    return hasattr(type(function), "_forward_cls")


def next_number() -> int:
    """The number that the next function of a backward pass gets in this thread."""
    with torch.enable_grad():
        number: int = (torch.zeros((), requires_grad=True) * 1).grad_fn._sequence_nr()
    return number
