"""The equations of jaxprs as nodes."""

from __future__ import annotations

import linecache
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any, Final

import numpy as np

from graphcore.frontends.foreign import (
    Attr,
    ForeignFunction,
    ForeignGraph,
    ForeignNode,
    InputRef,
    ModuleCall,
    Port,
    Size,
    SourceFrame,
    WeightRef,
)
from graphcore.frontends.jax_reader.backward import GRADIENTS, Pairing, is_backward, without_words
from graphcore.frontends.jax_reader.equations import NAMED, called_name, opened
from graphcore.frontends.jax_reader.places import is_of_user
from graphcore.frontends.jax_reader.shardings import arguments_of, joined, mesh_words, results_of, words_of_value
from graphcore.frontends.runners.jax_run import JaxRunner, Places
from graphcore.frontends.unique_names import UniqueNames
from graphcore.source import SourceLocation

_MAX_TEXT: Final = 500
_MAX_FRAMES: Final = 20

LEAKED: Final = "jax.leaked_tracer"
"""The op of values that an earlier trace has left behind."""
_LEAKED_DOC: Final = "A tracer that an earlier trace has left behind; its line is the one that made it."
_LEAKED_ERROR: Final = (
    "UnexpectedTracerError: a tracer has left its function: it was made{0} and kept in a global, an attribute or a list.\n"
    "Required: values of the trace that runs now. Came: a tracer of one that has ended.\n"
    "To do: Return the value from the function instead of keeping it."
)


