"""One op in TensorFlow's interpreter: results, gradients, definition. Imports nothing of this project."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf
from tensorflow.core.framework import op_def_pb2
from tensorflow.python.framework import op_def_library, op_def_registry, ops

Array = npt.NDArray[Any]
FIELDS = {"int": "i", "float": "f", "bool": "b", "string": "s", "type": "type", "shape": "shape", "tensor": "tensor", "func": "func"}
Sent = tuple[str, Any]
"""An input: ("value", array), ("list", arrays), ("elements" of a list handle, array), ("ref" or "handle", (dtype name, shape, array or None)).

An attr: its kind and a plain value.
"""


def definition(name: str) -> bytes | None:
    """An op's definition as the only one of an OpList; None for an unknown op."""
    op_def = op_def_registry.get(name)
    if op_def is None:
        return None
    data: bytes = op_def_pb2.OpList(op=[op_def]).SerializeToString()
    return data


def gradient_kinds(names: Sequence[str]) -> dict[str, str]:
    """For each op "function" if it has a gradient, "stop" if it has none by registration, or "none"."""
    found = {}
    for name in names:
        try:
            found[name] = "stop" if ops.gradient_registry.lookup(name) is None else "function"
        except LookupError:
            found[name] = "none"
    return found


def run_op(name: str, inputs: Sequence[Sent], attrs: dict[str, Sent]) -> list[Array]:
    """The outputs of one op in a new graph, and the final values of the variables among its inputs."""
    with old_enough(name):
        node, flat = _build(name, inputs, attrs)
        return _run([readable(output) for output in node.outputs], node, _states(flat, inputs))


def run_gradient(name: str, inputs: Sequence[Sent], attrs: dict[str, Sent], outputs: Sequence[int]) -> list[Array | None]:
    """The gradients of the outputs of these indices, summed, by each input (flattened)."""
    with old_enough(name):
        node, xs = _build(name, inputs, attrs)
        readables = [readable(output) for output in node.outputs]
        ys = [readables[i] for i in outputs]
        found = tf.gradients(ys, xs, [tf.ones_like(y) for y in ys])
        values = iter(_run([tf.convert_to_tensor(g) for g in found if g is not None]))
        return [None if g is None else next(values) for g in found]


def old_enough(name: str) -> Any:
    """A new default graph with a version in which the op was not removed yet."""
    graph = tf.Graph()
    op_def = op_def_registry.get(name)
    if op_def is not None and op_def.HasField("deprecation"):
        with graph.as_default():
            old = tf.compat.v1.GraphDef()
            old.versions.producer = op_def.deprecation.version - 1
            tf.import_graph_def(old, name="")
    return graph.as_default()


def _build(name: str, inputs: Sequence[Sent], attrs: dict[str, Sent]) -> tuple[Any, list[Any]]:
    op_def = op_def_registry.get(name)
    given: dict[str, Any] = {}
    flat: list[Any] = []
    for arg, (kind, value) in zip(op_def.input_arg, inputs, strict=True):
        if kind == "list":
            given[arg.name] = [tf.constant(part) for part in value]
            flat += given[arg.name]
        elif kind == "elements":
            flat.append(tf.constant(value))
            handle = tf.raw_ops.TensorListFromTensor(tensor=flat[-1], element_shape=tf.constant(value.shape[1:], tf.int32))
            given[arg.name] = tf.stack([handle]) if name == "TensorListPushBackBatch" else handle
        else:
            given[arg.name] = {"ref": _variable, "handle": _handle}[kind](*value) if kind != "value" else tf.constant(value)
            flat.append(given[arg.name])
    given.update(_defaults(op_def))
    given.update((key, _attr(*sent)) for key, sent in attrs.items())
    return _operation(op_def_library.apply_op(name, **given)), flat


