"""OpenVINO models, compared with what OpenVINO itself says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphcore.frontends.sources import open_source

openvino: Any = pytest.importorskip("openvino")
pytestmark = [pytest.mark.frameworks, pytest.mark.filterwarnings("ignore")]
MODEL = Path(__file__).parents[1] / "data" / "frontends" / "branching_openvino.xml"


def test_nodes_edges_types_and_elements_are_those_of_openvino() -> None:
    nodes = {node.name: node for node in open_source(MODEL).main.nodes}
    theirs = {each.get_friendly_name(): each for each in openvino.Core().read_model(MODEL).get_ordered_ops()}
    assert set(nodes) == set(theirs)
    for name, each in theirs.items():
        node = nodes[name]
        assert node.op == f"openvino.{'Const' if each.get_type_name() == 'Constant' else each.get_type_name()}"
        sources = [each.input_value(place) for place in range(each.get_input_size())]
        assert list(node.inputs) == [(source.get_node().get_friendly_name(), source.get_index()) for source in sources]
        if node.kind != "output":
            outputs = [each.output(place).get_partial_shape() for place in range(each.get_output_size())]
            assert [port.shape for port in node.outputs] == [
                tuple([size.get_length() if size.is_static else None for size in shape]) for shape in outputs
            ]
        if node.weight is not None:
            assert node.weight.load is not None
            np.testing.assert_array_equal(node.weight.load(), each.get_data())
