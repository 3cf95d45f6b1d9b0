"""Names of TensorFlow 1 in programs: files, collections, containers, references, batches."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphcore
from graphcore.errors import InvalidArgumentError, UnimplementedError
from graphcore.tf1.names.lookup import namespace

gc: Any = graphcore  # its namespaces are found on demand

train, gfile, rnn_cell = namespace("train"), namespace("gfile"), namespace("nn.rnn_cell")


@pytest.fixture(autouse=True)
def graph() -> Any:
    with gc.Graph().as_default() as made:
        yield made


def test_a_file_takes_texts_and_bytes_in_any_mode_and_reads_what_its_mode_says(tmp_path: Path) -> None:
    path = str(tmp_path / "log")
    with gfile.GFile(path, mode="a") as file:
        file.write(b"one\n")
        file.write("zw\u00f6lf\n")
    with gfile.GFile(path, "ab") as file:
        file.write("three\n")
    assert Path(path).read_bytes() == "one\nzw\u00f6lf\nthree\n".encode()
    with gfile.GFile(path) as file:
        assert [file.readline(), *file] == ["one\n", "zw\u00f6lf\n", "three\n"]
    with gfile.GFile(path, "rb") as file:
        assert file.readlines() == [b"one\n", "zw\u00f6lf\n".encode(), b"three\n"]
    with gfile.GFile(path, "r") as file, pytest.raises(InvalidArgumentError, match="binary or unicode"):
        file.write(3)


def test_collections_of_a_graph_take_a_scope_and_keywords(graph: graphcore.Graph) -> None:
    with gc.variable_scope("a"):
        v = gc.get_variable("x", [2])
    w = gc.get_variable("b", [2])
    assert graph.get_collection("variables", scope="a") == [v]
    assert graph.get_collection("variables") == [v, w]
    graph.add_to_collection(name="k", value=3)
    assert graph.get_collection("k") == [3]
    assert graph.get_collection("k", scope="") == []


def test_a_graph_def_may_hold_the_shapes_of_outputs(graph: graphcore.Graph) -> None:
    gc.placeholder(gc.float32, [None, 2], name="x")
    gc.no_op("nothing")
    nodes = {node.name: node for node in graph.as_graph_def(add_shapes=True).node}
    assert nodes["x"].attr["_output_shapes"] == (gc.Shape([None, 2]),)
    assert "_output_shapes" not in nodes["nothing"].attr
    assert all("_output_shapes" not in node.attr for node in graph.as_graph_def().node)
    with pytest.raises(UnimplementedError, match="from_version"):
        graph.as_graph_def(from_version=1)


@pytest.mark.parametrize("batch", [[3], (3,), gc.Shape([3]), 3])
def test_the_zero_state_of_a_cell_takes_the_batch_as_a_list_too(batch: Any) -> None:
    state = rnn_cell.LSTMCell(4).zero_state(batch, gc.float32)
    assert state.c.shape.as_list() == [3, 4]


def test_the_zero_state_takes_an_unknown_batch_in_a_list() -> None:
    batch = gc.shape(gc.placeholder(gc.float32, [None, 2], name="x"))[0]
    state = rnn_cell.GRUCell(4).zero_state([batch], gc.float32)
    assert state.shape.as_list() == [None, 4]
    assert gc.Session().run(state, {"x:0": np.zeros([5, 2])}).shape == (5, 4)


@pytest.mark.parametrize("use_resource", [False, True])
def test_resources_within_a_container_are_cleared_by_its_name(use_resource: bool) -> None:
    with gc.container("train") as name:
        v = gc.get_variable("v", [2], initializer=gc.ones_initializer(), use_resource=use_resource)
        with gc.container("other"):
            w = gc.get_variable("w", [2], initializer=gc.ones_initializer(), use_resource=use_resource)
    assert name == "train"
    assert [each.op.attr["container"] for each in (v, w)] == [b"train", b"other"]
    session = gc.Session()
    session.run(gc.global_variables_initializer())
    session.reset(["train"])
    assert session.run(w).tolist() == [1.0, 1.0]
    with pytest.raises(gc.errors.FailedPreconditionError):
        session.run(v)


def test_op_scope_is_name_scope_with_the_order_of_earlier_versions() -> None:
    with gc.op_scope([gc.constant(1)], None, "zero_nil_slot") as name:
        assert name == "zero_nil_slot/"
    with gc.op_scope([], "given", "default") as name:
        assert name == "given/"


@pytest.mark.parametrize(
    ("change", "result"),
    [(gc.assign, [5.0, 5.0]), (gc.assign_add, [6.0, 6.0]), (gc.assign_sub, [-4.0, -4.0])],
    ids=["assign", "assign_add", "assign_sub"],
)
@pytest.mark.parametrize("known", [True, False], ids=["a variable", "imported nodes"])
def test_a_reference_by_name_can_be_assigned_to(change: Any, result: list[float], known: bool, graph: graphcore.Graph) -> None:
    gc.get_variable("w", [2], initializer=gc.ones_initializer(), use_resource=False)
    definition = graph.as_graph_def()
    where = graph if known else gc.Graph()
    with where.as_default():
        if not known:
            gc.import_graph_def(definition, prefix="")
        reference = where.get_tensor_by_name("w:0")
        assert reference.dtype.is_ref
        changed = change(reference, [5.0, 5.0])
        session = gc.Session()
        session.run(where.get_operation_by_name("w/Assign"))
        assert session.run(changed).tolist() == result
        assert session.run(reference).tolist() == result


def test_rows_of_a_reference_by_name_can_be_changed(graph: graphcore.Graph) -> None:
    v = gc.get_variable("w", [2], initializer=gc.ones_initializer(), use_resource=False)
    changed = gc.scatter_add(graph.get_tensor_by_name("w:0"), [1], [4.0])
    session = gc.Session()
    session.run(v.initializer)
    assert session.run(changed).tolist() == [1.0, 5.0]
    with pytest.raises(InvalidArgumentError, match="required a variable, or the reference"):
        gc.assign(gc.constant(1.0), 2.0)


@pytest.mark.parametrize(
    "batched",
    [
        lambda a: train.batch([a], 2),
        lambda a: train.batch(a, 2),
        lambda a: train.batch((a,), 2, allow_smaller_final_batch=True),
        lambda a: train.shuffle_batch([a], 2, 10, 1),
        lambda a: train.batch_join([[a], [a]], 2),
        lambda a: train.shuffle_batch_join([[a], [a]], 2, 10, 1),
    ],
)
def test_a_batch_of_one_tensor_is_a_tensor_also_from_a_list(batched: Any) -> None:
    a = train.range_input_producer(6, num_epochs=1, shuffle=False).dequeue()
    made = batched(a)
    assert isinstance(made, gc.Tensor)
    assert made.shape.rank == 1


def test_a_batch_of_several_is_a_list_and_that_of_a_dict_a_dict() -> None:
    a = train.range_input_producer(6, num_epochs=1, shuffle=False).dequeue()
    assert [each.shape.as_list() for each in train.batch([a, a], 2)] == [[2], [2]]
    assert train.batch({"a": a}, 2)["a"].shape.as_list() == [2]


def test_cells_can_be_copied_with_their_tensors_before_and_after_they_are_built() -> None:
    keep = gc.placeholder(gc.float32, [])
    cell = rnn_cell.DropoutWrapper(rnn_cell.BasicLSTMCell(4), output_keep_prob=keep)
    stack = rnn_cell.MultiRNNCell([copy.deepcopy(cell) for _ in range(2)])
    gc.nn.dynamic_rnn(stack, gc.ones([2, 3, 4]), dtype=gc.float32)
    assert len(gc.global_variables()) == 4
    again = copy.deepcopy(stack)
    assert [variable.name for variable in again.weights] == [variable.name for variable in stack.weights]
    assert again is not stack


@pytest.mark.parametrize("pool", [gc.layers.average_pooling2d, gc.layers.max_pooling2d])
def test_the_sizes_of_a_shape_serve_as_those_of_kernels_and_windows(pool: Any) -> None:
    x = gc.ones([2, 8, 6, 3])
    assert pool(x, x.shape[1:3], 1).shape.as_list() == [2, 1, 1, 3]
    assert gc.layers.conv2d(x, x.shape[3], x.shape[1:3]).shape.as_list() == [2, 1, 1, 3]
    layers = namespace("contrib.layers")
    assert layers.avg_pool2d(x, x.shape[1:3]).shape.as_list() == [2, 1, 1, 3]
    assert layers.conv2d(x, 4, x.shape[1:3], padding="VALID").shape.as_list() == [2, 1, 1, 4]
    assert layers.separable_conv2d(x, 4, x.shape[1:3], 1, padding="VALID").shape.as_list() == [2, 1, 1, 4]


@pytest.mark.parametrize("step", [None, 3])
def test_a_saver_takes_a_folder_as_prefix(step: int | None, tmp_path: Path) -> None:
    v = gc.Variable(1.0, name="v")
    saver = train.Saver()
    with gc.Session() as session:
        session.run(v.initializer)
        path = saver.save(session, f"{tmp_path}/", global_step=step)
        session.run(v.assign(2.0))
        assert path == f"{tmp_path}/" + ("" if step is None else "-3")
        assert train.latest_checkpoint(str(tmp_path)) == path
        saver.restore(session, train.latest_checkpoint(str(tmp_path)))
        assert session.run(v) == 1.0


@pytest.mark.parametrize("use_resource", [False, True])
def test_assignments_take_use_locking_and_may_give_the_node(use_resource: bool) -> None:
    v = gc.Variable(1.0, use_resource=use_resource)
    changes = [v.assign(2.0, use_locking=True), v.assign_add(2.0, True), v.assign_sub(1.0, False, "sub")]
    node = v.assign(7.0, read_value=False)
    with gc.Session() as session:
        session.run(v.initializer)
        assert [session.run(change) for change in changes] == [2.0, 4.0, 3.0]
        assert session.run(node) is None
        assert session.run(v) == 7.0


@pytest.mark.parametrize(
    "how",
    [
        lambda d: d.from_tensor_slices(["a b"]),
        lambda d: d.from_tensors("a b"),
        lambda d: d.from_generator(lambda: iter(["a b"]), gc.string),
    ],
)
@pytest.mark.parametrize(
    ("change", "result"),
    [
        (lambda x: gc.stack([x]), [b"a b"]),
        (lambda x: gc.stack([x, "c"]), [b"a b", b"c"]),
        (lambda x: gc.concat([[x], ["z"]], 0), [b"a b", b"z"]),
        (lambda x: gc.tile([x], [2]), [b"a b", b"a b"]),
        (lambda x: gc.string_split([x]).values, [b"a", b"b"]),
        (lambda x: gc.string_join([x, "!"]), b"a b!"),
        (lambda x: gc.expand_dims(x, 0), [b"a b"]),
    ],
)
def test_functions_of_datasets_take_strings(how: Any, change: Any, result: Any) -> None:
    following = how(gc.data.Dataset).map(change).make_one_shot_iterator().get_next()
    found = gc.Session().run(following)
    assert (found.tolist() if isinstance(found, np.ndarray) else found) == result


def test_scalar_strings_that_are_fed_are_stacked() -> None:
    x = gc.placeholder(gc.string, [])
    assert gc.Session().run(gc.stack([x, x]), {x: "a"}).tolist() == [b"a", b"a"]


@pytest.mark.parametrize("peepholes", [False, True])
def test_a_phased_cell_takes_times_beside_values_and_changes_little_while_it_is_closed(peepholes: bool) -> None:
    cell = namespace("contrib.rnn").PhasedLSTMCell(4, use_peepholes=peepholes)
    t, x = gc.placeholder(gc.float32, [2, 5, 1]), gc.ones([2, 5, 3])
    y, state = gc.nn.dynamic_rnn(cell, (t, x), dtype=gc.float32)
    assert y.shape.as_list() == [2, 5, 4]
    names = ["kernel", "bias"]
    wanted = [f"rnn/phased_lstm_cell/{part}/{name}" for part in ("mask_gates", "new_input", "output_gate") for name in names]
    assert [v.op.name for v in gc.global_variables()] == [
        *wanted,
        *[f"rnn/phased_lstm_cell/{name}" for name in ("period", "phase", "ratio_on")],
    ]
    by_name = {v.op.name.rpartition("/")[2]: v for v in gc.global_variables()}
    with gc.Session() as session:
        session.run(gc.global_variables_initializer())
        session.run([by_name["period"].assign([10.0] * 4), by_name["phase"].assign([0.0] * 4), by_name["ratio_on"].assign([0.5] * 4)])
        closed, opened = [session.run(state, {t: np.full((2, 5, 1), time)}) for time in (5.0, 2.5)]
    assert np.abs(closed.c).max() < 1e-2 < np.abs(opened.c).max()


def test_a_meta_graph_gives_back_the_variables_and_the_queue_runners_of_collections(graph: gc.Graph) -> None:
    v = gc.Variable(1.0, name="v")
    gc.add_to_collection("mine", v)
    gc.add_to_collection("text", "some words")
    train.get_or_create_global_step()
    queue = train.range_input_producer(3, shuffle=False, num_epochs=1)
    queue.dequeue(name="taken")
    train.GradientDescentOptimizer(0.1).minimize(v * v, name="step")
    made = train.export_meta_graph()
    for scope in ("", "again"):
        with graphcore.Graph().as_default() as other:
            train.import_meta_graph(made, import_scope=scope or None)
            start = f"{scope}/" if scope else ""
            (mine,) = gc.get_collection("mine")
            assert (type(mine), mine.name) == (gc.Variable, f"{start}v:0")
            assert gc.get_collection("text") == [b"some words"]
            assert gc.get_collection("train_op") == [other.get_operation_by_name(f"{start}step")]
            assert train.get_global_step().name == f"{start}global_step:0"
            (runner,) = gc.get_collection("queue_runners")
            with gc.Session() as session:
                session.run([gc.global_variables_initializer(), gc.local_variables_initializer()])
                coordinator = train.Coordinator()
                threads = train.start_queue_runners(session, coordinator)
                assert [session.run(f"{start}taken:0") for _ in range(3)] == [0, 1, 2]
                with pytest.raises(gc.errors.OutOfRangeError):
                    session.run(f"{start}taken:0")
                coordinator.request_stop()
                coordinator.join(threads)
            assert runner.to_proto(scope or None) == graph.get_collection("queue_runners")[0].to_proto()


def test_a_queue_runner_takes_a_description_or_a_queue() -> None:
    queue = gc.FIFOQueue(3, gc.float32)
    runner = train.QueueRunner(queue, [queue.enqueue(1.0)])
    assert train.QueueRunner.from_proto(runner.to_proto()).enqueue_ops == runner.enqueue_ops
    with pytest.raises(InvalidArgumentError, match="mutually exclusive"):
        train.QueueRunner(queue, queue_runner_def=runner.to_proto())
    with pytest.raises(InvalidArgumentError, match="describe none"):
        train.QueueRunner(queue_runner_def=b"\xff\xff")


@pytest.mark.parametrize(
    ("shape", "collections", "first"),
    [([4, 5, 5, 3], None, "beta"), ([4, 5, 5, 3], "update_ops", "gamma"), ([4, 3], "update_ops", "beta"), ([4, 5, 5, 3], "mine", "beta")],
)
def test_batch_norm_makes_its_variables_in_the_order_of_tensorflow(shape: list[int], collections: Any, first: str) -> None:
    namespace("contrib.layers").batch_norm(gc.ones(shape), scale=True, is_training=True, updates_collections=collections)
    second = "gamma" if first == "beta" else "beta"
    assert [v.op.name for v in gc.trainable_variables()] == [f"BatchNorm/{first}", f"BatchNorm/{second}"]
