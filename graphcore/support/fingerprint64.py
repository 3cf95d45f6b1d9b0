"""FarmHash's Fingerprint64, the hash in TensorFlow's names. No maintained package offers it."""

from __future__ import annotations

import struct
from typing import Final

_MASK: Final = (1 << 64) - 1
_K0: Final = 0xC3A5C85C97CB3127
_K1: Final = 0xB492B66FBE98F273
_K2: Final = 0x9AE16A3B2F90404F

_Pair = tuple[int, int]


def fingerprint64(data: bytes) -> int:
    """The 64-bit FarmHash fingerprint of `data` (the machine-independent variant)."""
    size = len(data)
    if size <= 16:
        return _hash_up_to_16(data, size)
    if size <= 32:
        return _hash_17_to_32(data, size)
    if size <= 64:
        return _hash_33_to_64(data, size)
    return _hash_long(data, size)


def _fetch(data: bytes, at: int) -> int:
    number: int = struct.unpack_from("<Q", data, at)[0]
    return number


def _fetch32(data: bytes, at: int) -> int:
    number: int = struct.unpack_from("<I", data, at)[0]
    return number


def _rotate(value: int, shift: int) -> int:
    value &= _MASK
    return (value >> shift | value << (64 - shift)) & _MASK


def _shift_mix(value: int) -> int:
    value &= _MASK
    return value ^ value >> 47


def _mix(u: int, v: int, mul: int) -> int:
    a = _shift_mix((u ^ v) * mul)
    b = _shift_mix((v ^ a) * mul)
    return b * mul & _MASK


def _hash_up_to_16(data: bytes, size: int) -> int:
    mul = _K2 + size * 2
    if size >= 8:
        a = _fetch(data, 0) + _K2 & _MASK
        b = _fetch(data, size - 8)
        c = _rotate(b, 37) * mul + a & _MASK
        d = (_rotate(a, 25) + b) * mul & _MASK
        return _mix(c, d, mul)
    if size >= 4:
        return _mix(size + (_fetch32(data, 0) << 3), _fetch32(data, size - 4), mul)
    if size > 0:
        y = data[0] + (data[size >> 1] << 8)
        z = size + (data[size - 1] << 2)
        return _shift_mix(y * _K2 ^ z * _K0) * _K2 & _MASK
    return _K2


def _hash_17_to_32(data: bytes, size: int) -> int:
    mul = _K2 + size * 2
    a = _fetch(data, 0) * _K1 & _MASK
    b = _fetch(data, 8)
    c = _fetch(data, size - 8) * mul & _MASK
    d = _fetch(data, size - 16) * _K2 & _MASK
    return _mix(_rotate(a + b, 43) + _rotate(c, 30) + d & _MASK, a + _rotate(b + _K2, 18) + c & _MASK, mul)


def _hash_33_to_64(data: bytes, size: int) -> int:
    mul = _K2 + size * 2
    a = _fetch(data, 0) * _K2 & _MASK
    b = _fetch(data, 8)
    c = _fetch(data, size - 8) * mul & _MASK
    d = _fetch(data, size - 16) * _K2 & _MASK
    y = _rotate(a + b, 43) + _rotate(c, 30) + d & _MASK
    z = _mix(y, a + _rotate(b + _K2, 18) + c & _MASK, mul)
    e = _fetch(data, 16) * mul & _MASK
    f = _fetch(data, 24)
    g = (y + _fetch(data, size - 32)) * mul & _MASK
    h = (z + _fetch(data, size - 24)) * mul & _MASK
    return _mix(_rotate(e + f, 43) + _rotate(g, 30) + h & _MASK, e + _rotate(f + a, 18) + g & _MASK, mul)


def _weak_hash_32(data: bytes, at: int, a: int, b: int) -> _Pair:
    w, x, y, z = struct.unpack_from("<4Q", data, at)
    a += w
    b = _rotate(b + a + z, 21)
    c = a
    a += x + y
    b += _rotate(a, 44)
    return a + z & _MASK, b + c & _MASK


def _round(data: bytes, at: int, state: tuple[int, int, int, _Pair, _Pair], mul: int, last: int) -> tuple[int, int, int, _Pair, _Pair]:
    """Mix in the 64 bytes at `at`; `last` is 9 in the last round, 1 before."""
    x, y, z, v, w = state
    x = _rotate(x + y + v[0] + _fetch(data, at + 8), 37) * mul & _MASK
    y = _rotate(y + v[1] + _fetch(data, at + 48), 42) * mul & _MASK
    x ^= w[1] * last & _MASK
    y = y + v[0] * last + _fetch(data, at + 40) & _MASK
    z = _rotate(z + w[0], 33) * mul & _MASK
    v = _weak_hash_32(data, at, v[1] * mul, x + w[0])
    w = _weak_hash_32(data, at + 32, z + w[1], y + _fetch(data, at + 16))
    return z, y, x, v, w


def _hash_long(data: bytes, size: int) -> int:
    seed = 81
    y = seed * _K1 + 113 & _MASK
    z = _shift_mix(y * _K2 + 113) * _K2 & _MASK
    x = seed * _K2 + _fetch(data, 0) & _MASK
    state = x, y, z, (0, 0), (0, 0)
    end = (size - 1) // 64 * 64
    for at in range(0, end, 64):
        state = _round(data, at, state, _K1, 1)
    x, y, z, v, w = state
    mul = _K1 + ((z & 0xFF) << 1)
    w0 = w[0] + (size - 1 & 63)
    v0 = v[0] + w0
    w0 += v0
    x, y, z, v, w = _round(data, size - 64, (x, y, z, (v0 & _MASK, v[1]), (w0 & _MASK, w[1])), mul, 9)
    first = _mix(v[0], w[0], mul) + _shift_mix(y) * _K0 + z & _MASK
    return _mix(first, _mix(v[1], w[1], mul) + x & _MASK, mul)
