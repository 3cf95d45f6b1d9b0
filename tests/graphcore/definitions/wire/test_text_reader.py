"""The text reader agrees with protobuf's own; errors have positions."""

from __future__ import annotations

import random
import re
import warnings
from typing import Any

import pytest
from google.protobuf import text_format
from hypothesis import given, settings
from hypothesis import strategies as st

from graphcore.definitions.wire import schema
from graphcore.definitions.wire.text_cursor import TextError
from graphcore.definitions.wire.text_reader import read_text
from tests.support.fuzzing.messages import damaged_text, random_message, same

PRINTING = ("as_utf8", "as_one_line", "use_short_repeated_primitives", "pointy_brackets", "force_colon", "use_index_order")
COUNT = 5_000
"""More than are read in one block."""


def ours(text: str, message: Any, *, skip_unknown: bool = False) -> Any:
    read_text(text, message, allow_unknown_field=skip_unknown)
    return message


def theirs(text: str, message: Any, *, skip_unknown: bool = False) -> Any:
    with warnings.catch_warnings():
        # Python deprecates unknown escapes, which protobuf's reader passes to Python.
        warnings.simplefilter("ignore", DeprecationWarning)
        text_format.Parse(text, message, descriptor_pool=schema.POOL, allow_unknown_field=skip_unknown)
    return message


def printed(message: Any, rng: random.Random) -> str:
    options: dict[str, Any] = {option: rng.random() < 0.3 for option in PRINTING}
    text: str = text_format.MessageToString(message, descriptor_pool=schema.POOL, **options)
    return text


def skips_lists() -> bool:
    """False for protobuf 6.30, which refuses a list of messages in a field that it skips."""
    try:
        theirs("unknown: [{}]", schema.AttrValue(), skip_unknown=True)
    except text_format.ParseError:
        return False
    return True


SKIPS_LISTS = skips_lists()


@settings(max_examples=150)
@given(st.integers(0, 2**64))
def test_what_protobuf_prints_is_read(seed: int) -> None:
    rng = random.Random(seed)
    message = random_message(rng)
    assert same(ours(printed(message, rng), type(message)()), message)


@settings(max_examples=150)
@given(st.integers(0, 2**64))
def test_a_damaged_text_is_taken_or_refused_as_protobuf_does_and_at_the_same_place(seed: int) -> None:
    rng = random.Random(seed)
    kind = type(message := random_message(rng))
    source = printed(message, rng)
    for _ in range(4):
        text = damaged_text(source, rng)
        skip_unknown = rng.random() < 0.3 and SKIPS_LISTS
        expected, place = None, None
        try:
            expected = theirs(text, kind(), skip_unknown=skip_unknown)
        except (text_format.ParseError, ValueError) as error:
            place = re.match(r"(\d+:\d+) ", str(error))
        if expected is not None:
            assert same(ours(text, kind(), skip_unknown=skip_unknown), expected)
            continue
        with pytest.raises(TextError) as refused:
            ours(text, kind(), skip_unknown=skip_unknown)
        # These three report other positions: the string itself, the bracket, and the last token.
        if place is not None and not re.search("no UTF-8|no extensions|found the end", str(refused.value)):
            assert str(refused.value).startswith(f"{place[1]}: ")


def attr(text: str) -> Any:
    return ours(text, schema.AttrValue())


