"""Large arrays given by mistake: every error names dtype and shape, and never prints rows."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore import api
from graphcore.errors import GraphError, InvalidArgumentError

ARRAY = np.arange(1_000_000, dtype=np.float64).reshape(1000, 1000)
LARGE = {
    "array": ARRAY,
    "list": ARRAY[:40, :40].tolist(),
    "list of arrays": list(ARRAY.reshape(5, 200, 1000)),
    "dict": dict(enumerate(ARRAY.reshape(5, 200, 1000))),
    "strings": np.full((100, 100), "word"),
    "objects": np.full((100, 100), None, object),
}
MOST_LINES, MOST_CHARACTERS = 14, 2000


@pytest.fixture(autouse=True)
def graph() -> Iterator[gc.Graph]:
    with gc.Graph().as_default() as graph:
        yield graph


def check_short(call: Callable[[], object]) -> str:
    """Call it; the error and its notes must be short."""
    try:
        call()
    except Exception as error:  # noqa: BLE001 - any error is shown to the user
        text = "\n".join([str(error), *getattr(error, "__notes__", ())])
        assert len(text) < MOST_CHARACTERS, f"{len(text)} characters: {text[:500]}"
        assert len(text.splitlines()) <= MOST_LINES, text
        return text
    return ""


def calls() -> dict[str, Callable[..., Any]]:
    """All API functions, classes, some ops, and methods that take values."""
    functions = {name: getattr(gc, name) for name in api.__all__ if callable(getattr(gc, name)) and name != "register_op_list"}
    ops = {f"ops.{name}": getattr(gc.ops, name) for name in ("conv2d", "reshape", "mat_mul", "fill", "pack", "placeholder", "split")}
    methods = {
        f"{kind.__name__}.{name}": value
        for kind in (gc.Graph, gc.Session, gc.Tensor, gc.Node, gc.Variable)
        for name, value in sorted(vars(kind).items())
        if inspect.isfunction(value) and (not name.startswith("_") or name in {"__getitem__", "__add__", "__matmul__", "__and__"})
    }
    return functions | ops | methods


def arguments(owner: str) -> dict[str, Any]:
    """Valid arguments by parameter name, so that only the large value is wrong."""
    x = gc.placeholder(gc.float32, [2, 3], name="x")
    v = gc.Variable([[1.0, 2.0]], name="v")
    session = gc.Session()
    self = {"Graph": x.graph, "Session": session, "Tensor": x, "Node": x.node, "Variable": v}.get(owner)
    tensors = dict.fromkeys(("x", "y", "a", "b", "ys", "xs", "value", "tensor", "input", "loss", "fetches"), x)
    return {"self": self, "session": session, "graph": x.graph, "variable": v, "dtype": gc.float32, "node": x.node} | tensors


@pytest.mark.slow
@pytest.mark.parametrize("kind", LARGE)
def test_no_function_writes_out_a_large_value_that_it_refuses(kind: str) -> None:
    refused = 0
    for name, function in calls().items():
        try:
            parameters = [each for each in inspect.signature(function).parameters.values() if each.kind is not each.VAR_KEYWORD]
        except NameError:
            continue  # a record that accepts anything
        for wrong in [each.name for each in parameters if each.name not in {"self", "name"}]:
            with gc.Graph().as_default():
                known = arguments(name.partition(".")[0])
                given: dict[str, Any] = {each.name: known.get(each.name, 1) for each in parameters if each.default is each.empty}
                given[wrong] = LARGE[kind]
                several = [each.name for each in parameters if each.kind is each.VAR_POSITIONAL]
                before = [
                    given.pop(each.name) for each in parameters if each.name in given and (several or each.name in ("self", *several))
                ]
                refused += bool(check_short(functools.partial(function, *before, **given)))
    assert refused > 100


CASES: dict[str, tuple[Callable[[gc.Tensor], object], str]] = {
    "constant of another dtype": (lambda _: gc.constant(ARRAY + 0.5, gc.int32), r"got an array of float64 \[1000,1000\]"),
    "list of another dtype": (lambda _: gc.constant(ARRAY.tolist(), gc.int32), r"required a value of type int32, got \[\[0\.0, 1\.0, "),
    "ragged list": (lambda _: gc.constant([*ARRAY.tolist(), [1]]), r"cannot make a tensor of \[\[0\.0, "),
    "objects": (lambda _: gc.constant(LARGE["objects"]), r"A string tensor holds str or bytes, got None"),
    "too many inputs": (lambda _: gc.add_n(list(np.full((40, 2), "word"))), r"\.\.\. \(40 inputs in all\)"),
    "too many shapes": (lambda _: gc.concat(list(ARRAY), 1), r"\.\.\. \(1001 in all\)"),
    "operator": (lambda x: x + ARRAY.astype(complex), r"required a value of type float, got an array of complex128 \[1000,1000\]"),
    "conversion": (lambda _: gc.convert_to_tensor(ARRAY + 0.5, gc.int64), r"got an array of float64 \[1000,1000\]"),
    "variable": (lambda _: gc.Variable(ARRAY + 0.5, dtype=gc.int32), r"got an array of float64 \[1000,1000\]"),
    "shape of a constant": (lambda _: gc.constant(ARRAY, shape=[3]), r"needs 3 elements or one, got 1000000"),
    "dtype": (lambda _: gc.placeholder(ARRAY), r"Not a data type: an array of float64 \[1000,1000\]"),
    "shape": (lambda _: gc.placeholder(gc.float32, ARRAY.astype(object)), r"A size must be an integer"),
    "attr": (lambda x: gc.ops.cast(x, DstT=ARRAY), r"an array of float64 \[1000,1000\]"),
    "list attr": (lambda x: gc.ops.conv2d(x, x, ARRAY, b"SAME"), r"."),
    "index": (lambda x: x[ARRAY], r"an array of float64 \[1000,1000\]"),
    "feed of another dtype": (lambda x: gc.Session().run(x, {x: ARRAY.astype(complex)}), r"."),
    "feed of another shape": (lambda x: gc.Session().run(x, {x: ARRAY}), r"\[1000,1000\]"),
    "feed of objects": (lambda x: gc.Session().run(x, {x: LARGE["objects"]}), r"."),
    "fetch": (lambda _: gc.Session().run(ARRAY), r"an array of float64 \[1000,1000\]"),
    "gradients": (lambda x: gc.gradients(x, [ARRAY]), r"an array of float64 \[1000,1000\]"),
}


@pytest.mark.parametrize("case", CASES)
def test_a_large_value_that_is_refused_is_told_in_a_few_words(case: str) -> None:
    call, said = CASES[case]
    x = gc.placeholder(gc.float32, [2, 3], name="x")
    with pytest.raises(GraphError, match=said):
        call(x)
    check_short(lambda: call(x))


def test_a_small_value_that_is_refused_is_told_as_it_is() -> None:
    with pytest.raises(InvalidArgumentError, match=r"got array\(\[1\.5, 2\.5\]\) \(double\)"):
        gc.constant(np.array([1.5, 2.5]), gc.int32)
    with pytest.raises(InvalidArgumentError, match=r"got \[\[1\.5, 2\], \[3, 4\]\] \(double\)"):
        gc.constant([[1.5, 2], [3, 4]], gc.int32)
