"""Metadata that exporters write at the nodes of ONNX models: modules with their classes, and stacks."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from graphcore.frontends.foreign import ModuleCall, SourceFrame

SCOPES: Final = "pkg.torch.onnx.name_scopes"
CLASSES: Final = "pkg.torch.onnx.class_hierarchy"
STACK: Final = "pkg.torch.onnx.stack_trace"
_OLD_NAMESPACE: Final = "namespace"
USED: Final = frozenset({SCOPES, CLASSES, STACK, _OLD_NAMESPACE, "pkg.torch.onnx.fx_node"})
"""The keys whose values are shown as modules and lines, or say nothing more than these."""
MAX_TEXT: Final = 20_000
_FRAME: Final = re.compile(r'File "([^"\n]+)", line (\d{1,9}), in ([^\n]+)(?:\n[ \t]+([^\n]*))?')
_MAX_FRAMES: Final = 30


def modules_of(metadata: Mapping[str, str]) -> tuple[ModuleCall, ...]:
    """The modules around a node, outermost first: those of PyTorch's exporters; () for others."""
    paths = texts_in(metadata.get(SCOPES, ""))
    if paths:
        classes = texts_in(metadata.get(CLASSES, ""))
        if len(classes) != len(paths):
            classes = ("",) * len(paths)
        # The last one is the node itself.
        return tuple([ModuleCall(path, kind.rpartition(".")[2]) for path, kind in zip(paths[:-1], classes[:-1], strict=True) if path])
    return _of_namespace(metadata.get(_OLD_NAMESPACE, ""))


def _of_namespace(text: str) -> tuple[ModuleCall, ...]:
    """The modules of a namespace: `: resnet.ResNet/layer1: Sequential/conv: aten.conv2d.default`."""
    modules = []
    for part in text[:MAX_TEXT].split("/")[:-1]:
        path, separator, kind = part.partition(": ")
        if separator and path.strip():
            modules.append(ModuleCall(path.strip(), kind.rpartition(".")[2]))
    return tuple(modules)


@lru_cache(maxsize=4096)
def texts_in(text: str) -> tuple[str, ...]:
    """The texts in a list that is written as Python writes one; () for anything else."""
    if not text.startswith("[") or len(text) > MAX_TEXT:
        return ()
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return ()
    return tuple(value) if isinstance(value, list) and all(isinstance(item, str) for item in value) else ()


@lru_cache(maxsize=4096)
def frames_of(text: str) -> tuple[SourceFrame, ...]:
    """The lines of a stack as Python prints it, the innermost last."""
    frames = [
        SourceFrame(match[1], int(match[2]), (match[4] or "").strip(), match[3].strip()) for match in _FRAME.finditer(text[:MAX_TEXT])
    ]
    return tuple(frames[-_MAX_FRAMES:])
