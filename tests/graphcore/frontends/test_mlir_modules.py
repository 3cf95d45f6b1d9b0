"""MLIR modules as text and as bytecode."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

import graphcore as gc
from graphcore.errors import GraphError, InvalidArgumentError, ResourceExhaustedError
from graphcore.frontends.sources import open_source
from widgets import to_outline

pytest.importorskip("jaxlib")
FILES = Path(__file__).parents[2] / "data" / "frontends"


def test_operations_are_nodes_with_types_and_regions() -> None:
    source = open_source(FILES / "softmax.mlir")
    nodes = {node.name: node for node in source.main.nodes}
    assert [(port.dtype, port.shape) for port in nodes["dot_general"].outputs] == [("f32", (3, 5))]
    assert nodes["dot_general"].inputs == (("arg1", 0), ("arg0", 0))
    body = source.functions[nodes["reduce"].bodies["body"]]
    assert [node.op for node in body.nodes if node.kind == "op"] == ["stablehlo.maximum"]
    assert source.main.outputs == (("divide", 0),)


@pytest.mark.parametrize("name", ["loops.mlirbc", "loops_portable.mlirbc"])
def test_bytecode_has_scopes_lines_and_loops(name: str) -> None:
    source = open_source(FILES / name)
    loop = next(node for node in source.main.nodes if node.op == "stablehlo.while")
    assert [call.path for call in loop.modules] == ["encoder"]
    assert loop.frames[-1].function == "network"
    body = source.functions[loop.bodies["body"]]
    assert any(node.op == "stablehlo.dot_general" for node in body.nodes)
    assert sum(node.op == "stablehlo.while" for node in gc.load(FILES / name).op_nodes()) == 2


def test_unknown_dialects_dynamic_sizes_and_constants_are_read(tmp_path: Path) -> None:
    path = tmp_path / "other.mlir"
    path.write_text(
        "module @m { func.func @main(%x: tensor<?x2xf32>) -> tensor<?x2xf32> {\n"
        "  %c = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf32>\n"
        '  %y = "mine.op"(%x, %c) {k = 3 : i64} : (tensor<?x2xf32>, tensor<2xf32>) -> tensor<?x2xf32>\n'
        "  return %y : tensor<?x2xf32> } }"
    )
    nodes = {node.op: node for node in open_source(path).main.nodes}
    assert nodes["mine.op"].attrs == {"k": 3}
    assert nodes["mine.op"].outputs[0].shape == (None, 2)
    weight = nodes["stablehlo.constant"].weight
    assert weight is not None
    assert weight.load is not None
    np.testing.assert_array_equal(weight.load(), [1, 2])


def test_arguments_out_of_a_tree_of_parameters_lie_in_the_scopes_that_take_them(tmp_path: Path) -> None:
    path = tmp_path / "net.mlir"
    layers = [
        f"  %y{number + 1} = stablehlo.dot_general %y{number}, %w{number}, contracting_dims = [1] x [0] : "
        f'(tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32> loc("jit(net)/layer{number}/dot_general")\n'
        f'  %y{number + 2} = stablehlo.tanh %y{number + 1} : tensor<2x4xf32> loc("jit(net)/layer{number}/tanh")\n'
        for number in (0, 2)
    ]
    weights = ", ".join([f"%w{number}: tensor<4x4xf32> loc(\"params['layer{number}']['w']\")" for number in (0, 2)])
    path.write_text(
        f'module @net {{ func.func @main({weights}, %y0: tensor<2x4xf32> loc("x")) -> tensor<2x4xf32> {{\n'
        f"{''.join(layers)}  return %y4 : tensor<2x4xf32> }} }}"
    )
    kinds = {node.name: node.kind for node in open_source(path).main.nodes if node.op == "mlir.argument"}
    assert kinds == {"params['layer0']['w']": "parameter", "params['layer2']['w']": "parameter", "x": "input"}
    outline = to_outline(gc.load(path))
    assert "argument x float [2,4]" in outline
    assert "params" not in outline
    assert {node.name.rpartition("/")[0] for node in gc.load(path).op_nodes() if node.op == "mlir.argument"} == {"", "layer0", "layer2"}


def test_a_text_that_begins_with_a_long_table_of_places_is_read(tmp_path: Path) -> None:
    path = tmp_path / "places.mlir"
    places = "".join(f"#loc{number} = loc(\"params['layers'][{number}]['kernel']\")\n" for number in range(1, 200))
    path.write_text(
        places + "module {\n  func.func @main(%x: tensor<2xf32> loc(#loc7)) -> tensor<2xf32> {\n    return %x : tensor<2xf32>\n  }\n}\n"
    )
    assert len(places) > 4096
    assert [node.kind for node in open_source(path).main.nodes] == ["input"]


def test_damaged_bytecode_is_refused(tmp_path: Path) -> None:
    data = (FILES / "loops.mlirbc").read_bytes()
    path = tmp_path / "damaged.mlirbc"
    path.write_bytes(data[:60] + b"\xff\xfe\xfd" + data[70:])
    with pytest.raises(InvalidArgumentError, match="bytecode is damaged"):
        gc.load(path)


def test_damaged_text_gives_graph_errors(tmp_path: Path) -> None:
    text, chance, path = (FILES / "softmax.mlir").read_text(), random.Random(5), tmp_path / "damaged.mlir"
    for _ in range(150):
        place = chance.randrange(30, len(text))
        path.write_text(text[:place] + chance.choice(["(", "}", '"', "\n", "%", "", "9"]) + text[place + chance.randrange(9) :])
        try:
            gc.load(path)
        except GraphError:
            continue


def test_names_of_locations_that_are_no_text_end_no_process(tmp_path: Path) -> None:
    path = tmp_path / "names.mlir"
    path.write_text(
        'module {\n  func.func @main(%a: tensor<2xf32> loc("\\FF")) -> tensor<2xf32> {\n'
        '    %0 = stablehlo.tanh %a : tensor<2xf32> loc("\\C3\\A9/\\FE"("\\FF.py":3:1))\n    return %0 : tensor<2xf32>\n  }\n}\n'
    )
    (tanh,) = [node for node in gc.load(path).nodes if node.op == "stablehlo.tanh"]
    assert tanh.source is not None
    assert (tanh.source.file, tanh.source.line) == ("\N{REPLACEMENT CHARACTER}.py", 3)


@pytest.mark.parametrize(
    ("opening", "closing"),
    [("module {", "}"), ("module attributes {a.b = [", "]}"), ("func.func private @f(tuple<", ">)")],
    ids=["regions", "lists", "types"],
)
def test_text_nested_so_deep_that_the_parser_would_end_the_process_is_refused(tmp_path: Path, opening: str, closing: str) -> None:
    path, turn = tmp_path / "deep.mlir", opening[-1] if opening[-1] in "{[" else opening[-6:]
    path.write_text(f"module {{ {opening}{turn * 300_000}{closing[0] * 300_000}{closing} }}")
    with pytest.raises(InvalidArgumentError, match="nested deeper than 500"):
        gc.load(path)


def test_a_line_of_signs_so_long_that_the_parser_would_end_the_process_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "signs.mlir"
    path.write_text(f"module attributes {{a.b = affine_map<(d0) -> ({'-' * 300_000}d0)>}} {{}}")
    with pytest.raises(InvalidArgumentError, match="signs"):
        gc.load(path)


@pytest.mark.parametrize(
    ("sign", "first", "form"), [("#", "[1 : i64]", "[{0}, {0}]"), ("!", "tuple<i32>", "tuple<{0}, {0}>")], ids=["attrs", "types"]
)
def test_aliases_that_double_many_times_are_refused(tmp_path: Path, sign: str, first: str, form: str) -> None:
    path, name = tmp_path / "doubling.mlir", sign + "a"
    lines = [f"{name}{number} = {form.format(f'{name}{number - 1}')}\n" for number in range(1, 60)]
    use = f'"x.y"() {{v = {name}59}} : () -> ()' if sign == "#" else f'%0 = "x.y"() : () -> {name}59'
    path.write_text(f"{name}0 = {first}\n" + "".join(lines) + f"module {{ {use} }}")
    with pytest.raises(ResourceExhaustedError, match="written out"):
        gc.load(path)


def test_a_constant_of_one_value_is_read_within_limits(tmp_path: Path) -> None:
    path = tmp_path / "splat.mlir"
    sizes = {"small": 3, "huge": 10**14}
    lines = [f"%{name} = stablehlo.constant dense<7> : tensor<{size}xi32>" for name, size in sizes.items()]
    path.write_text("module {{ func.func @main() {{\n{}\nreturn\n}} }}".format("\n".join(lines)))
    small, huge = [node.weight for node in open_source(path).main.nodes if node.weight is not None]
    assert small.load is not None
    assert huge.load is not None
    assert small.load().tolist() == [7, 7, 7]
    with pytest.raises(ResourceExhaustedError, match="a constant of shape"):
        huge.load()
