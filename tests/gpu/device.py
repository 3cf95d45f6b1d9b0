"""The GPU, or the reason for its absence."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def find_cupy() -> tuple[Any, str]:
    """CuPy if it can compute here, else None, with the reason."""
    try:
        cupy = import_module("cupy")
    except ImportError as error:
        return None, f"CuPy is not installed ({error}); pip install 'graphloupe[cuda12]' or 'graphloupe[cuda13]'"
    try:
        count = cupy.cuda.runtime.getDeviceCount()
        float(cupy.arange(3.0).sum())
    except RuntimeError as error:  # the driver's error messages vary
        return None, f"CuPy finds no CUDA device that works: {error}"
    return (cupy, "") if count else (None, "CuPy finds no CUDA device")
