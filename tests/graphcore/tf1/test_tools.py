"""Small tools of TensorFlow 1: frozen graphs, SavedModels, timelines, nested structures, texts."""

from __future__ import annotations

import collections
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphcore as gc

tf: Any = gc  # its namespaces are made when they are asked for


@pytest.fixture(autouse=True)
def graph() -> Iterator[gc.Graph]:
    with gc.Graph().as_default() as made:
        yield made


def model(*, use_resource: bool = False) -> tuple[gc.Tensor, gc.Tensor]:
    x = gc.placeholder(gc.float32, [None, 2], name="x")
    w = gc.Variable([[1.0], [2.0]], name="w", use_resource=use_resource)
    y = gc.identity(gc.matmul(gc.identity(x, name="copied"), w), name="y")
    gc.identity(gc.gather(w, [1]), name="row")
    gc.square(y, name="unused")
    return x, y


@pytest.mark.parametrize("use_resource", [False, True])
def test_a_frozen_graph_holds_values_in_place_of_variables(use_resource: bool, tmp_path: Path) -> None:
    model(use_resource=use_resource)
    with gc.Session() as session:
        session.run(gc.global_variables_initializer())
        assert session.graph_def == session.graph.as_graph_def()
        frozen = tf.graph_util.convert_variables_to_constants(session, session.graph.as_graph_def(), ["y", "row"])
        with pytest.raises(gc.errors.InvalidArgumentError, match="z is not in graph"):
            tf.graph_util.extract_sub_graph(session.graph.as_graph_def(), ["z"])
    assert not {node.op for node in frozen.node} & {"VariableV2", "VarHandleOp", "Assign", "ReadVariableOp", "Square"}
    short = tf.graph_util.remove_training_nodes(frozen, ["y", "row"])
    assert [node.name for node in short.node if node.op == "Identity"] == ["y", "row"]
    for as_text, name in ((False, "frozen.pb"), (True, "frozen.pbtxt")):
        path = tf.train.write_graph(short, tmp_path / "made", name, as_text=as_text)
        loaded = gc.load(path)
        with gc.Session(loaded) as session:
            assert session.run("y:0", {"x:0": [[3.0, 4.0]]}).tolist() == [[11.0]]
            assert session.run("row:0").tolist() == [[2.0]]


def test_a_saved_model_brings_back_graph_values_and_signatures(tmp_path: Path) -> None:
    x, y = model()
    with gc.Session() as session:
        session.run(gc.global_variables_initializer())
        session.run(gc.trainable_variables()[0].assign([[5.0], [6.0]]))
        tf.saved_model.simple_save(session, tmp_path / "simple", {"x": x}, {"y": y})
        builder = tf.saved_model.builder.SavedModelBuilder(str(tmp_path / "built"))
        signature = tf.saved_model.signature_def_utils.build_signature_def(
            {"a": tf.saved_model.utils.build_tensor_info(x)}, {"b": tf.saved_model.utils.build_tensor_info(y)}, "mine"
        )
        builder.add_meta_graph_and_variables(session, [tf.saved_model.tag_constants.TRAINING], {"call": signature})
        assert Path(builder.save(as_text=True)).name == "saved_model.pbtxt"
        with pytest.raises(gc.errors.AlreadyExistsError, match="already exists, and isn't empty"):
            tf.saved_model.builder.SavedModelBuilder(str(tmp_path / "built"))
    for folder, tags, key, names in (("simple", ["serve"], "serving_default", "xy"), ("built", ["train"], "call", "ab")):
        with gc.Session(gc.Graph()) as session:
            loaded = tf.saved_model.loader.load(session, tags, str(tmp_path / folder))
            signature = loaded.signature_def[key]
            assert session.run(signature.outputs[names[1]].name, {signature.inputs[names[0]].name: [[1.0, 1.0]]}).tolist() == [[11.0]]
            assert list(session.graph.signatures) == [key]
    with pytest.raises(gc.errors.NotFoundError, match=r"holds no graph tagged \{gpu\}; there are: \{serve\}"):
        tf.saved_model.loader.load(gc.Session(gc.Graph()), ["gpu"], str(tmp_path / "simple"))


def test_a_timeline_names_the_nodes_of_a_recorded_run() -> None:
    timeline = tf.python.client.timeline
    x, y = model()
    metadata = gc.RunMetadata()
    with gc.Session() as session:
        session.run(gc.global_variables_initializer())
        options = gc.RunOptions(trace_level=gc.RunOptions.FULL_TRACE)
        session.run(y, {x: [[1.0, 1.0]]}, options=options, run_metadata=metadata)
    told = json.loads(timeline.Timeline(step_stats=metadata.step_stats).generate_chrome_trace_format())
    assert {"MatMul", "y"} <= {event["name"] for event in told["traceEvents"]}
    with pytest.raises(gc.errors.InvalidArgumentError, match="needs the step_stats of a run"):
        timeline.Timeline(None)


