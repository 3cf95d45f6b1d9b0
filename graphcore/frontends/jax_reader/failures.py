"""Errors raised while JAX traces: the equations until then, and the call that failed.

The frames of an error's traceback hold the traces that were being made, with their equations, and the arguments of the calls in between. This
is the one place that reads objects inside JAX; what an other version of JAX does not have is left out.
"""

from __future__ import annotations

import ast
import linecache
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from types import CodeType, FrameType, SimpleNamespace, TracebackType
from typing import Any, Final

from graphcore.frontends.foreign import ModuleCall, SourceFrame
from graphcore.frontends.jax_reader.places import is_of_user

_MAX_FRAMES: Final = 20
_MAX_UNWRAPPED: Final = 20
_VARARGS, _VARKEYWORDS = 4, 8
_FUNCTIONS: Final = (
    "/jax/_src/numpy/",
    "/jax/_src/lax/",
    "/jax/_src/nn/",
    "/jax/_src/random.py",
    "/jax/_src/tree_util.py",
    "/jax/_src/image/",
)
_LAYERS: Final = ("/flax/linen/", "/flax/nnx/nn/", "/equinox/nn/", "/haiku/_src/")
_NOT_LAYERS: Final = ("/flax/linen/module.py", "/flax/linen/transforms.py", "/haiku/_src/module.py")
_PLUMBING: Final = frozenset(["op", "deferring_binary_op", "wrapper", "wrapped", "fn", "fun", "f_wrapped", "method", "meth", "call"])
_RENAMED: Final = {
    "cache_miss": "jit",
    "vmap_f": "vmap",
    "grad_f": "grad",
    "value_and_grad_f": "value_and_grad",
    "rewriting_take": "getitem",
    "rewriting_scatter": "at",
}
_CALLERS: Final = ("jax_reader/calls.py", "jax_reader/differentiated.py")


@dataclass(slots=True)
class Level:
    """A function that was being traced when an error came.

    Attributes:
        trace: the trace, with its equations.
        frames: the user's lines in it, the innermost last.
        called: the name of the library's function that its last line called, "" if there is none.
        operands: tracers and arrays that this function was given.
        modules: the modules and scopes around the call.
    """

    trace: Any
    frames: list[SourceFrame] = field(default_factory=list)
    called: str = ""
    operands: list[Any] = field(default_factory=list)
    modules: list[ModuleCall] = field(default_factory=list)

    @property
    def program(self) -> Any:
        """The equations so far, with the attributes of a jaxpr."""
        frame = self.trace.frame
        constants = dict(frame.constvar_to_val)
        equations = list(frame.get_eqns())
        bound = {*map(id, constants), *map(id, frame.invars)}
        for equation in equations:
            lost = [var for var in equation.invars if not hasattr(var, "val") and id(var) not in bound]
            constants.update(dict.fromkeys(lost))  # constants that nothing else holds any more
            bound.update(map(id, [*lost, *equation.outvars]))
        return SimpleNamespace(
            constvars=list(constants),
            consts=list(constants.values()),
            invars=list(frame.invars),
            outvars=[],
            eqns=equations,
            effects=(),
            debug_info=frame.debug_info,
        )

    @property
    def name(self) -> str:
        """The name of the function."""
        return str(getattr(self.trace.frame.debug_info, "func_name", "") or "function")

    def variable(self, tracer: Any) -> Any:
        """The variable of this trace that a value stands for, None if it is none of this trace."""
        for _ in range(_MAX_UNWRAPPED):
            if getattr(tracer, "_trace", None) is self.trace:
                return getattr(tracer, "val", None)
            inner = getattr(tracer, "primal", None)
            if inner is None and type(tracer).__name__ == "BatchTracer":
                inner = tracer.val
            if inner is None:
                return None
            tracer = inner
        return None


@dataclass(slots=True)
class Failure:
    """An error raised while functions were traced.

    Attributes:
        error: the error.
        levels: the functions, the innermost last.
        primitive: the primitive that refused its operands, "" if the error came before one.
        params: its params.
    """

    error: Exception
    levels: list[Level] = field(default_factory=list)
    primitive: str = ""
    params: dict[str, Any] = field(default_factory=dict)


def whole_tracebacks() -> AbstractContextManager[Any]:
    """Within it JAX leaves tracebacks as they are, in this thread."""
    state = getattr(sys.modules.get("jax._src.config"), "traceback_filtering", None)
    return state("off") if callable(state) else nullcontext()


def failure_of(error: Exception) -> Failure:
    """The state of traces when an error came; no levels if nothing was traced."""
    failure = Failure(error)
    levels, below, opened = failure.levels, list[FrameType](), None
    for frame, line in _frames_of(error.__traceback__):
        code = frame.f_code
        trace = frame.f_locals.get("trace") if code.co_name.startswith("trace_to_jaxpr") else None
        if hasattr(getattr(trace, "frame", None), "tracing_eqns"):
            opened = trace  # of the user, if a line of the user follows; else of a function of JAX that is a program by itself
            if not levels:
                levels.append(Level(trace))
        elif not levels or code.co_filename.endswith(_CALLERS):
            continue
        elif is_of_user(code.co_filename):
            if opened is not None and opened is not levels[-1].trace:
                _note_call(levels[-1], below)
                levels.append(Level(opened))
            levels[-1].frames.append(_source_frame(frame, line))
            levels[-1].modules += [*_module_of(frame), *_scopes_at(code, line)]
            below = [frame]
        else:
            below.append(frame)
            levels[-1].modules += _module_of(frame)
            _note_primitive(failure, frame)
    if levels:
        _note_call(levels[-1], below)
    for level in levels:
        level.frames = level.frames[-_MAX_FRAMES:]
        level.modules = list(dict.fromkeys(level.modules))
    return failure


