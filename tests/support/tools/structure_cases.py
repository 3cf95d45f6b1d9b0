"""Test cases of rules that exist twice: the structure of graphs.

They are in `widgets/scene/structure` and in `widgets/js/src/page/structure`.
A file has the nodes of some graphs, as `widgets/js/src/page/structure/nodes.ts` has them, and what each step finds in them.
`python -m tests.support.tools.structure_cases` writes the file that both are tested with.
"""

from __future__ import annotations

import gzip
import json
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final
from unittest import mock

import graphcore as gc
from graphcore.frontends.record import foreign_of
from graphcore.graph import Graph, Node, Tensor
from graphcore.registry import op_registry
from tests.golden.scene_cases import CASES
from widgets.scene.calls import callees, has_hub
from widgets.scene.structure import Arrangement, Bunch, alike, arrange, decompose, naming, repeats, serving
from widgets.scene.structure.evidence import telling_layers
from widgets.scene.structure.items import Dims, cycles, joined, loops, make_items
from widgets.scene.structure.widths import is_padded
from widgets.scene.tree import FOLDS, Call, Part, ScopeTree, folds

FILE: Final = Path(__file__).parents[2] / "data" / "structure_cases.json.gz"
MOST_PARTS: Final = 3000
"""The most parts of a graph that are opened."""
SEQUENCES: Final = 120
RANDOM_GRAPHS: Final = 12

Json = Any


class Nodes:
    """The nodes of a graph as rows, and their ops."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self.ops: dict[str, int] = {}
        self.op_rows: list[Json] = []
        self.place: dict[int, int] = {}
        self.kept: list[Node] = []
        for node in nodes:
            self.of(node)
        self.own = len(nodes)

    def of(self, node: Node) -> int:
        """The number of a node; a new one if it is none of the graph."""
        found = self.place.get(id(node))
        if found is None:
            found = self.place[id(node)] = len(self.kept)
            self.kept.append(node)
        return found

    def op(self, node: Node) -> int:
        """The number of a node's op."""
        if node.op not in self.ops:
            self.ops[node.op] = len(self.ops)
            traits = node.registration.traits
            layer = naming.layer_of(node.op)
            assert layer == traits.layer, node.op
            self.op_rows.append([node.op, layer, traits.role, traits.memory, traits.elementwise, traits.needs_only_shapes])
        return self.ops[node.op]

    def rows(self) -> list[Json]:
        """The rows of all nodes, those from elsewhere at the end."""
        made: list[Json] = []
        while len(made) < len(self.kept):
            made.append(self._row(self.kept[len(made)]))
        return made

    def _row(self, node: Node) -> Json:
        strides = node.attr.get("strides")
        return [
            node.id,
            node.name,
            self.op(node),
            [[self.of(tensor.node), tensor.index] for tensor in node.inputs],
            [self.of(producer) for producer in node.control_inputs],
            [[tensor.shape.dims, tensor.dtype.text == "resource"] for tensor in node.outputs],
            node.name in node.graph.gradient_records,
            list(strides) if isinstance(strides, list | tuple) else [],
            is_padded(node),
            [[callee.label, callee.title] for callee in callees(node)],
            has_hub(node),
        ]


class Recorder:
    """The arrangements that a tree of parts asks for, by graph."""

    def __init__(self, graph: Graph) -> None:
        self.graphs: dict[int, tuple[Nodes, list[Json]]] = {}
        self._keep(graph)

    def _keep(self, graph: Graph) -> tuple[Nodes, list[Json]]:
        return self.graphs.setdefault(id(graph), (Nodes(graph.nodes), []))

    def arrange(self, members: list[list[Node]], backward: list[bool]) -> Arrangement:
        """As `arrange`, recorded."""
        found = arrange(members, backward)
        nodes, rows = self._keep(members[0][0].graph)
        rows.append(recorded(nodes, members, backward))
        return found