def test_nested_structures_are_flattened_packed_and_mapped() -> None:
    Pair = collections.namedtuple("Pair", "left right")  # noqa: PYI024 - as programs of the time write it
    structure: Any = {"b": [1, (2, 3)], "a": Pair(4, None)}
    assert tf.nest.flatten(structure) == [4, None, 1, 2, 3]
    assert tf.nest.map_structure(lambda x, y: (x or 0) + (y or 0), structure, structure) == {"b": [2, (4, 6)], "a": Pair(8, 0)}
    with pytest.raises(gc.errors.InvalidArgumentError, match="same nested structure"):
        tf.nest.assert_same_structure([1, 2], [1, [2]])
    with pytest.raises(gc.errors.InvalidArgumentError, match="3 leaves, got 1 values"):
        tf.nest.pack_sequence_as([1, (2, 3)], [1])


def test_texts_and_bytes_are_converted() -> None:
    compat = tf.compat
    assert [compat.as_bytes("é"), compat.as_text("é".encode()), compat.as_str_any(3)] == ["é".encode(), "é", "3"]
    with pytest.raises(gc.errors.InvalidArgumentError, match="Expected binary or unicode string, got 3"):
        compat.as_bytes(3)


def test_a_test_case_compares_tensors_and_arrays() -> None:
    case = tf.test.TestCase()
    case.setUp()
    with case.test_session():
        case.assertAllClose(gc.constant([1.0, 2.0]) * 2.0, [2.0, 4.0])
        case.assertAllEqual({"a": 1}["a"], np.int32(1))
    with pytest.raises(AssertionError):
        case.assertAllClose({"a": [1.0]}, {"a": [1.1]})
    with case.assertRaisesOpError("Incompatible shapes|must be equal"), case.session():
        gc.constant([1.0, 2.0]) + gc.constant([1.0, 2.0, 3.0])


def test_modules_of_tensorflows_sources_have_its_public_names() -> None:
    scope: dict[str, Any] = {}
    exec(
        "from graphcore.python.framework import ops, dtypes, graph_util\n"
        "from graphcore.python.ops import array_ops, math_ops, variable_scope as vs\n"
        "from graphcore.python.client import device_lib\n"
        "from graphcore.python.platform import gfile\n"
        "from graphcore.python.framework.ops import convert_to_tensor\n",
        scope,
    )
    assert scope["ops"].get_default_graph is gc.get_default_graph
    assert scope["math_ops"].matmul is gc.matmul
    assert scope["dtypes"].float32 is gc.float32
    assert [device.device_type for device in scope["device_lib"].list_local_devices()][:1] == ["CPU"]


def test_tuples_of_tensors_are_fed_by_tuples_of_values() -> None:
    a, b, c = (gc.placeholder(gc.float32, [], name=name) for name in "abc")
    y = a + 10.0 * b + 100.0 * c
    with gc.Session() as session:
        for values in ((1.0, (2.0, 3.0)), (4.0, [5.0, 6.0])):
            assert session.run(y, {(a, (b, c)): values}) == values[0] + 10 * values[1][0] + 100 * values[1][1]
        assert session.step_through(y, {(a, b): (1.0, 2.0), c: 3.0}).finish() == 321.0
        with pytest.raises(gc.errors.InvalidArgumentError, match="a tuple of 2 values for a tuple of as many tensors"):
            session.run(y, {(a, b): 1.0, c: 3.0})
        with pytest.raises(gc.errors.InvalidArgumentError, match="each tensor once"):
            session.run(y, {(a, b): (1.0, 2.0), a: 3.0, c: 3.0})


def test_the_settings_of_the_projector_lie_beside_the_events(tmp_path: Path) -> None:
    projector = tf.contrib.tensorboard.plugins.projector
    config = projector.ProjectorConfig()
    embedding = config.embeddings.add()
    embedding.tensor_name, embedding.metadata_path = "words:0", 'vocab "1".tsv'
    embedding.sprite.image_path = "digits.png"
    embedding.sprite.single_image_dim.extend([28, 28])
    writer = tf.summary.FileWriter(str(tmp_path))
    projector.visualize_embeddings(writer, config)
    writer.close()
    assert (tmp_path / "projector_config.pbtxt").read_text().splitlines() == [
        "embeddings {",
        '  tensor_name: "words:0"',
        '  metadata_path: "vocab \\"1\\".tsv"',
        "  sprite {",
        '    image_path: "digits.png"',
        "    single_image_dim: 28",
        "    single_image_dim: 28",
        "  }",
        "}",
    ]
    with pytest.raises(gc.errors.InvalidArgumentError, match=r"Required a gc.summary.FileWriter, got None"):
        projector.visualize_embeddings(None, config)
