"""Every function added to a library in any test is read back from its text."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from graphcore.definitions import FunctionDef, OpDef
from graphcore.errors import NotFoundError
from graphcore.functions import FunctionLibraryDefinition
from graphcore.text import debug_string, parse_function

MOST_READ = 2_000
_set = FunctionLibraryDefinition._set
_read: dict[str, tuple[FunctionDef, dict[str, OpDef | None]]] = {}


def _op_def(library: FunctionLibraryDefinition, name: str) -> OpDef | None:
    try:
        return library.look_up_op_def(name)
    except NotFoundError:
        return None


def _parse(text: str, library: FunctionLibraryDefinition) -> FunctionDef:
    """Parse `text` in `library`. Results are cached, since libraries are copied and imported all the time."""
    found = _read.get(text)
    if found is not None and all(_op_def(library, name) == op_def for name, op_def in found[1].items()):
        return found[0]
    used: dict[str, OpDef | None] = {}

    def look_up(name: str) -> OpDef:
        used[name] = _op_def(library, name)
        return library.look_up_op_def(name)

    function = parse_function(text, look_up)
    if len(_read) >= MOST_READ:
        _read.clear()
    _read[text] = function, used
    return function


def _without_other_fields(function: FunctionDef) -> FunctionDef:
    """The function without fields of its arguments that only files have, such as `handle_data`."""
    arguments = tuple([replace(arg, other_fields=b"") if arg.other_fields else arg for arg in function.signature.input_arg])
    return replace(function, signature=replace(function.signature, input_arg=arguments))


def _set_what_reads_back(library: FunctionLibraryDefinition, function: FunctionDef) -> None:
    _set(library, function)
    arguments = [arg.name for arg in function.signature.input_arg]
    if len(set(arguments)) < len(arguments):
        return  # texts with two arguments of one name are refused
    text = debug_string(function, library.look_up_op_def)
    assert _parse(text, library) == _without_other_fields(function), f"does not read back as it was:\n{text}"


@pytest.fixture(autouse=True, scope="session")
def functions_read_back() -> Iterator[None]:
    """Check each function added to a library."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FunctionLibraryDefinition, "_set", _set_what_reads_back)
        yield
