"""Parsing of the `%graph` line."""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Callable, Iterable
from typing import Any, Final, Literal, get_args

import msgspec
from IPython.core.error import UsageError

from graphcore.graph import Node, Tensor, get_default_graph
from graphcore.tf1.variables.variables import Variable
from kernelext.graph_names import beginning, can_be_shown, graph_of, matching_names, own_names
from kernelext.graph_sources import is_expression, is_source, no_file
from widgets.language import LANGUAGES
from widgets.messages import Renderer
from widgets.scene import lens_names

Place = Literal["auto", "side", "inline", "off"]
Action = Literal["", "undo", "redo", "quiet", "forget"]
ACTIONS: Final = ("undo", "redo", "quiet", "forget")
PLACES: Final[dict[str, Place]] = {"dock": "side", "side": "side", "inline": "inline", "close": "off", "off": "off"}
"""The words for places; `side` and `off` are other words for `dock` and `close`."""
RECORDINGS: Final = ("time", "values")
"""The words that record the runs of a graph's sessions; each opens the lens of its name."""
DIFF: Final = "diff"
RENDERERS: Final[tuple[str, ...]] = get_args(Renderer)
FLAGS: Final = ("--mirror",)
FULL: Final = "--full"
IN_VIEW: Final = "the boxes in view"
"""Stands for the pattern of `--full` without one."""
HELP_FLAGS: Final = ("--help", "-h")
FOCUS: Final = "focus"
OVERLAY: Final = "overlay"
OPTIONS: Final[dict[str, Callable[[], tuple[str, ...]]]] = {
    "lens": lens_names,
    "renderer": lambda: RENDERERS,
    "language": lambda: LANGUAGES,
}
"""Words before a value, with its choices. They may begin with `--`, as `focus` may."""
_WORDS: Final = frozenset([*PLACES, *ACTIONS, *RECORDINGS, DIFF, FOCUS, OVERLAY, *OPTIONS])

