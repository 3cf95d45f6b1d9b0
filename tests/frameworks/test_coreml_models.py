"""CoreML models, compared with what CoreML's own tools say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphcore.frontends.foreign import ForeignFunction
from graphcore.frontends.sources import open_source

coremltools: Any = pytest.importorskip("coremltools")
pytestmark = [pytest.mark.frameworks, pytest.mark.filterwarnings("ignore")]


def _program(path: Path) -> Path:
    """A program with a convolution, a branch, a loop, and weights in a file."""
    from coremltools.converters.mil import Builder as mb  # noqa: N813, PLC0415 - only where it is installed

    rng = np.random.default_rng(0)

    @mb.program(input_specs=[mb.TensorSpec(shape=(1, 3, 8, 8)), mb.TensorSpec(shape=(1,))])  # type: ignore[untyped-decorator]  # of coremltools
    def program(x: Any, flag: Any) -> Any:
        y = mb.conv(x=x, weight=rng.standard_normal((16, 3, 3, 3)).astype(np.float32), name="block/conv")
        chosen = mb.cond(
            pred=mb.squeeze(x=mb.greater(x=flag, y=0.0)), _true_fn=lambda: mb.relu(x=y), _false_fn=lambda: mb.tanh(x=y), name="choice"
        )
        _, end = mb.while_loop(
            _cond=lambda i, _: mb.less(x=i, y=3.0), _body=lambda i, z: (mb.add(x=i, y=1.0), mb.mul(x=z, y=2.0)), loop_vars=(0.0, chosen)
        )
        return mb.reduce_mean(x=end, axes=[2, 3], name="out")

    coremltools.convert(program, convert_to="mlprogram", compute_precision=coremltools.precision.FLOAT32).save(str(path))
    return path


def _edges(block: Any) -> list[tuple[str, list[str], list[tuple[int, ...]]]]:
    """The operations of a block: op, names of the values that it takes, shapes of its outputs."""
    found = []
    for operation in block.operations:
        names = [binding.name for argument in operation.inputs.values() for binding in argument.arguments if binding.name]
        shapes = [tuple([size.constant.size for size in output.type.tensorType.dimensions]) for output in operation.outputs]
        found.append((operation.type, sorted(names), shapes))
    return found


def _own_edges(function: ForeignFunction) -> list[tuple[str, list[str], list[tuple[Any, ...]]]]:
    ports = {node.name: node.outputs for node in function.nodes}
    return [
        (
            node.op.removeprefix("coreml."),
            sorted([ports[ref[0]][ref[1]].name for ref in node.inputs if ref is not None]),
            [port.shape or () for port in node.outputs],
        )
        for node in function.nodes
        if node.kind not in {"input", "output"}
    ]


def test_operations_edges_and_shapes_of_a_program_are_those_of_its_specification(tmp_path: Path) -> None:
    path = _program(tmp_path / "model.mlpackage")
    source = open_source(path)
    program = coremltools.models.MLModel(str(path), skip_model_load=True).get_spec().mlProgram
    block = next(iter(program.functions["main"].block_specializations.values()))
    own, theirs = _own_edges(source.main), _edges(block)
    without_blocks = {"cond", "while_loop"}  # these take what their blocks capture, too
    assert [each for each in own if each[0] not in without_blocks] == [each for each in theirs if each[0] not in without_blocks]
    assert [each[0] for each in own] == [each[0] for each in theirs]
    assert {role for node in source.main.nodes for role in node.bodies} == {"then", "else", "cond", "body"}


def test_elements_of_a_package_are_read_from_its_file_of_weights(tmp_path: Path) -> None:
    source = open_source(_program(tmp_path / "model.mlpackage"))
    weight = next(node.weight for node in source.main.nodes if node.weight is not None and node.weight.shape == (16, 3, 3, 3))
    assert weight is not None
    assert weight.load is not None
    np.testing.assert_array_equal(weight.load(), np.random.default_rng(0).standard_normal((16, 3, 3, 3)).astype(np.float32))
