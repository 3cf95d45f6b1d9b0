"""Texts are written as protobuf writes them, letter for letter."""

from __future__ import annotations

import random
import struct

from google.protobuf import json_format, text_format
from hypothesis import given, settings
from hypothesis import strategies as st

from graphcore.definitions.wire import schema
from graphcore.definitions.wire.writers import shortest_floats, write_json, write_text
from tests.support.messages import random_message


@settings(max_examples=400)
@given(st.integers(0, 2**64))
def test_text_and_json_are_written_as_protobuf_writes_them(seed: int) -> None:
    message = random_message(random.Random(seed))
    assert write_text(message) == text_format.MessageToString(message, descriptor_pool=schema.POOL)
    assert write_json(message) == json_format.MessageToJson(message, descriptor_pool=schema.POOL)


@given(st.lists(st.integers(0, 2**32 - 1), max_size=50))
def test_floats_of_any_bits_are_written_as_protobuf_writes_them(bits: list[int]) -> None:
    message = schema.TensorProto(float_val=[struct.unpack("<f", struct.pack("<I", each))[0] for each in bits])
    assert write_text(message) == text_format.MessageToString(message)
    assert write_json(message) == json_format.MessageToJson(message)


def test_the_number_with_the_fewest_digits_is_found_for_each_float() -> None:
    values = [struct.unpack("<f", struct.pack("<f", value))[0] for value in (0.1, 1 / 3, 16777216.0, 3.4028234663852886e38, 1.4e-45, -0.0)]
    assert list(map(str, shortest_floats(values))) == ["0.1", "0.33333334", "16777216.0", "3.4028235e+38", "1.4013e-45", "-0.0"]
