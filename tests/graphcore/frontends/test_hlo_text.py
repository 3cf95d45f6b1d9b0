"""HLO modules as text."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import graphcore as gc
from graphcore.errors import GraphError, InvalidArgumentError
from graphcore.frontends.sources import open_source

PATH = Path(__file__).parents[2] / "data" / "frontends" / "softmax.hlo.txt"


def test_instructions_are_nodes_with_their_operands_and_shapes() -> None:
    nodes = {node.name: node for node in open_source(PATH).main.nodes}
    assert nodes["ynn_fusion"].inputs == (("x.1", 0), ("w.1", 0))
    assert [(port.dtype, port.shape, port.note) for port in nodes["ynn_fusion"].outputs] == [("f32", (3, 5), "layout {1,0}")]
    assert nodes["constant.5"].attrs == {"value": "-inf"}


def test_fusions_and_reductions_have_bodies() -> None:
    source = open_source(PATH)
    nodes = {node.name: node for node in source.main.nodes}
    body = source.functions[nodes["reduce_divide_fusion"].bodies["calls"]]
    assert [node.op for node in body.nodes] == [
        "hlo.parameter",
        "hlo.constant",
        "hlo.broadcast",
        "hlo.constant",
        "hlo.reduce",
        "hlo.divide",
    ]
    assert body.outputs == (("divide.1", 0),)
    assert body.nodes[4].bodies == {"to_apply": "region_1.2"}


def test_the_tables_of_frames_give_source_lines() -> None:
    node = next(node for node in open_source(PATH).main.nodes if node.name == "ynn_fusion")
    assert [(frame.file, frame.line, frame.function) for frame in node.frames] == [
        ("work/fmt_files.py", 54, "<module>"),
        ("work/fmt_files.py", 51, "<lambda>"),
    ]


def test_a_computation_that_is_cut_off_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "cut.txt"
    path.write_text(PATH.read_text().rstrip().removesuffix("}"))
    with pytest.raises(InvalidArgumentError, match=r"'main\.3' is cut off"):
        gc.load(path)


def test_damaged_text_gives_graph_errors(tmp_path: Path) -> None:
    text, chance, path = PATH.read_text(), random.Random(5), tmp_path / "damaged.txt"
    for _ in range(150):
        place = chance.randrange(20, len(text))
        path.write_text(text[:place] + chance.choice(["(", "}", '"', "\n", "=", "", "9"]) + text[place + chance.randrange(9) :])
        try:
            gc.load(path)
        except GraphError:
            continue
