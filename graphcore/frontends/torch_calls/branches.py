"""Decisions that depend on values, which a trace makes without them: one way is drawn."""

from __future__ import annotations

import linecache
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from graphcore.frontends.torch_calls.lines import is_library

_symbolic: Any = import_module("torch.fx.experimental.symbolic_shapes")
sympy: Any = import_module("sympy")

DECIDING: Final = frozenset({"__bool__", "__int__", "__index__", "__float__"})
"""The methods of tensors by which Python takes a value."""
_ITERATIONS: Final = 2
"""The iterations of a loop that depends on values."""
_MOST_PER_LINE: Final = 100
_MOST: Final = 1000
_NUMBERS: Final = (2, 1, 0)
"""The numbers in place of one that depends on values, in the order in which they are tried: with 1 and 0 sizes broadcast or vanish."""
_LOOP: Final = re.compile(r"while\b")


@dataclass(frozen=True)
class Decision:
    """A decision of a program that depends on values.

    Attributes:
        line: the file and number of its line.
        text: the line.
        answer: the answer that was given.
    """

    line: tuple[str, int]
    text: str
    answer: bool | int | float

    @property
    def note(self) -> str:
        """The decision in a sentence."""
        word = (
            "while"
            if _LOOP.match(self.text)
            else "if"
            if re.match(r"(el)?if\b", self.text)
            else "assert"
            if self.text.startswith("assert")
            else ""
        )
        file, number = self.line
        place = f"{Path(file).name}, line {number}" if is_library(file) else f"line {number}" if number else "a line of PyTorch"
        if isinstance(self.answer, bool):
            said = f"`{word}`" if word else f"`{self.text}`"
            return f"{said} at {place} depends on values: drawn as if {str(self.answer).lower()}"
        return f"`{self.text}` at {place} depends on values: drawn as if {self.answer}"


class Decisions:
    """The decisions of one trace.

    Args:
        plan: the first answers, those of an earlier trace with one changed.

    Attributes:
        made: the decisions in their order.
    """

    def __init__(self, plan: Sequence[bool | int | float] = ()) -> None:
        self._plan = plan
        self._are_forced: list[bool] = []
        self.made: list[Decision] = []
        self._counts: Counter[tuple[str, int]] = Counter()

    def decide(self, line: tuple[str, int]) -> bool:
        """The answer to a question at a line: yes, after a number of iterations of a loop no.

        Raises:
            RuntimeError: there were too many, as in a loop without an end.
        """
        text = linecache.getline(*line).strip()
        self._counts[line] += 1
        is_free = self._counts[line] <= (_ITERATIONS if _LOOP.match(text) else _MOST_PER_LINE)
        return bool(self._answer(line, text, is_free, is_forced=not is_free))

    def number(self, line: tuple[str, int], kind: type) -> int | float:
        """The number in place of one that depends on values."""
        answer: int | float = self._answer(line, linecache.getline(*line).strip(), kind(_NUMBERS[0]))
        return answer

    def has_number(self, line: tuple[str, int]) -> bool:
        """True iff a number was decided at a line: sizes there need not fit each other."""
        return any(made.line == line and not isinstance(made.answer, bool) for made in self.made)

    def _answer(self, line: tuple[str, int], text: str, usual: bool | float, *, is_forced: bool = False) -> Any:
        number = len(self.made)
        if number >= _MOST:
            raise RuntimeError(f"More than {_MOST} decisions depend on values, the last one at line {line[1]}: `{text}`")
        answer = self._plan[number] if number < len(self._plan) and type(self._plan[number]) is type(usual) else usual
        self.made.append(Decision(line, text, answer))
        self._are_forced.append(is_forced)
        return answer

    def other_plan(self) -> list[bool | int | float] | None:
        """The answers of the next trace, in which the last one that has another choice is changed. None if all were tried."""
        answers = [decision.answer for decision in self.made]
        for place in reversed(range(len(answers))):
            choices = (True, False) if isinstance(answers[place], bool) else _NUMBERS
            number = choices.index(answers[place])
            if not self._are_forced[place] and number + 1 < len(choices):
                return [*answers[:place], type(answers[place])(choices[number + 1])]
        return None

    def notes(self) -> list[str]:
        """A sentence for each line, with the number of iterations of loops."""
        iterations = Counter([made.line for made in self.made if made.answer is True and _LOOP.match(made.text)])
        notes: dict[tuple[tuple[str, int], str], None] = {}
        for made in self.made:
            count = iterations[made.line]
            note = f"`while` at line {made.line[1]} depends on values: drawn with {count} iterations" if count else made.note
            notes[made.line, note] = None
        return [note for _, note in notes]


def sizes_by_values(
    decisions: Decisions, line_of_user: Callable[[], tuple[tuple[str, int], bool]], record: Callable[[Decision, Any], None]
) -> Any:
    """The sizes and numbers of a trace, some of which are symbols since they depend on values.

    Args:
        decisions: the decisions of the trace.
        line_of_user: gives the line that runs, and True if it is within an operation.
        record: hears of each decision of the user's own lines, with the symbols that it depends on.
    """
    answers: dict[Any, Any] = {}

    class Sizes(_symbolic.ShapeEnv):  # type: ignore[misc]  # the class is known where torch is
        """Decides where symbols cannot."""

        def evaluate_expr(self, orig_expr: Any, *args: Any, **kwargs: Any) -> Any:
            if orig_expr in answers:
                return answers[orig_expr]
            try:
                return super().evaluate_expr(orig_expr, *args, **kwargs)
            except _symbolic.GuardOnDataDependentSymNode:
                line, is_within = line_of_user()
                symbols: Any = getattr(orig_expr, "free_symbols", set())
                if not _is_truth(orig_expr):
                    kind = float if any(str(symbol).startswith("zuf") for symbol in symbols) else int
                    answer = decisions.number(line, kind)
                    record(decisions.made[-1], symbols)
                    return _remember(orig_expr, sympy.sympify(answer))
                if is_within:
                    return _remember(orig_expr, sympy.true if _fits(orig_expr) else sympy.false)
                answer = decisions.decide(line)
                record(decisions.made[-1], symbols)
                return sympy.true if answer else sympy.false

    def _remember(expression: Any, answer: Any) -> Any:
        answers[expression] = answer
        return answer

    return Sizes()


def _is_truth(expression: Any) -> bool:
    return isinstance(expression, sympy.logic.boolalg.BooleanFunction | sympy.logic.boolalg.BooleanAtom | sympy.core.relational.Relational)


def _fits(expression: Any) -> bool:
    """The answer within an operation: sizes that must be equal are so.

    None is 0 or 1, with which it would broadcast.
    """
    if isinstance(expression, sympy.Eq | sympy.Ne):
        is_special = any(side in {0, 1} for side in expression.args)
        return is_special == isinstance(expression, sympy.Ne)
    guess = expression.subs(dict.fromkeys(expression.free_symbols, _NUMBERS[0]))
    return guess is not sympy.false
