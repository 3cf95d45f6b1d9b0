"""Files for the rows of the views that open files, written when they are needed."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
from onnx import TensorProto, helper

import graphcore as gc
from graphcore.checkpoints.varints import varint

FRONTENDS: Final = Path(__file__).resolve().parents[1] / "data" / "frontends"
HELD: Final = 2_000_000_000
"""The bytes of the weights of the heavy file; a protobuf file has less than 2 GiB."""


def graph_def(folder: Path, scopes: int) -> Path:
    """A GraphDef of 100 nodes in each scope."""
    graph = gc.Graph()
    with graph.as_default():
        tensor = gc.placeholder(gc.float32, [8, 8], name="x")
        for scope in range(scopes):
            with gc.name_scope(f"block{scope // 100}/layer{scope % 100}"):
                for number in range(100):
                    tensor = gc.tanh(tensor) if number % 3 else gc.add(tensor, tensor)
    file = folder / "large.pb"
    gc.save(graph, file)
    return file


def onnx_file(folder: Path, layers: int) -> Path:
    """An ONNX model of 20 nodes and 5 weights in each layer, with the shapes of all tensors."""
    file = folder / f"layers{layers}.onnx"
    onnx.save(_onnx_model(layers), file)
    return file


def heavy_onnx_file(folder: Path) -> Path:
    """The same model of 100 layers with 2 GB of weights in it, a hole in the file."""
    model = _onnx_model(100)
    graph = model.graph.SerializeToString()
    model.ClearField("graph")
    weight = (
        TensorProto(name="heavy", dims=[HELD // 4], data_type=TensorProto.FLOAT).SerializeToString() + b"\x4a" + varint(HELD)
    )  # raw_data
    initializer = b"\x2a" + varint(len(weight) + HELD) + weight
    file = folder / "heavy.onnx"
    with file.open("wb") as stream:
        stream.write(model.SerializeToString() + b"\x3a" + varint(len(graph) + len(initializer) + HELD) + graph + initializer)
        stream.truncate(stream.tell() + HELD)
    return file


def _onnx_model(layers: int) -> onnx.ModelProto:
    nodes: list[onnx.NodeProto] = []
    weights: list[TensorProto] = []
    last = "x"
    for part in range(5 * layers):
        path = f"/layers.{part // 5}/block.{part % 5}"
        weights.append(helper.make_tensor(f"layers.{part // 5}.{part % 5}.weight", TensorProto.FLOAT, [8, 8], np.zeros(64, np.float32)))
        taken = [last, weights[-1].name]
        for op in ("MatMul", "Relu", "Softmax"):
            nodes.append(helper.make_node(op, taken, [f"{path}/{op}_output_0"], name=f"{path}/{op}"))
            taken = [f"{path}/{op}_output_0"]
        nodes.append(helper.make_node("Add", [*taken, last], [f"{path}/Add_output_0"], name=f"{path}/Add"))
        last = f"{path}/Add_output_0"
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", 8]) for name in ("x", *[node.output[0] for node in nodes])]
    return helper.make_model(helper.make_graph(nodes, "layers", [infos[0]], [infos[-1]], weights, value_info=infos[1:-1]))


def pt2_file(folder: Path, copies: int) -> Path:
    """A stored program of PyTorch of 5 nodes, several times: each copy takes what the last one gave."""
    file = folder / f"copies{copies}.pt2"
    with zipfile.ZipFile(FRONTENDS / "net.pt2") as stored, zipfile.ZipFile(file, "w") as wide:
        for name in stored.namelist():
            data = stored.read(name)
            wide.writestr(name, _copied(json.loads(data), copies) if name.endswith("models/model.json") else data)
    return file


def _copied(program: dict[str, Any], copies: int) -> str:
    graph = program["graph_module"]["graph"]
    given = graph["nodes"]
    values = graph["tensor_values"]
    made = {each["as_tensor"]["name"] for node in given for each in node["outputs"]}
    last = given[-1]["outputs"][0]["as_tensor"]["name"]
    text = json.dumps(given)
    for number in range(1, copies):
        nodes = json.loads(text)
        for node in nodes:
            for each in (*[entry["arg"] for entry in node["inputs"]], *node["outputs"]):
                tensor = each.get("as_tensor")
                if tensor is not None and tensor["name"] in made:
                    values[f"{tensor['name']}_{number}"] = values[tensor["name"]]
                    tensor["name"] += f"_{number}"
            node["name"] = f"{node['name']}_{number}"
            stack = node["metadata"]["nn_module_stack"]
            node["metadata"]["nn_module_stack"] = stack.replace("L__self__", f"L__self__{number}")
        nodes[0]["inputs"][0]["arg"]["as_tensor"]["name"] = last
        last = nodes[-1]["outputs"][0]["as_tensor"]["name"]
        graph["nodes"] = [*graph["nodes"], *nodes]
    graph["outputs"] = [{"as_tensor": {"name": last}}]
    for spec in program["graph_module"]["signature"]["output_specs"]:
        spec["user_output"]["arg"]["as_tensor"]["name"] = last
    return json.dumps(program)
