"""The shape refiner, which keeps a context for each node."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.attrs import Func, as_attr_value
from graphcore.definitions import PRODUCER_VERSION, NodeDef, OpDef, VersionDef
from graphcore.errors import FailedPreconditionError, InternalError, InvalidArgumentError, NotFoundError
from graphcore.functions import define_function
from graphcore.graph import Node
from graphcore.graph.shapes.constant_values import MAX_CACHED_ELEMENTS
from graphcore.inference import InferenceContext, ShapeAndType, ShapeHandle, same_defined_shape, same_handle_data, shape_of_sizes
from graphcore.registry import OpRegistry
from tests.support.shape_rows import shape

ops: Any = gc.ops
apply: Any = gc.apply_op


@pytest.fixture(autouse=True)
def graph() -> Iterator[gc.Graph]:
    graph = gc.Graph()
    with graph.as_default():
        yield graph


@pytest.fixture
def refiner() -> gc.ShapeRefiner:
    return gc.ShapeRefiner(PRODUCER_VERSION)


def add_all(refiner: gc.ShapeRefiner, graph: gc.Graph) -> None:
    for node in graph.nodes:
        refiner.add_node(node)


def shape_in(refiner: gc.ShapeRefiner, tensor: Any) -> str:
    context = refiner.get_context(tensor.node)
    assert context is not None
    return str(context.output(tensor.index))


def shaped_by(tensor: Any) -> Any:
    """An op with an output shape given by its input's value."""
    return apply("RandomUniform", [tensor], {"dtype": gc.float32})


# ---- contexts ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make",
    [lambda _: PRODUCER_VERSION, lambda _: VersionDef(PRODUCER_VERSION), lambda graph: graph],
    ids=["number", "versions", "graph"],
)
def test_s7_a_refiner_knows_the_version_of_what_it_looks_at(make: Callable[[gc.Graph], Any], graph: gc.Graph) -> None:
    assert gc.ShapeRefiner(make(graph), gc.op_registry).graph_def_version == PRODUCER_VERSION


def test_s7_a_node_that_was_added_has_a_context_and_the_graph_is_not_changed(refiner: gc.ShapeRefiner, graph: gc.Graph) -> None:
    x = gc.placeholder(gc.float32, [2, 3])
    y = ops.mat_mul(x, gc.placeholder(gc.float32, [3, 4]))
    assert refiner.get_context(y.node) is None
    add_all(refiner, graph)
    context = refiner.get_context(y.node)
    assert context is not None
    assert context is refiner.get_extended_context(y.node)
    assert (context.node, context.input_types, context.output_types) == (y.node, (gc.float32, gc.float32), (gc.float32,))
    assert isinstance(context, gc.ExtendedInferenceContext)
    assert (context.input_type(1), context.output_type(0)) == (gc.float32, gc.float32)
    for ask in (context.input_type, context.output_type):
        with pytest.raises(InvalidArgumentError, match=f"put -1 not found for node {y.node.name}"):
            ask(-1)
    assert context.get_context() is context
    assert [str(given) for given in context.inputs] == ["[2,3]", "[3,4]"]
    refiner.set_unknown_shape(y.node, 0)
    assert shape_in(refiner, y) == "?"
    assert str(y.shape) == "[2,4]"


def test_s7_inputs_that_were_not_added_count_as_unknown(refiner: gc.ShapeRefiner) -> None:
    y = ops.tanh(gc.placeholder(gc.float32, [2, 3]))
    refiner.add_node(y.node)
    assert shape_in(refiner, y) == "?"


def test_s7_inputs_that_do_not_fit_are_refused(refiner: gc.ShapeRefiner, graph: gc.Graph) -> None:
    a, b = gc.placeholder(gc.float32, name="a"), gc.placeholder(gc.float32, name="b")
    y = ops.mat_mul(a, b)
    refiner.add_node(a.node)
    refiner.add_node(b.node)
    refiner.set_shape(a.node, 0, gc.Shape([2, 3]))
    refiner.set_shape(b.node, 0, gc.Shape([4, 5]))
    with pytest.raises(InvalidArgumentError, match=r"Dimensions must be equal, but are 3 and 4 for 'MatMul' \(op: 'MatMul'\)"):
        refiner.add_node(y.node)
    assert refiner.get_context(y.node) is None
    assert graph.find("MatMul") is y.node


