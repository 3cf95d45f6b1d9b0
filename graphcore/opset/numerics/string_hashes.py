"""Hashes of byte strings: FarmHash's fingerprint, SipHash, and a MurmurHash."""

from __future__ import annotations

from typing import Final

_M: Final = (1 << 64) - 1
_K0: Final = 0xC3A5C85C97CB3127
_K1: Final = 0xB492B66FBE98F273
_K2: Final = 0x9AE16A3B2F90404F


def _word(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 8], "little")


def _half(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 4], "little")


def _turned(value: int, by: int) -> int:
    return (value >> by | value << (64 - by)) & _M


def _mixed(value: int) -> int:
    return value ^ value >> 47


def _paired(u: int, v: int, multiplier: int) -> int:
    a = _mixed((u ^ v) * multiplier & _M)
    return _mixed((v ^ a) * multiplier & _M) * multiplier & _M


def _up_to_16(s: bytes) -> int:
    n = len(s)
    if n >= 8:
        multiplier = (_K2 + n * 2) & _M
        a, b = (_word(s, 0) + _K2) & _M, _word(s, n - 8)
        c, d = (_turned(b, 37) * multiplier + a) & _M, ((_turned(a, 25) + b) * multiplier) & _M
        return _paired(c, d, multiplier)
    if n >= 4:
        return _paired((n + (_half(s, 0) << 3)) & _M, _half(s, n - 4), (_K2 + n * 2) & _M)
    if n:
        y, z = s[0] + (s[n >> 1] << 8), n + (s[n - 1] << 2)
        return _mixed((y * _K2 ^ z * _K0) & _M) * _K2 & _M
    return _K2


def _up_to_32(s: bytes) -> int:
    n = len(s)
    multiplier = (_K2 + n * 2) & _M
    a, b = _word(s, 0) * _K1 & _M, _word(s, 8)
    c, d = _word(s, n - 8) * multiplier & _M, _word(s, n - 16) * _K2 & _M
    first = (_turned((a + b) & _M, 43) + _turned(c, 30) + d) & _M
    return _paired(first, (a + _turned((b + _K2) & _M, 18) + c) & _M, multiplier)


def _up_to_64(s: bytes) -> int:
    n = len(s)
    multiplier = (_K2 + n * 2) & _M
    a, b = _word(s, 0) * _K2 & _M, _word(s, 8)
    c, d = _word(s, n - 8) * multiplier & _M, _word(s, n - 16) * _K2 & _M
    y = (_turned((a + b) & _M, 43) + _turned(c, 30) + d) & _M
    z = _paired(y, (a + _turned((b + _K2) & _M, 18) + c) & _M, multiplier)
    e, f = _word(s, 16) * multiplier & _M, _word(s, 24)
    g, h = ((y + _word(s, n - 32)) * multiplier) & _M, ((z + _word(s, n - 24)) * multiplier) & _M
    return _paired((_turned((e + f) & _M, 43) + _turned(g, 30) + h) & _M, (e + _turned((f + a) & _M, 18) + g) & _M, multiplier)


def _weak(s: bytes, at: int, a: int, b: int) -> tuple[int, int]:
    w, x, y, z = (_word(s, at + 8 * i) for i in range(4))
    a = (a + w) & _M
    b = _turned((b + a + z) & _M, 21)
    c = a
    a = (a + x + y) & _M
    b = (b + _turned(a, 44)) & _M
    return (a + z) & _M, (b + c) & _M


