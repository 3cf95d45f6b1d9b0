"""Every registered op as a function with a true signature and a doc."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

import pytest

import graphcore as gc
from graphcore.api.ops import snake_case


@pytest.fixture(autouse=True)
def graph() -> Iterator[gc.Graph]:
    with gc.Graph().as_default() as graph:
        yield graph


@pytest.mark.parametrize(
    ("op", "name"),
    [
        ("MatMul", "mat_mul"),
        ("AddN", "add_n"),
        ("AddV2", "add_v2"),
        ("Conv2D", "conv2d"),
        ("Conv2DBackpropInput", "conv2d_backprop_input"),
        ("ReluGrad", "relu_grad"),
        ("L2Loss", "l2_loss"),
    ],
)
def test_names_are_those_of_the_op_in_snake_case(op: str, name: str) -> None:
    assert snake_case(op) == name


def test_every_op_is_listed_and_has_a_signature_and_a_doc() -> None:
    names = dir(gc.ops)
    assert "mat_mul" in names
    for name in names:
        function = getattr(gc.ops, name)
        assert function.__doc__.strip(), name
        assert list(inspect.signature(function).parameters)[-1] in {"name", "node_name"}, name


def test_the_doc_tells_what_attrs_and_types_may_be() -> None:
    text = inspect.getdoc(gc.ops.max_pool) or ""
    assert "padding: string, one of 'SAME', 'VALID', 'EXPLICIT'." in text
    assert "T is one of half, bfloat16, float, double" in text
    assert "one of" not in (inspect.getdoc(gc.ops.identity) or "")


def test_the_doc_tells_the_traits_of_the_op_if_it_has_any() -> None:
    assert "\nTraits: element by element; slower than arithmetic; may reuse its input's memory; cannot fail.\n" in (
        inspect.getdoc(gc.ops.tanh) or ""
    )
    assert "Traits: gives a view of its input; can fail only on wrong values of begin or size.\n" in (inspect.getdoc(gc.ops.slice) or "")
    assert "Traits:" not in (inspect.getdoc(gc.ops.placeholder) or "")


def test_the_signature_is_that_of_the_op_def() -> None:
    assert str(inspect.signature(gc.ops.mat_mul)) == "(a, b, transpose_a=False, transpose_b=False, grad_a=False, grad_b=False, name=None)"
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'b'"):
        gc.ops.mat_mul(1.0)


def test_attrs_that_differ_from_the_defaults_reach_the_node() -> None:
    a = gc.placeholder(gc.float32, [3, 2])
    y = gc.ops.mat_mul(a, gc.placeholder(gc.float32, [3, 4]), transpose_a=True, name="y")
    assert (y.name, str(y.shape), y.node.attrs["transpose_a"]) == ("y:0", "[2,4]", True)


def test_several_outputs_come_as_a_list_and_none_as_the_node() -> None:
    parts = gc.ops.split(0, gc.placeholder(gc.float32, [4, 2]), 2)
    assert [str(part.shape) for part in parts] == ["[2,2]", "[2,2]"]
    assert isinstance(gc.ops.no_op(), gc.Node)


def test_an_unknown_op_is_an_attribute_error_that_says_where_to_look() -> None:
    with pytest.raises(AttributeError, match=r"dir\(gc\.ops\) lists them"):
        _ = gc.ops.frobnicate


@pytest.mark.slow
def test_an_op_that_is_asked_of_the_package_is_an_attribute_error_that_says_where_it_is() -> None:
    known = set(dir(gc))
    elsewhere = [name for name in dir(gc.ops) if name not in known]
    assert {"conv2d", "max_pool", "mat_mul"} <= set(elsewhere)
    for name in elsewhere:
        assert not hasattr(gc, name)
        with pytest.raises(AttributeError) as caught:
            getattr(gc, name)
        advice = rf"the op (\w+) is called as gc.ops.{name}\(...\)|tf\.{name} of TensorFlow 1 was the earlier name of gc\.summary\.\w+"
        assert re.fullmatch(rf"module 'graphcore' has no attribute '{name}': (?:{advice})", str(caught.value))
        assert callable(getattr(gc.ops, name))
    assert getattr(gc, "conv2d", None) is None


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("softmx", "gc.softmax"),
        ("reduce_men", "gc.reduce_mean"),
        ("Varible", "gc.Variable"),
        ("sofplus", "gc.ops.softplus"),
        ("ops.sofplus", "gc.ops.softplus"),
        ("ops.matmul_", "gc.ops.mat_mul"),
        ("ops.plaecholder", "gc.ops.placeholder"),
        ("ops.reduce_mean", "gc.reduce_mean"),
    ],
)
def test_a_misspelt_name_is_an_attribute_error_that_says_what_was_meant(name: str, meant: str) -> None:
    module, short = (gc.ops, name.removeprefix("ops.")) if name.startswith("ops.") else (gc, name)
    assert not hasattr(module, short)
    with pytest.raises(AttributeError) as caught:
        getattr(module, short)
    assert f"{short}" in str(caught.value)
    assert f": did you mean {meant}?" in str(caught.value)


@pytest.mark.parametrize("name", ["Conv2D", "ops.Conv2D"])
def test_an_op_by_the_name_of_its_definition_is_an_attribute_error_that_says_how_it_is_called(name: str) -> None:
    with pytest.raises(AttributeError, match=r": the op Conv2D is called as gc\.ops\.conv2d\(\.\.\.\)"):
        _ = (gc.ops if name.startswith("ops.") else gc).Conv2D


@pytest.mark.parametrize("name", ["frobnicate", "__path_to_nowhere__", "_conv2d"])
def test_a_name_like_no_other_is_an_attribute_error_like_any_other(name: str) -> None:
    with pytest.raises(AttributeError, match=f"^module 'graphcore' has no attribute '{name}'$"):
        getattr(gc, name)


def test_a_node_remembers_the_line_that_called_the_function() -> None:
    node = gc.ops.no_op()
    assert node.source is not None
    assert node.source.text == "node = gc.ops.no_op()"