def test_s7_a_missing_shape_function_is_refused_unless_that_is_allowed() -> None:
    registry = OpRegistry()
    registry.register(OpDef(name="Shapeless", output_arg=(gc.parse_op_signature("S() -> (o:float)").output_arg)))
    graph = gc.Graph(registry)
    graph.refiner.require_shape_inference_fns = False
    node = graph.add_node(NodeDef("s", "Shapeless"))
    assert node.outputs[0].shape.rank is None
    refiner = gc.ShapeRefiner(graph, registry)
    with pytest.raises(InvalidArgumentError, match=r"No shape inference function exists for op 'Shapeless', did you forget to define it\?"):
        refiner.add_node(node)
    refiner.require_shape_inference_fns = False
    refiner.add_node(node)
    assert shape_in(refiner, node.outputs[0]) == "?"


def test_s7_ops_are_looked_up_in_the_registry(graph: gc.Graph) -> None:
    x = gc.placeholder(gc.float32)
    with pytest.raises(NotFoundError, match="Op type not registered 'Placeholder'"):
        gc.ShapeRefiner(graph, OpRegistry()).add_node(x.node)


def test_s7_shape_functions_see_the_version(graph: gc.Graph) -> None:
    x = gc.placeholder(gc.float32, [])
    old = gc.ShapeRefiner(23)
    old.add_node(x.node)
    assert shape_in(old, x) == "?"
    new = gc.ShapeRefiner(24)
    new.add_node(x.node)
    assert shape_in(new, x) == "[]"


# ---- set_shape -----------------------------------------------------------------------------------------------------------


def test_s7_set_shape_merges_with_what_is_known(refiner: gc.ShapeRefiner) -> None:
    x = gc.placeholder(gc.float32)
    refiner.add_node(x.node)
    assert refiner.set_shape(x.node, 0, gc.Shape([2, None]))
    assert shape_in(refiner, x) == "[2,?]"
    assert refiner.set_shape(x.node, 0, shape("[?,2]"))
    assert shape_in(refiner, x) == "[2,2]"
    assert not refiner.set_shape(x.node, 0, gc.Shape([None, 2]))


def test_s7_set_shape_refuses_what_cannot_be(refiner: gc.ShapeRefiner) -> None:
    x, other = gc.placeholder(gc.float32, [2, 2]), gc.placeholder(gc.float32)
    refiner.add_node(x.node)
    for port in (-1, 1):
        with pytest.raises(InvalidArgumentError, match=f"output_port '{port}' is out of range"):
            refiner.set_shape(x.node, port, gc.Shape([2]))
    with pytest.raises(InternalError, match=f"Could not find context for {other.node.name}"):
        refiner.set_shape(other.node, 0, gc.Shape([2]))
    with pytest.raises(InternalError, match=f"Could not find context for {other.node.name}"):
        refiner.set_unknown_shape(other.node, 0)
    with pytest.raises(InvalidArgumentError, match="Shapes must be equal rank, but are 2 and 1"):
        refiner.set_shape(x.node, 0, gc.Shape([2]))
    with pytest.raises(InvalidArgumentError, match="Dimension 1 in both shapes must be equal, but are 2 and 4"):
        refiner.set_shape(x.node, 0, gc.Shape([2, 4]))


# ---- update_node ---------------------------------------------------------------------------------------------------------


def test_s7_update_node_follows_what_has_been_learned_of_its_inputs(refiner: gc.ShapeRefiner, graph: gc.Graph) -> None:
    x = gc.placeholder(gc.float32)
    y = ops.mat_mul(x, gc.placeholder(gc.float32, [3, 4]))
    add_all(refiner, graph)
    assert shape_in(refiner, y) == "[?,4]"
    assert not refiner.update_node(y.node)
    refiner.set_shape(x.node, 0, gc.Shape([2, 3]))
    assert refiner.update_node(y.node)
    assert shape_in(refiner, y) == "[2,4]"
    assert not refiner.update_node(y.node)


def test_s7_update_node_without_relax_keeps_what_was_known(refiner: gc.ShapeRefiner, graph: gc.Graph) -> None:
    x = gc.placeholder(gc.float32, [2, 3])
    y = ops.tanh(x)
    add_all(refiner, graph)
    refiner.set_unknown_shape(x.node, 0)
    assert not refiner.update_node(y.node)
    assert shape_in(refiner, y) == "[2,3]"
    assert refiner.update_node(y.node, relax=True)
    assert shape_in(refiner, y) == "?"