HELP: Final = f"""Show the graph, live, beside the cells.

    %graph                       open the view on the right, or in this cell where that is not possible
    %graph dock                  open it on the right
    %graph inline                open it in this cell
    %graph close                 close it
    %graph lens NAME             what is marked: {", ".join(lens_names())}, or a lens of your own
    %graph renderer NAME         who draws: {" or ".join(RENDERERS)}
    %graph language NAME         the language of the words in pictures and panes from now on: {" or ".join(LANGUAGES)}
    %graph focus NAME            bring a node into view: a variable with a tensor, or a name in the graph
    %graph time                  record the runs from now on, and show where the time went; %graph time off ends the recording
    %graph values                record the values of all tensors of the runs from now on: ranges, NaN and Inf; %graph values off ends it
    %graph overlay NUMBERS       your numbers on the boxes: a variable (a dict, a table, gc.costs(graph)) or a file (JSON, CSV, profiles, traces)
    %graph NAME                  show the graph of a variable (a Graph, Session, Tensor, ...) instead of the default one,
                                 or a function (of gc.function, or a FunctionDef) in this cell
    %graph FILE                  show the graph in a file: of TensorFlow, ONNX, PyTorch, Keras, TFLite and others; it follows the file
    %graph EXPRESSION            show what an expression gives: a graph, or a model of another framework, as in %graph models[0]
    %graph model(x)              show a call of a PyTorch module, or of a function of PyTorch or JAX, without computing it
    %graph --mirror loss(m(x))   show the call with its gradients beside it, as the autograd of PyTorch or JAX has them; nothing is computed.
                                 With %graph values before it, a call of PyTorch is made once on copies: values and gradients by depth
    %graph values model(x)       run the call once, for real, with the ranges, NaN, Inf and times of all operations; everything is as before it.
                                 Once the model has changed, the picture is that of the new one, without the values of the old one
    %graph diff                  show the difference that the last cell with nodes of the graph has made
    %graph diff 3                show the difference from the state before In [3]
    %graph diff NAME             show it for the graph of a variable
    %graph undo                  take back the last run of a cell that changed a graph or the variables of a session: nodes, names, your tensors,
                                 and values of variables below 64 MB; other Python values stay
    %graph redo                  take back the last undo
    %graph forget                remove the nodes of deleted cells, which the lens Cells marks
    %graph quiet                 no more lines about changes under cells; %graph quiet off brings them back

A call in %graph model(x) is traced: types and shapes are inferred, and nothing is computed
    after a cell                 it is traced again if its modules, functions, the variables that they use, or its arguments have changed (layers,
                                 code, modes, types, shapes and devices, not the elements of tensors); a line below the cell says what is different
    its arguments                names, attributes and items are looked up after each cell; an argument that computes something, as in
                                 model(make_batch(n)), is evaluated once, and again only when a name in it (make_batch, n) stands for something else,
                                 or the cell with %graph runs again; where an argument calls a module, as in loss(model(x), y), the whole is traced,
                                 and so is an expression of calls and operators, as in loss(x) + 0.1 * reg or model(x)[0]
    random numbers               looking draws none: the generators of Python, NumPy and PyTorch stay as they are; generators of your own do not
    if it fails                  the operation that fails is red; where there is none, or the trace is interrupted, the last picture stays, faded,
                                 and says why

Words can be combined, as in %graph model inline lens cells, or %graph values off.

    --mirror                     the gradient of each box beside it
    --full PATTERN               with %graph values: full statistics and pictures of the nodes with such names, as in --full "layer1/*",
                                 or as the last word, without a pattern, of those with boxes in view

A cell that runs again
    with the same code           makes the same nodes; names, consumers and your tensors stay
    with other code              replaces its nodes in place; what follows from them is inferred and derived again, or marked with the reason
    making other shapes          infers what follows again; edges that do not fit turn red until they do
    making more nodes            adds them
    making fewer nodes           removes the others; their consumers are marked until something of that name is there
    emptied                      removes all its nodes
    and fails                    keeps its nodes, marked, until it runs again
    and uses its own last result (h = tanh(h)) is refused: the result would feed itself, and the picture shows the circle
    in another order or place    makes the same nodes: a node belongs to its cell, wherever that stands
    as a copy                    makes nodes of its own, such as h_1; two cells share no node
    with other initial values    leaves values in open sessions as they are, with a remark, until the initializer runs
    with gradients below it      derives them again, under their names
    after it was deleted         owns its nodes again; until then they stay, marked, and %graph forget removes them
    after %graph undo            makes the same nodes again
    after reset_default_graph()  makes its nodes in the new graph; cells above it must run first
    after a kernel restart       makes the same names again, with Run All from the top

The view follows every cell. In JupyterLab Ctrl+Shift+. leads from the cells to it and back. Below this cell a still picture is kept:
the notebook shows it without a kernel too."""


class GraphLine(msgspec.Struct, frozen=True, kw_only=True):
    """A parsed `%graph` line. `name` is "" for the default graph.

    `renderer`, `lens` and `recording` are "" by default. `language` is that of words. `full` is the pattern of nodes with full statistics. `mirror` puts gradients beside
    what they differentiate. `focus` names a node to bring into view, `overlay` a variable or file of numbers. `diff` is "diff" for the difference from the state before run `since` of
    a cell, or before the last one that made nodes of the graph.
    """

    place: Place = "auto"
    name: str = ""
    renderer: str = ""
    lens: str = ""
    language: str = ""
    recording: str = ""
    full: str = ""
    mirror: bool = False
    focus: str = ""
    overlay: str = ""
    diff: str = ""
    since: str = ""
    action: Action = ""


def parse_graph_line(line: str) -> GraphLine:
    """Parse the arguments of `%graph`.

    Raises:
        UsageError: an unknown word, a missing or unknown value, or a repeated option.
    """
    recording, _, rest = line.strip().partition(" ")
    if recording in RECORDINGS and _is_expression(rest):
        return GraphLine(name=rest.strip(), recording=recording)
    if recording in RECORDINGS and _mirrored_expression(rest):
        return GraphLine(name=_mirrored_expression(rest), recording=recording, mirror=True)
    mirrored = _mirrored_expression(line)
    if mirrored:
        return GraphLine(name=mirrored, mirror=True)
    if _is_expression(line):
        return GraphLine(name=line.strip())
    values: dict[str, str | bool] = {}
    words = iter(_split(line))
    for word in words:
        key, value = _read_word(word, words)
        if key in values:
            raise UsageError(f"%graph: '{values[key]}' and '{value}' cannot both be meant.")
        values[key] = value
    place = str(values.get("place", "auto"))
    if "action" in values and len(values) > 1 and (values["action"], place) != ("quiet", "off"):
        raise UsageError(f"%graph: '{values['action']}' stands alone.")
    if "since" in values and "diff" not in values:
        raise UsageError(f"%graph: '{values['since']}' is the number of a run, which only %graph diff {values['since']} compares with.")
    if "full" in values and values.get("recording") != "values":
        raise UsageError(f"%graph: {FULL} belongs to %graph values, which records the values of runs.")
    if "focus" in values and ("diff" in values or PLACES.get(place) == "off"):
        raise UsageError(f"%graph: {FOCUS} brings a node of a graph into view; it does not go with '{values.get('diff', place)}'.")
    return msgspec.convert({**values, "place": PLACES.get(place, place)}, GraphLine)


