"""Graph import and export through the public API."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import graphcore as gc
from graphcore.definitions import GraphDef, NodeDef, wire
from graphcore.definitions.wire import schema
from graphcore.errors import FailedPreconditionError, GraphError, InvalidArgumentError, NotFoundError
from graphcore.graph import ImportResults
from graphcore.registry import OpRegistry
from graphcore.text import parse_op_signature

DATA = Path(__file__).parents[2] / "data"
FILES = sorted(DATA.glob("*.pb"))


@pytest.fixture
def small() -> GraphDef:
    """y = -x as a GraphDef."""
    graph = gc.Graph()
    with graph.as_default():
        gc.negative(gc.placeholder(gc.float32, [2], name="x"), name="y")
    return graph.as_graph_def()


# ---- import_graph_def ------------------------------------------------------------------------------------------------


def test_a_graph_def_goes_into_the_default_graph_and_gives_what_was_asked_for(small: GraphDef) -> None:
    with gc.Graph().as_default() as graph:
        x = gc.constant([1.0, 2.0], name="mine")
        results = gc.import_graph_def(small, input_map={"x:0": x}, return_tensors=["y:0"], return_nodes=["y"], prefix="net")
        assert results.return_tensors[0] is graph.get_tensor_by_name("net/y:0")
        assert results.return_nodes[0].inputs == [x]
        assert results.missing_unused_input_map_keys == []
        assert gc.Session(graph).run(results.return_tensors[0]).tolist() == [-1.0, -2.0]


def test_it_goes_into_the_graph_that_is_named_and_fills_the_results_that_are_given(small: GraphDef) -> None:
    graph, results = gc.Graph(), ImportResults()
    assert gc.import_graph_def(small, graph, return_nodes=["x"], results=results, prefix="") is results
    assert results.return_nodes == [graph.find("x")]
    with pytest.raises(InvalidArgumentError, match="must be empty"):
        gc.import_graph_def(small, graph, prefix="p", results=results)


def test_scopes_hold_for_imported_nodes_too(small: GraphDef) -> None:
    with gc.Graph().as_default() as graph:
        first = gc.no_op("first")
        with gc.name_scope("a"), gc.device("/cpu:1"), gc.control_dependencies([first]):
            gc.import_graph_def(small, prefix="")
            gc.import_graph_def(small, prefix="b", uniquify_prefix=True)
            gc.import_graph_def(small, prefix="b", uniquify_prefix=True)
    assert [node.name for node in graph.nodes[1:]] == ["a/x", "a/y", "a/b/x", "a/b/y", "a/b_1/x", "a/b_1/y"]
    assert {node.device for node in graph.nodes[1:]} == {"/device:CPU:1"}
    assert [node.node_def.input for node in graph.nodes[1:3]] == [("^first",), ("a/x",)]


def test_messages_of_other_libraries_and_bytes_are_taken(small: GraphDef) -> None:
    data = wire.graph_def_to_bytes(small)
    for given in (data, schema.GraphDef.FromString(data)):
        graph = gc.Graph()
        gc.import_graph_def(given, graph, prefix="")
        assert graph.as_graph_def() == small
    with pytest.raises(InvalidArgumentError, match=r"Required a GraphDef or its bytes, got str; gc.load reads files"):
        gc.import_graph_def("model.pb", gc.Graph(), prefix="")


def test_an_unknown_op_says_what_can_be_done() -> None:
    graph_def = GraphDef(node=(NodeDef("n", "Nowhere"),))
    with pytest.raises(NotFoundError, match=r"Op type not registered 'Nowhere', which node 'n' is of; with allow_unknown_ops=True"):
        gc.import_graph_def(graph_def, gc.Graph(), prefix="")
    graph = gc.Graph()
    gc.import_graph_def(graph_def, graph, allow_unknown_ops=True, prefix="")
    assert graph.get_operation_by_name("n").is_opaque


# ---- load, save ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["graph.pb", "graph.pbtxt", "graph.json", "graph"])
def test_a_graph_is_saved_and_loaded_whatever_its_form(name: str, small: GraphDef, tmp_path: Path) -> None:
    graph = gc.Graph()
    gc.import_graph_def(small, graph, prefix="")
    assert gc.save(graph, tmp_path / name) == tmp_path / name
    assert gc.load(tmp_path / name).as_graph_def() == small
    gc.save(small, str(tmp_path / name))
    assert gc.load(str(tmp_path / name)).as_graph_def() == small


def test_a_saved_model_gives_its_signatures(small: GraphDef, tmp_path: Path) -> None:
    message = schema.SavedModel(saved_model_schema_version=1)
    meta = message.meta_graphs.add()
    meta.meta_info_def.tags.append("serve")
    meta.graph_def.ParseFromString(wire.graph_def_to_bytes(small))
    signature = meta.signature_def["serving_default"]
    for infos, name in ((signature.inputs, "x"), (signature.outputs, "y")):
        infos[name].name = f"{name}:0"
        infos[name].dtype = 1
        infos[name].tensor_shape.dim.add(size=2)
    (tmp_path / "saved_model.pb").write_bytes(message.SerializeToString())
    graph = gc.load(tmp_path, tags=["serve"])
    called = graph.signatures["serving_default"]
    feeds = {info.name: [1.0, 2.0] for info in called.inputs.values()}
    assert gc.Session(graph).run([info.name for info in called.outputs.values()], feeds)[0].tolist() == [-1.0, -2.0]
    assert graph.copy().signatures == graph.signatures
    with pytest.raises(NotFoundError, match=r"holds no graph tagged {train}"):
        gc.load(tmp_path, tags=["train"])


def test_what_a_graph_cannot_hold_otherwise_is_written_back(small: GraphDef) -> None:
    message = schema.GraphDef.FromString(wire.graph_def_to_bytes(small))
    message.debug_info.files.append("train.py")
    message.library.registered_gradients.add(gradient_func="g", registered_op_type="t")
    data = message.SerializeToString(deterministic=True)
    graph = gc.Graph()
    for _ in range(2):
        with graph.transaction():
            gc.import_graph_def(data, graph, prefix="again" if len(graph) else "")
    exported = schema.GraphDef.FromString(wire.graph_def_to_bytes(graph.as_graph_def()))
    assert list(exported.debug_info.files) == ["train.py"]
    assert [each.gradient_func for each in exported.library.registered_gradients] == ["g"]


def test_a_file_that_is_not_there_or_no_graph_is_told(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="No such file or directory"):
        gc.load(tmp_path / "nothing")
    (tmp_path / "text").write_text("hello world")
    with pytest.raises(InvalidArgumentError, match="Not a GraphDef"):
        gc.load(tmp_path / "text")


def test_a_failed_load_into_a_graph_leaves_it_as_it_was(small: GraphDef, tmp_path: Path) -> None:
    graph = gc.load(gc.save(small, tmp_path / "small.pb"))
    before = graph.as_graph_def(), graph.version
    with pytest.raises(InvalidArgumentError, match="Node name 'x' already exists in the Graph"):
        gc.load(tmp_path / "small.pb", graph)
    assert (graph.as_graph_def(), graph.version) == before


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_graphs_made_by_tensorflow_are_loaded_and_written_back_with_equal_content(path: Path, tmp_path: Path) -> None:
    original = wire.load_graph_def(path)
    graph = gc.load(path, allow_unknown_ops=True)
    assert all(node.error is None for node in graph.nodes)
    written = wire.load_graph_def(gc.save(graph, tmp_path / "again.pb"))
    assert {node.name: node for node in written.node} == {node.name: node for node in original.node}
    assert (written.versions, written.library, written.other_fields) == (original.versions, original.library, original.other_fields)
    assert gc.load(tmp_path / "again.pb", allow_unknown_ops=True).as_graph_def().node == written.node


# ---- op lists --------------------------------------------------------------------------------------------------------


def test_an_op_list_file_makes_its_ops_known(tmp_path: Path) -> None:
    registry = OpRegistry()
    ops = [parse_op_signature("Fresh[T:type](x:T) -> (y:T)"), parse_op_signature("Feed() -> (o:float)")]
    (tmp_path / "ops.pb").write_bytes(wire.op_list_to_bytes(ops))
    assert gc.register_op_list(tmp_path / "ops.pb", registry) == ["Fresh", "Feed"]
    assert gc.register_op_list((tmp_path / "ops.pb").read_bytes(), registry) == []
    assert gc.register_op_list(ops, OpRegistry()) == ["Fresh", "Feed"]
    graph = gc.Graph(registry)
    gc.import_graph_def(GraphDef(node=(NodeDef("a", "Feed"), NodeDef("b", "Fresh", ("a",), "", {"T": gc.float32}))), graph, prefix="")
    assert graph.get_tensor_by_name("b").dtype is gc.float32
    with pytest.raises(InvalidArgumentError, match="has no kernel: it can be seen but not run"):
        gc.Session(graph).run("b:0")


def test_an_op_list_that_is_none_is_told(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="Cannot read"):
        gc.register_op_list(tmp_path / "nothing")
    (tmp_path / "text").write_text("hello world")
    with pytest.raises(GraphError, match="Not a OpList"):
        gc.register_op_list(str(tmp_path / "text"))


# ---- saved models ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", [False, True], ids=["binary", "text"])
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_saved_model_keeps_graph_library_and_signatures(path: Path, text: bool, tmp_path: Path) -> None:
    graph = gc.load(path)
    x, y = graph.nodes[0].outputs[0], graph.nodes[-1].outputs[0] if graph.nodes[-1].outputs else graph.nodes[0].outputs[0]
    folder = gc.save_saved_model(graph, tmp_path / "new" / "model", signatures={"serving_default": ({"x": x}, {"y": y})}, text=text)
    assert [each.name for each in folder.iterdir()] == ["saved_model.pbtxt" if text else "saved_model.pb"]
    again = gc.load(folder)
    assert again.as_graph_def() == graph.as_graph_def()
    signature = again.signatures["serving_default"]
    assert (signature.inputs["x"].name, signature.inputs["x"].dtype, signature.inputs["x"].shape) == (x.name, x.dtype, x.shape)
    assert signature.outputs["y"].name == y.name
    gc.save_saved_model(again, tmp_path / "once more", tags=["serve", "mine"])
    assert gc.load(tmp_path / "once more", tags=["mine", "serve"]).signatures == again.signatures


def test_a_saved_model_that_cannot_be_written_leaves_nothing(small: GraphDef, tmp_path: Path) -> None:
    graph = gc.Graph()
    gc.import_graph_def(small, graph, prefix="")
    node: Any = graph.get_operation_by_name("y")
    with pytest.raises(InvalidArgumentError, match="Signature 's': 'y' must be a tensor of the graph"):
        gc.save_saved_model(graph, tmp_path / "model", signatures={"s": ({}, {"y": node})})
    assert not (tmp_path / "model").exists()
    (tmp_path / "file").write_text("")
    with pytest.raises(FailedPreconditionError, match="Cannot make"):
        gc.save_saved_model(graph, tmp_path / "file")
    gc.save_saved_model(graph, tmp_path / "model", text=True)
    with pytest.raises(FailedPreconditionError, match=r"saved_model\.pbtxt is there already"):
        gc.save_saved_model(graph, tmp_path / "model")
    with pytest.raises(FailedPreconditionError, match="Cannot write"):
        gc.save(graph, tmp_path)


def test_nodes_of_a_file_share_equal_attrs_and_a_change_of_one_leaves_the_others(tmp_path: Path) -> None:
    with gc.Graph().as_default() as graph:
        x = gc.placeholder(gc.float32, [2], name="x")
        for name in ("a", "b"):
            gc.tanh(x, name=name)
    loaded = gc.load(gc.save(graph, tmp_path / "graph.pb"))
    a, b = (loaded.get_operation_by_name(name) for name in ("a", "b"))
    assert a.attr is b.attr
    loaded.set_attr(a, "_note", b"only here")
    assert ("_note" in a.attr, "_note" in b.attr) == (True, False)


def test_attrs_that_are_equal_but_of_other_types_are_not_shared(tmp_path: Path) -> None:
    nodes = [NodeDef(f"n{place}", "NoOp", attr={"_of": value}) for place, value in enumerate([1, True, 0.0, -0.0])]
    (tmp_path / "graph.pb").write_bytes(wire.graph_def_to_bytes(GraphDef(node=tuple(nodes))))
    loaded = gc.load(tmp_path / "graph.pb")
    assert [str(node.attr["_of"]) for node in loaded.op_nodes()] == ["1", "True", "0.0", "-0.0"]


def test_each_node_of_bytes_that_are_read_as_a_value_has_attrs_of_its_own(small: GraphDef) -> None:
    read = wire.graph_def_from_bytes(wire.graph_def_to_bytes(small))
    assert len({id(node.attr) for node in read.node}) == len(read.node)
