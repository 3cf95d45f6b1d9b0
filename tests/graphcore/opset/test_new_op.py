"""An op declared in a file of its own is as fast, visible and documented as those of the package."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import graphcore as gc
from tests.support.asking import inspect
from widgets.scene.state import SceneState

BLOCK = '''
from graphcore.functions import binary_grad
from graphcore.inference.shape_fns.common_shape_fns import broadcast_binary_op_shape_fn
from graphcore.opset.framework.block import Example, op
from graphcore.opset.framework.kernels import ufunc


@op
class {name}:
    """The longest side of a right triangle, with broadcasting."""

    signature = "{name}[T:{{float, double}}](x:T, y:T) -> (z:T)"
    shape = broadcast_binary_op_shape_fn
    kernel = ufunc("hypot")
    gradient = binary_grad("""
        gx0 = Mul(dz, x)
        gy0 = Mul(dz, y)
        z = {name}(x, y)
        gx = RealDiv(gx0, z)
        gy = RealDiv(gy0, z)
    """)
    examples = (Example([[3.0, 5.0], [4.0, 12.0]], outputs=[5.0, 13.0]),)
'''


@pytest.fixture(scope="module")
def new_op(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The name of an op whose block is in a new file."""
    name = "HypotOfANewFile"
    path: Path = tmp_path_factory.mktemp("ops") / "triangles.py"
    path.write_text(BLOCK.format(name=name), encoding="utf-8")
    spec = importlib.util.spec_from_file_location("triangles", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["triangles"] = module
    spec.loader.exec_module(module)
    return name


@pytest.fixture(autouse=True)
def graph() -> Iterator[gc.Graph]:
    with gc.Graph().as_default() as graph:
        yield graph


def plan_text(op: str) -> str:
    """The text of a plan that uses an op among others, its results overwritten and its constants folded."""
    with gc.Graph().as_default():
        x, y = gc.placeholder(gc.float32, [3]), gc.placeholder(gc.float32, [3])
        first = gc.apply_op(op, [gc.tanh(x), y], name="node")
        second = gc.apply_op(op, [first, gc.apply_op(op, [gc.constant([1.0] * 3), gc.constant([2.0] * 3)], name="folded")], name="other")
        return gc.Session().plan([second], {x: None, y: None}).source


def test_its_plan_is_that_of_add_v2_up_to_the_name(new_op: str) -> None:
    assert plan_text(new_op).replace("hypot", "add").replace(new_op, "AddV2") == plan_text("AddV2")


def test_its_shape_is_known_without_running_a_kernel(new_op: str) -> None:
    x, y = gc.placeholder(gc.float32, [2, 3]), gc.placeholder(gc.float32, [3])
    plan = gc.Session().plan([gc.ops.shape(gc.apply_op(new_op, [x, y]))], {x: None, y: None})
    assert plan.nodes == []


def test_it_computes_and_is_differentiated(new_op: str) -> None:
    x, y = gc.placeholder(gc.float32, [2]), gc.placeholder(gc.float32, [2])
    z = gc.apply_op(new_op, [x, y])
    value, slope = gc.Session().run([z, gc.gradients(z, x)[0]], {x: [3, 5], y: [4, 12]})
    np.testing.assert_allclose(value, [5, 13])
    np.testing.assert_allclose(slope, [3 / 5, 5 / 13], rtol=1e-6)


def test_the_inspector_and_the_docs_show_it(new_op: str, graph: gc.Graph) -> None:
    x = gc.placeholder(gc.float32, [2])
    gc.apply_op(new_op, [x, x], name="side")
    shown = inspect(graph, SceneState(), "side")
    assert shown is not None
    assert shown.doc == "The longest side of a right triangle, with broadcasting."
    assert shown.signature.startswith(f"{new_op}[T:{{float, double}}](x:T, y:T) -> (z:T)")
    assert shown.traits == "element by element; may reuse its input's memory; cannot fail"
    assert f"Traits: {shown.traits}." in (gc.ops.hypot_of_a_new_file.__doc__ or "")
    assert "The longest side of a right triangle" in (gc.ops.hypot_of_a_new_file.__doc__ or "")