def scattered(chance: random.Random, own: Sequence[Node]) -> list[list[Node]]:
    """Parts of nodes from anywhere, most of them alone: some parts form cycles."""
    parts: list[list[Node]] = []
    for node in own:
        if parts and chance.random() < 0.25:
            chance.choice(parts[-30:]).append(node)
        else:
            parts.append([node])
    chance.shuffle(parts)
    return parts


def recorded(nodes: Nodes, members: list[list[Node]], backward: list[bool]) -> Json:
    """An arrangement with each step that leads to it."""
    items = make_items(members, backward)
    made = arrange(members, backward)
    whole, contents = joined(items, loops(items))
    served = serving.serving_nodes([node for each in whole.members for node in each])
    serves = [all(node.name in served for node in each) for each in whole.members]
    order = decompose.evaluation_order(whole)
    ordered = decompose.Order(whole, order, serves)
    span = decompose.Span(0, len(order))
    return {
        "members": [[nodes.of(node) for node in each] for each in members],
        "backward": [int(each) for each in backward],
        "inputs": items.inputs,
        "awaited": items.awaited,
        "outputs": items.outputs,
        "cycles": cycles(items),
        "loops": loops(items),
        "contents": contents,
        "serving": [nodes.of(node) for each in members for node in each if node.name in served],
        "order": order,
        "hosts": serving.hosts(whole, order, serves),
        "elements": [
            [[part.start, part.stop] for part in decompose.elements(ordered, span, fine=fine, most=most)]
            for fine, most in ((False, 1), (True, 1), (False, 2))
        ],
        "layers": [sorted(telling_layers(each, served).items()) for each in members],
        "units": [[unit.parts, unit.helpers, unit.label] for unit in made.units],
        "bunches": [row_of_bunch(nodes, bunch) for bunch in made.bunches],
    }


def rows_of_runs(runs: Iterable[repeats.Run]) -> Json:
    return [[[list(each) for each in run.instances], list(run.spare)] for run in runs]


def row_of_bunch(nodes: Nodes, bunch: Bunch) -> Json:
    output: Tensor | None = bunch.output
    return {
        "items": bunch.items,
        "label": bunch.label,
        "output": None if output is None else [nodes.of(output.node), output.index],
        "instances": [row_of_bunch(nodes, each) for each in bunch.instances],
        "differences": bunch.differences,
        "shared": bunch.shared,
        "isPlain": bunch.is_plain,
    }


def cases_of(name: str, graph: Graph) -> Iterator[Json]:
    """A case for the graph, and one for each body that opens in it."""
    recorder = Recorder(graph)
    tree = ScopeTree(graph)
    tree.sync()
    with mock.patch.object(folds, "arrange", recorder.arrange):
        stack: list[Part] = [tree.root]
        count = 0
        while stack and count < MOST_PARTS:
            part = stack.pop()
            if isinstance(part, FOLDS) and not (isinstance(part, Call) and part.refusal):
                inner = part.parts()
                stack.extend(reversed(inner))
                count += len(inner)
    for number, (nodes, arrangements) in enumerate(recorder.graphs.values()):
        own = nodes.kept[: nodes.own]
        if own:
            records = own[0].graph.gradient_records
            arrangements.append(recorded(nodes, [[node] for node in own], [node.name in records for node in own]))
            chance = random.Random(len(own))
            parts = scattered(chance, own)
            arrangements.append(recorded(nodes, parts, [each[0].name in records for each in parts]))
            rows = nodes.rows()
            yield {"name": f"{name} {number}", "own": nodes.own, "ops": nodes.op_rows, "nodes": rows, "arrangements": arrangements}


LAYERS: Final = ("MatMul", "Conv2D", "Relu", "AddV2", "BiasAdd", "Tanh", "Mul", "ConcatV2")


