"""Checkpoints of TensorFlow's V2 format: writing, reading, damage."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import graphcore as gc
from graphcore.checkpoints import CheckpointReader, merge_checkpoints, parse_slice_spec, write_checkpoint

TYPES = [
    *("float32", "float64", "half", "bfloat16", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("bool", "complex64", "complex128"),
]


def tensors() -> dict[str, Any]:
    """Tensors of all types, shapes of all kinds, and enough names for several blocks of the index."""
    made = {f"types/{name}": np.array([[0, 1, 3], [5, 0, 1]]).astype(gc.as_dtype(name).as_numpy) for name in TYPES}
    made["scalar"] = np.array(3.5, np.float32)
    made["empty"] = np.zeros((0, 5), np.float32)
    made["strings"] = np.array([[b"a", b""], [b"x" * 300, b"\xff\x00"]], object)
    made["no_strings"] = np.empty((2, 0), object)
    made["large"] = np.arange(70_000, dtype=np.float32).reshape(700, 100)
    return made | {f"layer_{i}/{'w' * 120}": np.array(i, np.int32) for i in range(2500)}


def write(path: Path, values: dict[str, Any]) -> str:
    write_checkpoint(str(path), [(name, None, gc.as_dtype(value.dtype), value) for name, value in values.items()])
    return str(path)


def same(found: Any, wanted: Any) -> bool:
    return bool(found.dtype == wanted.dtype and found.shape == wanted.shape and found.tolist() == wanted.tolist())


def test_what_is_written_is_read_in_every_type_and_shape(tmp_path: Path) -> None:
    values = tensors()
    reader = CheckpointReader(write(tmp_path / "model", values))
    assert sorted(reader) == sorted(values)
    assert all(same(reader.get_tensor(name), value) for name, value in values.items())
    assert reader.get_variable_to_shape_map()["large"] == [700, 100]
    assert reader.get_variable_to_dtype_map()["types/bfloat16"] is gc.bfloat16
    assert b"scalar (DT_FLOAT) []\n" in reader.debug_string()


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_flipped_bit_is_an_error_or_changes_nothing(tmp_path: Path, data: Any) -> None:
    values = {"a": np.arange(40.0), "b/c": np.array([b"one", b"two"], object), "d": np.array(7)}
    path = write(tmp_path / "model", values)
    file = data.draw(st.sampled_from(sorted(tmp_path.glob("model.*"))))
    content = bytearray(file.read_bytes())
    content[data.draw(st.integers(0, len(content) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    file.write_bytes(content)
    try:
        reader = CheckpointReader(path)
    except gc.GraphError:
        return
    for name, value in values.items():
        try:
            found = reader.get_tensor(name)
        except gc.GraphError:
            continue
        assert same(found, value)


@pytest.mark.parametrize("suffix", ["index", "data-00000-of-00001"])
@pytest.mark.parametrize("length", [0, 7, 100])
def test_a_file_that_is_cut_off_is_an_error(tmp_path: Path, suffix: str, length: int) -> None:
    path = write(tmp_path / "model", {"a": np.arange(40.0)})
    file = Path(f"{path}.{suffix}")
    file.write_bytes(file.read_bytes()[:length])
    with pytest.raises(gc.errors.InvalidArgumentError, match=r"no index of a checkpoint|damaged"):
        CheckpointReader(path).get_tensor("a")


def test_the_errors_for_what_is_missing_say_what_is_there(tmp_path: Path) -> None:
    path = write(tmp_path / "model", {"a": np.arange(3.0), "b": np.arange(2.0)})
    with pytest.raises(gc.errors.NotFoundError, match=r"Key c not found in checkpoint '.*model'; it has a, b"):
        CheckpointReader(path).get_tensor("c")
    with pytest.raises(gc.errors.NotFoundError, match=r"there is no file '.*other.index'"):
        CheckpointReader(tmp_path / "other")
    with pytest.raises(gc.errors.NotFoundError, match=r"named without '.index'"):
        CheckpointReader(f"{path}.index")
    Path(f"{path}.data-00000-of-00001").unlink()
    with pytest.raises(gc.errors.NotFoundError, match=r"Tensor 'a'.*there is no file '.*data-00000-of-00001'"):
        CheckpointReader(path).get_tensor("a")


def test_a_tensor_in_parts_is_put_together_and_read_in_parts(tmp_path: Path) -> None:
    whole = np.arange(24.0).reshape(4, 6)
    specs = [parse_slice_spec("4 6 0,1:-"), parse_slice_spec("4 6 1,3:-")]
    path = str(tmp_path / "model")
    write_checkpoint(path, [("w", spec, gc.float64, whole[spec.index()]) for spec in specs if spec is not None])
    reader = CheckpointReader(path)
    assert same(reader.get_tensor("w"), whole)
    assert same(reader.get_part("w", specs[1]), whole[1:])
    assert same(reader.get_part("w", parse_slice_spec("4 6 1,2:2,3")), whole[1:3, 2:5])
    with pytest.raises(gc.errors.InvalidArgumentError, match=r"shape \[4, 6\], required is a part of \[5, 6\]"):
        reader.get_part("w", parse_slice_spec("5 6 0,5:-"))


@pytest.mark.parametrize("text", ["4", "4 6 0,1", "4 6 0,9:-", "4 6 -:x", "a b -:-"])
def test_a_part_that_cannot_be_is_refused(text: str) -> None:
    with pytest.raises(gc.errors.InvalidArgumentError, match="Required a part of a tensor"):
        parse_slice_spec(text)


def test_checkpoints_are_merged_to_one_of_several_files(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    first = write(tmp_path / "parts" / "0", {"a": np.arange(3.0)})
    second = write(tmp_path / "parts" / "1", {"b": np.array([b"x"], object)})
    merge_checkpoints([first, second], str(tmp_path / "model"))
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["model.data-00000-of-00002", "model.data-00001-of-00002", "model.index"]
    reader = CheckpointReader(tmp_path / "model")
    assert reader.get_tensor("a").tolist() == [0, 1, 2]
    assert reader.get_tensor("b").tolist() == [b"x"]


def test_a_checkpoint_that_cannot_be_written_leaves_the_one_before(tmp_path: Path) -> None:
    path = write(tmp_path / "model", {"a": np.arange(3.0)})
    with pytest.raises(gc.errors.InvalidArgumentError, match="given twice"):
        write_checkpoint(path, [("a", None, gc.float64, np.zeros(3))] * 2)
    assert CheckpointReader(path).get_tensor("a").tolist() == [0, 1, 2]
    assert len(list(tmp_path.iterdir())) == 2


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_checkpoint_saved_again_has_its_usual_files_and_their_modes(tmp_path: Path) -> None:
    path = write(tmp_path / "model", {"a": np.arange(3.0)})
    (tmp_path / "model.data-00000-of-00001").chmod(0o600)
    for i in range(3):
        write(tmp_path / "model", {"a": np.arange(3.0) + i})
        assert names_in(tmp_path) == ["model.data-00000-of-00001", "model.index"]
        assert CheckpointReader(path).get_tensor("a").tolist() == [i, i + 1, i + 2]
    assert (tmp_path / "model.data-00000-of-00001").stat().st_mode & 0o777 == 0o600


def test_without_links_a_checkpoint_saved_again_has_another_number_of_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_links(*_: object) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(Path, "hardlink_to", no_links)
    path = write(tmp_path / "model", {"a": np.arange(3.0)})
    for i in range(3):
        write(tmp_path / "model", {"a": np.arange(3.0) + i})
        assert CheckpointReader(path).get_tensor("a").tolist() == [i, i + 1, i + 2]
        count = 1 + (i + 1) % 2
        assert names_in(tmp_path) == [*[f"model.data-{shard:05d}-of-{count:05d}" for shard in range(count)], "model.index"]
    merge_checkpoints([path, write(tmp_path / "other", {"b": np.arange(2.0)})], path)
    assert sorted(CheckpointReader(path)) == ["a", "b"]
