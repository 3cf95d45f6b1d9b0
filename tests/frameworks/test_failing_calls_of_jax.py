"""Calls of JAX functions that fail while traced: the operation, its sizes, the state afterwards."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import graphcore as gc
from graphcore.frontends.foreign import ForeignFunction, ForeignGraph, ForeignNode
from graphcore.frontends.frontend import Call
from graphcore.frontends.lowering import lower
from graphcore.frontends.sources import open_source

jax: Any = pytest.importorskip("jax")
jnp, lax = jax.numpy, jax.lax
pytestmark = pytest.mark.frameworks
X = jnp.ones((2, 4))
KEPT: list[Any] = []


def read(function: Any, *args: Any, **kwargs: Any) -> ForeignGraph:
    return open_source(Call(function, args, kwargs))


def failed_in(function: ForeignFunction) -> ForeignNode:
    (node,) = [node for node in function.nodes if node.error]
    return node


def innermost(graph: ForeignGraph) -> ForeignNode:
    node = failed_in(graph.main)
    while node.bodies:
        node = failed_in(graph.functions[node.bodies["body"]])
    return node


def projected(x: Any, kernel: Any) -> Any:
    with jax.named_scope("proj"):
        return x @ kernel


def transposed_kernel(x: Any, params: Any) -> Any:
    return jax.jit(projected)(jnp.sin(x), params["kernel"])


def wrong_bias(x: Any) -> Any:
    return x + jnp.zeros(3)


def joined(x: Any, y: Any) -> Any:
    return jnp.concatenate([x, y])


def reshaped(x: Any) -> Any:
    return x.reshape(3, 3)


def mixed(x: Any, w: Any) -> Any:
    return jnp.einsum("ij,jk->ik", x, w)


def branching(x: Any) -> Any:
    return x if x.sum() > 0 else -x


def sized_by_value(n: Any) -> Any:
    return jnp.zeros(int(n))


def masked(x: Any) -> Any:
    return x[x > 0]


def other_carry(x: Any) -> Any:
    return lax.scan(lambda c, y: ((c + y).astype(jnp.int32), y), jnp.zeros(3), x)


def other_branches(x: Any) -> Any:
    return lax.cond(x.sum() > 0, lambda x: x, lambda _: jnp.zeros(2, int), x)


def in_scan(x: Any) -> Any:
    return lax.scan(lambda c, y: (c, jnp.dot(y, jnp.ones(7))), jnp.zeros(3), x)


def strict(x: Any) -> Any:
    with jax.numpy_dtype_promotion("strict"):
        return x + jnp.arange(4)


def of_leaked(x: Any) -> Any:
    return x + KEPT[0]


def of_two(x: Any, y: Any) -> Any:
    return x + y


def too_large(x: Any) -> Any:
    return x.astype(int) * 3_000_000_000


def other_trees(p: Any, q: Any) -> Any:
    return jax.tree.map(jnp.add, p, q)


def squared(x: Any) -> Any:
    return x @ x


def by_numpy(x: Any) -> Any:
    return np.asarray(x)


def convolved(x: Any, k: Any) -> Any:
    return lax.conv(x, k, (1, 1), "SAME")


def convolved_last(x: Any, k: Any) -> Any:
    return lax.conv_general_dilated(x, k, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def set_first(x: Any) -> Any:
    return x.at[0].set(jnp.ones(3))


def stacked(x: Any) -> Any:
    return jnp.stack([x, x.T])


class Fault(NamedTuple):
    """A call that fails, the op that fails, the line, and what its message says."""

    function: Any
    args: tuple[Any, ...]
    op: str
    line: str
    says: tuple[str, ...]


FAULTS: dict[str, Fault] = {
    "product": Fault(
        transposed_kernel,
        (jnp.ones((3, 4)), {"kernel": jnp.ones((5, 6))}),
        "jax.dot_general",
        "return x @ kernel",
        ("4 is axis 1 of x; 5 is axis 0 of params['kernel']",),
    ),
    "broadcast": Fault(
        wrong_bias, (X,), "jax.add", "return x + jnp.zeros(3)", ("4 is axis 1 of x; 3 is made by broadcast_in_dim (", "Came: (2, 4), (3,).")
    ),
    "concatenate": Fault(
        joined,
        (X, jnp.ones((3, 5))),
        "jax.concatenate",
        "return jnp.concatenate([x, y])",
        ("4 is axis 1 of x; 5 is axis 1 of y.", "all axes but axis 0"),
    ),
    "reshape": Fault(
        reshaped, (X,), "jax.reshape", "return x.reshape(3, 3)", ("Required: a new shape of 8 elements. Came: (3, 3), which has 9.",)
    ),
    "einsum": Fault(
        mixed, (X, jnp.ones((5, 6))), "jax.einsum", 'return jnp.einsum("ij,jk->ik", x, w)', ("4 is axis 1 of x; 5 is axis 0 of w",)
    ),
    "if": Fault(branching, (X,), "jax.bool", "return x if x.sum() > 0 else -x", ("depends on the value of the argument x", "jax.lax.cond")),
    "int": Fault(sized_by_value, (jnp.array(3),), "jax.int", "return jnp.zeros(int(n))", ("argument n", "static_argnums")),
    "mask": Fault(masked, (X,), "jax.getitem", "return x[x > 0]", ("bool[2,4]", "jnp.where(mask, x, 0)")),
    "carry": Fault(
        other_carry,
        (jnp.ones((4, 3)),),
        "jax.scan",
        "return lax.scan(lambda c, y: ((c + y).astype(jnp.int32), y), jnp.zeros(3), x)",
        ("Required: a carry that leaves the body as it came: float32[3]. Came: int32[3].",),
    ),
    "branches": Fault(
        other_branches,
        (X,),
        "jax.cond",
        "return lax.cond(x.sum() > 0, lambda x: x, lambda _: jnp.zeros(2, int), x)",
        ("float32[2,4] from true_fun and int32[2] from false_fun",),
    ),
    "in a scan": Fault(
        in_scan,
        (jnp.ones((4, 3)),),
        "jax.dot_general",
        "return lax.scan(lambda c, y: (c, jnp.dot(y, jnp.ones(7))), jnp.zeros(3), x)",
        ("3 is axis 1 of x; 7 is made by broadcast_in_dim (",),
    ),
    "strict types": Fault(strict, (X,), "jax.add", "return x + jnp.arange(4)", ("Required: operands of one type", "Convert one of them")),
    "missing argument": Fault(of_two, (X,), "python.of_two", "", ("missing 1 required positional argument: 'y'",)),
    "list as static argument": Fault(jax.jit(lambda x, _: x, static_argnums=1), (X, [1, 2]), "jax.jit", "", ("Give a tuple for a list",)),
    "axis that is not there": Fault(jax.vmap(jnp.dot, in_axes=(0, 5)), (X, X), "jax.vmap", "", ("rank 6 or more, for axis 5",)),
    "other lengths": Fault(jax.vmap(of_two), (X, jnp.ones((3, 4))), "jax.vmap", "", ("size 2: axis 0 of argument x",)),
    "overflow": Fault(too_large, (X,), "jax.jit", "return x.astype(int) * 3_000_000_000", ("32 bits", "Came: 3000000000")),
    "pytrees": Fault(
        other_trees,
        ({"a": X}, {"b": X}),
        "jax.tree_map",
        "return jax.tree.map(jnp.add, p, q)",
        ("one with the keys ('a',) and one with ('b',)",),
    ),
    "no number": Fault(jax.grad(jnp.sin), (X,), "jax.grad", "", ("a result of shape (2, 4)", "`.sum()`")),
    "square": Fault(squared, (X,), "jax.dot_general", "return x @ x", ("4 is axis 1 of x; 2 is axis 0 of x",)),
    "numpy": Fault(by_numpy, (X,), "jax.array", "return np.asarray(x)", ("Use the function of `jax.numpy`", "float32[2,4]")),
    "channels": Fault(
        convolved,
        (jnp.ones((1, 2, 8, 8)), jnp.ones((1, 3, 3, 3))),
        "jax.conv_general_dilated",
        'return lax.conv(x, k, (1, 1), "SAME")',
        ("Sizes: 2 is axis 1 of x; 3 is axis 1 of k.",),
    ),
    "channels last": Fault(
        convolved_last,
        (jnp.ones((1, 8, 8, 3)), jnp.ones((3, 3, 4, 8))),
        "jax.conv_general_dilated",
        'return lax.conv_general_dilated(x, k, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))',
        ("Sizes: 3 is axis 3 of x; 4 is axis 2 of k.",),
    ),
    "set": Fault(set_first, (X,), "jax.set", "return x.at[0].set(jnp.ones(3))", ("3 is made by broadcast_in_dim (", "4 is axis 1 of x")),
    "stack": Fault(stacked, (X,), "jax.stack", "return jnp.stack([x, x.T])", ("arrays of one shape. Came: (2, 4), (4, 2).",)),
}


@pytest.mark.parametrize("name", list(FAULTS))
def test_a_failing_call_is_drawn_up_to_the_operation_that_fails(name: str) -> None:
    fault = FAULTS[name]
    graph = read(fault.function, *fault.args)
    node = innermost(graph)
    assert node.op == fault.op
    assert all(words in node.error for words in fault.says), node.error
    assert "https://" not in node.error
    assert "error occurred while tracing" not in node.error
    assert (node.frames[-1].text if node.frames else "") == fault.line
    assert len(node.inputs) >= 1
    assert [each for each in lower(graph).nodes if each.error is not None]


@pytest.mark.parametrize("name", ["if", "channels", "in a scan", "product"])
@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["plain", "jitted"])
def test_the_message_of_a_failing_call_names_the_line_of_the_user(name: str, wrap: Callable[[Any], Any]) -> None:
    fault = FAULTS[name]
    graph = read(wrap(fault.function), *fault.args)
    line = innermost(graph).frames[-1].line
    assert f"\nAt test_failing_calls_of_jax.py, line {line}: `{fault.line}`" in graph.notes[0]
    run = gc.run(wrap(fault.function), *fault.args)
    (error,) = [node.error for node in run.graph.op_nodes() if node.error is not None]
    assert f"line {line}: `{fault.line}`" in error.message


def test_equations_before_the_failure_are_drawn_with_the_inner_call() -> None:
    graph = read(transposed_kernel, jnp.ones((3, 4)), {"kernel": jnp.ones((5, 6))})
    call = failed_in(graph.main)
    assert [node.op for node in graph.main.nodes] == ["jax.argument", "jax.argument", "jax.sin", "jax.jit"]
    assert (call.name, call.inputs) == ("projected", (("sin", 0), ("params['kernel']", 0)))
    inner = innermost(graph)
    assert [module.path for module in inner.modules] == ["proj"]
    assert inner.inputs == (("x", 0), ("kernel", 0))


def test_a_leaked_tracer_is_red_with_the_line_that_made_it() -> None:
    def leaks(x: Any) -> Any:
        KEPT.append(x * 2)
        return x

    jax.jit(leaks)(X)
    try:
        graph = read(of_leaked, X)
    finally:
        KEPT.clear()
    node = failed_in(graph.main)
    (source,) = [node for node in graph.main.nodes if node.op == "jax.leaked_tracer"]
    assert "UnexpectedTracerError" in node.error
    assert source.frames[-1].function.endswith("leaks")
    assert f"line {source.frames[-1].line}" in node.error


def test_a_call_leaves_configuration_and_traces_as_they_were() -> None:
    before = dict(jax.config.values)
    for fault in FAULTS.values():
        read(fault.function, *fault.args)
        assert dict(jax.config.values) == before
        assert not isinstance(jnp.sin(X), jax.core.Tracer)
        assert float(jax.jit(lambda x: x.sum())(X)) == 8.0


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit, jax.vmap, lambda f: lambda x: lax.scan(lambda c, y: (c, f(y)), 0, x)])
def test_an_interrupted_call_leaves_no_trace_and_the_next_one_works(wrap: Callable[[Any], Any]) -> None:
    def interrupted(x: Any) -> Any:
        with jax.named_scope("within"):
            jnp.sin(x)
            raise KeyboardInterrupt

    before = dict(jax.config.values)
    with pytest.raises(KeyboardInterrupt):
        read(wrap(interrupted), X)
    assert dict(jax.config.values) == before
    assert not isinstance(jnp.sin(X), jax.core.Tracer)
    graph = read(joined, X, X)
    assert [node.op for node in graph.main.nodes if node.kind == "op"] == ["jax.concatenate"]
    assert all(not node.modules for node in graph.main.nodes)


def test_arguments_that_are_no_arrays_stay_as_they_are() -> None:
    def layer(x: Any, width: int, *, training: bool = False, mode: str = "") -> Any:
        return jnp.ones((width, 4)) @ x.T if training and mode == "wide" else x

    graph = read(layer, X, 3, training=True, mode="wide")
    assert [node.name for node in graph.main.nodes if node.kind == "input"] == ["x"]
    assert graph.main.nodes[-1].outputs[0].shape == (3, 2)


def test_arrays_of_a_closure_have_their_names() -> None:
    params = {"w": jnp.ones((5, 6))}
    graph = read(lambda x: x @ params["w"], X)
    assert "5 is axis 0 of params['w']" in failed_in(graph.main).error


def test_a_layer_of_linen_fails_in_its_scope() -> None:
    linen: Any = pytest.importorskip("flax.linen")

    class Network(linen.Module):  # type: ignore[misc]  # flax is absent where types are checked
        @linen.compact  # type: ignore[untyped-decorator]  # as above
        def __call__(self, x: Any) -> Any:
            return linen.Dense(3, name="head")(linen.relu(linen.Dense(8)(x)))

    model = Network()
    params = model.init(jax.random.key(0), jnp.ones((2, 5)))
    node = failed_in(read(model.apply, params, X).main)
    assert [module.path for module in node.modules] == ["Network", "Dense_0"]
    assert "5 is axis 0 of variables['params']['Dense_0']['kernel']" in node.error
    assert node.frames[-1].function == "__call__"


def test_a_module_of_nnx_is_traced_by_its_arrays_and_is_not_changed() -> None:
    nnx: Any = pytest.importorskip("flax.nnx")

    class Network(nnx.Module):  # type: ignore[misc]  # as above
        def __init__(self, width: int) -> None:
            rngs = nnx.Rngs(0)
            self.first, self.norm, self.last = nnx.Linear(4, 8, rngs=rngs), nnx.BatchNorm(8, rngs=rngs), nnx.Linear(width, 2, rngs=rngs)

        def __call__(self, x: Any) -> Any:
            return self.last(self.norm(self.first(x)))

    model = Network(8)
    mean = model.norm.mean[...]
    assert not [node for node in read(model, X).main.nodes if node.error]
    assert model.norm.mean[...] is mean
    node = failed_in(read(Network(7), X).main)
    assert "8 is axis 1 of model.first.kernel" in node.error
    assert "7 is axis 0 of model.last.kernel" in node.error


def test_modules_of_nnx_around_a_function_are_traced_on_copies_and_have_names() -> None:
    nnx: Any = pytest.importorskip("flax.nnx")
    rngs = nnx.Rngs(0)
    model = nnx.Sequential(
        nnx.Linear(4, 8, rngs=rngs), nnx.BatchNorm(8, rngs=rngs), nnx.Dropout(0.5, rngs=rngs), nnx.Linear(8, 2, rngs=rngs)
    )
    models = {"head": model}

    def loss(x: Any) -> Any:
        return model(x).sum()

    def of_table(x: Any) -> Any:
        return loss(x) + models["head"](x).mean()

    def gradients(x: Any) -> Any:
        return nnx.grad(lambda model: model(x).sum())(model)

    assert jax.tree.structure(gc.run(gradients, X).result) == jax.tree.structure(gradients(X))
    before = jax.tree.leaves(nnx.state(model))
    for function in (loss, of_table, gradients):
        graph = read(function, X)
        assert not [node for node in graph.main.nodes if node.error], graph.notes
        assert {node.name for node in graph.main.nodes} >= {"model.layers.0.kernel", "model.layers.1.scale"}
        run = gc.run(function, X)
        assert run.error is None
        assert all(one is other for one, other in zip(before, jax.tree.leaves(nnx.state(model)), strict=True))
    model.eval()
    np.testing.assert_allclose(gc.run(loss, X).result, model(X).sum(), rtol=1e-6)


def test_a_module_of_equinox_fails_at_its_layer() -> None:
    equinox: Any = pytest.importorskip("equinox")
    model = equinox.nn.MLP(4, 3, 8, 2, key=jax.random.key(0))
    node = failed_in(read(model, jnp.ones(5)).main)
    assert node.attrs["called by"] == "Linear"
    assert "4 is axis 1 of model.layers[0].weight; 5 is axis 0 of x" in node.error


def test_lines_in_a_folder_named_as_a_library_are_of_the_user(tmp_path: Path) -> None:
    file = tmp_path / "jax" / "flax" / "train.py"
    variables: dict[str, Any] = {}
    exec(compile("def step(x):\n    return x @ x", str(file), "exec"), variables)
    node = failed_in(read(variables["step"], X).main)
    assert (node.op, node.frames[-1].file, node.frames[-1].line) == ("jax.dot_general", str(file), 2)
    made = read(variables["step"], jnp.ones((2, 2))).main.nodes[-1]
    assert (made.op, made.frames[-1].file) == ("jax.dot_general", str(file))
