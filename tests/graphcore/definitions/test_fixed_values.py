"""GraphDefs and NodeDefs do not change, and say what to do instead."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

import graphcore as gc
from graphcore.errors import FixedValueError, NotFoundError


def source() -> gc.GraphDef:
    with gc.Graph().as_default() as graph:
        gc.exp(gc.constant(1.0, name="x"), name="e")
    return graph.as_graph_def()


def delete(values: Any, key: Any) -> None:
    del values[key]


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.node.extend([]),
        lambda d: d.node.add(),
        lambda d: d.node.append(d.node[0]),
        lambda d: delete(d.node, 0),
        lambda d: setattr(d, "node", ()),
    ],
)
def test_a_change_of_a_graph_def_says_how_to_make_another(change: Callable[[Any], Any]) -> None:
    with pytest.raises(FixedValueError, match=r"gc\.GraphDef\(node=\["):
        change(source())


@pytest.mark.parametrize(
    "change",
    [
        lambda n: setattr(n, "op", "Log"),
        lambda n: setattr(n, "device", ""),
        lambda n: delete(n.attr, "T"),
        lambda n: n.attr.update(T=gc.float64),
        lambda n: n.attr.pop("T"),
        lambda n: n.attr.setdefault("T", gc.float64),
        lambda n: n.attr.__setitem__("T", gc.float64),
    ],
)
def test_a_change_of_a_node_says_how_to_make_another(change: Callable[[Any], Any]) -> None:
    made = source()
    with pytest.raises(FixedValueError, match=r"msgspec\.structs\.replace\(node"):
        change(made.node[1])
    assert made == source()


def test_an_attr_that_is_not_there_names_those_that_are() -> None:
    node = source().node[1]
    with pytest.raises(NotFoundError, match="no attr '_mine', only 'T'"):
        node.attr["_mine"].i = -5  # type: ignore[union-attr]  # as users of protobuf write it
    assert node.attr.get("_mine") is None
    assert "_mine" not in node.attr
    assert not hasattr(source().node, "shape")


def test_what_the_errors_say_works() -> None:
    made = source()
    nodes: Any = [msgspec.structs.replace(node, op="Log") if node.op == "Exp" else node for node in made.node]  # a list is taken, too
    log = gc.GraphDef(node=nodes, library=made.library)
    with gc.Graph().as_default():
        (y,) = gc.import_graph_def(log, return_elements=["e:0"], name="m")
        assert gc.Session().run(y) == 0.0
    assert [node.op for node in made.node] == ["Const", "Exp"]


def test_they_are_values_as_before() -> None:
    made = source()
    assert copy.deepcopy(made) == made == pickle.loads(pickle.dumps(made))
    assert hash(made.node[1]) == hash(source().node[1])
    assert made.node[1] == gc.NodeDef("e", "Exp", ("x",), "", {"T": gc.float32})
    assert made.node == tuple(source().node)
