"""Writing op blocks: required parts, and results."""

from __future__ import annotations

from typing import Any

import pytest

import graphcore as gc
from graphcore.definitions import FunctionDef
from graphcore.inference.shape_fns.common_shape_fns import unchanged_shape
from graphcore.opset.framework.block import NO_GRADIENT, Example, make_registration, no_registered_gradient, op
from graphcore.opset.framework.kernels import ufunc
from graphcore.registry import OpRegistry


def block(**parts: Any) -> type:
    """A complete block called Twice, with some parts changed; None removes a part."""
    whole = {
        "__doc__": "Twice the input.\n\nx: any tensor\n",
        "signature": "Twice[T:{float, double}](x:T) -> (y:T)",
        "shape": unchanged_shape,
        "kernel": lambda k: lambda x: k.xp.add(x, x),
        "gradient": "[T:{float, double}](x:T, dy:T) -> (dx:T) {\n  dx = Twice[T=$T](dy)\n}",
        "examples": (Example([[1.0, 2.0]], outputs=[[2.0, 4.0]]),),
    } | parts
    return type("Twice", (), {name: part for name, part in whole.items() if part is not None})


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> OpRegistry:
    """An empty registry in place of the global one."""
    fresh = OpRegistry()
    monkeypatch.setitem(op.__globals__, "op_registry", fresh)
    return fresh


@pytest.mark.parametrize("part", ["__doc__", "signature", "shape", "kernel", "gradient", "examples"])
def test_a_block_without_a_part_is_refused_by_its_name(part: str, registry: OpRegistry) -> None:
    with pytest.raises(gc.errors.InvalidArgumentError, match=f"missing: {'docstring' if part == '__doc__' else part}$") as caught:
        op(block(**{part: None}))
    assert caught.value.op == "Twice"
    assert "Twice" not in registry


def test_a_block_without_examples_is_refused(registry: OpRegistry) -> None:
    with pytest.raises(gc.errors.InvalidArgumentError, match="missing: examples"):
        op(block(examples=()))


def test_a_block_is_read_when_the_op_is_first_asked_for(registry: OpRegistry) -> None:
    op(block(signature="not a signature"))
    assert "Twice" in registry
    with pytest.raises(gc.errors.InvalidArgumentError):
        registry.look_up("Twice")


def test_a_block_becomes_an_op_def_with_its_doc(registry: OpRegistry) -> None:
    op(block(commutative=True, stateful=True))
    op_def = registry.look_up_op_def("Twice")
    assert op_def.summary == "Twice the input."
    assert op_def.input_arg[0].description == "any tensor"
    assert op_def.is_commutative
    assert op_def.is_stateful
    assert not op_def.is_aggregate


def test_a_name_is_taken_once(registry: OpRegistry) -> None:
    op(block())
    with pytest.raises(gc.errors.AlreadyExistsError):
        op(block())


def test_class_and_signature_name_the_same_op() -> None:
    with pytest.raises(gc.errors.InvalidArgumentError, match="'Twice' has the signature of 'Thrice'"):
        make_registration(block(signature="Thrice[T:type](x:T) -> (y:T)"))


def test_a_gradient_is_made_once_a_text() -> None:
    made = make_registration(block(signature="Twice[T:{float, double}](x:T) -> (y:T)", gradient=_body))
    assert made.gradient is not None
    first, second, other = (made.gradient({"T": dtype}) for dtype in (gc.float32, gc.float32, gc.float64))
    assert first is second
    assert first is not other
    assert isinstance(first, FunctionDef)


def _body(attrs: Any) -> str:
    return f"[T:type](x:T, dy:T) -> (dx:T) {{\n  dx = Identity[T={attrs['T'].name}](dy)\n}}"


def test_an_op_may_be_known_as_not_differentiable_or_have_no_gradient_registered() -> None:
    known = make_registration(block(gradient=NO_GRADIENT))
    unknown = make_registration(block(gradient=no_registered_gradient("nobody has written it")))
    assert (known.has_gradient, known.gradient) == (True, None)
    assert (unknown.has_gradient, unknown.gradient) == (False, None)


def test_a_gradient_of_another_kind_is_refused() -> None:
    with pytest.raises(gc.errors.InvalidArgumentError, match="must be text, a function of the attrs, or NO_GRADIENT; got 3"):
        make_registration(block(gradient=3))


def test_the_cheapest_kernel_is_the_array_function_itself() -> None:
    kernel = gc.op_registry.look_up("AddV2").kernel
    assert kernel is not None
    with gc.Graph().as_default() as graph:
        node = (gc.constant([1.0]) + gc.constant([2.0])).node
        assert ufunc("add").__name__ == kernel.__name__
        assert gc.Session(graph=graph).run(node.outputs[0]) == [3.0]
