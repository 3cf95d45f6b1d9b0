"""ONNX files of scikit-learn's exporter, whose ops are of a domain of their own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphcore.frontends.sources import open_source

skl2onnx: Any = pytest.importorskip("skl2onnx")
linear_model: Any = pytest.importorskip("sklearn.linear_model")
pipeline: Any = pytest.importorskip("sklearn.pipeline")
preprocessing: Any = pytest.importorskip("sklearn.preprocessing")
pytestmark = [pytest.mark.frameworks, pytest.mark.filterwarnings("ignore")]


def test_ops_and_edges_of_a_pipeline_are_those_of_the_file(tmp_path: Path) -> None:
    x = np.random.default_rng(0).standard_normal((20, 4)).astype(np.float32)
    model = pipeline.make_pipeline(preprocessing.StandardScaler(), linear_model.LogisticRegression()).fit(x, x[:, 0] > 0)
    exported = skl2onnx.to_onnx(model, x[:1], options={"zipmap": False})
    (tmp_path / "model.onnx").write_bytes(exported.SerializeToString())
    source = open_source(tmp_path / "model.onnx")
    nodes = {node.name: node for node in source.main.nodes}
    values = {port.name: name for name, node in nodes.items() for port in node.outputs}
    assert any(each.domain == "ai.onnx.ml" for each in exported.graph.node)
    for each in exported.graph.node:
        node = nodes[each.name]
        assert node.op == f"{each.domain or 'onnx'}.{each.op_type}"
        assert [ref[0] for ref in node.inputs if ref is not None] == [values[name] for name in each.input]
