"""The base of all optimizers: gradients of a loss, and a node that applies them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from typing import Any, ClassVar, Final

from graphcore import dtypes
from graphcore.api.gradients.explain_gradient import explain_gradient
from graphcore.api.gradients.gradients import gradients
from graphcore.api.structures import flatten
from graphcore.brief import brief
from graphcore.dtypes import DType
from graphcore.errors import FailedPreconditionError, GraphError, InvalidArgumentError, UnimplementedError
from graphcore.graph import FunctionGraph, Graph, Node, Tensor
from graphcore.graph.graph import outermost
from graphcore.support.critical_section import critical_contextmanager
from graphcore.tf1.arrays.layout import identity
from graphcore.tf1.framework import control_dependencies, group, name_scope
from graphcore.tf1.indexed_slices import IndexedSlices, convert_to_tensor_or_indexed_slices, without_duplicates
from graphcore.tf1.train.optimizers.slots import Slots, scope_prefix
from graphcore.tf1.variables.choice import VariableChoice
from graphcore.tf1.variables.collections import TRAINABLE_VARIABLES, GraphKeys
from graphcore.tf1.variables.variables import Variable, listed_variables

Gradient = Tensor | IndexedSlices
GradientsAndVariables = Iterable[tuple[Gradient | None, Variable]]
_TRAINABLE: Final = frozenset({dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64, dtypes.complex64, dtypes.complex128})


class Optimizer(Slots):
    """Gradients of a loss, updates of variables, and slots.

    Slots are the optimizer's own variables, several for each trained variable.

    A class of one's own defines the update of a variable in `_apply_dense` (and `_apply_sparse` for gradients that are slices), and for
    resource variables in `_resource_apply_dense` and `_resource_apply_sparse`; slots are made in `_create_slots`, tensors that all updates
    share in `_prepare`, and what follows all updates in `_finish`.

    Args:
        use_locking: the attr of the ops; assignments are atomic in any case.
        name: the name scope of the nodes of a step, and part of the names of slots.

    Raises:
        InvalidArgumentError: there is no name.
    """

    GATE_NONE: ClassVar = 0
    GATE_OP: ClassVar = 1
    GATE_GRAPH: ClassVar = 2

    def __init__(self, use_locking: bool, name: str) -> None:
        if not name:
            raise InvalidArgumentError(f"{type(self).__name__}: required a name, got {name!r}")
        super().__init__()
        self._use_locking = use_locking
        self._name = name

    def __repr__(self) -> str:
        return f"<gc.{type(self).__name__} '{self._name}'>"

    @property
    def name(self) -> str:
        """The name scope of the nodes of a step."""
        return self._name

    def get_name(self) -> str:
        """The name scope of the nodes of a step (TF1's word)."""
        return self._name

    def minimize(
        self,
        loss: Tensor,
        global_step: Variable | None = None,
        var_list: Any = None,
        gate_gradients: int = GATE_OP,
        aggregation_method: Any = None,
        colocate_gradients_with_ops: bool = False,
        name: str | None = None,
        grad_loss: Tensor | None = None,
    ) -> Node:
        """Add a node that takes one step towards a smaller `loss`.

        Args:
            loss: the tensor to minimise.
            global_step: a variable that counts the steps.
            var_list: the variables to change; all trainable ones of the graph if None.
            gate_gradients, aggregation_method, colocate_gradients_with_ops: those of `compute_gradients`.
            name: the name of the node.
            grad_loss: the incoming gradient at `loss`, of its shape; ones if None.

        Raises:
            InvalidArgumentError: `loss` depends on none of the variables.
        """
        graph = _checked_loss(loss).graph.building()
        chosen = _chosen(loss, var_list)

        def build() -> Node:
            with self._whole(graph):
                pairs = self.compute_gradients(
                    loss,
                    var_list=chosen.now(),
                    gate_gradients=gate_gradients,
                    aggregation_method=aggregation_method,
                    colocate_gradients_with_ops=colocate_gradients_with_ops,
                    grad_loss=grad_loss,
                )
                if all(gradient is None for gradient, _ in pairs):
                    names = ", ".join(f"'{variable.op.name}'" for _, variable in pairs)
                    culprit = _culprit(loss, [variable for _, variable in pairs])
                    raise InvalidArgumentError.at(
                        _node_of(loss),
                        f"No gradients provided for any variable: {names}; '{loss.name}' does not depend on them, or ops between cut gradients "
                        "off, which gc.explain_gradient(loss, variable) lists",
                    ).advise(_instead_of(loss, culprit), required=_REQUIRED, came=_came(loss, culprit))
                return self.apply_gradients(pairs, global_step=global_step, name=name)

        return self._derived(graph, build, chosen)

    def compute_gradients(
        self,
        loss: Tensor,
        var_list: Any = None,
        gate_gradients: int = GATE_OP,
        aggregation_method: Any = None,
        colocate_gradients_with_ops: bool = False,
        grad_loss: Tensor | None = None,
    ) -> list[tuple[Any, Variable]]:
        """Pairs of the gradient of `loss` and the variable; None for a variable it does not depend on.

        Args:
            loss: the tensor to differentiate.
            var_list: the variables; all trainable ones of the graph if None.
            gate_gradients: GATE_GRAPH makes each gradient wait for all; with the others it waits for nothing.
            aggregation_method, colocate_gradients_with_ops: those of `gc.gradients`.
            grad_loss: the incoming gradient at `loss`; ones if None.

        Raises:
            InvalidArgumentError: there is no variable, or the loss, or a variable with a gradient, has a dtype that cannot be trained.
        """
        if gate_gradients not in {self.GATE_NONE, self.GATE_OP, self.GATE_GRAPH}:
            raise InvalidArgumentError(
                f"gate_gradients must be one of: Optimizer.GATE_NONE, Optimizer.GATE_OP, Optimizer.GATE_GRAPH. Not {gate_gradients!r}"
            )
        graph = _checked_loss(loss).graph.building()
        chosen = _chosen(loss, var_list)
        variables = chosen.now()
        self._assert_valid_dtypes([loss])

        def build() -> list[Gradient | None]:
            if chosen.names() != [variable.op.name for variable in variables]:
                raise FailedPreconditionError(f"there are other trainable variables now: {', '.join(chosen.names())}")
            results: list[Gradient | None] = gradients(
                loss,
                chosen.now(),
                None if grad_loss is None else [grad_loss],
                colocate_gradients_with_ops=colocate_gradients_with_ops,
                gate_gradients=gate_gradients == self.GATE_OP,
                aggregation_method=aggregation_method,
            )
            return _gated(results) if gate_gradients == self.GATE_GRAPH else results

        results: list[Gradient | None] = graph.derivations.derive(
            f"the gradients of '{loss.name}'", build, fingerprint=chosen.names, keeps_result=True
        )
        self._assert_valid_dtypes([variable for gradient, variable in zip(results, variables, strict=True) if gradient is not None])
        return list(zip(results, variables, strict=True))

    def apply_gradients(self, grads_and_vars: GradientsAndVariables, global_step: Variable | None = None, name: str | None = None) -> Node:
        """Add a node that takes one step along given gradients.

        Args:
            grads_and_vars: the results of `compute_gradients`, possibly changed; a variable with gradient None is unchanged.
            global_step: a variable that counts the steps.
            name: the name of the node.

        Raises:
            InvalidArgumentError: there is no gradient at all, or something else than a gradient or variable.
        """
        global_step = _variable_of(global_step)
        if global_step is not None and not isinstance(global_step, Variable):
            raise InvalidArgumentError(f"global_step: required a variable, or None, got {brief(global_step)}")
        pairs = [(gradient, variable) for gradient, variable in grads_and_vars]
        variables = listed_variables("grads_and_vars", [variable for _, variable in pairs])
        useful = [(gradient, variable) for gradient, variable in pairs if gradient is not None]
        if not useful:
            names = ", ".join(f"'{variable.op.name}'" for variable in variables)
            raise InvalidArgumentError(f"No gradients provided for any variable: {names or 'none was given'}.")
        graph = useful[0][1].graph.building()
        chosen = VariableChoice(outermost(graph), [variable for _, variable in useful])

        def build() -> Node:
            with self._whole(graph), graph.as_default():
                present_gradients = [_present(graph, gradient, variable) for gradient, variable in useful]
                train_op = self._apply(graph, list(zip(present_gradients, chosen.now(), strict=True)), global_step, name)
            if train_op not in graph.get_collection(GraphKeys.TRAIN_OP):
                graph.add_to_collection(GraphKeys.TRAIN_OP, train_op)
            return train_op

        return self._derived(graph, build, chosen)

    def _apply(self, graph: Graph, pairs: list[tuple[Gradient, Variable]], global_step: Variable | None, name: str | None) -> Node:
        root = outermost(graph)
        with nullcontext() if root is graph else root.as_default():  # its variables are made once, and not where the step is
            self._create_slots([variable for _, variable in pairs])
        with graph.name_scope(name or self._name) as scope:
            self._prepare()
            updates = [self._update(graph, gradient, variable) for gradient, variable in pairs]
            if global_step is None:
                return self._finish(updates, scope)
            with graph.control_dependencies([self._finish(updates, "update")]):
                return global_step.change("assign_add", 1, name=scope)

    def _derived(self, graph: Graph, build: Callable[[], Node], chosen: VariableChoice) -> Node:
        """Build the step; it is rebuilt when the variables, their shapes or dtypes change."""
        prefix = scope_prefix(outermost(graph))

        def in_scope() -> Node:
            before = self._prefix
            self._prefix = prefix if before is None else before
            try:
                return build()
            finally:
                self._prefix = before

        train_op: Node = graph.derivations.derive(f"the training step of {self!r}", in_scope, fingerprint=chosen.kinds)
        return train_op

    @critical_contextmanager
    def _whole(self, graph: Graph) -> Iterator[None]:
        """Restore graph and slots if the block fails."""
        kept = [dict(slots) for slots in self._kept()]
        with nullcontext() if graph.outer is not None else graph.transaction():
            try:
                yield
            except BaseException:
                for slots, before in zip(self._kept(), kept, strict=True):
                    slots.clear()
                    slots.update(before)
                raise

    def _update(self, graph: Graph, gradient: Gradient, variable: Variable) -> Any:
        constraint = getattr(variable, "constraint", None)
        with graph.name_scope(f"update_{variable.op.name}"), graph.device(variable.device or None):
            if isinstance(gradient, Tensor):
                apply_dense = self._resource_apply_dense if variable.is_resource else self._apply_dense
                update = apply_dense(gradient, variable)
            elif constraint is not None:
                raise InvalidArgumentError.at(variable.op, "A constraint cannot be used on a variable with sparse gradients")
            elif variable.is_resource:
                update = self._resource_apply_sparse_duplicate_indices(gradient.values, variable, gradient.indices)
            else:
                update = self._apply_sparse_duplicate_indices(gradient, variable)
            if constraint is None:
                return update
            with graph.control_dependencies([update]):
                return variable.assign(constraint(variable.read_value()))

    def _valid_dtypes(self) -> Iterable[DType]:
        """The dtypes of losses and variables that it trains."""
        return _TRAINABLE

    def _assert_valid_dtypes(self, tensors: Iterable[Any]) -> None:
        valid = frozenset(self._valid_dtypes())
        for tensor in tensors:
            if tensor.dtype.base not in valid:
                expected = ", ".join(sorted(dtype.text for dtype in valid))
                raise InvalidArgumentError(
                    f"{self!r}: '{tensor.name}' has the dtype {tensor.dtype.base.text}, required one of {expected}"
                ).advise(
                    "Begin the variables with floats, such as `gc.Variable(3.0)`: small steps need fractions.",
                    required="floats",
                    came=f"'{tensor.name}' of {tensor.dtype.base.text}",
                )

    # ---- defined by classes of optimizers ---------------------------------------------------------------------------

    def _create_slots(self, var_list: list[Variable]) -> None:
        """Make the variables that a step needs."""

    def _prepare(self) -> None:
        """Make the tensors that all updates share."""

    def _apply_dense(self, grad: Tensor, var: Variable) -> Any:
        """The update of a reference variable."""
        raise self._undefined("_apply_dense", grad, var)

    def _resource_apply_dense(self, grad: Tensor, handle: Variable) -> Any:
        """The update of a resource variable."""
        raise self._undefined("_resource_apply_dense", grad, handle)

    def _apply_sparse(self, grad: IndexedSlices, var: Variable) -> Any:
        """The update of some rows of a reference variable; each has its gradient once."""
        raise self._undefined("_apply_sparse", grad, var)

    def _resource_apply_sparse(self, grad: Tensor, handle: Variable, indices: Tensor) -> Any:
        """The update of some rows of a resource variable; each has its gradient once."""
        raise self._undefined("_resource_apply_sparse", grad, handle, indices)

    def _apply_sparse_duplicate_indices(self, grad: IndexedSlices, var: Variable) -> Any:
        """The update of some rows of a reference variable, where rows may repeat."""
        return self._apply_sparse(without_duplicates(grad), var)

    def _resource_apply_sparse_duplicate_indices(self, grad: Tensor, handle: Variable, indices: Tensor) -> Any:
        """The update of some rows of a resource variable, where rows may repeat."""
        unique = without_duplicates(IndexedSlices(grad, indices))
        return self._resource_apply_sparse(unique.values, handle, unique.indices)

    def _finish(self, update_ops: list[Any], name_scope: str) -> Node:
        """A node called `name_scope` that completes a step after the updates."""
        return group(*update_ops, name=name_scope)

    def _call_if_callable(self, param: Any) -> Any:
        """The value of a hyperparameter, which may be a function that returns it."""
        return param() if callable(param) else param

    def _undefined(self, method: str, _grad: object, var: Variable, *_: object) -> GraphError:
        return UnimplementedError.at(var.op, f"{type(self).__name__} defines no {method}, which the update of '{var.op.name}' requires")


def _chosen(loss: Tensor, var_list: Any) -> VariableChoice:
    listed = None if var_list is None else listed_variables("var_list", var_list if isinstance(var_list, Variable) else _flat(var_list))
    chosen = VariableChoice(outermost(loss.graph), listed, TRAINABLE_VARIABLES)
    if not chosen.now():
        raise InvalidArgumentError.at(_node_of(loss), "No variables to optimize.").advise(
            "Make what is to be learned a `gc.Variable`: training changes variables only.",
            required="a trainable variable",
            came="none in this graph",
        )
    return chosen


def _flat(var_list: Any) -> Any:
    """The items of nested lists; anything else as it is."""
    if isinstance(var_list, list | tuple | dict):
        return [
            item for leaf in flatten(var_list)[1] for item in ([leaf] if isinstance(leaf, Variable) else listed_variables("var_list", leaf))
        ]
    return var_list


def _checked_loss(loss: Any) -> Tensor:
    if not isinstance(loss, Tensor | Variable):
        raise InvalidArgumentError(f"loss: required a tensor, got {brief(loss)}")
    return loss  # type: ignore[return-value]  # a variable serves as its value


def _node_of(loss: Any) -> Node:
    node: Node = loss.op if isinstance(loss, Variable) else loss.node
    return node


def _present(graph: Graph, gradient: Any, variable: Variable) -> Gradient:
    """The gradient of `variable` in the graph as it is now.

    Raises:
        InvalidArgumentError: it is no tensor and no slices, or of another dtype.
    """
    result: Gradient
    if isinstance(graph, FunctionGraph) and isinstance(gradient, Tensor | IndexedSlices):
        result = gradient  # the body takes what is outside by itself
    elif isinstance(gradient, IndexedSlices):
        result = gradient.present()
    elif isinstance(gradient, Tensor):
        result = graph.present(gradient)
    else:
        try:
            result = convert_to_tensor_or_indexed_slices(gradient, variable.dtype)
        except GraphError as error:
            raise InvalidArgumentError.at(
                variable.op,
                f"The gradient of '{variable.op.name}' must be a tensor, IndexedSlices, or None, got {brief(gradient)}: {error.message}",
            ) from None
    if result.dtype.base is not variable.dtype:
        raise InvalidArgumentError.at(
            variable.op, f"The gradient of '{variable.op.name}' must be {variable.dtype.text}, got '{result.name}' of {result.dtype.text}"
        )
    return result


def _gated(gradient_list: list[Gradient | None]) -> list[Gradient | None]:
    """The same gradients, each available once all are."""
    with name_scope("tuple"), control_dependencies([group(*[_values(gradient) for gradient in gradient_list])]):
        return [
            IndexedSlices(identity(gradient.values), gradient.indices, gradient.dense_shape)
            if isinstance(gradient, IndexedSlices)
            else None
            if gradient is None
            else identity(gradient, "control_dependency")
            for gradient in gradient_list
        ]


def _values(gradient: Gradient | None) -> Tensor | None:
    return gradient.values if isinstance(gradient, IndexedSlices) else gradient


def _variable_of(step: Any) -> Any:
    """The variable of a reference to it, as `get_tensor_by_name` gives it; other values as they are."""
    if not (isinstance(step, Tensor) and step.dtype.is_ref):
        return step
    return next((variable for variable in step.graph.get_collection(GraphKeys.GLOBAL_VARIABLES) if variable.op is step.node), step)


_REQUIRED: Final = "a loss that depends on a variable by ops that have gradients"


def _culprit(loss: Any, variables: Iterable[Variable]) -> Node | None:
    """The first node between a variable and the loss that passes no gradient.

    None if there is no way.
    """
    for variable in variables:
        for cut in explain_gradient(loss, variable).cuts:
            if cut.node:
                return _node_of(loss).graph.find(cut.node)
    return None


def _came(loss: Any, culprit: Node | None) -> str:
    if culprit is None:
        return f"'{loss.name}', which depends on none of them"
    return f"'{loss.name}', which '{culprit.name}' (op {culprit.op}) cuts off"


def _instead_of(loss: Any, culprit: Node | None) -> str:
    if culprit is None:
        return f"Use the variables in the computation of \u00ab{loss.name}\u00bb, or give those that it uses as `var_list`."
    return (
        f"Train on a loss that changes smoothly with the variables, such as a cross entropy or a squared difference: no gradient passes "
        f"'{culprit.name}' (op {culprit.op}). An accuracy can only be watched."
    )