class JaxprReader:
    """The reader of one program, with the functions that its equations call.

    Args:
        arrays: names for constants of the program, by the ids of their values.
    """

    def __init__(self, arrays: Mapping[int, str] | None = None) -> None:
        self.functions: dict[str, ForeignFunction] = {}
        self.arrays = arrays or {}
        self._keys: dict[int, str] = {}
        self._kept: list[Any] = []
        self._frames: dict[int, tuple[SourceFrame, ...]] = {}
        self.places = Places()

    def read(self, value: Any, name: str, producer: str, arguments: Sequence[Any] = ()) -> ForeignGraph:
        """The graph of a jaxpr. A program that only calls one function is shown as that function.

        Args:
            value: the jaxpr.
            name: its name.
            producer: the version of JAX in words.
            arguments: the values of its inputs in the call of which it was traced, if any.
        """
        jaxpr, consts = opened(value)
        names = arg_names(jaxpr)
        results = result_names(jaxpr)
        sharded = [words_of_value(argument) for argument in arguments]
        returned: list[str] = []
        while len(jaxpr.eqns) == 1 and not consts:
            eqn = jaxpr.eqns[0]
            inner = eqn.params.get("jaxpr") if eqn.primitive.name in {"jit", "pjit"} else None
            if inner is None or list(eqn.invars) != list(jaxpr.invars) or list(eqn.outvars) != list(jaxpr.outvars):
                break
            name = name or str(eqn.params.get("name", ""))
            sharded, returned = arguments_of(eqn) or sharded, results_of(eqn)
            jaxpr, consts = opened(inner)
            names = arg_names(jaxpr) or names
        main = self._function(jaxpr, consts, name or "main", names, results, sharded)
        _mark_results(main, returned)
        self.mark_leaks(main, consts)
        runner = JaxRunner(jaxpr, consts, self.places, arguments)
        effects = sorted([str(effect)[:100] for effect in getattr(jaxpr, "effects", ())])
        notes = [f"The program has effects: {', '.join(effects[:9])}."] if effects else []
        return ForeignGraph("JAX program", main, producer=producer, name=name, functions=self.functions, notes=notes, runner=lambda: runner)

    def _function(
        self, jaxpr: Any, consts: Sequence[Any], name: str, names: Sequence[str], results: Sequence[str], shardings: Sequence[str]
    ) -> ForeignFunction:
        body, inputs = self.body(jaxpr, consts, names, shardings)
        outputs = tuple([body.ref(var) for var in jaxpr.outvars])
        words = tuple(results) if len(results) == len(outputs) else ()
        return ForeignFunction(name, tuple(inputs), outputs, words, body.nodes)

    def body(self, jaxpr: Any, consts: Sequence[Any], names: Sequence[str], shardings: Sequence[str] = ()) -> tuple[Body, list[Port]]:
        """The nodes of a jaxpr, and its arguments."""
        body = Body(self)
        for number, var in enumerate(jaxpr.constvars):
            body.constant(var, consts[number] if number < len(consts) else None, number)
        said = shardings if len(shardings) == len(jaxpr.invars) else [""] * len(jaxpr.invars)
        inputs = [body.input(var, names[n] if n < len(names) else f"arg{n}", said[n]) for n, var in enumerate(jaxpr.invars)]
        for eqn in jaxpr.eqns:
            body.equation(eqn)
        return body, inputs

    def called(self, value: Any, name: str, shardings: Sequence[str] = (), results: Sequence[str] = ()) -> str:
        """The key of the function for a jaxpr in the params of an equation.

        Its arguments and results may have shardings.
        """
        jaxpr, consts = opened(value)
        key = self._keys.get(id(jaxpr))
        if key is None:
            number = len(self._keys)
            key = self._keys[id(jaxpr)] = f"{name}_{number}"
            self._kept.append(jaxpr)  # while it is kept, its id is no other's
            self.functions[key] = self._function(jaxpr, consts, name, arg_names(jaxpr), (), shardings)
            _mark_results(self.functions[key], results)
        return key

    def mark_leaks(self, main: ForeignFunction, consts: Sequence[Any]) -> None:
        """Mark what takes a constant of the whole program that is a tracer: the trace that made it has ended."""
        leaked = {}
        for place, value in enumerate(consts):
            if hasattr(value, "_trace"):
                node = main.nodes[place]
                frames = self.frames(getattr(getattr(value, "_line_info", None), "traceback", None))
                main.nodes[place] = replace(node, op=LEAKED, frames=frames, doc=_LEAKED_DOC)
                leaked[node.name] = f" in {SourceLocation(frames[-1].file, frames[-1].line).where}" if frames else ""
        for place, node in enumerate(main.nodes if leaked else ()):
            where = next((leaked[ref[0]] for ref in node.inputs if ref is not None and ref[0] in leaked), None)
            if where is not None:
                main.nodes[place] = replace(node, error=_LEAKED_ERROR.format(where))

    def keep(self, value: Any) -> None:
        """Keep an object as long as this reader, so that its id is no other's."""
        self._kept.append(value)

    def frames(self, traceback: Any) -> tuple[SourceFrame, ...]:
        """The user's lines in a traceback, the innermost last."""
        if traceback is None:
            return ()
        cached = self._frames.get(id(traceback))
        if cached is None:
            frames = []
            for frame in traceback.frames:
                file = str(frame.file_name)
                if is_of_user(file):
                    line = getattr(frame, "line_num", None) or getattr(frame, "start_line", 0)
                    frames.append(
                        SourceFrame(file, int(line or 0), linecache.getline(file, int(line or 0)).strip(), str(frame.function_name))
                    )
            cached = self._frames[id(traceback)] = tuple(reversed(frames[:_MAX_FRAMES]))
            self._kept.append(traceback)
        return cached


