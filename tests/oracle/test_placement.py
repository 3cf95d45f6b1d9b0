"""Placement on several CPUs and in several tasks, against TensorFlow's placer."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Collection, Sequence

import msgspec
import numpy as np
import pytest

import graphcore as gc
from graphcore.attrs import AttrValue
from graphcore.definitions.wire import graph_def_from_bytes, graph_def_to_bytes
from tests.oracle.conftest import Oracle

CPUS = 3
FUNCTION = gc.parse_function("Same(x:resource) -> (y:resource) {\n  y = Identity[T=resource](x)\n  return y = y:output:0\n}")
ALL = "all"


class RandomGraph:
    """Constants, variables of both kinds and arithmetic, with random requests and colocation constraints."""

    def __init__(self, seed: int, tasks: int, *, calls: bool = True) -> None:
        self.random = random.Random(seed)
        self.graph = gc.Graph()
        self.graph.library.add_function_def(msgspec.structs.replace(FUNCTION, attr={"_noinline": True}))
        self.job = "worker" if tasks else "localhost"
        self.tasks = max(tasks, 1)
        self.calls = calls and not tasks  # TensorFlow passes no handles of other tasks to functions
        self.most_requested = self.random.choice([0.2, 0.5, 0.8])
        self.numbers: list[str] = []
        self.handles: dict[str, str] = {}
        self.references: list[str] = []
        self.build()

    def request(self) -> str:
        """A requested device: none, a partial one, a complete one, or rarely one that does not exist."""
        if self.random.random() > self.most_requested:
            return ""
        parts = [f"/device:CPU:{self.random.randrange(CPUS)}", "/device:CPU:*", f"/job:{self.job}"]
        task = f"/job:{self.job}/replica:0/task:{self.random.randrange(self.tasks)}"
        parts += [task, f"{task}/device:CPU:{self.random.randrange(CPUS)}"]
        if self.random.random() < 0.06:
            parts = ["/device:CPU:9", "/device:GPU:0", "/job:nowhere", f"{task}/device:CPU:7"]
        return self.random.choice(parts)

    def add(self, name: str, op: str, *inputs: str, **attrs: object) -> str:
        """Add a node with a random request, and rarely with a random colocation constraint."""
        if self.random.random() < 0.15 and len(self.graph):
            attrs["_class"] = (f"loc:@{self.random.choice(self.graph.nodes).name}".encode(),)
        self.graph.add_node(gc.NodeDef(name, op, inputs, self.request(), attrs))  # type: ignore[arg-type]  # attr values of several types
        return name

    def build(self) -> None:
        """Add the nodes, and one that runs them all."""
        self.constant("c")
        for index in range(self.random.randrange(3, 16)):
            self.random.choice([self.constant, self.add_v2, self.negative, self.shape, self.handle, self.reference, self.again])(
                f"n{index}"
            )
        controls = tuple([f"^{node.name}" for node in self.graph.nodes])
        self.graph.add_node(gc.NodeDef(ALL, "NoOp", controls))

    def number(self) -> str:
        """A float."""
        return self.random.choice(self.numbers)

    def constant(self, name: str) -> None:
        """Add a constant."""
        self.numbers.append(self.add(name, "Const", value=gc.TensorValue(np.float32(1)), dtype=gc.float32))

    def add_v2(self, name: str) -> None:
        """Add a sum."""
        self.numbers.append(self.add(name, "AddV2", self.number(), self.number(), T=gc.float32))

    def negative(self, name: str) -> None:
        """Add a Neg of a number. Another pass than the placer colocates an Identity with colocated inputs, so there is none of these."""
        self.numbers.append(self.add(name, "Neg", self.number(), T=gc.float32))

    def shape(self, name: str) -> None:
        """Add a Shape."""
        self.add(name, "Shape", self.number(), T=gc.float32, out_type=gc.int32)

    def handle(self, name: str) -> None:
        """Add a resource variable with its first assignment."""
        handle = self.add(name, "VarHandleOp", dtype=gc.float32, shape=gc.Shape([]), shared_name=name.encode())
        self.handles[handle] = self.add(f"{name}_set", "AssignVariableOp", handle, self.number(), dtype=gc.float32)

    def reference(self, name: str) -> None:
        """Add a reference variable with a chain of assignments."""
        variable = self.add(name, "VariableV2", shape=gc.Shape([]), dtype=gc.float32)
        self.references.append(self.add(f"{name}_set", "Assign", variable, self.number(), T=gc.float32))

    def again(self, name: str) -> None:
        """Add another use of a variable."""
        if self.handles and self.random.random() < 0.5:
            handle, assigned = self.random.choice(list(self.handles.items()))
            if self.random.random() < 0.3 and self.calls:
                types = (gc.resource,)
                self.handles[self.add(name, "PartitionedCall", handle, f=gc.Func("Same"), Tin=types, Tout=types)] = assigned
            elif self.random.random() < 0.3:
                self.handles[self.add(name, "Identity", handle, T=gc.resource)] = assigned
            else:
                self.numbers.append(self.add(name, "ReadVariableOp", handle, f"^{assigned}", dtype=gc.float32))
        elif self.references:
            self.references.append(self.add(name, "AssignAdd", self.random.choice(self.references), self.number(), T=gc.float32))


def placed_here(graph: gc.Graph, job: str, tasks: int, *, soft: bool) -> dict[str, str] | str:
    """The devices by node, or the text of the error."""
    names = [f"/job:{job}/replica:0/task:{task}/device:CPU:{cpu}" for task in range(tasks) for cpu in range(CPUS)]
    try:
        placement = gc.Placer(graph, gc.DeviceSet(names), allow_soft_placement=soft).run()
    except (gc.errors.InvalidArgumentError, gc.errors.InternalError) as error:
        return error.message
    return {node.name: device.name for node, device in placement.devices.items()}


PHRASES = (
    "Cannot assign a device for operation",
    "was explicitly assigned to",
    "Cannot colocate nodes",
    "Cannot merge devices with incompatible",
    "incompatible resource devices",
    "required incompatible device",
    "Could not satisfy explicit device specification",
)


@pytest.mark.parametrize("tasks", [0, 2], ids=["one task", "two tasks"])
@pytest.mark.parametrize("soft", [False, True], ids=["hard", "soft"])
@pytest.mark.parametrize("seed", range(40))
def test_a_random_graph_is_placed_or_refused_as_in_tensorflow(seed: int, soft: bool, tasks: int, oracle: Oracle) -> None:
    made = RandomGraph(seed, tasks)
    data = graph_def_to_bytes(made.graph.as_graph_def())
    theirs = oracle.call("tests.oracle.sides.placement_side:placed", data, CPUS, tasks, soft, ALL)
    ours = placed_here(made.graph, made.job, made.tasks, soft=soft)
    if isinstance(theirs, str) or isinstance(ours, str):
        assert isinstance(theirs, str), f"refused here only: {ours}"
        assert isinstance(ours, str), f"refused in TensorFlow only: {theirs}"
        assert [phrase in ours for phrase in PHRASES] == [phrase in theirs for phrase in PHRASES], f"here: {ours}\nin TensorFlow: {theirs}"
        return
    assert {name: theirs.get(name) for name in ours} == ours


def described(parts: Sequence[gc.GraphDef], own: Collection[str]) -> dict[str, tuple[str, ...]]:
    """The device, op and inputs of each node of a graph in its partitions.

    Args:
        parts: the partitions.
        own: the names of the graph's nodes. Other nodes transfer values: an input from another device is written as the value sent there.
    """
    nodes = {node.name: node for part in parts for node in part.node}
    sent = {tensor_name(node): node for node in nodes.values() if node.op == "_Send"}

    def origin(text: str) -> str:
        name = text.removeprefix("^").removesuffix(":0")
        node = nodes.get(name)
        if name in own or node is None:
            return text.removesuffix(":0")
        if node.op == "_Recv":
            send = sent[tensor_name(node)]
            return f"{origin(send.input[0])} over {send.device} -> {node.device}"
        return origin(node.input[0])  # an empty constant after the node that it stands for, or its copy on the other side

    found = {}
    for name in own:
        node = nodes[name]
        data = [origin(text) for text in node.input if not text.startswith("^")]
        controls = sorted(origin(text) for text in node.input if text.startswith("^"))
        found[name] = (node.device, node.op, *data, "after", *controls)
    return found


def tensor_name(node: gc.NodeDef) -> tuple[object, ...]:
    """The key of a transfer."""
    return tuple([node.attr[name] for name in ("tensor_name", "send_device", "recv_device")])


def transfers(parts: Sequence[gc.GraphDef]) -> list[tuple[str, int]]:
    """The ops of the nodes that transfer values, with their numbers."""
    return sorted(Counter(node.op for part in parts for node in part.node if node.op in {"_Send", "_Recv"}).items())


@pytest.mark.parametrize("seed", range(40))
def test_a_random_graph_is_divided_as_in_tensorflow(seed: int, oracle: Oracle) -> None:
    made = RandomGraph(1_000 + seed, 0, calls=False)  # around calls TensorFlow adds nodes before it places
    data = graph_def_to_bytes(made.graph.as_graph_def())
    theirs = oracle.call("tests.oracle.sides.placement_side:partitioned", data, CPUS, ALL)
    ours = placed_here(made.graph, made.job, 1, soft=True)
    if isinstance(theirs, str) or isinstance(ours, str):
        assert isinstance(ours, str) is isinstance(theirs, str)
        return
    own = {node.name for node in made.graph.nodes}
    here = list(gc.partition_graph(made.graph).values())
    there = [graph_def_from_bytes(part) for part in theirs]
    assert described(here, own) == described(there, own)
    assert transfers(here) == transfers(there)


BODIES = """Read(h:resource, x:float) -> (y:float) {
  read = ReadVariableOp[dtype=float](h)
  sum = AddV2[T=float](read:value:0, x)
  return y = sum:z:0
}

