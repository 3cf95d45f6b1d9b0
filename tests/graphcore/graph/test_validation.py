"""V, U: validation of GraphDefs, lists of ops, tensor names."""

from __future__ import annotations

import msgspec
import pytest

import graphcore as gc
from graphcore.definitions import AttrDef, FunctionDef, FunctionDefLibrary, GraphDef, NodeDef, OpDef
from graphcore.errors import AlreadyExistsError, InvalidArgumentError, NotFoundError, UnimplementedError
from graphcore.graph import register_ops
from graphcore.registry import OpRegistry
from graphcore.text import parse_op_signature
from tests.graphcore.graph.example_graphs import graph_def, import_into, node, registry

SUM = NodeDef("sum", "Sum", ("x", "axes"), "", {"T": gc.float32})


def of(*nodes: NodeDef, library: FunctionDefLibrary | None = None) -> GraphDef:
    return GraphDef(node=nodes, library=library or FunctionDefLibrary())


def registry_of(*signatures: str) -> OpRegistry:
    made = OpRegistry()
    for signature in signatures:
        made.register(parse_op_signature(signature))
    return made


def function(name: str, *ops: str) -> FunctionDef:
    return FunctionDef(signature=OpDef(name=name), node_def=tuple([NodeDef(f"n{i}", op) for i, op in enumerate(ops)]))


# ---- V ---------------------------------------------------------------------------------------------------------------


def test_v_defaults_are_not_added_before_checking() -> None:
    with pytest.raises(InvalidArgumentError, match="NodeDef missing attrs 'keep_dims', 'Tidx' from Op<name=Sum"):
        gc.validate_graph_def(of(SUM))
    gc.validate_graph_def(gc.add_default_attrs_to_graph_def(of(SUM)))
    gc.validate_graph_def_against_op_registry(of(SUM))


def test_v_a_required_attr_that_is_missing_fails_either_way() -> None:
    bare = of(msgspec.structs.replace(SUM, attr={}))
    for validate in (gc.validate_graph_def, gc.validate_graph_def_against_op_registry):
        with pytest.raises(InvalidArgumentError, match="NodeDef missing attr"):
            validate(bare)


def test_v_defaults_may_be_added_from_some_node_on() -> None:
    completed = gc.add_default_attrs_to_graph_def(of(SUM, SUM), None, 1)
    assert completed.node[0] == SUM
    assert completed.node[1].attr == {"T": gc.float32, "keep_dims": False, "Tidx": gc.int32}


def test_v_against_a_list_only_the_list_counts() -> None:
    ops = [parse_op_signature("UniqueSnowflake() -> ()"), parse_op_signature("Sum() -> ()")]
    gc.validate_graph_def_against_op_list(of(NodeDef("n", "UniqueSnowflake"), NodeDef("s", "Sum")), ops)
    with pytest.raises(NotFoundError, match="Op type not registered 'Neg'"):
        gc.validate_graph_def_against_op_list(of(NodeDef("n", "Neg")), ops)
    with pytest.raises(NotFoundError, match="Op type not registered 'UniqueSnowflake'"):
        gc.validate_graph_def(of(NodeDef("n", "UniqueSnowflake")))


def test_v_the_list_for_validation_has_no_docs_and_each_op_once() -> None:
    ops = gc.get_op_list_for_validation()
    names = [op_def.name for op_def in ops]
    assert names == sorted(set(names))
    assert "Sum" in names
    assert not any(name.startswith("_") for name in names)
    assert not any(op_def.summary or op_def.description for op_def in ops)
    assert not any(arg.description for op_def in ops for arg in (*op_def.input_arg, *op_def.output_arg))
    assert not any(attr.description for op_def in ops for attr in op_def.attr)
    assert next(op_def for op_def in gc.op_registry.export() if op_def.name == "Sum").summary
    gc.validate_graph_def_against_op_list(of(SUM), ops)


def test_v_a_deprecated_op_and_unknown_attrs_are_refused() -> None:
    with pytest.raises(UnimplementedError):
        gc.validate_graph_def(graph_def("b=BatchNormWithGlobalNormalization"), registry())
    with pytest.raises(InvalidArgumentError, match="NodeDef mentions attr 'b' not in Op<"):
        gc.validate_graph_def(graph_def(node("a=TestParams", b=1)), registry())


def test_v_calls_of_the_graphs_own_functions_are_checked() -> None:
    library = FunctionDefLibrary((function("F"),))
    gc.validate_graph_def(of(NodeDef("n", "F"), library=library))
    with pytest.raises(InvalidArgumentError, match="do not match 1 inputs specified"):
        gc.validate_graph_def(of(NodeDef("n", "F", ("x",)), library=library))


def test_v_two_nodes_of_one_name_exist_already() -> None:
    gc.verify_no_duplicate_node_names(graph_def("a=TestParams", "b=TestParams"))
    with pytest.raises(AlreadyExistsError) as caught:
        gc.verify_no_duplicate_node_names(graph_def("a=TestParams", "b=TestParams", "a=TestParams"))
    assert caught.value.message == "Node already exists: a"


