"""Files that try to reach outside, to take all memory, or to be markup."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from safetensors.numpy import save_file

import graphcore as gc
from graphcore.errors import GraphError, InvalidArgumentError
from graphcore.frontends.foreign import ForeignFunction, ForeignGraph, ForeignNode, ModuleCall, Port, SourceFrame
from graphcore.frontends.lowering import lower
from graphcore.frontends.sources import open_source
from graphcore.graph import Graph
from tests.support.hostile_names import HOSTILE_NAMES
from widgets import to_html, to_outline

MARKUP = re.compile(r"<(script|img|svg|iframe|object|embed|body|base|meta|link|form)[^>]*(alert|example\.com)", re.IGNORECASE)
WRITABLE = [name for name in HOSTILE_NAMES if name.encode(errors="replace") == name.encode(errors="ignore")]
"""The names that UTF-8 can write, as these files do."""


def hostile_graph(name: str) -> Graph:
    """A graph of another framework with this text in each place that has one."""
    port = Port(name, name, ("batch", name), name)
    frame = SourceFrame(name, 3, name, name)
    node = ForeignNode(
        name, f"f.{name}", ((f"{name}in", 0),), (port,), (name,), {name: name}, {name: name}, (ModuleCall(name, name),), (frame,), doc=name
    )
    nodes = [ForeignNode(f"{name}in", "f.Input", (), (port,), kind="input"), node]
    main = ForeignFunction(name, (port,), ((name, 0),), (name,), nodes, name)
    return lower(ForeignGraph(name, main, name, name, {}, {name: name}, [name], docs=lambda _: name))


def as_onnx(folder: Path, name: str) -> Path:
    value = helper.make_tensor_value_info(name or "x", TensorProto.FLOAT, [name, 2])
    node = helper.make_node("Relu", [name or "x"], [f"{name}y"], name, doc_string=name)
    node.metadata_props.add(key="pkg.torch.onnx.name_scopes", value=repr(["", name, "relu"]))
    result = helper.make_tensor_value_info(f"{name}y", TensorProto.FLOAT, None)
    path = folder / "hostile.onnx"
    path.write_bytes(helper.make_model(helper.make_graph([node], name or "g", [value], [result])).SerializeToString())
    return path


def as_safetensors(folder: Path, name: str) -> Path:
    path = folder / "hostile.safetensors"
    save_file({f"{name}.weight": np.ones(2, np.float32)}, path, {"note": name})
    return path


def as_archive(folder: Path, name: str) -> Path:
    path = folder / "hostile.npz"
    arrays: dict[str, Any] = {f"{name.replace(chr(0), '')}.weight": np.ones(2, np.float32)}
    np.savez(path, **arrays)
    return path


def as_mlir(folder: Path, name: str) -> Path:
    quoted = "".join([f"\\{byte:02X}" for byte in name.encode()])
    path = folder / "hostile.mlir"
    path.write_text(
        f'module @m {{ func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {{\n  %y = stablehlo.tanh %x {{"k{quoted}" = "{quoted}"}} : tensor<2xf32> '
        f'loc("{quoted}")\n  return %y : tensor<2xf32> }} }}'
    )
    return path


@pytest.mark.parametrize("number", range(0, len(HOSTILE_NAMES), 4))
def test_no_text_of_a_model_is_markup_in_its_page(number: int) -> None:
    for name in HOSTILE_NAMES[number : number + 4]:
        page = to_html(hostile_graph(name))
        assert MARKUP.search(page) is None
        assert isinstance(to_outline(hostile_graph(name)), str)


@pytest.mark.parametrize("write", [as_onnx, as_safetensors, as_archive, as_mlir])
def test_hostile_names_of_files_are_opened_as_text_or_refused(tmp_path: Path, write: Any) -> None:
    opened = 0
    for name in WRITABLE:
        try:
            graph = gc.load(write(tmp_path, name))
        except GraphError:
            continue
        opened += 1
        assert not any(character in "<>\"'&\x00\n" for node in graph.op_nodes() for character in node.name)
        if opened % 10 == 1:
            assert MARKUP.search(to_html(graph)) is None
    assert opened > len(WRITABLE) // 2


def test_a_link_in_a_package_leads_nowhere_else(tmp_path: Path) -> None:
    outside = tmp_path / "outside.mlmodel"
    outside.write_bytes(b"secret")
    package = tmp_path / "linked.mlpackage"
    (package / "Data").mkdir(parents=True)
    (package / "Data" / "model.mlmodel").symlink_to(outside)
    (package / "Manifest.json").write_text(
        '{"itemInfoEntries": {"a": {"name": "model.mlmodel", "path": "model.mlmodel"}}, "rootModelIdentifier": "a"}'
    )
    with pytest.raises(InvalidArgumentError, match="not in the package"):
        gc.load(package)


def test_an_array_that_unpacks_to_more_than_the_limit_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "bomb.npz"
    np.savez_compressed(path, w=np.zeros(1 << 20))
    monkeypatch.setattr("graphcore.frontends.reading.reading_limits.inflated_bytes", 1 << 20)
    (node,) = open_source(path).main.nodes
    assert node.weight is not None
    assert node.weight.load is not None
    with pytest.raises(GraphError, match="limit"):
        node.weight.load()


def test_members_of_an_archive_are_never_files_beside_it(tmp_path: Path) -> None:
    (tmp_path / "w.npy").write_bytes(b"secret")
    path = tmp_path / "inner.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("../w.npy", b"secret")
        archive.writestr("/etc/passwd.npy", b"secret")
    with pytest.raises(GraphError):
        gc.load(path)


def test_external_data_behind_a_link_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "secret.bin").write_bytes(bytes(8))
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "w.bin").symlink_to(tmp_path / "secret.bin")
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[2], data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value="w.bin")
    result = helper.make_tensor_value_info("w", TensorProto.FLOAT, [2])
    onnx.save(helper.make_model(helper.make_graph([], "g", [], [result], [tensor])), folder / "m.onnx")
    weight = next(node.weight for node in open_source(folder / "m.onnx").main.nodes if node.weight is not None)
    assert weight.load is not None
    with pytest.raises(GraphError, match="outside"):
        weight.load()
