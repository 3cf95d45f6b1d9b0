"""The setting of the examples: devices of two types, and ops with kernels on some of them."""

from __future__ import annotations

from typing import Any, Final

import pytest

import graphcore as gc
from graphcore.inference.shape_fns.elementwise import unknown_shape

gc.register_device_type("FakeCPU", 50)
gc.register_device_type("FakeGPU", 51)
gc.register_device_type("XLA_CPU", 52)

CPU: Final = "/job:a/replica:0/task:0/device:FakeCPU:0"
GPU: Final = "/job:a/replica:0/task:0/device:FakeGPU:0"
OP_SET: Final = gc.OpRegistry()

SIGNATURES: Final = {
    "TestVariable": "TestVariable() -> (o:Ref(float))",
    "VariableCPU": "VariableCPU() -> (o:Ref(float))",
    "VariableGPU": "VariableGPU() -> (o:Ref(float))",
    "VariableNoKernels": "VariableNoKernels() -> (o:Ref(float))",
    "TestAdd": "TestAdd(a:float, b:float) -> (o:float)",
    "TestRelu": "TestRelu(i:float) -> (o:float)",
    "ReluCPU": "ReluCPU(i:float) -> (o:float)",
    "ReluGPU": "ReluGPU(i:float) -> (o:float)",
    "TestAssign": "TestAssign(i:Ref(float), v:float) -> ()",
    "AssignCPU": "AssignCPU(i:Ref(float), v:float) -> ()",
    "AssignGPU": "AssignGPU(i:Ref(float), v:float) -> ()",
    "TestInput": "TestInput() -> (a:float, b:float)",
    "TestGPUOutput": "TestGPUOutput() -> (a:float)",
    "TestCPUGPUOutput": "TestCPUGPUOutput() -> (a:float)",
    "TestDevice": "TestDevice() -> (a:float, b:float)",
    "TestDatasetOp": "TestDatasetOp(a:float) -> (b:float)",
    "TestXlaOp": "TestXlaOp(a:float) -> (b:float)",
    "TestHandleVariable": "TestHandleVariable() -> (o:resource)",
    "HandleVariableCPU": "HandleVariableCPU() -> (o:resource)",
    "HandleVariableGPU": "HandleVariableGPU() -> (o:resource)",
    "IteratorGPU": "IteratorGPU() -> (o:resource)",
    "TestHandleAssign": "TestHandleAssign(i:resource, v:float) -> ()",
    "HandleAssignCPU": "HandleAssignCPU(i:resource, v:float) -> ()",
    "HandleAssignGPU": "HandleAssignGPU(i:resource, v:float) -> ()",
    "TestTwoHandlesIn": "TestTwoHandlesIn(i:resource, j:resource) -> ()",
    "TestResource": "TestResource(i:resource) -> (o:resource)",
    **{f"CreateDataset{end}": f"CreateDataset{end}() -> (o:resource)" for end in ("SP", "RP", "NP")},
    **{f"Dataset{end}": f"Dataset{end}(a:resource) -> (o:resource)" for end in ("SP", "RP", "NP", "CPU", "GPU")},
}
REAL: Final = ("Shape", "Identity", "PartitionedCall", "StatefulPartitionedCall", "_Arg", "_Retval", "NoOp")
ONLY_CPU: Final = {"TestInput"}
ONLY_GPU: Final = {"TestGPUOutput"}
BOTH_TYPES: Final = ("FakeCPU", "FakeGPU")


def _priorities(op: str) -> dict[str, int]:
    """The device types on which an op of the setting has kernels, with their priorities."""
    if op == "VariableNoKernels":
        return {}
    if op == "TestXlaOp":
        return {"XLA_CPU": 0, "FakeCPU": 0}
    if op == "TestDatasetOp" or op.endswith("SP"):
        return {"FakeCPU": 2, "FakeGPU": 1}
    if op.endswith("RP"):
        return {"FakeCPU": 1, "FakeGPU": 2}
    if op in ONLY_CPU or op.endswith("CPU"):
        return {"FakeCPU": 0}
    if op in ONLY_GPU or (op.endswith("GPU") and op != "TestCPUGPUOutput"):
        return {"FakeGPU": 0}
    return {"FakeCPU": 0, "FakeGPU": 0}


KERNELS: Final = {op: _priorities(op) for op in (*SIGNATURES, *REAL)}
for _op, _signature in SIGNATURES.items():
    OP_SET.register(gc.parse_op_signature(_signature), unknown_shape)
for _op in REAL:
    OP_SET.register(gc.op_registry.look_up(_op))
for _op, _types in KERNELS.items():
    for _type, _priority in _types.items():
        gc.register_kernel(_op, _type, _priority)


def fake_devices(*, xla: bool = True) -> gc.DeviceSet:
    names = [f"/job:a/replica:0/task:0/device:{kind}:{number}" for kind in BOTH_TYPES for number in range(10)]
    return gc.DeviceSet([*names, "/job:a/replica:0/task:0/device:XLA_CPU:0"] if xla else names)


class Example:
    """A graph of the setting, built node by node: `e.add("r", "TestRelu", "in:0")`."""

    def __init__(self, *functions: str) -> None:
        self.graph = gc.Graph(OP_SET)
        for text in functions:
            self.graph.library.add_function_def(gc.parse_function(text))

    def add(self, name: str, op: str, *inputs: str, on: str = "", at: str = "", loc: tuple[str, ...] = (), **attrs: Any) -> gc.Node:
        """Add a node requested `on` a device, assigned `at` one, and colocated with the nodes `loc`."""
        if loc:
            attrs["_class"] = tuple([f"loc:@{other}".encode() for other in loc])
        node = self.graph.add_node(gc.NodeDef(name, op, inputs, on, attrs))
        node.assigned_device = at
        return node

    def call(self, name: str, function: str, *inputs: str, on: str = "", types: str = "", out: str = "") -> gc.Node:
        """Add a call of a function.

        `types` and `out` have a letter for each input and output: `f` for float, `r` for resource.
        """
        kinds = {"f": gc.float32, "r": gc.resource}
        takes, gives = (tuple([kinds[letter] for letter in letters]) for letters in (types, out))
        return self.add(name, "PartitionedCall", *inputs, on=on, f=gc.Func(function), Tin=takes, Tout=gives)

    def place(self, *, soft: bool = True, devices: gc.DeviceSet | None = None, **options: Any) -> dict[str, str]:
        """The short names of the devices by node, such as `FakeCPU:0`."""
        gc.Placer(self.graph, devices or fake_devices(), allow_soft_placement=soft, **options).run()
        return {node.name: node.assigned_device.rpartition("device:")[2] for node in self.graph.nodes}

    def error(self, kind: type[gc.GraphError] = gc.errors.InvalidArgumentError, **options: Any) -> str:
        """The text of the error of placing it."""
        with pytest.raises(kind) as raised:
            self.place(**options)
        assert type(raised.value) is kind
        return raised.value.message