def test_s7_update_node_adds_a_node_that_was_not_there(refiner: gc.ShapeRefiner) -> None:
    x = gc.placeholder(gc.float32, [2])
    assert refiner.update_node(x.node)
    assert shape_in(refiner, x) == "[2]"


def test_s7_update_node_needs_its_inputs(refiner: gc.ShapeRefiner) -> None:
    y = ops.tanh(gc.placeholder(gc.float32, [2], name="x"))
    refiner.add_node(y.node)
    with pytest.raises(FailedPreconditionError, match=r"Input 0 \('x'\) for 'Tanh' was not previously added to ShapeRefiner\."):
        refiner.update_node(y.node)


def test_s7_values_may_have_changed_where_they_are_used(refiner: gc.ShapeRefiner, graph: gc.Graph) -> None:
    x = gc.placeholder(gc.float32)
    y = shaped_by(ops.shape(x))
    add_all(refiner, graph)
    assert shape_in(refiner, y) == "?"
    refiner.set_shape(x.node, 0, gc.Shape([2, None]))
    assert refiner.update_node(y.node.inputs[0].node)
    assert refiner.update_node(y.node)
    assert shape_in(refiner, y) == "[2,?]"


def queue_nodes() -> tuple[Node, Node]:
    """A queue handle and an op that dequeues, registered here as test ops."""

    def dequeue(c: InferenceContext) -> None:
        data = c.input_handle_shapes_and_types(0)
        c.set_output(0, data[0].shape if data else c.unknown_shape())

    registry = OpRegistry()
    registry.register(gc.parse_op_signature("FIFOQueueV2() -> (handle:resource)"), lambda c: c.set_output(0, c.scalar()))
    registry.register(gc.parse_op_signature("QueueDequeueV2[T:type](handle:resource) -> (component:T)"), dequeue)
    graph = gc.Graph(registry)
    queue = graph.add_node(NodeDef("queue", "FIFOQueueV2"))
    return queue, graph.add_node(NodeDef("dequeue", "QueueDequeueV2", ("queue",), "", {"T": as_attr_value(gc.float32)}))


def test_s7_queue_handles_carry_element_shapes(refiner: gc.ShapeRefiner) -> None:
    queue, dequeue = queue_nodes()
    refiner.add_node(queue)
    refiner.add_node(dequeue)
    assert shape_in(refiner, dequeue.outputs[0]) == "?"
    context = refiner.get_context(queue)
    assert context is not None

    def inject(element: ShapeHandle) -> None:
        context.set_output_handle_shapes_and_types(0, [ShapeAndType(element, gc.float32)])

    inject(shape("[3,7]"))
    assert refiner.update_node(dequeue)
    assert shape_in(refiner, dequeue.outputs[0]) == "[3,7]"
    inject(shape("[2,7]"))
    assert refiner.update_node(dequeue, relax=True)
    assert shape_in(refiner, dequeue.outputs[0]) == "[?,7]"
    partly = shape("[?,7]")
    inject(partly)
    assert refiner.update_node(dequeue, relax=True)
    assert shape_in(refiner, dequeue.outputs[0]) == "[?,7]"
    found, wanted = refiner.output_shape(dequeue, 0).dims, partly.dims
    assert found is not None
    assert wanted is not None
    assert found[0] is wanted[0]
    inject(partly)
    assert not refiner.update_node(dequeue, relax=True)


# ---- values --------------------------------------------------------------------------------------------------------------


def test_s7_constants_are_read_and_computed_when_a_shape_function_asks(refiner: gc.ShapeRefiner, graph: gc.Graph) -> None:
    x = gc.placeholder(gc.float32, [3, 2])
    direct = ops.arg_max(x, gc.constant(1))
    computed = ops.arg_max(x, ops.sub(gc.constant(3), gc.constant(2)))
    unknown = ops.arg_max(x, gc.placeholder(gc.int32, []))
    add_all(refiner, graph)
    assert [shape_in(refiner, y) for y in (direct, computed, unknown)] == ["[3]", "[3]", "[?]"]


