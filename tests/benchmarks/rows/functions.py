"""Functions: instantiation, overhead of a call, inlining of many calls."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

from tests.benchmarks.work import Array, Budget, Row, Work, random_floats

NODES = 100
CALLED = 10
CALLS, INLINED = 1_000, 20
LONG = 5_000
RUNS, ROUNDS = 200, 15
X = random_floats(7, 4)
Run = Callable[[], Array]


def our_function(name: str, nodes: int, types: str = "") -> Any:
    """A chain of Tanh as a function; polymorphic if types are given."""
    import graphcore as gc

    dtype, signature, attr = ("T", f"[T:{types}]", "$T") if types else ("float", "", "float")
    lines = [f"  n{i} = Tanh[T={attr}]({'x' if i == 0 else f'n{i - 1}:y:0'})" for i in range(nodes)]
    body = "\n".join(["  @attr _noinline = true", *lines] if name == "Call" else lines)
    return gc.parse_function(f"{name}{signature}(x:{dtype}) -> (y:{dtype}) {{\n{body}\n  return y = n{nodes - 1}:y:0\n}}")


def tensorflow_function(name: str, nodes: int) -> Any:
    """The same in TensorFlow, traced for four numbers."""
    import tensorflow as tf

    def python_function(x: Any) -> Any:
        for _ in range(nodes):
            x = tf.raw_ops.Tanh(x=x)
        return x

    attributes = {"_noinline": True} if name == "Call" else {}
    traced = tf.function(python_function, autograph=False, experimental_attributes=attributes)
    return traced.get_concrete_function(tf.TensorSpec([4], tf.float32))


def our_instantiation() -> Work:
    """From the definition to a body: attrs bound, nodes made, shapes inferred."""
    import graphcore as gc

    library = gc.FunctionLibraryDefinition()
    library.add_function_def(our_function("Hundred", NODES, "{float, double}"))

    def run(functions: Any) -> object:
        return functions.get_function_body(functions.instantiate("Hundred", {"T": gc.float32}))

    return Work(run=run, prepare=lambda: gc.FunctionLibraryRuntime(library))


def tensorflow_instantiation() -> Work:
    """From the definition to a graph."""
    from tensorflow.python.framework.function_def_to_graph import function_def_to_graph

    definition = tensorflow_function("Hundred", NODES).function_def
    return Work(run=lambda: function_def_to_graph(definition))


def our_run(called: bool) -> Run:
    """A session's run of ten nodes, with or without a call."""
    import graphcore as gc

    graph = gc.Graph()
    with graph.as_default():
        x = y = gc.placeholder(gc.float32, [4], name="x")
        if called:
            graph.library.add_function_def(our_function("Call", CALLED))
            y = graph.apply_op("Call", [x]).outputs[0]
        else:
            for _ in range(CALLED):
                y = gc.ops.tanh(y)
    session = gc.Session(graph=graph)
    return lambda: session.run(y, {x: X})


def tensorflow_run(called: bool) -> Run:
    """The same in TensorFlow."""
    import tensorflow as tf

    graph = tf.Graph()
    with graph.as_default():
        x = y = tf.compat.v1.placeholder(tf.float32, [4], name="x")
        if called:
            y = tensorflow_function("Call", CALLED)(x)
        else:
            for _ in range(CALLED):
                y = tf.raw_ops.Tanh(x=y)
    session = tf.compat.v1.Session(graph=graph)
    return lambda: session.run(y, {x: X})


def call_cost(make: Callable[[bool], Run]) -> Work:
    """The difference between runs with and without a call, measured alternately."""
    with_call, without = make(True), make(False)

    def figure() -> float:
        found = []
        for _ in range(ROUNDS):
            taken = []
            for run in (with_call, without):
                begun = time.perf_counter()
                for _ in range(RUNS):
                    run()
                taken.append((time.perf_counter() - begun) / RUNS)
            found.append(taken[0] - taken[1])
        return max(statistics.median(found), 1e-9)

    return Work(figure=figure, outcome=lambda: [with_call(), without()])


