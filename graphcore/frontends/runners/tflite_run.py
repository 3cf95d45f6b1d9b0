"""Runs of TensorFlow Lite models by their interpreter, of LiteRT or TensorFlow."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from graphcore.errors import FailedPreconditionError, InvalidArgumentError

if TYPE_CHECKING:
    from mmap import mmap

    from graphcore.attrs import Array
    from graphcore.frontends.foreign import ForeignFunction
    from graphcore.runtime.runners import Watch

_INTERPRETERS: Final = ("ai_edge_litert.interpreter", "tensorflow.lite", "tflite_runtime.interpreter")
_FAILED: Final = re.compile(r"Node number (\d+) ")


class TfliteRunner:
    """Runs one model, each operator by its own kernel: no delegate takes several as one.

    Each run has an interpreter of its own, so that variables begin as in the file. The interpreter measures no times and tells nothing of the
    subgraphs that operators call. A watch gets quantised values as the numbers that they stand for.

    Args:
        data: the file, as bytes or a map.
        main: what the reader has made of its first subgraph.
        numbers: the tensors of its nodes, by their names.
    """

    def __init__(self, data: mmap | bytes, main: ForeignFunction, numbers: Mapping[str, Sequence[int]]) -> None:
        self._data = data
        self._main = main
        self._numbers = numbers

    def run(self, feeds: Mapping[str, object], watch: Watch | None = None) -> list[object]:
        """Run the model once; see `Runner`. Values of numbers are quantised for inputs that are.

        Raises:
            FailedPreconditionError: no interpreter is installed.
            InvalidArgumentError: an input has no value, or one of another type or shape.
        """
        interpreter = _interpreter(self._data[:])
        details = {detail["index"]: detail for detail in interpreter.get_tensor_details()}
        inputs = {node.name: self._numbers[node.name][0] for node in self._main.nodes if node.kind == "input"}
        missing = [name for name in inputs if name not in feeds]
        if missing:
            raise InvalidArgumentError(f"Required values for the inputs {', '.join(inputs)}; got none for {', '.join(missing)}")
        values = {number: _fitted(feeds[name], details[number], name) for name, number in inputs.items()}
        for number, value in values.items():
            if value.shape != tuple(details[number]["shape"]):
                interpreter.resize_tensor_input(number, value.shape)
        interpreter.allocate_tensors()
        for number, value in values.items():
            interpreter.set_tensor(number, value)
        self._invoke(interpreter, watch)
        if watch is not None:
            for node in self._main.nodes:
                watch.give(node.name, [_real(interpreter, details.get(number)) for number in self._numbers[node.name]])
        return [interpreter.get_tensor(self._numbers[ref[0]][ref[1]]) for ref in self._main.outputs if ref is not None]

    def _invoke(self, interpreter: Any, watch: Watch | None) -> None:
        try:
            interpreter.invoke()
        except RuntimeError as error:
            failed = _FAILED.search(str(error))
            operators = [node.name for node in self._main.nodes if node.kind == "op"]
            if watch is not None and failed is not None and int(failed[1]) < len(operators):
                watch.begin(operators[int(failed[1])])
            raise


def _interpreter(data: bytes) -> Any:
    for name in _INTERPRETERS:
        try:
            module = import_module(name)
        except ImportError:
            continue
        plain = module.experimental.OpResolverType if name.startswith("tensorflow") else module.OpResolverType
        return module.Interpreter(
            model_content=data,
            experimental_op_resolver_type=plain.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
            experimental_preserve_all_tensors=True,
        )
    raise FailedPreconditionError(
        "This is a TensorFlow Lite model, which runs in its interpreter, and the library `ai_edge_litert` is not installed: "
        "pip install ai-edge-litert"
    )


def _fitted(value: object, detail: Mapping[str, Any], name: str) -> Array:
    """A fed value as the tensor takes it.

    Raises:
        InvalidArgumentError: it has another type or rank, or another size where the size is fixed.
    """
    array, dtype = np.asarray(value), np.dtype(detail["dtype"])
    signature = detail["shape_signature"] if len(detail["shape_signature"]) else detail["shape"]
    if array.ndim != len(signature) or any(size not in {-1, own} for size, own in zip(signature, array.shape, strict=True)):
        sizes = [None if size < 0 else int(size) for size in signature]
        raise InvalidArgumentError(f"Input '{name}': required the shape {sizes}, got {list(array.shape)}")
    scales, zeros = detail["quantization_parameters"]["scales"], detail["quantization_parameters"]["zero_points"]
    if len(scales) == 1 and array.dtype.kind == "f" and dtype.kind in "iu":
        limits = np.iinfo(dtype)
        array = np.clip(np.round(array / scales[0]) + zeros[0], limits.min, limits.max).astype(dtype)
    if array.dtype != dtype and not np.can_cast(array.dtype, dtype, "same_kind"):
        raise InvalidArgumentError(f"Input '{name}': required values of type {dtype}, got {array.dtype}")
    return array.astype(dtype)


def _real(interpreter: Any, detail: Mapping[str, Any] | None) -> Array | None:
    """The elements of a tensor as numbers; None if it has none, such as a resource."""
    if detail is None:
        return None
    try:
        array: Array = interpreter.get_tensor(detail["index"])
    except (RuntimeError, ValueError):
        return None
    parameters = detail["quantization_parameters"]
    scales, zeros = parameters["scales"], parameters["zero_points"]
    if not len(scales) or array.dtype.kind not in "iu":
        return array
    sizes = [1] * array.ndim
    if len(scales) > 1:
        sizes[parameters["quantized_dimension"]] = -1
        scales, zeros = scales.reshape(sizes), zeros.reshape(sizes)
    real: Array = ((array.astype(np.float32) - zeros) * scales).astype(np.float32)
    return real
