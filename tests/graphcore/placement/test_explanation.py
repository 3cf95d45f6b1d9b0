"""Explanations of placements: rules, candidates, groups, copies and errors."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Final

import pytest

import graphcore as gc
from tests.graphcore.placement.setting import CPU, GPU, Example
from tests.graphcore.placement.test_resources_and_calls import MAKES_GPU, RESOURCE_IDENTITY, TWO

DEVICES: Final = gc.DeviceSet([CPU, CPU[:-1] + "1", GPU, "/job:a/replica:0/task:0/device:XLA_CPU:0"])
ADDRESS: Final = "/job:a/replica:0/task:0/device:"
Build = Callable[[Example], object]
Added = tuple[str, str, tuple[str, ...], dict[str, object]]


def chain_of_handles(example: Example) -> None:
    example.add("var", "HandleVariableCPU")
    example.add("first", "TestResource", "var")
    example.add("node", "TestResource", "first")


def joined_groups(example: Example) -> None:
    example.add("in", "TestInput")
    example.add("var", "VariableGPU")
    example.add("assign", "TestAssign", "var", "in")
    example.add("node", "TestRelu", "in", loc=("assign",))


def through_call(example: Example) -> None:
    example.graph.library.add_function_def(gc.parse_function(RESOURCE_IDENTITY))
    example.add("var", "TestHandleVariable", on="/device:FakeCPU:1")
    example.call("call", "ResourceIdentity", "var", types="r", out="r")
    example.add("node", "Identity", "call", T=gc.resource)


def body_fixes(example: Example) -> None:
    example.graph.library.add_function_def(gc.parse_function(MAKES_GPU))
    example.add("in", "TestGPUOutput")
    example.call("call", "MakesGPU", "in", types="f", out="r")
    example.add("node", "Identity", "call", T=gc.resource)


def nodes(*added: Added) -> Build:
    """Add nodes given by name, op, inputs and options."""

    def build(example: Example) -> None:
        for name, op, inputs, options in added:
            example.add(name, op, *inputs, **options)  # type: ignore[arg-type]  # devices and colocation

    return build


IN: Final[Added] = ("in", "TestInput", (), {})

# name: (graph, soft placement, device of `node`, rule, {device: (removed by, part of the reason)}, part of a note)
PLACED: Final[dict[str, tuple[Build, bool, str, str, dict[str, tuple[str, str]], str]]] = {
    "best type": (
        nodes(IN, ("node", "TestRelu", ("in",), {})),
        False,
        "FakeGPU:0",
        "best device of its group",
        {"FakeCPU:0": ("", "FakeGPU devices have a higher priority"), "XLA_CPU:0": ("node", "no kernel for XLA_CPU")},
        "",
    ),
    "no kernel": (
        nodes(IN, ("node", "ReluCPU", ("in",), {})),
        False,
        "FakeCPU:0",
        "best device of its group",
        {"FakeGPU:0": ("node", "'node' (op ReluCPU) has no kernel for FakeGPU"), "FakeCPU:1": ("", "its name comes later")},
        "",
    ),
    "kernel priority": (
        nodes(IN, ("node", "TestDatasetOp", ("in",), {})),
        False,
        "FakeCPU:0",
        "best device of its group",
        {"FakeGPU:0": ("", "kernels for FakeCPU devices have a higher priority here (2 to 1)")},
        "",
    ),
    "requested": (
        nodes(IN, ("node", "TestRelu", ("in",), {"on": "/device:FakeCPU:1"})),
        False,
        "FakeCPU:1",
        "best device of its group",
        {"FakeCPU:0": ("node", "'node' requests /device:FakeCPU:1"), "FakeGPU:0": ("node", "requests")},
        "",
    ),
    "partly requested": (
        nodes(IN, ("node", "TestRelu", ("in",), {"on": "/device:FakeCPU:*"})),
        False,
        "FakeCPU:0",
        "best device of its group",
        {"FakeCPU:1": ("", "its name comes later"), "FakeGPU:0": ("node", "requests /device:FakeCPU:*")},
        "",
    ),
    "assigned": (
        nodes(IN, ("node", "TestRelu", ("in",), {"at": CPU})),
        False,
        "FakeCPU:0",
        "assigned before",
        {"FakeGPU:0": ("node", "was assigned to /job:a/replica:0/task:0/device:FakeCPU:0 before")},
        "",
    ),
    "XLA on request only": (
        nodes(IN, ("node", "TestXlaOp", ("in",), {})),
        False,
        "FakeCPU:0",
        "best device of its group",
        {"XLA_CPU:0": ("", "XLA_CPU devices are used only when requested")},
        "",
    ),
    "XLA requested": (
        nodes(IN, ("node", "TestXlaOp", ("in",), {"on": "/device:XLA_CPU:0"})),
        False,
        "XLA_CPU:0",
        "best device of its group",
        {"FakeCPU:0": ("node", "requests")},
        "",
    ),
    "soft, no kernel": (
        nodes(IN, ("node", "ReluCPU", ("in",), {"on": "/device:FakeGPU:0"})),
        True,
        "FakeCPU:0",
        "best device of its group",
        {"FakeGPU:0": ("node", "no kernel for FakeGPU")},
        "the requested device /device:FakeGPU:0 was replaced",
    ),
    "soft, no such number": (
        nodes(IN, ("node", "TestRelu", ("in",), {"on": "/device:FakeCPU:9"})),
        True,
        "FakeCPU:0",
        "best device of its group",
        {"FakeCPU:1": ("", "its name comes later"), "FakeGPU:0": ("node", "requests /device:FakeCPU:9")},
        "the requested device /device:FakeCPU:9 was replaced",
    ),
    "generator": (
        nodes(("var", "VariableCPU", (), {}), ("node", "TestCPUGPUOutput", (), {}), ("assign", "TestAssign", ("var", "node"), {})),
        False,
        "FakeCPU:0",
        "follows its consumers",
        {"FakeCPU:1": ("", "another rule goes first"), "FakeGPU:0": ("", "another rule goes first")},
        "",
    ),
    "shape": (
        nodes(("var", "VariableCPU", (), {}), ("node", "Shape", ("var",), {"T": gc.float32})),
        False,
        "FakeCPU:0",
        "follows its input",
        {"FakeGPU:0": ("", "another rule goes first")},
        "",
    ),
    "reference edge": (
        nodes(IN, ("var", "VariableCPU", (), {}), ("node", "TestAssign", ("var", "in"), {})),
        False,
        "FakeCPU:0",
        "best device of its group",
        {"FakeGPU:0": ("var", "'var' (op VariableCPU) has no kernel for FakeGPU")},
        "",
    ),
    "request of a reference": (
        nodes(IN, ("var", "TestVariable", (), {"on": "/device:FakeCPU:1"}), ("node", "TestAssign", ("var", "in"), {})),
        False,
        "FakeCPU:1",
        "best device of its group",
        {"FakeGPU:0": ("var", "'var' requests /device:FakeCPU:1"), "FakeCPU:0": ("var", "requests")},
        "",
    ),
    "request that gives way": (
        nodes(
            IN, ("var", "TestVariable", (), {"on": "/device:FakeGPU:0"}), ("node", "TestAssign", ("var", "in"), {"on": "/device:FakeCPU:0"})
        ),
        False,
        "FakeGPU:0",
        "best device of its group",
        {"FakeCPU:0": ("var", "'var' requests /device:FakeGPU:0")},
        "'node' gave way: the edge from 'var' requires its device, /device:FakeGPU:0",
    ),
    "resource chain": (
        chain_of_handles,
        False,
        "FakeCPU:0",
        "best device of its group",
        {"FakeGPU:0": ("var", "'var' (op HandleVariableCPU) has no kernel")},
        "",
    ),
    "_class": (
        nodes(IN, ("node", "TestRelu", ("in",), {"loc": ("in",)})),
        False,
        "FakeCPU:0",
        "best device of its group",
        {"FakeGPU:0": ("in", "'in' (op TestInput) has no kernel for FakeGPU")},
        "",
    ),
    "_class and reference": (
        joined_groups,
        False,
        "FakeGPU:0",
        "best device of its group",
        {"FakeCPU:0": ("var", "'var' (op VariableGPU) has no kernel")},
        "",
    ),
    "_class dropped": (
        nodes(IN, ("node", "ReluGPU", ("in",), {"loc": ("in",)})),
        True,
        "FakeGPU:0",
        "best device of its group",
        {"FakeCPU:0": ("node", "no kernel for FakeCPU")},
        "the colocation with 'in' (loc:@in) is impossible and dropped",
    ),
    "resource of a call": (
        through_call,
        False,
        "FakeCPU:1",
        "best device of its group",
        {"FakeGPU:0": ("var", "'var' requests /device:FakeCPU:1")},
        "",
    ),
    "body of a call": (
        body_fixes,
        False,
        "FakeGPU:0",
        "best device of its group",
        {"FakeCPU:0": ("", "the functions that handle its resource exclude the device")},
        "",
    ),
}


@pytest.mark.parametrize("case", PLACED)
def test_an_explanation_names_rule_candidates_and_what_removed_each(case: str) -> None:
    build, soft, device, rule, removed, note = PLACED[case]
    example = Example()
    build(example)
    placement = gc.Placer(example.graph, DEVICES, allow_soft_placement=soft).run()
    explanation = placement.explain("node")
    assert (explanation.assigned, explanation.rule) == (ADDRESS + device, rule)
    candidates = {entry.device.removeprefix(ADDRESS): entry for entry in explanation.candidates}
    assert candidates[device].why == ""
    assert len(candidates) == len(DEVICES)
    for name, (by, why) in removed.items():
        assert candidates[name].removed_by == by
        assert why in candidates[name].why
    assert len(explanation.notes) == bool(note)
    assert note in "".join(explanation.notes)
    assert f"node ({explanation.op}) is on {ADDRESS}{device}" in str(explanation)
    assert all(entry.why for entry in explanation.candidates if entry is not candidates[device])


TWO_VARIABLES: Final[tuple[Added, ...]] = (
    ("a", "TestHandleVariable", (), {"on": "/device:FakeCPU:0"}),
    ("node", "TestHandleVariable", (), {"on": "/device:FakeGPU:0"}),
)

# name: (graph, soft placement, part of the error, names of a minimal conflicting set)
REFUSED: Final[dict[str, tuple[Build, bool, str, tuple[str, ...]]]] = {
    "no kernels": (nodes(("node", "VariableNoKernels", (), {})), True, "No OpKernel was registered", ("node",)),
    "malformed request": (nodes(("node", "TestInput", (), {"on": "/foo:bar"})), False, "Malformed device specification", ("node",)),
    "malformed assignment": (nodes(("node", "TestInput", (), {"at": "/foo:bar"})), False, "Malformed assigned device", ("node",)),
    "unknown assignment": (nodes(("node", "TestInput", (), {"at": "/job:foo"})), False, "does not match any device", ("node",)),
    "assignment without kernel": (nodes(("node", "TestInput", (), {"at": GPU})), False, "does not have registered OpKernel", ("node",)),
    "no such number": (nodes(("node", "TestRelu", ("in",), {"on": "/device:FakeGPU:7"})), False, "was explicitly assigned to", ("node",)),
    "no such job": (nodes(("node", "TestRelu", ("in",), {"on": "/job:foo"})), True, "was explicitly assigned to /job:foo", ("node",)),
    "request without kernel": (nodes(("node", "ReluCPU", ("in",), {"on": "/device:FakeGPU:0"})), False, "no supported kernel", ("node",)),
    "reference types": (
        nodes(("var", "VariableGPU", (), {}), ("node", "AssignCPU", ("var", "in"), {})),
        True,
        "no device type supports both",
        ("var", "node"),
    ),
    "resource types at a distance": (
        nodes(
            ("var", "HandleVariableGPU", (), {}), ("same", "TestResource", ("var",), {}), ("node", "HandleAssignCPU", ("same", "in"), {})
        ),
        True,
        "no device type supports both",
        ("var", "same", "node"),
    ),
    "_class types": (nodes(("node", "ReluGPU", ("in",), {"loc": ("in",)})), False, "Cannot colocate nodes", ("in", "node")),
    "_class requests": (
        nodes(("one", "TestRelu", ("in",), {"on": "/device:FakeCPU:0"}), ("node", "TestRelu", ("in",), {"on": GPU, "loc": ("one",)})),
        False,
        "Cannot merge devices with incompatible types",
        ("one", "node"),
    ),
    "group and request": (
        nodes(("var", "VariableGPU", (), {}), ("node", "TestAssign", ("var", "in"), {"on": "/device:FakeCPU:0"})),
        False,
        "required incompatible device",
        ("var", "node"),
    ),
    "assigned to two devices": (
        nodes(("var", "TestVariable", (), {"at": GPU}), ("node", "TestAssign", ("var", "in"), {"at": CPU})),
        True,
        "incompatible assigned devices",
        ("var", "node"),
    ),
    "two resources": (
        nodes(*TWO_VARIABLES, ("both", "TestTwoHandlesIn", ("a", "node"), {})),
        True,
        "incompatible resource devices",
        ("a", "node", "both"),
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_an_explanation_of_what_cannot_be_placed_names_a_minimal_conflict(case: str) -> None:
    build, soft, error, conflict = REFUSED[case]
    example = Example()
    example.add("in", "TestInput")
    build(example)
    node = example.graph.find("node")
    assert node is not None
    explanation = gc.explain_placement(node, DEVICES, allow_soft_placement=soft)
    assert error in explanation.error
    assert explanation.assigned == explanation.rule == ""
    assert tuple([entry.name for entry in explanation.conflict]) == conflict
    assert all("setting.py, line" in entry.where for entry in explanation.conflict)
    assert "node has no device" in str(explanation).replace(f" ({explanation.op})", "")
    with pytest.raises(gc.GraphError) as raised:
        gc.Placer(example.graph, DEVICES, allow_soft_placement=soft).run()
    if len(conflict) > 1:
        lines = raised.value.message.split("These nodes cannot be placed together")[1]
        assert [name for name in conflict if f"  {name} (" in lines] == list(conflict)


def test_a_conflict_in_a_call_names_the_resources_and_the_call() -> None:
    example = Example(TWO)
    example.add("a", "TestHandleVariable", on="/device:FakeCPU:0")
    example.add("b", "TestHandleVariable", on="/device:FakeGPU:0")
    call = example.call("y", "Two", "a", "b", types="rr", out="r")
    conflict = gc.explain_placement(call, DEVICES).conflict
    assert [node.name for node in conflict] == ["a", "b", "y"]


def test_a_conflict_leaves_out_the_rest_of_the_group() -> None:
    example = Example()
    example.add("in", "TestInput")
    example.add("var", "VariableGPU")
    for index in range(30):
        example.add(f"assign{index}", "TestAssign", "var", "in")
    example.add("wrong", "AssignCPU", "var", "in")
    wrong = example.graph.find("wrong")
    assert wrong is not None
    assert [node.name for node in gc.explain_placement(wrong, DEVICES).conflict] == ["var", "wrong"]


def test_a_chain_of_reasons_leads_from_any_member_to_any_other() -> None:
    example = Example()
    joined_groups(example)
    explanation = gc.Placer(example.graph, DEVICES).run().explain("var")
    assert explanation.group == ("var", "assign", "node")
    assert explanation.chain("var", "node") == ("reference edge var:0 -> assign:0", "_class loc:@assign")
    assert explanation.chain("node", "var") == ("_class loc:@assign", "reference edge var:0 -> assign:0")
    assert explanation.chain("var", "var") == ()
    with pytest.raises(gc.errors.InvalidArgumentError, match="got 'in'"):
        explanation.chain("var", "in")


def test_what_removed_a_candidate_comes_with_the_chain_that_leads_there() -> None:
    example = Example()
    chain_of_handles(example)
    explanation = gc.Placer(example.graph, DEVICES).run().explain("node")
    assert explanation.candidates[2].chain == ("resource edge first:0 -> node:0", "resource edge var:0 -> first:0")
    assert "resource edge var:0 -> first:0" in str(explanation)


def test_copies_are_counted_in_bytes() -> None:
    with gc.Graph().as_default() as graph:
        with gc.device("/cpu:0"):
            x = gc.placeholder(gc.float32, [10, 3])
        with gc.device("/gpu:0"):
            y = gc.ops.tanh(x)
        with gc.device("/gpu:1"):
            gc.ops.exp(y)
            gc.ops.neg(y)
        with gc.device("/cpu:0"):
            gc.ops.neg(y)
        gc.Placer(graph, gc.simulated_devices("1 cpu, 2 gpu")).run()
    explanation = gc.explain_placement(y)
    assert [(copy.source[-5:], copy.destination[-5:], copy.bytes) for copy in explanation.copies] == [
        ("CPU:0", "GPU:0", 120),
        ("GPU:0", "GPU:1", 120),
        ("GPU:0", "CPU:0", 120),
    ]
    assert explanation.copied_bytes == 360
    assert "copies: 3, 360 bytes" in str(explanation)


def test_a_copy_of_unknown_size_is_said_to_be_one() -> None:
    with gc.Graph().as_default() as graph:
        with gc.device("/cpu:0"):
            x = gc.placeholder(gc.float32, [None, 3])
        with gc.device("/gpu:0"):
            gc.ops.tanh(x)
        gc.Placer(graph, gc.simulated_devices("1 cpu, 1 gpu")).run()
    explanation = gc.explain_placement(x)
    assert explanation.copied_bytes is None
    assert "1 of unknown size" in str(explanation)


def test_an_explanation_is_json_too() -> None:
    example = Example()
    joined_groups(example)
    explanation = gc.Placer(example.graph, DEVICES).run().explain("node")
    read = json.loads(explanation.to_json())
    assert read["assigned"] == GPU
    assert read["group"] == ["var", "assign", "node"]
    assert {"requested", "candidates", "links", "rule", "copies", "conflict"} <= read.keys()


def test_simulated_devices_are_marked_in_explanations() -> None:
    with gc.Graph().as_default():
        text = str(gc.explain_placement(gc.constant(1.0), gc.simulated_devices("1 cpu, 1 gpu")))
    assert text.count("(simulated)") == 3


def test_without_a_placement_the_cpu_of_this_process_is_assumed() -> None:
    with gc.Graph().as_default():
        explanation = gc.explain_placement(gc.constant(1.0))
    assert explanation.assigned == "/job:localhost/replica:0/task:0/device:CPU:0"


def test_an_explanation_assigns_nothing() -> None:
    with gc.Graph().as_default():
        node = gc.constant(1.0).op
        gc.explain_placement(node, gc.simulated_devices("1 cpu"))
    assert node.assigned_device == ""


def test_an_unknown_node_has_no_explanation() -> None:
    example = Example()
    example.add("in", "TestInput")
    placement = gc.Placer(example.graph, DEVICES).run()
    with pytest.raises(gc.errors.NotFoundError, match="a node of the placed graph"):
        placement.explain("other")


def test_a_placed_graph_is_explained_by_its_rules_and_not_by_its_own_placement() -> None:
    graph = gc.Graph()
    with graph.as_default(), gc.device("/cpu:1"):
        node = gc.constant(1.0, name="c").node
    machine = gc.simulated_devices("2 cpu")
    gc.Placer(graph, machine).run()
    found = gc.explain_placement(node, machine)
    assert found.rule == "best device of its group"
    assert "requests" in found.candidates[0].why
    assert node.assigned_device in found.assigned