FORMS = {
    "lines": lambda name, words: "\n".join(f"  {name}: {word}" for word in words),
    "one line": lambda name, words: " ".join(f"{name}:{word}" for word in words),
    "with commas": lambda name, words: ", ".join(f"{name}: {word}" for word in words),
    "with semicolons": lambda name, words: "".join(f"{name}: {word} ; " for word in words),
    "list": lambda name, words: f"{name}: [{', '.join(words)}]",
    "dense list": lambda name, words: f"{name}:[{','.join(words)}]",
    "comments": lambda name, words: "# first\n".join(f"{name}: {word} # {word}: 7, \n" for word in words),
    "comments in a list": lambda name, words: f"{name}: [ # first\n" + " # , \n ,".join(words) + "#\n]",
}  # fmt: skip
RUNS: dict[str, tuple[list[str], list[Any]]] = {
    "i": (["-9223372036854775808", "0x10", "0", "017", "+3"], [-(2**63), 16, 0, 15, 3]),
    "f": (["0.5", "-1e3", "1.5f", "inf", "-infinity", "2"], [0.5, -1000.0, 1.5, float("inf"), float("-inf"), 2.0]),
    "b": (["true", "f", "1", "False"], [True, False, True, False]),
    "s": (['"a"', r'"\303\251\n"', "'\"'", '"a" "b"', r'"\x41\x4"'], [b"a", "é\n".encode(), b'"', b"ab", b"A\x04"]),
    "type": (["DT_FLOAT", "3", "1000", "0x2"], [1, 3, 1000, 2]),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", RUNS)
def test_a_long_list_is_read_in_each_form(name: str, form: str) -> None:
    words, values = RUNS[name]
    plain = words[:1] * COUNT
    message = attr(f"list {{ {FORMS[form](name, plain + words + plain + words)} }}")
    assert list(getattr(message.list, name)) == values[:1] * COUNT + values + values[:1] * COUNT + values


@pytest.mark.parametrize("at", [0, 1, 1_999, 2_000, 3_500, COUNT - 1])
@pytest.mark.parametrize("word", ["9223372036854775808", "1.5", "x", '"1"', "08", "- 1", "", "{"])
def test_the_one_wrong_number_of_a_long_list_is_found(word: str, at: int) -> None:
    numbers = ["1"] * COUNT
    numbers[at] = word
    text = "list {\n" + "\n".join(f"  i: {number}" for number in numbers) + "\n}"
    with pytest.raises(TextError, match="expected an integer from -9223372036854775808 to 9223372036854775807, found") as caught:
        attr(text)
    assert str(caught.value).startswith(f"{at + 2}:6: " if word else f"{at + 3}:")


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("i 1", '1:3: expected ":" after "i", found \'1\''),
        ("i: x", "1:4: expected an integer from -9223372036854775808 to 9223372036854775807, found 'x'"),
        ("i:\n", "2:1: expected an integer from -9223372036854775808 to 9223372036854775807, found the end"),
        ("s: 1", "1:4: expected a string, found '1'"),
        ("s: 'a", '1:4: a string without its closing quote: "\'a"'),
        (r"s: 'a\x'", r"1:4: a string in which the escape \x is cut off or has no meaning here"),
        (r"s: 'a\777'", r"1:4: a string in which the escape \777 is more than a byte"),
        (r"placeholder: '\377'", "1:14: a string that is no UTF-8 at its byte 0"),
        ("b: yes", "1:4: expected true or false, found 'yes'"),
        ("type: DT_NONE", "1:7: expected a DataType by its name or number, found 'DT_NONE'"),
        ("i: 1\ni: 2", '2:4: graphloupe.AttrValue has one "i", this is another'),
        ("i: 1\nf: 2", '2:1: "f" beside "i": graphloupe.AttrValue has one of them'),
        ("shape {} shape {}", '1:16: graphloupe.AttrValue has one "shape", this is another'),
        ("shape: 1", "1:8: expected \"{\", found '1'"),
        ("shape {\n dim { size: 1 }", '2:16: expected "}" for the "{" at 1:7, found the end'),
        ("shape {\n dim { size: 1 } # no }\n\n", '2:16: expected "}" for the "{" at 1:7, found the end'),
        ("shape < }", "1:9: expected the name of a field or \">\", found '}'"),
        ("list { i: [1, 2; 3] }", '1:16: expected "," or "]", found \';\''),
        ("list { i: [1, 2,] }", "1:17: expected an integer from -9223372036854775808 to 9223372036854775807, found ']'"),
        ("list { shape: [{}, 1] }", "1:20: expected \"{\", found '1'"),
        ("list { shape: [{} {}] }", '1:19: expected "," or "]", found \'{\''),
        ("nome: 1", "1:1: graphloupe.AttrValue has no field named 'nome'"),
        ("[a.b]: 1", "1:1: graphloupe.AttrValue has no extensions"),
        ("i: 1 }", "1:6: expected the name of a field, found '}'"),
        ("i: 1,, f: 2", "1:6: expected the name of a field, found ','"),
    ],
)
def test_a_mistake_is_told_with_its_place_and_what_was_expected(text: str, error: str) -> None:
    with pytest.raises(TextError) as caught:
        attr(text)
    assert str(caught.value) == error


