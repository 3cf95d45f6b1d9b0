"""Advice for Python's own errors about tensors: missing methods, NumPy functions, unknown names."""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Mapping
from typing import Any, Final

import graphcore as gc
from graphcore.graph import Node, Tensor, get_default_graph
from graphcore.tf1.variables.variables import Variable
from kernelext.errors.advice import Advice

KINDS: Final = (TypeError, AttributeError, NameError)
"""The classes of these errors."""

_METHODS: Final = {
    "T": "gc.transpose({0})",
    "all": "gc.reduce_all({0})",
    "any": "gc.reduce_any({0})",
    "astype": "gc.cast({0}, dtype)",
    "clip": "gc.clip_by_value({0}, low, high)",
    "dot": "gc.matmul({0}, other)",
    "flatten": "gc.reshape({0}, [-1])",
    "item": "session.run({0})",
    "max": "gc.reduce_max({0})",
    "mean": "gc.reduce_mean({0})",
    "min": "gc.reduce_min({0})",
    "ndim": "{0}.shape.rank",
    "prod": "gc.reduce_prod({0})",
    "ravel": "gc.reshape({0}, [-1])",
    "reshape": "gc.reshape({0}, shape)",
    "size": "gc.size({0})",
    "squeeze": "gc.squeeze({0})",
    "sum": "gc.reduce_sum({0})",
    "tolist": "session.run({0}).tolist()",
    "transpose": "gc.transpose({0})",
    "value": "session.run({0})",
}
"""The replacements of NumPy's methods and attributes."""
_FUNCTIONS: Final = {
    "concatenate": "concat",
    "dot": "matmul",
    "max": "reduce_max",
    "mean": "reduce_mean",
    "min": "reduce_min",
    "power": "pow",
    "prod": "reduce_prod",
    "sum": "reduce_sum",
}
"""NumPy's functions that have another name here."""
_OF_TENSOR: Final = (
    (
        "has no len()",
        "a list, a text or an array",
        "Use `{0}.shape[0]` for a size that is known while the graph is built, or `gc.shape({0})[0]` for a tensor with it.",
    ),
    (
        "item assignment",
        "a list or an array",
        "A tensor never changes. Make a new one of its parts with `gc.where` or `gc.concat`, or keep the value in a `gc.Variable` and use `assign`.",
    ),
    (
        "as an integer",
        "a Python number",
        "Give a number that is known while the graph is built, such as a size in `.shape`; `gc.while_loop` repeats as often as a tensor says.",
    ),
    ("not callable", "a function", "Remove the parentheses behind the tensor, or put an operator before them."),
    ("", "a Python value", "Use a function of `gc` in this line, or the value that `session.run` returns in place of the tensor."),
)
"""A part of a message about a tensor, the requirement of Python, and the suggestion."""

_ONE_NUMBER: Final = (
    "Make one number of the array: a loss is averaged over the rows by `gc.reduce_mean(...)` in the graph; in Python, `value.mean()`."
)


def of_python_error(error: BaseException, variables: Mapping[str, Any], line: str) -> Advice:
    """The advice for an error of Python's own; none if it has nothing to do with tensors.

    Args:
        error: the error.
        variables: the user's names.
        line: the user's line of code that failed.
    """
    if isinstance(error, NameError):
        return _unknown_name(error.name or "", variables)
    if isinstance(error, AttributeError):
        return _missing_attribute(error, variables, line)
    return _type_error(str(error), variables, line) if isinstance(error, TypeError) else Advice()


def _type_error(text: str, variables: Mapping[str, Any], line: str) -> Advice:
    if "NoneType" in text:
        return _none(variables, line)
    if "numpy.ndarray.__format__" in text:
        return Advice(_ONE_NUMBER, "one number", "an array")
    if re.search(r"\b(Tensor|Variable)\b", text) is None:
        return _wrong_call(text, line)
    name, node = _subject(variables, line)
    came = f"the tensor '{node.name}'" if node is not None else "a tensor"
    if "ufunc" in text:
        return Advice(_in_place_of_numpy(line), "values: numbers or arrays", came, node)
    for part, required, suggestion in _OF_TENSOR:
        if part in text:
            return Advice(suggestion.format(name or "y"), required, came, node)
    return Advice()


def _in_place_of_numpy(line: str) -> str:
    match = re.search(r"\bnp\.(\w+)\(", line)
    function = "" if match is None else _FUNCTIONS.get(match[1], match[1])
    if match is not None and hasattr(gc, function):
        return f"Write `gc.{function}` in place of `np.{match[1]}`: it adds a node, and a session computes the value."
    return "Use a function of `gc` in place of NumPy's: it adds a node, and a session computes the value."


def _subject(variables: Mapping[str, Any], line: str) -> tuple[str, Node | None]:
    """The first variable in a line that is bound to a tensor, and its node."""
    for word in re.findall(r"[A-Za-z_]\w*", line):
        value = variables.get(word)
        if isinstance(value, Tensor):
            return word, value.node
        if isinstance(value, Variable):
            return word, value.op
    return "", None


