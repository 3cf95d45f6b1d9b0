"""The variables of an optimizer: slots beside each trained variable, and others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from graphcore.graph import Graph, Node, Tensor, get_default_graph
from graphcore.graph.graph import outermost
from graphcore.shapes import Shape
from graphcore.tf1.arrays.layout import shape
from graphcore.tf1.framework import zeros
from graphcore.tf1.variables.variables import Variable


class Slots:
    """The part of an optimizer that makes and finds its variables."""

    def __init__(self) -> None:
        self._slots: dict[tuple[str, Node], Variable] = {}
        self._others: dict[tuple[str, Graph], Variable] = {}
        self._prefix: str | None = None

    def get_slot(self, var: Variable, name: str) -> Variable | None:
        """The slot `name` beside `var`, None if there is none (yet)."""
        return self._slots.get((name, var.op))

    def get_slot_names(self) -> list[str]:
        """The names of the slots, sorted."""
        return sorted({name for name, _ in self._slots})

    def variables(self) -> list[Variable]:
        """Its variables in the default graph, sorted by name: the slots and the others."""
        graph = outermost(get_default_graph())
        mine = [variable for variable in (*self._others.values(), *self._slots.values()) if variable.graph is graph]
        return sorted(mine, key=lambda variable: variable.name)

    def _kept(self) -> list[dict[Any, Variable]]:
        """The tables of its variables, restored when a step cannot be built."""
        return [self._slots, self._others]

    def _zeros_slot(self, var: Variable, slot_name: str, op_name: str) -> Variable:
        """The slot `slot_name` of `var`, made of zeros if it is not there; `op_name` is part of its name."""
        sizes = _sizes(var.shape)
        initial = (lambda: zeros(sizes, var.dtype)) if sizes is not None else (lambda: zeros(shape(var.initialized_value()), var.dtype))
        return self._slot(var, initial, slot_name, op_name)

    def _get_or_make_slot(self, var: Variable, val: Any, slot_name: str, op_name: str) -> Variable:
        """The slot `slot_name` of `var`, made with the initial value `val` if it is not there."""
        return self._slot(var, val, slot_name, op_name)

    def _get_or_make_slot_with_initializer(
        self, var: Variable, initializer: Callable[..., Any], shape: Any, dtype: Any, slot_name: str, op_name: str
    ) -> Variable:
        """The slot `slot_name` of `var`, made with the value of `initializer` if it is not there."""
        return self._slot(var, lambda: initializer(_sizes(shape) or [], dtype=dtype), slot_name, op_name)

    def _slot(self, var: Variable, initial: Any, slot_name: str, op_name: str) -> Variable:
        slot = self._slots.get((slot_name, var.op))
        if slot is not None and is_in_graph(slot, var.graph) and (slot.dtype, slot.shape) == (var.dtype, var.shape):
            return slot
        name, shared = self._slot_name(var, op_name)
        if shared is not None and (shared.dtype, shared.shape) == (var.dtype, var.shape):
            self._slots[slot_name, var.op] = shared
            return shared
        with var.graph.name_scope(None), var.graph.device(var.device or None):
            created = Variable(
                initial,
                trainable=False,
                validate_shape=bool(var.shape.is_fully_defined),
                name=name,
                use_resource=var.is_resource,
            )
        var.graph.named_variables[created.op.name] = created
        self._slots[slot_name, var.op] = created
        return created

    def _slot_name(self, var: Variable, op_name: str) -> tuple[str, Variable | None]:
        """The name of a new slot, and the variable of that name if variables are shared around the step."""
        graph = var.graph
        prefix = scope_prefix(graph) if self._prefix is None else self._prefix
        scopes = graph.scopes.variables
        if scopes is None or prefix != scope_prefix(graph) or not scopes.shares:
            return f"{prefix}{var.op.name}/{op_name}", None
        name, outermost(graph).scopes.variables = scopes.open_unnamed(f"{var.op.name}/{op_name}", graph.cells)
        variable = graph.named_variables.get(name)
        return name, variable if variable is not None and is_in_graph(variable, graph) else None

    def _slot_dict(self, slot_name: str) -> dict[Node, Variable]:
        """The slots of one name by the nodes of their variables."""
        return {node: slot for (name, node), slot in self._slots.items() if name == slot_name}

    def _create_non_slot_variable(self, initial_value: Any, name: str, colocate_with: Variable) -> Variable:
        """The variable `name` of the optimizer, made if it is not there.

        Args:
            initial_value: its initial value.
            name: its name.
            colocate_with: the variable whose graph, device and kind it shares.
        """
        graph = colocate_with.graph
        variable = self._others.get((name, graph))
        if variable is None or not is_in_graph(variable, graph):
            with graph.device(colocate_with.device or None):
                variable = Variable(initial_value, trainable=False, name=name, use_resource=colocate_with.is_resource)
            self._others[name, graph] = variable
        return variable

    def _get_non_slot_variable(self, name: str, graph: Graph | None = None) -> Variable | None:
        """The variable `name` made by `_create_non_slot_variable`, None if there is none."""
        return self._others.get((name, outermost(graph or get_default_graph())))

    def _non_slot_variables(self) -> Iterator[Variable]:
        """The variables that are no slots."""
        return iter(self._others.values())


def scope_prefix(graph: Graph) -> str:
    """The prefix that the current variable scope gives to the names of slots."""
    current = getattr(graph.scopes.variables, "current", None)
    return f"{current.name}/" if current is not None and current.name else ""


def is_in_graph(variable: Variable, graph: Graph) -> bool:
    """True iff a variable is in its graph permanently: not while the cell that made it runs again."""
    return variable.op in graph and not graph.cells.may_replace(variable.op)


def _sizes(shape: Any) -> list[int] | None:
    """The sizes of a full shape, None for another."""
    if isinstance(shape, Tensor):
        return None
    known_shape = shape if isinstance(shape, Shape) else Shape(shape)
    return [size for size in known_shape.as_list() if size is not None] if known_shape.is_fully_defined else None
