import gzip
import zipfile
from pathlib import Path

import pytest

import graphcore as gc
from graphcore.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError
from graphcore.frontends.libraries import library
from graphcore.frontends.sources import open_source, source_of


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"\x89PNG\r\n\x1a\n", "a PNG picture"),
        (b"", "an empty file"),
        (b"dear reader,\nthis is a letter", "text that begins with 'dear reader,'"),
        (b"\x00\x01\x02\x03", "the bytes 00 01 02 03"),
        (b"\x80\x04\x95", "a Python pickle, which is never opened"),
        (gzip.compress(b"a letter", mtime=0), "text that begins with 'a letter' after gunzipping"),
    ],
)
def test_the_error_for_an_unknown_file_says_what_it_looks_like_and_what_can_be_opened(tmp_path: Path, data: bytes, words: str) -> None:
    (tmp_path / "thing.onnx").write_bytes(data)
    with pytest.raises(InvalidArgumentError) as caught:
        open_source(tmp_path / "thing.onnx")
    assert "'thing.onnx'" in caught.value.message
    assert words in caught.value.message
    assert "SavedModel" in caught.value.message


@pytest.mark.parametrize("name", ["net.onnx.data", "net.onnx_data"])
def test_the_error_for_the_elements_of_a_model_names_the_model(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(bytes(range(200)))
    with pytest.raises(InvalidArgumentError, match=r"open 'net\.onnx' beside it"):
        gc.load(tmp_path / name)


def test_a_zip_of_an_unknown_kind_is_described_by_its_members(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("poem.txt", "roses")
    assert source_of(tmp_path / "a.zip").members == ("poem.txt",)
    with pytest.raises(InvalidArgumentError, match=r"a zip archive with poem\.txt"):
        open_source(str(tmp_path / "a.zip"))


def test_an_unknown_object_is_named_by_its_class() -> None:
    with pytest.raises(InvalidArgumentError, match=r"an object of type builtins\.complex"):
        open_source(1j)


def test_a_missing_file_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError):
        open_source(tmp_path / "none.onnx")


def test_a_missing_library_is_one_sentence_with_the_install_line() -> None:
    with pytest.raises(FailedPreconditionError, match=r'^This is a model of tomorrow, .* pip install "graphloupe\[tomorrow\]"$'):
        library("library_of_tomorrow", "tomorrow", "a model of tomorrow")