def leaves_of(value: Any, depth: int = 0) -> Iterator[Any]:
    """The arrays and tracers in a value: itself, or those in lists and tables."""
    if hasattr(value, "shape") and hasattr(value, "dtype") and hasattr(value, "__array__"):
        yield value
    elif depth < _MAX_FRAMES and isinstance(value, tuple | list):
        for item in value:
            yield from leaves_of(item, depth + 1)
    elif depth < _MAX_FRAMES and isinstance(value, dict):
        for item in value.values():
            yield from leaves_of(item, depth + 1)


def _frames_of(traceback: TracebackType | None) -> Iterator[tuple[FrameType, int]]:
    while traceback is not None:
        yield traceback.tb_frame, traceback.tb_lineno
        traceback = traceback.tb_next


def _note_call(level: Level, frames: list[FrameType]) -> None:
    """Note the call that the last line of the user made: frames are that line's and those below.

    Its operands are those of the frame with the most of them; of several such frames the innermost, which has them converted.
    """
    is_line = bool(level.frames) and bool(frames) and is_of_user(frames[0].f_code.co_filename)
    below = frames[1:] if is_line else frames
    level.called = _title(below)
    first = _operands((below or frames)[0]) if frames else []
    for frame in below or frames:
        operands = list({id(value): value for value in _operands(frame)}.values())
        is_own = all(level.variable(value) is not None or not hasattr(value, "_trace") for value in operands)
        if len(operands) >= len(level.operands) and (is_own or not level.operands):
            level.operands = operands
    if set(map(id, first)) == set(map(id, level.operands)):
        level.operands = first  # which takes a value twice where the user does


def _operands(frame: FrameType) -> list[Any]:
    code = frame.f_code
    count = code.co_argcount + code.co_kwonlyargcount
    count += bool(code.co_flags & _VARARGS) + bool(code.co_flags & _VARKEYWORDS)
    return [leaf for name in code.co_varnames[:count] for leaf in leaves_of(frame.f_locals.get(name))]


def _title(frames: list[FrameType]) -> str:
    """The name under which users know what they have called."""
    names = [(frame.f_code.co_filename, frame.f_code.co_name) for frame in frames]
    layers = [frame for frame in frames if _is_in(frame.f_code.co_filename, _LAYERS) and not _is_in(frame.f_code.co_filename, _NOT_LAYERS)]
    for frame in reversed(layers):
        owner = frame.f_locals.get("self")
        if owner is not None:
            return type(owner).__name__
    for file, name in names:
        if _is_in(file, _FUNCTIONS) and not name.startswith("_") and name not in _PLUMBING:
            return _RENAMED.get(name, name)
    for _, name in names:
        if name in _RENAMED:
            return _RENAMED[name]
    own = [name for _, name in names if name not in _PLUMBING and not name.startswith("reraise_")]
    return own[0].strip("_") if own else ""


def _is_in(file: str, parts: tuple[str, ...]) -> bool:
    return any(part in file for part in parts)


def _note_primitive(failure: Failure, frame: FrameType) -> None:
    values = frame.f_locals
    primitive: Any = values.get("primitive")
    params = values.get("params")
    if frame.f_code.co_name in {"process_primitive", "default_process_primitive"} and hasattr(primitive, "name"):
        failure.primitive = str(primitive.name)
        failure.params = dict(params) if isinstance(params, dict) else {}


def _module_of(frame: FrameType) -> list[ModuleCall]:
    """The module of Flax's Linen that runs in a frame: it is a scope of equations, too."""
    owner = frame.f_locals.get("self") if frame.f_code.co_name == "__call__" else None
    if not any(kind.__module__ == "flax.linen.module" for kind in type(owner).__mro__):
        return []
    name, kind = getattr(owner, "name", None), type(owner).__name__
    return [ModuleCall(name if isinstance(name, str) else kind, kind)]


def _scopes_at(code: CodeType, line: int) -> list[ModuleCall]:
    """The named scopes around a line: a scope has ended when its error arrives, but its text is there."""
    text = "".join(linecache.getlines(code.co_filename))
    if "named_scope" not in text:
        return []
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    blocks = [
        part
        for part in ast.walk(tree)
        if isinstance(part, ast.With) and code.co_firstlineno <= part.lineno <= line <= (part.end_lineno or 0)
    ]
    names = [_scope_name(item.context_expr) for block in sorted(blocks, key=lambda block: block.lineno) for item in block.items]
    return [ModuleCall(name) for name in names if name]


def _scope_name(call: ast.expr) -> str:
    """The name in `jax.named_scope("name")`, "" for another expression."""
    if not isinstance(call, ast.Call) or not ast.unparse(call.func).endswith("named_scope"):
        return ""
    name = call.args[0] if call.args else None
    return name.value if isinstance(name, ast.Constant) and isinstance(name.value, str) else ""


def _source_frame(frame: FrameType, line: int) -> SourceFrame:
    file = frame.f_code.co_filename
    return SourceFrame(file, line, linecache.getline(file, line).strip(), frame.f_code.co_name)
