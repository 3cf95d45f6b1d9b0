"""Gradients treat constants like any other tensors: they follow feeds."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

import graphcore as gc
from graphcore.errors import InvalidArgumentError
from tests.graphcore.passes.gradients.constant_programs import Program, Step, build, differentiate

Array = npt.NDArray[Any]
GC = SimpleNamespace(
    **{name: getattr(gc, name) for name in dir(gc) if not name.startswith("_")}
    | {"sign": gc.ops.sign, "pad": gc.ops.pad, "tile": gc.ops.tile, "gather": lambda x, rows: gc.ops.gather_v2(x, rows, 0)},
)
SHAPES = [(), (2,), (3,), (2, 2), (3, 2), (1, 2), (2, 1)]
UNARY = ["tanh", "sigmoid", "square", "cubed", "power", "log", "inverse", "sign", "stopped"]
BINARY = ["add", "subtract", "multiply", "divide", "raise", "maximum"]
REDUCTIONS = ["sum", "mean", "product", "largest"]


@st.composite
def programs(draw: st.DrawFn) -> Program:
    leaves = tuple(draw(st.lists(st.sampled_from(SHAPES), min_size=1, max_size=3)))
    shapes, steps = list(leaves), list[Step]()
    for _ in range(draw(st.integers(1, 5))):
        numbers = range(len(shapes))
        first = draw(st.sampled_from([numbers[-1], numbers[-1], *numbers]))
        step, shape = draw(st.sampled_from(list(_possible(shapes, first, draw))))
        steps.append(step)
        shapes.append(shape)
    return leaves, tuple(steps)


def _possible(shapes: Sequence[tuple[int, ...]], first: int, draw: st.DrawFn) -> list[tuple[Step, tuple[int, ...]]]:
    """The possible next ops on tensors of these shapes, on tensor `first`, with result shapes."""
    shape = shapes[first]
    found: list[tuple[Step, tuple[int, ...]]] = [((name, (first,), None), shape) for name in UNARY]
    for second, other in enumerate(shapes):
        try:
            both = np.broadcast_shapes(shape, other)
        except ValueError:
            continue
        found += [((name, (first, second), None), both) for name in BINARY]
        if shape == other:
            found += [((name, (first, second), None), shape) for name in ("where", "branch", "loop")]
        if len(shape) == len(other) >= 1 and shape[1:] == other[1:]:
            found.append((("concat", (first, second), None), (shape[0] + other[0], *shape[1:])))
        if shape == other and shape:
            found.append((("stack", (first, second), None), (shape[0], 2, *shape[1:])))
        if len(shape) == len(other) == 2 and shape[1] == other[0]:
            found.append((("matmul", (first, second), None), (shape[0], other[1])))
    if shape:
        axis, keep = draw(st.integers(-len(shape), len(shape) - 1)), draw(st.booleans())
        left = tuple(1 if i == axis % len(shape) else size for i, size in enumerate(shape) if keep or i != axis % len(shape))
        found += [((name, (first,), (axis, keep)), left) for name in REDUCTIONS]
        found += [(("reshape", (first,), (-1,)), (int(np.prod(shape)),)), (("first", (first,), None), (1, *shape[1:]))]
        found.append((("pad", (first,), ((1, 0), *[(0, 0)] * (len(shape) - 1))), (shape[0] + 1, *shape[1:])))
        found.append((("tile", (first,), (2, *[1] * (len(shape) - 1))), (2 * shape[0], *shape[1:])))
        if shape[0] > 1:
            found.append((("rows", (first,), None), (2, *shape[1:])))
    if len(shape) == 2:
        found.append((("transpose", (first,), None), shape[::-1]))
    return found


def values(program: Program, seed: int) -> list[Array]:
    """Numbers for the leaves, and two row indices."""
    random = np.random.default_rng(seed)
    leaves = [random.uniform(0.3, 1.2, shape) * random.choice([-1.0, 1.0], shape) for shape in program[0]]
    return [*leaves, random.integers(0, 2, 2).astype(np.int32)]


def differentiated(program: Program, given_as: Any, arrays: Sequence[Array], fed: Sequence[Array] | None) -> list[Array | None]:
    """The program's value, gradients and second gradients, with leaves by `given_as`; None if missing."""
    with gc.Graph().as_default(), gc.Session() as session:
        tensors = [given_as(array) for array in arrays]
        y = build(GC, program, tensors[:-1], tensors[-1])
        first, second = differentiate(GC, y, tensors[:-1])
        every = [y, *first, *second]
        feeds = {} if fed is None else dict(zip(tensors, fed, strict=True))
        found = iter(session.run([tensor for tensor in every if tensor is not None], feeds))
        return [None if tensor is None else next(found) for tensor in every]


