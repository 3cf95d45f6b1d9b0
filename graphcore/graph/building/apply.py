"""Adding one op: values become constants, attrs are inferred, the name is made unique.

The fast path handles inputs that fit exactly. All others go to NodeDefBuilder, which implements every rule and reports errors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from graphcore import dtypes
from graphcore.attrs import Array, AttrValue, Placeholder, TensorValue, as_attr_value, texts_in
from graphcore.brief import brief
from graphcore.definitions import (
    NodeDef,
    NodeOut,
    OpDef,
    check_op_deprecation,
    in_out_types_for_node,
    is_valid_node_name,
    validate_attr_value,
)
from graphcore.definitions.op_tables import AttrCheck, tables_of
from graphcore.dtypes import DType, as_dtype
from graphcore.errors import GraphError, InvalidArgumentError
from graphcore.graph.building.misfits import cast_advice, dtype_misfit, inputs_text
from graphcore.graph.building.node_def_builder import NodeDefBuilder
from graphcore.graph.model.device_functions import with_chosen_device, with_colocation
from graphcore.graph.model.node import NO_CONTROLS, Node, Tensor, input_text
from graphcore.graph.model.plain_graph import PlainGraph
from graphcore.shapes import Shape
from graphcore.source import caller_location
from graphcore.value_casts import cast_losslessly

_Match = tuple[dict[str, AttrValue], tuple[DType, ...], tuple[DType, ...]]
"""Attrs, input types, output types."""


class _Plan:
    """The precomputed data for matching inputs to an OpDef."""

    __slots__ = ("allowed", "args", "attr_kinds", "checks", "defaults", "matched", "outputs", "required", "simple")

    def __init__(self, op_def: OpDef) -> None:
        self.args = [
            (arg.name, arg.type, arg.type_attr, bool(arg.number_attr or arg.type_list_attr), arg.is_ref) for arg in op_def.input_arg
        ]
        self.matched: dict[tuple[DType, ...], _Match | None] = {}
        self.simple = not any(arg.number_attr or arg.type_list_attr for arg in (*op_def.input_arg, *op_def.output_arg))
        self.outputs = [(arg.type, arg.type_attr, arg.is_ref) for arg in op_def.output_arg]
        self.defaults: dict[str, AttrValue] = {attr.name: attr.default_value for attr in op_def.attr if attr.default_value is not None}
        self.attr_kinds = {attr.name: attr.type for attr in op_def.attr}
        self.checks = tables_of(op_def).checks
        inferred = {type_attr for _, _, type_attr, _, _ in self.args if type_attr}
        self.allowed: dict[str, frozenset[AttrValue] | None] = {
            attr.name: None if attr.allowed_values is None else frozenset(attr.allowed_values)
            for attr in op_def.attr
            if attr.name in inferred
        }
        self.required = [attr.name for attr in op_def.attr if attr.default_value is None and attr.name not in inferred]


def apply_op(graph: PlainGraph, op: str, inputs: Sequence[Any], attrs: Mapping[str, Any] | None, name: str | None) -> Node:
    """See `Graph.apply_op`."""
    source = caller_location(2)
    around = graph.scopes
    gradients = around.gradients if graph.outer is None else graph.overridden_gradients()
    if op in gradients:
        attrs = {**(attrs or {}), "_gradient_op_type": gradients[op]}
    if around.colocated:
        attrs = with_colocation(attrs or {}, around.colocated)
    with graph.lock:  # held from the choice of a name, so that no other thread takes it
        registration = graph.library.look_up(op)
        op_def = registration.op_def
        if op_def.deprecation is not None:
            check_op_deprecation(op_def, graph.versions.producer)
        if around.container and op_def.is_stateful and not (attrs or {}).get("container") and op_def.find_attr("container") is not None:
            attrs = {**(attrs or {}), "container": around.container}
        plan: _Plan | None = registration.apply_plan
        if plan is None:
            plan = registration.apply_plan = _Plan(op_def)
        attr_values = _given_attrs(plan, attrs, op, name) if attrs else {}
        types: list[DType] = []
        tensors: list[Any] = []
        first_new = 0
        try:
            for item in inputs:  # most often all are tensors of this graph, and one check of each suffices
                if type(item) is not Tensor or item.node.graph is not graph:
                    first_new = graph.num_node_ids
                    tensors = _as_tensors(graph, plan, op_def, inputs, attr_values, name)
                    types = [tensor.dtype for tensor in tensors] if plan.simple else []
                    break
                types.append(item.node.output_types[item.index])
            else:
                tensors = list(inputs)
            scopes = graph.thread_scopes.here
            node_name = exact_name(graph, name) if name else graph.names.unique(scopes.name + op)
            controls = list(scopes.controls) if scopes.controls else NO_CONTROLS
            resolved = _remembered_match(plan, tuple(types), attr_values) if plan.simple else None
            if resolved is None:
                node_def = _build(op_def, node_name, tensors, attr_values, controls, scopes.device)
                in_out = in_out_types_for_node(node_def, op_def)
                flat = [tensor for item in tensors for tensor in (item if isinstance(item, list) else [item])]
                if scopes.device_functions:
                    node_def = with_chosen_device(node_def, flat, scopes.device_functions)
                return graph.builder.insert(node_def, registration, flat, controls, tuple(in_out[0]), tuple(in_out[1]), source)
            node_attrs, input_types, output_types = resolved
            definition: Any = node_attrs
            if controls or scopes.device or scopes.device_functions:
                texts = [*map(input_text, tensors), *[f"^{control.name}" for control in controls]]
                definition = NodeDef(node_name, op, tuple(texts), scopes.device, node_attrs)
                if scopes.device_functions:
                    definition = with_chosen_device(definition, tensors, scopes.device_functions)
            return graph.builder.insert(
                definition, registration, tensors, controls, input_types, output_types, source, name=node_name, fits=True
            )
        except BaseException as error:
            if isinstance(error, GraphError):
                error.about_inputs(tuple([tensor for item in tensors for tensor in (item if isinstance(item, list) else [item])]))
            if first_new:
                _take_back_constants(graph, first_new)
            raise


def _take_back_constants(graph: PlainGraph, first_new: int) -> None:
    """Remove the constants made of an op's plain values, after the op itself was refused."""
    for number in reversed(range(first_new, graph.num_node_ids)):
        node = graph.find_node_id(number)
        if node is not None and node.op == "Const" and not graph.consumers(node):
            graph.editor.remove_node(node)


