"""The graphs of the stored scenes: programs, models from files, and what is rare."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final, TypedDict

import graphcore as gc
import widgets
from graphcore.attrs import AttrValue
from graphcore.difference import difference_graph
from graphcore.frontends.lowering import lower
from tests.support import foreign_models
from tests.support.cells import cell_runner
from tests.widgets import test_deep_scopes as deep
from tests.widgets import test_unknown_sizes as unknown
from tests.widgets.test_difference_scenes import chain, changed_function
from tests.widgets.test_structure import residual, stages, width

DATA: Final = Path(__file__).parents[1] / "data"
FILES: Final = [
    *sorted(path.name for path in DATA.glob("*.pb")),
    *sorted(f"saved_models/{path.name}" for path in (DATA / "saved_models").iterdir()),
]
Lens = Callable[[gc.Node], str | None]


class Limits(TypedDict, total=False):
    """Limits of a view, by their names in `SceneState`."""

    max_boxes: int
    auto_boxes: int


@dataclass(frozen=True)
class Case:
    """A graph to be shown.

    Attributes:
        graph: makes it.
        lenses: lenses of the user, by title.
        limits: those of the view.
    """

    graph: Callable[[], gc.Graph]
    lenses: Mapping[str, Lens] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)

    @contextmanager
    def opened(self) -> Iterator[gc.Graph]:
        """The graph, while there are the user's lenses."""
        try:
            for title, lens in self.lenses.items():
                widgets.lens(title=title)(lens)
            yield self.graph()
        finally:
            for lens in self.lenses.values():
                widgets.remove_lens(lens.__name__)


def gradients_of_a_network() -> None:
    weights = []
    x = gc.placeholder(gc.float32, [None, 8], name="x")
    for layer in range(12):
        with gc.name_scope(f"layer{layer}"):
            weights.append(gc.Variable(gc.zeros([8, 8]), name="w"))
            x = gc.tanh(x @ weights[-1] + 0.5)
    gc.gradients(x, weights)


def second_derivatives() -> None:
    x = gc.placeholder(gc.float32, [3], name="x")
    with gc.name_scope("f"):
        y = gc.tanh(x) * x * x
    (first,) = gc.gradients(gc.reduce_sum(y), [x])
    gc.gradients(gc.reduce_sum(first), [x])


def a_loop_with_its_gradient() -> None:
    x = gc.placeholder(gc.float32, [3], name="x")
    w = gc.Variable(gc.ones([3]), name="w", use_resource=True)
    y = gc.while_loop(lambda i, _: i < 3, lambda i, v: (i + 1, gc.tanh(v * w)), [gc.constant(0), x])[1]
    gc.gradients(gc.reduce_sum(y * y), [x])


def gradients_that_are_none() -> None:
    x = gc.placeholder(gc.float32, [3], name="x")
    unused = gc.Variable(gc.ones([3]), name="unused")
    weights = []
    for layer in range(4):
        with gc.name_scope(f"layer{layer}"):
            weights.append(gc.Variable(gc.ones([3]), name="w"))
            x = gc.tanh(x * weights[-1])
        x = gc.stop_gradient(x, name="frozen") if layer == 2 else x
    gc.gradients(gc.reduce_sum(x), [*weights, unused])


def a_call_with_its_gradient() -> None:
    @gc.function
    def layer(x: gc.Tensor, w: gc.Tensor) -> gc.Tensor:
        return gc.tanh(x @ w)

    x = gc.placeholder(gc.float32, [None, 3], name="x")
    w = gc.Variable(gc.zeros([3, 3]), name="W")
    y = layer(layer(x, w), w)
    gc.gradients(y, [w])


def a_loop_in_a_branch() -> None:
    x = gc.placeholder(gc.float32, [4], name="x")
    which = gc.placeholder(gc.bool_, [], name="which")

    def looped() -> Any:
        return gc.while_loop(lambda i, _: i < 3, lambda i, s: (i + 1, s * 2.0 + x), [gc.constant(0), x])[1]

    gc.cond(which, looped, lambda: gc.exp(x))


def many_waits() -> None:
    x = gc.placeholder(gc.float32, [2], name="x")
    ends = []
    for number in range(9):
        with gc.name_scope(f"part{number}"):
            x = gc.tanh(x)
            ends.append(gc.exp(x))
    with gc.control_dependencies(ends):
        gc.ops.no_op(name="all")


def a_repeat_of_unlike_blocks() -> None:
    x = gc.placeholder(gc.float32, [None, 4], name="x")
    for number in range(50):
        with gc.device("/device:CPU:1" if number in {3, 20, 21} else None):
            filters = gc.zeros([width(x), 4])
            x = gc.concat([x, gc.relu(gc.bias_add(gc.matmul(x, filters), gc.zeros([4])))], axis=1)
    gc.softmax(x)


