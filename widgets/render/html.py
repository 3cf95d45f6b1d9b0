"""The standalone page: viewer, graph and layout engine in one file for offline use."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from typing import Final

import msgspec

from graphcore.support.shown import html_text, one_line
from widgets.language import spoken
from widgets.messages import SceneMessage
from widgets.render.engine import STATIC
from widgets.render.outline import to_outline
from widgets.render.saved_picture import BothStates
from widgets.scene.types import Scene
from widgets.steps import RecordedSteps
from widgets.timelines import StepTimeline

_PAGE: Final = """\
<!DOCTYPE html>
<html lang="{language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>{title}</title>
<style>html,body{{height:100%;margin:0}}#graphloupe{{height:100%}}</style>
</head>
<body>
<div id="graphloupe"></div>
<noscript><pre>{outline}</pre></noscript>
<script type="application/json" id="graphloupe-data">{data}</script>
<script>{script}</script>
<script type="text/plain" id="graphloupe-licences">
{licences}</script>
</body>
</html>
"""
# The page's own script is the only one that runs, and starts engines that it unpacks as blobs. Nothing is fetched. Mermaid and the
# viewer write styles into their elements, which can load nothing either.
_POLICY: Final = (
    "default-src 'none'; script-src 'sha256-{digest}' 'wasm-unsafe-eval' blob:; worker-src blob:; "
    "style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'"
)


def to_page(
    picture: Scene | SceneMessage,
    *,
    data: bytes = b"",
    timelines: Sequence[StepTimeline] = (),
    steps: RecordedSteps | None = None,
    states: BothStates | None = None,
    with_mermaid: bool = False,
) -> str:
    """An HTML page with the interactive viewer of one picture.

    Args:
        picture: the first picture, with its lens and renderer.
        data: the graph behind it (`widgets.render.page_data`); without it nothing in the page opens.
        timelines: the recorded run and the predicted step.
        steps: the recorded run, node by node.
        states: both states of the difference that the picture shows.
        with_mermaid: include Mermaid's engine (320 KB).
    """
    message = SceneMessage(scene=picture) if isinstance(picture, Scene) else picture
    scene = message.scene
    if not data:
        nodes = [msgspec.structs.replace(node, expandable=False) for node in scene.nodes]
        scene = msgspec.structs.replace(scene, nodes=nodes)
        message = msgspec.structs.replace(message, scene=scene)
    carried: dict[str, object] = {"message": message, "engine_gzip_base64": _packed("graphviz")}
    if data:
        carried["graph_gzip_base64"] = _in_base64(data)
        carried["worker_gzip_base64"] = _packed("page")
    if timelines:
        carried["timelines"] = timelines
    if steps is not None:
        carried["steps"] = steps
    if states is not None:
        carried["states"] = states
    if with_mermaid or message.renderer == "mermaid":
        carried["mermaid_engine_gzip_base64"] = _packed("mermaid")
    if spoken():
        carried["language"] = spoken()
    script = _inert_script((STATIC / "standalone.js").read_text("utf-8"))
    digest = base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
    return _PAGE.format(
        policy=html_text(_POLICY.format(digest=digest)),
        language=spoken() or "en",
        title=html_text(one_line(scene.title)),
        outline=html_text(to_outline(scene)),
        data=_inert_json(carried),
        script=script,
        licences=_inert_script((STATIC / "THIRD_PARTY.md").read_text("utf-8")),
    )


def _packed(engine: str) -> str:
    return _in_base64((STATIC / f"{engine}.js.gz").read_bytes())


def _in_base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _inert_json(data: object) -> str:
    """JSON that cannot end the script element or begin a comment: `<`, `>` and `&` are escaped."""
    # Unlike msgspec, json takes lone surrogates, and writes them as escapes.
    text = json.dumps(msgspec.to_builtins(data), separators=(",", ":"))
    for letter in "<>&":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text


def _inert_script(text: str) -> str:
    """Escape end tags within our own script."""
    return text.replace("</script", "<\\/script").replace("<!--", "\\x3c!--")
