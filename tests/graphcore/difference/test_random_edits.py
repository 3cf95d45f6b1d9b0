"""A difference names exactly the edits that lie between two states."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

import graphcore as gc

UNARY = ("Tanh", "Relu", "Neg", "Square")
BINARY = ("AddV2", "Mul", "Maximum")
Edit = tuple[str, int, int]


@st.composite
def graphs(draw: st.DrawFn) -> gc.Graph:
    """Graphs of nodes of one shape, with distinct constants, named in scopes."""
    graph = gc.Graph()
    with graph.as_default():
        tensors = [gc.constant([float(number)] * 2, name=f"c{number}") for number in range(draw(st.integers(1, 3)))]
        for number in range(draw(st.integers(1, 12))):
            first, second = (tensors[draw(st.integers(0, len(tensors) - 1))] for _ in range(2))
            op = draw(st.sampled_from(UNARY + BINARY))
            name = f"{draw(st.sampled_from(('', 'a/', 'a/b/')))}n{number}"
            tensors.append(graph.apply_op(op, [first] if op in UNARY else [first, second], name=name).outputs[0])
    return graph


class Model:
    """The facts that a test knows about a graph: inputs, control inputs, device and mark of each node."""

    def __init__(self, graph: gc.Graph) -> None:
        self.facts = {
            node.name: (
                tuple(tensor.name for tensor in node.inputs),
                frozenset(control.name for control in node.control_inputs),
                node.device,
                str(node.attr.get("_mark", "")),
            )
            for node in graph.nodes
        }


EDITS = st.lists(
    st.tuples(
        st.sampled_from(["add", "remove", "rewire", "device", "control", "attr"]),
        st.integers(0, 1000),
        st.integers(0, 1000),
    ),
    max_size=6,
)


def apply(graph: gc.Graph, edits: list[Edit]) -> None:
    """Make edits through the public methods of the graph; one that does not fit is left out."""
    for number, (kind, first, second) in enumerate(edits):
        nodes = graph.nodes
        if not nodes:
            return
        node, other = nodes[first % len(nodes)], nodes[second % len(nodes)]
        try:
            if kind == "add":
                with graph.as_default():
                    graph.apply_op("Exp", [node.outputs[0]], name=f"new{number}")
            elif kind == "remove" and not node.consumers():
                graph.remove_node(node)
            elif kind == "rewire" and node.inputs and other is not node:
                graph.update_edge(other, 0, node, second % len(node.inputs))
            elif kind == "device":
                graph.set_requested_device(node, f"/cpu:{second % 3}")
            elif kind == "control":
                graph.add_control_edge(other, node)
            elif kind == "attr":
                graph.set_attr(node, "_mark", str(second).encode())
        except gc.errors.InvalidArgumentError:
            pass  # it would close a cycle


@given(graphs(), EDITS)
@settings(max_examples=60, deadline=None)
def test_the_difference_names_exactly_the_edits(graph: gc.Graph, edits: list[Edit]) -> None:
    before = graph.copy()
    old = Model(graph).facts
    apply(graph, edits)
    new = Model(graph).facts
    diff = gc.graph_diff(before, graph)
    assert set(diff.added) == new.keys() - old.keys()
    assert set(diff.removed) == old.keys() - new.keys()
    assert diff.renamed == {}
    kept = old.keys() & new.keys()
    assert set(diff.changed) == {name for name in kept if old[name] != new[name]}
    for name, change in diff.changed.items():
        kinds = {each.kind for each in change.changes}
        wanted = [kind for kind, was, now in zip(("input", "control", "device", "attr"), old[name], new[name], strict=True) if was != now]
        assert kinds == set(wanted)


@given(graphs(), EDITS)
@settings(max_examples=25, deadline=None)
def test_the_difference_backwards_is_the_difference_turned_round(graph: gc.Graph, edits: list[Edit]) -> None:
    before = graph.copy()
    apply(graph, edits)
    forth, back = gc.graph_diff(before, graph), gc.graph_diff(graph, before)
    assert (set(forth.added), set(forth.removed)) == (set(back.removed), set(back.added))
    turned = {name: {(each.kind, each.what, each.after, each.before) for each in change.changes} for name, change in forth.changed.items()}
    assert turned == {
        name: {(each.kind, each.what, each.before, each.after) for each in change.changes} for name, change in back.changed.items()
    }


@given(graphs(), st.sampled_from(["a", "a/b"]), st.text("xyz", min_size=1, max_size=3))
@settings(max_examples=25, deadline=None)
def test_renaming_a_scope_renames_its_nodes_and_changes_nothing(graph: gc.Graph, scope: str, name: str) -> None:
    def renamed(text: str) -> str:
        mark, bare = ("^", text[1:]) if text[:1] == "^" else ("", text)
        return mark + (name + bare[len(scope) :] if bare.startswith(f"{scope}/") else bare)

    definition = graph.as_graph_def()
    nodes = [gc.NodeDef(renamed(node.name), node.op, tuple(map(renamed, node.input)), "", node.attr) for node in definition.node]
    diff = gc.graph_diff(graph, gc.GraphDef(node=tuple(nodes), versions=definition.versions))
    assert (diff.added, diff.removed, dict(diff.changed)) == ((), (), {})
    assert len(diff.renamed) == sum(1 for node in graph.nodes if node.name.startswith(f"{scope}/"))