def copies_between_devices() -> None:
    with gc.device("/gpu:0"):
        x = gc.placeholder(gc.float16, [5, 125], name="x")  # 1,250 bytes, halfway between two tenths of a kB
        unknown = gc.placeholder(gc.float32, [None], name="unknown")
    with gc.name_scope("part"):
        for number in range(3):
            with gc.device(f"/gpu:{number}"):
                gc.tanh(x)
                gc.exp(x)
                gc.sqrt(unknown)
    with gc.device("/gpu:7"):
        gc.identity(x, name="elsewhere")
    gc.identity(gc.placeholder(gc.float32, [2], name="few"), name="unmoved")
    devices = gc.simulated_devices("1 cpu, 3 gpu")
    gc.Placer(gc.get_default_graph(), devices, allow_soft_placement=True).run()


def variables_with_readers() -> None:
    weights = []
    for layer in range(5):
        with gc.name_scope(f"layer{layer}"):
            weights.append(gc.Variable(gc.zeros([2, 2]), name="w"))
            weights[-1].assign_add(gc.zeros([2, 2]))
    with gc.name_scope("train"):
        for weight in weights:
            weight.assign_sub(gc.zeros([2, 2]))
    for _ in range(9):
        weights[0].assign_add(gc.zeros([2, 2]))
    gc.Placer(gc.get_default_graph(), gc.simulated_devices("1 cpu, 1 gpu")).run()


def a_repeat_on_three_devices() -> None:
    x = gc.placeholder(gc.float32, [None, 16], name="x")
    for number in range(6):
        with gc.device(f"/device:CPU:{number % 4 % 3}"):
            x = residual(x, 16)
        if number == 4:
            x.node.set_requested_device("/device:CPU:1")


def unknown_sizes_in_bodies() -> None:
    x = gc.placeholder(gc.float32, [None, 4], name="x")
    gc.gradients([build(x) for build in (unknown.of_a_function, unknown.of_a_branch, unknown.of_a_loop)], x)


def mixed(seed: int, more: int = 0) -> gc.Graph:
    """Ops and calls in scopes that take from one another, drawn at random; `more` at the end."""
    chance = random.Random(seed)
    with gc.Graph().as_default() as graph:
        tensors: list[gc.Tensor] = [gc.placeholder(gc.float32, [None, 4], name="x"), gc.ones([4])]
        weights = [gc.Variable(gc.zeros([4]), name=f"w{number}", use_resource=True) for number in range(3)]

        @gc.function
        def waiting(x: gc.Tensor, y: gc.Tensor) -> tuple[gc.Tensor, gc.Tensor]:
            found = gc.tanh(x + weights[0] + weights[1]) * y
            with gc.control_dependencies([found]):
                done = gc.ops.no_op(name="done")
            with gc.control_dependencies([done]):
                return gc.identity(found), gc.identity(y)

        for _ in range(90 + more):
            x, y = chance.choices(tensors[-12:], k=2)
            scope = "/".join(chance.choices("abcd", k=chance.randint(0, 2)))
            with gc.name_scope(f"{scope}/" if scope else None), gc.control_dependencies(tensors[:1] if chance.random() < 0.1 else []):
                kind = chance.choice(("tanh", "exp", "identity", "relu", "add", "multiply", "add", "call"))
                if kind == "call":
                    tensors.extend(waiting(x, y))
                else:
                    tensors.append(getattr(gc, kind)(*[x, y][: 2 if kind in {"add", "multiply"} else 1]))
    return graph


PEOPLE: Final = [
    unknown_sizes_in_bodies,
    gradients_of_a_network,
    second_derivatives,
    gradients_that_are_none,
    a_loop_with_its_gradient,
    a_call_with_its_gradient,
    a_loop_in_a_branch,
    many_waits,
    a_repeat_of_unlike_blocks,
    copies_between_devices,
    variables_with_readers,
    a_repeat_on_three_devices,
]


def fan_in(node: gc.Node) -> str | None:
    return f"{len(node.inputs)} inputs" if node.inputs else None


def call_of(node: gc.Node) -> str:
    return node.name.partition("/")[0]


def marks_nothing(node: gc.Node) -> None: ...


