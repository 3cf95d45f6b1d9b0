"""First pictures of models of other frameworks: repeats, modules with classes, and names of blocks."""

from __future__ import annotations

import pytest

from graphcore.frontends.foreign import ForeignGraph, ModuleCall
from graphcore.frontends.lowering import lower
from tests.support.foreign_models import WIDTH, Builder, branch, perceptron, stages, transformer, two_networks
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


def test_a_branch_that_holds_the_model_opens_the_first_of_alike_sides_and_names_the_modules_of_the_other() -> None:
    scene = pictured(two_networks())
    assert any(":then/" in node.id for node in scene.nodes)
    assert [(node.label, node.detail) for node in scene.nodes if ":else" in node.id] == [
        ("else · else_body", "encoder Part, decoder Part, head Part")
    ]
    assert [node.count for node in scene.nodes if node.label == "weights"] == [5]


def test_constants_of_several_blocks_do_not_hold_these_together() -> None:
    b = Builder()
    x = b.add("f.Input", name="x")
    low, high = b.constant(), b.constant()
    for block in range(4):
        for _ in range(3):
            x = b.add("f.Clip", b.linear(x, f"w{block}{len(b.nodes)}", ()), low, high)
        x = b.add("f.Tanh", x)
    assert [number for _, number in repeats(pictured(b.done(x)))] == [4]