# ---- U ---------------------------------------------------------------------------------------------------------------

OLD = registry_of("UsesDefault() -> ()", "NoDefault() -> ()", "Known[a:int = 17]() -> ()")
NEW = registry_of("UsesDefault[a:int = 17]() -> ()", "NoDefault[a:int]() -> ()", "Known[a:int = 17]() -> ()")


@pytest.mark.parametrize(
    ("op", "value", "kept"),
    [("UsesDefault", 17, False), ("UsesDefault", 18, True), ("NoDefault", 17, True), ("Known", 17, True)],
    ids=["U-default", "U-other-value", "U-no-default", "U-known"],
)
def test_new_attrs_that_say_nothing_new_are_removed(op: str, value: int, kept: bool) -> None:
    plain = NodeDef("n", op, (), "", {"a": value, "_internal": 1})
    library = FunctionDefLibrary((FunctionDef(signature=OpDef(name="F"), node_def=(plain, NodeDef("c", "F"))),))
    stripped, removed = gc.remove_new_default_attrs(of(plain, NodeDef("call", "F"), library=library), OLD, NEW)
    assert removed == (set() if kept else {(op, "a")})
    wanted = plain if kept else msgspec.structs.replace(plain, attr={"_internal": 1})
    assert stripped.node[0] == stripped.library.function[0].node_def[0] == wanted


def test_u_an_attr_that_the_producer_does_not_know_is_an_error() -> None:
    with pytest.raises(InvalidArgumentError, match="Attr 'b' missing in producer's OpDef: Op<name=Known"):
        gc.remove_new_default_attrs(of(NodeDef("n", "Known", (), "", {"b": 1})), OLD, NEW)


def test_u_the_ops_that_are_used_are_listed_once_by_name() -> None:
    ops = registry_of("A() -> ()", "B() -> ()", "C[a:int]() -> () @commutative")
    described = OpDef(name="C", summary="s", description="d", is_commutative=True, attr=(AttrDef(name="a", type="int", description="x"),))
    with_docs = OpRegistry()
    with_docs.register(described)
    with_docs.register(ops.look_up_op_def("B"))
    listed = gc.stripped_op_list(of(*[NodeDef(f"n{i}", op) for i, op in enumerate("CBB")]), with_docs)
    assert [op_def.name for op_def in listed] == ["B", "C"]
    assert listed[1] == OpDef(name="C", is_commutative=True, attr=(AttrDef(name="a", type="int"),))


def test_u_ops_of_functions_count_also_of_recursive_ones() -> None:
    library = FunctionDefLibrary((function("F", "F", "G", "B"), function("G", "F", "A"), function("Unused", "C")))
    graph = of(NodeDef("n", "F"), library=library)
    assert gc.ops_used_by_graph(graph) == ["A", "B"]
    assert [op_def.name for op_def in gc.stripped_op_list(graph, registry_of("A() -> ()", "B() -> ()"))] == ["A", "B"]
    with pytest.raises(NotFoundError, match="Op type not registered 'B'"):
        gc.stripped_op_list(graph, registry_of("A() -> ()"))


@pytest.mark.parametrize(
    ("text", "node_name", "index", "printed"),
    [
        ("W1", "W1", 0, "W1:0"),
        ("weights:0", "weights", 0, "weights:0"),
        ("W1:1", "W1", 1, "W1:1"),
        ("W1:17", "W1", 17, "W1:17"),
        ("xyz1_17", "xyz1_17", 0, "xyz1_17:0"),
        ("^foo", "foo", -1, "^foo"),
        ("a:b", "a:b", 0, "a:b:0"),
        ("a:1b", "a:1b", 0, "a:1b:0"),
        ("a:", "a:", 0, "a::0"),
        (":1", ":1", 0, ":1:0"),
        ("a:1:2", "a:1", 2, "a:1:2"),
        ("a:٣", "a:٣", 0, "a:٣:0"),
    ],
    ids=lambda value: f"U-{value}" if isinstance(value, str) else "",
)
def test_the_name_of_a_tensor_is_taken_apart(text: str, node_name: str, index: int, printed: str) -> None:
    parsed = gc.parse_tensor_name(text)
    assert (parsed.node, parsed.index, str(parsed)) == (node_name, index, printed)


def test_u_ops_of_a_list_are_registered_and_may_be_imported() -> None:
    ops = registry()
    listed = [
        parse_op_signature("Fresh[T:type](x:T) -> (y:T, z:int32)"),
        ops.look_up_op_def("TestParams"),
        parse_op_signature("TestInput() -> ()"),
    ]
    assert register_ops(listed, ops) == ["Fresh"]
    assert register_ops(listed, ops) == []
    graph = gc.Graph(ops)
    import_into(graph, "a=TestInput", node("f=Fresh(a:1)", T=gc.float32))
    assert [(str(tensor.shape), tensor.dtype) for tensor in graph.get_operation_by_name("f").outputs] == [
        ("?", gc.float32),
        ("?", gc.int32),
    ]
