"""The style of docstrings and comments: plain statements in the third person or the imperative."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from itertools import chain, pairwise

from tests.lint.files import ROOT, place, python_files

FOLDERS = ("graphcore", "widgets", "kernelext", "tests")
LONGEST_SENTENCE = 99

QUESTION_WORD = re.compile(r"(What|Who|Whose|Whom|Whoever|Whether|That|Where|Which|How|Why)\b")
RIDDLE = re.compile(
    r"\b(who|whom|whoever|anybody|anyone|somebody|someone|nobody|everybody|wants? to|(is|are|be|was) told|tells? (of|its|when|that)|asks whether)\b"
    r"|\bwhat is to be\b|\bwhat there is to\b|\b(as|in|like|than) the reference\b|\bthe reference's\b",
    re.IGNORECASE,
)
SENTENCE_END = re.compile(r"[.!?](?=\s|$)")
# `/** ... */` and runs of lines with `//` in TypeScript.
SCRIPT_COMMENT = re.compile(r"(?m)^[ \t]*(?:/\*\*?(?P<block>(?s:.*?))\*/|(?P<lines>(?://[^\n]*\n[ \t]*)+))")
CODE = re.compile(r"`[^`]*`")
SETTINGS_COMMENT = re.compile(r"(?m)(?:^|[ \t])# (.*)$")
SETTINGS_FILES = ("Makefile", ".ci/run", "pyproject.toml", "tests/support/tools/front.sh", "tests/support/tools/find_python.sh")


def docstrings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """The docstrings of a module, its classes and functions, with their lines."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text:
                yield getattr(node, "lineno", 1), text


def texts_below_variables(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """The texts that document variables, with their lines."""
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        for before, statement in pairwise(body) if isinstance(body, list) else ():
            documented = isinstance(before, ast.Assign | ast.AnnAssign) and isinstance(statement, ast.Expr)
            if documented and isinstance(statement.value, ast.Constant) and isinstance(statement.value.value, str):
                yield statement.lineno, statement.value.value


def comments(source: str) -> Iterator[tuple[int, str]]:
    """The comments of a file, with their lines; consecutive ones are joined."""
    last, text, start = -2, "", 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT:
            continue
        line = token.start[0]
        if line != last + 1:
            if text:
                yield start, text
            start, text = line, ""
        text += token.string.removeprefix("#").removeprefix(" ") + " "
        last = line
    if text:
        yield start, text


def faults(text: str) -> Iterator[str]:
    """The faults in the words of a docstring or comment; code spans are ignored."""
    if QUESTION_WORD.match(text):
        yield f"begins with a question word: {text.splitlines()[0]}"
    for riddle in RIDDLE.finditer(CODE.sub("``", text)):
        yield f"says {riddle[0]!r}: {text.splitlines()[0]}"


def first_sentence(text: str) -> str:
    joined = " ".join(text.split("\n\n", maxsplit=1)[0].split())
    end = SENTENCE_END.search(joined)
    return joined[: end.end()] if end else joined


def docstrings_and_comments_of_python_are_plain() -> Iterator[str]:
    """Docstrings and comments are plain statements, and the first sentence of a docstring is short."""
    for path in python_files(*FOLDERS):
        if path.name.endswith("_pb2.py"):
            continue
        source = path.read_text(encoding="utf-8")
        tree = ast.parse(source)
        documented = list(docstrings(tree))
        for line, text in chain(documented, texts_below_variables(tree), comments(source)):
            yield from (f"{place(path, line)}: {fault}" for fault in faults(text))
        for line, text in documented:
            sentence = first_sentence(text)
            if len(sentence) > LONGEST_SENTENCE:
                yield f"{place(path, line)}: a first sentence of {len(sentence)} characters: {sentence}"


def comments_of_typescript_are_plain() -> Iterator[str]:
    """Comments are plain statements, and the first sentence about a module is short."""
    for path in sorted((ROOT / "widgets" / "js" / "src").rglob("*.ts")):
        source = path.read_text(encoding="utf-8")
        texts = [
            re.sub(r"(?m)^\s*(?:\*|//) ?", "", comment["block"] or comment["lines"]).strip() for comment in SCRIPT_COMMENT.finditer(source)
        ]
        yield from (f"{place(path)}: {fault}" for text in texts for fault in faults(text))
        # Not in a generated or declared module, which begins with code.
        if SCRIPT_COMMENT.match(source) and len(sentence := first_sentence(texts[0])) > LONGEST_SENTENCE:
            yield f"{place(path)}: a first sentence of {len(sentence)} characters: {sentence}"


def comments_of_settings_and_scripts_are_plain() -> Iterator[str]:
    """The comments of Makefile, scripts and pyproject.toml are plain statements."""
    for name in SETTINGS_FILES:
        texts = SETTINGS_COMMENT.findall((ROOT / name).read_text(encoding="utf-8"))
        if not texts:
            yield f"{name}: no comments were found"
        yield from (f"{name}: {fault}" for text in texts for fault in faults(text))


RULES = (docstrings_and_comments_of_python_are_plain, comments_of_typescript_are_plain, comments_of_settings_and_scripts_are_plain)
