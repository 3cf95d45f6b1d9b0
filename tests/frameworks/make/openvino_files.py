"""Writes the OpenVINO model in `tests/data/frontends`: a branch, a loop and a product.

Run it with a Python that has `openvino` and `onnx`: `python tests/frameworks/make/openvino_files.py`.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import onnx
import openvino
from onnx import TensorProto, helper

OUT = Path(__file__).parents[2] / "data" / "frontends"
FLOAT = TensorProto.FLOAT


def rows(name: str) -> onnx.ValueInfoProto:
    """A value of some rows of two numbers."""
    return helper.make_tensor_value_info(name, FLOAT, ["n", 2])


def scalar(name: str, kind: int) -> onnx.ValueInfoProto:
    """A single number or truth value."""
    return helper.make_tensor_value_info(name, kind, [])


double = helper.make_graph([helper.make_node("Mul", ["x", "two"], ["t"], name="scope/double")], "then", [], [rows("t")])
cut = helper.make_graph([helper.make_node("Relu", ["x"], ["e"], name="scope/cut")], "else", [], [rows("e")])
step = helper.make_graph(
    [helper.make_node("Add", ["s", "two"], ["s2"]), helper.make_node("Identity", ["c"], ["c2"])],
    "body",
    [scalar("i", TensorProto.INT64), scalar("c", TensorProto.BOOL), rows("s")],
    [scalar("c2", TensorProto.BOOL), rows("s2")],
)
whole = helper.make_graph(
    [
        helper.make_node("If", ["p"], ["y"], then_branch=double, else_branch=cut, name="branch"),
        helper.make_node("Loop", ["m", "p", "y"], ["z"], body=step, name="loop"),
        helper.make_node("MatMul", ["z", "w"], ["out"], name="dense/MatMul"),
    ],
    "branching",
    [scalar("p", TensorProto.BOOL), rows("x")],
    [helper.make_tensor_value_info("out", FLOAT, ["n", 3])],
    [
        helper.make_tensor("two", FLOAT, [2], [2, 2]),
        helper.make_tensor("m", TensorProto.INT64, [], [4]),
        helper.make_tensor("w", FLOAT, [2, 3], list(range(6))),
    ],
)

if __name__ == "__main__":
    model = helper.make_model(whole, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    with tempfile.TemporaryDirectory() as folder:
        onnx.save(model, f"{folder}/model.onnx")
        converted = openvino.convert_model(f"{folder}/model.onnx")
    openvino.save_model(converted, OUT / "branching_openvino.xml", compress_to_fp16=False)
