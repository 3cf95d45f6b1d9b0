"""FarmHash's Fingerprint64 against values that TensorFlow computed."""

from __future__ import annotations

import pytest

from graphcore.support.fingerprint64 import fingerprint64

# By length of the data (i * 7 + 3) % 256: each branch of the hash has its own lengths.
VALUES = {
    1: 13745158429558087051,
    2: 1655114877597445365,
    3: 4662423180930907492,
    4: 17566270577251613586,
    7: 5759834791111993764,
    8: 907454142650066470,
    15: 3216519055487487771,
    16: 9140634717936656744,
    17: 14506534093795057959,
    31: 13644964512845808587,
    32: 11907377154618496232,
    33: 14001582926318596329,
    63: 10827710408787052188,
    64: 389040666157116578,
    65: 8638051931306504420,
    127: 14601120872369961854,
    128: 7379187116787024497,
    129: 10961879714037014659,
    200: 7886090686657605591,
    1000: 16150330943325068364,
}


@pytest.mark.parametrize(("length", "expected"), VALUES.items(), ids=str)
def test_data_of_each_length_has_the_fingerprint_that_tensorflow_gives(length: int, expected: int) -> None:
    assert fingerprint64(bytes((i * 7 + 3) % 256 for i in range(length))) == expected


@pytest.mark.parametrize(
    ("data", "expected"),
    [(b"Message should get hashed", 811750450553548470), (",".join(map(str, range(110))).encode(), 14506120815048308275)],
    ids=["F5", "N8"],
)
def test_the_fingerprints_of_the_notes_come_out(data: bytes, expected: int) -> None:
    assert fingerprint64(data) == expected
