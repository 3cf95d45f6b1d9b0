"""Guarantees of every op block: its examples hold, and shape function and kernel agree."""

from __future__ import annotations

import numpy as np
import pytest

import graphcore as gc
from graphcore.registry import OpRegistration
from tests.graphcore.opset.backend_cases import assert_same
from tests.graphcore.opset.op_cases import Array, Case, all_cases, constants, hidden, run, with_variables

pytestmark = pytest.mark.sweep

ENTRIES = list(gc.op_registry)
CASES = all_cases()
RUNNABLE = [case for case in CASES if case.runs]
PURE = [case for case in RUNNABLE if case.deterministic and not case.takes_variable]
# Ops with output shapes that depend on values, which a shape function need not know.
FROM_VALUES = {
    "RaggedTensorToTensor",
    *(f"NonMaxSuppression{version}" for version in ("", "V2", "V3", "V4", "V5", "WithOverlaps")),
    *(f"Segment{name}" for name in ("Sum", "Mean", "Prod", "Max", "Min")),
    *(f"SparseSegment{name}" for name in ("Sum", "Mean", "SqrtN")),
    *(f"Decode{name}" for name in ("AndCropJpeg", "Bmp", "Gif", "Image", "Jpeg", "Png")),
    *(f"SparseSegment{name}GradV2" for name in ("Sum", "Mean", "SqrtN")),
    "ComputeAccidentalHits",
    "DecodeRaw",
    "DynamicPartition",
    "CTCBeamSearchDecoder",
    "CTCGreedyDecoder",
    "SparseAdd",
    "SparseConcat",
    "SparseFillEmptyRows",
    "SparseReduceMaxSparse",
    "SparseReduceSumSparse",
    "SparseSlice",
    "SparseSparseMaximum",
    "SparseSparseMinimum",
    "SparseSplit",
    "StringSplit",
    "StringSplitV2",
    "ListDiff",
    "MatchingFiles",
    "ParseExample",
    "ParseSingleExample",
    "Unique",
    "Where",
    "UniqueV2",
    "UniqueWithCounts",
    "UniqueWithCountsV2",
    "BroadcastGradientArgs",
    "PlaceholderWithDefault",
    "FusedBatchNormV3",
}


def result_of(case: Case) -> tuple[gc.Node, list[Array]]:
    with gc.Graph().as_default():
        if not case.takes_variable:
            node = case.build(constants(case.arrays))
            return node, run(node)
        node, start = with_variables(case)
        with gc.Session() as session:
            session.run(start)
            if not node.outputs:
                session.run(node)
            return node, [np.asarray(value) for value in session.run(list(node.outputs))]


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.op_def.name)
def test_every_op_has_docs_and_examples(entry: OpRegistration) -> None:
    op_def = entry.op_def
    assert op_def.summary.endswith((".", "`")), f"{op_def.name}: the summary is one sentence, got {op_def.summary!r}"
    assert entry.examples
    assert entry.shape_fn is not None
    assert entry.kernel is not None


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.op_def.name)
def test_a_signature_is_read_back_as_it_is_printed(entry: OpRegistration) -> None:
    text = gc.debug_string(entry.op_def)
    assert gc.debug_string(gc.parse_op_signature(text)) == text


@pytest.mark.parametrize("case", RUNNABLE, ids=lambda case: case.id)
def test_an_example_gives_the_declared_types_the_inferred_shapes_and_the_outputs_it_shows(case: Case) -> None:
    node, values = result_of(case)
    assert [gc.as_dtype(value.dtype) for value in values] == [output.dtype.base for output in node.outputs]
    for output, value in zip(node.outputs, values, strict=True):
        assert output.shape.is_compatible_with(gc.Shape(value.shape))
        if case.op_def.name not in FROM_VALUES and not case.takes_handle and not case.is_of_lists:
            assert output.shape.dims == value.shape
    if case.outputs is not None:
        assert len(values) == len(case.outputs)
    for value, expected in zip(values, case.outputs or (), strict=False):
        wanted = np.asarray(expected)
        if value.dtype.kind in "OSb":
            assert value.tolist() == wanted.tolist()
        else:
            wide = np.complex128 if value.dtype.kind == "c" else np.float64
            np.testing.assert_allclose(value.astype(wide), wanted.astype(wide), rtol=1e-6)


@pytest.mark.parametrize("sizes", ["unknown", "unknown rank"])
@pytest.mark.parametrize("case", [case for case in PURE if case.arrays], ids=lambda case: case.id)
def test_less_known_shapes_and_values_contradict_nothing(case: Case, sizes: str) -> None:
    """Nothing is constant here, so kernels read axes, shapes and paddings at run time."""
    _, values = result_of(case)
    with gc.Graph().as_default():
        node = case.build(hidden(case.arrays, sizes))
        for output, value, later in zip(node.outputs, values, run(node), strict=True):
            assert output.shape.is_compatible_with(gc.Shape(value.shape))
            assert_same(later, value)
            assert later.dtype.kind != "O" or later.tolist() == value.tolist()


@pytest.mark.parametrize("case", PURE, ids=lambda case: case.id)
def test_a_kernel_leaves_its_inputs_as_they_are(case: Case) -> None:
    before = [array.copy() for array in case.arrays]
    with gc.Graph().as_default() as graph:
        places = [
            gc.apply_op("Placeholder", attrs={"dtype": gc.as_dtype(array.dtype), "shape": gc.Shape(array.shape)}) for array in case.arrays
        ]
        node = case.build(places)
        with gc.Session(graph=graph) as session:
            session.run(list(node.outputs) or node, dict(zip(places, case.arrays, strict=True)))
    for array, old in zip(case.arrays, before, strict=True):
        assert array.tolist() == old.tolist() or np.array_equal(array, old, equal_nan=True)
