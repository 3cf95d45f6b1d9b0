"""The style of docstrings and comments: plain statements in the third person or the imperative."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from functools import cache
from itertools import chain, pairwise
from pathlib import Path

import pytest

pytestmark = pytest.mark.sweep

ROOT = Path(__file__).parents[1]
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


def python_files() -> list[Path]:
    found = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
    return [path for path in found if "node_modules" not in path.parts and not path.name.endswith("_pb2.py")]


def docstrings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """The docstrings of a module, its classes and functions, with their lines."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text:
                yield getattr(node, "lineno", 1), text


@cache
def documented(path: Path) -> tuple[list[tuple[int, str]], list[tuple[int, str]]]:
    """The docstrings of a file, and the texts below its variables."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return list(docstrings(tree)), list(texts_below_variables(tree))


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


@pytest.mark.parametrize("path", python_files(), ids=lambda path: str(path.relative_to(ROOT)))
def test_docstrings_and_comments_are_plain_statements(path: Path) -> None:
    texts = chain(*documented(path), comments(path.read_text(encoding="utf-8")))
    wrong = [f"{line}: {fault}" for line, text in texts for fault in faults(text)]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("path", python_files(), ids=lambda path: str(path.relative_to(ROOT)))
def test_first_sentences_are_short(path: Path) -> None:
    sentences = [(line, first_sentence(text)) for line, text in documented(path)[0]]
    wrong = [f"{line}: {len(sentence)} characters: {sentence}" for line, sentence in sentences if len(sentence) > LONGEST_SENTENCE]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    "path", sorted((ROOT / "widgets" / "js" / "src").rglob("*.ts")), ids=lambda path: str(path.relative_to(ROOT / "widgets" / "js"))
)
def test_comments_of_typescript_files_are_plain_statements(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    texts = [
        re.sub(r"(?m)^\s*(?:\*|//) ?", "", comment["block"] or comment["lines"]).strip() for comment in SCRIPT_COMMENT.finditer(source)
    ]
    wrong = [fault for text in texts for fault in faults(text)]
    assert not wrong, "\n".join(wrong)
    if SCRIPT_COMMENT.match(source):  # not a generated or declared module
        assert len(first_sentence(texts[0])) <= LONGEST_SENTENCE, first_sentence(texts[0])


@pytest.mark.parametrize("name", SETTINGS_FILES)
def test_comments_of_settings_and_scripts_are_plain_statements(name: str) -> None:
    texts = SETTINGS_COMMENT.findall((ROOT / name).read_text(encoding="utf-8"))
    wrong = [fault for text in texts for fault in faults(text)]
    assert texts
    assert not wrong, "\n".join(wrong)
