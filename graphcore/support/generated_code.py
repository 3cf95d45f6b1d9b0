"""Generated Python code: the one place that compiles text made by this package.

The text of generated code holds no name or value that came from a graph, a file or a user. Its names are words of the generator's own
vocabulary, or a short word with a counter (`t12_0`). Values, kernels and names from elsewhere are bound in the scope of the code.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Collection, Sequence
from types import CodeType, FunctionType
from typing import Any, Final

from graphcore.errors import InternalError

_NUMBERED: Final = re.compile(r"[a-z]{1,8}[0-9]+(?:_[0-9]+)?", re.ASCII)
_WORD: Final = re.compile(r"[^\W\d]\w*")
_CHARACTERS: Final = re.compile(r"[A-Za-z0-9_ \n()\[\]{},.:;=<>!+*-]*", re.ASCII)
"""Neither quotes nor comments: generated text has no literals besides numbers."""
_UNUSUAL: Final = frozenset(
    ["import", "from", "exec", "eval", "compile", "lambda", "class", "global", "nonlocal", "async", "await", "yield"]
)
_KEYWORDS: Final = frozenset(keyword.kwlist) - _UNUSUAL


def compile_generated(text: str, filename: str, scope: dict[str, Any], words: Collection[str]) -> None:
    """Execute generated definitions in `scope`.

    Args:
        text: the code.
        filename: its name in tracebacks.
        scope: the values and kernels that the code names; the definitions are added.
        words: the generator's vocabulary: constants of its module besides Python's keywords. All other names are words with a counter.

    Raises:
        InternalError: the text has other names or characters, which may be from outside.
    """
    refuse_foreign_text(text, words)
    exec(compile(text, filename, "exec"), scope)  # noqa: S102 - the text contains only names made by its generator, see above


def refuse_foreign_text(text: str, words: Collection[str]) -> None:
    """Check that `text` has no names besides those of a generator; see `compile_generated`.

    Raises:
        InternalError: it has other names or characters.
    """
    if _CHARACTERS.fullmatch(text) is None:
        raise InternalError("Generated code contains a literal or a comment; values and names must be bound in its scope")
    for word in set(_WORD.findall(text)):
        if word not in words and word not in _KEYWORDS and _NUMBERED.fullmatch(word) is None:
            raise InternalError(f"Generated code contains the name {word!r}, which its generator has not made")


def function_with_parameters(
    function: FunctionType, name: str, parameters: Sequence[str], defaults: Sequence[Any], filename: str
) -> FunctionType:
    """A generated function under another name, and with other names of its parameters.

    Python binds keyword arguments by the names in the code object, so that the text of the function need not contain them.

    Args:
        function: the generated function; its local variables are its parameters, and then others.
        name: its new name.
        parameters: the new names of its parameters.
        defaults: the default values of the last ones.
        filename: the file that tracebacks name.

    Raises:
        InternalError: a name is no identifier.
    """
    for identifier in (name, *parameters):
        if not identifier.isidentifier() or keyword.iskeyword(identifier):
            raise InternalError(f"{identifier!r} is no name for a function or a parameter")
    code: CodeType = function.__code__
    names = (*parameters, *code.co_varnames[len(parameters) :])
    code = code.replace(co_varnames=names, co_name=name, co_qualname=name, co_filename=filename)
    result = FunctionType(code, function.__globals__, name, tuple(defaults))
    result.__qualname__ = name
    return result