def random_graph(chance: random.Random) -> Graph:
    """Blocks in scopes, repeated with changes.

    There are skips, shared variables, control edges and gradients.
    """
    graph = gc.Graph()
    with graph.as_default():
        rows = chance.choice([None, 4])
        tensors = [gc.placeholder(gc.float32, [rows, 8], name=f"x{number}") for number in range(chance.randint(1, 3))]
        weights = [gc.Variable(gc.zeros([8, 8]), name=f"shared{number}") for number in range(chance.randint(1, 3))]
        for block in range(chance.randint(1, 5)):
            steps = [chance.randrange(9) for _ in range(chance.randint(1, 7))]
            for number in range(chance.randint(1, 8)):
                scope = chance.choice(["block", "layer", f"part{block}_{number}", f"stage{block}/unit_{number}"])
                with gc.name_scope(scope):
                    entry = tensors[-1]
                    for step in steps if chance.random() < 0.8 else [*steps, chance.randrange(9)]:
                        waits = chance.sample([tensor.node for tensor in tensors], 1) if chance.random() < 0.04 else []
                        with gc.control_dependencies(waits):
                            tensors.append(_step(chance, step, tensors, weights, entry))
        if chance.random() < 0.6:
            gc.gradients(gc.reduce_sum(tensors[-1]), weights)
        for _ in range(chance.randint(0, 4)):
            gc.constant(1.0)
    return graph


def _step(chance: random.Random, step: int, tensors: Sequence[Tensor], weights: list[Any], entry: Tensor) -> Tensor:
    x = tensors[-1]
    made: list[Callable[[], Tensor]] = [
        lambda: gc.relu(x),
        lambda: gc.tanh(x) * gc.sigmoid(chance.choice(tensors)),
        lambda: x + entry,
        lambda: gc.matmul(x, weights[0]),
        lambda: gc.matmul(x, gc.Variable(gc.zeros([8, 8]), name="w")),
        lambda: gc.bias_add(x, gc.zeros([8])),
        lambda: x + chance.choice(tensors),
        lambda: gc.identity(x),
        lambda: gc.softmax(gc.matmul(x, weights[-1])),
    ]
    return made[step]()


def random_sequence(chance: random.Random) -> list[repeats.Element]:
    """Elements with repeats that are rarely exact."""
    block = [random_element(chance) for _ in range(chance.randint(1, 6))]
    made: list[repeats.Element] = []
    while len(made) < chance.choice([8, 30, 90]):
        if chance.random() < 0.15:
            block = [random_element(chance) for _ in range(chance.randint(1, 6))]
        for element in block:
            if chance.random() < 0.05:
                made.append(random_element(chance))
            made.append(element if chance.random() < 0.93 else element._replace(shape=random_shape(chance)))
    return made


def random_shape(chance: random.Random) -> Dims:
    """A shape: known, partly known, or with numbers of unknown sizes."""
    kind = chance.random()
    if kind < 0.1:
        return None
    if kind < 0.4:
        return (-1 - chance.randrange(3), chance.choice([16, -4, -5]))
    return (chance.choice([None, 4]), *[chance.choice([8, 16]) for _ in range(chance.randint(0, 2))])


def random_element(chance: random.Random) -> repeats.Element:
    """An element of up to four ops."""
    ops = Counter(chance.choices(LAYERS, k=chance.randint(0, 4)))
    kernels = [
        repeats.Kernel(op, chance.choice([None, True, False]), chance.choice([(), (1, 1), (1, 2)]), chance.choice([None, 8, 16, -3]))
        for op in ops
        if op in {"MatMul", "Conv2D"}
    ]
    return repeats.Element(chance.randrange(6), ops, random_shape(chance), tuple(kernels))


def row_of_sequence(sequence: Sequence[repeats.Element]) -> Json:
    """A sequence, and the repeats in it."""
    rows = [
        [element.symbol, list(element.ops.items()), element.shape, [list(kernel) for kernel in element.kernels]] for element in sequence
    ]
    return [rows, rows_of_runs(repeats.find_runs(sequence))]


