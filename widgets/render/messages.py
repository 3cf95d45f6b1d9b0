"""Messages that carry a picture."""

from __future__ import annotations

import json
import re
from typing import Any, Final

import msgspec

from widgets.messages import Look, SceneMessage
from widgets.scene.state import SceneState
from widgets.scene.types import Scene

_SURROGATE: Final = re.compile("[\ud800-\udfff]")


def scene_message(scene: Scene, state: SceneState, *, focus: str = "", sent_at: float = 0.0, look: Look | None = None) -> SceneMessage:
    """The message of a scene."""
    return SceneMessage(
        scene=scene,
        focus=focus,
        sent_at=sent_at,
        lens=state.lens,
        renderer=state.renderer,
        openings=state.openings(),
        look=look,
    )


def plain(message: msgspec.Struct) -> Any:
    """The message as plain data; lone surrogates, which no connection can carry, become escapes."""
    data = msgspec.to_builtins(message)
    try:
        msgspec.json.encode(message)
    except UnicodeEncodeError:
        return json.loads(_SURROGATE.sub(lambda match: rf"\\u{ord(match[0]):04x}", json.dumps(data, ensure_ascii=False)))
    return data
