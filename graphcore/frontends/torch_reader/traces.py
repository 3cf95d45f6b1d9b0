"""Stack traces and stacks of modules, as exported programs write them."""

from __future__ import annotations

import re
from typing import Final

from graphcore.frontends.foreign import ModuleCall, SourceFrame

_FRAME: Final = re.compile(r'^\s*File "([^"\n]*)", line (\d{1,9})(?:, in (.*))?$', re.ASCII)
_GENERATED: Final = "<eval_with_key>"
_SELF: Final = re.compile(r"^L\['self'\]\.?|^L__self___?|^self\.")
_HOOK: Final = "_empty_nn_module_stack"
MAX_FRAMES: Final = 64


class Traces:
    """Reads stack traces and module stacks; most of a graph are alike and read once."""

    def __init__(self) -> None:
        self._frames: dict[str, tuple[SourceFrame, ...]] = {}
        self._modules: dict[str, tuple[ModuleCall, ...]] = {}
        self._known: dict[SourceFrame, SourceFrame] = {}

    def frames(self, text: object) -> tuple[SourceFrame, ...]:
        """The frames of a stack trace, the innermost last. Those of generated code are left out where there are others."""
        if not isinstance(text, str) or not text:
            return ()
        cached = self._frames.get(text)
        if cached is None:
            cached = self._frames[text] = tuple([self._known.setdefault(frame, frame) for frame in frames_of(text)])
        return cached

    def modules(self, text: object) -> tuple[ModuleCall, ...]:
        """The modules of a text `key,path,class;key,path,class`, outermost first."""
        if not isinstance(text, str) or not text:
            return ()
        cached = self._modules.get(text)
        if cached is None:
            calls = [part.split(",", 2) for part in text.split(";")]
            modules = [module_call(call[1], call[2]) for call in calls if len(call) == 3 and not call[0].startswith(_HOOK)]
            cached = self._modules[text] = tuple(modules)
        return cached


def frames_of(text: str) -> list[SourceFrame]:
    """The frames of a stack trace."""
    frames: list[SourceFrame] = []
    for line in text.split("\n"):
        match = _FRAME.match(line)
        if match:
            frames.append(SourceFrame(match[1], int(match[2]), "", match[3] or ""))
        elif frames and not frames[-1].text and line.strip(" ^~"):
            last = frames[-1]
            frames[-1] = SourceFrame(last.file, last.line, line.strip(), last.function)
    written = [frame for frame in frames if not frame.file.startswith(_GENERATED)]
    return (written or frames)[-MAX_FRAMES:]


def module_call(path: str, kind: str) -> ModuleCall:
    """A module by its path and the name of its class with those around it."""
    return ModuleCall(_SELF.sub("", path), class_name(kind))


def class_name(kind: str) -> str:
    """The last part of a class's name: `Conv2d` of `torch.nn.modules.conv.Conv2d`."""
    return kind.strip("<>'").rpartition(".")[2]
