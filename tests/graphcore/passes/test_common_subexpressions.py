"""Common subexpressions: merged nodes, others, and consumers."""

from __future__ import annotations

import graphcore as gc
from graphcore.inference.shape_fns.common_shape_fns import scalar_shape, unknown_shape


def registry() -> gc.OpRegistry:
    made = gc.OpRegistry()
    for op in (
        "Const",
        "Mul",
        "Sub",
        "Neg",
        "AddN",
        "NoOp",
        "Placeholder",
        "PlaceholderWithDefault",
        "RandomUniform",
        "VariableV2",
        "Identity",
    ):
        made.register(gc.op_registry.look_up(op))
    made.register(gc.parse_op_signature("Input() -> (o:float) @stateful"), scalar_shape)
    made.register(gc.parse_op_signature("Take(r:Ref(float)) -> (o:float)"), unknown_shape)
    return made


def text(graph: gc.Graph) -> str:
    """Sorted nodes, then sorted edges; control slots are left out."""
    nodes = sorted(f"{node.name}({node.op})" for node in graph.nodes)
    edges = []
    for edge in (edge for node in graph.nodes for edge in node.in_edges() if edge.src.is_op):
        out = f":{edge.src_output}" if edge.src_output > 0 else ":control" if edge.is_control_edge else ""
        slot = f":{edge.dst_input}" if edge.dst_input > 0 else ":control" if edge.is_control_edge else ""
        edges.append(f"{edge.src.name}{out}->{edge.dst.name}{slot}")
    return f"{';'.join(nodes)}|{';'.join(sorted(edges))}"


class Builder:
    def __init__(self) -> None:
        self.graph = gc.Graph(registry())

    def add(self, op: str, name: str, *inputs: gc.Node, wait: tuple[gc.Node, ...] = (), **attrs: object) -> gc.Node:
        tensors = [node.outputs[0] for node in inputs]
        with self.graph.control_dependencies(wait):
            return self.graph.apply_op(op, [tensors] if op == "AddN" else tensors, attrs, name)

    def zero(self, name: str, dtype: gc.DType = gc.int32) -> gc.Node:
        return self.add("Const", name, dtype=dtype, value=gc.TensorValue([0], dtype))


def test_cse_row_1_commutative_inputs_may_be_in_any_order() -> None:
    b = Builder()
    left, right = b.add("Input", "A"), b.add("Input", "B")
    b.add("Mul", "C", left, right)
    b.add("Mul", "D", right, left)
    assert gc.eliminate_common_subexpressions(b.graph)
    assert text(b.graph) == "A(Input);B(Input);C(Mul)|A->C;B->C:1"
    assert not gc.eliminate_common_subexpressions(b.graph)


def test_cse_row_2_inputs_of_other_ops_may_not() -> None:
    b = Builder()
    left, right = b.add("Input", "A"), b.add("Input", "B")
    b.add("Sub", "C", left, right)
    b.add("Sub", "D", right, left)
    before = text(b.graph)
    assert not gc.eliminate_common_subexpressions(b.graph)
    assert text(b.graph) == before == "A(Input);B(Input);C(Sub);D(Sub)|A->C;A->D:1;B->C:1;B->D"


def test_cse_row_3_equal_constants_are_one_and_both_inputs_take_it() -> None:
    b = Builder()
    b.add("Mul", "D", b.zero("A"), b.zero("B"))
    gc.eliminate_common_subexpressions(b.graph)
    assert text(b.graph) == "A(Const);D(Mul)|A->D;A->D:1"
    assert b.graph.get_operation_by_name("D").node_def.input == ("A", "A")


def test_cse_attrs_must_be_equal_those_with_an_underscore_too() -> None:
    b = Builder()
    b.zero("A")
    b.zero("B", gc.int64)
    b.add("Const", "C", dtype=gc.int32, value=gc.TensorValue([1], gc.int32))
    b.zero("D").add_attr("_mine", 1)
    b.zero("E").add_attr("_mine", True)
    assert not gc.eliminate_common_subexpressions(b.graph)


def test_cse_control_inputs_must_be_the_same_set() -> None:
    b = Builder()
    x, y = b.add("NoOp", "x"), b.add("Input", "y")
    b.add("Neg", "A", y, wait=(x, y))
    b.add("Neg", "B", y, wait=(y, x))
    b.add("Neg", "C", y, wait=(x,))
    gc.eliminate_common_subexpressions(b.graph)
    assert {node.name for node in b.graph.nodes} == {"x", "y", "A", "C"}


def test_cse_devices_and_names_do_not_matter() -> None:
    b = Builder()
    with b.graph.device("/cpu:0"):
        b.zero("A")
    with b.graph.device("/cpu:1"):
        b.zero("B")
    gc.eliminate_common_subexpressions(b.graph)
    assert [node.name for node in b.graph.nodes] == ["A"]


def test_cse_control_consumers_follow_as_data_consumers_do() -> None:
    b = Builder()
    x = b.add("Input", "x")
    first, second = b.add("Neg", "A", x), b.add("Neg", "B", x)
    b.add("Neg", "after", second)
    b.add("Input", "waits", wait=(second,))
    b.add("Input", "both", wait=(first, second))
    gc.eliminate_common_subexpressions(b.graph)
    nodes = "A(Neg);after(Neg);both(Input);waits(Input);x(Input)"
    assert text(b.graph) == f"{nodes}|A->after;A:control->both:control;A:control->waits:control;x->A"


def test_cse_placeholders_nodes_with_state_and_takers_of_references_stay() -> None:
    b = Builder()
    shape = b.zero("shape")
    variable = b.add("VariableV2", "v", dtype=gc.float32, shape=gc.Shape([]))
    for name in "AB":
        b.add("Placeholder", f"p{name}", dtype=gc.float32)
        b.add("PlaceholderWithDefault", f"d{name}", shape, shape=gc.Shape([1]))
        b.add("RandomUniform", f"r{name}", shape, dtype=gc.float32)
        b.add("Take", f"t{name}", variable)
        b.add("Identity", f"i{name}", variable)
    assert not gc.eliminate_common_subexpressions(b.graph)


def test_cse_what_becomes_equal_by_a_merge_is_merged_in_the_same_pass() -> None:
    b = Builder()
    ends = []
    for name in "AB":
        node = b.zero(f"{name}0")
        for step in range(1, 4):
            node = b.add("Neg", f"{name}{step}", node)
        ends.append(node)
    b.add("AddN", "sum", *ends)
    gc.eliminate_common_subexpressions(b.graph)
    assert len(b.graph) == 5
    assert len(set(b.graph.get_operation_by_name("sum").inputs)) == 1


def test_cse_a_filter_excludes_nodes() -> None:
    b = Builder()
    for name in "ABC":
        b.zero(name)
    gc.eliminate_common_subexpressions(b.graph, lambda node: node.name != "B")
    assert [node.name for node in b.graph.nodes] == ["A", "B"]


def test_cse_what_one_of_two_was_wanted_for_the_other_is_wanted_for() -> None:
    b = Builder()
    x = b.add("Input", "x")
    left_over = b.add("Neg", "A", x)
    b.add("Identity", "i", b.add("Neg", "user", left_over))
    b.add("Neg", "B", x)
    b.graph.edge_store.detached.update({"A"})
    for name in ("i", "user"):
        b.graph.remove_node(b.graph.get_operation_by_name(name))
    gc.eliminate_common_subexpressions(b.graph)
    assert not gc.remove_dead_nodes(b.graph)
    assert [node.name for node in b.graph.nodes] == ["x", "A"]
