import numpy as np
import pytest

import graphcore as gc
from graphcore.errors import InvalidArgumentError
from graphcore.frontends.foreign import (
    ForeignFunction,
    ForeignGraph,
    ForeignNode,
    ModuleCall,
    Port,
    SourceFrame,
    WeightRef,
)
from graphcore.frontends.lowering import lower
from graphcore.frontends.record import foreign_of
from tests.support.asking import inspect
from widgets import to_outline
from widgets.scene.state import SceneState


def graph_of(*nodes: ForeignNode, **functions: ForeignFunction) -> gc.Graph:
    return lower(ForeignGraph("model", ForeignFunction("main", nodes=list(nodes)), functions=functions))


def node_of(graph: gc.Graph, name: str) -> gc.Node:
    node = graph.find(name)
    assert node is not None
    return node


def given(name: str, dtype: str = "float32", shape: tuple[int | str | None, ...] | None = ("batch", 3)) -> ForeignNode:
    return ForeignNode(name, "f.Input", outputs=(Port(name, dtype, shape),), kind="input")


def test_sizes_with_a_name_are_written_by_it_and_are_the_same_size_everywhere() -> None:
    graph = graph_of(given("x"), ForeignNode("y", "f.Relu", (("x", 0),), (Port("y", "float32", ("batch", 3)),)))
    x, y = node_of(graph, "x").outputs[0], node_of(graph, "y").outputs[0]
    assert graph.shape_text(y) == "[batch,3]"
    assert x.node.output_handles[0].dims is not None
    assert y.node.output_handles[0].dims is not None
    assert x.node.output_handles[0].dims[0] is y.node.output_handles[0].dims[0]


@pytest.mark.parametrize("size", ["unk__7", "Reshape_470_o0__d2", f"floor({'floor(' * 9}height/2)" + "/2)" * 9])
def test_sizes_that_no_person_named_are_unknown_and_told_apart(size: str) -> None:
    other = size.replace("7", "8").replace("height", "width")
    x, y = [node.outputs[0] for node in graph_of(given("x", shape=(size, size)), given("y", shape=(size, other))).op_nodes()]
    assert x.graph.shape_text(x) == "[?,?]"
    (own, again), (same, another) = [tensor.node.output_handles[0].dims or () for tensor in (x, y)]
    assert own is again is same
    assert another is not own


@pytest.mark.parametrize(
    ("word", "text"),
    [
        ("torch.float32", "float"),
        ("bf16", "bfloat16"),
        ("FLOAT8E4M3FN", "float8_e4m3fn"),
        ("!stablehlo.token", "!stablehlo.token"),
        ("!quant.uniform<i8:f32, 0.5>", "!quant.uniform<i8:f32, 0.5>"),
        ("", "INVALID"),
    ],
)
def test_types_without_a_counterpart_keep_the_word_of_the_framework(word: str, text: str) -> None:
    assert node_of(graph_of(given("x", word)), "x").outputs[0].dtype.text == text


def test_modules_are_scopes_with_classes_and_numbers_keep_what_they_count() -> None:
    modules = (ModuleCall("model", "Llama"), ModuleCall("model.layers.0", "Layer"), ModuleCall("model.layers.0.mlp", "MLP"))
    graph = graph_of(
        given("x"),
        ForeignNode("linear_1", "aten.linear.default", (("x", 0),), (Port(),), modules=modules),
        ForeignNode(
            "relu",
            "aten.relu.default",
            (("linear_1", 0),),
            (Port(),),
            modules=(ModuleCall("seq", "Sequential"), ModuleCall("seq.1", "ReLU")),
        ),
    )
    assert [node.name for node in graph.op_nodes()] == ["x", "model/layers.0/mlp/linear_1", "seq/seq.1/relu"]
    record = foreign_of(graph)
    assert record is not None
    assert record.classes["model/layers.0"] == "Layer"
    assert record.modules["seq/seq.1"] == "seq.1"


def test_names_are_valid_and_unique_and_the_original_one_is_shown() -> None:
    graph = graph_of(given("/a b/c:0"), given("a_b/c_0"), given("_x"), given("//"))
    assert [node.name for node in graph.op_nodes()] == ["a_b/c_0", "a_b/c_0_1", "x", "node"]
    shown = inspect(graph, SceneState(), "a_b/c_0")
    assert shown is not None
    assert ("name", "/a b/c:0") in shown.origin


def test_a_tensor_lies_in_the_scope_that_alone_takes_it_and_is_read_when_asked_for() -> None:
    loads: list[str] = []

    def load() -> np.ndarray:
        loads.append("w")
        return np.ones((3, 4), np.float32)

    weight = ForeignNode(
        "l.0.weight", "f.Weight", outputs=(Port("", "float32", (3, 4)),), kind="parameter", weight=WeightRef("float32", (3, 4), 48, load)
    )
    graph = graph_of(given("x"), weight, ForeignNode("/l/0/MatMul", "onnx.MatMul", (("x", 0), ("l.0.weight", 0)), (Port(),)))
    assert "l/0/weight" in [node.name for node in graph.op_nodes()]
    assert loads == []
    shown = inspect(graph, SceneState(), "l/0/weight")
    assert shown is not None
    assert shown.values is not None
    assert ("mean", "1") in shown.values.statistics
    assert loads == ["w"]


