"""Tracing of a call with fake tensors."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from itertools import islice
from time import monotonic
from types import GeneratorType
from typing import Any, Final

from graphcore.errors import InvalidArgumentError
from graphcore.frontends.foreign import ForeignFunction, ForeignGraph, ForeignNode, InputRef, ModuleCall
from graphcore.frontends.frontend import Call
from graphcore.frontends.torch_calls.autograd import GradientRecorder
from graphcore.frontends.torch_calls.axes import AxisOrigins
from graphcore.frontends.torch_calls.backward import Backward
from graphcore.frontends.torch_calls.branches import Decisions, sizes_by_values
from graphcore.frontends.torch_calls.constructors import Constructors
from graphcore.frontends.torch_calls.copying import Copies
from graphcore.frontends.torch_calls.ends import missing_gradients
from graphcore.frontends.torch_calls.failures import Failure, TypesDifferError, clash_of, places_of, words_of
from graphcore.frontends.torch_calls.keras_layers import follow_layers, layers_in, states_of_layers
from graphcore.frontends.torch_calls.passes import seen_passes
from graphcore.frontends.torch_calls.recording import Originals, Recorder, States, tensors_of
from graphcore.frontends.torch_calls.remarks import remarks_on
from graphcore.frontends.torch_calls.special import follow_lazy_modules, unwrap_parts, unwrapped
from graphcore.frontends.torch_calls.surroundings import untouched
from graphcore.frontends.torch_reader.objects import with_devices
from graphcore.frontends.torch_reader.placing import placed_states
from graphcore.remarks import remark
from graphcore.support.watched import long_work

torch: Any = import_module("torch")
_fakes: Any = import_module("torch._subclasses.fake_tensor")
_MOST_TRACES: Final = 8
_FREED: Final = "backward through the graph a second time"
_SECONDS: Final = 4.0
"""The time after which no other way is tried."""
_MOST_ITEMS: Final = 1000


@dataclass(slots=True)
class Recording:
    """A call that was made on copies.

    Attributes:
        recorder: what it wrote down.
        result: the result, None after an error.
        error: the error, None without one.
        roots: the modules that were called, by the names that their tensors begin with.
    """

    recorder: Any
    result: Any
    error: Exception | None
    roots: Mapping[str, Any] = field(default_factory=dict)


def trace(call: Call, *, says_remarks: bool = True) -> ForeignGraph:
    """The graph of a call.

    Args:
        call: the call.
        says_remarks: True to say remarks on it to the user, beside its notes.

    Raises:
        InvalidArgumentError: the call fails before any operation.
    """
    inner = unwrapped(call)
    with untouched(inner.function):
        graph, texts = _drawn(inner)
    for text in texts if says_remarks else ():
        remark(text)
    long_work.publish(f"tracing {name_of_call(inner)}", 1, 1, "")
    return graph


def name_of_call(call: Call) -> str:
    """The name of the function that a call is of, the class of a module."""
    return str(getattr(call.function, "__name__", type(call.function).__name__))


def _drawn(call: Call) -> tuple[ForeignGraph, list[str]]:
    """The graph of one way through a call, to its end if that is met, and the remarks on it."""
    latest = monotonic() + _SECONDS
    decisions = Decisions()
    first, of_first = made, mode = _traced(call, decisions)
    for _ in range(_MOST_TRACES - 1):
        plan = made.recorder.decisions.other_plan()
        if made.error is None or plan is None or monotonic() > latest:
            break
        made, mode = _traced(call, Decisions(plan))
    if made.error is not None:
        made, mode = first, of_first
    graph = graph_of(call, made)
    texts = [] if made.error is not None else _remarks(graph, made, mode)
    graph.notes += texts
    if call.gradients and made.error is None:
        with mode:
            backward = add_gradients(graph, made)
            gradients, leaves = mark_failure(graph, backward, has_passes=made.recorder.has_passes), backward.leaves()
        reached = [leaf for leaf, gradient in zip(leaves, gradients, strict=True) if gradient is not None] if gradients else leaves
        graph.missing = missing_gradients(made.recorder, tensors_of(made.result), reached)
    return graph, texts


def _remarks(graph: ForeignGraph, made: Recording, mode: Any) -> list[str]:
    with mode:
        return remarks_on(graph, made.recorder, made.result, made.roots, AxisOrigins(graph.main.nodes, Constructors({}).words))


def _traced(call: Call, decisions: Decisions) -> tuple[Recording, Any]:
    """Trace a call once, on copies of its own. The second result is the mode of fake tensors."""
    recorder = (GradientRecorder if call.gradients else Recorder)({}, {})
    recorder.decisions = decisions

    def prepared(met: States, original: Originals) -> Recorder:
        recorder.know(met, original)
        return recorder

    sizes = sizes_by_values(decisions, recorder.line_of_user, recorder.decided_by_symbols)
    mode = _fakes.FakeTensorMode(allow_non_fake_inputs=True, shape_env=sizes, static_shapes=True)
    return record(call, Copies(torch, mode), prepared, mode), mode


def record(call: Call, copies: Copies, kind: Callable[[States, Originals], Recorder], *modes: AbstractContextManager[object]) -> Recording:
    """Make a call on copies, within some modes, written down by a recorder of some kind."""
    function, args, kwargs = _prepared(call, copies)
    for _, module in copies.modules:
        unwrap_parts(module)
    states = _states(copies)
    recorder = kind(states, copies.original)
    recorder.work = f"tracing {name_of_call(call)}"
    if isinstance(recorder, GradientRecorder):
        recorder.copies = copies
    for name, tensor in named_tensors(call.function, args, kwargs):
        recorder.add_input(name, tensor)
    own_layers = layers_in(call)
    for name, module in copies.modules:
        _follow(module, name, recorder)
        follow_layers(module, name, recorder, own_layers)
        for mode in modes:
            if isinstance(mode, _fakes.FakeTensorMode):
                follow_lazy_modules(module, recorder, mode, states)
    result, error = called(function, args, kwargs, recorder, *modes)
    return Recording(recorder, result, error, dict(reversed(copies.modules)))


def called(
    function: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    recorder: Recorder,
    *around: AbstractContextManager[object],
) -> tuple[Any, Exception | None]:
    """The result of a call that a recorder follows within some blocks, and the error of one that fails."""
    result, error = None, None
    with ExitStack() as stack:
        for context in (*around, seen_passes(), recorder):
            stack.enter_context(context)
        try:
            result = _finished(function(*args, **kwargs))
        except Exception as raised:  # noqa: BLE001 - a user's function may raise anything, which the picture says
            error = raised
    if error is not None and not recorder.failed and any(node.kind == "op" for node in recorder.nodes):
        recorder.add_failure(error)
    return result, error


def _finished(result: Any) -> Any:
    """The result of a call; of a generator the values, since its body runs when they are taken."""
    return list(islice(result, _MOST_ITEMS)) if isinstance(result, GeneratorType) else result


def graph_of(call: Call, made: Recording) -> ForeignGraph:
    """The graph of what was recorded.

    Raises:
        InvalidArgumentError: the call failed before any operation.
    """
    recorder, error = made.recorder, made.error
    said = "" if error is None else f"{type(error).__name__}: {error}".strip()
    if error is not None and not any(node.kind == "op" for node in recorder.nodes):
        raise InvalidArgumentError(f"The call failed before any operation: {said}") from error
    outputs: list[InputRef] = [recorder.ref(tensor) for tensor in tensors_of(made.result)]
    origins = AxisOrigins(recorder.nodes, Constructors(made.roots).words)
    nodes = [_failed(node, recorder.failure, said, origins) if node.name == recorder.failed else node for node in recorder.nodes]
    nodes, device = with_devices(nodes, recorder.tensors)
    main = ForeignFunction("main", outputs=tuple(outputs), output_names=("",) * len(outputs), nodes=placed_states(nodes))
    main.inputs = tuple([node.outputs[0] for node in nodes if node.kind == "input"])
    graph = ForeignGraph("PyTorch call", main, producer=f"PyTorch {torch.__version__}", name=name_of_call(call))
    if device:
        graph.facts["device"] = device
    if said:
        graph.notes.append(f"The call failed: {said}")
    graph.notes += recorder.decisions.notes()
    graph.size_step = origins.step
    return graph


def _failed(node: ForeignNode, failure: Failure | None, said: str, origins: AxisOrigins) -> ForeignNode:
    """The node at which a call failed, with its error in words."""
    clash = None if failure is None else clash_of(failure)
    if failure is None or clash is None:
        return replace(node, error=said)
    places = places_of(failure, clash)
    taken = [ref for ref in node.inputs if ref is not None]
    words = [origins.words(taken[slot], axis) for slot, axis in places]
    last = "PyTorch refuses that when it computes." if isinstance(failure.error, TypesDifferError) else f"PyTorch says: {said}"
    return replace(node, error=words_of(clash, words, last), clashes=places)


def add_gradients(graph: ForeignGraph, made: Recording) -> Backward:
    """Add the backward pass from the result of a call."""
    before = len(made.recorder.nodes)
    backward = Backward(made.recorder, tensors_of(made.result))
    graph.main.nodes += [*made.recorder.nodes[before:], *backward.nodes]
    graph.notes += backward.notes
    graph.size_step = AxisOrigins(graph.main.nodes, Constructors(made.roots).words).step
    return backward


def mark_failure(graph: ForeignGraph, backward: Backward, *, has_passes: bool) -> Sequence[Any]:
    """Run a backward pass, and mark the call that makes it fail. Returns the gradients of the leaf tensors."""
    gradients, failed = backward.run()
    if failed is not None and has_passes and _FREED in failed.said:
        graph.notes.append("The call runs a backward pass itself, after which no second one can run: drawn is that of its result.")
    elif failed is not None:
        graph.notes.append(f"The backward pass fails: {failed.said}")
        graph.main.nodes = [replace(node, error=failed.said) if node.name == failed.node else node for node in graph.main.nodes]
    return gradients


def _prepared(call: Call, copies: Copies) -> tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]:
    """The function to call and its arguments: copies of modules and tensors.

    The module that is called comes first, so that it has no name before those of its parts.
    """
    function = call.function
    module = function if isinstance(function, torch.nn.Module) else getattr(function, "__self__", None)
    if isinstance(module, torch.nn.Module):
        copied = copies.of_module(module)
        made: Callable[..., Any] = copied if function is module else partial(function.__func__, copied)
    else:
        made = copies.of_arguments(function)
    return made, copies.of_arguments(tuple(call.args)), copies.of_arguments(dict(call.kwargs))


def _states(copies: Copies) -> dict[int, tuple[str, str]]:
    """The names and kinds of tensors, by the ids of their copies."""
    states = {key: (name, "parameter" if copies.original[key].requires_grad else "input") for key, name in copies.names.items()}
    for name, module in reversed(copies.modules):
        prefix = f"{name}." if name else ""
        states.update({id(tensor): (prefix + path, "buffer") for path, tensor in module.named_buffers()})
        states.update({id(tensor): (prefix + path, "parameter") for path, tensor in module.named_parameters()})
        states.update(states_of_layers(module, prefix))
    return states


def named_tensors(function: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The tensors among the arguments, named as the parameters are."""
    called = function.forward if isinstance(function, torch.nn.Module) else function
    try:
        arguments = inspect.signature(called).bind(*args, **kwargs).arguments
    except (TypeError, ValueError):
        arguments = {**{f"argument_{place}": value for place, value in enumerate(args)}, **kwargs}
    for name, value in arguments.items():
        tensors = tensors_of(value)
        for place, tensor in enumerate(tensors):
            yield name if len(tensors) == 1 else f"{name}_{place}", tensor


def _follow(module: Any, name: str, recorder: Recorder) -> None:
    """Tell the recorder which module of a copy is called."""
    for path, part in module.named_modules():
        full = f"{name}.{path}" if name and path else name or path
        if id(part) in recorder.modules_by_id:
            continue
        entered = recorder.modules_by_id[id(part)] = ModuleCall(full, type(part).__name__)
        part.register_forward_pre_hook(
            lambda _module, _args, entered=entered: recorder.enter(entered.path, entered.type_name), prepend=True
        )
        part.register_forward_hook(lambda _module, _args, _result: recorder.leave(), always_call=True)