def exact_name(graph: PlainGraph, name: str) -> str:
    """The name of a new node: `name` made unique in the current scope, or exact with a trailing "/".

    Raises:
        InvalidArgumentError: it is no valid node name.
    """
    exact = name[:-1] if name[-1:] == "/" else graph.names.unique(graph.scopes.name + name)
    if not is_valid_node_name(exact):
        raise InvalidArgumentError(f"Node '{exact}': Node name contains invalid characters", node=exact, source=caller_location())
    return exact


def _remembered_match(plan: _Plan, types: tuple[DType, ...], attr_values: dict[str, AttrValue]) -> _Match | None:
    """The cached attrs for inputs of the same types without further attrs, shared by all such nodes."""
    if attr_values:
        return _match(plan, types, attr_values)
    matched = plan.matched.get(types)
    if matched is None:
        matched = plan.matched[types] = _match(plan, types, attr_values)
    return matched


def _match(plan: _Plan, types: tuple[DType, ...], attr_values: dict[str, AttrValue]) -> _Match | None:
    """Attrs and types if everything fits exactly, None if a closer check is needed."""
    if len(types) != len(plan.args) or not _are_right(attr_values, plan.checks):
        return None
    attrs: dict[str, Any] = {**plan.defaults, **attr_values} if attr_values else dict(plan.defaults)
    inferred: dict[str, DType] = {}
    input_types = []
    for given_type, (_, fixed, type_attr, _, is_ref) in zip(types, plan.args, strict=True):
        actual = given_type
        if is_ref is not actual.is_ref:
            if is_ref:
                return None
            actual = actual.base
        base = actual.base
        if fixed is not None:
            if fixed is not base:
                return None
        elif inferred.setdefault(type_attr, base) is not base:
            return None
        input_types.append(actual)
    for attr_name, dtype in inferred.items():
        allowed = plan.allowed[attr_name]
        if (allowed is not None and dtype not in allowed) or attr_values.get(attr_name, dtype) is not dtype:
            return None
        attrs[attr_name] = dtype
    for attr_name in plan.required:
        if attr_name not in attrs:
            return None
    output_types = []
    for fixed, type_attr, is_ref in plan.outputs:
        dtype = fixed if fixed is not None else attrs[type_attr]
        output_types.append(dtype.ref if is_ref else dtype)
    return attrs, tuple(input_types), tuple(output_types)