def fails(node: gc.Node) -> str:
    return node.name[1 // 0]


FIRST_CELLS: Final = (
    ("a", "x = gc.placeholder(gc.float32, [3, 4], name='x')\nw = gc.placeholder(gc.float32, [4, 2], name='w')"),
    ("b", "y = gc.matmul(x, w, name='y')\nz = gc.tanh(y, name='z')"),
    ("a", "x = gc.placeholder(gc.float32, [3, 5], name='x')\nw = gc.placeholder(gc.float32, [4, 2], name='w')"),
)
WITHOUT_X: Final = (*FIRST_CELLS, ("a", "w = gc.placeholder(gc.float32, [4, 2], name='w')"))
FAILED_CELL: Final = (*WITHOUT_X, ("c", "q = gc.tanh(w, name='q')\nraise ValueError"))
REFUSED: Final = (*FAILED_CELL, *((cell, "gc.matmul(w, w, name='product')") for cell in ("d", "e")))
A_CIRCLE: Final = (
    ("a", "x = gc.placeholder(gc.float32, [3], name='x')\nh = gc.tanh(x, name='h')"),
    ("b", "with gc.name_scope('part'):\n    y = gc.tanh(gc.tanh(h, name='y'), name='z')"),
    ("a", "x = gc.placeholder(gc.float32, [3], name='x')\nh = gc.tanh(y, name='h')"),
)
BIASES: Final = "biases = [gc.Variable(gc.zeros([{}]), name=f'bias{{n}}').value() for n in range(1, 7)]"
ONE_WRONG: Final = (
    ("imports", "from tests.widgets.test_repeats import plain\nx = gc.placeholder(gc.float32, [None, 16], name='x')"),
    ("biases", BIASES.format("16")),
    ("model", "for bias in biases:\n    x = gc.tanh(gc.add(plain(x), bias, name='shift'))"),
    ("biases", BIASES.format("7 if n == 4 else 16")),
)


def made(build: Callable[[], None]) -> Callable[[], gc.Graph]:
    """Makes the graph that `build` fills."""

    def make() -> gc.Graph:
        with gc.Graph().as_default() as graph:
            build()
        return graph

    return make


def after(cells: tuple[tuple[str, str], ...]) -> Callable[[], gc.Graph]:
    """Makes the graph of cells of a notebook, by their ids, in the order in which they ran; one may fail."""

    def make() -> gc.Graph:
        with gc.Graph().as_default() as graph:
            run_cell = cell_runner(graph)
            for cell, text in cells:
                run_cell(cell, text)
        return graph

    return make


def a_body_that_cannot_be_made() -> gc.Graph:
    graph = gc.Graph()
    graph.library.add_function_def(gc.parse_function("f(x:float) -> (y:float) {\n  a = Tanh[T=float](x)\n  return y = a:y:0\n}"))
    attrs: dict[str, AttrValue] = {"Tin": (gc.float32, gc.float32), "Tout": (gc.float32,), "f": gc.Func("f", {})}
    with graph.as_default():
        gc.placeholder(gc.float32, [2], name="x")
    graph.add_node(gc.NodeDef("call", "PartitionedCall", ("x", "x"), "", attrs))
    return graph


def loaded(name: str) -> Callable[[], gc.Graph]:
    return lambda: gc.load(DATA / name, allow_unknown_ops=True, allow_internal_ops=True)


def difference(before: Callable[[], gc.Graph], after: Callable[[], gc.Graph]) -> Callable[[], gc.Graph]:
    return lambda: difference_graph(gc.graph_diff(before(), after()))


CASES: Final[dict[str, Case]] = {
    **{Path(name).stem: Case(loaded(name)) for name in FILES},
    "transformer_in_few_boxes": Case(loaded("transformer.pb"), limits={"max_boxes": 12, "auto_boxes": 5}),
    **{build.__name__: Case(made(build)) for build in PEOPLE},
    "stages_of_blocks": Case(lambda: stages([3, 4, 6, 3])),
    **{f"deep_{number}": Case(make) for number, make in enumerate(deep.HOSTILE.values())},
    "chains_of_scopes": Case(lambda: deep.names("W", "W/a/b/c/d/e/f/x", "p/q/x", "p/r/a/b/c/d/e/f/x", "p/r/a/b/c/d/e/f/y")),
    **{f"mixed_{seed}": Case(partial(mixed, seed)) for seed in (1, 2)},
    "parts_of_mixed_added": Case(difference(partial(mixed, 3), partial(mixed, 3, 2))),
    "lenses_of_the_user": Case(
        made(a_call_with_its_gradient), {"<b>Fan-in</b>": fan_in, "call of": call_of, "marks nothing": marks_nothing, "fails": fails}
    ),
    "a_node_of_a_chain_added": Case(difference(lambda: chain(20), lambda: chain(20, at=9))),
    "a_node_of_a_chain_removed": Case(difference(lambda: chain(20, at=0), lambda: chain(20))),
    "another_function": Case(difference(lambda: changed_function()[0], lambda: changed_function()[1])),
    "a_wrong_shape": Case(after(FIRST_CELLS)),
    "a_lost_input": Case(after(WITHOUT_X)),
    "a_failed_cell": Case(after(FAILED_CELL)),
    "two_refused_nodes": Case(after(REFUSED)),
    "a_circle": Case(after(A_CIRCLE)),
    "one_wrong_instance_of_a_repeat": Case(after(ONE_WRONG)),
    "a_body_that_cannot_be_made": Case(a_body_that_cannot_be_made),
    "modules_of_a_transformer": Case(lambda: lower(foreign_models.transformer())),
    "a_transformer_without_names": Case(lambda: lower(foreign_models.transformer(6, named=False))),
    "a_branch_of_another_framework": Case(lambda: lower(foreign_models.branch())),
}
