"""Shape inference in TensorFlow's interpreter for partially known inputs.

Imports nothing of this project.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf
from tensorflow.python.framework import op_def_library, op_def_registry

from tests.oracle.sides.op_side import Sent, _attr, _defaults, _operation, old_enough

Question = tuple[str, Sequence[Sent], dict[str, Sent]]
"""An op, its inputs as ("value", array), ("hidden", (dtype number, sizes or None)) or ("list", such inputs), and its attrs."""
Sizes = list[int | None] | None


def infer_shapes(questions: Sequence[Question]) -> list[list[Sizes] | str]:
    """The static shape of each output of each op; the text of the error if TensorFlow refuses it."""
    return [_infer(*question) for question in questions]


def _infer(name: str, inputs: Sequence[Sent], attrs: dict[str, Sent]) -> list[Sizes] | str:
    with old_enough(name):
        op_def = op_def_registry.get(name)
        given = {arg.name: _tensor(*sent) for arg, sent in zip(op_def.input_arg, inputs, strict=True)}
        given.update(_defaults(op_def))
        given.update((key, _attr(*sent)) for key, sent in attrs.items())
        try:
            node = _operation(op_def_library.apply_op(name, **given))
        except ValueError as error:
            return str(error)
        return [None if output.shape.rank is None else output.shape.as_list() for output in node.outputs]


def _tensor(kind: str, value: Any) -> Any:
    if kind == "list":
        return [_tensor(*part) for part in value]
    if kind == "value":
        return tf.constant(value)
    if kind == "elements":
        return tf.raw_ops.TensorListFromTensor(tensor=tf.constant(value), element_shape=tf.constant(value.shape[1:], tf.int32))
    number, sizes = value
    return tf.compat.v1.placeholder(tf.as_dtype(number), sizes)
