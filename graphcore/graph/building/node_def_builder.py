"""Builds NodeDefs by chained calls: types and lengths become attrs, `finalize` reports all errors.

Every op that a user adds is built here.
"""

from __future__ import annotations

from collections.abc import Sequence

from graphcore.attrs import AttrValue, as_attr_value
from graphcore.definitions.attr_equality import attr_values_equal
from graphcore.definitions.attr_value_util import KIND_TYPES
from graphcore.definitions.fake_input import FakeInput, NodeOut
from graphcore.definitions.node_def_util import check_attrs, check_control_inputs, fail_missing_attrs
from graphcore.definitions.op_def_util import summarize_op_def
from graphcore.definitions.op_tables import InputPlan, OpTables, tables_of
from graphcore.definitions.types import NodeDef, OpDef, OpDefSource
from graphcore.definitions.value_text import summarize_attr_value
from graphcore.dtypes import DType, as_dtype
from graphcore.errors import InvalidArgumentError, NotFoundError
from graphcore.registry import op_registry


class NodeDefBuilder:
    """`NodeDefBuilder("sum", "AddN", registry).input([NodeOut("a", 0, gc.float32), ...]).finalize()`.

    Args:
        name: the node's name.
        op: an OpDef, or the name of an op in `registry`.
        registry: the registry of the op; the global one by default.
    """

    __slots__ = ("_attrs", "_control_inputs", "_device", "_errors", "_inputs", "_next", "_op_def", "_plans", "_tables", "name")

    _op_def: OpDef | None
    _tables: OpTables | None
    _plans: tuple[InputPlan, ...]

    def __init__(self, name: str, op: str | OpDef, registry: OpDefSource | None = None) -> None:
        self.name = name
        self._inputs: list[str] = []
        self._control_inputs: list[str] = []
        self._attrs: dict[str, AttrValue] = {}
        self._device = ""
        self._errors: list[str] = []
        self._next = 0
        op_def = op if isinstance(op, OpDef) else self._look_up(op, registry)
        self._op_def = op_def
        if op_def is None:
            self._tables = None
            self._plans = ()
        else:
            self._tables = tables_of(op_def)
            self._plans = self._tables.inputs

    def _look_up(self, name: str, registry: OpDefSource | None) -> OpDef | None:
        source = op_registry if registry is None else registry
        try:
            return source.look_up_op_def(name)
        except NotFoundError as error:
            self._errors.append(error.message)
        return None

    @property
    def op_def(self) -> OpDef:
        """The op.

        Raises:
            NotFoundError: it is not registered.
        """
        if self._op_def is None:
            raise NotFoundError(self._errors[0], node=self.name)
        return self._op_def

    @property
    def node_def(self) -> NodeDef:
        """The node so far, unchecked: its inputs, device and attrs. Control inputs and defaults are added by `finalize`."""
        op = self._op_def.name if self._op_def is not None else ""
        return NodeDef(self.name, op, tuple(self._inputs), self._device, dict(self._attrs))

    @property
    def inputs_specified(self) -> int:
        """The number of inputs of the op that have been given; a list counts once."""
        return self._next

    @property
    def control_inputs(self) -> tuple[str, ...]:
        """The nodes that run before it, which `finalize` writes behind all other inputs."""
        return tuple(self._control_inputs)

    @property
    def errors(self) -> tuple[str, ...]:
        """The errors so far, all of which `finalize` reports."""
        return tuple(self._errors)

    def input(
        self, source: str | NodeOut | FakeInput | Sequence[NodeOut], index: int = 0, dtype: DType | str | None = None
    ) -> NodeDefBuilder:
        """Add the next input: a node's name with output index and type, NodeOut(s), or a FakeInput."""
        position = self._next
        plans = self._plans
        if position >= len(plans):
            if self._op_def is not None:
                self._errors.append(f"More Input() calls than the {len(plans)} input_args")
            return self
        if type(source) is str:
            self._next = position + 1
            self._single(plans[position], source, index, dtype)
            return self
        if isinstance(source, FakeInput):
            return self._fake(source, position)
        self._next = position + 1
        if isinstance(source, NodeOut):
            self._single(plans[position], source.node, source.index, source.dtype)
        else:
            self._list(plans[position], source)  # type: ignore[arg-type]  # the str case is above
        return self

    def control_input(self, source: str) -> NodeDefBuilder:
        """Add a control input: run after node `source`. Written after all data inputs."""
        self._control_inputs.append(source)
        return self

    def device(self, spec: str) -> NodeDefBuilder:
        """Set the requested device."""
        self._device = spec
        return self

    def attr(self, name: str, value: object) -> NodeDefBuilder:
        """Set an attr. Setting the same value twice, or a value that is also inferred, is allowed."""
        definition = self._tables.attrs.get(name) if self._tables is not None else None
        if definition is not None and type(value) is KIND_TYPES.get(definition.type) and type(value) is not float:
            self._set_attr(name, value)  # type: ignore[arg-type]  # a value of just that kind
            return self
        try:
            converted = as_attr_value(value, None if definition is None else definition.type)
        except InvalidArgumentError as error:
            self._errors.append(f"Attr '{name}': {error.message}")
            return self
        self._set_attr(name, converted)
        return self

    def finalize(self) -> NodeDef:
        """Build the node, with defaults for attrs that are not set. May be called repeatedly.

        Raises:
            InvalidArgumentError: inputs or attrs have errors; several are listed with numbers.
        """
        tables = self._tables
        op_def = self._op_def
        if self._errors or op_def is None or tables is None or self._next < len(self._plans):
            raise self._failure()
        attrs = self._attrs
        complete = attrs.copy()
        for name, value in tables.defaults.items():
            if name not in complete:
                complete[name] = value
        inputs = self._inputs
        if self._control_inputs:
            inputs = inputs + [f"^{name}" for name in self._control_inputs]
        node_def = NodeDef(self.name, op_def.name, tuple(inputs), self._device, complete)
        seen = check_attrs(attrs, node_def, tables) + len(complete) - len(attrs)
        if seen < len(op_def.attr):
            fail_missing_attrs(node_def, op_def)
        if self._control_inputs:
            check_control_inputs(node_def, len(self._inputs))
        return node_def

    def _failure(self) -> InvalidArgumentError:
        errors = list(self._errors)
        using = ""
        if self._op_def is not None:
            using = f" using {summarize_op_def(self._op_def)}"
            if self._next < len(self._plans):
                errors.append(f"{self._next} inputs specified of {len(self._plans)} inputs in Op")
        op = "" if self._op_def is None else self._op_def.name
        if len(errors) == 1:
            return InvalidArgumentError(f"{errors[0]} while building NodeDef '{self.name}'{using}", op=op, node=self.name)
        listed = "\n".join(errors)
        return InvalidArgumentError(f"{len(errors)} errors while building NodeDef '{self.name}'{using}:\n{listed}", op=op, node=self.name)

    def _single(self, plan: InputPlan, node: str, index: int, dtype: DType | str | None) -> None:
        if type(dtype) is not DType:
            dtype = as_dtype(dtype)
        self._add_input(node, index)
        if plan.is_list:
            self._errors.append(f"Single tensor passed to '{plan.arg.name}', expected list")
        elif plan.expected is not None:
            if dtype is not plan.expected and dtype.base is not plan.expected:
                self._wrong_type(plan, dtype, plan.expected.text)
        else:
            if plan.is_ref and not dtype.is_ref:
                self._wrong_type(plan, dtype, "ref type")
            self._set_attr(plan.type_attr, dtype.base)

    def _list(self, plan: InputPlan, sources: Sequence[NodeOut]) -> None:
        for source in sources:
            self._add_input(source.node, source.index)
        arg = plan.arg
        if arg.number_attr:
            self._set_attr(arg.number_attr, len(sources))
            expected = plan.expected
            if expected is None and sources:
                expected = sources[0].dtype.base
                self._set_attr(arg.type_attr, expected)
                expected = expected.ref if plan.is_ref else expected
            for source in sources:
                if source.dtype is not expected and source.dtype.base is not expected:
                    self._wrong_type(plan, source.dtype, expected.text if expected is not None else "")
        elif arg.type_list_attr:
            for source in sources:
                if plan.is_ref and not source.dtype.is_ref:
                    self._wrong_type(plan, source.dtype, "ref type")
            self._set_attr(arg.type_list_attr, tuple([source.dtype.base for source in sources]))
        else:
            self._errors.append(f"List provided to input '{arg.name}' when single Tensor expected")

    def _fake(self, source: FakeInput, position: int) -> NodeDefBuilder:
        assert self._op_def is not None
        try:
            resolved = source.resolve(self._op_def, position, self._attrs, self.name)
        except InvalidArgumentError as error:
            # As in TensorFlow, the input then counts as missing.
            self._errors.append(error.message)
            return self
        return self.input(resolved)

    def _add_input(self, node: str, index: int) -> None:
        if not node:
            self._errors.append("Empty input node name")
        elif node[0] == "^":
            self._errors.append(f"Non-control input starting with ^: {node}")
        elif index > 0:
            self._inputs.append(f"{node}:{index}")
        else:
            self._inputs.append(node)

    def _set_attr(self, name: str, value: AttrValue) -> None:
        earlier = self._attrs.get(name)
        if earlier is None:
            self._attrs[name] = value
        elif earlier is not value and not attr_values_equal(earlier, value):
            self._errors.append(f"Inconsistent values for attr '{name}' {summarize_attr_value(earlier)} vs. {summarize_attr_value(value)}")

    def _wrong_type(self, plan: InputPlan, dtype: DType, expected: str) -> None:
        self._errors.append(f"Input '{plan.arg.name}' passed {dtype.text} expected {expected}")
