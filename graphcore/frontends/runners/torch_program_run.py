"""Runs of exported programs by PyTorch, node by node."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from graphcore.errors import FailedPreconditionError, InvalidArgumentError

if TYPE_CHECKING:
    from graphcore.frontends.foreign import ForeignFunction
    from graphcore.runtime.runners import Watch

_STATES: Final = frozenset({"PARAMETER", "BUFFER", "CONSTANT_TENSOR", "CUSTOM_OBJ"})
_OWN: Final = frozenset({"USER_OUTPUT", "LOSS_OUTPUT"})


class ProgramRunner:
    """Runs one exported program without gradients. The results are those of `program.module()`, bit for bit.

    The program is run as a function of its state: its buffers stay as they are.

    Args:
        load: gives the `torch.export.ExportedProgram`.
        main: what the reader has made of it.
    """

    def __init__(self, load: Callable[[], Any], main: ForeignFunction) -> None:
        self._load = load
        self._main = main
        self._program: Any = None

    def run(self, feeds: Mapping[str, object], watch: Watch | None = None) -> list[object]:
        """Run the program once; see `Runner`.

        Raises:
            FailedPreconditionError: PyTorch is missing.
            InvalidArgumentError: an input has no value.
        """
        if self._program is None:
            self._program = self._load()
        program, torch = self._program, _torch()
        changes = _changes_in_place(program)
        args = list(self._arguments(program, torch, feeds, watch, changes))
        op_names = frozenset(node.name for node in self._main.nodes if node.kind == "op")
        with torch.no_grad():
            outputs = _interpreter(torch, program.graph_module, op_names, watch).run(*args)
        specs = program.graph_signature.output_specs
        results = [value for value, spec in zip(outputs, specs, strict=True) if not hasattr(spec.arg, "value")]
        return [value for value in results if value is not None]

    def _arguments(self, program: Any, torch: Any, feeds: Mapping[str, object], watch: Watch | None, changes: bool) -> Iterator[Any]:
        """The values of all placeholders, in order."""
        inputs = [node.name for node in self._main.nodes if node.kind == "input"]
        names = {port.name: node.name for node in self._main.nodes if node.kind != "op" for port in node.outputs}
        missing = [name for name in inputs if name not in feeds]
        if missing:
            raise InvalidArgumentError(f"Required values for the inputs {', '.join(inputs)}; got none for {', '.join(missing)}")
        metas = {node.name: node.meta.get("val") for node in program.graph_module.graph.nodes if node.op == "placeholder"}
        for spec in program.graph_signature.input_specs:
            kind, argument = spec.kind.name, spec.arg.name
            if kind in _STATES:
                held = program.state_dict.get(spec.target)
                value = program.constants.get(spec.target) if held is None else held
                if isinstance(value, torch.Tensor) and (changes or kind == "BUFFER"):
                    value = value.detach().clone()
            elif hasattr(spec.arg, "value"):
                yield spec.arg.value
                continue
            else:
                value = _converted(torch, feeds[names.get(argument, argument)], metas.get(argument), argument)
                if changes and isinstance(value, torch.Tensor):
                    value = value.clone()
            if watch is not None and argument in names:
                watch.give(names[argument], [value])
            yield value


def loaded(path: str) -> Any:
    """The program of a file, read by PyTorch itself.

    Raises:
        FailedPreconditionError: PyTorch is missing.
        InvalidArgumentError: it refuses the file.
    """
    try:
        import torch.export  # noqa: PLC0415 - only a run needs it
    except ImportError:
        raise FailedPreconditionError(
            "This is a PyTorch exported program, which runs in PyTorch, and the library `torch` is not installed: pip install torch"
        ) from None
    try:
        return torch.export.load(path)
    except Exception as error:
        raise InvalidArgumentError(f"PyTorch cannot load the program: {type(error).__name__}: {str(error)[:500]}") from error


def _torch() -> Any:
    return sys.modules["torch"]


def _changes_in_place(program: Any) -> bool:
    """True iff an op of the program changes a tensor."""
    for node in program.graph_module.graph.nodes:
        if node.op == "call_function":
            schema = getattr(node.target, "_schema", None)
            if schema is None or schema.is_mutable:
                return True
    return False


def _interpreter(torch: Any, module: Any, op_names: frozenset[str], watch: Watch | None) -> Any:
    """The interpreter of a graph: it runs nodes in order, and releases values after their last use."""
    plain = torch.fx.Interpreter

    def run_node(self: Any, node: Any) -> Any:
        if watch is None or node.op not in {"call_function", "call_method", "call_module"} or node.name not in op_names:
            return plain.run_node(self, node)
        watch.begin(node.name)
        result = plain.run_node(self, node)
        watch.end(node.name, list(result) if isinstance(result, tuple | list) else [result])
        return result

    made = type("WatchedInterpreter", (plain,), {"run_node": run_node})(module)
    made.extra_traceback = False
    return made


def _converted(torch: Any, value: Any, meta: Any, name: str) -> Any:
    """A fed value as the program takes it.

    Raises:
        InvalidArgumentError: it is no tensor or number.
    """
    if isinstance(value, torch.Tensor):
        return value
    if not hasattr(meta, "dtype"):
        return value.item() if isinstance(value, np.ndarray | np.generic) else value
    try:
        array = np.array(value)
        if array.dtype.kind not in "biufc":  # of ml_dtypes
            return torch.from_numpy(array.astype(np.float32)).to(meta.dtype)
        return torch.from_numpy(array).to(meta.dtype)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InvalidArgumentError(f"Input '{name}': required a tensor of {meta.dtype}, got {type(value).__name__}: {error}") from None