def our_calls() -> tuple[Any, Any]:
    """A graph of a thousand calls, and the called functions."""
    import graphcore as gc

    graph = gc.Graph()
    graph.library.add_function_def(our_function("Twenty", INLINED))
    with graph.as_default():
        y = gc.placeholder(gc.float32, [4], name="x")
        for _ in range(CALLS):
            y = graph.apply_op("Twenty", [y]).outputs[0]
    return gc.InstantiatedFunctions(graph.library), graph


def our_inlining(calls: tuple[Any, Any]) -> object:
    """Replace every call by its nodes."""
    import graphcore as gc

    return gc.expand_inline_functions(*calls)


def tensorflow_inlining() -> Work:
    """The same by TensorFlow's graph optimizer, with function inlining only."""
    import tensorflow as tf
    from tensorflow.core.protobuf import rewriter_config_pb2
    from tensorflow.python.grappler import tf_optimizer

    function = tensorflow_function("Twenty", INLINED)
    with tf.Graph().as_default() as graph:
        y = tf.compat.v1.placeholder(tf.float32, [4], name="x")
        for _ in range(CALLS):
            y = function(y)
        graph.add_to_collection("train_op", y)
        meta_graph = tf.compat.v1.train.export_meta_graph(graph=graph)
    config = tf.compat.v1.ConfigProto()
    options = config.graph_options.rewrite_options
    options.optimizers.append("function")
    options.meta_optimizer_iterations = rewriter_config_pb2.RewriterConfig.ONE
    options.min_graph_nodes = -1
    return Work(run=lambda: tf_optimizer.OptimizeGraph(config, meta_graph), per=CALLS * INLINED)


def our_gradient(size: int) -> tuple[Any, Any, Any]:
    """A session with the gradient of a call of a function of `length` nodes, before its first run."""
    import graphcore as gc

    graph = gc.Graph()
    graph.library.add_function_def(our_function("Long", size))
    with graph.as_default():
        x = gc.placeholder(gc.float32, [4], name="x")
        (gradient,) = gc.gradients(graph.apply_op("Long", [x]).outputs[0], [x])
    return gc.Session(graph=graph), gradient, x


def tensorflow_gradient(size: int) -> tuple[Any, Any, Any]:
    """The same in TensorFlow."""
    import tensorflow as tf

    graph = tf.Graph()
    with graph.as_default():
        x = tf.compat.v1.placeholder(tf.float32, [4], name="x")
        (gradient,) = tf.compat.v1.gradients(tensorflow_function("Long", size)(x), [x])
    return tf.compat.v1.Session(graph=graph), gradient, x


def first_run(made: tuple[Any, Any, Any]) -> object:
    """Instantiate, optimise, plan and run the forward and the backward function."""
    session, gradient, x = made
    return session.run(gradient, {x: X})


INSTANTIATE = Row(
    order=9.0,
    title="instantiate a function of 100 nodes",
    unit="ms",
    budgets=(Budget(1),),
    ours=our_instantiation,
    tensorflow=tensorflow_instantiation,
)
CALL = Row(
    order=9.1,
    title="a call of 10 nodes, besides the nodes",
    unit="us",
    budgets=(Budget(15),),
    ours=lambda: call_cost(our_run),
    tensorflow=lambda: call_cost(tensorflow_run),
)
INLINE = Row(
    order=9.2,
    title="inline 1,000 calls of 20 nodes, a node",
    unit="us",
    budgets=(Budget(20),),
    ours=lambda: Work(run=our_inlining, prepare=our_calls, per=CALLS * INLINED),
    tensorflow=tensorflow_inlining,
)
FIRST_RUN = Row(
    order=9.3,
    title="first run of the gradient of a function of 5,000 nodes, a node",
    unit="us",
    budgets=(Budget(600), Budget(1, "tensorflow")),
    ours=lambda: Work(run=first_run, prepare=lambda: our_gradient(LONG), per=LONG),
    tensorflow=lambda: Work(run=first_run, prepare=lambda: tensorflow_gradient(LONG), per=LONG),
)
