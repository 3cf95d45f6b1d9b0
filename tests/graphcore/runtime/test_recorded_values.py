"""Recorded values: the statistics of all tensors of a run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import graphcore as gc
from graphcore.runtime.core.tensor_stats import Summarizer, detail_of
from graphcore.runtime.core.value_records import ValueRecords

ENGINES = ("plan", "dataflow")


@pytest.fixture(autouse=True)
def graph() -> Iterator[gc.Graph]:
    with gc.Graph().as_default() as made, np.errstate(all="ignore"):  # as in runs
        yield made


def recorded(fetches: Any, feeds: Any = None, *, engine: str = "auto", values: Any = True, initialize: bool = False) -> ValueRecords:
    with gc.Session(engine=engine) as session:
        if initialize:
            session.run(gc.initialize_all_variables())
        metadata = gc.RunMetadata()
        session.run(fetches, feeds, gc.RunOptions(values=values), metadata)
        assert metadata.values is not None
        return metadata.values


@pytest.mark.parametrize("engine", ENGINES)
def test_all_tensors_of_a_run_have_statistics(engine: str) -> None:
    x = gc.placeholder(gc.float32, [None, 3], name="x")
    h = gc.relu(x * 2.0 - 1.0, name="h")
    gc.reduce_mean(h, name="y")
    values = recorded("y:0", {x: np.array([[0, 1, 2]], np.float32)}, engine=engine)
    assert (values["x"].min, values["x"].max, values["x"].mean) == (0, 2, 1)
    assert (values[h].min, values[h].max, values[h].shape, values[h].dtype) == (0, 3, (1, 3), "float")
    assert values["y:0"].mean == pytest.approx(4 / 3)
    assert values.first_bad is None


@pytest.mark.parametrize("engine", ENGINES)
def test_the_first_bad_tensor_is_named_with_its_inputs(engine: str) -> None:
    x = gc.placeholder(gc.float32, [3], name="x")
    bad = gc.log(x, name="log")
    gc.reduce_sum(x * bad, name="y")
    values = recorded("y:0", {x: np.array([0, 1, 2], np.float32)}, engine=engine)
    found = values.first_bad
    assert found is not None
    assert found.tensor.name == "log:0"
    assert (found.tensor.inf, found.tensor.nan, found.tensor.min) == (1, 0, 0)
    assert [one.name for one in found.inputs] == ["x:0"]
    assert "1 Inf" in str(found)
    assert "x:0" in str(found)
    assert values["y"].nan == 1
    assert "2 with NaN or Inf" in repr(values) or "3 with NaN or Inf" in repr(values)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_fed_nan_is_the_first_bad_tensor(engine: str) -> None:
    x = gc.placeholder(gc.float32, [2], name="x")
    y = gc.exp(x)
    found = recorded(y, {x: np.array([np.nan, 0], np.float32)}, engine=engine).first_bad
    assert found is not None
    assert found.tensor.node == "x"


@pytest.mark.parametrize("engine", ENGINES)
def test_nodes_without_a_kernel_have_the_values_of_others(engine: str) -> None:
    x = gc.placeholder(gc.float32, [2], name="x")
    first, second = gc.exp(x, name="first"), gc.exp(x, name="second")
    passed = gc.identity(first, name="passed")
    half = gc.multiply(gc.constant(0.25), gc.constant(2.0), name="half")
    values = recorded([passed, second, first * half], {x: np.zeros(2, np.float32)}, engine=engine)
    assert {values[name].mean for name in ("first", "second", "passed")} == {1}
    assert values["half"].mean == 0.5


@pytest.mark.parametrize("engine", ENGINES)
def test_each_iteration_of_a_loop_has_statistics(engine: str) -> None:
    x = gc.placeholder(gc.float32, [], name="x")
    end = gc.while_loop(lambda i, _: i < 3, lambda i, v: [i + 1, v * x], [gc.constant(0), gc.constant(1.0)])
    values = recorded(end, {x: 2.0}, engine=engine)
    products = [(one.iterations or one.call, one.mean) for one in values if one.mean in (2, 4, 8) and one.node != "x"]
    assert len({place for place, _ in products}) >= 3
    assert {mean for _, mean in products} == {2, 4, 8}


def test_nodes_of_function_bodies_have_the_call_as_place() -> None:
    @gc.function
    def double(v: gc.Tensor) -> gc.Tensor:
        return v + v

    y = double(gc.placeholder(gc.float32, [2], name="x"))
    values = recorded(y, {"x:0": np.ones(2, np.float32)})
    assert [one.mean for one in values if one.call == "double:double" and one.node == "add"] == [2]


def test_patterns_give_full_statistics() -> None:
    x = gc.placeholder(gc.float32, [None, 64], name="images/x")
    y = gc.relu(x, name="out/y")
    large = np.linspace(-1, 1, 200 * 64, dtype=np.float32).reshape(200, 64)
    values = recorded(y, {x: large}, values="out/*")
    detail = values[y].detail
    assert values["images/x"].detail is None
    assert detail is not None
    assert detail.sampled
    assert detail.sampled <= 4096
    assert detail.zeros == pytest.approx(0.5, abs=0.01)
    assert sum(detail.bins) == detail.sampled
    assert detail.picture is not None
    assert detail.picture.shape == (8, 8)
    assert detail.pictures == 200
    small = recorded(y, {x: large[:1]}, values=("images/*", "out/*"))["images/x"].detail
    assert small is not None
    assert small.values is not None
    assert small.values.shape == (1, 64)


def test_variables_have_their_values() -> None:
    v = gc.Variable(gc.constant([1.0, 3.0]), name="v")
    values = recorded(v.assign_add([1.0, 1.0]), initialize=True)
    assert values["v"].mean in (2, 3)
    assert values["AssignAdd"].mean == 3


def test_gradients_have_magnitudes_by_depth() -> None:
    x = gc.placeholder(gc.float32, [2], name="x")
    h = x
    for _ in range(4):
        h = gc.multiply(h, 0.1)
    g = gc.gradients(h, [x])
    with gc.Session() as session:
        metadata = gc.RunMetadata()
        session.run(g, {x: np.ones(2, np.float32)}, gc.RunOptions(values=True), metadata)
    assert metadata.values is not None
    found = metadata.values.gradient_magnitudes(gc.get_default_graph())
    depths = [one.depth for one in found if one.value is not None]
    assert depths == sorted(depths)
    assert len(depths) >= 3
    values = [one.value for one in found if one.value is not None]
    assert values[0] < values[-1]


def test_what_cannot_be_recorded_is_refused() -> None:
    with pytest.raises(gc.GraphError, match="values: required True, False or glob patterns"):
        gc.RunOptions(values=3)  # type: ignore[arg-type]  # a wrong argument on purpose


def test_a_missing_tensor_is_named() -> None:
    values = recorded(gc.constant(1.0, name="c"))
    with pytest.raises(KeyError, match="'nothing': it was not computed"):
        values["nothing"]


ANY_ARRAY = hnp.arrays(
    st.sampled_from([np.float16, np.float32, np.float64, np.int8, np.int64, np.bool_, np.uint8]),
    hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=40),
)


@settings(max_examples=60, deadline=None)
@given(ANY_ARRAY)
def test_summaries_are_those_of_numpy(array: np.ndarray) -> None:
    low, high, mean, nans, infinities = Summarizer().summary(array)
    plain = array.astype(np.float64)
    finite = plain[np.isfinite(plain)]
    assert nans == np.count_nonzero(np.isnan(plain))
    assert infinities == np.count_nonzero(np.isinf(plain))
    if not finite.size:
        assert low is high is mean is None
        return
    assert (low, high) == (finite.min(), finite.max())
    expected = finite.mean()
    if np.isfinite(expected):
        assert mean == pytest.approx(expected, rel=1e-4, abs=1e-5 * float(np.abs(finite).max()))
    assert detail_of(array).sampled <= 4096


def test_large_sums_and_unusual_types_have_statistics() -> None:
    summarizer = Summarizer()
    assert summarizer.summary(np.full(5000, 3e38, np.float32))[2] == pytest.approx(3e38, rel=1e-5)
    assert summarizer.summary(np.full(4100, 2, ml_dtypes.bfloat16))[:3] == (2, 2, 2)
    assert summarizer.summary(np.array([1 + 1j, np.nan], np.complex64))[2:] == (1 + 1j, 1, 0)
    assert summarizer.summary(np.array([b"a"], object)) == (None, None, None, 0, 0)
    assert summarizer.summary(np.arange(5000.0)[::2])[:3] == (0, 4998, 2499)


@pytest.mark.parametrize("engine", ENGINES)
def test_infinities_of_a_mask_are_passed_over_where_nans_come_from_elsewhere(engine: str) -> None:
    x = gc.placeholder(gc.float32, [2], name="x")
    weights = gc.softmax(gc.add(x, gc.constant([0.0, -np.inf]), name="masked"), name="weights")
    found = recorded(gc.log(weights - 2.0, name="bad"), {x: np.zeros(2, np.float32)}, engine=engine).first_bad
    assert found is not None
    assert found.tensor.node == "bad"
    only_mask = recorded(weights, {x: np.zeros(2, np.float32)}, engine=engine).first_bad
    assert only_mask is not None
    assert only_mask.tensor.inf == 1


@pytest.mark.parametrize("engine", ENGINES)
def test_an_infinity_that_reaches_a_result_is_named_before_nans_of_gradients(engine: str) -> None:
    x = gc.placeholder(gc.float32, [2], name="x")
    loss = gc.reduce_mean(gc.log(gc.maximum(x, 0.0), name="log"), name="loss")
    (dx,) = gc.gradients(loss, [x])
    values = recorded([loss, dx], {x: np.array([-1.0, 2.0], np.float32)}, engine=engine)
    assert values.first_bad is not None
    assert values.first_bad.tensor.node == "log"