def test_s7_without_constant_propagation_only_constants_are_read(refiner: gc.ShapeRefiner, graph: gc.Graph) -> None:
    x = gc.placeholder(gc.float32, [3, 2])
    direct = ops.arg_max(x, gc.constant(1))
    computed = ops.arg_max(x, ops.sub(gc.constant(3), gc.constant(2)))
    refiner.disable_constant_propagation = True
    add_all(refiner, graph)
    assert [shape_in(refiner, y) for y in (direct, computed)] == ["[3]", "[?]"]
    graph.refiner.disable_constant_propagation = True
    again = ops.arg_max(x, ops.sub(gc.constant(3), gc.constant(2)))
    assert str(again.shape) == "[?]"


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        pytest.param(lambda: ops.slice(ops.shape(gc.Variable(np.zeros([2, 4], np.float32))), [1], [1]), "[4]", id="S7 Slice"),
        pytest.param(lambda: ops.range(1, 11, 3), "[1,4,7,10]", id="S7 Range"),
        pytest.param(lambda: ops.shape(gc.placeholder(gc.float32, [1, 2])), "[1,2]", id="S7 Shape"),
        pytest.param(lambda: ops.expand_dims(ops.size(gc.placeholder(gc.float32, [3, 4])), 0), "[12]", id="S7 Size"),
        pytest.param(lambda: ops.expand_dims(ops.rank(gc.placeholder(gc.float32, [None, 4])), 0), "[2]", id="S7 Rank"),
        pytest.param(lambda: ops.pack([10, 20, gc.placeholder(gc.int32, []), 40]), "[10,20,?,40]", id="S7 Pack"),
        pytest.param(lambda: ops.placeholder_with_default(gc.constant([7]), shape=[1]), "[?]", id="S7 PlaceholderWithDefault"),
    ],
)
def test_s7_a_shape_made_from_values(make: Callable[[], Any], expected: str, refiner: gc.ShapeRefiner, graph: gc.Graph) -> None:
    y = shaped_by(make())
    add_all(refiner, graph)
    assert shape_in(refiner, y) == str(y.shape) == expected


def test_s7_a_shared_constant_part_is_evaluated_for_both_users(refiner: gc.ShapeRefiner, graph: gc.Graph) -> None:
    half = ops.floor_div(gc.constant([8, 6]), gc.constant(2))
    first, second = shaped_by(half), shaped_by(ops.add(half, half))
    add_all(refiner, graph)
    assert [shape_in(refiner, y) for y in (first, second)] == ["[4,3]", "[8,6]"]


def test_s7_large_values_are_evaluated_but_not_kept(refiner: gc.ShapeRefiner, graph: gc.Graph) -> None:
    for count in (MAX_CACHED_ELEMENTS, MAX_CACHED_ELEMENTS + 1):
        value = ops.add(gc.constant(np.ones(count, np.int32)), gc.constant(1))
        add_all(refiner, graph)
        found = refiner.evaluate_constant_tensor(value.node, 0)
        assert found is not None
        assert found.tolist() == [2] * count
        again = refiner.evaluate_constant_tensor(value.node, 0)
        assert (again is found) is (count == MAX_CACHED_ELEMENTS)


def test_s7_a_computed_size_that_does_not_fit_int32_is_refused(refiner: gc.ShapeRefiner, graph: gc.Graph) -> None:
    x = gc.placeholder(gc.float32)
    fits = ops.size(x, out_type=gc.int64)
    size = ops.size(x)
    user = ops.range(0, size, 1)
    for node in graph.nodes:
        if node is not user.node:
            refiner.add_node(node)
    refiner.set_shape(x.node, 0, gc.Shape([2**20, 2**20]))
    with pytest.raises(InvalidArgumentError, match="out of int32 range"):
        refiner.add_node(user.node)
    found = refiner.evaluate_constant_tensor(fits.node, 0)
    assert found is not None
    assert found == 2**40


@pytest.mark.parametrize(
    ("make", "text"),
    [
        pytest.param(lambda: gc.constant([1, -2]), "Invalid value in tensor used for shape: -2", id="S7 -2"),
        pytest.param(lambda: ops.pack([[1, 2], gc.placeholder(gc.int32, [2])]), "but is rank 2", id="S7 Pack of vectors"),
    ],
)
def test_s7_a_value_that_is_no_shape_is_refused(make: Callable[[], Any], text: str) -> None:
    with pytest.raises(InvalidArgumentError, match=text):
        shaped_by(make())


# ---- comparing -----------------------------------------------------------------------------------------------------------


def test_s7_defined_shapes_are_the_same_by_handle_or_by_sizes() -> None:
    unknown, partly = shape("?"), shape("[1,?]")
    assert same_defined_shape(unknown, unknown)
    assert same_defined_shape(partly, partly)
    assert same_defined_shape(shape("[1,2]"), shape("[1,2]"))
    for a, b in (("?", "?"), ("[1,?]", "[1,?]"), ("[1,2]", "[1,3]"), ("[1]", "[1,2]"), ("[1]", "?")):
        assert not same_defined_shape(shape(a), shape(b))


