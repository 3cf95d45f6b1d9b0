"""Parsing of the `%graph` line."""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Callable, Iterable
from typing import Any, Final, Literal, get_args

import msgspec
from IPython.core.error import UsageError

from kernelext.graph_names import can_be_shown
from widgets.messages import Renderer
from widgets.scene import lens_names

Place = Literal["auto", "side", "inline", "off"]
Action = Literal["", "undo", "redo", "quiet", "forget"]
ACTIONS: Final = ("undo", "redo", "quiet", "forget")
PLACES: Final = ("side", "inline", "off")
RECORDINGS: Final = ("time", "values")
"""The words that record the runs of a graph's sessions; each opens the lens of its name."""
DIFF: Final = "diff"
RENDERERS: Final[tuple[str, ...]] = get_args(Renderer)
FLAGS: Final = ("--mirror",)
FULL: Final = "--full"
IN_VIEW: Final = "the boxes in view"
"""Stands for the pattern of `--full` without one."""
HELP_FLAGS: Final = ("--help", "-h")
OPTIONS: Final[dict[str, Callable[[], tuple[str, ...]]]] = {"--renderer": lambda: RENDERERS, "--lens": lens_names}

HELP: Final = f"""Show the graph, live, beside the cells.

    %graph                       open the view on the right, or in this cell where that is not possible
    %graph side                  open it on the right
    %graph inline                open it in this cell
    %graph off                   close it
    %graph time                  record the runs from now on, and show where the time went; %graph time off ends the recording
    %graph values                record the values of all tensors of the runs from now on: ranges, NaN and Inf; %graph values off ends it
    %graph NAME                  show the graph of a variable (a Graph, Session, Tensor, ...) instead of the default one,
                                 or a function (of gc.function, or a FunctionDef) in this cell
    %graph diff                  show the difference that the last cell with nodes of the graph has made
    %graph diff 3                show the difference from the state before In [3]
    %graph diff NAME             show it for the graph of a variable
    %graph undo                  take back the last run of a cell that changed a graph or the variables of a session: nodes, names, your tensors,
                                 and values of variables below 64 MB; other Python values stay
    %graph redo                  take back the last undo
    %graph forget                remove the nodes of deleted cells, which the lens Cells marks
    %graph quiet                 no more lines about changes under cells; %graph quiet off brings them back

    --renderer {"|".join(RENDERERS):18s}who draws
    --lens NAME                  what is marked: {", ".join(lens_names())}, or one of your own
    --mirror                     the gradient of each box beside it
    --full PATTERN               with %graph values: full statistics and pictures of the nodes with such names, as in --full "layer1/*",
                                 or as the last word, without a pattern, of those with boxes in view

A cell that runs again
    with the same code           makes the same nodes; names, consumers and your tensors stay
    with other code              replaces its nodes in place; what follows from them is inferred and derived again, or marked with the reason
    making fewer nodes           removes the others; their consumers are marked until something of that name is there
    and fails                    keeps its nodes, marked, until it runs again
    and uses its own last result (h = tanh(h)) is refused: the result would feed itself
    after it was deleted         the nodes stay, marked; %graph forget removes them
    after a kernel restart       makes the same names again, with Run All from the top

The view follows every cell. Below this cell a still picture is kept: the notebook shows it without a kernel too."""


class GraphLine(msgspec.Struct, frozen=True, kw_only=True):
    """A parsed `%graph` line. `name` is "" for the default graph.

    `renderer`, `lens` and `recording` are "" by default. `full` is the pattern of nodes with full statistics. `mirror` puts gradients beside
    what they differentiate. `diff` is "diff" for the difference from the state before run `since` of a cell, or before the last one that made
    nodes of the graph.
    """

    place: Place = "auto"
    name: str = ""
    renderer: str = ""
    lens: str = ""
    recording: str = ""
    full: str = ""
    mirror: bool = False
    diff: str = ""
    since: str = ""
    action: Action = ""


def parse_graph_line(line: str) -> GraphLine:
    """Parse the arguments of `%graph`.

    Raises:
        UsageError: an unknown word, a missing or unknown value, or a repeated option.
    """
    values: dict[str, str | bool] = {}
    words = iter(_split(line))
    for word in words:
        key, value = _read_word(word, words)
        if key in values:
            raise UsageError(f"%graph: '{values[key]}' and '{value}' cannot both be meant.")
        values[key] = value
    if "action" in values and len(values) > 1 and (values["action"], values.get("place")) != ("quiet", "off"):
        raise UsageError(f"%graph: '{values['action']}' stands alone.")
    if "since" in values and "diff" not in values:
        raise UsageError(f"%graph: '{values['since']}' is the number of a run, which only %graph diff {values['since']} compares with.")
    if "full" in values and values.get("recording") != "values":
        raise UsageError(f"%graph: {FULL} belongs to %graph values, which records the values of runs.")
    return msgspec.convert(values, GraphLine)


def _split(line: str) -> list[str]:
    try:
        return shlex.split(line.partition("#")[0])
    except ValueError as error:
        raise UsageError(f"%graph: {error} in '{line}'.") from error


def _read_word(word: str, following: Iterable[str]) -> tuple[str, str | bool]:
    if word in PLACES:
        return "place", word
    if word in RECORDINGS:
        return "recording", word
    if word in FLAGS:
        return word[2:], True
    if word in ACTIONS:
        return "action", word
    if word == DIFF:
        return "diff", word
    if word.isdecimal():
        return "since", word
    option, _, value = word.partition("=")
    if option in OPTIONS:
        allowed = OPTIONS[option]()
        value = value or next(iter(following), "")
        if value not in allowed:
            raise UsageError(f"%graph: {option} needs one of {', '.join(allowed)}, got '{value}'.")
        return option[2:], value
    if option == FULL:
        value = value or next(iter(following), IN_VIEW)
        if value.startswith("--"):
            raise UsageError(
                f"%graph: {FULL} needs a pattern of node names, such as 'layer1/*', or to be the last word: the boxes in view."
            )
        return "full", value
    if word.isidentifier():
        return "name", word
    raise UsageError(f"%graph: '{word}' is not understood{hint(word)}. %graph --help lists what is.")


def hint(word: str) -> str:
    """A suggestion for `word` in an error message; "" if there is none."""
    near = difflib.get_close_matches(word, [*PLACES, *RECORDINGS, *ACTIONS, DIFF, *OPTIONS, *FLAGS, FULL], n=1)
    return f", did you mean '{near[0]}'?" if near else ""


def next_words(before: str, variables: dict[str, Any]) -> list[str]:
    """The possible next words of a `%graph` line after the text `before`."""
    words = before.split()
    if words and words[-1] in OPTIONS:
        return list(OPTIONS[words[-1]]())
    graphs = [name for name, value in variables.items() if not name.startswith("_") and can_be_shown(value)]
    typed = set(words)
    places = [] if typed & set(PLACES) else PLACES
    recordings = [] if typed & set(RECORDINGS) else RECORDINGS
    diff = [] if DIFF in typed else [DIFF]
    full = (FULL,) if "values" in typed else ()
    return [
        *places,
        *recordings,
        *diff,
        *(() if words else ACTIONS),
        *(option for option in (*OPTIONS, *FLAGS, *full) if option not in typed),
        *sorted(graphs),
    ]
