"""The base class of layers: variables that are made in the first call and shared by the others."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from copy import deepcopy
from typing import Any, NamedTuple, Self

from graphcore.api.structures import flatten
from graphcore.dtypes import DType, as_dtype, float32
from graphcore.errors import InvalidArgumentError
from graphcore.graph import Graph, Tensor, get_default_graph
from graphcore.graph.graph import outermost
from graphcore.shapes import as_shape
from graphcore.source import current_run
from graphcore.tf1.arrays.layout import shape as shape_of
from graphcore.tf1.following import derived
from graphcore.tf1.framework import add_to_collection, convert_to_tensor, name_scope
from graphcore.tf1.layers.arguments import as_initializer, snake_case
from graphcore.tf1.math.elementwise import cast
from graphcore.tf1.variable_scopes.getting import get_variable, is_to_be_made
from graphcore.tf1.variable_scopes.opening import variable_scope
from graphcore.tf1.variable_scopes.scope import Reuse, VariableScope
from graphcore.tf1.variables.collections import GraphKeys
from graphcore.tf1.variables.variables import Variable


class InputSpec(NamedTuple):
    """The ranks that a layer takes, and sizes of some dimensions.

    Attributes:
        ndim, min_ndim, max_ndim: the exact, least and largest rank; None for any.
        axes: sizes by dimension.
    """

    ndim: int | None = None
    min_ndim: int | None = None
    max_ndim: int | None = None
    axes: dict[int, int] | None = None


class Layer:
    """Variables, and a function of tensors that uses them: the base class of layers, also of one's own.

    A subclass defines `call(inputs, ...)`, and `build(input_shape)` if it makes variables, by `add_weight`. The variables are made in the first
    call, in a variable scope called after the layer; further calls share them. A call is derived: it is built again when its inputs change.

    Args:
        trainable: put its variables into the collection of trainable variables.
        name: the name of its scope, made unique if it is the default one, that of the class in lower case.
        dtype: the dtype of its variables, by default that of the first input.

    Attributes:
        built: True iff its variables exist.
        input_spec: the shapes it takes, or None; it may be set by `build`.
    """

    def __init__(self, trainable: bool = True, name: Any = None, dtype: object = None, **kwargs: Any) -> None:
        scope = kwargs.pop("_scope", None)
        self._reuse: Reuse = kwargs.pop("_reuse", None)
        self._activity_regularizer = kwargs.pop("activity_regularizer", None)
        if kwargs:
            raise InvalidArgumentError(f"{type(self).__name__} takes no argument called {next(iter(kwargs))!r}")
        self.trainable = trainable
        self.built = False
        self.input_spec: InputSpec | None = None
        self._spec_before: InputSpec | None = None  # that of a layer that is not built
        self._dtype = self._given_dtype = None if dtype is None else as_dtype(dtype)
        self._base_name = name.name if isinstance(name, VariableScope) else name or snake_case(type(self).__name__)
        self._name: str | None = None if isinstance(name, VariableScope) else name
        self._weights: list[Variable] = []
        self._losses: list[Any] = []
        self._updates: list[Any] = []
        self._scope: VariableScope | None = None
        self._scope_is_own = not scope
        self._home: tuple[Graph, str, int] | None = None  # graph, cell and execution that opened the scope
        self._current_scope: VariableScope | None = None
        if scope:
            with variable_scope(scope) as self._scope:
                pass

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """A layer of its own in the same graph."""
        if self._home is not None:
            memo[id(self._home[0])] = self._home[0]
        copy = type(self).__new__(type(self))
        memo[id(self)] = copy
        vars(copy).update({name: deepcopy(value, memo) for name, value in vars(self).items()})
        return copy

    # ---- for subclasses ---------------------------------------------------------------------------------------------

    def build(self, input_shape: Any) -> None:
        """Make the variables, for inputs of this shape."""
        del input_shape
        self.built = True

    def call(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """The function of the layer."""
        del args, kwargs
        return inputs

    def compute_output_shape(self, input_shape: Any) -> Any:
        """The shape of the output for inputs of this shape.

        Raises:
            InvalidArgumentError: the layer does not say.
        """
        del input_shape
        raise InvalidArgumentError(f"{type(self).__name__} does not define compute_output_shape")

    def add_weight(
        self,
        name: str,
        shape: Any,
        dtype: object = None,
        initializer: Any = None,
        regularizer: Any = None,
        trainable: bool | None = None,
        constraint: Any = None,
        use_resource: bool | None = None,
        synchronization: Any = None,
        aggregation: Any = None,
        partitioner: Any = None,
        **kwargs: Any,
    ) -> Any:
        """Make a variable of the layer, or take that of a layer of the same name where variables are shared.

        Args:
            name: the name within the layer's scope.
            shape: the full shape.
            dtype: the dtype, by default the layer's.
            initializer, regularizer, constraint, use_resource, partitioner: see `gc.get_variable`.
            trainable: put it into the collection of trainable variables, if the layer is trainable; True by default.
            synchronization, aggregation: without effect; there is one process.
            kwargs: further arguments of `gc.get_variable`.
        """
        del synchronization, aggregation
        self._open_scope()
        wanted = as_dtype(dtype).base if dtype is not None else self._dtype or float32
        sizes = [int(size) for size in as_shape(shape).as_list() if size is not None]
        with variable_scope(self._scope, reuse=self.built or self._reuse, auxiliary_name_scope=False) as scope:
            self._current_scope = scope
            before = list(outermost(get_default_graph()).named_variables.values())
            variable = get_variable(
                name,
                sizes,
                wanted,
                as_initializer(initializer),
                trainable=trainable is not False and self.trainable,
                constraint=constraint,
                use_resource=use_resource,
                partitioner=partitioner,
                **kwargs,
            )
            if regularizer is not None and all(variable is not other for other in before):
                self._regularize(variable, name, regularizer)
        if all(variable is not other for other in self._weights):
            self._weights.append(variable)
        return variable

    add_variable = add_weight

    def _regularize(self, variable: Any, name: str, regularizer: Callable[[Any], Any]) -> None:
        graph = outermost(get_default_graph())
        with graph.as_default(), graph.name_scope(self._name_scope()), graph.name_scope(f"{name}/Regularizer"):
            loss = regularizer(variable)
        if loss is not None:
            self.add_loss(loss)

    def add_loss(self, losses: Any, inputs: Any = None) -> None:
        """Add losses to the layer's own, and to the collection of regularization losses."""
        del inputs
        for loss in losses if isinstance(losses, list | tuple) else [losses]:
            _put(self._losses, loss)
            add_to_collection(GraphKeys.REGULARIZATION_LOSSES, loss)

    def add_update(self, updates: Any, inputs: Any = None) -> None:
        """Add ops that a training step runs to those of the layer, and to the collection of update ops.

        A layer that is not trainable has none.
        """
        del inputs
        if not self.trainable:
            return
        for update in updates if isinstance(updates, list | tuple) else [updates]:
            _put(self._updates, update)
            self._collect_update(update)

    def _collect_update(self, update: Any) -> None:
        add_to_collection(GraphKeys.UPDATE_OPS, update)

    # ---- calls ------------------------------------------------------------------------------------------------------

    def __call__(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """Apply the layer; its variables are made in the first call.

        Args:
            inputs: a tensor, or (nested) tensors.
            args, kwargs: further arguments of `call`. `scope` is the variable scope, for the first call.

        Raises:
            InvalidArgumentError: the inputs do not have a rank or size that the layer takes.
        """
        self._forget_if_stale()
        self._open_scope(kwargs.get("scope") if self._takes_scope() else kwargs.pop("scope", None))
        return derived(f"the layer '{self.name}'", lambda: self._apply(inputs, args, kwargs), inputs, list(args), kwargs)

    def apply(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """Apply the layer, by calling it."""
        return self(inputs, *args, **kwargs)

    def _takes_scope(self) -> bool:
        return "scope" in inspect.signature(self.call).parameters

    def _apply(self, inputs: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self.built and self._weights and all(is_to_be_made(variable) for variable in self._weights):
            self._unbuild()  # this call has made them, and is built again
        reuse = True if self.built else self._reuse
        with variable_scope(self._scope, reuse=reuse, auxiliary_name_scope=False) as scope:
            self._current_scope = scope
            arguments = {**kwargs, "scope": scope} if self._takes_scope() else kwargs
            with name_scope(self._name_scope() or None):
                inputs = _as_tensors(inputs)
                self._build_for(inputs)
                outputs = self.call(inputs, *args, **arguments)
                self._regularize_activity(outputs)
                return outputs

    def _build_for(self, inputs: Any) -> None:
        if not self.built:
            tensors = [leaf for leaf in flatten(inputs)[1] if isinstance(leaf, Tensor)]
            if self._dtype is None and tensors:
                self._dtype = tensors[0].dtype.base
            self._check_inputs(tensors)
            shapes = [tensor.shape for tensor in tensors]
            self._spec_before = self.input_spec
            self.build(shapes[0] if len(shapes) == 1 and not isinstance(inputs, list | tuple) else shapes)
            self.built = True
        self._check_inputs([leaf for leaf in flatten(inputs)[1] if isinstance(leaf, Tensor)])

    def _check_inputs(self, tensors: list[Tensor]) -> None:
        spec = self.input_spec
        if spec is None:
            return
        for number, tensor in enumerate(tensors):
            rank, sizes = tensor.shape.rank, tensor.shape
            if rank is None:
                continue
            problem = ""
            if spec.ndim is not None and rank != spec.ndim:
                problem = f"expected ndim={spec.ndim}, found ndim={rank}"
            elif spec.min_ndim is not None and rank < spec.min_ndim:
                problem = f"expected min_ndim={spec.min_ndim}, found ndim={rank}"
            elif spec.max_ndim is not None and rank > spec.max_ndim:
                problem = f"expected max_ndim={spec.max_ndim}, found ndim={rank}"
            else:
                for axis, size in (spec.axes or {}).items():
                    actual = sizes.as_list()[axis]
                    if actual not in (None, size):
                        problem = f"expected axis {axis} of input shape to have value {size} but got shape {sizes}"
            if problem:
                raise InvalidArgumentError(
                    f"Input {number} of layer {self.name} is incompatible with the layer: {problem}",
                    node=tensor.node.name,
                    source=tensor.node.source,
                )

    def _regularize_activity(self, outputs: Any) -> None:
        if self._activity_regularizer is None:
            return
        with name_scope("ActivityRegularizer"):
            for output in flatten(outputs)[1]:
                loss = self._activity_regularizer(output)
                self.add_loss(loss / cast(shape_of(output)[0], loss.dtype.base))

    # ---- scopes -----------------------------------------------------------------------------------------------------

    def _open_scope(self, scope: Any = None) -> None:
        """Open the scope of the variables, unless that has been done."""
        if self._scope is not None:
            return
        with (
            variable_scope(scope or self._base_name, reuse=self._reuse) if self._reuse else variable_scope(scope, self._base_name) as opened
        ):
            self._scope = opened
        run = current_run.get()
        self._home = outermost(get_default_graph()), "" if run is None else run.cell, 0 if run is None else run.execution

    def _forget_if_stale(self) -> None:
        """Start anew if the run of the cell that made the first call was followed by another one."""
        if self._home is not None:
            graph, cell, execution = self._home
            if graph.cells.last_runs.get(cell, execution) != execution:
                self._home = None
                if self._scope_is_own:
                    self._scope = None
                self._unbuild()

    def _unbuild(self) -> None:
        if self.built:
            self.built, self.input_spec, self._dtype = False, self._spec_before, self._given_dtype
        self._weights, self._losses, self._updates = [], [], []

    def _name_scope(self) -> str:
        scope = self._current_scope
        return str(scope.original_name_scope) if scope is not None else ""

    # ---- properties -------------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The name: the given one, or that of its scope."""
        if self._name is None:
            return self._base_name if self._scope is None else self._scope.name.rpartition("/")[2]
        return self._name

    @property
    def scope_name(self) -> str:
        """The name of the scope of its variables.

        Raises:
            InvalidArgumentError: there was no call yet.
        """
        if self._scope is None:
            raise InvalidArgumentError(f"No name available for layer scope because the layer '{self._base_name}' has not been used yet")
        return self._scope.name

    @property
    def graph(self) -> Graph:
        """The graph of its variables."""
        return self._home[0] if self._home is not None else get_default_graph()

    @property
    def dtype(self) -> DType | None:
        """The dtype of its variables; None before the first call."""
        return self._dtype

    @property
    def variables(self) -> list[Any]:
        """Its variables, the trainable ones first."""
        return self.trainable_variables + self.non_trainable_variables

    @property
    def trainable_variables(self) -> list[Any]:
        """Its variables that are trained."""
        return [variable for variable in self._all_weights() if self._is_trained(variable)] if self.trainable else []

    @property
    def non_trainable_variables(self) -> list[Any]:
        """Its variables that are not trained."""
        trained = self.trainable_variables
        return [variable for variable in self._all_weights() if all(variable is not other for other in trained)]

    weights = variables
    trainable_weights = trainable_variables
    non_trainable_weights = non_trainable_variables

    def _all_weights(self) -> list[Any]:
        return self._weights

    def _is_trained(self, variable: Any) -> bool:
        names = {other.name for other in variable.graph.get_collection(GraphKeys.TRAINABLE_VARIABLES)}
        return variable.name in names

    @property
    def losses(self) -> list[Any]:
        """The losses of its regularizers."""
        return list(self._losses)

    @property
    def updates(self) -> list[Any]:
        """The ops that a training step runs."""
        return list(self._updates)

    def count_params(self) -> int:
        """The number of elements of its variables.

        Raises:
            InvalidArgumentError: they do not exist yet.
        """
        if not self.built:
            raise InvalidArgumentError(f"You tried to call `count_params` on {self.name}, but the layer isn't built")
        return sum(math.prod(int(size) for size in variable.shape.as_list()) for variable in self.variables)

    def __repr__(self) -> str:
        return f"<gc.layers.{type(self).__name__} '{self.name}'>"


def _put(items: list[Any], item: Any) -> None:
    """Append an item, or replace the one of its name, which a call that is built again has made before."""
    names = [getattr(other, "name", None) for other in items]
    name = getattr(item, "name", None)
    if name is not None and name in names:
        items[names.index(name)] = item
    else:
        items.append(item)


def _as_tensors(inputs: Any) -> Any:
    """The inputs with arrays as tensors."""
    if isinstance(inputs, list | tuple | dict) or inputs is None:
        return inputs
    return convert_to_tensor(inputs)


def last_size(shape: Any, layer: str, axis: int = -1) -> int:
    """The size of one dimension of an input.

    Raises:
        InvalidArgumentError: it is unknown.
    """
    input_shape = as_shape(shape)
    size = None if input_shape.rank is None else input_shape.as_list()[axis]
    if size is None:
        what = "last dimension" if axis == -1 else "channel dimension"
        raise InvalidArgumentError(f"The {what} of the inputs to `{layer}` should be defined. Found `None` in {input_shape}")
    return size