Keep(h:resource, x:float) -> (y:float) {
  same = Identity[T=float](x)
  return y = same:output:0
}

Small(h:resource, x:float) -> (y:bool) {
  limit = Const[dtype=float, value=Tensor<type: float shape: [] values: 3>]()
  less = Less[T=float](x, limit:output:0)
  return y = less:z:0
}

Step(h:resource, x:float) -> (g:resource, y:float) {
  same = Identity[T=resource](h)
  read = ReadVariableOp[dtype=float](h)
  sum = AddV2[T=float](read:value:0, x)
  return g = same:output:0
  return y = sum:z:0
}"""


@pytest.mark.parametrize("soft", [False, True], ids=["hard", "soft"])
@pytest.mark.parametrize("op", ["If", "While"])
@pytest.mark.parametrize(("variable", "branching"), [("", ""), ("1", ""), ("", "1"), ("1", "1"), ("1", "2"), ("2", "1")])
def test_branches_and_loops_over_a_variable_are_placed_as_in_tensorflow(
    variable: str, branching: str, op: str, soft: bool, oracle: Oracle
) -> None:
    graph = gc.Graph()
    for text in BODIES.split("\n\n"):
        graph.library.add_function_def(gc.parse_function(text))
    types = (gc.resource, gc.float32)

    def add(name: str, kind: str, *inputs: str, at: str = "", **attrs: AttrValue) -> None:
        graph.add_node(gc.NodeDef(name, kind, inputs, at and f"/device:CPU:{at}", attrs))

    add("c", "Const", value=gc.TensorValue(np.float32(1)), dtype=gc.float32)
    add("p", "Const", value=gc.TensorValue(np.bool_(1)), dtype=gc.bool_)
    add("v", "VarHandleOp", at=variable, dtype=gc.float32, shape=gc.Shape([]), shared_name=b"v")
    add("set", "AssignVariableOp", "v", "c", dtype=gc.float32)
    if op == "If":
        branches = {"then_branch": gc.Func("Read"), "else_branch": gc.Func("Keep")}
        add("call", "If", "p", "v", "c", "^set", at=branching, Tcond=gc.bool_, Tin=types, Tout=(gc.float32,), **branches)
        add("use", "Neg", "call", T=gc.float32)
    else:
        add("call", "While", "v", "c", "^set", at=branching, T=types, cond=gc.Func("Small"), body=gc.Func("Step"))
        add("use", "Neg", "call:1", T=gc.float32)
    add(ALL, "NoOp", "^use", "^p")
    data = graph_def_to_bytes(graph.as_graph_def())
    theirs = oracle.call("tests.oracle.sides.placement_side:placed", data, CPUS, 0, soft, ALL)
    ours = placed_here(graph, "localhost", 1, soft=soft)
    if isinstance(theirs, str) or isinstance(ours, str):
        assert isinstance(theirs, str), f"refused here only: {ours}"
        assert isinstance(ours, str), f"refused in TensorFlow only: {theirs}"
        return
    assert {name: theirs.get(name) for name in ours} == ours
