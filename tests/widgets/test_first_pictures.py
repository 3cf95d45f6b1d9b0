"""The first pictures of stored models of other frameworks are the written ones."""

from __future__ import annotations

import pytest

from tests.golden.first_pictures import MODELS, TARGET, picture

WRITTEN = {block.partition(":")[0]: block for block in TARGET.read_text(encoding="utf-8").strip().split("\n\n")}


@pytest.mark.parametrize("name", WRITTEN)
def test_the_first_picture_is_the_written_one(name: str) -> None:
    assert picture(MODELS / name).strip() == WRITTEN[name]


def test_networks_read_as_people_draw_them() -> None:
    for name, words in {
        "resnet50.onnx.gz": ["layer1 Bottleneck ×3", "layer2 Bottleneck ×4", "layer3 Bottleneck ×6", "layer4 Bottleneck ×3"],
        "gpt2.onnx.gz": ["h GPT2Block ×4"],
        "vit.onnx.gz": ["blocks Block ×12"],
    }.items():
        assert all(word in WRITTEN[name] for word in words)
