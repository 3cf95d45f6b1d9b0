"""Graph files on disk are recognised by content."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from google.protobuf import text_format

from graphcore import dtypes as d
from graphcore.definitions import FunctionDef, FunctionDefLibrary, GraphDef, NodeDef, OpDef
from graphcore.definitions.wire import (
    Signature,
    TensorInfo,
    graph_def_to_bytes,
    load_graph_def,
    load_meta_graph,
    load_meta_graphs,
    save_graph_def,
    schema,
)
from graphcore.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError
from graphcore.shapes import Shape

GRAPH = GraphDef(
    node=(NodeDef("x", "Placeholder", (), "", {"dtype": d.float32}),), library=FunctionDefLibrary((FunctionDef(signature=OpDef(name="F")),))
)
UNKNOWN = b"\xfa\x7f\x03abc"


def meta_graph(*tags: str) -> Any:
    message = schema.MetaGraphDef()
    message.meta_info_def.tags.extend(tags)
    message.meta_info_def.tensorflow_version = "2.21.0"
    message.meta_info_def.stripped_op_list.op.add(name="Placeholder")
    message.graph_def.ParseFromString(graph_def_to_bytes(GRAPH))
    for name, infos in (("x", message.signature_def["serve"].inputs), ("y", message.signature_def["serve"].outputs)):
        infos[name].name = f"{name}:0"
        infos[name].dtype = 1
        infos[name].tensor_shape.dim.add(size=-1)
    message.MergeFromString(UNKNOWN)
    return message


def saved_model(*tags: tuple[str, ...]) -> Any:
    return schema.SavedModel(saved_model_schema_version=1, meta_graphs=[meta_graph(*each) for each in tags])


def written(message: Any, path: Path, form: str) -> Path:
    path.write_bytes(message.SerializeToString() if form == "binary" else text_format.MessageToString(message).encode())
    return path


@pytest.mark.parametrize("form", ["binary", "text"])
def test_a_saved_model_directory_gives_graph_tags_and_signatures(form: str, tmp_path: Path) -> None:
    written(saved_model(("serve",)), tmp_path / ("saved_model.pb" if form == "binary" else "saved_model.pbtxt"), form)
    found = load_meta_graph(tmp_path)
    assert found.graph_def == GRAPH
    assert (found.tags, found.tensorflow_version) == (("serve",), "2.21.0")
    assert found.signatures == {
        "serve": Signature({"x": TensorInfo("x:0", d.float32, Shape([None]))}, {"y": TensorInfo("y:0", d.float32, Shape([None]))})
    }


@pytest.mark.parametrize("form", ["binary", "text"])
@pytest.mark.parametrize("message", [saved_model(("a",)), meta_graph("a")], ids=["SavedModel", "MetaGraphDef"])
def test_a_file_may_have_any_name(message: Any, form: str, tmp_path: Path) -> None:
    assert load_graph_def(written(message, tmp_path / "something", form)) == GRAPH


@pytest.mark.parametrize("name", ["graph.pb", "graph.pbtxt", "graph.json", "graph"])
def test_a_graph_is_saved_in_the_form_of_its_suffix(name: str, tmp_path: Path) -> None:
    save_graph_def(GRAPH, tmp_path / name)
    data = (tmp_path / name).read_bytes()
    assert {"graph.pbtxt": b"node {", "graph.json": b"{"}.get(name, b"\x0a") == data[: {"graph.pbtxt": 6}.get(name, 1)]
    assert load_graph_def(tmp_path / name) == GRAPH
    assert load_meta_graph(str(tmp_path / name)).signatures == {}


def test_one_of_several_graphs_is_chosen_by_its_tags(tmp_path: Path) -> None:
    path = written(saved_model(("serve",), ("serve", "gpu")), tmp_path / "m", "binary")
    assert [each.tags for each in load_meta_graphs(path)] == [("serve",), ("serve", "gpu")]
    assert load_meta_graph(path, ["gpu", "serve"]).tags == ("serve", "gpu")
    with pytest.raises(InvalidArgumentError, match=r"holds 2 graphs; say which by its tags: {serve}, {serve, gpu}"):
        load_graph_def(path)
    with pytest.raises(NotFoundError, match=r"holds no graph tagged {train}; there are: {serve}, {serve, gpu}"):
        load_graph_def(path, {"train"})


def test_what_is_not_there_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="No such file or directory"):
        load_graph_def(tmp_path / "missing")
    with pytest.raises(NotFoundError, match=r"No saved_model.pb or saved_model.pbtxt in directory"):
        load_graph_def(tmp_path)


@pytest.mark.parametrize(
    "data",
    [b"\x08\x01\x12\xff", b"saved_model_schema_version: 1 meta_graphs {", b"meta_info_def: 3", b"\x0a\x05hello", b"GIF89a\x01\x00"],
    ids=["binary", "text", "kind", "prose", "picture"],
)
def test_a_broken_file_is_named_in_the_error(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "broken.pb"
    path.write_bytes(data)
    with pytest.raises(InvalidArgumentError, match=r"broken\.pb: Not a"):
        load_graph_def(path)


def test_a_file_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FailedPreconditionError, match="Cannot write"):
        save_graph_def(GRAPH, tmp_path / "missing" / "graph.pb")
