"""GraphDefs in their three file forms, without loss."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import graphcore as gc
from graphcore import dtypes as d
from graphcore.attrs import NO_VALUE, AttrValue, Func, NoValue, Placeholder, TensorValue
from graphcore.definitions import (
    ArgDef,
    FunctionDef,
    FunctionDefLibrary,
    GradientDef,
    GraphDef,
    NodeDef,
    OpDef,
    OpDefBuilder,
    OpDeprecation,
    VersionDef,
)
from graphcore.definitions.wire import (
    function_def_from_bytes,
    function_def_to_bytes,
    graph_def_from_bytes,
    graph_def_to_bytes,
    graph_def_to_json,
    graph_def_to_text,
    node_def_from_bytes,
    node_def_to_bytes,
    op_def_from_bytes,
    op_def_to_bytes,
    op_defs_of,
    op_list_from_bytes,
    op_list_to_bytes,
    schema,
)
from graphcore.errors import InvalidArgumentError
from graphcore.shapes import Shape

DATA = Path(__file__).parents[3] / "data"
FILES = sorted(DATA.glob("*.pb"))
VALUES: dict[str, AttrValue] = {
    "int": -(2**63),
    "float": 0.5,
    "bool": False,
    "string": b"\xff\x00text",
    "type": d.bfloat16,
    "ref": d.float32.ref,
    "unknown type": d.dtype_from_wire(1000),
    "no type": d.INVALID,
    "shape": Shape([None, 3]),
    "scalar shape": Shape([]),
    "unknown shape": Shape(None),
    "tensor": TensorValue([[1.5, -2.0]], d.float32),
    "func": Func("f", {"T": d.int32, "g": Func("g", {"n": 1})}),
    "placeholder": Placeholder("T"),
    "nothing": NO_VALUE,
    "empty list": (),
    "ints": (1, 2),
    "floats": (0.5, float("inf")),
    "bools": (True, False),
    "strings": (b"a", b"\xff"),
    "types": (d.int32, d.string),
    "shapes": (Shape([1]), Shape(None)),
    "tensors": (TensorValue(1, d.int32), TensorValue([b"x"], d.string)),
    "funcs": (Func("f"), Func("g", {"a": 1})),
}
OP = (
    OpDefBuilder("Everything").input("a: N*T").input("b: Ref(float)").output("c: L").control_output("k").attr("N: int >= 2 = 3")
    .attr("T: {float, int32} = DT_FLOAT").attr("L: list(type) = [DT_INT32]").attr("s: {'x', 'y'} = 'x'").attr("e: list(int) = []")
    .doc("Summary.\n\nMore.\na: Input a.\nT: Type.").set_is_stateful().set_is_commutative().set_is_aggregate()
    .set_allows_uninitialized_input().deprecated(9, "Gone").finalize()
)  # fmt: skip
FUNCTION = FunctionDef(
    signature=OpDef(name="F", is_distributed_communication=True),
    node_def=(NodeDef("n", "Everything", ("a", "b:c:0", "^d"), "/cpu:0", {"T": Placeholder("T")}, ("o",), ("f",)),),
    ret={"y": "n:c:0"},
    control_ret={"k": "n"},
    attr={"_noinline": True},
    arg_attr={0: {"_output_shapes": (Shape([1]),)}, 2: {}},
)
GRAPH = GraphDef(
    node=(NodeDef("n", "Everything", ("a", "b:1", "^c"), "/job:worker/gpu:1", VALUES), NodeDef("m", "NoOp")),
    versions=VersionDef(1000, 12, (7, 8)),
    library=FunctionDefLibrary((FUNCTION,), (GradientDef("F", "FGrad"),)),
)


def test_what_a_message_holds_without_an_order_is_read_in_one_order() -> None:
    names = [f"name{number}" for number in range(40)]
    signature = OpDef(
        name="F", output_arg=tuple([ArgDef(name=name, type=d.float32) for name in names[::-1]]), control_output=tuple(names[::-1])
    )
    entries = dict.fromkeys(names, "n:c:0")
    function = FunctionDef(
        signature=signature,
        node_def=(NodeDef("n", "NoOp", attr=dict.fromkeys(names, 1)),),
        ret=entries,
        control_ret=entries,
        attr=dict.fromkeys(names, True),
    )
    (found,) = graph_def_from_bytes(graph_def_to_bytes(GraphDef(library=FunctionDefLibrary((function,))))).library.function
    assert list(found.ret) == list(found.control_ret) == names[::-1]
    assert list(found.attr) == list(found.node_def[0].attr) == sorted(names)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_file_made_by_tensorflow_is_written_back_byte_for_byte(path: Path) -> None:
    data = path.read_bytes()
    canonical = schema.GraphDef.FromString(data).SerializeToString(deterministic=True)
    graph_def = graph_def_from_bytes(data)
    assert len(graph_def.node) > 5
    assert graph_def_to_bytes(graph_def) == canonical


@pytest.mark.parametrize("path", [path for path in FILES if path.stat().st_size < 200_000], ids=lambda path: path.name)
def test_a_file_made_by_tensorflow_survives_text_and_json(path: Path) -> None:
    graph_def = graph_def_from_bytes(path.read_bytes())
    assert graph_def_from_bytes(graph_def_to_text(graph_def).encode()) == graph_def
    assert graph_def_from_bytes(graph_def_to_json(graph_def).encode()) == graph_def


def test_there_are_files_made_by_tensorflow() -> None:
    assert len(FILES) == 5


@pytest.mark.parametrize("form", ["binary", "text", "json"])
def test_every_kind_of_value_survives_each_form(form: str) -> None:
    text = {"text": graph_def_to_text, "json": graph_def_to_json}
    data = text[form](GRAPH).encode() if form in text else graph_def_to_bytes(GRAPH)
    again = graph_def_from_bytes(data)
    for name, value in VALUES.items():
        assert again.node[0].attr[name] == value, name
    assert again == GRAPH


def test_op_defs_survive() -> None:
    assert op_def_from_bytes(op_def_to_bytes(OP)) == OP
    assert OP.deprecation == OpDeprecation(9, "Gone")
    assert op_list_from_bytes(op_list_to_bytes([OP, OpDef(name="Other")])) == [OP, OpDef(name="Other")]


def test_the_op_defs_of_a_list_are_read_one_by_one() -> None:
    wrong = schema.OpDef(name="Wrong")
    wrong.attr.add(name="s", type="shape").default_value.shape.dim.add(size=-7)
    op_defs = op_defs_of(schema.OpList(op=[schema.OpDef(name="Right"), wrong]).SerializeToString())
    assert next(op_defs) == OpDef(name="Right")
    with pytest.raises(InvalidArgumentError):
        next(op_defs)


def test_messages_in_lists_that_differ_in_what_nobody_knows_stay_different() -> None:
    message = schema.NodeDef(name="n", op="Op")
    for extra in (b"", UNKNOWN, b"", UNKNOWN + UNKNOWN, UNKNOWN):
        for each in (message.attr["t"].list.tensor.add(dtype=1), message.attr["f"].list.func.add(name="f").attr["a"].tensor):
            each.MergeFromString(extra)
    data = message.SerializeToString(deterministic=True)
    assert data.count(UNKNOWN) == 8
    assert node_def_to_bytes(node_def_from_bytes(data)) == node_def_to_bytes(
        node_def_from_bytes(node_def_to_bytes(node_def_from_bytes(data)))
    )
    assert node_def_to_bytes(node_def_from_bytes(data)).count(UNKNOWN) == 8


def test_functions_and_nodes_survive() -> None:
    assert function_def_from_bytes(function_def_to_bytes(FUNCTION)) == FUNCTION
    assert node_def_from_bytes(node_def_to_bytes(GRAPH.node[0])) == GRAPH.node[0]


def test_writing_is_the_same_whatever_the_order_of_attrs() -> None:
    first = NodeDef("n", "Op", (), "", {"a": 1, "b": 2})
    second = NodeDef("n", "Op", (), "", {"b": 2, "a": 1})
    assert node_def_to_bytes(first) == node_def_to_bytes(second)


@pytest.mark.parametrize("text", ['node { name: "n" op: "NoOp" }', '\n# a comment\nnode { name: "n" op: "NoOp" }', '{"node": [{"name": "n", "op": "NoOp"}]}',
                                  ' \n{"node":[{"name":"n","op":"NoOp"}]}', "\n\tnode <name: 'n', op: 'NoOp'>"])  # fmt: skip
def test_the_form_of_a_file_is_seen_from_its_content(text: str) -> None:
    assert graph_def_from_bytes(text.encode()) == GraphDef(node=(NodeDef("n", "NoOp"),))


def test_an_empty_file_is_an_empty_graph() -> None:
    assert graph_def_from_bytes(b"") == GraphDef()
    assert graph_def_to_bytes(GraphDef()) == b""


@pytest.mark.parametrize("form", [graph_def_to_bytes, lambda g: graph_def_to_text(g).encode(), lambda g: graph_def_to_json(g).encode()],
                         ids=["binary", "text", "json"])  # fmt: skip
def test_names_of_dimensions_are_written_back(form: Callable[[GraphDef], bytes]) -> None:
    dims = 'dim { size: -1 name: "batch" } dim { size: 3 }'
    text = f'node {{ name: "x" op: "Placeholder" attr {{ key: "shape" value {{ shape {{ {dims} }} }} }} }}'
    graph_def = graph_def_from_bytes(text.encode())
    assert graph_def.node[0].attr["shape"] == Shape([None, 3])
    assert "".join(dims.split()) in "".join(graph_def_to_text(graph_def_from_bytes(form(graph_def))).split())


def test_a_very_old_file_has_its_version_in_another_field() -> None:
    old = schema.GraphDef(version=4)
    graph_def = graph_def_from_bytes(old.SerializeToString())
    assert graph_def.versions == VersionDef(producer=4)
    assert graph_def_to_bytes(graph_def) == old.SerializeToString()


def test_a_long_text_with_letters_beyond_ascii_is_text() -> None:
    for shift in range(4):
        text = "#" * shift + "\n# " + "é€😀" * 2_000 + '\nnode { name: "n" op: "NoOp" }'
        assert graph_def_from_bytes(text.encode()) == GraphDef(node=(NodeDef("n", "NoOp"),))


def test_a_text_that_ends_as_no_text_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="Not a GraphDef: text that is no UTF-8 at byte 5001"):
        graph_def_from_bytes(b"#" + b"x" * 5_000 + b"\xff")


UNKNOWN = b"\xfa\x7f\x03abc"  # field 2047 with three bytes


def test_fields_that_nobody_knows_are_written_back_at_every_level() -> None:
    message = schema.GraphDef()
    node = message.node.add(name="n", op="Op")
    node.attr["i"].i = 1
    node.attr["f"].func.attr["t"].tensor.CopyFrom(schema.TensorProto(dtype=1, tensor_shape={}))
    node.attr["new kind of value"].MergeFromString(UNKNOWN)
    function = message.library.function.add()
    function.signature.input_arg.add(name="a", type=1)
    for part in (
        message,
        node,
        node.attr["f"].func.attr["t"].tensor,
        message.library,
        function,
        function.signature,
        function.signature.input_arg[0],
    ):
        part.MergeFromString(UNKNOWN)
    data = message.SerializeToString(deterministic=True)
    assert data.count(UNKNOWN) == 8
    graph_def = graph_def_from_bytes(data)
    assert isinstance(graph_def.node[0].attr["new kind of value"], NoValue)
    assert graph_def_to_bytes(graph_def) == data


def test_fields_without_a_place_in_the_values_are_written_back() -> None:
    message = schema.GraphDef()
    node = message.node.add(name="n", op="Op")
    node.experimental_type.type_id = 1000
    tensor = node.attr["t"].tensor
    tensor.dtype = 20
    tensor.tensor_shape.SetInParent()
    tensor.resource_handle_val.add(name="handle")
    tensor.version_number = 3
    message.debug_info.files.append("a.py")
    message.library.SetInParent()
    message.versions.SetInParent()
    function = message.library.function.add()
    function.resource_arg_unique_id[1] = 2
    function.signature.input_arg.add(name="a", type=20).handle_data.add(dtype=1)
    message.library.registered_gradients.add(gradient_func="g", registered_op_type="o")
    data = message.SerializeToString(deterministic=True)
    assert graph_def_to_bytes(graph_def_from_bytes(data)) == data


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"\x0a\xff\xff", "Not a GraphDef: "),
        (b"\x7fELF\x01\x01", "Not a GraphDef: "),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "Not a GraphDef: "),
        (b"hello world", "Not a GraphDef: protobuf text at line:column 1:"),
        (b"node {\n  name: 3\n}", "Not a GraphDef: protobuf text at line:column 2:"),
        (b"node { nome: 'n' }", "nome"),
        (b"node { name: 'n'", "Not a GraphDef: protobuf text"),
        (b'{"node": 3}', "Not a GraphDef: JSON: "),
        (b'{"node": [', "Not a GraphDef: JSON: "),
        (b'{"nodes": []}', "nodes"),
        (b"{" * 10_000, "Not a GraphDef: JSON: "),
        (b"node {" * 10_000, "Not a GraphDef: protobuf text"),
        (b"\x0a\x04\x0a\x02\xff\xfe", "Not a GraphDef: "),
    ],
    ids=["cut off", "program", "picture", "prose", "wrong kind", "unknown field", "open brace", "JSON kind", "JSON cut off", "JSON field",
         "deep JSON", "deep text", "name that is no text"],
)  # fmt: skip
def test_what_is_no_graph_is_refused_with_its_place(data: bytes, text: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        graph_def_from_bytes(data)
    assert text in caught.value.message


@pytest.mark.parametrize("value", [2**63, ((1,),), (Placeholder("T"),)], ids=["int beyond int64", "list of lists", "list of placeholders"])
def test_a_value_without_a_place_in_a_file_is_refused_when_writing(value: AttrValue) -> None:
    with pytest.raises(InvalidArgumentError):
        node_def_to_bytes(NodeDef("n", "Op", (), "", {"a": value}))


def test_a_name_that_is_no_text_is_refused_when_writing() -> None:
    with pytest.raises(InvalidArgumentError, match="The NodeDef cannot be written"):
        node_def_to_bytes(NodeDef("\ud800", "Op"))


@pytest.mark.parametrize("depth", [1, 32, 33, 60, 2_000])
@pytest.mark.parametrize("form", [graph_def_to_bytes, graph_def_to_text, graph_def_to_json], ids=["binary", "text", "JSON"])
def test_funcs_nested_deeper_than_can_be_read_are_not_written(form: Callable[[GraphDef], str | bytes], depth: int) -> None:
    value = Func("end")
    for _ in range(depth):
        value = Func("f", {"f": value})
    graph_def = GraphDef(node=(NodeDef("n", "NoOp", (), "", {"_f": value}),))
    if depth < 33:
        written = form(graph_def)
        assert graph_def_from_bytes(written if isinstance(written, bytes) else written.encode()) == graph_def
        return
    with pytest.raises(InvalidArgumentError, match="has no place in a file: funcs may be nested 33 deep there"):
        form(graph_def)


def test_a_graph_def_is_filled_and_serialized_by_the_names_of_protobuf() -> None:
    data = (Path(__file__).parents[3] / "data" / "mobilenetv2.pb").read_bytes()
    graph_def = gc.GraphDef()
    assert graph_def.ParseFromString(data) == len(data)
    assert graph_def == gc.GraphDef.FromString(graph_def.SerializeToString())
    with gc.Graph().as_default() as graph:
        gc.import_graph_def(graph_def, name="net")
    assert len(graph_def.node) == len(list(graph.op_nodes()))
    with pytest.raises(gc.errors.FailedPreconditionError, match="fills an empty GraphDef"):
        graph_def.ParseFromString(data)
    with pytest.raises(gc.errors.InvalidArgumentError, match="Not a GraphDef"):
        gc.GraphDef.FromString(b"\xff\xff")