def test_s7_any_other_shape_or_type_counts_as_updated() -> None:
    two = ShapeAndType(shape_of_sizes([2]), gc.float32)
    assert same_handle_data(None, [])
    assert same_handle_data([two], [ShapeAndType(shape_of_sizes([2]), gc.float32)])
    for other in (
        [],
        [two, two],
        [ShapeAndType(shape_of_sizes([3]), gc.float32)],
        [ShapeAndType(shape_of_sizes([-1]), gc.float32)],
        [ShapeAndType(shape_of_sizes([2]), gc.int32)],
    ):
        assert not same_handle_data([two], other)


# ---- functions -----------------------------------------------------------------------------------------------------------

TIMES_TWO = "XTimesTwo[T:{float, int32}](x:T) -> (y:T) { y = Add[T=$T](x, x) }"
OF_SHAPE = "OfShape[](n:int32) -> (y:float) { y = RandomUniform[T=int32, dtype=float](n) }"
FOUR = "XTimesFour[T:{float, int32}](x:T) -> (y:T) { two = XTimesTwo[T=$T](x)\n y = XTimesTwo[T=$T](two:y:0) }"


def add_functions(graph: gc.Graph, *texts: str) -> None:
    for text in texts:
        graph.library.add_function_def(define_function(text, look_up=graph.library.look_up_op_def))


def test_s7_a_call_is_unknown_without_functions_and_inferred_with_them(refiner: gc.ShapeRefiner, graph: gc.Graph) -> None:
    add_functions(graph, TIMES_TWO)
    y = apply("XTimesTwo", [gc.placeholder(gc.float32, [1, 2])])
    add_all(refiner, graph)
    assert shape_in(refiner, y) == "?"
    refiner.set_function_library_for_shape_inference(graph.library)
    add_all(refiner, graph)
    assert shape_in(refiner, y) == str(y.shape) == "[1,2]"


def test_s7_a_function_that_is_not_in_the_library_is_unknown(refiner: gc.ShapeRefiner, graph: gc.Graph) -> None:
    add_functions(graph, TIMES_TWO)
    y = apply("XTimesTwo", [gc.placeholder(gc.float32, [1, 2])])
    refiner.set_function_library_for_shape_inference(gc.FunctionLibraryDefinition())
    add_all(refiner, graph)
    assert shape_in(refiner, y) == "?"


def test_s7_functions_call_functions_and_read_the_values_of_their_arguments(graph: gc.Graph) -> None:
    add_functions(graph, TIMES_TWO, FOUR, OF_SHAPE)
    x = gc.placeholder(gc.float32, [3, None])
    assert str(apply("XTimesFour", [x]).shape) == "[3,?]"
    assert str(apply("OfShape", [gc.constant([4, 5])]).shape) == "[4,5]"
    assert str(apply("OfShape", [ops.shape(x)]).shape) == "[3,?]"
    assert str(apply("OfShape", [gc.placeholder(gc.int32, [2])]).shape) == "[?,?]"


def test_s7_a_call_by_attr_is_inferred_and_a_function_that_calls_itself_is_not(graph: gc.Graph) -> None:
    add_functions(graph, TIMES_TWO)
    call = apply("PartitionedCall", [[gc.placeholder(gc.float32, [7])]], {"Tout": [gc.float32], "f": Func("XTimesTwo", {"T": gc.float32})})
    tensor: Any = call[0] if isinstance(call, list) else call
    assert str(tensor.shape) == "[7]"
    add_functions(graph, "Down[](x:float) -> (y:float) { y = PartitionedCall[Tin={float}, Tout={float}, f=Down](x) }")
    assert str(apply("Down", [gc.placeholder(gc.float32, [7])]).shape) == "?"


def test_s7_what_does_not_fit_in_a_body_is_told(graph: gc.Graph) -> None:
    add_functions(graph, "Product[](a:float, b:float) -> (y:float) { y = MatMul[T=float](a, b) }")
    with pytest.raises(InvalidArgumentError, match=r"Dimensions must be equal, but are 3 and 4 for 'y' \(op: 'MatMul'\)"):
        apply("Product", [gc.placeholder(gc.float32, [2, 3]), gc.placeholder(gc.float32, [4, 5])])


