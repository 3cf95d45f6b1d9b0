"""The frontend in the how-to about extensions, installed by its entry point."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import graphcore as gc
from graphcore.frontends.sources import frontends_of_other_packages, kinds

GUIDE = (Path(__file__).parents[3] / "notebooks" / "docs" / "howto" / "extend.md").read_text(encoding="utf-8")


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of packages that are installed."""
    monkeypatch.syspath_prepend(str(tmp_path))
    frontends_of_other_packages.cache_clear()
    yield tmp_path
    frontends_of_other_packages.cache_clear()
    sys.modules.pop("my_chains", None)


def install(folder: Path, name: str, target: str) -> None:
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[graphloupe.frontends]\n{name} = {target}\n")


def test_a_package_adds_a_kind_of_file_as_the_guide_says(packages: Path) -> None:
    (code,) = [block for block in re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL) if "def sniff" in block]
    (packages / "my_chains.py").write_text(code)
    install(packages, "chain", "my_chains")
    (packages / "some.file").write_text("#chain\nRelu\nTanh\n")
    graph = gc.load(packages / "some.file")
    assert [node.op for node in graph.op_nodes()] == ["chain.Input", "chain.Relu", "chain.Tanh", "graph.Output"]
    assert graph.shape_text(next(iter(graph.op_nodes())).outputs[0]) == "[batch]"
    assert "chain of ops (.chain)" in kinds()


def test_a_frontend_that_cannot_be_imported_keeps_no_file_from_opening(packages: Path, capsys: pytest.CaptureFixture[str]) -> None:
    install(packages, "broken", "no_such_module")
    assert any("ONNX" in kind for kind in kinds())
    assert "the frontend 'broken' (no_such_module) cannot be imported" in capsys.readouterr().err
