"""Settings of TensorBoard's projector: a file beside the events that names variables and labels."""

from __future__ import annotations

from typing import Any

from graphcore.errors import InvalidArgumentError
from graphcore.support.files import checked_path
from graphcore.support.replacing import write_file

__all__ = ["EmbeddingInfo", "ProjectorConfig", "SpriteMetadata", "visualize_embeddings"]


class SpriteMetadata:
    """The picture with the images of the points.

    Attributes:
        image_path: the file.
        single_image_dim: width and height of one image in pixels.
    """

    def __init__(self) -> None:
        self.image_path = ""
        self.single_image_dim: list[int] = []


class EmbeddingInfo:
    """A variable to show.

    Attributes:
        tensor_name: the name of the variable.
        metadata_path: the file with a label for each row.
        bookmarks_path: a file of views.
        tensor_path: a file with the values instead of a checkpoint.
        sprite: the picture of the points.
    """

    def __init__(self) -> None:
        self.tensor_name = self.metadata_path = self.bookmarks_path = self.tensor_path = ""
        self.sprite = SpriteMetadata()


class _Embeddings(list[EmbeddingInfo]):
    def add(self) -> EmbeddingInfo:
        """A further variable to show."""
        self.append(EmbeddingInfo())
        return self[-1]


class ProjectorConfig:
    """The variables to show, and the checkpoint with their values.

    Attributes:
        model_checkpoint_path: the checkpoint, the latest beside the file by default.
        embeddings: the variables; `embeddings.add()` adds one.
    """

    def __init__(self) -> None:
        self.model_checkpoint_path = ""
        self.embeddings = _Embeddings()

    def to_text(self) -> str:
        """The settings as protobuf text."""
        lines = _field("model_checkpoint_path", self.model_checkpoint_path)
        for embedding in self.embeddings:
            inner = [line for name in ("tensor_name", "metadata_path", "bookmarks_path") for line in _field(name, getattr(embedding, name))]
            sprite = _field("image_path", embedding.sprite.image_path)
            sprite += [f"single_image_dim: {int(size)}" for size in embedding.sprite.single_image_dim]
            inner += ["sprite {", *[f"  {line}" for line in sprite], "}"] if sprite else []
            inner += _field("tensor_path", embedding.tensor_path)
            lines += ["embeddings {", *[f"  {line}" for line in inner], "}"]
        return "".join([f"{line}\n" for line in lines])


def _field(name: str, value: str) -> list[str]:
    escaped = str(value).replace("\\", "\\\\").replace('"', '\\"')
    return [f'{name}: "{escaped}"'] if value else []


def visualize_embeddings(summary_writer: Any, config: ProjectorConfig) -> None:
    """Write the settings beside the events of a `FileWriter`, where TensorBoard looks for them.

    Raises:
        InvalidArgumentError: `summary_writer` writes no files.
        FailedPreconditionError: the file cannot be written.
    """
    logdir = summary_writer.get_logdir() if hasattr(summary_writer, "get_logdir") else None
    if logdir is None:
        raise InvalidArgumentError(f"Required a gc.summary.FileWriter, got {summary_writer!r}")
    write_file(checked_path(logdir) / "projector_config.pbtxt", config.to_text().encode())
