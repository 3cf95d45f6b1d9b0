"""Small CoreML models in their wire form."""

from __future__ import annotations

from typing import Any

import numpy as np


def _varint(value: int) -> bytes:
    found = b""
    while value > 127:
        found += bytes([value & 127 | 128])
        value >>= 7
    return found + bytes([value])


def message(*fields: tuple[int, Any]) -> bytes:
    """A message of the wire format: integers, texts and bytes by the numbers of their fields."""
    parts = []
    for number, value in fields:
        if isinstance(value, int):
            parts += [_varint(number << 3), _varint(value)]
        else:
            data = value.encode() if isinstance(value, str) else value
            parts += [_varint(number << 3 | 2), _varint(len(data)), data]
    return b"".join(parts)


def array_feature(name: str, *shape: int) -> bytes:
    """The description of an array."""
    return message((1, name), (3, message((5, message(*[(1, size) for size in shape], (2, 65568))))))


def model_of(kind: int, body: bytes, inputs: list[bytes], outputs: list[bytes]) -> bytes:
    """A model, its content in the field of its kind."""
    description = message(*[(1, part) for part in inputs], *[(10, part) for part in outputs])
    return message((1, 7), (2, description), (kind, body))


def network() -> bytes:
    """A product and an activation."""
    weights = message((1, np.arange(6, dtype="<f4").tobytes()))
    dense = message((1, 3), (2, 2), (10, 1), (20, weights))
    layers = [
        message((1, "dense"), (2, "x"), (3, "h"), (140, dense)),
        message((1, "act"), (2, "h"), (3, "y"), (130, message((10, b"")))),
    ]
    return model_of(500, message(*[(1, layer) for layer in layers]), [array_feature("x", 3)], [array_feature("y", 2)])


def _type(dtype: int, *shape: int) -> bytes:
    dimensions = [(3, message((1, message((1, size))))) for size in shape]
    return message((1, message((1, dtype), (2, len(shape)), *dimensions)))


def _named(name: str, *shape: int, dtype: int = 11) -> bytes:
    return message((1, name), (2, _type(dtype, *shape)))


def _operation(kind: str, output: bytes, inputs: dict[str, str], blocks: list[bytes] = [], attributes: dict[str, bytes] = {}) -> bytes:  # noqa: B006 - never changed
    arguments = [(2, message((1, key), (2, message((1, message((1, name))))))) for key, name in inputs.items()]
    attrs = [(5, message((1, key), (2, value))) for key, value in attributes.items()]
    return message((1, kind), *arguments, (3, output), *[(4, block) for block in blocks], *attrs)


def program(offset: int) -> bytes:
    """A program with a branch, and weights at this place of its file."""
    stored = message((2, _type(11, 2)), (5, message((1, "@model_path/weights/weight.bin"), (2, offset))))
    here = message((2, _type(11, 2)), (3, message((1, message((1, message((1, np.asarray([1, 2], "<f4").tobytes()))))))))
    then = message((2, "t"), (3, _operation("mul", _named("t", 2), {"x": "s", "y": "k"})))
    other = message((2, "e"), (3, _operation("relu", _named("e", 2), {"x": "s"})))
    operations = [
        _operation("const", _named("w", 2), {}, attributes={"val": stored}),
        _operation("const", _named("k", 2), {}, attributes={"val": here}),
        _operation("add", _named("s", 2), {"x": "a", "y": "w"}),
        _operation("cond", _named("y", 2), {"pred": "p"}, [then, other]),
    ]
    block = message((2, "y"), *[(3, part) for part in operations])
    function = message((1, _named("a", 2)), (1, _named("p", dtype=1)), (2, "CoreML7"), (3, message((1, "CoreML7"), (2, block))))
    whole = message((1, 1), (2, message((1, "main"), (2, function))))
    return model_of(502, whole, [array_feature("a", 2), array_feature("p", 1)], [array_feature("y", 2)])