def with_shape(array: Array) -> gc.Tensor:
    return gc.placeholder(gc.as_dtype(array.dtype), array.shape)


def without_shape(array: Array) -> gc.Tensor:
    return gc.placeholder(gc.as_dtype(array.dtype), [None] * array.ndim)


def assert_alike(found: Sequence[Array | None], wanted: Sequence[Array | None]) -> None:
    assert [value is None for value in found] == [value is None for value in wanted]
    for mine, other in zip(found, wanted, strict=True):
        if mine is not None and other is not None:
            np.testing.assert_allclose(mine, other, rtol=1e-9, atol=1e-12)


@pytest.mark.slow
@given(programs(), st.integers(0, 1000))
def test_constants_and_placeholders_have_the_same_gradients_and_follow_what_is_fed(program: Program, seed: int) -> None:
    arrays, others = values(program, seed), values(program, seed + 5000)
    own = differentiated(program, gc.constant, arrays, None)
    assert_alike(differentiated(program, with_shape, arrays, arrays), own)
    assert_alike(differentiated(program, without_shape, arrays, arrays), own)
    assert_alike(differentiated(program, gc.constant, arrays, others), differentiated(program, gc.constant, others, None))


def third(build: Any) -> list[float]:
    with gc.Graph().as_default():
        g = gc.constant(3.0)
        first = gc.gradients(build(g), g)[0]
        return [float(value) for value in gc.Session().run([first, gc.gradients(first, g)[0]])]


def test_a_gradient_by_a_constant_has_gradients() -> None:
    assert third(lambda g: g * g * g) == [27.0, 18.0]
    assert third(lambda g: g**3.0) == [27.0, 18.0]
    np.testing.assert_allclose(third(gc.log), [1 / 3, -1 / 9], rtol=1e-6)
    np.testing.assert_allclose(third(lambda g: 1.0 / g), [-1 / 9, 2 / 27], rtol=1e-6)


def in_branches(k: gc.Tensor, x: gc.Tensor) -> Any:
    return gc.cond(x > 0.0, lambda: x * k * k, lambda: x + k)


def in_a_loop(k: gc.Tensor, x: gc.Tensor) -> Any:
    return gc.while_loop(lambda i, _: i < 3, lambda i, v: (i + 1, v * k), (0, x))[1]


def in_a_function(k: gc.Tensor, x: gc.Tensor) -> Any:
    return gc.function(lambda a, b: a * b * b)(x, k)


def in_old_branches(k: gc.Tensor, x: gc.Tensor) -> Any:
    pred = x > 0.0
    (_, k_true), (x_false, x_true) = (gc.ops.switch(tensor, pred) for tensor in (k, x))
    return gc.ops.merge([x_false, x_true * k_true * k_true])[0]


