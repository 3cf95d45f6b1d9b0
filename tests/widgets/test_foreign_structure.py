"""First pictures of models of other frameworks: repeats, modules with classes, and names of blocks."""

from __future__ import annotations

import pytest

from graphcore.frontends.foreign import ForeignGraph
from graphcore.frontends.lowering import lower
from tests.support.foreign_models import branch, perceptron, stages, transformer
from widgets.render.compiled import build_scene
from widgets.scene import Scene, SceneState


def pictured(source: ForeignGraph, *opened: str) -> Scene:
    state = SceneState()
    for each in opened:
        state.opened[each] = None
    return build_scene(lower(source), state)


def repeats(scene: Scene) -> list[tuple[str, int]]:
    return [(node.label, node.repeat) for node in scene.nodes if node.repeat]


def test_layers_that_share_a_mask_are_one_repeat_with_their_class() -> None:
    assert repeats(pictured(transformer(4))) == [("layers DecoderLayer", 4)]


def test_two_modules_of_one_list_and_class_are_a_repeat_though_one_has_a_branch() -> None:
    assert repeats(pictured(stages())) == [(f"stage{number} Block", 2) for number in range(3)]


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


def test_frames_of_modules_have_their_classes() -> None:
    labels = [group.label for group in pictured(transformer(1)).groups]
    assert "self_attn Attention" in labels


def test_the_bodies_of_a_branch_open() -> None:
    scene = pictured(branch(), "choice")
    assert {node.op for node in scene.nodes} >= {"Neg", "Relu"}
    assert [group.label for group in scene.groups][1:] == ["then · then_body", "else · else_body"]