def test_the_line_of_a_node_is_as_the_source_says_and_no_file_is_read() -> None:
    node = ForeignNode(
        "y", "f.Relu", (("x", 0),), (Port(),), frames=(SourceFrame(__file__, 3, "outer"), SourceFrame(__file__, 1, "self.relu(x)"))
    )
    graph = graph_of(given("x"), node)
    source = node_of(graph, "y").source
    assert source is not None
    assert (source.line, source.text) == (1, "self.relu(x)")


def test_defaults_are_shown_apart_from_attrs() -> None:
    graph = graph_of(given("x"), ForeignNode("y", "onnx.Conv", (("x", 0),), (Port(),), attrs={"pads": [1, 1]}, defaults={"group": 1}))
    shown = inspect(graph, SceneState(), "y")
    assert shown is not None
    assert shown.attrs == [("pads", "[1, 1]"), ("group", "1 (default)")]


def test_nodes_may_come_in_any_order_and_wait_for_others() -> None:
    later = ForeignNode("y", "f.Relu", (("x", 0),), (Port(),), control_inputs=("c",), device="cuda:1")
    graph = graph_of(later, given("c"), given("x"))
    assert [node.name for node in node_of(graph, "y").control_inputs] == ["c"]
    assert node_of(graph, "y").device == "/device:GPU:1"


@pytest.mark.parametrize(
    ("nodes", "words"),
    [
        ((ForeignNode("y", "f.Relu", (("x", 0),)),), "takes an output of 'x', which is no node"),
        ((ForeignNode("y", "f.Relu", (("y", 0),), (Port(),)),), "form a cycle"),
        ((given("x"), given("x")), "Two nodes are named 'x'"),
        ((given("x"), ForeignNode("y", "f.Relu", (("x", 2),))), "output 2 of node 'x', which has 1"),
    ],
)
def test_an_inconsistent_graph_is_refused(nodes: tuple[ForeignNode, ...], words: str) -> None:
    with pytest.raises(InvalidArgumentError, match=words):
        graph_of(*nodes)


def test_bodies_open_like_those_of_functions() -> None:
    body = ForeignFunction(
        "inner",
        inputs=(Port("a", "float32"),),
        outputs=(("n", 0),),
        output_names=("r",),
        nodes=[given("a"), ForeignNode("n", "f.Neg", (("a", 0),), (Port("", "float32", (2,)),))],
    )
    graph = graph_of(given("x"), ForeignNode("call", "f.Call", (("x", 0),), (Port(),), bodies={"inner": "k"}), k=body)
    state = SceneState()
    state.opened["call"] = None
    assert "Neg call:/n" in to_outline(graph, state)


def test_what_an_exporter_adds_between_nodes_of_a_module_lies_in_it() -> None:
    modules = (ModuleCall("attn", "Attention"),)
    graph = graph_of(
        given("x"),
        ForeignNode("a", "f.Linear", (("x", 0),), (Port(),), modules=modules),
        ForeignNode("split", "f.Split", (("a", 0),), (Port(),)),
        ForeignNode("squeeze", "f.Squeeze", (("split", 0),), (Port(),)),
        ForeignNode("b", "f.Linear", (("squeeze", 0),), (Port(),), modules=modules),
    )
    assert [node.name for node in graph.op_nodes()] == ["x", "attn/a", "attn/split", "attn/squeeze", "attn/b"]


def masked_model(layers: int) -> ForeignGraph:
    """A model whose layers share a mask and a table, made of constants and of a buffer."""
    root, table = ModuleCall("model", "Model"), ModuleCall("model.table", "Table")
    port = (Port("", "float32", (4,)),)
    nodes = [
        ForeignNode("x", "torch.Input", outputs=port, kind="input"),
        ForeignNode("rate", "torch.Buffer", outputs=port, kind="buffer"),
        ForeignNode("arange", "aten.arange.default", outputs=port, modules=(root,)),
        *[ForeignNode(f"step{i}", "aten.add.Tensor", (("arange", 0),), port, modules=(root,)) for i in range(5)],
        ForeignNode("mask", "aten.le.Tensor", (("step0", 0), ("step1", 0)), port, modules=(root,)),
        ForeignNode("cos", "aten.cos.default", (("rate", 0),), port, modules=(root, table)),
        ForeignNode("sin", "aten.mul.Tensor", (("cos", 0), ("step2", 0)), port, modules=(root, table)),
        ForeignNode("start", "aten.relu.default", (("x", 0),), port, modules=(root,)),
    ]
    before = "start"
    for i in range(layers):
        here = (root, ModuleCall(f"model.layers.{i}", "Layer"))
        nodes.append(ForeignNode(f"a{i}", "aten.mul.Tensor", ((before, 0), ("sin", 0)), port, modules=here))
        nodes.append(ForeignNode(f"b{i}", "aten.where.self", (("mask", 0), (f"a{i}", 0)), port, modules=here))
        nodes.append(ForeignNode(f"c{i}", "aten.linear.default", ((f"b{i}", 0),), port, modules=here))
        before = f"c{i}"
    return ForeignGraph("model", ForeignFunction("main", outputs=((before, 0),), nodes=nodes))


