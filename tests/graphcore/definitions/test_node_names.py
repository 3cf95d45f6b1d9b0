"""The syntax of node names, and renaming."""

from __future__ import annotations

import pytest

from graphcore.attrs import AttrValue
from graphcore.definitions import (
    NodeDef,
    add_prefix_and_suffix,
    add_prefix_to_colocation,
    is_valid_node_name,
    update_colocation_with_map,
    validate_external_node_def_syntax,
)
from graphcore.errors import InvalidArgumentError, NotFoundError


@pytest.mark.parametrize("name", ["n", "n-", "N/a.b_c", ".n", "9", "Project>n", "a//b"], ids="N3-{}".format)
def test_a_node_name_is_accepted(name: str) -> None:
    validate_external_node_def_syntax(NodeDef(name, "Op"))
    assert is_valid_node_name(name)


@pytest.mark.parametrize(
    "name", ["n:0", "_n", "", "-n", "/n", "a b", "a>", "a>_b", "n\n", "é", "n\\", "a\\b", "a>b\\"], ids="N3-{!r}".format
)
def test_a_node_name_is_refused(name: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        validate_external_node_def_syntax(NodeDef(name, "Op"))
    assert caught.value.message == f"Illegal op name '{name}'\n\t [[{{{{node {name}}}}}]]"
    assert not is_valid_node_name(name)


def test_n3_internal_names_are_accepted_on_request() -> None:
    assert is_valid_node_name("_n", allow_internal_ops=True)
    assert not is_valid_node_name("a>_n", allow_internal_ops=True)


@pytest.mark.parametrize("name", ["a", "a:0", "b:123", "Project>a:0", "^a", "^Project>c"], ids="N3-{}".format)
def test_an_input_name_is_accepted(name: str) -> None:
    validate_external_node_def_syntax(NodeDef("n", "Op", (name,)))


@pytest.mark.parametrize(
    "name", ["_a", "a:00", "a:01", "a:b", "a:", "^b:0", "^_a", "^", "", "a:-1", "a b", "a\\b", "a\\b:1", "^a\\b"], ids="N3-{!r}".format
)
def test_an_input_name_is_refused(name: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        validate_external_node_def_syntax(NodeDef("n", "Op", (name,)))
    assert caught.value.message == f"Illegal op input name '{name}'\n\t [[{{{{node n}}}}]]"


def test_n3_control_inputs_come_last() -> None:
    validate_external_node_def_syntax(NodeDef("n", "Op", ("a", "^b", "^c")))
    with pytest.raises(InvalidArgumentError, match="All control inputs must follow all data inputs"):
        validate_external_node_def_syntax(NodeDef("n", "Op", ("a", "^b", "c")))


@pytest.mark.parametrize("op", ["Enter", "RefEnter"], ids="N5-{}".format)
def test_a_prefix_and_a_suffix_rename_node_and_frame(op: str) -> None:
    node = NodeDef("enter", op, ("x",), "", {"frame_name": b"test_frame", "T": 1})
    renamed = add_prefix_and_suffix("prefix/", "/suffix", node)
    assert renamed == NodeDef("prefix/enter/suffix", op, ("x",), "", {"frame_name": b"prefix/test_frame/suffix", "T": 1})
    assert add_prefix_and_suffix("p", "", node, uniquify_frame_name=False).attr == node.attr


def test_n5_other_nodes_keep_their_attrs() -> None:
    node = NodeDef("exit", "Exit", ("x",), "", {"frame_name": b"test_frame"})
    assert add_prefix_and_suffix("p/", "", node) == NodeDef("p/exit", "Exit", ("x",), "", {"frame_name": b"test_frame"})


def test_n5_an_enter_node_without_a_frame_is_an_error() -> None:
    with pytest.raises(NotFoundError, match="No attr named 'frame_name' in NodeDef:"):
        add_prefix_and_suffix("p/", "", NodeDef("enter", "Enter"))
    with pytest.raises(InvalidArgumentError):
        add_prefix_and_suffix("p/", "", NodeDef("enter", "Enter", (), "", {"frame_name": 1}))


def colocated(*entries: AttrValue) -> NodeDef:
    return NodeDef("n", "Op", (), "", {"_class": entries})


def test_n5_a_prefix_is_added_to_colocation_entries_in_the_match_set() -> None:
    node = colocated(b"loc:@Node1", b"loc:@Node2", b"other", b"Node1")
    assert add_prefix_to_colocation({"Node1", "Node3"}, "fn/", node) == colocated(b"loc:@fn/Node1", b"loc:@Node2", b"other", b"Node1")


def test_n5_a_map_replaces_the_entries_that_match() -> None:
    node = colocated(b"loc:@Node1", b"loc:@Node2")
    assert update_colocation_with_map({"Node1": "New", "Node3": "x"}, node) == colocated(b"loc:@New", b"loc:@Node2")


def test_n5_a_node_without_colocation_stays_as_it_is() -> None:
    node = NodeDef("n", "Op")
    assert add_prefix_to_colocation({"n"}, "fn/", node) is node
    assert update_colocation_with_map({"n": "m"}, node) is node
