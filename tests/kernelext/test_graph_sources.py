"""`%graph` of files and expressions, of other frameworks too."""

from __future__ import annotations

import os
from pathlib import Path

from onnx import TensorProto, helper

from tests.kernelext.conftest import NotebookShell
from tests.kernelext.simulated_page import Page

MODEL = """
from onnx import TensorProto, helper
info = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])
out = helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])
models = [helper.make_model(helper.make_graph([helper.make_node("Relu", ["x"], ["y"], "act")], "g", [info], [out]))]
model = models[0]
"""


def written(path: Path, op: str) -> Path:
    x, y = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in "xy"]
    model = helper.make_model(helper.make_graph([helper.make_node(op, ["x"], ["y"], "act")], "g", [x], [y]))
    path.write_bytes(model.SerializeToString())
    return path


def ops_of_last(page: Page) -> list[str]:
    scene = [message for message in page.sent if message["type"] == "scene"][-1]["scene"]
    return [node["op"] for node in scene["nodes"]]


def test_a_file_is_shown_and_followed(shell: NotebookShell, page: Page, tmp_path: Path) -> None:
    path = written(tmp_path / "model.onnx", "Relu")
    assert shell.run(f"%graph {path}", "a").success
    page.says("ready")
    assert ops_of_last(page) == ["Input", "Relu", "Output"]
    written(path, "Tanh")
    os.utime(path, (1, 1))
    shell.run("1 + 1", "b")
    assert ops_of_last(page) == ["Input", "Tanh", "Output"]


def test_a_variable_and_an_expression_may_hold_a_model_of_another_framework(shell: NotebookShell, page: Page) -> None:
    assert shell.run(MODEL, "a").success
    for number, word in enumerate(("model", "models[0]", "dict(m=models)['m'][0]")):
        assert shell.run(f"%graph {word}", f"b{number}").success
        page.says("ready")
        assert ops_of_last(page) == ["Input", "Relu", "Output"]


def test_what_cannot_be_read_is_said(shell: NotebookShell, page: Page, tmp_path: Path) -> None:
    (tmp_path / "picture.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    failed = shell.run(f"%graph {tmp_path / 'picture.png'}", "a")
    assert "a PNG picture" in str(failed.error_in_exec)
    failed = shell.run("%graph nowhere.near", "b")
    assert "there is no file 'nowhere.near' in " in str(failed.error_in_exec)
    assert "name 'nowhere' is not defined" in str(failed.error_in_exec)
    failed = shell.run("%graph models/nowhere-2.onnx", "c")
    assert "there is no file 'models/nowhere-2.onnx' in " in str(failed.error_in_exec)