def test_nodes_that_depend_on_constants_alone_lie_in_a_scope_of_their_own() -> None:
    graph = lower(masked_model(4))
    names = {node.name for node in graph.op_nodes()}
    assert {"model/constants/arange", "model/constants/mask", "model/start", "model/layers.0/a0"} <= names
    assert {"model/constants/table/cos", "model/constants/table/sin"} <= names


def test_layers_that_share_a_mask_and_a_table_are_one_repeat() -> None:
    assert "layers Layer x 12" in to_outline(lower(masked_model(12)))


def test_a_dropout_before_layers_does_not_take_their_name() -> None:
    source = masked_model(12)
    for node in source.main.nodes:
        if node.name == "start":
            node.op, node.modules = "aten.dropout.default", (node.modules[0], ModuleCall("model.drop", "Dropout"))
    assert "layers Layer x 12" in to_outline(lower(source))


def test_few_constants_stay_where_they_are() -> None:
    source = masked_model(4)
    for node in source.main.nodes[3:6]:
        node.inputs = (("x", 0),)
    assert not any("constants" in node.name for node in lower(source).op_nodes())


def test_a_size_is_followed_through_known_ops_to_where_the_source_gives_it() -> None:
    frames = (SourceFrame("model.py", 31, "x.view(-1)"),)
    graph = graph_of(
        given("x", shape=("batch", 3)),
        ForeignNode("w", "f.Weight", outputs=(Port("", "float32", (3, 5)),), kind="parameter"),
        ForeignNode("m", "f.MatMul", (("x", 0), ("w", 0)), (Port("", "float32", ("batch", 5)),)),
        ForeignNode("r", "f.Relu", (("m", 0),), (Port("", "float32", ("batch", 5)),)),
        ForeignNode("v", "f.Unknown", (("r", 0),), (Port("", "float32", (7, None)),), frames=frames),
    )
    told = str(gc.explain_shape(node_of(graph, "r").outputs[0]))
    assert "is dimension 0 of `x:0`\n    is given by the source at `x` (op f.Input)" in told
    assert "is dimension 1 of `w:0`\n    is given by the source at `w` (op f.Weight)" in told
    told = str(gc.explain_shape(node_of(graph, "v").outputs[0]))
    assert "is given by the source at `v` (op f.Unknown) (model.py, line 31: x.view(-1))" in told
    assert "is known only when the graph runs" in told


def test_a_size_is_followed_to_the_weight_of_a_layer_and_through_a_transposition() -> None:
    graph = graph_of(
        given("x", shape=("batch", 3, 8, 8)),
        ForeignNode("k", "onnx.Initializer", outputs=(Port("", "float32", (4, 3, 3, 3)),), kind="parameter"),
        ForeignNode("c", "onnx.Conv", (("x", 0), ("k", 0)), (Port("", "float32", ("batch", 4, 8, 8)),)),
        ForeignNode("t", "onnx.Transpose", (("c", 0),), (Port("", "float32", ("batch", 8, 8, 4)),), attrs={"perm": [0, 2, 3, 1]}),
        ForeignNode("w", "aten.Weight", outputs=(Port("", "float32", (5, 4)),), kind="parameter"),
        ForeignNode("l", "aten.linear.default", (("t", 0), ("w", 0)), (Port("", "float32", ("batch", 8, 8, 5)),)),
        ForeignNode("p", "aten.permute.default", (("l", 0),), (Port("", "float32", ("batch", 5, 8, 8)),), attrs={"dims": [0, -1, 1, 2]}),
        ForeignNode("f", "aten.flip.default", (("p", 0),), (Port("", "float32", (7, 5, 8, 8)),), attrs={"dims": [1, 0, 2, 3]}),
    )
    told = str(gc.explain_shape(node_of(graph, "t").outputs[0]))
    assert "dimension 3 = 4\n    is dimension 1 of `c:0`\n    is dimension 0 of `k:0`" in told
    told = str(gc.explain_shape(node_of(graph, "p").outputs[0]))
    assert "dimension 1 = 5\n    is dimension 3 of `l:0`\n    is dimension 0 of `w:0`" in told
    assert "dimension 1 = 5\n    is given by the source at `f`" in str(gc.explain_shape(node_of(graph, "f").outputs[0]))
