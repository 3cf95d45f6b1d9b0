"""The backward pass that autograd has recorded, as nodes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Protocol

from graphcore.frontends.foreign import ForeignNode, InputRef, ModuleCall, Port
from graphcore.frontends.torch_calls.autograd import CallFacts, is_custom, is_end
from graphcore.frontends.torch_calls.recording import torch
from graphcore.frontends.torch_reader.objects import port_of, sizes_of, word_of
from graphcore.frontends.unique_names import UniqueNames

_SCOPE: Final = (ModuleCall("gradients"), ModuleCall(""))
_MODIFIED: Final = "modified by an inplace operation"
Slot = tuple[Any, int]
"""A function of the backward pass, and the number of a gradient that it takes."""


@dataclass(frozen=True, slots=True)
class Failure:
    """An error in a backward pass: its text, and the node that is to blame, "" if it is not known."""

    said: str
    node: str


class FollowsGradients(Protocol):
    """A record of calls that says which of them made the functions of the backward pass.

    Attributes:
        nodes: the calls, with what they take.
        names: the names of nodes.
        facts: by the names of nodes what autograd does with them, as far as it is noted.
    """

    nodes: list[ForeignNode]
    names: UniqueNames
    facts: dict[str, CallFacts]

    def ref(self, tensor: Any) -> tuple[str, int]:
        """The node and output that a tensor comes from."""

    def owner(self, function: Any) -> str:
        """The node that made a function, "" if it is not known; the leaf tensor where a gradient ends."""

    def claim_result(self, tensor: Any) -> None:
        """Note that the node behind a tensor made the functions without an owner."""


class Backward:
    """The backward pass from the results of a call.

    Args:
        recorder: the record of the call.
        results: its results; those that autograd follows are differentiated, as their sum.
        targets: the tensors whose gradients alone are wanted, None for all leaf tensors.

    Attributes:
        nodes: the nodes of the backward pass, those that come first in it first.
        order: its functions in the same order.
        arriving: for each gradient that a function takes the node and output that it comes from.
        parts: for those that are sums, what is summed.
        node_of: the nodes of the functions.
        seeds: the results, each with the node of the ones that it is differentiated with.
        notes: sentences for the reader.
    """

    def __init__(self, recorder: FollowsGradients, results: Sequence[Any], targets: Sequence[Any] | None = None) -> None:
        self.nodes: list[ForeignNode] = []
        self.notes: list[str] = []
        self.arriving: dict[Slot, tuple[str, int]] = {}
        self.parts: dict[Slot, list[tuple[str, int]]] = {}
        self.node_of: dict[Any, str] = {}
        self.seeds: list[tuple[Any, str]] = []
        self.roots = [tensor for tensor in results if tensor.grad_fn is not None]
        self._recorder = recorder
        self._inputs: dict[Slot, list[tuple[str, int]]] = {}
        for tensor in self.roots:
            recorder.claim_result(tensor)
        self._forward = {node.name: node for node in recorder.nodes}
        self._say()
        for tensor in self.roots:
            self._add_seed(tensor)
        self.order = consumers_first([tensor.grad_fn for tensor in self.roots])
        if targets is not None:
            self.order = _leading_to(self.order, targets)
        for function in self.order:
            self._add(function)
        for tensor in targets or ():
            if tensor.grad_fn is not None and tensor.grad_fn not in self.node_of:
                self._arrive(tensor.grad_fn, tensor.output_nr, Port("", word_of(tensor.dtype), sizes_of(tensor.shape)))

    def owner(self, function: Any) -> str:
        """The forward node that a function differentiates: the leaf tensor, for one at which a gradient ends."""
        if is_end(function):
            self._forward.setdefault(self._recorder.owner(function), self._recorder.nodes[-1])
        return self._recorder.owner(function)

    def gradient_of(self, tensor: Any) -> tuple[str, int] | None:
        """The node and output of the gradient of a tensor, None if none arrives."""
        if tensor.grad_fn is not None:
            return self.arriving.get((tensor.grad_fn, tensor.output_nr))
        return next(((self.node_of[function], 0) for function in self.order if is_end(function) and function.variable is tensor), None)

    def leaves(self) -> list[Any]:
        """The leaf tensors that the gradient arrives at."""
        return [function.variable for function in self.order if is_end(function)]

    def run(self) -> tuple[Sequence[Any], Failure | None]:
        """Run the backward pass. No `.grad` changes.

        Returns:
            The gradients of the leaf tensors, in their order, None for one at which nothing arrives; and the error of the pass.
        """
        leaves = self.leaves()
        if not leaves:
            return [], None
        handles = [function.register_hook(partial(self._note_none, function)) for function in self.order if is_custom(function)]
        try:
            seeds = [torch.ones_like(tensor) for tensor in self.roots]
            return torch.autograd.grad(self.roots, leaves, seeds, retain_graph=True, allow_unused=True), None
        except Exception as error:  # noqa: BLE001 - a function of the user's own may raise anything
            said = f"{type(error).__name__}: {error}".partition(" Hint:")[0]
            return [], Failure(said, self._changing() if _MODIFIED in said else "")
        finally:
            remove_all(handles)

    def _note_none(self, function: Any, passed: Sequence[Any], arrived: Sequence[Any]) -> None:
        """Note the inputs for which a custom function returns None although a gradient arrives."""
        facts = self._recorder.facts.get(self.owner(function))
        if facts is not None and any(gradient is not None for gradient in arrived):
            facts.none_for.update(place for place, gradient in enumerate(passed) if gradient is None)

    def _changing(self) -> str:
        """The last call that changed in place a tensor which a function of the backward pass has saved."""
        for function in self.order:
            if not _is_broken(function):
                continue
            owner = self._recorder.facts.get(self.owner(function))
            saved = [] if owner is None else [*owner.args, *owner.outputs, *owner.kwargs.values()]
            memory = {storage_of(tensor) for tensor in saved if isinstance(tensor, torch.Tensor)}
            for name, facts in reversed(self._recorder.facts.items()):
                if facts.changed is not None and storage_of(facts.changed) in memory and name != self.owner(function):
                    return name
        return ""

    def _say(self) -> None:
        if not self.roots:
            self.notes.append("No result requires gradients, so there is no backward pass.")
        elif len(self.roots) > 1:
            self.notes.append(f"The call has {len(self.roots)} results: the gradients are those of the sum of all their elements.")
        elif self.roots[0].numel() != 1:
            self.notes.append("The result is no single number: the gradients are those of the sum of its elements.")

    def _add_seed(self, tensor: Any) -> None:
        owner = self._recorder.owner(tensor.grad_fn)
        name = self._node("ones_like", "torch.ones_like", owner, "seed", (self._recorder.ref(tensor),), (port_of("", tensor),))
        self.seeds.append((tensor, name))
        self._inputs.setdefault((tensor.grad_fn, tensor.output_nr), []).append((name, 0))

    def _add(self, function: Any) -> None:
        owner, kind = self.owner(function), type(function).__name__
        ports = _ports(function)
        inputs: list[InputRef] = []
        for number, port in enumerate(ports):
            inputs.append(self._arrive(function, number, port))
        outputs = ports if is_end(function) else [_port(following, number) for following, number in function.next_functions]
        name = self.node_of[function] = self._node(kind, f"torch.{kind}", owner, kind, tuple(inputs), tuple(outputs))
        for place, (following, number) in enumerate(function.next_functions):
            if following is not None:
                self._inputs.setdefault((following, number), []).append((name, place))

    def _arrive(self, function: Any, number: int, port: Port) -> InputRef:
        """The node and output of a gradient that a function takes, a sum where several meet."""
        parts = self._inputs.get((function, number), [])
        if len(parts) > 1:
            self.parts[function, number] = parts
            parts = [(self._node("sum", "torch.sum", self.owner(function), "sum", tuple(parts), (port,)), 0)]
        if parts:
            self.arriving[function, number] = parts[0]
        return parts[0] if parts else None

    def _node(self, title: str, op: str, owner: str, part: str, inputs: tuple[InputRef, ...], outputs: tuple[Port, ...]) -> str:
        forward = self._forward.get(owner)
        modules = () if forward is None else forward.modules
        name = self._recorder.names.unique("/".join(["gradients", *[module.path for module in modules[-1:] if module.path], title]))
        frames = () if forward is None else forward.frames
        self.nodes.append(
            ForeignNode(name, op, inputs, outputs, modules=(*_SCOPE, *_unnamed(modules)), frames=frames, differentiates=owner, part=part)
        )
        return name


def remove_all(handles: Sequence[Any]) -> None:
    """Remove hooks."""
    for handle in handles:
        handle.remove()


def storage_of(tensor: Any) -> int:
    """A number for the memory of a tensor, which views and other names of it share."""
    try:
        return int(tensor.untyped_storage()._cdata)
    except (NotImplementedError, RuntimeError):  # of a sparse tensor
        return id(tensor if tensor._base is None else tensor._base)


def _unnamed(modules: Sequence[ModuleCall]) -> list[ModuleCall]:
    """Modules as scopes without classes: those of their gradients."""
    return [ModuleCall(module.path) for module in modules]


def consumers_first(starts: Sequence[Any]) -> list[Any]:
    """The functions behind some functions, each before those that its gradients go to."""
    begun: set[Any] = set()
    done: dict[Any, None] = {}
    pending = list(starts)
    while pending:
        function = pending[-1]
        if function not in begun:
            begun.add(function)
            pending += [following for following, _ in function.next_functions if following is not None and following not in begun]
            continue
        done[pending.pop()] = None
    return list(reversed(done))


def _leading_to(order: Sequence[Any], targets: Sequence[Any]) -> list[Any]:
    """The functions that lead to the gradients of some tensors, in their order."""
    leaves = {id(tensor) for tensor in targets if tensor.grad_fn is None}
    slots = {(tensor.grad_fn, tensor.output_nr) for tensor in targets if tensor.grad_fn is not None}
    wanted: set[Any] = set()
    for function in reversed(order):
        if is_end(function):
            is_wanted = id(function.variable) in leaves
        else:
            is_wanted = any(following in wanted or (following, number) in slots for following, number in function.next_functions)
        if is_wanted:
            wanted.add(function)
    return [function for function in order if function in wanted]


def _ports(function: Any) -> list[Port]:
    """The types of the gradients that a function takes."""
    return [Port("", word_of(meta.dtype), sizes_of(meta.shape)) for meta in function._input_metadata]


def _port(function: Any, number: int) -> Port:
    metadata = () if function is None else function._input_metadata
    return Port("", word_of(metadata[number].dtype), sizes_of(metadata[number].shape)) if number < len(metadata) else Port()


def _is_broken(function: Any) -> bool:
    """True iff a tensor that a function has saved was changed since."""
    for name in dir(function):
        if name.startswith("_saved_"):
            try:
                getattr(function, name)
            except RuntimeError as error:
                if re.search(_MODIFIED, str(error)):
                    return True
    return False