def depthwise(groups: int) -> ForeignGraph:
    """Three blocks of a convolution in groups of channels between two others."""
    b = Builder()
    x = b.add("f.Input", name="image", shape=(1, 8, 32, 32))
    for _ in range(3):
        for inner, size, group in ((8, 1, 1), (8 // groups, 3, groups), (8, 1, 1)):
            weight = b.weight(f"w{len(b.nodes)}", 8, inner, size, size)
            x = b.add("f.Relu", b.add("f.Conv", x, weight, shape=(1, 8, 32, 32)), shape=(1, 8, 32, 32))
            b.nodes[-2].attrs = {"group": group}
    return b.done(x)


def test_a_convolution_that_takes_each_channel_apart_is_depthwise() -> None:
    assert repeats(pictured(depthwise(8))) == [("inverted residual block", 3)]
    assert [label for label, _ in repeats(pictured(depthwise(2)))] == ["Conv, Relu"]


def test_a_pair_of_small_blocks_is_one_box_that_opens_at_once() -> None:
    b = Builder()
    x = b.add("f.Input", name="x")
    for stage in range(3):
        for block in range(2):
            modules = (ModuleCall(f"stage{stage}", "Sequential"), ModuleCall(f"stage{stage}.{block}", "Block"))
            y = x
            for _ in range(2):
                y = b.add(
                    "f.Conv", y, b.weight(f"w{len(b.nodes)}", 8, 8, 3, 3), modules=modules, shape=(1, 8 << stage, 64 >> stage, 64 >> stage)
                )
                y = b.add("f.Relu", y, modules=modules, shape=(1, 8 << stage, 64 >> stage, 64 >> stage))
            x = b.add("f.Add", x, y, modules=modules, shape=(1, 8 << stage, 64 >> stage, 64 >> stage))
    source = b.done(x)
    assert repeats(pictured(source)) == [(f"stage{stage} Block", 2) for stage in range(3)]
    opened = pictured(source, "stage1")
    assert {"stage1 Block ×2", "stage1.0 Block", "stage1.1 Block"} <= labels(opened)


def test_blocks_in_a_list_without_classes_have_its_name() -> None:
    b = Builder()
    x = b.add("f.Input", name="x")
    for block in range(3):
        for _ in range(4):
            name = f"body/body.{block}/n{len(b.nodes)}"
            x = b.add("f.Relu", b.add("f.Conv", x, b.weight(f"w{len(b.nodes)}", 8, 8, 3, 3), name=name), name=f"{name}/relu")
    assert [(label.split()[0], number) for label, number in repeats(pictured(b.done(x)))] == [("body", 3)]


def test_modules_whose_first_node_only_passes_a_value_on_are_not_part_of_what_is_before() -> None:
    b = Builder()
    x = b.add("f.Input", name="x")
    encoder, decoder = (ModuleCall("encoder", "Encoder"),), (ModuleCall("decoder", "Decoder"),)
    for _ in range(30):
        x = b.add("f.Tanh", b.linear(x, f"encoder.{len(b.nodes)}", encoder), modules=encoder)
    y = b.add("f.Dropout", x, modules=decoder)
    for _ in range(30):
        y = b.add("f.Tanh", b.linear(y, f"decoder.{len(b.nodes)}", decoder), modules=decoder)
    scene = pictured(b.done(y))
    assert {"encoder/", "decoder/"} <= {node.id for node in scene.nodes} | {group.id for group in scene.groups}


def test_a_dropout_before_blocks_lies_beside_them() -> None:
    b = Builder()
    x = b.add("f.Dropout", b.add("f.Sin", b.add("f.Input", name="x")), modules=(ModuleCall("drop", "Dropout"),))
    for layer in range(4):
        modules = (ModuleCall("blocks", "Sequential"), ModuleCall(f"blocks.{layer}", "Block"))
        for _ in range(6):
            x = b.add("f.Tanh", b.linear(x, f"blocks.{layer}.{len(b.nodes)}", modules), modules=modules)
    assert repeats(pictured(b.done(x))) == [("blocks Block", 4)]


def shared_weights(between: int, shape: tuple[int, ...] = (WIDTH, WIDTH)) -> ForeignGraph:
    """Four modules of different classes that take three weights of one file, with some ops between them."""
    b = Builder()
    x = b.add("f.Input", name="x")
    shared = [b.weight(f"s{number}", *shape) for number in range(3)]
    for layer in range(4):
        modules = (ModuleCall("abcd"[layer], f"Kind{layer}"),)
        for number in range(3):
            x = b.add("f.Tanh", b.linear(x, f"{layer}.{number}", modules), modules=modules)
            for _ in range(1 + layer):
                x = b.add("f.MatMul", x, shared[number], modules=modules)
        for _ in range(between):
            x = b.add("f.Sin", x)
    return b.done(x)


def test_weights_that_an_exporter_merged_are_one_box() -> None:
    scene = pictured(shared_weights(12))
    (box,) = [node.id for node in scene.nodes if node.label == "3 shared weights"]
    assert len([edge for edge in scene.edges if edge.source == box]) == 4


def test_no_arrows_lead_from_a_box_of_numbers_that_all_modules_take() -> None:
    scene = pictured(shared_weights(12, shape=()))
    (box,) = [node.id for node in scene.nodes if node.label == "3 shared weights"]
    assert not [edge for edge in scene.edges if edge.source == box]


def test_no_arrow_shows_that_a_module_takes_a_weight_of_another() -> None:
    edges = {(edge.source, edge.target) for edge in pictured(shared_weights(0)).edges}
    assert {("x", "a/"), ("a/", "b/")} <= edges
    assert not {target for source, target in edges if source == "a/"} - {"b/"}


def test_blocks_that_all_take_a_bias_of_the_first_are_a_repeat() -> None:
    b = Builder()
    x = b.add("f.Input", name="x")
    mask = x
    for number in range(30):
        mask = b.add("f.Tanh" if number % 2 else "f.Sin", mask)
    bias = ""
    for layer in range(4):
        modules = (ModuleCall("block", "ModuleList"), ModuleCall(f"block.{layer}", "Block"))
        for _ in range(6):
            x = b.add("f.Tanh", b.linear(x, f"block.{layer}.{len(b.nodes)}", modules), modules=modules)
        bias = bias or b.add("f.Mul", x, mask, modules=modules)
        x = b.add("f.Add", x, bias, modules=modules)
        x = b.add("f.Sub", x, mask, modules=modules)
    assert ("block Block", 4) in repeats(pictured(b.done(x)))


def test_a_value_that_is_quantised_before_a_module_is_one_box() -> None:
    b = Builder()
    scale, zero = b.constant(), b.constant()
    x = b.add("onnx.QuantizeLinear", b.add("f.Input", name="x"), scale, zero, name="quantised")
    x = b.add("onnx.DequantizeLinear", x, scale, zero)
    for layer in range(3):
        for _ in range(3 + layer):
            x = b.add("f.Tanh", b.linear(x, f"w{len(b.nodes)}", ()), modules=(ModuleCall(f"m{layer}", f"M{layer}"),))
    counts = {node.id: node.count for node in pictured(b.done(x)).nodes}
    assert counts["quantised"] == 4


def test_attention_is_known_although_its_softmax_is_several_ops() -> None:
    b = Builder()
    x = b.add("f.Input", name="x")
    for _ in range(3):
        query, key, value = [b.add("hlo.dot_general", x, b.weight(f"w{len(b.nodes)}", WIDTH, WIDTH)) for _ in range(3)]
        scores = b.add("hlo.exponential", b.add("hlo.dot_general", query, key))
        shares = b.add("hlo.divide", scores, b.add("hlo.reduce", scores))
        x = b.add(
            "hlo.add", x, b.add("hlo.dot_general", b.add("hlo.dot_general", shares, value), b.weight(f"w{len(b.nodes)}", WIDTH, WIDTH))
        )
        y = b.add("hlo.tanh", b.add("hlo.dot_general", x, b.weight(f"w{len(b.nodes)}", WIDTH, WIDTH)))
        x = b.add("hlo.add", x, b.add("hlo.dot_general", y, b.weight(f"w{len(b.nodes)}", WIDTH, WIDTH)))
    assert repeats(pictured(b.done(x))) == [("transformer layer", 3)]


def test_a_closed_module_says_which_blocks_it_mostly_consists_of() -> None:
    b = Builder()
    x = b.add("f.Input", name="x")
    for side in ("encoder", "decoder"):
        around = (ModuleCall(side, side.title()),)
        x = b.add("f.Sin", x, modules=around)
        for layer in range(4):
            modules = (*around, ModuleCall(f"{side}.layers.{layer}", "Layer"))
            for _ in range(6):
                x = b.add("f.Tanh", b.linear(x, f"{side}.{len(b.nodes)}", modules), modules=modules)
        x = b.add("f.Exp", b.linear(x, f"{side}.{len(b.nodes)}", around), modules=around)
    scene = build_scene(lower(b.done(x)), SceneState(auto_boxes=5))
    assert [node.detail for node in scene.nodes if node.count > 1] == ["layers Layer ×4"] * 2


def blocks(b: Builder, x: str, path: str, kind: str, count: int, around: tuple[ModuleCall, ...], width: int = WIDTH) -> str:
    """Blocks of a list, each with a module inside."""
    shape = (1, 16, width)
    for number in range(count):
        outer = (*around, ModuleCall(f"{path}.{number}", kind))
        inner = (*outer, ModuleCall(f"{path}.{number}.mlp", "MLP"))
        y = b.add("f.LayerNormalization", x, modules=outer, shape=shape)
        for op in ("f.Gelu", "f.Sigmoid"):
            weight = b.weight(f"{path}.{number}.{op}", width, width)
            y = b.add(op, b.add("f.MatMul", y, weight, modules=inner, shape=shape), modules=inner, shape=shape)
        x = b.add("f.Add", x, y, modules=outer, shape=shape)
    return x


def list_of_stages(counts: tuple[int, ...]) -> ForeignGraph:
    """Stages of so many blocks in one list, each but the last with what widens its result behind it."""
    b = Builder()
    x = b.add("f.Input", name="x", shape=(1, 16, WIDTH))
    root = (ModuleCall("features", "Sequential"),)
    for stage, count in enumerate(counts):
        path, width = f"features.{2 * stage}", WIDTH << stage
        x = blocks(b, x, path, "Block", count, (*root, ModuleCall(path, "Sequential")), width)
        merging = (*root, ModuleCall(f"features.{2 * stage + 1}", "Merging"))
        x = b.add("f.LayerNormalization", x, modules=merging, shape=(1, 16, width))
        for op in ("f.Concat", "f.MatMul", "f.Add"):
            x = b.add(op, x, b.weight(f"w{len(b.nodes)}", 2 * width), modules=merging, shape=(1, 16, 2 * width))
    return b.done(x)


@pytest.mark.parametrize("counts", [(3, 3, 3), (2, 2, 6, 2)])
def test_stages_that_lie_in_a_list_are_boxes_of_their_blocks(counts: tuple[int, ...]) -> None:
    stages = [(f"features.{2 * place} Block", count) for place, count in enumerate(counts)]
    assert repeats(pictured(list_of_stages(counts), "features/")) == stages


def test_modules_of_one_list_that_differ_in_turn_are_not_pairs() -> None:
    b = Builder()
    x = b.add("f.Input", name="x", shape=(1, 16, WIDTH))
    for place in range(5):
        width = WIDTH << ((place + 1) // 2)
        if place % 2 == 0:
            modules = (ModuleCall(f"model.{place}", "Conv"),)
            for op in ("f.Conv", "f.BatchNormalization", "f.Relu"):
                x = b.add(op, x, b.weight(f"w{len(b.nodes)}", width), modules=modules, shape=(1, 16, width))
        else:
            x = blocks(b, x, f"model.{place}.m", "Bottleneck", 2 + place // 2, (ModuleCall(f"model.{place}", "C2f"),), width)
    scene = pictured(b.done(x))
    assert labels(scene) >= {"model.0 Conv", "model.1/m Bottleneck", "model.2 Conv", "model.4 Conv"}
    assert repeats(scene) == [("model.1/m Bottleneck", 2), ("model.3/m Bottleneck", 3)]


def test_blocks_of_one_list_that_differ_in_turn_are_one_repeat() -> None:
    b = Builder()
    x = b.add("f.Input", name="x")
    for number in range(6):
        modules = (ModuleCall("layers", "ModuleList"), ModuleCall(f"layers.{number}", "Layer"))
        for op in ("f.Sin", "f.Tanh", "f.Gelu", *(("f.Pad", "f.Roll", "f.Slice") if number % 2 else ())):
            x = b.add(op, b.linear(x, f"layers.{number}.{op}", modules), modules=modules)
    assert repeats(pictured(b.done(x))) == [("layers Layer", 6)]


def test_layers_whose_names_a_converter_numbers_twice_are_one_repeat() -> None:
    b = Builder()
    x = b.add("f.Input", name="x")
    for layer in range(4):
        number = "_1" if layer == 0 else f"_{layer}_2"
        for place, name in enumerate(("attention", "norm", "dense")):
            for op in ("f.MatMul", "f.Tanh", "f.Gelu", "f.Sin", "f.Exp")[place:]:
                kind = f"net/{name}{number}/n{len(b.nodes)}"
                x = b.add(op, x, b.weight(f"{kind}/w", WIDTH, WIDTH), name=kind)
    assert [count for _, count in repeats(pictured(b.done(x)))] == [4]


def test_weights_named_after_one_of_their_layers_do_not_hold_layers_together() -> None:
    b = Builder()
    x = b.add("f.Input", name="x")
    scale = b.weight("net/norm_3/ones", WIDTH)
    for layer in range(4):
        for place, name in enumerate(("attention", "norm", "dense")):
            for op in ("f.MatMul", "f.Tanh", "f.Gelu", "f.Sin", "f.Exp")[place:]:
                kind = f"net/{name}_{layer}/n{len(b.nodes)}"
                x = b.add(op, x, scale if name == "norm" else b.weight(f"{kind}/w", WIDTH, WIDTH), name=kind)
    assert [count for _, count in repeats(pictured(b.done(x)))] == [4]


@pytest.mark.parametrize("word", ["vision", "text"])
def test_an_input_that_is_named_like_a_module_lies_beside_it(word: str) -> None:
    b = Builder()
    ends = []
    for name in ("text", "vision"):
        x = b.add("f.Input", name=name)
        ends.append(blocks(b, x, f"{name}.layers", "Layer", 4, (ModuleCall(name, "Tower"),)))
    scene = pictured(b.done(b.add("f.MatMul", *ends)))
    assert [node.group for node in scene.nodes if node.id == word] == [""]


def test_layers_with_attention_as_one_operation_are_called_transformer_layers() -> None:
    b = Builder()
    x = b.add("f.Input", name="x")
    for layer in range(4):
        weights = [b.weight(f"w{layer}{number}", WIDTH, WIDTH) for number in range(4)]
        attended = b.add("f.MultiHeadAttention", x, x, *weights[:2])
        x = b.add("f.LayerNormalization", b.add("f.Add", x, attended))
        y = b.add("f.Dense", b.add("f.Dense", x, weights[2]), weights[3])
        x = b.add("f.LayerNormalization", b.add("f.Add", x, y))
    assert repeats(pictured(b.done(x))) == [("transformer layer", 4)]


def test_two_towers_of_other_classes_are_not_one_repeat() -> None:
    b = Builder()
    root = (ModuleCall("model", "Model"),)
    ends = []
    for word, kind in (("text", "TextTower"), ("vision", "VisionTower")):
        x = blocks(b, b.add("f.Input", name=f"{word}_in"), f"model.{word}.layers", "Layer", 4, (*root, ModuleCall(f"model.{word}", kind)))
        x = b.linear(x, f"model.{word}_head", root)
        ends.append(b.add("f.Div", x, b.add("f.ReduceSum", x, modules=root), modules=root))
    scene = pictured(b.done(b.add("f.MatMul", *ends, modules=root)))
    assert repeats(scene) == [("layers Layer", 4)] * 2


def test_inputs_and_outputs_stay_beside_groups_of_ops_without_names() -> None:
    b = Builder()
    tracks = [b.add("f.Input", name=name) for name in ("image", "depth", "scale")]
    ops = ("f.Conv", "f.Mul", "f.Relu", "f.Tanh", "f.MaxPool", "f.Sigmoid", "f.Concat")
    for number in range(90):
        own = number % 2 if number % 15 > 11 else number % 3
        tracks[own] = b.add(ops[number * number % 7], tracks[own], tracks[(own + 1) % 3 if number % 15 < 12 else 1 - own])
    scene = pictured(b.done(b.add("f.Concat", *tracks)))
    assert {"image", "depth", "scale", "result"} <= {node.id for node in scene.nodes}
    assert any(node.count > 5 for node in scene.nodes)
