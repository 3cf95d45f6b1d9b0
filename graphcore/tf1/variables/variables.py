"""Variables: state that lives in a session, read and assigned by nodes of the graph."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from typing import Any, Final, NoReturn, Self, cast

from graphcore.brief import brief
from graphcore.dtypes import DType, as_dtype
from graphcore.errors import InvalidArgumentError
from graphcore.graph import Graph, Node, Tensor, as_constant_array, constant_node, convert_to_tensor, get_default_graph
from graphcore.graph.graph import outermost, surrounding
from graphcore.graph.model.node import Operators, no_value
from graphcore.shapes import Shape
from graphcore.tf1.indexed_slices import indices_and_values
from graphcore.tf1.variables.collections import TRAINABLE_VARIABLES, VARIABLES
from graphcore.tf1.variables.made_in_bodies import check_from_outside, outside_of
from graphcore.tf1.variables.references import body_that_changes, handle_within, value_within
from graphcore.tf1.variables.storage import REF, RESOURCE, Storage

_MASKS: Final = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")


class Variable(Operators, Storage):
    """A variable of a session: its node `name`, its initializer `name/Assign` and its value.

    By default the node is a VariableV2 with a reference as output, and the value is `name/read`; an expression that waits for an assignment,
    by data or control edges, has the value after it. With `use_resource` it is a VarHandleOp with a handle as output, and the value is
    `name/Read/ReadVariableOp`; within control dependencies the value is read anew, so that it is the one after them. Branches, loops and
    functions that change a variable read it after their changes; of a reference variable they take a handle, the node `name/handle`.

    Args:
        initial_value: a tensor, array or number, or a function that returns one (called within the variable's scope).
        trainable: put it into the collection of trainable variables.
        collections: the collections to put it into, instead of that of all variables.
        validate_shape: require a fully known shape and keep it.
        caching_device: without effect; a read is no copy.
        name: the node's name, made unique.
        dtype: the dtype of an initial value that is no tensor.
        constraint: a function from the value after an optimizer's step to the value to keep.
        use_resource: make a resource; by default what the variable scope says, else False.
        container: the namespace of the variable in a session; `Session.reset` clears whole containers.
        shared_name: variables with the same shared name in the same container share their value.

    Raises:
        InvalidArgumentError: the initial value has no full shape, or not that dtype.

    Example:
        >>> counter = gc.Variable(0, name="counter")
        >>> step = counter.assign_add(1)
        >>> with gc.Session() as session:
        ...     session.run(gc.initialize_all_variables())
        ...     print(session.run(step), session.run(step))
        1 2
    """

    __array_ufunc__ = None

    def __init__(
        self,
        initial_value: Any | Callable[[], Any],
        trainable: bool = True,
        collections: Sequence[str] | None = None,
        validate_shape: bool = True,
        caching_device: object = None,
        name: str | None = None,
        dtype: object = None,
        constraint: Callable[[Any], Any] | None = None,
        use_resource: bool | None = None,
        container: str = "",
        shared_name: str = "",
    ) -> None:
        del caching_device
        graph = outermost(body := get_default_graph())
        if use_resource is None:
            opened = graph.scopes.variables
            use_resource = opened is not None and bool(opened.use_resource)
        self._constraint = constraint
        wanted = None if dtype is None else as_dtype(dtype)
        self._ops = RESOURCE if use_resource else REF
        with outside_of(body), graph.name_scope(name or "Variable") as scope:
            with graph.name_scope("Initializer") if use_resource or callable(initial_value) else nullcontext():
                value = initial_value() if callable(initial_value) else initial_value
                if value is None:
                    raise InvalidArgumentError("initial_value must be specified.", op=self._ops.storage, node=scope[:-1])
                self._initial_value = self._as_initial(graph, value, wanted, scope)
            self._dtype = self._initial_value.dtype.base
            self._shape = self._checked_shape(scope[:-1], validate_shape)
            # TensorFlow identifies the handles of resources by their shared names alone.
            shared = shared_name or (scope[:-1] if use_resource else "")
            attrs = {"shape": self._shape, "dtype": self._dtype, "container": container, "shared_name": shared}
            self._variable = graph.apply_op(self._ops.storage, [], attrs, scope).outputs[0]
            with graph.device(self._variable.device or None):
                assign_attrs = {"validate_shape": validate_shape, **self._colocated()}
                self._initializer = graph.apply_op(self._ops.assign, [self._variable, self._initial_value], assign_attrs, "Assign")
                self._read = self._new_read(self._ops.read_name)
        self._join_trainable(graph, trainable)
        for collection in collections or (VARIABLES,):
            graph.add_to_collection(collection, self)

    @classmethod
    def of_nodes(cls, variable: Tensor, initializer: Node, snapshot: Tensor, initial_value: Tensor) -> Self:
        """A variable whose nodes exist already, as in an imported graph. It joins no collection.

        Args:
            variable: its handle or reference.
            initializer: the node that assigns the initial value.
            snapshot: its value.
            initial_value: the initial value.
        """
        rebuilt = cls.__new__(cls)
        rebuilt._ops = RESOURCE if variable.node.op == RESOURCE.storage else REF
        rebuilt._variable, rebuilt._initializer, rebuilt._read, rebuilt._initial_value = variable, initializer, snapshot, initial_value
        rebuilt._dtype = snapshot.dtype.base
        rebuilt._shape = snapshot.shape
        rebuilt._constraint = None
        return rebuilt

    def _join_trainable(self, graph: Graph, trainable: bool) -> None:
        trained = graph.collections.get(TRAINABLE_VARIABLES, [])
        before = [variable for variable in trained if variable.name != self.name]  # a cell that runs again may have made it before
        if trainable is (len(before) == len(trained)):
            graph.derivations.reconsider()
        if trainable:
            graph.add_to_collection(TRAINABLE_VARIABLES, self)
        else:
            trained[:] = before

    def _as_initial(self, graph: Graph, value: Any, wanted: DType | None, scope: str) -> Tensor:
        check_from_outside(graph, value, scope[:-1])
        if isinstance(value, Tensor | Variable):
            tensor = convert_to_tensor(graph, value, wanted, scope)
            if wanted is not None and tensor.dtype.base is not wanted:
                raise InvalidArgumentError(
                    f"Variable '{scope[:-1]}': required an initial value of {wanted.text}, got '{tensor.name}' of {tensor.dtype.text}",
                    op=self._ops.storage,
                    node=scope[:-1],
                )
            return tensor
        return _named_constant(graph, value, wanted, scope)

    def _checked_shape(self, name: str, validate_shape: bool) -> Shape:
        shape = self._initial_value.shape
        if validate_shape and not shape.is_fully_defined:
            raise (
                InvalidArgumentError(
                    f"Variable '{name}': initial_value must have a shape specified, got '{self._initial_value.name}' of shape {shape}",
                    op=self._ops.storage,
                    node=name,
                    source=self._initial_value.node.source,
                )
                .advise(
                    "Begin with a value whose sizes are all known, such as `gc.zeros([10, 3])`: a variable exists before anything is fed.",
                    required="an initial value of known shape",
                    came=f"'{self._initial_value.name}' of shape {shape}",
                )
                .about_inputs((self._initial_value,))
            )
        return shape if validate_shape else Shape(None)

    def _new_read(self, name: str | None) -> Tensor:
        attrs = {"dtype": self._dtype} if self.is_resource else self._colocated()
        if (body := body_that_changes(self)) is not None:
            return body.apply_op(self._ops.read, [self._read], None, name).outputs[0]
        here = self._graph_for_nodes()
        tensor = here.apply_op(self._ops.read, [self._variable], attrs, name).outputs[0]
        if here is not self.graph:
            here.set_shape(tensor, self._shape)  # an argument that is a handle does not carry the shape
        return tensor

    def _colocated(self) -> dict[str, Any]:
        """The attr that keeps a node on the device of a reference; a handle needs none."""
        return {} if self.is_resource else {"_class": [f"loc:@{self.op.name}"]}

    @property
    def dtype(self) -> DType:
        """The dtype of its value."""
        return self._dtype

    @property
    def shape(self) -> Shape:
        """The shape of its value."""
        return self._shape if self.is_resource else self._variable.shape

    def get_shape(self) -> Shape:
        """The shape of its value (TF1's word)."""
        return self.shape

    @property
    def constraint(self) -> Callable[[Any], Any] | None:
        """The function that optimizers apply to the value after a step, None for none."""
        return self._constraint

    def start_from(self, value: Tensor) -> None:
        """Let its initializer assign `value` instead of the initial value."""
        self._initializer = self.change("assign", value)

    def as_tensor(self) -> Tensor:
        """The value, as a tensor for ops."""
        around = [here := self._graph_for_nodes(), *surrounding(here)] if self.is_resource else []
        if (waiting := next((graph for graph in around if graph.scopes.controls), None)) is not None:
            with waiting.as_default():  # a body takes what is read where its call is made
                return self._new_read(None)
        return self._read

    def value(self) -> Tensor:
        """The value, as a tensor for ops."""
        return self.as_tensor()

    def read_value(self) -> Tensor:
        """A new read of the value, subject to the current control dependencies."""
        return self._new_read("read" if not self.is_resource else None)

    def change(self, how: str, *inputs: Any, name: str | None = None) -> Node:
        """Add the node that changes it.

        Args:
            how: "assign", "assign_add", "assign_sub", "scatter_update", "scatter_add" or "scatter_sub".
            inputs: the arguments of the method of that name.
            name: the name of the node.
        """
        if (body := body_that_changes(self)) is not None:
            return body.apply_op(getattr(RESOURCE, how), [handle_within(self, body), *inputs], {"dtype": self._dtype}, name)
        attrs: dict[str, Any] = {"dtype": self._dtype} if self.is_resource else {}  # a reference determines it: values take its dtype
        attrs |= {"validate_shape": bool(self._shape.is_fully_defined)} if self.is_resource and how == "assign" else {}
        return self._graph_for_nodes().apply_op(getattr(self._ops, how), [self._variable, *inputs], attrs, name)

    def _changed(self, how: str, *inputs: Any, name: str | None, use_locking: bool, read_value: bool = True) -> Tensor:
        """The value after a change."""
        del use_locking  # changes are atomic in any case
        node = self.change(how, *inputs, name=name)
        if (body := body_that_changes(self)) is not None and read_value:
            return value_within(self, body, node)
        if not self.is_resource or not read_value:
            return node.outputs[0] if read_value else cast("Tensor", node)  # TensorFlow's signature does not tell them apart
        with node.graph.control_dependencies([node]):
            return self._new_read(None)

    def assign(self, value: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True) -> Tensor:
        """Set it to `value` at run time. The result is the new value, or the node without `read_value`; assignments are atomic in any case."""
        return self._changed("assign", value, name=name, use_locking=use_locking, read_value=read_value)

    def assign_add(self, delta: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True) -> Tensor:
        """Add `delta` at run time. The result is the new value, or the node without `read_value`; assignments are atomic in any case."""
        return self._changed("assign_add", delta, name=name, use_locking=use_locking, read_value=read_value)

    def assign_sub(self, delta: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True) -> Tensor:
        """Subtract `delta` at run time. The result is the new value, or the node without `read_value`; assignments are atomic in any case."""
        return self._changed("assign_sub", delta, name=name, use_locking=use_locking, read_value=read_value)

    def scatter_update(self, indices: Any, updates: Any = None, name: str | None = None, use_locking: bool = False) -> Tensor:
        """Replace the rows `indices` by `updates` at run time. indices: [...], updates: [..., *shape[1:]]; or both as slices."""
        return self._changed("scatter_update", *indices_and_values(indices, updates), name=name, use_locking=use_locking)

    def scatter_add(self, indices: Any, updates: Any = None, name: str | None = None, use_locking: bool = False) -> Tensor:
        """Add `updates` to the rows `indices` at run time; repeated indices add up. Both may be given as slices."""
        return self._changed("scatter_add", *indices_and_values(indices, updates), name=name, use_locking=use_locking)

    def scatter_sub(self, indices: Any, updates: Any = None, name: str | None = None, use_locking: bool = False) -> Tensor:
        """Subtract `updates` from the rows `indices` at run time; repeated indices add up. Both may be given as slices."""
        return self._changed("scatter_sub", *indices_and_values(indices, updates), name=name, use_locking=use_locking)

    def numpy(self) -> NoReturn:
        """Raise an error: a session keeps the value.

        Raises:
            InvalidArgumentError: always.
        """
        raise no_value(self._variable, "it is no NumPy array")

    def __array__(self, dtype: object = None, copy: object = None) -> NoReturn:
        raise no_value(self._variable, "it is no NumPy array")

    def __float__(self) -> NoReturn:
        raise no_value(self._variable, "it is no Python number")

    __int__ = __complex__ = __float__

    def __bool__(self) -> bool:
        """True for a reference variable, as in TensorFlow; an error for a resource."""
        if self.is_resource:
            raise no_value(self._variable, "`if` and `and` cannot use it")
        return True

    def __repr__(self) -> str:
        return f"<gc.Variable '{self.name}' {self.dtype.text} {self.shape}>"

    def __getitem__(self, key: Any) -> VariableSlice:
        return _slice_of(self, key)

    def __iter__(self) -> Any:
        return iter(self.as_tensor())


class VariableSlice(Tensor, eq=False):
    """A part of a variable's value, as `v[1:3]` gives it.

    Args:
        variable: the variable.
    """

    variable: Variable

    def assign(self, value: Any, name: str | None = None) -> Tensor:
        """Replace this part of the variable at run time.

        Args:
            value: the new values, of the shape of the slice or one that is broadcast to it.
            name: the name of the node.

        Returns:
            The value of the whole variable after the change.
        """
        graph, variable, node = get_default_graph(), self.variable, self.node
        inputs = [*node.inputs[1:4], convert_to_tensor(graph, value, variable.dtype, f"value for a slice of '{variable.op.name}'")]
        attrs = {mask: node.get_attr(mask) for mask in _MASKS}
        name = name or f"{node.name}/_assign"
        body = body_that_changes(variable)
        if body is not None:
            changed = body.apply_op("ResourceStridedSliceAssign", [handle_within(variable, body), *inputs], attrs, name)
            return value_within(variable, body, changed)
        if not variable.is_resource:
            return graph.apply_op("StridedSliceAssign", [variable.handle, *inputs], attrs, name).outputs[0]
        changed = graph.apply_op("ResourceStridedSliceAssign", [variable.handle, *inputs], attrs, name)
        with graph.control_dependencies([changed]):
            return variable.read_value()


def _slice_of(variable: Variable, key: Any) -> VariableSlice:
    """The part of a variable selected by `key`."""
    node = variable.as_tensor()[key].node
    variable_slice = VariableSlice(node, 0, variable)
    node.outputs = [variable_slice]  # the tensor of the node, by which runs know what is fetched and fed
    return variable_slice


def _named_constant(graph: Graph, value: Any, wanted: DType | None, scope: str) -> Tensor:
    array = as_constant_array(value, wanted, f"initial value of variable '{scope[:-1]}'")
    return constant_node(graph, array, "initial_value").outputs[0]


def listed_variables(argument: str, value: Any) -> list[Variable]:
    """Convert a single variable or several to a list.

    Raises:
        InvalidArgumentError: something else; `argument` names it.
    """
    is_list = isinstance(value, Iterable) and not isinstance(value, str | Tensor)
    variables = [value] if isinstance(value, Variable) else list(value) if is_list else None
    if variables is None or not all(isinstance(variable, Variable) for variable in variables):
        wrong = value if variables is None else next(variable for variable in variables if not isinstance(variable, Variable))
        raise InvalidArgumentError(f"{argument}: required variables, got {brief(wrong)}")
    return variables
