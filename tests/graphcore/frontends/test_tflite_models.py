"""TensorFlow Lite models, compared with what the classes of the schema say."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.errors import FailedPreconditionError, GraphError
from graphcore.frontends.foreign import ForeignGraph
from graphcore.frontends.sources import open_source
from widgets import to_outline

tflite: Any = import_module("tflite")
FILES = Path(__file__).parents[2] / "data" / "frontends"
NAMES = ("looping.tflite", "quantised.tflite")


def _walked(data: bytes) -> list[list[tuple[int, list[str], list[str]]]]:
    """For each subgraph the operators: code, names of inputs and of outputs."""
    model: Any = tflite.Model.GetRootAs(data, 0)
    found = []
    for subgraph in [model.Subgraphs(number) for number in range(model.SubgraphsLength())]:
        names = [subgraph.Tensors(number).Name().decode() for number in range(subgraph.TensorsLength())]
        operators = [subgraph.Operators(number) for number in range(subgraph.OperatorsLength())]
        codes = [model.OperatorCodes(operator.OpcodeIndex()) for operator in operators]
        found.append(
            [
                (
                    max(code.BuiltinCode(), code.DeprecatedBuiltinCode()),
                    [names[operator.Inputs(place)] for place in range(operator.InputsLength()) if operator.Inputs(place) >= 0],
                    [names[operator.Outputs(place)] for place in range(operator.OutputsLength())],
                )
                for operator, code in zip(operators, codes, strict=True)
            ]
        )
    return found


@pytest.mark.parametrize("name", NAMES)
def test_operators_and_edges_are_those_of_the_schema(name: str) -> None:
    source = open_source(FILES / name)
    words = vars(tflite.BuiltinOperator)
    for operators, function in zip(_walked((FILES / name).read_bytes()), source.functions.values(), strict=True):
        nodes = {node.name: node for node in function.nodes}
        own = [node for node in function.nodes if node.kind == "op"]
        assert len(own) == len(operators)
        for node, (code, inputs, outputs) in zip(own, operators, strict=True):
            assert words[node.op.removeprefix("tfl.")] == code
            ports = [nodes[ref[0]].outputs[ref[1]].name for ref in node.inputs if ref is not None]
            assert ports == inputs
            assert [port.name for port in node.outputs] == outputs


def _node(source: ForeignGraph, op: str) -> Any:
    return next(node for node in source.main.nodes if node.op == op)


def test_options_are_attrs_with_the_words_of_the_schema() -> None:
    node = _node(open_source(FILES / "quantised.tflite"), "tfl.CONV_2D")
    assert {**node.defaults, **node.attrs}["padding"] == "SAME"
    assert node.attrs["stride_w"] == 1
    assert node.attrs["fused_activation_function"] == "RELU"


def test_quantised_tensors_say_their_scale_and_zero_point() -> None:
    source = open_source(FILES / "quantised.tflite")
    assert "zero point" in _node(source, "tfl.QUANTIZE").outputs[0].quantization
    weights = [node for node in source.main.nodes if node.kind == "constant" and "channels of dimension 0" in node.outputs[0].quantization]
    assert weights
    assert weights[0].weight is not None


def test_constants_are_read_when_they_are_asked_for() -> None:
    source = open_source(FILES / "quantised.tflite")
    weight = next(node.weight for node in source.main.nodes if node.outputs and node.outputs[0].shape == (4, 3, 3, 4))
    assert weight is not None
    assert weight.load is not None
    elements = weight.load()
    assert elements.shape == (4, 3, 3, 4)
    assert elements.dtype == np.int8
    assert np.abs(elements).max() == 127


def test_loops_and_branches_have_subgraphs_as_bodies() -> None:
    source = open_source(FILES / "looping.tflite")
    assert set(_node(source, "tfl.WHILE").bodies) == {"cond", "body"}
    assert set(_node(source, "tfl.IF").bodies) == {"then", "else"}
    body = source.functions[_node(source, "tfl.WHILE").bodies["body"]]
    assert body.inputs[0].shape == ()


def test_signatures_name_the_arguments_and_results() -> None:
    source = open_source(FILES / "looping.tflite")
    assert source.facts["signature serving_default"] == "double, x -> y"
    assert source.main.output_names == ("y",)
    assert {port.name for port in source.main.inputs} == {"x", "double"}


def test_a_quantised_network_shows_its_layers() -> None:
    outline = to_outline(gc.load(FILES / "quantised.tflite"))
    assert "conv_0_1/ (3 nodes)" in outline
    assert "FULLY_CONNECTED" in outline


def test_a_run_without_an_interpreter_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ai_edge_litert.interpreter", "tensorflow.lite", "tflite_runtime.interpreter"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(FailedPreconditionError, match="pip install ai-edge-litert"):
        gc.compare_runs(FILES / "quantised.tflite", FILES / "floating.tflite", np.zeros((1, 8, 8, 1), np.float32))


def test_a_cut_off_model_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "cut.tflite"
    path.write_bytes((FILES / "quantised.tflite").read_bytes()[:600])
    with pytest.raises(GraphError, match=r"cut\.tflite"):
        gc.load(path)
