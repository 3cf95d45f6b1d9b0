"""The calls that end a gradient on the way to a tensor, with the reasons."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any, Final

from graphcore.frontends.foreign import GradientEnd
from graphcore.frontends.torch_calls.autograd import TAKEN_OUT, CallFacts, GradientRecorder
from graphcore.frontends.torch_calls.ways import Ref, Ways
from graphcore.frontends.torch_reader.objects import word_of
from graphcore.source import SourceLocation

_SHAPES_ONLY: Final = frozenset(
    [f"{word}_like" for word in ("zeros", "ones", "full", "empty", "rand", "randn", "randint")]
    + [f"new_{word}" for word in ("zeros", "ones", "full", "empty", "tensor")]
)
_MOST: Final = 8
_MOST_MISSING: Final = 50


class Ends:
    """The places where the gradient of a computation stops on the way to a tensor.

    Args:
        ways: the computation.
        x: the tensor of the user.
        ref: its copy in the computation.

    Attributes:
        carrying: the tensors that depend on it, and that autograd follows to it.
    """

    def __init__(self, ways: Ways, x: Any, ref: Ref) -> None:
        self._ways = ways
        self._x = x
        self._ref = ref
        self._ended: list[tuple[str, int]] = []
        self.carrying: set[Ref] = {ref} if x.requires_grad else set()
        for name in ways.nodes:
            facts = ways.facts(name)
            if facts is None or not any(taken in self.carrying for taken in ways.sources(name)):
                continue
            if facts.custom is not None:
                self._leave_out_inner(name)
            for place, needs in enumerate(facts.needs_gradient):
                if needs:
                    self.carrying.add((name, place))
                else:
                    self._ended.append((name, place))

    def all(self) -> list[GradientEnd]:
        """All of them, for a gradient that is None."""
        x, ways = self._x, self._ways
        if not (x.is_floating_point() or x.is_complex()):
            return [self._at_x("dtype", f"is {word_of(x.dtype)}: only floating and complex tensors have gradients")]
        if not x.requires_grad:
            return [self._at_x("requires_grad", "has requires_grad=False, so autograd does not follow it: x.requires_grad_() changes that")]
        made = ways.facts(self._ref[0])
        if made is not None and made.function == "requires_grad_" and not made.needs_gradient[self._ref[1]]:
            return [self._at_x(*_reason(made, self._ref[1]))]
        if self._ref not in ways.before:
            return self._without_way()
        ends = [*self.not_a_leaf(), *self._custom(), *self.on_other_ways()]
        if not ends:
            last = next((node for node, place in self.carrying if (node, place) in ways.results), "")
            ends.append(GradientEnd("not differentiable", last, "has a gradient of its own, which gives none to this input"))
        return ends

    def not_a_leaf(self) -> list[GradientEnd]:
        """The end at a tensor that is a result itself, and keeps no `.grad`."""
        if self._x.is_leaf or self._x.retains_grad:
            return []
        made = type(self._x.grad_fn).__name__
        text = (
            f"is no leaf but a result (of {made}): the gradient goes on to the leaf that it was made of, and its own .grad stays None; "
            "make it a leaf (w = nn.Parameter(...) as the last step), or call w.retain_grad()"
        )
        return [self._at_x("not a leaf", text)]

    def on_other_ways(self) -> list[GradientEnd]:
        """The ends on ways to the result."""
        ways = self._ways
        ends: list[GradientEnd] = []
        for name, place in self._ended:
            if (name, place) not in ways.before or len(ends) == _MOST:
                continue
            facts = ways.facts(name)
            assert facts is not None
            kind, reason = _reason(facts, place)
            way = [*ways.path(self._ref, name), *ways.path_to_result((name, place))[1:]]
            ends.append(GradientEnd(kind, name, reason, tuple(way)))
        return ends

    def _custom(self) -> list[GradientEnd]:
        """The ends at functions of `torch.autograd.Function` that have returned None."""
        ways = self._ways
        ends = []
        for name in ways.nodes:
            facts = ways.facts(name)
            if facts is None or not facts.none_for or not any((name, place) in ways.before for place in range(len(facts.outputs))):
                continue
            following = facts.custom.next_functions
            sources = [(ways.recorder.owner(following[place][0]), following[place][1]) for place in facts.none_for if following[place][0]]
            if self.carrying.intersection(sources):
                way = [*ways.path(self._ref, name), *ways.path_to_result((name, 0))[1:]]
                ends.append(GradientEnd("custom gradient", name, words_on_custom(facts.custom, "returns None for this input"), tuple(way)))
        return ends

    def _leave_out_inner(self, name: str) -> None:
        """Take the calls within a custom function, of which one is the last, out of the ends.

        Autograd is off while they run.
        """
        inner, pending = {name}, [name]
        while pending:
            taken = {ref[0] for ref in self._ways.nodes[pending.pop()].inputs if ref is not None} - inner
            within = [node for node in taken if _is_off_within(self._ways.facts(node))]
            inner.update(within)
            pending += within
        self._ended = [ref for ref in self._ended if ref[0] not in inner]

    def _at_x(self, kind: str, reason: str) -> GradientEnd:
        return GradientEnd(kind, self._ref[0], reason)

    def _without_way(self) -> list[GradientEnd]:
        """The reasons why no result is computed from it."""
        ways, ref = self._ways, self._ref
        if not ways.takers.get(ref):
            return [self._unused()]
        behind, waiting = {ref[0]: None}, [ref]
        for tensor in waiting:
            for taker in ways.takers.get(tensor, ()):
                if taker not in behind:
                    behind[taker] = None
                    waiting += ways.outputs(taker)
        taken_out = [name for name in behind if (facts := ways.facts(name)) is not None and facts.function in TAKEN_OUT]
        if taken_out:
            text = "gives a number or array, not a tensor: autograd's record ends there, and what is computed from it has no gradient"
            return [GradientEnd("taken out", name, text, tuple(ways.path(ref, name))) for name in taken_out[:_MOST]]
        last = [name for name in behind if not any(ways.takers.get(out) for out in ways.outputs(name))]
        text = "gives a result that no call takes on the way to the loss"
        return [GradientEnd("unused", name, text, tuple(ways.path(ref, name))) for name in last[:_MOST]]

    def _unused(self) -> GradientEnd:
        path = next((f"{name}.{part}" if name else part for name, part in self._places()), "")
        module, _, _ = path.rpartition(".")
        called = {call.path for node in self._ways.nodes.values() for call in node.modules}
        if path and module not in called:
            return self._at_x("never called", f"belongs to module '{module}', which the computation never calls" if module else _NOT_TAKEN)
        return self._at_x("no path", _NOT_TAKEN)

    def _places(self) -> list[tuple[str, str]]:
        """The modules that hold it, with its names in them."""
        copies = self._ways.recorder.copies
        twin = copies.twin_of(self._x)
        tables = [(name, [*module.named_parameters(), *module.named_buffers()]) for name, module in copies.modules]
        return [(name, path) for name, table in tables for path, tensor in table if tensor is twin]


def missing_gradients(recorder: GradientRecorder, results: Sequence[Any], reached: Sequence[Any]) -> dict[str, list[GradientEnd]]:
    """The leaf tensors that need a gradient and get none, by their nodes.

    Args:
        recorder: the record of a call.
        results: its results.
        reached: the leaf tensors that get one.
    """
    got = {id(tensor) for tensor in reached}
    waiting = [tensor for tensor in recorder.given() if tensor.requires_grad and id(tensor) not in got]
    if not waiting:
        return {}
    ways = Ways(recorder, results)
    refs = {recorder.ref(tensor): tensor for tensor in waiting}
    return {
        ref[0]: Ends(ways, recorder.copies.original.get(id(tensor), tensor), ref).all()
        for ref, tensor in list(refs.items())[:_MOST_MISSING]
    }


def words_on_custom(function: Any, does: str) -> str:
    """A custom function in words, with the line of its backward.

    Args:
        function: the function of the backward pass.
        does: the words on its backward.
    """
    made = type(function)._forward_cls
    code = getattr(inspect.unwrap(made.backward), "__code__", None)
    at = "" if code is None else f" ({SourceLocation(code.co_filename, code.co_firstlineno).where})"
    return f"is the result of {made.__name__} (torch.autograd.Function), whose backward{at} {does}"


def _is_off_within(facts: CallFacts | None) -> bool:
    """True for a call for which autograd is off, and was not switched off by a program."""
    return facts is not None and not facts.is_enabled and not facts.disabled_at


_NOT_TAKEN: Final = "is taken by no call of the computation"


def _reason(facts: CallFacts, place: int) -> tuple[str, str]:
    """The kind and the reason of the end of gradients at a call."""
    function, output = facts.function, facts.outputs[place]
    if function in {"detach", "detach_"}:
        return "detached", f"is .{function}(), which ends gradients"
    if function == "data":
        return "detached", "is .data, a tensor without autograd's record"
    if function == "tensor":
        return "detached", "is torch.tensor of a tensor, a copy without autograd's record: torch.stack and arithmetic keep it"
    if function == "requires_grad_":
        return "requires_grad", "switches requires_grad off: autograd does not follow what is computed afterwards"
    if function == "grad" and not facts.kwargs.get("create_graph"):
        return "detached", "is torch.autograd.grad without create_graph=True, whose gradients have no record of their own"
    if output.is_inference():
        return "no_grad", "runs under torch.inference_mode, which records nothing"
    if not facts.is_enabled:
        at = f", since {SourceLocation(facts.disabled_at[-1].file, facts.disabled_at[-1].line)}" if facts.disabled_at else ""
        return "no_grad", f"runs while autograd is off (no_grad){at}"
    if not (output.is_floating_point() or output.is_complex()):
        return "dtype", f"gives {word_of(output.dtype)}: gradients flow through floating and complex tensors only"
    if function in _SHAPES_ONLY:
        return "shape only", "takes only the shape and type of its input, which have no derivative"
    return "not differentiable", "gives a result that autograd does not follow"
