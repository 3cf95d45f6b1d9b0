"""The memory of function bodies while a node runs them, from the shapes of its inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, cast

from graphcore.attrs import Attrs, Func
from graphcore.errors import UnimplementedError
from graphcore.functions.library import FUNC_ATTR, GRADIENT_OP
from graphcore.graph.model.node import Node, Tensor
from graphcore.passes.functions.expand import names_executor
from graphcore.plumbing import BRANCH, CALL, WHILE
from graphcore.runtime.core.program import Program
from graphcore.runtime.core.rewrite import copy_with_shapes
from graphcore.runtime.core.sizes import PeakMemory, Sizes, calls_functions, check_stores_nothing, taken_by
from graphcore.runtime.engines import build_program
from graphcore.shapes import Shape

if TYPE_CHECKING:
    from graphcore.runtime.functions.function_runtime import FunctionLibraryRuntime


def peak_within(runtime: FunctionLibraryRuntime, node: Node) -> PeakMemory:
    """The peak memory of the functions that `node` runs; 0 for none.

    An upper bound: after a few runs with the same shapes, specialised plans may need less.

    Raises:
        UnimplementedError: a recursive function, a loop of functions, a custom executor, or a shape that depends on values.
    """
    check_stores_nothing(node)
    if not calls_functions(node):
        return PeakMemory(0)
    if (node.op in CALL or node.registration.is_function) and names_executor(node.node_def):
        raise UnimplementedError(f"'{node.name}' (op {node.op}) names an executor, which does not tell what it holds")
    attrs, shapes = node.node_def.attr, [tensor.shape for tensor in node.inputs]
    why = f"'{node.name}' (op {node.op}) runs functions"
    if node.registration.is_function:
        peaks = [_peak_of_body(runtime, node.op, attrs, shapes, why)]
    elif node.op == GRADIENT_OP:
        peaks = [_peak_of_body(runtime, node.op, {FUNC_ATTR: attrs[FUNC_ATTR]}, shapes, why)]
    elif node.op in CALL:
        peaks = [_peak_of_body(runtime, func.name, func.attr, shapes, why) for func in _functions(node)]
    elif node.op in BRANCH:
        peaks = [_peak_of_body(runtime, func.name, func.attr, shapes[1:], why) for func in _functions(node)]
    elif node.op in WHILE:
        # The loop variables are live while the body makes the next ones.
        shapes = [tensor.shape for tensor in node.outputs]
        state = sum([taken_by(tensor) for tensor in node.outputs])
        peaks = [state + _peak_of_body(runtime, func.name, func.attr, shapes, why) for func in _functions(node)]
    else:
        raise UnimplementedError(f"'{node.name}' (op {node.op}) runs functions as often as values say")
    return PeakMemory(max(peaks, default=0), True, f"{why}, which may hold less when the same shapes have come a few times")


def _functions(node: Node) -> list[Func]:
    values = [value for attr in node.node_def.attr.values() for value in (attr if isinstance(attr, tuple) else (attr,))]
    return [value for value in values if isinstance(value, Func)]


def _peak_of_body(runtime: FunctionLibraryRuntime, name: str, attrs: Attrs, shapes: list[Shape], why: str) -> int:
    item = runtime.get_or_create_item(runtime.instantiate(name, {key: value for key, value in attrs.items() if key[0] != "_"}))
    runnable, program = item.runnable, cast("Program", item.executor)  # the default executor is a Program
    assert runnable is not None
    if item.recursive:
        raise UnimplementedError(f"{why}, and '{name}' calls itself")
    feeds, fetches = [node.outputs[0] for node in runnable.args], [node.inputs[0] for node in runnable.rets]
    if not fetches and not runnable.targets:
        return 0
    build = None if item.specialised is None else partial(_built, runtime)
    return peak_for_shapes(runtime, program, (fetches, runnable.targets, feeds), shapes, build, why).bytes or 0


def _built(runtime: FunctionLibraryRuntime, fetches: Sequence[Tensor], targets: Sequence[Node], feeds: Sequence[Tensor]) -> Program:
    return build_program(fetches, targets, feeds, runtime.create_kernel)


What = tuple[Sequence[Tensor], Sequence[Node], Sequence[Tensor]]
"""Fetches, targets, feeds."""


def peak_for_shapes(
    runtime: FunctionLibraryRuntime,
    general: Program,
    what: What,
    shapes: Sequence[Shape],
    build: Callable[..., Program] | None,
    why: str = "",
) -> PeakMemory:
    """The peak memory of a program for feeds of these shapes.

    Args:
        general: the program for all shapes.
        build: makes the specialised program for repeated shapes; None if there is none.
        why: the prefix of an error's reason.

    Raises:
        UnimplementedError: it is unknown.
    """
    fetches, targets, feeds = copy_with_shapes(*what, shapes)
    sizes = Sizes([*[tensor.node for tensor in fetches], *targets][0].graph, partial(peak_within, runtime))
    peaks = [general.peak_memory(sizes)]
    if build is not None:
        special = build(fetches, targets, feeds)
        peaks.append(special.peak_memory(sizes))
        special.close()
    for peak in peaks:
        if peak.bytes is None:
            raise UnimplementedError(f"{why}, and there {peak.reason}" if why else peak.reason)
    most = max(peaks, key=lambda peak: peak.bytes or 0)
    if peaks[0].bytes == peaks[-1].bytes:
        return most
    return PeakMemory(most.bytes, True, most.reason or "it may be less when the same shapes have come a few times")
