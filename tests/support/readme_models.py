"""The model files that the README's table compares."""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path
from typing import Final

from tests.support.readme import ROOT

BEFORE: Final = ROOT / "tests" / "data" / "frontends" / "resnet50.onnx.gz"
MAKE_THE_OTHERS: Final = """import onnx
changed = onnx.load("before.onnx", load_external_data=False)
next(node for node in changed.graph.node if node.name == "node_relu_28").op_type = "HardSwish"
onnx.save(changed, "after.onnx")
_ = torch.onnx.export(model, (x,), "model.onnx")
"""
"""A cell that changes one node of the first file, and exports the README's module."""


def write_before(folder: Path) -> None:
    """Write `before.onnx`, a ResNet50 without weights."""
    with gzip.open(BEFORE) as packed, (folder / "before.onnx").open("wb") as plain:
        shutil.copyfileobj(packed, plain)
