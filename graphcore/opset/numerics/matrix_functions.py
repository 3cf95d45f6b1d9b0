"""Square roots and logarithms of square matrices, by their Schur forms.

A Schur form, a triangular matrix between unitary ones, exists for each matrix and is as precise as the matrix, unlike eigenvectors, which may be close
to dependent. Everything is computed in double precision.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

_EPSILON: Final = float(np.finfo(np.float64).eps)
_NEAR_IDENTITY: Final = 0.25
"""The distance from the identity at which 7 nodes give a logarithm to double precision."""
_MOST_STEPS: Final = 60
"""The QR steps for an eigenvalue; about three are usual."""
_STEPS_BEFORE_ANOTHER_SHIFT: Final = 10
_MOST_ROOTS: Final = 1200
"""More square roots than the range of doubles needs."""


def square_root(a: Any) -> Any:
    """The principal square roots. a: [..., n, n], real or complex -> [..., n, n] of the same kind; NaN where there is none.

    A real matrix with a negative eigenvalue has no real principal root. One that is negative only by rounding counts as 0.
    """
    with np.errstate(all="ignore"):
        return _per_matrix(a, _roots)


def logarithm(a: Any) -> Any:
    """The principal logarithms of complex matrices, [..., n, n] -> [..., n, n]; NaN where there is none."""
    with np.errstate(all="ignore"):
        return _per_matrix(a, _logarithms)


def _per_matrix(a: Any, function: Any) -> Any:
    """Apply a function of [count, n, n] to the finite matrices."""
    wide = a.astype(np.complex128 if a.dtype.kind == "c" else np.float64)
    if not wide.size:
        return wide
    flat = wide.reshape(-1, *a.shape[-2:])
    result = np.full_like(flat, np.nan)
    finite = np.isfinite(flat).all((1, 2))
    if finite.any():
        result[finite] = function(flat[finite])
    return result.reshape(a.shape)


def _roots(a: Any) -> Any:
    triangles, unitary = schur_forms(a)
    roots = unitary @ _triangular_roots(triangles) @ _adjoint(unitary)
    if a.dtype.kind == "c":
        return roots
    # The square of the real part differs from `a` by that of the imaginary part.
    allowed = np.sqrt(a.shape[-1] * _EPSILON) * np.linalg.norm(roots, axis=(1, 2), keepdims=True)
    return np.where(np.linalg.norm(roots.imag, axis=(1, 2), keepdims=True) <= allowed, roots.real, np.nan)


def _triangular_roots(t: Any) -> Any:
    """The square roots of upper triangular matrices, one diagonal after the other."""
    n = t.shape[-1]
    roots, at = np.zeros_like(t), np.arange(n)
    roots[:, at, at] = np.sqrt(t[:, at, at])
    for distance in range(1, n):
        row, between = at[: n - distance], at[1:distance, None]
        column = row + distance
        settled = (roots[:, row, row + between] * roots[:, row + between, column]).sum(1)
        rest = t[:, row, column] - settled
        roots[:, row, column] = np.where(rest == 0, 0, rest / (roots[:, row, row] + roots[:, column, column]))
    return roots


def _logarithms(a: Any) -> Any:
    """The logarithms of near roots, as integrals of X (I + s X)^-1 for s from 0 to 1, and doubled again."""
    triangles, unitary = schur_forms(a)
    at, near = np.arange(a.shape[-1]), triangles.copy()
    logs = np.log(triangles[:, at, at])
    taken = np.zeros(len(a))
    identity = np.eye(a.shape[-1])
    far = np.isfinite(logs).all(1)
    while far.any() and taken.max() < _MOST_ROOTS:
        far[far] = np.abs(near[far] - identity).sum(1).max(1) > _NEAR_IDENTITY
        near[far] = _triangular_roots(near[far])
        taken[far] += 1
    distance = near - identity
    distance[:, at, at] = np.expm1(logs / 2.0 ** taken[:, None])
    nodes, weights = np.polynomial.legendre.leggauss(7)
    whole = np.zeros_like(distance)
    for node, weight in zip((nodes + 1) / 2, weights / 2, strict=True):
        whole += weight * np.linalg.solve(identity + node * distance, distance)
    whole *= 2.0 ** taken[:, None, None]
    whole[:, at, at] = logs
    result = unitary @ whole @ _adjoint(unitary)
    result[~np.isfinite(logs).all(1)] = np.nan
    return result


def _adjoint(a: Any) -> Any:
    return a.swapaxes(-1, -2).conj()


def schur_forms(a: Any) -> tuple[Any, Any]:
    """Upper triangular t and unitary q with a = q t q*, all [count, n, n].

    Raises:
        numpy.linalg.LinAlgError: no convergence.
    """
    triangles, unitary = (np.empty(a.shape, np.complex128) for _ in range(2))
    is_hermitian = (a == _adjoint(a)).all((1, 2))
    values, unitary[is_hermitian] = np.linalg.eigh(a[is_hermitian])
    triangles[is_hermitian] = values[:, None] * np.eye(a.shape[-1])
    triangles[~is_hermitian], unitary[~is_hermitian] = _schur_by_eigenvectors(a[~is_hermitian])
    return triangles, unitary


def _schur_by_eigenvectors(a: Any) -> tuple[Any, Any]:
    """Schur forms, where q is the eigenvectors made orthonormal.

    QR steps find those that are not triangular to rounding in this way.
    """
    unitary = np.linalg.qr(np.linalg.eig(a)[1].astype(np.complex128))[0]
    triangles = _adjoint(unitary) @ a @ unitary
    below = np.linalg.norm(np.tril(triangles, -1), axis=(1, 2))
    for i in np.flatnonzero(~(below <= 8 * a.shape[-1] * _EPSILON * np.linalg.norm(a, axis=(1, 2)))):
        triangles[i], unitary[i] = _schur_by_steps(a[i].astype(np.complex128))
    return np.triu(triangles), unitary


def _schur_by_steps(a: Any) -> tuple[Any, Any]:
    """One Schur form, by QR steps on a Hessenberg matrix from the last eigenvalue to the first."""
    h, q = _hessenberg(a)
    last, steps = len(a) - 1, 0
    while last > 0:
        size = np.abs(h.diagonal())
        small = np.abs(h.diagonal(-1)) <= _EPSILON * (size[1:] + size[:-1])
        h[np.flatnonzero(small) + 1, np.flatnonzero(small)] = 0
        if small[last - 1]:
            last, steps = last - 1, 0
            continue
        if steps >= _MOST_STEPS:
            raise np.linalg.LinAlgError("QR steps did not converge")
        steps += 1
        separate = np.flatnonzero(small[:last])
        first = int(separate[-1]) + 1 if separate.size else 0
        _qr_step(h, q, first, last, _shift(h, last, steps))
    return h, q


def _shift(h: Any, last: int, steps: int) -> Any:
    """The eigenvalue of the last 2 x 2 block that is nearer to its corner.

    Every few steps it is another number, which ends cycles.
    """
    if steps % _STEPS_BEFORE_ANOTHER_SHIFT == 0:
        return h[last, last] + abs(h[last, last - 1])
    half = (h[last - 1, last - 1] - h[last, last]) / 2
    product = h[last, last - 1] * h[last - 1, last]
    root = np.sqrt(half * half + product)
    further = half + root if abs(half + root) >= abs(half - root) else half - root
    return h[last, last] - (product / further if further else 0)


def _qr_step(h: Any, q: Any, first: int, last: int, shift: Any) -> None:
    """One implicit QR step on rows and columns `first` to `last`: rotations that chase a bulge."""
    x, y = h[first, first] - shift, h[first + 1, first]
    for k in range(first, last):
        size = np.hypot(abs(x), abs(y))
        if size:
            turn = np.array([[x.conjugate(), y.conjugate()], [-y, x]]) / size
            start = max(k - 1, first)
            h[k : k + 2, start:] = turn @ h[k : k + 2, start:]
            h[: min(k + 3, last + 1), k : k + 2] = h[: min(k + 3, last + 1), k : k + 2] @ turn.conj().T
            q[:, k : k + 2] = q[:, k : k + 2] @ turn.conj().T
        if k < last - 1:
            x, y = h[k + 1, k], h[k + 2, k]


def _hessenberg(a: Any) -> tuple[Any, Any]:
    """Zeros below the first lower diagonal by reflections: h and unitary q with a = q h q*."""
    h, q = a.copy(), np.eye(len(a), dtype=np.complex128)
    for k in range(len(a) - 2):
        x = h[k + 1 :, k].copy()
        size = np.linalg.norm(x)
        if not np.linalg.norm(x[1:]):
            continue
        x[0] += size * (x[0] / abs(x[0]) if x[0] else 1)
        x /= np.linalg.norm(x)
        h[k + 1 :, k:] -= 2 * np.outer(x, x.conj() @ h[k + 1 :, k:])
        h[:, k + 1 :] -= 2 * np.outer(h[:, k + 1 :] @ x, x.conj())
        q[:, k + 1 :] -= 2 * np.outer(q[:, k + 1 :] @ x, x.conj())
        h[k + 2 :, k] = 0
    return h, q
