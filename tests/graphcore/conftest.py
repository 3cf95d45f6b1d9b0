"""Every function that any test puts into a library reads back from its text, whatever else the test is about."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from graphcore.definitions import FunctionDef
from graphcore.functions import FunctionLibraryDefinition
from graphcore.text import debug_string, parse_function

_set = FunctionLibraryDefinition._set


def _set_what_reads_back(library: FunctionLibraryDefinition, function: FunctionDef) -> None:
    _set(library, function)
    arguments = [arg.name for arg in function.signature.input_arg]
    if len(set(arguments)) < len(arguments):
        return  # a text is refused that has two arguments of one name
    text = debug_string(function, library.look_up_op_def)
    assert parse_function(text, library.look_up_op_def) == function, f"does not read back as it was:\n{text}"


@pytest.fixture(autouse=True, scope="session")
def functions_read_back() -> Iterator[None]:
    """Have each function checked as it is put into a library."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FunctionLibraryDefinition, "_set", _set_what_reads_back)
        yield
