"""`gc.cond`, `gc.switch_case` and `gc.case`: Python functions become the branches of one node that opens in the view."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from graphcore import dtypes
from graphcore.api.structures import describe, fill, flatten, outline
from graphcore.attrs import AttrValue, Func
from graphcore.critical_section import critical_contextmanager, critical_section
from graphcore.definitions import FunctionDef
from graphcore.dtypes import DType
from graphcore.errors import InvalidArgumentError
from graphcore.graph import FunctionGraph, Graph, Node, Tensor, convert_to_tensor, exact_name, get_default_graph
from graphcore.passes.defining import define_body, function_label, sweep

Branch = Callable[[], Any]


def cond(pred: Any, true_fn: Branch, false_fn: Branch, name: str = "cond") -> Any:
    """What `true_fn` gives if `pred` is true when the graph runs, what `false_fn` gives otherwise; only that one runs.

    Args:
        pred: a bool; or a number, true if it is not 0; or a string, true if it is not empty; or what is no scalar, true if it has elements.
        true_fn, false_fn: take nothing and give a tensor, or (nested) lists, tuples and dicts of tensors, both alike. What they use of the
            graph around them is handed to them.
        name: the name of the node.

    While the branches are called other threads that build this graph wait: a branch must not wait for one of them (see `gc.Graph`).

    Returns:
        What the branches give, in the same form.

    Raises:
        InvalidArgumentError: the branches give different things; nothing is added to the graph.
    """
    graph = get_default_graph()
    branches = _checked({"true": true_fn, "false": false_fn}, name)

    def finish(functions: list[Func], inputs: list[Tensor], types: tuple[DType, ...], stateful: bool) -> Node:
        selector = convert_to_tensor(graph, pred, None, f"pred of {name}")
        attrs: dict[str, AttrValue] = {"Tout": types, "then_branch": functions[0], "else_branch": functions[1]}
        return choice.add("If" if stateful else "StatelessIf", selector, inputs, attrs)

    with leaving_no_trace(graph, name) as exact:
        choice = _Choice(graph, exact, branches)
        return choice.build(finish)


def switch_case(branch_index: Any, branch_fns: Any, default: Branch | None = None, name: str = "switch_case") -> Any:
    """What the branch of number `branch_index` gives; only that one runs.

    Args:
        branch_index: an int32 scalar. A number that no branch has takes `default`.
        branch_fns: the branches from number 0 on; or a dict, or pairs, of numbers and branches.
        default: the branch for all other numbers; the last one unless given.
        name: the name of the node.

    Raises:
        InvalidArgumentError: the branches give different things, or their numbers do not go from 0 on.
    """
    graph = get_default_graph()
    branches = {f"branch{i}": branch for i, branch in enumerate(_numbered(branch_fns, name))}
    if default is not None:
        branches["default"] = default
    branches = _checked(branches, name)

    def finish(functions: list[Func], inputs: list[Tensor], types: tuple[DType, ...], stateful: bool) -> Node:
        selector = convert_to_tensor(graph, branch_index, dtypes.int32, f"branch_index of {name}")
        if selector.dtype.base is not dtypes.int32:
            raise InvalidArgumentError(
                f"branch_index of {name} must be an int32, got {describe(selector)}; use gc.cast", op="Case", source=selector.node.source
            )
        return choice.add("Case" if stateful else "StatelessCase", selector, inputs, {"Tout": types, "branches": tuple(functions)})

    with leaving_no_trace(graph, name) as exact:
        choice = _Choice(graph, exact, branches)
        return choice.build(finish)


def case(pred_fn_pairs: Any, default: Branch | None = None, name: str = "case") -> Any:
    """What the branch of the first true condition gives.

    Args:
        pred_fn_pairs: pairs (or a dict) of conditions and branches, tried in this order.
        default: the branch if no condition is true; the last one of `pred_fn_pairs` unless given.
        name: the name of the node of the first condition; the others are within its second branch.

    Raises:
        InvalidArgumentError: there is no branch, or the branches give different things.
    """
    pairs = list(pred_fn_pairs.items()) if isinstance(pred_fn_pairs, Mapping) else list(pred_fn_pairs)
    if not pairs:
        raise InvalidArgumentError(f"{name} needs at least one pair of a condition and a branch")
    if default is None:
        default = pairs.pop()[1]
    if not pairs:
        return default()
    (pred, branch), rest, last = pairs[0], pairs[1:], default
    return cond(pred, branch, (lambda: case(rest, last, name)) if rest else last, name)


@critical_contextmanager
def leaving_no_trace(graph: Graph, name: str) -> Iterator[str]:
    """Reserve a name for the node that the block is to make, and take everything back that it has made, if it fails.

    That are functions, nodes, captured tensors and the name: what is made until the node is, arguments for captured tensors among it, gets
    other names. Other threads wait meanwhile: what they made would be taken back as well, and their functions be taken for outdated ones.

    Gives the name.
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
            for node in reversed([node for node in graph.op_nodes() if node.id >= first]):
                graph.remove_node(node)
            if isinstance(graph, FunctionGraph):
                graph.captures = captures
            if graph.find(exact) is None:
                graph.names.free(exact)
            raise
    finally:
        graph.lock.release()


