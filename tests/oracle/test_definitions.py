"""Definitions against TensorFlow's C++ functions: the same verdicts and words."""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graphcore.attrs import AttrValue
from graphcore.definitions import (
    NodeDef,
    OpDef,
    OpDefBuilder,
    check_attr_kind,
    in_out_types_for_node,
    summarize_attr_value,
    summarize_node_def,
    summarize_op_def,
    validate_external_node_def_syntax,
    validate_node_def,
    validate_op_def,
)
from graphcore.definitions.attr_spec import AttrSpecParser
from graphcore.definitions.attr_text import parse_attr_value
from graphcore.definitions.wire import node_def_to_bytes, op_def_from_bytes, op_def_to_bytes, op_list_from_bytes, op_list_to_bytes, schema
from graphcore.definitions.wire.values import write_attr_value
from graphcore.errors import GraphError
from tests.oracle.cases.definition_cases import ANY_KIND, ANY_VALUE, nodes, op_specs
from tests.oracle.conftest import Oracle
from tests.oracle.sides.probe import Probe, compile_probe, compiler

MANY = settings(max_examples=2_500, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
# Definitions refused here and accepted by TensorFlow. Each is counted and printed; an unexplained difference fails.
REASONS = {
    "unknown field": "the reader of defaults skips fields that no message has; here a misspelt field is an error",
    "trailing text": "the reader of defaults takes `1 2` as 1",
    "bracketed field": "a field that is not repeated may not stand in brackets; the reader here does not know the schema",
}
OPS_SNIPPET = """
from tensorflow.python.client import pywrap_tf_session as session
answer = bytes(session.TF_GetBuffer(session.TF_GetAllOpList()))
"""
PLACES_SNIPPET = "answer = {'include': tf.sysconfig.get_include(), 'lib': tf.sysconfig.get_lib()}"


@pytest.fixture(scope="module")
def probe(oracle: Oracle, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Probe]:
    if compiler() is None:
        pytest.skip("TensorFlow's C++ functions can only be asked where there is a C++ compiler")
    program: Path = compile_probe(oracle.run(PLACES_SNIPPET).answer, tmp_path_factory.mktemp("probe"))
    running = Probe(program)
    yield running
    running.close()


@pytest.fixture(scope="module")
def op_list(oracle: Oracle) -> bytes:
    data: bytes = oracle.run(OPS_SNIPPET).answer
    return data


def outcome(function: Callable[[], object]) -> str:
    """Empty on success, else the error's text."""
    try:
        function()
    except GraphError as error:
        return error.message
    return ""


def plain(text: bytes | str) -> str:
    """Normalise a text: debug prefixes, order of number types, reworded hints, invalid tensors' content."""
    words = text if isinstance(text, str) else text.decode(errors="replace")
    words = re.sub(r"goo\.gle/debug\w+ +", "", words)
    words = words.replace("DT_QINT16, DT_QUINT16, DT_UINT16", "DT_UINT16").replace("DT_UINT64, DT_QINT16, DT_QUINT16", "DT_UINT64")
    words = words.replace("bfloat16, qint16, quint16, uint16", "bfloat16, uint16").replace("uint64, qint16, quint16", "uint64")
    words = re.sub(r"(No type fields in|Missing type or type_attr field in|reference type:|; in OpDef:).*", r"\1", words, flags=re.DOTALL)
    return words.replace("\n\t for attr", " for attr")


def why(ours: str, theirs: str) -> str | None:
    """The reason for an allowed difference, None if there is none."""
    only_ours, only_theirs = (refused_defaults(one) - refused_defaults(other) for one, other in ((ours, theirs), (theirs, ours)))
    if without_defaults(ours, only_ours) != without_defaults(theirs, only_theirs) or not only_ours ^ only_theirs:
        return None
    if only_theirs:
        return "bracketed field" if all("[" in text for _, text in only_theirs) and not only_ours else None
    found = {reason_for_default(spec, text) for spec, text in only_ours}
    return found.pop() if len(found) == 1 else None


DEFAULT = re.compile(r"""Could not parse default value '(.*?)' from Attr\("(.*?)"\) for Op Test(?:\n|$)""", re.DOTALL)


def refused_defaults(error: str) -> set[tuple[str, str]]:
    """The specs in an error with unreadable defaults, each with the text of the default."""
    return {(match[2], match[1]) for match in DEFAULT.finditer(error)}


def without_defaults(error: str, refused: set[tuple[str, str]]) -> str:
    """An error without its parts about these defaults."""
    return plain(DEFAULT.sub(lambda match: "" if (match[2], match[1]) in refused else match[0], error)).strip()


def reason_for_default(spec: str, text: str) -> str | None:
    """The reason for which a default is refused here and accepted by TensorFlow."""
    parser = AttrSpecParser(spec)
    with contextlib.suppress(GraphError):
        parser.parse()
    said = outcome(lambda: parse_attr_value(parser.fields["type"], text))
    if "Unknown field" in said:
        return "unknown field"
    return "trailing text" if re.match(r"[\w'\".+-]+\s+\S", text) else None


def test_op_specs_are_read_alike(probe: Probe) -> None:
    seen: Counter[str] = Counter()

    @MANY
    @given(op_specs())
    def compare(specs: list[str]) -> None:
        builder = OpDefBuilder("Test")
        add = {"A": builder.attr, "I": builder.input, "O": builder.output, "D": builder.doc}
        for spec in specs:
            add[spec[0]](spec[1:])
        error, *theirs = probe.ask(b"build", *(spec.encode() for spec in specs))
        ours = outcome(builder.finalize)
        if plain(ours) != plain(error):
            reason = why(ours, error.decode())
            assert reason is not None, f"{specs}\nours: {ours}\nTensorFlow: {error.decode()}"
            seen[reason] += 1
            return
        seen["refused" if ours else "accepted"] += 1
        if not ours:
            op_def = builder.finalize()
            assert plain(summarize_op_def(op_def)) == plain(theirs[0])
            assert plain(summarize_op_def(op_def_from_bytes(theirs[1]))) == plain(theirs[0])
            assert plain(outcome(lambda: validate_op_def(op_def))) == plain(theirs[2])

    compare()
    print(f"\nop specs: {dict(seen)}; differences: { ({name: REASONS[name] for name in seen if name in REASONS}) }")
    assert seen["accepted"] > 100
    assert seen["refused"] > 100


NAMED_ATTR = re.compile(r"attr '(\w+)'")
MISSING_ATTRS = re.compile(r"NodeDef missing attrs ((?:'\w+'(?:, )?)+) from Op<")


def same_refusal(ours: str, theirs: str) -> bool:
    """True iff the texts agree, up to the choice among several wrong attrs, unordered in TensorFlow."""
    first, second = (MISSING_ATTRS.sub(lambda match: f"missing {sorted(match[1].split(', '))} from Op<", text) for text in (ours, theirs))
    if first == second:
        return True
    found = [NAMED_ATTR.search(text.partition("; NodeDef")[0]) for text in (ours, theirs)]
    return found[0] is not None and found[1] is not None and found[0][1] != found[1][1]


def test_nodes_are_judged_alike(probe: Probe, op_list: bytes) -> None:
    ops = op_list_from_bytes(op_list)
    seen: Counter[str] = Counter()

    @MANY
    @given(nodes(ops))
    def compare(pair: tuple[NodeDef, OpDef]) -> None:
        node_def, op_def = pair
        _, summary, syntax, valid, error, types = probe.ask(b"node", node_def_to_bytes(node_def), op_def_to_bytes(op_def))
        assert plain(summarize_node_def(node_def)) == plain(summary)
        assert outcome(lambda: validate_external_node_def_syntax(node_def)) == syntax.decode()
        ours = outcome(lambda: validate_node_def(node_def, op_def))
        assert bool(ours) == bool(valid), f"{summarize_node_def(node_def)}\nours: {ours}\nTensorFlow: {valid.decode()}"
        assert same_refusal(plain(ours), plain(valid)), f"{summarize_node_def(node_def)}\nours: {ours}\nTensorFlow: {valid.decode()}"
        seen["refused" if ours else "accepted"] += 1
        if not valid:
            inputs, outputs = in_out_types_for_node(node_def, op_def)
            assert not error
            assert " -> ".join(", ".join(dtype.text for dtype in each) for each in (inputs, outputs)) == types.decode()

    compare()
    print(f"\nnodes: {dict(seen)}")
    assert seen["accepted"] > 300
    assert seen["refused"] > 300


def test_attr_values_are_printed_and_judged_alike(probe: Probe) -> None:
    @settings(MANY, max_examples=1_000)
    @given(ANY_VALUE, ANY_KIND, st.booleans())
    def compare(value: AttrValue, kind: str, as_list: bool) -> None:
        if as_list and not isinstance(value, tuple) and kind.startswith("list("):
            value = (value,) * 40 if isinstance(value, int) else value
        message = schema.AttrValue()
        write_attr_value(value, message)
        _, summary, error = probe.ask(b"value", message.SerializeToString(), kind.encode())
        assert summarize_attr_value(value) == summary.decode(errors="replace")
        assert outcome(lambda: check_attr_kind(value, kind)) == error.decode()

    compare()


def test_every_op_of_tensorflow_is_read_printed_and_written_back(probe: Probe, op_list: bytes) -> None:
    ops = op_list_from_bytes(op_list)
    assert len(ops) > 1_500
    assert op_list_to_bytes(ops) == schema.OpList.FromString(op_list).SerializeToString(deterministic=True)
    for op_def in ops:
        validate_op_def(op_def)
        _, summary, error = probe.ask(b"op", op_def_to_bytes(op_def))
        assert (summarize_op_def(op_def), b"") == (summary.decode(), error)
