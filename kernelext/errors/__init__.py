"""Errors in cells: requirement and actual value, lines of code, a picture, and a suggestion."""

from kernelext.errors.display import ErrorDisplay

__all__ = ["ErrorDisplay"]
