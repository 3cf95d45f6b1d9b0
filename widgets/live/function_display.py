"""Static display of a function in a notebook: definition and body, each as text and picture."""

from __future__ import annotations

from graphcore.support.shown import html_text, one_line
from widgets.function import Subject
from widgets.render.compiled import build_scene
from widgets.render.static_display import to_pre, to_static_html


def to_function_bundle(subject: Subject) -> dict[str, str]:
    """A function, both sides, as MIME data: HTML without script, and plain text."""
    defined = subject.definition
    title = one_line(subject.label)
    body = f"cannot be instantiated: {subject.problem}" if subject.body is None else subject.text
    attrs = subject.crumb().detail
    right = f"Instantiated for {attrs}" if attrs else "Instantiated"
    parts = [f"<h4>{html_text(title)}</h4>", _side("Definition", defined.text, to_static_html(defined.scene(title=f"{title} as defined")))]
    picture = "" if subject.body is None else to_static_html(build_scene(subject.graph, title=f"{title} instantiated"))
    parts.append(_side(right, body, picture))
    plain = f"Definition\n\n{defined.text}\n\n{right}\n\n{body}"
    return {"text/html": f'<figure class="graphloupe-still graphloupe-function">{"".join(parts)}</figure>', "text/plain": plain}


def _side(title: str, text: str, picture: str) -> str:
    return f"<p><strong>{html_text(title)}</strong></p>{to_pre(html_text(text))}{picture}"