def _checked(branches: dict[str, Branch], name: str) -> dict[str, Branch]:
    for label, branch in branches.items():
        if not callable(branch):
            raise InvalidArgumentError(f"{label} branch of {name} must be a function, got {branch!r}", node=name)
    return branches


class _Choice:
    """A node that runs one of several traced functions."""

    def __init__(self, graph: Graph, name: str, branches: Mapping[str, Branch]) -> None:
        self.graph = graph
        self.name = name
        self.branches = branches

    def add(self, op: str, selector: Tensor, inputs: list[Tensor], attrs: dict[str, AttrValue]) -> Node:
        return self.graph.apply_op(op, [selector, inputs], {**attrs, "_lower_using_switch_merge": True}, f"{self.name}/")

    def build(self, finish: Callable[[list[Func], list[Tensor], tuple[DType, ...], bool], Node]) -> Any:
        traced = [_Traced(self.graph, function_label(self.graph, self.name, label), branch) for label, branch in self.branches.items()]
        first = traced[0]
        for label, other in zip(list(self.branches)[1:], traced[1:], strict=True):
            self._require_alike(first, label, other)
        inputs = unite_arguments([branch.body for branch in traced], [[] for _ in traced])
        types = self._types(traced)
        defined = [branch.define(types) for branch in traced]
        node = finish([Func(made.name) for made in defined], inputs, types, any(made.signature.is_stateful for made in defined))
        if not isinstance(self.graph, FunctionGraph):
            sweep(self.graph)
        outputs = iter(node.outputs)
        return fill(first.structure, [node if isinstance(leaf, Node) else next(outputs) for leaf in first.leaves])

    def _require_alike(self, first: _Traced, label: str, other: _Traced) -> None:
        if first.structure != other.structure:
            raise InvalidArgumentError(
                f"The branches of '{self.name}' must give the same number of values in the same form: "
                f"{next(iter(self.branches))} gives {first.text()}, {label} gives {other.text()}",
                node=self.name,
            )
        for number, (mine, theirs) in enumerate(zip(first.leaves, other.leaves, strict=True)):
            if isinstance(mine, Node) is not isinstance(theirs, Node):
                self._refuse(number, first, label, other, "a tensor in each branch, or an operation in each")
            if isinstance(mine, Tensor) and isinstance(theirs, Tensor) and mine.dtype.base is not theirs.dtype.base:
                self._refuse(number, first, label, other, "one type in all branches")

    def _refuse(self, number: int, first: _Traced, label: str, other: _Traced, wanted: str) -> None:
        raise InvalidArgumentError(
            f"Output {number} of '{self.name}': required {wanted}. {next(iter(self.branches))} gives {describe(first.leaves[number])}\n"
            f"  {label} gives {describe(other.leaves[number])}",
            node=self.name,
        )

    def _types(self, traced: list[_Traced]) -> tuple[DType, ...]:
        types = []
        for leaves in zip(*[branch.leaves for branch in traced], strict=True):
            if isinstance(leaves[0], Node):
                continue
            known = next((leaf for leaf in leaves if isinstance(leaf, Tensor)), None)
            types.append(
                convert_to_tensor(traced[0].body, leaves[0], None, "a branch's output").dtype.base if known is None else known.dtype.base
            )
        return tuple(types)


class _Traced:
    """One branch as a graph, and what it gave."""

    def __init__(self, graph: Graph, label: str, branch: Branch) -> None:
        self.body = FunctionGraph.within(graph, label)
        with self.body.as_default():
            self.structure, given = flatten(branch())
            self.leaves = [held(self.body, leaf) for leaf in given]

    def define(self, types: tuple[DType, ...]) -> FunctionDef:
        return define_outputs(self.body, self.leaves, types)

    def text(self) -> str:
        leaves = "; ".join([describe(leaf) for leaf in self.leaves])
        return f"{outline(self.structure)}" + (f" ({leaves})" if leaves else "")


def held(body: Graph, leaf: Any) -> Any:
    """What a traced function gave, as a tensor or node of its body; a plain value stays one, for its type may follow from elsewhere."""
    if isinstance(leaf, Node) and not leaf.outputs:
        return body.as_graph_element(leaf)
    if isinstance(leaf, Tensor | Node) or hasattr(leaf, "as_tensor"):
        return convert_to_tensor(body, leaf, None, "an output")
    return leaf


def define_outputs(body: FunctionGraph, leaves: Sequence[Any], types: Sequence[DType]) -> FunctionDef:
    """Return `leaves` from a traced body, and put the function into the library."""
    left = iter(types)
    controls = [leaf for leaf in leaves if isinstance(leaf, Node)]
    with body.as_default(), body.name_scope(None):
        values = [leaf for leaf in leaves if not isinstance(leaf, Node)]
        for index, leaf in enumerate(values):
            dtype = next(left)
            tensor = convert_to_tensor(body, leaf, dtype, f"output {index} of {body.label}")
            body.apply_op("_Retval", [tensor], {"index": index}, f"{_return_name(index)}_RetVal")
    return define_body(body, body.label, controls)


def _return_name(index: int) -> str:
    return "output" if index == 0 else f"output_{index}"


def unite_arguments(bodies: Sequence[FunctionGraph], own: Sequence[list[Tensor]]) -> list[Tensor]:
    """Have all bodies take the same captured tensors in the same order, after their own arguments; gives those tensors."""
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
