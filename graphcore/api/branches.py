"""`gc.cond`, `gc.switch_case` and `gc.case`: Python functions as branches of one node."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from graphcore import dtypes
from graphcore.api.definitions_in_cells import Traced, tracing
from graphcore.api.predicates import scalar_choice
from graphcore.api.structures import describe, fill, flatten, outline, unite
from graphcore.api.unneeded import drop_unneeded_effects
from graphcore.attrs import AttrValue, Func
from graphcore.brief import brief
from graphcore.definitions import FunctionDef
from graphcore.dtypes import DType
from graphcore.errors import FailedPreconditionError, InvalidArgumentError
from graphcore.graph import FunctionGraph, Graph, Node, Tensor, convert_to_tensor, exact_name, get_default_graph
from graphcore.graph.tracing import described
from graphcore.passes.functions.defining import define_body, function_label, sweep
from graphcore.support.critical_section import critical_contextmanager, critical_section
from graphcore.tf1.arrays.layout import stack
from graphcore.tf1.calls import either
from graphcore.tf1.math.elementwise import cast
from graphcore.tf1.math.reductions import reduce_sum
from graphcore.tf1.variables.references import settle_references

Branch = Callable[[], Any]


def cond(
    pred: Any,
    true_fn: Branch | None = None,
    false_fn: Branch | None = None,
    strict: bool = False,
    name: str | None = None,
    fn1: Branch | None = None,
    fn2: Branch | None = None,
) -> Any:
    """Run `true_fn` if `pred` is true at run time, else `false_fn`. Only that one runs.

    Args:
        pred: a bool scalar. A number is true if it is not 0, a string if it is not empty.
        true_fn, false_fn: take no arguments and return a tensor, or (nested) lists, tuples and dicts of tensors, both in the same form. Tensors
            of the surrounding graph are captured.
        strict: keep lists and tuples of a single tensor; otherwise the tensor itself is returned.
        name: the name of the node, "cond" by default.
        fn1, fn2: older names of `true_fn` and `false_fn`.

    Other threads that build this graph wait while the branches are traced, so a branch must not wait for them (see `gc.Graph`).

    Returns:
        The results of the branch, in the same form.

    Raises:
        InvalidArgumentError: `pred` is no scalar, or the branches return different types or forms; nothing is added to the graph.

    Example:
        >>> x = gc.constant(-3.0, name="x")
        >>> y = gc.cond(x < 0, lambda: -x, lambda: x)
        >>> print(gc.Session().run(y))
        3.0
    """
    graph = get_default_graph()
    name = name or "cond"
    branches = _checked(
        {"true": either("true_fn", true_fn, "fn1", fn1), "false": either("false_fn", false_fn, "fn2", fn2)}, name, strict=strict
    )

    def finish(functions: list[Func], inputs: list[Tensor], types: tuple[DType, ...], stateful: bool) -> Node:
        selector = scalar_choice(graph, convert_to_tensor(graph, pred, None, f"pred of {name}"), f"The condition of '{name}'", choice.name)
        attrs: dict[str, AttrValue] = {"Tout": types, "then_branch": functions[0], "else_branch": functions[1]}
        return choice.add("If" if stateful else "StatelessIf", selector, inputs, attrs)

    choice = _Choice(graph, name, branches)
    return following_captures(graph, name, lambda: choice.build(finish), lambda: choice.traced_for)


def switch_case(branch_index: Any, branch_fns: Any, default: Branch | None = None, name: str = "switch_case") -> Any:
    """Run the branch with number `branch_index`. Only that one runs.

    Args:
        branch_index: an int32 scalar. A number without a branch selects `default`.
        branch_fns: the branches from number 0 on; or a dict, or pairs, of numbers and branches.
        default: the branch for all other numbers; the last one by default.
        name: the name of the node.

    Raises:
        InvalidArgumentError: the branches return different types or forms, or their numbers are not 0, 1, 2, ...
    """
    graph = get_default_graph()
    branches = {f"branch{i}": branch for i, branch in enumerate(_numbered(branch_fns, name))}
    if default is not None:
        branches["default"] = default
    branches = _checked(branches, name, strict=True)

    def finish(functions: list[Func], inputs: list[Tensor], types: tuple[DType, ...], stateful: bool) -> Node:
        selector = convert_to_tensor(graph, branch_index, dtypes.int32, f"branch_index of {name}")
        if selector.dtype.base is not dtypes.int32:
            raise InvalidArgumentError(
                f"branch_index of {name} must be an int32, got {describe(selector)}; use gc.cast", op="Case", source=selector.node.source
            )
        selector = scalar_choice(graph, selector, f"branch_index of '{name}'", choice.name)
        return choice.add("Case" if stateful else "StatelessCase", selector, inputs, {"Tout": types, "branches": tuple(functions)})

    choice = _Choice(graph, name, branches)
    return following_captures(graph, name, lambda: choice.build(finish), lambda: choice.traced_for)


def case(
    pred_fn_pairs: Any, default: Branch | None = None, exclusive: bool = False, strict: bool = False, name: str | None = "case"
) -> Any:
    """Run the branch of the first true condition.

    Args:
        pred_fn_pairs: pairs (or a dict) of conditions and branches, tried in this order.
        default: the branch if no condition is true; the last one of `pred_fn_pairs` by default.
        exclusive: require at run time that at most one condition is true.
        strict: keep lists and tuples of a single tensor; otherwise the tensor itself is returned.
        name: the name of the node of the first condition; the others are within its second branch.

    Raises:
        InvalidArgumentError: there is no branch, or the branches return different types or forms.
    """
    pairs = list(pred_fn_pairs.items()) if isinstance(pred_fn_pairs, Mapping) else list(pred_fn_pairs)
    if not pairs:
        raise InvalidArgumentError(f"{name or 'case'} needs at least one pair of a condition and a branch")
    conditions = [pair[0] for pair in pairs]
    if default is None:
        default = pairs.pop()[1]
    with get_default_graph().control_dependencies([_at_most_one(conditions)] if exclusive else []):
        return _first_true(pairs, default, strict, name or "case")


def _first_true(pairs: list[Any], default: Branch, strict: bool, name: str) -> Any:
    if not pairs:
        return default()
    (pred, branch), rest = pairs[0], pairs[1:]
    return cond(pred, branch, (lambda: _first_true(rest, default, strict, name)) if rest else default, strict, name)


def _at_most_one(conditions: list[Any]) -> Node:
    counted = reduce_sum(cast(stack(conditions), dtypes.int32))
    names = ", ".join([getattr(condition, "name", str(condition)) for condition in conditions])
    text = f"exclusive=True: required at most one true condition of {names}, got"
    graph = get_default_graph()
    return graph.apply_op("Assert", [graph.apply_op("LessEqual", [counted, 1], None, None).outputs[0], [text, counted]], None, None)


class TracedFor:
    """The inputs of traced functions as they were at tracing.

    Python may have read their ranks, and gradients and `set_shape` their shapes.

    Args:
        graph: the graph of the node.
        tensors: the inputs of the node that runs the functions.
        bodies: the functions.
    """

    def __init__(self, graph: Graph, tensors: Sequence[Tensor], bodies: Sequence[FunctionGraph]) -> None:
        self._graph = graph
        self._tensors = list(tensors)
        self._is_exact = any(body.gradient_records or body.declares_shapes for body in bodies)
        self._outside = {name: text for body in bodies for name, text in body.outside.items()}
        self.first: list[str] = []
        self.first = self.kinds()

    def kinds(self) -> list[str]:
        """Name, dtype, and rank (or shape, if it matters) of each input.

        Inputs with errors keep their former entries, since nothing is known of them.
        """
        kinds = [*[self._kind(tensor) for tensor in self._tensors], *[self._passed(name) for name in self._outside]]
        if self.first and kinds != self.first:
            problem = self._graph.derivations.problem_of([(tensor.node.name, tensor.index) for tensor in self._tensors])
            return kinds if problem is None else self.first
        return kinds

    def _passed(self, name: str) -> str:
        """A node outside that gradients within go through."""
        node = self._graph.find(name)
        return f"'{name}' which is gone" if node is None else f"'{name}' {described(node)}"

    def _kind(self, tensor: Tensor) -> str:
        node = self._graph.find(tensor.node.name)
        if node is None or tensor.index >= len(node.outputs):
            return f"'{tensor.name}' which is gone"
        present = node.outputs[tensor.index]
        shape = present.shape if self._is_exact else f"rank {present.shape.rank}"
        return f"'{tensor.name}' {present.dtype.text} {shape}"


def following_captures(graph: Graph, name: str, build: Callable[[], Any], traced_for: Callable[[], TracedFor | None]) -> Any:
    """Build a node that calls Python functions once, for tracing. Returns its results.

    Functions called by these may be redefined, and inputs may change. The node is marked while it no longer fits them.

    Args:
        graph: the graph of the node.
        name: the node's name in errors.
        build: traces the functions and adds the node.
        traced_for: returns the inputs the functions were traced for, None before tracing.
    """
    if graph.outer is not None:
        return build()
    calls: list[Traced] = []
    present: list[Traced] = []

    def build_first() -> Any:
        token = tracing.set(calls)
        try:
            return build()
        finally:
            tracing.reset(token)
            present[:] = calls

    def check() -> None:
        traced = traced_for()
        pairs = [] if traced is None else zip(traced.kinds(), traced.first, strict=True)
        other = next((f"{now}, and was {then}" for now, then in pairs if now != then), "")
        if other:
            raise FailedPreconditionError(f"its Python functions were called for other tensors: {other}; run its cell again")
        for number, call in enumerate(present):
            if not call.is_current(graph.library):
                present[number] = call.trace_again(graph)
        if any(now.signature != then.signature for now, then in zip(present, calls, strict=True)):
            raise FailedPreconditionError(
                "a function that it calls was defined again and uses other tensors or gives others; run its cell again"
            )

    def state() -> object:
        traced = traced_for()
        return None if traced is None else traced.kinds(), all(call.is_current(graph.library) for call in present)

    return graph.derivations.derive(f"'{name}'", build_first, fingerprint=state, check=check)


@critical_contextmanager
def leaving_no_trace(graph: Graph, name: str) -> Iterator[str]:
    """Reserve the name of the node made in the block; if the block fails, remove all it has made.

    This includes functions, nodes, captured tensors and the name. Before the node itself is made, other nodes, among them arguments for
    captured tensors, get other names. Other threads wait meanwhile: otherwise their nodes would be removed as well, and their functions be
    taken for outdated ones.

    Yields:
        The name.
    """
    critical_section.acquire(graph.lock)
    try:
        library, first = graph.library.state(), graph.num_node_ids
        captures = dict(graph.captures) if isinstance(graph, FunctionGraph) else {}
        exact = exact_name(graph, name)
        try:
            graph.names.take(exact)
            yield exact
        except BaseException:
            graph.library.restore(library)
            _remove_from(graph, first)
            if isinstance(graph, FunctionGraph):
                graph.captures = captures
            if graph.find(exact) is None:
                graph.names.free(exact)
            raise
    finally:
        graph.lock.release()


def _remove_from(graph: Graph, first: int) -> None:
    """Remove the op nodes with id `first` and above, the latest first."""
    for node in reversed([node for node in graph.op_nodes() if node.id >= first]):
        graph.remove_node(node)


def _checked(branches: Mapping[str, Branch | None], name: str, *, strict: bool) -> dict[str, Branch]:
    checked: dict[str, Branch] = {}
    for label, branch in branches.items():
        if branch is None or not callable(branch):
            raise InvalidArgumentError(f"{label} branch of {name} must be a function, got {brief(branch)}", node=name)
        checked[label] = branch if strict else partial(_without_list_of_one, branch)
    return checked


def _without_list_of_one(branch: Branch) -> Any:
    result = branch()
    return result[0] if isinstance(result, list | tuple) and len(result) == 1 else result


class _Choice:
    """A node that runs one of several traced functions."""

    def __init__(self, graph: Graph, name: str, branches: Mapping[str, Branch]) -> None:
        self.graph = graph
        self.name = name
        self.branches = branches
        self.awaited: list[Node] = []
        self.traced_for: TracedFor | None = None

    def add(self, op: str, selector: Tensor, inputs: list[Tensor], attrs: dict[str, AttrValue]) -> Node:
        with self.graph.control_dependencies(self.awaited):
            return self.graph.apply_op(op, [selector, inputs], {**attrs, "_lower_using_switch_merge": True}, f"{self.name}/")

    def build(self, finish: Callable[[list[Func], list[Tensor], tuple[DType, ...], bool], Node]) -> Any:
        with leaving_no_trace(self.graph, self.name) as self.name:
            return self._build(finish)

    def _build(self, finish: Callable[[list[Func], list[Tensor], tuple[DType, ...], bool], Node]) -> Any:
        traced = [_Traced(self.graph, self.name, label, branch) for label, branch in self.branches.items()]
        first = traced[0]
        for label, other in zip(list(self.branches)[1:], traced[1:], strict=True):
            self._require_alike(first, label, other)
        inputs = unite_arguments([branch.body for branch in traced], [[] for _ in traced])
        self.awaited = list(dict.fromkeys([node for branch in traced for node in branch.body.awaited or ()]))
        types = self._types(traced)
        defined = [branch.define(types) for branch in traced]
        node = finish([Func(body.name) for body in defined], inputs, types, any(body.signature.is_stateful for body in defined))
        if not isinstance(self.graph, FunctionGraph):
            sweep(self.graph)
        self.traced_for = TracedFor(self.graph, node.inputs, [branch.body for branch in traced])
        outputs = iter(node.outputs)
        structure = first.structure
        for other in traced[1:]:
            structure = unite(structure, other.structure)
        return fill(structure, [node if isinstance(leaf, Node) else next(outputs) for leaf in first.leaves])

    def _require_alike(self, first: _Traced, label: str, other: _Traced) -> None:
        if outline(first.structure) != outline(other.structure):
            raise InvalidArgumentError(
                f"The branches of '{self.name}' must give the same number of values in the same form: "
                f"{next(iter(self.branches))} gives {first.text()}, {label} gives {other.text()}",
                node=self.name,
            )
        for number, (mine, theirs) in enumerate(zip(first.leaves, other.leaves, strict=True)):
            if isinstance(mine, Node) is not isinstance(theirs, Node):
                self._refuse(number, first, label, other, "a tensor in each branch, or an operation in each")
            if isinstance(mine, Tensor) and isinstance(theirs, Tensor) and mine.dtype.base is not theirs.dtype.base:
                self._refuse(
                    number,
                    first,
                    label,
                    other,
                    "one type in all branches",
                    f"Convert one of them: `gc.cast(..., gc.{mine.dtype.public_name})`.",
                )

    def _refuse(self, number: int, first: _Traced, label: str, other: _Traced, wanted: str, to_do: str = "") -> None:
        error = InvalidArgumentError(
            f"Output {number} of '{self.name}': required {wanted}. {next(iter(self.branches))} gives {describe(first.leaves[number])}\n"
            f"  {label} gives {describe(other.leaves[number])}",
            node=self.name,
        )
        kinds = [
            leaf.dtype.base.text if isinstance(leaf, Tensor) else "an operation" for leaf in (first.leaves[number], other.leaves[number])
        ]
        raise error.advise(to_do or "Return the same kind of thing from all branches.", required=wanted, came=" and ".join(kinds))

    def _types(self, traced: list[_Traced]) -> tuple[DType, ...]:
        types = []
        for leaves in zip(*[branch.leaves for branch in traced], strict=True):
            if isinstance(leaves[0], Node):
                continue
            tensor = next((leaf for leaf in leaves if isinstance(leaf, Tensor)), None)
            types.append(
                convert_to_tensor(traced[0].body, leaves[0], None, "a branch's output").dtype.base if tensor is None else tensor.dtype.base
            )
        return tuple(types)


class _Traced:
    """One traced branch: its graph and its results."""

    def __init__(self, graph: Graph, name: str, label: str, branch: Branch) -> None:
        self.body = FunctionGraph.within(graph, function_label(graph, name, label), f"branch '{label}' of '{name}'", name)
        self.body.awaited = {}
        with self.body.as_default():
            self.structure, values = flatten(branch())
            self.leaves = [held(self.body, leaf) for leaf in values]
        drop_unneeded_effects(self.body, self.leaves)
        settle_references(self.body)

    def define(self, types: tuple[DType, ...]) -> FunctionDef:
        return define_outputs(self.body, self.leaves, types)

    def text(self) -> str:
        leaves = "; ".join([describe(leaf) for leaf in self.leaves])
        return f"{outline(self.structure)}" + (f" ({leaves})" if leaves else "")


def held(body: Graph, leaf: Any) -> Any:
    """Convert a result of a traced function to a tensor or node of its body.

    Plain values are returned unchanged, since their type may be decided elsewhere.
    """
    if isinstance(leaf, Node) and not leaf.outputs:
        return body.apply_op("NoOp", [], None, None) if body.wait_outside(leaf) else body.as_graph_element(leaf)
    if isinstance(leaf, Tensor | Node) or hasattr(leaf, "as_tensor"):
        return convert_to_tensor(body, leaf, None, "an output")
    return leaf


def define_outputs(body: FunctionGraph, leaves: Sequence[Any], types: Sequence[DType]) -> FunctionDef:
    """Set `leaves` as the results of a traced body, and add the function to the library."""
    left = iter(types)
    controls = [leaf for leaf in leaves if isinstance(leaf, Node)]
    values = [leaf for leaf in leaves if not isinstance(leaf, Node)]
    with body.as_default(), body.name_scope(None):
        for index, leaf in enumerate(values):
            dtype = next(left)
            tensor = convert_to_tensor(body, leaf, dtype, f"output {index} of {body.label}")
            body.apply_op("_Retval", [tensor], {"index": index}, f"{_return_name(index)}_RetVal")
    return define_body(body, body.label, controls)


def _return_name(index: int) -> str:
    return "output" if index == 0 else f"output_{index}"


def unite_arguments(bodies: Sequence[FunctionGraph], own: Sequence[list[Tensor]]) -> list[Tensor]:
    """Give all bodies the same captured tensors, in the same order, after their own arguments.

    Returns:
        The captured tensors.
    """
    captured = list(dict.fromkeys([tensor for body in bodies for tensor in body.captures]))
    for body, arguments in zip(bodies, own, strict=True):
        body.number_arguments([*arguments, *[body.capture(tensor) for tensor in captured]])
    return captured


def _numbered(branch_fns: Any, name: str) -> list[Branch]:
    items: list[Any] = list(branch_fns.items()) if isinstance(branch_fns, Mapping) else list(branch_fns)
    if not items:
        raise InvalidArgumentError(f"{name} needs at least one branch")
    if callable(items[0]):
        return items
    numbers = sorted(number for number, _ in items)
    if numbers != list(range(len(items))):
        raise InvalidArgumentError(f"The branches of {name} must be numbered from 0 on, got the numbers {numbers}")
    return [branch for _, branch in sorted(items, key=lambda item: item[0])]