class Body:
    """The nodes of one jaxpr."""

    def __init__(self, reader: JaxprReader) -> None:
        self.nodes: list[ForeignNode] = []
        self._reader = reader
        self._refs: dict[int, InputRef] = {}
        self._literals: dict[tuple[str, str], InputRef] = {}
        self._names = UniqueNames()
        self._pairing = Pairing()

    def input(self, var: Any, name: str, sharding: str = "") -> Port:
        """Add an argument."""
        port = _port(var.aval, name)
        unique = self.unique(name)
        device = sharding or words_of_value(var.aval)
        self.nodes.append(ForeignNode(unique, "jax.argument", outputs=(port,), kind="input", device=device))
        self._refs[id(var)] = (unique, 0)
        self._reader.places.note(var, unique)
        return port

    def constant(self, var: Any, value: Any, number: int) -> None:
        """Add a constant, whose value may be unknown."""
        port = _port(var.aval)
        name = self.unique(self._reader.arrays.get(id(value), f"const_{number}"))
        shape = tuple([size for size in port.shape or () if isinstance(size, int)])
        is_held = value is not None and not hasattr(value, "_trace")  # the value of a tracer is not there
        loading = partial(np.asarray, value) if is_held else None
        weight = WeightRef(port.dtype, shape, int(getattr(value, "nbytes", -1)) if is_held else -1, loading)
        self.nodes.append(ForeignNode(name, "jax.constant", outputs=(port,), kind="constant", weight=weight))
        self._refs[id(var)] = (name, 0)
        self._reader.places.note(var, name)

    def ref(self, var: Any) -> InputRef:
        """The output for a variable, or for a literal, which becomes a constant."""
        if not hasattr(var, "val"):
            return self._refs[id(var)]
        port = _port(var.aval)
        text = str(var.val)[:_MAX_TEXT]
        literal = self._literals.get((text, port.dtype))
        if literal is None:
            name = self.unique("literal")
            value = attr_of(var.val) if isinstance(var.val, int | float) else text
            self.nodes.append(ForeignNode(name, "jax.literal", outputs=(port,), kind="constant", attrs={"value": value}))
            literal = self._literals[text, port.dtype] = (name, 0)
        return literal

    def given(self, value: Any, variable: Any) -> InputRef:
        """The output for a value that is given to a call, with its variable if it has one in this program."""
        if variable is not None and (hasattr(variable, "val") or id(variable) in self._refs):
            return self.ref(variable)
        ref = self._refs.get(id(value))
        if ref is not None:
            return ref
        if not hasattr(value, "_trace"):
            variable = SimpleNamespace(aval=value)
            self.constant(variable, value, len(self._refs))
            self._reader.keep(variable)
            name = self.nodes[-1].name
        else:
            name = self.unique("leaked_tracer")
            line = getattr(value, "_line_info", None)
            frames = self._reader.frames(getattr(line, "traceback", None))
            port = _port(value.aval)
            self.nodes.append(ForeignNode(name, LEAKED, outputs=(port,), kind="constant", frames=frames, doc=_LEAKED_DOC))
        self._refs[id(value)] = (name, 0)
        self._reader.keep(value)
        return name, 0

    def equation(self, eqn: Any) -> None:
        """Add an equation."""
        primitive = str(eqn.primitive.name)
        stack = str(eqn.source_info.name_stack)
        modules, owner = scopes_of(stack), ""
        if is_backward(stack) and self._pairing.has_any:
            modules, owner = (*GRADIENTS, *modules), self._pairing.owner(eqn)
        inputs = tuple([self.ref(var) for var in eqn.invars])
        bodies, arguments = self._bodies(primitive, eqn)
        attrs = {
            key: attr_of(value)
            for key, value in eqn.params.items()
            if value is not None and not _jaxprs(value) and type(value).__name__ != "WrappedFun"
        }
        title = called_name(eqn) if bodies and primitive in NAMED else primitive
        name = self.unique("/".join([*[module.path for module in modules], title]) if modules else title)
        effects = ", ".join(sorted([str(effect)[:100] for effect in eqn.effects])[:9])
        self.nodes.append(
            ForeignNode(
                name,
                f"jax.{primitive}",
                inputs,
                tuple([_port(var.aval) for var in eqn.outvars]),
                attrs=attrs,
                modules=modules,
                frames=self._reader.frames(eqn.source_info.traceback),
                device=joined(results_of(eqn)),
                bodies=bodies,
                arguments=arguments,
                doc=f"Effects: {effects}." if effects else "",
                differentiates=owner,
                part="" if not owner else "sum" if primitive == "add_any" else primitive,
            )
        )
        if not is_backward(stack):
            self._pairing.add(name, eqn)
        self._reader.places.note(eqn, name, bodies)
        for number, var in enumerate(eqn.outvars):
            self._refs[id(var)] = (name, number)

    def _bodies(self, primitive: str, eqn: Any) -> tuple[dict[str, str], dict[str, tuple[int, ...]]]:
        """The functions that an equation calls, by their roles, and the inputs that are their arguments."""
        called, params = self._reader.called, eqn.params
        if primitive == "while":
            conds, consts = int(params["cond_nconsts"]), int(params["body_nconsts"])
            loop = {"cond": called(params["cond_jaxpr"], "cond"), "body": called(params["body_jaxpr"], "body")}
            carried = range(conds + consts, conds + len(opened(params["body_jaxpr"])[0].invars))
            return loop, {"cond": (*range(conds), *carried), "body": (*range(conds, conds + consts), *carried)}
        if primitive == "cond" and len(params["branches"]) == 2:
            return {"then": called(params["branches"][1], "true"), "else": called(params["branches"][0], "false")}, {}
        bodies: dict[str, str] = {}
        shardings = arguments_of(eqn)
        results = results_of(eqn) if shardings else []
        for key, value in params.items():
            for number, jaxpr in enumerate(_jaxprs(value)):
                role = "body" if primitive == "scan" else key if not isinstance(value, tuple | list) else f"branch_{number}"
                bodies[role] = called(jaxpr, called_name(eqn), shardings, results)
        return bodies, {}

    def unique(self, name: str) -> str:
        """The name, or the first free one like it."""
        return self._names.unique(name or "value")


