"""Nodes that TensorFlow refuses, or that would be harmful."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.attrs import NO_VALUE, TensorValue
from graphcore.definitions import GraphDef, NodeDef, VersionDef
from graphcore.errors import InvalidArgumentError
from graphcore.graph import import_graph_def

Shape = list[int | None] | None
MODERN = VersionDef(producer=1000)
"""Before version 24 a placeholder of shape [] was one of unknown shape."""


def graph_of(op: str, shapes: list[Shape], types: str, attrs: dict[str, Any]) -> GraphDef:
    """A placeholder for each shape, of type float (f) or int32 (i), and a node with all as inputs."""
    nodes = [
        NodeDef(f"x{i}", "Placeholder", (), "", {"dtype": gc.float32 if kind == "f" else gc.int32, "shape": gc.Shape(shape)})
        for i, (shape, kind) in enumerate(zip(shapes, types, strict=True))
    ]
    return GraphDef(node=(*nodes, NodeDef("n", op, tuple(node.name for node in nodes), "", attrs)), versions=MODERN)


FLOAT = {"T": gc.float32}
CONV = {**FLOAT, "strides": (1, 1, 1, 1), "padding": b"SAME"}
PADDING = {**FLOAT, "Tpaddings": gc.int32, "mode": b"REFLECT"}
ROLL = {**FLOAT, "Tshift": gc.int32, "Taxis": gc.int32}


@pytest.mark.parametrize(
    ("op", "shapes", "types", "attrs", "text"),
    [
        ("Diag", [[]], "f", FLOAT, "at least rank 1 but is rank 0"),
        ("MaxPoolV2", [[2, 2], [4], [4]], "fii", {**FLOAT, "padding": b"SAME"}, "rank 4 but is rank 2"),
        ("MaxPoolV2", [[1, 4, 4, 1], [4], []], "fii", {**FLOAT, "padding": b"SAME"}, "rank 1 but is rank 0"),
        ("MaxPoolGradGradV2", [[1, 4, 4, 1], None, None, [], [4]], "fffii", {**FLOAT, "padding": b"SAME"}, "rank 1 but is rank 0"),
        ("MaxPoolGradGradV2", [[1, 4, 4, 1], None, None, [4], [3]], "fffii", {**FLOAT, "padding": b"SAME"}, "Dimension must be 4 but is 3"),
        ("MaxPoolV2", [[1, 4, 4, 1], [3], [4]], "fii", {**FLOAT, "padding": b"SAME"}, "Dimension must be 4 but is 3"),
        ("Roll", [[3], [1, 1], [1]], "fii", ROLL, "at most rank 1 but is rank 2"),
        ("Roll", [[3], [], [1]], "fii", ROLL, "equal rank, but are 0 and 1"),
        (
            "RaggedTensorToTensor",
            [[2], None, [], [3]],
            "iffi",
            {**FLOAT, "Tindex": gc.int32, "Tshape": gc.int32, "num_row_partition_tensors": 1, "row_partition_types": (b"\xff",)},
            r"ROW_LENGTHS, got ['\\xff']",
        ),
        (
            "RaggedTensorToTensor",
            [[2], None, [], [3]],
            "iffi",
            {**FLOAT, "Tindex": gc.int32, "Tshape": gc.int32, "num_row_partition_tensors": 1, "row_partition_types": ()},
            "Partition info types should not be empty",
        ),
        (
            "RaggedTensorToTensor",
            [[2], [5], [2], [3]],
            "iffi",
            {**FLOAT, "Tindex": gc.int32, "Tshape": gc.int32, "num_row_partition_tensors": 1, "row_partition_types": (b"ROW_SPLITS",)},
            "default_value.rank = 1  must be less than rt_input.flat_values.rank = 1",
        ),
        (
            "RaggedTensorToTensor",
            [[3], [5], [], [3]],
            "iffi",
            {**FLOAT, "Tindex": gc.int32, "Tshape": gc.int32, "num_row_partition_tensors": 1, "row_partition_types": (b"ROW_SPLITS",)},
            "rt_input.rank = 2 but shape.rank = 3",
        ),
        ("ScatterNd", [[], None, [2]], "ifi", {**FLOAT, "Tindices": gc.int32}, "at least rank 1 but is rank 0"),
        ("ScatterNd", [None, [], [2]], "ifi", {**FLOAT, "Tindices": gc.int32}, "at least rank 1 but is rank 0"),
        ("Conv2DBackpropInput", [[2], [1, 4, 4, 3], [1, 4, 4, 2]], "iff", CONV, "must be equal, but are 2 and 3"),
        ("MirrorPadGrad", [[3], [2, 2]], "fi", PADDING, "rank 2 but is rank 1"),
        ("Cross", [None, [2]], "ff", FLOAT, "Dimension must be 3 but is 2"),
        ("Einsum", [None], "f", {**FLOAT, "N": 1, "equation": b"\xff"}, "quation"),
        ("MatrixDiagPartV3", [[2, 2], [2, 3], []], "fif", FLOAT, "at most rank 1 but is rank 2"),
        ("MatrixDiagPartV3", [[2, 2], [2], [2]], "fif", FLOAT, "rank 0 but is rank 1"),
        ("MatrixDiagV3", [[2], [1], [2], [], []], "fiiif", FLOAT, "rank 0 but is rank 1"),
    ],
    ids=lambda value: value if isinstance(value, str) and value[0].isupper() else "",
)
def test_inputs_that_can_never_fit_are_refused_when_the_graph_is_imported(
    op: str, shapes: list[Shape], types: str, attrs: dict[str, Any], text: str
) -> None:
    graph = gc.Graph()
    with pytest.raises(InvalidArgumentError) as caught:
        import_graph_def(graph_of(op, shapes, types, attrs), graph)
    assert text in caught.value.message
    assert len(graph) == 0


def test_the_number_of_parts_of_a_split_is_checked_before_its_dimension_is_known() -> None:
    graph = gc.Graph()
    with graph.as_default():
        inputs = [gc.placeholder(gc.float32, [4, 4]), gc.constant([-1]), gc.placeholder(gc.int32, [])]
    with pytest.raises(InvalidArgumentError, match="Length of size_splits should be equal to num_outputs"):
        graph.apply_op("SplitV", inputs, {"num_split": 3})


def test_two_ellipses_are_refused_even_beyond_the_indices() -> None:
    graph = gc.Graph()
    with graph.as_default():
        x, one = gc.placeholder(gc.float32, [4]), gc.constant([1])
    with pytest.raises(InvalidArgumentError, match="Multiple ellipses"):
        graph.apply_op("StridedSlice", [x, one, one, one], {"ellipsis_mask": 3})


def test_output_shapes_that_are_not_set_are_none_at_all() -> None:
    node = NodeDef("x", "Placeholder", (), "", {"dtype": gc.float32, "_output_shapes": NO_VALUE})
    with pytest.raises(InvalidArgumentError, match="specifies shapes for 0 outputs"):
        import_graph_def(GraphDef(node=(node,)), gc.Graph())


def test_constants_with_which_a_kernel_cannot_work_leave_its_value_unknown() -> None:
    graph = gc.Graph()
    with graph.as_default():
        zero, one = gc.constant([0]), gc.constant([1])
        sizes = gc.apply_op("StridedSliceGrad", [gc.constant([-1]), zero, one, one, one])
        filled = gc.apply_op("Fill", [sizes, gc.constant(0.0)])
    assert isinstance(filled, gc.Tensor)
    assert filled.shape.rank is None


def test_a_value_of_another_type_than_declared_says_nothing_about_shapes() -> None:
    graph = gc.Graph()
    with graph.as_default():
        x = gc.constant(1.5)
        whole = graph.apply_op("_ArrayToList", [[x]], {"N": 1, "T": gc.float32, "out_types": [gc.string, gc.int32]})
        part = graph.apply_op("Slice", [gc.placeholder(gc.float32, [4]), whole.outputs[1], whole.outputs[1]])
    assert part.outputs[0].shape == gc.Shape([None])


def test_a_text_where_axes_are_declared_says_nothing_about_shapes() -> None:
    words = TensorValue(np.array([b"a", b"b"], object))
    axes = NodeDef("axes", "Const", (), "", {"dtype": gc.int32, "value": words})
    x = NodeDef("x", "Placeholder", (), "", {"dtype": gc.float32, "shape": gc.Shape([2, 3])})
    largest = NodeDef("largest", "Max", ("x", "axes"), "", {**FLOAT, "Tidx": gc.int32})
    graph = gc.Graph()
    import_graph_def(GraphDef(node=(x, axes, largest), versions=MODERN), graph)
    found = graph.find("largest")
    assert found is not None
    assert found.outputs[0].shape == gc.Shape(None)


@pytest.mark.parametrize(
    ("shapes", "text"),
    [
        ([[1], [1], [1], [1], [1], [1]], "Shape must be rank 2 but is rank 1"),
        ([[2, 3], [4], [3], [1, 3], [1], [3]], "index count (2) and the number of values (4)"),
        ([[2, 3], [2], [2], [1, 3], [1], [3]], "index rank (3) and the shape rank (2)"),
    ],
)
def test_sparse_tensors_whose_parts_do_not_belong_together_are_refused(shapes: list[Shape], text: str) -> None:
    types = [gc.int64, gc.float32, gc.int64] * 2
    nodes = [
        NodeDef(f"x{i}", "Placeholder", (), "", {"dtype": t, "shape": gc.Shape(s)})
        for i, (t, s) in enumerate(zip(types, shapes, strict=True))
    ]
    distance = NodeDef("n", "EditDistance", tuple(node.name for node in nodes), "", FLOAT)
    with pytest.raises(InvalidArgumentError) as caught:
        import_graph_def(GraphDef(node=(*nodes, distance), versions=MODERN), gc.Graph())
    assert text in caught.value.message
