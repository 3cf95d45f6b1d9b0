"""The form of a function's attrs: initial values, entries, errors."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import graphcore as gc
from graphcore.attrs import AttrValue
from graphcore.definitions.types import AttrDef
from widgets.function import AttrForm
from widgets.function.form import field_text, first_value, parse_field
from widgets.function_views import AttrField

SIGNATURE = (
    'F[T:{float, double}, N:int >= 2 = 3, flag:bool = true, name:string = "a b", shape:shape, sizes:list(int) >= 1, '
    "types:list(type), rate:float = 0.5, f:func](x:T) -> (y:T) {\n  a = Identity[T=$T](x)\n  return y = a:output:0\n}"
)


def attrs() -> tuple[AttrDef, ...]:
    return gc.parse_function(SIGNATURE).signature.attr


def field(form: AttrForm, name: str) -> AttrField:
    return next(item for item in form.fields() if item.name == name)


def test_a_form_begins_with_what_is_given_then_with_defaults_then_with_the_first_value_allowed() -> None:
    form = AttrForm(attrs(), {"T": gc.float64})
    assert {item.name: item.value for item in form.fields()} == {
        "T": "double",
        "N": "3",
        "flag": "true",
        "name": "a b",
        "shape": "[]",
        "sizes": "1",
        "types": "float",
        "rate": "0.5",
        "f": "",
    }
    assert field(AttrForm(attrs(), {}), "T").value == "float"


def test_an_attr_that_nothing_can_be_guessed_for_says_that_it_needs_a_value() -> None:
    form = AttrForm(attrs(), {})
    assert field(form, "f").error == "'f' has no default: required a value of kind func"
    assert "f" not in form.values
    assert form.set("f", "Square[T=float]")
    assert form.values["f"] == gc.Func("Square", {"T": gc.float32})


def test_types_and_bools_are_choices_of_what_is_allowed() -> None:
    form = AttrForm(attrs(), {})
    assert field(form, "T").choices == ["float", "double"]
    assert field(form, "flag").choices == ["false", "true"]
    assert field(form, "N").choices == []
    assert field(form, "N").hint == "int, at least 2, default 3"


@pytest.mark.parametrize(
    ("name", "text", "error"),
    [
        ("T", "int32", "Value for attr 'T' of int32 is not in the list of allowed values: float, double"),
        ("N", "1", "Value for attr 'N' of 1 must be at least minimum 2"),
        ("N", "two", "AttrValue had value with type 'func' when 'int' expected\n\t for attr 'N'"),
        ("sizes", "", "Length for attr 'sizes' of 0 must be at least minimum 1"),
        ("flag", "1", "AttrValue had value with type 'int' when 'bool' expected\n\t for attr 'flag'"),
        ("N", "$M", "Value for attr 'N' must be given, not $M"),
    ],
)
def test_a_wrong_value_is_refused_in_the_words_of_the_reference_and_stays_in_the_field(name: str, text: str, error: str) -> None:
    form = AttrForm(attrs(), {})
    before = form.values
    assert not form.set(name, text)
    assert field(form, name).value == text
    assert field(form, name).error == error
    assert form.values == before


def test_a_value_put_right_takes_its_error_away() -> None:
    form = AttrForm(attrs(), {})
    form.set("N", "1")
    assert form.set("N", "5")
    assert (field(form, "N").error, form.values["N"]) == ("", 5)


def test_the_same_value_in_other_words_changes_nothing() -> None:
    form = AttrForm(attrs(), {})
    assert not form.set("rate", "5e-1")
    assert not form.set("N", " 3 ")


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("sizes", "1, 2", (1, 2)),
        ("sizes", "[4]", (4,)),
        ("types", "float, int32", (gc.float32, gc.int32)),
        ("types", "{double}", (gc.float64,)),
        ("types", "", ()),
        ("shape", "[?,3]", gc.Shape([None, 3])),
        ("name", "with spaces", b"with spaces"),
    ],
)
def test_lists_need_no_brackets_and_strings_no_quotes(name: str, text: str, value: AttrValue) -> None:
    form = AttrForm(attrs(), {})
    form.set(name, text)
    assert field(form, name).error == ""
    assert form.values[name] == value


def test_an_attr_that_is_not_there_is_refused() -> None:
    with pytest.raises(gc.errors.InvalidArgumentError, match="There is no attr 'M'; the attrs are: T"):
        AttrForm(attrs()[:1], {}).set("M", "1")


@given(
    st.sampled_from(["int", "bool", "string", "type", "float", "shape", "list(int)", "list(type)", "list(string)"]), st.text(max_size=30)
)
def test_no_text_in_a_field_does_harm(kind: str, text: str) -> None:
    form = AttrForm((AttrDef(name="a", type=kind),), {})
    form.set("a", text)
    assert form.fields()[0].value == text


@pytest.mark.parametrize("kind", ["int", "bool", "string", "type", "float", "shape", "list(int)", "list(type)", "list(string)"])
def test_what_a_field_shows_is_read_back_as_the_same_value(kind: str) -> None:
    attr = AttrDef(name="a", type=kind)
    value = first_value(attr)
    assert value is not None
    assert parse_field(field_text(value, kind), attr) == value
