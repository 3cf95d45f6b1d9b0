"""Building a graph: placeholders, constants, scopes, collections."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from graphcore.device_spec import DeviceSpec
from graphcore.dtypes import DType, as_dtype, float32
from graphcore.errors import InvalidArgumentError
from graphcore.graph import DeviceFunction, Node, Tensor, as_constant_array, constant_node, get_default_graph
from graphcore.graph import convert_to_tensor as _convert_to_tensor
from graphcore.graph.shapes.constant_values import constant_value
from graphcore.shapes import Shape, as_shape
from graphcore.tf1.calls import apply_one


def get_collection(key: str, scope: str | None = None) -> list[Any]:
    """The items of a collection of the default graph whose names begin with `scope`, as a new list.

    A cell that runs again does not see those of its earlier run that it has not made again yet.
    """
    return [item for item in get_default_graph().get_collection(key, scope) if not _is_to_be_made(item)]


def _is_to_be_made(item: Any) -> bool:
    node = getattr(item, "op", item)
    return isinstance(node, Node) and node.graph.cells.may_replace(node)


def add_to_collection(name: str, value: Any) -> None:
    """Put `value` into a collection of the default graph."""
    get_default_graph().add_to_collection(name, value)


def add_to_collections(names: Any, value: Any) -> None:
    """Put `value` into several collections of the default graph."""
    for name in [names] if isinstance(names, str) else dict.fromkeys(names):
        add_to_collection(name, value)


def get_collection_ref(key: str) -> list[Any]:
    """The collection itself: a change of the list changes it."""
    return get_default_graph().get_collection_ref(key)


def placeholder(dtype: object, shape: object = None, name: str | None = None) -> Tensor:
    """Add a placeholder, to be fed at each run.

    Args:
        dtype: `gc.float32`, `"float32"`, a NumPy dtype, ...
        shape: sizes, None for any size; None for any shape.

    Example:
        >>> x = gc.placeholder(gc.float32, [None, 3], name="x")
        >>> x
        <gc.Tensor 'x:0' float [?,3]>
        >>> print(gc.Session().run(2 * x, {x: [[1, 2, 3]]}))
        [[2. 4. 6.]]
    """
    attrs = {"dtype": as_dtype(dtype), "shape": as_shape(shape)}
    return apply_one("Placeholder", [], name, attrs)


def placeholder_with_default(input: Any, shape: object, name: str | None = None) -> Tensor:
    """A placeholder that has the value `input` when it is not fed."""
    tensor = convert_to_tensor(input)
    return apply_one("PlaceholderWithDefault", [tensor], name, {"shape": as_shape(shape)})


def constant(value: object, dtype: object = None, shape: object = None, name: str | None = "Const", verify_shape: bool = False) -> Tensor:
    """A tensor with the same value in every run.

    Args:
        value: a number, (nested) list, string or array; Python floats become float32, ints int32.
        dtype: the dtype it must have.
        shape: a full shape to reshape it to; one element is repeated to fill it.
        name: the name of the node.
        verify_shape: require that the value has this shape already.

    Example:
        >>> gc.constant([[1, 2], [3, 4]], name="A")
        <gc.Tensor 'A:0' int32 [2,2]>
        >>> print(gc.Session().run(gc.constant(7.0, shape=[2])))
        [7. 7.]
    """
    tensor_value = as_constant_array(
        value, None if dtype is None else as_dtype(dtype), "constant" if name in {None, "Const"} else f"constant {name}"
    )
    if shape is not None and verify_shape and tensor_value.array.shape != tuple(as_shape(shape).as_list()):
        raise InvalidArgumentError(f"Expected the shape {as_shape(shape)} of the constant, got {list(tensor_value.array.shape)}")
    if shape is not None:
        tensor_value = _reshaped(tensor_value, as_shape(shape))
    return constant_node(get_default_graph(), tensor_value, name).outputs[0]


def _reshaped(value: Any, shape: Shape) -> Any:
    if not shape.is_fully_defined:
        raise InvalidArgumentError(f"A constant needs a full shape, got {shape}")
    array = value.array
    sizes = [size for size in shape.as_list() if size is not None]
    if array.size not in (1, shape.num_elements):
        raise InvalidArgumentError(f"A constant of shape {shape} needs {shape.num_elements} elements or one, got {array.size}")
    array = np.full(sizes, array.reshape(())) if array.size == 1 else array.reshape(sizes)
    return type(value)(array, value.dtype)


def zeros(shape: Any, dtype: object = float32, name: str | None = None) -> Tensor:
    """A tensor of zeros. shape: sizes, each a number or a scalar tensor, or one tensor of all -> y: [*shape]."""
    return _filled(0, shape, as_dtype(dtype), name or "zeros")


def ones(shape: Any, dtype: object = float32, name: str | None = None) -> Tensor:
    """A tensor of ones. shape: sizes, each a number or a scalar tensor, or one tensor of all -> y: [*shape]."""
    return _filled(1, shape, as_dtype(dtype), name or "ones")


def _filled(value: int, shape: Any, dtype: DType, name: str) -> Tensor:
    if dtype.as_numpy is None:
        raise InvalidArgumentError(f"{name} needs an array dtype, got {dtype.text}")
    of_dtype: Any = bool(value) if dtype.is_bool else "" if dtype.as_numpy.kind == "O" else value
    if isinstance(shape, Tensor) or hasattr(shape, "as_tensor") or (isinstance(shape, list | tuple) and any(map(_is_tensor, shape))):
        with name_scope(name) as scope:
            return apply_one("Fill", [shape, constant(of_dtype, dtype)], scope)
    full = as_shape(shape)
    if not full.is_fully_defined:
        raise InvalidArgumentError(f"{name} needs a full shape, got {full}")
    sizes = [size for size in full.as_list() if size is not None]
    if full.num_elements <= 1024:
        return constant(np.full(sizes, of_dtype, dtype.as_numpy), dtype, name=name)
    with name_scope(name) as scope:
        return apply_one("Fill", [constant(sizes, name="shape_as_tensor"), constant(of_dtype, dtype)], scope)


def _is_tensor(value: Any) -> bool:
    return isinstance(value, Tensor) or hasattr(value, "as_tensor")


def convert_to_tensor(
    value: object, dtype: object = None, name: str | None = None, preferred_dtype: object = None, dtype_hint: object = None
) -> Tensor:
    """Convert `value` to a tensor of the default graph; a value that is no tensor becomes a constant.

    Args:
        value: a tensor, a variable, a value, or lists of these.
        dtype: the dtype that it must have.
        name: the name of a constant.
        preferred_dtype, dtype_hint: a dtype for a value that fits it.
    """
    hint = dtype_hint if preferred_dtype is None else preferred_dtype
    if dtype is None and hint is not None and not _is_tensor(value):
        try:
            return convert_to_tensor(value, hint, name)
        except InvalidArgumentError:
            return convert_to_tensor(value, None, name)
    wanted = None if dtype is None else as_dtype(dtype)
    tensor = _convert_to_tensor(get_default_graph(), value, wanted, name or "value", name)
    if wanted is not None and tensor.dtype.base is not wanted.base:
        raise InvalidArgumentError(f"Required a {wanted.text} tensor, got '{tensor.name}' of {tensor.dtype.text}", node=tensor.node.name)
    return tensor


def name_scope(name: str | None, default_name: str | None = None, values: Sequence[Any] | None = None) -> AbstractContextManager[str]:  # noqa: ARG001 - TF1 asks `values` for the graph
    """Prefix the names of nodes made within a `with` block: `with gc.name_scope("layer1"):`.

    Args:
        name: the prefix; "" for none.
        default_name: the prefix instead of a `name` of None.
        values: tensors within the block, without effect.

    Example:
        >>> with gc.name_scope("layer1"):
        ...     gc.constant(1.0, name="bias")
        <gc.Tensor 'layer1/bias:0' float []>
    """
    return get_default_graph().name_scope(default_name if name is None else name)


def op_scope(values: Sequence[Any] | None, name: str | None, default_name: str | None = None) -> AbstractContextManager[str]:
    """The same as `name_scope`, under the name and with the order of arguments of earlier versions."""
    return name_scope(name, default_name, values)


def container(container_name: str) -> AbstractContextManager[str]:
    """Put resources made within a `with` block into a container; see `Graph.container`."""
    return get_default_graph().container(container_name)


def device(device_name_or_function: str | DeviceSpec | DeviceFunction | None) -> AbstractContextManager[None]:
    """Request a device for nodes made within a `with` block: `with gc.device("/cpu:0"):`.

    Args:
        device_name_or_function: a request, which is merged into that of the blocks around this one; or a function that takes each new
            node (its `type`, `name`, `node_def`, `inputs` and `device`) and returns its request; None clears the requests around.

    Example:
        >>> with gc.device("/gpu:1"):
        ...     a = gc.constant(1.0)
        >>> a.device
        '/device:GPU:1'
    """
    return get_default_graph().device(device_name_or_function)


def colocate_with(op: Any, ignore_existing: bool = False) -> AbstractContextManager[None]:
    """Put nodes made within a `with` block on the device of another; see `Graph.colocate_with`."""
    return get_default_graph().colocate_with(op, ignore_existing)


def control_dependencies(control_inputs: Sequence[Any] | None) -> AbstractContextManager[None]:
    """Add control inputs to nodes made within a `with` block; None clears the surrounding ones.

    Example:
        >>> v = gc.Variable(1.0, name="v")
        >>> with gc.control_dependencies([v.assign(5.0)]):
        ...     after = gc.identity(v, name="after")
        >>> print(gc.Session().run(after))
        5.0
    """
    return get_default_graph().control_dependencies(control_inputs)


def no_op(name: str | None = None) -> Node:
    """A node without computation, for use in control dependencies."""
    return get_default_graph().apply_op("NoOp", [], None, name)


def group(*inputs: Any, name: str | None = None) -> Node:
    """A node that runs after all `inputs` (tensors, nodes)."""
    graph = get_default_graph()
    with graph.control_dependencies(list(_flat(inputs))):
        return graph.apply_op("NoOp", [], None, name or "group_deps")


def _flat(items: Iterable[Any]) -> Iterator[Any]:
    for item in items:
        if isinstance(item, list | tuple):
            yield from _flat(item)
        elif item is not None:
            yield item


def get_static_value(tensor: Tensor, partial: bool = False) -> Any:
    """The value of a tensor as an array if it is the same in every run, else None.

    Args:
        tensor: a tensor.
        partial: without effect; values that are known in part are None.
    """
    del partial
    return constant_value(tensor)