@pytest.mark.parametrize("program", [in_branches, in_a_loop, in_a_function, in_old_branches])
@pytest.mark.parametrize("engine", ["auto", "dataflow"])
def test_what_runs_functions_and_loops_follows_constants_from_around_it(program: Any, engine: str) -> None:
    def found(k: float, fed: float | None, make: Any) -> list[Any]:
        with gc.Graph().as_default(), gc.Session(engine=engine) as session:
            constant, x = make(np.float32(k)), gc.placeholder(gc.float32, [])
            first, second = differentiate(GC, program(constant, x), [constant, x])
            wanted = [*first, *second]
            assert all(tensor is not None for tensor in wanted)
            return [float(value) for value in session.run(wanted, {x: 2.0} if fed is None else {x: 2.0, constant: fed})]

    assert found(3.0, 5.0, gc.constant) == found(5.0, None, gc.constant) == found(0.0, 5.0, with_shape)


def test_a_gradient_refers_to_the_constants_of_the_forward_graph() -> None:
    with gc.Graph().as_default() as graph, gc.Session() as session:
        k, rows = gc.constant([[1.0, 2.0]], name="k"), gc.constant([1, 1], name="rows")
        w = gc.Variable([[5.0], [1.0]])
        (by_w,) = gc.gradients(gc.reduce_sum(gc.matmul(k, w)), w)
        assert k in [tensor for node in graph.nodes if node.name.startswith("gradients/") for tensor in node.inputs]
        session.run(w.initializer)
        assert session.run(by_w).tolist() == [[1], [2]]
        assert session.run(by_w, {k: [[7.0, 8.0]]}).tolist() == [[7], [8]]
        (by_k,) = gc.gradients(gc.reduce_sum(gc.ops.gather_v2(k, rows, 1)), k)
        assert session.run(by_k).tolist() == [[0, 2]]
        assert session.run(by_k, {rows: [0, 1]}).tolist() == [[1, 1]]


def test_shapes_and_what_was_read_to_infer_them_still_simplify_gradients() -> None:
    with gc.Graph().as_default() as graph:
        x, y = gc.placeholder(gc.float32, [4, 1, 3]), gc.placeholder(gc.float32, [4, 1, 3])
        total = gc.reduce_sum(x * y * gc.constant(2.0), axis=[1], keepdims=True)
        both = gc.concat([total, gc.transpose(total, [0, 1, 2])], 2)
        before = len(graph)
        gc.gradients(both, [x, y])
        made = {node.op for node in graph.nodes[before:]}
    assert made == {"Const", "Mul", "AddN", "Slice", "Identity"}, "each result is an Identity"


def test_zeros_that_are_fed_other_values_count() -> None:
    with gc.Graph().as_default(), gc.Session() as session:
        x, seed = gc.placeholder(gc.float32, [2]), gc.constant([0.0, 0.0])
        (gradient,) = gc.gradients(gc.tanh(x) + x, x, grad_ys=seed)
        assert session.run(gradient, {x: [0.0, 0.0], seed: [1.0, 2.0]}).tolist() == [2, 4]


def test_a_constant_is_explained_like_any_other_tensor() -> None:
    with gc.Graph().as_default():
        k = gc.constant(2.0, name="k")
        y = gc.tanh(gc.multiply(k, k, name="squared"), name="y")
        found = gc.explain_gradient(y, k)
        assert [step.node for step in found.steps] == ["y", "squared"]
        assert all(step.backward for step in found.steps)
        assert "both use 'k'" in str(gc.explain_gradient(y, gc.exp(k)).cuts[0])
        (first,) = gc.gradients(y, k)
        again = gc.explain_gradient(first, k)
    assert again.path_count > 1
    assert not again.is_none


def test_a_constant_that_a_gradient_goes_by_may_not_be_fed_another_value() -> None:
    with gc.Graph().as_default(), gc.Session() as session:
        x, times = gc.placeholder(gc.float32, [2]), gc.constant([3], name="times")
        (gradient,) = gc.gradients(gc.ops.tile(x, times), x)
        assert session.run(gradient).tolist() == [3, 3]
        with pytest.raises(InvalidArgumentError, match=r"'times:0' may not be fed another value: node 'Tile'"):
            session.run(gradient, {times: [5]})
