"""The file `checkpoint`, which lists the checkpoints of a folder; finding and reading them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec
from google.protobuf import text_format

from graphcore.attrs import Array
from graphcore.checkpoints import CheckpointReader, data_files, index_path
from graphcore.definitions.wire import schema
from graphcore.definitions.wire.files import reason
from graphcore.definitions.wire.text_cursor import TextError
from graphcore.definitions.wire.text_reader import read_text
from graphcore.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError
from graphcore.support.files import PathLike, checked_path, file_bytes, file_errors, is_folder, is_there
from graphcore.support.replacing import write_file

STATE_FILE: Final = "checkpoint"


class CheckpointState(msgspec.Struct, frozen=True):
    """The checkpoints of a folder.

    Attributes:
        model_checkpoint_path: the newest.
        all_model_checkpoint_paths: all that are kept, the oldest first.
        all_model_checkpoint_timestamps: their times, in seconds since 1970; empty if unknown.
        last_preserved_timestamp: the time of the last one that is kept for good.
    """

    model_checkpoint_path: str
    all_model_checkpoint_paths: tuple[str, ...] = ()
    all_model_checkpoint_timestamps: tuple[float, ...] = ()
    last_preserved_timestamp: float = 0.0


def get_checkpoint_state(checkpoint_dir: PathLike, latest_filename: str | None = None) -> CheckpointState | None:
    """The checkpoints listed in a folder, with full paths; None if none are listed.

    Args:
        checkpoint_dir: the folder.
        latest_filename: the name of the list, `checkpoint` by default.

    Raises:
        InvalidArgumentError: the list cannot be read.
    """
    folder = checked_path(checkpoint_dir)
    path = folder / (latest_filename or STATE_FILE)
    try:
        data = file_bytes(path)
    except (NotFoundError, FailedPreconditionError):
        return None
    message = schema.CheckpointState()
    try:
        read_text(data.decode(), message)
    except (UnicodeDecodeError, TextError) as error:
        raise InvalidArgumentError(f"'{path}' is no list of checkpoints: {reason(error)}") from None
    if not message.model_checkpoint_path:
        return None
    return CheckpointState(
        os.path.join(folder, message.model_checkpoint_path),  # noqa: PTH118 - a prefix is no path of a file
        tuple(os.path.join(folder, name) for name in message.all_model_checkpoint_paths),  # noqa: PTH118 - a prefix is no path of a file
        tuple(message.all_model_checkpoint_timestamps),
        message.last_preserved_timestamp,
    )


def update_checkpoint_state(
    save_dir: PathLike,
    model_checkpoint_path: str,
    all_model_checkpoint_paths: Sequence[str] | None = None,
    latest_filename: str | None = None,
    all_model_checkpoint_timestamps: Sequence[float] | None = None,
    last_preserved_timestamp: float | None = None,
    *,
    relative: bool = False,
) -> None:
    """Write the list of checkpoints of a folder.

    Args:
        save_dir: the folder; in one with a relative path, the list has paths relative to it.
        model_checkpoint_path: the newest checkpoint.
        all_model_checkpoint_paths: all checkpoints, the oldest first.
        latest_filename: the name of the list, `checkpoint` by default.
        all_model_checkpoint_timestamps: their times.
        last_preserved_timestamp: the time of the last one that is kept for good.
        relative: list paths relative to the folder in any case, so that it can be moved.

    Raises:
        InvalidArgumentError: not as many times as checkpoints.
        FailedPreconditionError: the list cannot be written.
    """
    paths = list(all_model_checkpoint_paths or [])
    times = list(all_model_checkpoint_timestamps or [])
    if times and len(times) != len(paths):
        raise InvalidArgumentError(f"Required as many times as checkpoints, got {len(times)} and {len(paths)}")
    if model_checkpoint_path not in paths:
        paths.append(model_checkpoint_path)
        times = []
    folder = os.fspath(checked_path(save_dir)) if os.fspath(save_dir) else ""

    def listed(path: str) -> str:
        if relative or (not os.path.isabs(folder) and not os.path.isabs(path)):  # noqa: PTH117 - a prefix is no path of a file
            return os.path.relpath(path, folder or ".")
        return path

    message = schema.CheckpointState(
        model_checkpoint_path=listed(model_checkpoint_path),
        all_model_checkpoint_paths=map(listed, paths),
        all_model_checkpoint_timestamps=times,
        last_preserved_timestamp=last_preserved_timestamp or 0.0,
    )
    write_file(Path(folder) / (latest_filename or STATE_FILE), text_format.MessageToString(message).encode())


def latest_checkpoint(checkpoint_dir: PathLike, latest_filename: str | None = None) -> str | None:
    """The path of the newest checkpoint of a folder; None if there is none.

    Args:
        checkpoint_dir: the folder.
        latest_filename: the name of the list of checkpoints, `checkpoint` by default.
    """
    state = get_checkpoint_state(checkpoint_dir, latest_filename)
    return state.model_checkpoint_path if state is not None and checkpoint_exists(state.model_checkpoint_path) else None


def checkpoint_exists(checkpoint_prefix: PathLike) -> bool:
    """True if there is a checkpoint at this path."""
    return is_there(index_path(os.fspath(checkpoint_prefix)))


def get_checkpoint_mtimes(checkpoint_prefixes: Sequence[str]) -> list[float]:
    """The times of checkpoints, in seconds since 1970; those that are gone are left out."""
    return [Path(index_path(prefix)).stat().st_mtime for prefix in checkpoint_prefixes if checkpoint_exists(prefix)]


def remove_checkpoint(checkpoint_prefix: str, checkpoint_format_version: int = 2, meta_graph_suffix: str = "meta") -> None:  # noqa: ARG001 - TensorFlow's argument
    """Remove the files of a checkpoint, and the file of its graph.

    Args:
        checkpoint_prefix: its path.
        checkpoint_format_version: has no effect.
        meta_graph_suffix: the suffix of the file of the graph.
    """
    place = checked_path(checkpoint_prefix)
    with file_errors(place, "remove"):
        for path in (
            Path(index_path(checkpoint_prefix)),
            *data_files(os.fspath(checkpoint_prefix)),
            Path(f"{checkpoint_prefix}.{meta_graph_suffix}"),
        ):
            path.unlink(missing_ok=True)


def prefix_of(save_path: str | os.PathLike[str]) -> str:
    """The path of a checkpoint as it is written, `./model`.

    The names of its files begin there if it ends in "/".

    Raises:
        InvalidArgumentError: no file can have this name.
    """
    checked_path(save_path)
    return os.fspath(save_path)


def load_checkpoint(ckpt_dir_or_file: PathLike) -> CheckpointReader:
    """A reader of the checkpoint at a path, or of the newest one in a folder.

    Raises:
        NotFoundError: there is none.
        InvalidArgumentError: it is damaged.
    """
    path = os.fspath(checked_path(ckpt_dir_or_file))
    if is_folder(path):
        prefix = latest_checkpoint(path)
        if prefix is None:
            raise NotFoundError(f"Couldn't find 'checkpoint' file or checkpoints in given directory {path}")
        path = prefix
    return CheckpointReader(path)


def load_variable(ckpt_dir_or_file: PathLike, name: str) -> Array:
    """The value of a variable in a checkpoint. `name` may end with `:0`.

    Raises:
        NotFoundError: there is no such checkpoint or variable.
        InvalidArgumentError: it is damaged.
    """
    return load_checkpoint(ckpt_dir_or_file).get_tensor(name.removesuffix(":0"))


def list_variables(ckpt_dir_or_file: PathLike) -> list[tuple[str, list[int]]]:
    """Name and shape of each variable in a checkpoint, by name.

    Raises:
        NotFoundError: there is no such checkpoint.
        InvalidArgumentError: it is damaged.
    """
    return sorted(load_checkpoint(ckpt_dir_or_file).get_variable_to_shape_map().items())
