"""The optimizer: inlining, folding, merging and cleaning, to a fixed point."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Final

import msgspec

from graphcore.graph import Graph, Node
from graphcore.passes.functions.expand import ExpandInlineFunctionsOptions, FunctionBodies, expand_inline_functions
from graphcore.passes.functions.recursion import InlinableFunctions
from graphcore.passes.gradients.functions.instantiation import InstantiatedFunctions
from graphcore.passes.infra.alias_removal import remove_dead_nodes, remove_identity_nodes, remove_list_array_converter
from graphcore.passes.infra.declarations import ANY, PassDeclaration, declares
from graphcore.passes.infra.rewriting_graphs import rewrites
from graphcore.passes.optimize.common_subexpressions import eliminate_common_subexpressions
from graphcore.passes.optimize.constant_folding import MAX_CONSTANT_BYTES, ConstantFoldingOptions, fold_constants

MAX_ROUNDS: Final = 10


class OptimizerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of `optimize_graph`.

    Args:
        inlining: inline calls, except those of recursive functions.
        constant_folding: fold constants.
        common_subexpressions: merge equal computations.
        keep: the names of nodes to keep with their names and outputs: those that are fetched.
        fold, merge: return False for nodes not to fold, not to merge; all may be by default.
        max_folded_constant_in_bytes: larger values are not folded.
        inline: the options for inlining.
        device: the device of the graph.
        max_rounds: the most rounds.
    """

    OFF: ClassVar[int] = -1
    """With `L0`, `L1`, `ON_1` and `ON_2`, levels of TensorFlow's compiler and optimizer in a `ConfigProto`, without effect."""
    L0: ClassVar[int] = -1
    L1: ClassVar[int] = 0
    ON_1: ClassVar[int] = 1
    ON_2: ClassVar[int] = 2
    inlining: bool = True
    constant_folding: bool = True
    common_subexpressions: bool = True
    keep: frozenset[str] = frozenset()
    fold: Callable[[Node], bool] | None = None
    merge: Callable[[Node], bool] | None = None
    max_folded_constant_in_bytes: int = MAX_CONSTANT_BYTES
    inline: ExpandInlineFunctionsOptions = ExpandInlineFunctionsOptions()
    device: str = ""
    max_rounds: int = MAX_ROUNDS


DEFAULT_OPTIONS: Final = OptimizerOptions()


@declares(PassDeclaration(name="optimize_graph", adds=ANY, removes=ANY, rewires=True, keeps_leaves=False, keeps_order=False, once=False))
@rewrites
def optimize_graph(functions: FunctionBodies | None, graph: Graph, options: OptimizerOptions = DEFAULT_OPTIONS) -> bool:
    """Optimise a graph in place, preserving its results.

    A round removes list converters, dead nodes and identities, folds constants, merges common subexpressions and inlines calls; rounds are
    repeated until one changes nothing. Nodes that cannot be computed are left to the run.

    Args:
        functions: instantiates functions, such as a FunctionLibraryRuntime; uses the graph's own library if None.
        graph: the graph to change; unchanged after an error.
        options: the options.

    Returns:
        True iff anything changed.
    """
    bodies = InlinableFunctions(functions or InstantiatedFunctions(graph.library))
    merge = _all_of(options.merge, lambda node: node.name not in options.keep)
    folding = ConstantFoldingOptions(
        consider=options.fold,
        max_constant_size_in_bytes=options.max_folded_constant_in_bytes,
        device=options.device,
        ignore_failures=True,
    )
    inline = msgspec.structs.replace(options.inline, keep=options.inline.keep | options.keep)
    changed = False
    with graph.transaction():
        for _ in range(options.max_rounds):
            more = remove_list_array_converter(graph, options.keep)
            more |= remove_dead_nodes(graph, options.keep)
            more |= remove_identity_nodes(graph, options.keep)
            if options.constant_folding and fold_constants(graph, folding):
                remove_dead_nodes(graph, options.keep)
                more = True
            if options.common_subexpressions:
                more |= eliminate_common_subexpressions(graph, merge)
            if options.inlining:
                more |= expand_inline_functions(bodies, graph, inline)
            if not more:
                break
            changed = True
    return changed


def _all_of(first: Callable[[Node], bool] | None, second: Callable[[Node], bool]) -> Callable[[Node], bool]:
    return second if first is None else lambda node: second(node) and first(node)
