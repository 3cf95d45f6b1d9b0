"""ONNX models: branches, loops, functions, quantisation and metadata, with other values and damage."""

from __future__ import annotations

import functools
import random
import tempfile
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from graphcore.errors import GraphError
from graphcore.frontends.onnx_reader.slimming import slimmed
from tests.support.fuzzing.fuzz_inputs import damaged
from tests.support.fuzzing.opening import open_as_a_viewer
from tests.support.fuzzing.target import Target

_LIGHT: Final = Path(onnx.__file__).parent / "backend/test/data/light"
_NUMBERS: Final = (0, 1, -1, 2, 7, 127, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63))
_TEXTS: Final = ("", "x", "y", "a/b", "../w", "[", "['a', 'b']", "['']", "é" * 50, 'File "m.py", line 3, in f\n  x', "\x00", "0:5")


def _value(name: str, kind: int = TensorProto.FLOAT, *shape: int | str) -> Any:
    return helper.make_tensor_value_info(name, kind, shape or (2,))


def _branch() -> Any:
    then = helper.make_graph([helper.make_node("Add", ["x", "w"], ["t"])], "then", [], [_value("t")])
    other = helper.make_graph([helper.make_node("Neg", ["x"], ["e"])], "else", [], [_value("e")])
    choice = helper.make_node("If", ["c"], ["y"], "choice", then_branch=then, else_branch=other)
    external = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[2], data_location=TensorProto.EXTERNAL)
    external.external_data.add(key="location", value="w.bin")
    return helper.make_graph([choice], "g", [_value("c", TensorProto.BOOL), _value("x")], [_value("y")], [external])


def _loop() -> Any:
    inputs = [_value("i", TensorProto.INT64), _value("go", TensorProto.BOOL), _value("v")]
    nodes = [helper.make_node("Identity", ["go"], ["more"]), helper.make_node("Mul", ["v", "k"], ["next"])]
    body = helper.make_graph(nodes, "body", inputs, [_value("more", TensorProto.BOOL), _value("next")])
    loop = helper.make_node("Loop", ["n", "", "x"], ["y"], "loop", body=body)
    constant = helper.make_node("Constant", [], ["k"], value=numpy_helper.from_array(np.ones(2, np.float32)))
    return helper.make_graph([constant, loop], "g", [_value("n", TensorProto.INT64), _value("x", 1, "batch")], [_value("y")])


def _quantised() -> Any:
    weights = [numpy_helper.from_array(np.array(0.5, np.float32), "s"), numpy_helper.from_array(np.array(3, np.uint8), "z")]
    quantize = helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"], "layer/quantize")
    relu = helper.make_node("Twice", ["q"], ["y"], "layer/twice", domain="my", alpha=0.5, shape=[1, 2], names=["a"])
    relu.metadata_props.add(key="pkg.torch.onnx.name_scopes", value="['', 'a', 'a.0', 'twice']")
    relu.metadata_props.add(key="pkg.torch.onnx.class_hierarchy", value="['M', 'A', 'B', 'twice']")
    relu.metadata_props.add(key="pkg.torch.onnx.stack_trace", value='File "m.py", line 3, in f\n    x')
    return helper.make_graph([quantize, relu], "g", [_value("x", 1, "batch", 3)], [_value("y", TensorProto.UINT8, "batch", 3)], weights)


@functools.cache
def _models() -> tuple[bytes, ...]:
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("my", 1)]
    twice = helper.make_function("my", "Twice", ["a"], ["b"], [helper.make_node("Add", ["a", "a"], ["b"])], opsets[:1])
    made = [helper.make_model(make(), opset_imports=opsets, functions=[twice]) for make in (_branch, _loop, _quantised)]
    return (*[model.SerializeToString() for model in made], (_LIGHT / "light_squeezenet.onnx").read_bytes())


def _change(message: Any, rng: random.Random) -> None:
    """Change a field somewhere in a message."""
    fields = message.ListFields()
    if not fields:
        return
    field, value = rng.choice(fields)
    many = hasattr(value, "append") and not isinstance(value, str | bytes)
    if field.message_type is not None:
        if many and rng.random() < 0.1:
            value.append(rng.choice(value)) if rng.random() < 0.5 else value.pop(rng.randrange(len(value)))
        else:
            _change(rng.choice(value) if many else value, rng)
        return
    new: Any = rng.choice(_TEXTS) if isinstance(value, str) else rng.choice(_NUMBERS)
    try:
        if many:
            value[rng.randrange(len(value))] = new if isinstance(value[0], int | float) else rng.choice(_TEXTS)
        else:
            setattr(message, field.name, rng.choice(_TEXTS).encode() if isinstance(value, bytes) else new)
    except (TypeError, ValueError):
        message.ClearField(field.name)


def make(rng: random.Random) -> bytes:
    """A model with other values, with damage, or both."""
    data = rng.choice(_models())
    if rng.random() < 0.7:
        model = onnx.ModelProto()
        model.ParseFromString(data)
        for _ in range(rng.choice((1, 1, 2, 5))):
            _change(model, rng)
        data = model.SerializeToString()
    return damaged(data, rng.choice(_models()), rng) if rng.random() < 0.4 else data


def check(data: bytes) -> None:
    """Open the model, show it, open bodies and read tensors. An error of one of them must not hide those of the others."""
    errors: list[GraphError] = []
    try:
        slimmed(data, 0)
    except GraphError as error:
        errors.append(error)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.onnx")
        path.write_bytes(data)
        try:
            open_as_a_viewer(path, 200)
        except GraphError as error:
            errors.append(error)
    if errors:
        raise errors[0]


ONNX_FILES: Final = Target(make, check)