def readable(output: Any) -> Any:
    """The elements of a list as a tensor; any other tensor itself."""
    if output.dtype != tf.variant:
        return output
    dtype = output.op.get_attr("element_dtype") if "element_dtype" in output.op.node_def.attr else tf.float32
    if output.op.type == "TensorListSplit":
        return tf.raw_ops.TensorListConcat(input_handle=output, element_dtype=dtype)[0]
    if output.op.type == "TensorListPushBackBatch":
        output = tf.reshape(output, [])
    return tf.raw_ops.TensorListStack(input_handle=output, element_shape=tf.constant(-1), element_dtype=dtype)


def _defaults(op_def: Any) -> dict[str, Any]:
    """The default attrs that are not inferred. (`tf.raw_ops` knows them, but renames arguments.)"""
    inferred = {name for arg in op_def.input_arg for name in (arg.type_attr, arg.number_attr, arg.type_list_attr)}
    free = [attr for attr in op_def.attr if attr.HasField("default_value") and attr.name not in inferred]
    return {attr.name: _plain(attr.type, attr.default_value) for attr in free}


def _plain(kind: str, value: Any) -> Any:
    if kind.startswith("list("):
        inner = kind[5:-1]
        return [tf.as_dtype(part) if inner == "type" else part for part in getattr(value.list, FIELDS[inner])]
    found = getattr(value, FIELDS[kind])
    return tf.as_dtype(found) if kind == "type" else found


def _operation(made: Any) -> Any:
    while isinstance(made, list | tuple):
        made = made[0]
    return getattr(made, "op", made)


def _variable(dtype: str, shape: Sequence[int], value: Array | None) -> Any:
    made = tf.raw_ops.VariableV2(shape=shape, dtype=tf.as_dtype(dtype), container="", shared_name="")
    if value is not None:
        tf.compat.v1.add_to_collection("start", tf.raw_ops.Assign(ref=made, value=tf.constant(value)))
    return made


def _handle(dtype: str, shape: Sequence[int], value: Array | None) -> Any:
    made = tf.raw_ops.VarHandleOp(dtype=tf.as_dtype(dtype), shape=shape, shared_name=tf.compat.v1.get_default_graph().unique_name("handle"))
    if value is not None:
        tf.compat.v1.add_to_collection("start", tf.raw_ops.AssignVariableOp(resource=made, value=tf.constant(value)))
    return made


def _states(flat: list[Any], inputs: Sequence[Sent]) -> list[Any]:
    """The values of the variables among the inputs."""
    kinds = [(kind, value) for kind, value in inputs if kind != "list"]
    if len(kinds) != len(flat):
        return []
    refs = [tensor for tensor, (kind, _) in zip(flat, kinds, strict=True) if kind == "ref"]
    handles = [(tensor, value[0]) for tensor, (kind, value) in zip(flat, kinds, strict=True) if kind == "handle"]
    return refs + [tf.raw_ops.ReadVariableOp(resource=handle, dtype=tf.as_dtype(dtype)) for handle, dtype in handles]


def _attr(kind: str, value: Any) -> Any:
    if kind == "type":
        return tf.as_dtype(value)
    if kind == "shape":
        return tf.TensorShape(value)
    if kind == "tensor":
        return tf.make_tensor_proto(value[0], tf.as_dtype(value[1]))
    if kind.startswith("list("):
        return [_attr(kind[5:-1], part) for part in value]
    return value


def _run(tensors: list[Any], node: Any = None, states: Sequence[Any] = ()) -> list[Array]:
    # The ops without TensorFlow's optimisation of constants.
    config = tf.compat.v1.ConfigProto()
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    with tf.compat.v1.Session(config=config) as session:
        for start in tf.compat.v1.get_collection("start"):
            session.run(getattr(start, "op", start))
        if not tensors and node is not None:
            session.run(node)
        return [np.asarray(value) for value in session.run(tensors)] + [_state(session, state) for state in states]


def _state(session: Any, state: Any) -> Array:
    try:
        return np.asarray(session.run(state))
    except (tf.errors.FailedPreconditionError, tf.errors.NotFoundError):
        return np.zeros(0)
