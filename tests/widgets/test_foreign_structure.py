"""First pictures of models of other frameworks: repeats, modules with classes, and names of blocks."""

from __future__ import annotations

import pytest

from graphcore.frontends.foreign import ForeignGraph, ModuleCall
from graphcore.frontends.lowering import lower
from tests.support.foreign_models import Builder, branch, perceptron, stages, transformer
from widgets.render.compiled import build_scene
from widgets.scene import Scene, SceneState


def pictured(source: ForeignGraph, *opened: str) -> Scene:
    state = SceneState()
    for each in opened:
        state.opened[each] = None
    return build_scene(lower(source), state)


def labels(scene: Scene) -> set[str]:
    return {node.label for node in scene.nodes} | {group.label for group in scene.groups}


def repeats(scene: Scene) -> list[tuple[str, int]]:
    return [(node.label, node.repeat) for node in scene.nodes if node.repeat]


def test_layers_that_share_a_mask_are_one_repeat_with_their_class() -> None:
    assert repeats(pictured(transformer(4))) == [("layers DecoderLayer", 4)]


def test_two_modules_of_one_list_and_class_are_a_repeat_though_one_has_a_branch() -> None:
    assert repeats(pictured(stages())) == [(f"stage{number} Block", 2) for number in range(3)]


def test_the_halves_of_one_module_are_not_called_modules() -> None:
    b = Builder()
    x = b.add("f.Input", name="x", shape=(1, 8, 9, 9))
    for block in range(2):
        modules = (ModuleCall(f"downs.{block}", "Double"),)
        for _ in range(2):
            x = b.add("f.Conv", x, b.weight(f"w{len(b.nodes)}", 8, 8, 3, 3), modules=modules, shape=(1, 8, 9, 9))
            x = b.add("f.Relu", b.add("f.BatchNormalization", x, modules=modules, shape=(1, 8, 9, 9)), modules=modules, shape=(1, 8, 9, 9))
        x = b.add("f.MaxPool", x, shape=(1, 8, 9, 9))
    scene = pictured(b.done(x))
    assert all(node.count > 6 for node in scene.nodes if "Double" in node.label)


def test_a_pooling_that_all_blocks_share_leaves_them_whole() -> None:
    b = Builder()
    x = b.add("f.Input", name="x")
    for block, op in enumerate(("f.Relu", "f.Gelu", "f.Tanh", "f.Sigmoid")):
        modules = (ModuleCall(f"block{block}", "Block"),)
        for _ in range(4):
            x = b.add(op, b.linear(x, f"block{block}.linear{len(b.nodes)}", modules), modules=modules)
        x = b.add("f.MaxPool", x, modules=(ModuleCall("pool", "MaxPool2d"),))
    scene = pictured(b.done(x))
    frames = labels(scene)
    assert {f"block{block} Block" for block in range(4)} <= frames
    assert [node.op for node in scene.nodes].count("MaxPool") == 4


def test_a_first_block_without_a_residual_is_named_as_the_others() -> None:
    b = Builder()
    x = b.add("f.Input", name="x")
    for block in range(4):
        outer = (ModuleCall(f"blocks.{block}", "MBConv"),)
        inner = (*outer, ModuleCall(f"blocks.{block}.body", "Sequential"))
        y = x
        for op in ("f.LayerNormalization", "f.Gelu", "f.Sigmoid"):
            y = b.add(op, b.linear(y, f"blocks.{block}.body.{op}", inner), modules=inner)
        x = b.add("f.Add", x, y, modules=outer) if block else y
    assert repeats(pictured(b.done(x))) == [("blocks MBConv", 4)]


def test_layers_without_names_are_one_repeat_with_the_name_of_their_kind() -> None:
    assert repeats(pictured(transformer(6, named=False))) == [("transformer layer", 6)]


@pytest.mark.parametrize("layers", [5, 30])
def test_a_plain_chain_of_products_is_no_transformer(layers: int) -> None:
    scene = pictured(perceptron(layers))
    assert not any("transformer" in node.label or "attention" in node.label for node in scene.nodes)


def test_ops_are_written_without_the_domain_and_weights_fold_into_them() -> None:
    assert [node.op for node in pictured(perceptron(2)).nodes] == ["Input", "Gemm", "Relu", "Gemm", "Relu", "Softmax", "Output"]


def test_edges_have_type_and_shape() -> None:
    assert {edge.label for edge in pictured(perceptron(2)).edges} == {"float [batch,64]"}


def test_unknown_sizes_without_a_name_are_not_told_apart() -> None:
    b = Builder()
    x = b.add("f.Input", name="x", shape=("batch", 3))
    scene = pictured(b.done(b.add("f.NonZero", b.add("f.Cut", x, shape=("batch", None)), shape=(None, None))))
    assert [edge.label for edge in scene.edges] == ["float [batch,3]", "float [batch,?]", "float [?,?]"]


def test_weights_that_are_computed_from_constants_lie_in_their_layers() -> None:
    b = Builder()
    weights = [b.add("f.ConstantOfShape", b.constant(4), shape=(8, 8, 3, 3)) for _ in range(30)]
    x = b.add("f.Input", name="x", shape=(1, 8, 9, 9))
    for weight in weights:
        x = b.add("f.Conv", x, weight, shape=(1, 8, 9, 9))
    scene = pictured(b.done(x))
    assert not any("constant" in node.label for node in scene.nodes)
    assert {edge.label for edge in scene.edges} == {"float [1,8,9,9]"}


def test_constants_that_others_take_are_not_called_unused() -> None:
    b = Builder()
    x = b.add("f.Input", name="x")
    masks = [b.add("f.ConstantOfShape", b.constant(4)) for _ in range(30)]
    for _ in range(2):
        for number, mask in enumerate(masks):
            x = b.add(("f.Where", "f.Conv", "f.MaxPool")[number % 3], x, mask)
        for op in ("f.Relu", "f.Conv", "f.Tanh", "f.MaxPool") * 8:
            x = b.add(op, x)
    scene = pictured(b.done(x), "constants")
    assert "30 constants" in labels(scene)


def test_frames_of_modules_have_their_classes() -> None:
    labels = [group.label for group in pictured(transformer(1)).groups]
    assert "self_attn Attention" in labels


def test_the_bodies_of_a_branch_open() -> None:
    scene = pictured(branch(), "choice")
    assert {node.op for node in scene.nodes} >= {"Neg", "Relu"}
    assert [group.label for group in scene.groups][1:] == ["then · then_body", "else · else_body"]
