"""Every op: inferred shapes are true of the kernel's results, and less knowledge infers less."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import graphcore as gc
from graphcore.errors import GraphError
from graphcore.inference import HandleData, ShapeAndType, handle_to_shape, shape_to_handle
from graphcore.kernel_context import RefVariable
from tests.graphcore.inference.knowledge import Knowledge, Partial
from tests.graphcore.inference.probes import SEEN, held, probe, probes, registry, shape_of
from tests.graphcore.inference.surroundings import Built, build
from tests.graphcore.inference.sweep_cases import FUNCTIONS, sweep_cases
from tests.graphcore.opset.op_cases import Case
from tests.oracle.cases.draws import Drawer, general
from tests.oracle.cases.draws_of_arrays import DRAWERS
from tests.support.op_checks import checked_for

BY_OP = sweep_cases()
REGISTRY = registry()
ONE_OF_SEVERAL = {"Switch", "RefSwitch", "_SwitchN"}
"""Ops that give something on one output only."""
UNTOLD = {
    # Shapes that depend on values.
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
    # Outputs may differ in shape between iterations.
    *("Enter", "Exit", "NextIteration"),
    # Values from elsewhere, or stored with any shape.
    *("_Recv", "_HostRecv", "StackPopV2", "TensorArrayConcatV3", "TensorListConcat", "TensorListConcatV2", "TensorListStack"),
    *("QueueDequeue", "QueueDequeueMany", "QueueDequeueUpTo", "QueueDequeueUpToV2", "RestoreV2"),
    # Values from tables and accumulators, whose handles do not tell all, and from Python.
    *("AccumulatorTakeGradient", "ResourceAccumulatorTakeGradient", "SparseAccumulatorTakeGradient"),
    *("LookupTableExport", "LookupTableExportV2", "LookupTableFind", "PyFunc", "PyFuncStateless"),
    *("ReaderReadUpTo", "ReaderReadUpToV2"),
}
"""Ops of whose outputs not all is known although all is known of their inputs."""
OF_BODIES = {"If", "StatelessIf", "Case", "StatelessCase", "While", "StatelessWhile"}
"""Ops whose outputs may differ in shape between branches or iterations; in the examples of the registry they do not."""
Inferred = tuple[gc.Shape, HandleData | None]


def drawers() -> dict[str, Drawer]:
    found = dict(DRAWERS)
    for entry in gc.op_registry:
        drawer = general(entry)
        if drawer is not None:
            found.setdefault(entry.op_def.name, drawer)
    return dict(sorted(found.items()))


DRAWN = drawers()


def inferred(tensor: gc.Tensor) -> Inferred:
    """The inferred shape of a tensor, and of the resource behind it if it is a handle."""
    return tensor.shape, tensor.graph.refiner.output_handle_data(tensor.node, tensor.index)


def inferred_with(case: Case, know: Knowledge) -> list[Inferred]:
    """The inferred shapes of an op and of all probes around it, for partial knowledge."""
    with gc.Graph(REGISTRY).as_default() as graph:
        return all_inferred(graph, build(case, know))


def all_inferred(graph: gc.Graph, built: Built) -> list[Inferred]:
    return [inferred(tensor) for node in (built.node, *probes(graph)) for tensor in node.outputs]


def observed(graph: gc.Graph, built: Built) -> list[tuple[gc.Tensor, Any]]:
    """Run the op. Returns its outputs, and the other probed tensors."""
    outputs = [probe(output).node for output in built.node.outputs]
    looking = outputs if built.loop else probes(graph)
    SEEN.clear()
    with gc.Session() as session:
        if built.start:
            session.run(built.start)
        session.run([built.node, *looking], built.feeds)
    found = [(node.inputs[0], value) for node in probes(graph) for value in SEEN.get(node.name, ())]
    if built.loop is not None:
        handed, seen = built.loop
        found += [(handed, value) for value in SEEN[seen.node.name][1:]]
    return found


def true_of(tensor: gc.Tensor, known: Inferred, value: Any) -> bool:
    """True iff the inferred shape of a tensor is true of its value."""
    shape, data = known
    if not shape.is_compatible_with(gc.Shape(shape_of(tensor, value))):
        return False
    what = held(value)
    if not data or what is None:
        return not data
    return data[0].dtype in {None, what[0]} and all(handle_to_shape(data[0].shape).is_compatible_with(each) for each in what[1])


def check(case: Case, know: Knowledge) -> list[Inferred]:
    """Run the op of a case under partial knowledge and check all inferred shapes. Returns those of `inferred_with`."""
    name = case.op_def.name
    with gc.Graph(REGISTRY).as_default() as graph:
        built = build(case, know)
        before = all_inferred(graph, built)
        if built.fails is not None:
            with pytest.raises(built.fails):
                observed(graph, built)
            return before
        found, count = observed(graph, built), len(built.node.outputs)
        for tensor, value in found:
            known = inferred(tensor)
            assert true_of(tensor, known, value), f"{tensor.name}: {known[0]}, but the kernel gives {shape_of(tensor, value)}"
        seen = {tensor for tensor, _ in found if tensor.node.op == name}
        assert len(seen) >= (1 if name in ONE_OF_SEVERAL else count), "an output was not looked at"
        return before


def says_no_more(less: Inferred, more: Inferred) -> bool:
    """Everything known in `less` is known in `more`, and is the same."""
    if not _known_in(less[0], more[0]):
        return False
    if not less[1]:
        return True
    pairs = zip(less[1], more[1] or (), strict=False)
    return len(less[1]) == len(more[1] or ()) and all(
        mine.dtype in {None, theirs.dtype} and _known_in(handle_to_shape(mine.shape), handle_to_shape(theirs.shape))
        for mine, theirs in pairs
    )


def _known_in(less: gc.Shape, more: gc.Shape) -> bool:
    if less.dims is None:
        return True
    return more.dims is not None and len(less) == len(more) and all(a in {None, b} for a, b in zip(less.dims, more.dims, strict=True))


def check_less(case: Case, all_of_it: list[Inferred], draw: Callable[[st.SearchStrategy[Any]], Any]) -> None:
    """Check a case under drawn knowledge: the inferences are contained in `all_of_it`, which is true."""
    some, least = inferred_with(case, more := Partial(draw)), inferred_with(case, Partial(draw, more))
    for less, greater in ((some, all_of_it), (least, some)):
        for mine, theirs in zip(less, greater, strict=True):
            assert says_no_more(mine, theirs), f"{mine} is said from less, {theirs} from more"


@cache
def inferred_with_all(name: str, number: int) -> list[Inferred]:
    """The inferences for a case under full knowledge."""
    return inferred_with(BY_OP[name][number], Knowledge())


def test_no_op_is_left_out() -> None:
    assert set(BY_OP) == set(REGISTRY.names()) - {"Probe", "RefProbe"}
    assert all(gc.op_registry.look_up(name).kernel is not None for name in BY_OP)


@checked_for(BY_OP)
def inferred_shapes_of_every_op_hold_for_its_outputs(name: str) -> None:
    for case in BY_OP[name]:
        all_of_it = check(case, Knowledge())
        is_untold = name in UNTOLD or (name in OF_BODIES and case.functions == FUNCTIONS)
        assert is_untold or all(shape.is_fully_defined for shape, _ in all_of_it)


@checked_for(BY_OP, slow=True)
@settings(max_examples=8, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def less_knowledge_infers_less(name: str, data: st.DataObject) -> None:
    number = data.draw(st.sampled_from(range(len(BY_OP[name]))))
    check_less(BY_OP[name][number], inferred_with_all(name, number), data.draw)


# ---- the sweep itself ----------------------------------------------------------------------------------------------------


def test_a_wrong_shape_and_wrong_handle_data_are_seen() -> None:
    with gc.Graph().as_default():
        tensor = gc.placeholder(gc.resource, [])
        variable = RefVariable("v", gc.float32, gc.Shape([None, 3]))
        variable.assign(np.zeros((2, 3), np.float32))

        def holds(shape: Any, dtype: gc.DType | None, of_handle: Any = ()) -> bool:
            data = [ShapeAndType(shape_to_handle(gc.Shape(shape)), dtype)]
            return true_of(tensor, (gc.Shape(of_handle), data), variable)

        assert holds([2, None], gc.float32)
        assert holds(None, None)
        assert not holds([3, None], gc.float32)
        assert not holds([2], gc.float32)
        assert not holds([2, 3], gc.int32)
        assert not holds([2, 3], gc.float32, [1])
        assert not true_of(tensor, (gc.Shape([2]), None), np.zeros(3))


def test_a_guess_is_seen() -> None:
    data = [ShapeAndType(shape_to_handle(gc.Shape([2])), gc.float32)]
    assert says_no_more((gc.Shape([None, 3]), None), (gc.Shape([2, 3]), data))
    assert not says_no_more((gc.Shape([2, 3]), None), (gc.Shape([None, 3]), None))
    assert not says_no_more((gc.Shape([2, 3]), None), (gc.Shape([2, 4]), None))
    assert not says_no_more((gc.Shape([]), data), (gc.Shape([]), None))


def test_a_lying_shape_function_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if the op is in a loop, gets its value from a partner op, or returns a handle."""
    for name in ("Square", "NextIteration", "_Recv", "Switch", "TensorArrayReadV3", "EmptyTensorList", "VarHandleOp", "RefExit"):
        with monkeypatch.context() as patch:
            patch.setattr(REGISTRY.look_up(name), "shape_fn", _lie)
            patch.setattr(REGISTRY.look_up(name), "direct_shape", None)
            with pytest.raises((AssertionError, GraphError)):
                check(BY_OP[name][0], Knowledge())


def _lie(c: gc.InferenceContext) -> None:
    for i in range(c.num_outputs):
        c.set_output(i, c.make_shape([7] * 7))