def _missing_attribute(error: AttributeError, variables: Mapping[str, Any], line: str) -> Advice:
    owner, name = error.obj, error.name or ""
    if owner is None:
        return _none(variables, line)
    if not type(owner).__module__.startswith("graphcore."):
        return Advice()
    node = owner.node if isinstance(owner, Tensor) else owner.op if isinstance(owner, Variable) else None
    near = difflib.get_close_matches(name, [attr for attr in dir(owner) if not attr.startswith("_")], 1, 0.75)
    required, came = f"an attribute of a {type(owner).__name__}", f"'{name}'"
    if node is not None:
        owner_name = next((f"\u00ab{owner.name}\u00bb" for word, value in variables.items() if value is owner and word[0] != "_"), "...")
        if name in _METHODS:
            return Advice(f"Write `{_METHODS[name].format(owner_name)}`.", required, came, node)
        if hasattr(gc, name) and not near:
            return Advice(f"Write `gc.{name}({owner_name})`: functions of tensors belong to `gc`.", required, came, node)
    text = f"Did you mean `.{near[0]}`?" if near else f"`.<Tab>` behind the {type(owner).__name__} lists what it has."
    return Advice(text, required, came, node)


def _none(variables: Mapping[str, Any], line: str) -> Advice:
    """A gradient that is None: a variable in the line is None, and a cell has set it to a gradient."""
    for name in re.findall(r"[A-Za-z_]\w*", line):
        call = _gradient_call(name, variables) if name in variables and variables[name] is None else None
        if call is not None:
            return _cut_gradient(name, *call)
    return Advice()


def _gradient_call(name: str, variables: Mapping[str, Any]) -> tuple[Tensor, Tensor | Variable] | None:
    """The y and the x of the last call of `gradients` in a cell whose result has this name."""
    for code in reversed([*variables.get("In", ())]):
        match = re.search(rf"^[ (\[]*([\w, ]*\b{name}\b[\w, ]*)[)\] ]*=.*gradients\((\w+), *\[?([\w, ]+)\]?", code, re.MULTILINE)
        if match is None:
            continue
        targets, xs = [[part.strip() for part in text.split(",") if part.strip()] for text in (match[1], match[3])]
        y, x = variables.get(match[2]), variables.get(xs[targets.index(name)]) if len(xs) == len(targets) else None
        if isinstance(y, Tensor) and isinstance(x, Tensor | Variable):
            return y, x
    return None


def _cut_gradient(name: str, y: Tensor, x: Tensor | Variable) -> Advice:
    cuts = gc.explain_gradient(y, x).cuts
    node = y.graph.find(cuts[0].node) if cuts and cuts[0].node else None
    came = f"`{name}` = None, the gradient of '{y.name}' by '{x.name}'"
    if node is None:
        text = f"Use \u00ab{x.name}\u00bb in the computation of \u00ab{y.name}\u00bb, which does not depend on it; or leave it out of the training."
        return Advice(text, "a gradient", came, y.node)
    text = f"Compute \u00ab{y.name}\u00bb without '{node.name}' (op {node.op}): no gradient passes it. `%why grad {y.name} {x.name}` shows the path."
    return Advice(text, "a gradient", came, node)


def _wrong_call(text: str, line: str) -> Advice:
    """The signature of one of our functions that was called with the wrong arguments."""
    match = re.match(r"(?:\w+\.)*(\w+)\(\) (missing .*|takes .*|got .*)", text)
    written = None if match is None else re.search(rf"\bgc\.((?:\w+\.)*{match[1]})\(", line)
    if match is None or written is None:
        return Advice()
    function: Any = gc
    for part in written[1].split("."):
        function = getattr(function, part, None)
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return Advice(f"`gc.{written[1]}?` shows its arguments.")
    needed = ", ".join(
        [
            parameter.name
            for parameter in parameters
            if parameter.default is parameter.empty and parameter.kind is parameter.POSITIONAL_OR_KEYWORD
        ]
    )
    return Advice(
        f"Call it as `gc.{written[1]}({needed})`; `gc.{written[1]}?` shows all its arguments.", f"the arguments {needed}", match[2]
    )


def _unknown_name(name: str, variables: Mapping[str, Any]) -> Advice:
    graph = get_default_graph()
    if not name or not any(True for _ in graph.op_nodes()):
        return Advice()
    required, came = "a variable that a cell has defined", f"'{name}'"
    own = [variable for variable, value in variables.items() if not variable.startswith("_") and not inspect.ismodule(value)]
    near = difflib.get_close_matches(name, own, 1, 0.75)
    if near:
        return Advice(f"Did you mean `{near[0]}`?", required, came)
    node = graph.find(name)
    if node is not None and node.outputs:
        text = f'The graph has a node of this name: `{name} = gc.get_default_graph()["{name}:0"]` gives its tensor.'
        return Advice(text, required, came, node)
    return Advice(f"Run the cell that defines `{name}` first. If there is none yet, write it above this one.", required, came)