def test_s7_one_body_serves_all_calls_until_the_function_is_replaced(graph: gc.Graph) -> None:
    add_functions(graph, TIMES_TWO)
    first = apply("XTimesTwo", [gc.placeholder(gc.float32, [1])])
    bodies = graph.refiner.bodies
    body = bodies.body_of(graph.library, gc.Graph, "XTimesTwo", {"T": gc.float32})
    assert body is bodies.body_of(graph.library, gc.Graph, "XTimesTwo", {"T": gc.float32})
    assert body is not bodies.body_of(graph.library, gc.Graph, "XTimesTwo", {"T": gc.int32})
    graph.library.replace_function(
        "XTimesTwo",
        define_function(
            "XTimesTwo[T:{float, int32}](x:T) -> (y:T) { y = Sum[T=$T, Tidx=int32](x, z:output:0)\n z = Const[dtype=int32, value=Tensor<type: int32 shape: [] values: 0>]() }".replace(
                "\n", "\n "
            )
        ),
    )
    second = apply("XTimesTwo", [gc.placeholder(gc.float32, [1])])
    assert (str(first.shape), str(second.shape)) == ("[1]", "[]")


# ---- resources and loops ---------------------------------------------------------------------------------------------------


def test_s7_a_resource_handle_carries_the_shape_of_its_variable(refiner: gc.ShapeRefiner, graph: gc.Graph) -> None:
    handle: Any = apply("VarHandleOp", attrs={"dtype": gc.float32, "shape": gc.Shape([3, None])})
    read = ops.read_variable_op(ops.identity(handle), dtype=gc.float32)
    length = ops.variable_shape(handle)
    add_all(refiner, graph)
    for tensor, expected in ((read, "[3,?]"), (length, "[2]")):
        assert shape_in(refiner, tensor) == str(tensor.shape) == expected


def loop(graph: gc.Graph, start: Any, body: Callable[[Any], Any]) -> Any:
    """`start` goes around a loop with an unknown condition; returns the loop's head."""
    attrs = {"frame_name": "loop"}
    enter = apply("Enter", [start], attrs)
    head: Any = apply("Merge", [[enter, enter]], name="head")
    out = head[0] if isinstance(head, list | tuple) else head.node.outputs[0]
    switched: Any = apply("Switch", [out, gc.placeholder(gc.bool_, [])])
    again: Any = apply("NextIteration", [body(switched[1])])
    graph.update_edge(again.node, 0, out.node, 1)
    return out


@pytest.mark.parametrize(
    ("start", "body", "expected"),
    [
        pytest.param([2, 3], ops.tanh, "[2,3]", id="S7 a loop that keeps the shape"),
        pytest.param([2, 3], lambda x: ops.concat_v2([x, x], 0), "[?,3]", id="S7 a loop that makes it longer"),
        pytest.param([2, 3], lambda x: ops.expand_dims(x, 0), "?", id="S7 a loop that adds dimensions"),
        pytest.param([2, 2], lambda x: ops.transpose(ops.concat_v2([x, x], 0), [1, 0]), "[?,?]", id="S7 a loop that spreads"),
        pytest.param([None, 3], lambda x: ops.add(x, x), "[?,3]", id="S7 an unknown size stays"),
    ],
)
def test_s7_what_is_known_around_a_loop_holds_in_every_iteration(
    start: list[int | None], body: Callable[[Any], Any], expected: str, graph: gc.Graph
) -> None:
    x = gc.placeholder(gc.float32, start)
    head = loop(graph, x, body)
    assert str(head.shape) == expected
    assert all(node.error is None for node in graph.nodes)


def test_s7_a_loop_follows_its_start_and_its_body(graph: gc.Graph) -> None:
    x = gc.placeholder(gc.float32, [2, 3], name="x")
    k = gc.placeholder(gc.float32, [0, 3], name="k")
    head = loop(graph, x, lambda value: ops.concat_v2([value, apply("Enter", [k], {"frame_name": "loop", "is_constant": True})], 0))
    assert str(head.shape) == "[2,3]"
    graph.set_attr(k.node, "shape", gc.Shape([1, 3]))
    assert str(head.shape) == "[?,3]"
    graph.set_attr(x.node, "shape", gc.Shape([5, 3]))
    assert str(head.shape) == "[?,3]"
    graph.set_attr(k.node, "shape", gc.Shape([0, 3]))
    assert str(head.shape) == "[5,3]"
