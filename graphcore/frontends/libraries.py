"""Libraries that readers need beyond the package's own requirements."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from graphcore.errors import FailedPreconditionError


def library(module: str, extra: str, what: str) -> ModuleType:
    """The module of a library, imported when a source needs it.

    Args:
        module: the module: `onnx`, `h5py`.
        extra: the extra of this package that installs it.
        what: the source, as the subject of a sentence: `an ONNX model`.

    Raises:
        FailedPreconditionError: it is not installed, or cannot be imported.
    """
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        reason = "is not installed" if isinstance(error, ModuleNotFoundError) else f"cannot be imported ({error})"
        raise FailedPreconditionError(
            f'This is {what}, and the library `{package}`, which reads it, {reason}: pip install "graphloupe[{extra}]"'
        ) from None