def _are_right(attr_values: dict[str, AttrValue], checks: Mapping[str, AttrCheck]) -> bool:
    """False if an attr is unknown to the op, of another kind, or beyond its limits."""
    for name, value in attr_values.items():
        check = checks.get(name)
        if check is None:
            if not name.startswith("_"):
                return False
            continue
        if type(value) is check.scalar or type(value) is Placeholder:
            continue
        try:
            validate_attr_value(value, check.attr)
        except GraphError:
            return False
    return True


def _build(op_def: OpDef, node_name: str, tensors: list[Any], attrs: dict[str, AttrValue], controls: list[Node], device: str) -> NodeDef:
    builder = NodeDefBuilder(node_name, op_def)
    for key, value in attrs.items():
        builder.attr(key, value)
    for item in tensors:
        if isinstance(item, list):
            builder.input([NodeOut(tensor.node.name, tensor.index, tensor.dtype) for tensor in item])
        else:
            builder.input(item.node.name, item.index, item.dtype)
    for control in controls:
        builder.control_input(control.name)
    if device:
        builder.device(device)
    try:
        return builder.finalize()
    except GraphError as error:
        name, text = dtype_misfit(op_def, tensors, attrs)
        if text:
            error.add_note(error.message)
            error.message, error.input = text, name
            cast_advice(error, op_def, tensors)
        error.message += inputs_text(op_def, tensors)
        raise error.with_node(node_name, op=op_def.name, source=caller_location()) from None


def _given_attrs(plan: _Plan, attrs: Mapping[str, Any], op: str, name: str | None) -> dict[str, AttrValue]:
    attr_values: dict[str, AttrValue] = {}
    for key, value in attrs.items():
        if value is None and plan.attr_kinds.get(key) != "shape":
            continue
        try:
            attr_values[key] = as_attr_value(value, plan.attr_kinds.get(key))
        except GraphError as error:
            error.attr = key
            raise error.with_node(name or op, op=op, source=caller_location()) from None
    return attr_values


def _as_tensors(
    graph: PlainGraph, plan: _Plan, op_def: OpDef, inputs: Sequence[Any], attr_values: dict[str, AttrValue], name: str | None
) -> list[Any]:
    """Convert every input to a tensor of this graph (a list of them for a list input)."""
    result: list[Any] = []
    for item in inputs:
        if type(item) is not Tensor:
            return _convert_all(graph, plan, op_def, inputs, attr_values, name)
        if item.node.graph is not graph:
            item = graph.as_graph_element(item)  # a function's body captures the tensor as an argument
        result.append(item)
    return result


def _convert_all(
    graph: PlainGraph, plan: _Plan, op_def: OpDef, inputs: Sequence[Any], attr_values: dict[str, AttrValue], name: str | None
) -> list[Any]:
    references = [arg.is_handle for arg in op_def.input_arg]
    held = [as_held_tensor(graph, item, reference=i < len(references) and references[i]) for i, item in enumerate(inputs)]
    types_by_attr = {key: value for key, value in attr_values.items() if isinstance(value, DType)}
    for item, (_, _, type_attr, is_list, _) in zip(held, plan.args, strict=False):
        first = _first_tensor(item) if is_list else item
        if isinstance(first, Tensor) and type_attr:
            types_by_attr.setdefault(type_attr, first.dtype.base)
    result: list[Any] = []
    for i, item in enumerate(held):
        _, fixed, type_attr, is_list, _ = plan.args[i] if i < len(plan.args) else ("", None, "", False, False)
        dtype = fixed or types_by_attr.get(type_attr) or _preferred_dtype(plan, type_attr, item)
        where = f"input {i} of {name or op_def.name} (op {op_def.name})"
        if is_list and isinstance(item, list | tuple):
            result.append([convert_to_tensor(graph, part, dtype, where) for part in item])
            continue
        try:
            tensor = convert_to_tensor(graph, item, dtype, where)
        except InvalidArgumentError as error:
            raise _beside_tensors(error, held, dtype).with_node("", op=op_def.name) from None
        if type_attr and not is_list:
            types_by_attr.setdefault(type_attr, tensor.dtype.base)
        result.append(tensor)
    return result