def _mark_results(function: ForeignFunction, shardings: Sequence[str]) -> None:
    """Mark the nodes that make results with the shardings that are asked of these."""
    asked = {ref[0]: words for ref, words in zip(function.outputs, shardings, strict=False) if ref is not None and words}
    function.nodes[:] = [
        replace(node, device=asked[node.name]) if node.name in asked and not node.device else node for node in function.nodes
    ]


def arg_names(jaxpr: Any) -> list[str]:
    """The names of the arguments, as far as the program has them."""
    names = getattr(getattr(jaxpr, "debug_info", None), "arg_names", None) or ()
    return [_plain(str(name)) for name in names] if len(names) == len(jaxpr.invars) and all(names) else []


def _plain(name: str) -> str:
    """The name of a variable of NNX as users write it: `model.kernel` for `model['kernel'].value`."""
    if not name.endswith(".value") or "flax.nnx" not in sys.modules:
        return name
    return re.sub(r"\['(\w+)'\]", r".\1", name.removesuffix(".value"))


def result_names(jaxpr: Any) -> list[str]:
    """The names of the results, as far as the program has them."""
    paths = getattr(getattr(jaxpr, "debug_info", None), "result_paths", None)
    if not isinstance(paths, tuple | list):
        return []
    return [re.sub(r"\W+", "_", str(path)).strip("_") or "result" for path in paths]


def scopes_of(stack: str) -> tuple[ModuleCall, ...]:
    """The scopes of a name stack, without the words of differentiation."""
    parts, depth, start = [], 0, 0
    for place, letter in enumerate(stack):
        depth += (letter == "(") - (letter == ")")
        if letter == "/" and depth == 0:
            parts.append(stack[start:place])
            start = place + 1
    parts.append(stack[start:])
    return tuple([ModuleCall(part) for part in map(without_words, parts) if part])


def _jaxprs(value: Any) -> list[Any]:
    """The jaxprs in the value of a param."""
    if isinstance(value, tuple | list):
        return list(value) if value and all(_jaxprs(item) for item in value) else []
    return [value] if type(value).__name__ in {"Jaxpr", "ClosedJaxpr"} and hasattr(opened(value)[0], "eqns") else []


def _port(aval: Any, name: str = "") -> Port:
    shape = getattr(aval, "shape", None)
    sizes: tuple[Size, ...] | None = None if shape is None else tuple([_size(size) for size in shape])
    notes = ["weak type"] if getattr(aval, "weak_type", False) else []
    words = words_of_value(aval)
    if words:
        notes.append(f"{words} over {mesh_words(aval.sharding)}")
    if shape is None:
        notes.append(str(aval)[:_MAX_TEXT])
    return Port(name, str(getattr(aval, "dtype", "")), sizes, ", ".join(notes))


def _size(size: Any) -> Size:
    try:
        return int(size)
    except Exception:  # noqa: BLE001 - symbolic sizes raise errors of JAX's own classes
        return str(size)[:_MAX_TEXT]


def attr_of(value: Any, depth: int = 0) -> Attr:
    """The value of a param as an attr; what is no plain value is written as text."""
    if isinstance(value, str | bool):
        return value
    if isinstance(value, int | float):
        return int(value) if isinstance(value, int) else float(value)  # JAX's literals are of classes derived from these
    if isinstance(value, tuple | list) and depth < 6 and not hasattr(value, "_fields"):
        return [attr_of(item, depth + 1) for item in value[:1000]]
    if isinstance(value, np.dtype):
        return str(value)
    if isinstance(value, type):
        return value.__name__
    if callable(value):
        return str(getattr(value, "__name__", type(value).__name__))
    return str(value)[:_MAX_TEXT]