def fingerprint(s: bytes) -> int:
    """FarmHash's 64-bit fingerprint, unsigned."""
    n = len(s)
    if n <= 16:
        return _up_to_16(s)
    if n <= 32:
        return _up_to_32(s)
    if n <= 64:
        return _up_to_64(s)
    seed = 81
    x, y = seed, (seed * _K1 + 113) & _M
    z = _mixed((y * _K2 + 113) & _M) * _K2 & _M
    v, w = (0, 0), (0, 0)
    x = (x * _K2 + _word(s, 0)) & _M
    end = (n - 1) // 64 * 64
    last = n - 64
    for at in range(0, end, 64):
        x = _turned((x + y + v[0] + _word(s, at + 8)) & _M, 37) * _K1 & _M
        y = _turned((y + v[1] + _word(s, at + 48)) & _M, 42) * _K1 & _M
        x ^= w[1]
        y = (y + v[0] + _word(s, at + 40)) & _M
        z = _turned((z + w[0]) & _M, 33) * _K1 & _M
        v = _weak(s, at, v[1] * _K1 & _M, (x + w[0]) & _M)
        w = _weak(s, at + 32, (z + w[1]) & _M, (y + _word(s, at + 16)) & _M)
        z, x = x, z
    multiplier = (_K1 + ((z & 0xFF) << 1)) & _M
    w = ((w[0] + ((n - 1) & 63)) & _M, w[1])
    v = ((v[0] + w[0]) & _M, v[1])
    w = ((w[0] + v[0]) & _M, w[1])
    x = _turned((x + y + v[0] + _word(s, last + 8)) & _M, 37) * multiplier & _M
    y = _turned((y + v[1] + _word(s, last + 48)) & _M, 42) * multiplier & _M
    x ^= w[1] * 9 & _M
    y = (y + v[0] * 9 + _word(s, last + 40)) & _M
    z = _turned((z + w[0]) & _M, 33) * multiplier & _M
    v = _weak(s, last, v[1] * multiplier & _M, (x + w[0]) & _M)
    w = _weak(s, last + 32, (z + w[1]) & _M, (y + _word(s, last + 16)) & _M)
    z, x = x, z
    first = (_paired(v[0], w[0], multiplier) + _mixed(y) * _K0 + z) & _M
    return _paired(first, (_paired(v[1], w[1], multiplier) + x) & _M, multiplier)


def keyed(s: bytes, key: tuple[int, int]) -> int:
    """SipHash-2-4 with a key of two 64-bit numbers, unsigned."""
    v = [0x736F6D6570736575 ^ key[0], 0x646F72616E646F6D ^ key[1], 0x6C7967656E657261 ^ key[0], 0x7465646279746573 ^ key[1]]

    def rounds(count: int) -> None:
        for _ in range(count):
            v[0], v[2] = (v[0] + v[1]) & _M, (v[2] + v[3]) & _M
            v[1], v[3] = _turned(v[1], 51) ^ v[0], _turned(v[3], 48) ^ v[2]
            v[0] = _turned(v[0], 32)
            v[2], v[0] = (v[2] + v[1]) & _M, (v[0] + v[3]) & _M
            v[1], v[3] = _turned(v[1], 47) ^ v[2], _turned(v[3], 43) ^ v[0]
            v[2] = _turned(v[2], 32)

    whole = len(s) // 8 * 8
    last = s[whole:] + bytes(7 - len(s) % 8) + bytes([len(s) & 0xFF])
    for packet in [*(_word(s, at) for at in range(0, whole, 8)), int.from_bytes(last, "little")]:
        v[3] ^= packet
        rounds(2)
        v[0] ^= packet
    v[2] ^= 0xFF
    rounds(4)
    return v[0] ^ v[1] ^ v[2] ^ v[3]


def older(s: bytes, seed: int = 0xDECAFCAFFE) -> int:
    """The hash of the older op, a MurmurHash of 64 bits, unsigned."""
    multiplier = 0xC6A4A7935BD1E995
    h = (seed ^ len(s) * multiplier) & _M
    whole = len(s) // 8 * 8
    for at in range(0, whole, 8):
        word = _word(s, at) * multiplier & _M
        h = (h ^ (word ^ word >> 47) * multiplier & _M) * multiplier & _M
    if whole < len(s):
        h = (h ^ int.from_bytes(s[whole:], "little")) * multiplier & _M
    h = (h ^ h >> 47) * multiplier & _M
    return h ^ h >> 47
