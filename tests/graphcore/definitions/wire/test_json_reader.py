"""The JSON reader agrees with protobuf's own; errors have positions."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from google.protobuf import json_format
from hypothesis import given, settings
from hypothesis import strategies as st

from graphcore.definitions.wire import schema
from graphcore.definitions.wire.json_reader import JsonError, read_json
from tests.support.fuzzing.messages import damaged_json, random_message, same

PRINTING = ("preserving_proto_field_name", "use_integers_for_enums", "always_print_fields_with_no_presence", "ensure_ascii", "sort_keys")
INT64 = "expected an integer from -9223372036854775808 to 9223372036854775807"


def ours(text: str, message: Any) -> Any:
    read_json(text, message)
    return message


def theirs(text: str, message: Any) -> Any:
    return json_format.Parse(text, message, descriptor_pool=schema.POOL)


def printed(message: Any, rng: random.Random) -> str:
    options = {option: rng.random() < 0.3 for option in PRINTING}
    text: str = json_format.MessageToJson(message, descriptor_pool=schema.POOL, indent=rng.choice([None, 2]), **options)
    return text


def on_purpose(text: str, ours: str, theirs: str) -> bool:
    """True for intentional differences between the two readers."""
    return (
        # For an empty list or string in place of a message, protobuf's reader iterates over its members, of which there are none.
        ("expected an object, found a list" in ours or 'expected an object, found ""' in ours)
        # Protobuf's runtime truncates the number in the look-up of an enum's name.
        or ("by its name or number, found" in ours and any(str(number) in text for number in (2**32, 2**63, 2**64, 10**30)))
        # The shortest decimal of the largest float is slightly too large; protobuf's reader rejects its own output.
        or ("Float value too" in theirs and "3.4028235e+38" in text)
    )


@settings(max_examples=150)
@given(st.integers(0, 2**64))
def test_what_protobuf_prints_is_read(seed: int) -> None:
    rng = random.Random(seed)
    message = random_message(rng)
    assert same(ours(printed(message, rng), type(message)()), message)


@settings(max_examples=150)
@given(st.integers(0, 2**64))
def test_a_damaged_text_is_taken_or_refused_as_protobuf_does(seed: int) -> None:
    rng = random.Random(seed)
    kind = type(message := random_message(rng))
    source = printed(message, rng)
    for _ in range(4):
        text = damaged_json(source, rng)
        read, expected = kind(), kind()
        wrong = theirs_wrong = ""
        try:
            ours(text, read)
        except JsonError as error:
            wrong = str(error)
        try:
            theirs(text, expected)
        except json_format.ParseError as error:
            theirs_wrong = str(error)
        if bool(wrong) != bool(theirs_wrong):
            assert on_purpose(text, wrong, theirs_wrong), (text, wrong, theirs_wrong)
        elif not wrong:
            assert same(read, expected), text


LISTS: dict[str, tuple[list[Any], list[Any]]] = {
    "i": ([1, "2", 3.0, "4.0", -(2**63)], [1, 2, 3, 4, -(2**63)]),
    "f": ([1, 0.5, "2", "NaN", "-Infinity"], [1.0, 0.5, 2.0, float("nan"), float("-inf")]),
    "b": ([True, False], [True, False]),
    "s": (["YQ==", "YQ", "_-8=", ""], [b"a", b"a", b"\xff\xef", b""]),
    "type": (["DT_FLOAT", 2, "3", 1000], [1, 2, 3, 1000]),
}


@pytest.mark.parametrize("name", LISTS)
def test_a_list_is_read_whether_its_values_are_written_alike_or_not(name: str) -> None:
    words, values = LISTS[name]
    mixed = ours(json.dumps({"list": {name: words * 100}}), schema.AttrValue())
    assert list(map(repr, getattr(mixed.list, name))) == list(map(repr, values)) * 100
    for word, value in zip(words, values, strict=True):
        alike = ours(json.dumps({"list": {name: [word] * 100}}), schema.AttrValue())
        assert list(map(repr, getattr(alike.list, name))) == [repr(value)] * 100


@pytest.mark.parametrize("at", [0, 17, 999])
@pytest.mark.parametrize("wrong", [2**63, 1.5, "x", "1 ", True, None, [1], {}])
def test_the_one_wrong_number_of_a_long_list_is_found(wrong: Any, at: int) -> None:
    numbers: list[Any] = ["1" if isinstance(wrong, str) else 1] * 1_000
    numbers[at] = wrong
    text = json.dumps({"node": [{}, {"attr": {"value": {"list": {"i": numbers}}}}]})
    with pytest.raises(JsonError) as caught:
        ours(text, schema.GraphDef())
    assert str(caught.value).startswith(f'node[1].attr["value"].list.i[{at}]: {INT64}, found ')


@pytest.mark.parametrize("wrong", [1e39, -1e39, float("nan"), float("inf"), float("-inf"), "nan", "x", None, []])
def test_a_float_beyond_its_range_is_found(wrong: Any) -> None:
    text = json.dumps({"floatVal": [0.5] * 10 + [wrong]})
    with pytest.raises(JsonError, match=r"floatVal\[10\]: expected a number, found "):
        ours(text, schema.TensorProto())


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ('{"i": 1, "f": 2}', '"f" beside "i": graphloupe.AttrValue has one of them'),
        ('{"nome": 1}', 'graphloupe.AttrValue has no field named "nome"'),
        ('{"i": 1, "i": 2}', 'duplicate key "i"'),
        ('{"shape": []}', "shape: expected an object, found a list"),
        ('{"list": {"i": 1}}', "list.i: expected a list, found 1"),
        ('{"func": {"attr": []}}', "func.attr: expected an object, found a list"),
        ('{"func": {"attr": {"a": {"b": 1}}}}', 'func.attr["a"].b: expected true or false, found 1'),
        ('{"func": {"name": "\\ud800"}}', 'func.name: expected a string, found "\\ud800"'),
        ('{"list": {"s": ["A"]}}', 'list.s[0]: expected a string, found "A"'),
        ('{"type": "DT_NONE"}', 'type: expected a DataType by its name or number, found "DT_NONE"'),
        ('{"list": {"shape": [{}, {"dim": [null]}]}}', "list.shape[1].dim[0]: expected an object, found null"),
        ('{"i": }', "line:column 1:7: Expecting value"),
        ('{"i": 1} x', "line:column 1:10: Extra data"),
    ],
)
def test_a_mistake_is_told_with_its_place_and_what_was_expected(text: str, error: str) -> None:
    with pytest.raises(JsonError) as caught:
        ours(text, schema.AttrValue())
    assert str(caught.value) == error


def test_the_key_of_a_map_is_a_string_that_holds_a_number() -> None:
    assert dict(ours('{"resourceArgUniqueId": {"1": 2, "3.0": "4"}}', schema.FunctionDef()).resource_arg_unique_id) == {1: 2, 3: 4}
    with pytest.raises(JsonError, match=r'resourceArgUniqueId\["x"\]: expected an integer from 0 to 4294967295 as a key'):
        ours('{"resourceArgUniqueId": {"x": 2}}', schema.FunctionDef())
    with pytest.raises(JsonError, match=r'resourceArgUniqueId\["1"\]: expected an integer from 0 to 4294967295, found -1'):
        ours('{"resourceArgUniqueId": {"1": -1}}', schema.FunctionDef())


def test_both_names_of_a_field_and_null_are_read_as_protobuf_reads_them() -> None:
    for text in (
        '{"intVal": [1], "int_val": [2]}',
        '{"intVal": [1], "int_val": null}',
        '{"tensorShape": {"dim": [{}]}, "tensor_shape": {"unknownRank": true}}',
    ):
        assert same(ours(text, schema.TensorProto()), theirs(text, schema.TensorProto()))


def test_the_largest_float_is_read_as_it_is_printed() -> None:
    largest = schema.TensorProto(float_val=[3.4028234663852886e38, -3.4028234663852886e38])
    assert ours(json_format.MessageToJson(largest), schema.TensorProto()) == largest


def test_messages_are_nested_as_deep_as_protobuf_reads_them() -> None:
    def text(depth: int) -> str:
        return '{"args": [' * depth + "{}" + "]}" * depth

    assert same(ours(text(99), schema.NodeDef().experimental_type), theirs(text(99), schema.NodeDef().experimental_type))
    with pytest.raises(JsonError, match=r"args\[0\]: messages may be nested 100 deep, these are nested deeper"):
        ours(text(100), schema.NodeDef().experimental_type)
    with pytest.raises(JsonError, match="nested deeper than can be read"):
        ours(text(100_000), schema.NodeDef().experimental_type)