def _mirrored_expression(line: str) -> str:
    """The expression before or behind `--mirror`, "" if there is none."""
    (flag,) = FLAGS
    text = line.strip()
    rest = text.removeprefix(f"{flag} ") if text.startswith(f"{flag} ") else text.removesuffix(f" {flag}")
    return rest.strip() if rest != text and _is_expression(rest) else ""


def _is_expression(text: str) -> bool:
    """True for an expression, which does not begin with a word of this line: `diff -1` is none."""
    return is_expression(text) and text.split(maxsplit=1)[0] not in _WORDS


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
    name = option.removeprefix("--")
    if name in OPTIONS:
        allowed = OPTIONS[name]()
        value = value or next(iter(following), "")
        if value not in allowed:
            raise UsageError(f"%graph: {option} needs one of {', '.join(allowed)}, got '{value}'.")
        return name, value
    if name == FOCUS:
        value = value or next(iter(following), "")
        if not value:
            raise UsageError("%graph: focus needs a variable with a tensor, or the name of a node, as in %graph focus loss.")
        return name, value
    if name == OVERLAY:
        value = value or next(iter(following), "")
        if not value:
            raise UsageError("%graph: overlay needs a variable with numbers by name, or a file of them, as in %graph overlay profile.json.")
        return name, value
    if option == FULL:
        value = value or next(iter(following), IN_VIEW)
        if value.startswith("--"):
            raise UsageError(
                f"%graph: {FULL} needs a pattern of node names, such as 'layer1/*', or to be the last word: the boxes in view."
            )
        return "full", value
    if word.isidentifier() or (is_source(word) and not word.startswith("-")):
        return "name", word
    if "/" in word or "." in word:
        raise UsageError(f"{no_file(word)}.")
    raise UsageError(f"%graph: '{word}' is not understood{hint(word)}. %graph --help lists what is.")


def hint(word: str) -> str:
    """A suggestion for `word` in an error message; "" if there is none."""
    near = difflib.get_close_matches(word, [*PLACES, *RECORDINGS, *ACTIONS, DIFF, FOCUS, OVERLAY, *OPTIONS, *FLAGS, FULL], n=1)
    return f", did you mean '{near[0]}'?" if near else ""


def next_words(before: str, typed: str, variables: dict[str, Any]) -> list[str]:
    """The possible next words of a `%graph` line.

    Args:
        before: the text before the word.
        typed: its beginning.
        variables: the user's variables.
    """
    words = before.split()
    last = words[-1].removeprefix("--") if words else ""
    if last in OPTIONS:
        return beginning(typed, OPTIONS[last]())
    if last == FOCUS:
        graph = next((named for word in words if (named := graph_of(variables.get(word))) is not None), None) or get_default_graph()
        tensors = [name for name, value in variables.items() if isinstance(value, Tensor | Node | Variable) and graph_of(value) is graph]
        return list(dict.fromkeys([*beginning(typed, sorted(own_names(tensors))), *matching_names(graph, typed, outputs=False)]))
    graphs = sorted(own_names(name for name, value in variables.items() if can_be_shown(value)))
    typed_words = {word.removeprefix("--") for word in words}
    places = () if typed_words & {*PLACES} else ("dock", "inline", "close")
    recordings = () if typed_words & {*RECORDINGS} else RECORDINGS
    options = [word for word in (DIFF, *OPTIONS, FOCUS, OVERLAY) if word not in typed_words]
    flags = [flag for flag in (*FLAGS, *((FULL,) if "values" in typed_words else ())) if flag not in words]
    return beginning(typed, [*places, *options, *recordings, *(() if words else ACTIONS), *flags, *graphs])
