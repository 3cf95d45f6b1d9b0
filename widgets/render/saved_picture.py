"""The picture that is saved with an output: JupyterLab's MIME renderer opens it without a kernel."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, Final

import msgspec

from widgets.language import spoken
from widgets.messages import SceneMessage
from widgets.render.compiled import Taken
from widgets.render.engine import EngineError
from widgets.render.messages import plain, scene_message
from widgets.render.page_data import PageData, pack
from widgets.render.static_display import to_static_bundle
from widgets.scene.state import SceneState
from widgets.scene.types import Scene

SCENE_MIME_TYPE: Final = "application/vnd.graphloupe.scene+json"

MAX_SAVED_BYTES: Final = 1_500_000
"""The most bytes of a graph in an output, enough for several 100,000 nodes. Jupyter's server drops outputs of more than 3 MB."""
MAX_UNPACKED_BYTES: Final = 64_000_000
"""The most bytes of it when unpacked; the viewer refuses more."""

TOO_LARGE: Final = "too large to be saved whole: without a kernel its boxes do not open"
NOT_YET: Final = "saved while its graph was being written: without a kernel its boxes do not open"


class StatePicture(msgspec.Struct, frozen=True, kw_only=True):
    """The picture of one state, with the graph behind it."""

    message: SceneMessage
    graph_gzip_base64: str


class BothStates(msgspec.Struct, frozen=True, kw_only=True):
    """Both states of a difference.

    Attributes:
        titles: their names.
        words: the difference in words.
        pictures: their pictures.
        twins: the later names of nodes and scopes by their earlier ones, and back, where they are different.
    """

    titles: tuple[str, str]
    words: str
    pictures: tuple[StatePicture, StatePicture]
    twins: tuple[dict[str, str], dict[str, str]]


class SavedPicture(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The data of the MIME type.

    Attributes:
        message: the picture.
        model: the id of the live view's model, "" without one.
        graph_gzip_base64: the graph behind the picture, "" if nothing in it opens.
        language: the language of words, "" for English.
        states: both states of the difference that is shown, None for any other graph.
    """

    message: SceneMessage
    model: str = ""
    graph_gzip_base64: str = ""
    language: str = ""
    states: BothStates | None = None


def packed_graph(data: PageData) -> str:
    """A graph's data as text, "" if it is too large: `MAX_SAVED_BYTES`, `MAX_UNPACKED_BYTES`."""
    packed = pack(data)
    unpacked = int.from_bytes(packed[-4:], "little")  # the end of a gzip says its size
    return base64.b64encode(packed).decode("ascii") if len(packed) <= MAX_SAVED_BYTES and unpacked <= MAX_UNPACKED_BYTES else ""


def to_saved_bundle(picture: SavedPicture, summaries: Sequence[Scene] = ()) -> dict[str, Any]:
    """The picture as MIME data: interactive, as HTML without script, and as a text outline.

    Args:
        summaries: the scene of the picture, followed by scenes of fewer boxes for HTML.
    """
    return {SCENE_MIME_TYPE: plain(picture), **to_static_bundle(*(summaries or [picture.message.scene]), lens=picture.message.lens)}


class TakenPicture:
    """A picture for an output, taken at one moment and compiled on any thread.

    Args:
        scenes: the scene, followed by scenes of fewer boxes for HTML.
        state: the choices at that moment.
        plain: makes the scene where the engine does not start, for a reason.
        model: the id of the live view's model.
        graph: the packed graph, "" if nothing in the picture opens.
        note: the reason for the latter, in the summary.
    """

    def __init__(
        self, scenes: Sequence[Taken[Scene]], state: SceneState, plain: Callable[[str], Scene], model: str, graph: str, note: str
    ) -> None:
        self._taken = scenes
        self._state = state
        self._plain = plain
        self._model = model
        self.graph_gzip_base64 = graph
        self._note = note

    @cached_property
    def scenes(self) -> list[Scene]:
        """The scene, followed by scenes of ever fewer boxes."""
        try:
            scenes = [self._taken[0].result()]
            for smaller in self._taken[1:]:
                scene = smaller.result()
                if len(scene.nodes) < len(scenes[-1].nodes):
                    scenes.append(scene)
        except EngineError as error:
            scenes = [self._plain(str(error))]
        return scenes

    @property
    def message(self) -> SceneMessage:
        """The picture."""
        scene = self.scenes[0]
        if self._note:
            scene = msgspec.structs.replace(scene, summary=f"{scene.summary} · {self._note}")
        return scene_message(scene, self._state)

    @property
    def picture(self) -> SavedPicture:
        """The data of the MIME type."""
        return SavedPicture(message=self.message, model=self._model, graph_gzip_base64=self.graph_gzip_base64, language=spoken())

    def bundle(self) -> dict[str, Any]:
        """The picture as MIME data."""
        return to_saved_bundle(self.picture, self.scenes)
