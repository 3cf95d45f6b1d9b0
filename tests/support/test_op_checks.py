"""One test makes all checks of an op, and names each that failed."""

from __future__ import annotations

import pytest

from tests.support.op_checks import checked_for, make_all


@checked_for(["Tanh", "Exp"])
def it_is_tanh(op: str) -> None:
    assert op == "Tanh"


@checked_for([("Exp", 1), ("Exp", 2), ("Tanh", 1)])
def it_is_refused_once(use: tuple[str, int]) -> None:
    with pytest.raises(ValueError, match="1"):
        raise_for(use[1])


def raise_for(number: int) -> None:
    if number == 1:
        raise ValueError("1")


def test_an_op_of_which_all_checks_hold_passes() -> None:
    make_all([it_is_tanh, it_is_refused_once], "Tanh")


def test_all_checks_that_fail_are_named_with_their_errors() -> None:
    with pytest.raises(BaseExceptionGroup, match=r"Exp: 2 of 3 checks failed: it_is_tanh\[0\], it_is_refused_once\[1\]") as raised:
        make_all([it_is_tanh, it_is_refused_once], "Exp")
    first, second = raised.value.exceptions
    assert isinstance(first, AssertionError)
    assert first.__notes__ == ["failed: it_is_tanh[0]"]
    assert "DID NOT RAISE" in str(second)


def test_an_op_without_checks_is_no_success() -> None:
    with pytest.raises(AssertionError):
        make_all([it_is_tanh], "Sin")