WORDS: Final = ("layer", "block", "conv", "a", "attention", "unit", "Ünit", "dense1", "x", "\U0001d465y", "\uff58y")
OPS: Final = (
    *LAYERS,
    *(
        "Conv2DBackpropInput",
        "DepthwiseConv2dNative",
        "FusedBatchNormV3",
        "Softmax",
        "Sigmoid",
        "MaxPool",
        "NextIteration",
        "Merge",
        "Switch",
    ),
    *(
        "Enter",
        "Mean",
        "Rsqrt",
        "SquaredDifference",
        "Sub",
        "ResizeBilinear",
        "Identity",
        "MyFunction",
        "_FusedMatMul",
        "f",
        "BatchMatMulV2",
    ),
)


def rows_of_names(chance: random.Random) -> Json:
    """Names of groups, from names and from ops."""
    names = [
        "".join(f"{chance.choice(WORDS)}{chance.choice('/_.-')}" for _ in range(chance.randint(1, 3))) + chance.choice(WORDS)
        for _ in range(chance.randint(1, 5))
    ]
    if chance.random() < 0.7:
        start = f"{chance.choice(WORDS)}/{chance.choice(WORDS)}_"
        names = [start + name for name in names] * chance.choice([1, 1, 4]) + names[:1] * chance.choice([0, 1])
    within = naming.shared_words([*names, *names[:1] * 9])[:1]
    instances = [Counter(chance.choices(OPS[: chance.choice([4, 12, len(OPS)])], k=chance.randint(0, 9))) for _ in range(4)]
    if chance.random() < 0.5:
        instances = [instances[0], instances[1], *[instances[1]] * 3, instances[2]]
    first = instances[0]
    layers = Counter({naming.layer_of(op): count for op, count in first.items()})
    normalised = chance.random() < 0.5
    dims = random_shape(chance)
    return {
        "names": names,
        "within": within,
        "common": naming.common_name(names, within),
        "shared": naming.shared_words(names),
        "telling": [naming.is_telling(name) for name in names],
        "instances": [list(ops.items()) for ops in instances],
        "differences": alike.differences(instances),
        "kind": naming.kind_name(first, layers),
        "ops": naming.ops_name(first, is_normalised=normalised),
        "isNormalised": normalised,
        "dims": dims,
        "shape": naming.shape_words(dims),
    }


def op_rows() -> Json:
    """The ops of sequences and names."""
    rows = []
    for op in OPS:
        traits = op_registry.look_up(op).traits if op in op_registry else None
        rows.append(
            [op, *([traits.layer, traits.role, traits.memory, traits.elementwise] if traits else ["", "op", "unknown", False]), False]
        )
    return rows


def written(graphs: Iterable[tuple[str, Graph]]) -> Json:
    """The contents of a file with these graphs."""
    chance = random.Random(1)
    made = {
        "ops": op_rows(),
        "sequences": [row_of_sequence(random_sequence(chance)) for _ in range(SEQUENCES)],
        "names": [rows_of_names(chance) for _ in range(SEQUENCES)],
        "cases": [case for name, graph in graphs for case in cases_of(name, graph)],
    }
    return json.loads(json.dumps(made))


def packed(contents: Json) -> bytes:
    """The bytes of a file."""
    return gzip.compress(json.dumps(contents, separators=(",", ":")).encode(), mtime=0)


def graphs() -> Iterator[tuple[str, Graph]]:
    """The graphs of stored scenes, but for those of long names and of other frameworks, and random ones.

    The nodes of a file have no labels and no classes of modules; the stored scenes of other frameworks' graphs compare what comes of them.
    """
    for name, case in CASES.items():
        if not name.startswith("deep_"):
            with case.opened() as graph:
                if foreign_of(graph) is None:
                    yield name, graph
    for seed in range(RANDOM_GRAPHS):
        yield f"random {seed}", random_graph(random.Random(seed))


if __name__ == "__main__":
    FILE.write_bytes(packed(written(graphs())))