def _beside_tensors(error: InvalidArgumentError, held: Sequence[Any], dtype: DType | None) -> InvalidArgumentError:
    """Say what to do about a value that does not fit beside a tensor of another dtype."""
    tensor = next((item for item in held if isinstance(item, Tensor)), None)
    if tensor is None or dtype is None or not dtype.is_integer or tensor.dtype.base is not dtype.base:
        return error
    came = f"a number with a fraction, beside the {dtype.base.text} tensor '{tensor.name}'"
    return error.advise(
        f"Convert the tensor first: `gc.cast(\u00ab{tensor.name}\u00bb, gc.float32)`; or write a whole number.",
        required=f"a whole number, {dtype.base.text}",
        came=came,
    ).about_inputs((tensor,))


def _first_tensor(item: object) -> Tensor | None:
    if not isinstance(item, list | tuple):
        return None
    return next((part for part in item if isinstance(part, Tensor)), None)


def _preferred_dtype(plan: _Plan, type_attr: str, value: Any) -> DType | None:
    """The default of a type attr, unless it does not fit the value."""
    default = plan.defaults.get(type_attr)
    if not isinstance(default, DType) or default.as_numpy is None:
        return None
    try:
        fits = isinstance(value, Tensor) or _holds_tensor(value) or _converted(value, np.asarray(value), default) is not None
    except (TypeError, ValueError):
        fits = True  # the error is that of the conversion
    return default if fits else None


def as_held_tensor(graph: PlainGraph, item: Any, *, reference: bool = False) -> Any:
    """Replace holders of tensors (variables, nodes) by their tensors, elementwise in lists.

    A variable is replaced by its value, or with `reference` by the reference or handle that an assignment needs. Other values are returned
    unchanged.
    """
    if isinstance(item, Tensor):
        return graph.as_graph_element(item)
    if isinstance(item, Node):
        if not item.outputs:
            raise InvalidArgumentError(f"Node '{item.name}' (op {item.op}) has no output to use as an input", op=item.op, node=item.name)
        return item.outputs[0] if item.graph is graph else graph.as_graph_element(item.outputs[0])
    if isinstance(item, list | tuple) and any(isinstance(part, Tensor | Node) or hasattr(part, "as_tensor") for part in item):
        return [as_held_tensor(graph, part) for part in item]
    if hasattr(item, "as_tensor"):
        return graph.as_graph_element(getattr(item, "handle", item) if reference else item.as_tensor())
    return item


def convert_to_tensor(graph: PlainGraph, value: Any, dtype: DType | None, where: str, name: str | None = None) -> Tensor:
    """Convert `value` to a tensor: itself if it is one, else a Const of `dtype` called `name`.

    The value's own dtype is taken for None.

    Raises:
        InvalidArgumentError: it cannot be a constant of that dtype.
    """
    value = as_held_tensor(graph, value)
    if isinstance(value, Tensor):
        return value
    if isinstance(value, list | tuple) and any(map(_holds_tensor, value)):
        return _packed(graph, value, dtype, where, name)
    array = as_constant_array(value, dtype, where)
    return constant_node(graph, array, name).outputs[0]


