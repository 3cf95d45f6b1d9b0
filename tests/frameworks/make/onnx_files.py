"""Writes `tests/data/frontends/*.onnx.gz`: models that PyTorch exported, without their weights.

`.venv-frameworks/bin/python -m tests.frameworks.make.onnx_files FILE.onnx ...` takes exported files, whose stacks name the files of a library only
from its folder on.
"""

from __future__ import annotations

import gzip
import re
import sys
from pathlib import Path
from typing import Final

import onnx

TARGET: Final = Path(__file__).parents[2] / "data" / "frontends"
_OWN: Final = re.compile(r'File "(?!site-packages)[^"]*/([^"/]+)"')


def packed(path: Path) -> bytes:
    """The model as it is stored."""
    model = onnx.load(path, load_external_data=False)
    for node in model.graph.node:
        for entry in node.metadata_props:
            if entry.key == "pkg.torch.onnx.stack_trace":
                entry.value = _OWN.sub(r'File "\1"', re.sub(r'File "[^"]*/site-packages/', 'File "site-packages/', entry.value))
    return gzip.compress(model.SerializeToString(deterministic=True), 9, mtime=0)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        target = TARGET / f"{Path(name).stem.partition('_')[0]}.onnx.gz"
        target.write_bytes(packed(Path(name)))
        sys.stdout.write(f"{target}\n")