def test_an_entry_of_a_map_may_have_its_parts_in_any_order_and_a_later_one_replaces_it() -> None:
    text = """
      attr { value { list { i: 1 } } key: "a" }  attr { key: "a" value { list { f: 2 } } }
      attr { value { i: 3 } }  attr { key: "b" }  attr { key: "c" value { i: 4 } }  attr { key: "c" }  attr { key: "" value { i: 5 } }
    """
    message = ours(text, schema.NodeDef())
    assert same(message, theirs(text, schema.NodeDef()))
    values = {"a": attr("list { f: 2 }"), "": attr("i: 5"), "b": attr(""), "c": attr("")}
    assert dict(message.attr) == values


def test_messages_are_nested_a_hundred_deep_and_no_deeper() -> None:
    def text(depth: int) -> str:
        return "args {" * depth + "}" * depth

    assert same(ours(text(100), schema.NodeDef().experimental_type), theirs(text(100), schema.NodeDef().experimental_type))
    with pytest.raises(TextError, match="1:606: messages may be nested 100 deep, these are nested deeper"):
        ours(text(101), schema.NodeDef().experimental_type)
    with pytest.raises(TextError, match="1:709: messages may be nested 100 deep, these are nested deeper"):
        ours("nobody { " + "knows {" * 100_000, schema.NodeDef(), skip_unknown=True)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r"\u005cn", b"\\n"),  # protobuf's reader decodes this escape twice in Python, once in C++
        (r"\€", "\\€".encode()),  # and this one with the letter's number
    ],
)
def test_an_escape_is_undone_once(text: str, value: bytes) -> None:
    assert attr(f"s: '{text}'").s == value


def test_a_letter_is_not_named() -> None:
    with pytest.raises(TextError, match=r"the escape \\N is cut off or has no meaning here"):
        attr(r"s: '\N{DIGIT ONE}'")  # Python's own escape, which protobuf's Python reader accepts


def test_a_long_string_of_escapes_is_read() -> None:
    data = bytes(range(256)) * 2_000
    message = schema.TensorProto(tensor_content=data)
    assert ours(text_format.MessageToString(message), schema.TensorProto()).tensor_content == data


@pytest.mark.parametrize("between", ["", " ", "\n", ", ", " ; ", " # comment\n", " , # comment\n"])
@pytest.mark.parametrize("end", ["", ",", " ; ", " # comment\n, i: 1", "\n\n, i: 1", " i: 1", " shape {} , shape { dim { size: 1 } } i: 1"])
@pytest.mark.parametrize("one", ["shape {}", "shape { dim { size: 1 } dim { size: 1 } dim { size: 1 } }", "shape: <dim <name: '},'>>"])
def test_messages_that_are_the_same_again_and_again_are_read_as_often_as_they_are_there(one: str, between: str, end: str) -> None:
    kind = type(schema.AttrValue().list)
    for count in (1, 2, 3, 20):
        text = f"i: 1 {between.join([one] * count)}{end}"
        assert same(ours(text, kind()), theirs(text, kind()))
    assert len(ours(between.join([one] * 2_500), kind()).shape) == 2_500


def test_the_mistake_after_many_equal_messages_is_found() -> None:
    with pytest.raises(TextError, match="1:20005: expected the name of a field, found ','"):
        ours("op {} " * 3_333 + "op {},, ", schema.OpList())