def _holds_tensor(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return any(map(_holds_tensor, value))
    return isinstance(value, Tensor | Node) or hasattr(value, "as_tensor")


def _first_held(graph: PlainGraph, values: Sequence[Any]) -> Tensor | None:
    """The first tensor in nested lists."""
    for item in values:
        tensor = _first_held(graph, item) if isinstance(item, list | tuple) else as_held_tensor(graph, item)
        if isinstance(tensor, Tensor):
            return tensor
    return None


def _packed(graph: PlainGraph, values: Sequence[Any], dtype: DType | None, where: str, name: str | None) -> Tensor:
    """Pack a list of tensors and values; values take the dtype of the first tensor, or `dtype`."""
    first = _first_held(graph, values)
    wanted = first.dtype.base if first is not None else dtype
    parts = [convert_to_tensor(graph, item, wanted, where) for item in values]
    packed = apply_op(graph, "Pack", [parts], None, name or "packed").outputs[0]
    if dtype is not None and packed.dtype.base is not dtype.base and packed.dtype.is_integer and dtype.is_integer:
        return apply_op(graph, "Cast", [packed], {"DstT": dtype.base}, "Cast").outputs[0]
    return packed


_NOTHING: Final[dict[Any, str]] = {
    None: "None: a gradient is None where nothing depends on its x, and a Python function without return gives None",
    ...: "'...', the mark for what is still to be written",
}
"""Mistakes in place of a value, in words."""


def as_constant_array(value: Any, dtype: DType | None, where: str) -> TensorValue:
    """Convert a Python or NumPy value to a constant; Python floats become float32, ints int32, as in TF1.

    A value takes the dtype that is asked for if it keeps its value in it (see `cast_losslessly`); a Python float never becomes an integer.

    Raises:
        InvalidArgumentError: the dtype cannot represent it.
    """
    if isinstance(value, TensorValue):
        return value
    if value is None or value is ...:
        raise InvalidArgumentError(f"{where}: required a tensor or a value, got {_NOTHING[value]}", source=caller_location())
    if isinstance(value, Shape):
        value = _sizes(value, where)
    elif isinstance(value, DType):
        value = value.number
    try:
        array: Array = np.asarray(value)
    except (TypeError, ValueError) as error:
        raise _unequal(where, value, error) from None
    if dtype is None:
        dtype = _natural_dtype(value, array, where)
    base = dtype.base
    if base is dtypes.string:
        return TensorValue(texts_in(value, array), dtypes.string)
    converted = None if base.as_numpy is None or array.dtype.kind in "OSU" else _converted(value, array, base)
    if converted is None:
        raise InvalidArgumentError(
            f"{where}: required a value of type {base.text}, got {brief(value)} ({_kind_of(array)}); use gc.cast or give it as {base.text}",
            source=caller_location(),
        )
    return TensorValue(converted, base)


def _unequal(where: str, value: Any, error: Exception) -> InvalidArgumentError:
    if "inhomogeneous" not in str(error):
        return InvalidArgumentError(f"{where}: cannot make a tensor of {brief(value)}: {error}", source=caller_location())
    return InvalidArgumentError(
        f"{where}: cannot make a tensor of {brief(value)}: its rows have different lengths", source=caller_location()
    ).advise(
        "Make all rows equally long, for example with zeros at the end.", required="rows of one length", came="rows of different lengths"
    )


def _converted(value: Any, array: Array, dtype: DType) -> Array | None:
    """The array in the dtype, None if its values do not fit."""
    if array.size and not _is_numpy(value) and not _python_value_fits(array.dtype.kind, dtype):
        return None
    return cast_losslessly(array, dtype, round_integers=True)


def _python_value_fits(kind: str, dtype: DType) -> bool:
    """False for a Python float where an integer is required, and for a bool beside anything else."""
    if kind == "f":
        return dtype.is_floating or dtype.is_complex
    return (kind == "b") is dtype.is_bool


def _is_numpy(value: Any) -> bool:
    """True for an array or scalar of NumPy, and for lists of these."""
    while isinstance(value, list | tuple) and value:
        value = value[0]
    return isinstance(value, np.ndarray | np.generic)


def _sizes(shape: Shape, where: str) -> list[int]:
    if not shape.is_fully_defined:
        raise InvalidArgumentError(f"{where}: cannot make a tensor of the partly known shape {shape}", source=caller_location())
    return [int(size) for size in shape]


def _kind_of(array: Array) -> str:
    try:
        return as_dtype(array.dtype).text
    except GraphError:
        return str(array.dtype)


def _natural_dtype(value: Any, array: Array, where: str) -> DType:
    if isinstance(value, list) and not value:
        return dtypes.float32
    if not _is_numpy(value) and array.dtype == np.float64:
        return dtypes.float32
    if not _is_numpy(value) and array.dtype == np.int64 and np.all(np.abs(array) < 2**31):
        return dtypes.int32
    if array.dtype.kind in "SU":
        return dtypes.string
    try:
        return as_dtype(array.dtype)
    except GraphError:
        raise InvalidArgumentError(f"{where}: cannot make a tensor of {brief(value)} ({array.dtype})", source=caller_location()) from None


def constant_node(graph: PlainGraph, value: TensorValue, name: str | None) -> Node:
    """A Const node holding `value`."""
    registration = graph.library.look_up("Const")
    scopes = graph.scopes
    controls = tuple([f"^{control.name}" for control in scopes.controls])
    with graph.lock:
        node_name = exact_name(graph, name or "Const")
        attrs: dict[str, Any] = {"dtype": value.dtype, "value": value}
        node_def = NodeDef(node_name, "Const", controls, scopes.device, with_colocation(attrs, scopes.colocated))
        if scopes.device_functions:
            node_def = with_chosen_device(node_def, [], scopes.device_functions)
        return graph.builder.insert(node_def, registration, [], list(scopes.controls), (), (value.dtype,), caller_location())


__all__ = ["apply_op", "as_constant_array", "constant_node", "convert_to_tensor", "input_text"]
