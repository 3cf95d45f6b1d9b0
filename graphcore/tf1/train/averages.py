"""`tf.train.ExponentialMovingAverage`: shadow variables that follow others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphcore import dtypes
from graphcore.brief import brief
from graphcore.errors import InvalidArgumentError
from graphcore.graph import FunctionGraph, Graph, Node, Tensor, get_default_graph
from graphcore.graph.graph import outermost
from graphcore.tf1.framework import constant, convert_to_tensor, group, zeros
from graphcore.tf1.math.elementwise import cast, minimum, pow  # noqa: A004 - TF1's name
from graphcore.tf1.train.moving import move
from graphcore.tf1.train.optimizers.slots import is_in_graph, scope_prefix
from graphcore.tf1.variables.choice import VariableChoice
from graphcore.tf1.variables.collections import TRAINABLE_VARIABLES, GraphKeys
from graphcore.tf1.variables.listing import all_variables, trainable_variables
from graphcore.tf1.variables.variables import Variable


class ExponentialMovingAverage:
    """Moving averages of variables and tensors, kept in variables beside them.

    Each update is `average -= (1 - decay) * (average - value)`.

    Args:
        decay: a number or scalar tensor, near 1.
        num_updates: the number of updates so far; then the decay is at most `(1 + num_updates) / (10 + num_updates)`.
        zero_debias: correct the averages of tensors, which start at 0, for that start.
        name: part of the names of the averages.
    """

    def __init__(self, decay: Any, num_updates: Any = None, zero_debias: bool = False, name: str = "ExponentialMovingAverage") -> None:
        self._decay = decay
        self._num_updates = num_updates
        self._zero_debias = zero_debias
        self._name = name
        self._averages: dict[Node, Variable] = {}
        self._shadows: dict[Node, tuple[Variable, Variable]] = {}

    @property
    def name(self) -> str:
        """The part of the names of the averages."""
        return self._name

    def apply(self, var_list: Sequence[Any] | None = None) -> Node:
        """Make the averages, and a node that updates them.

        Args:
            var_list: variables and tensors; all trainable variables if None.

        Raises:
            InvalidArgumentError: one is not of a floating dtype, or the shape of a tensor is not known.
        """
        averaged = (
            None
            if var_list is None
            else [value if isinstance(value, Variable | Tensor) else convert_to_tensor(value) for value in var_list]
        )
        if isinstance(get_default_graph(), FunctionGraph):  # the body of a function is made again as a whole
            body = get_default_graph()
            return self._apply(body, trainable_variables() if averaged is None else averaged, scope_prefix(outermost(body)))
        graph = averaged[0].graph if averaged else get_default_graph()
        tensors = [value for value in averaged or () if isinstance(value, Tensor)]
        variables = None if averaged is None else [value for value in averaged if isinstance(value, Variable)]
        chosen = VariableChoice(graph, variables, TRAINABLE_VARIABLES)
        prefix = scope_prefix(graph)

        def build() -> Node:
            with graph.as_default():
                now = iter(chosen.now())
                values = (
                    list(now)
                    if averaged is None
                    else [graph.present(value) if isinstance(value, Tensor) else next(now) for value in averaged]
                )
                return self._apply(graph, values, prefix)

        update: Node = graph.derivations.derive(f"the averages of {self._name}", build, depends_on=tensors, fingerprint=chosen.kinds)
        return update

    def _apply(self, graph: Graph, values: Sequence[Any], prefix: str) -> Node:
        for value in values:
            if value.dtype.base not in {dtypes.bfloat16, dtypes.float16, dtypes.float32, dtypes.float64}:
                raise InvalidArgumentError(f"The variables must be half, float, or double: '{value.name}' is {value.dtype.base.text}")
            self._make(graph, value, prefix)
        with graph.name_scope(self._name) as scope:
            decay = convert_to_tensor(self._decay, name="decay")
            if self._num_updates is not None:
                count = cast(convert_to_tensor(self._num_updates), dtypes.float32)
                decay = minimum(decay, cast((1.0 + count) / (10.0 + count), decay.dtype.base))
            return group(*[self._update(graph, value, decay) for value in values], name=scope)

    def _make(self, graph: Graph, value: Variable | Tensor, prefix: str) -> None:
        node = _node(value)
        average = self._averages.get(node)
        if (
            average is not None
            and is_in_graph(average, outermost(graph))
            and (average.dtype, average.shape) == (value.dtype.base, value.shape)
        ):
            return
        is_variable = isinstance(value, Variable)
        if not is_variable and not value.shape.is_fully_defined:
            raise InvalidArgumentError.at(node, f"The average of '{value.name}' requires its full shape, got {value.shape}")
        root = outermost(graph)
        with root.as_default(), root.name_scope(None), root.control_dependencies(None), root.device(value.device or None):
            initial = value.initialized_value() if isinstance(value, Variable) else None
            self._averages[node] = Variable(
                (lambda: zeros(value.shape, value.dtype.base)) if initial is None else initial,
                trainable=False,
                name=f"{prefix}{node.name}/{self._name}",
                use_resource=root is not graph or (isinstance(value, Variable) and value.is_resource),  # a function cannot take references
            )
            if is_variable:
                root.add_to_collection(GraphKeys.MOVING_AVERAGE_VARIABLES, value)

    def _make_shadows(self, graph: Graph, average: Variable) -> tuple[Variable, Variable]:
        """The average that is not corrected, and the number of its updates."""
        name, dtype = average.op.name, average.dtype
        root = outermost(graph)
        with root.as_default(), root.name_scope(None), root.control_dependencies(None):
            return (
                Variable(lambda: zeros(average.shape, dtype), trainable=False, name=f"{name}/biased", use_resource=root is not graph),
                Variable(lambda: zeros([], dtype), trainable=False, name=f"{name}/local_step", use_resource=root is not graph),
            )

    def _update(self, graph: Graph, value: Variable | Tensor, decay: Tensor) -> Tensor:
        average = self._averages[_node(value)]
        kept = cast(decay, average.dtype)
        rest = cast(1.0 - decay, average.dtype)
        with graph.name_scope("AssignMovingAvg"):
            if isinstance(value, Variable) or not self._zero_debias:
                return move(average, value, rest)
            shadows = self._shadows.get(average.op)
            if shadows is None or not is_in_graph(shadows[0], graph):
                shadows = self._shadows[average.op] = self._make_shadows(graph, average)
            biased, step = shadows
            before = [move(biased, value, rest), step.assign_add(constant(1, step.dtype))]
            with graph.control_dependencies(before):
                return average.assign(biased.read_value() / (1.0 - pow(kept, step.read_value())))

    def average(self, var: Any) -> Variable | None:
        """The variable with the average of `var`, None if there is none."""
        return self._averages.get(_node(var))

    def average_name(self, var: Any) -> str:
        """The name of the average of `var`, also before there is one."""
        average = self.average(var)
        return f"{_node(var).name}/{self._name}" if average is None else average.op.name

    def variables_to_restore(self, moving_avg_variables: Sequence[Variable] | None = None) -> dict[str, Variable]:
        """The variables by the names to restore them from: those with averages by the names of these.

        Args:
            moving_avg_variables: the variables with averages; if None, all trainable ones and those of all averages.
        """
        graph = get_default_graph()
        averaged = moving_avg_variables
        if averaged is None:
            averaged = [*trainable_variables(), *graph.get_collection(GraphKeys.MOVING_AVERAGE_VARIABLES)]
        by_name = {self.average_name(variable): variable for variable in averaged}
        averaged_ops = {variable.op for variable in by_name.values()}
        return {variable.op.name: variable for variable in all_variables() if variable.op not in averaged_ops} | by_name


def _node(value: Any) -> Node:
    if isinstance(value, Variable):
        return value.op
    if not isinstance(value, Tensor):
        raise InvalidArgumentError(f"required a variable or tensor, got {brief(value)}")
    return value.node
