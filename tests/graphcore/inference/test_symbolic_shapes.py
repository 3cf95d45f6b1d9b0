"""`gc.Graph(infer="symbolic")`: unknown sizes have names, equalities and arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import graphcore as gc
from graphcore.attrs import Func
from graphcore.errors import InvalidArgumentError
from graphcore.inference.expressions import Expression, broadcast, constant, symbol
from tests.graphcore.runtime.loop_graphs import cond

ops: Any = gc.ops


@pytest.fixture
def graph() -> Iterator[gc.Graph]:
    graph = gc.Graph(infer="symbolic")
    with graph.as_default():
        yield graph


def text(tensor: Any) -> str:
    return str(tensor.graph.shape_text(tensor))


def fed(*sizes: int | None) -> Any:
    return gc.placeholder(gc.float32, list(sizes))


def part(x: Any, i: int) -> Any:
    return ops.strided_slice(ops.shape(x), [i], [i + 1], [1], shrink_axis_mask=1)


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        pytest.param(lambda: fed(None, 784), "[batch,784]", id="what is fed has a batch"),
        pytest.param(lambda: fed(None, None, 3), "[batch,n1,3]", id="the rest has numbers"),
        pytest.param(lambda: gc.placeholder(gc.float32), "?", id="an unknown rank has no names"),
        pytest.param(lambda: ops.tanh(fed(None, 3)), "[batch,3]", id="names go from op to op"),
        pytest.param(lambda: gc.concat([x := fed(4, None), x, x], 1), "[4,3*n1]", id="concat adds"),
        pytest.param(lambda: ops.pad(gc.concat([x := fed(4, None), x], 1), [[0, 0], [0, 1]]), "[4,2*n1+1]", id="2*n1+1"),
        pytest.param(lambda: gc.reshape(fed(None, None, 3), [-1]), "[3*batch*n1]", id="reshape multiplies"),
        pytest.param(lambda: gc.reshape(fed(None, 6), [-1, 3]), "[2*batch,3]", id="reshape divides"),
        pytest.param(lambda: gc.reshape(fed(None, 4), [-1, 3]), "[(4*batch)//3,3]", id="what does not divide stays a quotient"),
        pytest.param(
            lambda: ops.reshape(x := fed(None, None, 3), ops.pack([part(x, 0), -1])),
            "[batch,3*n1]",
            id="reshape keeps what is on both sides",
        ),
        pytest.param(lambda: gc.reshape(fed(None, 3), [-1, 0]), "[n1,0]", id="reshape divides by no empty size"),
        pytest.param(lambda: ops.tile(fed(None, 2), [3, 1]), "[3*batch,2]", id="tile multiplies"),
        pytest.param(
            lambda: ops.conv2d(fed(None, None, 9, 1), gc.zeros([5, 5, 1, 8]), strides=[1, 2, 1, 1], padding="VALID"),
            "[batch,(n1-3)//2,5,8]",
            id="a window that slides",
        ),
        pytest.param(
            lambda: ops.fill(ops.add(ops.mul(ops.shape(fed(None, 3)), 2), 1), 0.0), "[2*batch+1,7]", id="values are calculated with"
        ),
        pytest.param(lambda: ops.fill(ops.floor_div(ops.shape(fed(None, 8)), 2), 0.0), "[batch//2,4]", id="values are divided"),
        pytest.param(lambda: ops.add(gc.concat([x := fed(None), x], 0), ops.tile(x, [2])), "[2*batch]", id="equal sums are the same size"),
        pytest.param(lambda: ops.add(fed(None, 3), fed(None, 3)), "[broadcast(batch,batch2),3]", id="what broadcasting gives is said"),
        pytest.param(
            lambda: ops.tile(ops.mul(ops.add(fed(None), fed(None)), fed(None)), [2]),
            "[2*broadcast(batch,batch2,batch3)]",
            id="what is broadcast again is one broadcast",
        ),
        pytest.param(
            lambda: ops.add(x := ops.add(fed(None), fed(None)), x), "[broadcast(batch,batch2)]", id="the same broadcast is the same"
        ),
    ],
)
def test_unknown_sizes_are_expressions(make: Callable[[], Any], expected: str, graph: gc.Graph) -> None:
    tensor = make()
    assert tensor.graph is graph
    assert text(tensor) == expected
    assert text(tensor) in repr(tensor)


def test_merged_sizes_are_equal_from_then_on(graph: gc.Graph) -> None:
    x, t = fed(None, 10), fed(None, 10)
    assert (text(x), text(t)) == ("[batch,10]", "[batch2,10]")
    both = ops.add_n([x, t])
    assert text(x) == text(t) == text(both) == "[batch,10]"
    assert graph.symbols().equalities == ["batch2 = batch"]


def test_a_size_that_is_found_out_takes_the_place_of_the_name(graph: gc.Graph) -> None:
    x = fed(5, None)
    ops.mat_mul(x, gc.zeros([784, 10]))
    assert str(x.shape) == "[5,?]"
    assert text(x) == "[5,784]"
    assert graph.symbols().equalities == ["n1 = 784"]


def test_an_equation_is_solved_for_its_name(graph: gc.Graph) -> None:
    x = fed(5, None)
    ops.mat_mul(ops.pad(gc.concat([x, x], 1), [[0, 0], [0, 1]]), gc.zeros([9, 2]))
    assert text(x) == "[5,4]"
    y = fed(3, None)
    ops.mat_mul(gc.concat([y, y], 1), gc.zeros([9, 2]))
    assert text(y) == "[3,n2]"
    assert [f"{a} = {b}" for a, b in graph.symbols().contradictions] == ["2*n2 = 9"]


def test_a_name_within_a_quotient_is_replaced_too(graph: gc.Graph) -> None:
    x = fed(1, None, 9, 1)
    y = ops.conv2d(x, gc.zeros([5, 5, 1, 8]), strides=[1, 2, 1, 1], padding="VALID")
    assert text(y) == "[1,(n1-3)//2,5,8]"
    ops.add_n([x, fed(1, 28, 9, 1)])
    assert text(y) == "[1,12,5,8]"


def test_an_equation_of_several_names_is_kept(graph: gc.Graph) -> None:
    x, y = fed(None, None), fed(None, None)
    ops.add_n([gc.concat([x, x], 0), gc.concat([y, y, y], 0)])
    assert "2*batch = 3*batch2" in graph.symbols().equalities
    assert "n2 = n1" in graph.symbols().equalities


def test_a_broadcast_is_less_as_more_is_known(graph: gc.Graph) -> None:
    x, t, s = fed(None), fed(None), fed(None)
    both, other = ops.add(x, t), ops.add(x, s)
    assert (text(both), text(other)) == ("[broadcast(batch,batch2)]", "[broadcast(batch,batch3)]")
    ops.add_n([x, t])
    assert text(both) == "[batch]"
    ops.add_n([s, gc.zeros([7])])
    assert text(other) == "[7]"
    ops.add_n([t, gc.zeros([1])])
    assert text(both) == "[1]"


DOUBLED = "Doubled(x:float) -> (y:float) {\n  zero = Const[dtype=int32, value=Tensor<type: int32 shape: [] values: 0>]()\n  y = ConcatV2[T=float, N=2](x, x, zero)\n}"
TILED = "Tiled(x:float) -> (y:float) {\n  twice = Const[dtype=int32, value=Tensor<type: int32 shape: [2] values: 2 1>]()\n  y = Tile[T=float](x, twice)\n}"


@pytest.mark.parametrize(
    ("op", "given", "attrs"),
    [
        ("PartitionedCall", [], {"f": Func("Doubled")}),
        ("StatelessIf", [True], {"then_branch": Func("Doubled"), "else_branch": Func("Tiled")}),
        ("StatelessCase", [0], {"branches": [Func("Tiled"), Func("Doubled"), Func("Tiled")]}),
    ],
)
def test_names_enter_functions_and_leave_in_computed_sizes(op: str, given: list[Any], attrs: dict[str, Any], graph: gc.Graph) -> None:
    for function in (DOUBLED, TILED):
        graph.library.add_function_def(gc.define_function(function))
    y = graph.apply_op(op, [*given, [fed(None, 3)]], {"Tout": [gc.float32], **attrs}).outputs[0]
    assert text(y) == "[2*batch,3]"


def test_equalities_of_a_branch_hold_only_in_it(graph: gc.Graph) -> None:
    x, t = fed(None, 10), fed(None, 10)
    (same,) = cond(gc.placeholder(gc.bool_, []), [x, t], lambda a, b: [ops.add_n([a, b])], lambda a, _: [ops.tanh(a)])
    assert graph.symbols().equalities == []
    assert text(same) == "[batch,10]"
    ops.add_n([same, fed(None, 10)])
    assert graph.symbols().equalities == ["batch3 = batch"], "after the branch is no branch any more"


def test_names_stay_while_cells_change_and_equalities_go_with_their_nodes(graph: gc.Graph) -> None:
    x, t = fed(None, 10), fed(None, 10)
    both = ops.add_n([x, t])
    graph.remove_node(both.node)
    assert (text(x), text(t)) == ("[batch,10]", "[batch2,10]")

    def fail() -> None:
        with graph.transaction():
            ops.add_n([x, t])
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert graph.symbols().equalities == []


def test_a_copy_has_the_same_names(graph: gc.Graph) -> None:
    ops.add_n([fed(None, 10), fed(None, 10)])
    copied = graph.copy()
    assert copied.symbols() == graph.symbols()
    with copied.as_default():
        assert text(fed(None)) == "[batch3]"


def test_an_explanation_uses_the_names(graph: gc.Graph) -> None:
    x = fed(None, 3)
    found = gc.explain_shape(gc.concat([x, x], 0))
    assert found.shape == "[2*batch,3]"
    assert found.dimensions[0].statement == "dimension 0 of `concat:0` = 2*batch"
    assert graph.shape_text(x) == "[batch,3]"


def test_other_graphs_have_no_names_and_other_ways_are_refused() -> None:
    with gc.Graph().as_default() as graph:
        x = fed(None, 3)
        assert (text(x), repr(x)) == ("[?,3]", "<gc.Tensor 'Placeholder:0' float [?,3]>")
        assert graph.symbols().equalities == []
    with pytest.raises(InvalidArgumentError, match="Required infer='symbolic' or nothing, got infer='exact'"):
        gc.Graph(infer="exact")


def test_symbolic_shapes_agree_with_ordinary_ones() -> None:
    def build() -> list[str]:
        x = fed(None, 28, 28, 1)
        h = ops.conv2d(x, gc.zeros([5, 5, 1, 8]), strides=[1, 1, 1, 1], padding="VALID")
        flat = ops.reshape(h, ops.pack([part(h, 0), 24 * 24 * 8]))
        y = gc.softmax(ops.mat_mul(flat, gc.zeros([24 * 24 * 8, 10])))
        loss = -gc.reduce_mean(gc.reduce_sum(fed(None, 10) * gc.log(y), 1), 0)
        gc.gradients(loss, [x])
        return [str(tensor.shape) for node in x.graph.nodes for tensor in node.outputs]

    with gc.Graph().as_default():
        ordinary = build()
    with gc.Graph(infer="symbolic").as_default():
        assert build() == ordinary


# ---- expressions ---------------------------------------------------------------------------------------------------------

NAMES = {"n1": 3, "n2": 5, "batch": 32}


def combined(parts: tuple[Expression, Expression, str]) -> Expression:
    a, b, operator = parts
    if operator == "/":
        return a // symbol("n2")
    if operator == "b":
        return broadcast(a * b, a * b, constant(1))  # equal sizes may be broadcast
    return a + b if operator == "+" else a - b if operator == "-" else a * b


expressions = st.recursive(
    st.sampled_from([symbol(name) for name in NAMES]) | st.integers(0, 9).map(constant),
    lambda inner: st.tuples(inner, inner, st.sampled_from("+-*/b")).map(combined),
    max_leaves=8,
)


def value(expression: Expression) -> int:
    result: int = eval(str(expression), {}, dict(NAMES))
    return result


@settings(max_examples=150, deadline=None)
@given(expressions, expressions, st.integers(1, 9))
def test_expressions_calculate_as_numbers_do(a: Expression, b: Expression, divisor: int) -> None:
    assert value(a + b) == value(a) + value(b)
    assert value(a - b) == value(a) - value(b)
    assert value(a * b) == value(a) * value(b)
    assert value(a // constant(divisor)) == value(a) // divisor
    assert a + b == b + a
    assert (a - b) + b == a
    assert a * constant(divisor) // constant(divisor) == a


def test_expressions_print_shortest() -> None:
    n = symbol("n1")
    printed = [
        n * constant(2) + constant(1),
        n - n,
        n * n - constant(3),
        constant(-2) * n,
        (n + constant(3)) // constant(2),
        n // symbol("n2"),
    ]
    assert [str(each) for each in printed] == ["2*n1+1", "0", "n1*n1-3", "-2*n1", "(n1+3)//2", "n1//n2"]
    assert (constant(7).constant, n.constant, n.name, (n + n).name) == (7, None, "n1", "")
    assert str((n + constant(1)).replaced({"n1": symbol("batch")})) == "batch+1"
